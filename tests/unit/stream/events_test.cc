// Promise: records of events cut no segment, and nobody can tell that a record was deferred.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/events.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shim/api/api.h"

using fake::Counters;
using fake::driver;
using fake::Elsewhere;
using fake::Event;
using fake::RealRecord;
using fake::RealRecordWithFlags;
using fake::RecordLine;
using fake::RecordOn;

namespace {

class Events : public fake::ProgramTest {
  protected:
    static constexpr int kEvents = 4;

    virtual fake::Settings EngineSettings() {
        return {{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_SEGMENT_MAX", "4"}};
    }
    void SetUp() override {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine(EngineSettings()));
        ProgramTest::SetUp();
        fake::TableOfEvents();
        for (int i = 0; i < kEvents; i++)
            cus_engine_event_made(Event(i));
        other_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    }
    void TearDown() override {
        ProgramTest::TearDown();
        fake::EndEngine();
    }

    CUresult Record(CUevent event) { return RecordOn(stream_, event); }
    static void Seen(CUevent event) { cus_engine_event_seen(event, CUS_ROW_cuEventQuery); }

    // Two segments of four ops, a record in each.
    void Step(CUevent first, CUevent second) {
        Launch(0);
        Launch(1);
        Record(first);
        Launch(2);
        Launch(3);
        Launch(4);
        Record(second);
        Launch(5);
        Sync();
    }
    void Learn() {
        for (int step = 0; step < 6; step++)
            Step(Event(0), Event(1));
        driver().journal.clear();
        driver().calls.clear();
    }
    // The first ops of a step, up to a record.
    void Begin(CUevent event) {
        driver().journal.clear();
        Launch(0);
        Launch(1);
        EXPECT_EQ(Record(event), CUDA_SUCCESS);
    }
    std::vector<std::string> Begun(CUevent event) {
        return {Line(0, 0), Line(1, 0), RecordLine(event, stream_)};
    }
    std::vector<std::string> Whole(CUevent first, CUevent second) {
        std::vector<std::string> lines = Begun(first);
        for (int i = 2; i < 5; i++)
            lines.push_back(Line(i, 0));
        lines.push_back(RecordLine(second, stream_));
        lines.push_back(Line(5, 0));
        return lines;
    }
    void ExpectStep(CUevent first, CUevent second) {
        driver().journal.clear();
        Step(first, second);
        EXPECT_EQ(driver().journal, Whole(first, second));
    }
    static int Patched() { return driver().calls["cuGraphExecEventRecordNodeSetEvent"]; }
    size_t Issued() const { return driver().journal.size(); }

    CUstream other_;
};

// HAZARDS B16.
TEST_F(Events, WhoSeesAnEventSeesItRecorded) {
    Learn();
    CUevent event = Event(0), fresh = Event(2);
    const std::vector<std::pair<const char *, std::function<void()>>> viewers = {
        {"its thread", [&] { Seen(event); }},
        {"another thread", [&] { Elsewhere([&] { Seen(event); }); }},
        {"a record elsewhere", [&] { RecordOn(other_, event); }},
        {"a record elsewhere by another thread",
         [&] { Elsewhere([&] { RecordOn(other_, event); }); }},
        {"a record into a capture of the program",
         [&] { Elsewhere([&] { RecordOn(other_, event, CU_EVENT_RECORD_EXTERNAL, true); }); }},
    };
    for (const auto &[who, sees] : viewers) {
        SCOPED_TRACE(who);
        cus_engine_event_made(event);
        Step(event, Event(1));
        Begin(event);
        ASSERT_EQ(Issued(), 0u) << "not deferred";
        Seen(fresh);
        EXPECT_EQ(Issued(), 0u) << "another event is asked for";
        sees();
        ASSERT_GE(Issued(), 3u);
        driver().journal.resize(3);
        EXPECT_EQ(driver().journal, Begun(event));
        Sync();
        Seen(event);
    }
    fake::ExpectBalance();
}

// Each of them may be needed later: to capture the record, to issue it, and to give its node
// another event.
TEST_F(Events, ARecordIsNoOpWhereTheDriverLacksACallThatItNeeds) {
    for (auto lack : {+[](cus_driver &t) { t.cuEventRecord = nullptr; },
                      +[](cus_driver &t) { t.cuEventRecordWithFlags = nullptr; },
                      +[](cus_driver &t) { t.cuGraphExecEventRecordNodeSetEvent = nullptr; }}) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        fake::TableOfEvents();
        lack(driver().table);
        Learn();
        Begin(Event(0));
        EXPECT_EQ(Issued(), 3u);
        Sync();
    }
}

// Deferred, it would lose the flag that makes it a node of the program's graph.
TEST_F(Events, ARecordIntoACaptureOfTheProgramIsNoOp) {
    Begin(Event(2));
    cus_record record = {};
    record.stream = {stream_, CUS_ABI_LEGACY};
    record.event = Event(0);
    EXPECT_TRUE(cus_engine_record_begins(&record, 0, CUS_ROW_cuEventRecord));
    EXPECT_FALSE(cus_engine_record_begins(&record, CU_EVENT_RECORD_EXTERNAL,
                                          CUS_ROW_cuEventRecordWithFlags));
    Sync();
}

TEST_F(Events, ARecordIsANodeOfTheGraph) {
    Learn();
    cus_counters before = Counters();
    ExpectStep(Event(0), Event(1));
    cus_counters after = Counters();
    EXPECT_EQ(after.graph_launches - before.graph_launches, 2u);
    EXPECT_EQ(after.in_graphs - before.in_graphs, 8u);
    EXPECT_EQ(after.records_in_graphs - before.records_in_graphs, 2u);
    EXPECT_EQ(after.ops[CUS_OP_RECORD] - before.ops[CUS_OP_RECORD], 2u);
    EXPECT_EQ(Patched(), 0) << "the same events";
    fake::ExpectBalance();
}

// What a graph saves is reckoned by its launches, and a record by itself is no launch.
TEST_F(Events, TheAccountLeavesRecordsOut) {
    Learn();
    uint64_t ops, in_graphs, more_ops, more_in_graphs;
    last_engine_account(&ops, &in_graphs);
    Step(Event(0), Event(1));
    last_engine_account(&more_ops, &more_in_graphs);
    EXPECT_EQ(more_ops - ops, 6u);
    EXPECT_EQ(more_in_graphs - in_graphs, 6u);
}

TEST_F(Events, AnotherEventIsPatched) {
    Learn();
    ExpectStep(Event(2), Event(1));
    EXPECT_EQ(Patched(), 1);
    ExpectStep(Event(2), Event(1));
    EXPECT_EQ(Patched(), 1);
    ExpectStep(Event(0), Event(2));
    EXPECT_EQ(Patched(), 3);
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_UNSUPPORTED], 0u);
}

