/*
 * Demotion of streams on which graphs do not pay (demotion.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_DEMOTION_H
#define CUSPLICE_STREAM_DEMOTION_H

#include "shim/stream/state.h"

/* The engine begins to serve a stream. Engine lock held. */
void cus_demotion_start(struct cus_engine *engine);
/* Demotes the stream if it is time to judge it and graphs do not pay. Called with the engine lock
 * held, after an op was issued alone and recorded. */
void cus_demotion_decide(struct cus_engine *engine);
/* cus_demoted_head: a step of a demoted stream began with these ops. cus_demoted_step_end: a step
 * of a demoted stream has ended; engine lock held. */
void cus_demoted_head(struct cus_engine *engine, uint64_t head);
void cus_demoted_step_end(struct cus_engine *engine);
/* A demoted stream's ops repeat. `left`: ops that it was to let pass still. */
void cus_demoted_repeats(struct cus_engine *engine, uint64_t left);
/* Adds one op to the step's head. If two threads do so at once, the head is missed. */
static inline void cus_demoted_begins(struct cus_engine *engine, uint32_t left, uint64_t op) {
    uint64_t head = cus_head_add(__atomic_load_n(&engine->head, __ATOMIC_RELAXED), op);
    __atomic_store_n(&engine->head, head, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->head_left, left - 1, __ATOMIC_RELAXED);
    if (left == 1)
        cus_demoted_head(engine, head);
}
/* Counts one op of a stream that lets `left` more ops pass. `f`: the function of a launch. If two
 * threads count at once, one op may be counted twice, which does no harm. */
static inline __attribute__((always_inline)) void
cus_demoted_op(struct cus_engine *engine, uint64_t left, enum cus_op_type type, const void *f) {
    uint64_t op = type == CUS_OP_LAUNCH ? (uintptr_t)f : type;
    __atomic_store_n(&engine->demoted, left - 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->passed[type], 1, __ATOMIC_RELAXED);
    uint32_t head_left = __atomic_load_n(&engine->head_left, __ATOMIC_RELAXED);
    if (__builtin_expect(head_left, 0))
        cus_demoted_begins(engine, head_left, op);
    if (CUS_PAYS(REPEAT) && __builtin_expect(cus_repeat_feed(&engine->repeat, op), 0))
        cus_demoted_repeats(engine, left);
}
/* The same without a function call. False: a call is needed, and nothing was done. */
static inline __attribute__((always_inline)) bool cus_demoted_op_only(struct cus_engine *engine,
                                                                      uint64_t left,
                                                                      enum cus_op_type type,
                                                                      const void *f) {
    uint64_t op = type == CUS_OP_LAUNCH ? (uintptr_t)f : type;
    if (__builtin_expect(__atomic_load_n(&engine->head_left, __ATOMIC_RELAXED), 0) ||
        (CUS_PAYS(REPEAT) && !cus_repeat_feed_only(&engine->repeat, op)))
        return false;
    __atomic_store_n(&engine->demoted, left - 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->passed[type], 1, __ATOMIC_RELAXED);
    return true;
}

#endif
