// Promise: stream-ordered memory cuts no segment, and nobody can tell that a free was deferred.
#include "tests/unit/stream/pools.h"

#include <string>
#include <vector>

extern "C" {
#include "shim/verify/gate.h"
#include "shim/verify/memory.h"
}

namespace {

TEST_F(Pools, AllocationsAndFreesKeepASegmentWhole) {
    for (int step = 0; step < 8; step++) {
        uint64_t launches = Counters().graph_launches;
        driver().journal.clear();
        for (int i = 0; i < 8; i++) {
            uint64_t memory = Alloc(512);
            Launch(i);
            FreeCall(memory);
        }
        Sync();
        // Each launch once, and each free but those whose memory was used again.
        EXPECT_GE(Issued(), 8u);
        if (step == 7) {
            EXPECT_EQ(Issued(), 10u);
            EXPECT_EQ(Counters().graph_launches - launches, 2u);
            EXPECT_GT(Counters().frees, 0u);
        }
    }
}

TEST_F(Pools, AFreeIsMadeBehindTheOpsInFrontOfIt) {
    Learn();
    uint64_t memory = Alloc(512);
    Launch(0);
    Launch(1);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    EXPECT_EQ(Issued(), 0u);
    Launch(2);
    Launch(3);
    ASSERT_EQ(Issued(), 5u) << "the graph, then the free";
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
    memory = Alloc(512);
    Launch(4);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    Sync();
    ASSERT_EQ(Issued(), 7u) << "the ops one by one, then the free";
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
}

// The list behind a segment has 1024 places; the next free issues what is deferred, and is made
// now.
TEST_F(Pools, MoreFreesThanTheListHoldsAreMadeInTheirOrder) {
    Learn();
    std::vector<uint64_t> memory(1200);
    for (uint64_t &block : memory)
        block = Alloc(16);
    Launch(0);
    std::vector<std::string> expected = driver().journal;
    EXPECT_TRUE(expected.empty());
    unsigned deferred = 0;
    for (uint64_t block : memory)
        deferred += FreeCall(block) == CUS_FREE_DEFERRED;
    Sync();
    EXPECT_EQ(deferred, 1024u);
    expected = {Line("k0", 100, 0)};
    for (uint64_t block : memory)
        expected.push_back(FreeLine(block));
    EXPECT_EQ(driver().journal, expected);
}

TEST_F(Pools, AFreeOfAThreadThatSuspendedDeferralIsMadeNow) {
    Learn();
    uint64_t memory = Alloc(512);
    Launch(0);
    cus_engine_suspend(true);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_FLUSH);
    cus_engine_suspend(false);
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
    ASSERT_EQ(Issued(), 2u) << "behind the op in front of it";
}

// HAZARDS A32: the graph is built before memory goes that is freed behind it.
TEST_F(Pools, AFreeBehindAGraphIsSeenByTheNextLaunch) {
    driver().table.cuMemsetD8Async = fake::Fill;
    driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids, void **values,
                                               CUdeviceptr) {
        fake::Pointer device;
        device.start = 0x10000;
        device.size = 0x1000;
        fake::Answer(device, n, ids, values);
        return CUDA_SUCCESS;
    };
    auto step = [&](bool frees) { // how many graphs it launched
        cus_memset memset = fake::FillCall(stream_);
        int before = driver().calls["cuGraphLaunch"];
        uint64_t memory = frees ? Alloc(512) : 0;
        EXPECT_EQ(cus_engine_memset(&memset), CUDA_SUCCESS);
        Launch(0);
        Launch(1);
        cus_free how = frees ? FreeCall(memory) : CUS_FREE_NOW;
        Launch(2);
        Sync();
        last_ = how;
        return driver().calls["cuGraphLaunch"] - before;
    };
    cus_engine_nodes_timed(true);
    int turns = 0;
    while (step(true) == 0 && turns < 30)
        turns++;
    ASSERT_LT(turns, 30) << "it was built, and launched";
    ASSERT_EQ(last_, CUS_FREE_DEFERRED);
    EXPECT_EQ(step(false), 0);
    cus_engine_nodes_timed(false);
    static cus_report report;
    cus_counters counters = Counters();
    cus_engine_report(&report, &counters, cus_api_name);
    std::vector<std::string> refused;
    for (unsigned i = 0; i < report.n_breaks; i++)
        if (report.breaks[i].reason == std::string("refused"))
            refused.push_back(report.breaks[i].name);
    EXPECT_EQ(refused, std::vector<std::string>{"memset"});
}

