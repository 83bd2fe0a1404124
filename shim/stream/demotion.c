/*
 * Demotion: letting the ops of a stream pass where graphs do not pay (HAZARDS F11), and trying
 * again. The account of a stream (plan/account.h) is judged from time to time. If graphs cost more
 * than they save, the library lets ops pass, for longer each time. Two signs end that early: the
 * ops repeat (plan/repeat.h), or a step begins like one whose graphs paid. cus_demotion_decide runs
 * on program threads under the engine's lock, after an op that was issued eagerly. The functions
 * that see passed ops run without a lock and never call the driver.
 * Time without patience divided by time with it (tests/gpu/RESULTS.md, H100): growth of 100 orders
 * 2.42, decode host 1.20; GPT-2 of CTranslate2 0.744, where it costs.
 */
#include "shim/stream/demotion.h"
#include "shim/base/pays.h"
#include "shim/plan/account.h"
#include "shim/stream/news.h"
#include "shim/stream/state.h"
#include "shim/stream/why.h"

enum {
    /* A stream is judged after WINDOW_OPS ops and WINDOW_STEPS steps. If its steps do not end, it
     * is judged after WINDOW_OPS_UNSYNCED ops. A stream whose demotion just ran out is on trial and
     * judged after LOOK_OPS ops. */
    WINDOW_OPS = 4096,
    LOOK_OPS = 1024,
    WINDOW_STEPS = 4,
    WINDOW_OPS_UNSYNCED = 65536,
    /* The ops that a demoted stream lets pass: SLEEP_MIN the first time, then SLEEP_FACTOR times as
     * many each time, up to SLEEP_MAX. */
    SLEEP_MIN = 65536,
    SLEEP_FACTOR = 4,
    SLEEP_MAX = 1 << 24,
    /* After learning that led to no paying graphs, the demotion lasts at least this many times the
     * ops spent on learning. */
    SLEEP_LEARNED = 16,
    /* A demoted stream that repeats but ends no step is tried again after at most this many ops. */
    WAKE_UNSYNCED = 16384,
    /* Patience: ops for which a repeating stream is not demoted, because its graphs are not built
     * yet. It lasts at least until every op came often enough to be built. In a window that pays,
     * each op in a graph uses up PATIENCE_PAID ops of patience. */
    PATIENCE = 262144,
    PATIENCE_PAID = 8,
    /* Where no graphs can come of the ops, each op uses up so many ops of patience; after so many
     * such windows in a row none is left. */
    WASTED = 8,
    WASTED_WINDOWS = 2,
    /* A repeating stream is tried again if the graph budget holds graphs for a fourth of its
     * ops. */
    ROOM_FACTOR = 4,
    /* Credit: what a stream may lose by its account, in ns of host time, before it is demoted.
     *
     * | stream                         | credit                                               |
     * | ------------------------------ | ---------------------------------------------------- |
     * | new                            | CREDIT                                               |
     * | that pays                      | grows with the gain up to CREDIT_PAID, plus the cost |
     * |                                | of building all its graphs once more                 |
     * | tried again because it repeats | CREDIT, halved for each earlier failed try           |
     * | on trial                       | CREDIT / CREDIT_PART, halved likewise                |
     *
     * A loss does not reduce the credit while the share of ops in graphs grows; so a trial can be
     * short. */
    CREDIT = 15000000,
    CREDIT_PAID = 8000000,
    CREDIT_PART = 128,
    HALVED = 6, /* credit and patience are halved at most so often */
    /* The share of ops in graphs grows if it is larger by one in so many ops than in the last
     * window. */
    GROWING = 64,
    /* So many steps of one op in a row: that they repeat means nothing, for no segment has one op.
     */
    SINGLE_STEPS = 16,
    /* After so many demotions of a stream whose step had begun like a paying one, its plan is
     * cleared. */
    HEAD_TRIES = 3,
};

void cus_demotion_start(struct cus_engine *engine) {
    engine->demotion = (struct cus_demotion_state){.credit = CREDIT, .window = WINDOW_OPS};
    engine->demotion.last = cus_engine_account(engine);
    engine->demotion.arrived = engine->arrived;
    __atomic_store_n(&engine->demoted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->left_alone, false, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->waking, CUS_WAKE_NOT, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->ignores_repeats, false, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->head_left, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->n_heads, 0, __ATOMIC_RELAXED);
}

