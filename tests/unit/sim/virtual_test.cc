// Promise: the simulator's virtual memory is right: reservations, memory mapped several times,
// access, queries.
#include "tests/unit/sim/sim.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

namespace sim {
namespace {

const auto kInvalid = CUDA_ERROR_INVALID_VALUE;
const size_t kGranule = 2 << 20;
const CUdeviceptr kHint = 0x200000000000;

using Handle = CUmemGenericAllocationHandle;

CUmemAllocationProp Prop(int device = 0) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return prop;
}

class Virtual : public Sim {
  protected:
    CUdeviceptr Reserve(size_t bytes, CUdeviceptr hint = 0) {
        CUdeviceptr at = 0;
        EXPECT_EQ(CUDA_SUCCESS, cuMemAddressReserve(&at, bytes, 0, hint, 0));
        reserved_.push_back({at, bytes});
        return at;
    }
    Handle Create(size_t bytes) {
        Handle handle = 0;
        auto prop = Prop();
        EXPECT_EQ(CUDA_SUCCESS, cuMemCreate(&handle, bytes, &prop, 0));
        return handle;
    }
    CUresult Map(CUdeviceptr at, size_t bytes, Handle handle) {
        CUresult result = cuMemMap(at, bytes, 0, handle, 0);
        if (result == CUDA_SUCCESS)
            mapped_.push_back({at, bytes});
        return result;
    }
    CUresult Access(CUdeviceptr at, size_t bytes,
                    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
        return cuMemSetAccess(at, bytes, &access, 1);
    }
    // A mapping of its own that may be used; its handle is released.
    void Put(CUdeviceptr at, size_t bytes) {
        Handle handle = Create(bytes);
        EXPECT_EQ(CUDA_SUCCESS, Map(at, bytes, handle));
        EXPECT_EQ(CUDA_SUCCESS, Access(at, bytes));
        EXPECT_EQ(CUDA_SUCCESS, cuMemRelease(handle));
    }
    size_t Available() {
        size_t available = 0, total;
        EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo(&available, &total));
        return available;
    }
    void TearDown() override {
        cuCtxSynchronize();
        for (auto &range : mapped_)
            cuMemUnmap(range.first, range.second); // some were unmapped by the test
        for (auto &range : reserved_)
            cuMemAddressFree(range.first, range.second);
        Sim::TearDown();
    }

  private:
    std::vector<std::pair<CUdeviceptr, size_t>> reserved_, mapped_;
};

