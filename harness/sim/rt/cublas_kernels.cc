/*
 * The CPU kernels of the libcublas stand-in, part of libcusim_kernels.so. (The real library brings
 * its own.)
 *
 *   ROWS and COLUMNS: CUBLAS_SIM_ROWS and CUBLAS_SIM_COLUMNS. All blocks are ROWS.
 *   cublas_sim_gemm         grid (ceil(m / ROWS) made even, ceil(n / COLUMNS), batch)
 *   cublas_sim_gemm_narrow  the same for n up to COLUMNS, with grid.y 1
 *   cublas_sim_gemv         grid (ceil(rows of op(A) / ROWS))
 *
 * Sums have a fixed order that depends on k alone, so the other columns of a batch do not change a
 * result.
 */
#include "harness/sim/rt/cublas_sim.h"

#include <stdint.h>

#include "kernels/cus_kernel.h"

namespace {

float from_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 0) {
        float f = (float)fraction * (1.0f / 16777216.0f);
        return sign ? -f : f;
    }
    uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Rounds to the nearest, ties to even. */
uint16_t to_half(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00);
    }
    if (rest >= 0x477ff000) {
        return (uint16_t)(sign | 0x7c00);
    }
    if (rest < 0x38800000) {
        float small = fabsf(f) * 16777216.0f;
        return (uint16_t)(sign | (uint32_t)rintf(small));
    }
    rest += 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | (rest - 0x38000000) >> 13);
}

float load(const struct cublas_sim_matrix *m, size_t at) {
    if (m->type == CUBLAS_SIM_F32) {
        return ((const float *)m->data)[at];
    }
    uint16_t half = ((const uint16_t *)m->data)[at];
    if (m->type == CUBLAS_SIM_F16) {
        return from_half(half);
    }
    uint32_t bits = (uint32_t)half << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

void store(const struct cublas_sim_matrix *m, size_t at, float f) {
    if (m->type == CUBLAS_SIM_F32) {
        ((float *)m->data)[at] = f;
    } else if (m->type == CUBLAS_SIM_F16) {
        ((uint16_t *)m->data)[at] = to_half(f);
    } else {
        uint32_t bits;
        memcpy(&bits, &f, 4);
        if (!isnan(f)) {
            bits += 0x7fff + (bits >> 16 & 1);
        }
        ((uint16_t *)m->data)[at] = (uint16_t)(bits >> 16);
    }
}

/* A dot product as eight interleaved sums, which compilers turn into vector code. */
typedef float lanes __attribute__((vector_size(32)));

float dot(const float *a, const float *b, int k) {
    lanes sum = {};
    int i = 0;
    for (; i + 8 <= k; i += 8) {
        lanes x, y;
        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        sum += x * y;
    }
    float rest = 0.0f;
    for (; i < k; i++) {
        rest += a[i] * b[i];
    }
    for (int l = 0; l < 8; l++) {
        rest += sum[l];
    }
    return rest;
}

float scalar(unsigned long long at, float value) {
    return at ? *(const float *)at : value;
}

void gemm(const struct cublas_sim_gemm_args *g, int first_column, int columns) {
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= g->m) {
        return;
    }
    float alpha = scalar(g->alpha_at, g->alpha), beta = scalar(g->beta_at, g->beta);
    size_t a_from = (size_t)(blockIdx.z * g->a.stride), b_from = (size_t)(blockIdx.z * g->b.stride);
    size_t c_from = (size_t)(blockIdx.z * g->c.stride);
    bool direct = g->a.type == CUBLAS_SIM_F32 && g->b.type == CUBLAS_SIM_F32 && g->transpose_a &&
                  !g->transpose_b;
    for (int column = first_column; column < first_column + columns && column < g->n; column++) {
        float sum = 0.0f;
        if (direct) {
            sum = dot((const float *)g->a.data + a_from + (size_t)row * g->a.ld,
                      (const float *)g->b.data + b_from + (size_t)column * g->b.ld, g->k);
        } else {
            for (int i = 0; i < g->k; i++) {
                size_t a = g->transpose_a ? (size_t)row * g->a.ld + i : (size_t)i * g->a.ld + row;
                size_t b =
                    g->transpose_b ? (size_t)i * g->b.ld + column : (size_t)column * g->b.ld + i;
                sum += load(&g->a, a_from + a) * load(&g->b, b_from + b);
            }
        }
        size_t c = c_from + (size_t)column * g->c.ld + row;
        store(&g->c, c, beta == 0.0f ? alpha * sum : alpha * sum + beta * load(&g->c, c));
    }
}

} // namespace

extern "C" __global__ void cublas_sim_gemm(struct cublas_sim_gemm_args args) {
    gemm(&args, (int)blockIdx.y * CUBLAS_SIM_COLUMNS, CUBLAS_SIM_COLUMNS);
}

extern "C" __global__ void cublas_sim_gemm_narrow(struct cublas_sim_gemm_args args) {
    gemm(&args, 0, CUBLAS_SIM_COLUMNS);
}

extern "C" __global__ void cublas_sim_gemv(struct cublas_sim_gemv_args args) {
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int rows = args.transpose ? args.n : args.m, inner = args.transpose ? args.m : args.n;
    if (row >= rows) {
        return;
    }
    /* A negative step goes through the vector from its end, as in BLAS. */
    const float *x = (const float *)args.x - (args.step_x < 0 ? (inner - 1) * args.step_x : 0);
    float *y = (float *)args.y - (args.step_y < 0 ? (rows - 1) * args.step_y : 0);
    float sum = 0.0f;
    for (int i = 0; i < inner; i++) {
        size_t a = args.transpose ? (size_t)row * args.a.ld + i : (size_t)i * args.a.ld + row;
        sum += load(&args.a, a) * x[(long)i * args.step_x];
    }
    float alpha = scalar(args.alpha_at, args.alpha), beta = scalar(args.beta_at, args.beta);
    float *to = y + (long)row * args.step_y;
    *to = beta == 0.0f ? alpha * sum : alpha * sum + beta * *to;
}

CUS_KERNEL(cublas_sim_gemm)
CUS_KERNEL(cublas_sim_gemm_narrow)
CUS_KERNEL(cublas_sim_gemv)
