/*
 * Capture and graphs of the libcudart stand-in. Handles are the driver's own; in parameters of
 * kernel nodes the kernel replaces its host stub. Any thread, no lock, no state.
 */
#include <stdint.h>

#include "harness/sim/rt/rt.h"

RT_STREAM_FUNCTION(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
                   RT_CALL(d, cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode))
RT_STREAM_FUNCTION(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph),
                   RT_CALL(d, cuStreamEndCapture, stream, graph))
RT_STREAM_FUNCTION(cudaStreamIsCapturing,
                   (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
                   RT_CALL(d, cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)status))
RT_STREAM_FUNCTION(cudaStreamGetCaptureInfo,
                   (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                    unsigned long long *id, cudaGraph_t *graph,
                    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                    size_t *count),
                   RT_CALL(d, cuStreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)status,
                           (cuuint64_t *)id, graph, dependencies, (const CUgraphEdgeData **)edges,
                           count))
RT_STREAM_FUNCTION(cudaStreamUpdateCaptureDependencies,
                   (cudaStream_t stream, cudaGraphNode_t *dependencies,
                    const cudaGraphEdgeData *edges, size_t count, unsigned int flags),
                   RT_CALL(d, cuStreamUpdateCaptureDependencies, stream, dependencies,
                           (const CUgraphEdgeData *)edges, count, flags))
RT_FUNCTION(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
            RT_CALL(d, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode))

RT_FUNCTION(cudaGraphInstantiate,
            (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
            RT_CALL(d, cuGraphInstantiateWithFlags, exec, graph, flags))
RT_FUNCTION(cudaGraphInstantiateWithFlags,
            (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
            RT_CALL(d, cuGraphInstantiateWithFlags, exec, graph, flags))
RT_STREAM_FUNCTION(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream),
                   RT_CALL(d, cuGraphLaunch, exec, stream))
RT_STREAM_FUNCTION(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream),
                   RT_CALL(d, cuGraphUpload, exec, stream))
RT_FUNCTION(cudaGraphExecDestroy, (cudaGraphExec_t exec), RT_CALL(d, cuGraphExecDestroy, exec))
RT_FUNCTION(cudaGraphExecUpdate,
            (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result),
            RT_CALL(d, cuGraphExecUpdate, exec, graph, (CUgraphExecUpdateResultInfo *)result))
RT_FUNCTION(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags),
            RT_CALL(d, cuGraphCreate, graph, flags))
RT_FUNCTION(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph),
            RT_CALL(d, cuGraphClone, clone, graph))
RT_FUNCTION(cudaGraphDestroy, (cudaGraph_t graph), RT_CALL(d, cuGraphDestroy, graph))
RT_FUNCTION(cudaGraphDestroyNode, (cudaGraphNode_t node), RT_CALL(d, cuGraphDestroyNode, node))
RT_FUNCTION(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
            RT_CALL(d, cuGraphGetNodes, graph, nodes, count))
RT_FUNCTION(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
            RT_CALL(d, cuGraphGetRootNodes, graph, nodes, count))
RT_FUNCTION(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type),
            RT_CALL(d, cuGraphNodeGetType, node, (CUgraphNodeType *)type))
RT_FUNCTION(cudaGraphAddDependencies,
            (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
             const cudaGraphEdgeData *edges, size_t count),
            RT_CALL(d, cuGraphAddDependencies, graph, from, to, (const CUgraphEdgeData *)edges,
                    count))
RT_FUNCTION(cudaGraphAddEmptyNode,
            (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *behind,
             size_t count),
            RT_CALL(d, cuGraphAddEmptyNode, node, graph, behind, count))
RT_FUNCTION(cudaGraphAddHostNode,
            (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *behind, size_t count,
             const struct cudaHostNodeParams *params),
            RT_CALL(d, cuGraphAddHostNode, node, graph, behind, count,
                    (const CUDA_HOST_NODE_PARAMS *)params))
RT_FUNCTION(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned int flags),
            RT_CALL(d, cuGraphDebugDotPrint, graph, path, flags))

static cudaError_t kernel_params(const struct rt_driver *d, const struct cudaKernelNodeParams *p,
                                 CUDA_KERNEL_NODE_PARAMS *out) {
    *out = (CUDA_KERNEL_NODE_PARAMS){
        .gridDimX = p->gridDim.x,
        .gridDimY = p->gridDim.y,
        .gridDimZ = p->gridDim.z,
        .blockDimX = p->blockDim.x,
        .blockDimY = p->blockDim.y,
        .blockDimZ = p->blockDim.z,
        .sharedMemBytes = p->sharedMemBytes,
        .kernelParams = p->kernelParams,
        .extra = p->extra,
    };
    return rt_kernel(p->func, d, &out->kern);
}

