/*
 * The hooks of the ops: kernel launches, memsets and copies, which the library may defer. Each hook
 * stands for one exported symbol of the driver or for its per-thread twin. The hook gives the call
 * to the engine as data. The engine makes the real call now or later and returns what the program
 * sees.
 *
 * Runs on the program's thread, at depth 1 while inside the engine. Holds no lock between calls.
 * The hot path allocates nothing and searches no table.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <stddef.h>

#include "shim/hook/guard.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/real.h"
#include "shim/hook/runtime.h"
#include "shim/hook/wrap.h"
#include "shim/stream/hot.h"

#include "shim/base/forbid.h"

/*
 * Called with the result of a real call that the hook made without the engine: the library is cold
 * or off, or the thread is inside a hook. If a launch succeeds while the library is cold, another
 * library has started the driver by a look-up of its own. The library then starts now.
 */
static CUresult straight(CUresult result) {
    if (result == CUDA_SUCCESS &&
        __atomic_load_n(&cus_process.hooks, __ATOMIC_RELAXED) == CUS_STATE_COLD &&
        cus_thread_self.depth == 0)
        cus_lifecycle_start();
    return result;
}

#define STRAIGHT(symbol, arguments)                                                                \
    (cus_real_find() ? straight(CUS_REAL(symbol) arguments) : cus_real_absent())

#define NOINLINE __attribute__((noinline)) static
#define ON_STACK(type) __typeof__(type) volatile
/* The assembly jumps to this function; the arguments are where the caller left them. */
#define FROM_ENTRY(part, symbol)                                                                   \
    extern __typeof__(symbol) cus_##part##_##symbol __attribute__((visibility("hidden")));         \
    __attribute__((noinline))

/* The two hot paths of an op. If the thread has deferred ops and this op is the expected one,
 * the op is deferred. If the op's stream is demoted, the op goes straight to the driver. Nothing
 * in `hold` can change errno. The depth is set because a signal handler may launch meanwhile,
 * and because the driver may call back (HAZARDS E3). */
#define HOT(hold, passes, symbol, arguments)                                                       \
    if (cus_hot_pending()) {                                                                       \
        cus_thread_self.depth = 1;                                                                 \
        bool deferred_ = hold;                                                                     \
        cus_thread_self.depth = 0;                                                                 \
        if (__builtin_expect(deferred_, 1))                                                        \
            return CUDA_SUCCESS;                                                                   \
    } else if (passes) {                                                                           \
        cus_thread_self.depth = 1;                                                                 \
        CUresult result_ = CUS_REAL(symbol) arguments;                                             \
        cus_thread_self.depth = 0;                                                                 \
        return result_;                                                                            \
    }

/* This check comes first, so that calls off the hot path save no registers for it. */
#define OTHERWISE(symbol, arguments)                                                               \
    if (!cus_guard_ready())                                                                        \
        return cus_guard_recorded() ? recorded_##symbol arguments : long_##symbol arguments;

/* The hot path while a trace is made. It is a function of its own so that the hook stays small
 * for programs without a trace. */
#define RECORDED(symbol, parameters, arguments, hold)                                              \
    NOINLINE CUresult recorded_##symbol parameters {                                               \
        cus_thread_self.depth = 1;                                                                 \
        bool deferred_ = hold;                                                                     \
        cus_thread_self.depth = 0;                                                                 \
        return __builtin_expect(deferred_, 1) ? CUDA_SUCCESS : long_##symbol arguments;            \
    }

/* ---- launches ---- */

