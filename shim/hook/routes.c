/*
 * Libraries that bring work to the GPU without the driver's public entry points: video, ray
 * tracing, the deep-learning accelerator. Such work can overtake what is withheld (HAZARDS F12), so
 * nothing is withheld any more once one of them is mapped.
 *
 * The loader counts the objects that it has mapped; only where that count changed is the list gone
 * through. Any thread. Under the loader's lock the callback compares names and does nothing else.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/resolve.h"

#include "shim/base/forbid.h"

/* Video in and out (nvJPEG's decoder comes by the first as well), motion vectors, capture of the
 * screen, neural filters, ray tracing, the accelerator of Tegra. */
static const char *const names[] = {
    "libnvcuvid.so",    "libnvidia-encode.so", "libnvidia-opticalflow.so",
    "libnvidia-fbc.so", "libnvidia-ifr.so",    "libnvidia-ngx.so",
    "libnvoptix.so",    "libcudla.so"};

static uint64_t seen_adds; /* atomic: the loader's count at the last look */
static uint32_t told;      /* atomic: one such library is enough */

struct look {
    const char *name;
    uint64_t adds;
};

static int visit(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct look *look = context;
    if (bytes < offsetof(struct dl_phdr_info, dlpi_subs))
        return 1;
    look->adds = info->dlpi_adds;
    if (look->adds == __atomic_load_n(&seen_adds, __ATOMIC_RELAXED))
        return 1;
    const char *path = info->dlpi_name ? info->dlpi_name : "";
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            look->name = names[i];
    }
    return 0;
}

const char *cus_routes_look(void) {
    struct look look = {0};
    dl_iterate_phdr(visit, &look);
    __atomic_store_n(&seen_adds, look.adds, __ATOMIC_RELAXED);
    if (CUS_HAZARD(F12) && look.name && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        return look.name;
    return NULL;
}

void cus_routes_look_later(void) {
    const char *name = cus_routes_look();
    if (name)
        cus_lifecycle_withhold_off_later(name);
}
