/*
 * Finds where a new path merges with a known one.
 * cursor.c calls it under the engine's lock, when an op is recorded: never in steady replay.
 * Allocates once, when the tree is large. Never calls the driver.
 */
#include "shim/plan/merges.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"

void cus_merges_feed(struct cus_merges *merges, const struct cus_op *op) {
    merges->slot = NULL;
    if (!merges->slots) {
        merges->slots = cus_mem_grow(CUS_MERGE_SLOTS * sizeof *merges->slots);
        if (!merges->slots)
            return;
    }
    uint64_t hash = cus_hash(cus_op_hash(op));
    merges->gram = (merges->gram << 4) + (hash ^ hash >> 32);
    merges->ops++;
    /* The upper bits depend on all ops of the window. */
    uint64_t mixed = cus_hash_second(merges->gram >> 32 ^ merges->gram) >> 32;
    if (merges->ops >= CUS_JOIN_OPS && mixed % CUS_MERGE_SAMPLE == 0)
        merges->slot = &merges->slots[mixed / CUS_MERGE_SAMPLE % CUS_MERGE_SLOTS];
}

struct cus_node *cus_merges_known(const struct cus_merges *merges, const struct cus_op *op,
                                  enum cus_step_class step) {
    struct cus_node *node = merges->slot ? merges->slot->node : NULL;
    if (!node || merges->slot->gram != merges->gram || node->key.kind != op->kind ||
        node->key.step != step)
        return NULL;
    return node;
}

void cus_merges_clear(struct cus_merges *merges) {
    cus_mem_shrink(merges->slots);
    *merges = (struct cus_merges){0};
}
