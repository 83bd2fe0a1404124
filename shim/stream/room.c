/*
 * Room: which graphs can be built without a wait for the GPU (HAZARDS A16, G5). A driver keeps the
 * streams and executable graphs of a context in pools. To enlarge a pool, the driver waits until
 * nothing runs in the context, and meanwhile holds a lock that every launch needs. Runs on program
 * threads inside hooks. The build lock, which is innermost, guards room; the engine's lock guards
 * `freed`. The driver is asked about living streams
 * alone: a thread that is about to let a stream die clears `askable` first, under the build lock.
 */
#include <sched.h>
#include <time.h>

#include "shim/base/cancel.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/graph/relax.h"
#include "shim/stream/access.h"
#include "shim/stream/fallback.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"

/* Beside a kernel that runs until the host stops it, a call that enlarges a pool never returns, and
 * no rule need name such a kernel. A call that finds room in a pool returns at once, whatever runs.
 * What is destroyed stays in the pools (measured with driver 580: tests/gpu/RESULTS.md, "Room for
 * graphs").
 *
 * So a graph is built in one of these cases:
 *
 * | case                                  | how it is known                             |
 * | ------------------------------------- | ------------------------------------------- |
 * | the library gave back enough room, or | counted in struct cus_room                  |
 * | the context is new                    |                                             |
 * | nothing runs in the context           | its streams are asked, and untracked        |
 * |                                       | streams where that is possible              |
 *
 * Otherwise the build is put off. When the host has next waited for the stream and nothing runs,
 * room is made: graphs of the wanted sizes are built and destroyed. */

/* Room that is counted in the pools of a new context; driver 580 has room for 32 graphs and 4000
 * nodes. */
enum { FIRST_GRAPHS = 24, FIRST_NODES = 3600 };

enum {
    /* How long to wait for what runs, in ns, when memory has run out. */
    GIVE_BACK_NS = 1000000000,
    /* After such a wait in vain, later waits last a hundredth of that, for this long in ns. */
    STAYS_NS = 1000000000,
    LOOK_NS = 50000
};

/* ---- streams that can be asked ---- */

/* Atomics: threads that ask a stream, and threads in a call that begins a capture. A capture that
 * begins between the two questions of says_complete would be spoilt by the second one (D7). So a
 * thread asks only while none begins, and a capture begins once nobody asks. */
static uint32_t asking, beginning;

/* The wait ends: a thread that asks makes two calls of the driver, which return at once, and no
 * thread asks anew. It is bounded all the same. */
void cus_room_capture_begins(void) {
    enum { LOOKS = 1000000 };
    __atomic_add_fetch(&beginning, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; CUS_HAZARD(D7) && i < LOOKS && __atomic_load_n(&asking, __ATOMIC_SEQ_CST);
         i++)
        sched_yield();
}

bool cus_room_asks(void) {
    return __atomic_load_n(&asking, __ATOMIC_SEQ_CST);
}

void cus_room_capture_tried(void) {
    __atomic_sub_fetch(&beginning, 1, __ATOMIC_SEQ_CST);
}

/* Is the stream idle? Asking may spoil a capture elsewhere (D2). A stream that captures, or that
 * belongs to another stream's capture, is asked nothing more (D7). */
static bool says_complete(CUstream stream) {
    const struct cus_driver *driver = cus_process.driver;
    struct cus_relaxed relaxed = cus_relax(driver);
    CUstreamCaptureStatus status;
    __atomic_add_fetch(&asking, 1, __ATOMIC_SEQ_CST);
    bool may = !CUS_HAZARD(D7) || !__atomic_load_n(&beginning, __ATOMIC_SEQ_CST);
    bool done = may && driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
                status == CU_STREAM_CAPTURE_STATUS_NONE &&
                driver->cuStreamQuery(stream) == CUDA_SUCCESS;
    __atomic_sub_fetch(&asking, 1, __ATOMIC_SEQ_CST);
    cus_relax_end(driver, relaxed);
    return done;
}

bool cus_room_complete(const struct cus_engine *engine) {
    bool pushed;
    if (!cus_context_enter(engine->context->handle, &pushed))
        return false;
    bool done = says_complete(engine->handle);
    cus_context_leave(pushed);
    return done;
}

