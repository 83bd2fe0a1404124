/*
 * Which contexts and streams were seen, and which engine each stream has. Any thread; the table of
 * streams belongs to the registry lock. Nothing here makes or closes an engine (registry.c). The
 * driver is only asked whether a stream captures.
 */
/* For keys of two words. uthash's own hash works byte by byte. */
#define HASH_FUNCTION(key, bytes, hash) ((hash) = hash_of_key(key))

#include "shim/stream/streams.h"
#include "shim/base/hash.h"
#include "shim/base/hazard.h"
#include "shim/base/mem.h"

struct cus_process cus_process;
const char cus_no_stream;
__thread struct cus_thread cus_thread_self
    __attribute__((tls_model("initial-exec"))) = {.cached_stream = {CUS_NO_STREAM, CUS_NO_STREAM}};

struct cus_lock cus_registry_lock = CUS_LOCK_OF(CUS_RANK_REGISTRY);
static struct cus_stream_entry *streams; /* cus_registry_lock */
/* Objects are never freed: threads remember them. One without a handle serves no context, and will
 * serve the next new one. cus_registry_lock for changes of the list and of `handle`. */
static struct cus_context *contexts;
static uint32_t contexts_seen; /* cus_registry_lock */

static unsigned hash_of_key(const void *at) {
    const struct cus_stream_key *key = at;
    uint64_t hash = cus_hash_pointer(key->handle);
    hash = cus_hash_second(hash ^ hash >> 32 ^ (uint64_t)(uintptr_t)key->context);
    return (unsigned)(hash >> 32);
}

static struct cus_stream_key key_of(CUcontext context, CUstream handle) {
    return (struct cus_stream_key){handle == CU_STREAM_LEGACY ? context : NULL,
                                   CUS_HAZARD(A1) ? handle : CU_STREAM_LEGACY};
}

/* Registry lock held, here and below. */
static struct cus_context *find_context(CUcontext handle) {
    struct cus_context *context = contexts;
    while (context && __atomic_load_n(&context->handle, __ATOMIC_RELAXED) != handle)
        context = context->next;
    return context;
}

static struct cus_context *new_context(CUcontext handle) {
    struct cus_context *context = find_context(NULL);
    if (!context) {
        if (!(context = cus_mem_alloc(sizeof *context)))
            return NULL;
        CUS_LOCK_RANK(&context->lock, CUS_RANK_CONTEXT);
        context->next = contexts;
        contexts = context;
    }
    context->number = ++contexts_seen;
    __atomic_store_n(&context->handle, handle, __ATOMIC_RELAXED);
    __atomic_add_fetch(&cus_process.n_contexts, 1, __ATOMIC_RELAXED);
    return context;
}

struct cus_context *cus_streams_context(CUcontext handle) {
    struct cus_thread *thread = &cus_thread_self;
    if (!handle)
        return NULL;
    if (thread->last_context &&
        __atomic_load_n(&thread->last_context->handle, __ATOMIC_RELAXED) == handle)
        return thread->last_context;
    cus_lock_take(&cus_registry_lock);
    struct cus_context *context = find_context(handle);
    if (!context)
        context = new_context(handle);
    cus_lock_give(&cus_registry_lock);
    thread->last_context = context;
    return context;
}

/* Registry lock held. */
static bool is_in_use(const struct cus_context *context) {
    for (uint32_t i = 0; i < cus_process.n_engines; i++) {
        const struct cus_engine *engine = cus_process.engines[i];
        if (!__atomic_load_n(&engine->closed, __ATOMIC_ACQUIRE) && engine->context == context)
            return true;
    }
    return false;
}

struct cus_context *cus_streams_take_context(CUcontext handle) {
    cus_lock_take(&cus_registry_lock);
    struct cus_context *context = handle ? find_context(handle) : NULL;
    if (context && is_in_use(context))
        context = NULL;
    if (context) {
        __atomic_store_n(&context->handle, (CUcontext)context, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&cus_process.n_contexts, 1, __ATOMIC_RELAXED);
    }
    cus_lock_give(&cus_registry_lock);
    return context;
}

void cus_streams_free_context(struct cus_context *context) {
    size_t from = offsetof(struct cus_context, funcs);
    cus_lock_take(&context->lock);
    memset((char *)context + from, 0, sizeof *context - from);
    cus_lock_give(&context->lock);
    cus_lock_take(&cus_registry_lock);
    __atomic_store_n(&context->handle, NULL, __ATOMIC_RELAXED);
    cus_lock_give(&cus_registry_lock);
}

struct cus_context *cus_streams_contexts(void) {
    cus_lock_take(&cus_registry_lock);
    struct cus_context *first = contexts;
    cus_lock_give(&cus_registry_lock);
    return first;
}

