// Promise: after unknown ops the plan finds the path again by the first op of a segment.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

namespace {

TEST(Heads, RejoinsBehindADivergence) {
    Program program;
    auto step = [&](int odd_at) {
        for (int i = 0; i < 60; i++) {
            if (i == odd_at)
                program.Op("odd", 9, 9);
            program.Op("k" + std::to_string(i), 100 + i, i);
        }
        program.Sync();
    };
    for (int i = 0; i < 5; i++)
        step(-1);
    program.ResetCounts();
    step(9);
    ExpectFaithful(program);
    EXPECT_GE(program.in_graphs, 4u + 32) << "the segments behind the odd op are found again";
}

// Each new order of the segments needs nodes that lead to them.
TEST(Heads, RejoinsWhileTheTreeHasRoom) {
    enum { BLOCKS = 16, OPS = 4, NODES = 120 };
    Program program({2, OPS, OPS, 0, 4, NODES, CUS_MODE_PIECEWISE, false});
    auto step = [&](int stride) {
        for (int i = 0; i < BLOCKS; i++)
            for (int op = 0; op < OPS; op++) {
                std::string name = "k" + std::to_string(i * stride % BLOCKS);
                program.Op(name + std::to_string(op), 100 + op, op);
            }
        program.Sync();
        EXPECT_LE(program.plan.tree.n_nodes, NODES);
    };
    for (int i = 0; i < 6; i++)
        step(1);
    ASSERT_LT(program.plan.tree.n_nodes, NODES - BLOCKS);
    program.ResetCounts();
    step(3);
    EXPECT_GT(program.in_graphs, 0u) << "there was room";
    for (int i = 0; i < 40; i++)
        step(2 * i + 3);
    EXPECT_EQ(program.plan.tree.n_nodes, NODES) << "and there is none";
    ExpectFaithful(program);
}

// By these a demoted stream knows its steps again.
TEST(Heads, AreOfTheFirstFourOps) {
    Program program;
    program.Kind("m")->type = CUS_OP_MEMSET;
    auto step = [&](std::vector<std::string> names) {
        for (int i = 0; i < 5; i++) {
            for (const std::string &name : names)
                program.Op(name, 1, 1);
            program.Sync();
        }
    };
    uint64_t heads[CUS_HEADS];
    step({"x", "y", "z"});
    ASSERT_GT(program.plan.view.n_segments, 0u);
    EXPECT_EQ(cus_plan_heads(&program.plan, heads, CUS_HEADS), 0u) << "they have three";
    step({"a", "m", "b", "c", "d"});
    ASSERT_EQ(cus_plan_heads(&program.plan, heads, CUS_HEADS), 1u);
    uint64_t head = 0;
    for (const char *name : {"a", "m", "b", "c"}) {
        const cus_kind *kind = program.Kind(name);
        head = cus_head_add(head, *name == 'm' ? (uint64_t)CUS_OP_MEMSET : (uintptr_t)kind->handle);
    }
    EXPECT_EQ(heads[0], head);
}

// What begins with another address each time is not looked for by its last one; as soon as it
// begins as before it is found again.
TEST(Heads, RejoinsWhatBeginsAsTheTimeBefore) {
    Program program;
    uint64_t pointer = 0;
    auto step = [&](bool odd, bool moves) {
        pointer += moves;
        for (int i = 0; i < 60; i++) {
            if (odd && i == 9)
                program.Op("odd", 9 + pointer, 9);
            program.Op("k" + std::to_string(i), i < 12 ? i : pointer, i);
        }
        program.Sync();
    };
    auto indexed = [&] { return HASH_COUNT(program.plan.heads); };
    for (int i = 0; i < 5; i++)
        step(false, false);
    unsigned all = indexed();
    ASSERT_EQ(all, program.plan.view.n_segments);
    step(false, true);
    EXPECT_EQ(indexed(), all) << "by what it began with now";
    for (int i = 0; i < 6; i++)
        step(false, true);
    EXPECT_EQ(indexed(), 2u) << "those that begin with the first twelve ops";
    step(false, false);
    EXPECT_EQ(indexed(), all);
    step(false, true);
    EXPECT_EQ(indexed(), all) << "once is not again and again";
    program.ResetCounts();
    step(true, false);
    EXPECT_GE(program.in_graphs, 4u + 32);
    ExpectFaithful(program);
}

// Where addresses take turns a second graph is built soon: that, too, is found by what it begins
// with.
TEST(Heads, IsFoundByWhatItsNewGraphBeginsWith) {
    Program program;
    for (int step = 0; step < 8 && program.built < 2; step++) {
        uint64_t pointer = step % 2 ? 5000 : 100;
        for (int i = 0; i < 4; i++)
            program.Op("k" + std::to_string(i), pointer + i, 7);
        program.Sync();
        if (!program.in_graphs)
            continue;
        uint8_t flat[12] = {};
        uint32_t scalar = 7;
        memcpy(flat, &pointer, 8);
        memcpy(flat + 8, &scalar, 4);
        cus_op head = {program.Kind("k0"), {1, 1, 1, 32, 1, 1, 0}, nullptr, flat};
        EXPECT_EQ(program.plan.view.segments->head_hash, cus_op_hash(&head)) << "step " << step;
    }
    EXPECT_EQ(program.built, 2u);
    ExpectFaithful(program);
}

TEST(Heads, AreAsManyAsThereIsRoomFor) {
    Program program;
    for (int turn = 0; turn < 5; turn++)
        for (const char *name : {"a", "b", "c"}) {
            for (int i = 0; i < CUS_HEAD_OPS; i++)
                program.Op(name + std::to_string(i));
            program.Sync();
        }
    uint64_t heads[4] = {};
    EXPECT_EQ(cus_plan_heads(&program.plan, heads, 4), 3u);
    uint64_t few[3] = {7, 7, 7};
    EXPECT_EQ(cus_plan_heads(&program.plan, few, 2), 2u);
    EXPECT_EQ(few[0], heads[0]);
    EXPECT_EQ(few[1], heads[1]);
    EXPECT_EQ(few[2], 7u) << "nothing is written behind the room";
    EXPECT_EQ(cus_plan_heads(&program.plan, few, 0), 0u);
}

} // namespace
