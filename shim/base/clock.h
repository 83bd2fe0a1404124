/*
 * The library's clock: nanoseconds since some moment before the process began. Never goes back. The
 * vDSO serves it in about 20 ns.
 */
#ifndef CUSPLICE_BASE_CLOCK_H
#define CUSPLICE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef CUS_VIRTUAL_CLOCK

#define CUS_CLOCK_IS_VIRTUAL true

/* For tools that replay a recorded program (stream/virtual.h): the tool sets this clock. */
extern uint64_t cus_virtual_ns;

static inline uint64_t cus_clock_ns(void) {
    return __atomic_load_n(&cus_virtual_ns, __ATOMIC_RELAXED);
}

extern uint64_t cus_virtual_unseen_ns;

static inline uint64_t cus_clock_unseen_ns(void) {
    uint64_t ns = cus_virtual_unseen_ns;
    cus_virtual_unseen_ns = 0;
    return ns;
}

#else

#define CUS_CLOCK_IS_VIRTUAL false

static inline uint64_t cus_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock, so it cannot change
                                           * errno */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time that building graphs took since the last call and that the clock did not show. Not 0
 * only in tools that set the clock. */
static inline uint64_t cus_clock_unseen_ns(void) {
    return 0;
}

#endif

#endif
