/* What hook/primary.c asks the driver. */
#ifndef CUSPLICE_TESTS_UNIT_HOOK_PRIMARY_WORLD_H
#define CUSPLICE_TESTS_UNIT_HOOK_PRIMARY_WORLD_H

#include <cuda.h>
#include <stdbool.h>

struct primary_world {
    CUresult answer;         /* of cuDevicePrimaryCtxGetState */
    bool active;             /* the context, of each device */
    void (*meanwhile)(void); /* once, during the next question: another thread */
};
extern struct primary_world primary_world;

/* Nobody holds anything. `asks`: the driver has cuDevicePrimaryCtxGetState. */
void primary_world_reset(bool asks);

#endif
