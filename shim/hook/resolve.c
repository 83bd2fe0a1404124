/*
 * cuGetProcAddress, both forms, and the substitution that it shares with dlsym: the real driver
 * answers first, and what it answered, not what was asked for, says which symbol it is. Headers,
 * typedefs and drivers disagree about names and versions; addresses do not lie.
 *
 * Any thread, before cuInit too (every runtime looks its entry points up first). Takes no lock,
 * waits for nothing, starts nothing.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/hook/resolve.h"

#include <stddef.h>

#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/real.h"
#include "shim/hook/wrap.h"

#include "shim/base/forbid.h"

bool cus_resolve_off(void) {
    static uint32_t known; /* 0: not asked yet; 1: on; 2: off */
    uint32_t now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (now == 0) {
        now = cus_options()->mode == CUS_MODE_OFF ? 2 : 1;
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    }
    return now == 2;
}

/* OpenGL, EGL and VDPAU interoperation: the other API reads and writes the same memory by routes of
 * its own (HAZARDS F12). Every runtime asks for these names when it starts, so it is the call that
 * counts. */
static bool is_graphics(const char *name) {
    static const char *const beginnings[] = {"cuGL",
                                             "cuEGL",
                                             "cuVDPAU",
                                             "cuGraphicsGL",
                                             "cuGraphicsEGL",
                                             "cuGraphicsVDPAU",
                                             "cuGraphicsD3D",
                                             "cuGraphicsResourceGetMappedEgl",
                                             "cuEventCreateFromEGL"};
    for (unsigned i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    return false;
}

void *cus_resolve(void *function, const char *name, int version) {
    int row = cus_real_row(function, name);
    if (row >= 0)
        return cus_entry_hooks[row] ? cus_entry_hooks[row] : function;
    if (!cus_real_holds(function) || strncmp(name, "cu", 2) != 0 || name[2] < 'A' || name[2] > 'Z')
        return function;
    /* Should the driver answer this one by an inner address, hooking would end here silently. */
    if (strcmp(name, "cuGetProcAddress") == 0 && version > 0)
        return cus_entry_hooks[version < 12000 ? CUS_ROW_cuGetProcAddress
                                               : CUS_ROW_cuGetProcAddress_v2];
    bool graphics = is_graphics(name);
    void *stub = cus_spare_stub(function, name, graphics ? CUS_SPARE_GRAPHICS : CUS_SPARE_UNKNOWN);
    if (stub)
        return stub;
    CUS_LOG_ONCE(CUS_WARN, "hook", "no stub is left for %s: nothing is withheld any more", name);
    cus_lifecycle_withhold_off_later("more entry points than the library can watch");
    return function;
}

/* The real answer is there: gives the program our own where there is one. */
static void substitute(const char *symbol, void **function, int version) {
    if (!function || !*function || !symbol || cus_resolve_off())
        return;
    cus_routes_look_later();
    *function = cus_resolve(*function, symbol, version);
}

CUS_WRAP(cuGetProcAddress, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)) {
    if (!cus_real_find())
        return cus_real_absent();
    CUresult result = CUS_REAL(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
    if (result == CUDA_SUCCESS)
        substitute(symbol, pfn, cudaVersion);
    return result;
}

CUS_WRAP(cuGetProcAddress_v2, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                               CUdriverProcAddressQueryResult *symbolStatus)) {
    if (!cus_real_find())
        return cus_real_absent();
    CUresult result = CUS_REAL(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
    if (result == CUDA_SUCCESS)
        substitute(symbol, pfn, cudaVersion);
    return result;
}
