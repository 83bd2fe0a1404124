/*
 * Sums counters. The caller holds the lock that guards `to`.
 */
#include "shim/stats/stats.h"

_Static_assert(sizeof(struct cus_counters) % sizeof(uint64_t) == 0, "counters are 64-bit words");

const char *const cus_op_keys[CUS_OP_TYPES] = {"launches", "memsets", "copies", "records", "waits"};
const char *const cus_eager_keys[CUS_EAGERS] = {
#define CUS_EAGER(id, key) key,
#include "shim/stats/reasons.def"
};
const char *const cus_break_keys[CUS_BREAKS] = {
#define CUS_BREAK(id, key) key,
#include "shim/stats/reasons.def"
};

void cus_counters_add(struct cus_counters *to, const struct cus_counters *from) {
    uint64_t *sum = (uint64_t *)to;
    const uint64_t *term = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += __atomic_load_n(&term[i], __ATOMIC_RELAXED); /* another thread may be counting
                                                                * meanwhile */
}
