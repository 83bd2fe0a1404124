/*
 * Handing a complete segment over: a thread of the library patches its graph and launches it, while
 * the program's thread goes on with the next ops.
 *
 * There is one such thread, and it has one segment at a time: whoever finds it busy with another
 * stream launches by itself, so that no stream ever waits for another one's launch. Until a segment
 * that was submitted is launched its stream counts as one that defers ops (`pending`): what
 * would issue those waits for it. A segment that the thread could not launch goes out op by op from
 * whoever asks for it next (finish in deferred.c).
 */
#ifndef CUSPLICE_STREAM_SUBMIT_H
#define CUSPLICE_STREAM_SUBMIT_H

#include <cuda.h>

#include "shim/plan/segment.h"

struct cus_engine;

enum cus_submit_state {
    CUS_SUBMIT_NONE,
    CUS_SUBMIT_QUEUED,   /* the thread is to take it, or who would wait for it */
    CUS_SUBMIT_BUSY,     /* one of them has */
    CUS_SUBMIT_LAUNCHED, /* it is out, and nobody has asked yet */
    CUS_SUBMIT_FAILED,   /* node `refused` could not be patched, or the graph not be launched:
                            nothing of it is out */
};

/* The segment of a stream that was submitted last. While it is GIVEN or BUSY the graph is whose who
 * takes it, and nobody writes dims or params of the image of `nodes`; else all is the engine
 * lock's. */
struct cus_submit {
    /* What the other thread looks at is here, and in no line with anything else: the program's
     * thread writes to engine, segment and variant meanwhile. */
    uint32_t state __attribute__((aligned(CUS_LINE))); /* atomic, futex: enum cus_submit_state */
    uint32_t sleeps;  /* atomic: somebody sleeps until it is not BUSY any more */
    uint32_t refused; /* a node; as many as there are: the launch was */
    uint32_t n;       /* nodes of the graph */
    CUcontext context;
    CUstream stream;
    struct cus_exec *exec;
    const struct cus_place *places;
    uint8_t *image;
    uint64_t nodes[CUS_SEGMENT_MAX / 64];  /* those to be patched, a bit each: the image has them as
                                            they are to be */
    uint64_t shapes[CUS_SEGMENT_MAX / 64]; /* of these, those to be given another shape */
    /* Whose graph it is; that of one that was not launched, until the plan was told. */
    struct cus_variant *variant __attribute__((aligned(CUS_LINE))), *broken;
    /* Does it pay? */
    uint64_t alone_ns;    /* what the program's thread takes for a segment by itself, smoothed */
    uint32_t alone;       /* segments of which that was measured */
    uint32_t due;         /* segments until one is measured again; */
    uint32_t backoff;     /* until one is submitted again; */
    uint32_t backoffs;    /* for how many it rests next time */
    int64_t credit_ns;    /* what the program's thread was saved, and has waited, lately */
    uint32_t async_ratio; /* of the graphs launched lately, those that were submitted; */
    uint32_t counted;     /* graphs that it is of */
};
enum { CUS_SUBMIT_ALL = 1 << 24 }; /* the `share` that is all of them */

/* The first call of CUDA is made, by the thread that makes it: which processors there are. */
void cus_submit_start(void);
/* Is this engine's next segment to be submitted, by what that saved it so far? Asked once for each
 * segment that could be. Lock held, here and below. */
bool cus_submit_pays(struct cus_submit *submit);
/* A graph was launched that was there before: submitted, or by the program's thread. */
void cus_submit_count(struct cus_submit *submit, bool over);
/* Are most of its graphs submitted, lately? Neither a rest nor a thread that is busy for a while
 * changes that. */
static inline bool cus_submit_mostly(const struct cus_submit *submit) {
    return submit->async_ratio > CUS_SUBMIT_ALL / 2;
}
/* It was not, and took so long. */
void cus_submit_took(struct cus_submit *submit, uint64_t ns);
/* May this engine hand a segment over now? The thread is its own then, until cus_submit_queue.
 * False also where there is no second processor, and where time is virtual, which is told
 * (cus_virtual_submit). */
bool cus_submit_claim(struct cus_engine *engine);
/* `variant`, with `nodes` and `shapes` set: the thread has it from here on. It was begun at
 * `began`, in ns. */
void cus_submit_queue(struct cus_engine *engine, struct cus_variant *variant, uint64_t began);
/* Waits until it is out, or cannot be. */
void cus_submit_wait(struct cus_submit *submit);
/* Waits, but no longer than that, until cus_submit_wait would not sleep. False: it would, and the
 * thread may sleep in the driver itself. */
bool cus_submit_wait_for(struct cus_submit *submit, uint64_t ns);

/* Was it launched, or was not to be? */
static inline bool cus_submit_ended(const struct cus_submit *submit) {
    return __atomic_load_n(&submit->state, __ATOMIC_ACQUIRE) > CUS_SUBMIT_BUSY;
}
static inline bool cus_submit_any(const struct cus_submit *submit) {
    return __atomic_load_n(&submit->state, __ATOMIC_RELAXED) != CUS_SUBMIT_NONE;
}

#endif
