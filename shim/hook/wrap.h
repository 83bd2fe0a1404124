/*
 * How a function of its own stands in for a row: CUS_WRAP(symbol, (parameters)) { body }.
 *
 * The body is cus_hook_<symbol>, which the resolver hands out; the exported name is an alias, so
 * that no reference from inside can be bound to somebody else's function of that name. The alias is
 * declared by cuda.h as well: a wrong parameter list does not compile. Files that use it define
 * __CUDA_API_VERSION_INTERNAL before anything else: names then mean what they say.
 */
#ifndef CUSPLICE_HOOK_WRAP_H
#define CUSPLICE_HOOK_WRAP_H

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL first"
#endif

#include <cuda.h>

#define CUS_WRAP(symbol, parameters)                                                               \
    CUresult cus_hook_##symbol parameters __attribute__((visibility("hidden")));                   \
    extern __typeof__(cus_hook_##symbol) symbol                                                    \
        __attribute__((alias("cus_hook_" #symbol), visibility("default")));                        \
    CUresult cus_hook_##symbol parameters

#endif
