/*
 * The page of this process for `cusplice top`. All of it runs on the watchdog's thread, which holds
 * no lock then, except cus_live_place, cus_live_end and the samples. It takes one engine's lock at
 * a time, and gives up soon if that lock is held, because the holder may sleep in the driver.
 * Without a reader it costs one system call per LOOK_NS, and none while the watchdog sleeps.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/api/api.h"
#include "shim/base/clock.h"
#include "shim/stats/page.h"
#include "shim/stream/live.h"
#include "shim/stream/passed.h"
#include "shim/stream/state.h"
#include "shim/stream/why.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449 /* Linux 5.16, on every architecture */
#endif

enum {
    ANSWER_NS = 100000000,   /* least time between two answers */
    LOOK_NS = 25000000,      /* time between two checks for a reader */
    NAP_NS = 1000000000,     /* sleep of the watchdog if it cannot wait for two futexes */
    PATIENCE_NS = 200000000, /* longest wait at exit for a file that is being made */
    TRIES = 64,
};

static struct cus_page_own page; /* watchdog's thread only */
static uint64_t answered;        /* time of the last answer */
static uint64_t looked;          /* time of the last check for a reader */
static bool no_waitv;
static char path[CUS_PAGE_PATH]; /* set before the watchdog starts */
static bool placed;              /* set before the watchdog starts */
static uint32_t made;            /* atomic, futex */
enum { NONE, MAKING, MADE, ENDING, GONE };

void cus_live_place(void) {
    int saved = errno;
    placed = cus_options()->live && cus_page_place(path);
    errno = saved;
}

void cus_live_start(void) {
    uint32_t expected = NONE;
    if (!placed || !__atomic_compare_exchange_n(&made, &expected, MAKING, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE))
        return;
    bool there = cus_page_make(&page, path);
    expected = MAKING;
    if (__atomic_compare_exchange_n(&made, &expected, there ? MADE : GONE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return;
    /* The process is ending and waits until the file is gone. */
    if (there)
        unlink(path);
    __atomic_store_n(&made, GONE, __ATOMIC_RELEASE);
    cus_futex_wake(&made, 1);
}

void cus_live_end(void) {
    int saved = errno;
    uint32_t before = __atomic_exchange_n(&made, ENDING, __ATOMIC_ACQ_REL);
    if (before == MADE)
        unlink(path);
    uint64_t start = cus_clock_ns();
    while (before == MAKING && __atomic_load_n(&made, __ATOMIC_ACQUIRE) == ENDING &&
           cus_clock_ns() - start < PATIENCE_NS)
        cus_futex_wait(&made, ENDING, PATIENCE_NS / 10);
    errno = saved;
}

void cus_live_drop(void) {
    cus_page_give_up(&page);
    page = (struct cus_page_own){0};
    answered = looked = 0;
    no_waitv = placed = false;
    path[0] = 0;
    made = NONE;
}

/* ---- samples of host time ---- */

void cus_live_sample(struct cus_samples *samples, uint64_t ns) {
    uint32_t at = __atomic_fetch_add(&samples->n, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&samples->ns[at % CUS_SAMPLES], ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX,
                     __ATOMIC_RELAXED);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint64_t median(const struct cus_samples *samples) {
    uint32_t sorted[CUS_SAMPLES], n = __atomic_load_n(&samples->n, __ATOMIC_RELAXED);
    n = n < CUS_SAMPLES ? n : CUS_SAMPLES;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = __atomic_load_n(&samples->ns[i], __ATOMIC_RELAXED);
    qsort(sorted, n, sizeof sorted[0], by_size);
    return n ? sorted[n / 2] : 0;
}

/* ---- the answer ---- */

static bool try_for_a_while(struct cus_lock *lock) {
    for (int tries = 0; tries < TRIES; tries++) {
        if (cus_lock_try(lock))
            return true;
        sched_yield();
    }
    return false;
}

static bool add_up(struct cus_counters *sum) {
    memset(sum, 0, sizeof *sum);
    cus_passed_count();
    cus_counters_add(sum, &cus_process.counters);
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (!try_for_a_while(&engine->lock))
            return false;
        cus_counters_add(sum, &engine->counters);
        cus_engine_unlock(engine);
    }
    return true;
}

static void fill_breaks(struct cus_page_facts *facts, const struct cus_report *report) {
    unsigned n = report->n_breaks < CUS_PAGE_BREAKS ? report->n_breaks : CUS_PAGE_BREAKS;
    facts->n_breaks = n;
    facts->more_breaks = report->n_breaks - n + report->more_breaks;
    for (unsigned i = 0; i < n; i++) {
        const struct cus_report_break *from = &report->breaks[i];
        struct cus_page_break *to = &facts->breaks[i];
        to->launches = from->launches;
        to->runs = from->runs;
        snprintf(to->name, sizeof to->name, "%s", from->name);
        snprintf(to->what, sizeof to->what, "%s", from->what);
    }
}

/* False: an engine is busy, so the next look tries again. */
static bool answer(void) {
    static struct cus_counters sum;
    static struct cus_report report;
    static struct cus_page_facts facts;
    uint64_t let_pass = cus_why_let_pass();
    if (!add_up(&sum))
        return false;
    facts = (struct cus_page_facts){
        .at_ns = cus_clock_ns(),
        .ops = let_pass,
        .in_graphs = sum.in_graphs,
        .graph_launches = sum.graph_launches,
        .steps = sum.steps,
        .built = sum.built,
        .patched_nodes = sum.patched_nodes,
        .graph_bytes = __atomic_load_n(&cus_process.graph_bytes, __ATOMIC_RELAXED),
        .graph_bytes_most = sum.graph_bytes,
        .graph_bytes_limit = (uint64_t)cus_options()->graph_mb << 20,
        .launch_ns = median(&cus_process.launch_samples),
        .graph_ns = median(&cus_process.graph_samples),
    };
    for (unsigned type = 0; type < CUS_OP_TYPES; type++)
        facts.ops += sum.ops[type];
    uint32_t gpus[CUS_GPUS];
    cus_gpu_show(gpus, cus_gpus(gpus), facts.gpu);
    snprintf(facts.mode, sizeof facts.mode, "%s", cus_mode_name(cus_options()->mode));
    cus_report_breaks(&report, &sum, let_pass, cus_api_name);
    fill_breaks(&facts, &report);
    cus_page_answer(&page, &facts);
    return true;
}

void cus_live_look(void) {
    if (!page.asked)
        return;
    uint64_t now = cus_clock_ns();
    if (now - answered >= ANSWER_NS && now - looked >= LOOK_NS) {
        looked = now;
        if (cus_page_is_asked(&page) && answer())
            answered = now;
    }
}

/* ---- the long sleep ---- */

struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
};

void cus_live_wait(uint32_t *word, uint32_t value) {
    bool asked =
        cus_page_is_asked(&page); /* the last answer was too recent, or an engine was busy */
    if (asked || !page.asked) {
        cus_futex_wait(word, value, asked ? ANSWER_NS / 10 : 0);
        return;
    }
    if (no_waitv) {
        cus_futex_wait(word, value, NAP_NS);
        return;
    }
    struct waiter waiters[2] = {
        {value, (uintptr_t)word, 2 /* FUTEX_32 */ | FUTEX_PRIVATE_FLAG, 0},
        {page.seen, (uintptr_t)page.asked, 2, 0},
    };
    if (syscall(SYS_futex_waitv, waiters, 2, 0, NULL, 0) < 0 && errno != EAGAIN && errno != EINTR)
        no_waitv = true; /* an older kernel, or a sandbox without the call */
}
