/*
 * What a thread of the program remembers: the streams it looked up lately, and the stream on which
 * it has ops deferred. Each thread reads and writes only its own, at depth 1. At depth 1 no signal
 * handler touches these fields.
 */
#ifndef CUSPLICE_STREAM_THREAD_H
#define CUSPLICE_STREAM_THREAD_H

#include <stddef.h>

#include "shim/base/mem.h"
#include "shim/stream/engine.h"

struct cus_context;
struct cus_engine;

/* The last build that was waited for, and how often (priority.c). */
struct cus_build_waits {
    uint32_t build, n;
};

/* An earlier look-up, for threads that change between streams. */
struct cus_known_stream {
    CUstream handle;
    struct cus_engine *engine; /* NULL: the slot is free */
    CUcontext context;
    uint32_t epoch, abi;
};
enum { CUS_KNOWN_STREAMS = 32, CUS_KNOWN_PLACES = 4 };

struct cus_thread {
    /* The hot paths read one cache line only.
     *
     * The stream on which this thread has ops deferred, if it is also the last one looked up: the
     * handle for calls of each enum cus_abi. Otherwise CUS_NO_STREAM. */
    CUstream cached_stream[2];
    /* The last look-up, valid while `epoch` is the registry's epoch. */
    struct cus_engine *cached_engine;
    CUcontext context;
    struct cus_stream_ref ref;
    /* The stream of the thread's last op: event and context synchronise end the step of this
     * one. */
    struct cus_engine *last;
    uint32_t epoch;
    uint8_t depth; /* the thread is inside a hook (hook/guard.h) */
    bool pends;    /* `pending` is not NULL */
    bool none;     /* nothing is deferred on that stream: `cached_engine` is NULL and stays NULL */
    bool away; /* after its op on `last`, the thread issued an op on a stream without an engine */

    /* The only stream on which this thread may have ops deferred (HAZARDS B6). */
    struct cus_engine *pending;
    struct cus_engine *elsewhere;     /* if `none`: the stream's engine of another context */
    struct cus_context *last_context; /* last context looked up; contexts are never freed */
    uint32_t issued;                  /* eager launches; one of CUS_SAMPLE_EVERY is timed */
    struct cus_build_waits build_waits;
    bool in_traced_call;  /* the thread is inside a call that the trace records as a whole */
    uint8_t scheduled;    /* steps until the kernel is asked again for the thread's scheduling */
    uint8_t urgency;      /* cus_thread_urgency of the last question */
    uint8_t found_urgent; /* `found` of realtime.c at that time */
    bool barred;          /* the watchdog may not run above this thread */
    /* The untracked stream on which this thread began work last (room.c). */
    CUstream untracked;
    uint32_t number; /* of threads with work on per-thread streams; 0: none yet */
    bool own_before; /* it began work on its own stream before there was an engine (room.c) */
    CUcontext untracked_context;
    uint32_t untracked_epoch;
    pid_t tid;          /* 0: not asked for yet */
    uint32_t suspended; /* suspends of the program without a resume so far */
    /* A stream is in one of CUS_KNOWN_PLACES slots, beginning with its handle's slot. */
    struct cus_known_stream known[CUS_KNOWN_STREAMS];
} __attribute__((aligned(CUS_LINE)));
_Static_assert(offsetof(struct cus_thread, pending) == CUS_LINE, "in one line");

/* No stream has this handle. */
extern const char cus_no_stream;
#define CUS_NO_STREAM ((CUstream)(uintptr_t)&cus_no_stream)
/* Updates `cached_stream` after a change of `pending`, `cached_engine` or `ref`. */
static inline void cus_thread_cache_stream(struct cus_thread *thread) {
    bool on = thread->pending && thread->pending == thread->cached_engine;
    for (unsigned abi = 0; abi < sizeof thread->cached_stream / sizeof *thread->cached_stream;
         abi++)
        thread->cached_stream[abi] =
            on && thread->ref.abi == abi ? thread->ref.handle : CUS_NO_STREAM;
}
static inline void cus_thread_pends(struct cus_thread *thread, struct cus_engine *engine) {
    thread->pending = engine;
    thread->pends = engine != NULL;
    cus_thread_cache_stream(thread);
}

extern __thread struct cus_thread cus_thread_self __attribute__((tls_model("initial-exec")));

#endif
