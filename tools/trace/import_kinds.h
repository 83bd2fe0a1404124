/*
 * What kind of op an execution of a profile is, by the call that asked for it. import.c calls it.
 * It never reads the database.
 */
#ifndef CUSPLICE_TOOLS_TRACE_IMPORT_KINDS_H
#define CUSPLICE_TOOLS_TRACE_IMPORT_KINDS_H

#include "tools/trace/import.h"

/* What tells kinds apart. It is hashed: it has no padding. */
struct import_kind {
    int64_t name, variant; /* of StringIds; variant: what else tells one from another */
    uint32_t op, flags, elem, form, context, cluster[3];
};

/* Fills it in, `variant` of kernels alone; returns the name that the kind has in a trace. `driver`:
 * the row of cuda_api.def for the call, NULL: not known; `called`: the call's own name. */
const char *import_kind_of(const struct import_data *data, const struct import_op *op,
                           const char *driver, const char *called, struct import_kind *kind);

/* Bytes of the params of its ops. Those of records alone are known. */
uint32_t import_kind_params(const struct import_kind *kind);

#endif
