// Promise: an op of a large program costs no more than one of a small program. Many steps are
// learned, a long step is built in a few steps, and idle streams give memory to busy ones. The test
// counts; its clock moves only when the test moves it.
#include "shim/base/clock.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <random>

extern "C" {
#include "shim/api/api.h"
#include "shim/base/mem.h"
}

namespace {

using fake::Counters;
using fake::driver;

class Growth : public fake::EngineTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        cus_virtual.on = true;
        cus_virtual.ns = 1000000;
        ASSERT_TRUE(fake::StartEngine({
            {"CUSPLICE_GRAPH_MB", "40"},
            {"CUSPLICE_HOST_MB", "64"},
            {"CUSPLICE_BUILD_NODES", "64"},
            {"CUSPLICE_SEGMENT_MAX", "32"}, // several fit into the share of a step
        }));
        functions_ = fake::MakeFunctions(64);
    }
    void SetUp() override { stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING); }
    void TearDown() override {
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
    }

    // A step whose kernels come in an order of its own. Returns how many of its ops were in graphs.
    unsigned Step(unsigned which, unsigned ops) { return Step(which, ops, stream_); }
    unsigned Step(unsigned which, unsigned ops, CUstream stream) {
        std::mt19937 random(which);
        return StepOf(which, ops, stream, [&](unsigned) { return random() % functions_.size(); });
    }

    // A step whose first two kernels say which one it is; then the same kernels for all, with
    // arguments of its own.
    unsigned AlikeStep(unsigned which, unsigned ops) {
        return StepOf(which, ops, stream_, [&](unsigned i) {
            return i == 0 ? which % 64 : i == 1 ? which / 64 : i * 7919 % 64;
        });
    }

    // Which function op `i` launches, `function` says.
    template <typename Function>
    unsigned StepOf(unsigned which, unsigned ops, CUstream stream, Function function) {
        uint64_t before = Counters().in_graphs;
        driver().journal.clear();
        for (unsigned i = 0; i < ops; i++)
            EXPECT_EQ(fake::Launch(stream, functions_[function(i)], i, which), CUDA_SUCCESS);
        fake::Sync(stream);
        EXPECT_EQ(driver().journal.size(), ops);
        return (unsigned)(Counters().in_graphs - before);
    }

    void Steps(int n, unsigned which, unsigned ops) {
        for (int step = 0; step < n; step++)
            Step(which, ops);
    }

    static inline std::vector<CUfunction> functions_;
    CUstream stream_;
};
class Paths : public Growth, public testing::WithParamInterface<bool> {};

TEST_F(Growth, SixHundredStepsInTurnAreLearned) {
    const unsigned kSteps = 600, kOps = 16;
    unsigned in_graphs = 0;
    for (int round = 0; round < 12; round++) {
        in_graphs = 0;
        for (unsigned which = 0; which < kSteps; which++)
            in_graphs += Step(which, kOps);
    }
    EXPECT_GE(Counters().fallbacks[CUS_FALLBACK_DEMOTED], 1u) << "it looked like no repetition";
    EXPECT_GT(in_graphs, kSteps * kOps * 8 / 10);
}

TEST_F(Growth, WhatNeverRepeatsIsLeftAloneAllTheSame) {
    cus_counters before = Counters();
    for (unsigned which = 0; which < 10000; which++)
        Step(100000 + which, 20);
    cus_counters after = Counters();
    EXPECT_LE(after.eager_by[CUS_EAGER_OBSERVING] - before.eager_by[CUS_EAGER_OBSERVING], 20000u);
}

TEST_F(Growth, LongStepIsBuiltInAFewSteps) {
    const unsigned kOps = 3000; // at 64 nodes a step it would take 47
    unsigned in_graphs = 0;
    for (int step = 0; step < 24; step++)
        in_graphs = Step(7, kOps);
    EXPECT_GT(in_graphs, 2800u);
}

