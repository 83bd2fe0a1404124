/*
 * Defines a hook that is written in C: CUS_WRAP(symbol, (parameters)) { body }.
 *
 * The body is cus_hook_<symbol>, which the resolver hands out. The exported name is an alias, so
 * that the loader cannot bind the library's own references to another object's function of that
 * name. cuda.h declares the alias as well, so a wrong parameter list does not compile. A file that
 * uses CUS_WRAP defines __CUDA_API_VERSION_INTERNAL first, so that cuda.h renames no function.
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
