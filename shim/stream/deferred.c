/*
 * Issues what an engine defers: op by op, or as the segment's graph. The watchdog, or the thread
 * that completes a segment or flushes, calls this file with the engine's lock held and the engine's
 * context current. The file calls the driver and never takes another engine's lock. A segment that
 * was submitted (submit.h) is issued before anything else here.
 */
#include <string.h>

#include "shim/base/cancel.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/graph/issue.h"
#include "shim/graph/relax.h"
#include "shim/plan/branches.h"
#include "shim/stream/branches.h"
#include "shim/stream/building.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/deferred.h"
#include "shim/stream/events.h"
#include "shim/stream/fallback.h"
#include "shim/stream/graphs.h"
#include "shim/stream/live.h"
#include "shim/stream/news.h"
#include "shim/stream/pools.h"
#include "shim/stream/priority.h"
#include "shim/stream/room.h"
#include "shim/stream/trace.h"
#include "shim/stream/virtual.h"
#include "shim/stream/why.h"

/* Nothing is deferred or submitted any more: a thread that looks at `pending` need not wait. */
static void nothing_pends(struct cus_engine *engine) {
    bool was = engine->pending;
    if (was && engine->blocking && !engine->legacy)
        __atomic_sub_fetch(&engine->context->blocking_pending, 1, __ATOMIC_ACQ_REL);
    cus_events_issue(engine, engine->records.deferred);
    __atomic_store_n(&engine->pending, 0, __ATOMIC_RELEASE);
    if (was)
        __atomic_sub_fetch(cus_group_pending(engine), 1, __ATOMIC_RELEASE);
}

static void turn_ended(struct cus_engine *engine) {
    cus_build_allow(engine);
    engine->counters.steps++;
    engine->counters.breaks[CUS_BREAK_LOOP]++;
    cus_step_covered(engine);
}

static void note_late(struct cus_engine *engine, CUresult result) {
    if (result == CUDA_SUCCESS)
        return;
    cus_engine_late(engine, result);
    cus_fallback(CUS_FALLBACK_LATE_ERROR);
    CUS_LOG_ONCE(CUS_WARN, "stream", "a deferred op failed with error %d when it was issued",
                 (int)result);
}

/* The same of an op of a branch: the program may wait for either stream. */
static void note_late_of(struct cus_engine *home, const struct cus_kind *kind, CUresult result) {
    note_late(home, result);
    if (kind->branch && result != CUDA_SUCCESS)
        cus_engine_late(cus_branch_engine(home, kind->branch), result);
}

/* Sets a bit for each record among the first `n` ops for which a later one of them waits. */
static void find_waited(const struct cus_segment *segment, uint32_t n,
                        uint64_t waited[CUS_SEGMENT_MAX / 64]) {
    memset(waited, 0, (segment->n + 63) / 64 * sizeof *waited);
    for (uint32_t i = 0; segment->branches && i < n; i++) {
        uint32_t record = cus_branches_record(segment->places[i].kind, i);
        if (record != CUS_NO_OP)
            waited[record / 64] |= (uint64_t)1 << record % 64;
    }
}

/* Issues the deferred ops [0, n). Returns the last op's result; errors of the others are noted. */
static CUresult issue_all(struct cus_engine *engine, uint32_t n) {
    CUresult result = CUDA_SUCCESS;
    const struct cus_kind *kind = engine->view.segment->places[0].kind;
    uint64_t waited[CUS_SEGMENT_MAX / 64];
    find_waited(engine->view.segment, n, waited);
    for (uint32_t i = 0; i < n; i++) {
        if (cus_plan_superseded(cus_engine_plan(engine), i) && !(waited[i / 64] >> i % 64 & 1))
            continue;
        note_late_of(engine, kind, result);
        kind = engine->view.segment->places[i].kind;
        result = cus_issue(cus_process.driver, kind, cus_plan_values(cus_engine_plan(engine), i),
                           cus_branch_stream(engine, kind->branch));
    }
    return result;
}

