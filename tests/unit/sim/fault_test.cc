// Promise: faults count the right caller's calls and do what they say; a fault that is not
// understood is reported.
#include "tests/unit/sim/sim.h"

extern "C" unsigned cuSimCaller(unsigned who);

namespace sim {
namespace {

class Fault : public Sim {
  protected:
    void TearDown() override {
        cuSimCaller(0);
        Sim::TearDown();
    }

    CUresult Alloc4() {
        CUdeviceptr p;
        return cuMemAlloc(&p, 4);
    }
    CUresult OwnAlloc4() {
        cuSimCaller(1);
        CUresult result = Alloc4();
        EXPECT_EQ(1u, cuSimCaller(0)) << "it says who was before";
        return result;
    }
};

TEST_F(Fault, CountsTheCallsOfTheOneThatIsNamed) {
    CU_OK(cuSimSetFault("cuMemAlloc_v2@own:2:2,cuMemAlloc_v2@program:3:1"));
    CU_EXPECT(CUDA_SUCCESS, Alloc4());
    CU_EXPECT(CUDA_SUCCESS, OwnAlloc4());
    CU_EXPECT(CUDA_SUCCESS, Alloc4());
    CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, OwnAlloc4());
    CU_EXPECT(CUDA_SUCCESS, OwnAlloc4());
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, Alloc4());
    CU_EXPECT(CUDA_SUCCESS, Alloc4());
}

TEST_F(Fault, OnwardMeansAllBehind) {
    CU_OK(cuSimSetFault("cuMemAlloc_v2@own:2+:2"));
    CU_EXPECT(CUDA_SUCCESS, OwnAlloc4());
    for (int i = 0; i < 3; i++) {
        CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, OwnAlloc4());
        CU_EXPECT(CUDA_SUCCESS, Alloc4());
    }
}

TEST_F(Fault, LostContextAnswersTheErrorFromThenOn) {
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CU_OK(cuSimSetFault("cuEventCreate:1:lost=719"));
    CUevent e;
    CU_EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuEventCreate(&e, 0));
    CU_EXPECT(CUDA_ERROR_LAUNCH_FAILED, Mix(p, 1, s));
    CU_EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(s));
    CU_EXPECT(CUDA_ERROR_LAUNCH_FAILED, Alloc4());
    cuDevicePrimaryCtxReset(0);
    CU_OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    CU_EXPECT(CUDA_SUCCESS, Alloc4());
}

TEST_F(Fault, LateFailsWhenTheWorkIsDone) {
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CU_OK(cuModuleLoadData(&module, "any image"));
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuSimSetFault("cuLaunchKernel:1:late=700"));
    CU_EXPECT(CUDA_SUCCESS, Mix(p, 1, s));
    CU_EXPECT(CUDA_SUCCESS, Mix(p, 2, s));
    gate.Open();
    CU_EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
    CU_EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, Mix(p, 3, s));
}

TEST_F(Fault, LateGraphLaunch) {
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CUgraph graph;
    CUgraphExec exec;
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU_OK(Mix(p, 1, s));
    CU_OK(cuStreamEndCapture(s, &graph));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuSimSetFault("cuGraphLaunch:2:late=719"));
    CU_OK(cuGraphLaunch(exec, s));
    CU_EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
    CU_OK(cuGraphLaunch(exec, s));
    CU_EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(s));
}

// The second kernel of a graph ends the context: what is behind it in the graph does not run.
TEST_F(Fault, KernelInsideAGraph) {
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CUgraph graph;
    CUgraphExec exec;
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 1; i <= 4; i++)
        CU_OK(Mix(p, i, s));
    CU_OK(cuStreamEndCapture(s, &graph));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuSimSetFault("kernel:3:late=700"));
    CU_OK(Mix(p, 5, s));
    CU_OK(cuGraphLaunch(exec, s));
    CU_EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
    CU_EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CU_EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphLaunch(exec, s));
    EXPECT_EQ((5 * 3 + 1) * 3 + 2, *reinterpret_cast<int *>(p)) << "by three kernels";
}

// The thread that makes the call stays in it, and others go on.
TEST_F(Fault, HangHoldsNobodyElse) {
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CU_OK(cuSimSetFault("cuStreamQuery:1:hang"));
    static std::atomic<int> began, returned;
    std::thread([s] {
        began = 1;
        cuStreamQuery(s);
        returned = 1;
    }).detach();
    while (!began)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CU_OK(Mix(p, 1, s));
    CU_EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
    EXPECT_EQ(0, returned);
}

// A fault of a call that submits nothing must not fall on the next call that does.
TEST_F(Fault, LateIsForgottenWhereNothingIsSubmitted) {
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CU_OK(cuSimSetFault("cuMemAlloc_v2:1:late=719"));
    CU_EXPECT(CUDA_SUCCESS, Alloc4());
    CU_OK(Mix(p, 1, s));
    CU_EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
}

TEST_F(Fault, InvalidateSpoilsTheOpenCapture) {
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CUgraph graph;
    CUstreamCaptureStatus status;
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU_OK(Mix(p, 1, s));
    CU_OK(cuSimSetFault("cuLaunchKernel:1:invalidate"));
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Mix(p, 2, s));
    CU_OK(cuStreamIsCapturing(s, &status));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, status);
    CU_EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
    CU_EXPECT(CUDA_SUCCESS, Mix(p, 3, s));
    EXPECT_EQ(3, Read(p));
}

TEST_F(Fault, WhatIsNotUnderstoodChangesNothing) {
    CU_OK(cuSimSetFault("cuMemAlloc_v2:1+:2"));
    for (const char *text : {"cuNoSuchCall:1:2",
                             "cuMemAlloc_v2",
                             "cuMemAlloc_v2:",
                             "cuMemAlloc_v2:1",
                             "cuMemAlloc_v2:1:",
                             "cuMemAlloc_v2:0:2",
                             "cuMemAlloc_v2:-1:2",
                             "cuMemAlloc_v2:1:0",
                             "cuMemAlloc_v2:1:x",
                             "cuMemAlloc_v2:1:2x",
                             "cuMemAlloc_v2:1++:2",
                             "cuMemAlloc_v2@me:1:2",
                             "cuMemAlloc_v2@own1:2",
                             "cuMemAlloc_v2:1:lost",
                             "cuMemAlloc_v2:1:lost=",
                             "cuMemAlloc_v2:1:late=0",
                             "cuMemAlloc_v2:1:invalidated",
                             "cuMemAlloc_v2:1:hang=1",
                             "kernel:1:700",
                             "kernel:1:lost=700",
                             "kernel:1:hang",
                             "kernel@own:1:late=700",
                             "cuMemAlloc_v2:1:2,",
                             "cuMemAlloc_v2:1:2;cuEventCreate:1:2",
                             " cuMemAlloc_v2:1:2",
                             ",",
                             "cuMemAlloc_v2:99999999999999999999:2"}) {
        SCOPED_TRACE(text);
        CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuSimSetFault(text));
        CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, Alloc4()) << "the list is as it was";
    }
    CU_OK(cuSimSetFault(""));
    CU_EXPECT(CUDA_SUCCESS, Alloc4());
}

} // namespace
} // namespace sim