TEST_F(Pools, MemoryWhoseFreeIsDeferredIsUsedAgain) {
    Learn();
    uint64_t a = Alloc(512), b = Alloc(1024);
    Launch(0);
    EXPECT_EQ(FreeCall(a), CUS_FREE_DEFERRED);
    EXPECT_EQ(FreeCall(b), CUS_FREE_DEFERRED);
    EXPECT_NE(Alloc(513), a) << "of the same size only";
    EXPECT_EQ(Alloc(512), a);
    EXPECT_NE(Alloc(512), a) << "once";
    EXPECT_EQ(FreeCall(a), CUS_FREE_DEFERRED) << "it lives again";
    cus_engine_pool_numbers();
    EXPECT_NE(Alloc(1024), b) << "each allocation has its own number";
    Sync();
    ASSERT_EQ(Issued(), 3u);
    EXPECT_EQ(driver().journal[1], FreeLine(b));
    EXPECT_EQ(driver().journal[2], FreeLine(a));
    EXPECT_EQ(Counters().frees_reused, 1u);
}

// It fails at its own call, behind everything.
TEST_F(Pools, OnlyMemoryThatIsKnownToLiveIsFreedLater) {
    Learn();
    uint64_t memory = Alloc(512);
    Launch(0);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_FLUSH) << "a second time";
    EXPECT_EQ(driver().journal[1], FreeLine(memory)) << "the first free comes first";
    Launch(1);
    Launch(2);
    EXPECT_NE(FreeCall(0x4000), CUS_FREE_DEFERRED) << "memory of nobody";
    uint64_t gone = Alloc(512);
    cus_engine_pool_memory_gone(gone);
    EXPECT_NE(FreeCall(gone), CUS_FREE_DEFERRED) << "freed by cuMemFree";
    uint64_t other = Alloc(512);
    cus_engine_pool_gone();
    EXPECT_NE(FreeCall(other), CUS_FREE_DEFERRED) << "its pool went";
}

TEST_F(Pools, WhoSeesMemorySeesItFreed) {
    Learn();
    Launch(0);
    cus_engine_shows(CUS_ROW_cuMemGetInfo_v2);
    EXPECT_EQ(Issued(), 0u) << "no free is deferred";
    uint64_t memory = Alloc(512);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    cus_engine_shows(CUS_ROW_cuMemGetInfo_v2);
    EXPECT_EQ(Issued(), 2u);
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
}

TEST_F(Pools, NoMoreIsKeptThanThePoolHasIdleAndAQuarter) {
    Learn();
    reserved = 4096;
    used = 3072;
    uint64_t memory[3] = {Alloc(1024), Alloc(1024), Alloc(1)};
    Launch(0);
    EXPECT_EQ(FreeCall(memory[0]), CUS_FREE_DEFERRED);
    EXPECT_EQ(FreeCall(memory[1]), CUS_FREE_DEFERRED);
    EXPECT_EQ(Issued(), 0u);
    EXPECT_EQ(FreeCall(memory[2]), CUS_FREE_FLUSH);
    EXPECT_EQ(Issued(), 4u);
}

TEST_F(Pools, OutOfMemoryEndsIt) {
    Learn();
    uint64_t memory = Alloc(512), other = Alloc(512);
    Launch(0);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    EXPECT_TRUE(cus_engine_alloc_failed(CUS_ROW_cuMemAllocAsync, false)) << "a free may help";
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
    EXPECT_FALSE(cus_engine_alloc_failed(CUS_ROW_cuMemAllocAsync, false));
    Learn();
    Launch(0);
    EXPECT_EQ(FreeCall(other), CUS_FREE_FLUSH);
}

TEST_F(Pools, AWatchedPoolKeepsItsMost) {
    Learn();
    cus_engine_pool_watched(Pool(0x70));
    uint64_t memory = Alloc(512);
    Launch(0);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_FLUSH);
}

