/*
 * Side streams: streams that a thread forks from its stream and joins again. Their ops between the
 * two are ops of a branch of its stream's engine, the home (branches.md). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_BRANCHES_H
#define CUSPLICE_STREAM_BRANCHES_H

#include "shim/stream/call.h"
#include "shim/stream/events.h"

/* ---- what a stream has done ---- */

/* Notes that this thread uses the stream. */
void cus_branch_note_user(struct cus_engine *engine, const struct cus_thread *thread);
/* Moves with each call that gives the stream work by itself, as its home's thread sees it. */
uint64_t cus_branch_moves(const struct cus_engine *engine);
/* Moves with each op of the stream as well. Takes the engine's lock. */
uint64_t cus_branch_position(struct cus_engine *engine);
/* The home waits for all that the stream did up to this position, and the wait is issued. */
void cus_branch_joined(struct cus_engine *engine, struct cus_engine *home, uint64_t position);
/* Did `home` wait for all that the stream has done, and nothing else since? */
bool cus_branch_is_joined(struct cus_engine *engine, const struct cus_engine *home);

/* The first stream waits for the other one, by the program's own call. */
void cus_branch_waited(struct cus_engine *engine, const struct cus_engine *other);
/* The host has seen the end of the home's work. Home's lock held. */
void cus_branch_step_ends(struct cus_engine *home);

/* ---- ops; the home's lock is held ---- */

/* Is the stream still the one that the engine serves, and not another one with its handle (HAZARDS
 * B13)? Takes the engine's lock if one may have gone since the last look. */
bool cus_branch_same(struct cus_engine *engine);
/* May the stream become a branch of the home, as far as one can tell without its lock? Called
 * without a lock. */
bool cus_branch_may_fork(struct cus_engine *engine, struct cus_engine *home);
/* An op on the stream, or (cus_branch_enter_wait) a wait that forks or joins: sets the call's
 * place. False: the op is not one of a branch. */
bool cus_branch_enter(struct cus_engine *home, struct cus_engine *engine, struct cus_call *call);
bool cus_branch_enter_wait(struct cus_engine *home, struct cus_engine *engine,
                           struct cus_call *call);
/* Does the next op on this stream, the home or a side stream, come behind that deferred record of
 * the home, by the forks and joins? Home's lock held. */
bool cus_branch_is_behind(struct cus_engine *home, const struct cus_engine *stream,
                          const struct cus_event_place *record);
/* The stream of the ops of a branch. It waits for what graphs did on the branch: an op is issued
 * there next. */
CUstream cus_branch_stream(struct cus_engine *home, unsigned branch);
/* Graphs with these branches (a bit each) are launched. */
void cus_branch_launched(struct cus_engine *home, unsigned branches);
/* The stream is no branch any more. */
void cus_branch_leave(struct cus_engine *home, struct cus_engine *engine);
/* The same of all the home's branches. Below: the home goes. */
void cus_branch_leave_all(struct cus_engine *home);
void cus_branch_close(struct cus_engine *home);
/* The engine of the stream of a branch. */
static inline struct cus_engine *cus_branch_engine(struct cus_engine *home, unsigned branch) {
    struct cus_engine *engine = home->branches[branch].engine;
    return branch && engine ? engine : home;
}

#endif