#define LAUNCH_PLAIN(symbol, abi_)                                                                 \
    NOINLINE CUresult long_##symbol(CUfunction f, unsigned int gx, unsigned int gy,                \
                                    unsigned int gz, unsigned int bx, unsigned int by,             \
                                    unsigned int bz, unsigned int shared, CUstream stream_,        \
                                    void **params_, void **extra_) {                               \
        struct cus_guard guard;                                                                    \
        if (!cus_guard_enter(&guard))                                                              \
            return STRAIGHT(symbol,                                                                \
                            (f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_));        \
        const struct cus_launch launch = {                                                         \
            .form = CUS_LAUNCH_PLAIN,                                                              \
            .stream = {stream_, abi_},                                                             \
            .f = f,                                                                                \
            .dims = {gx, gy, gz, bx, by, bz, shared},                                              \
            .params = params_,                                                                     \
            .extra = extra_,                                                                       \
            .real = (void *)CUS_REAL(symbol),                                                      \
        };                                                                                         \
        if (cus_runtime_watch.on)                                                                  \
            cus_runtime_saw(&launch);                                                              \
        CUresult result = cus_engine_launch(&launch);                                              \
        cus_guard_leave(&guard);                                                                   \
        return result;                                                                             \
    }                                                                                              \
    RECORDED(symbol,                                                                               \
             (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,    \
              unsigned int by, unsigned int bz, unsigned int shared, CUstream stream_,             \
              void **params_, void **extra_),                                                      \
             (f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_),                        \
             cus_recorded_launch(f, (struct cus_dims){{gx, gy, gz, bx, by, bz, shared}}, stream_,  \
                                 abi_, params_, extra_) ||                                         \
                 (!extra_ &&                                                                       \
                  cus_recorded_branch(f, (struct cus_dims){{gx, gy, gz, bx, by, bz, shared}},      \
                                      stream_, abi_, params_)))                                    \
    /* Takes the calls that the assembly cannot send to the hot path: the library is not on,       \
     * the thread is inside a hook, or the params come in `extra`. */                              \
    FROM_ENTRY(other, symbol)                                                                      \
    CUresult cus_other_##symbol(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,   \
                                unsigned int bx, unsigned int by, unsigned int bz,                 \
                                unsigned int shared, CUstream stream_, void **params_,             \
                                void **extra_) {                                                   \
        OTHERWISE(symbol, (f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_))           \
        const struct cus_dims dims = {{gx, gy, gz, bx, by, bz, shared}};                           \
        HOT(extra_ &&cus_traced_launch(f, dims, stream_, abi_, params_, extra_, NULL),             \
            cus_hot_passes(stream_, abi_, CUS_OP_LAUNCH, f), symbol,                               \
            (f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_))                         \
        return long_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_);         \
    }                                                                                              \
    /* Defers the expected launch on a side stream. */                                             \
    NOINLINE bool branch_##symbol(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, \
                                  unsigned int bx, unsigned int by, unsigned int bz,               \
                                  unsigned int shared, CUstream stream_, void **params_) {         \
        cus_thread_self.depth = 1;                                                                 \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                   \
        bool deferred = cus_hot_branch(f, (struct cus_dims){{gx, gy, gz, bx, by, bz, shared}},     \
                                       stream_, params_);                                          \
        cus_thread_self.depth = 0;                                                                 \
        return deferred;                                                                           \
    }                                                                                              \
    /* Takes launches on a stream on which this thread has no ops deferred; the stream may be      \
     * demoted, or a side stream. */                                                               \
    FROM_ENTRY(passed, symbol)                                                                     \
    CUresult cus_passed_##symbol(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,  \
                                 unsigned int bx, unsigned int by, ON_STACK(unsigned int) bz,      \
                                 ON_STACK(unsigned int) shared, ON_STACK(CUstream) stream_,        \
                                 ON_STACK(void **) params_, ON_STACK(void **) extra_) {            \
        uint64_t left;                                                                             \
        struct cus_engine *engine = NULL;                                                          \
        if (!cus_hot_pending())                                                                    \
            engine = cus_hot_may_pass(stream_, abi_, CUS_OP_LAUNCH, f, &left);                     \
        else if (__atomic_load_n(&cus_process.branches, __ATOMIC_RELAXED) &&                       \
                 branch_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_))             \
            return CUDA_SUCCESS;                                                                   \
        if (!engine && !cus_hot_elsewhere(stream_, abi_))                                          \
            return long_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_);     \
        if (!engine || __builtin_expect(!cus_hot_passes_only(engine, left, CUS_OP_LAUNCH, f), 0))  \
            return cus_other_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_,         \
                                      extra_);                                                     \
        cus_thread_self.depth = 1;                                                                 \
        CUresult result =                                                                          \
            CUS_REAL(symbol)(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, NULL);           \
        cus_thread_self.depth = 0;                                                                 \
        return result;                                                                             \
    }                                                                                              \
    /* The op matched, but another context is current. Lock held. The hook reads the               \
     * arguments back from the node, so that the hot path need not keep them over its call of      \
     * the driver. */                                                                              \
    NOINLINE CUresult diverged_##symbol(void **params_) {                                          \
        struct cus_engine *engine = cus_thread_self.cached_engine;                                 \
        const struct cus_values deferred = *cus_plan_before(&engine->view);                        \
        const uint32_t *d = deferred.dims;                                                         \
        CUfunction f = (CUfunction)(uintptr_t)engine->view.at->plain;                              \
        CUstream stream_ = cus_thread_self.ref.handle;                                             \
        cus_lock_give(&engine->lock);                                                              \
        cus_thread_self.depth = 0;                                                                 \
        return long_##symbol(f, d[0], d[1], d[2], d[3], d[4], d[5], d[6], stream_, params_, NULL); \
    }                                                                                              \
    NOINLINE CUresult different_##symbol(void **params_) {                                         \
        if (__builtin_expect(!cus_hot_different(params_), 0))                                      \
            return diverged_##symbol(params_);                                                     \
        cus_thread_self.depth = 0;                                                                 \
        return CUDA_SUCCESS;                                                                       \
    }                                                                                              \
    NOINLINE CUresult same_##symbol(void **params_) {                                              \
        if (__builtin_expect(!cus_hot_same(), 0))                                                  \
            return diverged_##symbol(params_);                                                     \
        cus_thread_self.depth = 0;                                                                 \
        return CUDA_SUCCESS;                                                                       \
    }                                                                                              \
    NOINLINE CUresult tail_##symbol(void **params_) {                                              \
        return cus_hot_tail_differs(params_) ? different_##symbol(params_)                         \
                                             : same_##symbol(params_);                             \
    }                                                                                              \
    /* The launch is not the expected one. Lock held. */                                           \
    NOINLINE CUresult unlike_##symbol(CUfunction f, unsigned int gx, unsigned int gy,              \
                                      unsigned int gz, unsigned int bx, unsigned int by,           \
                                      unsigned int bz, unsigned int shared, CUstream stream_,      \
                                      void **params_, void **extra_) {                             \
        cus_lock_give(&cus_thread_self.cached_engine->lock);                                       \
        cus_thread_self.depth = 0;                                                                 \
        return long_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_);         \
    }                                                                                              \
    /* The kernel is the expected one, with a shape that differs from its node's. Lock held. */    \
    NOINLINE CUresult reshaped_##symbol(CUfunction f, unsigned int gx, unsigned int gy,            \
                                        unsigned int gz, unsigned int bx, unsigned int by,         \
                                        unsigned int bz, unsigned int shared, CUstream stream_,    \
                                        void **params_, void **extra_) {                           \
        const struct cus_dims dims = {{gx, gy, gz, bx, by, bz, shared}};                           \
        if (!cus_hot_shape(dims, params_))                                                         \
            return unlike_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_);   \
        cus_hot_took(cus_thread_self.cached_engine, CUS_OP_LAUNCH, NULL);                          \
        cus_thread_self.depth = 0;                                                                 \
        return CUDA_SUCCESS;                                                                       \
    }                                                                                              \
    /* Arguments on the stack stay there: they are volatile, so that the compiler does not         \
     * load them into registers that it would have to save. Each call of a function is a jump      \
     * at the end. */                                                                              \
    FROM_ENTRY(midst, symbol)                                                                      \
    CUresult cus_midst_##symbol(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,   \
                                unsigned int bx, unsigned int by, ON_STACK(unsigned int) bz,       \
                                ON_STACK(unsigned int) shared, ON_STACK(CUstream) stream_,         \
                                ON_STACK(void **) params_, ON_STACK(void **) extra_) {             \
        if (__builtin_expect(!cus_hot_try(cus_thread_self.cached_engine), 0)) {                    \
            cus_thread_self.depth = 0;                                                             \
            return long_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_);     \
        }                                                                                          \
        enum cus_hot is = cus_hot_compare(f, gx, gy, gz, bx, by, &bz, &shared, &params_);          \
        if (__builtin_expect(is == CUS_HOT_OTHER, 0))                                              \
            return unlike_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_);   \
        if (__builtin_expect(is == CUS_HOT_SHAPE, 0))                                              \
            return reshaped_##symbol(f, gx, gy, gz, bx, by, bz, shared, stream_, params_, extra_); \
        if (__builtin_expect(is == CUS_HOT_SAME, 1))                                               \
            return same_##symbol(params_);                                                         \
        return is == CUS_HOT_TAIL ? tail_##symbol(params_) : different_##symbol(params_);          \
    }

