/*
 * The state of the stream engine, by scope: process, context, stream (engine), thread. Private to
 * shim/stream.
 */
#ifndef CUSPLICE_STREAM_STATE_H
#define CUSPLICE_STREAM_STATE_H

#include <string.h>

#include "shim/base/check.h"
#include "shim/base/hash.h"
#include "shim/base/hazard.h"
#include "shim/base/lock.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/pays.h"
#include "shim/base/uthash.h"
#include "shim/graph/exec.h"
#include "shim/plan/account.h"
#include "shim/plan/plan.h"
#include "shim/plan/repeat.h"
#include "shim/stats/learning.h"
#include "shim/stream/engine.h"
#include "shim/stream/kinds.h"
#include "shim/stream/submit.h"
#include "shim/stream/thread.h"

/* Locks, outermost first. No thread holds two engine locks (HAZARDS B5): a thread that must flush
 * another stream does so before it locks its own. No lock of the last row is taken while another
 * lock of that row is held (enum cus_rank in base/lock.h).
 *
 * | lock                                            | guards                               |
 * | ----------------------------------------------- | ------------------------------------ |
 * | engine                                          | one stream's state                   |
 * | context                                         | kinds, captures                      |
 * | registry                                        | which contexts and engines there are |
 * | range, pools, taint, noted, origin, list, build | one table each; room for graphs      |
 *
 * Driver calls under an engine lock only issue, build, patch and launch what that engine defers.
 * The program's own eager calls run without a lock, and so do the launches of the submit thread
 * (submit.h). */

enum {
    CUS_ENGINES_MAX = 4096,
    CUS_KNOWN_FUNC_SLOTS = 1024,
    CUS_KIND_CACHE_SLOTS = 256,
    CUS_WANTED = 32,
    CUS_UNTRACKED_MAX = 32
};

struct cus_context {
    CUcontext handle; /* atomic; NULL: none; the object's own address: it is being cleared */
    struct cus_context *next;
    struct cus_lock lock;
    uint32_t number;                     /* in the order in which contexts were seen, from 1 on */
    struct cus_func *funcs;              /* lock */
    struct cus_kind_entry *memory_kinds; /* lock: of memsets, copies, records */
    uint32_t n_extents;                  /* lock: kinds of 2-D memsets among them */
    uint32_t settings;                   /* lock: how often settings of functions changed */
    struct cus_engine *legacy;           /* atomic: engine of the legacy stream, or NULL */
    uint32_t blocking_pending; /* atomic: blocking streams of this context that defer ops */
    uint32_t captures;      /* atomic: open captures of the program; may be too many (HAZARDS D5) */
    CUstream capturing[16]; /* lock: the streams that capture */
    int hangs;              /* atomic: do graphs hang on this GPU? 0: not asked yet (hangs.c) */
    int pageable; /* atomic: may kernels access pageable memory? 0: not asked yet; 1: no; 2: yes */
    bool legacy_attributes; /* atomic: the program has set attributes of the legacy stream */
    bool gpu_noted;         /* atomic: stats/gpus.h has its GPU */
    uint64_t gpu;           /* atomic: hash of the GPU's model (advice.c); 0: not asked yet */
    /* Build lock: what is free in the driver's pools, so that this library can take it without a
     * wait (room.c). */
    struct cus_room {
        bool begun;
        uint32_t graphs, nodes; /* free graphs and free nodes */
        /* The program's objects (streams and graphs; graphs alone) that are subtracted already. */
        uint32_t program_made, program_graphs;
        uint32_t busy; /* index in engines[] of the stream that was busy when asked last */
    } room;
    /* Lock of pools.c: the device's current pool, valid in `pool_epoch`. */
    struct cus_pool *pool;
    uint32_t pool_epoch;
    /* Build lock: graphs that were not built because there was no room (room.c). */
    struct cus_wanted {
        uint32_t n; /* atomic: read without the build lock as a hint */
        uint32_t nodes[CUS_WANTED];
        /* In ns: the earliest time to make room again, and the pause before it. */
        uint64_t retry, pause;
        /* In ns: how long to wait until nothing runs in the context. */
        uint64_t settle;
    } wanted;
    /* Handles of `funcs`, one per hash slot, for demoted streams. Atomics, written under the lock.
     * A function whose slot another one has taken is looked up in `funcs`. */
    const void *known_funcs[CUS_KNOWN_FUNC_SLOTS];
};

