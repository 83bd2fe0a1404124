/*
 * cusplice.h: what a program may tell cusplice and ask it. All of it is optional.
 *
 * Include this header; link nothing. The functions are weak: if libcusplice.so is not preloaded,
 * they are absent. The calls below then do nothing and cost one comparison. (A program that was
 * compiled with -fno-pic must be linked with -Wl,-z,dynamic-undefined-weak. Without that option its
 * calls do nothing.) The wheel's Python module `cusplice` has the same calls. Without the wheel:
 *
 *     import ctypes
 *     lib = ctypes.CDLL(None)
 *     if hasattr(lib, "cusplice_mark_step_"):
 *         lib.cusplice_mark_step_()
 *
 * Any thread may call at any time, also inside CUDA callbacks and before CUDA has started. No
 * function waits for a GPU, changes errno or the current context, or makes a program fail. Each
 * call concerns only the calling thread's own work.
 */
#ifndef CUSPLICE_H
#define CUSPLICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Later versions only add functions, and counters at the end. */
#define CUSPLICE_INTERFACE 1

/* Counts since the process began, over all streams. They count ops unless a comment says
 * otherwise. An op is a kernel launch, a memset, a copy, a record of an event, or a wait of a
 * stream for one. launches + memsets + copies + records + waits = in_graphs + eager, except for ops
 * that are not issued yet. */
struct cusplice_counters {
    uint64_t launches, memsets, copies;
    uint64_t in_graphs;      /* issued by the launch of a graph */
    uint64_t eager;          /* issued one by one */
    uint64_t graph_launches; /* graphs launched */
    uint64_t steps;          /* steps ended: by a synchronisation, a mark, or a repetition of a
                              * loop */
    uint64_t patched_nodes;  /* nodes whose params were changed before a launch */
    uint64_t graph_bytes;    /* device memory that graphs hold, an estimate in bytes */
    uint64_t build_us;       /* microseconds spent on building graphs */
    uint64_t records;        /* of events; those that could be deferred */
    uint64_t waits;          /* for events; those that fork or join a stream within a graph */
};

/* The library's own functions. Programs call the functions below instead. */
#ifndef CUSPLICE_WEAK
#define CUSPLICE_WEAK __attribute__((weak))
#endif
CUSPLICE_WEAK int cusplice_interface_(void);
CUSPLICE_WEAK void cusplice_mark_step_(void);
CUSPLICE_WEAK void cusplice_force_break_(void);
CUSPLICE_WEAK void cusplice_suspend_(void);
CUSPLICE_WEAK void cusplice_resume_(void);
CUSPLICE_WEAK size_t cusplice_read_counters_(struct cusplice_counters *counters, size_t bytes);

#ifndef CUSPLICE_INSIDE
/* The version of the interface that the preloaded library has: CUSPLICE_INTERFACE or a later
 * one. 0: no library is preloaded. The version does not say whether graphs are used: a library
 * with CUSPLICE=off answers too. */
static inline int cusplice_interface(void) {
    return cusplice_interface_ ? cusplice_interface_() : 0;
}

/* Ends a step on the stream on which the calling thread worked last. The thread's deferred ops
 * there are issued, and the next op begins a step. For programs whose steps do not end in a
 * synchronisation. Waits for nothing. */
static inline void cusplice_mark_step(void) {
    if (cusplice_mark_step_)
        cusplice_mark_step_();
}

/* Issues the ops that the calling thread has deferred. The next op begins a new graph. For a
 * place at which something outside CUDA is about to look at the GPU's work. */
static inline void cusplice_force_break(void) {
    if (cusplice_force_break_)
        cusplice_force_break_();
}

/* Suspends cusplice for the calling thread: its ops go straight to the driver, after those
 * deferred before. The library learns nothing from these ops. The thread resumes when it has
 * called resume as often as suspend. Any further resume is ignored. */
static inline void cusplice_suspend(void) {
    if (cusplice_suspend_)
        cusplice_suspend_();
}
static inline void cusplice_resume(void) {
    if (cusplice_resume_)
        cusplice_resume_();
}

/* Fills in the first `bytes` bytes of *counters. `bytes` is sizeof *counters in the caller's
 * version of this header. Returns how many of them the library knows; the rest become 0. Returns
 * 0 if no library is preloaded or `counters` is NULL. Takes some microseconds. */
static inline size_t cusplice_read_counters(struct cusplice_counters *counters, size_t bytes) {
    return cusplice_read_counters_ ? cusplice_read_counters_(counters, bytes) : 0;
}

#endif /* CUSPLICE_INSIDE */

#ifdef __cplusplus
}
#endif

#endif