/* Makes frees that were deferred behind ops which are issued now. */
static void make_frees(struct cus_engine *engine, struct cus_frees *frees) {
    const struct cus_driver *driver = cus_process.driver;
    if (!frees->n)
        return;
    struct cus_relaxed relaxed = cus_relax(driver);
    for (uint32_t i = 0; i < frees->n; i++) {
        if (engine->shadow)
            cus_engine_memory_going(frees->of[i].address);
        cus_exec_memory_goes();
        note_late(engine, driver->cuMemFreeAsync(frees->of[i].address, engine->handle));
    }
    cus_relax_end(driver, relaxed);
    cus_pools_made(frees->n);
    frees->n = 0;
}

/* Makes the frees that are deferred behind the ops issued last. */
static void free_behind(struct cus_engine *engine) {
    cus_pools_settle(engine);
    make_frees(engine, &engine->frees);
}

/* ---- the submitted segment ---- */

/* Issues the ops of a segment that the submit thread could not launch. It was counted as launched,
 * so the counters are corrected. */
static void issue_submitted(struct cus_engine *engine) {
    struct cus_submit *submit = &engine->submit;
    struct cus_variant *variant = submit->variant;
    const struct cus_segment *segment = variant->segment;
    bool refused = submit->refused < segment->n;
    cus_fallback(refused ? CUS_FALLBACK_SETPARAMS : CUS_FALLBACK_GRAPH_LAUNCH);
    for (uint32_t i = 0; i < segment->n; i++)
        note_late_of(engine, segment->places[i].kind,
                     cus_issue(cus_process.driver, segment->places[i].kind,
                               cus_image_op(variant->image, segment, i),
                               cus_branch_stream(engine, segment->places[i].kind->branch)));
    cus_tally_cut(segment->places[refused ? submit->refused : 0].kind->tally, CUS_WHY_REFUSED,
                  segment->n);
    cus_plan_unlaunched(variant);
    engine->counters.graph_launches--;
    engine->counters.submitted--;
    engine->counters.in_graphs -= segment->n;
    engine->counters.records_in_graphs -= segment->records;
    if (engine->cut_at > engine->counters.in_graphs)
        engine->cut_at = engine->counters.in_graphs;
    if (engine->step_graphs > engine->counters.in_graphs)
        engine->step_graphs = engine->counters.in_graphs;
    engine->counters.eager_by[CUS_EAGER_UNSUPPORTED] += segment->n;
    engine->counters.breaks[CUS_BREAK_UNSUPPORTED]++;
    engine->counters.runs++;
}

/* Waits for the submitted segment. If it was not launched, its variant becomes `broken`, and none
 * of its ops is issued yet. */
static enum cus_submit_state take_back(struct cus_engine *engine) {
    struct cus_submit *submit = &engine->submit;
    if (!cus_submit_any(submit))
        return CUS_SUBMIT_NONE;
    cus_submit_wait(submit);
    enum cus_submit_state state = __atomic_load_n(&submit->state, __ATOMIC_ACQUIRE);
    __atomic_store_n(&submit->state, CUS_SUBMIT_NONE, __ATOMIC_RELAXED);
    if (state != CUS_SUBMIT_LAUNCHED) {
        submit->broken = submit->variant;
    } else if (submit->frees.n) {
        note_late(engine, submit->freed);
        cus_pools_made(submit->frees.n);
        submit->frees.n = 0;
    }
    return state;
}

/* Makes sure that all ops of the submitted segment are issued. True: there was a submitted
 * segment. */
static bool finish(struct cus_engine *engine) {
    enum cus_submit_state state = take_back(engine);
    if (state > CUS_SUBMIT_LAUNCHED) {
        issue_submitted(engine);
        make_frees(engine, &engine->submit.frees);
    }
    if (state != CUS_SUBMIT_NONE)
        cus_events_issue(engine, engine->records.submitted);
    return state != CUS_SUBMIT_NONE;
}