LAUNCH_PLAIN(cuLaunchKernel, CUS_ABI_LEGACY)
LAUNCH_PLAIN(cuLaunchKernel_ptsz, CUS_ABI_PTSZ)

/* Does the launch record an event of the program? */
static bool records_event(const CUlaunchConfig *config) {
    for (unsigned i = 0; config->attrs && i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            return true;
    return false;
}

/* A deferred record of such an event comes first (HAZARDS B16). */
static void event_recorded(const CUlaunchConfig *config) {
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            cus_engine_event_named(value->programmaticEvent.event, CUS_ROW_cuLaunchKernelEx);
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            cus_engine_event_named(value->launchCompletionEvent.event, CUS_ROW_cuLaunchKernelEx);
    }
}

#define LAUNCH_EX(symbol, abi_)                                                                    \
    NOINLINE CUresult long_##symbol(const CUlaunchConfig *config_, CUfunction f, void **params_,   \
                                    void **extra_) {                                               \
        struct cus_guard guard;                                                                    \
        /* Without a configuration there is nothing to defer. The driver reports the error. */     \
        if (!config_ || !cus_guard_enter(&guard))                                                  \
            return STRAIGHT(symbol, (config_, f, params_, extra_));                                \
        const struct cus_launch launch = {                                                         \
            .form = CUS_LAUNCH_EX,                                                                 \
            .stream = {config_->hStream, abi_},                                                    \
            .f = f,                                                                                \
            .dims = {config_->gridDimX, config_->gridDimY, config_->gridDimZ, config_->blockDimX,  \
                     config_->blockDimY, config_->blockDimZ, config_->sharedMemBytes},             \
            .n_attrs = config_->numAttrs,                                                          \
            .attrs = config_->attrs,                                                               \
            .params = params_,                                                                     \
            .extra = extra_,                                                                       \
            .config = config_,                                                                     \
            .real = (void *)CUS_REAL(symbol),                                                      \
        };                                                                                         \
        if (cus_runtime_watch.on)                                                                  \
            cus_runtime_saw(&launch);                                                              \
        if (records_event(config_))                                                                \
            event_recorded(config_);                                                               \
        CUresult result = cus_engine_launch(&launch);                                              \
        cus_guard_leave(&guard);                                                                   \
        return result;                                                                             \
    }                                                                                              \
    RECORDED(symbol, (const CUlaunchConfig *config_, CUfunction f, void **params_, void **extra_), \
             (config_, f, params_, extra_),                                                        \
             config_ &&cus_recorded_launch_ex(config_, f, abi_, params_, extra_))                  \
    CUS_WRAP(symbol,                                                                               \
             (const CUlaunchConfig *config_, CUfunction f, void **params_, void **extra_)) {       \
        OTHERWISE(symbol, (config_, f, params_, extra_))                                           \
        if (config_) {                                                                             \
            HOT(cus_hot_launch_ex(config_, f, abi_, params_, extra_),                              \
                !records_event(config_) &&                                                         \
                    cus_hot_passes(config_->hStream, abi_, CUS_OP_LAUNCH, f),                      \
                symbol, (config_, f, params_, extra_))                                             \
        }                                                                                          \
        return long_##symbol(config_, f, params_, extra_);                                         \
    }

