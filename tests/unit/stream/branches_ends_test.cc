// Promise: no op is lost, moved or left unordered where a stream, an event or a context of a branch
// goes, or a graph cannot be built, patched or launched.
#include "tests/unit/stream/branches.h"
#include "tests/unit/stream/submitted.h"

using fake::Counters;
using fake::driver;
using fake::Elsewhere;
using fake::Event;

namespace {

std::vector<CUevent> destroyed;
CUresult Destroy(CUevent event) {
    destroyed.push_back(event);
    return CUDA_SUCCESS;
}
bool IsDestroyed(CUevent event) {
    return std::find(destroyed.begin(), destroyed.end(), event) != destroyed.end();
}

// The call with this name fails.
void Fail(const std::string &name) {
    driver().fail = [name](const std::string &what) {
        return what == name ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    };
}
void FailNothing() {
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
}

} // namespace

// ---- streams and contexts ----

TEST_F(Branches, AHomeStreamThatGoesIssuesWhatItDefers) {
    Learn();
    Expect(Begun(), [&] {
        First();
        Gone(stream_);
    });
    Expect({At(side_, 6)}, [&] { Side(6); });
    fake::ExpectBalance();
}

TEST_F(Branches, AHomeStreamThatGoesLeavesItsSideStreamWaiting) {
    Learn();
    driver().table.cuEventDestroy_v2 = Destroy;
    destroyed.clear();
    First();
    Rest();
    Expect({EndWaited(side_)}, [&] { Gone(stream_); });
    EXPECT_EQ(destroyed, std::vector<CUevent>{end_});
    Expect({At(side_, 6)}, [&] { Side(6); });
    // The side stream goes on with another home.
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Learn();
    fake::ExpectBalance();
}

TEST_F(Branches, ASideStreamThatGoesIssuesWhatIsDeferred) {
    Learn();
    Expect(Begun(), [&] {
        First();
        Gone(side_);
    });
    Expect({At(stream_, 5)}, [&] { Home(5); });
    fake::ExpectBalance();
}

TEST_F(Branches, AnotherStreamHasTheBranchOfOneThatWent) {
    Learn();
    First();
    Rest();
    Expect({EndWaited(side_)}, [&] { Gone(side_); });
    Sync();
    side_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Prime(side_);
    Steps(2);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph()) << "the same graph";
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    Expect({EndWaited(side_)}, [&] { Name(side_); });
    fake::ExpectBalance();
}

TEST_F(Branches, AContextThatMayGoHasEverythingIssuedFirst) {
    Learn();
    Expect(Begun(), [&] {
        First();
        cus_engine_context_gone();
    });
    for (int i = 0; i < kEvents; i++)
        cus_engine_event_made(Event(i));
    Learn(); // anew
    First();
    Rest();
    Expect({EndWaited(side_)}, [] { cus_engine_context_gone(); });
    fake::ExpectBalance();
}

// Nothing may be asked of it.
TEST_F(Branches, AContextThatEndedLosesWhatWasDeferred) {
    Learn();
    CUcontext mine;
    driver().table.cuCtxGetCurrent(&mine);
    First();
    Expect({}, [&] { fake::EndContext(mine); });
    EXPECT_EQ(driver().calls["cuEventDestroy_v2"], 0);
    Expect({At(side_, 6)}, [&] { Side(6); });
    functions_ = fake::MakeFunctions(kOps);
    for (int i = 0; i < kEvents; i++)
        cus_engine_event_made(Event(i));
    Learn();
    First();
    Rest();
    Expect({EndWaited(side_)}, [&] { Name(side_); }); // of the next context, which is there
    First();
    Rest();
    Expect({}, [&] { fake::EndContext(mine); });
}

TEST_F(Branches, CodeThatGoesHasWhatIsDeferredIssuedFirst) {
    Learn();
    Expect(Begun(), [&] {
        First();
        cus_engine_code_gone();
    });
    Rest();
    Sync();
    ASSERT_NO_FATAL_FAILURE(Again());
    First();
    Rest();
    Expect({}, [] { cus_engine_code_gone(); });
    Expect({EndWaited(side_)}, [&] { Name(side_); }); // the branch is known all the same
}

// ---- events ----