TEST_F(Growth, IdleStreamGivesItsGraphsUp) {
    CUstream idle = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    unsigned memory = 0, in_graphs = 0;
    for (int step = 0; step < 24; step++)
        memory = Step(1, 16500, idle);
    ASSERT_GT(memory, 14000u) << "it fills the budget";
    for (int step = 0; step < 12; step++) {
        Step(1, 1, idle);
        in_graphs = Step(2, 1000);
    }
    EXPECT_LT(in_graphs, 900u) << "the other one works";
    for (int step = 0; step < 200; step++) {
        cus_virtual.ns += 20000000;
        in_graphs = Step(2, 1000);
    }
    EXPECT_GT(in_graphs, 900u);
    EXPECT_LE(Counters().graph_bytes, 40u << 20);
}

// However many steps the other one makes, the next ones go 10 ms later.
TEST_F(Growth, IdleStreamGivesUpSomeGraphsAtATime) {
    CUstream idle = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int step = 0; step < 24; step++)
        Step(1, 16500, idle);
    Steps(12, 2, 1000);
    cus_virtual.ns += 1000000000; // a look sees since when it is idle,
    Steps(2, 2, 1000);
    int &destroyed = driver().calls["cuGraphExecDestroy"];
    destroyed = 0;
    cus_virtual.ns += 1000000000; // and a second one that it is
    Steps(2, 2, 1000);
    int once = destroyed;
    ASSERT_GT(once, 0);
    Steps(6, 2, 1000);
    EXPECT_EQ(destroyed, once);
    cus_virtual.ns += 10000000;
    Steps(6, 2, 1000);
    EXPECT_GT(destroyed, once);
    EXPECT_LE(destroyed, once + 64);
}

// The same for host memory: there is none for the paths of another stream. The steps of the first
// one repeat, or no step is like another one, and there is no graph.
TEST_P(Paths, OfAnIdleStreamAreGivenUp) {
    CUstream idle = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    unsigned in_graphs = 0;
    uint64_t before = cus_mem_held(), graphs = Counters().in_graphs;
    for (unsigned step = 0; step < (GetParam() ? 30 : 3); step++) // fewer than make it pass
        Step(4 + (GetParam() ? 0 : step), 2000, idle);
    ASSERT_GT(cus_mem_held(), before + 500000);
    ASSERT_EQ(Counters().in_graphs != graphs, GetParam());
    cus_mem_budget(cus_mem_held());
    uint64_t refused = cus_mem_refused();
    Step(3, 1000);
    EXPECT_GT(cus_mem_refused(), refused);
    for (int step = 0; step < 40; step++) {
        cus_virtual.ns += 1100000000;
        in_graphs = Step(3, 1000);
    }
    EXPECT_GT(in_graphs, 900u);
    cus_mem_budget(64u << 20);
}
INSTANTIATE_TEST_SUITE_P(Repeat, Paths, testing::Bool());

// 36000 launches in 600 steps, of which two fifths have room.
TEST_F(Growth, StepsBeyondTheBudgetLeaveTheOthersTheirGraphs) {
    const unsigned kSteps = 600, kOps = 60;
    unsigned in_graphs = 0;
    cus_counters before = Counters();
    uint64_t built = 0;
    for (int round = 0; round < 16; round++) {
        in_graphs = 0;
        for (unsigned which = 0; which < kSteps; which++)
            in_graphs += AlikeStep(which, kOps);
        if (round == 7)
            built = Counters().built;
    }
    EXPECT_EQ(Counters().built, built) << "nothing is built again and again";
    EXPECT_GT(in_graphs, kSteps * kOps * 41 / 100) << "all that have room";
    EXPECT_LT(Counters().built - before.built, kSteps * 3u + 10)
        << "nor at first: the three segments of a step once";
    EXPECT_LE(Counters().graph_bytes, 40u << 20);
}

TEST_F(Growth, HostMemoryStaysWithinItsBudget) {
    cus_mem_budget(2u << 20);
    for (unsigned round = 0; round < 4; round++)
        for (unsigned which = 0; which < 1000; which++)
            Step(which, 30);
    EXPECT_LE(cus_mem_held(), 2u << 20);
    EXPECT_GT(cus_mem_refused(), 0u);
    static cus_report report;
    cus_counters counters = Counters();
    cus_engine_report(&report, &counters, cus_api_name);
    EXPECT_EQ(report.host_refused, cus_mem_refused());
    EXPECT_EQ(Counters().fallbacks[CUS_FALLBACK_NO_MEMORY], 0u);
    cus_mem_budget(64u << 20);
}

} // namespace
