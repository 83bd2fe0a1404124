/* Modules, libraries, functions, kernels, occupancy, the linker. */
#include "tests/gpu/gate/gate.h"

#include <string.h>

/* ---- modules ---- */

#define LOAD(symbol, arguments)                                                                    \
    ROW(symbol) {                                                                                  \
        GATE(symbol, arguments);                                                                   \
        TRY(cuModuleUnload, (*OUT(CUmodule, 0)));                                                  \
    }
LOAD(cuModuleLoad, (OUT(CUmodule, 0), g->file))
LOAD(cuModuleLoadData, (OUT(CUmodule, 0), gate_ptx))
LOAD(cuModuleLoadDataEx, (OUT(CUmodule, 0), gate_ptx, 0, NULL, NULL))
LOAD(cuModuleLoadFatBinary, (OUT(CUmodule, 0), gate_ptx))
ROW(cuModuleUnload) {
    CUmodule module = gate_module(g);
    GATE_END(cuModuleUnload, (module));
}
#define MODULE(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        CUmodule module = gate_module(g);                                                          \
        GATE(symbol, arguments);                                                                   \
        TRY(cuModuleUnload, (module));                                                             \
    }
MODULE(cuModuleGetFunction, (OUT(CUfunction, 0), module, "touch"))
MODULE(cuModuleGetFunctionCount, (OUT(unsigned, 0), module))
MODULE(cuModuleEnumerateFunctions, (OUT(CUfunction, 0), 3, module))
MODULE(cuModuleGetGlobal_v2, (OUT(CUdeviceptr, 0), OUT(size_t, 1), module, "gate_word"))
SIMPLE(cuModuleGetLoadingMode, (OUT(CUmoduleLoadingMode, 0)))

/* ---- libraries ---- */

ROW(cuLibraryLoadData) {
    GATE(cuLibraryLoadData, (OUT(CUlibrary, 0), gate_ptx, NULL, NULL, 0, NULL, NULL, 0));
    TRY(cuLibraryUnload, (*OUT(CUlibrary, 0)));
}
ROW(cuLibraryLoadFromFile) {
    GATE(cuLibraryLoadFromFile, (OUT(CUlibrary, 0), g->file, NULL, NULL, 0, NULL, NULL, 0));
    TRY(cuLibraryUnload, (*OUT(CUlibrary, 0)));
}
ROW(cuLibraryUnload) {
    CUlibrary library = gate_library(g);
    GATE_END(cuLibraryUnload, (library));
}
#define LIBRARY(symbol, arguments)                                                                 \
    ROW(symbol) {                                                                                  \
        CUlibrary library = gate_library(g);                                                       \
        GATE(symbol, arguments);                                                                   \
        TRY(cuLibraryUnload, (library));                                                           \
    }
LIBRARY(cuLibraryGetKernel, (OUT(CUkernel, 0), library, "touch"))
LIBRARY(cuLibraryGetKernelCount, (OUT(unsigned, 0), library))
LIBRARY(cuLibraryEnumerateKernels, (OUT(CUkernel, 0), 3, library))
LIBRARY(cuLibraryGetModule, (OUT(CUmodule, 0), library))
LIBRARY(cuLibraryGetGlobal, (OUT(CUdeviceptr, 0), OUT(size_t, 1), library, "gate_word"))
ROW(cuLibraryGetManaged) {
    CUlibrary library = NULL;
    TRY(cuLibraryLoadData, (&library, gate_ptx_extra, NULL, NULL, 0, NULL, NULL, 0));
    GATE(cuLibraryGetManaged, (OUT(CUdeviceptr, 0), OUT(size_t, 1), library, "gate_managed"));
    TRY(cuLibraryUnload, (library));
}

/* ---- functions: touched before, so that what is measured is what passes later ---- */

