/*
 * The names of the driver's calls, made from the API table. Pure data; no CUDA header.
 */
#include "shim/plan/calls.h"

#include <stddef.h>
#include <string.h>

#include "shim/base/config.h"

static const struct cus_call_name calls[] = {
#define CUS_API(symbol, class, scope, arg, abi, act, reason) {#symbol, #class},
#include "shim/api/cuda_api.def"
};

/* The symbols alone, as cus_near takes them. */
static const char *const symbols[] = {
#define CUS_API(symbol, class, scope, arg, abi, act, reason) #symbol,
#include "shim/api/cuda_api.def"
    NULL,
};

const struct cus_call_name *cus_calls_get(unsigned index) {
    return index < sizeof calls / sizeof *calls ? &calls[index] : NULL;
}

bool cus_calls_ruled(const struct cus_call_name *call) {
    if (strcmp(call->symbol, "cuEventRecord") == 0 ||
        strcmp(call->symbol, "cuEventRecord_ptsz") == 0)
        return true;
    return strcmp(call->row_class, "OP") == 0 && strncmp(call->symbol, "cuMem", 5) == 0;
}

const char *cus_calls_nearest(const char *word) {
    return cus_near(word, symbols);
}
