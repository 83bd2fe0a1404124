// Promise: a program that is faster without the library is left alone, and no other; while it is,
// nothing is deferred, and afterwards nothing is believed that was known before.
#include "shim/base/clock.h"
#include "tests/unit/stream/branches.h"

extern "C" {
#include "shim/stream/rest.h"
#include "tests/unit/stream/held_locks.h"
}

namespace {

using fake::driver;
using fake::Elsewhere;

class Resting : public Branches {
  protected:
    void TearDown() override {
        cus_rest_end();
        Branches::TearDown();
    }
    static cus_counters Counters() { return fake::Counters(); }
};

TEST_F(Resting, BeginsOnceEverythingIsIssued) {
    Learn();
    First();
    ASSERT_EQ(Issued(), 0u);
    ASSERT_TRUE(cus_rest_begin());
    EXPECT_EQ(driver().journal, Begun());
    // A second one does not begin.
    EXPECT_FALSE(cus_rest_begin());
}

TEST_F(Resting, OpsPassAndAreCounted) {
    Learn();
    cus_counters before = Counters();
    ASSERT_TRUE(cus_rest_begin());
    Expect({At(stream_, 0), At(stream_, 1), At(side_, 2), At(stream_, 3)}, [&] {
        Home(0);
        Home(1);
        Side(2);
        Home(3);
    });
    // On a stream that is new, too.
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Expect({At(other, 4)}, [&] { On(other, 4); });
    EXPECT_EQ(Counters().ops[CUS_OP_LAUNCH], before.ops[CUS_OP_LAUNCH] + 5);
    EXPECT_EQ(Counters().in_graphs, before.in_graphs);
    fake::ExpectBalance();
}

TEST_F(Resting, GraphsAreThereAgainBehindIt) {
    Learn();
    ASSERT_TRUE(cus_rest_begin());
    for (int i = 0; i < 100; i++)
        Home(i % 6);
    cus_rest_end();
    Step(); // its region is the program's own, and joins the side stream
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
}

// HAZARDS B21. The last record of the event was passed, on another stream than the one before.
TEST_F(Resting, WhatPassedIsUnknownAfterwards) {
    Learn();
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Home(0);
    Home(1);
    EXPECT_EQ(fake::RecordOn(stream_, fake::Event(0)), CUDA_SUCCESS);
    ASSERT_TRUE(cus_rest_begin());
    fake::RealRecord(fake::Event(0), other);
    cus_rest_end();
    Expect({Waited(side_, 0), At(side_, 2)}, [&] {
        EXPECT_EQ(fake::WaitOn(side_, fake::Event(0)), CUDA_SUCCESS);
        Side(2);
    });
}

// Likewise a side stream that was joined: it may have waited for another stream since.
TEST_F(Resting, AStreamThatWasJoinedMayHaveWorkAfterwards) {
    Learn();
    Home(6);
    ASSERT_TRUE(cus_rest_begin());
    fake::RealWait(side_, fake::Event(9), 0);
    cus_rest_end();
    Clear();
    First();
    EXPECT_TRUE(Has(Waited(side_, 0)));
    EXPECT_TRUE(Has(At(side_, 2)));
}

TEST_F(Resting, NobodyWaitsForOne) {
    Learn();
    First();
    static bool began;
    CUcontext context;
    ASSERT_EQ(driver().table.cuCtxGetCurrent(&context), CUDA_SUCCESS);
    hold_engine(stream_, context, [] { Elsewhere([] { began = cus_rest_begin(); }); });
    EXPECT_FALSE(began);
    // It goes on as if nobody had asked.
    driver().journal.clear();
    Rest();
    Sync();
    Steps(2);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
}

TEST_F(Resting, EndsNothingThatWasSwitchedOff) {
    Learn();
    ASSERT_TRUE(cus_rest_begin());
    cus_engine_defer_off("a test says so");
    cus_rest_end();
    EXPECT_FALSE(cus_rest_begin());
    for (int i = 0; i < 6; i++) {
        Expect({At(stream_, 0)}, [&] { Home(0); });
        Sync();
    }
}

// ---- when ----

class Pace : public fake::ProgramTest {
  protected:
    void SetUp() override {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}}));
        ProgramTest::SetUp();
        cus_virtual.on = true; // the engine has started, so it does what it does on the real clock
        cus_virtual.ns = 1000000000;
    }
    void TearDown() override {
        cus_virtual.on = false;
        ProgramTest::TearDown();
        fake::EndEngine();
    }
    // Steps that take so many ns while calls pass, and while they do not, for so many seconds. The
    // share of that time in which calls passed.
    template <typename Work>
    double Share(double seconds, uint64_t passing, uint64_t else_ns, const Work &work) {
        uint64_t began = cus_virtual.ns, passed = 0;
        while (cus_virtual.ns < began + (uint64_t)(seconds * 1e9)) {
            uint64_t ns = passes_ ? passing : else_ns;
            cus_virtual.ns += ns;
            passed += passes_ ? ns : 0;
            work();
            passes_ = cus_engine_tick(CUS_ROW_cuStreamSynchronize);
        }
        return (double)passed / (double)(cus_virtual.ns - began);
    }
    static uint64_t Rested() { return fake::Counters().fallbacks[CUS_FALLBACK_RESTED]; }
    static constexpr uint64_t kMs = 1000000;
    bool passes_ = false;
};

