/* Questions about nodes of captured graphs, and about what an executable graph accepts. */
#include "tests/unit/sim/answers/answers.h"

#include <stdint.h>
#include <string.h>

enum { KERNEL, SET32, SET8, UP, ACROSS, DOWN, UP_PAGEABLE, ANY, SET_2D, SET_ONE, TO_POOL, NODES };

static CUstream high; /* priority -5 */
static CUgraph graph;
static CUgraphNode nodes[NODES];
static int pageable[64];

static void capture(void) {
    struct answers *a = &answers;
    size_t n = NODES;
    DO(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -5));
    DO(cuStreamBeginCapture(high, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DO(answers_launch(a->touch, high));
    DO(cuMemsetD32Async(a->buffer, 1, 64, high));
    DO(cuMemsetD8Async(a->buffer, 1, 7, high));
    DO(cuMemcpyHtoDAsync(a->buffer, a->pinned, 64, high));
    DO(cuMemcpyDtoDAsync(a->second, a->buffer, 64, high));
    DO(cuMemcpyDtoHAsync(a->pinned, a->buffer, 64, high));
    DO(cuMemcpyHtoDAsync(a->buffer, pageable, 64, high));
    DO(cuMemcpyAsync(a->second, a->buffer, 64, high));
    DO(cuMemsetD2D8Async(a->buffer, 128, 1, 64, 4, high));
    DO(cuMemsetD32Async(a->buffer, 1, 1, high));
    DO(cuMemcpyDtoDAsync(a->pooled, a->buffer, 64, high));
    DO(cuStreamEndCapture(high, &graph));
    DO(cuGraphGetNodes(graph, nodes, &n));
    NOTE("captured %zu nodes\n", n);
}

static void ask_parameters(void) {
    for (int i = 0; i < NODES; i++) {
        CUgraphNodeType type;
        CUDA_MEMCPY3D c;
        CUDA_MEMSET_NODE_PARAMS m;
        DO(cuGraphNodeGetType(nodes[i], &type));
        if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
            DO(cuGraphMemcpyNodeGetParams(nodes[i], &c));
            NOTE("node %d: copy to type %d from type %d, %zu x %zu x %zu, pitches %zu %zu, heights "
                 "%zu %zu, host %s %s, device %s %s\n",
                 i, (int)c.dstMemoryType, (int)c.srcMemoryType, c.WidthInBytes, c.Height, c.Depth,
                 c.dstPitch, c.srcPitch, c.dstHeight, c.srcHeight, c.dstHost ? "set" : "0",
                 c.srcHost ? "set" : "0", c.dstDevice ? "set" : "0", c.srcDevice ? "set" : "0");
        } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
            DO(cuGraphMemsetNodeGetParams(nodes[i], &m));
            NOTE("node %d: memset of %zu x %zu elements of %u, pitch %zu, value 0x%x\n", i, m.width,
                 m.height, m.elementSize, m.pitch, m.value);
        } else {
            NOTE("node %d: type %d\n", i, (int)type);
        }
    }
}

static void ask_attributes(void) {
    for (int id = 0; id < 17; id++) {
        CUkernelNodeAttrValue of_node;
        CUstreamAttrValue of_stream;
        memset(&of_node, 0, sizeof of_node);
        memset(&of_stream, 0, sizeof of_stream);
        int node = cuGraphKernelNodeGetAttribute(nodes[KERNEL], (CUkernelNodeAttrID)id, &of_node);
        int stream = cuStreamGetAttribute(high, (CUstreamAttrID)id, &of_stream);
        NOTE("attribute %d: of the node %d, of the stream %d\n", id, node, stream);
        if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            NOTE("priorities: %d %d\n", of_node.priority, of_stream.priority);
    }
}

