/*
 * Keeps the configuration of `kernel<<<...>>>(arguments)`. nvcc's host code gives it to a shared
 * runtime, and the kernel's stub fetches it back. These two calls take longer than the rest of a
 * matched launch. The thread keeps the configuration here only if a stub of the same object is
 * known to fetch it here. Any thread, at any depth; takes a lock only for a place that calls for
 * the first time. Each thread has its own frames.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/hook/runtime_table.h"

#include "shim/base/forbid.h"

typedef unsigned push_fn(struct cus_dim3 grid, struct cus_dim3 block, size_t shared,
                         CUstream stream);
typedef unsigned pop_fn(struct cus_dim3 *grid, struct cus_dim3 *block, size_t *shared,
                        CUstream *stream);

#define NOINLINE __attribute__((noinline))

/* cudaErrorInitializationError: there is no runtime. */
enum { ABSENT = 3, FRAMES = 8 };

/* What the thread pushed and has not fetched. Beyond FRAMES, the runtime keeps the
 * configurations. */
struct frame {
    struct cus_dim3 grid, block;
    size_t shared;
    CUstream stream;
    const void *site; /* NULL: kept here; else the place that gave it to the runtime */
};
static _Thread_local struct {
    uint32_t n;
    struct frame frames[FRAMES];
} pushed __attribute__((tls_model("initial-exec")));

static inline __attribute__((always_inline)) void fill(struct frame *frame, struct cus_dim3 grid,
                                                       struct cus_dim3 block, size_t shared,
                                                       CUstream stream, const void *site) {
    frame->grid = grid;
    frame->block = block;
    frame->shared = shared;
    frame->stream = stream;
    frame->site = site;
}

NOINLINE static unsigned push_far(struct cus_dim3 grid, struct cus_dim3 block, size_t shared,
                                  CUstream stream, const void *site) {
    struct cus_runtime_look look =
        cus_runtime_known(cus_runtime_tag(CUS_RUNTIME___cudaPushCallConfiguration), site, site);
    if (!look.real)
        return ABSENT;
    unsigned result = ((push_fn *)look.real)(grid, block, shared, stream);
    if (result)
        return result;
    if (pushed.n < FRAMES)
        fill(&pushed.frames[pushed.n], grid, block, shared, stream, site);
    pushed.n++;
    return 0;
}

__attribute__((visibility("default"))) push_fn __cudaPushCallConfiguration;
__attribute__((visibility("default"))) unsigned __cudaPushCallConfiguration(struct cus_dim3 grid,
                                                                            struct cus_dim3 block,
                                                                            size_t shared,
                                                                            CUstream stream) {
    const void *site = __builtin_return_address(0);
    const struct cus_runtime_slot *slot = cus_runtime_first(site);
    uint32_t tag = cus_runtime_tag(CUS_RUNTIME___cudaPushCallConfiguration), n = pushed.n;
    bool open = __atomic_load_n(&cus_runtime_open, __ATOMIC_RELAXED);
    bool known = __atomic_load_n(&slot->tag, __ATOMIC_ACQUIRE) == tag &&
                 CUS_RUNTIME_GET(slot->kernel) == site;
    bool paired = CUS_RUNTIME_GET(slot->paired);
    bool settled = CUS_RUNTIME_GET(slot->settled);
    push_fn *real = (push_fn *)CUS_RUNTIME_GET(slot->real);
    if (__builtin_expect(!known || __atomic_load_n(&slot->tag, __ATOMIC_RELAXED) != tag, 0))
        return push_far(grid, block, shared, stream, site);
    if (__builtin_expect(!paired || !open || n >= FRAMES, 0))
        return n || (open && !settled) ? push_far(grid, block, shared, stream, site)
                                       : real(grid, block, shared, stream);
    /* A signal handler that launches meanwhile uses the frames after this one. */
    pushed.n = n + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    fill(&pushed.frames[n], grid, block, shared, stream, NULL);
    return 0;
}