LAUNCH_EX(cuLaunchKernelEx, CUS_ABI_LEGACY)
LAUNCH_EX(cuLaunchKernelEx_ptsz, CUS_ABI_PTSZ)

#define LAUNCH_COOPERATIVE(symbol, abi_)                                                           \
    CUS_WRAP(symbol, (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,             \
                      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,      \
                      CUstream stream_, void **params_)) {                                         \
        struct cus_guard guard;                                                                    \
        if (!cus_guard_enter(&guard))                                                              \
            return STRAIGHT(symbol, (f, gx, gy, gz, bx, by, bz, shared, stream_, params_));        \
        const struct cus_launch launch = {                                                         \
            .form = CUS_LAUNCH_COOPERATIVE,                                                        \
            .stream = {stream_, abi_},                                                             \
            .f = f,                                                                                \
            .dims = {gx, gy, gz, bx, by, bz, shared},                                              \
            .params = params_,                                                                     \
            .real = (void *)CUS_REAL(symbol),                                                      \
        };                                                                                         \
        if (cus_runtime_watch.on)                                                                  \
            cus_runtime_saw(&launch);                                                              \
        CUresult result = cus_engine_launch(&launch);                                              \
        cus_guard_leave(&guard);                                                                   \
        return result;                                                                             \
    }

LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, CUS_ABI_LEGACY)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, CUS_ABI_PTSZ)

/* ---- memsets ---- */

#define MEMSET(symbol, abi_, type)                                                                 \
    NOINLINE CUresult long_##symbol(CUdeviceptr dst_, type value_, size_t count,                   \
                                    CUstream stream_) {                                            \
        struct cus_guard guard;                                                                    \
        if (!cus_guard_enter(&guard))                                                              \
            return STRAIGHT(symbol, (dst_, value_, count, stream_));                               \
        const struct cus_memset memset_ = {                                                        \
            .stream = {stream_, abi_},                                                             \
            .dst = dst_,                                                                           \
            .value = value_,                                                                       \
            .elem = sizeof(type),                                                                  \
            .width = count,                                                                        \
            .height = 1,                                                                           \
            .real = (void *)CUS_REAL(symbol),                                                      \
        };                                                                                         \
        CUresult result = cus_engine_memset(&memset_);                                             \
        cus_guard_leave(&guard);                                                                   \
        return result;                                                                             \
    }                                                                                              \
    RECORDED(symbol, (CUdeviceptr dst_, type value_, size_t count, CUstream stream_),              \
             (dst_, value_, count, stream_),                                                       \
             count &&cus_recorded_memset(dst_, value_, sizeof(type), count, stream_, abi_))        \
    CUS_WRAP(symbol, (CUdeviceptr dst_, type value_, size_t count, CUstream stream_)) {            \
        OTHERWISE(symbol, (dst_, value_, count, stream_))                                          \
        if (count) {                                                                               \
            HOT(cus_hot_memset(dst_, value_, sizeof(type), count, stream_, abi_),                  \
                cus_hot_passes(stream_, abi_, CUS_OP_MEMSET, NULL), symbol,                        \
                (dst_, value_, count, stream_))                                                    \
        }                                                                                          \
        return long_##symbol(dst_, value_, count, stream_);                                        \
    }

MEMSET(cuMemsetD8Async, CUS_ABI_LEGACY, unsigned char)
MEMSET(cuMemsetD8Async_ptsz, CUS_ABI_PTSZ, unsigned char)
MEMSET(cuMemsetD16Async, CUS_ABI_LEGACY, unsigned short)
MEMSET(cuMemsetD16Async_ptsz, CUS_ABI_PTSZ, unsigned short)
MEMSET(cuMemsetD32Async, CUS_ABI_LEGACY, unsigned int)
MEMSET(cuMemsetD32Async_ptsz, CUS_ABI_PTSZ, unsigned int)

#define MEMSET_2D(symbol, abi_, type)                                                              \
    CUS_WRAP(symbol, (CUdeviceptr dst_, size_t pitch_, type value_, size_t width_, size_t height_, \
                      CUstream stream_)) {                                                         \
        struct cus_guard guard;                                                                    \
        if (!cus_guard_enter(&guard))                                                              \
            return STRAIGHT(symbol, (dst_, pitch_, value_, width_, height_, stream_));             \
        const struct cus_memset memset_ = {                                                        \
            .stream = {stream_, abi_},                                                             \
            .dst = dst_,                                                                           \
            .pitch = pitch_,                                                                       \
            .value = value_,                                                                       \
            .elem = sizeof(type),                                                                  \
            .width = width_,                                                                       \
            .height = height_,                                                                     \
            .two_d = true,                                                                         \
            .real = (void *)CUS_REAL(symbol),                                                      \
        };                                                                                         \
        CUresult result = cus_engine_memset(&memset_);                                             \
        cus_guard_leave(&guard);                                                                   \
        return result;                                                                             \
    }

MEMSET_2D(cuMemsetD2D8Async, CUS_ABI_LEGACY, unsigned char)
MEMSET_2D(cuMemsetD2D8Async_ptsz, CUS_ABI_PTSZ, unsigned char)
MEMSET_2D(cuMemsetD2D16Async, CUS_ABI_LEGACY, unsigned short)
MEMSET_2D(cuMemsetD2D16Async_ptsz, CUS_ABI_PTSZ, unsigned short)
MEMSET_2D(cuMemsetD2D32Async, CUS_ABI_LEGACY, unsigned int)
MEMSET_2D(cuMemsetD2D32Async_ptsz, CUS_ABI_PTSZ, unsigned int)