/* Why a demoted stream is tried again before its demotion runs out. */
enum cus_wake { CUS_WAKE_NOT, CUS_WAKE_REPEATS, CUS_WAKE_HEAD };

struct cus_engine {
    /* Fields that each op reads are in the first cache lines. */
    struct cus_lock lock;
    /* Written when the object begins to serve a stream. A thread that found the object as another
     * stream's engine may read these fields without the lock; that thread checks again under the
     * lock. */
    struct cus_context *_Atomic context;
    _Atomic bool legacy, blocking;
    /* Atomic: nothing is deferred here any more. The stream is gone, or the object serves no
     * stream. */
    bool closed;
    uint32_t pending; /* atomic: not 0 while ops are deferred or submitted */
    uint64_t demoted; /* atomic: ops that the demoted stream still lets pass; 0: not demoted */
    uint64_t passed[CUS_OP_TYPES]; /* atomic: passed ops, which no other counter has */
    /* Atomic: error of an op that was issued after its call returned success. */
    CUresult late_error;
    uint32_t head_left;       /* atomic: ops still missing in `head`; 0: no head is being read */
    struct cus_repeat repeat; /* finds repeats among the passed ops */
    uint32_t traced;          /* lock: the stream's number in the trace, valid in `traced_epoch` */

    CUstream handle;
    uint64_t id;            /* cuStreamGetId; 0 if the driver has no such function */
    uint64_t pending_since; /* atomic, ns: since when ops are deferred, the watchdog's wake-up not
                               counted */
    /* Lock: counts how often kinds were dropped. After a call without the lock, the caller sees by
     * this that its kind is gone. */
    uint32_t generation;
    struct cus_thread *owner; /* atomic: thread of the last op */
    /* Atomic, written under that engine's lock: the ops on this stream are ops of a branch of that
     * engine (branches.h); NULL: they are this engine's own. */
    struct cus_engine *home;
    uint64_t cut_at; /* lock: counters.in_graphs when the last run ended (cus_run_ended) */
    /* Registry epoch of the last check that the stream is the same. Atomic, written under the
     * lock. */
    uint32_t epoch;
    uint32_t traced_epoch; /* lock: epoch of `traced` (cus_record_epoch); 0: no number yet */

    struct cus_exec *dropped; /* lock: graphs that the plan dropped and nobody destroyed yet */
    const char *dropping;     /* lock: why the plan drops graphs just now, for the log; NULL: it
                               * forms segments anew */
    struct cus_launched {     /* lock: the last graph, for lost.c; n = 0: none, or its code went */
        uint32_t n;
        uint64_t at_ns; /* atomic */
        const struct cus_kind *first, *last;
    } launched;
    struct cus_submit submit;
    CUstream capture_stream;      /* lock: private, made at the first build */
    bool capture_refused;         /* lock: the stream could not be made, so nothing is built */
    bool buried;                  /* lock: the context is dead and the engine is being closed */
    struct cus_building {         /* lock: builds of the running step (building.c) */
        struct cus_account began; /* the account when the step began */
        uint64_t length;          /* ops of the longest step lately */
        uint64_t ns;              /* time that builds took */
        uint64_t since_ns;        /* when a graph was wanted first; 0: none was */
        uint32_t nodes, advised;  /* nodes built; those of advised graphs apart */
        /* Steps since the last measured build, or since the estimate last moved. */
        uint32_t unmeasured;
    } building;
    uint64_t built_nodes; /* lock: nodes built so far, on all graphs */
    /* Lock: the build that a holder of the lock last waited for. That wait holds up all threads of
     * the stream. */
    struct cus_build_waits build_waits;
    pid_t owner_tid;            /* atomic: of the thread that began the deferred segment */
    struct {                    /* only the watchdog's thread */
        uint64_t at_ns, ran_ns; /* the last look, and what the owner had run; 0: not known */
        uint64_t waited_since;  /* `pending_since` of the segment that got more time */
    } noted;
    bool askable; /* atomic: the stream exists, so it may be asked if it is busy; cleared under the
                     build lock */
    /* Lock: graphs destroyed while the stream may still have been running them. */
    struct cus_freed {
        uint32_t graphs; /* atomic: read without the lock as a hint */
        uint32_t nodes;
    } freed;