// Programs make an event for each fork, and destroy it behind the wait.
TEST_F(Branches, AnEventThatGoesUnseenHasNoNodeAndIsDestroyedLater) {
    driver().table.cuEventDestroy_v2 = Destroy;
    destroyed.clear();
    uintptr_t fresh = 100;
    auto fork = [&](CUstream from, CUstream to) {
        CUevent event = Event(fresh++);
        cus_engine_event_made(event);
        EXPECT_EQ(fake::RecordOn(from, event), CUDA_SUCCESS);
        EXPECT_EQ(fake::WaitOn(to, event), CUDA_SUCCESS);
        if (!cus_engine_event_goes(event, CUS_ROW_cuEventDestroy_v2))
            Destroy(event);
    };
    auto step = [&] {
        Home(0);
        Home(1);
        fork(stream_, side_);
        Side(2);
        Side(3);
        Home(4);
        fork(side_, stream_);
        Home(5);
        Sync();
    };
    Prime(side_);
    for (int i = 0; i < 10; i++)
        step();
    Lines expected = {At(stream_, 0), At(stream_, 1), At(stream_, 2), At(stream_, 3),
                      At(stream_, 4), At(stream_, 5), EndRecorded()};
    end_ = fake::OwnEvent(fake::OwnEvents() - 1);
    expected.back() = EndRecorded();
    uintptr_t before = fresh;
    Expect(expected, step);
    using Behind = std::set<std::string>;
    EXPECT_EQ(driver().behind[At(stream_, 2)], Behind{At(stream_, 1)});
    EXPECT_EQ(driver().behind[At(stream_, 5)], (Behind{At(stream_, 3), At(stream_, 4)}));
    cus_engine_event_made(Event(fresh++));
    EXPECT_TRUE(IsDestroyed(Event(before)));
    EXPECT_TRUE(IsDestroyed(Event(before + 1)));

    // Flushed in the midst, its record and the wait for it come before the driver's destroy.
    before = fresh;
    Home(0);
    Home(1);
    fork(stream_, side_);
    EXPECT_FALSE(IsDestroyed(Event(before)));
    Expect({At(stream_, 0), At(stream_, 1), fake::RecordLine(Event(before), stream_),
            EndWaited(side_), fake::WaitLine(Event(before), side_)},
           [&] { Sync(); });
    EXPECT_FALSE(IsDestroyed(Event(before)));
    cus_engine_event_made(Event(fresh++));
    EXPECT_TRUE(IsDestroyed(Event(before)));
    EXPECT_EQ(std::set<CUevent>(destroyed.begin(), destroyed.end()).size(), destroyed.size())
        << "each once";
}

// Whatever else is waited for in between.
TEST_F(Branches, AnEventThatGoesWithoutAWaitHasItsNode) {
    driver().table.cuEventDestroy_v2 = Destroy;
    uintptr_t fresh = 100;
    CUevent unseen = nullptr;
    auto step = [&] {
        unseen = Event(fresh++);
        cus_engine_event_made(unseen);
        Home(0);
        EXPECT_EQ(fake::RecordOn(stream_, unseen), CUDA_SUCCESS);
        Home(1);
        Fork(stream_, side_, 0);
        Side(2);
        Side(3);
        Home(4);
        Join(side_, stream_, 1);
        if (!cus_engine_event_goes(unseen, CUS_ROW_cuEventDestroy_v2))
            Destroy(unseen);
        Home(5);
        Sync();
    };
    Prime(side_);
    end_ = fake::OwnEvent(fake::OwnEvents());
    for (int i = 0; i < 10; i++)
        step();
    Lines expected = Graph();
    expected.insert(expected.begin() + 1, fake::RecordLine(Event(fresh), stream_));
    Expect(expected, step);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
}

TEST_F(Branches, AnEventMayBeAnotherInEachStep) {
    Learn();
    auto step = [&](int fork, int join) {
        Home(0);
        Home(1);
        Fork(stream_, side_, fork);
        Side(2);
        Side(3);
        Home(4);
        Join(side_, stream_, join);
        Home(5);
        Sync();
    };
    for (int i = 0; i < 6; i++) {
        Lines expected = Graph();
        expected[2] = Recorded(stream_, i);
        expected[6] = Recorded(stream_, i + 6);
        Expect(expected, [&] { step(i, i + 6); });
        EXPECT_EQ(driver().calls["cuGraphLaunch"], 1);
    }
    // What is patched is not what the branch ends with.
    EXPECT_EQ(driver().behind[EndRecorded()], std::set<std::string>{Recorded(stream_, 11)});
}

// ---- failures ----

TEST_F(Branches, AGraphThatCannotBeLaunchedIsIssuedOpByOp) {
    Learn();
    Fail("cuGraphLaunch");
    Expect(Whole(), [&] {
        First();
        Rest();
    });
    FailNothing();
    Sync();
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_GRAPH_LAUNCH], 0u);
    Expect({}, [&] { Name(side_); }); // no graph has ended there since
    fake::ExpectBalance();
}

