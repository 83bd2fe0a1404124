/*
 * Nodes of explicit graphs: creation, and reading and changing their work.
 *
 * Any thread, under cusim.lock. Work is immutable: a change gives the node new work, and executable
 * graphs made before keep the old one.
 */
#include "harness/sim/graph.h"

#include <stdlib.h>
#include <string.h>

static struct cusim_node *node_get(CUgraphNode handle, CUgraphNodeType type) {
    struct cusim_node *node = (struct cusim_node *)handle;
    return cusim_handle_is(handle, CUSIM_NODE) && node->type == type ? node : NULL;
}

static void replace(struct cusim_node *node, struct cusim_work *work) {
    cusim_work_unref(node->work);
    node->work = work;
}

/* ---- from parameters to work ---- */

static CUresult ctx_of(CUcontext handle, struct cusim_ctx **ctx) {
    if (!handle)
        return cusim_ctx_current(ctx);
    if (!cusim_handle_is(handle, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ctx = (struct cusim_ctx *)handle;
    return cusim_ctx_check(*ctx);
}

CUresult cusim_work_of_kernel(const CUDA_KERNEL_NODE_PARAMS *p, const struct cusim_work *old,
                              struct cusim_work **out) {
    struct cusim_ctx *ctx;
    CUfunction func = p->func ? p->func : (CUfunction)p->kern;
    if (!func)
        return CUDA_ERROR_INVALID_VALUE;
    if (cusim_handle_is(func, CUSIM_FUNC)) {
        ctx = ((struct cusim_func *)func)->ctx;
    } else {
        CUresult result = ctx_of(p->func ? NULL : p->ctx, &ctx);
        if (result != CUDA_SUCCESS)
            return result;
    }
    struct cusim_launch l = {.func = func,
                             .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                             .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                             .smem = p->sharedMemBytes,
                             .params = p->kernelParams,
                             .extra = p->extra};
    if (old) { /* attributes belong to the node, not to its parameters */
        l.cooperative = old->kernel.cooperative;
        l.attrs = old->kernel.attrs;
        l.n_attrs = old->kernel.n_attrs;
        if (l.cooperative && l.extra)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return cusim_kernel_make(&l, ctx, out);
}

CUresult cusim_work_of_memcpy(const CUDA_MEMCPY3D *p, CUcontext handle, struct cusim_work **out) {
    struct cusim_ctx *ctx;
    struct cusim_work_memcpy m = {0};
    enum cusim_mem_kind dst, src;
    CUresult result = ctx_of(handle, &ctx);
    if (result == CUDA_SUCCESS)
        result = cusim_memcpy_fill(&m, p, &dst, &src);
    if (result != CUDA_SUCCESS)
        return result;
    *out = cusim_work_new(CUSIM_WORK_MEMCPY, ctx);
    (*out)->memcpy = m;
    return CUDA_SUCCESS;
}

CUresult cusim_work_of_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext handle,
                              struct cusim_work **out) {
    struct cusim_ctx *ctx;
    struct cusim_work_memset m;
    enum cusim_mem_kind kind;
    CUresult result = ctx_of(handle, &ctx);
    if (result == CUDA_SUCCESS)
        result = cusim_memset_fill(&m, p->dst, p->pitch, p->value, p->elementSize, p->width,
                                   p->height, &kind);
    if (result != CUDA_SUCCESS)
        return result;
    *out = cusim_work_new(CUSIM_WORK_MEMSET, ctx);
    (*out)->memset = m;
    return CUDA_SUCCESS;
}

CUresult cusim_work_of_host(const CUDA_HOST_NODE_PARAMS *p, struct cusim_work **out) {
    if (!p->fn)
        return CUDA_ERROR_INVALID_VALUE;
    *out = cusim_work_new(CUSIM_WORK_HOST, NULL);
    (*out)->host.fn = p->fn;
    (*out)->host.data = p->userData;
    return CUDA_SUCCESS;
}

CUresult cusim_work_of_event(enum cusim_work_type type, CUevent event, struct cusim_work **out) {
    if (!cusim_handle_is(event, CUSIM_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    *out = cusim_work_new(type, ((struct cusim_event *)event)->ctx);
    (*out)->event.event = (struct cusim_event *)event;
    (*out)->event.id = ((struct cusim_event *)event)->raw;
    return CUDA_SUCCESS;
}

CUresult cusim_work_of_params(const CUgraphNodeParams *p, const struct cusim_work *old,
                              struct cusim_work **out) {
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS k = {.func = p->kernel.func,
                                     .gridDimX = p->kernel.gridDimX,
                                     .gridDimY = p->kernel.gridDimY,
                                     .gridDimZ = p->kernel.gridDimZ,
                                     .blockDimX = p->kernel.blockDimX,
                                     .blockDimY = p->kernel.blockDimY,
                                     .blockDimZ = p->kernel.blockDimZ,
                                     .sharedMemBytes = p->kernel.sharedMemBytes,
                                     .kernelParams = p->kernel.kernelParams,
                                     .extra = p->kernel.extra,
                                     .kern = p->kernel.kern,
                                     .ctx = p->kernel.ctx};
        return cusim_work_of_kernel(&k, old, out);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cusim_work_of_memcpy(&p->memcpy.copyParams, p->memcpy.copyCtx, out);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS m = {.dst = p->memset.dst,
                                     .pitch = p->memset.pitch,
                                     .value = p->memset.value,
                                     .elementSize = p->memset.elementSize,
                                     .width = p->memset.width,
                                     .height = p->memset.height};
        return cusim_work_of_memset(&m, p->memset.ctx, out);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
        CUDA_HOST_NODE_PARAMS h = {.fn = p->host.fn, .userData = p->host.userData};
        return cusim_work_of_host(&h, out);
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *out = cusim_work_new(CUSIM_WORK_EMPTY, NULL);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cusim_work_of_event(CUSIM_WORK_RECORD, p->eventRecord.event, out);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return cusim_work_of_event(CUSIM_WORK_WAIT, p->eventWait.event, out);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* ---- Add ---- */

#define ADD(type, make)                                                                            \
    struct cusim_work *work;                                                                       \
    if (!params)                                                                                   \
        return CUDA_ERROR_INVALID_VALUE;                                                           \
    CUresult result = make;                                                                        \
    return result == CUDA_SUCCESS ? cusim_graph_add(out, graph, deps, NULL, n, type, work, NULL)   \
                                  : result;

CUSIM_LOCKED(cuGraphAddKernelNode_v2,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
              const CUDA_KERNEL_NODE_PARAMS *params),
             (out, graph, deps, n, params)) {
    ADD(CU_GRAPH_NODE_TYPE_KERNEL, cusim_work_of_kernel(params, NULL, &work))
}

static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    CUDA_KERNEL_NODE_PARAMS q = {0};
    memcpy(&q, p, sizeof *p);
    return q;
}

CUSIM_LOCKED(cuGraphAddKernelNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
              const CUDA_KERNEL_NODE_PARAMS_v1 *params),
             (out, graph, deps, n, params)) {
    CUDA_KERNEL_NODE_PARAMS q = params ? from_v1(params) : (CUDA_KERNEL_NODE_PARAMS){0};
    ADD(CU_GRAPH_NODE_TYPE_KERNEL, cusim_work_of_kernel(&q, NULL, &work))
}

CUSIM_LOCKED(cuGraphAddMemcpyNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
              const CUDA_MEMCPY3D *params, CUcontext ctx),
             (out, graph, deps, n, params, ctx)){
    ADD(CU_GRAPH_NODE_TYPE_MEMCPY, cusim_work_of_memcpy(params, ctx, &work))}

CUSIM_LOCKED(cuGraphAddMemsetNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
              const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx),
             (out, graph, deps, n, params, ctx)){
    ADD(CU_GRAPH_NODE_TYPE_MEMSET, cusim_work_of_memset(params, ctx, &work))}

