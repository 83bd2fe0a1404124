// Promise: if params or grids differ, the plan chooses the right variant. A second one is built if
// addresses take turns or sizes return, and none for values that never return.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>

extern "C" {
#include "shim/base/hash.h"
#include "shim/base/mem.h"
#include "shim/plan/choose.h"
}

namespace {

TEST(Choose, AddressesThatTakeTurnsEarnASecondExec) {
    Program program;
    for (int step = 0; step < 20; step++) {
        if (step == 10)
            program.ResetCounts();
        program.Step(28, step % 2 ? 5000 : 100);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.in_graphs, 10u * 28);
    EXPECT_EQ(program.patched, 0u);
    for (const cus_segment *each = program.plan.view.segments; each; each = each->next)
        EXPECT_EQ(each->newest->values_key, 0u) << "these are of a turn of a loop";
}

// Layers are alike, and in each of them the same ops have other addresses: what stands for all must
// not be the same op of each layer, whichever that is.
TEST(Choose, AddressesOfAnyOpsOfALayerThatTakeTurnEarnASecondExec) {
    for (unsigned first = 0; first < 8; first++) {
        auto moves = [&](unsigned i) { return (i + 8 - first) % 8 < 2; };
        Program program({2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
        for (int step = 0; step < 20; step++) {
            if (step == 10)
                program.ResetCounts();
            for (unsigned i = 0; i < 256; i++)
                program.Op("k" + std::to_string(i % 8), i + (moves(i) ? step % 2 * 5000 : 0));
            program.Sync();
        }
        ExpectFaithful(program);
        EXPECT_EQ(program.in_graphs, 10u * 256);
        for (const cus_segment *each = program.plan.view.segments; each; each = each->next)
            EXPECT_GE(each->n_variants, 2u) << "ops " << first << " and " << first + 1 << " of 8";
        if (moves(0)) { // the first op says which exec is the right one
            EXPECT_EQ(program.patched, 0u);
        }
    }
}

TEST(Choose, OneNewScalarDoesNotHideThatAddressesTakeTurns) {
    Program program;
    for (int step = 0; step < 20; step++) {
        if (step == 12)
            program.ResetCounts();
        for (unsigned i = 0; i < 28; i++)
            program.Op("k" + std::to_string(i % 5), i < 2 ? 1 : i + (step % 2) * 5000,
                       i % 14 == 13 ? step : 0);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.patched, 8u * (2 + 2))
        << "the new scalars, and two nodes of the first segment";
}

// The holes of a params struct hold what the stack held: every third op differs each time.
void StepWithHoles(Program &program, int step) {
    for (unsigned i = 0; i < 28; i++)
        program.Op("k" + std::to_string(i % 5), i + (step % 2) * 5000, i % 3 ? 7 : 100000 + step);
    program.Sync();
}

TEST(Choose, HolesThatAreNeverTheSameDoNotHideThatAddressesTakeTurns) {
    Program program;
    for (int step = 0; step < 40; step++) {
        if (step == 20)
            program.ResetCounts();
        StepWithHoles(program, step);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.patched, 20u * (10 + 2)) << "the holes, and two nodes of the first segment";
    EXPECT_EQ(program.dropped, 0u);
}

TEST(Choose, TheVariantThatCameNextBeforeIsPredicted) {
    Program program;
    for (int step = 0; step < 40; step++) {
        if (step == 20)
            program.ResetCounts();
        StepWithHoles(program, step);
    }
    // The first ops of the segments (0, 4, 12) have holes but for one: they say nothing.
    EXPECT_EQ(program.mispredicted, 0u);
    EXPECT_EQ(program.exact, 20u * 3);
}

TEST(Choose, NoVariantIsBuiltForHolesAlone) {
    Program program;
    for (int step = 0; step < 300; step++) {
        for (unsigned i = 0; i < 28; i++)
            program.Op("k" + std::to_string(i % 5), i, i % 2 ? 7 : 100000 + step);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 3u);
}

TEST(Choose, AddressesThatNeverComeAgainEarnNone) {
    Program program;
    for (int step = 0; step < 20; step++)
        program.Step(28, 1000 * step);
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 3u);
}

// What is asked for is asked of the ops that differ, wherever they are: those between come again.
TEST(Choose, FewAddressesThatNeverComeAgainEarnNoneEither) {
    const unsigned ops = 28, parts = 8; // one op of each part has a new address
    for (unsigned back = 1; back <= 3; back++) {
        Program program({2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
        for (unsigned step = 0; step < 60; step++) {
            std::vector<uint64_t> address(ops);
            for (unsigned part = 0; part < parts; part++)
                address[(part + 1) * ops / parts - back] = 1000 + step;
            for (unsigned i = 0; i < ops; i++)
                program.Op("k" + std::to_string(i), address[i], i);
            program.Sync();
        }
        EXPECT_EQ(program.built, 1u) << back;
        EXPECT_GE(program.patched, 50u * parts);
        ExpectFaithful(program);
    }
}

TEST(Choose, GrowingGridIsPatchedNotMissed) {
    Program program;
    for (uint32_t step = 0; step < 20; step++) {
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), 1, 2, i == 5 ? step + 1 : 1);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.in_graphs, 18u * 12);
    EXPECT_EQ(program.built, 2u) << "one exec a segment: a size that never comes again earns none";
    EXPECT_EQ(program.patched, 17u);
}

TEST(Choose, BatchSizesInTurnHitExactlyFromTheThirdRound) {
    Program program;
    const uint32_t batches[] = {1, 2, 4, 8};
    for (int round = 0; round < 6; round++) {
        if (round == 2)
            program.ResetCounts();
        for (uint32_t batch : batches) {
            for (int i = 0; i < 12; i++)
                program.Op("k" + std::to_string(i), 1, 2, batch);
            program.Sync();
        }
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.in_graphs, 4u * 4 * 12);
    EXPECT_EQ(program.exact, 4u * 4 * 2);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.patched, 0u);
}

// One segment, which begins with the same op each time; the sixth is of this grid.
void StepAt(Program &program, uint64_t pointer, uint32_t grid = 1) {
    program.Op("k0");
    for (unsigned i = 1; i < 28; i++)
        program.Op("k" + std::to_string(i % 5), pointer + i, i, i == 5 ? grid : 1);
    program.Sync();
}

const cus_plan_limits ONE_SEGMENT = {2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false};

// Another graph is launched than the one that was predicted, from which other ops differ.
TEST(Choose, OnlyNodesOfAnotherShapeAreReshaped) {
    Program program(ONE_SEGMENT);
    for (int step = 0; step < 20; step++)
        StepAt(program, step % 2 ? 5000 : 100, 1 + step % 2);
    program.ResetCounts();
    StepAt(program, 9000, 2); // grid 1 was predicted
    EXPECT_EQ(program.mispredicted, 1u);
    EXPECT_EQ(program.patched, 27u);
    EXPECT_EQ(program.reshaped, 0u);
    StepAt(program, 9000, 3);
    EXPECT_EQ(program.reshaped, 1u);
    ExpectFaithful(program);
}

// On the hot path, too.
TEST(Choose, NodesOfAnotherShapeAreToldFromThoseOfOtherParams) {
    Program program(ONE_SEGMENT);
    program.hot = true;
    for (uint32_t step = 1; step < 40; step++) {
        program.ResetCounts();
        for (unsigned i = 0; i < 28; i++)
            program.Op("k" + std::to_string(i), i % 2 ? step : 0, 0, i % 7 == 3 ? step : 1);
        program.Sync();
    }
    EXPECT_EQ(program.patched, 16u) << "14 with another param, 4 in another shape, 2 in both";
    EXPECT_EQ(program.reshaped, 4u);
    ExpectFaithful(program);
}

// A graph may lack the node of a record that a later one made needless.
class Lacking : public testing::Test {
  protected:
    void SetUp() override {
        for (int step = 0; step < 20; step++)
            StepAt(program, 100, 1 + step % 2);
        ASSERT_EQ(program.plan.view.n_segments, 1u);
        ASSERT_EQ(Segment()->n_variants, 2u);
        ASSERT_EQ(Segment()->oldest->number + Segment()->newest->number, 1u) << "0 and 1";
        program.ResetCounts();
    }
    cus_segment *Segment() { return program.plan.view.segments; }
    // From now on the graph has no node for the first op.
    static void Lack(cus_variant *variant) {
        variant->absent = static_cast<uint64_t *>(cus_mem_grow(sizeof *variant->absent));
        *variant->absent = 1;
    }

