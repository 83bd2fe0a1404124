// Promise: forks as programs of others make them stay in graphs: one event for fork and join, a
// wait at the end of a call already, the legacy stream as home, and a stream for copies that is all
// that the host waits for.
#include "tests/unit/stream/branches.h"

namespace {

class Found : public Branches {
  protected:
    // The last of some steps: its graph launches. The side stream's ops are in them.
    int Launches(const std::function<void()> &step, int steps = 12) {
        for (int i = 0; i < steps; i++)
            step();
        Clear();
        step();
        EXPECT_FALSE(Has(At(side_, 2)));
        return fake::driver().calls["cuGraphLaunch"];
    }
    // Fork and join by the same event.
    void Shared(int event) {
        Home(0);
        Home(1);
        Fork(stream_, side_, event);
        Side(2);
        Side(3);
        Home(4);
        Join(side_, stream_, event);
        Home(5);
    }
};

} // namespace

// HAZARDS B16, B18.
TEST_F(Found, OneEventForksAndJoins) {
    Prime(side_);
    EXPECT_EQ(Launches([&] {
                  Shared(0);
                  Sync();
              }),
              1);
    const Lines &journal = fake::driver().journal;
    EXPECT_EQ(std::count(journal.begin(), journal.end(), Recorded(stream_, 0)), 1) << "the last";
    EXPECT_TRUE(Has(At(stream_, 3))) << "in the graph";
    fake::ExpectBalance();
}

// Two records that no fork or join orders: the first one is issued before the second one's call.
TEST_F(Found, RecordsThatNothingOrdersAreIssuedInTheirOrder) {
    Prime(side_);
    for (int i = 0; i < 12; i++) {
        Clear();
        First();
        Home(4);
        EXPECT_EQ(fake::RecordOn(stream_, fake::Event(5)), CUDA_SUCCESS);
        EXPECT_EQ(fake::RecordOn(side_, fake::Event(5)), CUDA_SUCCESS);
        EXPECT_TRUE(Has(Recorded(stream_, 5))) << i;
        Side(3);
        Join(side_, stream_, 1);
        Home(5);
        Sync();
    }
    fake::ExpectBalance();
}

TEST_F(Found, ARecordOfTheHomeComesBehindASideStreamThatIsJoined) {
    Prime(side_);
    for (bool joined : {false, true})
        for (int i = 0; i < 20; i++) {
            Clear();
            First();
            Side(3);
            EXPECT_EQ(fake::RecordOn(side_, fake::Event(5)), CUDA_SUCCESS);
            if (joined) {
                EXPECT_EQ(fake::WaitOn(stream_, fake::Event(5)), CUDA_SUCCESS);
            }
            EXPECT_EQ(fake::RecordOn(stream_, fake::Event(5)), CUDA_SUCCESS);
            if (!joined || i == 19) {
                EXPECT_EQ(Has(Recorded(side_, 5)), !joined) << i;
            }
            Home(4);
            Join(side_, stream_, 1);
            Home(5);
            Sync();
        }
    fake::ExpectBalance();
}

// It waits for a branch that was forked in front of the home's record.
TEST_F(Found, ABranchOfABranchIsNotBehindTheHomesRecord) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Prime(side_);
    Prime(other);
    for (int i = 0; i < 20; i++) {
        Clear();
        Home(0);
        Fork(stream_, other, 0);
        Home(1);
        EXPECT_EQ(fake::RecordOn(stream_, fake::Event(5)), CUDA_SUCCESS);
        On(other, 2);
        Fork(other, side_, 1);
        EXPECT_EQ(fake::RecordOn(side_, fake::Event(5)), CUDA_SUCCESS);
        EXPECT_TRUE(Has(Recorded(stream_, 5))) << i;
        Side(3);
        Join(side_, stream_, 3);
        Join(other, stream_, 4);
        Home(4);
        Sync();
    }
    fake::ExpectBalance();
}

