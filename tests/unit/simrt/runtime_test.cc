// Promise: a program of the shared CUDA runtime finds on the simulator what it finds on a GPU:
// memory, streams, events, errors, devices.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/simrt/launch.h"

namespace {

using Words = std::vector<unsigned>;

TEST(Memory, BytesComeBackAndAreWhereTheyWerePut) {
    Words in(1000), out(1000, 1);
    for (unsigned i = 0; i < 1000; i++) {
        in[i] = i * 77;
    }
    unsigned *a, *b;
    OK(cudaMalloc((void **)&a, 4000));
    OK(cudaMalloc((void **)&b, 4000));
    ASSERT_NE(a, b);
    OK(cudaMemcpy(a, in.data(), 4000, cudaMemcpyHostToDevice));
    OK(cudaMemset(b, 0xab, 4000));
    OK(cudaMemcpy(b + 10, a, 40, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(out.data(), b, 4000, cudaMemcpyDefault));
    for (unsigned i = 0; i < 1000; i++) {
        ASSERT_EQ(out[i], i >= 10 && i < 20 ? (i - 10) * 77 : 0xababababu) << i;
    }
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaFree(nullptr));
}

TEST(Memory, PointersTellWhatTheyAre) {
    void *device, *pinned, *mapped;
    int own = 0;
    cudaPointerAttributes a;
    OK(cudaMalloc(&device, 64));
    OK(cudaMallocHost(&pinned, 64));
    OK(cudaHostAlloc(&mapped, 64, cudaHostAllocMapped));
    OK(cudaPointerGetAttributes(&a, device));
    EXPECT_EQ(a.type, cudaMemoryTypeDevice);
    EXPECT_EQ(a.devicePointer, device);
    OK(cudaPointerGetAttributes(&a, pinned));
    EXPECT_EQ(a.type, cudaMemoryTypeHost);
    OK(cudaPointerGetAttributes(&a, &own));
    EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
    void *seen;
    OK(cudaHostGetDevicePointer(&seen, mapped, 0));
    EXPECT_NE(seen, nullptr);
    size_t free_bytes = 0, total = 0;
    OK(cudaMemGetInfo(&free_bytes, &total));
    EXPECT_GT(total, 0u);
    EXPECT_LE(free_bytes, total);
    OK(cudaFree(device));
    OK(cudaFreeHost(pinned));
    OK(cudaFreeHost(mapped));
}

TEST(Memory, TwoDimensionalCopiesKeepThePitch) {
    char host[3][8];
    memset(host, 'x', sizeof host);
    void *p;
    size_t pitch;
    OK(cudaMallocPitch(&p, &pitch, 5, 3));
    ASSERT_GE(pitch, 5u);
    OK(cudaMemcpy2D(p, pitch, "abcdefghijklmno", 5, 5, 3, cudaMemcpyHostToDevice));
    OK(cudaMemset2D((char *)p + 1, pitch, '-', 2, 2));
    OK(cudaMemcpy2D(host, 8, p, pitch, 5, 3, cudaMemcpyDeviceToHost));
    EXPECT_EQ(std::string(host[0], 8), "a--dexxx");
    EXPECT_EQ(std::string(host[1], 8), "f--ijxxx");
    EXPECT_EQ(std::string(host[2], 8), "klmnoxxx");
    OK(cudaFree(p));
}

TEST(Memory, StreamOrderedAllocation) {
    cudaStream_t s;
    unsigned *p, out = 0;
    OK(cudaStreamCreate(&s));
    OK(cudaMallocAsync((void **)&p, 256, s));
    OK(cudaMemsetAsync(p, 0, 256, s));
    launch_chain(p, 1, 41, 64, s);
    launch_chain(p, 1, 1, 64, s);
    OK(cudaMemcpyAsync(&out, p + 63, 4, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(p, s));
    OK(cudaStreamSynchronize(s));
    EXPECT_EQ(out, 42u);
    OK(cudaStreamDestroy(s));
}

TEST(Stream, WorkRunsInOrderAndQueryTellsTheTruth) {
    cudaStream_t s;
    unsigned *x, *flag, *seen, out[2] = {};
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&x, 8));
    OK(cudaHostAlloc((void **)&flag, 8, cudaHostAllocMapped));
    flag[0] = 0;
    OK(cudaHostGetDevicePointer((void **)&seen, flag, 0));
    OK(cudaMemset(x, 0, 8));
    OK(cudaDeviceSynchronize());
    launch_chain(x, 1, 5, 1, s);
    launch_spin_until(seen, 1, 1ull << 32, x + 1, s);
    launch_chain(x, 3, 1, 1, s);
    EXPECT_EQ(cudaStreamQuery(s), cudaErrorNotReady);
    cudaGetLastError();
    *(volatile unsigned *)flag = 1;
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamQuery(s));
    OK(cudaMemcpy(out, x, 8, cudaMemcpyDeviceToHost));
    EXPECT_EQ(out[0], 16u);
    EXPECT_EQ(out[1], 1u);
    unsigned flags = 0;
    OK(cudaStreamGetFlags(s, &flags));
    EXPECT_EQ(flags, (unsigned)cudaStreamNonBlocking);
    OK(cudaStreamDestroy(s));
    OK(cudaFree(x));
    OK(cudaFreeHost(flag));
}

