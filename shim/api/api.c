/*
 * The rows of cuda_api.def as an array, and the look-up of a row by its name.
 *
 * Any thread. Takes no lock, allocates nothing and calls nothing else of the library.
 */
#include "shim/api/api.h"

#include <string.h>

#include "shim/api/scope.h"
#include "shim/stats/stats.h"

_Static_assert((int)CUS_API_ROWS < (int)CUS_API_ROWS_MAX,
               "flush causes are numbered behind the rows");

#define NO_ARG CUS_ARG_NONE
#define NULL_STREAM CUS_ARG_NULL_STREAM

const struct cus_api_row cus_api_rows[CUS_API_ROWS] = {
#define CUS_API(symbol_, class_, scope_, arg_, abi_, act_, reason_)                                \
    {.name = #symbol_,                                                                             \
     .reason = reason_,                                                                            \
     .scope_name = #scope_,                                                                        \
     .abi_name = #abi_,                                                                            \
     .kind = CUS_CLASS_##class_,                                                                   \
     .scope = CUS_SCOPE_##scope_,                                                                  \
     .abi = CUS_ABI_##abi_,                                                                        \
     .act = CUS_ACT_##act_,                                                                        \
     .arg = arg_},
#include "shim/api/cuda_api.def"
};

const char *cus_api_name(unsigned row) {
    return row < CUS_API_ROWS ? cus_api_rows[row].name : NULL;
}

int cus_api_find(const char *name) {
    unsigned low = 0, high = CUS_API_ROWS;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = strcmp(name, cus_api_rows[middle].name);
        if (order == 0)
            return (int)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}
