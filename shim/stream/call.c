/*
 * A call of the program that is an op: finds the op's kind, and makes the call as the program
 * asked. Runs on program threads inside hooks. The engine lock is held while the kind is looked up,
 * and no lock while the call is made.
 */
#include "shim/stream/call.h"

#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/stream/live.h"
#include "shim/stream/priority.h"
#include "shim/stream/ranges.h"
#include "shim/stream/trace.h"

/* ---- the kind of an op ---- */

static bool is_device(enum cus_family family) {
    return family == CUS_FAMILY_DEVICE || family == CUS_FAMILY_POOL || family == CUS_FAMILY_VIRTUAL;
}

static uint8_t form_of(const struct cus_memset *m) {
    return m->two_d ? CUS_MEMSET_2D : 0;
}

/* Bytes from the first to the last one that the memset writes, which are some (cus_pass_empty). 0:
 * the driver refuses the memset, or might (HAZARDS A14). */
static uint64_t reach_of(const struct cus_memset *m) {
    uint64_t row, rows, reach;
    if (m->dst % m->elem || __builtin_mul_overflow(m->width, (uint64_t)m->elem, &row))
        return 0;
    if (!m->two_d)
        return row;
    if (m->pitch < row || m->pitch % m->elem || m->height > UINT32_MAX ||
        __builtin_mul_overflow(m->pitch, m->height - 1, &rows) ||
        __builtin_add_overflow(rows, row, &reach))
        return 0;
    return reach;
}

/* The kind of a memset. All that it reaches must lie in known memory. The driver gives a node of a
 * 2-D memset another address and value, but no other width, height or pitch (tests/gpu/DRIVER.md);
 * so these are part of the kind. */
static struct cus_kind *memset_kind(struct cus_engine *engine, const struct cus_call *call) {
    const struct cus_memset *m = call->memset;
    uint64_t reach = reach_of(m);
    enum cus_family family = reach ? cus_ranges_family(m->dst, reach) : CUS_FAMILY_UNKNOWN;
    if (!is_device(family))
        return NULL;
    return cus_kinds_call_kind(engine->context, &(struct cus_kind_of_call){
                                                    .type = CUS_OP_MEMSET,
                                                    .elem = (uint8_t)m->elem,
                                                    .copy_form = form_of(m),
                                                    .dst_family = (uint8_t)family,
                                                    .abi = m->stream.abi,
                                                    .place = call->place,
                                                    .extent = {m->pitch, m->width, m->height},
                                                });
}

/* May a kernel write to the source of an upload? Then the driver might read the source later. */
static bool kernels_access_pageable(struct cus_context *context) {
    const struct cus_driver *driver = cus_process.driver;
    int known = __atomic_load_n(&context->pageable, __ATOMIC_RELAXED), access = 1;
    CUdevice device;
    if (known)
        return known == 2;
    if (driver->cuDeviceGetAttribute && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS &&
        driver->cuDeviceGetAttribute(&access, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) !=
            CUDA_SUCCESS)
        access = 1;
    __atomic_store_n(&context->pageable, access ? 2 : 1, __ATOMIC_RELAXED);
    return access != 0;
}

enum { NOWHERE = 1 << 16 }; /* no memory lies below */

void cus_call_value(struct cus_call *call) {
    const struct cus_copy *c = call->copy;
    const struct cus_engine *last = cus_thread_self.last;
    bool fits = c->bytes == 1 || c->bytes == 2 || c->bytes == 4;
    /* A tool that plays a trace has not the program's memory. */
    bool passes = cus_virtual.on ||
                  __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) != CUS_DEFER ||
                  (last && __atomic_load_n(&last->demoted, __ATOMIC_RELAXED));
    /* The driver refuses NULL. At any other address without memory it fails as this does. */
    call->is_value = fits && !passes && c->dst % c->bytes == 0 && c->form == CUS_COPY_HTOD &&
                     c->src >= NOWHERE &&
                     cus_ranges_family(c->src, c->bytes) == CUS_FAMILY_PAGEABLE;
    call->value = 0;
    if (call->is_value)
        memcpy(&call->value, (const void *)(uintptr_t)c->src, c->bytes);
}

/* The kind of a copy between pinned and device memory. A copy from host to host is synchronous and
 * never an op (HAZARDS C6, C7). The driver reads the pageable source of an upload at the call, so a
 * small one is as good as a memset. A copy to pageable memory waits for its stream. */
