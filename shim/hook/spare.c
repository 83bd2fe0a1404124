/*
 * Stubs for functions that the table does not know: an entry point of a newer driver, or a function
 * of CUPTI that dlsym found. A claimed slot is never given back.
 *
 * Any thread, in look-ups too. Takes no lock: one compare-and-swap per slot.
 */
#include <stddef.h>

#include "shim/base/log.h"
#include "shim/hook/real.h"
#include "shim/hook/resolve.h"

#include "shim/base/forbid.h"

static uint32_t kinds[CUS_ENTRY_SPARE]; /* atomic */

void *cus_spare_stub(void *function, const char *name, unsigned kind) {
    for (unsigned i = 0; i < CUS_ENTRY_SPARE; i++) {
        void **slot = &cus_real_functions[CUS_ENTRY_SPARE_FIRST + i];
        void *nobody = NULL;
        if (__atomic_compare_exchange_n(slot, &nobody, function, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            /* Another thread may find the slot and call before the kind is written. Its call
             * then counts as of an unknown function, which flushes everything: that is safe. */
            __atomic_store_n(&kinds[i], kind, __ATOMIC_RELEASE);
            nobody = function;
            cus_log(CUS_DEBUG, "hook", "%s is not in the table: stub %u watches it", name, i);
        }
        if (nobody == function)
            return (void *)(cus_entry_spares + (size_t)i * CUS_ENTRY_SPARE_BYTES);
    }
    return NULL;
}

void *cus_spare_function(unsigned index) {
    return __atomic_load_n(&cus_real_functions[CUS_ENTRY_SPARE_FIRST + index], __ATOMIC_RELAXED);
}

unsigned cus_spare_kind(unsigned index) {
    return __atomic_load_n(&kinds[index], __ATOMIC_ACQUIRE);
}