/* It is unknown what the node that refused a patch holds now (HAZARDS A28). Returns the node, or 0
 * if the launch failed instead. */
static uint32_t note_refused(struct cus_engine *engine, struct cus_variant *broken) {
    uint32_t refused = engine->submit.refused;
    if (refused == broken->segment->n)
        return 0;
    cus_variant_know(broken, broken->segment, refused, !CUS_HAZARD(A28));
    return refused;
}

/* Tells the plan of a graph that failed. Not while ops of its segment are deferred again: the plan
 * would lose them. */
static void mend(struct cus_engine *engine) {
    struct cus_variant *broken = engine->submit.broken;
    if (!broken || broken->segment == engine->view.segment)
        return;
    engine->submit.broken = NULL;
    note_refused(engine, broken);
    engine->dropping = "the driver refused to launch it, or new arguments";
    cus_plan_failed(cus_engine_plan(engine), broken);
    engine->dropping = NULL;
}

void cus_deferred_drop_exec(void *context, struct cus_exec *exec) {
    struct cus_engine *engine = context;
    int cancel = cus_cancel_off();
    finish(engine);
    cus_cancel_back(cancel);
    if (engine->submit.broken && engine->submit.broken->exec == exec)
        engine->submit.broken = NULL;
    cus_graphs_drop(engine, exec);
}

void cus_deferred_flush(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                        enum cus_cut cut, enum cus_eager counted) {
    struct cus_plan *plan = cus_engine_plan(engine);
    if (!engine->view.segment) {
        cus_deferred_settle(engine);
        return;
    }
    uint32_t n = engine->view.n;
    int cancel = cus_cancel_off();
    finish(engine);
    note_late(engine, issue_all(engine, n));
    free_behind(engine);
    cus_cancel_back(cancel);
    cus_trace_flush(engine, n, cus_trace_cause(cause), reason);
    engine->counters.eager_by[counted] += n;
    engine->counters.flushes[cause] += n > 0;
    engine->counters.cut_ops[cause] += n;
    engine->counters.cuts[cause] += n > 0;
    engine->cut_at = engine->counters.in_graphs;
    engine->counters.breaks[reason]++;
    engine->counters.runs++;
    if (cus_plan_end(plan, (struct cus_outcome){.ended = CUS_ENDED_CUT, .cut = cut}))
        turn_ended(engine);
    mend(engine);
    nothing_pends(engine);
    /* What an op cut is said where it is counted under the op (offer.c). */
    if (n && cause != CUS_CAUSE_RULE && cause != CUS_CAUSE_DIVERGED &&
        cause != CUS_CAUSE_UNSUPPORTED)
        cus_news_ended(cause, engine->counters.cuts[cause], n);
}

void cus_deferred_settle(struct cus_engine *engine) {
    if (!engine->pending)
        return;
    int cancel = cus_cancel_off();
    finish(engine);
    mend(engine);
    if (!engine->view.segment) {
        free_behind(engine);
        nothing_pends(engine);
    }
    cus_cancel_back(cancel);
}

