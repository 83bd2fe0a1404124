/*
 * Runs the CPU form of a kernel by name, as the simulated driver does: parameters by address, no
 * CUDA.
 */
#ifndef TESTS_UNIT_KERNELS_RUN_H
#define TESTS_UNIT_KERNELS_RUN_H

#include <gtest/gtest.h>

#include "harness/sim/cusim_kernel.h"

extern "C" const struct cusim_kernel *cusim_kernel_find(const char *name);
extern "C" int cusim_kernel_take_trap(void);

struct Shape {
    unsigned x = 1, y = 1, z = 1;
};

/* Launches `name` over grid and block; each argument has exactly the type of the kernel's
 * parameter. */
template <class... A>
void run(const char *name, Shape grid, Shape block, unsigned smem, A... arguments) {
    const struct cusim_kernel *kernel = cusim_kernel_find(name);
    ASSERT_NE(kernel, nullptr) << name;
    ASSERT_EQ(kernel->n_params, sizeof...(A)) << name;
    const unsigned sizes[] = {(unsigned)sizeof(A)..., 0};
    for (unsigned i = 0; i < sizeof...(A); i++) {
        ASSERT_EQ(kernel->size[i], sizes[i]) << name << " parameter " << i;
    }
    void *params[] = {(void *)&arguments..., nullptr};
    const unsigned g[3] = {grid.x, grid.y, grid.z}, b[3] = {block.x, block.y, block.z};
    kernel->run(g, b, smem, params);
}

#endif
