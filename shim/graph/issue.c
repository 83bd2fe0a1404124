/*
 * Makes the stream call of one stored op.
 * Runs on the thread that flushes or builds, under the lock of the op's engine. Calls the driver's
 * launch, memset, copy, record and wait functions; never allocates.
 */
#include "shim/graph/issue.h"

#include <string.h>

void **cus_issue_params(const struct cus_kind *kind, const struct cus_values *values,
                        void *pointers[CUS_ISSUE_PARAMS_MAX]) {
    const struct cus_layout *layout = kind->layout;
    for (uint32_t i = 0; i < layout->n; i++)
        pointers[i] = (void *)(uintptr_t)(values->params + layout->arguments[i].offset);
    return layout->n ? pointers : NULL;
}

static CUresult issue_launch(const struct cus_driver *driver, const struct cus_kind *kind,
                             const struct cus_values *values, CUstream stream) {
    void *pointers[CUS_ISSUE_PARAMS_MAX];
    void **params = cus_issue_params(kind, values, pointers);
    const uint32_t *d = values->dims;
    CUfunction f = (CUfunction)(uintptr_t)kind->handle;
    if (kind->n_attrs) {
        CUlaunchAttribute attrs[CUS_KIND_ATTRS];
        memset(attrs, 0, sizeof attrs);
        for (unsigned i = 0; i < kind->n_attrs; i++) {
            attrs[i].id = (CUlaunchAttributeID)kind->attrs[i].id;
            memcpy(&attrs[i].value, kind->attrs[i].value, kind->attrs[i].bytes);
        }
        CUlaunchConfig config = {.gridDimX = d[0],
                                 .gridDimY = d[1],
                                 .gridDimZ = d[2],
                                 .blockDimX = d[3],
                                 .blockDimY = d[4],
                                 .blockDimZ = d[5],
                                 .sharedMemBytes = d[6],
                                 .hStream = stream,
                                 .attrs = attrs,
                                 .numAttrs = kind->n_attrs};
        return driver->cuLaunchKernelEx(&config, f, params, NULL);
    }
    if (kind->cooperative)
        return driver->cuLaunchCooperativeKernel(f, d[0], d[1], d[2], d[3], d[4], d[5], d[6],
                                                 stream, params);
    return driver->cuLaunchKernel(f, d[0], d[1], d[2], d[3], d[4], d[5], d[6], stream, params,
                                  NULL);
}

static uint64_t wide(const struct cus_values *values) {
    return values->dims[0] | (uint64_t)values->dims[1] << 32;
}

static CUresult issue_rows(const struct cus_driver *driver, const struct cus_kind *kind,
                           struct cus_memset_params p, size_t width, CUstream stream) {
    if (kind->elem == 1)
        return driver->cuMemsetD2D8Async(p.dst, p.pitch, (unsigned char)p.value, width, p.height,
                                         stream);
    if (kind->elem == 2)
        return driver->cuMemsetD2D16Async(p.dst, p.pitch, (unsigned short)p.value, width, p.height,
                                          stream);
    return driver->cuMemsetD2D32Async(p.dst, p.pitch, p.value, width, p.height, stream);
}

static CUresult issue_memset(const struct cus_driver *driver, const struct cus_kind *kind,
                             const struct cus_values *values, CUstream stream) {
    struct cus_memset_params params;
    memcpy(&params, values->params, sizeof params);
    size_t width = wide(values);
    if (kind->copy_form == CUS_MEMSET_2D)
        return issue_rows(driver, kind, params, width, stream);
    if (kind->elem == 1)
        return driver->cuMemsetD8Async(params.dst, (unsigned char)params.value, width, stream);
    if (kind->elem == 2)
        return driver->cuMemsetD16Async(params.dst, (unsigned short)params.value, width, stream);
    return driver->cuMemsetD32Async(params.dst, params.value, width, stream);
}

static CUresult issue_copy(const struct cus_driver *driver, const struct cus_kind *kind,
                           const struct cus_values *values, CUstream stream) {
    struct cus_copy_params params;
    memcpy(&params, values->params, sizeof params);
    size_t bytes = wide(values);
    switch (kind->copy_form) {
    case CUS_COPY_DTOD:
        return driver->cuMemcpyDtoDAsync_v2(params.dst, params.src, bytes, stream);
    case CUS_COPY_HTOD:
        return driver->cuMemcpyHtoDAsync_v2(params.dst, (const void *)(uintptr_t)params.src, bytes,
                                            stream);
    case CUS_COPY_DTOH:
        return driver->cuMemcpyDtoHAsync_v2((void *)(uintptr_t)params.dst, params.src, bytes,
                                            stream);
    default:
        return driver->cuMemcpyAsync(params.dst, params.src, bytes, stream);
    }
}

CUevent cus_issue_event(const struct cus_values *values) {
    struct cus_record_params params;
    memcpy(&params, values->params, sizeof params);
    return (CUevent)(uintptr_t)params.event;
}

CUresult cus_issue_into_capture(const struct cus_driver *driver, const struct cus_kind *kind,
                                const struct cus_values *values, CUstream stream) {
    if (kind->type == CUS_OP_RECORD)
        return driver->cuEventRecordWithFlags(cus_issue_event(values), stream,
                                              CU_EVENT_RECORD_EXTERNAL);
    return cus_issue(driver, kind, values, stream);
}

CUresult cus_issue(const struct cus_driver *driver, const struct cus_kind *kind,
                   const struct cus_values *values, CUstream stream) {
    switch (kind->type) {
    case CUS_OP_MEMSET:
        return issue_memset(driver, kind, values, stream);
    case CUS_OP_COPY:
        return issue_copy(driver, kind, values, stream);
    case CUS_OP_RECORD:
        return driver->cuEventRecord(cus_issue_event(values), stream);
    case CUS_OP_WAIT:
        return driver->cuStreamWaitEvent(stream, cus_issue_event(values), 0);
    default:
        return issue_launch(driver, kind, values, stream);
    }
}