/* ---- untracked streams: streams with work and without an engine ----
 *
 * A stream with a handle is asked if it is busy. Only the stream's own thread can ask a per-thread
 * stream, and nobody can ask a destroyed stream. Their work counts as ended once that thread waited
 * for its per-thread stream, or the program waited for the context. */

static struct cus_untracked_streams *untracked(void) {
    return &cus_process.untracked;
}

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* Does the stream have a handle that means the same stream in every context and thread? */
static bool has_handle(const struct cus_untracked *one) {
    return one->handle && one->handle != CU_STREAM_LEGACY && !one->thread;
}

/* Build lock held. */
static void remove_untracked(uint32_t at) {
    uint32_t last = untracked()->n - 1;
    untracked()->of[at] = untracked()->of[last];
    __atomic_store_n(&untracked()->n, last, __ATOMIC_RELAXED);
    __atomic_add_fetch(&untracked()->epoch, 1, __ATOMIC_SEQ_CST);
}

static struct cus_untracked *find_untracked(const struct cus_untracked *like) {
    struct cus_untracked_streams *all = untracked();
    for (uint32_t i = 0; i < all->n; i++)
        if (all->of[i].handle == like->handle && all->of[i].thread == like->thread &&
            all->of[i].context == like->context)
            return &all->of[i];
    return NULL;
}

/* Two entries of one context become one that nobody can ask. Build lock held. */
static void merge_untracked(uint32_t waits) {
    struct cus_untracked_streams *all = untracked();
    for (uint32_t i = all->n; i-- > 0;) {
        for (uint32_t k = 0; k < i && !has_handle(&all->of[i]); k++) {
            if (has_handle(&all->of[k]) || all->of[k].context != all->of[i].context)
                continue;
            all->of[k] = (struct cus_untracked){.context = all->of[i].context, .waits = waits};
            remove_untracked(i);
            return;
        }
    }
}

/* If the table is full, an entry that nobody can ask stands for the stream, if its context has one.
 * Otherwise streams that are idle go, or two entries become one. If neither helps, the first entry
 * becomes one that nobody can ask and that stands for any context. Build lock held. */
static void add_untracked(struct cus_untracked new) {
    static const struct cus_untracked any = {.context = NULL};
    struct cus_untracked_streams *all = untracked();
    new.waits = __atomic_load_n(&all->waits, __ATOMIC_SEQ_CST) + 1;
    struct cus_untracked *same = find_untracked(&new);
    bool full = !same && all->n == CUS_UNTRACKED_MAX;
    if (full && !has_handle(&new))
        same = find_untracked(&(struct cus_untracked){.context = new.context});
    if (full && !same && !(same = find_untracked(&any))) {
        for (uint32_t i = all->n; i-- > 0;)
            if (has_handle(&all->of[i]) && says_complete(all->of[i].handle))
                remove_untracked(i);
        if (all->n == CUS_UNTRACKED_MAX)
            merge_untracked(new.waits);
        if (all->n == CUS_UNTRACKED_MAX) {
            same = &all->of[0];
            *same = any;
        }
    }
    if (same) {
        same->waits = new.waits;
        return;
    }
    all->of[all->n] = new;
    __atomic_store_n(&all->n, all->n + 1, __ATOMIC_RELAXED);
}

/* While there is no engine, nothing is built. Then it is only counted how many threads have work on
 * their per-thread streams, so that threads that use no other streams share no lock. */
static bool is_before(struct cus_thread *thread) {
    if (__atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST))
        return false;
    if (!thread->own_before)
        __atomic_add_fetch(&untracked()->before, 1, __ATOMIC_SEQ_CST);
    thread->own_before = true;
    return !__atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST);
}

/* The entry that stands for those threads once there is an engine. */
enum { THREADS_BEFORE = -1 };
static const struct cus_untracked threads_before = {.thread = (uint32_t)THREADS_BEFORE};