TEST_F(Branches, AGraphThatCannotBePatchedIsIssuedOpByOp) {
    Learn();
    Fail("cuGraphExecEventRecordNodeSetEvent");
    Lines expected = Whole();
    expected[2] = Recorded(stream_, 7);
    expected[4] = Waited(side_, 7);
    Expect(expected, [&] {
        Home(0);
        Home(1);
        Fork(stream_, side_, 7);
        Side(2);
        Rest();
    });
    FailNothing();
    Sync();
    fake::ExpectBalance();
}

TEST_F(Branches, AGraphThatCannotBeBuiltIsIssuedOpByOp) {
    for (const char *name :
         {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuStreamGetCaptureInfo_v3",
          "cuEventRecordWithFlags", "cuGraphInstantiateWithFlags"}) {
        SCOPED_TRACE(name);
        Streams(CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
        Prime(side_);
        Fail(name);
        for (int i = 0; i < 8; i++)
            Expect(Whole(false), [&] { Step(); });
        FailNothing();
        EXPECT_EQ(driver().calls["cuGraphLaunch"], 0);
    }
    fake::ExpectBalance();
}

// The error comes with the next op or wait of the home stream (HAZARDS E4).
TEST_F(Branches, AnErrorOfADeferredWaitIsNotLost) {
    Learn();
    First();
    Fail("cuStreamWaitEvent");
    Sync();
    FailNothing();
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_NE(cus_engine_take_error(&ref, CUS_ROW_cuStreamSynchronize), CUDA_SUCCESS);
}

// Each of the two streams tells its first error.
TEST_F(Branches, OfAllErrorsOfABranchTheFirstIsTold) {
    static CUfunction first, second;
    first = functions_[2];
    second = functions_[3];
    Learn();
    First();
    Side(3);
    driver().table.cuLaunchKernel = [](CUfunction f, auto...) {
        return f == first    ? CUDA_ERROR_INVALID_VALUE
               : f == second ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                             : CUDA_SUCCESS;
    };
    const uint64_t before = fake::Counters().fallbacks[CUS_FALLBACK_LATE_ERROR];
    Sync();
    EXPECT_EQ(fake::Counters().fallbacks[CUS_FALLBACK_LATE_ERROR], before + 2);
    for (CUstream stream : {stream_, side_}) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        EXPECT_EQ(cus_engine_take_error(&ref, CUS_ROW_cuStreamSynchronize),
                  CUDA_ERROR_INVALID_VALUE);
    }
}

// The program is told that the stream was not joined.
TEST_F(Branches, AWaitThatFailsJoinsNothing) {
    Prime(side_);
    First(); // deferred for the first time, and not in a graph yet
    ASSERT_TRUE(Has(At(side_, 2)));
    Side(3);
    EXPECT_EQ(fake::RecordOn(side_, Event(1)), CUDA_SUCCESS);
    Fail("cuStreamWaitEvent");
    EXPECT_EQ(fake::WaitOn(stream_, Event(1)), CUDA_ERROR_INVALID_VALUE);
    FailNothing();
    Sync();
    Home(4);
    Home(5);
    const cus_counters before = Counters();
    Fork(stream_, side_, 2);
    EXPECT_EQ(Counters().ops[CUS_OP_WAIT], before.ops[CUS_OP_WAIT]) << "it is not forked";
}

// ---- a segment that was submitted ----

class SubmittedBranches : public Submitted {
  protected:
    // The same segments at any pace.
    static void SetUpTestSuite() {
        Start({{"CUSPLICE_SEGMENT_FIRST", "32"}, {"CUSPLICE_SEGMENT_MAX", "32"}});
    }
    void SetUp() override {
        Submitted::SetUp();
        if (IsSkipped())
            return;
        fake::TableOfBranches();
        functions_ = fake::MakeFunctions(kOps); // whose path is new
        side_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        for (int i = 0; i < 2; i++)
            cus_engine_event_made(Event(i));
        end_ = fake::OwnEvent(fake::OwnEvents());
        On(stream_, 7); // the first region is made by the program's own calls
        Part();
        Sync();
        for (int step = 0; step < 8; step++) {
            Region();
            Sync();
        }
        ASSERT_GT(Counters().submitted, before_.submitted);
        driver().journal.clear();
    }
    void TearDown() override {
        Submitted::TearDown();
        cus_engine_context_gone(); // while the table has what branches need
    }
    void On(CUstream stream, int i) {
        ASSERT_EQ(fake::Launch(stream, functions_[i], 100 + i), CUDA_SUCCESS);
    }
    void Region() {
        for (int i = 0; i < 4; i++)
            On(stream_, i);
        Part();
    }
    void Part() {
        fake::RecordOn(stream_, Event(0));
        fake::WaitOn(side_, Event(0));
        for (int i = 4; i < 6; i++)
            On(side_, i);
        fake::RecordOn(side_, Event(1));
        fake::WaitOn(stream_, Event(1));
    }
    // Until the graph with the branch is submitted, and its thread is stopped.
    void UntilStopped(bool fails) {
        StopAt("cuGraphLaunch", fails);
        uint64_t submitted = Counters().submitted;
        Region();
        ASSERT_EQ(Counters().submitted, submitted + 1);
        while (!met_)
            usleep(100);
    }
    void NameSide() {
        cus_stream_ref ref = {side_, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuLaunchHostFunc);
    }

