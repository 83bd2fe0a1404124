/*
 * Attributes of kernel nodes. Attributes that only launches have (programmatic serialisation,
 * events) cannot be read from a node.
 *
 * Any thread, under cusim.lock.
 */
#include "harness/sim/graph.h"

#include <stdlib.h>
#include <string.h>

static struct cusim_node *kernel_node(CUgraphNode handle) {
    struct cusim_node *node = (struct cusim_node *)handle;
    return cusim_handle_is(handle, CUSIM_NODE) && node->type == CU_GRAPH_NODE_TYPE_KERNEL ? node
                                                                                          : NULL;
}

static bool of_nodes(CUkernelNodeAttrID id) {
    return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
           id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
           id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE ||
           id == CU_LAUNCH_ATTRIBUTE_PRIORITY || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN ||
           id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE ||
           id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
}

CUSIM_LOCKED(cuGraphKernelNodeGetAttribute,
             (CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value),
             (handle, id, value)) {
    struct cusim_node *node = kernel_node(handle);
    if (!node || !value || !of_nodes(id))
        return CUDA_ERROR_INVALID_VALUE;
    const struct cusim_work_kernel *k = &node->work->kernel;
    memset(value, 0, sizeof *value);
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        value->cooperative = k->cooperative;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        value->clusterDim.x = k->kernel->cluster[0];
        value->clusterDim.y = k->kernel->cluster[1];
        value->clusterDim.z = k->kernel->cluster[2];
    }
    for (unsigned i = 0; i < k->n_attrs; i++)
        if (k->attrs[i].id == id)
            *value = k->attrs[i].value;
    return CUDA_SUCCESS;
}

/* Gives the node new work: the old work with other attributes. */
static CUresult set_attributes(struct cusim_node *node, const CUlaunchAttribute *attrs, unsigned n,
                               bool cooperative) {
    const struct cusim_work_kernel *k = &node->work->kernel;
    struct cusim_work *work;
    struct cusim_launch l = {.func = (CUfunction)k->resolved,
                             .grid = {k->grid[0], k->grid[1], k->grid[2]},
                             .block = {k->block[0], k->block[1], k->block[2]},
                             .smem = k->smem,
                             .cooperative = cooperative,
                             .attrs = attrs,
                             .n_attrs = n,
                             .params = k->argv};
    CUresult result = cusim_kernel_make(&l, node->work->ctx, &work);
    if (result == CUDA_SUCCESS) {
        cusim_work_unref(node->work);
        node->work = work;
    }
    return result;
}

CUSIM_LOCKED(cuGraphKernelNodeSetAttribute,
             (CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value),
             (handle, id, value)) {
    struct cusim_node *node = kernel_node(handle);
    if (!node || !value || !of_nodes(id))
        return CUDA_ERROR_INVALID_VALUE;
    const struct cusim_work_kernel *k = &node->work->kernel;
    unsigned n = 0;
    CUlaunchAttribute *attrs = calloc(k->n_attrs + 1, sizeof *attrs);
    for (unsigned i = 0; i < k->n_attrs; i++)
        if (k->attrs[i].id != id)
            attrs[n++] = k->attrs[i];
    attrs[n].id = id;
    attrs[n++].value = *value;
    CUresult result = set_attributes(node, attrs, n, k->cooperative);
    free(attrs);
    return result;
}

CUSIM_LOCKED(cuGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from), (to, from)) {
    struct cusim_node *a = kernel_node(to), *b = kernel_node(from);
    if (!a || !b)
        return CUDA_ERROR_INVALID_VALUE;
    const struct cusim_work_kernel *k = &b->work->kernel;
    return set_attributes(a, k->attrs, k->n_attrs, k->cooperative);
}
