/*
 * The library's clock: nanoseconds since some moment before the process began. Never goes back. The
 * vDSO serves it in about 20 ns.
 */
#ifndef CUSPLICE_BASE_CLOCK_H
#define CUSPLICE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A clock that a tool moves, in place of the kernel's (stream/virtual.h). Never on in a process
 * that the library is preloaded into. */
struct cus_virtual_clock {
    bool on;     /* set before the engine starts */
    uint64_t ns; /* atomic where several threads move it: now; never goes back */
    /* What the kernel would say of a thread, as in base/thread.h. NULL: nothing, and so no thread
     * has ever paused. */
    uint64_t (*ran_ns)(pid_t tid);
    bool (*runnable)(pid_t tid);
    uint64_t unseen_ns; /* what building took in the call that is made now, in which `ns` stands */
};
extern struct cus_virtual_clock cus_virtual;

#ifdef __cplusplus
}
#endif

/* The kernel's clock, whatever a tool does: for waits of base/, which must end. */
static inline uint64_t cus_clock_real_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock, so errno stays as it is */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t cus_clock_ns(void) {
    if (__builtin_expect(cus_virtual.on, 0))
        return __atomic_load_n(&cus_virtual.ns, __ATOMIC_RELAXED);
    return cus_clock_real_ns();
}

/* The time that building graphs took since the last call and that the clock did not show. Not 0
 * only in tools that set the clock. */
static inline uint64_t cus_clock_unseen_ns(void) {
    uint64_t ns = cus_virtual.unseen_ns;
    if (__builtin_expect(cus_virtual.on, 0))
        cus_virtual.unseen_ns = 0;
    return ns;
}

#endif
