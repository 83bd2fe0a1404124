/*
 * Launches by the functions of a shared CUDA runtime: the library defers an expected launch before
 * the runtime is entered. Runs on the program's threads at depth 0, and at depth 1 while it asks
 * the plan. Any thread reads the table without a lock; a slot stays until everything is forgotten.
 * Gain: 0.34 to 0.55 of the host time of a launch that the driver's hook defers (RESULTS.md of
 * tests/gpu).
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/hook/runtime_table.h"

#include <stddef.h>

#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/hook/guard.h"
#include "shim/hook/real.h"
#include "shim/hook/resolve.h"
#include "shim/stream/hot.h"

#include "shim/base/forbid.h"

/* As in <driver_types.h>. */
struct config {
    struct cus_dim3 grid, block;
    size_t shared;
    CUstream stream;
    CUlaunchAttribute *attrs;
    uint32_t n_attrs;
};
_Static_assert(offsetof(struct config, shared) == 24 && sizeof(struct config) == 56 &&
                   sizeof(struct config) == sizeof(CUlaunchConfig) &&
                   offsetof(struct config, stream) == offsetof(CUlaunchConfig, hStream) &&
                   offsetof(struct config, attrs) == offsetof(CUlaunchConfig, attrs) &&
                   offsetof(struct config, n_attrs) == offsetof(CUlaunchConfig, numAttrs),
               "the runtime's layout");
/* cudaErrorInitializationError: there is no runtime. */
enum { ABSENT = 3 };

#define NOINLINE __attribute__((noinline))
#define ON_STACK(type) __typeof__(type) volatile

typedef int launch_fn(const void *kernel, struct cus_dim3 grid, struct cus_dim3 block, void **args,
                      size_t shared, CUstream stream);
typedef int launch_ex_fn(const struct config *config, const void *kernel, void **args);

_Thread_local struct cus_runtime_watch cus_runtime_watch __attribute__((tls_model("initial-exec")));
/* The call that is being matched, for the code that runs if the match fails; `caller` for a call
 * that is not matched. */
static _Thread_local struct {
    const void *kernel, *caller;
    void *real;
} matching __attribute__((tls_model("initial-exec")));

/* True: calls may be matched. The driver's hooks check the same. */
static inline __attribute__((always_inline)) bool ready(void) {
    return __builtin_expect(__atomic_load_n(&cus_runtime_open, __ATOMIC_ACQUIRE), 1) &&
           cus_guard_ready();
}
static inline __attribute__((always_inline)) bool may_match(CUstream stream, enum cus_abi abi) {
    return ready() && cus_hot_is_cached(stream, abi);
}

/* ---- learning ---- */

/*
 * How the driver's function for a kernel is learned: while a thread is inside the real function,
 * called from here, the driver's hook sees one launch. If that launch has the same shape, stream,
 * arguments (by address) and attributes, the pair is remembered. The next call for the kernel is
 * compared with the expected node. If they match, the op is deferred. If not, the real function is
 * called; nothing was done before.
 *
 * Why the program cannot tell the difference:
 *
 *   - The runtime launches in the context that the driver calls current (origin.c excludes older
 *     runtimes). The hook asks for that context before it does anything.
 *   - The driver's function depends on kernel and context alone. The runtime passes another shape
 *     on unchanged, and a shape that the driver might refuse goes to the driver (HAZARDS A12).
 *   - A launch that succeeds leaves the runtime's last error unchanged.
 *   - The function was loaded and no capture was open when the segment began. Whoever changes
 *     either flushes the segment.
 *   - Before a context, module, library or object of the loader goes, everything here is
 *     forgotten.
 */

void cus_runtime_saw(const struct cus_launch *launch) {
    struct cus_runtime_watch *watch = &cus_runtime_watch;
    watch->seen++;
    watch->handle = launch->f;
    watch->same = launch->form != CUS_LAUNCH_COOPERATIVE && launch->stream.abi == watch->abi &&
                  launch->stream.handle == watch->stream && launch->params == watch->args &&
                  launch->params && !launch->extra && launch->n_attrs == watch->n_attrs &&
                  memcmp(launch->dims, watch->dims, sizeof watch->dims) == 0;
    /* Compared by address, so that the runtime cannot have changed an attribute. */
    if (watch->n_attrs && launch->attrs != watch->attrs)
        watch->same = false;
    watch->context = NULL;
    if (CUS_REAL(cuCtxGetCurrent)(&watch->context) != CUDA_SUCCESS || !watch->context)
        watch->same = false;
}

