/*
 * The part of the driver for launches, captures and graphs, and for the program's own calls. The
 * engine calls it, one thread at a time. It counts and advances clocks, and never executes
 * anything.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/stream/virtual.h"
#include "tools/whatif/clock.h"
#include "tools/whatif/driver.h"

/* What was captured. */
struct node {
    struct node *next;
    unsigned dims[7]; /* of a launch */
    uint64_t dst, src, wide;
    uint64_t pitch, height; /* of a memset */
    uint32_t value, elem;
    CUmemorytype dst_type, src_type;
    bool records; /* an event */
    bool own;     /* which is the engine's own: it tells the end of a branch */
    unsigned n_attrs;
    CUlaunchAttribute attrs[];
};

struct graph {
    struct node *first, *last;
    struct whatif_nodes n;
};

struct whatif_asked whatif_asked;

/* The engine has one capture at a time. */
static struct graph *capturing;
static CUgraphNode last;

/* ---- the engine's own events ---- */

static char events[4096]; /* one stands for each; what they tell is not asked here */

static bool is_own(CUevent event) {
    return (char *)event >= events && (char *)event < events + sizeof events;
}

static CUresult event_create(CUevent *event, unsigned flags) {
    static unsigned made;
    (void)flags;
    *event = (CUevent)&events[made++ % sizeof events];
    return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event) {
    (void)event;
    return CUDA_SUCCESS;
}

/* ---- ops that the engine issues, or captures ---- */

static uint8_t type_of(const struct node *node) {
    return node->records ? CST_OP_RECORD : node->wide ? CST_OP_COPY : CST_OP_LAUNCH;
}

static CUresult put(const struct node *node, CUstream stream, const CUlaunchAttribute *attrs,
                    unsigned n_attrs) {
    if (!capturing) {
        whatif_asked.issued++;
        whatif_asked.records += node->records;
        whatif_clock_issued(stream, type_of(node));
        return CUDA_SUCCESS;
    }
    struct node *copy = whatif_need(malloc(sizeof *copy + n_attrs * sizeof *attrs));
    *copy = *node;
    copy->next = NULL;
    copy->n_attrs = n_attrs;
    if (n_attrs)
        memcpy(copy->attrs, attrs, n_attrs * sizeof *attrs);
    if (capturing->last)
        capturing->last->next = copy;
    else
        capturing->first = copy;
    capturing->last = copy;
    capturing->n.all++;
    capturing->n.others += node->wide != 0;
    capturing->n.records += node->records;
    capturing->n.own += node->own;
    whatif_asked.captured++;
    whatif_clock_captured();
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                       void **extra) {
    const struct node node = {.dims = {gx, gy, gz, bx, by, bz, shared}};
    (void)f, (void)params, (void)extra;
    return put(&node, stream, NULL, 0);
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
    const struct node node = {.dims = {c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                                       c->blockDimY, c->blockDimZ, c->sharedMemBytes}};
    (void)f, (void)params, (void)extra;
    return put(&node, c->hStream, c->attrs, c->numAttrs);
}

