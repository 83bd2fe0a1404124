/*
 * The `cusplice` command: the table of verbs, help and version. It finds the verb, or names the
 * nearest one. stdout belongs to the program that a verb starts, so messages never go there.
 */
#include "tools/cli/verb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/api/api.h"
#include "shim/base/version.h"
#include "tools/cli/commit.h"
#include "tools/cli/config_by.h"
#include "tools/cli/pages.h"
#include "tools/cli/width.h"
#include "tools/trace/budget.h"
#include "tools/trace/clean.h"
#include "tools/trace/progress.h"

/* In the order of the help. */
/* clang-format off */
static const struct cli_verb *const verbs[] = {
    &cli_verb_run,
    &cli_verb_record,
    &cli_verb_info,
    &cli_verb_dump,
    &cli_verb_report,
    &cli_verb_diff,
    &cli_verb_trim,
    &cli_verb_repair,
    &cli_verb_whatif,
    &cli_verb_rules,
    &cli_verb_replay,
    &cli_verb_bench,
    &cli_verb_calibrate,
    &cli_verb_export,
    &cli_verb_import,
    &cli_verb_verify,
    &cli_verb_top,
    &cli_verb_config,
    &cli_verb_cache,
    &cli_verb_doctor,
    &cli_verb_demo,
    NULL,
};
/* clang-format on */
enum { VERBS = sizeof verbs / sizeof verbs[0] - 1 };

/* Memory may run out anywhere: what bounds it is said here, once for all who say that it did. */
static bool is_about_memory(const char *text) {
    return strstr(text, "ot enough memory") || strstr(text, "Cannot allocate memory");
}

void cli_say(const char *fmt, ...) {
    char *text = NULL, *whole = NULL;
    va_list args;
    progress_clear();
    va_start(args, fmt);
    int bytes = vasprintf(&text, fmt, args);
    va_end(args);
    if (bytes < 0 ||
        asprintf(&whole, "%s%s", text, is_about_memory(text) ? budget_hint() : "") < 0) {
        fputs("cusplice: not enough memory\n", stderr);
        free(bytes < 0 ? NULL : text);
        return;
    }
    const size_t head = strlen("cusplice: "), indent = strspn(whole, " ");
    const unsigned width = cli_terminal_width(STDERR_FILENO);
    if (width && head + clean_columns(whole) > width) { /* a pipe gets one line */
        fprintf(stderr, "cusplice: %*s", (int)indent, "");
        clean_fold(stderr, whole + indent, head + indent, head + indent, width);
    } else {
        clean_print(stderr, "cusplice: %s\n", whole);
    }
    free(whole);
    free(text);
}

void cli_problem(void *context, const struct cus_problem *problem) {
    char text[1200], by[1200];
    int *count = context;
    *count += !problem->notice;
    cus_problem_show(problem, text, sizeof text);
    cli_config_by(problem->file, by, sizeof by);
    cli_say("%s%s%s", text, *by ? "; included by " : "", by);
}

/* The command itself, for its help and its page. */
static const struct cli_verb whole = {
    .name = "",
    .synopsis = "VERB ...",
    .summary = "CUDA launches of an unmodified program become graphs",
    .help = "Turns the CUDA launches of an unmodified program into graphs, cut where kernels on an "
            "eager list stand.",
    .page =
        {
            .exits = "that of the verb; 2 where there is no such verb",
            .environment =
                "CUSPLICE=off\tThe library passes all calls unchanged.\n"
                "CUSPLICE_CONFIG\tConfiguration files, with : between; cusplice run -c sets it.\n"
                "CUSPLICE_KEY\tThe setting with this key in small letters, such as "
                "CUSPLICE_HOLD_US=500; see cusplice.conf(5).\n"
                "XDG_CONFIG_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR\tWhere configuration, signature "
                "cache and pages for cusplice top are.\n"
                "COLUMNS\tHow wide a table may be where stdout is no terminal.\n"
                "NO_COLOR\tNo colours.\n",
            .examples =
                "cusplice run --why -- ./your-program\tThe shortest way: runs a program with the "
                "library, and says at exit what became of its launches.\n",
            .files = "/etc/cusplice.conf, ~/.config/cusplice/cusplice.conf\tSettings and rules, "
                     "see cusplice.conf(5).\n"
                     "~/.cache/cusplice\tThe signature cache of cusplice run.\n",
            .see = "run record report verify config",
        },
};

