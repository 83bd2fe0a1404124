/*
 * Where a segment with branches may begin and end. segment.c calls it while a segment is formed,
 * under the engine's lock. Never calls the driver.
 */
#include "shim/plan/branches.h"

#include "shim/base/hazard.h"

/* A branch that was forked in front of the segment has ops there that nothing in the segment comes
 * behind. */
static bool take_wait(struct cus_branches *branches, const struct cus_kind *kind, uint32_t i) {
    uint32_t record = cus_branches_record(kind, i);
    bool forked_before = kind->goes_on && !(branches->open >> kind->branch & 1);
    if (record == CUS_NO_OP || (CUS_HAZARD(B18) && forked_before))
        return false;
    if (kind->branch)
        branches->open |= (uint8_t)(1u << kind->branch);
    else if (branches->at[kind->from] == record)
        branches->open &= (uint8_t) ~(1u << kind->from);
    return true;
}

bool cus_branches_take(struct cus_branches *branches, const struct cus_kind *kind, uint32_t i) {
    bool waits = kind->type == CUS_OP_WAIT, of_branch = kind->branch || waits;
    branches->overlaps |= kind->pdl != 0;
    branches->waits |= waits;
    /* The edges of launches that overlap (HAZARDS A4) are told for one branch alone. */
    if (branches->waits && branches->overlaps)
        return false;
    if (waits ? !take_wait(branches, kind, i)
              : CUS_HAZARD(B18) && kind->branch && !(branches->open >> kind->branch & 1))
        return false;
    branches->used |= (uint8_t)(of_branch << kind->branch);
    branches->at[kind->branch] = i;
    return true;
}
