// Promise: what a report says of steps is of the stream with most ops, whether it is there or has
// gone. What an object counted for a stream is not the next one's.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/pays.h"

extern "C" {
#include "shim/api/api.h"
}

namespace {

class Largest : public Pays {
  protected:
    void TearDown() override {
        Pays::TearDown();
        fake::EndEngine();
    }
    // A stream whose steps repeat after the first `bad` of them. The first step in graphs comes
    // later, the more there are.
    uint32_t Make(unsigned bad, unsigned good) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Bad(bad, OPS * 5 / 6); // not in graphs as a whole, but known
        Good(good);
        EXPECT_GT(last_engine_covered(), bad);
        EXPECT_LT(last_engine_covered(), bad + 5);
        return last_engine_covered();
    }
    static uint32_t Reported() {
        static cus_report report;
        cus_counters counters = Counters();
        cus_engine_report(&report, &counters, cus_api_name);
        EXPECT_GT(report.learned.steps, 0u);
        EXPECT_LT(report.nodes, 100000u) << "those of all plans, added up";
        return (uint32_t)report.first_step_in_graphs;
    }
    static std::string List() {
        char text[4096];
        EXPECT_TRUE(cus_engine_segment_list(text, sizeof text));
        return text;
    }
    static void Go(CUstream stream) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_S, &ref, 7);
        cus_engine_stream_gone(&ref);
    }
};

TEST_F(Largest, IsReported) {
    uint32_t first = Make(0, 20);
    EXPECT_EQ(Reported(), first);
    CUstream small = stream_;
    uint32_t second = Make(6, 30);
    ASSERT_NE(second, first);
    CUstream large = stream_;
    EXPECT_EQ(Reported(), second) << "it has more ops";
    uint32_t third = Make(12, 10);
    ASSERT_NE(third, second);
    EXPECT_EQ(Reported(), second) << "that has less";
    Go(large);
    EXPECT_EQ(Reported(), second) << "none has as many";
    Go(small);
    Go(stream_);
    EXPECT_EQ(Reported(), second) << "nor has one that goes later";
    uint32_t fourth = Make(9, 26);
    ASSERT_NE(fourth, second);
    EXPECT_EQ(Reported(), second) << "nor has this";
    Good(2);
    EXPECT_EQ(Reported(), fourth);
    Go(stream_);
    EXPECT_EQ(Reported(), fourth);
}

class LargestOfSteps : public Largest {};

// The first step in graphs is told among those that are as long.
TEST_F(LargestOfSteps, ShortOnesBetweenThemDoNotCount) {
    uint32_t alone = Make(6, 30);
    EXPECT_EQ(Reported(), alone);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 40; i++) {
        i < 6 ? Bad(1, OPS * 5 / 6) : Good(1);
        Good(1, 8);
    }
    EXPECT_EQ(last_engine_covered(), alone);
}

class LongerSteps : public Largest {};

TEST_F(LongerSteps, CountFromTheFirstOneOn) {
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Good(20, OPS / 8);
    uint32_t before = last_engine_covered();
    ASSERT_GT(before, 0u);
    Bad(8, OPS * 5 / 6);
    Good(30);
    EXPECT_GT(last_engine_covered(), 8u) << before;
    EXPECT_LT(last_engine_covered(), 13u);
}

class ListOfSegments : public Largest {}; // an engine of its own

// Also where an object serves a stream that served another one before.
TEST_F(ListOfSegments, IsOfTheStreamWithMostOpsInGraphs) {
    Good(30);
    std::string list = List();
    Go(stream_);
    EXPECT_EQ(List(), list);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Good(20, OPS / 2);
    EXPECT_EQ(List(), list) << "fewer were in graphs";
    Good(60, OPS / 2);
    EXPECT_NE(List(), list);
}

class OfAnEarlierStream : public Largest {};

// How much may be built at a time grows with the steps of a stream.
TEST_F(OfAnEarlierStream, LongStepsAreNotTheNextStreams) {
    Good(1, 1);
    uint32_t share = last_engine_share();
    Good(4, 5000);
    EXPECT_GT(last_engine_share(), share);
    Go(stream_);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Good(1, 1);
    EXPECT_EQ(last_engine_share(), share);
}

} // namespace
