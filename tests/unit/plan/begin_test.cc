// Promise: a segment that just began can end again, and takes nothing that no segment may have.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

namespace {

// Between the two, the caller may find that it may not defer.
TEST(Begin, ASegmentMayEndBeforeItsFirstOp) {
    Program program;
    for (int step = 0; step < 4; step++)
        program.Step(10);
    uint64_t pointer = 100;
    uint32_t scalar = 0;
    void *params[2] = {&pointer, &scalar};
    auto begin = [&] {
        cus_op op = {program.Kind("k0"), {1, 1, 1, 32, 1, 1, 0}, params, nullptr};
        cus_proposal proposal;
        ASSERT_EQ(cus_plan_offer(&program.plan, &op, &proposal), CUS_OFFER_BEGIN);
        cus_plan_accept(&program.plan, &op, 0);
        ASSERT_NE(program.plan.view.segment, nullptr);
        ASSERT_EQ(program.plan.view.n, 0u);
    };
    begin();
    cus_op other = {program.Kind("other"), {1, 1, 1, 32, 1, 1, 0}, params, nullptr};
    cus_proposal proposal;
    EXPECT_EQ(cus_plan_offer(&program.plan, &other, &proposal), CUS_OFFER_DIVERGED);
    cus_plan_end(&program.plan, {CUS_ENDED_CUT, CUS_CUT_OWNER, nullptr});
    EXPECT_EQ(program.plan.view.segment, nullptr);
    EXPECT_EQ(program.plan.view.step_ops, 0u);
    EXPECT_EQ(program.plan.cur, &program.plan.tree.root);
    program.ResetCounts();
    program.Step(10);
    EXPECT_EQ(program.in_graphs, 10u);
    ExpectFaithful(program);
}

TEST(Begin, AFullTreeIsTheReasonWhereNothingIsLearned) {
    for (uint32_t nodes : {0u, 100u}) {
        Program program({2, 4, 64, 0, 4, nodes, CUS_MODE_PIECEWISE, false});
        cus_op op = {program.Kind("k"), {1, 1, 1, 32, 1, 1, 0}, nullptr, nullptr};
        cus_proposal proposal;
        EXPECT_EQ(cus_plan_offer(&program.plan, &op, &proposal), CUS_OFFER_EAGER);
        EXPECT_EQ(cus_plan_why(&program.plan, &op), nodes ? CUS_WHY_WARMUP : CUS_WHY_FULL_TREE);
    }
}

// No segment has an op that may not be deferred, or that begins a step, in its midst.
TEST(Begin, WhatNoSegmentMayHaveDivergesAtOnce) {
    Program program;
    for (int step = 0; step < 4; step++)
        program.Step(10);
    static const cus_step_rule marker = {};
    program.Kind("eager")->deferrable = false;
    program.Kind("marker")->step = &marker;
    for (const char *name : {"eager", "marker"}) {
        program.Op("k0", 100, 0);
        ASSERT_EQ(program.plan.view.n, 1u);
        unsigned before = program.diverged;
        program.Op(name);
        EXPECT_EQ(program.diverged, before + 1) << name;
        EXPECT_FALSE(program.plan.may_turn) << name;
        program.Sync();
    }
    ExpectFaithful(program);
}

// What was refused once is never deferred again, though a segment that begins with it exists.
TEST(Begin, AKindThatWasRefusedBeginsNoSegment) {
    Program program;
    for (int step = 0; step < 4; step++)
        program.Step(10);
    cus_op op = {program.Kind("k0"), {1, 1, 1, 32, 1, 1, 0}, nullptr, nullptr};
    cus_proposal proposal;
    ASSERT_EQ(cus_plan_offer(&program.plan, &op, &proposal), CUS_OFFER_BEGIN);
    cus_op unmet = {program.Kind("k0"), {1, 1, 1, 64, 1, 1, 0}, nullptr, nullptr};
    EXPECT_EQ(cus_plan_offer(&program.plan, &unmet, &proposal), CUS_OFFER_EAGER)
        << "nor does a shape that never ran";
    ASSERT_EQ(cus_plan_offer(&program.plan, &op, &proposal), CUS_OFFER_BEGIN);
    program.Kind("k0")->deferrable = false;
    EXPECT_EQ(cus_plan_offer(&program.plan, &op, &proposal), CUS_OFFER_EAGER);
}

} // namespace
