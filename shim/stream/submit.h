/*
 * Submitting a complete segment: one thread of the library patches its graph and launches it, while
 * the program's thread goes on. Program threads call this file with the engine's lock held. The
 * submit thread has one segment at a time. If it is busy, another stream launches its segment
 * itself, so no stream waits for another one's launch. Until the graph is launched its stream
 * counts as `pending`. If the launch fails, the next caller of `finish` (deferred.c) issues the
 * ops.
 */
#ifndef CUSPLICE_STREAM_SUBMIT_H
#define CUSPLICE_STREAM_SUBMIT_H

#include <cuda.h>

#include "shim/plan/segment.h"

struct cus_engine;

/* Frees of stream-ordered memory that wait for ops to be issued (pools.c). */
enum { CUS_FREES_MAX = 1024 };
struct cus_frees {
    uint32_t n;
    struct cus_block {
        CUdeviceptr address;
        uint64_t bytes;
        struct cus_pool *pool; /* until the free is about to be made */
    } * of;                    /* CUS_FREES_MAX of them; NULL: none was deferred yet */
};

enum cus_submit_state {
    CUS_SUBMIT_NONE,
    CUS_SUBMIT_QUEUED,   /* the submit thread is to take it, or a thread that would wait for it */
    CUS_SUBMIT_BUSY,     /* one of them took it */
    CUS_SUBMIT_LAUNCHED, /* the graph is launched, and nobody has looked yet */
    CUS_SUBMIT_FAILED, /* node `refused` could not be patched, or the graph not be launched; none of
                          its ops is issued */
};

/* The segment of a stream that was submitted last. While the state is QUEUED or BUSY, the graph
 * belongs to the thread that takes it, and nobody writes dims or params of `nodes` in the image.
 * Otherwise the engine's lock guards everything. */
struct cus_submit {
    /* The fields that the submit thread reads have cache lines of their own, because the program's
     * thread writes to engine, segment and variant meanwhile. */
    uint32_t state __attribute__((aligned(CUS_LINE))); /* atomic, futex: enum cus_submit_state */
    uint32_t sleeps;  /* atomic: a thread sleeps while the state is BUSY */
    uint32_t refused; /* the node that refused its patch; `n`: the launch failed */
    uint32_t n;       /* nodes of the graph */
    CUcontext context;
    CUstream stream;
    struct cus_exec *exec;
    const struct cus_place *places;
    uint8_t *image;
    struct cus_frees frees; /* made behind the launch, while the state is BUSY */
    CUresult freed;         /* the first error of these frees */
    /* Nodes to be patched, a bit each; the image holds their new values. */
    uint64_t nodes[CUS_SEGMENT_MAX / 64];
    /* Of these, nodes whose shape changes. */
    uint64_t shapes[CUS_SEGMENT_MAX / 64];
    /* `variant`: whose graph it is. `broken`: the variant of a launch that failed, until the plan
     * knows. */
    struct cus_variant *variant __attribute__((aligned(CUS_LINE))), *broken;
    /* Does submitting pay for this stream? */
    uint64_t alone_ns;    /* smoothed time of the program's thread for launching a segment itself */
    uint32_t alone;       /* segments of which that was measured */
    uint32_t due;         /* segments until one is measured again */
    uint32_t backoff;     /* segments until one is submitted again */
    uint32_t backoffs;    /* length of the next back-off, in segments */
    int64_t credit_ns;    /* time saved less time waited by the program's thread lately */
    uint32_t async_ratio; /* share of submitted graphs among those launched lately */
    uint32_t counted;     /* graphs that `async_ratio` is the mean of */
};
enum { CUS_SUBMIT_ALL = 1 << 24 }; /* the `async_ratio` that means all of them */

/* The first call of CUDA is about to be made, by this thread: counts the processors. */
void cus_submit_start(void);
/* Ends the submit thread, which has no segment. For cus_engine_end. */
void cus_submit_drop(void);
/* Should the engine's next segment be submitted, given what submitting saved so far? Call once for
 * each segment that could be. Engine lock held, here and below. */
bool cus_submit_pays(struct cus_submit *submit);
/* An existing graph was launched, by the submit thread (`over`) or by the program's thread. */
void cus_submit_count(struct cus_submit *submit, bool over);
/* Were most of the graphs launched lately submitted? A back-off or a short time of a busy submit
 * thread does not change that. */
static inline bool cus_submit_mostly(const struct cus_submit *submit) {
    return submit->async_ratio > CUS_SUBMIT_ALL / 2;
}
/* The program's thread launched a graph itself, which took `ns`. */
void cus_submit_took(struct cus_submit *submit, uint64_t ns);
/* Reserves the submit thread for this engine until cus_submit_queue. False: it is busy, there is no
 * second processor, or time is virtual; virtual time is reported in cus_virtual_submit. */
bool cus_submit_claim(struct cus_engine *engine);
/* Submits `variant`, with `nodes` and `shapes` set. The program's thread began with it at `began`
 * (ns). */
void cus_submit_queue(struct cus_engine *engine, struct cus_variant *variant, uint64_t began);
/* Waits until the graph is launched or failed. Takes over a segment that is still QUEUED. */
void cus_submit_wait(struct cus_submit *submit);
/* Waits at most `ns` until cus_submit_wait would not sleep. False: cus_submit_wait would still
 * sleep; the submit thread may itself sleep in the driver. */
bool cus_submit_wait_for(struct cus_submit *submit, uint64_t ns);

/* Is there an outcome, not taken yet by deferred.c? */
static inline bool cus_submit_ended(const struct cus_submit *submit) {
    return __atomic_load_n(&submit->state, __ATOMIC_ACQUIRE) > CUS_SUBMIT_BUSY;
}
static inline bool cus_submit_any(const struct cus_submit *submit) {
    return __atomic_load_n(&submit->state, __ATOMIC_RELAXED) != CUS_SUBMIT_NONE;
}

#endif
