/*
 * Rest (HAZARDS F15, B21): the program is timed with and without the library's work, in turns;
 * where it is faster without, calls pass for some seconds. rest.md says what passes, and in which
 * order a rest begins and ends. Runs on program threads inside hooks with no lock held. `turn` is
 * outermost; it and the engines' locks are only tried, so nobody waits for a rest. The driver is
 * not called.
 */
#include "shim/stream/rest.h"

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/pays.h"
#include "shim/plan/trial.h"
#include "shim/stream/fallback.h"
#include "shim/stream/state.h"

#define MS 1000000ull
#define SECONDS(n) ((n)*1000 * MS)

enum {
    TICKS = 24, /* a stretch with fewer says nothing about the pace */
    /* A trial is worth it if graphs save less than this part of the time, and less than this part
     * of the ops is being learned. */
    SAVED_PART = 10,
    LEARNED_PART = 8,
    /* Ops that a stream lets pass in a rest before somebody looks whether the rest is over: a
     * program that has no ticks any more would rest for ever. */
    PASSED_OPS = 65536
};
static const uint64_t stretch_ns = 100 * MS, look_ns = SECONDS(1), rest_least = SECONDS(10),
                      rest_most = SECONDS(40), pause_least = SECONDS(4), pause_most = SECONDS(320);

/* Frozen when the engine has started. `every` is for the fuzzer (tests/fuzz): a tick whose number
 * has all these bits begins a rest or ends it. 0: the pace decides. */
static bool may_rest;
#ifdef CUS_CHECKS
static uint64_t every;
#else
static const uint64_t every = 0;
#endif

/* Atomics, which all threads with ticks write. */
static struct {
    uint64_t ticks;
    uint64_t until_ns; /* when the phase below changes next */
    uint64_t last_ns;  /* the last tick */
    bool paused;       /* none came for half a stretch */
} seen __attribute__((aligned(CUS_LINE)));

static struct cus_lock turn = CUS_LOCK_OF(CUS_RANK_REST);
/* Guarded by `turn`. */
static struct {
    enum {
        LOOKS,  /* would a trial be worth it? */
        TRIES,  /* a stretch of a trial */
        BEGINS, /* a rest is to begin as soon as nothing is deferred */
        RESTS
    } phase;
    unsigned row;      /* the tick of this row began the stretch, and ends it */
    uint64_t began_ns; /* of the stretch */
    uint64_t ticks;    /* when it began */
    struct cus_account account;
    struct cus_trial trial;
    bool for_long; /* BEGINS: no stretch of the trial, but what it led to */
    uint64_t pause_ns, rest_ns;
} rest __attribute__((aligned(CUS_LINE)));

void cus_rest_start(void) {
    may_rest = CUS_PAYS(REST) && CUS_HAZARD(F15) && cus_options()->demote;
#ifdef CUS_CHECKS
    const char *value = getenv("CUS_TEST_RESTS");
    every = value ? strtoull(value, NULL, 10) : 0;
#endif
    memset(&seen, 0, sizeof seen);
    memset(&rest, 0, sizeof rest);
    rest.pause_ns = pause_least;
    rest.rest_ns = rest_least;
}

void cus_rest_drop(void) {
    may_rest = false;
    __atomic_store_n(&cus_process.resting, 0, __ATOMIC_RELAXED);
}

/* ---- the rest itself ---- */

/* Lets the stream's ops pass for now. Its next op that does not begins a segment. */
static void leave_alone(struct cus_engine *engine) {
    if (cus_lock_try(&engine->lock)) {
        if (!engine->closed)
            cus_plan_break(cus_engine_plan(engine));
        cus_engine_unlock(engine);
    }
    if (__atomic_load_n(&engine->demoted, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&engine->left_alone, true, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->demoted, PASSED_OPS, __ATOMIC_RELAXED);
}

/* A thread that counts an op at this moment may undo this; then some more ops pass. */
static void take_up(struct cus_engine *engine) {
    if (__atomic_exchange_n(&engine->left_alone, false, __ATOMIC_RELAXED))
        __atomic_store_n(&engine->demoted, 0, __ATOMIC_RELAXED);
}

/* Is nothing deferred or submitted on the stream, and every error told that the program would hear
 * of with its next wait? */
static bool is_settled(struct cus_engine *engine) {
    if (!cus_lock_try(&engine->lock))
        return false;
    bool settled =
        !engine->pending &&
        (engine->closed || __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) == CUDA_SUCCESS);
    cus_engine_unlock(engine);
    return settled;
}