static CUgraph capture_with(CUlaunchAttribute attribute, CUgraphNode *last) {
    void *args[] = {&answers.buffer};
    CUgraph made;
    CUgraphNode all[2];
    size_t n = 2;
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = answers.stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    DO(cuStreamBeginCapture(answers.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DO(answers_launch(answers.touch, answers.stream));
    DO(cuLaunchKernelEx(&config, answers.touch, args, NULL));
    DO(cuStreamEndCapture(answers.stream, &made));
    DO(cuGraphGetNodes(made, all, &n));
    *last = all[1];
    return made;
}

void ask_node(void) {
    CUlaunchAttribute attribute;
    CUkernelNodeAttrValue value;
    CUgraphNode node, from, to;
    CUgraphEdgeData edge;
    size_t n = 1;
    capture();
    ask_parameters();
    ask_attributes();
    memset(&attribute, 0, sizeof attribute);
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUgraph made = capture_with(attribute, &node);
    ASK(cuGraphGetEdges(made, &from, &to, NULL, &n));
    n = 1;
    ASK(cuGraphGetEdges(made, &from, &to, &edge, &n));
    NOTE("programmatic edge: type %d, ports %d %d\n", edge.type, edge.from_port, edge.to_port);
    DO(cuGraphDestroy(made));
    memset(&attribute, 0, sizeof attribute);
    memset(&value, 0, sizeof value);
    attribute.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    attribute.value.sharedMemCarveout = 50;
    made = capture_with(attribute, &node);
    ASK(cuGraphKernelNodeGetAttribute(node, attribute.id, &value));
    NOTE("carveout of the node: %u\n", value.sharedMemCarveout);
    DO(cuGraphDestroy(made));
}

/* ---- executable graphs ---- */

static CUgraphExec exec;

static CUresult set_width(int node, size_t width) {
    CUDA_MEMSET_NODE_PARAMS m;
    DO(cuGraphMemsetNodeGetParams(nodes[node], &m));
    m.width = width;
    return cuGraphExecMemsetNodeSetParams(exec, nodes[node], &m, answers.ctx);
}

static CUresult set_target(int node, CUdeviceptr target, unsigned element, size_t pitch) {
    CUDA_MEMSET_NODE_PARAMS m;
    DO(cuGraphMemsetNodeGetParams(nodes[node], &m));
    m.dst = target;
    m.elementSize = element;
    m.pitch = pitch;
    if (node == SET32)
        m.width = 16;
    return cuGraphExecMemsetNodeSetParams(exec, nodes[node], &m, answers.ctx);
}

static CUresult copy_from(int node, CUdeviceptr source, size_t bytes) {
    CUDA_MEMCPY3D c;
    DO(cuGraphMemcpyNodeGetParams(nodes[node], &c));
    c.srcDevice = source;
    c.srcHost = c.srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)source : NULL;
    c.WidthInBytes = bytes;
    return cuGraphExecMemcpyNodeSetParams(exec, nodes[node], &c, answers.ctx);
}

static CUresult copy_to(int node, CUdeviceptr target) {
    CUDA_MEMCPY3D c;
    DO(cuGraphMemcpyNodeGetParams(nodes[node], &c));
    c.dstDevice = target;
    return cuGraphExecMemcpyNodeSetParams(exec, nodes[node], &c, answers.ctx);
}

static CUresult copy_typed(int node, CUmemorytype to, CUmemorytype from, size_t height) {
    CUDA_MEMCPY3D c;
    DO(cuGraphMemcpyNodeGetParams(nodes[node], &c));
    c.dstMemoryType = to;
    c.srcMemoryType = from;
    c.Height = height;
    c.srcPitch = c.dstPitch = height > 1 ? 128 : 0;
    return cuGraphExecMemcpyNodeSetParams(exec, nodes[node], &c, answers.ctx);
}

static CUresult kernel_shape(unsigned gx, unsigned gy, unsigned bx, unsigned smem) {
    CUDA_KERNEL_NODE_PARAMS p;
    DO(cuGraphKernelNodeGetParams(nodes[KERNEL], &p));
    p.gridDimX = gx;
    p.gridDimY = gy;
    p.blockDimX = bx;
    p.sharedMemBytes = smem;
    return cuGraphExecKernelNodeSetParams(exec, nodes[KERNEL], &p);
}

static CUresult kernel_function(CUmodule module, const char *name) {
    CUDA_KERNEL_NODE_PARAMS p;
    CUfunction function;
    unsigned v = 0;
    void *args[] = {&answers.buffer, &v};
    DO(cuGraphKernelNodeGetParams(nodes[KERNEL], &p));
    DO(cuModuleGetFunction(&function, module, name));
    p.func = function;
    p.kernelParams = args;
    return cuGraphExecKernelNodeSetParams(exec, nodes[KERNEL], &p);
}

void ask_exec(void) {
    struct answers *a = &answers;
    CUdeviceptr pinned = (CUdeviceptr)(uintptr_t)a->pinned;
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)pageable;
    static const size_t widths[] = {0, 1, 7, 8, 63, 64, 65, 256, 1000};
    DO(cuGraphInstantiate(&exec, graph, 0));
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        NOTE("width %zu: of 64 words %d, of one word %d, of 7 bytes %d\n", widths[i],
             (int)set_width(SET32, widths[i]), (int)set_width(SET_ONE, widths[i]),
             (int)set_width(SET8, widths[i]));
    ASK(set_target(SET32, a->buffer, 2, 0));
    ASK(set_target(SET32, a->managed, 4, 0));
    ASK(set_target(SET32, a->pooled, 4, 0));
    ASK(set_target(SET32, pinned, 4, 0));
    ASK(set_target(SET32, host, 4, 0));
    ASK(set_target(SET32, a->second, 4, 0));
    ASK(set_target(SET32, a->second + 3, 4, 0));
    ASK(set_width(SET_2D, 32));
    ASK(set_target(SET_2D, a->second, 1, 128));
    ASK(set_target(SET_2D, a->second, 1, 256));
    ASK(copy_from(ACROSS, a->buffer + 64, 64));
    ASK(copy_from(ACROSS, a->buffer, 2048));
    ASK(copy_from(ACROSS, a->buffer, 0));
    ASK(copy_from(ACROSS, a->pooled, 64));
    ASK(copy_from(ACROSS, a->managed, 64));
    ASK(copy_from(ACROSS, pinned, 64));
    ASK(copy_from(ACROSS, host, 64));
    ASK(copy_typed(ACROSS, CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED, 1));
    ASK(copy_typed(ACROSS, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE, 2));
    ASK(copy_typed(ANY, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE, 1));
    ASK(copy_from(ANY, pinned, 64));
    ASK(copy_from(ANY, a->managed, 64));
    ASK(copy_from(UP, pinned + 128, 64));
    ASK(copy_from(UP, host, 64));
    ASK(copy_from(UP_PAGEABLE, host + 4, 64));
    ASK(copy_from(UP_PAGEABLE, pinned, 64));
    ASK(copy_to(TO_POOL, a->second));
    ASK(copy_from(TO_POOL, a->second, 64));
    ASK(kernel_shape(77, 1, 1, 0));
    ASK(kernel_shape(1, 65536, 1, 0));
    ASK(kernel_shape(1, 1, 0, 0));
    ASK(kernel_shape(1, 1, 1025, 0));
    ASK(kernel_shape(1, 1, 64, 100000));
    ASK(kernel_function(a->module, "pair"));
    CUcontext other;
    CUmodule module;
    DO(cuCtxCreate(&other, NULL, 0, 0));
    DO(cuModuleLoadData(&module, answers_image));
    ASK(kernel_function(module, "touch"));
    DO(cuCtxDestroy(other));
    ASK(kernel_function(a->module, "touch"));
    DO(cuGraphDestroyNode(nodes[SET8]));
    DO(cuGraphDestroy(graph));
    ASK(cuGraphLaunch(exec, high)); /* the source is not needed for that */
    ASK(cuStreamSynchronize(high));
    DO(cuGraphExecDestroy(exec));
    DO(cuStreamDestroy(high));
}
