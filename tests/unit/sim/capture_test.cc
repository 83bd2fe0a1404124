// Promise: the simulator's captures make the right nodes, spread and end as CUDA's, and refuse
// unsafe calls.
#include "tests/unit/sim/sim.h"

#include <functional>

namespace sim {
namespace {

class Capture : public Sim {
  protected:
    void TearDown() override {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        cuThreadExchangeStreamCaptureMode(&mode);
        Sim::TearDown();
    }

    CUstreamCaptureStatus Status(CUstream s) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(s, &status));
        return status;
    }

    size_t Nodes(CUgraph graph) {
        size_t n = 0;
        EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &n));
        return n;
    }

    size_t Edges(CUgraph graph) {
        size_t n = 0;
        EXPECT_EQ(CUDA_SUCCESS, cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &n));
        return n;
    }
};

const auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
const auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
const auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

TEST_F(Capture, NothingRunsUntilTheGraphIsLaunched) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    CUgraph graph;
    CUgraphExec exec;
    CU_OK(cuStreamBeginCapture(s, kGlobal));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, Status(s));
    CU_OK(Write(p, 1, s));
    CU_OK(Mix(p, 2, s));
    CU_OK(cuMemsetD32Async(p, 9, 1, s));
    CU_OK(Mix(p, 4, s));
    CU_OK(cuStreamEndCapture(s, &graph));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(s));
    EXPECT_EQ(4u, Nodes(graph));
    EXPECT_EQ(3u, Edges(graph));
    EXPECT_EQ(0, Read(p));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphLaunch(exec, s));
    EXPECT_EQ(31, Read(p));
}

TEST_F(Capture, EventsForkAndJoin) {
    CUstream a = Stream(), b = Stream();
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CUevent fork, join;
    CUgraph graph;
    CUgraphExec exec;
    CU_OK(cuEventCreate(&fork, 0));
    CU_OK(cuEventCreate(&join, 0));
    CU_OK(cuStreamBeginCapture(a, kGlobal));
    CU_OK(Write(p, 1, a));
    CU_OK(cuEventRecord(fork, a));
    CU_OK(cuStreamWaitEvent(b, fork, 0));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, Status(b));
    CU_OK(Copy(q, p, b));
    CU_OK(Mix(p, 1, a));
    CU_OK(cuEventRecord(join, b));
    CU_OK(cuStreamWaitEvent(a, join, 0));
    CU_OK(Mix(p, 2, a));
    CU_OK(cuStreamEndCapture(a, &graph));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(b));
    EXPECT_EQ(4u, Nodes(graph));
    EXPECT_EQ(4u, Edges(graph));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 20; i++)
        CU_OK(cuGraphLaunch(exec, a));
    EXPECT_EQ(14, Read(p));
    // Copy and the first Mix have no order between them: either value is right, nothing else is.
    int seen = Read(q);
    EXPECT_TRUE(seen == 1 || seen == 4) << seen;
}

TEST_F(Capture, AStreamThatWasNotJoinedSpoilsTheEnd) {
    CUstream a = Stream(), b = Stream();
    CUdeviceptr p = Alloc(4);
    CUevent fork;
    CUgraph graph = nullptr;
    CU_OK(cuEventCreate(&fork, 0));
    CU_OK(cuStreamBeginCapture(a, kGlobal));
    CU_OK(Write(p, 1, a));
    CU_OK(cuEventRecord(fork, a));
    CU_OK(cuStreamWaitEvent(b, fork, 0));
    CU_OK(Write(p, 2, b));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(a, &graph));
    EXPECT_EQ(nullptr, graph);
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(b));
}

TEST_F(Capture, EndsOnlyOnTheStreamAndThreadThatBegan) {
    CUstream a = Stream(), b = Stream();
    CUgraph graph = nullptr;
    CUevent e;
    CU_OK(cuEventCreate(&e, 0));
    CU_EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(a, &graph));
    CU_OK(cuStreamBeginCapture(a, kLocal));
    CU_EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(a, kLocal));
    CUresult other = CUDA_SUCCESS;
    std::thread([&] {
        CUgraph g;
        cuCtxSetCurrent(ctx);
        other = cuStreamEndCapture(a, &g);
    }).join();
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, other);
    CU_OK(cuEventRecord(e, a));
    CU_OK(cuStreamWaitEvent(b, e, 0));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(b, &graph));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    CU_OK(cuStreamBeginCapture(a, kRelaxed));
    std::thread([&] {
        CUgraph g;
        cuCtxSetCurrent(ctx);
        other = cuStreamEndCapture(a, &g);
    }).join();
    EXPECT_EQ(CUDA_SUCCESS, other);
}

