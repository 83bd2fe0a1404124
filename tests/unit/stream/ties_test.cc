// Promise: a call on a stream comes behind what is deferred on those that are tied to it, and
// leaves the others alone.
#include "shim/api/api.h"
#include "tests/unit/stream/engine.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

TEST_F(Engine, OpOnAnotherStreamIssuesWhatThisThreadDeferred) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    fake::Launch(other, functions_[1], 5, 5);
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
}

TEST_F(Engine, LegacyStreamOrdersAgainstBlockingOnesBothWays) {
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    stream_ = blocking;
    Steps(4);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    std::thread([&] { fake::Launch(nullptr, functions_[1], 5, 5); }).join();
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
    EXPECT_EQ(driver().journal[1], "L k1(1,5,5)");
}

TEST_F(Engine, NonBlockingStreamIsNotTiedToTheLegacyOne) {
    Steps(4);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    std::thread([&] { fake::Launch(nullptr, functions_[1], 5, 5); }).join();
    ASSERT_EQ(driver().journal.size(), 1u);
    EXPECT_EQ(driver().journal[0], "L k1(1,5,5)");
}

TEST_F(Engine, PerThreadStreamsDeferNothing) {
    for (int step = 0; step < 6; step++) {
        driver().journal.clear();
        for (int i = 0; i < 12; i++)
            fake::Launch(CU_STREAM_PER_THREAD, functions_[i], i, 0);
        EXPECT_EQ(driver().journal.size(), 12u) << "before the synchronise, too";
        fake::Sync(CU_STREAM_PER_THREAD);
        EXPECT_EQ(driver().calls["cuGraphLaunch"], 0);
    }
}

TEST_F(Engine, PerThreadStreamGoesBehindTheLegacyOne) {
    Teach(CU_STREAM_LEGACY);
    fake::Launch(CU_STREAM_LEGACY, functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    std::thread([&] { fake::Launch(CU_STREAM_PER_THREAD, functions_[1], 5, 5); }).join();
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], "L k0(1,100,0)");
}

TEST_F(Engine, NullAndTheLegacyHandleAreOneStream) {
    Teach(CU_STREAM_LEGACY);
    fake::Launch(CU_STREAM_LEGACY, functions_[0], 100, 0);
    fake::Launch(nullptr, functions_[1], 101, 0);
    fake::Launch(CU_STREAM_LEGACY, functions_[2], 102, 0, 1, CUS_ABI_PTSZ);
    EXPECT_TRUE(driver().journal.empty()) << "the steps taught are followed";
    fake::Launch(nullptr, functions_[3], 103, 0, 1, CUS_ABI_PTSZ);
    EXPECT_EQ(driver().journal.size(), 4u) << "the stream of the thread is another one";
}

TEST_F(Engine, CallOnOneSideOfLegacyOrderIssuesWhatTheOtherDefers) {
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    Teach(CU_STREAM_LEGACY);
    Teach(blocking);
    for (bool legacy : {true, false}) {
        CUstream on = legacy ? CU_STREAM_LEGACY : blocking;
        cus_stream_ref named = {legacy ? blocking : CU_STREAM_LEGACY, CUS_ABI_LEGACY};
        driver().journal.clear();
        fake::Launch(on, functions_[0], 100, 0);
        EXPECT_TRUE(driver().journal.empty());
        std::thread([&] { cus_engine_flush(CUS_SCOPE_S, &named, 5); }).join();
        EXPECT_EQ(driver().journal.size(), 1u);
        fake::Sync(on);
    }
}

TEST_F(Engine, SyncOfAnotherStreamIssuesWhatThisThreadDeferred) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[1], 5, 5);
    Teach(stream_);
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    fake::Sync(other);
    EXPECT_EQ(driver().journal.size(), 1u);
}

TEST_F(Engine, SyncByAnotherThreadEndsNoStep) {
    Launch(functions_[0], 100, 0);
    uint64_t steps = Counters().steps;
    std::thread([&] { Sync(); }).join();
    EXPECT_EQ(Counters().steps, steps);
    Sync();
    EXPECT_EQ(Counters().steps, steps + 1);
}

