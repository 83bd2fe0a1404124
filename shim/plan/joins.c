/*
 * Finding where a new path joins a known one.
 *
 * Runs under the engine's lock, at ops that are recorded: never in steady replay. Allocates once,
 * when the tree has become large. Never calls the driver.
 */
#include "shim/plan/joins.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"

void cus_joins_feed(struct cus_joins *joins, const struct cus_op *op) {
    joins->slot = NULL;
    if (!joins->met) {
        joins->met = cus_mem_grow(CUS_JOIN_SLOTS * sizeof *joins->met);
        if (!joins->met)
            return;
    }
    uint64_t hash = cus_hash(cus_op_hash(op));
    joins->gram = (joins->gram << 4) + (hash ^ hash >> 32);
    joins->ops++;
    /* Its upper bits have something of all ops. */
    uint64_t mixed = cus_hash_second(joins->gram >> 32 ^ joins->gram) >> 32;
    if (joins->ops >= CUS_JOIN_OPS && mixed % CUS_JOIN_SAMPLE == 0)
        joins->slot = &joins->met[mixed / CUS_JOIN_SAMPLE % CUS_JOIN_SLOTS];
}

struct cus_node *cus_joins_known(const struct cus_joins *joins, const struct cus_op *op,
                                 enum cus_step_class step) {
    struct cus_node *node = joins->slot ? joins->slot->node : NULL;
    if (!node || joins->slot->gram != joins->gram || node->key.kind != op->kind ||
        node->key.step != step)
        return NULL;
    return node;
}

void cus_joins_clear(struct cus_joins *joins) {
    cus_mem_shrink(joins->met);
    *joins = (struct cus_joins){0};
}
