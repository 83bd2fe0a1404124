/*
 * Planting and taking out.
 */
#include "shim/verify/plant.h"

#include <string.h>

#include "shim/base/options.h"

static bool put(const struct cus_verify *v, uint32_t node, const struct cus_held *held) {
    return cus_exec_patch(v->driver, v->context, v->exec, node, v->ops[node].kind, held) ==
           CUDA_SUCCESS;
}

static bool is_same(const struct cus_kind *kind, const struct cus_held *a,
                    const struct cus_held *b) {
    return cus_dims_same(a->dims, b->dims) && memcmp(a->params, b->params, kind->param_bytes) == 0;
}

/* A node that was patched for this launch gets back what it held before. */
static bool plant_unpatched(const struct cus_verify *v, struct cus_planted *planted) {
    for (uint32_t i = 0; i < v->n; i++) {
        const struct cus_verify_op *op = &v->ops[i];
        if (op->kind->type == CUS_OP_LAUNCH && op->node && !op->node->unknown &&
            !is_same(op->kind, op->node, op->asked)) {
            *planted = (struct cus_planted){CUS_PLANTED_NODE, i};
            return put(v, i, op->node);
        }
    }
    return false;
}

static bool plant_dropped(const struct cus_verify *v, struct cus_planted *planted) {
    *planted = (struct cus_planted){CUS_PLANTED_HOLE, v->n / 2};
    return cus_exec_enable(v->driver, v->exec, planted->at, false);
}

/* The middle two of one kind that differ. */
static bool plant_swapped(const struct cus_verify *v, struct cus_planted *planted) {
    for (uint32_t step = 0; step < v->n; step++) {
        uint32_t i = (v->n / 2 + step) % v->n;
        const struct cus_verify_op *a = &v->ops[i], *b = a + 1;
        if (i + 1 < v->n && a->kind == b->kind && a->kind->type == CUS_OP_LAUNCH &&
            !is_same(a->kind, a->asked, b->asked)) {
            *planted = (struct cus_planted){CUS_PLANTED_PAIR, i};
            return put(v, i, b->asked) && put(v, i + 1, a->asked);
        }
    }
    return false;
}

bool cus_plant(const struct cus_verify *verify, struct cus_planted *planted) {
    *planted = (struct cus_planted){CUS_PLANTED_NOTHING, 0};
    switch (cus_options()->verify_plant) {
    case CUS_PLANT_UNPATCHED:
        return plant_unpatched(verify, planted);
    case CUS_PLANT_DROPPED:
        return plant_dropped(verify, planted);
    case CUS_PLANT_SWAPPED:
        return plant_swapped(verify, planted);
    case CUS_PLANT_NONE:
        break;
    }
    return false;
}

void cus_unplant(const struct cus_verify *verify, const struct cus_planted *planted) {
    uint32_t i = planted->at;
    switch (planted->what) {
    case CUS_PLANTED_NODE:
        put(verify, i, verify->ops[i].asked);
        break;
    case CUS_PLANTED_PAIR:
        put(verify, i, verify->ops[i].asked);
        put(verify, i + 1, verify->ops[i + 1].asked);
        break;
    case CUS_PLANTED_HOLE:
        cus_exec_enable(verify->driver, verify->exec, i, true);
        break;
    case CUS_PLANTED_NOTHING:
        break;
    }
}
