/*
 * What a thread of the program remembers: the streams that it looked up lately, and the one on
 * which it has ops deferred.
 *
 * Each thread's own; read and written at depth 1, by no other thread, and by no signal handler
 * then.
 */
#ifndef CUSPLICE_STREAM_THREAD_H
#define CUSPLICE_STREAM_THREAD_H

#include <stddef.h>

#include "shim/base/mem.h"
#include "shim/stream/engine.h"

struct cus_context;
struct cus_engine;

/* The build that was waited for last, and how often (building.c). */
struct cus_build_waits {
    uint32_t build, n;
};

/* A look-up before the last one: for threads that go from stream to stream. */
struct cus_known_stream {
    CUstream handle;
    struct cus_engine *engine; /* NULL: there is none in this place */
    CUcontext context;
    uint32_t epoch, abi;
};
enum { CUS_KNOWN_STREAMS = 32, CUS_KNOWN_PLACES = 4 };

struct cus_thread {
    /* What the hot paths look at is in one line.
     *
     * The stream on which this thread has ops deferred and which it looked up last, by the name
     * that it used then: for calls of each enum cus_abi. CUS_NO_STREAM where there is none. */
    CUstream cached_stream[2];
    /* The last look-up, valid while `epoch` is the registry's. */
    struct cus_engine *cached_engine;
    CUcontext context;
    struct cus_stream_ref ref;
    struct cus_engine
        *last; /* where this thread worked last: what event and context synchronise end */
    uint32_t epoch;
    uint8_t depth; /* it is inside of a hook (hook/guard.h) */
    bool pends;    /* there is a `pending` */
    bool none;     /* nothing is deferred there: `found` is NULL and stays so */
    bool away;     /* behind `last` it issued an op on a stream that has no engine */

    struct cus_engine
        *pending; /* the one stream on which this thread may have ops deferred (HAZARDS B6) */
    struct cus_engine *elsewhere;     /* where `none`: this stream's engine in another context */
    struct cus_context *last_context; /* the context looked up last: entries live for ever */
    uint32_t issued; /* launches issued by themselves: one of CUS_SAMPLE_EVERY is timed */
    struct cus_build_waits build_waits;
    bool in_traced_call;  /* what it does is part of something that the trace is told of */
    uint8_t scheduled;    /* steps for which the kernel need not be asked how it is scheduled: */
    uint8_t urgency;      /* cus_thread_urgency */
    uint8_t found_urgent; /* the look at all threads (realtime.c) that it was asked behind */
    bool barred;          /* the watchdog may not be above it */
    /* The stream without an engine on which it began something last (room.c). */
    CUstream untracked;
    uint32_t number; /* among those with work on their per-thread streams; 0: none yet */
    CUcontext untracked_context;
    uint32_t untracked_epoch;
    uint32_t suspended; /* suspends of the program that no resume has answered */
    struct cus_known_stream
        known[CUS_KNOWN_STREAMS]; /* in one of CUS_KNOWN_PLACES from that of the handle on */
} __attribute__((aligned(CUS_LINE)));
_Static_assert(offsetof(struct cus_thread, pending) == CUS_LINE, "in one line");

/* No stream has this handle. */
extern const char cus_no_stream;
#define CUS_NO_STREAM ((CUstream)(uintptr_t)&cus_no_stream)
/* `aim` follows what `pending`, `found` and `ref` say. Whenever one of them was changed. */
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