SIMPLE(cuFuncGetAttribute, (OUT(int, 0), CU_FUNC_ATTRIBUTE_NUM_REGS, g->touch))
SIMPLE(cuFuncGetModule, (OUT(CUmodule, 0), g->touch))
SIMPLE(cuFuncGetName, (OUT(const char *, 0), g->touch))
SIMPLE(cuFuncGetParamInfo, (g->touch, 0, OUT(size_t, 0), OUT(size_t, 1)))
SIMPLE(cuFuncIsLoaded, (OUT(CUfunctionLoadingState, 0), g->touch))
ROW(cuFuncLoad) {
    CUmodule module;
    CUfunction function = gate_fresh_function(g, &module);
    GATE(cuFuncLoad, (function));
    TRY(cuModuleUnload, (module));
}
ROW(cuFuncSetAttribute) {
    TRY(cuFuncSetAttribute, (g->touch, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 32768));
    GATE(cuFuncSetAttribute, (g->touch, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 32768));
}
ROW(cuFuncSetCacheConfig) {
    TRY(cuFuncSetCacheConfig, (g->touch, CU_FUNC_CACHE_PREFER_NONE));
    GATE(cuFuncSetCacheConfig, (g->touch, CU_FUNC_CACHE_PREFER_NONE));
}
ROW(cuFuncSetSharedMemConfig) {
    TRY(cuFuncSetSharedMemConfig, (g->touch, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    GATE(cuFuncSetSharedMemConfig, (g->touch, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
}

#define KERNEL(symbol, before, arguments)                                                          \
    ROW(symbol) {                                                                                  \
        CUlibrary library = gate_library(g);                                                       \
        CUkernel kernel = gate_kernel(g, library);                                                 \
        TRY(cuKernelGetFunction, (OUT(CUfunction, 7), kernel));                                    \
        before;                                                                                    \
        GATE(symbol, arguments);                                                                   \
        TRY(cuLibraryUnload, (library));                                                           \
    }
KERNEL(cuKernelGetFunction, , (OUT(CUfunction, 0), kernel))
KERNEL(cuKernelGetLibrary, , (OUT(CUlibrary, 0), kernel))
KERNEL(cuKernelGetName, , (OUT(const char *, 0), kernel))
KERNEL(cuKernelGetParamInfo, , (kernel, 0, OUT(size_t, 0), OUT(size_t, 1)))
KERNEL(cuKernelGetAttribute,
       TRY(cuKernelGetAttribute, (OUT(int, 0), CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, g->device)),
       (OUT(int, 0), CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, g->device))
KERNEL(cuKernelSetAttribute,
       TRY(cuKernelSetAttribute,
           (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 32768, kernel, g->device)),
       (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 32768, kernel, g->device))
KERNEL(cuKernelSetCacheConfig,
       TRY(cuKernelSetCacheConfig, (kernel, CU_FUNC_CACHE_PREFER_NONE, g->device)),
       (kernel, CU_FUNC_CACHE_PREFER_NONE, g->device))

/* ---- occupancy ---- */

SIMPLE(cuOccupancyAvailableDynamicSMemPerBlock, (OUT(size_t, 0), g->touch, 1, 128))
SIMPLE(cuOccupancyMaxActiveBlocksPerMultiprocessor, (OUT(int, 0), g->touch, 128, 0))
SIMPLE(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (OUT(int, 0), g->touch, 128, 0, 0))
SIMPLE(cuOccupancyMaxPotentialBlockSize, (OUT(int, 0), OUT(int, 1), g->touch, NULL, 0, 0))
SIMPLE(cuOccupancyMaxPotentialBlockSizeWithFlags,
       (OUT(int, 0), OUT(int, 1), g->touch, NULL, 0, 0, 0))
static CUlaunchConfig *clusters(struct gate *g) {
    CUlaunchConfig *config = OUT(CUlaunchConfig, 1);
    CUlaunchAttribute *attribute = OUT(CUlaunchAttribute, 2);
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = 2;
    attribute->value.clusterDim.y = attribute->value.clusterDim.z = 1;
    config->gridDimX = 8;
    config->gridDimY = config->gridDimZ = 1;
    config->blockDimX = 32;
    config->blockDimY = config->blockDimZ = 1;
    config->attrs = attribute;
    config->numAttrs = 1;
    return config;
}
SIMPLE(cuOccupancyMaxActiveClusters, (OUT(int, 0), g->touch, clusters(g)))
SIMPLE(cuOccupancyMaxPotentialClusterSize, (OUT(int, 0), g->touch, clusters(g)))

/* ---- the linker ---- */

#define LINK_CREATE(symbol)                                                                        \
    ROW(symbol) {                                                                                  \
        GATE(symbol, (0, NULL, NULL, OUT(CUlinkState, 0)));                                        \
        TRY(cuLinkDestroy, (*OUT(CUlinkState, 0)));                                                \
    }
LINK_CREATE(cuLinkCreate)
LINK_CREATE(cuLinkCreate_v2)
#define LINK(symbol, arguments)                                                                    \
    ROW(symbol) {                                                                                  \
        CUlinkState state = gate_link(g);                                                          \
        GATE(symbol, arguments);                                                                   \
        TRY(cuLinkDestroy, (state));                                                               \
    }
#define LINK_DATA                                                                                  \
    (state, CU_JIT_INPUT_PTX, (void *)gate_ptx, strlen(gate_ptx) + 1, "gate", 0, NULL, NULL)
#define LINK_FILE (state, CU_JIT_INPUT_PTX, g->file, 0, NULL, NULL)
LINK(cuLinkAddData, LINK_DATA)
LINK(cuLinkAddData_v2, LINK_DATA)
LINK(cuLinkAddFile, LINK_FILE)
LINK(cuLinkAddFile_v2, LINK_FILE)
ROW(cuLinkComplete) {
    CUlinkState state = gate_link(g);
    TRY(cuLinkAddData_v2, LINK_DATA);
    GATE(cuLinkComplete, (state, OUT(void *, 0), OUT(size_t, 1)));
    TRY(cuLinkDestroy, (state));
}
ROW(cuLinkDestroy) {
    CUlinkState state = gate_link(g);
    GATE_END(cuLinkDestroy, (state));
}
