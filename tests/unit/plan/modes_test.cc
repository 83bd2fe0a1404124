// Promise: each mode puts the right kernels into graphs, by step class. The model has four layers,
// and its attention has its own policy.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

extern "C" {
#include "shim/plan/step.h"
}

namespace {

enum { LAYERS = 4, OPS = 1 + 4 * LAYERS };

// Up to 8 tokens are a uniform decode, up to 4 one of single tokens.
cus_step_rule Rule() {
    cus_step_rule rule = {};
    rule.marker = "embedding";
    rule.tokens = CUS_STEP_X;
    rule.tokens_each = 1;
    rule.uniform = {CUS_STEP_TOKENS, CUS_STEP_LE, 8};
    rule.single = {CUS_STEP_TOKENS, CUS_STEP_LE, 4};
    return rule;
}

class Modes : public ::testing::Test {
  protected:
    void Start(cus_mode mode, cus_policy attention) {
        program_ = std::make_unique<Program>(cus_plan_limits{2, 4, 64, 0, 4, 100000, mode, false});
        program_->Kind("embedding")->step = &rule_;
        program_->Kind("attention")->policy = (uint8_t)attention;
    }

    void Step(uint32_t tokens) {
        program_->Op("embedding", 1, 0, tokens);
        for (unsigned layer = 0; layer < LAYERS; layer++) {
            program_->Op("norm", layer);
            program_->Op("attention", layer);
            program_->Op("gate", layer);
            program_->Op(layer < LAYERS - 1 ? "add" : last_, layer);
        }
        program_->Sync();
    }

    // Ops of a step of so many tokens that go into graphs once all is learned.
    unsigned InGraphs(uint32_t tokens) {
        for (int i = 0; i < 6; i++)
            Step(tokens);
        program_->ResetCounts();
        Step(tokens);
        EXPECT_EQ(program_->requested, program_->issued);
        EXPECT_EQ(program_->in_graphs + program_->eager, unsigned{OPS});
        return program_->in_graphs;
    }