static uint32_t halvings(uint32_t unpaid) {
    if (!CUS_PAYS(PATIENCE_HALVED))
        return 0;
    return unpaid < HALVED ? unpaid : HALVED;
}

/* Atomic stores: a thread that does not know yet that the heads change may be reading them. */
static void note_heads(struct cus_engine *engine) {
    uint64_t heads[CUS_HEADS];
    uint32_t n = cus_plan_heads(cus_engine_plan(engine), heads, CUS_HEADS);
    for (uint32_t i = 0; i < n; i++)
        __atomic_store_n(&engine->heads[i], heads[i], __ATOMIC_RELAXED);
    __atomic_store_n(&engine->n_heads, n, __ATOMIC_RELAXED);
}

/* Demotes the stream. A sign that ended the last demotion early, and did not lead to paying graphs,
 * is not believed again at once. */
static void leave_alone(struct cus_engine *engine) {
    struct cus_demotion_state *demotion = &engine->demotion;
    /* If the stream was on trial, its ops may still repeat: the history of ops is kept. */
    bool goes_on = demotion->woken_by == CUS_WAKE_NOT && engine->repeat.history;
    cus_repeat_passed(&engine->repeat, demotion->last.ops - demotion->left_at);
    demotion->left_at = demotion->last.ops;
    bool ignores_repeats = demotion->woken_by == CUS_WAKE_REPEATS ||
                           (CUS_PAYS(REPEAT) && !goes_on && !cus_repeat_start(&engine->repeat));
    demotion->head_tries += demotion->woken_by == CUS_WAKE_HEAD;
    demotion->unpaid++;
    demotion->woken_by = CUS_WAKE_NOT;
    demotion->window = ignores_repeats ? WINDOW_OPS : LOOK_OPS;
    demotion->credit = (CREDIT / CREDIT_PART) >> halvings(demotion->unpaid - 1);
    demotion->patience = 0;
    demotion->wasted = 0;
    demotion->graph_ratio = 0;
    demotion->in_graphs = 0;
    engine->counters.fallbacks[CUS_FALLBACK_DEMOTED]++;
    if (demotion->head_tries >= HEAD_TRIES) {
        cus_why_keep_segments(engine);
        engine->dropping = "its stream is let pass";
        cus_plan_clear(cus_engine_plan(engine));
        engine->dropping = NULL;
    } else {
        cus_plan_demote(cus_engine_plan(engine));
    }
    note_heads(engine);
    demotion->sleep = demotion->sleep ? demotion->sleep * SLEEP_FACTOR : SLEEP_MIN;
    if (ignores_repeats && demotion->sleep < demotion->learned * SLEEP_LEARNED)
        demotion->sleep = demotion->learned * SLEEP_LEARNED;
    if (demotion->sleep > SLEEP_MAX)
        demotion->sleep = SLEEP_MAX;
    uint64_t closed = demotion->tried * SLEEP_LEARNED;
    __atomic_store_n(&engine->ignored_until,
                     demotion->sleep > closed ? demotion->sleep - closed : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->ignores_repeats, ignores_repeats, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->head_left, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->single_steps, 0, __ATOMIC_RELAXED);
    engine->left_at_step = demotion->sleep;
    __atomic_store_n(&engine->demoted, demotion->sleep, __ATOMIC_RELAXED);
    cus_news_passes(engine, demotion->sleep);
}

/* The window paid. If half of its ops were in graphs, the stream counts as new again. */
static void paid(struct cus_demotion_state *demotion, const struct cus_account *window) {
    uint64_t patience =
        PATIENCE_PAID * window->in_graphs; /* ops that are being learned use up no patience */
    if (CUS_PAYS(PATIENCE_PAID))
        demotion->patience -= patience < demotion->patience ? patience : demotion->patience;
    if (window->in_graphs * 2 < window->ops)
        return;
    demotion->sleep = 0;
    demotion->unpaid = 0;
    demotion->head_tries = 0;
    demotion->woken_by = CUS_WAKE_NOT;
}