static struct cus_kind *copy_kind(struct cus_engine *engine, struct cus_call *call) {
    const struct cus_copy *c = call->copy;
    if (c->bytes == 0)
        return NULL;
    enum cus_family dst = cus_ranges_family(c->dst, c->bytes);
    struct cus_kind_of_call of = {
        .type = CUS_OP_COPY,
        .copy_form = (uint8_t)c->form,
        .dst_family = (uint8_t)dst,
        .abi = c->stream.abi,
        .place = call->place,
    };
    if (call->is_value) {
        of.elem = (uint8_t)c->bytes;
        return is_device(dst) && !(CUS_HAZARD(C15) && kernels_access_pageable(engine->context))
                   ? cus_kinds_value(engine->context, &of)
                   : NULL;
    }
    enum cus_family src = cus_ranges_family(c->src, c->bytes);
    call->waits = CUS_HAZARD(C16) && dst == CUS_FAMILY_PAGEABLE && is_device(src) &&
                  (c->form == CUS_COPY_DTOH || c->form == CUS_COPY_ANY);
    if ((CUS_HAZARD(C6) && (dst == CUS_FAMILY_UNKNOWN || src == CUS_FAMILY_UNKNOWN ||
                            dst == CUS_FAMILY_PAGEABLE || src == CUS_FAMILY_PAGEABLE)) ||
        (CUS_HAZARD(C7) && dst == CUS_FAMILY_HOST && src == CUS_FAMILY_HOST))
        return NULL;
    bool fits = c->form == CUS_COPY_ANY ||
                (c->form == CUS_COPY_DTOD && is_device(dst) && is_device(src)) ||
                (c->form == CUS_COPY_HTOD && is_device(dst) && src == CUS_FAMILY_HOST) ||
                (c->form == CUS_COPY_DTOH && dst == CUS_FAMILY_HOST && is_device(src));
    if (!fits)
        return NULL;
    of.src_family = (uint8_t)src;
    return cus_kinds_call_kind(engine->context, &of);
}

/* The kind of a wait for an event, which is an edge of the graph. */
static struct cus_kind *wait_kind(struct cus_engine *engine, const struct cus_call *call) {
    return cus_kinds_call_kind(engine->context, &(struct cus_kind_of_call){
                                                    .type = CUS_OP_WAIT,
                                                    .abi = call->stream.abi,
                                                    .place = call->place,
                                                });
}

/* The kind of a record. The event's context is the stream's, and the driver has record nodes. */
static struct cus_kind *record_kind(struct cus_engine *engine, const struct cus_call *call) {
    const struct cus_record *r = call->event;
    const struct cus_driver *driver = cus_process.driver;
    if (r->context != engine->context->handle || !driver->cuEventRecord ||
        !driver->cuEventRecordWithFlags || !driver->cuGraphExecEventRecordNodeSetEvent)
        return NULL;
    return cus_kinds_call_kind(engine->context, &(struct cus_kind_of_call){
                                                    .type = CUS_OP_RECORD,
                                                    .abi = r->stream.abi,
                                                    .place = call->place,
                                                });
}

/* The packed buffer of the `extra` form. NULL if it is not well formed: then the driver judges
 * it. */
