/*
 * cusplice.h: what a program may tell cusplice, and ask of it. All of it is optional.
 *
 * Include this header; link nothing. The functions are weak: in a process under which
 * libcusplice.so is not preloaded they are absent, and the calls below do nothing and cost a
 * compare. (A program compiled with -fno-pic must be linked with -Wl,-z,dynamic-undefined-weak;
 * otherwise its calls stay empty.) From Python:
 *
 *     import ctypes
 *     lib = ctypes.CDLL(None)
 *     if hasattr(lib, "cusplice_mark_step_"):
 *         lib.cusplice_mark_step_()
 *
 * Any thread, at any time, inside CUDA callbacks and with CUDA not yet started too: nothing here
 * waits for a GPU, changes errno or the current context, or fails a program. Each thread speaks of
 * its own work alone.
 */
#ifndef CUSPLICE_H
#define CUSPLICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: 1. Functions are only ever added, counters only at the end. */
#define CUSPLICE_INTERFACE 1

/* Since the process began, over all streams; counts of ops but where it says otherwise. An op is a
 * kernel launch, a memset or a copy on a stream. launches + memsets + copies = in_graphs + eager,
 * but for ops that are on their way. */
struct cusplice_counters {
    uint64_t launches, memsets, copies;
    uint64_t in_graphs;      /* issued as nodes of a graph */
    uint64_t eager;          /* issued one by one */
    uint64_t graph_launches; /* graphs launched */
    uint64_t steps;          /* steps ended: by a synchronisation, a mark, or a turn of a loop */
    uint64_t patched_nodes;  /* nodes whose params were changed before a launch */
    uint64_t graph_bytes;    /* device memory that graphs hold, an estimate, in bytes */
    uint64_t build_us;       /* microseconds spent on building graphs */
};

/* The functions of the library; use those below. */
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
/* The interface that the preloaded library speaks, CUSPLICE_INTERFACE or a later one; 0 where none
 * is preloaded. It says nothing of whether graphs are used: CUSPLICE=off has an interface too. */
static inline int cusplice_interface(void) {
    return cusplice_interface_ ? cusplice_interface_() : 0;
}

/* A step ends here, on the stream that the calling thread worked on last: what it defers there
 * is issued, and the next op is the first of a step again. For programs whose steps do not end in a
 * synchronisation. Nothing is waited for. */
static inline void cusplice_mark_step(void) {
    if (cusplice_mark_step_)
        cusplice_mark_step_();
}

/* What the calling thread defers is issued now, and the next op begins a new graph. For a place
 * where something outside CUDA is about to look at the GPU's work. */
static inline void cusplice_force_break(void) {
    if (cusplice_force_break_)
        cusplice_force_break_();
}

/* Until it has called resume as often as suspend, every op of the calling thread goes straight to
 * the driver, behind what was deferred before. Such ops are not learned from. A resume too many is
 * ignored. */
static inline void cusplice_suspend(void) {
    if (cusplice_suspend_)
        cusplice_suspend_();
}
static inline void cusplice_resume(void) {
    if (cusplice_resume_)
        cusplice_resume_();
}

/* Fills in the first `bytes` bytes of *counters (sizeof *counters, as the caller was compiled) and
 * returns how many of them the library knows; the rest is 0. 0: not preloaded, or `counters` is
 * NULL. Takes some microseconds. */
static inline size_t cusplice_read_counters(struct cusplice_counters *counters, size_t bytes) {
    return cusplice_read_counters_ ? cusplice_read_counters_(counters, bytes) : 0;
}

#endif /* CUSPLICE_INSIDE */

#ifdef __cplusplus
}
#endif

#endif
