/*
 * Memsets of all widths, one- and two-dimensional.
 *
 * Under cusim.lock. A form without Async returns before the memset is done, except for host and
 * managed memory.
 */
#include "harness/sim/cusim.h"

CUresult cusim_memset_fill(struct cusim_work_memset *m, CUdeviceptr dst, size_t pitch,
                           unsigned value, unsigned element, size_t width, size_t height,
                           enum cusim_mem_kind *kind) {
    if ((element != 1 && element != 2 && element != 4) || width == 0 || height == 0 ||
        dst % element != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (height > 1 && (pitch < width * element || pitch % element != 0))
        return CUDA_ERROR_INVALID_VALUE;
    size_t extent = (height - 1) * pitch + width * element;
    *kind = cusim_mem_kind_of(dst, extent);
    if (*kind == CUSIM_MEM_PAGEABLE ||
        (*kind == CUSIM_MEM_VIRTUAL &&
         !cusim_virtual_allows(dst, extent, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)))
        return CUDA_ERROR_INVALID_VALUE;
    *m = (struct cusim_work_memset){.dst = dst,
                                    .in = cusim_mem_operand(dst),
                                    .pitch = pitch,
                                    .width = width,
                                    .height = height,
                                    .value = value,
                                    .element = element};
    return CUDA_SUCCESS;
}

static CUresult fill(bool ptsz, CUstream handle, CUdeviceptr dst, size_t pitch, unsigned value,
                     unsigned element, size_t width, size_t height, bool sync) {
    struct cusim_stream *s;
    struct cusim_work_memset m;
    enum cusim_mem_kind kind;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    result = cusim_memset_fill(&m, dst, pitch, value, element, width, height, &kind);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_MEMSET, s->ctx);
    work->memset = m;
    struct cusim_ctx *ctx = s->ctx;
    bool wait = sync && !s->capture && kind != CUSIM_MEM_DEVICE && kind != CUSIM_MEM_POOL &&
                kind != CUSIM_MEM_VIRTUAL;
    result = cusim_submit(s, work);
    if (result == CUDA_SUCCESS && wait) {
        cusim_timeline_wait(s->tl, s->submitted);
        result = cusim_ctx_check(ctx);
    }
    return result;
}

#define FILL(bits, number)                                                                         \
    CUSIM_TWIN_LOCKED(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dst, number value, size_t n),      \
                      (dst, value, n)) {                                                           \
        return fill(ptsz, NULL, dst, 0, value, bits / 8, n, 1, true);                              \
    }                                                                                              \
    CUSIM_TWIN_LOCKED(cuMemsetD##bits##Async, _ptsz,                                               \
                      (CUdeviceptr dst, number value, size_t n, CUstream stream),                  \
                      (dst, value, n, stream)) {                                                   \
        return fill(ptsz, stream, dst, 0, value, bits / 8, n, 1, false);                           \
    }                                                                                              \
    CUSIM_TWIN_LOCKED(cuMemsetD2D##bits##_v2, _ptds,                                               \
                      (CUdeviceptr dst, size_t pitch, number value, size_t width, size_t height),  \
                      (dst, pitch, value, width, height)) {                                        \
        return fill(ptsz, NULL, dst, pitch, value, bits / 8, width, height, true);                 \
    }                                                                                              \
    CUSIM_TWIN_LOCKED(cuMemsetD2D##bits##Async, _ptsz,                                             \
                      (CUdeviceptr dst, size_t pitch, number value, size_t width, size_t height,   \
                       CUstream stream),                                                           \
                      (dst, pitch, value, width, height, stream)) {                                \
        return fill(ptsz, stream, dst, pitch, value, bits / 8, width, height, false);              \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)

/* Stands for a newer driver's call that puts work into a stream; no table knows it. The first is
 * exported; only cuGetProcAddress returns the second, by the name cuSimHiddenFill. */
__attribute__((visibility("default"))) CUresult cuSimFillX(CUdeviceptr dst, unsigned value,
                                                           size_t n, CUstream stream);
CUSIM_LOCKED(cuSimFillX, (CUdeviceptr dst, unsigned value, size_t n, CUstream stream),
             (dst, value, n, stream)) {
    return fill(false, stream, dst, 0, value, 4, n, 1, false);
}

CUresult cusim_hidden_fill(CUdeviceptr dst, unsigned value, size_t n, CUstream stream);
CUSIM_LOCKED(cusim_hidden_fill, (CUdeviceptr dst, unsigned value, size_t n, CUstream stream),
             (dst, value, n, stream)) {
    return fill(false, stream, dst, 0, value, 4, n, 1, false);
}
