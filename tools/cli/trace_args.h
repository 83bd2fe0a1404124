/*
 * Options that verbs about traces have in common, read by one table; each verb says which of them
 * it takes. Errors are told on stderr.
 */
#ifndef CUSPLICE_TOOLS_CLI_TRACE_ARGS_H
#define CUSPLICE_TOOLS_CLI_TRACE_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/trace/look.h"
#include "tools/trace/table.h"

enum trace_option {
    TRACE_FORMAT = 1 << 0,
    TRACE_SORT = 1 << 1,
    TRACE_FIELDS = 1 << 2,
    TRACE_NAMES = 1 << 3,
    TRACE_TOP = 1 << 4,
    TRACE_JSON = 1 << 5,
    TRACE_STEPS = 1 << 6,
    TRACE_STREAM = 1 << 7,
    TRACE_DOT = 1 << 8,
    TRACE_STEP = 1 << 9,
    TRACE_OUT = 1 << 10,
    TRACE_PACK = 1 << 11,
    TRACE_BY = 1 << 12,
    TRACE_HTML = 1 << 13,
    TRACE_FORCE = 1 << 14,
    TRACE_MAX_MEMORY = 1 << 15, /* these two whatever a verb allows */
    TRACE_MAX_SECONDS = 1 << 16,
    TRACE_BARE = 1 << 17,
};

/* In the help of each verb that reads a trace or a database. */
#define CLI_BUDGET_HELP                                                                            \
    "      --max-memory MIB  read and unpack with so much memory at most; 0: no bound. Without "   \
    "it "                                                                                          \
    "256 MiB\n"                                                                                    \
    "                        and 16 times what is read; a packed trace may unpack to 64 MiB and "  \
    "100\n"                                                                                        \
    "                        times its length\n"                                                   \
    "      --max-seconds S   with so much processor time; 0: no bound. Without it 30 s and 1 s "   \
    "for "                                                                                         \
    "each\n"                                                                                       \
    "                        MiB\n"

enum { TRACE_WORDS = 3 };

struct trace_args {
    unsigned given;                 /* enum trace_option */
    const char *words[TRACE_WORDS]; /* what is no option */
    unsigned n_words;
    struct table_view view;
    enum names_form names;
    uint32_t from, to; /* of --steps; both are --step */
    uint32_t stream;
    const char *out, *by, *html;
};

/* False where something is wrong, which was told: the exit status is 2. `needed`: what each word is
 * ("TRACE"), as many as there have to be, then NULL. */
bool trace_args_read(struct trace_args *args, int argc, char **argv, unsigned allowed,
                     const char *const *needed);

/* --max-memory and --max-seconds of verbs that read their options by themselves: 1: taken, 0:
 * another option, -1: wrong, which was said. *at moves to the last word taken. */
int cli_budget_option(char **argv, int *at);

/* Opens a trace, or says why not: the exit status is 1. */
bool trace_args_open(const struct trace_args *args, const char *path, struct look *look);

/* A pattern of --eager behind those that are there, with ';' between. False, having said why. */
bool cli_add_pattern(char *patterns, size_t bytes, const char *pattern);

/* stdout is complete; 0, or 1 where it could not be written, which is told (not for a pipe that was
 * closed). */
int trace_args_end(void);

/* Checks a filled table against the options and prints it; the exit status. */
int trace_args_print(const struct trace_args *args, struct table *table);

#endif
