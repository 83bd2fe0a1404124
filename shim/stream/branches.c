/*
 * Which streams are branches of another one's engine, and when they may be. Runs on program threads
 * inside hooks, and on the watchdog where a home is flushed. The home's lock guards its branches.
 * The lock here is innermost; no other engine's lock is taken under a home's. Calls the driver to
 * make a branch's event, and to make a stream wait for it.
 */
#include "shim/stream/branches.h"

#include "shim/base/hazard.h"
#include "shim/stream/access.h"
#include "shim/stream/fallback.h"
#include "shim/stream/streams.h"

static struct cus_lock joined_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static const char many_threads; /* its address is the user of a stream that several threads use */

/* ---- what a stream has done ---- */

void cus_branch_note_user(struct cus_engine *engine, const struct cus_thread *thread) {
    const void *user = NULL;
    if (!__atomic_compare_exchange_n(&engine->user, &user, thread, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST) &&
        user != thread)
        __atomic_store_n(&engine->user, &many_threads, __ATOMIC_SEQ_CST);
}

static bool is_mine(const struct cus_engine *engine) {
    return __atomic_load_n(&engine->user, __ATOMIC_SEQ_CST) == &cus_thread_self;
}

uint64_t cus_branch_moves(const struct cus_engine *engine) {
    uint64_t moves = __atomic_load_n(&engine->calls, __ATOMIC_SEQ_CST);
    for (unsigned type = 0; type < CUS_OP_TYPES; type++)
        moves += __atomic_load_n(&engine->passed[type], __ATOMIC_RELAXED);
    return moves;
}

uint64_t cus_branch_position(struct cus_engine *engine) {
    cus_lock_take(&engine->lock);
    uint64_t position =
        cus_engine_ops(engine) + __atomic_load_n(&engine->calls, __ATOMIC_RELAXED) + 1;
    cus_lock_give(&engine->lock);
    return position;
}

void cus_branch_joined(struct cus_engine *engine, struct cus_engine *home, uint64_t position) {
    cus_lock_take(&joined_lock);
    engine->joined = (struct cus_join){
        .home = home,
        .life = home ? __atomic_load_n(&home->life, __ATOMIC_RELAXED) : 0,
        .position = position,
    };
    cus_lock_give(&joined_lock);
}

bool cus_branch_is_joined(struct cus_engine *engine, const struct cus_engine *home) {
    uint64_t position = cus_branch_position(engine);
    cus_lock_take(&joined_lock);
    bool is = engine->joined.home == home && engine->joined.position == position &&
              engine->joined.life == __atomic_load_n(&home->life, __ATOMIC_RELAXED);
    cus_lock_give(&joined_lock);
    return is;
}

/* ---- which one is the side stream? ----
 *
 * Of two streams that wait for each other in turn, each could be a branch of the other. The one
 * that waits first is the side stream. If it is not joined when the host waits, or when a call
 * names it, the two change places. */

enum { UNJOINED = 3, TURNS = 2 };

/* Work of a blocking stream is tied to the legacy stream, and the home's work must be too. What is
 * behind a fork from the legacy stream itself would be tied to more than the fork. */
static bool ties_fit(const struct cus_engine *engine, const struct cus_engine *home) {
    return !engine->legacy && (!engine->blocking || (home->blocking && !home->legacy));
}

void cus_branch_waited(struct cus_engine *engine, const struct cus_engine *other) {
    if (!engine->legacy && __atomic_load_n(&other->side_of, __ATOMIC_RELAXED) != engine &&
        !__atomic_load_n(&engine->side_of, __ATOMIC_RELAXED))
        __atomic_store_n(&engine->side_of, other, __ATOMIC_RELAXED);
}

static bool is_side(const struct cus_engine *engine, const struct cus_engine *home) {
    return __atomic_load_n(&engine->side_of, __ATOMIC_RELAXED) == home &&
           __atomic_load_n(&engine->turned, __ATOMIC_RELAXED) <= TURNS;
}

