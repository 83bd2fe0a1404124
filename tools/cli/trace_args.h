/*
 * Options that the verbs about traces share, and the opening of a trace. Each verb says which
 * options it takes. Mistakes are told on stderr. It never writes to a trace.
 */
#ifndef CUSPLICE_TOOLS_CLI_TRACE_ARGS_H
#define CUSPLICE_TOOLS_CLI_TRACE_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/cli/options.h"
#include "tools/cli/redirect.h"
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
    TRACE_WIDE = 1 << 16,
    TRACE_LINES = 1 << 17, /* -o as TRACE_OUT, of what else is printed */
    TRACE_TABLE = TRACE_FORMAT | TRACE_SORT | TRACE_FIELDS | TRACE_TOP | TRACE_WIDE | TRACE_LINES,
};

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
    bool json, dot, pack, bare, wide;
    bool steps, step;  /* --steps or --step was given; --step was */
    uint32_t from, to; /* of --steps; both are --step */
    uint32_t stream;
    struct cli_redirect out; /* and whether --force was given */
    const char *html;
};

/* Reads these options and the budget's. -1: go on; else the exit status. `needed`: what each word
 * is ("TRACE"), as many as there have to be, then NULL; NULL: the verb judges them. */
int trace_args_read(const struct cli_verb *self, struct trace_args *args, int argc, char **argv,
                    unsigned allowed, const char *const *needed);

/* Opens a trace, or says why not: the exit status is 1. */
bool trace_args_open(const struct trace_args *args, const char *path, struct look *look);

/* What a verb prints goes to -o between these two. `from`: the traces, then NULL. The first: false,
 * and the exit status is 1. The second: all is printed; 0, or 1 where it could not be written,
 * which is told (not for a pipe that was closed). */
bool trace_args_begin(struct trace_args *args, const char *const *from);
int trace_args_end(struct trace_args *args);

/* Checks a filled table against the options and prints it; the exit status. `from`: as above. */
int trace_args_print(struct trace_args *args, struct table *table, const char *const *from);

#endif