TEST_F(Capture, UnsafeCallsAreRefusedAndInvalidateByMode) {
    struct Case {
        CUstreamCaptureMode capture, thread;
        bool same_thread, refused;
    };
    const Case cases[] = {
        {kGlobal, kGlobal, true, true},   {kGlobal, kGlobal, false, true},
        {kGlobal, kLocal, true, true},    {kGlobal, kLocal, false, false},
        {kGlobal, kRelaxed, true, false}, {kGlobal, kRelaxed, false, false},
        {kLocal, kGlobal, true, true},    {kLocal, kGlobal, false, false},
        {kLocal, kLocal, true, true},     {kLocal, kRelaxed, true, false},
        {kRelaxed, kGlobal, true, false}, {kRelaxed, kGlobal, false, false},
    };
    for (const Case &c : cases) {
        SCOPED_TRACE(testing::Message() << "capture " << c.capture << " thread " << c.thread
                                        << " same " << c.same_thread);
        CUstream s = Stream();
        CUgraph graph;
        CU_OK(cuStreamBeginCapture(s, c.capture));
        CUresult result = CUDA_SUCCESS;
        auto unsafe = [&] {
            CUdeviceptr p;
            CUstreamCaptureMode mode = c.thread;
            cuCtxSetCurrent(ctx);
            cuThreadExchangeStreamCaptureMode(&mode);
            result = cuMemAlloc(&p, 4);
            cuThreadExchangeStreamCaptureMode(&mode);
        };
        if (c.same_thread)
            unsafe();
        else
            std::thread(unsafe).join();
        EXPECT_EQ(c.refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS, result);
        EXPECT_EQ(c.refused ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS,
                  cuStreamEndCapture(s, &graph));
    }
}

// As driver 580 (tests/gpu/gate-*): what looks into a pool or changes one, but not which one it is.
TEST_F(Capture, PoolsAreNotToBeTouched) {
    CUmemoryPool pool, made, device_pool;
    CUgraph graph;
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {};
    access.location = props.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    cuuint64_t threshold = 0;
    CU_OK(cuMemPoolCreate(&pool, &props));
    CU_OK(cuDeviceGetMemPool(&device_pool, 0));
    const auto attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    const std::vector<std::function<CUresult()>> calls = {
        [&] { return cuMemPoolGetAttribute(pool, attribute, &threshold); },
        [&] { return cuMemPoolSetAttribute(pool, attribute, &threshold); },
        [&] { return cuMemPoolSetAccess(pool, &access, 1); },
        [&] { return cuMemPoolTrimTo(pool, 0); },
        [&] { return cuDeviceSetMemPool(0, device_pool); },
        [&] { return cuMemPoolCreate(&made, &props); },
        [&] { return cuMemPoolDestroy(pool); },
    };
    for (const auto &call : calls) {
        SCOPED_TRACE(&call - calls.data());
        CUstream s = Stream();
        CU_OK(cuStreamBeginCapture(s, kGlobal));
        CUmemoryPool asked;
        CU_EXPECT(CUDA_SUCCESS, cuDeviceGetMemPool(&asked, 0));
        CU_EXPECT(CUDA_SUCCESS, cuDeviceGetDefaultMemPool(&asked, 0));
        EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, Status(s));
        CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call());
        CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
    }
    CUstream s = Stream();
    CUstreamCaptureMode mode = kRelaxed;
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    CU_OK(cuStreamBeginCapture(s, kRelaxed));
    for (const auto &call : calls)
        CU_EXPECT(CUDA_SUCCESS, call());
    CU_OK(cuStreamEndCapture(s, &graph));
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    CU_OK(cuMemPoolDestroy(made));
}