TEST_F(Virtual, TheDeviceHasItInGranulesOfTwoMegabytes) {
    int has = 0;
    size_t bytes = 0;
    auto prop = Prop(), bad = Prop(7);
    CU_OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    EXPECT_EQ(1, has);
    for (auto flags : {CU_MEM_ALLOC_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}) {
        CU_OK(cuMemGetAllocationGranularity(&bytes, &prop, flags));
        EXPECT_EQ(kGranule, bytes);
    }
    CU_EXPECT(CUDA_ERROR_INVALID_DEVICE,
              cuMemGetAllocationGranularity(&bytes, &bad, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    CU_EXPECT(kInvalid,
              cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

#ifndef __SANITIZE_THREAD__ // its shadow lies there
TEST_F(Virtual, ATerabyteIsReservedWhereTheProgramAsksForIt) {
    const size_t terabyte = (size_t)1 << 40;
    CUdeviceptr second = 0;
    EXPECT_EQ(kHint, Reserve(terabyte, kHint));
    // Taken: somewhere else, no error.
    CU_OK(cuMemAddressReserve(&second, kGranule, 0, kHint + kGranule, 0));
    EXPECT_TRUE(second + kGranule <= kHint || second >= kHint + terabyte);
    CU_OK(cuMemAddressFree(second, kGranule));
    // Free again after it was given back.
    CU_OK(cuMemAddressFree(kHint, terabyte));
    EXPECT_EQ(kHint + kGranule, Reserve(kGranule, kHint + kGranule));
}

TEST_F(Virtual, AHintThatTheHostHasTakenGivesAnotherAddress) {
    void *host = mmap((void *)kHint, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ((void *)kHint, host);
    *(int *)host = 17;
    EXPECT_NE(kHint, Reserve(kGranule, kHint));
    EXPECT_EQ(17, *(int *)host);
    munmap(host, 4096);
}
#endif

TEST_F(Virtual, ReservationsAreAlignedAndGivenBackAsTheyWere) {
    CUdeviceptr a = Reserve(kGranule), b = 0;
    EXPECT_EQ(0u, a % kGranule);
    CU_OK(cuMemAddressReserve(&b, 8192, 1 << 30, 0, 0));
    EXPECT_EQ(0u, b % (1 << 30));
    CU_EXPECT(kInvalid, cuMemAddressFree(b, 4096));
    CU_EXPECT(kInvalid, cuMemAddressFree(b + 4096, 4096));
    CU_OK(cuMemAddressFree(b, 8192));
    CU_EXPECT(kInvalid, cuMemAddressFree(b, 8192));
    CU_EXPECT(kInvalid, cuMemAddressReserve(&b, 0, 0, 0, 0));
    CU_EXPECT(kInvalid, cuMemAddressReserve(&b, 100, 0, 0, 0));
    CU_EXPECT(kInvalid, cuMemAddressReserve(&b, kGranule, 3 << 20, 0, 0));
    CU_EXPECT(kInvalid, cuMemAddressReserve(&b, kGranule, 0, 12345, 0));
    CU_EXPECT(kInvalid, cuMemAddressReserve(&b, kGranule, 0, 0, 1));
    CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAddressReserve(&b, (size_t)1 << 47, 0, 0, 0));
}

TEST_F(Virtual, MemoryCountsAgainstTheDeviceUntilNothingNamesIt) {
    const size_t before = Available();
    auto prop = Prop();
    Handle a = Create(4 * kGranule), b = 0;
    EXPECT_EQ(before - 4 * kGranule, Available());
    CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&b, before / kGranule * kGranule, &prop, 0));
    CU_EXPECT(kInvalid, cuMemCreate(&b, kGranule + 4096, &prop, 0));
    CU_EXPECT(kInvalid, cuMemCreate(&b, 0, &prop, 0));
    prop.location.id = 5;
    CU_EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&b, kGranule, &prop, 0));
    prop = Prop();
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    CU_EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&b, kGranule, &prop, 0));
    CUdeviceptr at = Reserve(4 * kGranule);
    CU_OK(Map(at, 4 * kGranule, a));
    CU_OK(cuMemRelease(a));
    CU_EXPECT(kInvalid, cuMemRelease(a));
    CU_EXPECT(kInvalid, cuMemAddressFree(at, 4 * kGranule)); // mapped
    EXPECT_EQ(before - 4 * kGranule, Available());
    CU_OK(cuMemRetainAllocationHandle(&b, (void *)(at + 5)));
    EXPECT_EQ(a, b);
    CU_OK(cuMemUnmap(at, 4 * kGranule));
    EXPECT_EQ(before - 4 * kGranule, Available());
    CUmemAllocationProp got;
    CU_OK(cuMemGetAllocationPropertiesFromHandle(&got, b));
    EXPECT_EQ(CU_MEM_ALLOCATION_TYPE_PINNED, got.type);
    EXPECT_EQ(CU_MEM_LOCATION_TYPE_DEVICE, got.location.type);
    CU_OK(cuMemRelease(b));
    EXPECT_EQ(before, Available());
    CU_EXPECT(kInvalid, cuMemGetAllocationPropertiesFromHandle(&got, b));
    CU_EXPECT(kInvalid, cuMemRetainAllocationHandle(&b, (void *)at));
}

TEST_F(Virtual, FreshMemoryIsZeroAlsoWhenItWasUsedBefore) {
    CUdeviceptr at = Reserve(kGranule);
    for (int round = 0; round < 2; round++) {
        Put(at, kGranule);
        EXPECT_EQ(0, Read(at));
        EXPECT_EQ(0, Read(at + kGranule - 4));
        CU_OK(cuMemsetD32(at, 7, kGranule / 4));
        EXPECT_EQ(7, Read(at + kGranule - 4)); // waits
        CU_OK(cuMemUnmap(at, kGranule));
    }
}

TEST_F(Virtual, OneHandleAtTwoPlacesIsTheSameMemory) {
    CUdeviceptr at = Reserve(4 * kGranule);
    CUstream stream = Stream();
    Handle handle = Create(2 * kGranule);
    CU_OK(Map(at, 2 * kGranule, handle));
    CU_OK(Map(at + 2 * kGranule, kGranule, handle)); // its first half alone
    CU_OK(Access(at, 3 * kGranule));
    CU_OK(cuMemRelease(handle));
    CU_OK(Write(at + 64, 5, stream));
    CU_OK(Mix(at + 2 * kGranule + 64, 2, stream));
    CU_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(17, Read(at + 64));
    // Another allocation is other memory.
    Put(at + 3 * kGranule, kGranule);
    EXPECT_EQ(0, Read(at + 3 * kGranule + 64));
}