std::vector<CUevent> destroyed;

// HAZARDS B17: the driver would refuse another event for the node.
TEST_F(Events, AnEventThatANodeHoldsIsDestroyedLater) {
    destroyed.clear();
    driver().table.cuEventDestroy_v2 = [](CUevent event) {
        destroyed.push_back(event);
        return CUDA_SUCCESS;
    };
    Learn();
    EXPECT_TRUE(cus_engine_event_goes(Event(0), CUS_ROW_cuEventDestroy_v2));
    EXPECT_FALSE(cus_engine_event_goes(Event(3), CUS_ROW_cuEventDestroy_v2)) << "no node holds it";
    EXPECT_EQ(destroyed, std::vector<CUevent>{});
    ExpectStep(Event(2), Event(1));
    EXPECT_EQ(Patched(), 1);
    cus_engine_event_made(Event(3));
    EXPECT_EQ(destroyed, std::vector<CUevent>{Event(0)});
    cus_engine_event_made(Event(0));
    EXPECT_EQ(destroyed.size(), 1u);
    Begin(Event(2)); // whose thread cannot know that nobody sees it any more
    Elsewhere([] { cus_engine_event_goes(Event(2), CUS_ROW_cuEventDestroy_v2); });
    EXPECT_EQ(driver().journal, Begun(Event(2)));
    cus_engine_context_gone(); // while the table can destroy events
}

