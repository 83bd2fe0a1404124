/* Shows a test the inside of the engine of the newest stream. */
#ifndef CUSPLICE_TESTS_UNIT_STREAM_ENGINES_H
#define CUSPLICE_TESTS_UNIT_STREAM_ENGINES_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many engines serve this stream: that of one context. */
uint32_t engines_of(CUstream stream);

/* Nodes of a segment that a step may build as a whole. */
uint32_t last_engine_share(void);
/* Steps and turns that have ended; nodes that were built in the running one. */
uint64_t last_engine_steps(void);
uint64_t last_engine_built(void);
/* The first of its steps of which nearly all ops were in graphs; 0: there was none. */
uint32_t last_engine_covered(void);
/* Streams that defer ops, as those who look for them count: of its group, and blocking ones. */
uint32_t last_engine_group_pending(void);
uint32_t last_engine_blocking_pending(void);
/* Graphs of ops that had one before, as the stream's account has them. */
uint64_t last_engine_anew(void);
/* The kind of the op that is expected next in a segment, as other processes know it. */
uint64_t last_engine_expects(void);
/* May that op begin before the one ahead has ended? */
bool last_engine_expects_overlap(void);
/* Ops of the graph that it launched last; 0: none, or its code went. */
uint32_t last_engine_launched(void);
/* Ops, and ops in graphs, of that account. */
void last_engine_account(uint64_t *ops, uint64_t *in_graphs);

/* The stream that was made before it waits for it; or it waits for that one. */
void last_engine_is_waited_for(void);
void last_engine_waits_for_the_one_before(void);
/* In ns, what its account may lose before it is let pass. */
int64_t last_engine_credit(void);
/* It was let pass so many times before, and never paid meanwhile. */
void last_engine_was_let_pass(uint32_t times);
/* Samples of the order in which its ops came while they passed. */
uint32_t last_engine_samples(void);

/* So many nodes more were built in its running step; graphs hold so many bytes more. */
void last_engine_spend(uint32_t nodes);
void graphs_hold(int64_t bytes);
/* Graphs and nodes for which there is room in its context; the same, set. */
void last_engine_room(uint32_t *graphs, uint32_t *nodes);
void last_engine_set_room(uint32_t graphs, uint32_t nodes);
/* A graph of so many nodes is wanted in its context, for which there is no room. How many are. */
void last_engine_wants(uint32_t nodes);
uint32_t last_engine_wanted(void);
/* In ns: when room is made in its context at the earliest, and how long work is waited for then. */
uint64_t last_engine_room_at(void);
uint64_t last_engine_room_waits(void);
/* Nodes that its account is charged for. */
uint64_t last_engine_charged(void);
/* Bytes of the graphs that its stream has. */
uint64_t last_engine_graph_bytes(void);
/* Do others wait now while room is made? */
bool room_has_priority(void);

/* Launches that were timed, and what the last of them took. */
uint32_t launches_timed(uint32_t *ns);

#ifdef __cplusplus
#define OR_0 = 0 /* a field that a test does not name */
#else
#define OR_0
#endif
/* What came since its account was judged last; the account may be judged. Counts are of ops, but
 * for `launches` and `anew` (graphs), `patched` and `built` (nodes), and `steps`. */
struct window {
    uint64_t ops OR_0, in_graphs OR_0, launches OR_0, patched OR_0, built OR_0, anew OR_0,
        fresh OR_0, warm OR_0, cut OR_0, arrived OR_0, steps OR_0;
};
struct verdict {
    bool passes;             /* the stream is let pass */
    int64_t credit;          /* ns */
    uint64_t patience, next; /* ops; `next`: until its account is judged again */
    uint64_t sleep;          /* ops that pass; 0: it is not let pass, or it paid since */
};
struct verdict last_engine_judged(const struct window *window);
/* What it may lose from now on. */
void last_engine_may_lose(int64_t credit, uint64_t patience);
/* It is tried again: its time to pass is over, its ops repeat with such a turn, or a step begins
 * like one that paid. */
void last_engine_tried_again(void);
void last_engine_repeats(uint32_t turn);
void last_engine_begins_alike(void);
/* May graphs be built in this process? */
void process_may_build(bool may);
/* Does it keep what it learned? */
bool last_engine_knows_ops(void);

/* What a stream that is let pass knows of repeats. */
struct repeats {
    uint64_t as, as_before; /* what the last two windows of ops were like; 0: unknown */
    bool ignores;           /* a repeat did not lead to graphs that paid: */
    uint64_t ignored;       /* this one, */
    uint64_t until;         /* and others until so many ops are left */
};
/* `left`: ops that still pass. Is the repeat that was just found believed? */
bool repeats_are_believed(const struct repeats *repeats, uint64_t left);

/* Contexts that are known; objects that serve them, or will serve the next ones. */
uint32_t contexts_known(void);
uint32_t contexts_kept(void);
/* Places of the table of untracked streams; those in use. */
uint32_t untracked_places(void);
uint32_t untracked_used(void);
/* Moves when one goes: then each thread notes its work anew. */
uint32_t untracked_epoch(void);
/* The object of a context; what is noted in it of context and GPU: set, or is any of it left? */
const void *context_object(CUcontext context);
void context_note_all(CUcontext context);
bool context_notes(CUcontext context);

#ifdef __cplusplus
}
#endif

#endif
