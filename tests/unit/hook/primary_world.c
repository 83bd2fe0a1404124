/* The counts of holds, over a driver whose answers a test chooses. */
#include "shim/hook/primary.c"

#include "tests/unit/hook/primary_world.h"

struct primary_world primary_world;
void *cus_real_functions[CUS_API_ROWS + CUS_ENTRY_SPARE];

static CUresult state(CUdevice device, unsigned int *flags, int *active) {
    (void)device, (void)flags;
    void (*meanwhile)(void) = primary_world.meanwhile;
    primary_world.meanwhile = NULL;
    if (meanwhile)
        meanwhile();
    if (primary_world.answer == CUDA_SUCCESS)
        *active = primary_world.active;
    return primary_world.answer;
}

bool cus_real_has(unsigned row) {
    return cus_real_functions[row] != NULL;
}

void primary_world_reset(bool asks) {
    primary_world = (struct primary_world){.active = true};
    memset(primaries, 0, sizeof primaries);
    cus_real_functions[CUS_ROW_cuDevicePrimaryCtxGetState] = asks ? (void *)state : NULL;
}
