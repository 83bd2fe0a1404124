/*
 * Rest (HAZARDS F15, B21): the program is timed with and without the library's work, in turns;
 * where it is faster without, calls pass for some seconds. rest.md says what passes, and in which
 * order a rest begins and ends. Runs on program threads inside hooks with no lock held. `turn` is
 * outermost and never waited for; engines' locks are only tried.
 */
#include "shim/stream/rest.h"

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/pays.h"
#include "shim/plan/trial.h"
#include "shim/stream/events.h"
#include "shim/stream/fallback.h"
#include "shim/stream/flush.h"
#include "shim/stream/state.h"
#include "shim/stream/trace.h"

#define MS 1000000ull
#define SECONDS(n) ((n)*1000 * MS)

enum {
    TICKS = 24, /* a stretch with fewer says nothing about the pace */
    /* A trial is worth it if graphs save less than this part of the time, and less than this part
     * of the ops is being learned. */
    SAVED_PART = 10,
    LEARNED_PART = 8
};
static const uint64_t stretch_ns = 100 * MS, look_ns = SECONDS(1), rest_least = SECONDS(10),
                      rest_most = SECONDS(40), pause_least = SECONDS(4), pause_most = SECONDS(320);
/* What a stream may let pass while the process rests: more than it ever will. */
static const uint64_t ENDLESS = 1ull << 62;

static bool may_rest;     /* frozen when the engine has started */
static uint64_t ticks;    /* atomic */
static uint64_t until_ns; /* atomic: when the state below changes next */
static uint64_t last_ns;  /* atomic: the last tick */
static bool paused;       /* atomic: none came for half a stretch */
/* For the fuzzer (tests/fuzz): a tick whose number has all these bits begins a rest or ends it. 0:
 * the pace decides. */
#ifdef CUS_CHECKS
static uint64_t every; /* frozen when the engine has started */
#else
static const uint64_t every = 0;
#endif

static struct cus_lock turn = CUS_LOCK_OF(CUS_RANK_TURN);
/* Guarded by `turn`. */
static struct {
    enum { LOOKS, TRIES, RESTS } phase;
    unsigned row;      /* the tick of this row began the stretch, and ends it */
    uint64_t began_ns; /* of the stretch */
    uint64_t ticks;    /* when it began */
    struct cus_account account;
    struct cus_trial trial;
    uint64_t pause_ns, rest_ns;
} now_;

void cus_rest_start(void) {
    enum cus_mode mode = cus_options()->mode;
    may_rest = CUS_PAYS(REST) && CUS_HAZARD(F15) && cus_options()->demote &&
               mode > CUS_MODE_OBSERVE && mode != CUS_MODE_VERIFY && !cus_virtual.on;
#ifdef CUS_CHECKS
    const char *value = getenv("CUS_TEST_RESTS");
    every = value ? strtoull(value, NULL, 10) : 0;
#endif
    until_ns = last_ns = ticks = 0;
    memset(&now_, 0, sizeof now_);
    now_.pause_ns = pause_least;
    now_.rest_ns = rest_least;
}

void cus_rest_drop(void) {
    may_rest = false;
    __atomic_store_n(&cus_process.resting, 0, __ATOMIC_SEQ_CST);
}

/* ---- the rest itself ---- */

/* Lets the stream's ops pass. Engine lock held, nothing deferred. */
static void leave_alone(struct cus_engine *engine) {
    cus_plan_break(cus_engine_plan(engine));
    if (!__atomic_load_n(&engine->demoted, __ATOMIC_RELAXED))
        __atomic_store_n(&engine->demoted, ENDLESS, __ATOMIC_RELAXED);
}

/* Ends what leave_alone began. A thread that counts an op at this moment may undo this; so it is
 * called again at each turn. */
static void take_up(void) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (__atomic_load_n(&engine->demoted, __ATOMIC_RELAXED) > ENDLESS / 2)
            __atomic_store_n(&engine->demoted, 0, __ATOMIC_RELAXED);
    }
}

/* Issues what is deferred. False: a lock is not free, or an error has not been told yet. */
static bool settle(void) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (!cus_lock_try(&engine->lock))
            return false;
        cus_flush_locked(engine, CUS_CAUSE_REST, CUS_BREAK_API, CUS_CUT_OTHER);
        bool told = __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) == CUDA_SUCCESS;
        if (told && !engine->closed)
            leave_alone(engine);
        cus_engine_unlock(engine);
        if (!told)
            return false;
    }
    cus_flush_branches(CUS_CAUSE_REST);
    return true;
}

