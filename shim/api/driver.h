/*
 * The real driver as a table of function pointers: the calls of own.def, which says what each is
 * for.
 *
 * shim/hook fills one table per process after the first successful cuInit. The folders stream,
 * graph and verify call the driver only through this table, so that tests can pass another one. An
 * entry is NULL if the driver lacks the function.
 */
#ifndef CUSPLICE_API_DRIVER_H
#define CUSPLICE_API_DRIVER_H

#include <cuda.h>

/* What headers of some CUDA 12 lack. The library is the same whichever toolkit builds it, so it
 * uses these and not the names of cuda.h. */
enum {
    CUS_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
    CUS_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
    CUS_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16
};
CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *library, CUkernel kernel);

struct cus_driver {
#define CUS_OWN_FIELD(name, ...) __typeof__(&name) name;
#define CUS_OWN_NEEDED CUS_OWN_FIELD
#define CUS_OWN_OPTIONAL CUS_OWN_FIELD
#define CUS_OWN_VERIFY CUS_OWN_FIELD
#include "shim/api/own.def"
#undef CUS_OWN_FIELD
};

#endif