    CUstream side_;
    CUevent end_;
};

TEST_F(SubmittedBranches, ACallOnTheSideStreamComesBehindTheGraph) {
    UntilStopped(false);
    OpenSoon();
    NameSide();
    Join();
    ASSERT_GE(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal.back(), fake::WaitLine(end_, side_));
    EXPECT_EQ(driver().journal[driver().journal.size() - 2], fake::RecordLine(end_, stream_));
    ExpectNothingPends();
    fake::ExpectBalance();
}

TEST_F(SubmittedBranches, OpsOfAGraphThatFailedGoToTheirStreams) {
    UntilStopped(true);
    OpenSoon();
    Sync();
    Join();
    Lines journal = driver().journal;
    for (const std::string &line :
         {fake::Line(side_, "k4", 104), fake::Line(side_, "k5", 105),
          fake::RecordLine(Event(1), side_), fake::WaitLine(Event(1), stream_)})
        EXPECT_EQ(std::count(journal.begin(), journal.end(), line), 1) << line;
    EXPECT_EQ(std::count(journal.begin(), journal.end(), fake::RecordLine(end_, stream_)), 0);
    fake::ExpectBalance();
}

// A region of a step is submitted, and the next one is learned and built meanwhile. An event of the
// first one goes, whose record is at the same place as one of the second.
class LateEvents : public SubmittedBranches {
  protected:
    enum When { BETWEEN, BEHIND_THE_FORK, BEHIND_THE_JOIN };
    struct Events {
        CUevent fork, join;
    };

    Events Region(int first, const std::function<void()> &forked,
                  const std::function<void()> &joined) {
        Events events = {Event(fresh_), Event(fresh_ + 1)};
        fresh_ += 2;
        cus_engine_event_made(events.fork);
        cus_engine_event_made(events.join);
        for (int i = first; i < first + 4; i++)
            On(stream_, i);
        fake::RecordOn(stream_, events.fork);
        fake::WaitOn(side_, events.fork);
        forked();
        for (int i = 4; i < 6; i++)
            On(side_, i);
        fake::RecordOn(side_, events.join);
        fake::WaitOn(stream_, events.join);
        joined();
        return events;
    }
    void EachIsRecorded(When goes) {
        driver().table.cuEventDestroy_v2 = Destroy;
        auto nothing = [] {};
        auto destroy = [](CUevent event) {
            cus_engine_event_goes(event, CUS_ROW_cuEventDestroy_v2);
        };
        for (int step = 0; step < 8; step++) {
            SCOPED_TRACE(step);
            driver().journal.clear();
            StopAt("cuGraphLaunch", false);
            uint64_t submitted = Counters().submitted;
            Events before = Region(0, nothing, nothing);
            ASSERT_EQ(Counters().submitted, submitted + 1);
            StepEnd();
            if (goes == BETWEEN)
                destroy(before.fork);
            OpenSoon();
            Events next = Region(
                6, [&] { goes == BEHIND_THE_FORK ? destroy(before.fork) : nothing(); },
                [&] {
                    if (goes == BEHIND_THE_JOIN)
                        destroy(before.join);
                    On(stream_, 10); // the segment goes on
                });
            Sync();
            Join();
            Lines journal = driver().journal;
            for (CUevent event : {before.fork, before.join, next.fork, next.join}) {
                auto records = [&](CUstream stream) {
                    return std::count(journal.begin(), journal.end(),
                                      fake::RecordLine(event, stream));
                };
                EXPECT_EQ(records(stream_) + records(side_), 1);
            }
        }
        fake::ExpectBalance();
    }
    uintptr_t fresh_ = 100;
};

TEST_F(LateEvents, OneThatGoesBetweenThem) {
    EachIsRecorded(BETWEEN);
}

TEST_F(LateEvents, TheForkOfTheFirst) {
    EachIsRecorded(BEHIND_THE_FORK);
}

TEST_F(LateEvents, TheJoinOfTheFirst) {
    EachIsRecorded(BEHIND_THE_JOIN);
}
