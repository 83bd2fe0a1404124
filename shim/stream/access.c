/*
 * What every part of the engine does before it acts: make a context current, take an engine's lock
 * at exit without a wait that may not end. Any thread, inside hooks and on the library's threads.
 * Calls the driver for the current context alone.
 */
#include "shim/stream/access.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"

/* Makes the engine's context current around its driver calls. The watchdog or another thread may
 * have another current context, or none. */
bool cus_context_enter(CUcontext wanted, bool *pushed) {
    CUcontext current = NULL;
    *pushed = false;
    if (cus_process.driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == wanted)
        return true;
    *pushed = cus_process.driver->cuCtxPushCurrent_v2(wanted) == CUDA_SUCCESS;
    return *pushed;
}

void cus_context_leave(bool pushed) {
    CUcontext popped;
    if (CUS_HAZARD(B14) && pushed)
        cus_process.driver->cuCtxPopCurrent_v2(&popped);
}

/* ---- at exit ---- */

enum { PATIENCE_NS = 2000000000 };

static uint32_t gave_up; /* atomic: a lock could not be taken in time at exit */

uint64_t cus_exit_patience_ns(void) {
    return __atomic_load_n(&gave_up, __ATOMIC_RELAXED) ? PATIENCE_NS / 1000 : PATIENCE_NS;
}

bool cus_exit_give_up(void) {
    __atomic_store_n(&gave_up, 1, __ATOMIC_RELAXED);
    CUS_LOG_ONCE(CUS_WARN, "stream", "a thread sleeps in the driver: the program ends without it");
    return false;
}

void cus_exit_drop(void) {
    gave_up = 0;
}

/* At exit, a thread may sleep in the driver for ever with its engine locked. That thread is issuing
 * all that the engine deferred. The program ends without that thread, as it would without the
 * library. */
bool cus_engine_take_in_time(struct cus_engine *engine) {
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) >= CUS_RESTING) {
        cus_lock_take(&engine->lock);
        return true;
    }
    return cus_lock_take_for(&engine->lock, cus_exit_patience_ns()) || cus_exit_give_up();
}
