/*
 * Finds the edges of a graph with branches, as a capture of the same calls would make them. exec.c
 * calls it during a build. Never calls the driver.
 */
#include "shim/graph/edges.h"

#include <string.h>

#include "shim/base/hazard.h"
#include "shim/plan/branches.h"

static bool add(struct cus_edges *to, uint32_t op) {
    for (uint32_t i = 0; i < to->n; i++)
        if (to->of[i] == op)
            return true;
    if (to->n == CUS_EDGES_MAX)
        return false;
    to->of[to->n++] = (uint16_t)op;
    return true;
}

static bool add_all(struct cus_edges *to, const struct cus_edges *from) {
    for (uint32_t i = 0; i < from->n; i++)
        if (!add(to, from->of[i]))
            return false;
    return true;
}

/* Where a branch is: its last nodes, its last op, and the wait that joined it to branch 0, if the
 * branch had no op since. */
struct branch {
    struct cus_edges *last;
    uint32_t at, joined;
};

/* The branch goes on behind a record too, which is op `record`. If branch 0 waited for the whole
 * branch before it made that record, the record is behind the branch already. */
static bool wait_for(struct branch *branch, const struct cus_exec_op *ops,
                     const struct cus_edges *before, const struct cus_kind *kind, uint32_t record) {
    bool covers = !kind->from && branch->joined != CUS_NO_OP && record > branch->joined;
    if (covers)
        branch->last->n = 0;
    return ops[record].absent ? add_all(branch->last, &before[record]) : add(branch->last, record);
}

bool cus_edges_find(const struct cus_exec_op *ops, uint32_t n, struct cus_edges *before,
                    struct cus_edges ends[CUS_BRANCHES + 1]) {
    struct branch branches[CUS_BRANCHES + 1];
    memset(ends, 0, (CUS_BRANCHES + 1) * sizeof *ends);
    for (unsigned b = 0; b <= CUS_BRANCHES; b++)
        branches[b] = (struct branch){&ends[b], CUS_NO_OP, CUS_NO_OP};
    for (uint32_t i = 0; i < n; i++) {
        const struct cus_kind *kind = ops[i].kind;
        struct branch *branch = &branches[kind->branch], *from = &branches[kind->from];
        before[i] = *branch->last;
        if (kind->type == CUS_OP_WAIT) {
            uint32_t record = cus_branches_record(kind, i);
            if (record == CUS_NO_OP ||
                (CUS_HAZARD(B18) && !wait_for(branch, ops, before, kind, record)))
                return false;
            if (!kind->branch && from->at == record)
                from->joined = i;
        } else if (!ops[i].absent) {
            *branch->last = (struct cus_edges){1, {(uint16_t)i}};
        }
        branch->at = i;
        branch->joined = CUS_NO_OP;
    }
    return true;
}