/* The thread has waited for its per-thread stream. */
static void ended_before(struct cus_thread *thread) {
    if (!thread->own_before)
        return;
    thread->own_before = false;
    if (__atomic_sub_fetch(&untracked()->before, 1, __ATOMIC_SEQ_CST) ||
        !__atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST))
        return;
    cus_lock_take(&cus_process.build_lock);
    for (uint32_t i = untracked()->n; i-- > 0;)
        if (untracked()->of[i].thread == threads_before.thread)
            remove_untracked(i);
    cus_lock_give(&cus_process.build_lock);
}

void cus_room_begins(struct cus_stream_ref ref, CUcontext context) {
    struct cus_thread *thread = &cus_thread_self;
    bool own = cus_ref_is_per_thread(ref);
    if (own && is_before(thread))
        return;
    if (own && !thread->number)
        thread->number = __atomic_add_fetch(&untracked()->threads, 1, __ATOMIC_RELAXED);
    struct cus_untracked new = {.handle = own ? CU_STREAM_PER_THREAD : cus_ref_handle(ref),
                                .thread = own ? thread->number : 0,
                                .context = context};
    uint32_t epoch = __atomic_load_n(&untracked()->epoch, __ATOMIC_SEQ_CST);
    if (thread->untracked == new.handle && thread->untracked_context == context &&
        thread->untracked_epoch == epoch)
        return;
    cus_lock_take(&cus_process.build_lock);
    thread->untracked_epoch = __atomic_load_n(&untracked()->epoch, __ATOMIC_SEQ_CST);
    add_untracked(new);
    cus_lock_give(&cus_process.build_lock);
    thread->untracked = new.handle;
    thread->untracked_context = context;
}

void cus_room_begins_elsewhere(CUcontext context) {
    cus_lock_take(&cus_process.build_lock);
    add_untracked((struct cus_untracked){.context = context});
    cus_lock_give(&cus_process.build_lock);
}

void cus_room_waited_own(CUcontext context) {
    struct cus_untracked_streams *all = untracked();
    ended_before(&cus_thread_self);
    if (!__atomic_load_n(&all->n, __ATOMIC_RELAXED))
        return;
    cus_lock_take(&cus_process.build_lock);
    for (uint32_t i = all->n; i-- > 0;)
        if (all->of[i].thread && all->of[i].thread == cus_thread_self.number &&
            all->of[i].context == context)
            remove_untracked(i);
    cus_lock_give(&cus_process.build_lock);
}

/* The program waits for its context. Work that began before the wait has ended when the wait
 * returns. A thread that begins work meanwhile notices that `epoch` moved. */
uint32_t cus_engine_wait_begins(void) {
    uint32_t number = __atomic_add_fetch(&untracked()->waits, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&untracked()->epoch, 1, __ATOMIC_SEQ_CST);
    return number;
}

void cus_engine_wait_ended(uint32_t number) {
    struct cus_untracked_streams *all = untracked();
    if (!__atomic_load_n(&all->n, __ATOMIC_RELAXED))
        return;
    CUcontext context = current_context();
    bool only = __atomic_load_n(&cus_process.n_contexts, __ATOMIC_RELAXED) <= 1;
    cus_lock_take(&cus_process.build_lock);
    for (uint32_t i = all->n; i-- > 0;)
        if ((all->of[i].context == context || only) && (int32_t)(all->of[i].waits - number) <= 0)
            remove_untracked(i);
    cus_lock_give(&cus_process.build_lock);
}

/* Are the untracked streams of the current context idle? Work in other contexts is in nobody's
 * way (measured). A stream with a handle may be of any context, so it is always asked. Build
 * lock held. */
static bool untracked_idle(CUcontext context) {
    for (uint32_t i = untracked()->n; i-- > 0;) {
        const struct cus_untracked *one = &untracked()->of[i];
        if (!has_handle(one) && one->context && one->context != context)
            continue;
        bool may_ask = one->handle && (!one->thread || one->thread == cus_thread_self.number);
        if (!may_ask || !says_complete(one->handle))
            return false;
        remove_untracked(i);
    }
    return true;
}

/* The stream with this handle, or any with a handle (NULL), may not exist after this call. Each
 * such stream is asked now for the last time. */
