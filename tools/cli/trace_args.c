/* See the header. */
#include "tools/cli/trace_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/run.h"
#include "tools/cli/verb.h"
#include "tools/trace/budget.h"

static const struct {
    const char *name;
    enum trace_option option;
    const char *value; /* what it takes; NULL: nothing */
} options[] = {
    {"--format", TRACE_FORMAT, "FORMAT"},
    {"--sort", TRACE_SORT, "FIELD"},
    {"--fields", TRACE_FIELDS, "A,B"},
    {"--names", TRACE_NAMES, "FORM"},
    {"--top", TRACE_TOP, "N"},
    {"--json", TRACE_JSON, NULL},
    {"--steps", TRACE_STEPS, "A-B"},
    {"--stream", TRACE_STREAM, "N"},
    {"--dot", TRACE_DOT, NULL},
    {"--step", TRACE_STEP, "N"},
    {"--out", TRACE_OUT, "FILE"},
    {"--pack", TRACE_PACK, NULL},
    {"--bare", TRACE_BARE, NULL},
    {"--by", TRACE_BY, "WHAT"},
    {"--html", TRACE_HTML, "FILE"},
    {"--force", TRACE_FORCE, NULL},
    {"--max-memory", TRACE_MAX_MEMORY, "MIB"},
    {"--max-seconds", TRACE_MAX_SECONDS, "S"},
};
enum { OPTIONS = sizeof options / sizeof *options };

/* One of a list, by its place; -1 where it is none, which is told. */
static int one_of(const char *option, const char *word, const char *const *list) {
    for (int i = 0; list[i]; i++)
        if (strcmp(word, list[i]) == 0)
            return i;
    cli_say("%s: there is no '%s'; the nearest is '%s'", option, word, cus_nearest(word, list));
    return -1;
}

/* A number at the beginning of `text`; returns what is behind it, or NULL. */
static const char *number(const char *text, uint32_t *out) {
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > 9)
        return NULL;
    *out = (uint32_t)atol(text);
    return text + digits;
}

static bool take_range(struct trace_args *args, const char *text) {
    const char *at = number(text, &args->from);
    args->to = args->from;
    if (at && *at == '-')
        at = number(at + 1, &args->to);
    if (at && !*at && args->from <= args->to)
        return true;
    cli_say("--steps %s: A-B is expected, as in 10-19, or one number", text);
    return false;
}

static bool take_number(const char *option, const char *text, uint32_t least, uint32_t *out) {
    const char *at = number(text, out);
    if (at && !*at && *out >= least)
        return true;
    cli_say("%s %s: a number from %u on is expected", option, text, least);
    return false;
}

static bool take_bound(const char *option, const char *text, void (*bound)(uint64_t)) {
    uint32_t n;
    if (!take_number(option, text, 0, &n))
        return false;
    bound(n);
    return true;
}

static bool take(struct trace_args *args, unsigned i, const char *value) {
    uint32_t top;
    int word;
    args->given |= options[i].option;
    switch (options[i].option) {
    case TRACE_FORMAT:
        word = one_of("--format", value, table_formats);
        args->view.format = word < 0 ? TABLE_TEXTUAL : (enum table_format)word;
        return word >= 0;
    case TRACE_NAMES:
        word = one_of("--names", value, names_forms);
        args->names = word < 0 ? NAMES_BASE : (enum names_form)word;
        return word >= 0;
    case TRACE_SORT:
        args->view.sort = value;
        return true;
    case TRACE_FIELDS:
        args->view.fields = value;
        return true;
    case TRACE_TOP:
        if (!take_number("--top", value, 1, &top))
            return false;
        args->view.top = top;
        return true;
    case TRACE_STEPS:
        return take_range(args, value);
    case TRACE_STREAM:
        return take_number("--stream", value, 1, &args->stream);
    case TRACE_STEP:
        args->given |= TRACE_STEPS;
        return take_number("--step", value, 0, &args->from) && ((args->to = args->from), true);
    case TRACE_MAX_MEMORY:
        return take_bound("--max-memory", value, budget_memory);
    case TRACE_MAX_SECONDS:
        return take_bound("--max-seconds", value, budget_seconds);
    case TRACE_OUT:
        args->out = value;
        return true;
    case TRACE_HTML:
        args->html = value;
        return true;
    case TRACE_BY:
        args->by = value;
        return true;
    default:
        return true;
    }
}

static bool unknown(const char *word, unsigned allowed) {
    const char *names[OPTIONS + 2] = {NULL};
    unsigned n = 0;
    for (unsigned i = 0; i < OPTIONS; i++)
        if (allowed & options[i].option)
            names[n++] = options[i].name;
    names[n] = "--help";
    cli_say("unknown option %s; the nearest is %s", word, cus_nearest(word, names));
    return false;
}

/* The option that a word is, and its value behind '='; -1: none that is allowed. */
static int find(const char *word, unsigned allowed, const char **value) {
    for (int i = 0; i < OPTIONS; i++) {
        size_t bytes = strlen(options[i].name);
        *value = NULL;
        if (!(allowed & options[i].option))
            continue;
        if (strcmp(word, options[i].name) == 0 ||
            (options[i].option == TRACE_OUT && strcmp(word, "-o") == 0))
            return i;
        *value = word + bytes + 1;
        if (options[i].value && strncmp(word, options[i].name, bytes) == 0 && word[bytes] == '=')
            return i;
    }
    return -1;
}

bool trace_args_read(struct trace_args *args, int argc, char **argv, unsigned allowed,
                     const char *const *needed) {
    bool only_words = false;
    allowed |= TRACE_MAX_MEMORY | TRACE_MAX_SECONDS;
    memset(args, 0, sizeof *args);
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
            continue;
        }
        if (only_words || *argv[i] != '-') {
            if (args->n_words == TRACE_WORDS || !needed[args->n_words]) {
                cli_say("%s: %s", argv[i], "more than is expected (see --help)");
                return false;
            }
            args->words[args->n_words++] = argv[i];
            continue;
        }
        int option = find(argv[i], allowed, &value);
        if (option < 0)
            return unknown(argv[i], allowed);
        if (options[option].value && !value)
            value = argv[++i];
        if (options[option].value && (!value || !*value)) {
            cli_say("%s: %s is missing", options[option].name, options[option].value);
            return false;
        }
        if (!take(args, (unsigned)option, value))
            return false;
    }
    if (needed[args->n_words]) {
        cli_say("%s is missing (see cusplice %s --help)", needed[args->n_words], argv[0]);
        return false;
    }
    return true;
}

int cli_budget_option(char **argv, int *at) {
    static const struct {
        const char *name;
        void (*bound)(uint64_t);
    } bounds[] = {{"--max-memory", budget_memory}, {"--max-seconds", budget_seconds}};
    const char *value;
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        int taken = cli_run_value(argv, at, bounds[i].name, NULL, &value);
        if (taken)
            return taken > 0 && take_bound(bounds[i].name, value, bounds[i].bound) ? 1 : -1;
    }
    return 0;
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

bool cli_add_pattern(char *patterns, size_t bytes, const char *pattern) {
    size_t used = strlen(patterns);
    if (strchr(pattern, ';') || !*pattern) {
        cli_say("--eager %s: one pattern at a time", pattern);
        return false;
    }
    if (used + strlen(pattern) + 2 > bytes) {
        cli_say("--eager %s: too many patterns", pattern);
        return false;
    }
    snprintf(patterns + used, bytes - used, "%s%s", used ? ";" : "", pattern);
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
