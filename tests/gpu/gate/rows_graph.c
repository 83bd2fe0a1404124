/* Graphs of the program: templates, nodes, executable graphs, user objects. */
#include "tests/gpu/gate/gate.h"

#include <string.h>

/* A graph of one node each of these kinds, chained, and what instantiation makes of it. */
struct nodes {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode kernel, memset, memcpy, host, record, wait, child, empty;
    CUevent event;
    CUgraph inner;
};

static CUDA_HOST_NODE_PARAMS host_params(void) {
    CUDA_HOST_NODE_PARAMS node = {.fn = gate_nothing};
    return node;
}

static struct nodes *nodes_new(struct gate *g, bool instantiate) {
    struct nodes *n = OUT(struct nodes, 15);
    CUDA_KERNEL_NODE_PARAMS kernel = gate_kernel_params(g);
    CUDA_MEMSET_NODE_PARAMS fill = gate_memset_params(g);
    CUDA_MEMCPY3D copy = gate_memcpy_params(g);
    CUDA_HOST_NODE_PARAMS host = host_params();
    n->event = gate_event(g, CU_EVENT_DEFAULT);
    n->inner = gate_graph(g, 2, NULL);
    TRY(cuGraphCreate, (&n->graph, 0));
    TRY(cuGraphAddKernelNode_v2, (&n->kernel, n->graph, NULL, 0, &kernel));
    TRY(cuGraphAddMemsetNode, (&n->memset, n->graph, &n->kernel, 1, &fill, g->context));
    TRY(cuGraphAddMemcpyNode, (&n->memcpy, n->graph, &n->memset, 1, &copy, g->context));
    TRY(cuGraphAddHostNode, (&n->host, n->graph, &n->memcpy, 1, &host));
    TRY(cuGraphAddEventRecordNode, (&n->record, n->graph, &n->host, 1, n->event));
    TRY(cuGraphAddEventWaitNode, (&n->wait, n->graph, &n->record, 1, n->event));
    TRY(cuGraphAddChildGraphNode, (&n->child, n->graph, &n->wait, 1, n->inner));
    TRY(cuGraphAddEmptyNode, (&n->empty, n->graph, &n->child, 1));
    if (instantiate)
        n->exec = gate_exec(g, n->graph);
    return n;
}

static void nodes_free(struct gate *g, struct nodes *n) {
    if (n->exec)
        TRY(cuGraphExecDestroy, (n->exec));
    TRY(cuGraphDestroy, (n->graph));
    TRY(cuGraphDestroy, (n->inner));
    TRY(cuEventDestroy_v2, (n->event));
}

/* A row on such a graph; `before` may declare. */
#define NODES(symbol, before, arguments)                                                           \
    ROW(symbol) {                                                                                  \
        struct nodes *n = nodes_new(g, false);                                                     \
        before;                                                                                    \
        GATE(symbol, arguments);                                                                   \
        nodes_free(g, n);                                                                          \
    }
#define EXEC(symbol, before, arguments)                                                            \
    ROW(symbol) {                                                                                  \
        struct nodes *n = nodes_new(g, true);                                                      \
        before;                                                                                    \
        GATE(symbol, arguments);                                                                   \
        TRY(cuCtxSynchronize, ());                                                                 \
        nodes_free(g, n);                                                                          \
    }

#define KERNEL_PARAMS CUDA_KERNEL_NODE_PARAMS params = gate_kernel_params(g)
#define KERNEL_PARAMS_V1                                                                           \
    CUDA_KERNEL_NODE_PARAMS_v1 params;                                                             \
    CUDA_KERNEL_NODE_PARAMS params_v2 = gate_kernel_params(g);                                     \
    memcpy(&params, &params_v2, sizeof params)
#define MEMSET_PARAMS CUDA_MEMSET_NODE_PARAMS params = gate_memset_params(g)
#define MEMCPY_PARAMS CUDA_MEMCPY3D params = gate_memcpy_params(g)
#define HOST_PARAMS CUDA_HOST_NODE_PARAMS params = host_params()
#define ANY_PARAMS                                                                                 \
    CUgraphNodeParams *params = OUT(CUgraphNodeParams, 3);                                         \
    params->type = CU_GRAPH_NODE_TYPE_MEMSET;                                                      \
    params->memset.dst = g->memory;                                                                \
    params->memset.elementSize = 1;                                                                \
    params->memset.width = 256;                                                                    \
    params->memset.height = 1;                                                                     \
    params->memset.ctx = g->context