void cus_room_untracked_destroyed(CUstream handle, CUcontext context) {
    struct cus_untracked_streams *all = untracked();
    if (!__atomic_load_n(&all->n, __ATOMIC_RELAXED))
        return;
    cus_lock_take(&cus_process.build_lock);
    for (uint32_t i = all->n; i-- > 0;) {
        struct cus_untracked one = all->of[i];
        if (!has_handle(&one) || (handle && one.handle != handle))
            continue;
        bool ended = says_complete(one.handle);
        remove_untracked(i);
        if (!ended)
            add_untracked((struct cus_untracked){.context = handle ? context : one.context});
    }
    cus_lock_give(&cus_process.build_lock);
}

/* ---- is nothing running? ---- */

/* Does nothing run in the current context? The stream that was busy last is asked first. Build lock
 * held. */
static bool idle(struct cus_context *context) {
    struct cus_room *room = &context->room;
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0, at = room->busy < n ? room->busy : 0; i < n; i++, at = (at + 1) % n) {
        const struct cus_engine *engine = cus_process.engines[at];
        if (__atomic_load_n(&engine->askable, __ATOMIC_ACQUIRE) && engine->context == context &&
            !cus_room_complete(engine)) {
            room->busy = at;
            return false;
        }
    }
    return untracked_idle(context->handle);
}

/* The caller holds the registry lock, so it must not wait for a build, except for the first engine
 * of all. */
void cus_room_stream_made(struct cus_engine *engine) {
    __atomic_store_n(&engine->askable, true, __ATOMIC_RELEASE);
    if (engine->number)
        return;
    cus_lock_take(&cus_process.build_lock);
    if (__atomic_load_n(&untracked()->before, __ATOMIC_SEQ_CST))
        add_untracked(threads_before);
    cus_lock_give(&cus_process.build_lock);
}

void cus_room_stream_goes(struct cus_engine *engine) {
    cus_lock_take(&cus_process.build_lock);
    __atomic_store_n(&engine->askable, false, __ATOMIC_RELAXED);
    cus_lock_give(&cus_process.build_lock);
}

void cus_room_stream_destroyed(const struct cus_engine *engine) {
    cus_lock_take(&cus_process.build_lock);
    if (engine->askable && !cus_room_complete(engine))
        add_untracked((struct cus_untracked){.context = engine->context->handle});
    cus_lock_give(&cus_process.build_lock);
}

/* ---- room ---- */

void cus_engine_room_taken(bool graph) {
    __atomic_add_fetch(graph ? &cus_process.made_graphs : &cus_process.made_streams, 1,
                       __ATOMIC_RELAXED);
}

void cus_room_forget(struct cus_context *context) {
    cus_lock_take(&cus_process.build_lock);
    context->room.graphs = context->room.nodes = 0;
    cus_lock_give(&cus_process.build_lock);
}

void cus_room_context_goes(CUcontext handle) {
    struct cus_untracked_streams *all = untracked();
    cus_lock_take(&cus_process.build_lock);
    for (uint32_t i = all->n; i-- > 0;)
        if (!has_handle(&all->of[i]) && all->of[i].context == handle)
            remove_untracked(i);
    cus_lock_give(&cus_process.build_lock);
}

void cus_room_context_stays(struct cus_context *context) {
    cus_lock_take(&cus_process.build_lock);
    context->room = (struct cus_room){.begun = true};
    add_untracked((struct cus_untracked){.context = context->handle});
    cus_lock_give(&cus_process.build_lock);
}

/* Subtracts what the program has made since the last look. */
void cus_room_look_at_program(struct cus_room *room) {
    uint32_t graphs = __atomic_load_n(&cus_process.made_graphs, __ATOMIC_RELAXED);
    uint32_t made = graphs + __atomic_load_n(&cus_process.made_streams, __ATOMIC_RELAXED);
    if (!room->begun) {
        *room = (struct cus_room){.begun = true, .graphs = FIRST_GRAPHS, .nodes = FIRST_NODES};
        room->nodes = graphs ? 0 : room->nodes;
    } else if (graphs != room->program_graphs) {
        room->nodes = 0;
    }
    uint32_t more = made - room->program_made;
    room->graphs -= more < room->graphs ? more : room->graphs;
    room->program_graphs = graphs;
    room->program_made = made;
}