// Its thread may be the one for which a full queue of the other stream waits.
TEST_F(Engine, ACallOnAStreamThatDefersNothingReachesNoStreamOfAnotherThread) {
    cus_stream_ref none = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
    cus_stream_ref per_thread = {CU_STREAM_PER_THREAD, CUS_ABI_LEGACY};
    stream_ = fake::MakeStream(CU_STREAM_DEFAULT);
    Teach(stream_);
    Launch(functions_[0], 100, 0);
    for (cus_stream_ref stream : {none, per_thread})
        for (const char *name :
             {"cuStreamSynchronize", "cuStreamQuery", "cuMemcpyAsync", "cuEventRecord"})
            std::thread([&] {
                unsigned row = cus_api_find(name);
                cus_engine_flush((cus_scope)cus_api_rows[row].scope, &stream, row);
            }).join();
    std::thread([] {
        driver().table.cuCtxPushCurrent_v2((CUcontext)0x99000);
        fake::Sync(CU_STREAM_LEGACY);
    }).join();
    EXPECT_TRUE(driver().journal.empty()) << "each context has its own legacy stream";
    std::thread([] { fake::Sync(CU_STREAM_LEGACY); }).join();
    EXPECT_EQ(driver().journal.size(), 1u)
        << "the legacy stream waits for blocking ones, seen or not";
}

// Nor does one on the legacy stream reach those that are not tied to it, or one on those it.
TEST_F(Engine, TheLegacyStreamAndOneThatIsNotBlockingLeaveEachOtherAlone) {
    CUcontext fresh = (CUcontext)0x98000; // its legacy stream was not seen yet
    CUstream free = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    auto elsewhere = [&](auto call) {
        std::thread([&] {
            driver().table.cuCtxPushCurrent_v2(fresh);
            call();
        }).join();
    };
    driver().table.cuCtxPushCurrent_v2(fresh);
    Teach(free);
    fake::Launch(free, functions_[0], 100);
    elsewhere([] { fake::Sync(CU_STREAM_LEGACY); });
    EXPECT_TRUE(driver().journal.empty());
    fake::Sync(free);
    Teach(other);
    Teach(CU_STREAM_LEGACY);
    fake::Launch(CU_STREAM_LEGACY, functions_[0], 100);
    elsewhere([&] {
        fake::Launch(other, functions_[0], 100);
        fake::Launch(free, functions_[0], 100);
        EXPECT_EQ(driver().journal.size(), 1u) << "a thread defers on one stream";
        EXPECT_NE(driver().journal.front()[0], 'L');
        fake::Sync(free);
    });
    fake::Sync(CU_STREAM_LEGACY);
    CUcontext was;
    driver().table.cuCtxPopCurrent_v2(&was);
}

TEST_F(Engine, ACallOnAStreamThatDefersNothingComesBehindTheLegacyOneAndItsThread) {
    cus_stream_ref none = {fake::MakeStream(CU_STREAM_DEFAULT), CUS_ABI_LEGACY};
    Teach(CU_STREAM_LEGACY);
    Teach(stream_);
    fake::Launch(CU_STREAM_LEGACY, functions_[0], 100, 0);
    std::thread([&] { cus_engine_flush(CUS_SCOPE_S, &none, 5); }).join();
    EXPECT_EQ(driver().journal.size(), 1u);
    Launch(functions_[0], 100, 0);
    EXPECT_EQ(driver().journal.size(), 1u);
    cus_engine_flush(CUS_SCOPE_S, &none, 5);
    EXPECT_EQ(driver().journal.size(), 2u);
}

TEST_F(Engine, AStreamIsKnownWhereNoContextIsCurrent) {
    Teach(stream_);
    Launch(functions_[0], 100, 0);
    std::thread([&] {
        CUcontext was;
        driver().table.cuCtxPopCurrent_v2(&was);
        fake::Sync(stream_);
    }).join();
    EXPECT_EQ(driver().journal.size(), 1u);
}

// Nobody knows what the launch would be of.
TEST_F(Engine, ALaunchWhereNoContextIsCurrentIsTheProgramsOwnCall) {
    Teach(stream_);
    std::thread([&] {
        CUcontext was;
        driver().table.cuCtxPopCurrent_v2(&was);
        EXPECT_EQ(fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions_[0], 7),
                  CUDA_SUCCESS);
    }).join();
    EXPECT_EQ(driver().journal.size(), 1u);
}

} // namespace
