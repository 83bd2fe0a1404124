/*
 * Tells the host: writes a word of mapped host memory, behind a fence, so that what the kernels
 * before it wrote is seen first. <<<1, 1>>>.
 */
#include "kernels/kernels.h"

extern "C" __global__ void set_flag(volatile unsigned *flag, unsigned value) {
    __threadfence_system();
    *flag = value;
    __threadfence_system();
}

CUS_KERNEL(set_flag)
