/*
 * Finds the period of a loop inside a step, from the kinds and step classes of its ops, in bounded
 * memory. loops.c feeds it under the engine's lock while the path is new.
 */
#ifndef CUSPLICE_PLAN_LOOP_H
#define CUSPLICE_PLAN_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct cus_kind;

enum {
    /* The ops that are remembered at most, and before a step has had more. */
    CUS_LOOP_WINDOW = 8192,
    CUS_LOOP_WINDOW_FIRST = 1024,
    CUS_LOOP_GRAM = 32,
    /* A body shorter than CUS_LOOP_BODY must repeat for CUS_LOOP_RUN ops; one that is longer, once.
     * A body may repeat a few kernels inside of itself; such an inner period fails where the body
     * goes on. */
    CUS_LOOP_BODY = 128,
    CUS_LOOP_RUN = 256,
};

/* What is remembered of an op. */
struct cus_loop_op {
    const struct cus_kind *kind;
    uint8_t step;   /* enum cus_step_class */
    uint8_t called; /* a call that would cut a segment came in front of it */
};

/* Resetting this struct to an earlier copy takes back the last op. */
struct cus_loop_at {
    uint64_t gram;   /* hash of the last CUS_LOOP_GRAM ops */
    uint32_t fed;    /* ops so far */
    uint32_t from;   /* `fed` when the step began, or the ops in front were missed */
    uint32_t period; /* the candidate; 0: none */
    uint32_t run;    /* ops in a row that equal the op one period before */
    bool told;       /* the candidate was returned already */
};

struct cus_loop {
    struct cus_loop_op *ring; /* the last ops; allocated at the first feed */
    uint32_t *last;           /* where the last CUS_LOOP_GRAM ops came before, by hash */
    uint32_t window;          /* entries of both, a power of two; 0: none */
    struct cus_loop_at at;
};

/* Feeds one op. Returns the period once a whole period repeats the one before. Until cus_loop_told,
 * it returns the period again with each op that fits. 0: none, or memory is short. */
uint32_t cus_loop_feed(struct cus_loop *loop, struct cus_loop_op op);
/* The period was taken: the same run of it is not returned again. */
static inline void cus_loop_told(struct cus_loop *loop) {
    loop->at.told = true;
}
/* Ops that are remembered without a gap. */
uint32_t cus_loop_known(const struct cus_loop *loop);
/* The op that came `back` ops before the last one; less than cus_loop_known. */
const struct cus_loop_op *cus_loop_op(const struct cus_loop *loop, uint32_t back);
/* The next op does not follow the one that was fed last. */
void cus_loop_gap(struct cus_loop *loop);
void cus_loop_free(struct cus_loop *loop);

#endif
