/*
 * The verbs of the `cusplice` command: one file each, in the table of main.c. Every verb's file
 * includes it. No verb calls another one through this header.
 */
#ifndef CUSPLICE_TOOLS_CLI_VERB_H
#define CUSPLICE_TOOLS_CLI_VERB_H

#include <stdbool.h>

#include "shim/base/config.h"

/* In a verb's help: here stand its options. */
#define CLI_OPTIONS "\v"

/* What a verb's words are, for completion. */
enum cli_takes {
    CLI_TAKES_NOTHING,
    CLI_TAKES_PROGRAM, /* a program, then its arguments */
    CLI_TAKES_BEHIND,  /* the same, but behind -- alone */
    CLI_TAKES_TRACE,   /* traces (.cst), or folders of them */
    CLI_TAKES_DATABASE,
    CLI_TAKES_CONF,
    CLI_TAKES_FOLDER,
    CLI_TAKES_PID
};

/* What a verb's manual page and completion say beyond its help. Rows end with a newline; in each, a
 * tab stands between the thing and its text. */
struct cli_page {
    const char *exits;       /* the exit status, a sentence without its end; --help has it, too */
    const char *examples;    /* rows: a command for a shell */
    const char *files;       /* rows: a file */
    const char *environment; /* rows: a variable; NULL: none */
    const char *see;         /* verbs, with blanks between */
    const char
        *words; /* what the first word may be, with blanks between; NULL: what `takes` says */
    enum cli_takes takes;
};

struct cli_verb {
    const char *name;
    const char *synopsis; /* behind "cusplice"; further lines begin with "cusplice" */
    const char *summary;  /* one line */
    const char *help;     /* what --help prints below the synopsis */
    int (*run)(const struct cli_verb *self, int argc,
               char **argv); /* argv[0] is the verb; returns the exit status */
    struct cli_page page;
};

/* clang-format off */
extern const struct cli_verb
    cli_verb_bench,
    cli_verb_cache,
    cli_verb_calibrate,
    cli_verb_config,
    cli_verb_demo,
    cli_verb_diff,
    cli_verb_doctor,
    cli_verb_dump,
    cli_verb_export,
    cli_verb_import,
    cli_verb_info,
    cli_verb_record,
    cli_verb_repair,
    cli_verb_replay,
    cli_verb_report,
    cli_verb_rules,
    cli_verb_run,
    cli_verb_top,
    cli_verb_trim,
    cli_verb_verify,
    cli_verb_whatif;
/* clang-format on */

/* `cusplice: ` and a line, on stderr. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Told on stderr; context is an int that counts. */
void cli_problem(void *context, const struct cus_problem *problem);

/* The text of config/cusplice.conf, on stdout (template.c). */
void cli_print_template(void);

#endif