// The driver destroys it with its context, and may give its handle to another event. It may also be
// an event of a context that stays.
TEST_F(Events, AnEventIsDestroyedBeforeItsContextMayGo) {
    destroyed.clear();
    driver().table.cuEventDestroy_v2 = [](CUevent event) {
        destroyed.push_back(event);
        return CUDA_SUCCESS;
    };
    Learn();
    EXPECT_TRUE(cus_engine_event_goes(Event(0), CUS_ROW_cuEventDestroy_v2));
    EXPECT_EQ(destroyed, std::vector<CUevent>{});
    cus_engine_context_gone();
    EXPECT_EQ(destroyed, std::vector<CUevent>{Event(0)});
    cus_engine_event_made(Event(0));
    EXPECT_EQ(destroyed.size(), 1u);
}

// The node holds what the handle meant then.
TEST_F(Events, AnEventAtAHandleThatComesBackIsAnother) {
    Learn();
    Begin(Event(0));
    cus_engine_event_goes(Event(0), CUS_ROW_cuEventDestroy_v2);
    EXPECT_EQ(driver().journal, Begun(Event(0))) << "before it is destroyed";
    EXPECT_EQ(Record(Event(0)), CUDA_SUCCESS);
    EXPECT_EQ(Issued(), 4u) << "an event that nobody made";
    Sync();
    cus_engine_event_made(Event(0));
    Step(Event(0), Event(1)); // the path is found again
    driver().calls.clear();
    cus_engine_event_goes(Event(0), CUS_ROW_cuEventDestroy_v2);
    cus_engine_event_made(Event(0));
    ExpectStep(Event(0), Event(1));
    EXPECT_EQ(Patched(), 1);
}

TEST_F(Events, ARecordOfAnEventThatPendsElsewhereComesBehind) {
    Learn();
    Begin(Event(0));
    std::vector<std::string> expected = Begun(Event(0));
    RecordOn(other_, Event(0));
    expected.push_back(RecordLine(Event(0), other_));
    EXPECT_EQ(driver().journal, expected);
}

// A record orders nothing on other streams.
TEST_F(Events, ARecordOnAnotherStreamFlushesNothing) {
    Learn();
    fake::Launch(other_, functions_[7], 7);
    fake::Sync(other_);
    Begin(Event(0));
    uint64_t flushes = Counters().flushes[CUS_ROW_cuEventRecord];
    RecordOn(other_, Event(3));
    EXPECT_EQ(driver().journal, std::vector<std::string>{RecordLine(Event(3), other_)});
    EXPECT_EQ(Counters().flushes[CUS_ROW_cuEventRecord], flushes);
    Launch(2);
    EXPECT_EQ(Issued(), 5u) << "the segment is whole";
    // But what is ordered with that stream comes first.
    CUstream kept = std::exchange(stream_, CU_STREAM_LEGACY);
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    fake::Launch(blocking, functions_[7], 7);
    fake::Sync(blocking);
    Learn();
    Begin(Event(0));
    RecordOn(blocking, Event(3));
    EXPECT_EQ(Issued(), 4u);
    EXPECT_EQ(driver().journal.back(), RecordLine(Event(3), blocking));
    stream_ = kept;
}

// The last one counts, on the same stream too.
TEST_F(Events, AnEventMayBeRecordedAgainBeforeItIsSeen) {
    for (int step = 0; step < 6; step++)
        Step(Event(0), Event(0));
    Launch(0);
    Launch(1);
    Record(Event(0));
    Launch(2); // a graph
    Launch(3);
    Launch(4);
    Launch(5);
    driver().journal.clear();
    Seen(Event(0));
    EXPECT_EQ(Issued(), 0u) << "its record is issued: what is deferred behind it stays so";
    for (int step = 0; step < 3; step++)
        Step(Event(0), Event(0));
    driver().journal.clear();
    Launch(0);
    Record(Event(0));
    Record(Event(0));
    Seen(Event(0));
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line(0, 0), RecordLine(Event(0), stream_),
                                                          RecordLine(Event(0), stream_)}));
}

