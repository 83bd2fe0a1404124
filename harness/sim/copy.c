/*
 * Copies: which are allowed, what the host waits for, and when host memory is read.
 *
 * An upload from pageable memory reads its source at the call. A download to pageable memory and a
 * host-to-host copy are done when the call returns. Pinned memory is accessed in stream order. If a
 * call needs a staging copy, it copies without cusim.lock and then looks its stream up again.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>
#include <string.h>

static bool is_host(enum cusim_mem_kind kind) {
    return kind == CUSIM_MEM_PAGEABLE || kind == CUSIM_MEM_HOST || kind == CUSIM_MEM_REGISTERED;
}

struct side {
    unsigned char *at;
    size_t pitch, slice, extent;
    enum cusim_mem_kind kind;
};

/* One operand of a copy: its first byte, and whether all of it may be accessed. */
static CUresult side_of(struct side *side, CUmemorytype type, const void *host, CUdeviceptr device,
                        size_t x, size_t y, size_t z, size_t pitch, size_t height,
                        const CUDA_MEMCPY3D *p) {
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
        return type == CU_MEMORYTYPE_ARRAY ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    if (pitch == 0)
        pitch = x + p->WidthInBytes;
    if (height == 0)
        height = y + p->Height;
    if ((p->Height > 1 || p->Depth > 1) && pitch < x + p->WidthInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->Depth > 1 && height < y + p->Height)
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : (uintptr_t)device;
    side->pitch = pitch;
    side->slice = pitch * height;
    side->at = (unsigned char *)base + x + y * pitch + z * side->slice;
    side->extent = (p->Depth - 1) * side->slice + (p->Height - 1) * side->pitch + p->WidthInBytes;
    side->kind = cusim_mem_kind_of((uintptr_t)side->at, side->extent);
    if (type == CU_MEMORYTYPE_DEVICE && side->kind == CUSIM_MEM_PAGEABLE)
        return CUDA_ERROR_INVALID_VALUE;
    /* A range that begins in a block, also a registered one, and leaves it is refused. */
    if (side->kind == CUSIM_MEM_PAGEABLE && cusim_mem_find((uintptr_t)side->at))
        return CUDA_ERROR_INVALID_VALUE;
    /* An address of the simulator outside of every live block is a bad device pointer, not host
     * memory. */
    if (side->kind == CUSIM_MEM_PAGEABLE && (!base || cusim_mem_in_arena((uintptr_t)side->at)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cusim_memcpy_fill(struct cusim_work_memcpy *m, const CUDA_MEMCPY3D *p,
                           enum cusim_mem_kind *dst_kind, enum cusim_mem_kind *src_kind) {
    struct side dst, src;
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = side_of(&dst, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                              p->dstY, p->dstZ, p->dstPitch, p->dstHeight, p);
    if (result == CUDA_SUCCESS)
        result = side_of(&src, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY,
                         p->srcZ, p->srcPitch, p->srcHeight, p);
    if (result != CUDA_SUCCESS)
        return result;
    if (dst.kind == CUSIM_MEM_VIRTUAL &&
        !cusim_virtual_allows((uintptr_t)dst.at, dst.extent, CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
        return CUDA_ERROR_INVALID_VALUE;
    m->params = *p;
    m->dst = dst.at;
    m->src = src.at;
    m->dst_in = cusim_mem_operand((uintptr_t)dst.at);
    m->src_in = cusim_mem_operand((uintptr_t)src.at);
    m->width = p->WidthInBytes;
    m->height = p->Height;
    m->depth = p->Depth;
    m->dst_pitch = dst.pitch;
    m->src_pitch = src.pitch;
    m->dst_slice = dst.slice;
    m->src_slice = src.slice;
    static const char *const kinds[2][2] = {{"DtoD", "DtoH"}, {"HtoD", "HtoH"}};
    m->kind = kinds[is_host(src.kind)][is_host(dst.kind)];
    *dst_kind = dst.kind;
    *src_kind = src.kind;
    return CUDA_SUCCESS;
}

/* Copies a pageable source into memory of the work; rows keep their pitch. */
static unsigned char *stage(const struct cusim_work_memcpy *m) {
    size_t extent = (m->depth - 1) * m->src_slice + (m->height - 1) * m->src_pitch + m->width;
    unsigned char *staged = malloc(extent);
    for (size_t z = 0; staged && z < m->depth; z++)
        for (size_t y = 0; y < m->height; y++) {
            size_t at = z * m->src_slice + y * m->src_pitch;
            memcpy(staged + at, m->src + at, m->width);
        }
    return staged;
}

/* sync: the form without Async. It waits, except from device to device. An upload from pageable
 * memory waits for earlier work, and returns when its source was copied. */
static CUresult copy(bool ptsz, CUstream handle, const CUDA_MEMCPY3D *p, bool sync) {
    struct cusim_stream *s;
    enum cusim_mem_kind dst, src;
    struct cusim_work_memcpy m = {0};
    unsigned char *staged = NULL;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0)
        return CUDA_SUCCESS;
    result = cusim_memcpy_fill(&m, p, &dst, &src);
    if (result != CUDA_SUCCESS)
        return result;
    bool capturing = s->capture != NULL;
    if (!capturing && src == CUSIM_MEM_PAGEABLE && !is_host(dst)) {
        struct cusim_ctx *ctx = s->ctx;
        if (sync) {
            cusim_stream_wait(s);
            if ((result = cusim_ctx_check(ctx)) != CUDA_SUCCESS)
                return result;
        }
        cusim_unlock();
        staged = stage(&m);
        cusim_lock();
        result = staged ? cusim_stream_get_for_work(handle, ptsz, &s) : CUDA_ERROR_OUT_OF_MEMORY;
        if (result != CUDA_SUCCESS) {
            free(staged);
            return result;
        }
    }
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_MEMCPY, s->ctx);
    work->memcpy = m;
    work->memcpy.staged = staged;
    bool wait = !capturing && !staged &&
                ((is_host(dst) && is_host(src)) || dst == CUSIM_MEM_PAGEABLE ||
                 (sync && (is_host(dst) || is_host(src))));
    struct cusim_ctx *ctx = s->ctx;
    struct cusim_timeline *tl = s->tl;
    result = cusim_submit(s, work);
    if (result == CUDA_SUCCESS && wait) {
        if (dst == CUSIM_MEM_PAGEABLE)
            cusim_gate_copy(ctx, tl, s->submitted);
        else
            cusim_timeline_wait(tl, s->submitted);
        result = cusim_ctx_check(ctx);
    }
    return result;
}

/* The types are those that a captured copy shows: by the call's name, or UNIFIED. */
static CUresult copy_1d(bool ptsz, CUstream handle, uintptr_t dst, uintptr_t src, size_t bytes,
                        CUmemorytype dst_type, CUmemorytype src_type, bool sync) {
    CUDA_MEMCPY3D p = {.srcMemoryType = src_type,
                       .dstMemoryType = dst_type,
                       .WidthInBytes = bytes,
                       .Height = 1,
                       .Depth = 1};
    if (src_type == CU_MEMORYTYPE_HOST)
        p.srcHost = (const void *)src;
    else
        p.srcDevice = src;
    if (dst_type == CU_MEMORYTYPE_HOST)
        p.dstHost = (void *)dst;
    else
        p.dstDevice = dst;
    return copy(ptsz, handle, &p, sync);
}

static const CUmemorytype ANY = CU_MEMORYTYPE_UNIFIED, DEVICE = CU_MEMORYTYPE_DEVICE,
                          HOST = CU_MEMORYTYPE_HOST;

CUSIM_TWIN_LOCKED(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n), (dst, src, n)) {
    return copy_1d(ptsz, NULL, dst, src, n, ANY, ANY, true);
}

CUSIM_TWIN_LOCKED(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t n),
                  (dst, src, n)) {
    return copy_1d(ptsz, NULL, dst, (uintptr_t)src, n, DEVICE, HOST, true);
}

CUSIM_TWIN_LOCKED(cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t n), (dst, src, n)) {
    return copy_1d(ptsz, NULL, (uintptr_t)dst, src, n, HOST, DEVICE, true);
}

