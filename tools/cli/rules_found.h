/*
 * What a trace says of its kernels that speaks for a rule, and the file that is made of it.
 * verb_rules.c calls it. It never plays the trace.
 */
#ifndef CUSPLICE_TOOLS_CLI_RULES_FOUND_H
#define CUSPLICE_TOOLS_CLI_RULES_FOUND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/trace/look.h"

enum { RULES_KERNELS = 32 };

struct rules_kernel {
    const char *name, *base; /* mangled, and without namespaces and arguments */
    const char *lib;         /* the file with its code; "": not known */
    uint64_t calls, gpu_ns;
    uint64_t reshaped; /* launches with another shape than the launch before */
    double fast;       /* ns: the fastest tenth of the launches of one shape are below that */
    double slowest;    /* ns: the slowest tenth are above that; 0: not known */
    char waits[200];   /* why it seems to wait for something; "": it does not */
    bool played;       /* what a rule would cost is known */
    double more_us;    /* a step */
};

struct rules_found {
    struct rules_kernel *kernels; /* most time on the GPU first, else most launches */
    unsigned n, all;              /* looked at; kernels of the trace */
    uint64_t gpu_ns;              /* of all kernels; 0: not known */
    bool presets;                 /* that know kernels that wait are installed */
};

/* What playing the trace says of it. */
struct rules_played {
    double baseline; /* us of the host in a step */
    double share;    /* of ops in graphs, in per cent */
    bool guessed;    /* the options of the recording are not known */
};

/* False without memory. */
bool rules_find(const struct look *look, struct rules_found *found);
void rules_free(struct rules_found *found);
/* May a configuration file have a pattern that stands for this mangled name alone? */
bool rules_may_name(const char *mangled);
/* The text of a configuration file (rules_show.c). */
void rules_show(const struct look *look, const struct rules_found *found,
                const struct rules_played *played, FILE *to);

#endif
