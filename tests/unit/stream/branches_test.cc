// Promise: what a thread forks by events and joins again is one graph. Where it cannot be, each op
// is issued on its own stream, in order, with the waits and records that it needs.
#include "tests/unit/stream/branches.h"

#include <unistd.h>

#include "tools/trace/model.h"

extern "C" {
#include "shim/trace/record.h"
}

using fake::Counters;
using fake::driver;
using fake::Elsewhere;
using fake::Event;

TEST_F(Branches, AForkAndJoinAreOneGraph) {
    Learn();
    cus_counters before = Counters();
    Expect(Graph(), [&] { Step(); });
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
    EXPECT_EQ(driver().calls["cuLaunchKernel"], 0) << "nor a record or a wait";
    cus_counters after = Counters();
    EXPECT_EQ(after.graph_launches - before.graph_launches, 1u);
    EXPECT_EQ(after.in_graphs - before.in_graphs, 10u);
    EXPECT_EQ(after.ops[CUS_OP_WAIT] - before.ops[CUS_OP_WAIT], 2u);
    using Behind = std::set<std::string>;
    std::map<std::string, Behind> &behind = driver().behind;
    EXPECT_EQ(behind[Recorded(stream_, 0)], Behind{At(stream_, 1)});
    EXPECT_EQ(behind[At(stream_, 2)], Behind{Recorded(stream_, 0)});
    EXPECT_EQ(behind[At(stream_, 3)], Behind{At(stream_, 2)});
    EXPECT_EQ(behind[At(stream_, 4)], Behind{Recorded(stream_, 0)}) << "beside the branch";
    EXPECT_EQ(behind[At(stream_, 5)], (Behind{At(stream_, 4), Recorded(stream_, 1)}));
    EXPECT_EQ(behind[EndRecorded()], Behind{Recorded(stream_, 1)});
    fake::ExpectBalance();
}

// HAZARDS B19.
TEST_F(Branches, ACallOnASideStreamWaitsForTheEndOfItsBranch) {
    Learn();
    First();
    Rest();
    ASSERT_EQ(driver().journal, Graph());
    Expect({EndWaited(side_)}, [&] { Name(side_); });
    Expect({}, [&] { Name(side_); });
    Sync();
    Steps(3);
    First();
    Rest();
    Expect({EndWaited(side_), At(side_, 6)}, [&] { Side(6); });
    Sync();
    // A call that covers all streams covers it too.
    Steps(3);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
    Expect({EndWaited(side_)},
           [&] { cus_engine_flush(CUS_SCOPE_P, nullptr, CUS_ROW_cuMemFree_v2); });
}

// The event may have been recorded before the graph was launched.
TEST_F(Branches, AForkThatIsInNoGraphWaitsForTheEndOfTheBranchToo) {
    Learn();
    Home(8);
    EXPECT_EQ(fake::RecordOn(stream_, Event(5)), CUDA_SUCCESS);
    Sync();
    Steps(4);
    Expect({EndWaited(side_), Waited(side_, 5), At(side_, 8)}, [&] {
        EXPECT_EQ(fake::WaitOn(side_, Event(5)), CUDA_SUCCESS);
        Side(8);
    });
    fake::ExpectBalance();
}

// What the home stream does behind the graph is behind the branch anyway.
TEST_F(Branches, ACallOnTheHomeStreamNeedsNoWait) {
    Learn();
    First();
    Rest();
    Expect({}, [&] { Name(stream_); });
    Sync();
    fake::ExpectBalance();
}