    /* Demotion (demotion.c). */
    struct cus_demotion_state {
        uint64_t window;         /* ops until the account is judged next */
        struct cus_account last; /* the account when it was judged last */
        uint64_t steps;          /* `ended` at that time */
        uint64_t arrived;        /* `arrived` at that time */
        int64_t credit;          /* loss that is allowed before the stream is demoted, in ns */
        uint64_t graph_ratio;    /* share of ops in graphs in the last window, times GROWING */
        uint64_t in_graphs;      /* most nodes that its graphs had since the last demotion */
        uint64_t patience;       /* ops for which the stream is not demoted */
        /* Ops of the stream at the last demotion, passed ops not counted. */
        uint64_t left_at;
        uint64_t learned; /* ops that learning the last repeat needs */
        uint64_t tried;   /* ops of patience that the last repeat was given */
        uint64_t
            sleep; /* ops to let pass at the last demotion; 0: no demotion since the stream paid */
        uint32_t unpaid;     /* demotions since the stream paid last */
        uint32_t wasted;     /* windows in a row in which known ops led to no graphs */
        uint32_t head_tries; /* of these, demotions after a try because of a step's head */
        uint32_t woken_by;   /* enum cus_wake: why the stream is tried again */
    } demotion;              /* lock */
    uint32_t waking; /* atomic, enum cus_wake: why demotion is to end with the running step */
    /* While the stream is demoted: `demoted` when its last step ended (lock), and how many of the
     * last steps in a row had one op (atomic). */
    uint64_t left_at_step;
    uint32_t single_steps;
    bool left_alone; /* atomic: `demoted` is set for the time of a rest (rest.c) */
    /* Atomic: the last repeat did not lead to paying graphs and is not believed again. */
    bool ignores_repeats;
    /* Atomic: the repeat that was tried last (cus_repeat_as). Another repeat is believed once
     * `demoted` is at most `ignored_until` (atomic). */
    uint64_t ignored_repeat;
    uint64_t ignored_until;
    /* Hashes of the heads of steps that paid. Atomics, written under the lock. */
    uint32_t n_heads;
    uint64_t heads[CUS_HEADS];
    uint64_t head; /* atomic: hash of the running step's first ops; `head_left` ops are missing */
    uint64_t graph_bytes; /* lock: estimate of the memory that its graphs hold */
    /* Lock: the stream's ops at the look of evict.c that found them changed, and the time of that
     * look in ns. */
    uint64_t idle_ops;
    uint64_t idle_since;
    uint64_t arrived; /* lock: ops whose thread came from another stream */
    /* Lock: ops, and ops in graphs, of the streams that the object served before. */
    uint64_t earlier_ops, earlier_graphs;
    uint64_t ended; /* lock: steps that the host waited for */
    /* Lock: how soon the steps are in graphs (why.c). At the end of the last step: ops, ops in
     * graphs, nodes of the launch tree. Then the ops of the longest step. Then the number of the
     * current step, without short and first-time steps, and the first step with 95 % of its ops in
     * graphs, 0 for none. */
    uint64_t step_at, step_graphs, step_new, step_longest;
    uint32_t step_number, step_covered;
    uint64_t timed_ns; /* when the last step ended; 0: that was not looked at */
    struct cus_learning learning;

