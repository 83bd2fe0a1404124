#include "tests/unit/stream/engines.h"

#include "shim/stream/demotion.h"
#include "shim/stream/state.h"
#include "shim/stream/streams.h"

/* An object serves the next stream where its own has gone. */
static struct cus_engine *last_engine(void) {
    struct cus_engine *last = cus_process.engines[0];
    for (uint32_t i = 1; i < cus_process.n_engines; i++)
        if (cus_process.engines[i]->id > last->id)
            last = cus_process.engines[i];
    return last;
}

uint32_t engines_of(CUstream stream) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < cus_process.n_engines; i++)
        n += !cus_process.engines[i]->closed && cus_process.engines[i]->handle == stream;
    return n;
}

uint32_t last_engine_share(void) {
    return last_engine()->view.build_quota;
}

uint64_t last_engine_steps(void) {
    return last_engine()->counters.steps;
}

uint32_t last_engine_group_pending(void) {
    return __atomic_load_n(cus_group_pending(last_engine()), __ATOMIC_RELAXED);
}

uint32_t last_engine_blocking_pending(void) {
    return __atomic_load_n(&last_engine()->context->blocking_pending, __ATOMIC_RELAXED);
}

uint64_t last_engine_built(void) {
    return last_engine()->building.nodes;
}

uint32_t last_engine_covered(void) {
    return (uint32_t)last_engine()->step_covered;
}

uint64_t last_engine_anew(void) {
    return cus_engine_account(last_engine()).anew;
}

uint64_t last_engine_expects(void) {
    return last_engine()->view.at->kind->stable;
}

bool last_engine_expects_overlap(void) {
    return last_engine()->view.at->kind->pdl;
}

uint32_t last_engine_launched(void) {
    return last_engine()->launched.n;
}

void last_engine_account(uint64_t *ops, uint64_t *in_graphs) {
    struct cus_account account = cus_engine_account(last_engine());
    *ops = account.ops;
    *in_graphs = account.in_graphs;
}

void last_engine_is_waited_for(void) {
    cus_process.engines[cus_process.n_engines - 2]->waited_for = last_engine();
}

void last_engine_waits_for_the_one_before(void) {
    struct cus_engine *last = last_engine(), *before = NULL;
    for (uint32_t i = 0; i < cus_process.n_engines; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (engine != last && (!before || engine->id > before->id))
            before = engine;
    }
    last->waited_for = before;
}

int64_t last_engine_credit(void) {
    return last_engine()->demotion.credit;
}

void last_engine_was_let_pass(uint32_t times) {
    last_engine()->demotion.unpaid = times;
}

struct verdict last_engine_judged(const struct window *window) {
    struct cus_engine *engine = last_engine();
    cus_lock_take(&engine->lock);
    struct cus_counters *counters = &engine->counters;
    counters->ops[CUS_OP_LAUNCH] += window->ops;
    counters->in_graphs += window->in_graphs;
    counters->graph_launches += window->launches;
    counters->patched_nodes += window->patched;
    counters->eager_by[CUS_EAGER_FLUSHED] += window->cut;
    engine->built_nodes += window->built;
    engine->view.built_anew += window->anew;
    engine->view.new_nodes += window->fresh;
    engine->view.warm_ops += window->warm;
    engine->arrived += window->arrived;
    engine->ended += window->steps;
    cus_demotion_decide(engine);
    const struct cus_demotion_state *demotion = &engine->demotion;
    struct verdict verdict = {engine->demoted != 0, demotion->credit, demotion->patience,
                              demotion->window, demotion->sleep};
    cus_engine_unlock(engine);
    return verdict;
}

void last_engine_may_lose(int64_t credit, uint64_t patience) {
    last_engine()->demotion.credit = credit;
    last_engine()->demotion.patience = patience;
}

void last_engine_tried_again(void) {
    last_engine()->demoted = 0;
}

void last_engine_repeats(uint32_t turn) {
    last_engine()->repeat.turn = turn;
    last_engine()->demoted = 0;
    last_engine()->waking = CUS_WAKE_REPEATS;
}

void last_engine_begins_alike(void) {
    last_engine()->demoted = 0;
    last_engine()->waking = CUS_WAKE_HEAD;
}

