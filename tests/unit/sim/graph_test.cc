// Promise: explicit and executable graphs keep the order of nodes, accept and refuse changes, and
// launch as CUDA's.
#include "tests/unit/sim/sim.h"

#include <cstring>

namespace sim {
namespace {

class Graph : public Sim {
  protected:
    void SetUp() override {
        Sim::SetUp();
        s = Stream();
        ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
    }

    // A kernel node whose arguments live in this object until the next call.
    CUDA_KERNEL_NODE_PARAMS Params(const char *name, CUdeviceptr p, int v) {
        pointer_ = p;
        value_ = v;
        args_[0] = &pointer_;
        args_[1] = &value_;
        CUDA_KERNEL_NODE_PARAMS k{};
        k.func = Func(name);
        k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
        k.kernelParams = args_;
        return k;
    }

    CUgraphNode Kernel(const char *name, CUdeviceptr p, int v, std::vector<CUgraphNode> deps = {}) {
        CUDA_KERNEL_NODE_PARAMS k = Params(name, p, v);
        CUgraphNode node = nullptr;
        EXPECT_EQ(CUDA_SUCCESS, cuGraphAddKernelNode(&node, graph, deps.data(), deps.size(), &k));
        return node;
    }

    CUgraphExec Instantiate() {
        CUgraphExec exec = nullptr;
        EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiate(&exec, graph, 0));
        return exec;
    }

    int RunOnce(CUgraphExec exec, CUdeviceptr p) {
        EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(exec, s));
        return Read(p);
    }

    CUstream s = nullptr;
    CUgraph graph = nullptr;

  private:
    CUdeviceptr pointer_;
    int value_;
    void *args_[2];
};

CUDA_MEMCPY3D CopyParams(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                         CUmemorytype type = CU_MEMORYTYPE_UNIFIED) {
    CUDA_MEMCPY3D c{};
    c.dstMemoryType = c.srcMemoryType = type;
    c.dstDevice = dst;
    c.srcDevice = src;
    c.WidthInBytes = bytes;
    c.Height = c.Depth = 1;
    return c;
}

CUDA_MEMSET_NODE_PARAMS SetParams(CUdeviceptr dst, unsigned value, unsigned element, size_t width,
                                  size_t height = 1, size_t pitch = 0) {
    return {dst, pitch, value, element, width, height};
}

TEST_F(Graph, EdgesOrderNodesWhateverTheOrderOfTheirAddition) {
    CUdeviceptr p = Alloc(4);
    CUgraphNode last = Kernel("mix", p, 3), first = Kernel("write", p, 1),
                middle = Kernel("mix", p, 2);
    CUgraphNode from[] = {first, middle}, to[] = {middle, last};
    CU_OK(cuGraphAddDependencies(graph, from, to, nullptr, 2));
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, from, to, nullptr, 1));
    for (int i = 0; i < 10; i++)
        EXPECT_EQ((1 * 3 + 2) * 3 + 3, RunOnce(Instantiate(), p));
    size_t n = 0;
    CU_OK(cuGraphGetRootNodes(graph, nullptr, &n));
    EXPECT_EQ(1u, n);
    CUgraphNode root = nullptr;
    CU_OK(cuGraphGetRootNodes(graph, &root, &n));
    EXPECT_EQ(first, root);
    CUgraphNodeType type;
    CU_OK(cuGraphNodeGetType(root, &type));
    EXPECT_EQ(CU_GRAPH_NODE_TYPE_KERNEL, type);
}

TEST_F(Graph, ACycleCannotBeInstantiated) {
    CUdeviceptr p = Alloc(4);
    CUgraphNode a = Kernel("mix", p, 1), b = Kernel("mix", p, 2, {a});
    CU_OK(cuGraphAddDependencies(graph, &b, &a, nullptr, 1));
    CUgraphExec exec;
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
}