static bool same_dims(struct cus_dim3 a, struct cus_dim3 b) {
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

/* Called after the runtime gave a configuration to a stub at `by`. If it equals the last frame and
 * the same object pushed it, the place that pushed it may keep its configurations here. After
 * several differences the place is left to the runtime for ever. The object that fetches may be
 * bound to the runtime directly (RTLD_DEEPBIND). */
static void learn(const struct frame *frame, const void *by, const struct cus_dim3 *grid,
                  const struct cus_dim3 *block, const size_t *shared, const CUstream *stream) {
    uint32_t tag = cus_runtime_tag(CUS_RUNTIME___cudaPushCallConfiguration);
    struct cus_runtime_look look = cus_runtime_look_up(tag, frame->site);
    if (!look.found || !CUS_RUNTIME_GET(look.at->known))
        return;
    bool good = same_dims(frame->grid, *grid) && same_dims(frame->block, *block) &&
                frame->shared == *shared && frame->stream == *stream &&
                (!CUS_HAZARD(E13) || cus_runtime_same_object(frame->site, by));
    if (!cus_lock_try(&cus_runtime_lock))
        return;
    if (__atomic_load_n(&look.at->tag, __ATOMIC_RELAXED) == tag) {
        if (good)
            __atomic_store_n(&look.at->paired, true, __ATOMIC_RELAXED);
        else if (__atomic_add_fetch(&look.at->tries, 1, __ATOMIC_RELAXED) >= CUS_RUNTIME_TRIES)
            __atomic_store_n(&look.at->settled, true, __ATOMIC_RELAXED);
    }
    cus_lock_give(&cus_runtime_lock);
}

NOINLINE static unsigned pop_far(struct cus_dim3 *grid, struct cus_dim3 *block, size_t *shared,
                                 CUstream *stream, const void *by) {
    struct cus_runtime_look look =
        cus_runtime_known(cus_runtime_tag(CUS_RUNTIME___cudaPopCallConfiguration), by, by);
    if (!look.real)
        return ABSENT;
    unsigned result = ((pop_fn *)look.real)(grid, block, shared, stream);
    if (!pushed.n)
        return result;
    pushed.n--;
    /* A tool may have hooked the second of the two calls alone. */
    if (!result && pushed.n < FRAMES && (!CUS_HAZARD(E13) || (look.at && look.at->known)))
        learn(&pushed.frames[pushed.n], by, grid, block, shared, stream);
    return result;
}

/* This thread has nothing pushed here. */
NOINLINE static unsigned pop_passes(struct cus_dim3 *grid, struct cus_dim3 *block, size_t *shared,
                                    CUstream *stream, const void *by) {
    const struct cus_runtime_slot *slot = cus_runtime_first(by);
    uint32_t tag = cus_runtime_tag(CUS_RUNTIME___cudaPopCallConfiguration);
    bool known =
        __atomic_load_n(&slot->tag, __ATOMIC_ACQUIRE) == tag && CUS_RUNTIME_GET(slot->kernel) == by;
    pop_fn *real = (pop_fn *)CUS_RUNTIME_GET(slot->real);
    if (!known || __atomic_load_n(&slot->tag, __ATOMIC_RELAXED) != tag)
        return pop_far(grid, block, shared, stream, by);
    return real(grid, block, shared, stream);
}

__attribute__((visibility("default"))) pop_fn __cudaPopCallConfiguration;
__attribute__((visibility("default"))) unsigned __cudaPopCallConfiguration(struct cus_dim3 *grid,
                                                                           struct cus_dim3 *block,
                                                                           size_t *shared,
                                                                           CUstream *stream) {
    uint32_t n = pushed.n;
    if (__builtin_expect(!n, 0))
        return pop_passes(grid, block, shared, stream, __builtin_return_address(0));
    if (__builtin_expect(n > FRAMES || pushed.frames[n - 1].site, 0))
        return pop_far(grid, block, shared, stream, __builtin_return_address(0));
    const struct frame *frame = &pushed.frames[n - 1];
    *grid = frame->grid;
    *block = frame->block;
    *shared = frame->shared;
    *stream = frame->stream;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pushed.n = n - 1;
    return 0;
}

void *const cus_runtime_push_export = (void *)__cudaPushCallConfiguration;
void *const cus_runtime_pop_export = (void *)__cudaPopCallConfiguration;