CUSIM_LOCKED(cuGraphAddHostNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
              const CUDA_HOST_NODE_PARAMS *params),
             (out, graph, deps, n, params)){
    ADD(CU_GRAPH_NODE_TYPE_HOST, cusim_work_of_host(params, &work))}

CUSIM_LOCKED(cuGraphAddEventRecordNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n, CUevent params),
             (out, graph, deps, n, params)){
    ADD(CU_GRAPH_NODE_TYPE_EVENT_RECORD, cusim_work_of_event(CUSIM_WORK_RECORD, params, &work))}

CUSIM_LOCKED(cuGraphAddEventWaitNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n, CUevent params),
             (out, graph, deps, n, params)){
    ADD(CU_GRAPH_NODE_TYPE_WAIT_EVENT, cusim_work_of_event(CUSIM_WORK_WAIT, params, &work))}

CUSIM_LOCKED(cuGraphAddEmptyNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n),
             (out, graph, deps, n)) {
    return cusim_graph_add(out, graph, deps, NULL, n, CU_GRAPH_NODE_TYPE_EMPTY,
                           cusim_work_new(CUSIM_WORK_EMPTY, NULL), NULL);
}

static CUresult add_child(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                          const CUgraphEdgeData *data, size_t n, CUgraph child) {
    struct cusim_node *node;
    if (!cusim_handle_is(child, CUSIM_GRAPH) || child == graph ||
        ((struct cusim_graph *)child)->capture)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_graph *copy = cusim_graph_clone((struct cusim_graph *)child);
    CUresult result = cusim_graph_add(out, graph, deps, data, n, CU_GRAPH_NODE_TYPE_GRAPH,
                                      cusim_work_new(CUSIM_WORK_EMPTY, NULL), &node);
    if (result != CUDA_SUCCESS) {
        cusim_graph_free(copy);
        return result;
    }
    copy->owner = node;
    node->child = copy;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphAddChildGraphNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n, CUgraph child),
             (out, graph, deps, n, child)) {
    return add_child(out, graph, deps, NULL, n, child);
}