TEST_F(Graph, WithoutAnEdgeBothOrdersHappen) {
    CUdeviceptr p = Alloc(4);
    Kernel("mix", p, 1);
    Kernel("mix", p, 2);
    CUgraphExec exec = Instantiate();
    bool one = false, other = false;
    cuSimSetDelay(0);
    for (int i = 0; i < 200; i++) {
        CU_OK(Write(p, 0, s));
        int v = RunOnce(exec, p);
        ASSERT_TRUE(v == 5 || v == 7) << v;
        one |= v == 5;
        other |= v == 7;
    }
    EXPECT_TRUE(one && other);
}

TEST_F(Graph, ParametersAreCopiedAtTheAddAndSnapshotAtTheLaunch) {
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CUgraphNode node = Kernel("write", p, 1);
    CUgraphExec exec = Instantiate();
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuGraphLaunch(exec, s)); // in flight, with 1
    CUDA_KERNEL_NODE_PARAMS k = Params("write", q, 2);
    CU_OK(cuGraphExecKernelNodeSetParams(exec, node, &k));
    CU_OK(cuGraphLaunch(exec, s));
    k = Params("write", q, 3);
    CU_OK(cuGraphExecKernelNodeSetParams(exec, node, &k));
    gate.Open();
    EXPECT_EQ(1, Read(p));
    EXPECT_EQ(2, Read(q));
    EXPECT_EQ(3, RunOnce(exec, q));
    CU_OK(cuGraphKernelNodeGetParams(node, &k)); // the source keeps its own
    EXPECT_EQ(1, *static_cast<int *>(k.kernelParams[1]));
}

TEST_F(Graph, LaunchesOfOneExecAreSerialAcrossStreams) {
    CUdeviceptr p = Alloc(4);
    Kernel("mix", p, 1);
    CUgraphExec exec = Instantiate();
    CUstream other = Stream();
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuGraphLaunch(exec, s));
    CU_OK(cuGraphLaunch(exec, other));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
    gate.Open();
    EXPECT_EQ(4, Read(p));
}

TEST_F(Graph, AnExecOutlivesItsGraphAndADestroyedExecItsLaunch) {
    CUdeviceptr p = Alloc(4);
    Kernel("write", p, 1);
    CUgraphExec exec = Instantiate();
    CU_OK(cuGraphDestroy(graph));
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuGraphLaunch(exec, s));
    CU_OK(cuGraphExecDestroy(exec));
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, s));
    gate.Open();
    EXPECT_EQ(1, Read(p));
}

TEST_F(Graph, AKernelNodeTakesAnotherGridBlockAndFunctionOfItsContextOnly) {
    CUdeviceptr p = Alloc(4);
    CUgraphNode node = Kernel("write", p, 1);
    CUgraphExec exec = Instantiate();
    CUDA_KERNEL_NODE_PARAMS k = Params("mix", p, 5);
    k.gridDimX = 1000;
    k.blockDimX = 128;
    CU_OK(cuGraphExecKernelNodeSetParams(exec, node, &k));
    EXPECT_EQ(5, RunOnce(exec, p));
    k.blockDimX = 1025;
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, node, &k));
    CUcontext other;
    CUmodule other_module;
    CUfunction foreign;
    CU_OK(cuCtxCreate(&other, nullptr, 0, 0));
    CU_OK(cuModuleLoadData(&other_module, "image"));
    CU_OK(cuModuleGetFunction(&foreign, other_module, "write"));
    k = Params("write", p, 1);
    k.func = foreign;
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, node, &k));
    CU_OK(cuCtxDestroy(other));
    CU_OK(cuCtxSetCurrent(ctx));
    CU_OK(Write(p, 1, s));
    EXPECT_EQ(8, RunOnce(exec, p)); // what was refused changed nothing
}

TEST_F(Graph, SetParamsNeedsTheSourceNode) {
    CUdeviceptr p = Alloc(4);
    CUgraphNode node = Kernel("write", p, 1);
    CUgraphExec exec = Instantiate();
    CU_OK(cuGraphDestroyNode(node));
    CUDA_KERNEL_NODE_PARAMS k = Params("write", p, 2);
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, node, &k));
    EXPECT_EQ(1, RunOnce(exec, p));
}

