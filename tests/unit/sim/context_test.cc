// Promise: the simulator handles a thread's stack of contexts, primary contexts, two devices, and
// ownership.
#include "tests/unit/sim/sim.h"

namespace sim {
namespace {

const bool kTwoDevices = setenv("CUSIM_DEVICES", "2", 1) == 0;

class Context : public Sim {};

TEST_F(Context, TheStackOfAThreadIsItsOwn) {
    CUcontext a, b, got = nullptr;
    CU_OK(cuCtxCreate(&a, nullptr, 0, 0));
    CU_OK(cuCtxCreate(&b, nullptr, 0, 1));
    CU_OK(cuCtxGetCurrent(&got));
    EXPECT_EQ(b, got);
    CU_OK(cuCtxPushCurrent(a));
    CUdevice device = 9;
    CU_OK(cuCtxGetDevice(&device));
    EXPECT_EQ(0, device);
    CU_OK(cuCtxPopCurrent(&got));
    EXPECT_EQ(a, got);
    CU_OK(cuCtxGetDevice(&device));
    EXPECT_EQ(1, device);
    std::thread([&] {
        CUcontext there = a;
        EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&there));
        EXPECT_EQ(nullptr, there);
        EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
        EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&there));
        EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(a));
    }).join();
    CU_OK(cuCtxDestroy(b)); // was current: gone from the stack
    CU_OK(cuCtxGetCurrent(&got));
    EXPECT_EQ(a, got);
    CU_EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(b));
    CU_OK(cuCtxDestroy(a));
}

TEST_F(Context, ADestroyedContextStaysCurrentElsewhereAndIsRefused) {
    CUcontext made;
    CU_OK(cuCtxCreate(&made, nullptr, 0, 0));
    CUstream stream = Stream();
    std::atomic<int> step{0};
    CUresult before = CUDA_ERROR_UNKNOWN, after = CUDA_SUCCESS;
    std::thread other([&] {
        cuCtxSetCurrent(made);
        before = cuCtxSynchronize();
        step = 1;
        while (step != 2)
            std::this_thread::yield();
        after = cuCtxSynchronize();
    });
    while (step != 1)
        std::this_thread::yield();
    CU_OK(cuCtxDestroy(made));
    step = 2;
    other.join();
    EXPECT_EQ(CUDA_SUCCESS, before);
    EXPECT_EQ(CUDA_ERROR_CONTEXT_IS_DESTROYED, after);
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
}

TEST_F(Context, DestroyingAContextWaitsForItsWork) {
    CUcontext made;
    CUdeviceptr p = Alloc(4);
    CU_OK(cuCtxCreate(&made, nullptr, 0, 0));
    CU_OK(cuModuleLoadData(&module, "image"));
    CUstream stream = Stream();
    Gate gate;
    CU_OK(Wait(gate, stream));
    CU_OK(Write(p, 3, stream));
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        gate.Open();
    });
    CU_OK(cuCtxDestroy(made));
    EXPECT_EQ(3, *reinterpret_cast<int *>(p)); // memory of the simulator is the host's too
    opener.join();
}

TEST_F(Context, PrimaryContextsAreCounted) {
    CUcontext again, second;
    unsigned flags;
    int active = 9;
    CU_OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    EXPECT_EQ(0, active);
    CU_OK(cuDevicePrimaryCtxRetain(&again, 0));
    EXPECT_EQ(ctx, again);
    CU_OK(cuDevicePrimaryCtxRelease(0));
    CU_EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    CU_OK(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT_NE(ctx, second);
    CU_EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(second));
    CU_OK(cuDevicePrimaryCtxRelease(1));
    CU_EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(1));
    CU_OK(cuDevicePrimaryCtxRelease(0)); // the last one
    CU_EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    CU_EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&second, 2));
}

TEST_F(Context, DevicesHaveArenasOfTheirOwnAndCopyToEachOther) {
    CUcontext second;
    CUdeviceptr here = Alloc(4, 77), there;
    CU_OK(cuDevicePrimaryCtxRetain(&second, 1));
    CU_OK(cuCtxSetCurrent(second));
    there = Alloc(4);
    int ordinal = 9;
    CU_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    EXPECT_EQ(1, ordinal);
    CU_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, here));
    EXPECT_EQ(0, ordinal);
    CU_OK(cuMemcpyPeer(there, second, here, ctx, 4));
    EXPECT_EQ(77, Read(there));
    CU_OK(cuDevicePrimaryCtxReset(1));
}

TEST_F(Context, LegacyOrderEndsAtTheContext) {
    CUcontext made;
    CUdeviceptr p = Alloc(4);
    Gate gate;
    CU_OK(Wait(gate, nullptr));
    CU_OK(cuCtxCreate(&made, nullptr, 0, 0));
    CU_OK(cuModuleLoadData(&module, "image"));
    CUstream blocking = Stream(CU_STREAM_DEFAULT);
    CU_OK(Write(p, 1, blocking));
    CU_OK(cuStreamSynchronize(blocking)); // the other context's legacy stream stands
    CUevent foreign;
    CU_OK(cuEventCreate(&foreign, 0));
    CU_OK(cuCtxPushCurrent(ctx));
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(foreign, nullptr));
    CU_OK(cuEventRecord(foreign, blocking));
    CU_OK(cuStreamWaitEvent(nullptr, foreign, 0)); // a wait may cross
    CU_OK(cuCtxPopCurrent(nullptr));
    gate.Open();
    CU_OK(cuCtxDestroy(made));
}

TEST_F(Context, AnEventOfTheWholeContextStandsBehindAllStreams) {
    CUstream a = Stream(), b = Stream(), c = Stream();
    Gate gate;
    CUevent e;
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CU_OK(cuEventCreate(&e, 0));
    CU_OK(Wait(gate, a));
    CU_OK(Write(p, 6, a));
    CU_OK(cuCtxRecordEvent(ctx, e));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    CU_OK(cuCtxWaitEvent(ctx, e));
    CU_OK(Copy(q, p, b));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(c));
    gate.Open();
    EXPECT_EQ(6, Read(q));
}

TEST_F(Context, AFailedEndOfACaptureEndsIt) {
    CUstream s = Stream();
    CUgraph graph;
    CU_OK(cuSimSetFault("cuStreamEndCapture:1:999"));
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_EXPECT(CUDA_ERROR_UNKNOWN, cuStreamEndCapture(s, &graph));
    EXPECT_EQ(nullptr, graph);
    CU_EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
}

} // namespace
} // namespace sim