static CUresult add_any(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                        const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *params) {
    struct cusim_work *work;
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return add_child(out, graph, deps, data, n, params->graph.graph);
    CUresult result = cusim_work_of_params(params, NULL, &work);
    return result == CUDA_SUCCESS
               ? cusim_graph_add(out, graph, deps, data, n, params->type, work, NULL)
               : result;
}

CUSIM_LOCKED(cuGraphAddNode,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps, size_t n,
              CUgraphNodeParams *params),
             (out, graph, deps, n, params)) {
    return add_any(out, graph, deps, NULL, n, params);
}

CUSIM_LOCKED(cuGraphAddNode_v2,
             (CUgraphNode * out, CUgraph graph, const CUgraphNode *deps,
              const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *params),
             (out, graph, deps, data, n, params)) {
    return add_any(out, graph, deps, data, n, params);
}

/* ---- Get and Set ---- */

static CUresult kernel_get(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *p) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !p)
        return CUDA_ERROR_INVALID_VALUE;
    const struct cusim_work_kernel *k = &node->work->kernel;
    *p = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)k->resolved,
                                   .gridDimX = k->grid[0],
                                   .gridDimY = k->grid[1],
                                   .gridDimZ = k->grid[2],
                                   .blockDimX = k->block[0],
                                   .blockDimY = k->block[1],
                                   .blockDimZ = k->block[2],
                                   .sharedMemBytes = k->smem,
                                   .kernelParams = k->argv,
                                   .kern = (CUkernel)k->resolved->kern,
                                   .ctx = (CUcontext)node->work->ctx};
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p),
             (node, p)) {
    return kernel_get(node, p);
}

CUSIM_LOCKED(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p),
             (node, p)) {
    CUDA_KERNEL_NODE_PARAMS q;
    CUresult result = p ? kernel_get(node, &q) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(p, &q, sizeof *p);
    return result;
}

static CUresult kernel_set(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *p) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_KERNEL);
    struct cusim_work *work;
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_work_of_kernel(p, node->work, &work);
    if (result == CUDA_SUCCESS)
        replace(node, work);
    return result;
}

CUSIM_LOCKED(cuGraphKernelNodeSetParams_v2, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p),
             (node, p)) {
    return p ? kernel_set(node, p) : CUDA_ERROR_INVALID_VALUE;
}