TEST_F(Branches, WhatIsFlushedInTheMidstGoesOutOnItsOwnStream) {
    Learn();
    const std::vector<std::pair<const char *, std::function<void()>>> causes = {
        {"the host waits", [&] { Sync(); }},
        {"a call names the home", [&] { Name(stream_); }},
        {"a call names the side stream", [&] { Name(side_); }},
        {"the fork's event is looked at",
         [&] { cus_engine_event_seen(Event(0), CUS_ROW_cuEventQuery); }},
        {"a launch elsewhere",
         [&] {
             CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
             Name(other);
             fake::Launch(other, functions_[7], 7);
             driver().journal.pop_back();
         }},
        {"another thread names the home", [&] { Elsewhere([&] { Name(stream_); }); }},
        {"another thread names the side stream", [&] { Elsewhere([&] { Name(side_); }); }},
        {"another thread looks at the event",
         [&] { Elsewhere([&] { cus_engine_event_seen(Event(0), CUS_ROW_cuEventQuery); }); }},
    };
    On(stream_, 7); // not for the first time, later
    for (const auto &[cause, call] : causes) {
        SCOPED_TRACE(cause);
        Sync();
        Steps(6);
        ASSERT_NO_FATAL_FAILURE(ExpectGraph());
        Clear();
        First();
        ASSERT_EQ(Issued(), 0u);
        Expect(Begun(), call);
        Rest();
        Sync();
        // A stream that two threads give work is not forked again.
        if (cause == std::string("another thread names the side stream")) {
            Streams(CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
            On(stream_, 7);
            Learn();
        }
    }
    fake::ExpectBalance();
}

// Without the look, the record could have been left out.
TEST_F(Branches, ASupersededRecordIsIssuedWhereAWaitNeedsIt) {
    Prime(side_);
    auto first = [&] {
        Home(0);
        Fork(stream_, side_, 0);
        Side(2);
        EXPECT_EQ(fake::RecordOn(stream_, Event(0)), CUDA_SUCCESS);
        Home(1);
    };
    auto step = [&] {
        first();
        Join(side_, stream_, 1);
        Home(5);
        Sync();
    };
    for (int i = 0; i < 8; i++)
        step();
    Expect({At(stream_, 0), At(stream_, 2), Recorded(stream_, 0), At(stream_, 1),
            Recorded(stream_, 1), At(stream_, 5), EndRecorded()},
           step);
    EXPECT_EQ(driver().behind[At(stream_, 2)], std::set<std::string>{At(stream_, 0)});
    Expect({}, first);
    Expect({At(stream_, 0), Recorded(stream_, 0), EndWaited(side_), Waited(side_, 0), At(side_, 2),
            Recorded(stream_, 0), At(stream_, 1)},
           [&] { Sync(); });
    fake::ExpectBalance();
}

TEST_F(Branches, WhatDivergesGoesOutOnItsOwnStream) {
    Learn();
    First();
    Lines expected = Begun();
    expected.push_back(At(side_, 6));
    Home(7); // has run, so that it is not its first time
    Sync();
    On(side_, 6);
    Sync();
    Steps(4);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
    Expect(expected, [&] {
        First();
        Side(6);
    });
    Lines rest = {At(side_, 3), At(stream_, 4), Recorded(side_, 1), Waited(stream_, 1),
                  At(stream_, 5)};
    Expect(rest, [&] {
        Rest();
        Sync();
    });
    fake::ExpectBalance();
}

TEST_F(Branches, AnOpOfABranchIsPatched) {
    Learn();
    for (uint32_t b = 1; b < 4; b++) {
        Lines expected = Graph();
        expected[3] = fake::Line(stream_, "k2", 102, b);
        expected[5] = fake::Line(stream_, "k4", 104, 10 + b);
        Expect(expected, [&] {
            Home(0);
            Home(1);
            Fork(stream_, side_, 0);
            fake::Launch(side_, functions_[2], 102, b);
            Side(3);
            fake::Launch(stream_, functions_[4], 104, 10 + b);
            Join(side_, stream_, 1);
            Home(5);
            Sync();
        });
        EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
    }
    fake::ExpectBalance();
}

// The short path of a launch on a side stream: the one that is expected there, and no other.
TEST_F(Branches, TheExpectedLaunchTakesAShortPath) {
    Learn();
    Step(); // which is timed, as some are
    uint64_t a = 103;
    uint32_t b = 0;
    void *params[2] = {&a, &b};
    const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0}, wide[7] = {2, 1, 1, 32, 1, 1, 0};
    EXPECT_FALSE(hot_branch(functions_[0], dims, stream_, params)) << "nothing is deferred";
    First();
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_FALSE(hot_branch(functions_[3], dims, other, params));
    EXPECT_FALSE(hot_branch(functions_[3], dims, stream_, params));
    EXPECT_FALSE(hot_branch(functions_[4], dims, side_, params));
    EXPECT_FALSE(hot_branch(functions_[3], wide, side_, params));
    EXPECT_TRUE(hot_branch(functions_[3], dims, side_, params));
    a = 104;
    EXPECT_FALSE(hot_branch(functions_[4], dims, side_, params)) << "is one of the home";
    Home(4);
    Join(side_, stream_, 1);
    Clear();
    Home(5);
    EXPECT_EQ(driver().journal, Graph());
    Sync();
    // Another thread names the side stream, which is no branch any more.
    First();
    Elsewhere([&] { Name(side_); });
    EXPECT_FALSE(hot_branch(functions_[3], dims, side_, params));
    fake::ExpectBalance();
}