/* Called after the real function returned `result`; `watch` holds what was seen meanwhile. */
static void learn(uint32_t tag, const void *kernel, const struct cus_runtime_look *look,
                  const struct cus_runtime_watch *watch, int result) {
    if (result != 0 || watch->seen == 0)
        return;
    bool good = !CUS_HAZARD(E13) || (watch->same && watch->seen == 1);
    struct cus_runtime_slot *slot = look->at;
    if (!good) {
        if (slot && __atomic_add_fetch(&slot->tries, 1, __ATOMIC_RELAXED) == CUS_RUNTIME_TRIES) {
            __atomic_store_n(&slot->settled, true, __ATOMIC_RELEASE);
            cus_runtime_give_up("it does not hand them on as they are");
        }
        return;
    }
    if (look->handle && CUS_RUNTIME_GET(slot->context) != watch->context) {
        cus_runtime_add(tag, kernel, (struct cus_runtime_origin){look->real, true}, watch->context,
                        watch->handle);
        return;
    }
    if (!cus_lock_try(&cus_runtime_lock))
        return;
    if (tag == cus_runtime_tag((enum cus_runtime)(tag % CUS_RUNTIME_EPOCH)) &&
        __atomic_load_n(&slot->tag, __ATOMIC_RELAXED) == tag) {
        if (!CUS_RUNTIME_GET(slot->handle)) {
            CUS_RUNTIME_PUT(slot->context, watch->context);
            __atomic_store_n(&slot->handle, watch->handle, __ATOMIC_RELEASE);
            __atomic_store_n(&slot->settled, true, __ATOMIC_RELEASE);
        }
        if (CUS_RUNTIME_GET(slot->handle) == watch->handle &&
            CUS_RUNTIME_GET(slot->context) == watch->context && watch->n_attrs)
            __atomic_store_n(&slot->attrs, true, __ATOMIC_RELAXED);
    }
    cus_lock_give(&cus_runtime_lock);
}

/* True: the hook must learn from this call. For a context that differs from the known one, only
 * if the thread is known to work in that context. Never inside another such call, since the
 * outer call would then see several launches. */
static bool watches(const struct cus_runtime_look *look, CUstream stream, enum cus_abi abi) {
    return look->worth && __atomic_load_n(&cus_runtime_open, __ATOMIC_ACQUIRE) &&
           cus_guard_ready() && !cus_runtime_watch.on &&
           (!look->handle || cus_hot_is_cached(stream, abi));
}

/* Makes the driver's hook leave the hot path, so that it reports the launch to cus_runtime_saw. */
static void watch_begin(struct cus_runtime_watch *watch, enum cus_abi abi) {
    cus_thread_self.cached_stream[abi] = CUS_NO_STREAM;
    cus_runtime_watch = *watch;
    cus_runtime_watch.on = true;
}

static void watch_end(struct cus_runtime_watch *watch) {
    *watch = cus_runtime_watch;
    cus_runtime_watch.on = false;
}

/* ---- launches ---- */

/* Every call that is not matched at once. */
NOINLINE static int far(uint32_t tag, enum cus_abi abi, const void *kernel, struct cus_dim3 grid,
                        struct cus_dim3 block, void **args, size_t shared, CUstream stream) {
    struct cus_runtime_look look = cus_runtime_known(tag, kernel, matching.caller);
    launch_fn *real = (launch_fn *)look.real;
    if (!real)
        return ABSENT;
    if (look.exact && !(shared >> 32) && may_match(stream, abi)) {
        struct cus_traced traced = {.runtime = true};
        cus_thread_self.depth = 1;
        bool deferred = cus_traced_launch(look.handle,
                                          (struct cus_dims){{grid.x, grid.y, grid.z, block.x,
                                                             block.y, block.z, (uint32_t)shared}},
                                          stream, abi, args, NULL, &traced);
        cus_thread_self.depth = 0;
        if (deferred)
            return 0;
    }
    if (shared >> 32 || !watches(&look, stream, abi))
        return real(kernel, grid, block, args, shared, stream);
    struct cus_runtime_watch watch = {
        .dims = {grid.x, grid.y, grid.z, block.x, block.y, block.z, (uint32_t)shared},
        .abi = abi,
        .stream = stream,
        .args = args};
    watch_begin(&watch, abi);
    int result = real(kernel, grid, block, args, shared, stream);
    watch_end(&watch);
    learn(tag, kernel, &look, &watch, result);
    return result;
}

