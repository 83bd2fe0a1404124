/*
 * Reads the shared options by one table, opens traces within their budget, and prints tables. The
 * verbs about traces call it, on one thread. It never exits.
 */
#include "tools/cli/trace_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/budget.h"

enum { OPTIONS = 16 };

static const char *const ways[] = {"kernels", "steps", NULL};

/* A number at the beginning of `text`; returns what is behind it, or NULL. */
static const char *number(const char *text, uint32_t *out) {
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > 9)
        return NULL;
    *out = (uint32_t)atol(text);
    return text + digits;
}

static bool take_steps(const struct cli_option *self, const char *text) {
    struct trace_args *args = self->to;
    const char *at = number(text, &args->from);
    args->to = args->from;
    if (at && *at == '-')
        at = number(at + 1, &args->to);
    args->steps = at && !*at && args->from <= args->to;
    if (!args->steps)
        cli_say("--steps %s: A-B is expected, as in 10-19, or one number", text);
    return args->steps;
}

static bool take_step(const struct cli_option *self, const char *text) {
    struct trace_args *args = self->to;
    args->steps = args->step = cli_number(self, text, &args->from);
    args->to = args->from;
    return args->step;
}

static bool take_memory(const struct cli_option *self, const char *text) {
    unsigned mib;
    bool good = cli_number(self, text, &mib);
    if (good)
        budget_memory(mib);
    return good;
}

static bool take_seconds(const struct cli_option *self, const char *text) {
    unsigned seconds;
    bool good = cli_number(self, text, &seconds);
    if (good)
        budget_seconds(seconds);
    return good;
}

const struct cli_option cli_budget_options[] = {
    {.name = "max-memory", .value = "MIB", .take = take_memory},
    {.name = "max-seconds", .value = "S", .take = take_seconds},
    {0},
};

int cli_one_trace(const struct cli_verb *self, int argc, char **argv, const struct cli_option *own,
                  const char **trace) {
    const struct cli_option *const tables[] = {own, cli_budget_options, NULL};
    struct cli_words words;
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    *trace = words.at[0];
    if (words.n == 1)
        return -1;
    if (words.n)
        cli_say("one trace at a time: %s and %s", words.at[0], words.at[1]);
    else
        cli_say("a trace is missing: cusplice %s", self->synopsis);
    return 2;
}

int trace_args_read(const struct cli_verb *self, struct trace_args *args, int argc, char **argv,
                    unsigned allowed, const char *const *needed) {
    /* In the order of enum trace_option. */
    const struct cli_option all[OPTIONS] = {
        {"format", 0, "FORMAT", cli_take_word, &args->view.format, table_formats, 0, 0},
        {"sort", 0, "FIELD", cli_take_name, &args->view.sort, NULL, 0, 0},
        {"fields", 0, "A,B", cli_take_name, &args->view.fields, NULL, 0, 0},
        {"names", 0, "FORM", cli_take_word, &args->names, names_forms, 0, 0},
        {"top", 0, "N", cli_take_number, &args->view.top, NULL, 1, 0},
        CLI_FLAG("json", &args->json),
        {"steps", 0, "A-B", take_steps, args, NULL, 0, 0},
        {"stream", 0, "N", cli_take_number, &args->stream, NULL, 1, 0},
        CLI_FLAG("dot", &args->dot),
        {"step", 0, "N", take_step, args, NULL, 0, 0},
        {"out", 'o', "FILE", cli_take_name, &args->out, NULL, 0, 0},
        CLI_FLAG("pack", &args->pack),
        {"by", 0, "WHAT", cli_take_word, &args->by, ways, 0, 0},
        {"html", 0, "FILE", cli_take_name, &args->html, NULL, 0, 0},
        CLI_FLAG("force", &args->force),
        CLI_FLAG("bare", &args->bare),
    };
    struct cli_option taken[OPTIONS + 1] = {{0}};
    const struct cli_option *const tables[] = {taken, cli_budget_options, NULL};
    struct cli_words words;
    unsigned n = 0;
    memset(args, 0, sizeof *args);
    for (unsigned i = 0; i < OPTIONS; i++)
        if (allowed & 1u << i)
            taken[n++] = all[i];
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    args->words = words.at;
    int least = 0;
    while (needed[least])
        least++;
    if (words.n > least + (allowed & TRACE_ONE_MORE ? 1 : 0)) {
        cli_say("%s: more than is expected (see --help)", words.at[words.n - 1]);
        return 2;
    }
    args->n_words = words.n;
    if (words.n < least)
        needed += words.n;
    else
        return -1;
    cli_say("%s is missing (see cusplice %s --help)", *needed, self->name);
    return 2;
}

bool trace_args_open(const struct trace_args *args, const char *path, struct look *look) {
    char error[4600];
    static char buffer[1 << 16];
    if (!look_open(look, path, args->names, error, sizeof error)) {
        cli_say("%s", error);
        return false;
    }
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    return true;
}

int trace_args_end(void) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    if (errno != EPIPE)
        cli_say("stdout: cannot be written: %s", strerror(errno));
    return 1;
}

int trace_args_print(const struct trace_args *args, struct table *table) {
    char error[512];
    if (table->failed) {
        cli_say("not enough memory for the table");
        return 1;
    }
    if (!table_check(table, &args->view, error, sizeof error)) {
        cli_say("%s", error);
        return 2;
    }
    table_print(table, &args->view, stdout);
    if (table->failed) {
        cli_say("not enough memory to sort the table");
        return 1;
    }
    return trace_args_end();
}