    Program program{ONE_SEGMENT};
};

TEST_F(Lacking, GivesWayToAGraphThatHasTheNode) {
    cus_variant *first = Segment()->newest;
    Lack(first);
    for (uint32_t grid : {1u, 2u})
        StepAt(program, 100, grid);
    EXPECT_EQ(program.exact, 1u);
    EXPECT_EQ(program.near, 1u) << "the other one, patched";
    EXPECT_EQ(program.built, 0u);
    EXPECT_TRUE(Segment()->all_nodes) << "a new one gets every node";
    ExpectFaithful(program);
}

TEST_F(Lacking, IsBuiltAnewWhereNoGraphHasTheNode) {
    Lack(Segment()->newest);
    Lack(Segment()->newest->older);
    StepAt(program, 100, 1);
    EXPECT_EQ(program.exact + program.near, 0u);
    EXPECT_EQ(program.built, 1u);
    ExpectFaithful(program);
}

// Nodes that a graph lacks need no patch.
TEST_F(Lacking, CountsNoPatchForTheNode) {
    cus_variant *variant = Segment()->newest;
    Lack(variant);
    Segment()->records = 1;
    for (int i = 0; i < 2; i++)
        program.Op("k" + std::to_string(i), 7000 + i, 1, i == 5 ? 2 : 1);
    ASSERT_EQ(program.plan.view.n, 2u);
    ASSERT_EQ(cus_plan_n_dirty(&program.plan), 2u);
    EXPECT_EQ(cus_choose_dirty_nodes(&program.plan, variant), 1u);
    Segment()->records = 0;
}

TEST_F(Lacking, NoneThatHasEveryNodeIsSaidTo) {
    Segment()->all_nodes = true;
    Segment()->records = 1;
    for (uint32_t grid : {3u, 4u, 5u, 3u}) {
        program.Op("k0");
        for (unsigned i = 1; i < 28; i++) {
            if (i == 27)
                cus_plan_supersede(&program.plan, 0);
            program.Op("k" + std::to_string(i % 5), 100 + i, i, i == 5 ? grid : 1);
        }
        program.Sync();
    }
    ASSERT_EQ(program.built, 1u);
    EXPECT_EQ(Segment()->newest->absent, nullptr);
    Segment()->records = 0;
}

// What has no graph for its shapes is patched, and a graph is tried a few times, then seldom.
TEST(Choose, ABuildThatFailsIsTriedMoreAndMoreSeldom) {
    Program program(ONE_SEGMENT);
    for (int step = 0; step < 10; step++)
        StepAt(program, 100, 1);
    program.unbuildable = true;
    program.tried = 0;
    std::vector<int> apart;
    for (int step = 0, last = 0; step < 4000; step++) {
        StepAt(program, 100, 1 + step % 2);
        if (program.tried) {
            apart.push_back(step - last);
            last = step;
        }
        program.tried = 0;
    }
    EXPECT_EQ(apart, (std::vector<int>{2, 1, 1, 1, 64, 128, 256, 512, 1024}));
    program.unbuildable = false;
    program.ResetCounts();
    for (int step = 0; step < 4000; step++)
        StepAt(program, 100, 1 + step % 2);
    EXPECT_EQ(program.built, 1u);
    ExpectFaithful(program);
}

// Shapes that came are known when the table grows.
TEST(Choose, WhatIsRememberedOfShapesStays) {
    Program program({2, 28, 28, 0, 16, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 10; step++)
        StepAt(program, 100, 1);
    const uint64_t mask = program.plan.sig_mask;
    program.ResetCounts();
    for (uint32_t grid = 2; grid < 8; grid++)
        StepAt(program, 100, grid);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.plan.sig_mask, mask) << "they take nobody's place";
    program.plan.longest = 4 * (uint32_t)mask;
    for (uint32_t grid = 2; grid < 8; grid++)
        StepAt(program, 100, grid);
    EXPECT_GT(program.plan.sig_mask, mask);
    EXPECT_EQ(program.built, 5u) << "for all but what the only graph held by then";
    ExpectFaithful(program);
}

// Each has one slot, however often it comes.
TEST(Choose, ShapesAreCountedUpToABound) {
    Program program;
    for (uint64_t i = 1; i <= 64; i++) {
        cus_signature sig = {cus_hash(i), cus_hash_second(i)};
        for (int times = 1; times < 100; times++) {
            cus_choose_note(&program.plan, sig);
            uint64_t n = 0, most = 0;
            for (uint64_t slot = 0; slot <= program.plan.sig_mask; slot++)
                if (uint64_t here = program.plan.sig_counts[slot]) {
                    n++;
                    if ((here ^ sig.lo) < 16)
                        most = here;
                }
            ASSERT_EQ(n, i);
            ASSERT_EQ(most, (sig.lo & ~uint64_t{15}) + std::min(times, 15));
        }
    }
}

// The table of what came before is as large as a step, up to a bound.
TEST(Choose, WhatIsRememberedOfShapesIsBounded) {
    Program program;
    program.plan.longest = 1u << 30;
    program.Step(10);
    const uint64_t mask = program.plan.sig_mask;
    EXPECT_EQ(mask, (1u << 18) - 1);
    for (uint32_t step = 0; step < 20; step++) {
        program.plan.sig_evicted = UINT32_MAX; // shapes lose their slots
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), 1, 2, 1 + step);
        program.Sync();
    }
    EXPECT_EQ(program.plan.sig_mask, mask);
    ExpectFaithful(program);
}

} // namespace