/* The launch is not the expected one. Lock held. */
NOINLINE static int unlike(const void *kernel, struct cus_dim3 grid, struct cus_dim3 block,
                           void **args, size_t shared, CUstream stream) {
    cus_lock_give(&cus_thread_self.cached_engine->lock);
    launch_fn *real = (launch_fn *)matching.real;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cus_thread_self.depth = 0;
    return real(kernel, grid, block, args, shared, stream);
}

/* The kernel is the expected one, with a shape that differs from its node's. Lock held. */
NOINLINE static int reshaped(const void *kernel, struct cus_dim3 grid, struct cus_dim3 block,
                             void **args, size_t shared, CUstream stream) {
    struct cus_engine *engine = cus_thread_self.cached_engine;
    const struct cus_dims dims = {
        {grid.x, grid.y, grid.z, block.x, block.y, block.z, (uint32_t)shared}};
    if (shared >> 32 || !cus_hot_shape(dims, args))
        return unlike(kernel, grid, block, args, shared, stream);
    engine->counters.runtime++;
    cus_hot_took(engine, CUS_OP_LAUNCH, NULL);
    cus_thread_self.depth = 0;
    return 0;
}

/* The op matched, but another context is current. Lock held. */
NOINLINE static int diverged(void **args) {
    struct cus_engine *engine = cus_thread_self.cached_engine;
    engine->counters.runtime--;
    const struct cus_values deferred = *cus_plan_before(&engine->view);
    const uint32_t *d = deferred.dims;
    CUstream stream = cus_thread_self.ref.handle;
    const void *kernel = matching.kernel;
    launch_fn *real = (launch_fn *)matching.real;
    cus_lock_give(&engine->lock);
    cus_thread_self.depth = 0;
    return real(kernel, (struct cus_dim3){d[0], d[1], d[2]}, (struct cus_dim3){d[3], d[4], d[5]},
                args, d[6], stream);
}

NOINLINE static int different(void **args) {
    cus_thread_self.cached_engine->counters.runtime++;
    if (__builtin_expect(!cus_hot_different(args), 0))
        return diverged(args);
    cus_thread_self.depth = 0;
    return 0;
}

NOINLINE static int same(void **args) {
    cus_thread_self.cached_engine->counters.runtime++;
    if (__builtin_expect(!cus_hot_same(), 0))
        return diverged(args);
    cus_thread_self.depth = 0;
    return 0;
}

NOINLINE static int tail(void **args) {
    return cus_hot_tail_differs(args) ? different(args) : same(args);
}