void process_may_build(bool may) {
    cus_process.may_build = may;
}

bool last_engine_knows_ops(void) {
    return cus_plan_nodes(cus_engine_plan(last_engine())) > 0;
}

uint32_t last_engine_samples(void) {
    const struct cus_repeat_samples *history = last_engine()->repeat.history;
    uint32_t n = 0;
    for (uint32_t i = 0; history && i < CUS_REPEAT_SLOTS; i++)
        n += history->slots[i] != 0;
    return n;
}

void last_engine_spend(uint32_t nodes) {
    last_engine()->building.nodes += nodes;
}

void graphs_hold(int64_t bytes) {
    __atomic_add_fetch(&cus_process.graph_bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
}

void last_engine_room(uint32_t *graphs, uint32_t *nodes) {
    const struct cus_room *room = &last_engine()->context->room;
    *graphs = room->graphs;
    *nodes = room->nodes;
}

uint64_t last_engine_graph_bytes(void) {
    return last_engine()->graph_bytes;
}

void last_engine_set_room(uint32_t graphs, uint32_t nodes) {
    struct cus_room *room = &last_engine()->context->room;
    room->graphs = graphs;
    room->nodes = nodes;
}

void last_engine_wants(uint32_t nodes) {
    struct cus_wanted *wanted = &last_engine()->context->wanted;
    wanted->nodes[0] = nodes;
    wanted->n = 1;
}

uint32_t last_engine_wanted(void) {
    return last_engine()->context->wanted.n;
}

uint64_t last_engine_room_at(void) {
    return last_engine()->context->wanted.retry;
}

uint64_t last_engine_room_waits(void) {
    return last_engine()->context->wanted.settle;
}

uint64_t last_engine_charged(void) {
    return last_engine()->built_nodes;
}

bool room_has_priority(void) {
    return __atomic_load_n(&cus_process.build_now, __ATOMIC_ACQUIRE) & CUS_PRIORITY_ROOM;
}

uint32_t launches_timed(uint32_t *ns) {
    const struct cus_samples *samples = &cus_process.launch_samples;
    *ns = samples->n ? samples->ns[(samples->n - 1) % CUS_SAMPLES] : 0;
    return samples->n;
}

bool repeats_are_believed(const struct repeats *repeats, uint64_t left) {
    static struct cus_engine engine;
    static struct cus_repeat_samples history;
    history.as = repeats->as;
    history.as_before = repeats->as_before;
    engine.repeat.history = &history;
    engine.repeat.turn = 1;
    engine.ignores_repeats = repeats->ignores;
    engine.ignored_repeat = repeats->ignored;
    engine.ignored_until = repeats->until;
    engine.waking = CUS_WAKE_NOT;
    cus_demoted_repeats(&engine, left);
    return engine.waking == CUS_WAKE_REPEATS;
}

uint32_t contexts_known(void) {
    return cus_process.n_contexts;
}

uint32_t contexts_kept(void) {
    uint32_t n = 0;
    for (struct cus_context *context = cus_streams_contexts(); context; context = context->next)
        n++;
    return n;
}

uint32_t untracked_places(void) {
    return CUS_UNTRACKED_MAX;
}

uint32_t untracked_used(void) {
    return cus_process.untracked.n;
}

uint32_t untracked_epoch(void) {
    return cus_process.untracked.epoch;
}

const void *context_object(CUcontext context) {
    return cus_streams_context(context);
}

void context_note_all(CUcontext context) {
    struct cus_context *object = cus_streams_context(context);
    object->hangs = object->pageable = 1;
    object->legacy_attributes = object->gpu_noted = true;
    object->gpu = object->pool_epoch = object->settings = 1;
    object->room = (struct cus_room){.begun = true, .graphs = 1000, .nodes = 1000};
    object->wanted.n = 3;
}

bool context_notes(CUcontext context) {
    const struct cus_context *object = cus_streams_context(context);
    return object->hangs || object->pageable || object->legacy_attributes || object->gpu_noted ||
           object->gpu || object->pool_epoch || object->settings || object->room.begun ||
           object->room.graphs || object->wanted.n;
}