static void not_joined(struct cus_engine *home, struct cus_engine *engine) {
    if (__atomic_add_fetch(&engine->unjoined, 1, __ATOMIC_RELAXED) < UNJOINED)
        return;
    __atomic_store_n(&engine->unjoined, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->turned, 1, __ATOMIC_RELAXED);
    if (!ties_fit(home, engine)) /* tried a few times more as it is */
        return;
    __atomic_store_n(&engine->side_of, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&home->side_of, engine, __ATOMIC_RELAXED);
    __atomic_add_fetch(&home->turned, 1, __ATOMIC_RELAXED);
}

/* Does it have work that is not joined? Not if it waits for a record of the home, and has had no op
 * since. Its work before the fork is joined, so all that comes behind the home is behind it. */
static bool is_apart(const struct cus_branch *branch) {
    return branch->open && branch->at != branch->bare;
}

void cus_branch_step_ends(struct cus_engine *home) {
    for (unsigned b = 1; b <= CUS_BRANCHES; b++)
        if (is_apart(&home->branches[b]))
            not_joined(home, home->branches[b].engine);
}

/* ---- may a stream be a branch? ---- */

/* A stream that captures is asked nothing but whether it does (HAZARDS D7). */
static bool may_ask(const struct cus_engine *engine) {
    CUstreamCaptureStatus status;
    return !cus_program_captures(engine->context) &&
           cus_process.driver->cuStreamIsCapturing(engine->handle, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A node has the priority of the stream that the graph is captured on. */
static bool priorities_fit(const struct cus_engine *engine, const struct cus_engine *home) {
    int its = 0, homes = 0;
    return cus_process.driver->cuStreamGetPriority(engine->handle, &its) == CUDA_SUCCESS &&
           cus_process.driver->cuStreamGetPriority(home->handle, &homes) == CUDA_SUCCESS &&
           its == homes;
}

static bool has_calls(void) {
    const struct cus_driver *driver = cus_process.driver;
    return driver->cuStreamWaitEvent && driver->cuEventCreate && driver->cuEventDestroy_v2 &&
           driver->cuEventRecord && driver->cuEventRecordWithFlags &&
           driver->cuStreamUpdateCaptureDependencies_v2 &&
           driver->cuGraphExecEventRecordNodeSetEvent;
}

bool cus_branch_same(struct cus_engine *engine) {
    uint32_t epoch = __atomic_load_n(&cus_process.registry_epoch, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&engine->epoch, __ATOMIC_RELAXED) == epoch)
        return true;
    if (!may_ask(engine))
        return false;
    cus_lock_take(&engine->lock);
    bool same = cus_streams_same(engine);
    cus_engine_unlock(engine);
    return same;
}

bool cus_branch_may_fork(struct cus_engine *engine, struct cus_engine *home) {
    if (!is_side(engine, home) || engine->context != home->context || !ties_fit(engine, home) ||
        !is_mine(engine) || !has_calls() ||
        __atomic_load_n(&cus_process.no_branches, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&engine->pending, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&engine->demoted, __ATOMIC_RELAXED))
        return false;
    return (!CUS_HAZARD(B20) || cus_branch_is_joined(engine, home)) && may_ask(engine) &&
           may_ask(home) && priorities_fit(engine, home);
}

/* ---- the home's branches ---- */

static bool is_current(const struct cus_engine *home) {
    return !__atomic_load_n(&home->closed, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&home->demoted, __ATOMIC_RELAXED) &&
           __atomic_load_n(&home->owner, __ATOMIC_RELAXED) == &cus_thread_self &&
           !cus_program_captures(home->context);
}

static struct cus_branch *branch_of(struct cus_engine *home, const struct cus_engine *engine) {
    for (unsigned b = 1; b <= CUS_BRANCHES; b++)
        if (home->branches[b].engine == engine)
            return &home->branches[b];
    return NULL;
}

static bool is_branch(const struct cus_engine *home, const struct cus_engine *engine) {
    return __atomic_load_n(&engine->home, __ATOMIC_SEQ_CST) == home;
}

/* The stream has no work but what its branch had. Another thread that gives it work moves it first,
 * and then looks whether it is a branch. */
static bool is_still(const struct cus_branch *branch) {
    return is_mine(branch->engine) && cus_branch_moves(branch->engine) == branch->moves;
}

/* If the driver refuses the wait, nothing keeps the stream's next work behind the branch: the
 * program gets that error, and nothing is forked any more. */
static void pay(struct cus_branch *branch) {
    CUresult result = CUDA_SUCCESS;
    if (branch->owes && CUS_HAZARD(B19))
        result = cus_process.driver->cuStreamWaitEvent(branch->handle, branch->end, 0);
    branch->owes = false;
    if (result == CUDA_SUCCESS)
        return;
    cus_engine_late(branch->engine, result);
    __atomic_store_n(&cus_process.no_branches, true, __ATOMIC_RELEASE);
    cus_fallback(CUS_FALLBACK_LATE_ERROR);
}

static void end_branch(struct cus_engine *home, struct cus_branch *branch) {
    bool pushed;
    if (!home->buried && cus_context_enter(home->context->handle, &pushed)) {
        pay(branch);
        cus_context_leave(pushed);
    }
    if (is_apart(branch)) {
        cus_branch_joined(branch->engine, NULL, 0);
        not_joined(home, branch->engine);
    }
    branch->open = branch->owes = false;
}

void cus_branch_leave(struct cus_engine *home, struct cus_engine *engine) {
    struct cus_branch *branch = branch_of(home, engine);
    if (!is_branch(home, engine))
        return;
    CUS_CHECK(branch);
    if (branch)
        end_branch(home, branch);
    __atomic_store_n(&engine->home, NULL, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&cus_process.branches, 1, __ATOMIC_RELAXED);
}

static bool is_of_step(const struct cus_engine *home, const struct cus_branch *branch) {
    return branch->engine && branch->step == home->ended;
}

/* The first branch that no stream has had in this step: so the order of forks decides in each step,
 * whichever streams they are. NULL: all are taken, or the stream that has it is not joined. */
static struct cus_branch *take(struct cus_engine *home) {
    for (unsigned b = 1; b <= CUS_BRANCHES; b++) {
        struct cus_branch *branch = &home->branches[b];
        if (is_of_step(home, branch))
            continue;
        if (is_apart(branch))
            return NULL;
        if (branch->engine)
            cus_branch_leave(home, branch->engine);
        return branch;
    }
    return NULL;
}

/* Makes the stream a branch of the home. Nothing is submitted. */
static struct cus_branch *fork_branch(struct cus_engine *home, struct cus_engine *engine,
                                      uint64_t moves) {
    struct cus_branch *branch = branch_of(home, engine);
    if (!branch || !is_of_step(home, branch)) {
        if (branch)
            branch->engine = NULL;
        branch = take(home);
    }
    if (!branch)
        return NULL;
    /* A thread that makes an event while another one sleeps in a copy may sleep too. */
    if (!branch->end &&
        (cus_somebody_copies() ||
         cus_process.driver->cuEventCreate(&branch->end, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS))
        return NULL;
    branch->engine = engine;
    branch->traced_epoch = 0;
    branch->handle = engine->handle;
    branch->moves = moves;
    branch->step = home->ended;
    branch->open = branch->owes = false;
    __atomic_add_fetch(&cus_process.branches, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->home, home, __ATOMIC_SEQ_CST);
    if (is_still(branch))
        return branch;
    cus_branch_leave(home, engine);
    return NULL;
}

/* The branch that the stream has in this step. */
static struct cus_branch *in_this_step(struct cus_engine *home, struct cus_engine *engine) {
    struct cus_branch *branch = branch_of(home, engine);
    if (!branch || is_apart(branch) || is_of_step(home, branch))
        return branch;
    uint64_t moves = branch->moves;
    unsigned b = 1;
    while (is_of_step(home, &home->branches[b])) /* its own is not */
        b++;
    if (branch == &home->branches[b]) {
        branch->step = home->ended;
        return branch;
    }
    cus_branch_leave(home, engine);
    return fork_branch(home, engine, moves);
}

bool cus_branch_enter(struct cus_engine *home, struct cus_engine *engine, struct cus_call *call) {
    struct cus_branch *branch = branch_of(home, engine);
    if (!is_current(home) || !is_branch(home, engine) || !branch || !is_still(branch) ||
        (CUS_HAZARD(B20) && !branch->open))
        return false;
    branch->at = cus_engine_ops(home) + 1;
    call->place = (struct cus_place_of_op){.branch = (uint8_t)(branch - home->branches)};
    return true;
}

/* How many ops before this one the record came, if a segment can have both; 0: it cannot. */
static uint16_t ops_back(const struct cus_engine *home, const struct cus_event_place *record) {
    uint64_t back = record->ops ? cus_engine_ops(home) + 1 - record->ops : 0;
    return back < CUS_SEGMENT_MAX ? (uint16_t)back : 0;
}

bool cus_branch_enter_wait(struct cus_engine *home, struct cus_engine *engine,
                           struct cus_call *call) {
    const struct cus_event_place *record = &call->record_at;
    struct cus_branch *from = NULL, *to = NULL;
    bool goes_on = false;
    if (!is_current(home))
        return false;
    if (record->stream != home) {
        from = branch_of(home, record->stream);
        if (!from || !is_branch(home, record->stream) || !is_still(from))
            return false;
    }
    if (engine != home) {
        /* Another thread may have given the home to a stream that this one is not joined to. */
        bool may_fork =
            call->may_fork && call->life == __atomic_load_n(&home->life, __ATOMIC_RELAXED);
        to = is_branch(home, engine) ? in_this_step(home, engine)
             : may_fork              ? fork_branch(home, engine, call->moves)
                                     : NULL;
        if (!to || !is_still(to))
            return false;
        goes_on = is_apart(to);
        if (!goes_on)
            to->behind = 0;
        if (!from && to->behind < record->ops)
            to->behind = record->ops;
        to->open = true;
        to->at = cus_engine_ops(home) + 1;
        to->bare = goes_on || from ? 0 : to->at;
    } else if (from && from->at == record->ops) {
        from->open = false;
        __atomic_store_n(&from->engine->unjoined, 0, __ATOMIC_RELAXED);
    }
    call->place = (struct cus_place_of_op){
        .branch = to ? (uint8_t)(to - home->branches) : 0,
        .from = from ? (uint8_t)(from - home->branches) : 0,
        .back = ops_back(home, record),
        .goes_on = goes_on,
    };
    return true;
}

bool cus_branch_is_behind(struct cus_engine *home, const struct cus_engine *stream,
                          const struct cus_event_place *record) {
    const struct cus_engine *side = stream == home ? record->stream : stream;
    if (record->engine != home || record->stream == stream)
        return record->engine == home;
    if ((record->stream != home && stream != home) || !is_branch(home, side))
        return false;
    const struct cus_branch *branch = branch_of(home, side);
    if (!branch)
        return false;
    /* A fork is behind what it waits for, and all of a branch that is joined is in front. */
    return side == stream ? branch->open && branch->behind >= record->ops : !is_apart(branch);
}

CUstream cus_branch_stream(struct cus_engine *home, unsigned branch) {
    if (!branch)
        return home->handle;
    pay(&home->branches[branch]);
    return home->branches[branch].handle;
}

void cus_branch_launched(struct cus_engine *home, unsigned branches) {
    for (unsigned b = 1; b <= CUS_BRANCHES; b++)
        if (branches >> b & 1)
            home->branches[b].owes = true;
}

void cus_branch_close(struct cus_engine *home) {
    for (unsigned b = 1; b <= CUS_BRANCHES; b++) {
        struct cus_branch *branch = &home->branches[b];
        if (branch->engine)
            cus_branch_leave(home, branch->engine);
        if (branch->end && !home->buried)
            cus_process.driver->cuEventDestroy_v2(branch->end);
        *branch = (struct cus_branch){.engine = NULL};
    }
}

void cus_branch_leave_all(struct cus_engine *home) {
    for (unsigned b = 1; b <= CUS_BRANCHES; b++)
        if (home->branches[b].engine)
            cus_branch_leave(home, home->branches[b].engine);
}
