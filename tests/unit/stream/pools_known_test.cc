// Promise: memory of a pool is deferred and used again only where the pool is known to be like a
// default one, and to be used by one stream alone.
#include "tests/unit/stream/pools.h"

#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace {

TEST_F(Pools, AnotherPoolThanTheDefaultOneIsFlushedFor) {
    EXPECT_TRUE(IsTakenIn());
    EXPECT_FALSE(IsTakenIn(Pool(0x90)));
    current_pool = Pool(0x80);
    cus_engine_pool_set();
    EXPECT_FALSE(IsTakenIn());
}

TEST_F(Pools, TheDefaultPoolIsTakenInByItsName) {
    driver().table.cuDeviceGetDefaultMemPool = [](CUmemoryPool *pool, CUdevice) {
        *pool = Pool(0x60);
        return CUDA_SUCCESS;
    };
    EXPECT_TRUE(IsTakenIn(Pool(0x60)));
    EXPECT_FALSE(IsTakenIn(Pool(0x50)));
    driver().table.cuDeviceGetDefaultMemPool = nullptr;
    EXPECT_FALSE(IsTakenIn(Pool(0x40)));
    cus_engine_pool_set();
    EXPECT_FALSE(IsTakenIn()) << "nor is the current one, which may be another";
}

TEST_F(Pools, TheDefaultPoolOfASecondDeviceIsTakenInByItsName) {
    current_device = 1;
    EXPECT_TRUE(IsTakenIn(Pool(0x70)));
}

TEST_F(Pools, ItIsAskedOnceWhetherAPoolIsTheDefaultOne) {
    static int times;
    times = 0;
    driver().table.cuDeviceGetDefaultMemPool = [](CUmemoryPool *pool, CUdevice) {
        times++;
        *pool = Pool(0x60);
        return CUDA_SUCCESS;
    };
    for (int i = 0; i < 3; i++)
        Alloc(512, Pool(0x50));
    EXPECT_EQ(times, 1);
}

TEST_F(Pools, APoolThatTheProgramMadeLikeADefaultOneIsTakenIn) {
    cus_engine_pool_made(Pool(0x90), &kPlain);
    EXPECT_TRUE(IsTakenIn(Pool(0x90)));
    EXPECT_FALSE(IsTakenIn(Pool(0xa0))) << "nobody saw it made";
    current_pool = Pool(0x90);
    cus_engine_pool_set();
    EXPECT_TRUE(IsTakenIn()) << "the device's current pool";
    cus_engine_pool_shared(Pool(0x90));
    EXPECT_FALSE(IsTakenIn(Pool(0x90))) << "exported";
}

TEST_F(Pools, APoolThatIsNotLikeADefaultOneIsFlushedFor) {
    const std::pair<const char *, CUmemPoolProps> pools[] = {
        {"a largest size", Like([](CUmemPoolProps *p) { p->maxSize = 1 << 20; })},
        {"for other processes", Like([](CUmemPoolProps *p) {
             p->handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
         })},
        {"on the host",
         Like([](CUmemPoolProps *p) { p->location.type = CU_MEM_LOCATION_TYPE_HOST; })},
        {"of a kind unknown",
         Like([](CUmemPoolProps *p) { p->allocType = CU_MEM_ALLOCATION_TYPE_INVALID; })},
        {"for a usage", Like([](CUmemPoolProps *p) { p->usage = 2; })},
        {"of CUDA 13.5", Like([](CUmemPoolProps *p) { p->reserved[0] = 1; })},
        {"of a later CUDA", Like([](CUmemPoolProps *p) { std::end(p->reserved)[-1] = 1; })},
        {"of another device", Like([](CUmemPoolProps *p) { p->location.id = 1; })},
    };
    for (const auto &[what, props] : pools) {
        cus_engine_pool_made(Pool(0x90), &kPlain);
        cus_engine_pool_made(Pool(0x90), &props);
        EXPECT_FALSE(IsTakenIn(Pool(0x90))) << what;
    }
    current_device = 1;
    EXPECT_TRUE(IsTakenIn(Pool(0x90))) << "on its device";
}

// A stream's memory of one pool is no memory of another.
TEST_F(Pools, MemoryIsUsedAgainByItsOwnPoolAlone) {
    cus_engine_pool_made(Pool(0x90), &kPlain);
    Learn();
    uint64_t a = Alloc(512, Pool(0x90)), b = Alloc(512);
    Launch(0);
    EXPECT_EQ(FreeCall(a), CUS_FREE_DEFERRED);
    EXPECT_NE(Alloc(512), a);
    EXPECT_EQ(FreeCall(b), CUS_FREE_DEFERRED);
    EXPECT_EQ(Alloc(512, Pool(0x90)), a);
    EXPECT_NE(Alloc(512, Pool(0x90)), b);
    EXPECT_EQ(Alloc(512), b);
    EXPECT_EQ(Issued(), 0u);
}

