/*
 * Mechanisms that can be switched off, to measure what each gains.
 *
 * Where the code does something for speed alone, the row of pays.def is written into the condition:
 *
 *     if (CUS_PAYS(TWINS) && ...)
 *
 * In the library that is a constant true and leaves no trace. In the build of --config=ablate it is
 * false where CUSPLICE_WITHOUT named the row when the library was loaded: then the code does what
 * it would do if the mechanism had been deleted.
 */
#ifndef CUSPLICE_BASE_PAYS_H
#define CUSPLICE_BASE_PAYS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cus_pays {
#define PAYS(id, name, what) CUS_PAYS_##id,
#include "shim/base/pays.def"
#undef PAYS
    CUS_PAYS_ROWS
};

#ifdef CUS_ABLATE
/* The rows that are off, a bit each. Written before main, by the constructor of pays.c alone. */
extern uint32_t cus_pays_off;
#define CUS_PAYS(id) (!(cus_pays_off >> CUS_PAYS_##id & 1))

/* The rows that a list of names with commas between them names, a bit each. `*unknown` becomes the
 * first name in it that no row has, as it stands in the list, or NULL. */
uint32_t cus_pays_named(const char *list, const char **unknown);
#else
#define CUS_PAYS(id) 1
#endif

#ifdef __cplusplus
}
#endif

#endif
