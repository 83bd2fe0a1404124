// Promise: operations run in CUDA's order: streams, legacy and per-thread default streams, events,
// host memory.
#include "tests/unit/sim/sim.h"

#include <cstring>

extern "C" {
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream, void **, void **);
CUresult cuStreamSynchronize_ptsz(CUstream);
CUresult cuStreamGetId_ptsz(CUstream, unsigned long long *);
}

namespace sim {
namespace {

class Order : public Sim {};

void Settle() {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

TEST_F(Order, OneStreamRunsInTheOrderOfTheCalls) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    int want = 0;
    for (int i = 0; i < 60; i++) {
        CU_OK(Mix(p, i, s));
        want = static_cast<int>(static_cast<unsigned>(want) * 3u + static_cast<unsigned>(i));
    }
    EXPECT_EQ(want, Read(p));
}

TEST_F(Order, TwoNonBlockingStreamsOverlap) {
    Gate gate;
    CUstream a = Stream(), b = Stream();
    CUdeviceptr p = Alloc(4);
    CU_OK(Wait(gate, a));
    CU_OK(Write(p, 7, b));
    CU_OK(cuStreamSynchronize(b));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(a));
    gate.Open();
    EXPECT_EQ(7, Read(p));
}

TEST_F(Order, LegacyWaitsForBlockingStreams) {
    Gate gate;
    CUstream s = Stream(CU_STREAM_DEFAULT);
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CU_OK(Wait(gate, s));
    CU_OK(Write(p, 5, s));
    CU_OK(Copy(q, p, nullptr));
    Settle();
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
    gate.Open();
    EXPECT_EQ(5, Read(q));
}

TEST_F(Order, BlockingStreamsWaitForLegacy) {
    Gate gate;
    CUstream s = Stream(CU_STREAM_DEFAULT);
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CU_OK(Wait(gate, nullptr));
    CU_OK(Write(p, 6, nullptr));
    CU_OK(Copy(q, p, s));
    Settle();
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    gate.Open();
    EXPECT_EQ(6, Read(q));
}

TEST_F(Order, NonBlockingStreamsAreExemptFromLegacyOrderBothWays) {
    Gate gate, other;
    CUstream s = Stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CU_OK(Wait(gate, nullptr));
    CU_OK(Write(p, 1, s));
    CU_OK(cuStreamSynchronize(s)); // returns although the legacy stream stands
    gate.Open();
    CU_OK(cuStreamSynchronize(nullptr));
    CU_OK(Wait(other, s));
    CU_OK(Write(q, 2, nullptr));
    CU_OK(cuStreamSynchronize(nullptr));
    other.Open();
    EXPECT_EQ(1, Read(p));
    EXPECT_EQ(2, Read(q));
}

TEST_F(Order, ADestroyedBlockingStreamStillHoldsTheLegacyStreamBack) {
    Gate gate;
    CUstream s = Stream(CU_STREAM_DEFAULT);
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CU_OK(Wait(gate, s));
    CU_OK(Write(p, 5, s));
    CU_OK(cuStreamDestroy(s)); // returns at once
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(s));
    CU_OK(Copy(q, p, nullptr));
    Settle();
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
    gate.Open();
    EXPECT_EQ(5, Read(q));
}

TEST_F(Order, SynchronizingTheLegacyStreamWaitsForBlockingStreams) {
    Gate gate;
    CUstream s = Stream(CU_STREAM_DEFAULT);
    CU_OK(Wait(gate, s));
    std::thread opener([&] {
        Settle();
        gate.Open();
    });
    CU_OK(cuStreamSynchronize(nullptr));
    CU_EXPECT(CUDA_SUCCESS, cuStreamQuery(s));
    opener.join();
}

TEST_F(Order, ThePerThreadStreamIsAnotherOneInEachThreadAndBlocking) {
    unsigned long long mine = 0, again = 0, explicit_id = 0, others = 0, legacy = 0;
    CU_OK(cuStreamGetId_ptsz(nullptr, &mine));
    CU_OK(cuStreamGetId_ptsz(nullptr, &again));
    CU_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &explicit_id));
    CU_OK(cuStreamGetId_ptsz(CU_STREAM_LEGACY, &legacy));
    std::thread([&] {
        cuCtxSetCurrent(ctx);
        cuStreamGetId_ptsz(nullptr, &others);
    }).join();
    EXPECT_EQ(mine, again);
    EXPECT_EQ(mine, explicit_id);
    EXPECT_NE(mine, legacy);
    EXPECT_NE(mine, others);
    EXPECT_NE(0u, others);

    Gate gate;
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CU_OK(Wait(gate, CU_STREAM_PER_THREAD));
    CU_OK(Write(p, 9, CU_STREAM_PER_THREAD));
    CU_OK(Copy(q, p, CU_STREAM_LEGACY));
    Settle();
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_LEGACY));
    gate.Open();
    EXPECT_EQ(9, Read(q));
}

TEST_F(Order, AnEventOrdersTwoStreams) {
    Gate gate;
    CUstream a = Stream(), b = Stream();
    CUdeviceptr p = Alloc(4), q = Alloc(4);
    CUevent e;
    CU_OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    CU_EXPECT(CUDA_SUCCESS, cuEventQuery(e)); // never recorded
    CU_OK(Wait(gate, a));
    CU_OK(Write(p, 3, a));
    CU_OK(cuEventRecord(e, a));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    CU_OK(cuStreamWaitEvent(b, e, 0));
    CU_OK(Copy(q, p, b));
    Settle();
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
    gate.Open();
    CU_OK(cuEventSynchronize(e));
    EXPECT_EQ(3, Read(q));
}

