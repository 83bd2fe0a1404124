// Promise: frees that are deferred with a submitted segment are made behind it, each once, and what
// holds them goes with the engine.
#include "tests/unit/stream/submitted.h"

#include <algorithm>

namespace {

CUmemoryPool Pool(uintptr_t number) {
    return reinterpret_cast<CUmemoryPool>(number);
}

std::string FreeLine(uint64_t address) {
    return "free " + std::to_string(address);
}

class SubmittedFrees : public Submitted {
  protected:
    static void SetUpTestSuite() {} // each test has an engine
    void SetUp() override {
        Start({});
        Submitted::SetUp();
        if (IsSkipped())
            return;
        cus_driver &t = driver().table;
        t.cuCtxGetDevice = [](CUdevice *device) {
            *device = 0;
            return CUDA_SUCCESS;
        };
        t.cuDeviceGetDefaultMemPool = [](CUmemoryPool *pool, CUdevice) {
            *pool = Pool(0x70);
            return CUDA_SUCCESS;
        };
        t.cuDeviceGetMemPool = t.cuDeviceGetDefaultMemPool;
        t.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute id, void *value) {
            *static_cast<cuuint64_t *>(value) =
                id == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? 32 << 20 : 0;
            return CUDA_SUCCESS;
        };
        t.cuMemFreeAsync = [](CUdeviceptr address, CUstream) {
            driver().journal.push_back(FreeLine(address));
            return CUDA_SUCCESS;
        };
        cus_engine_pool_set();
    }
    void TearDown() override {
        Submitted::TearDown();
        fake::EndEngine(); // nothing of it is left
    }

    // Memory that the program has.
    uint64_t Alloc(uint64_t bytes = 512) {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        uint64_t reused = 0;
        cus_alloc how = cus_engine_alloc_begins(&ref, nullptr, bytes, &reused);
        if (how == CUS_ALLOC_REUSED)
            return reused;
        address_ += 0x1000;
        cus_engine_alloc_made(&ref, nullptr, address_, bytes);
        return address_;
    }
    uint64_t address_ = 0x100000;
};

TEST_F(SubmittedFrees, AreMadeBehindTheSegmentOnceEach) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    uint64_t submitted = Counters().submitted;
    size_t freed = 0;
    for (int step = 0; step < 8; step++) {
        uint64_t memory = Alloc();
        driver().journal.clear();
        expected_.clear();
        Ops(0, 1);
        EXPECT_EQ(cus_engine_free(&ref, memory), CUS_FREE_DEFERRED) << step;
        Ops(1, kOps);
        Sync();
        std::string line = FreeLine(memory);
        auto &journal = driver().journal;
        auto at = std::find(journal.begin(), journal.end(), line);
        ASSERT_NE(at, journal.end()) << step;
        EXPECT_GT(at - journal.begin(), 0) << "behind the op in front of it";
        freed += (size_t)std::count(journal.begin(), journal.end(), line);
        journal.erase(at);
        EXPECT_EQ(journal, expected_) << step;
    }
    EXPECT_EQ(freed, 8u);
    EXPECT_GT(Counters().submitted, submitted);
}

// Whoever settles what is submitted makes them, too.
TEST_F(SubmittedFrees, AreMadeInFrontOfAnOpThatGoesOutByItself) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    for (int step = 0; step < 4; step++) {
        uint64_t memory = Alloc();
        driver().journal.clear();
        expected_.clear();
        Ops(0, kOps);
        ASSERT_EQ(cus_engine_free(&ref, memory), CUS_FREE_DEFERRED) << step;
        expected_.push_back(FreeLine(memory));
        LaunchOther(stream_);
        EXPECT_EQ(driver().journal, expected_) << step;
        Sync();
    }
}

// HAZARDS E4. It is told by a launch of the step or by the wait behind it.
TEST_F(SubmittedFrees, AnErrorOfOneIsNotLost) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    uint64_t submitted = Counters().submitted, memory = Alloc();
    Ops(0, 1);
    ASSERT_EQ(cus_engine_free(&ref, memory), CUS_FREE_DEFERRED);
    driver().table.cuMemFreeAsync = [](CUdeviceptr, CUstream) { return CUDA_ERROR_INVALID_VALUE; };
    int told = 0;
    for (int i = 1; i < 2 * kOps; i++)
        told += fake::Launch(stream_, functions_[i % kOps], 0) == CUDA_ERROR_INVALID_VALUE;
    cus_engine_flush(CUS_SCOPE_S, &ref, 7);
    told += cus_engine_take_error(&ref, 7) == CUDA_ERROR_INVALID_VALUE;
    EXPECT_EQ(told, 1);
    EXPECT_GT(Counters().submitted, submitted);
}

// No more than 40 MiB may be deferred in this pool.
TEST_F(SubmittedFrees, WhatADeadContextTookAlongIsNotDeferredAnyMore) {
    const uint64_t bytes = 30 << 20;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    uint64_t memory = Alloc(bytes);
    Ops(0, 1);
    ASSERT_EQ(cus_engine_free(&ref, memory), CUS_FREE_DEFERRED);
    LoseContext([] { cus_engine_flush(CUS_SCOPE_P, nullptr, 0); });
    EXPECT_EQ(cus_engine_take_error(&ref, 7), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    for (int step = 0; step < 4; step++) {
        Ops(0, kOps);
        Sync();
    }
    memory = Alloc(bytes);
    Ops(0, 1);
    EXPECT_EQ(cus_engine_free(&ref, memory), CUS_FREE_DEFERRED);
    Sync();
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
}

// The same of one behind a segment whose launch fails.
TEST_F(SubmittedFrees, WhatADeadContextTookAlongBehindASegmentIsGone) {
    const uint64_t bytes = 30 << 20;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    uint64_t lost = Alloc(bytes);
    StopAt("cuGraphLaunch", true);
    Ops(0, 1);
    ASSERT_EQ(cus_engine_free(&ref, lost), CUS_FREE_DEFERRED);
    ASSERT_GT(UntilSubmitted(1), 0);
    OpenSoon();
    LoseContext([] { cus_engine_flush(CUS_SCOPE_P, nullptr, 0); });
    Join();
    EXPECT_EQ(cus_engine_take_error(&ref, 7), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    for (int step = 0; step < 8; step++) {
        Ops(0, kOps);
        Sync();
    }
    const auto &journal = driver().journal;
    EXPECT_EQ(std::count(journal.begin(), journal.end(), FreeLine(lost)), 0);
    uint64_t memory = Alloc(bytes);
    Ops(0, 1);
    EXPECT_EQ(cus_engine_free(&ref, memory), CUS_FREE_DEFERRED);
    Sync();
    EXPECT_EQ(journal.back(), FreeLine(memory));
}

} // namespace
