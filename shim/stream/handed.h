/*
 * Handing a complete piece over: a thread of the library patches its graph and launches it, while
 * the program's thread goes on with the next ops.
 *
 * There is one such thread, and it has one piece at a time: whoever finds it busy with another
 * stream launches by itself, so that no stream ever waits for another one's launch. Until a piece
 * that was handed over is launched its stream counts as one that withholds ops (`pending`): what
 * would issue those waits for it. A piece that the thread could not launch goes out op by op from
 * whoever asks for it next (finish in withheld.c).
 */
#ifndef CUSPLICE_STREAM_HANDED_H
#define CUSPLICE_STREAM_HANDED_H

#include <cuda.h>

#include "shim/plan/piece.h"

struct cus_engine;

enum cus_handed_state {
    CUS_HANDED_NONE,
    CUS_HANDED_GIVEN,    /* the thread is to take it, or who would wait for it */
    CUS_HANDED_BUSY,     /* one of them has */
    CUS_HANDED_LAUNCHED, /* it is out, and nobody has asked yet */
    CUS_HANDED_FAILED,   /* node `refused` could not be patched, or the graph not be launched:
                            nothing of it is out */
};

/* The piece of a stream that was handed over last. While it is GIVEN or BUSY the graph is whose who
 * takes it, and nobody writes dims or params of the image of `nodes`; else all is the engine
 * lock's. */
struct cus_handed {
    /* What the other thread looks at is here, and in no line with anything else: the program's
     * thread writes to engine, piece and variant meanwhile. */
    uint32_t state __attribute__((aligned(CUS_LINE))); /* atomic, futex: enum cus_handed_state */
    uint32_t sleeps;  /* atomic: somebody sleeps until it is not BUSY any more */
    uint32_t refused; /* a node; as many as there are: the launch was */
    uint32_t n;       /* nodes of the graph */
    CUcontext context;
    CUstream stream;
    struct cus_exec *exec;
    const struct cus_place *places;
    uint8_t *image;
    uint64_t nodes[CUS_PIECE_MAX / 64];  /* those to be patched, a bit each: the image has them as
                                            they are to be */
    uint64_t shapes[CUS_PIECE_MAX / 64]; /* of these, those to be given another shape */
    /* Whose graph it is; that of one that was not launched, until the plan was told. */
    struct cus_variant *variant __attribute__((aligned(CUS_LINE))), *broken;
    /* Does it pay? */
    uint64_t alone_ns; /* what the program's thread takes for a piece by itself, smoothed */
    uint32_t alone;    /* pieces of which that was measured */
    uint32_t due;      /* pieces until one is measured again; */
    uint32_t rest;     /* until one is handed over again; */
    uint32_t rests;    /* for how many it rests next time */
    int64_t credit_ns; /* what the program's thread was saved, and has waited, lately */
    uint32_t share;    /* of the graphs launched lately, those that were handed over; */
    uint32_t counted;  /* graphs that it is of */
};
enum { CUS_HANDED_ALL = 1 << 24 }; /* the `share` that is all of them */

/* The first call of CUDA is made, by the thread that makes it: which processors there are. */
void cus_handed_start(void);
/* Is this engine's next piece to be handed over, by what that saved it so far? Asked once for each
 * piece that could be. Lock held, here and below. */
bool cus_handed_pays(struct cus_handed *handed);
/* A graph was launched that was there before: handed over, or by the program's thread. */
void cus_handed_count(struct cus_handed *handed, bool over);
/* Are most of its graphs handed over, lately? Neither a rest nor a thread that is busy for a while
 * changes that. */
static inline bool cus_handed_mostly(const struct cus_handed *handed) {
    return handed->share > CUS_HANDED_ALL / 2;
}
/* It was not, and took so long. */
void cus_handed_took(struct cus_handed *handed, uint64_t ns);
/* May this engine hand a piece over now? The thread is its own then, until cus_handed_give. False
 * also where there is no second processor, and where time is virtual, which is told
 * (cus_virtual_handed). */
bool cus_handed_claim(struct cus_engine *engine);
/* `variant`, with `nodes` and `shapes` set: the thread has it from here on. It was begun at
 * `began`, in ns. */
void cus_handed_give(struct cus_engine *engine, struct cus_variant *variant, uint64_t began);
/* Waits until it is out, or cannot be. */
void cus_handed_wait(struct cus_handed *handed);
/* Waits, but no longer than that, until cus_handed_wait would not sleep. False: it would, and the
 * thread may sleep in the driver itself. */
bool cus_handed_wait_for(struct cus_handed *handed, uint64_t ns);

/* Was it launched, or was not to be? */
static inline bool cus_handed_ended(const struct cus_handed *handed) {
    return __atomic_load_n(&handed->state, __ATOMIC_ACQUIRE) > CUS_HANDED_BUSY;
}
static inline bool cus_handed_any(const struct cus_handed *handed) {
    return __atomic_load_n(&handed->state, __ATOMIC_RELAXED) != CUS_HANDED_NONE;
}

#endif
