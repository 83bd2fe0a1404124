// Promise: the plan of a demoted stream keeps what was launched often, with the way to it, and no
// op is lost or changed.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <random>

namespace {

// What was launched often is kept, with the way to it; everything else goes.
TEST(Demote, KeepsWhatWasLaunchedOften) {
    Program program;
    auto good = [&] {
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), i);
        program.Sync();
    };
    auto bad = [&](int step) {
        for (int i = 0; i < 30; i++)
            program.Op("b" + std::to_string((step * 7 + i * i) % 23), i);
        program.Sync();
    };
    EXPECT_FALSE(cus_plan_demote(&program.plan)) << "there is nothing";
    for (int step = 0; step < 40; step++)
        good();
    uint32_t nodes = program.plan.tree.n_nodes;
    for (int step = 0; step < 40; step++)
        bad(step);
    EXPECT_GT(program.plan.tree.n_nodes, nodes);
    ASSERT_TRUE(cus_plan_demote(&program.plan));
    EXPECT_EQ(program.plan.tree.n_nodes, nodes);
    uint64_t heads[CUS_HEADS];
    ASSERT_EQ(cus_plan_heads(&program.plan, heads, CUS_HEADS), 1u);
    uint64_t head = 0;
    for (int i = 0; i < CUS_HEAD_OPS; i++)
        head = cus_head_add(head, (uintptr_t)program.Kind("k" + std::to_string(i))->handle);
    EXPECT_EQ(heads[0], head);
    program.ResetCounts();
    good();
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.eager, 0u);
    cus_plan_drop_handle(&program.plan, nullptr);
    EXPECT_FALSE(cus_plan_demote(&program.plan)) << "no graph is left";
    EXPECT_EQ(program.plan.tree.n_nodes, 0u);
    ExpectFaithful(program);
}

// What goes may be the path that was there first, and the one that was taken last.
TEST(Demote, KeepsTheWayToStepsThatCameLater) {
    Program program;
    uint64_t pointer = 0; // another one each time: a segment is not found by its first op
    auto step = [&](const std::string &name) {
        for (int i = 0; i < 12; i++)
            program.Op(name + std::to_string(i), pointer++);
        program.Sync();
    };
    step("once");
    for (int i = 0; i < 40; i++) {
        step("a");
        step("b");
    }
    step("other");
    ASSERT_TRUE(cus_plan_demote(&program.plan));
    uint32_t nodes = program.plan.tree.n_nodes;
    EXPECT_EQ(nodes, 24u);
    program.ResetCounts();
    step("a");
    step("b");
    step("a");
    EXPECT_EQ(program.eager, 0u);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.plan.tree.n_nodes, nodes);
    ExpectFaithful(program);
}

TEST(Demote, RandomProgramsAreFaithful) {
    unsigned kept = 0;
    for (unsigned seed = 0; seed < 60; seed++) {
        std::mt19937 random(seed);
        Program program({1 + seed % 3, 2 + seed % 5, 2 + seed % 40, 0, 1 + seed % 4, 100000,
                         CUS_MODE_PIECEWISE, false});
        for (int step = 0; step < 150; step++) {
            unsigned phrase = random() % 3;
            for (unsigned i = 0; i < 4 + phrase * 7; i++) {
                program.Op("p" + std::to_string(phrase) + "_" + std::to_string(i % 6),
                           random() % 40 ? i : random() % 5, i, 1, random() % 90 ? 32 : 64);
                if (random() % 200 == 0 && program.plan.view.segment)
                    program.Flush((cus_cut)(random() % 4));
                if (random() % 400 == 0 && !program.plan.view.segment)
                    kept += cus_plan_demote(&program.plan);
            }
            if (random() % 8)
                program.Sync();
            if (random() % 30 == 0 && !program.plan.view.segment)
                kept += cus_plan_demote(&program.plan);
        }
        if (program.plan.view.segment)
            program.Flush(CUS_CUT_OTHER);
        ExpectFaithful(program);
        if (HasFatalFailure())
            FAIL() << "seed " << seed;
    }
    EXPECT_GT(kept, 50u);
}

} // namespace