// HAZARDS C1: the driver may make the allocation wait for the other stream's free.
TEST_F(Pools, APoolOfTwoStreamsIsFlushedFor) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Of(other)->busy = true;
    uint64_t theirs = Alloc(512, nullptr, other);
    FreeCall(theirs, other);
    Learn();
    Launch(0);
    EXPECT_EQ(Issued(), 0u);
    uint64_t memory = Alloc(512);
    EXPECT_EQ(Issued(), 1u) << "not in front of the op";
    Launch(1);
    Launch(2);
    EXPECT_NE(FreeCall(memory), CUS_FREE_DEFERRED);
    // Once the other stream is idle, the pool belongs to this one.
    fake::Of(other)->busy = false;
    for (int i = 0; i < 64; i++)
        Alloc(512);
    Learn();
    memory = Alloc(512);
    Launch(0);
    Alloc(512);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    EXPECT_EQ(Issued(), 0u);
    Alloc(512, nullptr, other);
    EXPECT_EQ(Issued(), 2u) << "the other stream may be given what was freed";
}

TEST_F(Pools, AStreamThatGoesInTheMidstLeavesItsFreesBehind) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    fake::Of(other)->busy = true;
    FreeCall(Alloc(512, nullptr, other), other);
    cus_engine_stream_gone(&ref);
    Learn();
    Launch(0);
    Alloc(512);
    EXPECT_EQ(Issued(), 1u);
}

class VerifiedPools : public Pools {
  protected:
    VerifiedPools() { mode_ = "verify"; }

    void SetUp() override {
        Pools::SetUp();
        cus_gate_enter();
        // All memory is there, the freed too.
        driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids,
                                                   void **values, CUdeviceptr address) {
            for (unsigned i = 0; i < n; i++) {
                if (ids[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
                    *static_cast<CUmemorytype *>(values[i]) = CU_MEMORYTYPE_DEVICE;
                else if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
                    *static_cast<CUdeviceptr *>(values[i]) = address;
                else if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
                    *static_cast<size_t *>(values[i]) = 512;
                else
                    *static_cast<int *>(values[i]) = 0;
            }
            return CUDA_SUCCESS;
        };
    }

    void TearDown() override {
        cus_gate_leave();
        Pools::TearDown();
    }

    static bool IsSaved(uint64_t address) {
        CUcontext context = nullptr;
        cus_range_list list = {};
        driver().table.cuCtxGetCurrent(&context);
        cus_memory_all(&driver().table, context, &list);
        bool found = false;
        for (uint32_t i = 0; i < list.n; i++)
            found |= list.ranges[i].start == address;
        cus_memory_free(&list);
        return found;
    }
};

// Mode verify saves what ops in front of a deferred free may write, and touches no memory once it
// is freed.
TEST_F(VerifiedPools, MemoryIsSavedUntilItIsFreed) {
    Learn();
    uint64_t memory = Alloc(512);
    cus_engine_memory_made(memory);
    Launch(0);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    EXPECT_TRUE(IsSaved(memory));
    EXPECT_EQ(Alloc(512), memory);
    EXPECT_TRUE(IsSaved(memory));
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    Sync();
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
    EXPECT_FALSE(IsSaved(memory));
}

TEST_F(Pools, WhetherThePoolOutlivesAContextIsNotGuessed) {
    cus_engine_pool_made(Pool(0x90), &kPlain);
    cus_engine_pool_gone();
    EXPECT_FALSE(IsTakenIn(Pool(0x90)));
    EXPECT_TRUE(IsTakenIn());
    // Memory that is left there is nobody's: in the end its pool's place is free.
    for (uintptr_t i = 0x100; i < 0x200; i++) {
        cus_engine_pool_made(Pool(i), &kPlain);
        Alloc(512, Pool(i));
        cus_engine_pool_gone();
        cus_engine_pool_goes(Pool(i));
    }
    cus_engine_pool_made(Pool(0x95), &kPlain);
    EXPECT_TRUE(IsTakenIn(Pool(0x95)));
}

// The error of a free that is made later comes with the next op or wait (HAZARDS E4).
TEST_F(Pools, AnErrorOfAFreeIsNotLost) {
    Learn();
    uint64_t memory = Alloc(512);
    Launch(0);
    FreeCall(memory);
    driver().fail = [](const std::string &what) {
        return what == "cuMemFreeAsync" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
    };
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuStreamSynchronize);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    EXPECT_EQ(cus_engine_take_error(&ref, CUS_ROW_cuStreamSynchronize), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(Pools, MemoryOfTheProgramsGraphIsNobodyElses) {
    Learn();
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    fake::Of(stream_)->program_captures = true;
    cus_engine_capture_began(&ref);
    uint64_t graph_memory = Alloc(512);
    fake::Of(stream_)->program_captures = false;
    cus_engine_capture_ended(&ref);
    Launch(0);
    EXPECT_NE(FreeCall(graph_memory), CUS_FREE_DEFERRED);
    Launch(1);
    EXPECT_NE(Alloc(512), graph_memory);
}

// HAZARDS C1: a wait that the driver inserts on a blocking stream holds up the legacy stream.
TEST_F(Pools, WhatIsTiedToTheStreamComesBeforeAWaitThatTheDriverMayInsert) {
    CUstream busy = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    fake::Of(busy)->busy = true;
    FreeCall(Alloc(512, nullptr, busy), busy);
    CUstream kept = std::exchange(stream_, CU_STREAM_LEGACY);
    Alloc(512, nullptr, blocking);
    Learn();
    Launch(0);
    EXPECT_EQ(Issued(), 0u);
    Alloc(512, nullptr, blocking);
    EXPECT_EQ(Issued(), 1u);
    stream_ = kept;
}

TEST_F(Pools, AllocationsBesideDeferredFreesKeepThePoolSmall) {
    Learn();
    reserved = 4096;
    used = 0;
    Launch(0);
    for (uint64_t bytes : {1024, 1025, 1026})
        EXPECT_EQ(FreeCall(Alloc(bytes)), CUS_FREE_DEFERRED);
    EXPECT_EQ(Issued(), 0u);
    Alloc(4000);
    EXPECT_GT(Issued(), 0u) << "3075 deferred and 4000 live of a pool of 4096";
}

TEST_F(Pools, AFreeOnAnotherStreamCutsNothing) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    uint64_t theirs = Alloc(512, nullptr, other);
    Learn();
    Launch(0);
    EXPECT_EQ(FreeCall(theirs, other), CUS_FREE_NOW);
    EXPECT_EQ(Issued(), 1u) << "the free alone";
    EXPECT_EQ(FreeCall(0), CUS_FREE_NOW) << "of nothing";
}

// The first free of a second stream: another thread may be about to allocate in front of its ops.
TEST_F(Pools, AFreeOfANewStreamComesBehindEverything) {
    Learn();
    uint64_t memory = Alloc(512);
    Launch(0);
    EXPECT_EQ(FreeCall(memory, fake::MakeStream(CU_STREAM_NON_BLOCKING)), CUS_FREE_NOW);
    ASSERT_EQ(Issued(), 2u);
    EXPECT_EQ(driver().journal.back(), FreeLine(memory));
}

// Of a stream that the pool knows, no free comes behind what others deferred.
TEST_F(Pools, FurtherFreesOfASecondStreamCutNothing) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Of(other)->busy = true; // so that it stays known
    FreeCall(Alloc(512), other);  // its first
    uint64_t memory = Alloc(512);
    Learn();
    Launch(0);
    EXPECT_EQ(FreeCall(memory, other), CUS_FREE_NOW);
    EXPECT_EQ(Issued(), 1u) << "the free alone";
}