/* A stream that is a branch waits for the end of it before its next own op (B19). */
static bool all_settled(void) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < n; i++)
        if (!is_settled(cus_process.engines[i]))
            return false;
    /* A stream that becomes a branch from here on owes nothing, since nothing is deferred there. */
    return !__atomic_load_n(&cus_process.branches, __ATOMIC_RELAXED);
}

static void defer_again(void) {
    int resting = CUS_RESTING;
    __atomic_compare_exchange_n((int *)&cus_process.state, &resting, CUS_DEFER, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* A hint, so that a try in vain keeps nobody from deferring. */
static bool is_busy(void) {
    struct cus_walk walk = {.n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE)};
    return __atomic_load_n(&cus_process.profiling, __ATOMIC_RELAXED) ||
           __atomic_load_n(&cus_process.branches, __ATOMIC_RELAXED) || cus_walk_pending(&walk);
}

bool cus_rest_begin(void) {
    int deferring = CUS_DEFER;
    if (is_busy() ||
        !__atomic_compare_exchange_n((int *)&cus_process.state, &deferring, CUS_RESTING, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false;
    if (!all_settled()) {
        defer_again();
        return false;
    }
    __atomic_store_n(&cus_process.resting, 1, __ATOMIC_RELEASE);
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++)
        leave_alone(cus_process.engines[i]);
    return true;
}

void cus_rest_end(void) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    /* Whoever finds that ops may be deferred again finds this too: `state` is released behind it.
     */
    __atomic_store_n(&cus_process.resting, 0, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++) {
        if (CUS_HAZARD(B21))
            __atomic_add_fetch(&cus_process.engines[i]->calls, 1, __ATOMIC_SEQ_CST);
        take_up(cus_process.engines[i]);
    }
    defer_again();
}

/* ---- is it worth it? `turn` held ---- */

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

/* An engine whose lock was not free on one of two occasions makes a difference too large or too
 * small; then the next look is right. */
static uint64_t since(uint64_t now, uint64_t before) {
    return now > before ? now - before : 0;
}

static void begin_stretch(uint64_t now, unsigned row, uint64_t length_ns) {
    rest.row = row;
    rest.began_ns = now;
    rest.ticks = __atomic_load_n(&seen.ticks, __ATOMIC_RELAXED);
    rest.account = account();
    __atomic_store_n(&seen.paused, false, __ATOMIC_RELAXED);
    __atomic_store_n(&seen.until_ns, now + length_ns, __ATOMIC_RELAXED);
}

static void look_again(uint64_t now, unsigned row, uint64_t pause_ns) {
    if (cus_rests())
        cus_rest_end();
    rest.phase = LOOKS;
    begin_stretch(now, row, pause_ns);
}

static void try_on(uint64_t now, unsigned row) {
    rest.phase = TRIES;
    begin_stretch(now, row, stretch_ns);
}

/* Do graphs save a good part of the `ns` since the stretch began? */
static bool graphs_save(const struct cus_account *now, uint64_t ns) {
    return since(now->in_graphs, rest.account.in_graphs) * CUS_COST_LAUNCH * SAVED_PART > ns;
}

static bool is_worth_a_trial(uint64_t ns, uint64_t came) {
    struct cus_account now = account();
    uint64_t ops = since(now.ops, rest.account.ops);
    uint64_t in_graphs = since(now.in_graphs, rest.account.in_graphs);
    uint64_t known = in_graphs + since(now.warm_ops, rest.account.warm_ops) +
                     since(now.new_ops, rest.account.new_ops) + since(now.cut, rest.account.cut);
    return came * stretch_ns >= TICKS * ns && !graphs_save(&now, ns) &&
           !since(now.built, rest.account.built) && since(ops, known) * LEARNED_PART <= ops;
}

static void rest_for_long(uint64_t now, unsigned row) {
    cus_fallback(CUS_FALLBACK_RESTED);
    uint32_t median = cus_trial_median(&rest.trial);
    cus_log(CUS_INFO, "stream",
            "the program is faster by %u.%u %% without graphs: calls pass for %u s",
            median / 10000 - 100, median / 1000 % 10, (unsigned)(rest.rest_ns / SECONDS(1)));
    rest.phase = RESTS;
    rest.pause_ns = pause_least;
    begin_stretch(now, row, rest.rest_ns);
    rest.rest_ns = rest.rest_ns * 2 < rest_most ? rest.rest_ns * 2 : rest_most;
}

/* While it cannot begin, each tick tries again, for the time of a stretch. */
static void begin_rest(uint64_t now, unsigned row) {
    if (cus_rest_begin()) {
        if (rest.for_long)
            rest_for_long(now, row);
        else
            try_on(now, row);
    } else if (now < rest.began_ns + stretch_ns) {
        __atomic_store_n(&seen.until_ns, now, __ATOMIC_RELAXED);
    } else if (rest.for_long) {
        look_again(now, row, look_ns);
    } else {
        cus_trial_skip(&rest.trial);
        try_on(now, row);
    }
}

static void want_rest(uint64_t now, unsigned row, bool for_long) {
    rest.phase = BEGINS;
    rest.for_long = for_long;
    begin_stretch(now, row, 0);
    begin_rest(now, row);
}

/* `now`: the account, of a stretch in which the library works; NULL: of one of rest. */
static enum cus_trial_says judge(const struct cus_account *now, uint64_t ns, uint64_t came) {
    bool paused = __atomic_load_n(&seen.paused, __ATOMIC_RELAXED);
    if (came < TICKS && !paused)
        return CUS_TRIAL_A;
    bool built = now && since(now->built, rest.account.built);
    return cus_trial_add(&rest.trial, came, ns, !paused && !built);
}

static void stretch_ended(uint64_t now, unsigned row, uint64_t came) {
    uint64_t ns = now - rest.began_ns;
    bool rested = cus_rests();
    struct cus_account worked = account();
    /* If graphs save now, the program has come to another phase. */
    bool in_vain = !rested && graphs_save(&worked, ns);
    switch (in_vain ? CUS_TRIAL_A : judge(rested ? NULL : &worked, ns, came)) {
    case CUS_TRIAL_B:
        want_rest(now, row, true);
        break;
    case CUS_TRIAL_A:
        look_again(now, row, rest.pause_ns);
        rest.pause_ns = rest.pause_ns * 2 < pause_most ? rest.pause_ns * 2 : pause_most;
        rest.rest_ns = rest_least;
        break;
    default:
        if (rested) {
            cus_rest_end();
            try_on(now, row);
        } else {
            want_rest(now, row, false);
        }
    }
}

static void turn_over(uint64_t now, unsigned row) {
    uint64_t came = __atomic_load_n(&seen.ticks, __ATOMIC_RELAXED) - rest.ticks;
    switch (rest.phase) {
    case TRIES:
        stretch_ended(now, row, came);
        break;
    case BEGINS:
        begin_rest(now, row);
        break;
    case RESTS:
        cus_rest_end();
        rest.trial = (struct cus_trial){0};
        try_on(now, row);
        break;
    default:
        if (rest.began_ns && is_worth_a_trial(now - rest.began_ns, came)) {
            rest.trial = (struct cus_trial){0};
            try_on(now, row);
        } else {
            look_again(now, row, look_ns);
        }
    }
}

void cus_rest_op(struct cus_engine *engine) {
    uint64_t now = cus_clock_ns(), until = __atomic_load_n(&seen.until_ns, __ATOMIC_RELAXED);
    if (until && now > until + look_ns && cus_lock_try(&turn)) {
        look_again(now, rest.row, look_ns);
        cus_lock_give(&turn);
    }
    if (cus_rests())
        leave_alone(engine);
}

static void rest_by_number(uint64_t number) {
    if ((number & every) != every || !cus_lock_try(&turn))
        return;
    if (cus_rests())
        cus_rest_end();
    else
        cus_rest_begin();
    cus_lock_give(&turn);
}

bool cus_engine_tick(unsigned row) {
    if (!may_rest)
        return false;
    uint64_t number = __atomic_add_fetch(&seen.ticks, 1, __ATOMIC_RELAXED);
    if (every) {
        rest_by_number(number);
        return cus_rests();
    }
    uint64_t now = cus_clock_ns(), last = __atomic_load_n(&seen.last_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&seen.last_ns, now, __ATOMIC_RELAXED);
    if (now > last + stretch_ns / 2)
        __atomic_store_n(&seen.paused, true, __ATOMIC_RELAXED);
    uint64_t until = __atomic_load_n(&seen.until_ns, __ATOMIC_RELAXED);
    if (now >= until && cus_lock_try(&turn)) {
        if (until == __atomic_load_n(&seen.until_ns, __ATOMIC_RELAXED) &&
            (row == rest.row || now >= until + stretch_ns))
            turn_over(now, row);
        cus_lock_give(&turn);
    }
    return cus_rests();
}
