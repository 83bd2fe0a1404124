/*
 * The state of the stream engine, by scope: process, context, stream (engine), thread. Private to
 * shim/stream.
 *
 * Lock order, outermost first: engine lock; context lock (kinds, captures); registry lock (which
 * contexts and engines there are); then range, taint, noted, origin, list and build lock, none of
 * which is held while another is taken (enum cus_rank in base/lock.h). No thread holds two engine
 * locks (HAZARDS B5): whoever must flush another stream does so before it locks its own. Driver
 * calls are made under an engine lock only to issue, build, patch and launch what that engine
 * defers; the program's own eager calls run with no lock held, and so does what the second
 * thread launches (submit.h).
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
#include "shim/stream/engine.h"
#include "shim/stream/kinds.h"
#include "shim/stream/submit.h"
#include "shim/stream/thread.h"

enum {
    CUS_ENGINES_MAX = 4096,
    CUS_KNOWN_FUNC_SLOTS = 1024,
    CUS_KIND_CACHE_SLOTS = 256,
    CUS_WANTED = 32,
    CUS_UNTRACKED_MAX = 32
};

struct cus_context {
    CUcontext handle;
    uint32_t number; /* from 1 on, in the order in which they were seen */
    struct cus_lock lock;
    struct cus_func *funcs;              /* lock */
    struct cus_kind_entry *memory_kinds; /* lock: memsets and copies */
    struct cus_engine *legacy; /* atomic: the engine of the legacy stream, NULL while it has none */
    uint32_t blocking_pending; /* atomic: blocking streams of this context that defer ops */
    uint32_t captures; /* atomic: captures of the program that may be open (a hint: HAZARDS D5) */
    CUstream capturing[16]; /* lock: their streams */
    int hangs; /* atomic: are graphs known to hang there; 0: not asked yet (registry.c) */
    bool legacy_attributes; /* atomic: the program has set attributes of the legacy stream */
    uint64_t gpu;           /* atomic: a hash of what it is (advice.c); 0: not asked yet */
    /* In the driver's pools, of what this library may take without waiting (room.c). Build lock. */
    struct cus_room {
        bool begun;
        uint32_t graphs, nodes;                /* as many of each are free */
        uint32_t program_made, program_graphs; /* what the program had made when it was looked at */
        uint32_t busy; /* of engines[]: the stream that was busy when it was asked last */
    } room;
    struct cus_context *next;
    struct cus_wanted { /* build lock: graphs that were not built for want of room (room.c) */
        uint32_t n, nodes[CUS_WANTED];
        uint64_t retry, pause; /* ns: when room may be made next, how much later that is than the
                                  last time, */
        uint64_t settle;       /* and how long is waited then until nothing runs */
    } wanted;
    /* Functions of `funcs` by a hash of their handles, for streams that are demoted: atomic,
     * written under the lock. One whose place another has taken is looked up. */
    const void *known_funcs[CUS_KNOWN_FUNC_SLOTS];
};

/* Why a stream that is demoted is looked at again before its time. */
enum cus_wake { CUS_WAKE_NOT, CUS_WAKE_REPEATS, CUS_WAKE_HEAD };

struct cus_engine {
    /* What each op looks at lies together. */
    struct cus_lock lock;
    /* Written when the object begins to serve a stream. Threads that found it as another stream's
     * read them meanwhile without the lock: what they find is looked at again under it. */
    struct cus_context *_Atomic context;
    _Atomic bool legacy, blocking;
    bool closed; /* atomic: nothing is deferred here any more; the stream is gone or belongs to a
                    green context */
    uint32_t pending;              /* atomic: not 0 while ops are deferred or submitted */
    uint64_t demoted;              /* atomic: ops to let pass, for the stream does not pay */
    uint64_t passed[CUS_OP_TYPES]; /* atomic: ops let pass, in no other counter */
    CUresult late_error;           /* atomic: of an op issued later than asked for */
    uint32_t head_left;            /* atomic: ops that `head` lacks; 0: nothing is looked for */
    struct cus_repeat repeat;      /* what it is demoted with */
    uint32_t traced; /* lock: its number in the trace, as of `traced_epoch` (cus_record_epoch) */