// The one that allocated has gone, and all its work is done: nobody else may allocate.
TEST_F(Pools, AFirstFreeOfAPoolThatNoOtherStreamUsesIsDeferred) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    uint64_t theirs = Alloc(512, nullptr, other);
    cus_engine_stream_gone(&ref);
    Learn();
    Launch(0);
    EXPECT_EQ(FreeCall(theirs), CUS_FREE_DEFERRED);
    EXPECT_EQ(Issued(), 0u);
}

TEST_F(Pools, TheDriverIsAskedForThePoolOnce) {
    static int times;
    times = 0;
    Alloc(512);
    driver().table.cuDeviceGetMemPool = [](CUmemoryPool *pool, CUdevice) {
        times++;
        *pool = current_pool;
        return CUDA_SUCCESS;
    };
    FreeCall(Alloc(512));
    EXPECT_EQ(times, 0);
    cus_engine_pool_set();
    Alloc(512);
    Alloc(512);
    EXPECT_EQ(times, 1) << "the program may have set another one";
}

TEST_F(Pools, AWaitForEverythingMakesThePoolKnownAgain) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    fake::Of(other)->busy = true;
    FreeCall(Alloc(512, nullptr, other), other);
    cus_engine_stream_gone(&ref);
    cus_engine_pool_waited(cus_engine_wait_begins());
    Learn();
    Launch(0);
    Alloc(512);
    EXPECT_EQ(Issued(), 0u);
}

} // namespace
