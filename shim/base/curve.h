/*
 * The learning curve of a program: how long its first steps take, and from which step on it has
 * its gain. The stats file, `cusplice bench`, `replay` and `whatif` all mean this. Pure functions.
 *
 * `ns`: the time of each of the first `n` steps, in order, beginning with the first one.
 */
#ifndef CUSPLICE_BASE_CURVE_H
#define CUSPLICE_BASE_CURVE_H

#include <stdint.h>

enum {
    CUS_CURVE_FIRST = 10, /* the steps that cus_curve_first adds up */
    CUS_CURVE_MAX = 256,  /* steps that are worth keeping */
    /* A gain of less than one part in so many of the plain step is none. */
    CUS_CURVE_NO_GAIN = 50,
};

/* The time of the first CUS_CURVE_FIRST steps, or of all if there are fewer. */
static inline uint64_t cus_curve_first(const uint64_t *ns, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n && i < CUS_CURVE_FIRST; i++)
        sum += ns[i];
    return sum;
}

static inline uint64_t cus_curve_middle(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* The number, from 1 on, of the first step that has nine tenths of the final gain: it and the
 * median of it and the two steps behind it save nine tenths of what a late step saves of a plain
 * one. One fast step among slow ones, or a slow one (a pause) among fast ones, thus decides
 * nothing. 0: there is no gain, or none of these steps has it. */
static inline uint32_t cus_curve_reached(const uint64_t *ns, uint32_t n, uint64_t plain_ns,
                                         uint64_t late_ns) {
    if (late_ns + plain_ns / CUS_CURVE_NO_GAIN >= plain_ns)
        return 0;
    uint64_t most = late_ns + (plain_ns - late_ns) / 10;
    for (uint32_t i = 0; i + 2 < n; i++)
        if (ns[i] <= most && cus_curve_middle(ns[i], ns[i + 1], ns[i + 2]) <= most)
            return i + 1;
    return 0;
}

#endif