    /* Lock: the streams whose ops may be ops of a branch of this engine, from 1 on. */
    struct cus_branch {
        struct cus_engine *engine; /* NULL: no stream has this branch */
        CUstream handle;
        CUevent end;                   /* recorded by graphs at the end of the branch */
        bool open;                     /* forked, and not joined since */
        bool owes;                     /* the stream does not wait for `end` yet */
        uint64_t at;                   /* ops of this engine up to the branch's last op */
        uint64_t behind;               /* and up to the last record of its own that it waits for */
        uint64_t bare;                 /* `at` of its fork by the home, if it waits for no other */
        uint64_t moves;                /* cus_branch_moves of the stream while it is a branch */
        uint64_t step;                 /* `ended` of the engine at the branch's last fork */
        uint32_t traced, traced_epoch; /* of `engine`, as above */
    } branches[CUS_BRANCHES + 1];
    /* As a side stream: the only thread that has used it, &cus_many_threads for several. Atomic. */
    const void *user;
    uint64_t calls; /* atomic: calls that gave the stream work and were no ops */
    /* Atomic: the stream that it forks from, by the first wait between the two; how often in a row
     * the branch was not joined when it had to be; and how often the two changed places. */
    const struct cus_engine *side_of;
    struct cus_engine *waited_for; /* atomic: that stream, if it waited since its step ended last */
    uint32_t unjoined, turned;
    /* Lock of branches.c: this stream is joined to that engine's, if it has not moved since. */
    struct cus_join {
        struct cus_engine *home;
        uint64_t life, position;
    } joined;
    uint64_t life; /* atomic: streams that the object has served */

    struct cus_counters counters; /* lock */
    struct cus_shadow *shadow;    /* lock: mode verify only (check_launch.c) */
    struct cus_frees frees;       /* lock: frees that are made behind the deferred ops (pools.c) */
    struct cus_engine *next_free;
    /* Numbers of the last record of an event that was deferred, was in front of the segment, was
     * submitted, and is issued (events.c). They never go back. Lock; `issued` is atomic. */
    struct {
        uint64_t deferred, begun, submitted, issued;
    } records;
    /* Lock: the kinds of plain launches found last, by a hash of the function. With these, threads
     * need not take the context's lock for each op that is not the expected one. Cleared whenever
     * `generation` moves. */
    struct cus_kind *kind_cache[CUS_KIND_CACHE_SLOTS];
    uint32_t number; /* index in engines[] */
    /* Lock. The plan begins with the view and goes on behind it (cus_engine_plan), from the padding
     * of this struct on: an engine is never copied or cleared as a whole. So the hot path finds the
     * view without reading a pointer. The last field. */
    struct cus_plan_view view __attribute__((aligned(CUS_LINE)));
} __attribute__((aligned(CUS_LINE))); /* engines share no cache line: cus_mem_lines */
_Static_assert(sizeof(struct cus_engine) % CUS_LINE == 0, "whole lines");
#ifndef CUS_CHECKS /* with it, locks are larger */
_Static_assert(offsetof(struct cus_engine, repeat) + sizeof(struct cus_repeat) <= 2 * CUS_LINE,
               "what an op of a stream that is demoted looks at is in two lines");
#endif

/* What an engine with its plan takes, in bytes. */
static inline size_t cus_engine_bytes(void) {
    return offsetof(struct cus_engine, view) + cus_plan_bytes();
}
static inline struct cus_plan *cus_engine_plan(const struct cus_engine *engine) {
    return (struct cus_plan *)(uintptr_t)&engine->view;
}

/* The last host times of one thing, in ns (stream/live.c). Atomics. */
enum { CUS_SAMPLES = 64, CUS_SAMPLE_EVERY = 16 };
struct cus_samples {
    uint32_t n;
    uint32_t ns[CUS_SAMPLES];
};