#define EXPORT(symbol, parameters)                                                                 \
    int cus_runtime_##symbol parameters __attribute__((visibility("hidden")));                     \
    extern __typeof__(cus_runtime_##symbol) symbol                                                 \
        __attribute__((alias("cus_runtime_" #symbol), visibility("default")));                     \
    int cus_runtime_##symbol parameters

#define FAR(symbol)                                                                                \
    (matching.caller = __builtin_return_address(0),                                                \
     far_##symbol(kernel, grid, block, args, shared, stream))

/* As in the driver's hook: arguments on the stack stay there, and each call of a function is a
 * jump at the end. */
#define LAUNCH(symbol, abi_)                                                                       \
    NOINLINE static int far_##symbol(const void *kernel, struct cus_dim3 grid,                     \
                                     struct cus_dim3 block, void **args, size_t shared,            \
                                     CUstream stream) {                                            \
        return far(cus_runtime_tag(CUS_RUNTIME_##symbol), abi_, kernel, grid, block, args, shared, \
                   stream);                                                                        \
    }                                                                                              \
    EXPORT(symbol, (const void *kernel, struct cus_dim3 grid, struct cus_dim3 block, void **args,  \
                    ON_STACK(size_t) shared, ON_STACK(CUstream) stream)) {                         \
        const struct cus_runtime_slot *slot = cus_runtime_first(kernel);                           \
        uint32_t tag = cus_runtime_tag(CUS_RUNTIME_##symbol);                                      \
        bool found = __atomic_load_n(&slot->tag, __ATOMIC_ACQUIRE) == tag;                         \
        void *real = CUS_RUNTIME_GET(slot->real);                                                  \
        CUfunction handle = CUS_RUNTIME_GET(slot->handle);                                         \
        bool settled = CUS_RUNTIME_GET(slot->settled);                                             \
        found = found && CUS_RUNTIME_GET(slot->kernel) == kernel;                                  \
        bool here = CUS_RUNTIME_GET(slot->context) == cus_thread_self.context;                     \
        if (__builtin_expect(!found || __atomic_load_n(&slot->tag, __ATOMIC_RELAXED) != tag, 0))   \
            return FAR(symbol);                                                                    \
        if (!__builtin_expect(ready(), 1)) {                                                       \
            if (settled || !__atomic_load_n(&cus_runtime_open, __ATOMIC_RELAXED))                  \
                return ((launch_fn *)real)(kernel, grid, block, args, shared, stream);             \
            return FAR(symbol);                                                                    \
        }                                                                                          \
        if (__builtin_expect(!handle || !here, 0)) {                                               \
            if (settled && !cus_hot_is_cached(stream, abi_))                                       \
                return ((launch_fn *)real)(kernel, grid, block, args, shared, stream);             \
            return FAR(symbol);                                                                    \
        }                                                                                          \
        cus_thread_self.depth = 1;                                                                 \
        /* A signal handler launches before this, or its launch goes straight to the driver. */    \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                   \
        if (!__builtin_expect(cus_hot_is_cached(stream, abi_), 1)) {                               \
            cus_thread_self.depth = 0;                                                             \
            return ((launch_fn *)real)(kernel, grid, block, args, shared, stream);                 \
        }                                                                                          \
        matching.kernel = kernel;                                                                  \
        matching.real = real;                                                                      \
        if (__builtin_expect(!cus_hot_try(cus_thread_self.cached_engine), 0)) {                    \
            cus_thread_self.depth = 0;                                                             \
            return FAR(symbol);                                                                    \
        }                                                                                          \
        enum cus_hot is = compare(handle, grid, block, &shared, &args);                            \
        if (__builtin_expect(is == CUS_HOT_OTHER, 0))                                              \
            return unlike(kernel, grid, block, args, shared, stream);                              \
        if (__builtin_expect(is == CUS_HOT_SHAPE, 0))                                              \
            return reshaped(kernel, grid, block, args, shared, stream);                            \
        if (__builtin_expect(is == CUS_HOT_SAME, 1))                                               \
            return same(args);                                                                     \
        return is == CUS_HOT_TAIL ? tail(args) : different(args);                                  \
    }

/* Reads two words of a shape at once. */
static inline __attribute__((always_inline)) uint64_t pair(const void *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* As cus_hot_compare, for a shape in two structs. Lock held. */
static inline __attribute__((always_inline)) enum cus_hot
compare(CUfunction handle, struct cus_dim3 grid, struct cus_dim3 block,
        const volatile size_t *shared, void **const *args) {
    const struct cus_engine *engine = cus_thread_self.cached_engine;
    if (!cus_hot_expects(engine, handle))
        return CUS_HOT_OTHER;
    const uint32_t *dims = cus_plan_before(&engine->view)->dims;
    if ((grid.x | (uint64_t)grid.y << 32) != pair(&dims[0]) || grid.z != dims[2] ||
        (block.x | (uint64_t)block.y << 32) != pair(&dims[3]) || block.z != dims[5] ||
        *shared != dims[6])
        return CUS_HOT_SHAPE;
    return cus_hot_compare_params(engine, *args);
}

LAUNCH(cudaLaunchKernel, CUS_ABI_LEGACY)
LAUNCH(cudaLaunchKernel_ptsz, CUS_ABI_PTSZ)
LAUNCH(__cudaLaunchKernel, CUS_ABI_LEGACY)
LAUNCH(__cudaLaunchKernel_ptsz, CUS_ABI_PTSZ)

static bool match_ex(const struct cus_runtime_look *look, const struct config *config,
                     enum cus_abi abi, void **args) {
    if (!look->exact || config->shared >> 32 || (config->n_attrs && !look->attrs) ||
        !may_match(config->stream, abi))
        return false;
    struct cus_traced traced = {.runtime = true};
    const struct cus_dim3 grid = config->grid, block = config->block;
    const CUlaunchConfig as = {.gridDimX = grid.x,
                               .gridDimY = grid.y,
                               .gridDimZ = grid.z,
                               .blockDimX = block.x,
                               .blockDimY = block.y,
                               .blockDimZ = block.z,
                               .sharedMemBytes = (uint32_t)config->shared,
                               .hStream = config->stream,
                               .attrs = config->attrs,
                               .numAttrs = config->n_attrs};
    cus_thread_self.depth = 1;
    bool deferred = cus_traced_launch_ex(&as, look->handle, abi, args, NULL, &traced);
    cus_thread_self.depth = 0;
    return deferred;
}

static int launch_ex(enum cus_runtime which, enum cus_abi abi, const void *caller,
                     const struct config *config, const void *kernel, void **args) {
    uint32_t tag = cus_runtime_tag(which);
    struct cus_runtime_look look = cus_runtime_known(tag, kernel, caller);
    launch_ex_fn *real = (launch_ex_fn *)look.real;
    if (!real)
        return ABSENT;
    if (!config)
        return real(config, kernel, args);
    if (match_ex(&look, config, abi, args))
        return 0;
    if (look.exact && config->n_attrs && !look.attrs)
        look.worth = __atomic_load_n(&look.at->tries, __ATOMIC_RELAXED) < CUS_RUNTIME_TRIES;
    if (config->shared >> 32 || !watches(&look, config->stream, abi))
        return real(config, kernel, args);
    struct cus_runtime_watch watch = {.dims = {config->grid.x, config->grid.y, config->grid.z,
                                               config->block.x, config->block.y, config->block.z,
                                               (uint32_t)config->shared},
                                      .abi = abi,
                                      .stream = config->stream,
                                      .args = args,
                                      .attrs = config->attrs,
                                      .n_attrs = config->n_attrs};
    watch_begin(&watch, abi);
    int result = real(config, kernel, args);
    watch_end(&watch);
    learn(tag, kernel, &look, &watch, result);
    return result;
}

/* The real function, if the call cannot be matched now and nothing more can be learned; else
 * NULL. */
static inline __attribute__((always_inline)) launch_ex_fn *passes_ex(enum cus_runtime which,
                                                                     enum cus_abi abi,
                                                                     const struct config *config,
                                                                     const void *kernel) {
    const struct cus_runtime_slot *slot = cus_runtime_first(kernel);
    uint32_t tag = cus_runtime_tag(which);
    bool known = __atomic_load_n(&slot->tag, __ATOMIC_ACQUIRE) == tag &&
                 CUS_RUNTIME_GET(slot->kernel) == kernel;
    bool settled = CUS_RUNTIME_GET(slot->settled);
    launch_ex_fn *real = (launch_ex_fn *)CUS_RUNTIME_GET(slot->real);
    if (!known || __atomic_load_n(&slot->tag, __ATOMIC_RELAXED) != tag || !config ||
        may_match(config->stream, abi) ||
        !(settled || !__atomic_load_n(&cus_runtime_open, __ATOMIC_RELAXED)))
        return NULL;
    return real;
}

#define LAUNCH_EX(symbol, abi_)                                                                    \
    EXPORT(symbol, (const struct config *config, const void *kernel, void **args)) {               \
        launch_ex_fn *real = passes_ex(CUS_RUNTIME_##symbol, abi_, config, kernel);                \
        if (real)                                                                                  \
            return real(config, kernel, args);                                                     \
        return launch_ex(CUS_RUNTIME_##symbol, abi_, __builtin_return_address(0), config, kernel,  \
                         args);                                                                    \
    }

LAUNCH_EX(cudaLaunchKernelExC, CUS_ABI_LEGACY)
LAUNCH_EX(cudaLaunchKernelExC_ptsz, CUS_ABI_PTSZ)

/* ---- look-ups ---- */

void *cus_runtime_export(int which) {
    switch (which) {
#define EXPORTED(name)                                                                             \
    case CUS_RUNTIME_##name:                                                                       \
        return (void *)cus_runtime_##name;
        EXPORTED(cudaLaunchKernel)
        EXPORTED(cudaLaunchKernel_ptsz)
        EXPORTED(__cudaLaunchKernel)
        EXPORTED(__cudaLaunchKernel_ptsz)
        EXPORTED(cudaLaunchKernelExC)
        EXPORTED(cudaLaunchKernelExC_ptsz)
#undef EXPORTED
    case CUS_RUNTIME___cudaPushCallConfiguration:
        return cus_runtime_push_export;
    case CUS_RUNTIME___cudaPopCallConfiguration:
        return cus_runtime_pop_export;
    default:
        return cus_runtime_device_export;
    }
}
