/*
 * Makes room for graphs in the driver's pools: builds graphs of the wanted sizes and destroys them.
 * Called when the host has waited for a stream, on that thread, which then holds the engine's lock
 * and the build lock. Nothing is built while anything runs in the context.
 */
#include "shim/stream/reserve.h"
#include "shim/base/cancel.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/stream/access.h"
#include "shim/stream/fallback.h"
#include "shim/stream/graphs.h"
#include "shim/stream/priority.h"
#include "shim/stream/room.h"
#include "shim/stream/state.h"
#include "shim/stream/streams.h"

enum {
    /* How long a thread waits for other streams to end, in ns, while other threads are held up.
     * After each wait in vain this time doubles, up to SETTLE_MAX_NS. */
    SETTLE_NS = 500000,
    SETTLE_MAX_NS = 16000000,
    RESERVE_NS = 8000000, /* how long room is made at a time, in ns */
    /* The pause before the next try, as a multiple of the time waited: AGAIN after a success,
     * IN_VAIN otherwise, and then at least IN_VAIN_NS. The pause doubles with each failure once the
     * wait is at its longest, up to IN_VAIN_MAX_MS; then trying costs a 500th of the time. */
    AGAIN = 8,
    IN_VAIN = 16,
    IN_VAIN_NS = 2000000,
    IN_VAIN_MAX_MS = 8000
};

/* ---- building and destroying ---- */

/* The kind of kernel with the most params that any graph may hold; NULL: none. */
static const struct cus_kind *largest_kind(const struct cus_plan_view *view) {
    const struct cus_kind *largest = NULL;
    for (const struct cus_segment *segment = view->segments; segment; segment = segment->next) {
        for (uint32_t i = 0; i < segment->n; i++) {
            const struct cus_kind *kind = segment->places[i].kind;
            if (kind->type == CUS_OP_LAUNCH && !kind->n_attrs && !kind->cooperative &&
                kind->deferrable && __atomic_load_n(&kind->n_shapes, __ATOMIC_ACQUIRE) &&
                (!largest || kind->param_bytes > largest->param_bytes))
                largest = kind;
        }
    }
    return largest;
}

/* Values of a launch that is captured and never issued: the smallest grid, params of zeros. */
static struct cus_values *never_launched(const struct cus_kind *kind) {
    struct cus_values *values = cus_mem_alloc(cus_values_bytes(kind));
    if (!values)
        return NULL;
    for (unsigned i = 0; i < CUS_DIMS; i++)
        values->dims[i] = i < 3 ? kind->cluster[i] + !kind->cluster[i]
                                : __atomic_load_n(&kind->shapes[0][i], __ATOMIC_RELAXED);
    return values;
}

static struct cus_freed reserve(struct cus_engine *engine, const uint32_t *nodes, uint32_t n,
                                uint64_t until_ns) {
    struct cus_exec *made[CUS_WANTED];
    struct cus_freed room = {0, 0};
    const struct cus_kind *kind = largest_kind(&engine->view);
    struct cus_values *values = kind ? never_launched(kind) : NULL;
    uint64_t start = cus_clock_ns();
    int cancel = cus_cancel_off();
    bool going = values && cus_graphs_capture_stream(engine);
    for (uint32_t i = 0; going && i < n && i < CUS_WANTED; i++) {
        bool late = room.graphs && cus_clock_ns() >= until_ns;
        if (late || !cus_room_settle(engine->context, until_ns) || cus_somebody_copies())
            break;
        struct cus_exec_op *ops = cus_mem_alloc(nodes[i] * sizeof *ops);
        enum cus_fallback why = CUS_FALLBACK_NO_MEMORY;
        for (uint32_t k = 0; ops && k < nodes[i]; k++)
            ops[k] = (struct cus_exec_op){(struct cus_kind *)(uintptr_t)kind, values, false};
        going = ops && cus_graphs_fit(room.nodes + nodes[i]) &&
                cus_exec_build(cus_process.driver,
                               (struct cus_exec_target){engine->capture_stream, NULL}, ops,
                               nodes[i], NULL, &made[room.graphs], &why);
        cus_mem_free(ops);
        if (!going && why != CUS_FALLBACK_NO_MEMORY) /* a lack of memory counts itself */
            cus_fallback(why);
        room.graphs += going;
        room.nodes += going ? nodes[i] : 0;
    }
    __atomic_store_n(&cus_process.pools_hold, true, __ATOMIC_RELAXED);
    bool copies = cus_somebody_copies();
    for (uint32_t i = 0; i < room.graphs; i++) {
        if (copies)
            cus_exec_put_off(&engine->dropped, made[i]);
        else
            cus_exec_destroy(cus_process.driver, made[i]);
    }
    if (copies) { /* destroyed later; their room is counted then */
        engine->context->room.graphs = engine->context->room.nodes = 0;
        room = (struct cus_freed){0, 0};
    }
    cus_cancel_back(cancel);
    cus_mem_free(values);
    engine->counters.build_ns += cus_clock_ns() - start;
    engine->built_nodes += room.nodes; /* the stream's account is charged */
    return room;
}

