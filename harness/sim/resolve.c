/*
 * cuGetProcAddress: finds the entry point of a base name and a version.
 *
 * The newest symbol wins that is no newer than the requested version and the played driver
 * (CUSIM_DRIVER_VERSION). With the per-thread flag a twin wins if there is one. Constant tables, no
 * lock.
 */
#include "harness/sim/cusim.h"
#include "harness/sim/cusim_next.h"

#include <string.h>

/* ---- entry points that no table knows ---- */

/* Jumps through targets[i], 16 bytes each. Their addresses are inside this library, like those
 * of a newer driver's functions. */
enum { UNKNOWN_MAX = 64, JUMP_BYTES = 16 };
extern const char cusim_unknown_jumps[] __attribute__((visibility("hidden")));
extern void *cusim_unknown_targets[UNKNOWN_MAX] __attribute__((visibility("hidden")));
void *cusim_unknown_targets[UNKNOWN_MAX];
#if defined(__x86_64__)
#define JUMP_THROUGH "jmp *(cusim_unknown_targets + cusim_at)(%rip)\n"
#else
#define JUMP_THROUGH                                                                               \
    "adrp x16, cusim_unknown_targets + cusim_at\n"                                                 \
    "ldr x16, [x16, :lo12:cusim_unknown_targets + cusim_at]\n"                                     \
    "br x16\n"
#endif
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".hidden cusim_unknown_jumps\n"
        ".globl cusim_unknown_jumps\n"
        "cusim_unknown_jumps:\n"
        ".set cusim_at, 0\n"
        ".rept 64\n"
        ".p2align 4\n" JUMP_THROUGH ".set cusim_at, cusim_at + 8\n"
        ".endr\n"
        ".popsection\n");

static unsigned n_unknown; /* fixed before any entry point does anything */

static bool add_unknown(const char *name, size_t length) {
    bool exists = false;
    for (int i = 0; i < CUSIM_API_COUNT; i++) {
        const struct cusim_row *row = &cusim_rows[i];
        if (strlen(row->base) != length || memcmp(row->base, name, length) != 0)
            continue;
        if (n_unknown == UNKNOWN_MAX)
            return false;
        cusim_unknown_targets[n_unknown++] = row->address;
        exists = true;
    }
    return exists;
}

bool cusim_unknown_set(const char *names) {
    while (names && *names) {
        size_t length = strcspn(names, ",");
        if (!add_unknown(names, length))
            return false;
        names += length;
        if (*names == ',' && !*++names)
            return false;
    }
    return true;
}

static void *address_of(const struct cusim_row *row) {
    for (unsigned i = 0; i < n_unknown; i++)
        if (cusim_unknown_targets[i] == row->address)
            return (void *)(uintptr_t)(cusim_unknown_jumps + i * JUMP_BYTES);
    return row->address;
}

/* ---- cuGetProcAddress ---- */

static CUresult resolve(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    if (!symbol || !pfn || (flags & ~(cuuint64_t)3))
        return CUDA_ERROR_INVALID_VALUE;
    if (version > cusim.options.driver_version) /* *pfn stays unchanged */
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = NULL;
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
        *pfn = address_of(best);
    if (status)
        *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS; /* also for an unknown name: *pfn tells it */
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

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v3(struct cusim_next_question *);
CUresult cuGetProcAddress_v3(struct cusim_next_question *question) {
    CUSIM_ENTER_EARLY(cuGetProcAddress_v3);
    return resolve(question->symbol, question->function, question->version, question->flags, NULL);
}

/* The real runtime asks for private tables; the stand-in does not. */
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    CUSIM_ENTER_EARLY(cuGetExportTable);
    (void)id;
    if (!table)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