// What a node was given may be freed before it is given something else of its kind.
TEST_F(Graph, NodesKeepTheKindOfMemoryThatIsGone) {
    const auto refused = CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr a = Alloc(64, 7), before, after;
    CUgraph graph;
    CUgraphNode copy, fill;
    CUgraphExec exec;
    CU_OK(cuMemAllocAsync(&before, 64, s));
    CU_OK(cuMemAllocAsync(&after, 64, s));
    CUDA_MEMCPY3D c = CopyParams(a, before, 16);
    CUDA_MEMSET_NODE_PARAMS m = {before, 0, 3, 1, 16, 1};
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddMemcpyNode(&copy, graph, nullptr, 0, &c, ctx));
    CU_OK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &m, ctx));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuMemFreeAsync(before, s));
    CU_OK(cuStreamSynchronize(s));
    c = CopyParams(a, a, 16);
    CU_EXPECT(refused, cuGraphExecMemcpyNodeSetParams(exec, copy, &c, ctx));
    m.dst = a;
    CU_EXPECT(refused, cuGraphExecMemsetNodeSetParams(exec, fill, &m, ctx));
    c = CopyParams(a, after, 16);
    CU_OK(cuGraphExecMemcpyNodeSetParams(exec, copy, &c, ctx));
    m.dst = after;
    CU_OK(cuGraphExecMemsetNodeSetParams(exec, fill, &m, ctx));
}

TEST_F(Graph, ACopyNodeKeepsTypeAndKindOfMemory) {
    CUdeviceptr a = Alloc(64, 7), b = Alloc(64), pool;
    int *pinned, *pinned2;
    CU_OK(cuMemHostAlloc(reinterpret_cast<void **>(&pinned), 64, 0));
    CU_OK(cuMemHostAlloc(reinterpret_cast<void **>(&pinned2), 64, 0));
    *pinned2 = 99;
    CU_OK(cuMemAllocAsync(&pool, 64, s));
    // Captured copies show the types that the call is named for; those of cuMemcpyAsync show
    // UNIFIED.
    CUgraph captured;
    CUgraphNode node;
    size_t n = 1;
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_OK(cuMemcpyHtoDAsync(b, pinned, 16, s));
    CU_OK(cuStreamEndCapture(s, &captured));
    CU_OK(cuGraphGetNodes(captured, &node, &n));
    CUDA_MEMCPY3D typed_by_name;
    CU_OK(cuGraphMemcpyNodeGetParams(node, &typed_by_name));
    EXPECT_EQ(CU_MEMORYTYPE_HOST, typed_by_name.srcMemoryType);
    EXPECT_EQ(CU_MEMORYTYPE_DEVICE, typed_by_name.dstMemoryType);
    EXPECT_EQ(pinned, typed_by_name.srcHost);
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_OK(cuMemcpyAsync(b, reinterpret_cast<CUdeviceptr>(pinned), 16, s));
    CU_OK(cuStreamEndCapture(s, &captured));
    CU_OK(cuGraphGetNodes(captured, &node, &n));
    CUDA_MEMCPY3D c;
    CU_OK(cuGraphMemcpyNodeGetParams(node, &c));
    EXPECT_EQ(CU_MEMORYTYPE_UNIFIED, c.srcMemoryType);
    EXPECT_EQ(CU_MEMORYTYPE_UNIFIED, c.dstMemoryType);
    EXPECT_EQ(reinterpret_cast<CUdeviceptr>(pinned), c.srcDevice);
    EXPECT_EQ(16u, c.WidthInBytes);
    CUgraphExec exec;
    CU_OK(cuGraphInstantiate(&exec, captured, 0));
    const auto refused = CUDA_ERROR_INVALID_VALUE;
    auto set = [&](const CUDA_MEMCPY3D &q, CUcontext in) {
        return cuGraphExecMemcpyNodeSetParams(exec, node, &q, in);
    };
    CUdeviceptr host2 = reinterpret_cast<CUdeviceptr>(pinned2);
    CU_EXPECT(CUDA_SUCCESS, set(CopyParams(b + 16, host2, 32), ctx));
    CU_EXPECT(refused, set(CopyParams(pool, host2, 16), ctx));
    CU_EXPECT(refused, set(CopyParams(b, a, 16), ctx));
    CU_EXPECT(refused, set(CopyParams(b, host2, 0), ctx));
    CU_EXPECT(refused, set(CopyParams(b, host2, 65), ctx));
    CUDA_MEMCPY3D typed = CopyParams(b, host2, 16);
    typed.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    CU_EXPECT(refused, set(typed, ctx));
    CUDA_MEMCPY3D flat = CopyParams(b, host2, 4);
    flat.Height = 2;
    flat.srcPitch = flat.dstPitch = 8;
    CU_EXPECT(refused, set(flat, ctx));
    CUcontext other;
    CU_OK(cuCtxCreate(&other, nullptr, 0, 0));
    CU_OK(cuCtxSetCurrent(ctx));
    CU_EXPECT(refused, set(CopyParams(b, host2, 16), other));
    CU_OK(cuCtxDestroy(other));
    EXPECT_EQ(99, RunOnce(exec, b + 16));
}