enum { CUS_PRIORITY_NOW = 1, CUS_PRIORITY_ROOM = 2, CUS_PRIORITY_STEP = 4 };

/* How many engines of one group defer ops. Engines whose numbers differ by a multiple of CUS_GROUPS
 * are one group. A call that covers all streams skips the groups without deferred ops, and streams
 * of two threads rarely share a group. */
enum { CUS_GROUPS = 32 };
struct cus_group {
    /* Atomic: incremented before an engine's `pending` is set, decremented after it is cleared. */
    uint32_t pending;
} __attribute__((aligned(CUS_LINE)));

/* State of the process. cus_engine_start writes it; afterwards only fields marked atomic or with a
 * lock change. */
struct cus_process {
    const struct cus_driver *driver;
    /* Atomic. RESTING: as COUNT_ONLY for a while (rest.c). */
    enum { CUS_OFF, CUS_COUNT_ONLY, CUS_RESTING, CUS_DEFER } state;
    bool may_build; /* mode and options allow graphs */
    /* Ops are recorded, either for graphs or for reports about steps. */
    bool learns;
    uint32_t profiling;      /* atomic: a profiler records */
    uint32_t n_contexts;     /* atomic: contexts that were seen, and not destroyed since */
    uint32_t registry_epoch; /* atomic: incremented whenever a stream or context may have gone */
    uint32_t memory_epoch;   /* atomic: incremented by cus_ranges_forget */
    bool never_defer;        /* atomic: a function or call with a never_defer rule was seen */
    /* Atomic, enum cus_state (hook/guard.h): may hooks act? Written by lifecycle.c of hook
     * alone. */
    uint32_t hooks;
    /* Atomic futex: number of the running build, 0 for none. CUS_PRIORITY_NOW: other threads are
     * asked to wait a moment. CUS_PRIORITY_ROOM: room is made. */
    uint32_t build_now;
    /* Atomic: 1 while calls pass, since nothing is deferred (rest.c). The assembly reads it. */
    uint32_t resting;
    /* Atomic. Low half: threads inside a dlopen; while there are any, nothing is deferred. High
     * half: how many times a dlopen began. Written through hook/loader.c alone. */
    uint64_t opening;