TEST_F(Capture, WaitingForWhatIsCapturedIsRefused) {
    CUgraph graph;
    CUevent e;
    CU_OK(cuEventCreate(&e, 0));
    for (int i = 0; i < 5; i++) {
        SCOPED_TRACE(i);
        CUstream s = Stream();
        CUstreamCaptureMode mode = kRelaxed; // what conflicts is refused in any mode
        CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
        CU_OK(cuStreamBeginCapture(s, kRelaxed));
        CU_OK(cuEventRecord(e, s));
        const auto unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        switch (i) {
        case 0:
            CU_EXPECT(unsupported, cuStreamSynchronize(s));
            break;
        case 1:
            CU_EXPECT(unsupported, cuStreamQuery(s));
            break;
        case 2:
            CU_EXPECT(unsupported, cuCtxSynchronize());
            break;
        case 3:
            CU_EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(e));
            break;
        default:
            CU_EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(e));
            break;
        }
        EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, Status(s));
        CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
        CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    }
}

TEST_F(Capture, ABlockingStreamThatCapturesTakesTheLegacyStreamAway) {
    CUstream s = Stream(CU_STREAM_DEFAULT), free_stream = Stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = Alloc(4);
    CUgraph graph;
    CUstreamCaptureStatus status;
    CU_OK(cuStreamBeginCapture(s, kRelaxed));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(nullptr, &status));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, Status(s)); // asking does no harm
    CU_OK(Write(p, 1, free_stream));
    CU_OK(cuStreamSynchronize(free_stream));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, Write(p, 1, nullptr));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Write(p, 1, s));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
    CU_OK(Write(p, 2, nullptr));
    EXPECT_EQ(2, Read(p));

    CU_OK(cuStreamBeginCapture(free_stream, kRelaxed)); // a non-blocking one does not
    CU_OK(cuStreamIsCapturing(nullptr, &status));
    CU_OK(Write(p, 3, nullptr));
    CU_OK(cuStreamEndCapture(free_stream, &graph));
    EXPECT_EQ(3, Read(p));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(nullptr, kGlobal));
}

TEST_F(Capture, AskingACapturingStreamForItsFlagsSpoilsTheCapture) {
    CUstream s = Stream(CU_STREAM_DEFAULT), other = Stream();
    CUgraph graph;
    unsigned flags;
    int priority;
    CU_OK(cuStreamBeginCapture(s, kRelaxed));
    CU_OK(cuStreamGetFlags(other, &flags));
    CU_OK(cuStreamGetPriority(s, &priority)); // this question does not
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, Status(s));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamGetFlags(s, &flags));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
    CU_OK(cuStreamBeginCapture(s, kRelaxed));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamGetFlags(nullptr, &flags));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
}

TEST_F(Capture, EventsDoNotCrossTheBorder) {
    CUstream a = Stream(), b = Stream(), c = Stream();
    CUevent outside, of_a, of_b, never;
    CUgraph graph;
    CU_OK(cuEventCreate(&never, 0));
    CU_OK(cuEventCreate(&outside, 0));
    CU_OK(cuEventCreate(&of_a, 0));
    CU_OK(cuEventCreate(&of_b, 0));
    CU_OK(cuEventRecord(outside, c));
    CU_OK(cuStreamBeginCapture(a, kRelaxed));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(a, outside, 0));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    CU_OK(cuStreamBeginCapture(a, kRelaxed));
    CU_OK(cuStreamWaitEvent(a, never, 0)); // was never recorded: nothing to wait for
    CU_OK(cuEventRecord(of_a, a));
    CU_OK(cuStreamEndCapture(a, &graph));
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventQuery(of_a)); // its capture has ended
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(b, of_a, 0));
    CU_OK(cuStreamBeginCapture(a, kRelaxed));
    CU_OK(cuStreamBeginCapture(b, kRelaxed));
    CU_OK(cuEventRecord(of_b, b));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(a, of_b, 0));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(b, &graph));
    CU_OK(cuStreamBeginCapture(a, kRelaxed));
    CU_OK(cuEventRecord(of_a, a));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamWaitEvent(nullptr, of_a, 0));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &graph));
}