TEST_F(Graph, AMemsetNodeKeepsElementKindAndTwoDimensionalSize) {
    CUdeviceptr a = Alloc(256), b = Alloc(256), managed;
    CU_OK(cuMemAllocManaged(&managed, 256, CU_MEM_ATTACH_GLOBAL));
    CUDA_MEMSET_NODE_PARAMS m = SetParams(a, 5, 4, 8);
    CUgraphNode flat, square;
    CU_OK(cuGraphAddMemsetNode(&flat, graph, nullptr, 0, &m, ctx));
    m = SetParams(b, 6, 1, 8, 4, 16);
    CU_OK(cuGraphAddMemsetNode(&square, graph, &flat, 1, &m, ctx));
    CUgraphExec exec = Instantiate();
    auto set = [&](CUgraphNode node, CUDA_MEMSET_NODE_PARAMS q) {
        return cuGraphExecMemsetNodeSetParams(exec, node, &q, ctx);
    };
    const auto refused = CUDA_ERROR_INVALID_VALUE;
    CU_EXPECT(CUDA_SUCCESS, set(flat, SetParams(a + 32, 7, 4, 4)));
    CU_EXPECT(refused, set(flat, SetParams(a, 7, 4, 9)));
    CU_EXPECT(refused, set(flat, SetParams(a, 7, 2, 8)));
    CU_EXPECT(refused, set(flat, SetParams(a, 7, 4, 4, 2, 32)));
    CU_EXPECT(refused, set(flat, SetParams(managed, 7, 4, 8)));
    CU_EXPECT(refused, set(flat, SetParams(a, 7, 4, 0)));
    CU_EXPECT(CUDA_SUCCESS, set(square, SetParams(b + 64, 0x11, 1, 8, 4, 16)));
    CU_EXPECT(refused, set(square, SetParams(b, 1, 1, 7, 4, 16)));
    CU_EXPECT(refused, set(square, SetParams(b, 1, 1, 8, 3, 16)));
    CU_EXPECT(refused, set(square, SetParams(b, 1, 1, 8, 4, 32)));
    EXPECT_EQ(7, RunOnce(exec, a + 32));
    EXPECT_EQ(0x11111111, Read(b + 64 + 16));
    EXPECT_EQ(0, Read(b + 64 + 8));
}

TEST_F(Graph, UpdateTakesTheSameTopologyOnly) {
    CUdeviceptr p = Alloc(4);
    CUgraphNode first = Kernel("write", p, 1);
    Kernel("mix", p, 2, {first});
    CUgraphExec exec = Instantiate();
    CUgraph old = graph;
    CUgraphExecUpdateResultInfo info;
    CU_OK(cuGraphCreate(&graph, 0));
    first = Kernel("write", p, 4);
    CU_EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graph, &info));
    EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, info.result);
    EXPECT_EQ(5, RunOnce(exec, p));
    Kernel("mix", p, 5, {first});
    CU_OK(cuGraphExecUpdate(exec, graph, &info));
    EXPECT_EQ(17, RunOnce(exec, p));
    CU_OK(cuGraphDestroy(old));
}

