/*
 * cuGetProcAddress: a base name and a version become an entry point.
 *
 * Among the symbols of a base name the newest is chosen that is not newer than the version asked
 * for and that the driver which is played (CUSIM_DRIVER_VERSION) has. With the per-thread flag a
 * twin is preferred where there is one. Constant tables, no lock.
 */
#include "harness/sim/cusim.h"

#include <string.h>

static CUresult resolve(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    if (!symbol || !pfn || (flags & ~(cuuint64_t)3))
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = NULL;
    if (version > cusim.options.driver_version)
        return CUDA_ERROR_INVALID_VALUE;
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    const struct cusim_row *best = NULL;
    bool known = false;
    for (int i = 0; i < CUSIM_API_COUNT; i++) {
        const struct cusim_row *row = &cusim_rows[i];
        if (strcmp(row->base, symbol) != 0)
            continue;
        known |= row->version <= cusim.options.driver_version;
        if (row->version > version || (row->pt && !per_thread))
            continue;
        if (!best || row->pt > best->pt || (row->pt == best->pt && row->version > best->version))
            best = row;
    }
    if (best)
        *pfn = best->address;
    if (status)
        *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS; /* also for a name that is not there: *pfn says it */
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    CUSIM_ENTER_EARLY(cuGetProcAddress);
    return resolve(symbol, pfn, version, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    CUSIM_ENTER_EARLY(cuGetProcAddress_v2);
    return resolve(symbol, pfn, version, flags, status);
}

/* The real runtime asks for private tables; the stand-in of the runtime does not. */
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    CUSIM_ENTER_EARLY(cuGetExportTable);
    (void)id;
    if (!table)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