static CUresult launch_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                   void **params) {
    return launch(f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

static CUresult put_rows(CUdeviceptr dst, size_t pitch, uint32_t value, uint32_t elem, size_t wide,
                         size_t height, CUstream stream) {
    const struct node node = {
        .dst = dst, .pitch = pitch, .value = value, .elem = elem, .wide = wide, .height = height};
    return put(&node, stream, NULL, 0);
}

static CUresult put_memset(CUdeviceptr dst, uint32_t value, uint32_t elem, size_t wide,
                           CUstream stream) {
    return put_rows(dst, 0, value, elem, wide, 1, stream);
}

static CUresult memset8(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream) {
    return put_memset(dst, value, 1, n, stream);
}

static CUresult memset16(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream) {
    return put_memset(dst, value, 2, n, stream);
}

static CUresult memset32(CUdeviceptr dst, unsigned value, size_t n, CUstream stream) {
    return put_memset(dst, value, 4, n, stream);
}

static CUresult rows8(CUdeviceptr dst, size_t pitch, unsigned char value, size_t wide,
                      size_t height, CUstream stream) {
    return put_rows(dst, pitch, value, 1, wide, height, stream);
}

static CUresult rows16(CUdeviceptr dst, size_t pitch, unsigned short value, size_t wide,
                       size_t height, CUstream stream) {
    return put_rows(dst, pitch, value, 2, wide, height, stream);
}

static CUresult rows32(CUdeviceptr dst, size_t pitch, unsigned value, size_t wide, size_t height,
                       CUstream stream) {
    return put_rows(dst, pitch, value, 4, wide, height, stream);
}

static CUresult put_copy(uint64_t dst, CUmemorytype dst_type, uint64_t src, CUmemorytype src_type,
                         size_t bytes, CUstream stream) {
    const struct node node = {
        .dst = dst, .src = src, .wide = bytes, .dst_type = dst_type, .src_type = src_type};
    return put(&node, stream, NULL, 0);
}

static CUresult copy_any(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return put_copy(dst, CU_MEMORYTYPE_UNIFIED, src, CU_MEMORYTYPE_UNIFIED, bytes, stream);
}

static CUresult copy_dtod(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return put_copy(dst, CU_MEMORYTYPE_DEVICE, src, CU_MEMORYTYPE_DEVICE, bytes, stream);
}

static CUresult copy_htod(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    return put_copy(dst, CU_MEMORYTYPE_DEVICE, (uintptr_t)src, CU_MEMORYTYPE_HOST, bytes, stream);
}

static CUresult copy_dtoh(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return put_copy((uintptr_t)dst, CU_MEMORYTYPE_HOST, src, CU_MEMORYTYPE_DEVICE, bytes, stream);
}

static CUresult record_event(CUevent event, CUstream stream) {
    const struct node node = {.records = true, .own = is_own(event)};
    return put(&node, stream, NULL, 0);
}

static CUresult record_event_flags(CUevent event, CUstream stream, unsigned flags) {
    (void)flags;
    return record_event(event, stream);
}

/* A wait for an event of the engine's own only keeps the order that the streams have here. */
static CUresult wait_event(CUstream stream, CUevent event, unsigned flags) {
    (void)flags;
    if (is_own(event)) {
        whatif_clock_waits();
        return CUDA_SUCCESS;
    }
    whatif_asked.issued++;
    whatif_asked.records++;
    whatif_clock_issued(stream, CST_OP_WAIT);
    return CUDA_SUCCESS;
}

/* ---- graphs ---- */

static CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode) {
    (void)stream, (void)mode;
    if (capturing)
        return CUDA_ERROR_ILLEGAL_STATE;
    capturing = whatif_need(calloc(1, sizeof *capturing));
    return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream stream, CUgraph *graph) {
    (void)stream;
    *graph = (CUgraph)capturing;
    capturing = NULL;
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **nodes,
                             const CUgraphEdgeData **edges, size_t *n) {
    (void)stream, (void)id, (void)graph, (void)edges;
    if (!capturing || !capturing->last)
        return CUDA_ERROR_ILLEGAL_STATE;
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    last = (CUgraphNode)capturing->last;
    *nodes = &last;
    *n = 1;
    return CUDA_SUCCESS;
}

static CUresult capture_dependencies(CUstream stream, CUgraphNode *nodes,
                                     const CUgraphEdgeData *edges, size_t n, unsigned flags) {
    (void)stream, (void)nodes, (void)edges, (void)n, (void)flags;
    return CUDA_SUCCESS;
}

/* Each node behind the one before. */
static CUresult get_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                          size_t *n) {
    const struct graph *graph = (const struct graph *)handle;
    size_t room = *n;
    (void)data;
    *n = 0;
    for (struct node *node = graph->first; node && node->next && *n < room; node = node->next) {
        from[*n] = (CUgraphNode)node;
        to[(*n)++] = (CUgraphNode)node->next;
    }
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    (void)flags;
    *exec = (CUgraphExec)graph;
    whatif_asked.graphs++;
    cus_virtual.unseen_ns += whatif_build_ns(((const struct graph *)graph)->n.all);
    return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec exec) {
    (void)exec; /* the graph that it is made of is destroyed as well */
    return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph handle) {
    struct graph *graph = (struct graph *)handle;
    for (struct node *node = graph->first, *next; node; node = next) {
        next = node->next;
        free(node);
    }
    free(graph);
    return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream) {
    const struct graph *graph = (const struct graph *)exec;
    whatif_asked.graph_launches++;
    whatif_asked.graph_others += graph->n.others;
    whatif_asked.graph_records += graph->n.records - graph->n.own;
    whatif_clock_graph(stream, graph->n);
    return CUDA_SUCCESS;
}