TEST_F(Capture, TheFrontierCanBeReadAndSet) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    CUstreamCaptureStatus status;
    cuuint64_t id = 0, again = 0;
    CUgraph graph = nullptr, ended;
    const CUgraphNode *deps = nullptr;
    const CUgraphEdgeData *data = nullptr;
    size_t n = 9;
    CU_OK(cuStreamBeginCapture(s, kRelaxed));
    CU_OK(cuStreamGetCaptureInfo(s, &status, &id, &graph, &deps, &data, &n));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
    EXPECT_EQ(0u, n);
    CU_OK(Write(p, 1, s));
    CU_OK(cuStreamGetCaptureInfo(s, &status, &again, &graph, &deps, &data, &n));
    EXPECT_EQ(id, again);
    ASSERT_EQ(1u, n);
    CUgraphNode first = deps[0], empty;
    CU_OK(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
    CU_OK(cuStreamUpdateCaptureDependencies(s, &empty, nullptr, 1,
                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    CU_OK(Write(p, 2, s));
    CU_OK(cuStreamEndCapture(s, &ended));
    EXPECT_EQ(graph, ended);
    size_t n_first = 7, n_empty = 7;
    CU_OK(cuGraphNodeGetDependentNodes(first, nullptr, nullptr, &n_first));
    CU_OK(cuGraphNodeGetDependentNodes(empty, nullptr, nullptr, &n_empty));
    EXPECT_EQ(0u, n_first);
    EXPECT_EQ(1u, n_empty);
    CU_OK(cuStreamBeginCapture(s, kRelaxed));
    CU_OK(cuStreamGetCaptureInfo(s, &status, &again, nullptr, nullptr, nullptr, nullptr));
    EXPECT_NE(id, again);
    CU_OK(cuStreamEndCapture(s, &ended));
}

TEST_F(Capture, ACallThatNoTableKnowsBeginsACaptureToo) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    CUgraph graph;
    CU_OK(cuSimBeginCaptureX(s, kGlobal));
    CU_OK(Write(p, 5, s));
    CU_OK(cuStreamEndCapture(s, &graph));
    EXPECT_EQ(1u, Nodes(graph));
    EXPECT_EQ(0, Read(p));
}

TEST_F(Capture, AGraphLaunchedIntoACaptureBecomesAChild) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    CUgraph inner, outer;
    CUgraphExec inner_exec, outer_exec;
    CU_OK(cuStreamBeginCapture(s, kGlobal));
    CU_OK(Mix(p, 1, s));
    CU_OK(Mix(p, 2, s));
    CU_OK(cuStreamEndCapture(s, &inner));
    CU_OK(cuGraphInstantiate(&inner_exec, inner, 0));
    CU_OK(cuStreamBeginCapture(s, kGlobal));
    CU_OK(cuGraphLaunch(inner_exec, s));
    CU_OK(Mix(p, 3, s));
    CU_OK(cuStreamEndCapture(s, &outer));
    EXPECT_EQ(2u, Nodes(outer));
    CU_OK(cuGraphExecDestroy(inner_exec));
    CU_OK(cuGraphDestroy(inner));
    CU_OK(cuGraphInstantiate(&outer_exec, outer, 0));
    CU_OK(cuGraphLaunch(outer_exec, s));
    EXPECT_EQ(18, Read(p));
}

TEST_F(Capture, NodesTakeOverTheAttributesOfTheirStream) {
    CUstream s = nullptr, copy = nullptr;
    CU_OK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -3));
    CU_OK(cuStreamCreateWithPriority(&copy, CU_STREAM_NON_BLOCKING, 0));
    CUstreamAttrValue value{};
    value.accessPolicyWindow.num_bytes = 4096;
    CU_OK(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    CU_OK(cuStreamCopyAttributes(copy, s));
    CUgraph graph;
    CUdeviceptr p = Alloc(4);
    CU_OK(cuStreamBeginCapture(copy, kGlobal));
    CU_OK(Write(p, 1, copy));
    CU_OK(cuStreamEndCapture(copy, &graph));
    CUgraphNode node;
    size_t n = 1;
    CU_OK(cuGraphGetNodes(graph, &node, &n));
    CUkernelNodeAttrValue got{};
    CU_OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    EXPECT_EQ(-3, got.priority);
    CU_OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &got));
    EXPECT_EQ(4096u, got.accessPolicyWindow.num_bytes);
}

} // namespace
} // namespace sim
