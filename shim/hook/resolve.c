/*
 * Both forms of cuGetProcAddress, and the substitution that they share with dlsym. The real driver
 * answers first. The library finds the symbol by the address that the driver answered, not by the
 * name that the program asked for: headers, typedefs and drivers disagree about names and versions.
 *
 * Any thread, also before cuInit, since every runtime looks its entry points up first. Takes no
 * lock, waits for nothing and starts nothing.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/hook/resolve.h"

#include <stddef.h>

#include "shim/base/hazard.h"
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

/* Interoperation with OpenGL, EGL, VDPAU and Direct3D: the other API accesses the same memory by
 * its own routes (HAZARDS F12). Every runtime looks these names up when it starts, so only a
 * call counts. */
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

/* A form of cuGetProcAddress that the table does not know, with arguments that nobody knows. What
 * it gives out passes by this library. */
static bool is_look_up(const char *name) {
    return strncmp(name, "cuGetProcAddress", strlen("cuGetProcAddress")) == 0;
}

static unsigned kind_of(const char *name) {
    if (CUS_HAZARD(G13) && is_look_up(name))
        return CUS_SPARE_LOOK_UP;
    return is_graphics(name) ? CUS_SPARE_GRAPHICS : CUS_SPARE_UNKNOWN;
}

/* True: `function` is what the driver answers to who asks for the second form of cuGetProcAddress.
 * A newer driver answers by a newer form to who asks for a newer version. */
static bool is_second_look_up(const void *function) {
    void *look = cus_real_own(CUS_ROW_cuGetProcAddress_v2), *second = NULL;
    CUdriverProcAddressQueryResult status;
    return look &&
           ((__typeof__(&cuGetProcAddress_v2))look)("cuGetProcAddress", &second, 12000, 0,
                                                    &status) == CUDA_SUCCESS &&
           second == function;
}

/* Watches a function of an interposer that the object did not show when asked for the whole
 * table. */
static void *watch_other(void *function, const char *name) {
    int row = cus_api_find(name);
    if (row < 0 || !cus_entry_hooks[row] || !CUS_HAZARD(G3))
        return function;
    cus_others_note(function, (unsigned)row);
    void *stub = cus_spare_stub(function, name, CUS_SPARE_UNKNOWN);
    return stub ? stub : function;
}

/* Without this library, a look-up in libcuda does not find an interposer that only exports the
 * name. The hook would call that interposer. If the interposer did the look-up itself through
 * another object, it would call the hook again without end. If it stands before launches,
 * nothing is deferred, so no hook is needed. */
static bool goes_past_export(const void *function, int row) {
    int launch;
    return row >= 0 && function == cus_real_own((unsigned)row) &&
           cus_real_is_chained_by_export((unsigned)row) && cus_real_before_launches(&launch) &&
           !cus_options()->trust_interposers;
}

void *cus_resolve(void *function, const char *name, int version) {
    int row = cus_real_row(function, name);
    if (goes_past_export(function, row))
        return function;
    /* Only the version tells the two forms apart. The driver may answer by an address that is no
     * exported function; without this case the library would then lose the program without
     * notice. */
    if (version > 0 && strcmp(name, "cuGetProcAddress") == 0 &&
        (row >= 0 || (cus_real_holds(function) &&
                      (version < 12000 || !CUS_HAZARD(G13) || is_second_look_up(function)))))
        return cus_entry_hooks[version < 12000 ? CUS_ROW_cuGetProcAddress
                                               : CUS_ROW_cuGetProcAddress_v2];
    if (row >= 0)
        return cus_entry_hooks[row] ? cus_entry_hooks[row] : function;
    if (strncmp(name, "cu", 2) != 0 || name[2] < 'A' || name[2] > 'Z')
        return function;
    if (!cus_real_holds(function))
        return cus_others_behind(cus_real_others(), function) ? watch_other(function, name)
                                                              : function;
    void *stub = cus_spare_stub(function, name, kind_of(name));
    if (stub)
        return stub;
    CUS_LOG_ONCE(CUS_WARN, "hook", "no stub is left for %s: nothing is deferred any more", name);
    cus_lifecycle_defer_off_later("more entry points than the library can watch");
    return function;
}

/* An interposer answered by a function of its own. This is the exact symbol that the driver's
 * own look-up finds for the same question. */
static const char *exact_name(const char *symbol, int version, cuuint64_t flags) {
    void *look = cus_real_own(CUS_ROW_cuGetProcAddress_v2), *own = NULL;
    CUdriverProcAddressQueryResult status;
    if (!look || ((__typeof__(&cuGetProcAddress_v2))look)(symbol, &own, version, flags, &status) !=
                     CUDA_SUCCESS)
        return symbol;
    int row = own ? cus_real_row(own, symbol) : -1;
    return row >= 0 ? cus_api_rows[row].name : symbol;
}

/* True: an interposer asks for a function that it stands before itself. The hook would call the
 * interposer again without end. */
static bool is_for_itself(const void *caller, const void *function, const char *symbol) {
    if (!cus_others_behind(cus_real_others(), caller) || !cus_real_holds(function))
        return false;
    int row = cus_real_row(function, symbol);
    return row >= 0 && cus_real_is_chained((unsigned)row);
}

/* Called after the real look-up succeeded. Gives the program the hook if there is one. */
static void substitute(const void *caller, const char *symbol, void **function, int version,
                       cuuint64_t flags) {
    if (!function || !*function || !symbol || cus_resolve_off() ||
        is_for_itself(caller, *function, symbol))
        return;
    cus_routes_look_later();
    if (cus_others_behind(cus_real_others(), *function) && strcmp(symbol, "cuGetProcAddress") != 0)
        *function = cus_resolve(*function, exact_name(symbol, version, flags), 0);
    else
        *function = cus_resolve(*function, symbol, version);
}

CUS_WRAP(cuGetProcAddress, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)) {
    if (!cus_real_find())
        return cus_real_absent();
    CUresult result = CUS_REAL(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
    if (result == CUDA_SUCCESS)
        substitute(__builtin_return_address(0), symbol, pfn, cudaVersion, flags);
    return result;
}

CUS_WRAP(cuGetProcAddress_v2, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                               CUdriverProcAddressQueryResult *symbolStatus)) {
    if (!cus_real_find())
        return cus_real_absent();
    CUresult result = CUS_REAL(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
    if (result == CUDA_SUCCESS)
        substitute(__builtin_return_address(0), symbol, pfn, cudaVersion, flags);
    return result;
}
