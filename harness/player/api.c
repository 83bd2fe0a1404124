/*
 * Finds the driver's functions as the CUDA runtime does: dlopen, dlsym of the look-up function, and
 * the look-up function for all others. So a preloaded library intercepts them. Main thread, before
 * all else.
 */
#include "harness/player/api.h"

#include <dlfcn.h>
#include <stdio.h>

struct player_api player_cu;

typedef CUresult look_up_fn(const char *, void **, int, cuuint64_t,
                            CUdriverProcAddressQueryResult *);

static const struct {
    const char *name;
    int version;
    bool newer;
    void **where;
} entries[] = {
#define PLAYER_API(name, version) {#name, version, false, (void **)&player_cu.name},
#define PLAYER_NEWER(name, version) {#name, version, true, (void **)&player_cu.name},
#include "harness/player/api.def"
#undef PLAYER_API
#undef PLAYER_NEWER
};

bool player_api_fill(char *error, size_t bytes) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(error, bytes, "there is no CUDA driver: %s", dlerror());
        return false;
    }
    look_up_fn *look_up = (look_up_fn *)dlsym(library, "cuGetProcAddress_v2");
    if (!look_up) {
        snprintf(error, bytes, "the CUDA driver is older than 12.0");
        return false;
    }
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        CUresult result = look_up(entries[i].name, entries[i].where, entries[i].version, 0, &found);
        if (result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS && *entries[i].where)
            continue;
        *entries[i].where = NULL;
        if (!entries[i].newer) {
            snprintf(error, bytes, "the CUDA driver has no %s", entries[i].name);
            return false;
        }
    }
    return true;
}

const char *player_api_error(CUresult result) {
    static char number[32];
    const char *name = NULL;
    if (player_cu.cuGetErrorName && player_cu.cuGetErrorName(result, &name) == CUDA_SUCCESS && name)
        return name;
    snprintf(number, sizeof number, "CUresult %d", (int)result);
    return number;
}
