/*
 * The registry: which contexts and streams there are, and which engine serves which stream. Program
 * threads look up a stream at every op. Each thread keeps its last look-up, which holds until the
 * registry's epoch moves (a stream or context may have gone). Everything else runs under the
 * registry lock. The driver is only asked for identities, and a stream that captures only whether
 * it captures (HAZARDS D7).
 */
#include <string.h>

#include "shim/base/check.h"
#include "shim/base/clock.h"
#include "shim/base/hash.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/graph/relax.h"
#include "shim/stats/gpus.h"
#include "shim/stream/advice.h"
#include "shim/stream/branches.h"
#include "shim/stream/building.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/deferred.h"
#include "shim/stream/demotion.h"
#include "shim/stream/graphs.h"
#include "shim/stream/hangs.h"
#include "shim/stream/pools.h"
#include "shim/stream/registry.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/stream/why.h"

/* The most time to fill a segment, in ns for each us of hold_us (HAZARDS F4). */
enum { FILL_NS = 400 };

static struct cus_engine *closed_engines; /* cus_registry_lock: objects to be used again */

static bool is_green(CUstream stream) {
    const struct cus_driver *driver = cus_process.driver;
    CUgreenCtx green = NULL;
    return driver->cuStreamGetGreenCtx &&
           (driver->cuStreamGetGreenCtx(stream, &green) != CUDA_SUCCESS || green);
}

void cus_registry_forget_device(struct cus_context *context) {
    __atomic_store_n(&context->hangs, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&context->pageable, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&context->gpu, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&context->gpu_noted, false, __ATOMIC_RELAXED);
    cus_room_forget(context);
}

/* A stream may be used while another context is current. Graphs for the stream would then be built
 * in the wrong context (HAZARDS A2). */
static bool belongs_to(CUstream stream, CUcontext context) {
    const struct cus_driver *driver = cus_process.driver;
    CUcontext owner = context;
    if (stream == CU_STREAM_LEGACY || !driver->cuStreamGetCtx)
        return true;
    return driver->cuStreamGetCtx(stream, &owner) == CUDA_SUCCESS && owner == context;
}

/* The object of this number that an earlier start left (cus_registry_drop), or a new one. */
static struct cus_engine *new_object(uint32_t n) {
    if (n == CUS_ENGINES_MAX)
        return NULL;
    struct cus_engine *left = cus_process.engines[n];
    return left ? left : cus_mem_lines(cus_engine_bytes());
}

static struct cus_engine *new_engine(void) {
    struct cus_engine *engine = closed_engines;
    if (engine) {
        closed_engines = engine->next_free;
        return engine;
    }
    uint32_t n = cus_process.n_engines;
    if (!(engine = new_object(n)))
        return NULL;
    CUS_LOCK_RANK(&engine->lock, CUS_RANK_ENGINE);
    engine->shadow = cus_check_new();
    engine->number = n;
    engine->closed =
        true; /* until the engine has a stream: other threads may see it from here on */
    cus_process.engines[n] = engine;
    /* Sequentially consistent: a thread that puts the watchdog to sleep, or switches deferral off,
     * sees this engine, or this thread sees what the other one wrote. */
    __atomic_store_n(&cus_process.n_engines, n + 1, __ATOMIC_SEQ_CST);
    return engine;
}

/* What the driver says of a stream that is new to the library. */
struct answers {
    unsigned flags;
    uint64_t id;   /* 0: unknown */
    uint64_t seed; /* of advice */
};

static struct cus_plan_limits limits_of_plans(void) {
    const struct cus_options *options = cus_options();
    return (struct cus_plan_limits){.warmup = options->warmup,
                                    .segment_first = options->segment_first,
                                    .segment_max = options->segment_max,
                                    .segment_ns = options->hold_us * FILL_NS,
                                    .variants = options->variants,
                                    .nodes_max = options->nodes_max,
                                    .mode = cus_options_graphs(options),
                                    .count_only = !cus_process.learns};
}