/* ---- templates ---- */

ROW(cuGraphCreate) {
    GATE(cuGraphCreate, (OUT(CUgraph, 0), 0));
    TRY(cuGraphDestroy, (*OUT(CUgraph, 0)));
}
ROW(cuGraphDestroy) {
    CUgraph graph = gate_graph(g, 10, NULL);
    GATE_END(cuGraphDestroy, (graph));
}
ROW(cuGraphClone) {
    CUgraph graph = gate_graph(g, 10, NULL);
    GATE(cuGraphClone, (OUT(CUgraph, 0), graph));
    TRY(cuGraphDestroy, (*OUT(CUgraph, 0)));
    TRY(cuGraphDestroy, (graph));
}
NODES(cuGraphDebugDotPrint, , (n->graph, g->temporary, 0))
NODES(cuGraphDestroyNode, , (n->empty))
NODES(cuGraphAddEmptyNode, , (OUT(CUgraphNode, 0), n->graph, NULL, 0))
NODES(cuGraphAddKernelNode, KERNEL_PARAMS_V1, (OUT(CUgraphNode, 0), n->graph, NULL, 0, &params))
NODES(cuGraphAddKernelNode_v2, KERNEL_PARAMS, (OUT(CUgraphNode, 0), n->graph, NULL, 0, &params))
NODES(cuGraphAddMemsetNode, MEMSET_PARAMS,
      (OUT(CUgraphNode, 0), n->graph, NULL, 0, &params, g->context))
NODES(cuGraphAddMemcpyNode, MEMCPY_PARAMS,
      (OUT(CUgraphNode, 0), n->graph, NULL, 0, &params, g->context))
NODES(cuGraphAddHostNode, HOST_PARAMS, (OUT(CUgraphNode, 0), n->graph, NULL, 0, &params))
NODES(cuGraphAddEventRecordNode, , (OUT(CUgraphNode, 0), n->graph, NULL, 0, n->event))
NODES(cuGraphAddEventWaitNode, , (OUT(CUgraphNode, 0), n->graph, NULL, 0, n->event))
NODES(cuGraphAddChildGraphNode, , (OUT(CUgraphNode, 0), n->graph, NULL, 0, n->inner))
NODES(cuGraphAddNode, ANY_PARAMS, (OUT(CUgraphNode, 0), n->graph, NULL, 0, params))
NODES(cuGraphAddNode_v2, ANY_PARAMS, (OUT(CUgraphNode, 0), n->graph, NULL, NULL, 0, params))
NODES(cuGraphAddDependencies, , (n->graph, &n->kernel, &n->empty, 1))
NODES(cuGraphAddDependencies_v2, , (n->graph, &n->kernel, &n->empty, NULL, 1))
NODES(cuGraphRemoveDependencies, , (n->graph, &n->child, &n->empty, 1))
NODES(cuGraphRemoveDependencies_v2, , (n->graph, &n->child, &n->empty, NULL, 1))
#define COUNT *OUT(size_t, 5) = 8
NODES(cuGraphGetNodes, COUNT, (n->graph, OUT(CUgraphNode, 0), OUT(size_t, 5)))
NODES(cuGraphGetRootNodes, COUNT, (n->graph, OUT(CUgraphNode, 0), OUT(size_t, 5)))
NODES(cuGraphGetEdges, COUNT, (n->graph, OUT(CUgraphNode, 0), OUT(CUgraphNode, 1), OUT(size_t, 5)))
NODES(cuGraphGetEdges_v2, COUNT,
      (n->graph, OUT(CUgraphNode, 0), OUT(CUgraphNode, 1), OUT(CUgraphEdgeData, 2), OUT(size_t, 5)))
