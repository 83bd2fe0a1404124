/*
 * What kind of memory an address is in (ranges.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_RANGES_H
#define CUSPLICE_STREAM_RANGES_H

#include "shim/stream/state.h"

enum cus_family {
    CUS_FAMILY_UNKNOWN,
    CUS_FAMILY_DEVICE,
    CUS_FAMILY_POOL,
    CUS_FAMILY_VIRTUAL, /* mapped by cuMemMap */
    CUS_FAMILY_HOST,
    CUS_FAMILY_PAGEABLE /* CUDA knows nothing of it */
};
/* The kind of memory at [address, address + bytes). The range must lie in one range that CUDA
 * allocated or registered, or in mappings that touch (HAZARDS C4, C6). */
enum cus_family cus_ranges_family(uint64_t address, uint64_t bytes);
void cus_ranges_forget(void);
/* Forgets the range in which this address lies, in all contexts. False: none was known. */
bool cus_ranges_forget_at(uint64_t address);
/* Frees the table, too. For cus_engine_end. */
void cus_ranges_drop(void);
static inline uint32_t cus_ranges_epoch(void) {
    return __atomic_load_n(&cus_process.memory_epoch, __ATOMIC_ACQUIRE);
}

#endif