/* The context is dead, so its frees can no longer be made. */
static void lose_frees(struct cus_engine *engine, struct cus_frees *frees) {
    if (frees->n)
        note_late(engine, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    cus_pools_made(frees->n);
    frees->n = 0;
}

void cus_deferred_lose(struct cus_engine *engine) {
    struct cus_plan *plan = cus_engine_plan(engine);
    int cancel = cus_cancel_off();
    if (take_back(engine) > CUS_SUBMIT_LAUNCHED) /* the segment stays counted as launched */
        note_late(engine, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    cus_cancel_back(cancel);
    cus_pools_settle(engine);
    lose_frees(engine, &engine->submit.frees);
    lose_frees(engine, &engine->frees);
    mend(engine);
    if (!engine->view.segment) {
        nothing_pends(engine);
        return;
    }
    note_late(engine, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    cus_trace_flush(engine, engine->view.n, cus_why_key(CUS_WHY_LOST), CUS_BREAK_OTHER_STREAM);
    engine->counters.eager_by[CUS_EAGER_FLUSHED] += engine->view.n;
    cus_tally_cut(&cus_tally_none, CUS_WHY_LOST, engine->view.n);
    cus_plan_end(plan, (struct cus_outcome){.ended = CUS_ENDED_CUT, .cut = CUS_CUT_REFUSED});
    mend(engine);
    nothing_pends(engine);
}

/* ---- launching a complete segment ---- */

static uint32_t first_memset(const struct cus_segment *segment) {
    uint32_t i = 0;
    while (i + 1 < segment->n && segment->places[i].kind->type != CUS_OP_MEMSET)
        i++;
    return i;
}

/* False: node `*refused` refused its patch, and what it holds is unknown now (HAZARDS A28); or it
 * may not be launched (HAZARDS A32). */
static bool patch_nodes(struct cus_engine *engine, struct cus_variant *variant,
                        struct cus_relaxed *relaxed, uint32_t *refused) {
    struct cus_plan *plan = cus_engine_plan(engine);
    for (uint32_t i = 0; (i = cus_plan_next_dirty(plan, i)) < engine->view.segment->n; i++) {
        const struct cus_kind *kind = engine->view.segment->places[i].kind;
        const struct cus_values *values = cus_plan_values(plan, i);
        if (cus_plan_reshapes(plan, i))
            cus_tally_reshaped(kind->tally);
        if (!relaxed->exchanged && !cus_exec_is_read(variant->exec, i))
            *relaxed = cus_relax(cus_process.driver);
        CUresult result = cus_exec_patch(cus_process.driver, engine->context->handle, variant->exec,
                                         i, kind, values);
        if (result != CUDA_SUCCESS) {
            cus_plan_patched(plan, variant, i, false);
            *refused = i;
            return false;
        }
        cus_plan_patched(plan, variant, i, true);
        engine->counters.patched_nodes += cus_exec_has_node(variant->exec, i);
    }
    /* Last, so that this node alone is unknown: it is the one that is to be left out. */
    if (cus_exec_is_stale(variant->exec)) {
        *refused = first_memset(engine->view.segment);
        cus_plan_patched(plan, variant, *refused, false);
        return false;
    }
    return true;
}

static bool patch(struct cus_engine *engine, struct cus_variant *variant, uint32_t *refused) {
    struct cus_relaxed relaxed = {.exchanged = false};
    bool patched = patch_nodes(engine, variant, &relaxed, refused);
    cus_relax_end(cus_process.driver, relaxed);
    return patched;
}

/* Why a segment has no graph. REFUSED: the driver refused it. LATER: it may not be built now.
 * NO_ROOM: there is no memory for it. */
enum put_off { REFUSED, LATER, NO_ROOM };

/* Counts a complete segment whose ops were issued one by one, under the kernel of node `culprit`.
 * True: a turn of a loop ended with it. */
static bool fired_eagerly(struct cus_engine *engine, struct cus_variant *broken,
                          enum put_off put_off, enum cus_eager counted, enum cus_why why,
                          uint32_t culprit) {
    struct cus_plan *plan = cus_engine_plan(engine);
    cus_trace_flush(engine, engine->view.n, cus_why_key(why), CUS_BREAK_UNSUPPORTED);
    struct cus_tally *tally = engine->view.segment->places[culprit].kind->tally;
    cus_tally_cut(tally, why, engine->view.n);
    cus_news_cut(tally, why, engine->view.n);
    engine->cut_at = engine->counters.in_graphs;
    engine->counters.eager_by[counted] += engine->view.n;
    engine->counters.breaks[CUS_BREAK_UNSUPPORTED]++;
    engine->counters.runs++;
    engine->counters.sig_missed++;
    struct cus_outcome outcome = {.cut = CUS_CUT_REFUSED, .variant = broken};
    outcome.ended = put_off == LATER     ? CUS_ENDED_CUT
                    : put_off == NO_ROOM ? CUS_ENDED_NO_ROOM
                                         : CUS_ENDED_REFUSED;
    return cus_plan_end(plan, outcome);
}

/* Issues the complete segment op by op. Returns the result of the last op, whose call this is. */
static CUresult fire_eagerly(struct cus_engine *engine, struct cus_variant *broken,
                             enum put_off put_off, enum cus_eager counted, enum cus_why why,
                             uint32_t culprit, bool *turned) {
    CUresult result = issue_all(engine, engine->view.n);
    *turned = fired_eagerly(engine, broken, put_off, counted, why, culprit);
    return result;
}

/* Builds the segment's graph if the step's build quota, the driver's room and other threads allow
 * it. One thread builds at a time, and none while the driver may make it wait (HAZARDS A16, G5). */
static struct cus_variant *build_if_allowed(struct cus_engine *engine, enum put_off *put_off) {
    *put_off = LATER;
    const struct cus_segment *segment = engine->view.segment;
    if (!cus_build_fits(engine, segment->n, segment->advised) ||
        !cus_lock_try(&cus_process.build_lock))
        return NULL;
    struct cus_variant *variant = NULL;
    if (cus_room_for(engine, segment->n)) {
        cus_room_take(engine, segment->n);
        bool no_room, has_priority = cus_build_takes_priority(segment->n);
        uint64_t before = engine->counters.build_ns;
        variant = cus_graphs_build(engine, &no_room);
        cus_build_had_priority(has_priority, segment->n, engine->counters.build_ns - before);
        *put_off = no_room ? NO_ROOM : REFUSED;
    }
    cus_lock_give(&cus_process.build_lock);
    return variant;
}

/* The graph found for the complete segment. */
struct found {
    struct cus_variant *variant; /* NULL: the ops are issued one by one, */
    enum put_off put_off;        /* because of this */
    enum cus_choice choice;
    bool advised, tried, built; /* tried: a build was started; built: it succeeded */
    uint64_t patched, build_ns; /* counters before */
    /* Of a graph that was built: time until the driver began the build, and time up to the
     * launch. */
    uint64_t waited_ns, took_ns;
};

static struct found find_graph(struct cus_engine *engine) {
    struct cus_plan *plan = cus_engine_plan(engine);
    struct found found = {.put_off = REFUSED,
                          .advised = engine->view.segment->advised,
                          .patched = engine->counters.patched_nodes,
                          .build_ns = engine->counters.build_ns};
    found.choice = cus_plan_choose(plan, cus_submit_mostly(&engine->submit), &found.variant);
    if (found.choice != CUS_CHOICE_BUILD)
        return found;
    found.variant = build_if_allowed(engine, &found.put_off);
    found.tried = found.put_off != LATER;
    found.built = found.variant != NULL;
    if (found.built)
        found.waited_ns = cus_exec_waited_ns(found.variant->exec);
    else if ((found.variant = cus_plan_fall_back(plan, !found.tried)))
        found.choice = CUS_CHOICE_PATCH;
    return found;
}

/* Is the program's thread the slow part? True if it takes longer from launch to launch than
 * `submit_ns`; then its segments are submitted. */
static bool is_slow(const struct cus_engine *engine) {
    uint32_t from = cus_options()->submit_ns;
    return from && engine->view.ns_per_op >= from && !cus_check_on() && !cus_recording() &&
           !cus_exec_timed();
}

/* Submits the segment: the submit thread patches and launches its graph, while this thread goes on.
 * From here on the image says what the nodes will hold. False: this thread must launch it. */
static bool hand_over(struct cus_engine *engine, const struct found *found, uint64_t now) {
    struct cus_plan *plan = cus_engine_plan(engine);
    struct cus_submit *submit = &engine->submit;
    /* A real-time thread would wait for a thread that is not real-time. */
    if (cus_thread_self.urgency || !cus_submit_pays(submit) || !cus_submit_claim(engine))
        return false;
    memcpy(submit->shapes, engine->view.reshapes,
           (engine->view.segment->n + 63) / 64 * sizeof *submit->shapes);
    engine->counters.patched_nodes += cus_plan_patched_all(plan, found->variant, submit->nodes);
    engine->counters.submitted++;
    cus_pools_settle(engine);
    struct cus_frees behind = engine->frees; /* those of the last segment are made */
    engine->frees = submit->frees;
    submit->frees = behind;
    engine->records.submitted = engine->records.deferred;
    cus_submit_queue(engine, found->variant, now);
    return true;
}

/* Counts a graph launch that began at `now`, and writes its trace record. `moment`: the same time
 * in trace ticks; 0: nobody records. */
static void launched(struct cus_engine *engine, struct found *found, uint64_t now,
                     uint64_t moment) {
    struct cus_counters *counters = &engine->counters;
    const struct cus_segment *segment = engine->view.segment;
    counters->graph_launches++;
    counters->in_graphs += segment->n;
    counters->records_in_graphs += segment->records;
    cus_branch_launched(engine, segment->branches);
    engine->launched.n = segment->n;
    engine->launched.first = segment->places[0].kind;
    engine->launched.last = segment->places[segment->n - 1].kind;
    __atomic_store_n(&engine->launched.at_ns, now, __ATOMIC_RELAXED);
    if (found->choice == CUS_CHOICE_EXACT)
        counters->sig_exact++;
    else if (found->choice == CUS_CHOICE_PATCH)
        counters->sig_patched++;
    else
        counters->sig_missed++;
    /* A what-if charges a launch with the time in its trace record. */
    uint32_t took = moment ? cus_ticks_since(moment) : 0;
    if (found->built)
        found->took_ns = cus_clock_ns() - now;
    if (moment)
        cus_trace_launch(engine,
                         &(struct cus_trace_of_launch){
                             .began = moment,
                             .took = took,
                             .n = segment->n,
                             .segment = segment->id,
                             .variant = found->variant->number,
                             .patched = (uint32_t)(counters->patched_nodes - found->patched),
                             .choice = found->choice == CUS_CHOICE_EXACT   ? CST_EXACT
                                       : found->choice == CUS_CHOICE_PATCH ? CST_PATCHED
                                                                           : CST_BUILT,
                             .build_ns = counters->build_ns - found->build_ns,
                             .bytes = cus_exec_bytes(found->variant->exec),
                         });
}

/* The segment of `n` ops is issued: takes a build, or the failed try, from the step's build
 * quota. */
static void charge(struct cus_engine *engine, const struct found *found, uint32_t n) {
    uint64_t took = found->took_ns + cus_clock_unseen_ns();
    if (took)
        cus_build_took(engine, n, took, found->waited_ns, found->advised);
    else
        cus_build_failed(engine, n, engine->counters.build_ns - found->build_ns, found->advised);
}

CUresult cus_deferred_fire(struct cus_engine *engine) {
    struct cus_plan *plan = cus_engine_plan(engine);
    uint32_t n = engine->view.segment->n, refused = 0;
    int cancel = cus_cancel_off();
    uint64_t since = __atomic_load_n(&engine->pending_since, __ATOMIC_RELAXED);
    uint64_t moment = cus_recording() ? cus_ticks_now() : 0;
    uint64_t now = cus_clock_ns();
    engine->view.left_ns = now;
    if (cus_virtual.on)
        cus_virtual_ops = n;
    cus_plan_paced(plan, n - 1, now - since);
    if (finish(engine))
        now = cus_clock_ns();
    mend(engine);
    bool slow = is_slow(engine);
    struct cus_variant *broken = engine->submit.broken; /* of this same segment */
    struct found found = broken ? (struct found){.put_off = REFUSED} : find_graph(engine);
    struct cus_variant *variant = found.variant;
    /* The wait ends before the ops are deferred for too long, and is not part of the launch
     * time. */
    uint64_t left = now - since < cus_process.hold_ns ? cus_process.hold_ns - (now - since) : 0;
    if (!found.tried && cus_build_yield(&engine->build_waits, left)) {
        now = cus_clock_ns();
        moment = moment ? cus_ticks_now() : 0;
    }
    enum cus_proof proof = CUS_PROOF_NONE;
    CUresult result = CUDA_SUCCESS;
    bool turned = false, submit = false, may_submit = slow && variant && !found.tried;
    if (variant && engine->shadow)
        cus_check_ready(engine, variant, found.choice == CUS_CHOICE_BUILD);
    if (broken) {
        engine->submit.broken = NULL;
        refused = note_refused(engine, broken);
        result = fire_eagerly(engine, broken, REFUSED, CUS_EAGER_UNSUPPORTED, CUS_WHY_REFUSED,
                              refused, &turned);
    } else if (may_submit && hand_over(engine, &found, now)) {
        submit = true;
        cus_submit_count(&engine->submit, true);
        launched(engine, &found, now, moment);
        turned = cus_plan_end(plan, (struct cus_outcome){.variant = variant});
    } else if (!variant) {
        result =
            fire_eagerly(engine, NULL, found.put_off, CUS_EAGER_OBSERVING,
                         found.put_off == LATER ? CUS_WHY_NOT_YET : CUS_WHY_NOT_BUILT, 0, &turned);
    } else if (!patch(engine, variant, &refused)) {
        cus_fallback(cus_exec_is_stale(variant->exec) ? CUS_FALLBACK_TIMED
                                                      : CUS_FALLBACK_SETPARAMS);
        result = fire_eagerly(engine, variant, REFUSED, CUS_EAGER_UNSUPPORTED, CUS_WHY_REFUSED,
                              refused, &turned);
    } else if (engine->shadow &&
               (proof = cus_check_launch(engine, variant, &result)) == CUS_PROOF_BAD) {
        turned = fired_eagerly(engine, variant, REFUSED, CUS_EAGER_UNSUPPORTED, CUS_WHY_DIFFERS, 0);
    } else if (proof == CUS_PROOF_NONE &&
               cus_exec_launch(cus_process.driver, variant->exec, engine->handle) != CUDA_SUCCESS) {
        /* If a graph launch failed and the context is healthy, nothing was enqueued. Issuing the
         * ops one by one then works, or gives the true error. */
        cus_fallback(CUS_FALLBACK_GRAPH_LAUNCH);
        result = fire_eagerly(engine, variant, REFUSED, CUS_EAGER_UNSUPPORTED, CUS_WHY_REFUSED, 0,
                              &turned);
    } else {
        if (found.choice != CUS_CHOICE_BUILD && proof == CUS_PROOF_NONE &&
            engine->counters.graph_launches % CUS_SAMPLE_EVERY == 0)
            cus_live_sample(&cus_process.graph_samples, cus_clock_ns() - now);
        if (may_submit)
            cus_submit_took(&engine->submit, cus_clock_ns() - now);
        if (!found.tried)
            cus_submit_count(&engine->submit, false);
        launched(engine, &found, now, moment);
        turned = cus_plan_end(plan, (struct cus_outcome){.variant = variant});
    }
    if (found.tried)
        charge(engine, &found, n);
    if (turned) /* the build belongs to the turn that ends */
        turn_ended(engine);
    if (!submit) {
        free_behind(engine);
        nothing_pends(engine);
    }
    cus_cancel_back(cancel);
    return result;
}