    CUstream handle;        /* CU_STREAM_LEGACY for the legacy stream */
    uint64_t id;            /* cuStreamGetId, 0 where the driver has none */
    uint64_t pending_since; /* atomic: ns; behind the waking of the watchdog */
    uint32_t generation; /* lock: counts drops of kinds, so that a call made without the lock sees
                            that its kind is gone */
    struct cus_thread *owner; /* atomic: thread whose op came last */
    uint64_t cut_at; /* lock: ops in graphs when a run of them ended last (cus_run_ended) */
    uint32_t epoch; /* lock: the registry's epoch at which the stream's identity was checked last */
    uint32_t traced_epoch; /* lock; 0: it has no number yet */

    struct cus_plan plan;     /* lock */
    struct cus_exec *dropped; /* lock: by the plan, not destroyed yet */
    struct cus_submit submit;
    CUstream capture_stream;      /* lock: private, made at the first build */
    bool capture_refused;         /* lock: it could not be made: nothing is built */
    bool buried;                  /* lock: its context is dead; it is being closed */
    struct cus_building {         /* lock: in the running step (building.c) */
        struct cus_account began; /* counts when it began */
        uint64_t length;          /* ops of a step, of the longest lately */
        uint64_t ns;              /* what building took */
        uint32_t nodes, advised;  /* built; what an earlier run speaks for apart */
        uint32_t unmeasured;      /* steps since a build was measured, or what was doubted */
    } building;
    uint64_t built_nodes; /* lock: of all graphs so far */
    struct cus_build_waits
        build_waits;   /* lock: whoever waits with it holds up the stream's threads */
    bool askable;      /* build lock: the stream lives and may be asked whether it is busy */
    struct cus_freed { /* lock: destroyed, where the stream was not seen idle since */
        uint32_t graphs, nodes;
    } freed;

    /* Leaving alone what does not pay (demotion.c). */
    struct cus_demotion_state {
        uint64_t window;         /* ops until it is judged next */
        struct cus_account last; /* when it was judged last, and */
        uint64_t steps;          /* the steps that had ended then, */
        uint64_t arrived;        /* and `arrived` */
        int64_t credit;          /* what it may lose until it is demoted */
        uint64_t graph_ratio;    /* of the ops in graphs, when it was judged last */
        uint64_t in_graphs;      /* nodes of its graphs, the most that were since then */
        uint64_t patience;       /* ops for which it is not left alone */
        uint64_t left_at;        /* its ops, those apart that it was demoted with, when it was
                                    left alone last */
        uint64_t learned;        /* ops of the turns that it was given to be learned, last time, */
        uint64_t tried;          /* and for how many ops it was looked at patiently */
        uint64_t sleep;          /* for how many ops it is, next time */
        uint32_t unpaid;         /* times that it was, since it paid last */
        uint32_t head_tries;     /* of these by a step that began well */
        uint32_t woken_by;       /* enum cus_wake: why it is looked at again */
    } demotion;                  /* lock */
    uint32_t waking; /* atomic, enum cus_wake: the next step, at the latest, is looked at again */
    bool ignores_repeats; /* atomic: that it repeats itself is not believed: it came to nothing last
                             time */
    uint64_t ignored_repeat;   /* atomic: what came to nothing (cus_repeat_as); something else */
    uint64_t ignored_until;    /* atomic: is believed once `demoted` is no more than this */
    uint32_t n_heads;          /* atomic, as the following: how steps begin that paid, */
    uint64_t heads[CUS_HEADS]; /* written under the lock */
    uint64_t head;             /* of the running step, but for the last `head_left` of its ops */
    uint64_t graph_bytes;      /* estimate of what its execs hold now */
    uint64_t idle_ops; /* ops it had had when it was looked at (evict.c), and when that was first */
    uint64_t idle_since; /* so, in ns */
    uint64_t arrived;    /* ops with which a thread came from another stream */
    uint64_t ended;      /* steps that the host waited for */
    /* How soon steps go into graphs (lock): as the last step ended ops, those in graphs and nodes
     * of the tree; the longest step; steps of at least half of that, those apart that came for the
     * first time, and the first that was covered; 0: none was. */
    uint64_t step_at, step_graphs, step_new, step_longest;
    uint32_t step_number, step_covered;

