/*
 * Waits on the device for a word of mapped host memory to reach value; it looks max_rounds times at
 * most, about a microsecond apart, so that it can never hold a GPU for ever. *out becomes 1 if the
 * value was seen and 2 if not. <<<1, 1>>>.
 */
#include "kernels/kernels.h"

extern "C" __global__ void spin_until(const volatile unsigned *flag, unsigned value,
                                      unsigned long long max_rounds, unsigned *out) {
    unsigned seen = 2;
    for (unsigned long long round = 0; round < max_rounds; round++) {
        if (*flag >= value) {
            seen = 1;
            break;
        }
        CUS_PAUSE();
    }
    __threadfence_system();
    *out = seen;
}

CUS_KERNEL(spin_until)
