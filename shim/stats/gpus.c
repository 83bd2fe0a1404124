/*
 * The list of gpus.h: an array that only grows. Threads of the program add to it, and any thread
 * reads it.
 */
#include "shim/stats/gpus.h"

#include <stdbool.h>
#include <stdio.h>

static uint32_t gpus[CUS_GPUS]; /* atomic; 0 behind the last one */

uint32_t cus_gpu_of(int domain, int bus, int device) {
    return ((uint32_t)domain << 16 | ((uint32_t)bus & 0xff) << 8 | ((uint32_t)device & 0x1f) << 3) +
           1;
}

void cus_gpu_note(uint32_t gpu) {
    for (unsigned i = 0; gpu && i < CUS_GPUS; i++) {
        uint32_t there = 0;
        if (__atomic_compare_exchange_n(&gpus[i], &there, gpu, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            there == gpu)
            return;
    }
}

unsigned cus_gpus(uint32_t out[CUS_GPUS]) {
    unsigned n = 0;
    while (n < CUS_GPUS && (out[n] = __atomic_load_n(&gpus[n], __ATOMIC_RELAXED)))
        n++;
    return n;
}

void cus_gpu_show(const uint32_t *list, unsigned n, char out[CUS_GPU_TEXT]) {
    uint32_t gpu = n && list[0] ? list[0] - 1 : 0;
    int used = 0;
    if (!n || !list[0]) {
        snprintf(out, CUS_GPU_TEXT, "-");
        return;
    }
    if (gpu >> 16)
        used = snprintf(out, CUS_GPU_TEXT, "%04x:", gpu >> 16);
    used += snprintf(out + used, CUS_GPU_TEXT - (size_t)used, "%02x:%02x.0", gpu >> 8 & 0xff,
                     gpu >> 3 & 0x1f);
    if (n > 1)
        snprintf(out + used, CUS_GPU_TEXT - (size_t)used, " +%u", n - 1);
}

void cus_gpus_drop(void) {
    for (unsigned i = 0; i < CUS_GPUS; i++)
        __atomic_store_n(&gpus[i], 0, __ATOMIC_RELAXED);
}