static void defer_again(void) {
    int resting = CUS_RESTING;
    take_up();
    __atomic_compare_exchange_n((int *)&cus_process.state, &resting, CUS_DEFER, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool cus_rest_begin(void) {
    int deferring = CUS_DEFER;
    if (cus_recording() || __atomic_load_n(&cus_process.profiling, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n((int *)&cus_process.state, &deferring, CUS_RESTING, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false;
    if (!settle()) {
        defer_again();
        return false;
    }
    __atomic_store_n(&cus_process.resting, 1, __ATOMIC_RELEASE);
    return true;
}

void cus_rest_end(void) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    /* Whoever finds that ops may be deferred again finds this too: `state` is released behind it.
     */
    __atomic_store_n(&cus_process.resting, 0, __ATOMIC_RELAXED);
    cus_events_doubt();
    for (uint32_t i = 0; CUS_HAZARD(B21) && i < n; i++)
        __atomic_add_fetch(&cus_process.engines[i]->calls, 1, __ATOMIC_SEQ_CST);
    defer_again();
}

/* ---- is it worth it? `turn` held ---- */

static bool rests(void) {
    return __atomic_load_n(&cus_process.resting, __ATOMIC_RELAXED);
}

/* Of all engines whose locks are free. */
static struct cus_account account(void) {
    struct cus_account sum = {0};
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (!cus_lock_try(&engine->lock))
            continue;
        struct cus_account one = cus_engine_account(engine);
        cus_engine_unlock(engine);
        sum.ops += one.ops;
        sum.in_graphs += one.in_graphs;
        sum.built += one.built;
        sum.new_ops += one.new_ops;
        sum.warm_ops += one.warm_ops;
        sum.cut += one.cut;
    }
    return sum;
}

static void begin_stretch(uint64_t now, unsigned row, uint64_t length_ns) {
    now_.row = row;
    now_.began_ns = now;
    now_.ticks = __atomic_load_n(&ticks, __ATOMIC_RELAXED);
    now_.account = account();
    __atomic_store_n(&paused, false, __ATOMIC_RELAXED);
    __atomic_store_n(&until_ns, now + length_ns, __ATOMIC_RELAXED);
}

static void look_again(uint64_t now, unsigned row, uint64_t pause_ns) {
    if (rests())
        cus_rest_end();
    now_.phase = LOOKS;
    begin_stretch(now, row, pause_ns);
}

/* An engine whose lock was not free on one of the two occasions makes a difference too large or too
 * small; then the next look is right. */
static uint64_t since(uint64_t now, uint64_t before) {
    return now > before ? now - before : 0;
}

static bool is_worth_a_trial(uint64_t ns, uint64_t came) {
    struct cus_account now = account();
    uint64_t ops = since(now.ops, now_.account.ops);
    uint64_t in_graphs = since(now.in_graphs, now_.account.in_graphs);
    uint64_t known = in_graphs + since(now.warm_ops, now_.account.warm_ops) +
                     since(now.new_ops, now_.account.new_ops) + since(now.cut, now_.account.cut);
    return came * stretch_ns >= TICKS * ns && in_graphs * CUS_COST_LAUNCH * SAVED_PART <= ns &&
           !since(now.built, now_.account.built) && since(ops, known) * LEARNED_PART <= ops;
}

static void begin_trial(uint64_t now, unsigned row) {
    now_.phase = TRIES;
    now_.trial = (struct cus_trial){0};
    begin_stretch(now, row, stretch_ns);
}

static void rest(uint64_t now, unsigned row) {
    if (!cus_rest_begin()) {
        look_again(now, row, look_ns);
        return;
    }
    cus_fallback(CUS_FALLBACK_RESTED);
    cus_log(CUS_INFO, "stream",
            "the program is faster by %u.%u %% without graphs: calls pass for %u s",
            cus_trial_median(&now_.trial) / 10000 - 100, cus_trial_median(&now_.trial) / 1000 % 10,
            (unsigned)(now_.rest_ns / SECONDS(1)));
    now_.phase = RESTS;
    now_.pause_ns = pause_least;
    begin_stretch(now, row, now_.rest_ns);
    now_.rest_ns = now_.rest_ns * 2 < rest_most ? now_.rest_ns * 2 : rest_most;
}

static void stretch_ended(uint64_t now, unsigned row, uint64_t ns, uint64_t came) {
    bool counts = !__atomic_load_n(&paused, __ATOMIC_RELAXED) &&
                  (rests() || !since(account().built, now_.account.built));
    enum cus_trial_says verdict =
        came < TICKS ? CUS_TRIAL_A : cus_trial_add(&now_.trial, came, ns, counts);
    if (verdict == CUS_TRIAL_B) {
        rest(now, row);
    } else if (verdict == CUS_TRIAL_A) {
        look_again(now, row, now_.pause_ns);
        now_.pause_ns = now_.pause_ns * 2 < pause_most ? now_.pause_ns * 2 : pause_most;
        now_.rest_ns = rest_least;
    } else {
        if (rests())
            cus_rest_end();
        else if (!cus_rest_begin())
            cus_trial_skip(&now_.trial);
        begin_stretch(now, row, stretch_ns);
    }
}

static void end_stretch(uint64_t now, unsigned row, uint64_t came) {
    uint64_t ns = now - now_.began_ns;
    if (!rests())
        take_up();
    if (!now_.began_ns)
        look_again(now, row, look_ns);
    else if (now_.phase == TRIES)
        stretch_ended(now, row, ns, came);
    else if (now_.phase == RESTS) {
        cus_rest_end();
        begin_trial(now, row);
    } else if (is_worth_a_trial(ns, came))
        begin_trial(now, row);
    else
        look_again(now, row, look_ns);
}

static void rest_by_number(uint64_t number) {
    if ((number & every) != every || !cus_lock_try(&turn))
        return;
    if (rests())
        cus_rest_end();
    else
        cus_rest_begin();
    cus_lock_give(&turn);
}

bool cus_engine_tick(unsigned row) {
    if (!may_rest)
        return false;
    uint64_t came = __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
    if (every) {
        rest_by_number(came);
        return rests();
    }
    uint64_t now = cus_clock_ns();
    uint64_t last = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&last_ns, now, __ATOMIC_RELAXED);
    if (now > last + stretch_ns / 2)
        __atomic_store_n(&paused, true, __ATOMIC_RELAXED);
    uint64_t until = __atomic_load_n(&until_ns, __ATOMIC_RELAXED);
    if (now >= until && cus_lock_try(&turn)) {
        if (until == __atomic_load_n(&until_ns, __ATOMIC_RELAXED) &&
            (row == now_.row || now >= until + stretch_ns))
            end_stretch(now, row, came - now_.ticks);
        cus_lock_give(&turn);
    }
    return rests();
}