    struct cus_counters counters; /* lock */
    struct cus_shadow *shadow;    /* lock: mode verify alone (check_launch.c) */
    struct cus_engine *next_free;
    /* lock: kinds of plain launches found last, by a hash of the function, so that threads do not
     * meet in the context for an op that is not the expected one. Forgotten whenever `generation`
     * moves. */
    struct cus_kind *kind_cache[CUS_KIND_CACHE_SLOTS];
    uint32_t number;                  /* its place in engines[] */
} __attribute__((aligned(CUS_LINE))); /* no two share a line: cus_mem_lines */
_Static_assert(sizeof(struct cus_engine) % CUS_LINE == 0, "whole lines");
_Static_assert(offsetof(struct cus_engine, repeat) + sizeof(struct cus_repeat) <= 2 * CUS_LINE,
               "what an op of a stream that is demoted looks at is in two lines");

/* The last host times of something, in ns (stream/live.c). Atomics. */
enum { CUS_SAMPLES = 64, CUS_SAMPLE_EVERY = 16 };
struct cus_samples {
    uint32_t n;
    uint32_t ns[CUS_SAMPLES];
};

enum { CUS_PRIORITY_NOW = 1, CUS_PRIORITY_ROOM = 2, CUS_PRIORITY_STEP = 4 };

/* How many engines of a group defer ops: those whose numbers are the same but for multiples of
 * CUS_GROUPS. So a call that covers all streams looks at those that it must, however many there
 * are, and streams of two threads hardly ever share a group. */
enum { CUS_GROUPS = 32 };
struct cus_group {
    uint32_t pending; /* atomic: counted up before `pending` of an engine is set, down after */
} __attribute__((aligned(CUS_LINE)));

/* Process state: written in cus_engine_start, read-only afterwards but for what says atomic. */
struct cus_process {
    const struct cus_driver *driver;
    enum { CUS_OFF, CUS_COUNT_ONLY, CUS_DEFER } state; /* atomic */
    bool may_build;                                    /* mode and options allow graphs */
    bool learns; /* ops are recorded: graphs may come of them, or reports say what steps they are */
    uint32_t profiling;      /* atomic */
    uint32_t n_contexts;     /* atomic: contexts seen so far */
    uint32_t registry_epoch; /* atomic: bumped whenever a stream or context may have gone */
    uint32_t memory_epoch;   /* atomic: moves at each cus_ranges_forget */
    bool never_defer;        /* atomic: a function was met that a rule never defers */
    uint32_t hooks; /* atomic, enum cus_state (hook/guard.h): may they act; lifecycle.c's alone */
    uint32_t build_now; /* atomic futex: which build is under way, with CUS_PRIORITY_NOW while
                     others are asked for a moment, CUS_PRIORITY_ROOM while room is made; 0: none */
    uint64_t opening;   /* atomic: threads inside a dlopen, in its low half: nothing is deferred; in
                           its high half how many have been; hook/loader.c's alone */

    /* What threads write while others match ops is in other lines than what they look at. */
    uint32_t copiers __attribute__((
        aligned(CUS_LINE))); /* atomic: threads inside a copy that may sleep in the driver */
    uint32_t made_streams, made_graphs; /* atomic: by the program */
    bool pools_hold; /* atomic: graphs of this library were destroyed: what they held is there */
    struct cus_untracked_streams {
        uint32_t waits;   /* atomic: of the program for a whole context */
        uint32_t epoch;   /* atomic: moves where one goes, and where such a wait begins */
        uint32_t threads; /* atomic: that have a number */
        uint32_t n;       /* build lock, as what follows; read elsewhere as a hint */
        struct cus_untracked {
            CUstream handle;   /* NULL: it was destroyed */
            uint32_t thread;   /* whose per-thread stream it is; 0: of none */
            CUcontext context; /* that was current */
            uint32_t waits;    /* the first wait that will have seen the end of it */
        } of[CUS_UNTRACKED_MAX];
    } untracked;        /* streams without an engine that may have work (room.c) */
    uint32_t contended; /* build lock: builds from now on that have priority at once (building.c) */
    uint32_t build_number;      /* build lock: the last one */
    uint32_t waited;            /* atomic: threads that waited for it */
    uint64_t priority_from;     /* atomic: when it has priority in any case, in ns */
    struct cus_lock build_lock; /* innermost: held while an exec is built, and around everything
                                   about room for one */
    uint64_t hold_ns;
    uint64_t graph_bytes; /* atomic: estimate over all engines; written by who builds or drops, */
    uint64_t graph_bytes_most; /* the most that there was */
    uint64_t build_node_ns;    /* atomic: what a node takes to build, smoothed; 0: not measured; */
    uint64_t build_wait_ns;    /* atomic: what a build waits until it may begin, smoothed */
    bool wanting;              /* atomic: there was no room for a graph */
    uint64_t looked_at;        /* atomic: when idle streams were looked for last, in ns, */
    uint64_t refused;          /* and host memory refused until then */
    const char *off_why;       /* atomic: why nothing is deferred any more; NULL: it is */
    uint32_t n_engines;        /* atomic: slots in use of engines[]; grows only */
    struct cus_engine *engines[CUS_ENGINES_MAX];
    struct cus_group groups[CUS_GROUPS];
    struct cus_counters counters;      /* ops outside any engine; atomic adds */
    struct cus_samples launch_samples; /* of launches issued by themselves */
    struct cus_samples graph_samples;  /* of graph launches, patching included, building not */
    struct cus_lock list_lock;
    uint64_t list_graphs;             /* list_lock: ops that it had issued in graphs */
    uint64_t step_ops;                /* list_lock: the most ops of a stream, and */
    uint32_t step_covered;            /* of that one its first step in graphs */
    uint64_t steps[CUS_STEP_CLASSES]; /* list_lock: markers met */
    struct cus_dispatch
        dispatch;     /* list_lock: the weakest kernels of all engines; mode is not set */
    char list[16384]; /* list_lock: segment list of the busiest engine that was closed */
};

