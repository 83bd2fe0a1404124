/*
 * Mechanisms that can be switched off, to measure what each of them gains. If the code does
 * something only for speed, the condition names a row of pays.def:
 *
 *     if (CUS_PAYS(REPEAT) && ...)
 *
 * In the library CUS_PAYS is a constant 1 without any code. In the build of --config=ablate it is
 * false if CUSPLICE_WITHOUT named the row when the library was loaded. The code then acts as if the
 * mechanism did not exist.
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
/* The rows that are off, one bit each. Only the constructor of pays.c writes it, before main. */
extern uint32_t cus_pays_off;
#define CUS_PAYS(id) (!(cus_pays_off >> CUS_PAYS_##id & 1))

/* The rows that a comma-separated list names, one bit each. *unknown becomes the first name that
 * no row has, or NULL; it points into the list. */
uint32_t cus_pays_named(const char *list, const char **unknown);
#else
#define CUS_PAYS(id) 1
#endif

#ifdef __cplusplus
}
#endif

#endif