    /* Fields that threads write while others match ops are in other cache lines than the fields
     * read then. */
    /* Atomic: threads inside a copy that may sleep in the driver. */
    uint32_t copiers __attribute__((aligned(CUS_LINE)));
    uint32_t frees;                     /* atomic: frees that are deferred or submitted */
    uint32_t made_streams, made_graphs; /* atomic: made by the program */
    uint32_t branches;                  /* atomic: streams that are branches */
    bool no_branches; /* atomic: something forbids them in this process (branches.c) */
    /* Atomic: graphs of this library were destroyed, so the driver's pools hold memory. */
    bool pools_hold;
    struct cus_untracked_streams {
        uint32_t waits;   /* atomic: waits of the program for a whole context */
        uint32_t epoch;   /* atomic: moves when a stream is removed, and when such a wait begins */
        uint32_t threads; /* atomic: threads that have a number */
        uint32_t before;  /* atomic: threads with work on their own streams, and no engine yet */
        uint32_t n;       /* atomic, written under the build lock; read elsewhere as a hint */
        struct cus_untracked { /* build lock */
            CUstream handle;   /* NULL: the stream was destroyed */
            uint32_t thread;   /* number of the thread whose per-thread stream it is; 0: none */
            CUcontext context; /* context that was current */
            uint32_t waits;    /* the first wait that sees the end of the stream's work */
        } of[CUS_UNTRACKED_MAX];
    } untracked;            /* untracked streams that may have work (room.c) */
    uint32_t contended;     /* build lock: so many more builds have priority at once (priority.c) */
    uint32_t build_number;  /* build lock: number of the last build */
    uint32_t waited;        /* atomic: threads that waited for the running build */
    uint64_t priority_from; /* atomic, ns: when the running build gets priority in any case */
    /* Innermost: held while a graph is built, and around everything about room for graphs. */
    struct cus_lock build_lock;
    uint64_t hold_ns;
    /* Atomic: estimate of the memory of all graphs, and the most so far. A thread that builds or
     * drops writes it. */
    uint64_t graph_bytes;
    uint64_t graph_bytes_most;
    uint64_t build_node_ns; /* atomic: smoothed build time of one node; 0: not measured */
    uint64_t build_wait_ns; /* atomic: smoothed time from a build's request to its start */
    bool wanting;           /* atomic: there was no memory for a graph */
    uint64_t looked_at;     /* atomic, ns: when evict.c last looked for idle streams */
    uint64_t refused;       /* atomic: refusals of host memory seen at that look */
    const char *off_why;    /* atomic: why deferral was switched off; NULL: it was not */
    uint32_t n_engines;     /* atomic: slots in use in engines[]; only grows */
    struct cus_engine *engines[CUS_ENGINES_MAX];
    struct cus_group groups[CUS_GROUPS];
    struct cus_counters counters;      /* ops outside of any engine; atomic adds */
    struct cus_samples launch_samples; /* of launches that were issued alone */
    struct cus_samples graph_samples;  /* of graph launches, with patching but without building */
    struct cus_lock list_lock;
    /* List lock: the ops in graphs of the stream that `list` is from. */
    uint64_t list_graphs;
    /* List lock: the most ops that a kept stream had, and how that stream learned: its first step
     * in graphs, and its steps' times. */
    uint64_t step_ops;
    uint32_t step_covered;
    struct cus_learned learned;
    uint64_t steps[CUS_STEP_CLASSES]; /* list_lock: marker kernels met */
    /* List lock: the weakest kernels of all engines; `mode` is not set. */
    struct cus_dispatch dispatch;
    char list[16384]; /* list_lock: the kept segment list, from the stream with the most ops in
                         graphs */
};

extern struct cus_process cus_process;

/* Do calls pass (rest.c)? Whoever is told so comes behind all that was deferred. */
static inline bool cus_rests(void) {
    return __atomic_load_n(&cus_process.resting, __ATOMIC_ACQUIRE);
}

#ifdef CUS_CHECKS
/* Aborts unless the invariants of an engine hold. Called before its lock is given back. */
void cus_engine_check(const struct cus_engine *engine);
#else
#define cus_engine_check(engine) ((void)0)
#endif
static inline __attribute__((always_inline)) void cus_engine_unlock(struct cus_engine *engine) {
    cus_engine_check(engine);
    cus_lock_give(&engine->lock);
}