extern struct cus_process cus_process;

#ifdef CUS_CHECKS
/* Does what is promised of an engine hold, now that its lock will be free? Else it aborts. */
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
/* False: somebody entered or left since `word` was read. */
static inline bool cus_opening_leave(uint64_t word) {
    return __atomic_compare_exchange_n(&cus_process.opening, &word, word - 1, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static inline uint32_t *cus_group_pending(const struct cus_engine *engine) {
    return &cus_process.groups[engine->number % CUS_GROUPS].pending;
}

/* A walk over the engines that defer ops; begins with `n` alone, the engines that there are. */
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

/* ---- registry.c ---- */

static inline struct cus_engine *cus_context_legacy(const struct cus_context *context) {
    return __atomic_load_n(&context->legacy, __ATOMIC_ACQUIRE);
}

/* The engine of this stream, made at first sight; NULL where nothing is ever deferred (per-thread
 * streams, green contexts, no context, capturing streams, streams of another context than the
 * current one). `context` is the current context. */
struct cus_engine *cus_registry_look_up(struct cus_thread *thread, struct cus_stream_ref ref,
                                        CUcontext context);
/* The thread goes to a stream that it looked up lately, in the same context and under the same
 * epoch: as if it had looked that one up last. False: it does not know that it did. */
bool cus_registry_turn(struct cus_thread *thread, struct cus_stream_ref ref);
/* The engine of this stream if it has one, whichever context it was made in. */
struct cus_engine *cus_registry_peek(const struct cus_thread *thread, struct cus_stream_ref ref,
                                     CUcontext context);
/* A stream without an engine goes: what was noted of it, and what threads remember, is void. */
void cus_registry_forget(struct cus_stream_ref ref, CUcontext context);
/* Is what the thread found last still so? Asked under the lock of the engine found: until that is
 * given, it stays so. */
static inline bool cus_registry_current(const struct cus_thread *thread) {
    return thread->epoch == __atomic_load_n(&cus_process.registry_epoch, __ATOMIC_ACQUIRE);
}
/* Was that stream, in that context, what the thread looked up last, and is the answer still true?
 */
static inline bool cus_registry_found(const struct cus_thread *thread, struct cus_stream_ref ref,
                                      CUcontext context) {
    return (thread->cached_engine || thread->none) && cus_registry_current(thread) &&
           thread->ref.handle == ref.handle && thread->ref.abi == ref.abi &&
           thread->context == context;
}
static inline struct cus_engine *cus_registry_find(struct cus_thread *thread,
                                                   struct cus_stream_ref ref, CUcontext context) {
    return cus_registry_found(thread, ref, context) ? thread->cached_engine
                                                    : cus_registry_look_up(thread, ref, context);
}
struct cus_context *cus_registry_context(CUcontext context);
/* A context has died: the next one at its address may be another GPU's. */
void cus_registry_forget_device(struct cus_context *context);
/* All contexts seen so far, linked by `next`; entries are never freed. */
struct cus_context *cus_registry_contexts(void);
/* Is this still the stream that the engine was made for? Lock held. */
bool cus_registry_same(struct cus_engine *engine);
static inline bool cus_ref_is_per_thread(struct cus_stream_ref ref) {
    return ref.handle == CU_STREAM_PER_THREAD || (!ref.handle && ref.abi == CUS_ABI_PTSZ);
}
/* NULL and 0x1 through the legacy ABI are one stream (HAZARDS B3). */
static inline CUstream cus_ref_handle(struct cus_stream_ref ref) {
    return ref.handle || !CUS_HAZARD(B3) ? ref.handle : CU_STREAM_LEGACY;
}
static inline bool cus_ref_is_legacy(struct cus_stream_ref ref) {
    return !cus_ref_is_per_thread(ref) && cus_ref_handle(ref) == CU_STREAM_LEGACY;
}
/* Writes this engine's segment list down if none that was had more ops in graphs. Lock held. */
void cus_registry_keep_list(struct cus_engine *engine);
/* Drops an engine's plan and private stream; the object will serve another stream. Its context
 * still lives. Lock held, nothing pending. */
void cus_registry_close(struct cus_engine *engine);

/* ---- demotion.c ---- */

/* What became of the stream's ops so far. Lock held. */
struct cus_account cus_demotion_account(const struct cus_engine *engine);
/* The engine begins to serve a stream. Lock held. */
void cus_demotion_start(struct cus_engine *engine);
/* An op was issued by itself and recorded: is it time to leave the stream alone? Lock held. */
void cus_demotion_decide(struct cus_engine *engine);
/* A step of a stream that is demoted began like this; has ended (lock held). */
void cus_demoted_head(struct cus_engine *engine, uint64_t head);
void cus_demoted_step_end(struct cus_engine *engine);
/* What a stream is demoted with repeats itself. `left`: ops that it was to be demoted for. */
void cus_demoted_repeats(struct cus_engine *engine, uint64_t left);
/* One more op. Two threads that look for the head of a step at once miss it. */
static inline void cus_demoted_begins(struct cus_engine *engine, uint32_t left, uint64_t op) {
    uint64_t head = cus_head_add(__atomic_load_n(&engine->head, __ATOMIC_RELAXED), op);
    __atomic_store_n(&engine->head, head, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->head_left, left - 1, __ATOMIC_RELAXED);
    if (left == 1)
        cus_demoted_head(engine, head);
}
/* One more op of a stream that is demoted for `left` ops more: counted. `f`: of a launch. Two
 * threads that count down at once may count one op twice, which matters to nobody. */
static inline __attribute__((always_inline)) void
cus_demoted_op(struct cus_engine *engine, uint64_t left, enum cus_op_type type, const void *f) {
    uint64_t op = type == CUS_OP_LAUNCH ? (uintptr_t)f : type;
    __atomic_store_n(&engine->demoted, left - 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->passed[type], 1, __ATOMIC_RELAXED);
    uint32_t head_left = __atomic_load_n(&engine->head_left, __ATOMIC_RELAXED);
    if (__builtin_expect(head_left, 0))
        cus_demoted_begins(engine, head_left, op);
    if (CUS_PAYS(REPEAT) && __builtin_expect(cus_repeat_feed(&engine->repeat, op), 0))
        cus_demoted_repeats(engine, left);
}
/* The same without a call. False: it would need one, and nothing was done. */
static inline __attribute__((always_inline)) bool cus_demoted_op_only(struct cus_engine *engine,
                                                                      uint64_t left,
                                                                      enum cus_op_type type,
                                                                      const void *f) {
    uint64_t op = type == CUS_OP_LAUNCH ? (uintptr_t)f : type;
    if (__builtin_expect(__atomic_load_n(&engine->head_left, __ATOMIC_RELAXED), 0) ||
        (CUS_PAYS(REPEAT) && !cus_repeat_feed_only(&engine->repeat, op)))
        return false;
    __atomic_store_n(&engine->demoted, left - 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->passed[type], 1, __ATOMIC_RELAXED);
    return true;
}

/* ---- engine.c ---- */

/* Is a capture of the program open in this context? */
bool cus_program_captures(struct cus_context *context);

/* ---- kinds.c (kinds.h): what looks into an engine or a context ---- */

/* Kinds are about to be freed. Lock held. */
static inline void cus_engine_forget_kinds(struct cus_engine *engine) {
    engine->generation++;
    memset(engine->kind_cache, 0, sizeof engine->kind_cache);
}
/* Is the function in the table? Asked without a lock: the answer may be no where that of
 * cus_kinds_know is yes. */
static inline __attribute__((always_inline)) unsigned cus_kinds_slot(const void *handle) {
    return (unsigned)(cus_hash_pointer(handle) >> 32) % CUS_KNOWN_FUNC_SLOTS;
}
static inline __attribute__((always_inline)) bool
cus_kinds_may_know(const struct cus_context *context, const void *handle) {
    return __atomic_load_n(&context->known_funcs[cus_kinds_slot(handle)], __ATOMIC_RELAXED) ==
           handle;
}

/* ---- origins.c ---- */

enum { CUS_FILE_NAME = 256 }; /* of a file, without folders, with the final NUL */

/* Code was loaded from a file of this name (NULL: from none), with this hash (0: none); `made` was
 * made from it, or from what was. False: no memory to keep that. */
bool cus_origins_loaded(const void *code, const char *file, uint64_t hash);
bool cus_origins_made(const void *made, const void *from);
void cus_origins_gone(const void *code);
/* The name of the file that this function or kernel is from, in `name`; NULL: none is known. */
const char *cus_origins_file(const void *handle, char name[CUS_FILE_NAME]);

/* A hash of the code that it is from, the same in each process; 0: not known. */
uint64_t cus_origins_code(const void *handle);

/* ---- advice.c: the signature cache ---- */

/* Reads the file, if there is to be one. Once, when the engine starts. */
void cus_advice_load(void);
bool cus_advice_on(void);
/* NULL: earlier runs have nothing to say. */
struct cus_advice *cus_advice_get(void);
/* What the paths of a stream's plan begin with. The context is current. */
uint64_t cus_advice_seed(struct cus_context *context, const struct cus_plan_limits *limits);
/* A graph was built for it. */
void cus_advice_built(void);
/* For reports; leaves *out alone where there is no cache. */
void cus_advice_facts(struct cus_stats_cache *out);
/* The segments of this engine are about to go: what they say is kept. Lock held. */
void cus_advice_keep(const struct cus_engine *engine);

/* ---- ranges.c ---- */

enum cus_family {
    CUS_FAMILY_UNKNOWN,
    CUS_FAMILY_DEVICE,
    CUS_FAMILY_POOL,
    CUS_FAMILY_VIRTUAL, /* mapped by cuMemMap */
    CUS_FAMILY_HOST
};
/* What memory [address, address + bytes) is, if it lies wholly in one range that CUDA allocated or
 * registered, or in mappings that touch (HAZARDS C4, C6). */
enum cus_family cus_ranges_family(uint64_t address, uint64_t bytes);
void cus_ranges_forget(void);
static inline uint32_t cus_ranges_epoch(void) {
    return __atomic_load_n(&cus_process.memory_epoch, __ATOMIC_ACQUIRE);
}

/* ---- why.c ---- */

/* Ops that came, by the engine's counters. Lock held. */
static inline uint64_t cus_engine_ops(const struct cus_engine *engine) {
    uint64_t ops = 0;
    for (unsigned type = 0; type < CUS_OP_TYPES; type++)
        ops +=
            engine->counters.ops[type] + __atomic_load_n(&engine->passed[type], __ATOMIC_RELAXED);
    return ops;
}
/* A step ended: was it the first that went out in graphs? Lock held. */
void cus_step_covered(struct cus_engine *engine);

/* Did ops go out in graphs since a run of them ended last? It ends now. Lock held. */
static inline bool cus_run_ended(struct cus_engine *engine) {
    bool some = engine->counters.in_graphs != engine->cut_at;
    engine->cut_at = engine->counters.in_graphs;
    return some;
}
/* Ops that were let pass without a word to any other counter. */
uint64_t cus_why_let_pass(void);
/* Keeps what is known of the engine's graphs, which are about to be dropped. Lock held. */
void cus_why_keep_segments(struct cus_engine *engine);

/* ---- live.c: the page for `cusplice top`; on the watchdog's thread but for place, end and
 * sample ---- */

/* Where it is to be; on the program's thread that starts the watchdog. */
void cus_live_place(void);
void cus_live_start(void);
/* Answers if somebody asks. */
void cus_live_look(void);
/* Waits until *word is not `value` any more, or somebody asks; or for no reason. */
void cus_live_wait(uint32_t *word, uint32_t value);
/* The process ends: the page goes. */
void cus_live_end(void);
void cus_live_sample(struct cus_samples *samples, uint64_t ns);

/* ---- lifetime.c ---- */

/* Takes the engine's lock; at exit only if that does not take too long. */
bool cus_engine_take_in_time(struct cus_engine *engine);

/* ---- fallback.c ---- */

/* Counts a fallback, and says it the first time. */
void cus_fallback(enum cus_fallback why);

/* ---- deferred.c: everything that issues deferred ops; engine lock held, the engine's context
 * current ---- */

/* Issues the deferred ops one by one. */
void cus_deferred_flush(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                        enum cus_cut cut, enum cus_eager counted);
/* The segment is complete: launches it, or issues its ops one by one where that fails. Returns what
 * the last op's call shall return. */
CUresult cus_deferred_fire(struct cus_engine *engine);
/* Waits for what was submitted. What could not be launched goes out op by op. */
void cus_deferred_settle(struct cus_engine *engine);
/* What the plan drops (cus_plan_drop_fn), behind what was submitted. */
void cus_deferred_drop_exec(void *engine, struct cus_exec *exec);
/* What is deferred can be issued no more, for its context is dead: counted and answered for as a
 * late error. */
void cus_deferred_lose(struct cus_engine *engine);

/* ---- graphs.c; engine lock held, the engine's context current ---- */

/* Is there room for a graph of so many nodes? */
bool cus_graphs_fit(uint32_t nodes);
/* Builds a graph of the complete segment from the ops that are being issued (HAZARDS A15). NULL:
 * none came of it, for want of memory where there is `no_room`. Build lock held. */
struct cus_variant *cus_graphs_build(struct cus_engine *engine, bool *no_room);
/* One is no more: destroyed, but not while a thread may sleep in a copy. */
void cus_graphs_drop(struct cus_engine *engine, struct cus_exec *exec);
/* The stream on which they are captured goes. */
void cus_graphs_drop_stream(struct cus_engine *engine);
/* Makes room in the driver's pools for graphs of so many nodes: builds such, each while nothing
 * runs in the context, until then at most, and destroys them. Says for how many. Build lock held.
 */
struct cus_freed cus_graphs_reserve(struct cus_engine *engine, const uint32_t *nodes, uint32_t n,
                                    uint64_t until_ns);
/* Destroys what was dropped; if it `must`, while a thread may sleep in a copy, too. */
void cus_graphs_destroy_dropped(struct cus_engine *engine, bool must);

/* ---- flush.c ---- */

/* Issues what this engine defers, from any thread; takes the lock and makes the context current.
 */
void cus_flush_engine(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                      enum cus_cut cut);
/* The same with the lock held. */
void cus_flush_locked(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                      enum cus_cut cut);
/* What this thread defers, wherever that is. */
void cus_flush_own(struct cus_thread *thread);
/* Every engine of the process, for a call that may wait or that everything must precede. */
void cus_flush_everything(unsigned cause, enum cus_break reason);
/* The same though `pending` says that there is nothing: after what lets ops be deferred changed,
 * for a thread that looked just before. */
void cus_flush_for_certain(unsigned cause, enum cus_break reason);
/* Makes a context current around driver calls, where it is not; leave undoes what enter did. */
bool cus_context_enter(CUcontext wanted, bool *pushed);
void cus_context_leave(bool pushed);
/* What legacy ordering and program order ask for before an op or call on `engine` (HAZARDS B4, B6).
 * No lock held. */
void cus_flush_ties(struct cus_thread *thread, struct cus_engine *engine);

/* ---- building.c ---- */

/* A step begins: so many nodes may be built in it. Engine lock held. */
void cus_build_allow(struct cus_engine *engine);
/* Is that enough for so many? A segment that is larger than any step's share may have all of one.
 */
bool cus_build_fits(const struct cus_engine *engine, uint32_t nodes, bool advised);
/* A graph of so many nodes was built and launched for the first time, which took so long and waited
 * so much of that until it might begin. Engine lock held. */
void cus_build_took(struct cus_engine *engine, uint32_t nodes, uint64_t ns, uint64_t waited_ns,
                    bool advised);
/* None came of it after so long: that says nothing of how long a graph takes. Engine lock held. */
void cus_build_failed(struct cus_engine *engine, uint32_t nodes, uint64_t ns, bool advised);
/* Nothing is known of other threads: builds have priority. */
void cus_build_start(void);
/* Build lock held, around a build of so many nodes, 0: room is made. Has it way at once? With that,
 * and what it took in ns, it ends. */
bool cus_build_takes_priority(uint32_t nodes);
void cus_build_had_priority(bool now, uint32_t nodes, uint64_t ns);
/* In front of ops and graphs that this thread issues: no lock held, or that of its stream. For so
 * long at most, never for long, and a few times for one build: `ways` are the thread's, or those of
 * the stream whose lock is held. False: it did not wait. */
bool cus_build_wait(struct cus_build_waits *build_waits, uint64_t most_ns);
static inline bool cus_build_yield(struct cus_build_waits *build_waits, uint64_t most_ns) {
    return __builtin_expect(__atomic_load_n(&cus_process.build_now, __ATOMIC_RELAXED), 0) &&
           cus_build_wait(build_waits, most_ns);
}

/* ---- room.c ---- */

/* May a graph of so many nodes be built now, without a wait for what runs: is there room, or does
 * nothing run? If not it is noted as wanted. Build lock and engine's lock held. */
bool cus_room_for(struct cus_engine *engine, uint32_t nodes);
/* One is built. */
void cus_room_take(struct cus_engine *engine, uint32_t nodes);
/* Waits until nothing runs in the context, which is current, until then at most. Build lock held.
 */
bool cus_room_settle(struct cus_context *context, uint64_t until_ns);
/* The host has waited: is there room again, is some to be made? No lock held. */
void cus_room_waited(struct cus_engine *engine);
/* The engine begins to serve a stream; it or its context is about to go. */
void cus_room_stream_made(struct cus_engine *engine);
void cus_room_stream_goes(struct cus_engine *engine);
/* The program is about to destroy this stream, with what runs on it. */
void cus_room_stream_destroyed(const struct cus_engine *engine);
/* Something is begun, or was, on a stream without an engine, in this context. Called before and
 * behind it, for a wait may begin in between. */
void cus_room_begins(struct cus_stream_ref stream, CUcontext context);
/* Something is begun on streams that are not known, in this context (NULL: in any). Called before
 * it alone: a wait for the context that begins in between forgets it. */
void cus_room_begins_elsewhere(CUcontext context);
/* The thread has waited for its per-thread stream. */
void cus_room_waited_own(CUcontext context);
/* A stream without an engine is about to be destroyed; NULL: a context is, perhaps with streams. */
void cus_room_untracked_destroyed(CUstream handle, CUcontext context);
/* The address may be another context's by now, or soon: nothing is known of its room. */
void cus_room_forget(struct cus_context *context);
/* Is nothing running in this context? No lock held. */
bool cus_room_idle(struct cus_context *context);
/* Until nothing runs there, for a second at most. No lock held. */
bool cus_room_await_idle(struct cus_context *context);

/* ---- evict.c ---- */

/* Where there was no room for what a stream needs: what idle ones hold is dropped, a little at a
 * time. At the end of a step, no lock held. */
void cus_evict_idle(void);

/* ---- watchdog.c ---- */

/* Is there a thread, or could it be started now? Nothing is deferred without. */
bool cus_watchdog_ready(void);
/* A thread began to defer ops: the watchdog must not sleep. Cheap when it does not; true
 * when it did. */
bool cus_watchdog_kick(void);
/* Returns once the watchdog is outside the driver; it stays out until released (HAZARDS B14). */
void cus_watchdog_hold(void);
void cus_watchdog_release(void);
void cus_watchdog_stop(void);
/* Makes its thread real-time with this priority. False: there is none, or it may not be. */
bool cus_watchdog_raise(int priority);

/* ---- realtime.c ---- */

/* May this thread defer ops: will the watchdog run, whatever the thread does then? Engine lock
 * held. */
bool cus_realtime_allows(struct cus_thread *thread);
/* On the watchdog's thread: looks at all threads now and then. True: they may keep it from running,
 * so nothing is deferred, and it is to look again. */
bool cus_realtime_look(void);

#endif
