/*
 * Waits on the device until a word of mapped host memory reaches value. It looks at most max_rounds
 * times, about a microsecond apart, so it cannot hold a GPU for ever. *out becomes 1 if it saw the
 * value, otherwise 2. <<<1, 1>>>.
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
