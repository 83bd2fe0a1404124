// A stream on which stream-ordered memory is allocated and freed, and a driver whose pools a test
// describes.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_POOLS_H
#define CUSPLICE_TESTS_UNIT_STREAM_POOLS_H

#include "shim/api/api.h"
#include "tests/unit/stream/pointers.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

using fake::Counters;
using fake::driver;

inline CUmemoryPool Pool(uintptr_t number) {
    return reinterpret_cast<CUmemoryPool>(number);
}
inline CUmemoryPool current_pool;
inline CUdevice current_device;
inline uint64_t reserved, used;
inline std::function<void()> asked; // of a pool, in the midst of the driver's call

inline std::string FreeLine(uint64_t address) {
    return "free " + std::to_string(address);
}

inline CUresult Free(CUdeviceptr address, CUstream) {
    driver().journal.push_back(FreeLine(address));
    return driver().fail("cuMemFreeAsync");
}

class Pools : public fake::ProgramTest {
  protected:
    void SetUp() override {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"},
                                       {"CUSPLICE_SEGMENT_MAX", "4"},
                                       {"CUSPLICE_MODE", mode_}}));
        ProgramTest::SetUp();
        current_pool = Pool(0x70);
        reserved = 32 << 20;
        used = 0;
        cus_driver &t = driver().table;
        current_device = 0;
        asked = [] {};
        t.cuCtxGetDevice = [](CUdevice *device) {
            *device = current_device;
            return CUDA_SUCCESS;
        };
        t.cuDeviceGetDefaultMemPool = [](CUmemoryPool *pool, CUdevice) {
            *pool = Pool(0x70);
            return CUDA_SUCCESS;
        };
        t.cuDeviceGetMemPool = [](CUmemoryPool *pool, CUdevice) {
            *pool = current_pool;
            return CUDA_SUCCESS;
        };
        t.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute id, void *value) {
            asked();
            *static_cast<cuuint64_t *>(value) =
                id == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? reserved : used;
            return CUDA_SUCCESS;
        };
        t.cuMemFreeAsync = Free;
        cus_engine_pool_set();
    }

    void TearDown() override {
        ProgramTest::TearDown();
        fake::EndEngine();
    }

    std::string mode_ = "piecewise";
    cus_free last_ = CUS_FREE_NOW;

    // As the hook makes the calls (hook/around.c). The next address differs from all before.
    uint64_t Alloc(uint64_t bytes, CUmemoryPool pool = nullptr, CUstream stream = nullptr) {
        cus_stream_ref ref = {stream ? stream : stream_, CUS_ABI_LEGACY};
        static uint64_t next = 0x100000;
        uint64_t reused = 0;
        cus_alloc how = cus_engine_alloc_begins(&ref, pool, bytes, &reused);
        if (how == CUS_ALLOC_REUSED)
            return reused;
        if (how == CUS_ALLOC_FLUSH)
            cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuMemAllocAsync);
        next += 0x1000;
        cus_engine_alloc_made(&ref, pool, next, bytes);
        return next;
    }
    cus_free FreeCall(uint64_t address, CUstream stream = nullptr) {
        cus_stream_ref ref = {stream ? stream : stream_, CUS_ABI_LEGACY};
        cus_free how = cus_engine_free(&ref, address);
        if (how == CUS_FREE_FLUSH)
            cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuMemFreeAsync);
        if (how != CUS_FREE_DEFERRED)
            Free(address, ref.handle);
        return how;
    }

    // Is a free of memory of the pool deferred behind launches, and does neither it nor the
    // allocation cut?
    bool IsTakenIn(CUmemoryPool pool = nullptr) {
        Learn();
        Launch(0);
        uint64_t memory = Alloc(512, pool);
        bool uncut = Issued() == 0;
        cus_free how = FreeCall(memory);
        EXPECT_EQ(uncut, how == CUS_FREE_DEFERRED);
        Sync();
        return uncut;
    }

    // Steps of eight launches that have two graphs in the end.
    void Learn() {
        for (int step = 0; step < 6; step++) {
            for (int i = 0; i < 8; i++)
                Launch(i);
            Sync();
        }
        driver().journal.clear();
    }
    size_t Issued() const { return driver().journal.size(); }
};

// The properties of a default pool, but for this.
inline CUmemPoolProps Like(void (*change)(CUmemPoolProps *)) {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    change(&props);
    return props;
}
inline const CUmemPoolProps kPlain = Like([](CUmemPoolProps *) {});

#endif