    cus_step_rule rule_ = Rule();
    std::string last_ = "add";
    std::unique_ptr<Program> program_;
};

enum { ALL = OPS, SEGMENTS = OPS - LAYERS, NONE = 0 };

TEST_F(Modes, WhatEachModePutsIntoGraphs) {
    const struct {
        cus_mode mode;
        cus_policy attention;
        unsigned single, uniform, mixed;
    } table[] = {
        {CUS_MODE_PIECEWISE, CUS_POLICY_GRAPH, ALL, ALL, ALL},
        {CUS_MODE_PIECEWISE, CUS_POLICY_UNIFORM, SEGMENTS, SEGMENTS, SEGMENTS},
        {CUS_MODE_PIECEWISE, CUS_POLICY_UNIFORM_SINGLE, SEGMENTS, SEGMENTS, SEGMENTS},
        {CUS_MODE_PIECEWISE, CUS_POLICY_EAGER, SEGMENTS, SEGMENTS, SEGMENTS},
        {CUS_MODE_FULL, CUS_POLICY_UNIFORM, ALL, ALL, ALL},
        {CUS_MODE_FULL, CUS_POLICY_EAGER, ALL, ALL, ALL},
        {CUS_MODE_FULL, CUS_POLICY_NEVER_DEFER, SEGMENTS, SEGMENTS, SEGMENTS},
        {CUS_MODE_FULL_DECODE_ONLY, CUS_POLICY_GRAPH, ALL, ALL, NONE},
        {CUS_MODE_FULL_DECODE_ONLY, CUS_POLICY_UNIFORM, ALL, ALL, NONE},
        {CUS_MODE_FULL_DECODE_ONLY, CUS_POLICY_UNIFORM_SINGLE, ALL, NONE, NONE},
        {CUS_MODE_FULL_DECODE_ONLY, CUS_POLICY_EAGER, NONE, NONE, NONE},
        {CUS_MODE_FULL_DECODE_ONLY, CUS_POLICY_NEVER_DEFER, SEGMENTS, SEGMENTS, NONE},
        {CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_GRAPH, ALL, ALL, ALL},
        {CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_UNIFORM, ALL, ALL, SEGMENTS},
        {CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_UNIFORM_SINGLE, ALL, SEGMENTS, SEGMENTS},
        {CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_EAGER, SEGMENTS, SEGMENTS, SEGMENTS},
        {CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_NEVER_DEFER, SEGMENTS, SEGMENTS, SEGMENTS},
    };
    for (const auto &row : table) {
        SCOPED_TRACE(testing::Message() << "mode " << row.mode << " policy " << row.attention);
        Start(row.mode, row.attention);
        EXPECT_EQ(InGraphs(4), row.single);
        EXPECT_EQ(InGraphs(8), row.uniform);
        EXPECT_EQ(InGraphs(100), row.mixed);
        EXPECT_EQ(InGraphs(4), row.single) << "again";
    }
}

TEST_F(Modes, StepsOfDifferentKindsTakeTurnsWithoutDivergence) {
    Start(CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_UNIFORM);
    for (int i = 0; i < 40; i++) {
        if (i == 20)
            program_->ResetCounts();
        Step(i % 2 ? 4 : 100);
    }
    EXPECT_EQ(program_->requested, program_->issued);
    EXPECT_EQ(program_->diverged, 0u);
    EXPECT_EQ(program_->in_graphs, 10u * ALL + 10u * SEGMENTS);
    EXPECT_EQ(program_->built, 0u);
    EXPECT_EQ(program_->plan.steps[CUS_STEP_SINGLE], 20u);
    EXPECT_EQ(program_->plan.steps[CUS_STEP_MIXED], 20u);
}

// What comes before the marker may be in a graph, but not in one that goes on behind it.
TEST_F(Modes, NoGraphGoesBeyondAMarker) {
    Start(CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_UNIFORM);
    for (int i = 0; i < 40; i++) {
        if (i == 20)
            program_->ResetCounts();
        for (unsigned before = 0; before < 3; before++)
            program_->Op("before", before);
        Step(i < 10 || i % 2 ? 4 : 100); // first as if there were one kind of step
    }
    EXPECT_EQ(program_->requested, program_->issued);
    EXPECT_EQ(program_->in_graphs, 10u * (3 + ALL) + 10u * (3 + SEGMENTS));
}

TEST_F(Modes, TheWeakestKernelDecidesForStepsOfItsClass) {
    Start(CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_UNIFORM);
    EXPECT_EQ(InGraphs(4), unsigned{ALL});
    last_ = "cascade"; // which no graph may hold
    program_->Kind("cascade")->policy = CUS_POLICY_EAGER;
    program_->Kind("cascade")->rule = 7;
    EXPECT_EQ(InGraphs(4), unsigned{SEGMENTS - 2}) << "the gate in front of it stands alone";
    EXPECT_EQ(program_->plan.dispatch.weakest[CUS_STEP_SINGLE], CUS_POLICY_EAGER);
    EXPECT_STREQ(program_->plan.dispatch.kernel[CUS_STEP_SINGLE], "cascade");
    EXPECT_EQ(program_->plan.dispatch.rule[CUS_STEP_SINGLE], 7);
    EXPECT_EQ(program_->plan.dispatch.weakest[CUS_STEP_UNIFORM], CUS_POLICY_GRAPH);
    last_ = "add";
    EXPECT_EQ(InGraphs(8), unsigned{ALL}) << "steps of another class have none of it";
}

TEST_F(Modes, StepsOfOtherSizesStayEager) {
    rule_.sizes[rule_.n_sizes++] = {1, 2, 1};
    rule_.sizes[rule_.n_sizes++] = {8, 64, 8};
    for (cus_mode mode : {CUS_MODE_PIECEWISE, CUS_MODE_FULL, CUS_MODE_FULL_AND_PIECEWISE}) {
        Start(mode, CUS_POLICY_GRAPH);
        EXPECT_EQ(InGraphs(2), unsigned{ALL});
        EXPECT_EQ(InGraphs(3), unsigned{NONE});
        EXPECT_EQ(InGraphs(16), unsigned{ALL});
        EXPECT_EQ(InGraphs(17), unsigned{NONE});
        EXPECT_EQ(InGraphs(72), unsigned{NONE});
    }
}

TEST_F(Modes, WithoutAMarkerFullAndSegmentwiseIsSegmentwise) {
    Start(CUS_MODE_FULL_AND_PIECEWISE, CUS_POLICY_UNIFORM);
    program_->Kind("embedding")->step = nullptr;
    EXPECT_EQ(InGraphs(4), unsigned{SEGMENTS});
}

TEST_F(Modes, OpsInFrontOfTheMarkerBelongToNoStep) {
    Start(CUS_MODE_FULL_DECODE_ONLY, CUS_POLICY_UNIFORM);
    auto step = [this] {
        for (int i = 0; i < 6; i++)
            program_->Op("before", (unsigned)i);
        Step(4);
    };
    for (int i = 0; i < 6; i++)
        step();
    program_->ResetCounts();
    step();
    EXPECT_EQ(program_->eager, 6u);
    EXPECT_EQ(program_->in_graphs, unsigned{ALL});
}

// What most kernels are in most modes is decided by a line of code, as cus_step_allows would.
TEST_F(Modes, TheShortWayAllowsWhatIsAllowed) {
    for (int mode = CUS_MODE_OFF; mode <= CUS_MODE_FULL_AND_PIECEWISE; mode++)
        for (int step = CUS_STEP_UNKNOWN; step <= CUS_STEP_OUTSIDE; step++)
            for (int weakest = CUS_POLICY_GRAPH; weakest <= CUS_POLICY_NEVER_DEFER; weakest++)
                for (int policy = CUS_POLICY_GRAPH; policy <= CUS_POLICY_NEVER_DEFER; policy++) {
                    cus_dispatch dispatch = {};
                    dispatch.mode = (cus_mode)mode;
                    dispatch.weakest[step] = (cus_policy)weakest;
                    cus_kind kind = {};
                    kind.policy = (uint8_t)policy;
                    EXPECT_EQ(cus_dispatch_allows(&dispatch, (cus_step_class)step, &kind),
                              cus_step_allows((cus_mode)mode, (cus_step_class)step,
                                              (cus_policy)weakest, (cus_policy)policy))
                        << mode << " " << step << " " << weakest << " " << policy;
                }
}

} // namespace
