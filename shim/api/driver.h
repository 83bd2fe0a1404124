/*
 * The real driver, as a table of function pointers: those of own.def, which says what each is for.
 *
 * shim/hook fills one table per process after the first successful cuInit; stream, graph and verify
 * call the driver through it and through nothing else, so that tests can hand them another. An
 * entry that the driver lacks is NULL.
 */
#ifndef CUSPLICE_API_DRIVER_H
#define CUSPLICE_API_DRIVER_H

#include <cuda.h>

struct cus_driver {
#define CUS_OWN_FIELD(name, ...) __typeof__(&name) name;
#define CUS_OWN_NEEDED CUS_OWN_FIELD
#define CUS_OWN_OPTIONAL CUS_OWN_FIELD
#define CUS_OWN_VERIFY CUS_OWN_FIELD
#include "shim/api/own.def"
#undef CUS_OWN_FIELD
};

#endif
