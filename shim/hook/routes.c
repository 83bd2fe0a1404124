/*
 * Recognises libraries that give work to the GPU without the driver's public entry points: video,
 * ray tracing, the deep-learning accelerator. Their work could overtake deferred ops (HAZARDS F12),
 * so nothing is deferred once such a library is mapped.
 *
 * slots.c finds the new objects. Any thread. cus_routes_see runs under the loader's lock and only
 * compares names.
 */
#define _GNU_SOURCE
#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/hook/elf.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/resolve.h"
#include "shim/hook/slots.h"

#include "shim/base/forbid.h"

/* Video decoding (nvJPEG's decoder uses it too) and encoding, motion vectors, screen capture
 * (two), neural filters, ray tracing, the accelerator of Tegra. */
static const char *const names[] = {
    "libnvcuvid.so",    "libnvidia-encode.so", "libnvidia-opticalflow.so",
    "libnvidia-fbc.so", "libnvidia-ifr.so",    "libnvidia-ngx.so",
    "libnvoptix.so",    "libcudla.so"};

static uint32_t told; /* atomic: one such library is enough */

const char *cus_routes_see(const char *path) {
    const char *base = cus_elf_base(path);
    for (unsigned i = 0; CUS_HAZARD(F12) && i < sizeof names / sizeof *names; i++) {
        if (strncmp(base, names[i], strlen(names[i])) == 0 &&
            !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
            return names[i];
    }
    return NULL;
}

void cus_routes_look_later(void) {
    const char *why = cus_slots_look(false);
    if (why)
        cus_lifecycle_defer_off_later(why);
}