/* `captures` may be too high, so each stream in the list is asked (HAZARDS D5). */
bool cus_program_captures(struct cus_context *context) {
    if (!__atomic_load_n(&context->captures, __ATOMIC_ACQUIRE))
        return false;
    bool open = false;
    cus_lock_take(&context->lock);
    uint32_t n = context->captures, kept = 0;
    for (uint32_t i = 0; i < n && i < sizeof context->capturing / sizeof *context->capturing; i++) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        CUresult result = cus_process.driver->cuStreamIsCapturing(context->capturing[i], &status);
        if (!CUS_HAZARD(D5) || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
            (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)) {
            context->capturing[kept++] = context->capturing[i];
            open = true;
        }
    }
    __atomic_store_n(&context->captures, kept, __ATOMIC_RELEASE);
    cus_lock_give(&context->lock);
    return open;
}

/* ---- streams ---- */

struct cus_stream_entry *cus_streams_find(CUcontext context, CUstream handle) {
    struct cus_stream_key key = key_of(context, handle);
    struct cus_stream_entry *entry;
    HASH_FIND(hh, streams, &key, sizeof key, entry);
    return entry;
}

struct cus_stream_entry *cus_streams_add(CUcontext context, CUstream handle) {
    struct cus_stream_entry *entry = cus_mem_alloc(sizeof *entry);
    bool added = true;
    if (!entry)
        return NULL;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    entry->key = key_of(context, handle);
    HASH_ADD(hh, streams, key, sizeof entry->key, entry);
    if (added)
        return entry;
    cus_mem_free(entry);
    return NULL;
}

void cus_streams_remove(CUcontext context, CUstream handle) {
    struct cus_stream_entry *entry = cus_streams_find(context, handle);
    if (entry) {
        HASH_DEL(streams, entry);
        cus_mem_free(entry);
    }
}

struct cus_engine *cus_streams_peek(const struct cus_thread *thread, struct cus_stream_ref ref,
                                    CUcontext context) {
    if (cus_streams_found(thread, ref, context))
        return thread->none ? thread->elsewhere : thread->cached_engine;
    if (cus_ref_is_per_thread(ref) || (!context && cus_ref_is_legacy(ref)))
        return NULL;
    cus_lock_take(&cus_registry_lock);
    const struct cus_stream_entry *entry = cus_streams_find(context, cus_ref_handle(ref));
    struct cus_engine *engine = entry ? entry->engine : NULL;
    cus_lock_give(&cus_registry_lock);
    return engine;
}

void cus_streams_forget(struct cus_stream_ref ref, CUcontext context) {
    cus_lock_take(&cus_registry_lock);
    const struct cus_stream_entry *entry = cus_streams_find(context, cus_ref_handle(ref));
    if (entry && !entry->engine)
        cus_streams_remove(context, cus_ref_handle(ref));
    cus_lock_give(&cus_registry_lock);
    __atomic_add_fetch(&cus_process.registry_epoch, 1, __ATOMIC_ACQ_REL);
}

void cus_streams_forget_alone(void) {
    struct cus_stream_entry *entry, *next_entry;
    cus_lock_take(&cus_registry_lock);
    HASH_ITER(hh, streams, entry, next_entry) {
        if (entry->engine)
            continue;
        HASH_DEL(streams, entry);
        cus_mem_free(entry);
    }
    cus_lock_give(&cus_registry_lock);
    __atomic_add_fetch(&cus_process.registry_epoch, 1, __ATOMIC_ACQ_REL);
}

bool cus_streams_same(struct cus_engine *engine) {
    uint32_t epoch = __atomic_load_n(&cus_process.registry_epoch, __ATOMIC_ACQUIRE);
    if (engine->epoch == epoch)
        return true;
    unsigned long long id = 0;
    if (CUS_HAZARD(B13) && cus_process.driver->cuStreamGetId && !engine->legacy &&
        (cus_process.driver->cuStreamGetId(engine->handle, &id) != CUDA_SUCCESS ||
         id != engine->id))
        return false;
    __atomic_store_n(&engine->epoch, epoch, __ATOMIC_RELAXED);
    return true;
}

/* A thread may remember a context (`last_context`), so that the object stays. */
void cus_streams_drop(void) {
    struct cus_stream_entry *entry, *next_entry;
    HASH_ITER(hh, streams, entry, next_entry) {
        HASH_DEL(streams, entry);
        cus_mem_free(entry);
    }
    for (struct cus_context *context = contexts; context; context = context->next)
        cus_streams_free_context(context);
    contexts_seen = 0;
}