// An op on the side stream that went the long way leaves the thread at the home stream.
TEST_F(Branches, TheHomesNextLaunchTakesTheHotPath) {
    Learn();
    Step(); // which is timed, as some are
    First();
    fake::Call side(side_, functions_[3], 103, 0);
    EXPECT_EQ(cus_engine_launch(&side.launch), CUDA_SUCCESS);
    uint64_t a = 104;
    uint32_t b = 0;
    void *params[2] = {&a, &b};
    const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
    EXPECT_TRUE(hot_launch(functions_[4], dims, stream_, CUS_ABI_LEGACY, params, nullptr));
    Join(side_, stream_, 1);
    Clear();
    Home(5);
    EXPECT_EQ(driver().journal, Graph());
    Sync();
    fake::ExpectBalance();
}

// The wait is for another record than the one in the graph.
TEST_F(Branches, AWaitForAnotherRecordIsNotTakenForTheSame) {
    Learn();
    EXPECT_EQ(fake::RecordOn(stream_, Event(2)), CUDA_SUCCESS);
    auto step = [&](int event) {
        Home(0);
        Home(1);
        EXPECT_EQ(fake::RecordOn(stream_, Event(0)), CUDA_SUCCESS);
        EXPECT_EQ(fake::WaitOn(side_, Event(event)), CUDA_SUCCESS);
        Side(2);
        Rest();
        Sync();
    };
    Clear();
    step(2);
    EXPECT_TRUE(Has(Waited(side_, 2)));
    EXPECT_TRUE(Has(At(side_, 2))) << "its fork is in no segment";
    EXPECT_FALSE(Has(Waited(side_, 0)));
    fake::ExpectBalance();
}

TEST_F(Branches, AJoinInTheMidstAndASecondForkAreEdges) {
    Prime(side_);
    auto step = [&] {
        Home(0);
        Fork(stream_, side_, 0);
        Side(2);
        Join(side_, stream_, 1);
        Home(1);
        Fork(stream_, side_, 2);
        Side(3);
        Join(side_, stream_, 3);
        Home(4);
        Sync();
    };
    for (int i = 0; i < 10; i++)
        step();
    Clear();
    step();
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
    EXPECT_EQ(driver().calls["cuLaunchKernel"], 0);
    using Behind = std::set<std::string>;
    EXPECT_EQ(driver().behind[At(stream_, 1)],
              (Behind{Recorded(stream_, 0), Recorded(stream_, 1)}));
    EXPECT_EQ(driver().behind[At(stream_, 3)], Behind{Recorded(stream_, 2)});
    EXPECT_EQ(driver().behind[At(stream_, 4)],
              (Behind{Recorded(stream_, 2), Recorded(stream_, 3)}));
    fake::ExpectBalance();
}

TEST_F(Branches, FourSideStreamsAreBranchesAndAFifthIsNot) {
    CUstream sides[5];
    for (CUstream &side : sides) {
        side = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Prime(side);
    }
    auto step = [&](int n) {
        Home(0);
        for (int i = 0; i < n; i++)
            Fork(stream_, sides[i], i);
        for (int i = 0; i < n; i++)
            On(sides[i], 2 + i);
        for (int i = 0; i < n; i++)
            Join(sides[i], stream_, 8 + i);
        Home(1);
        Sync();
    };
    for (int i = 0; i < 10; i++)
        step(4);
    Clear();
    step(4);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
    EXPECT_EQ(driver().calls["cuLaunchKernel"], 0);
    std::set<std::string> joined = {Recorded(stream_, 3)};
    for (int i = 0; i < 4; i++)
        joined.insert(Recorded(stream_, 8 + i));
    EXPECT_EQ(driver().behind[At(stream_, 1)], joined);
    for (int i = 0; i < 10; i++) {
        Clear();
        step(5);
        EXPECT_TRUE(Has(At(sides[4], 6))) << i;
    }
    fake::ExpectBalance();
}

