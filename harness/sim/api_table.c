/*
 * The table of entry points, and a weak body for each.
 *
 * If another file defines an entry point, the linker takes that one; a weak body answers
 * CUDA_ERROR_NOT_SUPPORTED. This file does not include cuda.h, because the bodies have no
 * parameters. No lock.
 */
#include <stddef.h>

enum {
#define CUSIM_API(symbol, base, version, pt) CUSIM_API_##symbol,
#include "harness/sim/api.def"
#undef CUSIM_API
    CUSIM_API_COUNT
};

struct cusim_row {
    const char *symbol;
    const char *base;
    int version;
    int pt;
    void *address;
};

int cusim_enter(unsigned api);

enum { CUSIM_NOT_SUPPORTED = 801 };

#define CUSIM_API(symbol, base, version, pt)                                                       \
    __attribute__((weak, visibility("default"))) int symbol(void);                                 \
    int symbol(void) {                                                                             \
        int result = cusim_enter(CUSIM_API_##symbol);                                              \
        return result != 0 ? result : CUSIM_NOT_SUPPORTED;                                         \
    }
#include "harness/sim/api.def"
#undef CUSIM_API

extern const struct cusim_row cusim_rows[CUSIM_API_COUNT];
const struct cusim_row cusim_rows[CUSIM_API_COUNT] = {
#define CUSIM_API(symbol, base, version, pt) {#symbol, base, version, pt, (void *)symbol},
#include "harness/sim/api.def"
#undef CUSIM_API
};
