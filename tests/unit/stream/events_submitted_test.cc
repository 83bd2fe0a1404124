// Promise: who sees an event whose record is in a submitted segment waits for that segment alone.
// What is deferred behind it stays deferred.
#include "shim/api/api.h"
#include "tests/unit/stream/submitted.h"

namespace {

CUevent event = reinterpret_cast<CUevent>(0xe1000);

CUfunction RecordFunction() {
    static CUfunction f = fake::MakeFunction("record");
    return f;
}
CUresult RealRecord(CUevent which, CUstream stream) {
    return fake::AsLaunch(RecordFunction(), 1, reinterpret_cast<uintptr_t>(which), 0, stream);
}

class SubmittedEvents : public Submitted {
  protected:
    void SetUp() override {
        Submitted::SetUp();
        cus_driver &t = driver().table;
        t.cuEventRecord = RealRecord;
        t.cuEventRecordWithFlags = [](CUevent which, CUstream stream, unsigned) {
            return RealRecord(which, stream);
        };
        t.cuGraphExecEventRecordNodeSetEvent = [](CUgraphExec, CUgraphNode, CUevent) {
            return CUDA_ERROR_NOT_SUPPORTED; // no test changes the event
        };
        cus_engine_event_made(event);
        for (int step = 0; step < 8; step++) {
            Segment();
            Ops(2, 6);
            Sync();
        }
        ASSERT_EQ(driver().journal, expected_);
        ASSERT_GT(Counters().submitted, before_.submitted);
        ASSERT_GT(Counters().records_in_graphs, 0u);
    }
    void Record() {
        cus_record record = {};
        record.stream = {stream_, CUS_ABI_LEGACY};
        record.event = event;
        record.real = reinterpret_cast<void *>(RealRecord);
        ASSERT_TRUE(cus_engine_record_begins(&record, 0, CUS_ROW_cuEventRecord));
        ASSERT_EQ(cus_engine_record(&record), CUDA_SUCCESS);
        expected_.push_back(fake::Line(stream_, "record", reinterpret_cast<uintptr_t>(event)));
    }
    // Ops up to a record and one more.
    void Segment() {
        Ops(0, 1);
        Record();
        Ops(1, 2);
    }
    // The segment with the record is submitted, and its thread is stopped; one op is deferred
    // behind it. Returns how many ops are not.
    size_t UntilRecordSubmitted() {
        StopAt("cuGraphLaunch", fails_);
        uint64_t submitted = Counters().submitted;
        Segment();
        int next = 2;
        while (Counters().submitted == submitted && next < 6) {
            Ops(next, next + 1);
            next++;
        }
        EXPECT_GT(Counters().submitted, submitted);
        while (!met_)
            usleep(100);
        size_t whole = expected_.size();
        Ops(next, next + 1);
        return whole;
    }
    static void Ask() { cus_engine_event_seen(event, CUS_ROW_cuEventQuery); }
    // Asks for the event while the segment with its record is submitted.
    void ExpectOnlyTheSegment(const std::function<void()> &ask = Ask) {
        size_t whole = UntilRecordSubmitted();
        OpenSoon();
        ask();
        Join();
        std::vector<std::string> first(expected_.begin(), expected_.begin() + (ptrdiff_t)whole);
        EXPECT_EQ(driver().journal, first);
        Sync();
        EXPECT_EQ(driver().journal, expected_);
        ExpectNothingPends();
    }
};

TEST_F(SubmittedEvents, OnlyTheSegmentIsWaitedFor) {
    ExpectOnlyTheSegment();
}

TEST_F(SubmittedEvents, AnotherThreadWaitsForTheSegmentAlone) {
    ExpectOnlyTheSegment([] { std::thread(Ask).join(); });
}

TEST_F(SubmittedEvents, AThreadThatWaitsForTheSegmentKeepsItsContext) {
    ExpectOnlyTheSegment([] {
        std::thread([] {
            CUcontext own = reinterpret_cast<CUcontext>(0x2000), current = nullptr;
            driver().table.cuCtxPushCurrent_v2(own);
            Ask();
            EXPECT_EQ(driver().table.cuCtxGetCurrent(&current), CUDA_SUCCESS);
            EXPECT_EQ(current, own);
        }).join();
    });
}

TEST_F(SubmittedEvents, ASegmentThatCouldNotBeLaunchedIsIssuedForIt) {
    fails_ = true;
    uint64_t in_graphs = Counters().records_in_graphs;
    ExpectOnlyTheSegment();
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_GRAPH_LAUNCH], 0u);
    EXPECT_EQ(Counters().records_in_graphs, in_graphs) << "counted as launched, and taken back";
    fake::ExpectBalance();
}

} // namespace