/* ---- copies ---- */

/* Either side's address as a number. */
#define DEVICE(address) ((uint64_t)(address))
#define HOST(address) ((uint64_t)(uintptr_t)(address))

#define COPY(symbol, abi_, form_, dst_type, dst_number, src_type, src_number)                      \
    NOINLINE CUresult long_##symbol(dst_type dst_, src_type src_, size_t bytes_,                   \
                                    CUstream stream_) {                                            \
        struct cus_guard guard;                                                                    \
        if (!cus_guard_enter(&guard))                                                              \
            return STRAIGHT(symbol, (dst_, src_, bytes_, stream_));                                \
        const struct cus_copy copy = {                                                             \
            .form = form_,                                                                         \
            .stream = {stream_, abi_},                                                             \
            .dst = dst_number(dst_),                                                               \
            .src = src_number(src_),                                                               \
            .bytes = bytes_,                                                                       \
            .real = (void *)CUS_REAL(symbol),                                                      \
        };                                                                                         \
        CUresult result = cus_engine_copy(&copy);                                                  \
        cus_guard_leave(&guard);                                                                   \
        return result;                                                                             \
    }                                                                                              \
    RECORDED(symbol, (dst_type dst_, src_type src_, size_t bytes_, CUstream stream_),              \
             (dst_, src_, bytes_, stream_),                                                        \
             bytes_ &&cus_recorded_copy(form_, dst_number(dst_), src_number(src_), bytes_,         \
                                        stream_, abi_))                                            \
    CUS_WRAP(symbol, (dst_type dst_, src_type src_, size_t bytes_, CUstream stream_)) {            \
        OTHERWISE(symbol, (dst_, src_, bytes_, stream_))                                           \
        if (bytes_) {                                                                              \
            HOT(cus_hot_copy(form_, dst_number(dst_), src_number(src_), bytes_, stream_, abi_),    \
                cus_hot_passes(stream_, abi_, CUS_OP_COPY, NULL), symbol,                          \
                (dst_, src_, bytes_, stream_))                                                     \
        }                                                                                          \
        return long_##symbol(dst_, src_, bytes_, stream_);                                         \
    }

#define COPY_ANY(symbol, abi)                                                                      \
    COPY(symbol, abi, CUS_COPY_ANY, CUdeviceptr, DEVICE, CUdeviceptr, DEVICE)
#define COPY_DTOD(symbol, abi)                                                                     \
    COPY(symbol, abi, CUS_COPY_DTOD, CUdeviceptr, DEVICE, CUdeviceptr, DEVICE)
#define COPY_HTOD(symbol, abi)                                                                     \
    COPY(symbol, abi, CUS_COPY_HTOD, CUdeviceptr, DEVICE, const void *, HOST)
#define COPY_DTOH(symbol, abi) COPY(symbol, abi, CUS_COPY_DTOH, void *, HOST, CUdeviceptr, DEVICE)

COPY_ANY(cuMemcpyAsync, CUS_ABI_LEGACY)
COPY_ANY(cuMemcpyAsync_ptsz, CUS_ABI_PTSZ)
COPY_DTOD(cuMemcpyDtoDAsync_v2, CUS_ABI_LEGACY)
COPY_DTOD(cuMemcpyDtoDAsync_v2_ptsz, CUS_ABI_PTSZ)
COPY_HTOD(cuMemcpyHtoDAsync_v2, CUS_ABI_LEGACY)
COPY_HTOD(cuMemcpyHtoDAsync_v2_ptsz, CUS_ABI_PTSZ)
COPY_DTOH(cuMemcpyDtoHAsync_v2, CUS_ABI_LEGACY)
COPY_DTOH(cuMemcpyDtoHAsync_v2_ptsz, CUS_ABI_PTSZ)

/* ---- the start ---- */

CUS_WRAP(cuInit, (unsigned int flags)) {
    if (!cus_real_find())
        return cus_real_absent();
    CUresult result = CUS_REAL(cuInit)(flags);
    /* If the depth is not 0, the driver or the engine calls. The program's own call will come. */
    if (result == CUDA_SUCCESS && cus_thread_self.depth == 0)
        cus_lifecycle_start();
    return result;
}
