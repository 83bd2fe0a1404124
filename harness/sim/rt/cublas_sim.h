/*
 * The parameters of the libcublas stand-in's kernels: one structure by value, as in the real
 * library.
 */
#ifndef HARNESS_SIM_RT_CUBLAS_SIM_H
#define HARNESS_SIM_RT_CUBLAS_SIM_H

/* Rows of the result of one block of a gemm or gemv; also its block size. */
#define CUBLAS_SIM_ROWS 64
/* Columns of the result of one block of the wide gemm; the narrow gemm takes all, at most this
 * many. */
#define CUBLAS_SIM_COLUMNS 16

enum cublas_sim_type { CUBLAS_SIM_F32, CUBLAS_SIM_F16, CUBLAS_SIM_BF16 };

/* A column-major matrix in device memory; matrices of a batch are `stride` elements apart. */
struct cublas_sim_matrix {
    unsigned long long data;
    long long stride;
    int ld;
    int type; /* enum cublas_sim_type */
};

/* C = alpha * op(A) * op(B) + beta * C, C m x n, the inner size k. */
struct cublas_sim_gemm_args {
    struct cublas_sim_matrix a, b, c;
    int m, n, k;
    int transpose_a, transpose_b;
    int zero; /* replaces padding: every byte of a parameter is written, so that logs can be
                 compared */
    /* If not 0, addresses of the values: the program chose CUBLAS_POINTER_MODE_DEVICE. */
    unsigned long long alpha_at, beta_at;
    float alpha, beta;
};

/* y = alpha * op(A) * x + beta * y, A m x n, steps between the elements of x and y. */
struct cublas_sim_gemv_args {
    struct cublas_sim_matrix a;
    unsigned long long x, y;
    int m, n, transpose, step_x, step_y;
    int zero;
    unsigned long long alpha_at, beta_at;
    float alpha, beta;
};

#endif
