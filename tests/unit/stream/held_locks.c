#include "tests/unit/stream/held_locks.h"

#include "shim/stream/priority.h"
#include "shim/stream/registry.h"
#include "shim/stream/state.h"
#include "shim/stream/streams.h"
#include "shim/stream/watchdog.h"

void hold_gate(void (*meanwhile)(void)) {
    cus_watchdog_hold();
    meanwhile();
    cus_watchdog_release();
}

static struct cus_engine *engine_of(CUstream stream, CUcontext context) {
    struct cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    return cus_streams_peek(&cus_thread_self, ref, context);
}

bool engine_is_free(CUstream stream, CUcontext context) {
    struct cus_lock *lock = &engine_of(stream, context)->lock;
    if (!cus_lock_try(lock))
        return false;
    cus_lock_give(lock);
    return true;
}

bool engine_is_waited_for(CUstream stream, CUcontext context) {
    return __atomic_load_n(&engine_of(stream, context)->lock.waiting, __ATOMIC_ACQUIRE) != 0;
}

void hold_engine(CUstream stream, CUcontext context, void (*meanwhile)(void)) {
    struct cus_engine *engine = engine_of(stream, context);
    struct cus_context *of = cus_streams_context(context);
    cus_lock_take(&engine->lock);
    cus_lock_take(&of->lock);
    meanwhile();
    cus_lock_give(&of->lock);
    cus_lock_give(&engine->lock);
}

void hold_registry(CUstream stream, CUcontext context) {
    struct cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    cus_registry_find(&cus_thread_self, ref, context);
}

static void hold(struct cus_lock *lock, void (*meanwhile)(void)) {
    cus_lock_take(lock);
    meanwhile();
    cus_lock_give(lock);
}

void hold_context(CUcontext context, void (*meanwhile)(void)) {
    hold(&cus_streams_context(context)->lock, meanwhile);
}

void hold_build(void (*meanwhile)(void)) {
    hold(&cus_process.build_lock, meanwhile);
}

bool build_has_priority(void) {
    return __atomic_load_n(&cus_process.build_now, __ATOMIC_ACQUIRE) & CUS_PRIORITY_NOW;
}

bool waits_for_build(void) {
    struct cus_build_waits ways = {0};
    return cus_build_yield(&ways, 1);
}

bool waits_again_for_build(void) {
    static __thread struct cus_build_waits waits;
    return cus_build_yield(&waits, 1);
}

unsigned builds_waited(void) {
    return __atomic_load_n(&cus_process.waited, __ATOMIC_ACQUIRE);
}

void build_as_at_start(void) {
    cus_build_start();
}

void hold_priority(uint32_t nodes, void (*meanwhile)(void)) {
    cus_lock_take(&cus_process.build_lock);
    bool now = cus_build_takes_priority(nodes);
    meanwhile();
    cus_build_had_priority(now, nodes, 0);
    cus_lock_give(&cus_process.build_lock);
}

void hold_list(void (*meanwhile)(void)) {
    hold(&cus_process.list_lock, meanwhile);
}

#ifdef CUS_CHECKS
static __thread uint64_t taken_all, taken_others;

/* The linker puts this in the place of cus_lock_taken (--wrap). */
void __real_cus_lock_taken(const struct cus_lock *lock);
void __wrap_cus_lock_taken(const struct cus_lock *lock);
void __wrap_cus_lock_taken(const struct cus_lock *lock) {
    taken_all++;
    taken_others += lock->rank != CUS_RANK_ENGINE;
    __real_cus_lock_taken(lock);
}

bool locks_taken(uint64_t *all, uint64_t *others) {
    *all = taken_all;
    *others = taken_others;
    return true;
}
#else
bool locks_taken(uint64_t *all, uint64_t *others) {
    *all = *others = 0;
    return false;
}
#endif