TEST(Stream, EventsOrderStreamsAndMeasureTime) {
    cudaStream_t a, b;
    cudaEvent_t begin, end;
    unsigned *x, out = 0;
    OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, 0));
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreateWithFlags(&end, cudaEventDefault));
    OK(cudaMalloc((void **)&x, 4));
    for (unsigned round = 0; round < 20; round++) {
        OK(cudaMemsetAsync(x, 0, 4, a));
        OK(cudaEventRecord(begin, a));
        launch_chain(x, 1, 2, 1, a);
        OK(cudaEventRecord(end, a));
        OK(cudaStreamWaitEvent(b, end, 0));
        launch_chain(x, 10, 3, 1, b);
        OK(cudaEventRecord(end, b));
        OK(cudaStreamWaitEvent(a, end, 0));
        OK(cudaMemcpyAsync(&out, x, 4, cudaMemcpyDeviceToHost, a));
        OK(cudaStreamSynchronize(a));
        ASSERT_EQ(out, 23u);
    }
    float ms = -1;
    OK(cudaEventSynchronize(end));
    OK(cudaEventQuery(end));
    OK(cudaEventElapsedTime(&ms, begin, end));
    EXPECT_GE(ms, 0.0f);
    OK(cudaEventDestroy(begin));
    OK(cudaEventDestroy(end));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
    OK(cudaFree(x));
}

TEST(Stream, HostFunctionsRunInTheirPlace) {
    struct Seen {
        unsigned *from;
        unsigned value;
    } seen = {};
    cudaStream_t s;
    unsigned *x;
    OK(cudaStreamCreate(&s));
    OK(cudaMalloc((void **)&x, 4));
    OK(cudaMallocHost((void **)&seen.from, 4));
    *seen.from = 0;
    OK(cudaMemsetAsync(x, 0, 4, s));
    launch_chain(x, 1, 7, 1, s);
    OK(cudaMemcpyAsync(seen.from, x, 4, cudaMemcpyDeviceToHost, s));
    OK(cudaLaunchHostFunc(
        s, [](void *p) { ((Seen *)p)->value = *((Seen *)p)->from; }, &seen));
    OK(cudaStreamSynchronize(s));
    EXPECT_EQ(seen.value, 7u);
    int calls = 0;
    OK(cudaStreamAddCallback(
        s, [](cudaStream_t, cudaError_t status, void *p) { *(int *)p += status == cudaSuccess; },
        &calls, 0));
    OK(cudaStreamSynchronize(s));
    EXPECT_EQ(calls, 1);
    OK(cudaStreamDestroy(s));
    OK(cudaFree(x));
    OK(cudaFreeHost(seen.from));
}

TEST(Stream, PerThreadDefaultStreamsDoNotWaitForEachOther) {
    unsigned *flag, *seen, *x;
    OK(cudaHostAlloc((void **)&flag, 4, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer((void **)&seen, flag, 0));
    OK(cudaMalloc((void **)&x, 8));
    *flag = 0;
    launch_spin_until_per_thread(seen, 1, 1ull << 32, x, nullptr);
    std::thread other([&] {
        launch_fill_per_thread(x + 1, 5, 1, 32, nullptr);
        EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
        *(volatile unsigned *)flag = 1;
    });
    other.join();
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    unsigned out[2];
    OK(cudaMemcpy(out, x, 8, cudaMemcpyDeviceToHost));
    EXPECT_EQ(out[0], 1u);
    EXPECT_EQ(out[1], 5u);
    OK(cudaFree(x));
    OK(cudaFreeHost(flag));
}

TEST(Errors, BelongToTheThreadAndAreForgottenOnceRead) {
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_NE(cudaMalloc(nullptr, 16), cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
    std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_STREQ(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    void *p;
    EXPECT_EQ(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Device, DescribesItself) {
    int count = 0, device = -1, version = 0, value = 0, least = 0, greatest = 0;
    OK(cudaGetDeviceCount(&count));
    ASSERT_GE(count, 1);
    OK(cudaSetDevice(0));
    OK(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    EXPECT_GT(strlen(p.name), 0u);
    EXPECT_EQ(p.warpSize, 32);
    EXPECT_EQ(p.maxThreadsPerBlock, 1024);
    EXPECT_GT(p.totalGlobalMem, 0u);
    EXPECT_GE(p.multiProcessorCount, 1);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    EXPECT_EQ(value, 32);
    OK(cudaRuntimeGetVersion(&version));
    EXPECT_EQ(version / 1000, 13);
    OK(cudaDriverGetVersion(&version));
    EXPECT_GE(version, 12000);
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT_LE(greatest, least);
}

} // namespace