// Of records of one event that nobody looks at, the last one alone is made.
TEST_F(Events, ARecordThatComesAgainUnseenIsLeftOut) {
    CUevent event = Event(0), other = Event(1);
    auto step = [&](
                    CUevent first, const std::function<void()> &between = [] {}) {
        driver().journal.clear();
        Launch(0);
        Record(first);
        between();
        Record(event);
        Launch(1);
        Sync();
        return driver().journal;
    };
    std::vector<std::string> all = {Line(0, 0), RecordLine(event, stream_),
                                    RecordLine(event, stream_), Line(1, 0)};
    std::vector<std::string> last = {all[0], all[2], all[3]};
    std::vector<std::string> both = {all[0], RecordLine(other, stream_), all[2], all[3]};
    for (int i = 0; i < 6; i++)
        step(event);
    uint64_t graphs = Counters().graph_launches;
    EXPECT_EQ(step(event), last);
    EXPECT_EQ(Counters().graph_launches, graphs + 1);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(step(other), both) << "the graph has no node for it";
        EXPECT_EQ(step(event, [&] { Seen(event); }), all);
        EXPECT_EQ(step(event, [&] { Elsewhere([&] { Seen(event); }); }), all);
        EXPECT_EQ(step(event, [&] { Elsewhere([&] { cus_engine_event_withheld(event); }); }).back(),
                  all.back());
    }
    fake::ExpectBalance();
}

class LongEvents : public Events {
  protected:
    fake::Settings EngineSettings() override { return {{"CUSPLICE_HOLD_US", "1000000"}}; }
};

// Steps that begin alike, with records that come again and with launches in their places.
TEST_F(LongEvents, NoLaunchIsTakenForARecordThatComesAgain) {
    const std::vector<std::vector<int>> steps = {{2, 2, 2}, {3}, {}, {}};
    for (int step = 0; step < 90; step++) {
        driver().journal.clear();
        // At first those alone whose records are in the segment.
        int which = step < 10 ? 3 : step % 4;
        const std::vector<int> &kind = steps[which];
        std::vector<int> launches = {0, 1};
        launches.insert(launches.end(), kind.begin(), kind.end());
        std::vector<std::string> expected;
        for (int i : launches) {
            Launch(i);
            expected.push_back(Line(i, 0));
        }
        Record(Event(0));
        if (which == 1 && step % 12 == 1) /* flushed in the midst */
            Elsewhere([&] { Seen(Event(0)); });
        Record(Event(0));
        int last = 5 + std::min(which, 2); // so that the paths stay apart
        Launch(last);
        Sync();
        ASSERT_GT(Issued(), expected.size() + 1);
        EXPECT_EQ(driver().journal.back(), Line(last, 0));
        EXPECT_EQ(driver().journal[driver().journal.size() - 2], RecordLine(Event(0), stream_));
        driver().journal.resize(expected.size());
        EXPECT_EQ(driver().journal, expected) << "step " << step;
    }
    EXPECT_GT(Counters().records_in_graphs, 0u);
    fake::ExpectBalance();
}

// Two threads use one stream in turn.
TEST_F(Events, AnotherThreadGoesOnBehindADeferredRecord) {
    Learn();
    Begin(Event(0));
    Elsewhere([&] {
        Launch(2);
        EXPECT_EQ(Issued(), 4u);
        Launch(3);
        Seen(Event(0));
        EXPECT_EQ(Issued(), 4u);
        Record(Event(0));
        Seen(Event(0));
    });
    EXPECT_EQ(Issued(), 6u);
    EXPECT_EQ(driver().journal.back(), RecordLine(Event(0), stream_));
    Sync();
    fake::ExpectBalance();
}

