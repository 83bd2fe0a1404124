/*
 * Rules that can be switched off, to prove that a test stands behind each.
 *
 * Where the code obeys a rule of hazards.def, the rule is written into the condition:
 *
 *     if (CUS_HAZARD(A12) && !cus_kind_allows(kind, dims))
 *
 * In the library that is a constant true and leaves no trace. In the build of tools/mutate-hazards
 * (--config=mutate) it is false while CUSPLICE_MUTATE names the hazard: then at least one test must
 * fail.
 */
#ifndef CUSPLICE_BASE_HAZARD_H
#define CUSPLICE_BASE_HAZARD_H

enum cus_hazard {
#define HAZARD(id, mark, rule, where, test, filter) CUS_HAZARD_##id,
#include "shim/base/hazards.def"
#undef HAZARD
    CUS_HAZARDS
};

#ifdef CUS_MUTATE
/* Is this the hazard that CUSPLICE_MUTATE names? */
_Bool cus_hazard_is_off(enum cus_hazard hazard);
#define CUS_HAZARD(id) (!cus_hazard_is_off(CUS_HAZARD_##id))
#else
#define CUS_HAZARD(id) 1
#endif

#endif
