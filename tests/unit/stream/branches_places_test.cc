// Promise: which of two streams is the side stream, and which branch it has, depends on what the
// program does and on nothing that was left from earlier steps.
#include "tests/unit/stream/branches.h"

using fake::driver;
using fake::Event;

namespace {

class Places : public Branches {
  protected:
    void SetUp() override {
        Branches::SetUp();
        other_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    }
    // Was the fork made an op of the home?
    static bool Forks(CUstream from, CUstream to) {
        const uint64_t before = fake::Counters().ops[CUS_OP_WAIT];
        Fork(from, to, 9);
        return fake::Counters().ops[CUS_OP_WAIT] != before;
    }
    // Is it forked in a region that is joined only when a call has named the stream?
    bool ForksUnjoined(CUstream home, CUstream side) {
        On(home, 0);
        bool forks = Forks(home, side);
        On(side, 2);
        Name(side);
        Join(side, home, 1);
        Await(home);
        return forks;
    }
    // In how many of these regions.
    int ForkedUnjoined(CUstream home, CUstream side, int regions) {
        int forked = 0;
        for (int i = 0; i < regions; i++)
            forked += ForksUnjoined(home, side);
        return forked;
    }
    // A step with two side streams, in this order.
    void Two(CUstream first, CUstream second) {
        Home(0);
        Fork(stream_, first, 0);
        Fork(stream_, second, 1);
        On(first, 2);
        On(second, 3);
        Join(first, stream_, 2);
        Join(second, stream_, 3);
        Home(4);
        Sync();
    }
    void LearnTwo() {
        Prime(side_);
        Prime(other_);
        const uintptr_t own = fake::OwnEvents();
        for (int i = 0; i < 12; i++)
            Two(side_, other_);
        end_ = fake::OwnEvent(own);
        end_of_second_ = fake::OwnEvent(own + 1);
        Clear();
        Two(side_, other_);
        ASSERT_EQ(driver().calls["cuGraphLaunch"], 1);
        ASSERT_EQ(driver().calls["cuLaunchKernel"], 0);
        Clear();
    }

    CUstream other_;
    CUevent end_of_second_;
};

} // namespace

// ---- which one is the side stream? ----

// The legacy stream cannot change places with it: it is tried as it is, three times.
TEST_F(Places, AStreamThatIsNeverJoinedIsForkedNoMore) {
    stream_ = CU_STREAM_LEGACY;
    Prime(side_);
    EXPECT_EQ(ForkedUnjoined(stream_, side_, 9), 9);
    EXPECT_EQ(ForkedUnjoined(stream_, side_, 9), 0);
    fake::ExpectBalance();
}

TEST_F(Places, TwoStreamsChangePlacesThreeTimes) {
    Prime(side_);
    EXPECT_EQ(ForkedUnjoined(stream_, side_, 3), 3);
    EXPECT_FALSE(ForksUnjoined(side_, stream_)) << "it is not joined yet";
    EXPECT_EQ(ForkedUnjoined(side_, stream_, 3), 3);
    EXPECT_FALSE(ForksUnjoined(stream_, side_));
    EXPECT_EQ(ForkedUnjoined(stream_, side_, 3), 3);
    EXPECT_EQ(ForkedUnjoined(side_, stream_, 3), 0);
    EXPECT_EQ(ForkedUnjoined(stream_, side_, 3), 0);
    fake::ExpectBalance();
}

TEST_F(Places, OnlyBranchesThatAreNotJoinedInARowCount) {
    Prime(side_);
    for (int i = 0; i < 6; i++) {
        EXPECT_EQ(ForkedUnjoined(stream_, side_, 2), 2) << i;
        First();
        Rest();
        Sync();
    }
    EXPECT_TRUE(ForksUnjoined(stream_, side_));
    fake::ExpectBalance();
}

// Each branch that is open where the host waits for the home.
TEST_F(Places, TheEndOfAStepCountsWhatIsNotJoined) {
    CUstream sides[CUS_BRANCHES];
    for (CUstream &side : sides) {
        side = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Prime(side);
    }
    for (int step = 0; step < 3; step++) {
        Home(0);
        for (CUstream side : sides) {
            EXPECT_TRUE(Forks(stream_, side)) << step;
            On(side, 2);
        }
        Sync();
    }
    for (CUstream side : sides) {
        Name(side);
        Join(side, stream_, 1);
        Home(0);
        EXPECT_FALSE(Forks(stream_, side)) << "they have changed places";
        Sync();
    }
    fake::ExpectBalance();
}

// It has waited for its home before.
TEST_F(Places, AStreamThatWaitedForItselfIsASideStreamAllTheSame) {
    Side(6);
    EXPECT_EQ(fake::RecordOn(side_, fake::Event(3)), CUDA_SUCCESS);
    EXPECT_EQ(fake::WaitOn(side_, fake::Event(3)), CUDA_SUCCESS);
    Learn();
}

