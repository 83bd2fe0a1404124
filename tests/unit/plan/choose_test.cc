// Promise: if params or grids differ, the plan chooses the right variant. A second one is built if
// addresses take turns or sizes return, and none for values that never return.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>

extern "C" {
#include "shim/plan/variants.h"
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
}

// Layers are alike, and in each of them the same ops have other addresses: what stands for all must
// not be the same op of each layer, whichever that is.
TEST(Choose, AddressesOfAnyOpsOfALayerThatTakeTurnEarnASecondExec) {
    for (unsigned first = 0; first < 8; first++) {
        Program program({2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
        for (int step = 0; step < 20; step++) {
            if (step == 10)
                program.ResetCounts();
            for (unsigned i = 0; i < 256; i++) {
                bool moves = (i + 8 - first) % 8 < 2;
                program.Op("k" + std::to_string(i % 8), i + (moves ? step % 2 * 5000 : 0));
            }
            program.Sync();
        }
        ExpectFaithful(program);
        EXPECT_EQ(program.in_graphs, 10u * 256);
        EXPECT_EQ(program.patched, 0u) << "ops " << first << " and " << first + 1 << " of 8";
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
void StepBehindFirst(Program &program, uint64_t pointer, uint32_t grid = 1) {
    for (unsigned i = 1; i < 28; i++)
        program.Op("k" + std::to_string(i % 5), pointer + i, i, i == 5 ? grid : 1);
    program.Sync();
}

void StepAt(Program &program, uint64_t pointer, uint32_t grid = 1) {
    program.Op("k0");
    StepBehindFirst(program, pointer, grid);
}

const cus_plan_limits ONE_SEGMENT = {2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false};

TEST(Choose, ANearerOneIsLookedForAtTimesWhereThereWasNone) {
    Program program(ONE_SEGMENT);
    for (int step = 0; step < 20; step++)
        StepAt(program, step % 2 ? 5000 : 100);
    const cus_segment *segment = program.plan.segments;
    ASSERT_EQ(segment->n_variants, 2u);
    uint64_t fresh = 100000;
    // How many nodes are patched where, behind some addresses that never came before, those come
    // that the graph has which is not predicted.
    auto patched = [&](unsigned some) {
        while (some--)
            StepAt(program, fresh += 1000);
        program.ResetCounts();
        program.Op("k0");
        cus_variant *other =
            program.plan.predicted == segment->newest ? segment->oldest : segment->newest;
        uint64_t pointer;
        memcpy(&pointer, cus_image_op(other->image, segment, 1)->params, sizeof pointer);
        StepBehindFirst(program, pointer - 1);
        return program.patched;
    };
    auto until = [&](uint32_t begin) { return (begin + 64 - segment->begun % 64) % 64; };
    EXPECT_EQ(patched(3), 0u);
    EXPECT_EQ(patched(64 + until(30)), 27u) << "after so many in vain that is not looked for";
    EXPECT_EQ(patched(until(2)), 0u) << "but at times";
    EXPECT_EQ(patched(until(12)), 0u) << "and where it was found, for a while";
    EXPECT_EQ(patched(until(50)), 27u) << "and no longer";
    ExpectFaithful(program);
}

// Shapes in turn, each of which has a graph soon, and addresses that are new ones each time: a node
// that is patched anyway may as well be given its shape.
TEST(Choose, GraphsOfOtherShapesThatSaveNothingAreGivenUp) {
    Program program(ONE_SEGMENT);
    uint64_t fresh = 0;
    auto turns = [&](unsigned n, bool moving) {
        for (unsigned turn = 0; turn < n; turn++)
            StepAt(program, moving ? fresh += 1000 : 100 * (1 + turn % 3), 1 + turn % 3);
        return program.plan.segments->n_variants;
    };
    EXPECT_EQ(turns(18, true), 3u);
    EXPECT_EQ(turns(30, true), 1u);
    unsigned built = program.built;
    EXPECT_EQ(turns(400, true), 1u);
    EXPECT_EQ(program.built, built) << "none is made again soon";
    EXPECT_EQ(turns(1000, true), 1u) << "and goes again where it is";
    EXPECT_LE(program.built, built + 4);
    EXPECT_EQ(turns(1500, false), 3u) << "but once they may save something again";
    program.ResetCounts();
    EXPECT_EQ(turns(300, false), 3u);
    EXPECT_EQ(program.patched, 0u);
    ExpectFaithful(program);
}

// Where they are seen to stay now, for a node differs by its shape alone, there are several again
// at once.
TEST(Choose, GraphsOfOtherShapesComeBackWhereAddressesStay) {
    Program program(ONE_SEGMENT);
    for (int step = 0; step < 60; step++)
        StepAt(program, 1000 * step, 1 + step % 3);
    ASSERT_EQ(program.plan.segments->n_variants, 1u);
    for (int step = 0; step < 20; step++)
        StepAt(program, 100, 1 + step % 3);
    EXPECT_EQ(program.plan.segments->n_variants, 3u);
    ExpectFaithful(program);
}

// They are given up where it cannot be told from what came before which shape comes next, too.
TEST(Choose, GraphsOfShapesInAnyOrderAreGivenUpAsWell) {
    Program program(ONE_SEGMENT);
    uint32_t random = 1;
    unsigned most = 0;
    for (int step = 0; step < 200; step++) {
        random = random * 1664525 + 1013904223;
        StepAt(program, 1000 * step, 1 + (random >> 16) % 4);
        if (step > 4)
            most = std::max(most, program.plan.segments->n_variants);
    }
    EXPECT_EQ(most, 4u);
    EXPECT_EQ(program.plan.segments->n_variants, 1u);
    EXPECT_GT(program.mispredicted, 0u);
    ExpectFaithful(program);
}

// That addresses have moved once is no reason, however many graphs there are.
TEST(Choose, GraphsOfOtherShapesStayWhereAddressesMoveOnce) {
    cus_plan_limits limits = ONE_SEGMENT;
    limits.variants = 64;
    Program program(limits);
    auto rounds = [&](unsigned n, uint64_t pointer) {
        while (n--)
            for (uint32_t grid = 1; grid <= 24; grid++)
                StepAt(program, pointer + 100 * grid, grid);
        return program.plan.segments->n_variants;
    };
    unsigned all = rounds(40, 0);
    EXPECT_EQ(all, 24u);
    for (uint64_t moves = 1; moves < 6; moves++)
        EXPECT_EQ(rounds(2, 100000 * moves), all);
    EXPECT_EQ(program.dropped, 0u);
    ExpectFaithful(program);
}

// Of many a few go with each launch: each takes the driver some time.
TEST(Choose, ManyGraphsAreGivenUpAFewAtATime) {
    cus_plan_limits limits = ONE_SEGMENT;
    limits.variants = 64;
    Program program(limits);
    uint64_t fresh = 0;
    unsigned most = 0, before = 0, at_once = 0;
    for (int round = 0; round < 60; round++)
        for (uint32_t grid = 1; grid <= 24; grid++) {
            StepAt(program, round < 40 ? 100 *grid : fresh += 1000, grid);
            if (round < 1)
                continue;
            unsigned now = program.plan.segments->n_variants;
            most = std::max(most, now);
            at_once = std::max(at_once, now < before ? before - now : 0);
            before = now;
        }
    EXPECT_GE(most, 24u);
    EXPECT_EQ(before, 1u);
    EXPECT_LE(at_once, (unsigned)CUS_VARIANTS_FEW);
    ExpectFaithful(program);
}

// Two sets of addresses of the same shapes are worth two graphs, whatever comes in between.
TEST(Choose, GraphsOfTheSameShapesAreNotGivenUpForThat) {
    Program program(ONE_SEGMENT);
    for (int step = 0; step < 20; step++)
        StepAt(program, step % 2 ? 5000 : 100);
    for (int step = 0; step < 100; step++)
        StepAt(program, 10000 + 1000 * step);
    EXPECT_EQ(program.plan.segments->n_variants, 2u);
}

// The nearest one had another shape, and becomes one of this.
TEST(Choose, ANearerOneOfAnotherShapeBecomesOneOfThis) {
    Program program(ONE_SEGMENT);
    for (int step = 0; step < 20; step++)
        StepAt(program, step % 2 ? 5000 : 100, 1 + step % 2);
    const cus_segment *segment = program.plan.segments;
    ASSERT_EQ(segment->n_variants, 2u);
    cus_signature own = segment->oldest->own; // the one of grid 1
    program.ResetCounts();
    StepAt(program, 5000, 1);
    EXPECT_EQ(program.patched, 1u);
    EXPECT_EQ(program.reshaped, 1u);
    EXPECT_TRUE(cus_signature_same(segment->newest->own, own));
    ExpectFaithful(program);
}

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

} // namespace
