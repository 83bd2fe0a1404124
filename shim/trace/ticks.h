/*
 * The clock of the recorder. Where the kernel itself keeps time by the processor's time stamp
 * counter, a moment is what that counter says, which costs a third of a look at the clock; what is
 * recorded is turned into nanoseconds of CLOCK_MONOTONIC by the writer thread, behind the program's
 * back. Elsewhere a moment is nanoseconds from the beginning.
 *
 * The writer notes pairs of both clocks now and then, always one behind the last moment that it is
 * going to turn: so that all moments lie between two pairs, and nothing is foretold. What comes out
 * never goes back where the moments do not, and is as near to the clock as a pair is: within the
 * time of one look at it.
 */
#ifndef CUSPLICE_TRACE_TICKS_H
#define CUSPLICE_TRACE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/clock.h"

/* Moments are ticks. Written before anything is recorded, and never again. */
extern bool cus_ticks_on;

/* A length of time has 32 bits: in ticks it is counted in units of 8, so that it reaches further
 * than the four seconds of the file's fields. */
enum { CUS_TICKS_UNIT = 3 };
extern uint8_t cus_ticks_unit; /* that, or 0; as cus_ticks_on */

/* Any thread. */
static inline __attribute__((always_inline)) uint64_t cus_ticks_now(void) {
#ifdef __x86_64__
    if (__builtin_expect(cus_ticks_on, 1))
        return __builtin_ia32_rdtsc();
#endif
    return cus_clock_ns();
}

/* The length of time since a moment, in the unit of the recorder. */
static inline __attribute__((always_inline)) uint32_t cus_ticks_since(uint64_t began) {
    return (uint32_t)((cus_ticks_now() - began) >> cus_ticks_unit);
}

/* One moment, by both clocks. */
struct cus_ticks_pair {
    uint64_t ticks, ns;
    uint64_t slope; /* from the pair before to this one: ns per tick, in parts of 2^32 */
};

/* Pairs so far, in the order of time; old ones lie further apart. */
enum { CUS_TICKS_PAIRS = 1024 };
struct cus_ticks {
    uint32_t n;
    struct cus_ticks_pair pairs[CUS_TICKS_PAIRS];
};

/* The kernel's file that names its clock. Tests have another. */
extern const char *cus_ticks_source;
/* Does the counter run evenly, on all processors, and does the kernel trust it? */
bool cus_ticks_usable(void);
/* Moments are ticks from now on, or nanoseconds. */
void cus_ticks_use(bool ticks);
/* Takes the pair of now. One thread alone calls this and what follows. */
void cus_ticks_pair(struct cus_ticks *ticks);
/* The same of a pair that was taken elsewhere. */
void cus_ticks_add(struct cus_ticks *ticks, uint64_t at, uint64_t ns);
/* The nanoseconds of a moment. One that is behind the last pair is that pair's. */
uint64_t cus_ticks_ns(const struct cus_ticks *ticks, uint64_t moment);
/* The nanoseconds of a length of time (cus_ticks_since) that began then; at most what 32 bits hold.
 */
uint32_t cus_ticks_length(const struct cus_ticks *ticks, uint64_t began, uint32_t length);

#endif
