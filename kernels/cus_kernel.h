/*
 * What a kernel file needs besides CUDA C. Under nvcc this is almost nothing. Under g++ with
 * -DCUSIM the CUDA words become C++, so the same source runs on the CPU for the simulator in
 * harness/sim.
 *
 * In the CPU form the calling thread runs a grid, block after block, in an order that the
 * simulator chooses. A kernel without a barrier
 * (CUS_KERNEL) runs its threads as a loop; with a barrier (CUS_KERNEL_SYNC) each thread is a fiber,
 * see cusim_fiber.cc. __shared__ variables belong to the calling thread, and so to its current
 * block. Two host threads may run grids at once, so kernels use atomics for memory that both write.
 *
 * A kernel file ends in CUS_KERNEL(name) or CUS_KERNEL_SYNC(name). On the CPU this adds the kernel,
 * with places and sizes of its parameters, to the list of libcusim_kernels.so
 * (harness/sim/cusim_kernel.h).
 */
#ifndef KERNELS_CUS_KERNEL_H
#define KERNELS_CUS_KERNEL_H

#if defined(__CUDACC__)

#define CUS_KERNEL(name)
#define CUS_KERNEL_SYNC(name)
/* Declares dynamic shared memory; the launch sets its size. */
#define CUS_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
/* How many bytes the launch set. */
static __device__ inline unsigned cus_dynamic_bytes() {
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}
/* Waits about one microsecond, for loops that poll. */
#define CUS_PAUSE() __nanosleep(1000)
/* Programmatic launches (Hopper and later): kernels that depend on this one may begin; waits for
 * those that this one depends on. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CUS_TRIGGER() asm volatile("griddepcontrol.launch_dependents;")
#define CUS_WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define CUS_TRIGGER()
#define CUS_WAIT()
#endif

#elif defined(CUSIM)

#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include <tuple>
#include <utility>

#include "harness/sim/cusim_kernel.h"

#define __global__ __attribute__((visibility("hidden")))
#define __device__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define CUS_DYNAMIC_SHARED(type, name) type *name = (type *)cusim_dynamic_shared
#define CUS_PAUSE() sched_yield()
#define CUS_TRIGGER() cusim_trigger()
#define CUS_WAIT() cusim_wait()

struct cusim_dim {
    unsigned x, y, z;
};

/* The built-in variables of the CUDA thread that the calling thread runs now. */
extern __thread struct cusim_dim threadIdx, blockIdx, blockDim, gridDim;
extern __thread void *cusim_dynamic_shared;
extern __thread unsigned cusim_dynamic_bytes;

static inline unsigned cus_dynamic_bytes() {
    return cusim_dynamic_bytes;
}

/* Runs one CUDA thread: calls the kernel with the parameters at `call`. */
typedef void (*cusim_thread_fn)(const void *call);

/* Runs a grid with barriers: one fiber for each thread of a block (cusim_fiber.cc). */
void cusim_run_fibers(const unsigned grid[3], const unsigned block[3], cusim_thread_fn thread,
                      const void *call);
/* Waits until every running thread of the block has come here. */
void cusim_barrier(void);
/* Notes that the kernel trapped; the simulator asks after the run. */
void cusim_trap(void);
/* What a kernel asks the simulator (struct cusim_calls). */
void cusim_trigger(void);
void cusim_wait(void);
/* Which block of a grid runs as the i-th. */
struct cusim_dim cusim_next_block(size_t i, const unsigned grid[3]);
void *cusim_shared_alloc(size_t bytes);
void cusim_shared_free(void *memory);

static inline void __syncthreads(void) {
    cusim_barrier();
}
static inline void __threadfence(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __trap(void) {
    cusim_trap();
}
static inline float cus_rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
/* A macro, since <math.h> of a newer C library declares a function of this name. */
#define rsqrtf cus_rsqrtf
static inline int min(int a, int b) {
    return a < b ? a : b;
}

static inline unsigned atomicAdd(unsigned *p, unsigned v) {
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) {
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

/* The entry of one kernel: the offsets of its parameters, and the function that runs a grid. */
template <auto fn> struct cusim_entry;

template <class... A, void (*fn)(A...)> struct cusim_entry<fn> {
    static constexpr unsigned count = sizeof...(A);
    using values = std::tuple<A...>;

    struct layout {
        /* One more than needed, so that a kernel without parameters has no array of length 0. */
        unsigned offset[count + 1] = {}, size[count + 1] = {};
        constexpr layout() {
            const unsigned sizes[] = {(unsigned)sizeof(A)..., 0};
            const unsigned aligns[] = {(unsigned)alignof(A)..., 1};
            unsigned at = 0;
            for (unsigned i = 0; i < count; i++) {
                at = (at + aligns[i] - 1) / aligns[i] * aligns[i];
                offset[i] = at;
                size[i] = sizes[i];
                at += sizes[i];
            }
        }
    };
    static constexpr layout where{};

    template <size_t... I> static void read(values *v, void **params, std::index_sequence<I...>) {
        (memcpy(&std::get<I>(*v), params[I], sizeof(A)), ...);
        (void)v, (void)params;
    }

    static void thread(const void *call) { std::apply(fn, *(const values *)call); }

    template <bool sync>
    static void run(const unsigned grid[3], const unsigned block[3], unsigned smem, void **params) {
        values v;
        read(&v, params, std::index_sequence_for<A...>{});
        void *shared = cusim_shared_alloc(smem);
        cusim_dynamic_shared = shared;
        cusim_dynamic_bytes = smem;
        gridDim = {grid[0], grid[1], grid[2]};
        blockDim = {block[0], block[1], block[2]};
        if (sync) {
            cusim_run_fibers(grid, block, thread, &v);
        } else {
            for (size_t b = 0; b < (size_t)grid[0] * grid[1] * grid[2]; b++) {
                blockIdx = cusim_next_block(b, grid);
                for (unsigned z = 0; z < block[2]; z++) {
                    for (unsigned y = 0; y < block[1]; y++) {
                        for (unsigned x = 0; x < block[0]; x++) {
                            threadIdx = {x, y, z};
                            std::apply(fn, v);
                        }
                    }
                }
            }
        }
        cusim_shared_free(shared);
    }
};

#define CUSIM_ENTRY(kernel, sync)                                                                  \
    static struct cusim_kernel cusim_kernel_##kernel;                                              \
    __attribute__((constructor)) static void cusim_register_##kernel(void) {                       \
        cusim_kernel_##kernel.name = #kernel;                                                      \
        cusim_kernel_##kernel.n_params = cusim_entry<kernel>::count;                               \
        cusim_kernel_##kernel.offset = cusim_entry<kernel>::where.offset;                          \
        cusim_kernel_##kernel.size = cusim_entry<kernel>::where.size;                              \
        cusim_kernel_##kernel.run = cusim_entry<kernel>::run<sync>;                                \
        cusim_kernel_register(&cusim_kernel_##kernel);                                             \
    }
#define CUS_KERNEL(name) CUSIM_ENTRY(name, false)
#define CUS_KERNEL_SYNC(name) CUSIM_ENTRY(name, true)

#endif

#endif
