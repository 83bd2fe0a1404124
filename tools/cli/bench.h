/*
 * What the three files of `cusplice bench` share: results, outputs, the recording, and the tables.
 * verb_bench.c calls the functions, on one thread. No other verb includes it.
 */
#ifndef CUSPLICE_TOOLS_CLI_BENCH_H
#define CUSPLICE_TOOLS_CLI_BENCH_H

#include <stdbool.h>

#include "tools/bench/grid.h"
#include "tools/trace/table.h"

enum { BENCH_OUTPUTS = 8 };

struct bench_output {
    const char *path; /* NULL: stdout */
    enum table_format format;
};

/* What came of it. */
struct bench_found {
    const struct bench_grid *grid;
    const struct bench_lists *lists;
    const struct replay_facts *facts;
    const struct cst_trace *trace;
    const char *command; /* the line that was typed */
    const char *from;    /* the trace's file, or how it was recorded */
    unsigned rounds, first;
    bool wide; /* a table is no narrower for the terminal */
    enum replay_pace pace;
};

/* ---- bench_record.c: a trace of its own ---- */

/* Records the scenario of that name, or (NULL) the program, into a folder that is removed at the
 * end, however this process ends but by SIGKILL. `steps`: of record, or NULL. 0, with the path of
 * the trace; an exit status, which was explained. */
int cli_bench_record(const char *scenario, char **program, const char *steps, char *out,
                     size_t bytes);
void cli_bench_forget(void);

/* ---- bench_show.c ---- */

/* Could this file be written? `of`: the trace or program that it is made from, or NULL. False: no,
 * which was said. */
bool cli_bench_writable(const char *option, const char *path, bool force, const char *of);
/* Writes the tables, and the plot where `svg` is not NULL. False: not all, which was said. */
bool cli_bench_show(const struct bench_found *found, const struct bench_output *outputs, unsigned n,
                    const char *svg, bool force);

#endif
