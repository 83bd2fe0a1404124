/*
 * A plot of times against graph sizes, as SVG. bench_show.c calls it. The same numbers and texts
 * give the same bytes. It never reads a file, and the SVG refers to none.
 */
#ifndef CUSPLICE_TOOLS_BENCH_PLOT_H
#define CUSPLICE_TOOLS_BENCH_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longer times are drawn as that one, and what is no time as 0. */
#define PLOT_MOST_NS 1e18

struct plot_point {
    uint32_t x; /* from 1 on */
    double ns, noise;
    double scale; /* drawn are the times by this; 0: as they are */
};

struct plot_series {
    const char *name;
    const struct plot_point *points; /* by x; of a level: one, whose x is not looked at */
    unsigned n;
    bool level;    /* it has no x: a line from side to side */
    bool baseline; /* drawn as what the others are compared with */
};

struct plot {
    const char *title, *subtitle;
    const struct plot_series *series;
    unsigned n;
};

/* Texts: what is not printable ASCII becomes '?'. Series without points are left out. */
void plot_svg(const struct plot *plot, FILE *to);

#ifdef __cplusplus
}
#endif

#endif