// A step with as many side streams as there are branches, each of which waits for the end of its
// branch before it goes on (HAZARDS B19).
class AllBranches : public Branches {
  protected:
    void SetUp() override {
        Branches::SetUp();
        for (CUstream &side : sides_) {
            side = fake::MakeStream(CU_STREAM_NON_BLOCKING);
            Prime(side);
        }
        ends_ = fake::OwnEvents();
        for (int i = 0; i < 10; i++)
            StepOfAll();
        Clear();
        StepOfAll();
        ASSERT_EQ(driver().calls["cuGraphLaunch"], 1);
        Clear();
    }
    void StepOfAll() {
        Home(0);
        for (int i = 0; i < CUS_BRANCHES; i++)
            Fork(stream_, sides_[i], i);
        for (int i = 0; i < CUS_BRANCHES; i++)
            On(sides_[i], 2 + i);
        for (int i = 0; i < CUS_BRANCHES; i++)
            Join(sides_[i], stream_, 8 + i);
        Home(1);
        Sync();
    }
    void ExpectWaits() {
        for (uintptr_t i = 0; i < CUS_BRANCHES; i++)
            EXPECT_TRUE(Has(fake::WaitLine(fake::OwnEvent(ends_ + i), sides_[i]))) << i;
    }

    CUstream sides_[CUS_BRANCHES];
    uintptr_t ends_;
};

TEST_F(AllBranches, ACallOnEachComesBehindItsBranch) {
    for (CUstream side : sides_)
        Name(side);
    ExpectWaits();
}

TEST_F(AllBranches, EachComesBehindItsBranchWhenTheHomeGoes) {
    Gone(stream_);
    ExpectWaits();
    EXPECT_EQ(driver().calls["cuEventDestroy_v2"], CUS_BRANCHES);
}

TEST_F(AllBranches, EachComesBehindItsBranchWhenTheProgramEnds) {
    cus_engine_drain();
    ExpectWaits();
}

// The order of the forks decides which branch a stream has, in each step.
TEST_F(Branches, AnotherStreamTakesTheBranchInTheNextStep) {
    CUstream sides[2] = {side_, fake::MakeStream(CU_STREAM_NON_BLOCKING)};
    Prime(sides[0]);
    Prime(sides[1]);
    for (int i = 0; i < 12; i++) {
        side_ = sides[i % 2];
        Step();
    }
    for (int i = 0; i < 4; i++) {
        side_ = sides[i % 2];
        Lines expected = {EndWaited(sides[(i + 1) % 2])}; // which has no branch any more
        for (const std::string &line : Graph())
            expected.push_back(line);
        Expect(expected, [&] { Step(); });
        EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
    }
    fake::ExpectBalance();
}

// Each of two streams that wait for each other could be a branch of the other.
TEST_F(Branches, TwoStreamsChangePlacesIfTheSideStreamIsNotJoined) {
    auto step = [&] {
        Home(0);
        Fork(stream_, side_, 0);
        Side(2);
        Side(3);
        Join(side_, stream_, 1);
        Home(1);
        Sync();
        return driver().journal.size() == 7 && Has(At(stream_, 2));
    };
    for (int i = 0; i < 3; i++)
        Home(i), Side(i + 3), Sync(); // no first times later
    Join(side_, stream_, 3);          // the home waits first, and is taken for the side stream
    std::vector<bool> in_graph;
    for (int i = 0; i < 20; i++) {
        Clear();
        in_graph.push_back(step());
    }
    // The first region is made by own calls. The home is forked in the next three, and its last op
    // is not joined when the host waits.
    EXPECT_EQ(std::count(in_graph.begin(), in_graph.begin() + 5, true), 0);
    EXPECT_EQ(std::count(in_graph.end() - 8, in_graph.end(), true), 8)
        << testing::PrintToString(in_graph);
    fake::ExpectBalance();
}

