/*
 * Tells the host by a word of mapped host memory. A fence before the write makes the results of
 * earlier kernels visible first. <<<1, 1>>>.
 */
#include "kernels/kernels.h"

extern "C" __global__ void set_flag(volatile unsigned *flag, unsigned value) {
    __threadfence_system();
    *flag = value;
    __threadfence_system();
}

CUS_KERNEL(set_flag)