static void set_up(struct cus_engine *engine, struct cus_context *context, CUstream handle,
                   const struct answers *answers) {
    struct cus_plan_limits limits = limits_of_plans();
    /* This is against the lock order, but cannot deadlock: a thread that still holds this lock has
     * just closed the engine, and needs the registry lock no more. */
    cus_lock_take_unordered(&engine->lock);
    cus_engine_freed_none(engine);
    /* Atomic: the object may have been another stream's, which a thread still looks at. */
    __atomic_store_n(&engine->user, NULL, __ATOMIC_SEQ_CST);
    cus_branch_joined(engine, NULL, 0);
    __atomic_store_n(&engine->side_of, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->waited_for, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->unjoined, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->turned, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->life, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->calls, 1, __ATOMIC_RELAXED); /* it may have had work before */
    engine->context = context;
    engine->handle = handle;
    engine->legacy = handle == CU_STREAM_LEGACY;
    engine->blocking = engine->legacy || !(answers->flags & CU_STREAM_NON_BLOCKING);
    engine->capture_refused = false;
    engine->traced_epoch = 0;
    __atomic_store_n(&engine->late_error, CUDA_SUCCESS, __ATOMIC_RELAXED);
    engine->cut_at = engine->counters.in_graphs;
    engine->ended = 0;
    engine->epoch = __atomic_load_n(&cus_process.registry_epoch, __ATOMIC_ACQUIRE);
    engine->step_at = engine->earlier_ops = cus_engine_ops(engine);
    engine->step_graphs = engine->earlier_graphs = engine->counters.in_graphs;
    engine->step_longest = engine->step_number = engine->step_covered = 0;
    engine->learning = (struct cus_learning){.steps = 0};
    engine->timed_ns = cus_clock_ns();
    engine->id = answers->id;
    uint64_t formed = engine->view.n_formed; /* by the streams that this object served before */
    cus_plan_init(cus_engine_plan(engine), &limits, cus_deferred_drop_exec, engine);
    engine->view.n_formed = formed;
    cus_plan_advise(cus_engine_plan(engine), cus_advice_get(), answers->seed);
    engine->step_new = engine->view.new_nodes;
    engine->building.length = 0;
    engine->building.began = cus_engine_account(engine);
    cus_build_allow(engine);
    cus_demotion_start(engine);
    cus_room_stream_made(engine);
    __atomic_store_n(&engine->closed, false, __ATOMIC_RELEASE);
    cus_engine_unlock(engine);
}

/* Context current. */
static void note_gpu(struct cus_context *context) {
    static const CUdevice_attribute asked[] = {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                                               CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                               CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID};
    const struct cus_driver *driver = cus_process.driver;
    int values[3];
    CUdevice device;
    if (__atomic_exchange_n(&context->gpu_noted, true, __ATOMIC_RELAXED) ||
        !driver->cuDeviceGetAttribute || driver->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < 3; i++)
        if (driver->cuDeviceGetAttribute(&values[i], asked[i], device) != CUDA_SUCCESS)
            return;
    cus_gpu_note(cus_gpu_of(values[0], values[1], values[2]));
}

/* Asks the driver about the stream: its flags and identity, so nothing of the program changes. No
 * lock is held, because other threads need not wait for a driver that does not answer. False: the
 * stream gets no engine. */
static bool ask(struct cus_context *context, CUstream handle, struct answers *answers) {
    const struct cus_driver *driver = cus_process.driver;
    const struct cus_plan_limits limits = limits_of_plans();
    unsigned long long id = 0;
    struct cus_relaxed relaxed = cus_relax(driver);
    note_gpu(context);
    bool serves = driver->cuStreamGetFlags(handle, &answers->flags) == CUDA_SUCCESS &&
                  !(CUS_HAZARD(B10) && is_green(handle)) &&
                  (!CUS_HAZARD(A27) || cus_options()->trust_driver || !cus_graphs_hang(context));
    if (serves && driver->cuStreamGetId)
        driver->cuStreamGetId(handle, &id);
    answers->id = id;
    answers->seed = serves ? cus_advice_seed(context, &limits) : 0;
    cus_relax_end(driver, relaxed);
    return serves;
}

/* Registry lock held. */
static struct cus_engine *make_engine(struct cus_context *context, CUstream handle,
                                      const struct answers *answers) {
    struct cus_engine *engine = new_engine();
    if (engine)
        set_up(engine, context, handle, answers);
    if (engine && engine->legacy)
        __atomic_store_n(&context->legacy, engine, __ATOMIC_RELEASE);
    return engine;
}

/* An engine serves its own context only: its graphs are of no use in another. Registry lock
 * held. */
