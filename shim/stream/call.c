/*
 * The program's own call. Runs on program threads inside hooks, without any lock.
 */
#include "shim/stream/call.h"
#include "shim/base/clock.h"

typedef CUresult launch_fn(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, CUstream, void **, void **);
typedef CUresult launch_ex_fn(const CUlaunchConfig *, CUfunction, void **, void **);
typedef CUresult cooperative_fn(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                unsigned, unsigned, CUstream, void **);

static CUresult real_launch(const struct cus_launch *l) {
    const uint32_t *d = l->dims;
    if (l->form == CUS_LAUNCH_EX)
        return ((launch_ex_fn *)l->real)(l->config, l->f, l->params, l->extra);
    if (l->form == CUS_LAUNCH_COOPERATIVE)
        return ((cooperative_fn *)l->real)(l->f, d[0], d[1], d[2], d[3], d[4], d[5], d[6],
                                           l->stream.handle, l->params);
    return ((launch_fn *)l->real)(l->f, d[0], d[1], d[2], d[3], d[4], d[5], d[6], l->stream.handle,
                                  l->params, l->extra);
}

static CUresult real_memset(const struct cus_memset *m) {
    if (m->two_d) {
        switch (m->elem) {
        case 1:
            return ((__typeof__(&cuMemsetD2D8Async))m->real)(
                m->dst, m->pitch, (unsigned char)m->value, m->width, m->height, m->stream.handle);
        case 2:
            return ((__typeof__(&cuMemsetD2D16Async))m->real)(
                m->dst, m->pitch, (unsigned short)m->value, m->width, m->height, m->stream.handle);
        default:
            return ((__typeof__(&cuMemsetD2D32Async))m->real)(m->dst, m->pitch, m->value, m->width,
                                                              m->height, m->stream.handle);
        }
    }
    switch (m->elem) {
    case 1:
        return ((__typeof__(&cuMemsetD8Async))m->real)(m->dst, (unsigned char)m->value, m->width,
                                                       m->stream.handle);
    case 2:
        return ((__typeof__(&cuMemsetD16Async))m->real)(m->dst, (unsigned short)m->value, m->width,
                                                        m->stream.handle);
    default:
        return ((__typeof__(&cuMemsetD32Async))m->real)(m->dst, m->value, m->width,
                                                        m->stream.handle);
    }
}

static CUresult real_copy(const struct cus_copy *c) {
    switch (c->form) {
    case CUS_COPY_DTOD:
        return ((__typeof__(&cuMemcpyDtoDAsync_v2))c->real)(c->dst, c->src, c->bytes,
                                                            c->stream.handle);
    case CUS_COPY_HTOD:
        return ((__typeof__(&cuMemcpyHtoDAsync_v2))c->real)(c->dst, (const void *)(uintptr_t)c->src,
                                                            c->bytes, c->stream.handle);
    case CUS_COPY_DTOH:
        return ((__typeof__(&cuMemcpyDtoHAsync_v2))c->real)((void *)(uintptr_t)c->dst, c->src,
                                                            c->bytes, c->stream.handle);
    default:
        return ((__typeof__(&cuMemcpyAsync))c->real)(c->dst, c->src, c->bytes, c->stream.handle);
    }
}

CUresult cus_call_real(const struct cus_call *call) {
    CUresult result;
    switch (call->type) {
    case CUS_OP_MEMSET:
        return real_memset(call->memset);
    case CUS_OP_COPY:
        cus_engine_copying(true); /* of pageable memory, for all we know */
        result = real_copy(call->copy);
        cus_engine_copying(false);
        return result;
    default:
        return real_launch(call->launch);
    }
}

CUresult cus_call_timed(const struct cus_call *call) {
    cus_build_give_way(UINT64_MAX);
    if (call->type != CUS_OP_LAUNCH || ++cus_thread_self.issued % CUS_SAMPLE_EVERY)
        return cus_call_real(call);
    uint64_t start = cus_clock_ns();
    CUresult result = cus_call_real(call);
    cus_live_sample(&cus_process.launch_samples, cus_clock_ns() - start);
    return result;
}