TEST_F(Virtual, CopiesMemsetsAndKernelsWorkAndCrossMappings) {
    CUdeviceptr at = Reserve(3 * kGranule), device = Alloc(64);
    CUstream stream = Stream();
    std::vector<int> in(1024), out(1024);
    for (int i = 0; i < 1024; i++)
        in[i] = i;
    Put(at, kGranule);
    Put(at + kGranule, kGranule);
    CUdeviceptr middle = at + kGranule - 2048;
    CU_OK(cuMemcpyHtoDAsync(middle, in.data(), 4096, stream));
    CU_OK(cuMemcpyDtoDAsync(at, middle, 4096, stream));
    CU_OK(cuMemsetD32Async(middle + 4, 9, 1, stream));
    CU_OK(Mix(middle + 4, 1, stream));
    CU_OK(cuMemcpyDtoHAsync(out.data(), middle, 4096, stream));
    CU_OK(cuStreamSynchronize(stream));
    in[1] = 28;
    EXPECT_EQ(in, out);
    EXPECT_EQ(1023, Read(at + 4092));
    CU_OK(cuMemcpyDtoD(device, at + 8, 4));
    EXPECT_EQ(2, Read(device));
    // Past the end of what is mapped, though reserved.
    CU_EXPECT(kInvalid, cuMemsetD8Async(at + 2 * kGranule - 4, 1, 8, stream));
    CU_EXPECT(kInvalid, cuMemcpyHtoDAsync(at + 2 * kGranule, in.data(), 8, stream));
    CU_EXPECT(kInvalid, cuMemcpyAsync(at + 2 * kGranule, at, 8, stream));
}

TEST_F(Virtual, WhatMayNotBeAccessedIsRefused) {
    CUdeviceptr at = Reserve(kGranule);
    Handle handle = Create(kGranule);
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    unsigned long long flags = 9;
    int value = 5;
    CU_EXPECT(kInvalid, cuMemGetAccess(&flags, &here, at)); // not mapped
    CU_OK(Map(at, kGranule, handle));
    CU_OK(cuMemRelease(handle));
    CU_OK(cuMemGetAccess(&flags, &here, at));
    EXPECT_EQ((unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_NONE, flags);
    CU_EXPECT(kInvalid, cuMemsetD8(at, 1, 8));
    CU_EXPECT(kInvalid, cuMemcpyHtoD(at, &value, 4));
    CU_EXPECT(kInvalid, cuMemcpyDtoH(&value, at, 4));
    CU_OK(Access(at, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READ));
    CU_EXPECT(kInvalid, cuMemsetD8(at, 1, 8));
    CU_EXPECT(kInvalid, cuMemcpyHtoD(at, &value, 4));
    CU_OK(cuMemcpyDtoH(&value, at, 4));
    EXPECT_EQ(0, value);
    CU_OK(Access(at, kGranule));
    CU_OK(cuMemGetAccess(&flags, &here, at + 100));
    EXPECT_EQ((unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags);
    CU_OK(cuMemsetD8(at, 1, 8));
    CU_OK(cuCtxSynchronize());
    CU_OK(Access(at, kGranule, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    CU_EXPECT(kInvalid, cuMemsetD8(at, 1, 8));
    CUmemAccessDesc far{{CU_MEM_LOCATION_TYPE_DEVICE, 6}, CU_MEM_ACCESS_FLAGS_PROT_READ};
    CU_EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(at, kGranule, &far, 1));
    far.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CU_EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemSetAccess(at, kGranule, &far, 1));
    CU_EXPECT(kInvalid, cuMemSetAccess(at, kGranule, nullptr, 0));
}

TEST_F(Virtual, MappingsAreWholeAndLieInAReservation) {
    CUdeviceptr at = Reserve(3 * kGranule);
    Handle handle = Create(2 * kGranule);
    CU_EXPECT(kInvalid, Map(at + 4096, kGranule, handle));
    CU_EXPECT(kInvalid, Map(at, kGranule + 4096, handle));
    CU_EXPECT(kInvalid, Map(at, 0, handle));
    CU_EXPECT(kInvalid, Map(at, 3 * kGranule, handle));                // more than there is
    CU_EXPECT(kInvalid, Map(at + 2 * kGranule, 2 * kGranule, handle)); // out of the reservation
    CU_EXPECT(kInvalid, Map(at + 3 * kGranule, kGranule, handle));
    CU_EXPECT(kInvalid, Map(at, kGranule, handle + 16));
    CU_EXPECT(kInvalid, cuMemMap(at, kGranule, kGranule, handle, 0)); // an offset
    CU_EXPECT(kInvalid, cuMemMap(at, kGranule, 0, handle, 1));
    CU_OK(Map(at, 2 * kGranule, handle));
    CU_EXPECT(kInvalid, Map(at, kGranule, handle));
    CU_EXPECT(kInvalid, Map(at + kGranule, 2 * kGranule, handle));
    CU_OK(cuMemRelease(handle));
    CU_EXPECT(kInvalid, Access(at, kGranule)); // part of a mapping
    CU_EXPECT(kInvalid, Access(at, 3 * kGranule));
    CU_EXPECT(kInvalid, cuMemUnmap(at, kGranule));
    CU_EXPECT(kInvalid, cuMemUnmap(at + kGranule, kGranule));
    CU_EXPECT(kInvalid, cuMemUnmap(at, 3 * kGranule));
    CU_EXPECT(kInvalid, cuMemFree(at));
    Put(at + 2 * kGranule, kGranule);
    CU_OK(cuMemUnmap(at, 3 * kGranule)); // two at once
    CU_EXPECT(kInvalid, cuMemUnmap(at, 3 * kGranule));
    CU_EXPECT(kInvalid, cuMemsetD8(at, 1, 8));
    Put(at + kGranule, kGranule); // can be mapped again
    EXPECT_EQ(0, Read(at + kGranule));
}

TEST_F(Virtual, WhatAnAddressIs) {
    CUdeviceptr at = Reserve(4 * kGranule);
    Put(at + kGranule, kGranule);
    Put(at + 2 * kGranule, kGranule);
    struct About {
        unsigned type = 9, managed = 9, mapped = 9;
        int ordinal = 9;
        CUdeviceptr start = 9, base = 9;
        size_t size = 9, bytes = 9;
        CUcontext context = reinterpret_cast<CUcontext>(9);
        CUmemoryPool pool = reinterpret_cast<CUmemoryPool>(9);
    };
    auto ask = [](CUdeviceptr p) {
        About about;
        CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                     CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                     CU_POINTER_ATTRIBUTE_MAPPED,
                                     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                     CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                     CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                     CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                     CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                                     CU_POINTER_ATTRIBUTE_CONTEXT,
                                     CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
        void *out[] = {&about.type, &about.managed, &about.mapped, &about.ordinal, &about.start,
                       &about.size, &about.base,    &about.bytes,  &about.context, &about.pool};
        EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttributes(10, ids, out, p));
        return about;
    };
    About in = ask(at + 2 * kGranule + 100), hole = ask(at + 100);
    EXPECT_EQ((unsigned)CU_MEMORYTYPE_DEVICE, in.type);
    EXPECT_EQ(0u, in.managed);
    EXPECT_EQ(1u, in.mapped);
    EXPECT_EQ(0, in.ordinal);
    EXPECT_EQ(at, in.start); // the reservation
    EXPECT_EQ(4 * kGranule, in.size);
    EXPECT_EQ(at + 2 * kGranule, in.base); // the mapping
    EXPECT_EQ(kGranule, in.bytes);
    EXPECT_EQ(nullptr, in.context);
    EXPECT_EQ(nullptr, in.pool);
    EXPECT_EQ(0u, hole.mapped);
    EXPECT_EQ(at, hole.start);
    EXPECT_EQ(4 * kGranule, hole.size);
    EXPECT_EQ(0u, hole.type);

    CUcontext context = ctx;
    CUdeviceptr base;
    size_t bytes;
    CU_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at + kGranule));
    EXPECT_EQ(nullptr, context);
    CU_OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at));
    EXPECT_EQ(at, base);
    CU_EXPECT(kInvalid, cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at));
    CU_OK(cuMemGetAddressRange(&base, &bytes, at + kGranule + 8));
    EXPECT_EQ(at + kGranule, base);
    EXPECT_EQ(kGranule, bytes);
    CU_EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &bytes, at));
}