TEST_F(Found, AWaitBehindTheJoinIsNoOpenBranch) {
    Prime(side_);
    end_ = fake::OwnEvent(fake::OwnEvents());
    auto step = [&] {
        for (int call = 0; call < 2; call++) {
            Shared(0);
            Fork(stream_, side_, 0);
            Home(6);
            Home(7);
        }
        Sync();
    };
    EXPECT_GE(Launches(step, 20), 1);
    EXPECT_LE(fake::driver().calls["cuGraphLaunch"], 3);
    // The side stream goes on behind what it waited for, by the end of a graph or by its own wait.
    Side(8);
    const Lines &journal = fake::driver().journal;
    ASSERT_EQ(journal.back(), At(side_, 8));
    auto joined = std::find(journal.rbegin(), journal.rend(), At(stream_, 5));
    ASSERT_NE(joined, journal.rend());
    EXPECT_TRUE(std::any_of(journal.rbegin(), joined, [&](const std::string &line) {
        return line == EndWaited(side_) || line == Waited(side_, 0);
    }));
    Sync();
    fake::ExpectBalance();
}

TEST_F(Found, TheLegacyStreamIsNoSideStreamOfTheStreamThatItWaitedForFirst) {
    stream_ = CU_STREAM_LEGACY;
    side_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Side(7);
    Join(side_, stream_, 15);
    Home(6);
    Sync();
    Learn();
    // Nor after steps whose branch was not joined.
    for (int i = 0; i < 4; i++) {
        First();
        Sync();
        Join(side_, stream_, 1);
        Home(5);
        Sync();
    }
    ASSERT_NO_FATAL_FAILURE(Again());
}

TEST_F(Found, AStepEndsWhereTheHostWaitsForTheStreamOfCopiesAlone) {
    auto step = [&] {
        for (int i = 0; i < 5; i++)
            Home(i);
        Fork(stream_, side_, 0);
        Side(9);
        Await(side_);
    };
    for (int i = 0; i < 8; i++)
        step();
    Clear();
    step();
    EXPECT_GE(fake::driver().calls["cuGraphLaunch"], 1);
    fake::ExpectBalance();
}

// HAZARDS B18. A branch waits for another one that is not joined: a graph that begins behind that
// wait would not have it.
TEST_F(Found, AWaitForAnotherBranchIsNoForkFromTheHome) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Prime(side_);
    Prime(other);
    auto step = [&] {
        Home(0);
        Home(1);
        Fork(stream_, other, 0);
        On(other, 2);
        Fork(other, side_, 1);
        Name(stream_);
        Home(4);
        Home(5);
        Fork(stream_, side_, 2);
        Side(6);
        Side(7);
        Join(side_, stream_, 3);
        Home(8);
        Join(other, stream_, 4);
        Sync();
    };
    for (int i = 0; i < 20; i++) {
        Clear();
        step();
        EXPECT_TRUE(Has(At(side_, 6))) << "in a graph, step " << i;
    }
    fake::ExpectBalance();
}

// What a thread remembers of streams is void then; all that are there are found again.
TEST_F(Found, AStreamThatGoesInTheMidstOfAStepCutsNoBranch) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    On(other, 8);
    Await(other);
    Learn();
    Home(0);
    Home(1);
    Gone(other);
    Fork(stream_, side_, 0);
    Side(2);
    Rest();
    Sync();
    EXPECT_EQ(fake::driver().journal, Graph());
    EXPECT_EQ(fake::driver().calls["cuGraphLaunch"], 1);
}

// The segment ends behind the record from the first time on, so that the wait cuts none.
TEST_F(Found, AForkThatIsNoBranchIsFoundBeforeItCuts) {
    fake::Of(side_)->priority = -1;
    cus_counters before = fake::Counters();
    for (int i = 0; i < 12; i++) {
        Clear();
        for (int op = 0; op < 4; op++)
            Home(op);
        Fork(stream_, side_, 0);
        for (int op = 4; op < 8; op++)
            Home(op);
        Sync();
    }
    EXPECT_EQ(fake::driver().calls["cuGraphLaunch"], 2);
    cus_counters after = fake::Counters();
    for (unsigned cause = 0; cause < CUS_CAUSES; cause++)
        EXPECT_EQ(after.cut_ops[cause], before.cut_ops[cause]) << cus_api_name(cause);
}
