/*
 * Counts who holds the primary context of each device. The count is a lower bound, since a library
 * may have taken a hold unseen.
 *
 * Any thread, inside a hook. One lock guards the counts; no thread holds it over a call of the
 * driver. If a context is active that nobody is known to hold, one unseen hold is inferred. That
 * inference is made only while no release is under way that could end the context.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <stddef.h>

#include "shim/hook/primary.h"

#include "shim/base/hazard.h"
#include "shim/base/lock.h"
#include "shim/hook/real.h"

#include "shim/base/forbid.h"

enum { DEVICES = 64 }; /* devices from here on count as never held */

static struct cus_lock lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct primary {
    uint32_t holds;     /* at least */
    uint32_t releasing; /* calls that have not returned */
    uint32_t serial;    /* of the last release */
    CUcontext context;  /* of the last retain */
} primaries[DEVICES];   /* guarded by lock */

static struct primary *of(CUdevice device) {
    return device >= 0 && device < DEVICES ? &primaries[device] : NULL;
}

static int ask(CUdevice device) {
    unsigned flags;
    int active = 0;
    if (!cus_real_has(CUS_ROW_cuDevicePrimaryCtxGetState) ||
        CUS_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS)
        return CUS_PRIMARY_UNKNOWN;
    return active ? CUS_PRIMARY_ACTIVE : CUS_PRIMARY_ENDED;
}

struct cus_primary cus_primary_retains(CUdevice device) {
    struct cus_primary before = {.device = device};
    struct primary *primary = CUS_HAZARD(G7) ? of(device) : NULL;
    if (!primary)
        return before;
    cus_lock_take(&lock);
    before.serial = primary->serial;
    bool quiet = primary->releasing == 0;
    cus_lock_give(&lock);
    if (quiet)
        before.state = ask(device);
    return before;
}

void cus_primary_retained(const struct cus_primary *before, CUcontext context) {
    struct primary *primary = of(before->device);
    if (!primary)
        return;
    cus_lock_take(&lock);
    bool same = before->serial == primary->serial;
    if (same && before->state == CUS_PRIMARY_ACTIVE && !primary->holds)
        primary->holds = 1;
    if (same && before->state == CUS_PRIMARY_ENDED) /* others released theirs unseen */
        primary->holds = 0;
    primary->holds++;
    primary->context = context;
    cus_lock_give(&lock);
}

bool cus_primary_releases(CUdevice device) {
    struct primary *primary = of(device);
    if (!primary)
        return false;
    cus_lock_take(&lock);
    bool others = CUS_HAZARD(G7) && primary->holds > primary->releasing + 1;
    primary->releasing++;
    primary->serial++;
    cus_lock_give(&lock);
    return others;
}

CUcontext cus_primary_released(CUdevice device, bool succeeded) {
    struct primary *primary = of(device);
    CUcontext ended = NULL;
    if (!primary)
        return NULL;
    cus_lock_take(&lock);
    uint32_t serial = primary->serial;
    primary->releasing--;
    primary->holds -= succeeded && primary->holds;
    bool quiet = primary->releasing == 0;
    cus_lock_give(&lock);
    int state = ask(device);
    cus_lock_take(&lock);
    if (state == CUS_PRIMARY_ENDED && succeeded) {
        ended = primary->context;
        primary->holds = 0;
    } else if (state == CUS_PRIMARY_ACTIVE && quiet && serial == primary->serial &&
               !primary->holds) {
        primary->holds = 1;
    }
    cus_lock_give(&lock);
    return ended;
}

void cus_primary_forget(CUdevice device) {
    struct primary *primary = of(device);
    if (!primary)
        return;
    cus_lock_take(&lock);
    primary->holds = 0;
    primary->serial++;
    cus_lock_give(&lock);
}