/* The destroyed graphs are no longer running: their room is free again. */
void cus_room_take_freed(struct cus_engine *engine) {
    struct cus_room *room = &engine->context->room;
    room->graphs += engine->freed.graphs;
    room->nodes += engine->freed.nodes;
    cus_engine_freed_none(engine);
}

/* Notes a wanted graph for the whole context: any stream that finds the context idle makes room. */
static void want(struct cus_engine *engine, uint32_t nodes) {
    struct cus_wanted *wanted = &engine->context->wanted;
    cus_fallback(CUS_FALLBACK_ROOM);
    if (wanted->n < CUS_WANTED)
        wanted->nodes[__atomic_fetch_add(&wanted->n, 1, __ATOMIC_RELAXED)] = nodes;
}

/* The first graph needs one more object: the private stream on which it is captured. */
static uint32_t objects(const struct cus_engine *engine) {
    return engine->capture_stream ? 1 : 2;
}

static bool has_room(const struct cus_engine *engine, uint32_t nodes) {
    const struct cus_room *room = &engine->context->room;
    return room->graphs >= objects(engine) && room->nodes >= nodes;
}

bool cus_room_for(struct cus_engine *engine, uint32_t nodes) {
    if (CUS_HAZARD(A16) && __atomic_load_n(&cus_process.copiers, __ATOMIC_ACQUIRE))
        return false;
    if (!CUS_HAZARD(G5) || cus_options()->trust_driver)
        return true;
    cus_room_look_at_program(&engine->context->room);
    if (has_room(engine, nodes))
        return true;
    /* Dropped graphs make room once their work has ended. */
    if (engine->freed.graphs && cus_room_complete(engine))
        cus_room_take_freed(engine);
    if (has_room(engine, nodes))
        return true;
    if (idle(engine->context)) {
        cus_room_take_freed(engine);
        return true;
    }
    want(engine, nodes);
    return false;
}

/* Also called for a graph that is built while nothing runs: it may take what was free. */
void cus_room_take(struct cus_engine *engine, uint32_t nodes) {
    struct cus_room *room = &engine->context->room;
    uint32_t graphs = objects(engine);
    room->graphs -= graphs < room->graphs ? graphs : room->graphs;
    room->nodes -= nodes < room->nodes ? nodes : room->nodes;
}

/* The number of looks is bounded too, for a clock that stands still (cusplice whatif). */
bool cus_room_settle(struct cus_context *context, uint64_t until_ns) {
    uint64_t now = cus_clock_ns();
    for (uint64_t looks = now < until_ns ? (until_ns - now) / LOOK_NS : 0; !idle(context);
         looks--) {
        if (!looks || cus_clock_ns() >= until_ns)
            return false;
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    }
    return true;
}

/* ---- out of memory ---- */

bool cus_room_idle(struct cus_context *context) {
    cus_lock_take(&cus_process.build_lock);
    bool nothing = idle(context);
    cus_lock_give(&cus_process.build_lock);
    return nothing;
}

/* Atomic, ns: until then, work that did not end in time is expected to stay. */
static uint64_t stays;

void cus_room_drop(void) {
    stays = 0;
}

/* Memory of destroyed graphs stays in the driver's pools. A call that needs the memory makes the
 * driver shrink the pools, which waits like enlarging them. So nothing may run. */
bool cus_room_await_idle(struct cus_context *context) {
    uint64_t now = cus_clock_ns();
    bool hopeless = now < __atomic_load_n(&stays, __ATOMIC_RELAXED);
    uint32_t looks = (hopeless ? GIVE_BACK_NS / 100 : GIVE_BACK_NS) / LOOK_NS;
    int cancel = cus_cancel_off();
    bool ended = cus_room_idle(context);
    for (; !ended && looks; looks--) {
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        ended = cus_room_idle(context);
    }
    cus_cancel_back(cancel);
    if (!ended)
        __atomic_store_n(&stays, cus_clock_ns() + STAYS_NS, __ATOMIC_RELAXED);
    return ended;
}