void Nothing() {}

// HAZARDS F15.
TEST_F(Pace, AProgramThatIsFasterWithoutIsLeftAlone) {
    EXPECT_GT(Share(4, 950000, kMs, Nothing), 0.4) << "it was timed, then left alone";
    EXPECT_EQ(Rested(), 1u);
    EXPECT_GT(Share(100, 950000, kMs, Nothing), 0.93);
    EXPECT_GE(Rested(), 3u);
}

TEST_F(Pace, AProgramThatIsNotIsTimedMoreAndMoreRarely) {
    EXPECT_LT(Share(10, 1050000, kMs, Nothing), 0.15);
    EXPECT_LT(Share(1000, 1050000, kMs, Nothing), 0.01);
    EXPECT_LT(Share(1000, kMs, kMs, Nothing), 0.01) << "nor one for which it is the same";
    EXPECT_EQ(Rested(), 0u);
}

TEST_F(Pace, AProgramThatChangesIsTimedAnew) {
    Share(30, 950000, kMs, Nothing);
    EXPECT_LT(Share(60, 1050000, kMs, Nothing), 0.7) << "the rest that it is in comes to its end";
    EXPECT_LT(Share(60, 1050000, kMs, Nothing), 0.05);
}

// Each time in a rest, as if the rest had been the cause.
TEST_F(Pace, APauseIsNobodysFault) {
    bool passed = false;
    uint64_t paused = 0;
    Share(4, 950000, kMs, [&] {
        if (passes_ && !passed && ++paused % 2)
            cus_virtual.ns += 60 * kMs;
        passed = passes_;
    });
    EXPECT_EQ(Rested(), 1u) << paused;
}

TEST_F(Pace, AFewWaitsSayNothing) {
    EXPECT_EQ(Share(60, 5 * kMs, 10 * kMs, Nothing), 0);
}

// Whatever its pace: what a trial would cost is more than the hooks do.
TEST_F(Pace, AProgramThatGraphsHelpIsNotTimed) {
    cus_virtual.on = false;
    Steps(8);
    cus_virtual.on = true;
    EXPECT_EQ(Share(30, 100000, 100000,
                    [&] {
                        for (int i = 0; i < kOps; i++)
                            Launch(i);
                        Sync();
                    }),
              0);
    EXPECT_GT(fake::Counters().in_graphs, 1000u);
}

TEST_F(Pace, NotWhereItIsSwitchedOff) {
    fake::EndEngine();
    cus_virtual.on = false;
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_DEMOTE", "no"}}));
    cus_virtual.on = true;
    EXPECT_EQ(Share(30, 950000, kMs, Nothing), 0);
}

} // namespace