static inline uint64_t cus_opening_word(void) {
    return __atomic_load_n(&cus_process.opening, __ATOMIC_SEQ_CST);
}
static inline uint32_t cus_opening_threads(void) {
    return (uint32_t)cus_opening_word();
}
static inline void cus_opening_enter(void) {
    __atomic_add_fetch(&cus_process.opening, (uint64_t)1 << 32 | 1, __ATOMIC_SEQ_CST);
}
/* False: a thread entered or left since `word` was read. */
static inline bool cus_opening_leave(uint64_t word) {
    return __atomic_compare_exchange_n(&cus_process.opening, &word, word - 1, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static inline uint32_t *cus_group_pending(const struct cus_engine *engine) {
    return &cus_process.groups[engine->number % CUS_GROUPS].pending;
}

/* A walk over the engines that defer ops. Start with `n` set to the number of engines, and the
 * other fields 0. */
struct cus_walk {
    uint32_t n, group, next;
};
static inline struct cus_engine *cus_walk_pending(struct cus_walk *walk) {
    for (; walk->group < CUS_GROUPS && walk->group < walk->n; walk->next = ++walk->group) {
        if (walk->next == walk->group &&
            !__atomic_load_n(&cus_process.groups[walk->group].pending, __ATOMIC_SEQ_CST))
            continue;
        while (walk->next < walk->n) {
            struct cus_engine *engine = cus_process.engines[walk->next];
            walk->next += CUS_GROUPS;
            if (__atomic_load_n(&engine->pending, __ATOMIC_SEQ_CST))
                return engine;
        }
    }
    return NULL;
}

/* ---- counts ---- */

/* Ops that came, by the engine's counters. Engine lock held. */
static inline uint64_t cus_engine_ops(const struct cus_engine *engine) {
    uint64_t ops = 0;
    for (unsigned type = 0; type < CUS_OP_TYPES; type++)
        ops +=
            engine->counters.ops[type] + __atomic_load_n(&engine->passed[type], __ATOMIC_RELAXED);
    return ops;
}
static inline struct cus_account cus_engine_account(const struct cus_engine *engine) {
    const struct cus_counters *c = &engine->counters;
    return (struct cus_account){
        .ops = c->ops[CUS_OP_LAUNCH] + c->ops[CUS_OP_MEMSET] + c->ops[CUS_OP_COPY],
        /* A node that records an event takes as long as a record (tests/gpu/DRIVER.md). */
        .in_graphs = c->in_graphs - c->records_in_graphs,
        .launches = c->graph_launches,
        .patched = c->patched_nodes,
        .built = engine->built_nodes,
        .anew = engine->view.built_anew,
        .new_ops = engine->view.new_nodes,
        .warm_ops = engine->view.warm_ops,
        .cut = c->eager_by[CUS_EAGER_FLUSHED] + c->eager_by[CUS_EAGER_DIVERGED],
    };
}
/* An op of the stream failed that was reported as issued. The program gets the first such error at
 * its next launch on the stream or wait for it (HAZARDS E4). */
static inline void cus_engine_late(struct cus_engine *engine, CUresult result) {
    if (CUS_HAZARD(E4) && __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) == CUDA_SUCCESS)
        __atomic_store_n(&engine->late_error, result, __ATOMIC_RELAXED);
}
/* Engine lock held. */
static inline void cus_engine_freed_none(struct cus_engine *engine) {
    __atomic_store_n(&engine->freed.graphs, 0, __ATOMIC_RELAXED);
    engine->freed.nodes = 0;
}
/* Ends a run. True: ops were issued in graphs since the last run ended. Engine lock held. */
static inline bool cus_run_ended(struct cus_engine *engine) {
    bool some = engine->counters.in_graphs != engine->cut_at;
    engine->cut_at = engine->counters.in_graphs;
    return some;
}

/* ---- kinds of an engine or a context ---- */

/* Kinds are about to be freed. Engine lock held. */
static inline void cus_engine_forget_kinds(struct cus_engine *engine) {
    engine->generation++;
    engine->launched.n = 0;
    memset(engine->kind_cache, 0, sizeof engine->kind_cache);
}
/* Is the function in `known_funcs`? Read without a lock. False does not mean that the function is
 * unknown: cus_kinds_know decides. */
static inline __attribute__((always_inline)) unsigned cus_kinds_slot(const void *handle) {
    return (unsigned)(cus_hash_pointer(handle) >> 32) % CUS_KNOWN_FUNC_SLOTS;
}
static inline __attribute__((always_inline)) bool
cus_kinds_may_know(const struct cus_context *context, const void *handle) {
    return __atomic_load_n(&context->known_funcs[cus_kinds_slot(handle)], __ATOMIC_RELAXED) ==
           handle;
}

/* ---- copies ---- */

/* A thread that destroys or builds while another one sleeps in a copy may sleep too (HAZARDS
 * A16). */
static inline bool cus_somebody_copies(void) {
    return CUS_HAZARD(A16) && __atomic_load_n(&cus_process.copiers, __ATOMIC_ACQUIRE);
}

#endif
