/*
 * p[block] += 1, compiled with cluster dimensions (2, 1, 1) where the GPU has clusters (sm_90 and
 * up). Grid (blocks), a multiple of 2; block 1.
 */
#include "kernels/kernels.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CLUSTER_TOUCH_DIMS __cluster_dims__(2, 1, 1)
#else
#define CLUSTER_TOUCH_DIMS
#endif

extern "C" __global__ void CLUSTER_TOUCH_DIMS cluster_touch(unsigned *p) {
    atomicAdd(p + blockIdx.x, 1u);
}

CUS_KERNEL(cluster_touch)