TEST_F(Pools, MemoryOutlivesItsPoolAndIsFreedAtOnce) {
    cus_engine_pool_made(Pool(0x90), &kPlain);
    Learn();
    uint64_t deferred = Alloc(512, Pool(0x90)), left = Alloc(1024, Pool(0x90));
    uint64_t ours = Alloc(512);
    Launch(0);
    EXPECT_EQ(FreeCall(deferred), CUS_FREE_DEFERRED);
    // As the hook of cuMemPoolDestroy does.
    cus_engine_flush(CUS_SCOPE_P, nullptr, CUS_ROW_cuMemPoolDestroy);
    cus_engine_pool_goes(Pool(0x90));
    EXPECT_EQ(driver().journal.back(), FreeLine(deferred));
    EXPECT_FALSE(IsTakenIn(Pool(0x90))) << "the driver refuses it";
    // The next pool has its handle.
    cus_engine_pool_made(Pool(0x90), &kPlain);
    Learn();
    Launch(0);
    uint64_t memory = Alloc(1024, Pool(0x90));
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    EXPECT_EQ(FreeCall(left), CUS_FREE_FLUSH) << "of the pool that went";
    EXPECT_EQ(driver().journal.back(), FreeLine(left));
    Sync();
    Launch(0);
    EXPECT_NE(Alloc(1024, Pool(0x90)), left);
    EXPECT_EQ(FreeCall(ours), CUS_FREE_DEFERRED) << "of the default pool, which stays";
    EXPECT_TRUE(IsTakenIn(Pool(0x90)));
}

// The default pool cannot be destroyed: the call fails.
TEST_F(Pools, ACallThatDestroysNothingChangesNothing) {
    Learn();
    uint64_t memory = Alloc(512);
    cus_engine_pool_goes(Pool(0x70));
    cus_engine_pool_goes(nullptr);
    cus_engine_pool_goes(Pool(0xa0)); // nobody knows it
    Launch(0);
    EXPECT_EQ(FreeCall(memory), CUS_FREE_DEFERRED);
    EXPECT_EQ(Issued(), 0u);
}

TEST_F(Pools, ManyPoolsComeAndGo) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    for (uintptr_t i = 1; i < 100; i++) {
        cus_engine_pool_made(Pool(i << 8), &kPlain);
        ASSERT_TRUE(IsTakenIn(Pool(i << 8))) << i;
        cus_engine_alloc_made(&ref, Pool(i << 8), 0x5000, 64); // whose free nobody sees
        cus_engine_pool_goes(Pool(i << 8));
    }
    // More at a time than are known: flushed for, until another one goes.
    for (uintptr_t i = 1; i < 100; i++)
        cus_engine_pool_made(Pool(i << 8), &kPlain);
    int known = 0;
    for (uintptr_t i = 1; i < 100; i++)
        known += IsTakenIn(Pool(i << 8));
    EXPECT_EQ(known, 15) << "memory of one that went may live";
    EXPECT_TRUE(IsTakenIn(Pool(1 << 8)));
    EXPECT_FALSE(IsTakenIn(Pool(99 << 8)));
    cus_engine_pool_goes(Pool(1 << 8));
    cus_engine_pool_made(Pool(99 << 8), &kPlain);
    EXPECT_TRUE(IsTakenIn(Pool(99 << 8)));
}

// Another thread frees memory of the pool meanwhile: the driver is asked about the pool before it
// goes, and not afterwards.
TEST_F(Pools, APoolGoesBehindTheCallsThatAskAboutIt) {
    cus_engine_pool_made(Pool(0x90), &kPlain);
    Learn();
    uint64_t memory = Alloc(512, Pool(0x90)), other = Alloc(512, Pool(0x90));
    Launch(0);
    std::thread destroys;
    std::atomic<bool> gone{false};
    asked = [&] {
        if (!destroys.joinable())
            destroys = std::thread([&] {
                cus_engine_pool_goes(Pool(0x90));
                gone = true;
            });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_FALSE(gone);
    };
    FreeCall(memory);
    destroys.join();
    asked = [] { ADD_FAILURE() << "the pool has gone"; };
    EXPECT_EQ(FreeCall(other), CUS_FREE_FLUSH);
}

// It may be of any pool: the stream that freed it is another user of all of them.
TEST_F(Pools, AFreeOfUnknownMemoryMayBeOfAnyPool) {
    ASSERT_TRUE(IsTakenIn());
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Of(other)->busy = true;
    FreeCall(0x5000, other);
    EXPECT_FALSE(IsTakenIn());
}

// Nor does anybody know when work ends on a stream of which nothing is deferred.
TEST_F(Pools, AFreeOnAStreamThatIsLeftAloneMayBeOfAnyPool) {
    ASSERT_TRUE(IsTakenIn());
    LeaveOthersAlone();
    uint32_t early = cus_engine_wait_begins();
    FreeCall(Alloc(512), fake::MakeStream(CU_STREAM_NON_BLOCKING));
    EXPECT_FALSE(IsTakenIn());
    cus_engine_pool_waited(early);
    EXPECT_FALSE(IsTakenIn()) << "that wait began before the free";
    cus_engine_pool_waited(cus_engine_wait_begins());
    EXPECT_TRUE(IsTakenIn());
}

} // namespace