static void begin_again(struct cus_engine *engine, enum cus_wake woken_by) {
    struct cus_demotion_state *demotion = &engine->demotion;
    demotion->woken_by = woken_by;
    demotion->patience = 0;
    cus_news_again(engine, woken_by == CUS_WAKE_REPEATS
                               ? "its ops repeat"
                               : "a step begins as those did whose graphs paid");
    if (woken_by == CUS_WAKE_REPEATS) {
        uint32_t before = demotion->unpaid ? demotion->unpaid - 1 : 0;
        uint64_t turns = (uint64_t)cus_options()->warmup + 1;
        uint64_t learning = turns * __atomic_load_n(&engine->repeat.turn, __ATOMIC_RELAXED);
        demotion->patience = PATIENCE >> halvings(before);
        if (demotion->patience < learning)
            demotion->patience = learning;
        demotion->learned = learning;
        demotion->tried = demotion->patience;
        /* `tried` keeps its value in ablation builds, because it sets how long a repeat is not
         * believed. */
        if (!CUS_PAYS(PATIENCE_LEAST))
            demotion->patience = CUS_PAYS(PATIENCE_TURNS) ? learning : 0;
        else if (!CUS_PAYS(PATIENCE_TURNS))
            demotion->patience = PATIENCE >> halvings(before);
        demotion->credit = CREDIT >> halvings(before);
    }
}

/* The most credit that a stream may have. It includes the cost of building all its graphs once
 * more: a program may change its steps once, and that pays back only after the new steps have
 * repeated. */
static int64_t credit_most(struct cus_engine *engine) {
    uint64_t nodes = engine->graph_bytes * 1000 / cus_exec_estimate(1000);
    if (engine->demotion.in_graphs < nodes)
        engine->demotion.in_graphs = nodes;
    return CREDIT_PAID + (int64_t)(engine->demotion.in_graphs * CUS_COST_BUILT +
                                   (uint64_t)engine->view.n_segments * CUS_COST_ANEW);
}

/* Do known ops lead to no graphs? True if at least half of the window's ops were warm, but none was
 * in a graph, none was built, and no build was put off lately. */
static bool wasted(const struct cus_engine *engine, const struct cus_account *window) {
    return CUS_PAYS(PATIENCE_WASTED) && !window->in_graphs && !window->built &&
           window->warm_ops * 2 >= window->ops && !cus_plan_put_off_lately(cus_engine_plan(engine));
}

/* Updates the stream's credit and patience by one window. True: the stream is to be demoted. */
static bool loses(struct cus_engine *engine, const struct cus_account *window, uint64_t arrived,
                  uint64_t steps) {
    struct cus_demotion_state *demotion = &engine->demotion;
    int64_t balance = cus_account_balance(window);
    bool growing = window->in_graphs * GROWING > demotion->graph_ratio * window->ops + window->ops;
    demotion->graph_ratio = window->ops ? window->in_graphs * GROWING / window->ops : 0;
    if (balance >= 0) {
        paid(demotion, window);
        int64_t most = credit_most(engine);
        demotion->credit = demotion->credit + balance < most ? demotion->credit + balance : most;
    } else if (!growing) {
        demotion->credit += balance;
    }
    /* Four cases need neither the account nor patience. `barren`: hardly an op repeats. `in_turn`:
     * the stream's threads come from another stream with every other op, so no op stays deferred
     * for long. `single`: the host waits behind each op. `idle`: segments could have come of the
     * ops, and there is none. */
    bool barren = window->new_ops * 2 >= window->ops && window->in_graphs * 10 < window->ops;
    bool in_turn = arrived * 2 >= window->ops && !window->in_graphs;
    bool single = steps * 2 > window->ops && !window->in_graphs;
    bool none = wasted(engine, window);
    demotion->wasted = none ? demotion->wasted + 1 : 0;
    bool idle = demotion->wasted >= WASTED_WINDOWS && !engine->view.n_segments &&
                cus_process.may_build && !engine->shadow;
    if (!barren && !in_turn && !single && !idle &&
        (demotion->credit >= 0 || !cus_process.may_build || engine->shadow))
        return false;
    if (!demotion->patience || in_turn || single || idle)
        return true;
    /* Ops whose nodes are built in this window cannot have repeated yet. */
    uint64_t built = CUS_PAYS(PATIENCE_BUILT) ? window->built : 0;
    uint64_t spent = window->ops - (built < window->ops ? built : window->ops);
    if (none)
        spent *= WASTED;
    demotion->patience -= spent < demotion->patience ? spent : demotion->patience;
    if (demotion->credit < 0)
        demotion->credit = 0;
    return false;
}

