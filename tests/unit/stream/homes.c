#include "tests/unit/stream/homes.h"

#include "shim/stream/branches.h"
#include "shim/stream/state.h"
#include "shim/stream/streams.h"

static struct cus_engine *engine_of(CUstream stream) {
    struct cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    CUcontext context;
    cus_process.driver->cuCtxGetCurrent(&context);
    return cus_streams_peek(&cus_thread_self, ref, context);
}

struct was {
    struct cus_thread *owner;
    const void *user;
};
/* Home's lock held. Atomic, as other threads look at these. Returns what undoes it. */
#define SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_SEQ_CST)
static struct was move(struct cus_engine *home, struct cus_engine *side, enum moved moved) {
    static const char nobody;
    struct was was = {home->owner, side->user};
    if (moved == MOVED_CLOSED)
        SET(home->closed, true);
    if (moved == MOVED_DEMOTED)
        SET(home->demoted, 1);
    if (moved == MOVED_OWNER)
        SET(home->owner, NULL);
    if (moved == MOVED_CAPTURES) {
        home->context->capturing[0] = home->handle;
        SET(home->context->captures, 1);
    }
    if (moved == MOVED_LEFT)
        SET(side->home, NULL);
    if (moved == MOVED_USER)
        SET(side->user, &nobody);
    if (moved == MOVED_WORKED)
        SET(side->calls, side->calls + 1);
    return was;
}

static void undo(struct cus_engine *home, struct cus_engine *side, enum moved moved,
                 const struct was *was) {
    SET(home->closed, false);
    SET(home->demoted, 0);
    SET(home->owner, was->owner);
    SET(home->context->captures, 0);
    if (moved == MOVED_LEFT)
        SET(side->home, home);
    if (moved == MOVED_USER)
        SET(side->user, was->user);
    if (moved == MOVED_WORKED)
        SET(side->calls, side->calls - 1);
}

/* The call of the library, at the home that has moved. */
static bool ask(bool (*make)(struct cus_engine *, const struct home_call *, struct cus_call *),
                const struct home_call *call, enum moved moved, struct cus_call *made) {
    struct cus_engine *home = engine_of(call->home), *side = engine_of(call->side);
    cus_lock_take(&home->lock);
    struct was was = move(home, side, moved);
    bool is = make(home, call, made);
    undo(home, side, moved, &was);
    cus_lock_give(&home->lock);
    return is;
}

static struct cus_event_place record_of(const struct home_call *call) {
    return (struct cus_event_place){
        .engine = engine_of(call->home), .stream = engine_of(call->of), .ops = call->ops};
}

static bool enter(struct cus_engine *home, const struct home_call *call, struct cus_call *made) {
    return cus_branch_enter(home, engine_of(call->on), made);
}

static bool enter_wait(struct cus_engine *home, const struct home_call *call,
                       struct cus_call *made) {
    struct cus_engine *on = engine_of(call->on);
    made->record_at = record_of(call);
    made->may_fork = call->may_fork;
    made->moves = cus_branch_moves(on);
    made->life = home->life;
    return cus_branch_enter_wait(home, on, made);
}

static bool is_behind(struct cus_engine *home, const struct home_call *call,
                      struct cus_call *made) {
    (void)made;
    struct cus_event_place record = record_of(call);
    return cus_branch_is_behind(home, engine_of(call->on), &record);
}

bool home_enters(const struct home_call *call, enum moved moved) {
    struct cus_call made = {.type = CUS_OP_LAUNCH};
    return ask(enter, call, moved, &made);
}

struct home_place home_waits(const struct home_call *call, enum moved moved) {
    struct cus_call made = {.type = CUS_OP_WAIT};
    bool is = ask(enter_wait, call, moved, &made);
    const struct cus_place_of_op *at = &made.place;
    return (struct home_place){is, at->branch, at->from, at->back, at->goes_on};
}

bool home_is_behind(const struct home_call *call, enum moved moved) {
    struct cus_call made = {.type = CUS_OP_RECORD};
    return ask(is_behind, call, moved, &made);
}

uint64_t home_ops(CUstream home) {
    return cus_engine_ops(engine_of(home));
}

unsigned home_longest(void) {
    return CUS_SEGMENT_MAX;
}

bool home_has_open(CUstream home, CUstream side) {
    const struct cus_engine *at = engine_of(home), *of = engine_of(side);
    for (unsigned b = 1; b <= CUS_BRANCHES; b++)
        if (at->branches[b].engine == of)
            return at->branches[b].open;
    return false;
}

void home_demote(CUstream stream, uint64_t ops) {
    __atomic_store_n(&engine_of(stream)->demoted, ops, __ATOMIC_RELAXED);
}

void home_pass(CUstream stream, unsigned type, int n) {
    __atomic_add_fetch(&engine_of(stream)->passed[type], (uint64_t)n, __ATOMIC_RELAXED);
}

void home_copies(bool on) {
    __atomic_store_n(&cus_process.copiers, on, __ATOMIC_RELEASE);
}

void home_position(CUstream stream) {
    cus_branch_position(engine_of(stream));
}

void home_same(CUstream stream) {
    cus_branch_same(engine_of(stream));
}
