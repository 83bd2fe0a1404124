/* The driver functions that the library itself calls, as names: shim/api/driver.h is C alone. */
#include "shim/api/driver.h"

extern const char *const gate_own_names[];
const char *const gate_own_names[] = {
#define NAME(symbol) #symbol,
    CUS_DRIVER_NEEDED(NAME) CUS_DRIVER_OPTIONAL(NAME)
#undef NAME
        0,
};
