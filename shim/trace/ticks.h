/*
 * The recorder's clock. If the kernel keeps time by the processor's time stamp counter, a moment is
 * the counter's value; reading it costs a third of a look at the clock. The writer thread turns
 * moments into nanoseconds of CLOCK_MONOTONIC. Otherwise a moment is nanoseconds from the start.
 * The writer notes pairs of both clocks, each later than the last moment that it turns, so every
 * moment lies between two pairs. The result never goes back, and is as exact as a pair: within the
 * time of one look at the clock.
 */
#ifndef CUSPLICE_TRACE_TICKS_H
#define CUSPLICE_TRACE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/clock.h"

/* Moments are ticks. Written before anything is recorded, and never again. */
extern bool cus_ticks_on;

/* A length of time has 32 bits. In ticks it is counted in units of 8, so that it reaches further
 * than the four seconds of the file's fields. */
enum { CUS_TICKS_UNIT = 3 };
extern uint8_t cus_ticks_unit; /* CUS_TICKS_UNIT, or 0; written as cus_ticks_on is */

/* The present moment. Any thread. */
static inline __attribute__((always_inline)) uint64_t cus_ticks_now(void) {
#ifdef __x86_64__
    if (__builtin_expect(cus_ticks_on, 1))
        return __builtin_ia32_rdtsc();
#endif
    return cus_clock_ns();
}

/* The length of time since a moment, in the recorder's unit. */
static inline __attribute__((always_inline)) uint32_t cus_ticks_since(uint64_t began) {
    return (uint32_t)((cus_ticks_now() - began) >> cus_ticks_unit);
}

/* One moment by both clocks. */
struct cus_ticks_pair {
    uint64_t ticks, ns;
    uint64_t slope; /* from the pair before to this one: ns per tick, in parts of 2^32 */
};

/* The pairs so far, in the order of time. Old ones lie further apart. */
enum { CUS_TICKS_PAIRS = 1024 };
struct cus_ticks {
    uint32_t n;
    struct cus_ticks_pair pairs[CUS_TICKS_PAIRS];
};

/* The kernel's file that names its clock. Tests have another one. */
extern const char *cus_ticks_source;
/* True: the counter has one speed and is the same on all processors, and the kernel uses it as
 * its clock. */
bool cus_ticks_usable(void);
/* From now on moments are ticks, or nanoseconds. */
void cus_ticks_use(bool ticks);
/* Adds a pair of now. Only one thread calls this function and those below. */
void cus_ticks_pair(struct cus_ticks *ticks);
/* Adds a pair that was taken elsewhere. */
void cus_ticks_add(struct cus_ticks *ticks, uint64_t at, uint64_t ns);
/* The nanoseconds of a moment. A moment after the last pair has that pair's. */
uint64_t cus_ticks_ns(const struct cus_ticks *ticks, uint64_t moment);
/* The nanoseconds of a length of time (cus_ticks_since) that began at `began`, at most 2^32 - 1. */
uint32_t cus_ticks_length(const struct cus_ticks *ticks, uint64_t began, uint32_t length);

#endif
