/*
 * The GPUs that this process has used, by where they sit on the PCI bus: the one name that all
 * processes of a machine share, whatever each of them numbers from 0. Any thread, no lock, no
 * allocation.
 */
#ifndef CUSPLICE_STATS_GPUS_H
#define CUSPLICE_STATS_GPUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUS_GPUS = 16,     /* so many are kept */
    CUS_GPU_TEXT = 40, /* bytes of a text below, with its final NUL */
};

/* domain << 16 | bus << 8 | device << 3, plus 1; 0: none. */
uint32_t cus_gpu_of(int domain, int bus, int device);
/* The process uses this GPU. */
void cus_gpu_note(uint32_t gpu);
/* Writes them in the order in which they were first used. Returns how many. */
unsigned cus_gpus(uint32_t out[CUS_GPUS]);
/* "1b:00.0", in front of it the domain unless that is 0, as lspci writes it. Of several the first
 * one, and behind it how many more: "1b:00.0 +3". "-": there is none. */
void cus_gpu_show(const uint32_t *gpus, unsigned n, char out[CUS_GPU_TEXT]);
/* Forgets them. For cus_engine_end. */
void cus_gpus_drop(void);

#ifdef __cplusplus
}
#endif

#endif