static void print_help(void) {
    char text[4096];
    int used =
        snprintf(text, sizeof text, "usage: cusplice %s\n\n%s\n\n", whole.synopsis, whole.help);
    for (unsigned i = 0; i < VERBS && used < (int)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "  %-9s  %s\n", verbs[i]->name,
                         verbs[i]->summary);
    cli_print_filled(text);
    cli_print_filled("\n"
                     "  The shortest way: cusplice run -- PROGRAM ARGS...\n"
                     "  cusplice VERB --help says more; cusplice --version prints the version.\n"
                     "  cusplice help --man VERB | man -l - is a page of the manual;\n"
                     "  cusplice help --completion bash, zsh or fish is for that shell.\n");
}

/* 13000 as 13.0. */
static void print_cuda(unsigned version) {
    printf("CUDA %u.%u", version / 1000, version % 1000 / 10);
}

static void print_version(void) {
    printf("cusplice %s\ncommit   %s\ndrivers  graphs from ", CUSPLICE_VERSION, CUSPLICE_COMMIT);
    print_cuda(CUS_GRAPHS_VERSION);
    printf(" on; what calls do was measured with ");
    print_cuda(CUS_GATE_VERSION);
    printf("; with older drivers all launches pass\ntoolkits any that such a driver runs; the %u "
           "driver functions of ",
           (unsigned)CUS_API_ROWS);
    print_cuda(CUS_TABLE_VERSION);
    printf(" are known, any other one flushes\n");
}

/* `cusplice help --man [PAGE]` and `--completion SHELL`; -1: it is neither. */
static int print_pages(int argc, char **argv) {
    bool man = strcmp(argv[2], "--man") == 0, complete = strcmp(argv[2], "--completion") == 0;
    if (argc > 4 && (man || complete)) {
        cli_say("%s: more than is expected", argv[4]);
        return 2;
    }
    if (man)
        return cli_man(&whole, verbs, argc > 3 ? argv[3] : "");
    if (complete)
        return cli_complete(verbs, argc > 3 ? argv[3] : "");
    return -1;
}

static bool is(const char *word, const char *a, const char *b) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static const struct cli_verb *find(const char *name) {
    for (unsigned i = 0; i < VERBS; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static int unknown(const char *word) {
    const char *names[VERBS + 1] = {NULL};
    for (unsigned i = 0; i < VERBS; i++)
        names[i] = verbs[i]->name;
    const char *near = cus_near(word, names);
    if (strchr(word, '/'))
        cli_say("'%s' is no verb; to run a program: cusplice run -- %s", word, word);
    else if (near)
        cli_say("'%s' is no verb; the nearest is '%s' (see cusplice --help)", word, near);
    else
        cli_say("'%s' is no %s (see cusplice --help)", word, *word == '-' ? "option" : "verb");
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        cli_say("a verb is missing (see cusplice --help)");
        return 2;
    }
    if (is(argv[1], "--version", "version") || strcmp(argv[1], "-V") == 0) {
        print_version();
        return 0;
    }
    bool help = is(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0;
    if (help && argc == 2) {
        print_help();
        return 0;
    }
    int status = help && strcmp(argv[1], "help") == 0 ? print_pages(argc, argv) : -1;
    if (status >= 0)
        return status;
    const struct cli_verb *verb = find(argv[help ? 2 : 1]);
    if (!verb)
        return unknown(argv[help ? 2 : 1]);
    if (help) { /* the verb has the tables of its options */
        char *const asked[] = {argv[2], "--help", NULL};
        return verb->run(verb, 2, (char **)asked);
    }
    budget_begin();
    return verb->run(verb, argc - 1, argv + 1);
}
