/*
 * Executable graphs: instantiation, changes of single nodes, whole updates, launches.
 *
 * Any thread, under cusim.lock. A launch uses the plan as it is at the call; a later change copies
 * the plan. The simulator refuses what CUDA refuses: another memory type or kind of memory, another
 * context, copies that are not one-dimensional, 2-D memsets of another size, empty ones, and a
 * memset larger than at instantiation.
 */
#include "harness/sim/graph.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

size_t cusim_graph_bytes, cusim_graph_held;
enum { NODE_BYTES = 2048 };

static struct cusim_exec *exec_get(CUgraphExec handle) {
    return cusim_handle_is(handle, CUSIM_EXEC) ? (struct cusim_exec *)handle : NULL;
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, cuuint64_t flags) {
    struct cusim_graph *graph = (struct cusim_graph *)handle;
    CUresult result;
    if (!out || !cusim_handle_is(handle, CUSIM_GRAPH) || graph->capture)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & ~(cuuint64_t)0xf)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        return CUDA_ERROR_NOT_SUPPORTED;
    result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_exec *exec = calloc(1, sizeof *exec);
    exec->plan = cusim_plan_new(graph, &exec->entries, &exec->n_entries, &result);
    if (exec->plan) {
        exec->bytes = (size_t)exec->plan->topology->n * NODE_BYTES;
        if (cusim_mem_used(0) + cusim_graph_bytes + exec->bytes > cusim.options.device_bytes) {
            cusim_plan_unref(exec->plan);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (result != CUDA_SUCCESS) {
        free(exec->entries);
        free(exec);
        return result;
    }
    exec->flags = flags;
    cusim_graph_bytes += exec->bytes;
    if (cusim_graph_held < cusim_graph_bytes)
        cusim_graph_held = cusim_graph_bytes;
    if (cusim_ctx_current(&exec->ctx) != CUDA_SUCCESS)
        exec->ctx = NULL;
    if (exec->ctx)
        cusim_stock_take(exec->ctx, exec->plan->topology->n);
    cusim_handle_add(exec, CUSIM_EXEC);
    *out = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphInstantiate,
             (CUgraphExec * out, CUgraph graph, CUgraphNode *bad, char *text, size_t bytes),
             (out, graph, bad, text, bytes)) {
    (void)text, (void)bytes;
    if (bad)
        *bad = NULL;
    return instantiate(out, graph, 0);
}

CUSIM_LOCKED(cuGraphInstantiate_v2,
             (CUgraphExec * out, CUgraph graph, CUgraphNode *bad, char *text, size_t bytes),
             (out, graph, bad, text, bytes)) {
    (void)text, (void)bytes;
    if (bad)
        *bad = NULL;
    return instantiate(out, graph, 0);
}

CUSIM_LOCKED(cuGraphInstantiateWithFlags,
             (CUgraphExec * out, CUgraph graph, unsigned long long flags), (out, graph, flags)) {
    return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE
                                                      : instantiate(out, graph, flags);
}

/* An upload is stream work without a visible effect; it has its place in the order. */
static CUresult upload(bool ptsz, CUstream stream) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(stream, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (s->capture) {
        cusim_capture_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    cusim_enqueue(s, cusim_work_new(CUSIM_WORK_EMPTY, s->ctx));
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuGraphInstantiateWithParams, _ptsz,
                  (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
                  (out, graph, params)) {
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    params->hErrNode_out = NULL;
    CUresult result = instantiate(out, graph, params->flags);
    if (result == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
        result = upload(ptsz, params->hUploadStream);
    params->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUSIM_LOCKED(cuGraphExecGetFlags, (CUgraphExec handle, cuuint64_t *flags), (handle, flags)) {
    struct cusim_exec *exec = exec_get(handle);
    if (!exec || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphExecDestroy, (CUgraphExec handle), (handle)) {
    struct cusim_exec *exec = exec_get(handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    cusim_handle_remove(exec);
    cusim_graph_bytes -= exec->bytes;
    if (exec->ctx)
        cusim_stock_give(exec->ctx, exec->plan->topology->n);
    cusim_plan_unref(exec->plan); /* launches in flight keep the plan */
    cusim_timeline_unref(exec->last_tl);
    free(exec->entries);
    free(exec);
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

CUSIM_TWIN_LOCKED(cuGraphUpload, _ptsz, (CUgraphExec handle, CUstream stream), (handle, stream)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(stream, ptsz, &s); /* reported first */
    if (result == CUDA_SUCCESS && !exec_get(handle))
        result = CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? upload(ptsz, stream) : result;
}

/* As measured, launches of such graphs wait beside a copy to pageable memory. */
static bool has_host_node(const struct cusim_plan *plan) {
    for (unsigned i = 0; i < plan->topology->n; i++)
        if (plan->work[i]->type == CUSIM_WORK_HOST)
            return true;
    return false;
}

/* As seen with CUPTI 13.0 and driver 580: who times nodes looks at the memory that a memset was
 * made for, whatever its node was changed to, and dies where that has been freed. */
static void look_at_memsets(const struct cusim_exec *exec) {
    for (unsigned i = 0; cusim_activity_begin() && i < exec->n_entries; i++) {
        const struct cusim_entry *e = &exec->entries[i];
        struct cusim_mem *now = e->memory ? cusim_mem_find(e->at) : NULL;
        if (e->memory && (!now || now->id != e->memory || now->freed))
            raise(SIGSEGV);
    }
}

CUSIM_TWIN_LOCKED(cuGraphLaunch, _ptsz, (CUgraphExec handle, CUstream stream), (handle, stream)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(stream, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_exec *exec = exec_get(handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return cusim_capture_child(s, exec->plan);
    if (s->ctx->copiers > 0 && has_host_node(exec->plan)) {
        cusim_gate_hold(s->ctx);
        return cuGraphLaunch_body(ptsz, handle, stream);
    }
    look_at_memsets(exec);
    struct cusim_op *op = cusim_enqueue(s, cusim_work_new(CUSIM_WORK_GRAPH, s->ctx));
    op->run = cusim_graph_run_new(exec->plan);
    if (exec->last_tl)
        cusim_op_depend(op, exec->last_tl, exec->last_target);
    if (exec->last_tl != s->tl) {
        cusim_timeline_unref(exec->last_tl);
        exec->last_tl = cusim_timeline_ref(s->tl);
    }
    exec->last_target = op->seq;
    return CUDA_SUCCESS;
}

/* ---- changes of single nodes ---- */

static struct cusim_entry *entry_get(struct cusim_exec *exec, CUgraphNode handle,
                                     CUgraphNodeType type) {
    struct cusim_node *node = (struct cusim_node *)handle;
    unsigned low = 0, high = exec ? exec->n_entries : 0;
    if (!exec || !cusim_handle_is(handle, CUSIM_NODE))
        return NULL;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if ((uintptr_t)exec->entries[middle].node < (uintptr_t)node)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == exec->n_entries || exec->entries[low].node != node ||
        exec->entries[low].node_id != node->id || exec->entries[low].type != type)
        return NULL;
    return &exec->entries[low];
}

static void put(struct cusim_exec *exec, unsigned index, struct cusim_work *work) {
    exec->plan = cusim_plan_own(exec->plan);
    cusim_work_unref(exec->plan->work[index]);
    exec->plan->work[index] = work;
}

/* The kind of memory that a node depends on. The documentation allows the driver to refuse any
 * other kind. Driver 580 distinguishes only pools, foreign host memory, and all else; on a side
 * of a copy that says HOST it distinguishes no host memory. Mappings have not been measured. */
static bool same_family(struct cusim_operand a, struct cusim_operand b) {
    if (a.kind == CUSIM_MEM_PAGEABLE || b.kind == CUSIM_MEM_PAGEABLE)
        return a.kind == b.kind;
    if (a.device != b.device || a.ctx_id != b.ctx_id)
        return false;
    bool mapping = a.kind == CUSIM_MEM_VIRTUAL || b.kind == CUSIM_MEM_VIRTUAL;
    return cusim.options.measured_rules && !mapping
               ? (a.kind == CUSIM_MEM_POOL) == (b.kind == CUSIM_MEM_POOL)
               : a.kind == b.kind;
}

static bool is_host(struct cusim_operand in) {
    return in.kind == CUSIM_MEM_PAGEABLE || in.kind == CUSIM_MEM_HOST ||
           in.kind == CUSIM_MEM_REGISTERED;
}

static bool same_side(CUmemorytype before, struct cusim_operand a, CUmemorytype now,
                      struct cusim_operand b) {
    if (before != now)
        return false;
    if (cusim.options.measured_rules && now == CU_MEMORYTYPE_HOST && is_host(a) && is_host(b))
        return true;
    return same_family(a, b);
}

static bool memcpy_may_replace(const struct cusim_work_memcpy *a,
                               const struct cusim_work_memcpy *b) {
    return a->height == 1 && a->depth == 1 && b->height == 1 && b->depth == 1 &&
           same_side(a->params.dstMemoryType, a->dst_in, b->params.dstMemoryType, b->dst_in) &&
           same_side(a->params.srcMemoryType, a->src_in, b->params.srcMemoryType, b->src_in);
}

static bool memset_may_replace(const struct cusim_work_memset *a, const struct cusim_work_memset *b,
                               size_t fits) {
    if (a->height != b->height)
        return false;
    if (a->height > 1 && (a->width != b->width || a->element != b->element || a->pitch != b->pitch))
        return false;
    if (cusim.options.measured_rules)
        return true;
    return same_family(a->in, b->in) && a->element == b->element &&
           (a->height > 1 || b->width * b->element <= fits);
}

static bool may_replace(const struct cusim_work *old, const struct cusim_work *new, size_t fits) {
    if (old->type != new->type)
        return false;
    switch (old->type) {
    case CUSIM_WORK_KERNEL:
        return old->ctx == new->ctx && old->kernel.cooperative == new->kernel.cooperative;
    case CUSIM_WORK_MEMCPY:
        return old->ctx == new->ctx &&memcpy_may_replace(&old->memcpy, &new->memcpy);
    case CUSIM_WORK_MEMSET:
        return old->ctx == new->ctx &&memset_may_replace(&old->memset, &new->memset, fits);
    default:
        return true;
    }
}

static CUresult set_node(CUgraphExec handle, CUgraphNode node, CUgraphNodeType type, CUresult made,
                         struct cusim_work *work) {
    struct cusim_exec *exec = exec_get(handle);
    struct cusim_entry *entry = entry_get(exec, node, type);
    if (made != CUDA_SUCCESS)
        return made;
    if (!entry || !may_replace(exec->plan->work[entry->index], work, entry->fits)) {
        cusim_work_unref(work);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (cusim_patch_is_lost())
        cusim_work_unref(work);
    else
        put(exec, entry->index, work);
    return CUDA_SUCCESS;
}

static CUresult set_kernel(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
    struct cusim_exec *exec = exec_get(handle);
    struct cusim_entry *entry = entry_get(exec, node, CU_GRAPH_NODE_TYPE_KERNEL);
    struct cusim_work *work = NULL;
    if (!p || !entry)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult made = cusim_work_of_kernel(p, exec->plan->work[entry->index], &work);
    return set_node(handle, node, CU_GRAPH_NODE_TYPE_KERNEL, made, work);
}

CUSIM_LOCKED(cuGraphExecKernelNodeSetParams_v2,
             (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p),
             (exec, node, p)) {
    return set_kernel(exec, node, p);
}

CUSIM_LOCKED(cuGraphExecKernelNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
             (exec, node, p)) {
    CUDA_KERNEL_NODE_PARAMS q = {0};
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&q, p, sizeof *p);
    return set_kernel(exec, node, &q);
}

CUSIM_LOCKED(cuGraphExecMemcpyNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx),
             (exec, node, p, ctx)) {
    struct cusim_work *work = NULL;
    CUresult made = p ? cusim_work_of_memcpy(p, ctx, &work) : CUDA_ERROR_INVALID_VALUE;
    return set_node(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, made, work);
}

CUSIM_LOCKED(cuGraphExecMemsetNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
             (exec, node, p, ctx)) {
    struct cusim_work *work = NULL;
    CUresult made = p ? cusim_work_of_memset(p, ctx, &work) : CUDA_ERROR_INVALID_VALUE;
    return set_node(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, made, work);
}

CUSIM_LOCKED(cuGraphExecHostNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p),
             (exec, node, p)) {
    struct cusim_work *work = NULL;
    CUresult made = p ? cusim_work_of_host(p, &work) : CUDA_ERROR_INVALID_VALUE;
    return set_node(exec, node, CU_GRAPH_NODE_TYPE_HOST, made, work);
}

/* Is the event of an event node the one that it was? */
static bool is_alive(const struct cusim_work *work) {
    return cusim_handle_is(work->event.event, CUSIM_EVENT) &&
           ((struct cusim_event *)work->event.event)->raw == work->event.id;
}

CUSIM_LOCKED(cuGraphExecEventRecordNodeSetEvent,
             (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event)) {
    struct cusim_work *work = NULL;
    struct cusim_entry *entry = entry_get(exec_get(exec), node, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    /* As driver 580 does it (tests/gpu/DRIVER.md). */
    if (entry && !is_alive(exec_get(exec)->plan->work[entry->index]))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult made = cusim_work_of_event(CUSIM_WORK_RECORD, event, &work);
    return set_node(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, made, work);
}

CUSIM_LOCKED(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event),
             (exec, node, event)) {
    struct cusim_work *work = NULL;
    CUresult made = cusim_work_of_event(CUSIM_WORK_WAIT, event, &work);
    return set_node(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, made, work);
}

CUSIM_LOCKED(cuGraphExecNodeSetParams, (CUgraphExec handle, CUgraphNode node, CUgraphNodeParams *p),
             (handle, node, p)) {
    struct cusim_exec *exec = exec_get(handle);
    struct cusim_entry *entry = p ? entry_get(exec, node, p->type) : NULL;
    struct cusim_work *work = NULL;
    if (!entry || p->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult made = cusim_work_of_params(p, exec->plan->work[entry->index], &work);
    return set_node(handle, node, p->type, made, work);
}

static struct cusim_entry *entry_switchable(struct cusim_exec *exec, CUgraphNode node) {
    struct cusim_entry *entry = entry_get(exec, node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!entry)
        entry = entry_get(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY);
    return entry ? entry : entry_get(exec, node, CU_GRAPH_NODE_TYPE_MEMSET);
}

CUSIM_LOCKED(cuGraphNodeSetEnabled, (CUgraphExec handle, CUgraphNode node, unsigned enabled),
             (handle, node, enabled)) {
    struct cusim_exec *exec = exec_get(handle);
    struct cusim_entry *entry = entry_switchable(exec, node);
    if (!entry)
        return CUDA_ERROR_INVALID_VALUE;
    exec->plan = cusim_plan_own(exec->plan);
    exec->plan->enabled[entry->index] = enabled != 0;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphNodeGetEnabled, (CUgraphExec handle, CUgraphNode node, unsigned *enabled),
             (handle, node, enabled)) {
    struct cusim_exec *exec = exec_get(handle);
    struct cusim_entry *entry = entry_switchable(exec, node);
    if (!entry || !enabled)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = exec->plan->enabled[entry->index];
    return CUDA_SUCCESS;
}

/* ---- whole updates ---- */

static bool same_topology(const struct cusim_topology *a, const struct cusim_topology *b) {
    return a->n == b->n && memcmp(a->indegree, b->indegree, a->n * sizeof *a->indegree) == 0 &&
           memcmp(a->successors_at, b->successors_at, (a->n + 1) * sizeof *a->successors_at) == 0 &&
           memcmp(a->successors, b->successors, a->successors_at[a->n] * sizeof *a->successors) ==
               0;
}

static CUgraphExecUpdateResult update(struct cusim_exec *exec, struct cusim_graph *graph) {
    CUresult result;
    struct cusim_plan *plan = cusim_plan_new(graph, NULL, NULL, &result);
    if (!plan)
        return CU_GRAPH_EXEC_UPDATE_ERROR;
    CUgraphExecUpdateResult outcome = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    const struct cusim_topology *t = exec->plan->topology;
    if (!same_topology(t, plan->topology))
        outcome = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (unsigned e = 0; e < exec->n_entries && outcome == CU_GRAPH_EXEC_UPDATE_SUCCESS; e++) {
        unsigned i = exec->entries[e].index;
        if (exec->plan->work[i]->type != plan->work[i]->type)
            outcome = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        else if (!may_replace(exec->plan->work[i], plan->work[i], exec->entries[e].fits))
            outcome = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    for (unsigned i = 0; i < t->n && outcome == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++)
        put(exec, i, cusim_work_ref(plan->work[i]));
    cusim_plan_unref(plan);
    return outcome;
}

CUSIM_LOCKED(cuGraphExecUpdate_v2,
             (CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo *info),
             (handle, graph, info)) {
    struct cusim_exec *exec = exec_get(handle);
    if (!exec || !info || !cusim_handle_is(graph, CUSIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    memset(info, 0, sizeof *info);
    info->result = update(exec, (struct cusim_graph *)graph);
    return info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                        : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUSIM_LOCKED(cuGraphExecUpdate,
             (CUgraphExec handle, CUgraph graph, CUgraphNode *bad, CUgraphExecUpdateResult *result),
             (handle, graph, bad, result)) {
    struct cusim_exec *exec = exec_get(handle);
    if (!exec || !result || !cusim_handle_is(graph, CUSIM_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (bad)
        *bad = NULL;
    *result = update(exec, (struct cusim_graph *)graph);
    return *result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                   : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

/* ---- memory of graphs ---- */

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    CUSIM_ENTER(cuDeviceGraphMemTrim);
    return cusim_device_get(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute id, void *value) {
    CUSIM_ENTER(cuDeviceGetGraphMemAttribute);
    (void)id;
    if (!cusim_device_get(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    *(cuuint64_t *)value = 0;
    return CUDA_SUCCESS;
}