// A query need not wait for the thread that defers.
TEST_F(Events, ARecordOfAnotherThreadIsWithheld) {
    Learn();
    Begin(Event(0));
    EXPECT_FALSE(cus_engine_event_withheld(Event(0))) << "its own thread asks";
    EXPECT_FALSE(cus_engine_event_withheld(Event(1))) << "is issued";
    Elsewhere([&] {
        EXPECT_TRUE(cus_engine_event_withheld(Event(0)));
        EXPECT_FALSE(cus_engine_event_withheld(Event(1)));
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        fake::Of(stream_)->program_captures = true;
        cus_engine_capture_began(&ref);
        EXPECT_FALSE(cus_engine_event_withheld(Event(0))) << "a query may spoil a capture";
        fake::Of(stream_)->program_captures = false;
        cus_engine_capture_ended(&ref);
    });
    EXPECT_EQ(Issued(), 0u);
    Seen(Event(0));
    Elsewhere([&] { EXPECT_FALSE(cus_engine_event_withheld(Event(0))); });
}

TEST_F(Events, ThreadsAskWhileOthersRecord) {
    Learn();
    std::atomic<bool> done{false};
    std::thread asks([&] {
        while (!done)
            for (int i = 0; i < kEvents; i++)
                Seen(Event(i));
    });
    for (int step = 0; step < 300; step++) {
        Launch(0);
        Record(Event(step % kEvents));
        Launch(1);
        Launch(2);
    }
    Sync();
    done = true;
    asks.join();
    fake::ExpectBalance();
}

// Between the look whether the record may be deferred and the record, another thread makes it so
// that it may not.
TEST_F(Events, ARecordOfAnEventThatWasNamedMeanwhileIsIssued) {
    Learn();
    driver().journal.clear();
    Launch(0);
    Launch(1);
    cus_record record = {};
    record.stream = {stream_, CUS_ABI_LEGACY};
    record.event = Event(0);
    record.real = reinterpret_cast<void *>(RealRecord);
    ASSERT_TRUE(cus_engine_record_begins(&record, 0, CUS_ROW_cuEventRecord));
    Elsewhere([] { cus_engine_event_named(Event(0), CUS_ROW_cuGraphAddEventRecordNode); });
    EXPECT_EQ(Issued(), 0u);
    EXPECT_EQ(cus_engine_record(&record), CUDA_SUCCESS);
    EXPECT_EQ(driver().journal, Begun(Event(0)));
}

TEST_F(Events, ANamedEventIsRecordedAtOnce) {
    Learn();
    cus_engine_event_named(Event(0), CUS_ROW_cuGraphAddEventRecordNode);
    Begin(Event(0));
    EXPECT_EQ(driver().journal, Begun(Event(0)));
    Begin(Event(2));
    EXPECT_EQ(Issued(), 0u) << "others are deferred as before";
}

TEST_F(Events, AnEventOfAnotherContextIsRecordedAtOnce) {
    Learn();
    cus_driver &t = driver().table;
    CUcontext mine;
    t.cuCtxGetCurrent(&mine);
    t.cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(0x2000));
    cus_engine_event_made(Event(9));
    t.cuCtxPushCurrent_v2(mine);
    for (int step = 0; step < 3; step++) {
        Begin(Event(9));
        EXPECT_EQ(driver().journal, Begun(Event(9))) << "the driver refuses it";
        Sync();
    }
}

TEST_F(Events, ADriverWithoutSuchNodesIsGivenEachRecord) {
    driver().table.cuGraphExecEventRecordNodeSetEvent = nullptr;
    Learn();
    Begin(Event(0));
    EXPECT_EQ(driver().journal, Begun(Event(0)));
}

