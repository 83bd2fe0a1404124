/*
 * Which rule a build for mutations leaves out. The shipped library has none of this.
 */
#include "shim/base/hazard.h"

#ifdef CUS_MUTATE
#include <stdlib.h>
#include <string.h>

_Bool cus_hazard_is_off(enum cus_hazard hazard) {
    static const char *const ids[] = {
#define HAZARD(id, mark, rule, where, test, filter) #id,
#include "shim/base/hazards.def"
#undef HAZARD
    };
    static int off = -2; /* every thread computes the same value */
    int known = __atomic_load_n(&off, __ATOMIC_RELAXED);
    if (known == -2) {
        const char *named = getenv("CUSPLICE_MUTATE");
        known = -1;
        for (int i = 0; named && i < CUS_HAZARDS; i++)
            if (strcmp(ids[i], named) == 0)
                known = i;
        __atomic_store_n(&off, known, __ATOMIC_RELAXED);
    }
    return known == (int)hazard;
}
#endif
