// Promise: the lock excludes, and gives up in time if asked. If rank checks are built in, the lock
// ends a process that breaks the order of enum cus_rank.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

extern "C" {
#include "shim/base/clock.h"
#include "shim/base/lock.h"
}

namespace {

TEST(Lock, IsGivenUpInTime) {
    cus_lock lock = CUS_LOCK_OF(CUS_RANK_ENGINE);
    cus_lock_take(&lock);
    std::thread([&] { EXPECT_FALSE(cus_lock_take_for(&lock, 1000000)); }).join();
    cus_lock_give(&lock);
    std::thread([&] {
        EXPECT_TRUE(cus_lock_take_for(&lock, 1000000));
        cus_lock_give(&lock);
    }).join();
}

TEST(Lock, IsGivenUpThoughAToolsClockStandsStill) {
    cus_lock lock = CUS_LOCK_OF(CUS_RANK_ENGINE);
    cus_virtual.on = true;
    cus_lock_take(&lock);
    std::thread([&] { EXPECT_FALSE(cus_lock_take_for(&lock, 1000000)); }).join();
    cus_lock_give(&lock);
    cus_virtual.on = false;
}

TEST(Lock, OneThreadAtATime) {
    cus_lock lock = CUS_LOCK_OF(CUS_RANK_ENGINE);
    std::atomic<bool> inside{false};
    std::atomic<int> met{0}, ready{0};
    auto meet = [&] {
        ready++;
        while (ready < 2)
            std::this_thread::yield();
        for (int i = 0; i < 1000; i++) {
            cus_lock_take(&lock);
            met += inside.exchange(true);
            std::this_thread::yield();
            inside = false;
            cus_lock_give(&lock);
        }
    };
    std::thread one(meet), two(meet);
    one.join();
    two.join();
    EXPECT_EQ(met, 0);
}

TEST(LockOrder, IsFromTheOutsideIn) {
    cus_lock engine = CUS_LOCK_OF(CUS_RANK_ENGINE), context = CUS_LOCK_OF(CUS_RANK_CONTEXT);
    cus_lock plain = CUS_LOCK_OF(CUS_RANK_NONE);
    cus_lock_take(&engine);
    cus_lock_take(&context);
    cus_lock_take(&plain);
    cus_lock_give(&engine);
    cus_lock_give(&plain);
    cus_lock_give(&context);
    cus_lock_take(&context);
    EXPECT_DEATH(cus_lock_take(&engine), "against the order");
    EXPECT_DEATH(cus_lock_take_for(&engine, 1), "against the order");
    EXPECT_TRUE(cus_lock_try(&engine)) << "who does not wait cannot hang";
    cus_lock_give(&engine);
    cus_lock_take_unordered(&engine);
    cus_lock_give(&engine);
    cus_lock_give(&context);
}

TEST(LockOrder, TwoOfOneRankAreFound) {
    cus_lock one = CUS_LOCK_OF(CUS_RANK_ENGINE), two = CUS_LOCK_OF(CUS_RANK_ENGINE);
    cus_lock_take(&one);
    EXPECT_DEATH(cus_lock_take(&two), "against the order");
    EXPECT_DEATH(cus_lock_take(&one), "that it holds");
    cus_lock_give(&one);
    EXPECT_DEATH(cus_lock_give(&one), "does not hold");
}

} // namespace