TEST_F(Events, NoMoreThanSomeAreKnown) {
    Learn();
    constexpr uintptr_t kMany = 1 << 17;
    for (uintptr_t i = 0; i < kMany; i++)
        cus_engine_event_made(Event(0x100 + i));
    CUevent last = Event(0x100 + kMany - 1);
    Begin(last);
    EXPECT_EQ(driver().journal, Begun(last)) << "one too many";
    Sync();
    Begin(Event(0));
    EXPECT_EQ(Issued(), 0u);
    Sync();
    for (uintptr_t i = 0; i < kMany; i++)
        cus_engine_event_goes(Event(0x100 + i), CUS_ROW_cuEventDestroy_v2);
    cus_engine_event_made(last);
    Begin(last);
    EXPECT_EQ(Issued(), 0u) << "there is room again";
}

TEST_F(Events, AContextThatGoesTakesItsEventsAlong) {
    Learn();
    cus_engine_context_gone();
    functions_ = fake::MakeFunctions(kOps);
    for (int step = 0; step < 6; step++)
        Step(Event(0), Event(1));
    Begin(Event(0));
    EXPECT_EQ(driver().journal, Begun(Event(0)));
    Sync();
    cus_engine_event_made(Event(0));
    cus_engine_event_made(Event(1));
    stream_ = other_; // whose path is not known yet
    Learn();
    Begin(Event(0));
    EXPECT_EQ(Issued(), 0u);
}

// Another context ends in the midst.
TEST_F(Events, AContextThatEndsLeavesRecordsOfOthersSeen) {
    CUcontext theirs = fake::MakeOtherContext();
    Learn();
    Begin(Event(0));
    Elsewhere([&] { fake::EndContext(theirs); });
    EXPECT_EQ(Issued(), 0u);
    Seen(Event(0));
    EXPECT_EQ(driver().journal, Begun(Event(0)));
}

TEST_F(Events, ARefusedPatchIssuesEachOp) {
    Learn();
    driver().fail = [](const std::string &what) {
        return what == "cuGraphExecEventRecordNodeSetEvent" ? CUDA_ERROR_INVALID_VALUE
                                                            : CUDA_SUCCESS;
    };
    ExpectStep(Event(2), Event(1));
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_SETPARAMS], 0u);
    for (int step = 0; step < 6; step++)
        ExpectStep(Event(step % 2), Event(2));
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    for (int step = 0; step < 6; step++)
        ExpectStep(Event(2), Event(3));
    fake::ExpectBalance();
}

TEST_F(Events, ACaptureThatFailsIssuesEachOp) {
    driver().fail = [](const std::string &what) {
        return what == "cuEventRecordWithFlags" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    };
    for (int step = 0; step < 8; step++)
        ExpectStep(Event(0), Event(1));
    EXPECT_EQ(Counters().records_in_graphs, 0u);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_CAPTURE], 0u);
    fake::ExpectBalance();
}

// The error of a record that is made later comes with the next op or wait (HAZARDS E4).
TEST_F(Events, AnErrorOfARecordIsNotLost) {
    Learn();
    Begin(Event(0));
    driver().fail = [](const std::string &what) {
        return what == "cuEventRecord" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
    };
    Sync();
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, CUS_ROW_cuStreamSynchronize), CUDA_ERROR_LAUNCH_FAILED);
    Seen(Event(0));
}

class EagerEvents : public Events {
  protected:
    fake::Settings EngineSettings() override {
        std::string path = ::testing::TempDir() + "events.conf";
        std::ofstream(path) << "[rules]\neager = api:cuEventRecord\n";
        fake::Settings settings = Events::EngineSettings();
        settings.emplace_back("CUSPLICE_CONFIG", path);
        return settings;
    }
};

TEST_F(EagerEvents, ARuleMakesRecordsEager) {
    Learn();
    Begin(Event(0));
    EXPECT_EQ(driver().journal, Begun(Event(0)));
    Sync();
    EXPECT_EQ(Counters().records_in_graphs, 0u);
    EXPECT_GT(Counters().eager_by[CUS_EAGER_RULE], 0u);
}

} // namespace
