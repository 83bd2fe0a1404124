/*
 * Counts the threads that are inside the gate, and notes the thread that has shut it.
 */
#include "shim/verify/gate.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/lock.h"

enum {
    WAIT_NS = 2000000000, /* how long a thread waits in front of the gate */
    ALONE_NS = 20000000,  /* how long the verifier waits for others to leave: the watchdog is soon
                           * gone, even where it got no processor for a while */
    SHORT_NS = 200000,    /* the same, once others stayed PATIENCE times in a row */
    PASSING_NS = 1000000, /* after this time, a call that was jumped to counts as over */
    TURN_NS = 10000000,   /* the longest sleep: a thread that opens may miss one that has just
                           * begun to sleep */
    PATIENCE = 3,
};

static uint32_t shut_for; /* atomic, futex: the thread that has shut the gate; 0: it is open */
static uint32_t inside;   /* atomic */
static uint32_t forced;   /* atomic */
static uint32_t stayed;   /* of the thread that has shut the gate: waits in vain, in a row */

/* The last two threads that went on into the driver, the later one first. If two threads do so
 * at the same moment, one note may be lost; the remaining note has the same time. */
static struct {
    uint32_t thread; /* atomic */
    uint64_t at;     /* atomic: ns */
} passed[2];

static uint32_t self(void) {
    static __thread uint32_t id __attribute__((tls_model("initial-exec")));
    if (!id)
        id = (uint32_t)syscall(SYS_gettid);
    return id;
}

bool cus_gate_try(void) {
    /* Sequentially consistent, as is the thread that shuts the gate and then counts: one of the
     * two sees the other. */
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    uint32_t holder = __atomic_load_n(&shut_for, __ATOMIC_SEQ_CST);
    if (!holder || holder == self())
        return true;
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return false;
}

void cus_gate_enter(void) {
    if (cus_gate_try())
        return;
    uint64_t end = cus_clock_ns() + WAIT_NS;
    while (!cus_gate_try()) {
        uint32_t holder = __atomic_load_n(&shut_for, __ATOMIC_ACQUIRE);
        if (holder)
            cus_futex_wait(&shut_for, holder, TURN_NS);
        if (cus_clock_ns() > end) {
            /* In this order, so that a thread that shuts the gate sees this thread inside, or
             * sees `forced`. */
            __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
            __atomic_store_n(&forced, 1, __ATOMIC_SEQ_CST);
            return;
        }
    }
}

void cus_gate_leave(void) {
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

void cus_gate_pass(void) {
    uint32_t me = self();
    if (__atomic_load_n(&passed[0].thread, __ATOMIC_RELAXED) != me) {
        __atomic_store_n(&passed[1].at, __atomic_load_n(&passed[0].at, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&passed[1].thread, __atomic_load_n(&passed[0].thread, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
    }
    __atomic_store_n(&passed[0].at, cus_clock_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&passed[0].thread, me, __ATOMIC_RELAXED);
    cus_gate_leave();
}

static bool passing(uint32_t me) {
    uint64_t now = cus_clock_ns();
    for (unsigned i = 0; i < 2; i++) {
        uint32_t thread = __atomic_load_n(&passed[i].thread, __ATOMIC_RELAXED);
        uint64_t at = __atomic_load_n(&passed[i].at, __ATOMIC_RELAXED);
        if (thread && thread != me && now < at + PASSING_NS)
            return true;
    }
    return false;
}

bool cus_gate_shut(void) {
    uint32_t open = 0, me = self();
    if (!__atomic_compare_exchange_n(&shut_for, &open, me, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&forced, 0, __ATOMIC_SEQ_CST);
    uint64_t end = cus_clock_ns() + (stayed < PATIENCE ? ALONE_NS : SHORT_NS);
    while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) > 1 && cus_clock_ns() < end)
        sched_yield();
    bool alone = __atomic_load_n(&inside, __ATOMIC_SEQ_CST) == 1;
    stayed = alone ? 0 : stayed + 1;
    if (alone && !passing(me))
        return true;
    cus_gate_open();
    return false;
}

void cus_gate_open(void) {
    __atomic_store_n(&shut_for, 0, __ATOMIC_SEQ_CST);
    cus_futex_wake(&shut_for, INT32_MAX);
}

bool cus_gate_forced(void) {
    return __atomic_load_n(&forced, __ATOMIC_ACQUIRE) != 0;
}
