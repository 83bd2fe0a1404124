/*
 * The way of a program that is linked to libcuda: the loader binds each symbol. This file declares
 * the symbols by exported name, because macros of cuda.h hide most of them.
 *
 * Runs on the main thread before any other CUDA call. Holds no lock; calls nothing.
 */
#include "harness/scenario/sc.h"

#define SC_API(field, symbol, name, version, flags, params)                                        \
    extern CUresult CUDAAPI sc_elf_##field params __asm__(#symbol);
#include "harness/scenario/api.def"
#undef SC_API

#ifdef SC_CUDART
/* scenario_cudart: plain launches go through the shared CUDA runtime, by the function that
 * nvcc's host code calls. The function passes on any handle that the driver accepts. For the
 * simulator. */
struct sc_dim3 {
    unsigned x, y, z;
};
typedef int sc_launch_fn(void *kernel, struct sc_dim3 grid, struct sc_dim3 block, void **params,
                         size_t shared, CUstream stream);
extern sc_launch_fn __cudaLaunchKernel, __cudaLaunchKernel_ptsz;

#define SC_LAUNCH(field, launch)                                                                   \
    static CUresult CUDAAPI sc_cudart_##field(                                                     \
        CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
        unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {              \
        if (extra)                                                                                 \
            return sc_elf_##field(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);       \
        return (CUresult)launch(f, (struct sc_dim3){gx, gy, gz}, (struct sc_dim3){bx, by, bz},     \
                                params, shared, stream);                                           \
    }
SC_LAUNCH(LaunchKernel, __cudaLaunchKernel)
SC_LAUNCH(LaunchKernel_ptsz, __cudaLaunchKernel_ptsz)
#endif

#ifdef SC_UNKNOWN
/* scenario_unknown (unknown.c). */
CUresult CUDAAPI cuSimFillX(CUdeviceptr dst, unsigned value, size_t n, CUstream stream);
CUresult sc_linked_fill(CUdeviceptr dst, unsigned value, size_t n, CUstream stream);
CUresult sc_linked_fill(CUdeviceptr dst, unsigned value, size_t n, CUstream stream) {
    return cuSimFillX(dst, value, n, stream);
}
#endif

static bool bind(struct sc_api *cu) {
#define SC_API(field, symbol, name, version, flags, params) cu->field = sc_elf_##field;
#include "harness/scenario/api.def"
#undef SC_API
#ifdef SC_CUDART
    cu->LaunchKernel = sc_cudart_LaunchKernel;
    cu->LaunchKernel_ptsz = sc_cudart_LaunchKernel_ptsz;
#endif
    return true;
}

bool (*const sc_route_elf)(struct sc_api *cu) = bind;