NODES(cuGraphNodeGetDependencies, COUNT, (n->empty, OUT(CUgraphNode, 0), OUT(size_t, 5)))
NODES(cuGraphNodeGetDependencies_v2, COUNT,
      (n->empty, OUT(CUgraphNode, 0), OUT(CUgraphEdgeData, 1), OUT(size_t, 5)))
NODES(cuGraphNodeGetDependentNodes, COUNT, (n->kernel, OUT(CUgraphNode, 0), OUT(size_t, 5)))
NODES(cuGraphNodeGetDependentNodes_v2, COUNT,
      (n->kernel, OUT(CUgraphNode, 0), OUT(CUgraphEdgeData, 1), OUT(size_t, 5)))
NODES(cuGraphNodeGetType, , (n->kernel, OUT(CUgraphNodeType, 0)))
ROW(cuGraphNodeFindInClone) {
    CUgraphNode node = NULL;
    CUgraph graph = gate_graph(g, 10, &node), copy = NULL;
    TRY(cuGraphClone, (&copy, graph));
    GATE(cuGraphNodeFindInClone, (OUT(CUgraphNode, 0), node, copy));
    TRY(cuGraphDestroy, (copy));
    TRY(cuGraphDestroy, (graph));
}

/* ---- nodes of a template ---- */

NODES(cuGraphKernelNodeGetParams, , (n->kernel, OUT(CUDA_KERNEL_NODE_PARAMS_v1, 0)))
NODES(cuGraphKernelNodeGetParams_v2, , (n->kernel, OUT(CUDA_KERNEL_NODE_PARAMS, 0)))
NODES(cuGraphKernelNodeSetParams, KERNEL_PARAMS_V1, (n->kernel, &params))
NODES(cuGraphKernelNodeSetParams_v2, KERNEL_PARAMS, (n->kernel, &params))
NODES(cuGraphKernelNodeGetAttribute, ,
      (n->kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, OUT(CUkernelNodeAttrValue, 0)))
NODES(cuGraphKernelNodeSetAttribute, ,
      (n->kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, OUT(CUkernelNodeAttrValue, 0)))
NODES(cuGraphKernelNodeCopyAttributes, KERNEL_PARAMS; CUgraphNode other = NULL;
      TRY(cuGraphAddKernelNode_v2, (&other, n->graph, NULL, 0, &params)), (other, n->kernel))
NODES(cuGraphMemsetNodeGetParams, , (n->memset, OUT(CUDA_MEMSET_NODE_PARAMS, 0)))
NODES(cuGraphMemsetNodeSetParams, MEMSET_PARAMS, (n->memset, &params))
NODES(cuGraphMemcpyNodeGetParams, , (n->memcpy, OUT(CUDA_MEMCPY3D, 0)))
NODES(cuGraphMemcpyNodeSetParams, MEMCPY_PARAMS, (n->memcpy, &params))
NODES(cuGraphHostNodeGetParams, , (n->host, OUT(CUDA_HOST_NODE_PARAMS, 0)))
NODES(cuGraphHostNodeSetParams, HOST_PARAMS, (n->host, &params))
NODES(cuGraphEventRecordNodeGetEvent, , (n->record, OUT(CUevent, 0)))
NODES(cuGraphEventRecordNodeSetEvent, , (n->record, n->event))
NODES(cuGraphEventWaitNodeGetEvent, , (n->wait, OUT(CUevent, 0)))
NODES(cuGraphEventWaitNodeSetEvent, , (n->wait, n->event))
NODES(cuGraphChildGraphNodeGetGraph, , (n->child, OUT(CUgraph, 0)))
NODES(cuGraphNodeSetParams, ANY_PARAMS, (n->memset, params))

/* ---- nodes that hold memory, and batches ---- */

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(struct gate *g) {
    CUDA_MEM_ALLOC_NODE_PARAMS node = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = gate_location(g)},
        .bytesize = GATE_BYTES};
    return node;
}
#define ALLOCATED(symbol, add_free, arguments)                                                     \
    ROW(symbol) {                                                                                  \
        CUgraph graph = NULL;                                                                      \
        CUgraphNode alloc = NULL, release = NULL;                                                  \
        CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(g);                                       \
        TRY(cuGraphCreate, (&graph, 0));                                                           \
        TRY(cuGraphAddMemAllocNode, (&alloc, graph, NULL, 0, &params));                            \
        if (add_free)                                                                              \
            TRY(cuGraphAddMemFreeNode, (&release, graph, &alloc, 1, params.dptr));                 \
        GATE(symbol, arguments);                                                                   \
        TRY(cuGraphDestroy, (graph));                                                              \
    }