TEST_F(Graph, CloneChildHostAndEventNodes) {
    CUdeviceptr p = Alloc(4);
    CUgraphNode inner = Kernel("mix", p, 1), in_clone = nullptr, child, host, record;
    CUgraph clone, outer;
    CU_OK(cuGraphClone(&clone, graph));
    CU_OK(cuGraphNodeFindInClone(&in_clone, inner, clone));
    EXPECT_NE(inner, in_clone);
    CU_OK(cuGraphCreate(&outer, 0));
    std::atomic<int> seen{0};
    struct Seen {
        std::atomic<int> *value;
        CUdeviceptr p;
    } data{&seen, p};
    CUDA_HOST_NODE_PARAMS h{[](void *d) {
                                auto *x = static_cast<Seen *>(d);
                                *x->value = *reinterpret_cast<int *>(x->p);
                            },
                            &data};
    CUevent e;
    CU_OK(cuEventCreate(&e, 0));
    CU_OK(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, clone));
    CU_OK(cuGraphAddHostNode(&host, outer, &child, 1, &h));
    CU_OK(cuGraphAddEventRecordNode(&record, outer, &host, 1, e));
    CU_OK(cuGraphDestroy(clone)); // the child is a copy
    CUgraph of_child;
    CU_OK(cuGraphChildGraphNodeGetGraph(child, &of_child));
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(of_child));
    graph = outer;
    CUgraphExec exec = Instantiate();
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuGraphLaunch(exec, s));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    gate.Open();
    CU_OK(cuEventSynchronize(e));
    EXPECT_EQ(1, seen);
}

TEST_F(Graph, ANodeCanBeSwitchedOff) {
    CUdeviceptr p = Alloc(4);
    CUgraphNode a = Kernel("mix", p, 1), b = Kernel("mix", p, 2, {a});
    CUgraphExec exec = Instantiate();
    unsigned on = 7;
    CU_OK(cuGraphNodeSetEnabled(exec, a, 0));
    CU_OK(cuGraphNodeGetEnabled(exec, a, &on));
    EXPECT_EQ(0u, on);
    EXPECT_EQ(2, RunOnce(exec, p));
    CU_OK(cuGraphNodeSetEnabled(exec, a, 1));
    CU_OK(cuGraphNodeGetEnabled(exec, b, &on));
    EXPECT_EQ(1u, on);
    EXPECT_EQ((2 * 3 + 1) * 3 + 2, RunOnce(exec, p));
}

TEST_F(Graph, ProgrammaticEdgesAreNotLostSilently) {
    CUdeviceptr p = Alloc(4);
    CUlaunchAttribute pdl{};
    pdl.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    pdl.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = s;
    config.attrs = &pdl;
    config.numAttrs = 1;
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_OK(Write(p, 1, s));
    CU_OK(cuLaunchKernelEx(&config, Func("empty"), nullptr, nullptr));
    CUgraph captured;
    CU_OK(cuStreamEndCapture(s, &captured));
    CUgraphNode from, to;
    CUgraphEdgeData data{};
    size_t n = 1;
    CU_EXPECT(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(captured, &from, &to, nullptr, &n));
    CU_OK(cuGraphGetEdges(captured, &from, &to, &data, &n));
    EXPECT_EQ(CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, data.type);
}

TEST_F(Graph, ManyNodesWithinReason) {
    cuSimSetDelay(0);
    CUdeviceptr p = Alloc(4);
    CUgraphNode last = Kernel("mix", p, 0);
    for (int i = 0; i < 5000; i++)
        last = Kernel("mix", p, 0, {last});
    CUgraphExec exec = Instantiate();
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; i++)
        CU_OK(cuGraphLaunch(exec, s));
    CU_OK(cuStreamSynchronize(s));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

} // namespace
} // namespace sim
