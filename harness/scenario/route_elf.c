/*
 * The route of a program that is linked to libcuda: the loader binds each symbol. The symbols are
 * declared here by their exported names, since cuda.h hides most of them behind macros.
 *
 * Runs on the main thread before anything else of CUDA; holds no lock; calls nothing.
 */
#include "harness/scenario/sc.h"

#define SC_API(field, symbol, name, version, flags, params)                                        \
    extern CUresult CUDAAPI sc_elf_##field params __asm__(#symbol);
#include "harness/scenario/api.def"
#undef SC_API

static bool bind(struct sc_api *cu) {
#define SC_API(field, symbol, name, version, flags, params) cu->field = sc_elf_##field;
#include "harness/scenario/api.def"
#undef SC_API
    return true;
}

bool (*const sc_route_elf)(struct sc_api *cu) = bind;
