/*
 * The `cusplice` command: the table of verbs, help and version. It finds the verb, or names the
 * nearest one. stdout belongs to the program that a verb starts, so messages never go there.
 */
#include "tools/cli/verb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/version.h"
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
    &cli_verb_demo,
};
/* clang-format on */
enum { VERBS = sizeof verbs / sizeof verbs[0] };

/* Memory may run out anywhere: what bounds it is said here, once for all who say that it did. */
static bool is_about_memory(const char *text) {
    return strstr(text, "ot enough memory") || strstr(text, "Cannot allocate memory");
}

void cli_say(const char *fmt, ...) {
    char *text;
    va_list args;
    progress_clear();
    va_start(args, fmt);
    int bytes = vasprintf(&text, fmt, args);
    va_end(args);
    if (bytes < 0) {
        fputs("cusplice: not enough memory\n", stderr);
        return;
    }
    clean_print(stderr, "cusplice: %s%s\n", text, is_about_memory(text) ? budget_hint() : "");
    free(text);
}

void cli_problem(void *context, const struct cus_problem *problem) {
    char text[1200];
    int *count = context;
    *count += !problem->notice;
    cus_problem_show(problem, text, sizeof text);
    cli_say("%s", text);
}

static void print_help(void) {
    printf("usage: cusplice VERB ...\n\n"
           "Turns the CUDA launches of an unmodified program into graphs, cut where kernels on an "
           "eager list stand.\n\n");
    for (unsigned i = 0; i < VERBS; i++)
        printf("  %-9s %s\n", verbs[i]->name, verbs[i]->summary);
    printf("\n"
           "  cusplice VERB --help says more; cusplice --version prints the version.\n"
           "  The shortest way: cusplice run -- PROGRAM ARGS...\n");
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
        printf("cusplice %s\n", CUSPLICE_VERSION);
        return 0;
    }
    bool help = is(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0;
    if (help && argc == 2) {
        print_help();
        return 0;
    }
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
