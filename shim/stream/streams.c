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
static struct cus_context *contexts; /* cus_registry_lock for changes; entries are never freed */
/* cus_registry_lock: entries of an earlier start, to be used again. */
static struct cus_context *spare_contexts;

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

static struct cus_context *new_context(void) {
    struct cus_context *context = spare_contexts;
    if (!context)
        return cus_mem_alloc(sizeof *context);
    spare_contexts = context->next;
    return context;
}

struct cus_context *cus_streams_context(CUcontext handle) {
    struct cus_thread *thread = &cus_thread_self;
    if (!handle)
        return NULL;
    if (thread->last_context && thread->last_context->handle == handle)
        return thread->last_context;
    cus_lock_take(&cus_registry_lock);
    struct cus_context *context = contexts;
    while (context && context->handle != handle)
        context = context->next;
    if (!context && (context = new_context())) {
        CUS_LOCK_RANK(&context->lock, CUS_RANK_CONTEXT);
        context->handle = handle;
        context->number = cus_process.n_contexts + 1;
        context->next = contexts;
        contexts = context;
        __atomic_add_fetch(&cus_process.n_contexts, 1, __ATOMIC_RELAXED);
    }
    cus_lock_give(&cus_registry_lock);
    thread->last_context = context;
    return context;
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
    if (!context || cus_ref_is_per_thread(ref))
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
    for (struct cus_context *context = contexts, *next; context; context = next) {
        next = context->next;
        memset(context, 0, sizeof *context);
        context->next = spare_contexts;
        spare_contexts = context;
    }
    contexts = NULL;
}
