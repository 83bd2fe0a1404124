/*
 * Reads the shared options by one table, opens traces within their budget, and prints tables. The
 * verbs about traces call it, on one thread. It never exits.
 */
#include "tools/cli/trace_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/width.h"
#include "tools/trace/budget.h"

enum { OPTIONS = 18 };

/* clang-format off */
#define ROW(NAME, ARG, TAKE, TO, HELP) {.name = NAME, .value = ARG, .take = TAKE, .to = TO, .arg = ARG, .help = HELP}
#define OUTPUT(MORE) {.name = "output", .brief = 'o', .value = "FILE", .take = cli_take_name, .to = &args->out.path, .arg = "FILE", .help = "where it goes" MORE}
/* clang-format on */

#define BY_HELP                                                                                    \
    "kernels (default): calls, how many are aligned, how many are in one trace only, in graphs, "  \
    "aligned ops that went into a graph in B and not in A (gained) or the other way round "        \
    "(lost), "                                                                                     \
    "host time (delta: B less A, of aligned ops), runs ended.\nsteps: by signature: steps, ops, "  \
    "in "                                                                                          \
    "graphs, graph launches, time on average"

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
    {.name = "max-memory",
     .value = "MIB",
     .take = take_memory,
     .arg = "MIB",
     .help = "read and unpack with so much memory at most; 0: no bound. Without it 256 MiB and 16 "
             "times what is read; a packed trace may unpack to 64 MiB and 100 times its length"},
    {.name = "max-seconds",
     .value = "S",
     .take = take_seconds,
     .arg = "S",
     .help = "with so much processor time; 0: no bound. Without it 30 s and 1 s for each MiB"},
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
        CLI_FORMAT(
            cli_take_word, &args->view.format,
            "; table and md show units, in csv and json fields that end in _ns are nanoseconds "
            "and those of shares per cent"),
        ROW("sort", "FIELD", cli_take_name, &args->view.sort,
            "largest first, texts from A on; -FIELD (as --sort=-FIELD) the other way round"),
        ROW("fields", "A,B", cli_take_name, &args->view.fields, "these columns, in this order"),
        {.name = "names",
         .value = "FORM",
         .take = cli_take_word,
         .to = &args->names,
         .words = names_forms,
         .arg = "FORM",
         .help = "base (default), demangled or mangled; kernels of one name are one row"},
        {.name = "top",
         .value = "N",
         .take = cli_take_number,
         .to = &args->view.top,
         .least = 1,
         .arg = "N",
         .help = "N rows at most"},
        CLI_TABLE_OR_JSON(&args->json),
        ROW("steps", "A-B", take_steps, args,
            "steps A to B, from 0 on, of the busiest stream, or of --stream, and of the other "
            "streams those that begin in that time; cusplice report coverage lists them"),
        {.name = "stream",
         .value = "N",
         .take = cli_take_number,
         .to = &args->stream,
         .least = 1,
         .arg = "N",
         .help = "this stream's"},
        CLI_FLAG("dot", &args->dot,
                 "one step as a digraph for Graphviz (dump --dot T | dot -Tsvg): graphs are boxes "
                 "around their ops, eager ops are octagons with their reason"),
        ROW("step", "N", take_step, args,
            "with --dot: which step; without it the last one that came to its end"),
        OUTPUT("; without it, X.cst becomes X.trim.cst (repair: X.repaired.cst)"),
        CLI_FLAG("pack", &args->pack, "compress it (zstd)"),
        {.name = "by",
         .value = "WHAT",
         .take = cli_take_word,
         .to = &args->by,
         .words = ways,
         .arg = "WHAT",
         .help = BY_HELP},
        ROW("html", "FILE", cli_take_name, &args->html,
            "a page for a browser, which needs no network: the tables, and the ops of a step, to "
            "search. It holds 5,000,000 ops at most"),
        CLI_FORCE(&args->out.force),
        CLI_FLAG("bare", &args->bare,
                 "for others to see: leave out the command line, paths, names of threads, the "
                 "arguments of kernels and what a replay needs. Names of kernels, shapes and times "
                 "stay"),
        CLI_WIDE(&args->wide),
        OUTPUT("; - is stdout, as without it"),
    };
    /* Names of before; the help has them no more. */
    const struct cli_option old_json = CLI_OLD_FLAG("json", cli_take_flag, &args->json);
    const struct cli_option old_out = CLI_OLD("out", 0, cli_take_name, &args->out.path);
    struct cli_option taken[OPTIONS + 3] = {{0}};
    const struct cli_option *const tables[] = {taken, cli_budget_options, NULL};
    struct cli_words words;
    unsigned n = 0;
    memset(args, 0, sizeof *args);
    for (unsigned i = 0; i < OPTIONS; i++)
        if (allowed & 1u << i)
            taken[n++] = all[i];
    if (allowed & TRACE_JSON)
        taken[n++] = old_json;
    if (allowed & TRACE_OUT)
        taken[n++] = old_out;
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    args->words = words.at;
    args->view.width = args->wide || cli_redirect_is_file(&args->out) ? 0 : cli_width();
    args->n_words = words.n;
    for (int i = 0; needed && i < words.n; i++)
        if (!*needed++) {
            cli_say("%s: more than is expected (see --help)", words.at[i]);
            return 2;
        }
    if (!needed || !*needed)
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

bool trace_args_begin(struct trace_args *args, const char *const *from) {
    return cli_redirect_begin(&args->out, from);
}

int trace_args_end(struct trace_args *args) {
    return cli_redirect_end(&args->out, true) ? 0 : 1;
}

int trace_args_print(struct trace_args *args, struct table *table, const char *const *from) {
    char error[512];
    if (table->failed) {
        cli_say("not enough memory for the table");
        return 1;
    }
    if (!table_check(table, &args->view, error, sizeof error)) {
        cli_say("%s", error);
        return 2;
    }
    if (!trace_args_begin(args, from))
        return 1;
    table_print(table, &args->view, stdout);
    if (table->failed) {
        cli_redirect_end(&args->out, false);
        cli_say("not enough memory to sort the table");
        return 1;
    }
    return trace_args_end(args);
}
