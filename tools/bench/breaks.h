/*
 * Break lists: the kernels that a cell of `cusplice bench` keeps outside graphs. verb_bench.c
 * makes them from the options and a trace; grid.c reads them. One thread. Nothing here prints or
 * starts a process.
 */
#ifndef CUSPLICE_TOOLS_BENCH_BREAKS_H
#define CUSPLICE_TOOLS_BENCH_BREAKS_H

#include <stdbool.h>

#include "tools/whatif/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_LISTS = 64, BENCH_LABEL = 272 };

/* A kernel, or the memsets or copies of one pattern, that a list names. */
struct bench_break {
    const char *name; /* mangled, or the pattern */
    const char *base;
    uint64_t calls; /* in the trace */
    bool launches;  /* they are launches */
};

struct bench_breaks {
    char *label;
    char *eager; /* patterns with ';' between; NULL: none */
    char *texts; /* that names in `kernels` are in */
    struct bench_break *kernels;
    uint32_t n;
    uint64_t calls; /* launches of all of them */
};

struct bench_lists {
    const struct cst_trace *trace;
    struct whatif_kernel *kernels; /* of the trace, most often launched first */
    uint32_t n_kernels;
    uint64_t launches; /* of all kernels */
    struct bench_breaks lists[BENCH_LISTS];
    unsigned n;
};

/* False: not enough memory. */
bool bench_lists_init(struct bench_lists *lists, const struct cst_trace *trace);
void bench_lists_free(struct bench_lists *lists);

/* Appends what `text` stands for: `none`; patterns with ';' between; `every:N`, kernels whose
 * launches make up nearest to one in N of all; `sweep`, a list for each of the `top` kernels that
 * are launched most. False with a sentence in `error`. */
bool bench_lists_add(struct bench_lists *lists, const char *text, unsigned top, char *error,
                     size_t bytes);
/* Kernels that no list has in graphs: patterns with ';' between. False: not enough memory. */
bool bench_lists_also(struct bench_lists *lists, const char *eager);
/* Is this the form of a list? What it names is looked for in a trace later. */
bool bench_lists_form(const char *text, char *error, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
