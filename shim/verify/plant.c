/*
 * Puts faults into graphs and takes them out.
 */
#include "shim/verify/plant.h"

#include <string.h>

#include "shim/base/mem.h"
#include "shim/base/options.h"

static bool put(const struct cus_verify *v, uint32_t node, const struct cus_values *values) {
    return cus_exec_patch(v->driver, v->context, v->exec, node, v->ops[node].kind, values) ==
           CUDA_SUCCESS;
}

static bool is_same(const struct cus_kind *kind, const struct cus_values *a,
                    const struct cus_values *b) {
    return cus_dims_same(a->dims, b->dims) && memcmp(a->params, b->params, kind->param_bytes) == 0;
}

/* A node that was patched for this launch receives its earlier values. */
static bool plant_unpatched(const struct cus_verify *v, struct cus_planted *planted) {
    for (uint32_t i = 0; i < v->n; i++) {
        const struct cus_verify_op *op = &v->ops[i];
        if (op->kind->type == CUS_OP_LAUNCH && op->node && !op->node->unknown &&
            !is_same(op->kind, op->node, op->requested)) {
            *planted = (struct cus_planted){CUS_PLANTED_NODE, i, NULL};
            return put(v, i, op->node);
        }
    }
    return false;
}

static bool plant_dropped(const struct cus_verify *v, struct cus_planted *planted) {
    *planted = (struct cus_planted){CUS_PLANTED_HOLE, v->n / 2, NULL};
    return cus_exec_enable(v->driver, v->exec, planted->at, false);
}

/* Builds another graph of the same ops, in which the middle two have changed places. */
static bool plant_swapped(struct cus_verify *v, CUstream idle, struct cus_planted *planted) {
    struct cus_exec_op *ops = cus_mem_alloc(v->n * sizeof *ops);
    uint32_t at = v->n / 2 - 1;
    enum cus_fallback why;
    struct cus_exec *exec;
    for (uint32_t i = 0; ops && i < v->n; i++) {
        uint32_t from = i == at ? at + 1 : i == at + 1 ? at : i;
        ops[i] = (struct cus_exec_op){.kind = (struct cus_kind *)(uintptr_t)v->ops[from].kind,
                                      .values = v->ops[from].requested};
        if (v->ops[i].kind->branch || v->ops[i].kind->type == CUS_OP_WAIT) {
            cus_mem_free(ops); /* places of other ops are part of what these say */
            return false;
        }
    }
    bool built = ops && cus_exec_build(v->driver, (struct cus_exec_target){idle, NULL}, ops, v->n,
                                       NULL, &exec, &why);
    cus_mem_free(ops);
    if (!built)
        return false;
    cus_exec_swap(exec, at);
    *planted = (struct cus_planted){CUS_PLANTED_GRAPH, at, v->exec};
    v->exec = exec;
    return true;
}

bool cus_plant(struct cus_verify *verify, CUstream idle, struct cus_planted *planted) {
    *planted = (struct cus_planted){CUS_PLANTED_NOTHING, 0, NULL};
    switch (cus_options()->verify_plant) {
    case CUS_PLANT_UNPATCHED:
        return plant_unpatched(verify, planted);
    case CUS_PLANT_DROPPED:
        return plant_dropped(verify, planted);
    case CUS_PLANT_SWAPPED:
        return plant_swapped(verify, idle, planted);
    case CUS_PLANT_NONE:
        break;
    }
    return false;
}

void cus_unplant(struct cus_verify *verify, const struct cus_planted *planted) {
    uint32_t i = planted->at;
    switch (planted->what) {
    case CUS_PLANTED_NODE:
        put(verify, i, verify->ops[i].requested);
        break;
    case CUS_PLANTED_HOLE:
        cus_exec_enable(verify->driver, verify->exec, i, true);
        break;
    case CUS_PLANTED_GRAPH:
        cus_exec_destroy(verify->driver, verify->exec);
        verify->exec = planted->real;
        break;
    case CUS_PLANTED_NOTHING:
        break;
    }
}