ROW(cuGraphAddMemAllocNode) {
    CUgraph graph = NULL;
    CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(g);
    TRY(cuGraphCreate, (&graph, 0));
    GATE(cuGraphAddMemAllocNode, (OUT(CUgraphNode, 0), graph, NULL, 0, &params));
    TRY(cuGraphDestroy, (graph));
}
ALLOCATED(cuGraphAddMemFreeNode, false, (OUT(CUgraphNode, 0), graph, &alloc, 1, params.dptr))
ALLOCATED(cuGraphMemAllocNodeGetParams, true, (alloc, OUT(CUDA_MEM_ALLOC_NODE_PARAMS, 0)))
ALLOCATED(cuGraphMemFreeNodeGetParams, true, (release, OUT(CUdeviceptr, 0)))

static CUDA_BATCH_MEM_OP_NODE_PARAMS batch_params(struct gate *g) {
    CUstreamBatchMemOpParams *one = OUT(CUstreamBatchMemOpParams, 13);
    one->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    one->writeValue.address = g->memory;
    one->writeValue.value = 1;
    CUDA_BATCH_MEM_OP_NODE_PARAMS node = {.ctx = g->context, .count = 1, .paramArray = one};
    return node;
}
#define BATCH(symbol, arguments)                                                                   \
    ROW(symbol) {                                                                                  \
        CUgraph graph = NULL;                                                                      \
        CUgraphNode node = NULL;                                                                   \
        CUDA_BATCH_MEM_OP_NODE_PARAMS params = batch_params(g);                                    \
        TRY(cuGraphCreate, (&graph, 0));                                                           \
        TRY(cuGraphAddBatchMemOpNode, (&node, graph, NULL, 0, &params));                           \
        CUgraphExec exec = gate_exec(g, graph);                                                    \
        GATE(symbol, arguments);                                                                   \
        TRY(cuGraphExecDestroy, (exec));                                                           \
        TRY(cuGraphDestroy, (graph));                                                              \
    }
BATCH(cuGraphAddBatchMemOpNode, (OUT(CUgraphNode, 0), graph, NULL, 0, &params))
BATCH(cuGraphBatchMemOpNodeGetParams, (node, OUT(CUDA_BATCH_MEM_OP_NODE_PARAMS, 0)))
BATCH(cuGraphBatchMemOpNodeSetParams, (node, &params))
BATCH(cuGraphExecBatchMemOpNodeSetParams, (exec, node, &params))
NODES(cuGraphConditionalHandleCreate, ,
      (OUT(CUgraphConditionalHandle, 0), n->graph, g->context, 1, 0))

/* ---- executable graphs ---- */

#define INSTANTIATE(symbol, arguments)                                                             \
    ROW(symbol) {                                                                                  \
        struct nodes *n = nodes_new(g, false);                                                     \
        GATE(symbol, arguments);                                                                   \
        TRY(cuGraphExecDestroy, (*OUT(CUgraphExec, 0)));                                           \
        nodes_free(g, n);                                                                          \
    }
INSTANTIATE(cuGraphInstantiate,
            (OUT(CUgraphExec, 0), n->graph, OUT(CUgraphNode, 1), OUT(char, 2), 64))
INSTANTIATE(cuGraphInstantiate_v2,
            (OUT(CUgraphExec, 0), n->graph, OUT(CUgraphNode, 1), OUT(char, 2), 64))
INSTANTIATE(cuGraphInstantiateWithFlags, (OUT(CUgraphExec, 0), n->graph, 0))
INSTANTIATE(cuGraphInstantiateWithParams,
            (OUT(CUgraphExec, 0), n->graph, OUT(CUDA_GRAPH_INSTANTIATE_PARAMS, 1)))
INSTANTIATE(cuGraphInstantiateWithParams_ptsz,
            (OUT(CUgraphExec, 0), n->graph, OUT(CUDA_GRAPH_INSTANTIATE_PARAMS, 1)))