static CUresult kernel_params(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *params) {
    const unsigned *d = ((const struct node *)handle)->dims;
    *params = (CUDA_KERNEL_NODE_PARAMS_v2){.gridDimX = d[0],
                                           .gridDimY = d[1],
                                           .gridDimZ = d[2],
                                           .blockDimX = d[3],
                                           .blockDimY = d[4],
                                           .blockDimZ = d[5],
                                           .sharedMemBytes = d[6]};
    return CUDA_SUCCESS;
}

static CUresult kernel_attribute(CUgraphNode handle, CUlaunchAttributeID id,
                                 CUlaunchAttributeValue *value) {
    const struct node *node = (const struct node *)handle;
    for (unsigned i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].id == id) {
            *value = node->attrs[i].value;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult memset_params(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS_v1 *params) {
    const struct node *node = (const struct node *)handle;
    *params = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = node->dst,
                                           .pitch = node->pitch,
                                           .value = node->value,
                                           .elementSize = node->elem,
                                           .width = node->wide,
                                           .height = node->height};
    return CUDA_SUCCESS;
}

static CUresult copy_params(CUgraphNode handle, CUDA_MEMCPY3D_v2 *params) {
    const struct node *node = (const struct node *)handle;
    *params = (CUDA_MEMCPY3D_v2){.srcMemoryType = node->src_type,
                                 .srcHost = (const void *)(uintptr_t)node->src,
                                 .srcDevice = node->src,
                                 .dstMemoryType = node->dst_type,
                                 .dstHost = (void *)(uintptr_t)node->dst,
                                 .dstDevice = node->dst,
                                 .WidthInBytes = node->wide,
                                 .Height = 1,
                                 .Depth = 1};
    return CUDA_SUCCESS;
}

static CUresult patch_kernel(CUgraphExec exec, CUgraphNode node,
                             const CUDA_KERNEL_NODE_PARAMS_v2 *params) {
    (void)exec, (void)node, (void)params;
    whatif_asked.patched++;
    whatif_clock_patched();
    return CUDA_SUCCESS;
}

static CUresult patch_memset(CUgraphExec exec, CUgraphNode node,
                             const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext context) {
    (void)exec, (void)node, (void)params, (void)context;
    whatif_asked.patched++;
    whatif_clock_patched();
    return CUDA_SUCCESS;
}

static CUresult patch_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D_v2 *params,
                           CUcontext context) {
    (void)exec, (void)node, (void)params, (void)context;
    whatif_asked.patched++;
    whatif_clock_patched();
    return CUDA_SUCCESS;
}

static CUresult patch_record(CUgraphExec exec, CUgraphNode node, CUevent event) {
    (void)exec, (void)node, (void)event;
    whatif_asked.patched++;
    whatif_clock_patched();
    return CUDA_SUCCESS;
}

/* ---- the program's own calls ---- */

static CUresult own_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream stream,
                           void **params, void **extra) {
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    (void)shared, (void)stream, (void)params, (void)extra;
    return whatif_driver_own();
}

static CUresult own_launch_ex(const CUlaunchConfig *config, CUfunction f, void **params,
                              void **extra) {
    (void)config, (void)f, (void)params, (void)extra;
    return whatif_driver_own();
}

