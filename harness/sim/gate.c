/*
 * Locks of the driver as measured (CUSIM_LOCKS=measured), by the gate table of tests/gpu.
 *
 * Calls of one kind wait while a thread sleeps in a copy to pageable memory. Calls of the other
 * kind wait for that, too, and then for all work of the context; meanwhile nothing can be
 * submitted. Called on the program's threads, under cusim.lock unless cusim.h says otherwise. A
 * wait gives the lock back, so the caller must look up again what it needs.
 */
#include "harness/sim/cusim.h"

enum { HELD = 1, LOCKS };
static const unsigned char rows[CUSIM_API_COUNT] = {
#define CUSIM_HELD(symbol) [CUSIM_API_##symbol] = HELD,
#define CUSIM_LOCKS(symbol) [CUSIM_API_##symbol] = LOCKS,
#include "harness/sim/gate.def"
};

/* A lock was given back. */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

void cusim_gate_lock(struct cusim_ctx *ctx) {
    ctx->locked += cusim.options.measured_locks;
    cusim_ctx_wait(ctx);
    ctx->locked -= cusim.options.measured_locks;
    pthread_cond_broadcast(&released);
}

void cusim_gate_wait(const struct cusim_ctx *ctx) {
    while (ctx->locked > 0)
        pthread_cond_wait(&released, &cusim.lock);
}

void cusim_gate_hold(const struct cusim_ctx *ctx) {
    while (ctx->copiers > 0)
        pthread_cond_wait(&released, &cusim.lock);
}

void cusim_gate_copy(struct cusim_ctx *ctx, struct cusim_timeline *tl, uint64_t target) {
    ctx->copiers += cusim.options.measured_locks;
    cusim_timeline_wait(tl, target);
    ctx->copiers -= cusim.options.measured_locks;
    pthread_cond_broadcast(&released);
}

void cusim_gate_enter(enum cusim_api api) {
    struct cusim_ctx *ctx;
    if (rows[api] == 0 || cusim_thread_self()->in_worker)
        return;
    cusim_lock();
    /* An open capture refuses some of these calls at once. Which is not known here. */
    bool may_wait = rows[api] == HELD || !cusim.captures;
    if (may_wait && cusim_ctx_current(&ctx) == CUDA_SUCCESS) {
        cusim_gate_hold(ctx);
        if (rows[api] == LOCKS)
            cusim_gate_lock(ctx);
    }
    cusim_unlock();
}
