/*
 * Options that the verbs about traces share, and the opening of a trace. Each verb says which
 * options it takes. Mistakes are told on stderr. It never writes to a trace.
 */
#ifndef CUSPLICE_TOOLS_CLI_TRACE_ARGS_H
#define CUSPLICE_TOOLS_CLI_TRACE_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/cli/options.h"
#include "tools/trace/look.h"
#include "tools/trace/table.h"

/* Which options a verb takes. */
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
    TRACE_BARE = 1 << 15,
    TRACE_ONE_MORE = 1 << 16, /* no option: one word more than is needed may be there */
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

/* --max-memory and --max-seconds, for the tables of such verbs. */
extern const struct cli_option cli_budget_options[];

/* Reads `own` and the budget's options, and one trace. -1: go on; else the exit status. */
int cli_one_trace(const struct cli_verb *self, int argc, char **argv, const struct cli_option *own,
                  const char **trace);

struct trace_args {
    char **words; /* what is no option, as many as were needed */
    int n_words;
    struct table_view view;
    enum names_form names;
    enum { TRACE_BY_KERNELS, TRACE_BY_STEPS } by;
    bool json, dot, pack, bare, force;
    bool steps, step;  /* --steps or --step was given; --step was */
    uint32_t from, to; /* of --steps; both are --step */
    uint32_t stream;
    const char *out, *html;
};

/* Reads these options and the budget's. -1: go on; else the exit status. `needed`: what each word
 * is ("TRACE"), as many as there have to be, then NULL. */
int trace_args_read(const struct cli_verb *self, struct trace_args *args, int argc, char **argv,
                    unsigned allowed, const char *const *needed);

/* Opens a trace, or says why not: the exit status is 1. */
bool trace_args_open(const struct trace_args *args, const char *path, struct look *look);

/* stdout is complete; 0, or 1 where it could not be written, which is told (not for a pipe that was
 * closed). */
int trace_args_end(void);

/* Checks a filled table against the options and prints it; the exit status. */
int trace_args_print(const struct trace_args *args, struct table *table);

#endif