static CUDA_MEMSET_NODE_PARAMS memset_params(const struct cudaMemsetParams *p) {
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = (CUdeviceptr)(uintptr_t)p->dst,
        .pitch = p->pitch,
        .value = p->value,
        .elementSize = p->elementSize,
        .width = p->width,
        .height = p->height,
    };
}

/* A one-dimensional copy; the addresses tell the kinds of memory, as for cudaMemcpyDefault. */
static CUDA_MEMCPY3D line(void *to, const void *from, size_t bytes) {
    return (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = (CUdeviceptr)(uintptr_t)from,
        .srcPitch = bytes,
        .srcHeight = 1,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = (CUdeviceptr)(uintptr_t)to,
        .dstPitch = bytes,
        .dstHeight = 1,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
}

RT_EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *behind, size_t count,
                                             const struct cudaKernelNodeParams *params) {
    const struct rt_driver *d;
    CUDA_KERNEL_NODE_PARAMS p;
    cudaError_t error = rt_enter(&d, RT_LEGACY);
    if (!error) {
        error = kernel_params(d, params, &p);
    }
    if (!error) {
        error = rt_error(RT_CALL(d, cuGraphAddKernelNode, node, graph, behind, count, &p));
    }
    return rt_leave(error);
}

RT_EXPORT cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       const struct cudaKernelNodeParams *params) {
    const struct rt_driver *d;
    CUDA_KERNEL_NODE_PARAMS p;
    cudaError_t error = rt_enter(&d, RT_LEGACY);
    if (!error) {
        error = kernel_params(d, params, &p);
    }
    if (!error) {
        error = rt_error(RT_CALL(d, cuGraphExecKernelNodeSetParams, exec, node, &p));
    }
    return rt_leave(error);
}

static CUresult add_memset(const struct rt_driver *d, cudaGraphNode_t *node, cudaGraph_t graph,
                           const cudaGraphNode_t *behind, size_t count, CUDA_MEMSET_NODE_PARAMS p) {
    CUcontext context = NULL;
    CUresult r = RT_CALL(d, cuCtxGetCurrent, &context);
    return r ? r : RT_CALL(d, cuGraphAddMemsetNode, node, graph, behind, count, &p, context);
}

static CUresult set_memset(const struct rt_driver *d, cudaGraphExec_t exec, cudaGraphNode_t node,
                           CUDA_MEMSET_NODE_PARAMS p) {
    CUcontext context = NULL;
    CUresult r = RT_CALL(d, cuCtxGetCurrent, &context);
    return r ? r : RT_CALL(d, cuGraphExecMemsetNodeSetParams, exec, node, &p, context);
}

static CUresult add_memcpy(const struct rt_driver *d, cudaGraphNode_t *node, cudaGraph_t graph,
                           const cudaGraphNode_t *behind, size_t count, CUDA_MEMCPY3D p) {
    CUcontext context = NULL;
    CUresult r = RT_CALL(d, cuCtxGetCurrent, &context);
    return r ? r : RT_CALL(d, cuGraphAddMemcpyNode, node, graph, behind, count, &p, context);
}

static CUresult set_memcpy(const struct rt_driver *d, cudaGraphExec_t exec, cudaGraphNode_t node,
                           CUDA_MEMCPY3D p) {
    CUcontext context = NULL;
    CUresult r = RT_CALL(d, cuCtxGetCurrent, &context);
    return r ? r : RT_CALL(d, cuGraphExecMemcpyNodeSetParams, exec, node, &p, context);
}

RT_FUNCTION(cudaGraphAddEventRecordNode,
            (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *behind, size_t count,
             cudaEvent_t event),
            RT_CALL(d, cuGraphAddEventRecordNode, node, graph, behind, count, event))
RT_FUNCTION(cudaGraphAddMemsetNode,
            (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *behind, size_t count,
             const struct cudaMemsetParams *params),
            add_memset(d, node, graph, behind, count, memset_params(params)))
RT_FUNCTION(cudaGraphExecMemsetNodeSetParams,
            (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *params),
            set_memset(d, exec, node, memset_params(params)))
RT_FUNCTION(cudaGraphAddMemcpyNode1D,
            (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *behind, size_t count,
             void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
            ((void)kind, add_memcpy(d, node, graph, behind, count, line(to, from, bytes))))
RT_FUNCTION(cudaGraphExecMemcpyNodeSetParams1D,
            (cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from, size_t bytes,
             enum cudaMemcpyKind kind),
            ((void)kind, set_memcpy(d, exec, node, line(to, from, bytes))))