// The record is out by then, so that the wait is no edge: an op came that was not expected.
TEST_F(Branches, AWaitForARecordInFrontOfTheSegmentDiverges) {
    Prime(side_);
    auto begin = [&] {
        Home(6);
        EXPECT_EQ(fake::RecordOn(stream_, Event(0)), CUDA_SUCCESS);
        Name(stream_);
        Home(0);
        Home(1);
    };
    for (int step = 0; step < 8; step++) {
        begin();
        Home(2);
        Home(3);
        Sync();
    }
    Clear();
    begin();
    ASSERT_FALSE(Has(At(stream_, 1))) << "deferred";
    cus_counters before = Counters();
    EXPECT_EQ(fake::WaitOn(side_, Event(0)), CUDA_SUCCESS);
    EXPECT_TRUE(Has(At(stream_, 1)));
    cus_counters after = Counters();
    EXPECT_EQ(after.eager_by[CUS_EAGER_DIVERGED], before.eager_by[CUS_EAGER_DIVERGED] + 2);
    EXPECT_EQ(after.eager_by[CUS_EAGER_FLUSHED], before.eager_by[CUS_EAGER_FLUSHED]);
    Join(side_, stream_, 1);
    Sync();
    fake::ExpectBalance();
}

// Six steps in graphs, in which two streams have the branch in turn, and one that is flushed in
// its midst.
TEST_F(Branches, ATraceChangesNothingAndSaysWhichStream) {
    const CUstream sides[2] = {fake::MakeStream(CU_STREAM_NON_BLOCKING), side_};
    auto steps = [&](int n) {
        for (int i = 0; i < n; i++) {
            side_ = sides[i % 2];
            Step();
        }
    };
    Prime(sides[0]);
    Prime(sides[1]);
    steps(12);
    std::string path = ::testing::TempDir() + "branches.cst";
    unlink(path.c_str());
    ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
    hot_ = false;
    steps(6);
    First();
    Name(side_);
    Rest();
    Sync();
    // Somebody looks twice at each of two records that are deferred.
    for (int i = 0; i < 2; i++) {
        Clear();
        Home(0);
        Home(1);
        EXPECT_EQ(fake::RecordOn(stream_, Event(9)), CUDA_SUCCESS);
        EXPECT_EQ(Issued(), 0u) << i;
        for (int look = 0; look < 2; look++)
            cus_engine_event_seen(Event(9), CUS_ROW_cuEventQuery);
        EXPECT_EQ(Issued(), 3u) << i;
        Sync();
    }
    cus_record_end();
    char error[512];
    cst_trace *trace = cst_open(path.c_str(), error, sizeof error);
    ASSERT_TRUE(trace) << error;
    model *made = model_make(trace);
    ASSERT_TRUE(made);
    struct Ops {
        uint32_t in_graphs, flushed, waits;
    };
    auto of = [&](CUstream stream) {
        Ops ops = {};
        for (uint32_t i = 0; i < made->n_ops; i++) {
            const model_op *op = &made->ops[i];
            if (trace->streams[op->op->stream]->handle != reinterpret_cast<uintptr_t>(stream))
                continue;
            ops.in_graphs += model_in_graph(op);
            ops.flushed += !model_in_graph(op) && op->out;
            ops.waits += trace->kinds[op->op->kind]->op == CST_OP_WAIT;
        }
        return ops;
    };
    const Ops first = of(sides[0]), second = of(sides[1]);
    EXPECT_EQ(first.in_graphs, 3u * 4) << "a wait, two launches and a record in each step";
    EXPECT_EQ(second.in_graphs, 3u * 4);
    EXPECT_EQ(second.flushed, 2u) << "a wait and a launch";
    EXPECT_EQ(second.waits, 4u);
    EXPECT_EQ(made->graph_launches, 6u);
    EXPECT_EQ(made->open, 0u);
    int looks = 0;
    for (size_t i = 0; i < trace->n_events; i++) {
        auto *call = reinterpret_cast<const cst_call *>(trace->events[i]);
        looks += call->head.type == CST_CALL && call->what == CST_CALL_EVENT_SEEN &&
                 call->value == reinterpret_cast<uintptr_t>(Event(9));
    }
    EXPECT_EQ(looks, 2) << "the first look at each record";
    model_free(made);
    cst_free(trace);
}