TEST_F(Places, AWaitForAnOlderRecordLeavesTheJoin) {
    Learn();
    for (bool older : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(Again());
        Name(side_);
        for (int i = 0; i < 2; i++) {
            Side(2 + i);
            EXPECT_EQ(fake::RecordOn(side_, fake::Event(3 + i)), CUDA_SUCCESS);
        }
        EXPECT_EQ(fake::WaitOn(stream_, fake::Event(4)), CUDA_SUCCESS);
        if (older) {
            EXPECT_EQ(fake::WaitOn(stream_, fake::Event(3)), CUDA_SUCCESS);
        }
        Clear();
        Step();
        EXPECT_FALSE(Has(At(side_, 2))) << older;
    }
}

TEST_F(Places, AWaitForAThirdStreamDoesNotChangeTheHome) {
    Learn();
    On(other_, 9);
    Fork(other_, side_, 5);
    Join(side_, stream_, 6);
    Home(0);
    EXPECT_TRUE(Forks(stream_, side_));
    Sync();
}

// ---- which branch does it have? ----

TEST_F(Places, TheOrderOfTheForksDecidesInEachStep) {
    LearnTwo();
    for (int i = 0; i < 4; i++) {
        const CUstream first = i % 2 ? side_ : other_, second = i % 2 ? other_ : side_;
        Clear();
        Two(first, second);
        EXPECT_EQ(driver().calls["cuGraphLaunch"], 1) << i;
        EXPECT_TRUE(Has(fake::WaitLine(end_, second))) << "which had the branch";
        EXPECT_TRUE(Has(fake::WaitLine(end_of_second_, first)));
        EXPECT_EQ(Issued(), 2u + 10u) << "and the graph";
    }
    fake::ExpectBalance();
}

TEST_F(Places, AStreamThatWasNamedTakesTheFirstFreeBranch) {
    LearnTwo();
    Name(side_);
    Name(other_);
    Home(6);
    Join(side_, stream_, 5);
    Join(other_, stream_, 6);
    Sync();
    Clear();
    Two(other_, side_);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
    EXPECT_EQ(driver().calls["cuLaunchKernel"], 0);
    fake::ExpectBalance();
}

// Its branch is taken by no other stream, and no other one is forked behind it.
TEST_F(Places, AStreamThatIsNotJoinedKeepsItsBranchForTheNextStep) {
    Prime(side_);
    Prime(other_);
    Home(0);
    EXPECT_TRUE(Forks(stream_, side_));
    Side(2);
    Sync();
    Home(0);
    EXPECT_TRUE(Forks(stream_, side_)) << "goes on";
    EXPECT_FALSE(Forks(stream_, other_));
    Sync();
    fake::ExpectBalance();
}

// ---- the end of a branch ----

TEST_F(Places, AStreamOwesNothingForAGraphWithoutItsBranch) {
    Learn();
    Prime(other_);
    Home(0);
    EXPECT_TRUE(Forks(stream_, side_));
    Side(2);
    EXPECT_TRUE(Forks(stream_, other_));
    On(other_, 9);
    Join(side_, stream_, 5);
    Join(other_, stream_, 6);
    Sync();
    Steps(60);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
    Expect({}, [&] { Name(other_); });
    Expect({EndWaited(side_)}, [&] { Name(side_); });
    fake::ExpectBalance();
}

TEST_F(Places, TheWaitForTheEndIsOneWithoutFlagsInTheHomesContext) {
    static unsigned waits, flags;
    static thread_local std::vector<CUcontext> pushed;
    static CUcontext mine, theirs = reinterpret_cast<CUcontext>(0x4000), at;
    driver().table.cuCtxGetCurrent(&mine);
    Learn();
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        *context = pushed.empty() ? theirs : pushed.back();
        return CUDA_SUCCESS;
    };
    driver().table.cuCtxPushCurrent_v2 = [](CUcontext context) {
        pushed.push_back(context);
        return CUDA_SUCCESS;
    };
    driver().table.cuCtxPopCurrent_v2 = [](CUcontext *context) {
        *context = pushed.back();
        pushed.pop_back();
        return CUDA_SUCCESS;
    };
    driver().table.cuStreamWaitEvent = [](CUstream, CUevent, unsigned its) {
        waits++;
        flags = its;
        driver().table.cuCtxGetCurrent(&at);
        return CUDA_SUCCESS;
    };
    waits = 0;
    fake::Elsewhere([&] {
        Name(side_);
        EXPECT_TRUE(pushed.empty()) << "the thread's context is as it was";
    });
    EXPECT_EQ(waits, 1u);
    EXPECT_EQ(flags, 0u);
    EXPECT_EQ(at, mine);
    fake::Reset();
    fake::TableOfBranches();
}

// Nothing keeps the stream's next work behind the branch: the program is told.
TEST_F(Places, AWaitForTheEndThatFailsIsToldAndForksNothingMore) {
    Learn();
    Prime(other_);
    driver().fail = [](const std::string &what) {
        return what == "cuStreamWaitEvent" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    };
    const cus_counters before = fake::Counters();
    Name(side_);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    EXPECT_EQ(fake::Counters().fallbacks[CUS_FALLBACK_LATE_ERROR],
              before.fallbacks[CUS_FALLBACK_LATE_ERROR] + 1);
    cus_stream_ref ref = {side_, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, CUS_ROW_cuStreamSynchronize), CUDA_ERROR_INVALID_VALUE);
    Home(0);
    EXPECT_FALSE(Forks(stream_, other_));
    Sync();
}