ROW(cuGraphExecDestroy) {
    CUgraph graph = gate_graph(g, 10, NULL);
    CUgraphExec exec = gate_exec(g, graph);
    TRY(cuGraphLaunch, (exec, g->side));
    TRY(cuStreamSynchronize, (g->side));
    GATE_END(cuGraphExecDestroy, (exec));
    TRY(cuGraphDestroy, (graph));
}
EXEC(cuGraphLaunch, , (n->exec, g->side))
EXEC(cuGraphLaunch_ptsz, , (n->exec, g->side))
EXEC(cuGraphUpload, , (n->exec, g->side))
EXEC(cuGraphUpload_ptsz, , (n->exec, g->side))
EXEC(cuGraphExecGetFlags, , (n->exec, OUT(cuuint64_t, 0)))
EXEC(cuGraphNodeGetEnabled, , (n->exec, n->kernel, OUT(unsigned, 0)))
EXEC(cuGraphNodeSetEnabled, , (n->exec, n->kernel, 1))
EXEC(cuGraphExecKernelNodeSetParams, KERNEL_PARAMS_V1, (n->exec, n->kernel, &params))
EXEC(cuGraphExecKernelNodeSetParams_v2, KERNEL_PARAMS, (n->exec, n->kernel, &params))
EXEC(cuGraphExecMemsetNodeSetParams, MEMSET_PARAMS, (n->exec, n->memset, &params, g->context))
EXEC(cuGraphExecMemcpyNodeSetParams, MEMCPY_PARAMS, (n->exec, n->memcpy, &params, g->context))
EXEC(cuGraphExecHostNodeSetParams, HOST_PARAMS, (n->exec, n->host, &params))
EXEC(cuGraphExecEventRecordNodeSetEvent, , (n->exec, n->record, n->event))
EXEC(cuGraphExecEventWaitNodeSetEvent, , (n->exec, n->wait, n->event))
EXEC(cuGraphExecChildGraphNodeSetParams, , (n->exec, n->child, n->inner))
EXEC(cuGraphExecNodeSetParams, ANY_PARAMS, (n->exec, n->memset, params))
EXEC(cuGraphExecUpdate, , (n->exec, n->graph, OUT(CUgraphNode, 0), OUT(CUgraphExecUpdateResult, 1)))
EXEC(cuGraphExecUpdate_v2, , (n->exec, n->graph, OUT(CUgraphExecUpdateResultInfo, 0)))

/* ---- user objects ---- */

static CUuserObject object_new(struct gate *g, unsigned references) {
    CUuserObject object = NULL;
    TRY(cuUserObjectCreate,
        (&object, g->pageable, gate_nothing, references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    return object;
}
ROW(cuUserObjectCreate) {
    GATE(cuUserObjectCreate,
         (OUT(CUuserObject, 0), g->pageable, gate_nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    TRY(cuUserObjectRelease, (*OUT(CUuserObject, 0), 1));
}
ROW(cuUserObjectRelease) {
    CUuserObject object = object_new(g, 1);
    GATE_END(cuUserObjectRelease, (object, 1));
}
ROW(cuUserObjectRetain) {
    CUuserObject object = object_new(g, 1);
    GATE(cuUserObjectRetain, (object, 1));
    TRY(cuUserObjectRelease, (object, 2));
}
ROW(cuGraphRetainUserObject) {
    CUgraph graph = gate_graph(g, 1, NULL);
    CUuserObject object = object_new(g, 1);
    GATE(cuGraphRetainUserObject, (graph, object, 1, 0));
    TRY(cuGraphDestroy, (graph));
    TRY(cuUserObjectRelease, (object, 1));
}
ROW(cuGraphReleaseUserObject) {
    CUgraph graph = gate_graph(g, 1, NULL);
    CUuserObject object = object_new(g, 1);
    TRY(cuGraphRetainUserObject, (graph, object, 1, 0));
    GATE(cuGraphReleaseUserObject, (graph, object, 1));
    TRY(cuGraphDestroy, (graph));
    TRY(cuUserObjectRelease, (object, 1));
}
