// Promise: the simulator's memory is right: addresses, copies, queries, stream-ordered allocation,
// releases that wait.
#include "tests/unit/sim/sim.h"

#include <cstring>
#include <numeric>

namespace sim {
namespace {

class Memory : public Sim {};

const auto kInvalid = CUDA_ERROR_INVALID_VALUE;

TEST_F(Memory, AddressesComeFromAFixedArenaFirstFit) {
    CUdeviceptr a = Alloc(1000), b = Alloc(1), c = Alloc(4096);
    EXPECT_EQ(a + 1024, b);
    EXPECT_EQ(b + 512, c);
    EXPECT_EQ(0u, a % 0x100000000); // the start of the arena
    CU_OK(cuMemFree(a));
    EXPECT_EQ(a, Alloc(600));
    EXPECT_EQ(c + 4096, Alloc(100000));
}

TEST_F(Memory, MemoryRunsOutAndComesBack) {
    size_t before, available, total;
    CUdeviceptr p, q;
    CU_OK(cuMemGetInfo(&before, &total));
    EXPECT_EQ(before, total);
    CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, total + 1));
    CU_OK(cuMemAlloc(&p, total - 4096));
    CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 8192));
    CU_OK(cuMemGetInfo(&available, &total));
    EXPECT_EQ(4096u, available);
    CU_OK(cuMemFree(p));
    CU_EXPECT(kInvalid, cuMemFree(p));
    CU_OK(cuMemFree(0));
    CU_OK(cuMemGetInfo(&available, &total));
    EXPECT_EQ(before, available);
}

TEST_F(Memory, BadRangesFailAtTheCall) {
    CUdeviceptr p = Alloc(100);
    int host[64] = {};
    CU_EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync(p, host, 100, nullptr));
    CU_EXPECT(kInvalid, cuMemcpyHtoDAsync(p, host, 101, nullptr));
    CU_EXPECT(kInvalid, cuMemcpyAsync(p + 96, reinterpret_cast<CUdeviceptr>(host), 8, nullptr));
    CU_EXPECT(kInvalid, cuMemcpyDtoHAsync(host, p - 4, 8, nullptr));
    CU_EXPECT(kInvalid, cuMemsetD32Async(p, 0, 26, nullptr));
    CU_EXPECT(kInvalid, cuMemsetD32Async(p + 2, 0, 1, nullptr));
    CU_EXPECT(kInvalid, cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(host), 0, 1, nullptr));
    CU_EXPECT(CUDA_SUCCESS, cuMemsetD32Async(p, 0, 0, nullptr));
    CU_EXPECT(CUDA_SUCCESS, cuMemcpyDtoDAsync(p, p, 0, nullptr));
    CU_OK(cuMemFree(p));
    CU_EXPECT(kInvalid, cuMemcpyDtoHAsync(host, p, 4, nullptr));
}

TEST_F(Memory, MemsetsOfAllWidthsAndDimensions) {
    CUdeviceptr p = Alloc(256);
    unsigned char got[256];
    CU_OK(cuMemsetD8(p, 0xab, 7));
    CU_OK(cuMemsetD16(p + 8, 0x1234, 3));
    CU_OK(cuMemsetD32(p + 16, 0xdeadbeef, 2));
    CU_OK(cuMemsetD2D16(p + 64, 32, 0x5566, 4, 3));
    CU_OK(cuMemcpyDtoH(got, p, 256));
    EXPECT_EQ(0xab, got[6]);
    EXPECT_EQ(0, got[7]);
    EXPECT_EQ(0x34, got[12]);
    EXPECT_EQ(0x12, got[13]);
    EXPECT_EQ(0, got[14]);
    EXPECT_EQ(0xde, got[23]);
    EXPECT_EQ(0, got[24]);
    for (int row = 0; row < 3; row++) {
        EXPECT_EQ(0x66, got[64 + row * 32]);
        EXPECT_EQ(0x55, got[64 + row * 32 + 7]);
        EXPECT_EQ(0, got[64 + row * 32 + 8]);
    }
    EXPECT_EQ(0, got[64 + 3 * 32]);
    CU_EXPECT(kInvalid, cuMemsetD2D32(p, 8, 0, 3, 2)); // rows would overlap
}

TEST_F(Memory, TwoDimensionalCopies) {
    CUdeviceptr p = Alloc(1024);
    unsigned char host[64], back[64] = {};
    std::iota(host, host + 64, 1);
    CUDA_MEMCPY2D c{};
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.srcPitch = 16;
    c.srcXInBytes = 4;
    c.srcY = 1;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = p;
    c.dstPitch = 128;
    c.WidthInBytes = 8;
    c.Height = 3;
    CU_OK(cuMemcpy2D(&c));
    for (int y = 0; y < 3; y++) {
        CU_OK(cuMemcpyDtoH(back, p + 128 * y, 9));
        EXPECT_EQ(0, memcmp(back, host + 16 * (y + 1) + 4, 8));
        EXPECT_EQ(0, back[8]);
    }
    c.dstPitch = 4;
    CU_EXPECT(kInvalid, cuMemcpy2D(&c));
}

