/*
 * Launches of the micro kernels, one function each.
 *
 * Any thread may call them. They hold no lock, and use only the function table and handles of
 * struct sc.
 */
#include "harness/scenario/sc.h"

CUresult sc_launch(struct sc *sc, CUfunction fn, unsigned grid, unsigned block, unsigned smem,
                   CUstream stream, void **params) {
    return sc->cu.LaunchKernel(fn, grid, 1, 1, block, 1, 1, smem, stream, params, NULL);
}

static void over(struct sc *sc, enum sc_kernel kernel, CUstream s, int n, void **params) {
    OK(sc_launch(sc, sc->fn[kernel], (unsigned)(n + 63) / 64, 64, 0, s, params));
}

void sc_axpy(struct sc *sc, CUstream s, CUdeviceptr y, CUdeviceptr x, float a, int n) {
    over(sc, SC_axpy, s, n, (void *[]){&y, &x, &a, &n});
}

void sc_saxpy_n(struct sc *sc, CUstream s, CUdeviceptr y, CUdeviceptr x, float a, int n,
                int rounds) {
    over(sc, SC_saxpy_n, s, n, (void *[]){&y, &x, &a, &n, &rounds});
}

void sc_fill(struct sc *sc, CUstream s, CUdeviceptr dst, unsigned value, int n) {
    over(sc, SC_fill, s, n, (void *[]){&dst, &value, &n});
}

void sc_iota(struct sc *sc, CUstream s, CUdeviceptr dst, int start, int n) {
    over(sc, SC_iota, s, n, (void *[]){&dst, &start, &n});
}

void sc_add(struct sc *sc, CUstream s, CUdeviceptr dst, int value, int n) {
    over(sc, SC_add_scalar, s, n, (void *[]){&dst, &value, &n});
}

void sc_chain(struct sc *sc, CUstream s, CUdeviceptr x, unsigned a, unsigned b, int n) {
    over(sc, SC_chain, s, n, (void *[]){&x, &a, &b, &n});
}

void sc_copy(struct sc *sc, CUstream s, CUdeviceptr dst, CUdeviceptr src, int n) {
    over(sc, SC_copy_words, s, n, (void *[]){&dst, &src, &n});
}

void sc_reduce(struct sc *sc, CUstream s, CUdeviceptr out, CUdeviceptr in, int n) {
    OK(sc_launch(sc, sc->fn[SC_reduce_sum], (unsigned)(n + CUS_REDUCE_BLOCK - 1) / CUS_REDUCE_BLOCK,
                 CUS_REDUCE_BLOCK, 0, s, (void *[]){&out, &in, &n}));
}

void sc_checksum(struct sc *sc, CUstream s, CUdeviceptr out, CUdeviceptr data,
                 unsigned long long bytes) {
    OK(sc_launch(sc, sc->fn[SC_checksum], 2, 64, 0, s, (void *[]){&out, &data, &bytes}));
}

void sc_touch(struct sc *sc, CUstream s, CUdeviceptr p) {
    OK(sc_launch(sc, sc->fn[SC_touch], 1, 1, 0, s, (void *[]){&p}));
}

void sc_set_flag(struct sc *sc, CUstream s, CUdeviceptr flag, unsigned value) {
    OK(sc_launch(sc, sc->fn[SC_set_flag], 1, 1, 0, s, (void *[]){&flag, &value}));
}
