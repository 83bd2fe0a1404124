/*
 * Stops with an error if *p is not 0: the launch fails and the context is lost, as with a failed
 * check in a real kernel. <<<1, 1>>>.
 */
#include "kernels/kernels.h"

extern "C" __global__ void trap(unsigned *p) {
    if (*p) {
        __trap();
    }
}

CUS_KERNEL(trap)