static const uint8_t *packed_params(const struct cus_launch *launch, uint32_t bytes) {
    const uint8_t *buffer = NULL;
    size_t size = SIZE_MAX;
    for (void **at = launch->extra; at[0] != CU_LAUNCH_PARAM_END; at += 2) {
        if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = at[1];
        else if (at[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(size_t *)at[1];
        else
            return NULL;
    }
    /* The driver refuses a size that includes padding after the last argument. */
    return size == bytes ? buffer : NULL;
}

/* Fills the op. False: its params do not fit the layout of the kind. */
static bool launch_op(const struct cus_launch *launch, const struct cus_kind *kind,
                      struct cus_op *op) {
    memcpy(op->dims, launch->dims, sizeof op->dims);
    if (launch->extra) {
        op->params = NULL;
        op->flat = launch->params ? NULL : packed_params(launch, kind->param_bytes);
        return op->flat != NULL;
    }
    op->params = launch->params;
    op->flat = (const uint8_t *)"";
    return launch->params || kind->param_bytes == 0;
}

bool cus_call_op(struct cus_call *call, const struct cus_kind *kind, struct cus_op *op) {
    op->kind = kind;
    if (call->type == CUS_OP_LAUNCH)
        return launch_op(call->launch, kind, op);
    bool value = call->type == CUS_OP_COPY && kind->type == CUS_OP_MEMSET;
    uint64_t wide = call->type == CUS_OP_MEMSET ? call->memset->width
                    : value                     ? 1
                    : call->type == CUS_OP_COPY ? call->copy->bytes
                                                : 0;
    memset(op->dims, 0, sizeof op->dims);
    op->dims[0] = (uint32_t)wide;
    op->dims[1] = (uint32_t)(wide >> 32);
    op->params = NULL;
    op->flat = (const uint8_t *)&call->flat;
    if (call->type == CUS_OP_RECORD)
        call->flat.record =
            (struct cus_record_params){.event = (uint64_t)(uintptr_t)call->event->event,
                                       .generation = call->event->generation};
    else if (call->type == CUS_OP_WAIT)
        call->flat.record =
            (struct cus_record_params){.event = (uint64_t)(uintptr_t)call->wait->event};
    else if (value)
        call->flat.memset =
            (struct cus_memset_params){.dst = call->copy->dst, .value = call->value, .height = 1};
    else if (call->type == CUS_OP_MEMSET)
        call->flat.memset = (struct cus_memset_params){.dst = call->memset->dst,
                                                       .pitch = call->memset->pitch,
                                                       .value = call->memset->value,
                                                       .height = (uint32_t)call->memset->height};
    else
        call->flat.copy = (struct cus_copy_params){.dst = call->copy->dst, .src = call->copy->src};
    return true;
}

static struct cus_kind *launch_kind(struct cus_engine *engine, const struct cus_call *call,
                                    bool *fresh) {
    const struct cus_launch *launch = call->launch;
    uint8_t branch = call->place.branch;
    struct cus_kind **found =
        &engine->kind_cache[(cus_kinds_slot(launch->f) + branch) % CUS_KIND_CACHE_SLOTS];
    if (*found && (*found)->branch == branch && cus_kinds_is_launch(*found, launch))
        return *found;
    struct cus_kind *kind = cus_kinds_launch(engine->context, launch, branch, fresh);
    if (kind && !kind->n_attrs && !kind->cooperative)
        *found = kind;
    return kind;
}

struct cus_kind *cus_call_kind(struct cus_engine *engine, struct cus_call *call, bool *fresh) {
    *fresh = false;
    switch (call->type) {
    case CUS_OP_MEMSET:
        return memset_kind(engine, call);
    case CUS_OP_COPY:
        return copy_kind(engine, call);
    case CUS_OP_RECORD:
        return record_kind(engine, call);
    case CUS_OP_WAIT:
        return wait_kind(engine, call);
    default:
        return launch_kind(engine, call, fresh);
    }
}

bool cus_call_is(const struct cus_engine *engine, const struct cus_call *call,
                 const struct cus_kind *kind) {
    if (kind->type != call->type || kind->branch != call->place.branch)
        return false;
    switch (call->type) {
    case CUS_OP_LAUNCH:
        return cus_kinds_is_launch(kind, call->launch);
    case CUS_OP_RECORD:
        return kind->abis >> call->stream.abi & 1 &&
               call->event->context == engine->context->handle;
    case CUS_OP_WAIT:
        return kind->abis >> call->stream.abi & 1 && kind->from == call->place.from &&
               kind->back == call->place.back && kind->goes_on == call->place.goes_on;
    default:
        return false;
    }
}

static enum cus_policy policy_of(struct cus_context *context, const struct cus_call *call) {
    switch (call->type) {
    case CUS_OP_MEMSET:
        return cus_kinds_rule(CUS_OP_MEMSET, (uint8_t)call->memset->elem, form_of(call->memset),
                              call->stream.abi)
            .policy;
    case CUS_OP_COPY:
        return cus_kinds_rule(CUS_OP_COPY, 0, (uint8_t)call->copy->form, call->stream.abi).policy;
    case CUS_OP_RECORD:
    case CUS_OP_WAIT:
        return cus_kinds_rule(call->type, 0, 0, call->stream.abi).policy;
    default:
        return context ? cus_kinds_policy(context, call->launch->f) : CUS_POLICY_GRAPH;
    }
}

bool cus_call_spins(struct cus_context *context, const struct cus_call *call) {
    return __atomic_load_n(&cus_process.never_defer, __ATOMIC_ACQUIRE) &&
           policy_of(context, call) == CUS_POLICY_NEVER_DEFER;
}

void cus_call_note_function(struct cus_context *context, const struct cus_call *call) {
    cus_kinds_learn(context, call->launch);
}

/* ---- making the call ---- */

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

static CUresult real_record(const struct cus_record *r) {
    if (r->with_flags)
        return ((__typeof__(&cuEventRecordWithFlags))r->real)(r->event, r->stream.handle, 0);
    return ((__typeof__(&cuEventRecord))r->real)(r->event, r->stream.handle);
}

static CUresult real_wait(const struct cus_wait *w) {
    return ((__typeof__(&cuStreamWaitEvent))w->real)(w->stream.handle, w->event, 0);
}

CUresult cus_call_real(const struct cus_call *call) {
    CUresult result;
    switch (call->type) {
    case CUS_OP_MEMSET:
        return real_memset(call->memset);
    case CUS_OP_COPY:
        cus_engine_copying(true); /* the memory may be pageable */
        result = real_copy(call->copy);
        cus_engine_copying(false);
        return result;
    case CUS_OP_RECORD:
        return real_record(call->event);
    case CUS_OP_WAIT:
        return real_wait(call->wait);
    default:
        return real_launch(call->launch);
    }
}

CUresult cus_call_timed(const struct cus_call *call) {
    cus_build_yield(&cus_thread_self.build_waits, cus_process.hold_ns);
    if (call->type != CUS_OP_LAUNCH || ++cus_thread_self.issued % CUS_SAMPLE_EVERY)
        return cus_call_real(call);
    uint64_t start = cus_clock_ns();
    CUresult result = cus_call_real(call);
    cus_live_sample(&cus_process.launch_samples, cus_clock_ns() - start);
    return result;
}

void cus_engine_copying(bool begins) {
    CUS_TRACE(.what = CST_CALL_COPYING, .value = begins);
    __atomic_add_fetch(&cus_process.copiers, begins ? 1u : ~0u, __ATOMIC_ACQ_REL);
}