void cus_demotion_decide(struct cus_engine *engine) {
    struct cus_demotion_state *demotion = &engine->demotion;
    uint64_t ops = cus_engine_account(engine).ops - demotion->last.ops;
    if (ops < demotion->window ||
        (engine->ended - demotion->steps < WINDOW_STEPS && ops < WINDOW_OPS_UNSYNCED))
        return;
    struct cus_account now = cus_engine_account(engine);
    struct cus_account window = cus_account_since(now, demotion->last);
    uint64_t arrived = engine->arrived - demotion->arrived;
    uint64_t steps = engine->ended - demotion->steps;
    demotion->last = now;
    demotion->arrived = engine->arrived;
    demotion->steps = engine->ended;
    enum cus_wake woken_by =
        (enum cus_wake)__atomic_exchange_n(&engine->waking, CUS_WAKE_NOT, __ATOMIC_RELAXED);
    if (woken_by)
        begin_again(engine, woken_by);
    /* A stream whose demotion ran out is on trial until it pays. */
    demotion->window = demotion->unpaid && !demotion->woken_by ? LOOK_OPS : WINDOW_OPS;
    bool left = loses(engine, &window, arrived, steps);
    if (left && CUS_HAZARD(F11) && cus_options()->demote)
        leave_alone(engine);
}

/* Do this many ops fit into the launch tree, and enough of them into the graph budget? If not, the
 * library would forget them before they come again. */
static bool has_room(uint32_t ops) {
    uint64_t graphs = (uint64_t)cus_options()->graph_mb << 20;
    return ops <= cus_options()->nodes_max && cus_exec_estimate(ops) / ROOM_FACTOR <= graphs;
}

/* Is the repeat that was just found believed? A repeat that did not lead to paying graphs is not
 * believed again. Another repeat is, once so many ops have passed that another try costs little. */
static bool believed(const struct cus_engine *engine, uint64_t left) {
    if (!__atomic_load_n(&engine->ignores_repeats, __ATOMIC_RELAXED))
        return true;
    uint64_t as = cus_repeat_as(&engine->repeat);
    return as && as != __atomic_load_n(&engine->ignored_repeat, __ATOMIC_RELAXED) &&
           left <= __atomic_load_n(&engine->ignored_until, __ATOMIC_RELAXED);
}

void cus_demoted_repeats(struct cus_engine *engine, uint64_t left) {
    uint32_t turn = __atomic_load_n(&engine->repeat.turn, __ATOMIC_RELAXED);
    if (!believed(engine, left) || !has_room(turn) ||
        __atomic_load_n(&engine->single_steps, __ATOMIC_RELAXED) >= SINGLE_STEPS)
        return;
    __atomic_store_n(&engine->ignored_repeat, cus_repeat_as(&engine->repeat), __ATOMIC_RELAXED);
    __atomic_store_n(&engine->waking, CUS_WAKE_REPEATS, __ATOMIC_RELAXED);
    if (left > WAKE_UNSYNCED)
        __atomic_store_n(&engine->demoted, WAKE_UNSYNCED, __ATOMIC_RELAXED);
}

void cus_demoted_head(struct cus_engine *engine, uint64_t head) {
    uint32_t n = __atomic_load_n(&engine->n_heads, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++)
        if (__atomic_load_n(&engine->heads[i], __ATOMIC_RELAXED) == head)
            __atomic_store_n(&engine->waking, CUS_WAKE_HEAD, __ATOMIC_RELAXED);
}

/* Two waits in a row end one step. Only the owner of the lock changes the count. */
static void count_single(struct cus_engine *engine) {
    uint64_t left = __atomic_load_n(&engine->demoted, __ATOMIC_RELAXED);
    uint64_t ops = engine->left_at_step - left;
    uint32_t n = __atomic_load_n(&engine->single_steps, __ATOMIC_RELAXED);
    engine->left_at_step = left;
    if (ops)
        __atomic_store_n(&engine->single_steps, ops == 1 ? n + (n < SINGLE_STEPS) : 0,
                         __ATOMIC_RELAXED);
}

/* A step of a demoted stream ended. Engine lock held. */
void cus_demoted_step_end(struct cus_engine *engine) {
    count_single(engine);
    if (__atomic_load_n(&engine->waking, __ATOMIC_RELAXED)) {
        __atomic_store_n(&engine->demoted, 0, __ATOMIC_RELAXED);
        return;
    }
    bool some = __atomic_load_n(&engine->n_heads, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->head, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->head_left, some ? CUS_HEAD_OPS : 0, __ATOMIC_RELAXED);
}