TEST_F(Virtual, MemoryLivesOnWhenItsContextIsReset) {
    CUdeviceptr at = Reserve(kGranule);
    Put(at, kGranule);
    CU_OK(cuMemsetD32(at, 3, 1));
    CU_OK(cuCtxSynchronize());
    CU_OK(cuDevicePrimaryCtxReset(0));
    CU_OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    CU_OK(cuCtxSetCurrent(ctx));
    EXPECT_EQ(3, Read(at));
}

TEST_F(Virtual, NothingIsRefusedDuringACaptureAndNothingWaits) {
    CUdeviceptr at = Reserve(2 * kGranule), other = Alloc(4);
    CUstream stream = Stream(), busy = Stream();
    CUgraph graph = nullptr;
    Gate gate;
    CU_OK(Wait(gate, busy));
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    Put(at, kGranule);
    Put(at + kGranule, kGranule);
    CU_OK(cuMemUnmap(at + kGranule, kGranule));
    CU_OK(Write(other, 3, stream));
    CU_OK(cuMemsetD32Async(at, 4, 1, stream));
    CU_OK(cuStreamEndCapture(stream, &graph));
    gate.Open();
    CUgraphExec exec;
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphLaunch(exec, stream));
    EXPECT_EQ(4, Read(at));
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
}

} // namespace
} // namespace sim
