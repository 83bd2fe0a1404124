/*
 * Kernels have their own names. Memsets and copies are named by the driver's call, since a runtime
 * has one for all. Records of events are all of one kind. import.c calls it, for each op.
 */
#include "tools/trace/import_kinds.h"

#include <string.h>

static const char *copy_kind(const struct import_op *op, const char *driver, const char *called,
                             struct import_kind *kind) {
    static const char *const copies[] = {"cuMemcpyAsync", "cuMemcpyDtoDAsync_v2",
                                         "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"};
    kind->form = op->copy == 8 ? 1 : op->copy == 1 ? 2 : op->copy == 2 ? 3 : 0;
    kind->flags |= op->pageable ? CST_KIND_NO_NODE : 0;
    for (uint32_t i = 0; driver && i < 4; i++)
        if (strncmp(driver, copies[i], strlen(copies[i])) == 0)
            kind->form = i ? i : kind->form;
    /* The runtime calls the driver's form for the direction that it is told. */
    return driver && strcmp(called, driver) == 0 ? driver : copies[kind->form];
}

static const char *memset_kind(const char *driver, struct import_kind *kind) {
    if (!driver || strncmp(driver, "cuMemsetD", 9) != 0)
        driver = "cuMemsetD8Async";
    kind->elem = strstr(driver, "32") ? 4 : strstr(driver, "16") ? 2 : 1;
    return driver;
}

const char *import_kind_of(const struct import_data *data, const struct import_op *op,
                           const char *driver, const char *called, struct import_kind *kind) {
    bool launch = op->type == CST_OP_LAUNCH;
    memset(kind, 0, sizeof *kind);
    kind->op = op->type;
    for (unsigned i = 0; i < 3; i++)
        kind->cluster[i] = launch && op->cluster[i] ? op->cluster[i] : 1;
    if (op->type == CST_OP_RECORD)
        return "cuEventRecord";
    if (op->type == CST_OP_WAIT)
        return "cuStreamWaitEvent";
    kind->flags = CST_KIND_OPAQUE;
    kind->context = op->context;
    if (op->type == CST_OP_COPY)
        return copy_kind(op, driver, called, kind);
    if (op->type == CST_OP_MEMSET)
        return memset_kind(driver, kind);
    kind->name = op->name;
    kind->variant = data->mangled ? 0 : op->variant;
    kind->flags |= op->cooperative ? CST_KIND_COOPERATIVE : 0;
    return import_text(data, op->name);
}

uint32_t import_kind_params(const struct import_kind *kind) {
    return kind->op == CST_OP_RECORD || kind->op == CST_OP_WAIT ? 16 : 0;
}