CUSIM_TWIN_LOCKED(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n),
                  (dst, src, n)) {
    return copy_1d(ptsz, NULL, dst, src, n, DEVICE, DEVICE, true);
}

CUSIM_TWIN_LOCKED(cuMemcpyAsync, _ptsz,
                  (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
                  (dst, src, n, stream)) {
    return copy_1d(ptsz, stream, dst, src, n, ANY, ANY, false);
}

CUSIM_TWIN_LOCKED(cuMemcpyHtoDAsync_v2, _ptsz,
                  (CUdeviceptr dst, const void *src, size_t n, CUstream stream),
                  (dst, src, n, stream)) {
    return copy_1d(ptsz, stream, dst, (uintptr_t)src, n, DEVICE, HOST, false);
}

CUSIM_TWIN_LOCKED(cuMemcpyDtoHAsync_v2, _ptsz,
                  (void *dst, CUdeviceptr src, size_t n, CUstream stream), (dst, src, n, stream)) {
    return copy_1d(ptsz, stream, (uintptr_t)dst, src, n, HOST, DEVICE, false);
}

CUSIM_TWIN_LOCKED(cuMemcpyDtoDAsync_v2, _ptsz,
                  (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
                  (dst, src, n, stream)) {
    return copy_1d(ptsz, stream, dst, src, n, DEVICE, DEVICE, false);
}

/* ---- between contexts ---- */

CUSIM_TWIN_LOCKED(cuMemcpyPeer, _ptds,
                  (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n),
                  (dst, to, src, from, n)) {
    if (!cusim_handle_is(to, CUSIM_CTX) || !cusim_handle_is(from, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    cusim_ctx_wait((struct cusim_ctx *)from); /* ordered with all work of both contexts */
    if (cusim_handle_is(to, CUSIM_CTX))
        cusim_ctx_wait((struct cusim_ctx *)to);
    CUresult result = copy_1d(ptsz, NULL, dst, src, n, DEVICE, DEVICE, true);
    struct cusim_ctx *ctx;
    if (result == CUDA_SUCCESS && (result = cusim_ctx_current(&ctx)) == CUDA_SUCCESS)
        cusim_ctx_wait(ctx);
    return result;
}

CUSIM_TWIN_LOCKED(cuMemcpyPeerAsync, _ptsz,
                  (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n,
                   CUstream stream),
                  (dst, to, src, from, n, stream)) {
    if (!cusim_handle_is(to, CUSIM_CTX) || !cusim_handle_is(from, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_1d(ptsz, stream, dst, src, n, DEVICE, DEVICE, false);
}

/* ---- two and three dimensions ---- */

static CUresult copy_2d(bool ptsz, CUstream stream, const CUDA_MEMCPY2D *p, bool sync) {
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D q = {.srcXInBytes = p->srcXInBytes,
                       .srcY = p->srcY,
                       .srcMemoryType = p->srcMemoryType,
                       .srcHost = p->srcHost,
                       .srcDevice = p->srcDevice,
                       .srcArray = p->srcArray,
                       .srcPitch = p->srcPitch,
                       .dstXInBytes = p->dstXInBytes,
                       .dstY = p->dstY,
                       .dstMemoryType = p->dstMemoryType,
                       .dstHost = p->dstHost,
                       .dstDevice = p->dstDevice,
                       .dstArray = p->dstArray,
                       .dstPitch = p->dstPitch,
                       .WidthInBytes = p->WidthInBytes,
                       .Height = p->Height,
                       .Depth = 1};
    return copy(ptsz, stream, &q, sync);
}

CUSIM_TWIN_LOCKED(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *p), (p)) {
    return copy_2d(ptsz, NULL, p, true);
}

CUSIM_TWIN_LOCKED(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *p), (p)) {
    return copy_2d(ptsz, NULL, p, true);
}

CUSIM_TWIN_LOCKED(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *p, CUstream stream),
                  (p, stream)) {
    return copy_2d(ptsz, stream, p, false);
}

CUSIM_TWIN_LOCKED(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *p), (p)) {
    return p ? copy(ptsz, NULL, p, true) : CUDA_ERROR_INVALID_VALUE;
}

CUSIM_TWIN_LOCKED(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *p, CUstream stream),
                  (p, stream)) {
    return p ? copy(ptsz, stream, p, false) : CUDA_ERROR_INVALID_VALUE;
}