static CUresult own_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                void **params) {
    return own_launch(f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

#define OWN(name, ...)                                                                             \
    static CUresult name(__VA_ARGS__) {                                                            \
        return whatif_driver_own();                                                                \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
OWN(own_memset8, CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
OWN(own_memset16, CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
OWN(own_memset32, CUdeviceptr dst, unsigned value, size_t n, CUstream stream)
OWN(own_2d8, CUdeviceptr dst, size_t pitch, unsigned char value, size_t w, size_t h, CUstream s)
OWN(own_2d16, CUdeviceptr dst, size_t pitch, unsigned short value, size_t w, size_t h, CUstream s)
OWN(own_2d32, CUdeviceptr dst, size_t pitch, unsigned value, size_t w, size_t h, CUstream s)
OWN(own_copy, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
OWN(own_htod, CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
OWN(own_record, CUevent event, CUstream stream)
OWN(own_wait, CUstream stream, CUevent event, unsigned flags)
OWN(own_dtoh, void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
#pragma GCC diagnostic pop

void *whatif_driver_launch(bool ex, bool cooperative) {
    return ex ? (void *)own_launch_ex : cooperative ? (void *)own_cooperative : (void *)own_launch;
}

void *whatif_driver_memset(uint32_t elem, bool two_d) {
    if (two_d)
        return elem == 1 ? (void *)own_2d8 : elem == 2 ? (void *)own_2d16 : (void *)own_2d32;
    return elem == 1   ? (void *)own_memset8
           : elem == 2 ? (void *)own_memset16
                       : (void *)own_memset32;
}

void *whatif_driver_copy(uint32_t form) {
    return form == 2 ? (void *)own_htod : form == 3 ? (void *)own_dtoh : (void *)own_copy;
}

void *whatif_driver_record(void) {
    return (void *)own_record;
}

void *whatif_driver_wait(void) {
    return (void *)own_wait;
}

void whatif_graphs_fill(struct cus_driver *table) {
    table->cuStreamBeginCapture_v2 = begin_capture;
    table->cuStreamEndCapture = end_capture;
    table->cuStreamGetCaptureInfo_v3 = capture_info;
    table->cuStreamUpdateCaptureDependencies_v2 = capture_dependencies;
    table->cuLaunchKernel = launch;
    table->cuLaunchKernelEx = launch_ex;
    table->cuLaunchCooperativeKernel = launch_cooperative;
    table->cuMemsetD8Async = memset8;
    table->cuMemsetD16Async = memset16;
    table->cuMemsetD32Async = memset32;
    table->cuMemsetD2D8Async = rows8;
    table->cuMemsetD2D16Async = rows16;
    table->cuMemsetD2D32Async = rows32;
    table->cuMemcpyAsync = copy_any;
    table->cuMemcpyDtoDAsync_v2 = copy_dtod;
    table->cuMemcpyHtoDAsync_v2 = copy_htod;
    table->cuMemcpyDtoHAsync_v2 = copy_dtoh;
    table->cuEventCreate = event_create;
    table->cuEventDestroy_v2 = event_destroy;
    table->cuStreamWaitEvent = wait_event;
    table->cuEventRecord = record_event;
    table->cuEventRecordWithFlags = record_event_flags;
    table->cuGraphGetEdges_v2 = get_edges;
    table->cuGraphInstantiateWithFlags = instantiate;
    table->cuGraphExecDestroy = exec_destroy;
    table->cuGraphDestroy = graph_destroy;
    table->cuGraphLaunch = graph_launch;
    table->cuGraphKernelNodeGetParams_v2 = kernel_params;
    table->cuGraphKernelNodeGetAttribute = kernel_attribute;
    table->cuGraphMemsetNodeGetParams = memset_params;
    table->cuGraphMemcpyNodeGetParams = copy_params;
    table->cuGraphExecKernelNodeSetParams_v2 = patch_kernel;
    table->cuGraphExecMemsetNodeSetParams = patch_memset;
    table->cuGraphExecMemcpyNodeSetParams = patch_copy;
    table->cuGraphExecEventRecordNodeSetEvent = patch_record;
}