TEST_F(Memory, WhatAnAddressIs) {
    CUdeviceptr device = Alloc(1000), managed;
    int *pinned, *registered = static_cast<int *>(aligned_alloc(4096, 8192)), stack;
    CU_OK(cuMemHostAlloc(reinterpret_cast<void **>(&pinned), 100, CU_MEMHOSTALLOC_DEVICEMAP));
    CU_OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    CU_OK(cuMemHostRegister(registered, 4096, 0));
    CU_EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(registered + 4, 8, 0));
    struct Row {
        CUdeviceptr at;
        unsigned type;
        bool managed;
        CUdeviceptr base;
        size_t bytes;
    };
    auto address = [](void *p) { return reinterpret_cast<CUdeviceptr>(p); };
    const Row rows[] = {
        {device + 8, CU_MEMORYTYPE_DEVICE, false, device, 1000},
        {managed + 8, CU_MEMORYTYPE_DEVICE, true, managed, 100},
        {address(pinned + 1), CU_MEMORYTYPE_HOST, false, address(pinned), 100},
        {address(registered + 1), CU_MEMORYTYPE_HOST, false, address(registered), 4096},
        {address(registered + 1024), 0, false, 0, 0},
        {address(&stack), 0, false, 0, 0},
        {device + 1000, 0, false, 0, 0},
    };
    for (const Row &row : rows) {
        SCOPED_TRACE(testing::Message() << std::hex << row.at);
        unsigned type = 99;
        unsigned is_managed = 9; // four bytes wide, as all booleans here
        int ordinal = 99;
        CUdeviceptr base = 1;
        size_t bytes = 1;
        CUcontext in = nullptr;
        CUpointer_attribute ids[] = {
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
            CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_CONTEXT};
        void *out[] = {&type, &is_managed, &ordinal, &base, &bytes, &in};
        CU_OK(cuPointerGetAttributes(6, ids, out, row.at));
        EXPECT_EQ(row.type, type);
        EXPECT_EQ(row.managed, is_managed != 0);
        EXPECT_EQ(row.type ? 0 : -2, ordinal);
        EXPECT_EQ(row.type ? row.base : 1, base); // left alone for foreign memory
        EXPECT_EQ(row.type ? row.bytes : 1, bytes);
        EXPECT_EQ(row.type ? ctx : nullptr, in);
        CU_EXPECT(row.type ? CUDA_SUCCESS : kInvalid,
                  cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, row.at));
    }
    CU_EXPECT(kInvalid, cuMemcpyHtoDAsync(device, registered + 1000, 200, nullptr)); // leaves it
    CU_EXPECT(kInvalid, cuMemHostUnregister(registered + 1));
    CU_OK(cuMemHostUnregister(registered));
    CU_EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(registered));
    free(registered);
}

TEST_F(Memory, ReleasesWaitForTheWorkOfTheContext) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4), unrelated = Alloc(4);
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(Write(p, 1, s));
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        gate.Open();
    });
    CU_OK(cuMemFree(unrelated));
    CU_EXPECT(CUDA_SUCCESS, cuStreamQuery(s));
    opener.join();
    EXPECT_EQ(1, Read(p));
}

TEST_F(Memory, AStreamOrderedBlockIsReusedBehindItsFree) {
    CUstream a = Stream(), b = Stream();
    CUdeviceptr first, second, third, out = Alloc(4);
    CU_OK(cuMemAllocAsync(&first, 512, a));
    Gate gate;
    CU_OK(Wait(gate, a));
    CU_OK(Write(first, 1, a));
    CU_OK(Copy(out, first, a));
    CU_OK(cuMemFreeAsync(first, a));
    CU_EXPECT(kInvalid, cuMemsetD8Async(first, 0, 1, a));
    CU_OK(cuMemAllocAsync(&second, 512, b)); // the same block, behind the free on the other stream
    EXPECT_EQ(first, second);
    CU_OK(Write(second, 2, b));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
    CU_OK(cuMemAllocAsync(&third, 512, b));
    EXPECT_NE(second, third);
    gate.Open();
    EXPECT_EQ(1, Read(out));
    EXPECT_EQ(2, Read(second));
    CU_OK(cuMemFree(second)); // of the pool: allowed, and does not wait
    CU_OK(cuMemFreeAsync(third, b));
}

TEST_F(Memory, ManagedMemoryIsTheHostsToo) {
    CUdeviceptr p;
    CU_OK(cuMemAllocManaged(&p, 4, CU_MEM_ATTACH_GLOBAL));
    *reinterpret_cast<int *>(p) = 4;
    CU_OK(Mix(p, 1, nullptr));
    CU_OK(cuCtxSynchronize());
    EXPECT_EQ(13, *reinterpret_cast<int *>(p));
    CU_OK(cuMemsetD32(p, 6, 1)); // synchronous for managed memory
    EXPECT_EQ(6, *reinterpret_cast<int *>(p));
}

} // namespace
} // namespace sim