/* ---- when ---- */

/* The room made existed all at once, beside the living graphs. Room that was free before is part of
 * it, so the larger number holds. */
static void hold_room(struct cus_room *room, struct cus_freed made, bool had_stream) {
    room->graphs -= !had_stream && room->graphs; /* the capture stream may have taken one */
    room->graphs = made.graphs > room->graphs ? made.graphs : room->graphs;
    room->nodes = made.nodes > room->nodes ? made.nodes : room->nodes;
}

/* Sets when room is made again and how long to wait then. If the wait failed, the next wait is
 * longer. If nothing ran but no room was made, no known kernel can fill the graphs, so the pause
 * doubles. */
static void plan_next(struct cus_wanted *wanted, bool settled, bool made, uint64_t waited_ns,
                      uint64_t now) {
    uint64_t most = IN_VAIN_MAX_MS * UINT64_C(1000000);
    uint64_t pause = waited_ns * (made ? AGAIN : IN_VAIN);
    if (!made && (settled || wanted->settle == SETTLE_MAX_NS) && pause < wanted->pause * 2)
        pause = wanted->pause * 2;
    if (!made && pause < IN_VAIN_NS)
        pause = IN_VAIN_NS;
    if (made && wanted->settle > SETTLE_NS)
        wanted->settle /= 2;
    if (!settled && wanted->settle < SETTLE_MAX_NS)
        wanted->settle *= 2;
    __atomic_store_n(&wanted->n, 0, __ATOMIC_RELAXED);
    wanted->pause = pause < most ? pause : most;
    wanted->retry = now + wanted->pause;
}

/* Build lock and engine's lock held. */
static void make_room(struct cus_engine *engine) {
    struct cus_context *context = engine->context;
    struct cus_wanted *wanted = &context->wanted;
    uint64_t began = cus_clock_ns();
    if (began < wanted->retry)
        return;
    wanted->settle += wanted->settle ? 0 : SETTLE_NS;
    /* Other threads are held up soon; otherwise the GPU might never be idle. */
    bool has_priority = cus_build_takes_priority(0);
    bool made = false, settled = cus_room_settle(context, began + wanted->settle);
    uint64_t waited_ns = cus_clock_ns() - began;
    if (settled) {
        bool had_stream = engine->capture_stream != NULL;
        struct cus_freed room =
            reserve(engine, wanted->nodes, wanted->n, cus_clock_ns() + RESERVE_NS);
        hold_room(&context->room, room, had_stream);
        made = room.graphs > 0;
    }
    uint64_t now = cus_clock_ns();
    cus_build_had_priority(has_priority, 0, now - began);
    plan_next(wanted, settled, made, waited_ns, now);
}

/* The thread is not cancelled here, because it holds locks and the program's call is over. */
void cus_room_waited(struct cus_engine *engine) {
    bool pushed;
    uint32_t wanted = __atomic_load_n(&engine->context->wanted.n, __ATOMIC_RELAXED);
    if ((!wanted && !__atomic_load_n(&engine->freed.graphs, __ATOMIC_RELAXED)) ||
        __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) != CUS_DEFER ||
        __atomic_load_n(&cus_process.copiers, __ATOMIC_ACQUIRE) || !cus_lock_try(&engine->lock))
        return;
    int cancel = cus_cancel_off();
    if (!engine->closed && !engine->pending && !cus_program_captures(engine->context) &&
        cus_context_enter(engine->context->handle, &pushed)) {
        if (cus_lock_try(&cus_process.build_lock)) {
            cus_room_look_at_program(&engine->context->room);
            if (engine->freed.graphs && cus_room_complete(engine))
                cus_room_take_freed(engine);
            if (engine->context->wanted.n)
                make_room(engine);
            cus_lock_give(&cus_process.build_lock);
        }
        cus_context_leave(pushed);
    }
    cus_engine_unlock(engine);
    cus_cancel_back(cancel);
}