static struct cus_engine *engine_for(const struct cus_stream_entry *entry,
                                     const struct cus_context *context) {
    if (!entry || !entry->engine || (CUS_HAZARD(A2) && entry->engine->context != context))
        return NULL;
    return entry->engine;
}

/* Notes a look-up that the thread may use until the epoch moves. An entry does not change while it
 * exists. A stream without an entry may get one from any thread. Registry lock held. */
static void note_found(struct cus_thread *thread, const struct cus_stream_entry *entry,
                       const struct cus_context *context) {
    thread->cached_engine = engine_for(entry, context);
    thread->none = entry && !thread->cached_engine;
    thread->elsewhere = thread->none ? entry->engine : NULL;
}

static void find_or_make(struct cus_thread *thread, struct cus_context *context, CUstream handle) {
    cus_lock_take(&cus_registry_lock);
    struct cus_stream_entry *entry = cus_streams_find(context->handle, handle);
    note_found(thread, entry, context);
    cus_lock_give(&cus_registry_lock);
    if (entry)
        return;
    /* Flags and id are asked below, and that would spoil an open capture (seen with driver 580). So
     * a stream that captures is left out, and looked at again at its next op. */
    CUstreamCaptureStatus status;
    if (CUS_HAZARD(D7) &&
        (cus_process.driver->cuStreamIsCapturing(handle, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE))
        return;
    if (!belongs_to(handle, context->handle))
        return;
    struct answers answers = {0};
    bool serves = ask(context, handle, &answers);
    cus_lock_take(&cus_registry_lock);
    entry = cus_streams_find(context->handle, handle);
    if (!entry && (entry = cus_streams_add(context->handle, handle)) && serves)
        entry->engine = make_engine(context, handle, &answers);
    note_found(thread, entry, context);
    cus_lock_give(&cus_registry_lock);
}

static struct cus_known_stream *known_at(struct cus_thread *thread, CUstream handle, uint32_t i) {
    uint64_t first = cus_hash_pointer(handle) >> 48;
    return &thread->known[(first + i) % CUS_KNOWN_STREAMS];
}

static struct cus_engine *known_by(struct cus_thread *thread, struct cus_stream_ref ref,
                                   CUcontext context, uint32_t epoch) {
    for (uint32_t i = 0; i < CUS_KNOWN_PLACES; i++) {
        const struct cus_known_stream *known = known_at(thread, ref.handle, i);
        if (known->handle == ref.handle && known->epoch == epoch && known->abi == ref.abi &&
            known->context == context && known->engine)
            return known->engine;
    }
    return NULL;
}

static bool found_by(struct cus_thread *thread, struct cus_stream_ref ref, CUcontext context,
                     uint32_t epoch) {
    struct cus_engine *engine = known_by(thread, ref, context, epoch);
    if (!engine)
        return false;
    thread->cached_engine = engine;
    thread->none = false;
    thread->elsewhere = NULL;
    return true;
}

/* Notes a look-up in a slot that is free or outdated, or else in the first slot of the handle. */
static void note_known(struct cus_thread *thread, struct cus_stream_ref ref, CUcontext context,
                       uint32_t epoch) {
    struct cus_known_stream *place = NULL;
    if (!thread->cached_engine)
        return;
    for (uint32_t i = 0; !place && i < CUS_KNOWN_PLACES; i++) {
        struct cus_known_stream *known = known_at(thread, ref.handle, i);
        if (!known->engine || known->epoch != epoch || known->handle == ref.handle)
            place = known;
    }
    if (!place)
        place = known_at(thread, ref.handle, 0);
    *place = (struct cus_known_stream){ref.handle, thread->cached_engine, context, epoch, ref.abi};
}

struct cus_engine *cus_registry_recall(struct cus_thread *thread, struct cus_stream_ref ref,
                                       CUcontext context) {
    uint32_t epoch = __atomic_load_n(&cus_process.registry_epoch, __ATOMIC_ACQUIRE);
    struct cus_engine *engine = known_by(thread, ref, context, epoch);
    return engine ? engine : cus_streams_peek(thread, ref, context);
}

bool cus_registry_turn(struct cus_thread *thread, struct cus_stream_ref ref) {
    if (!found_by(thread, ref, thread->context, thread->epoch))
        return false;
    thread->ref = ref;
    cus_thread_cache_stream(thread);
    return true;
}

struct cus_engine *cus_registry_look_up(struct cus_thread *thread, struct cus_stream_ref ref,
                                        CUcontext context) {
    if (!context || (CUS_HAZARD(B2) && cus_ref_is_per_thread(ref)))
        return NULL;
    struct cus_context *owner = cus_streams_context(context);
    if (!owner)
        return NULL;
    uint32_t epoch = __atomic_load_n(&cus_process.registry_epoch, __ATOMIC_ACQUIRE);
    if (!found_by(thread, ref, context, epoch)) {
        find_or_make(thread, owner, cus_ref_handle(ref));
        note_known(thread, ref, context, epoch);
    }
    thread->ref = ref;
    thread->context = context;
    thread->epoch = epoch;
    cus_thread_cache_stream(thread);
    if (thread->cached_engine)
        cus_branch_note_user(thread->cached_engine, thread);
    return thread->cached_engine;
}

/* Adds what the plan knows of steps of a class to what the process knows. List lock held. */
static void keep_steps(struct cus_plan *plan, unsigned step) {
    struct cus_dispatch *kept = &cus_process.dispatch;
    const struct cus_dispatch *mine = cus_plan_dispatch(plan);
    cus_process.steps[step] += cus_plan_take_steps(plan, (enum cus_step_class)step);
    if (mine->weakest[step] <= kept->weakest[step])
        return;
    kept->weakest[step] = mine->weakest[step];
    kept->rule[step] = mine->rule[step];
    memcpy(kept->kernel[step], mine->kernel[step], sizeof kept->kernel[step]);
}

void cus_registry_keep_list(struct cus_engine *engine) {
    struct cus_process *process = &cus_process;
    uint64_t graphs = engine->counters.in_graphs - engine->earlier_graphs;
    uint64_t ops = cus_engine_ops(engine) - engine->earlier_ops;
    cus_lock_take(&process->list_lock);
    if (ops >= process->step_ops) {
        process->step_ops = ops;
        process->step_covered = engine->step_covered;
        process->learned = cus_learning_sum(&engine->learning);
    }
    for (unsigned step = 0; step < CUS_STEP_CLASSES; step++)
        keep_steps(cus_engine_plan(engine), step);
    const struct cus_segment_list *list = cus_plan_last_list(cus_engine_plan(engine));
    if (list->graphs && graphs >= process->list_graphs &&
        cus_segment_list_json(list, process->list, sizeof process->list))
        process->list_graphs = graphs;
    cus_lock_give(&process->list_lock);
}

void cus_registry_close(struct cus_engine *engine) {
    CUS_CHECK(!engine->pending);
    cus_engine_forget_kinds(engine);
    cus_registry_keep_list(engine);
    cus_why_keep_segments(engine);
    cus_advice_keep(engine);
    engine->dropping = "its stream or context went";
    cus_plan_clear(cus_engine_plan(engine));
    engine->dropping = NULL;
    cus_graphs_destroy_dropped(engine, true);
    cus_branch_close(engine);
    cus_graphs_drop_stream(engine);
    cus_room_stream_goes(engine);
    cus_pools_stream_goes(engine);
    __atomic_store_n(&engine->closed, true, __ATOMIC_RELEASE);

    cus_lock_take(&cus_registry_lock);
    cus_streams_remove(engine->context->handle, engine->handle);
    if (cus_context_legacy(engine->context) == engine)
        __atomic_store_n(&engine->context->legacy, NULL, __ATOMIC_RELEASE);
    engine->next_free = closed_engines;
    closed_engines = engine;
    __atomic_add_fetch(&cus_process.registry_epoch, 1, __ATOMIC_ACQ_REL);
    cus_lock_give(&cus_registry_lock);
}

/* A thread may remember an engine and take its lock to see that the registry's epoch has moved. So
 * the object stays in engines[], where the next start finds it. */
void cus_registry_drop(void) {
    for (uint32_t i = 0; i < cus_process.n_engines; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        cus_check_free(engine->shadow);
        cus_repeat_free(&engine->repeat);
        cus_mem_shrink(engine->frees.of);
        cus_mem_shrink(engine->submit.frees.of);
        memset(engine, 0, cus_engine_bytes());
    }
    closed_engines = NULL;
    cus_process.n_engines = 0;
}