TEST_F(Order, AWaitRefersToTheLastRecordAtTheCall) {
    Gate gate;
    CUstream a = Stream(), b = Stream(), c = Stream();
    CUevent e;
    CU_OK(cuEventCreate(&e, 0));
    CU_OK(cuEventRecord(e, a));
    CU_OK(cuStreamWaitEvent(b, e, 0));
    CU_OK(Wait(gate, c));
    CU_OK(cuEventRecord(e, c)); // later: b does not wait for it
    CU_OK(cuStreamSynchronize(b));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    CU_OK(cuEventDestroy(e)); // while it is pending
}

TEST_F(Order, ElapsedTimeNeedsTwoCompletedTimedRecords) {
    CUstream s = Stream();
    CUevent a, b, untimed;
    Gate gate;
    float ms = -1;
    CU_OK(cuEventCreate(&a, 0));
    CU_OK(cuEventCreate(&b, 0));
    CU_OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, a, b));
    CU_OK(cuEventRecord(a, s));
    CU_OK(Wait(gate, s));
    CU_OK(cuEventRecord(b, s));
    CU_OK(cuEventRecord(untimed, s));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, a, b));
    CU_OK(cuEventSynchronize(a));
    Settle();
    gate.Open();
    CU_OK(cuStreamSynchronize(s));
    CU_OK(cuEventElapsedTime(&ms, a, b));
    EXPECT_GE(ms, 20.0f);
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, a, untimed));
}

TEST_F(Order, PageableUploadIsReadAtTheCallAndPinnedUploadWhenItRuns) {
    CUstream s = Stream();
    for (bool pinned : {false, true}) {
        Gate gate;
        CUdeviceptr p = Alloc(4);
        int stack = 1, *host = &stack;
        if (pinned) {
            CU_OK(cuMemHostAlloc(reinterpret_cast<void **>(&host), 4, 0));
        }
        *host = 1;
        CU_OK(Wait(gate, s));
        CU_OK(cuMemcpyHtoDAsync(p, host, 4, s));
        *host = 2;
        gate.Open();
        EXPECT_EQ(pinned ? 2 : 1, Read(p));
    }
}

TEST_F(Order, PageableDownloadIsDoneWhenTheCallReturnsAndPinnedIsNot) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    int stack = 0, *host = nullptr;
    CU_OK(cuMemHostAlloc(reinterpret_cast<void **>(&host), 4, 0));
    *host = 0;
    Gate first;
    std::thread opener([&] {
        Settle();
        first.Open();
    });
    CU_OK(Wait(first, s));
    CU_OK(Write(p, 4, s));
    CU_OK(cuMemcpyDtoHAsync(&stack, p, 4, s));
    EXPECT_EQ(4, stack);
    opener.join();
    Gate second;
    CU_OK(Wait(second, s));
    CU_OK(cuMemcpyDtoHAsync(host, p, 4, s));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    second.Open();
    CU_OK(cuStreamSynchronize(s));
    EXPECT_EQ(4, *host);
}

TEST_F(Order, SynchronousCopiesWaitExceptFromDeviceToDevice) {
    Gate gate;
    CUdeviceptr p = Alloc(4, 8), q = Alloc(4);
    CU_OK(Wait(gate, nullptr));
    CU_OK(cuMemcpyDtoD(q, p, 4)); // would hang if it waited
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
    gate.Open();
    int value = 0;
    CU_OK(cuMemcpyDtoH(&value, q, 4));
    EXPECT_EQ(8, value);
}

TEST_F(Order, AHostFunctionRunsInOrderAndMayNotCallCuda) {
    struct State {
        std::atomic<int> ran{0};
        CUdeviceptr p;
        int seen = 0;
        CUresult nested = CUDA_SUCCESS;
    } state;
    CUstream s = Stream();
    state.p = Alloc(4);
    CU_OK(Write(state.p, 11, s));
    CU_OK(cuLaunchHostFunc(
        s,
        [](void *data) {
            auto *st = static_cast<State *>(data);
            st->seen = *reinterpret_cast<int *>(st->p);
            st->nested = cuStreamSynchronize(nullptr);
            st->ran = 1;
        },
        &state));
    CU_OK(Write(state.p, 12, s));
    EXPECT_EQ(12, Read(state.p));
    EXPECT_EQ(1, state.ran);
    EXPECT_EQ(11, state.seen);
    EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, state.nested);
}

TEST_F(Order, AStreamWaitsForAValueThatAnotherWrites) {
    CUstream a = Stream(), b = Stream();
    CUdeviceptr flag = Alloc(8), p = Alloc(4), q = Alloc(4);
    CU_OK(cuStreamWaitValue32(a, flag, 5, CU_STREAM_WAIT_VALUE_EQ));
    CU_OK(Copy(q, p, a));
    Settle();
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(a));
    CU_OK(Write(p, 21, b));
    CU_OK(cuStreamWriteValue32(b, flag, 5, 0));
    CU_OK(cuStreamSynchronize(a));
    EXPECT_EQ(21, Read(q));
}

TEST_F(Order, AFullQueueMakesTheCallWait) {
    Gate gate;
    CUstream s = Stream();
    std::atomic<int> launched{0};
    CU_OK(Wait(gate, s));
    std::thread launcher([&] {
        cuCtxSetCurrent(ctx);
        CUfunction f = Func("empty");
        for (int i = 0; i < 1500; i++) {
            cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr);
            launched++;
        }
    });
    for (int i = 0; i < 200 && launched < 1023; i++)
        Settle();
    Settle();
    EXPECT_EQ(1023, launched);
    gate.Open();
    launcher.join();
    CU_OK(cuStreamSynchronize(s));
}

} // namespace
} // namespace sim
