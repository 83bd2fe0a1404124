/*
 * Rules that can be switched off, to prove that a test stands behind each. If the code obeys a rule
 * of hazards.def, the condition names the rule:
 *
 *     if (CUS_HAZARD(A12) && !cus_kind_allows(kind, dims))
 *
 * In the library CUS_HAZARD is a constant 1 without any code. In the build of tools/mutate-hazards
 * (--config=mutate) it is false for the hazard that CUSPLICE_MUTATE names. Then at least one test
 * fails.
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
/* True: CUSPLICE_MUTATE names this hazard. */
_Bool cus_hazard_is_off(enum cus_hazard hazard);
#define CUS_HAZARD(id) (!cus_hazard_is_off(CUS_HAZARD_##id))
#else
#define CUS_HAZARD(id) 1
#endif

#endif