CUSIM_LOCKED(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
             (node, p)) {
    CUDA_KERNEL_NODE_PARAMS q = p ? from_v1(p) : (CUDA_KERNEL_NODE_PARAMS){0};
    return p ? kernel_set(node, &q) : CUDA_ERROR_INVALID_VALUE;
}

CUSIM_LOCKED(cuGraphMemcpyNodeGetParams, (CUgraphNode handle, CUDA_MEMCPY3D *p), (handle, p)) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (!node || !p)
        return CUDA_ERROR_INVALID_VALUE;
    *p = node->work->memcpy.params;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphMemcpyNodeSetParams, (CUgraphNode handle, const CUDA_MEMCPY3D *p),
             (handle, p)) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
    struct cusim_work *work;
    if (!node || !p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_work_of_memcpy(p, (CUcontext)node->work->ctx, &work);
    if (result == CUDA_SUCCESS)
        replace(node, work);
    return result;
}

CUSIM_LOCKED(cuGraphMemsetNodeGetParams, (CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *p),
             (handle, p)) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_MEMSET);
    if (!node || !p)
        return CUDA_ERROR_INVALID_VALUE;
    const struct cusim_work_memset *m = &node->work->memset;
    *p = (CUDA_MEMSET_NODE_PARAMS){.dst = m->dst,
                                   .pitch = m->pitch,
                                   .value = m->value,
                                   .elementSize = m->element,
                                   .width = m->width,
                                   .height = m->height};
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphMemsetNodeSetParams, (CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS *p),
             (handle, p)) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_MEMSET);
    struct cusim_work *work;
    if (!node || !p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_work_of_memset(p, (CUcontext)node->work->ctx, &work);
    if (result == CUDA_SUCCESS)
        replace(node, work);
    return result;
}

CUSIM_LOCKED(cuGraphHostNodeGetParams, (CUgraphNode handle, CUDA_HOST_NODE_PARAMS *p),
             (handle, p)) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_HOST);
    if (!node || !p)
        return CUDA_ERROR_INVALID_VALUE;
    p->fn = node->work->host.fn;
    p->userData = node->work->host.data;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphHostNodeSetParams, (CUgraphNode handle, const CUDA_HOST_NODE_PARAMS *p),
             (handle, p)) {
    struct cusim_node *node = node_get(handle, CU_GRAPH_NODE_TYPE_HOST);
    struct cusim_work *work;
    if (!node || !p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_work_of_host(p, &work);
    if (result == CUDA_SUCCESS)
        replace(node, work);
    return result;
}

static CUresult event_get(CUgraphNode handle, CUgraphNodeType type, CUevent *event) {
    struct cusim_node *node = node_get(handle, type);
    if (!node || !event)
        return CUDA_ERROR_INVALID_VALUE;
    *event = (CUevent)node->work->event.event;
    return CUDA_SUCCESS;
}

static CUresult event_set(CUgraphNode handle, CUgraphNodeType type, CUevent event) {
    struct cusim_node *node = node_get(handle, type);
    struct cusim_work *work;
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_work_of_event(node->work->type, event, &work);
    if (result == CUDA_SUCCESS)
        replace(node, work);
    return result;
}

CUSIM_LOCKED(cuGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent *event), (node, event)) {
    return event_get(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
CUSIM_LOCKED(cuGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event), (node, event)) {
    return event_set(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
CUSIM_LOCKED(cuGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent *event), (node, event)) {
    return event_get(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}
CUSIM_LOCKED(cuGraphEventWaitNodeSetEvent, (CUgraphNode node, CUevent event), (node, event)) {
    return event_set(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUSIM_LOCKED(cuGraphNodeSetParams, (CUgraphNode handle, CUgraphNodeParams *p), (handle, p)) {
    struct cusim_node *node = p ? node_get(handle, p->type) : NULL;
    struct cusim_work *work;
    if (!node || node->child)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_work_of_params(p, node->work, &work);
    if (result == CUDA_SUCCESS)
        replace(node, work);
    return result;
}
