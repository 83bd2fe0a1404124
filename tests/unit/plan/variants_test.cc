// Promise: each of many shapes that take turns gets a variant. Rare shapes cost the others nothing,
// and variants that are no longer used make room.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

extern "C" {
#include "shim/plan/learn.h"
#include "shim/plan/variants.h"
}

namespace {

enum { OPS = 12, MANY = 200, ENOUGH = 16 }; // rounds until shapes that come each time have a graph

cus_plan_limits Limits(uint32_t variants) {
    return {2, OPS, OPS, 0, variants, 100000, CUS_MODE_PIECEWISE, false};
}

// A step is one segment; its first op is the same for shapes of one hundred.
void Step(Program &program, unsigned shape, const std::string &name = "k") {
    for (int i = 0; i < OPS; i++)
        program.Op(name + std::to_string(i), i, i, 1 + (i % 2 ? shape % 100 : shape / 100));
}

void Turn(Program &program, unsigned shape) {
    Step(program, shape);
    program.Sync();
}

// Shapes from 0 on, in turn.
void Rounds(Program &program, int rounds, unsigned shapes) {
    for (int round = 0; round < rounds; round++)
        for (unsigned shape = 0; shape < shapes; shape++)
            Turn(program, shape);
}

TEST(Variants, ManyInTurnAreAllAsTheyWereInTheEnd) {
    Program program(Limits(1000));
    Rounds(program, ENOUGH, MANY);
    EXPECT_EQ(program.built, (unsigned)MANY);
    program.ResetCounts();
    Rounds(program, ENOUGH, MANY);
    ExpectFaithful(program);
    EXPECT_EQ(program.exact, (unsigned)MANY * ENOUGH);
    EXPECT_EQ(program.patched, 0u);
    EXPECT_EQ(program.mispredicted, 0u) << "what came next came next before";
}

TEST(Variants, ManyInAnyOrderAreFoundByTheirShapes) {
    Program program(Limits(1000));
    std::mt19937 random(1);
    for (int step = 0; step < 60 * MANY; step++) {
        if (step == 50 * MANY)
            program.ResetCounts();
        Turn(program, random() % MANY);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.patched, 0u);
    EXPECT_EQ(program.exact, 10u * MANY);
}

TEST(Variants, ManyArePredictedByWhatCameNext) {
    Program program(Limits(1000));
    std::mt19937 random(2);
    for (int step = 0; step < 40 * MANY; step++) {
        if (step == 39 * MANY)
            program.ResetCounts();
        unsigned shape = random() % MANY;
        for (const char *name : {"a", "b"}) // two segments, the second as the first one
            for (int i = 0; i < OPS; i++)
                program.Op(name + std::to_string(i), i, i, 1 + (i ? shape : 0));
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_LE(program.mispredicted, (unsigned)MANY) << "none of the second ones";
    EXPECT_GT(program.mispredicted, MANY / 2u) << "nothing tells the first ones";
}

TEST(Variants, ManyArePredictedByTheirFirstOp) {
    Program program(Limits(1000));
    std::mt19937 random(3);
    for (int step = 0; step < 40 * MANY; step++) {
        if (step == 39 * MANY)
            program.ResetCounts();
        unsigned shape = random() % MANY;
        for (int i = 0; i < OPS; i++)
            program.Op("k" + std::to_string(i), i, i, 1 + shape);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.mispredicted, 0u);
    EXPECT_EQ(program.exact, (unsigned)MANY);
}

// More than there are slots for what is known of shapes at first: these get more, and each shape
// may be in one of several.
TEST(Variants, ThousandsInTurnHaveEachTheirOwn) {
    enum { SHAPES = 10000, ROUNDS = 30 };
    Program program({2, 4, 4, 0, 2 * SHAPES, 100000, CUS_MODE_PIECEWISE, false});
    for (int round = 0; round < ROUNDS; round++) {
        if (round == ROUNDS - 1) {
            EXPECT_GT(program.built, SHAPES * 0.98);
            program.ResetCounts();
        }
        for (unsigned shape = 0; shape < SHAPES; shape++) {
            for (int i = 0; i < 4; i++)
                program.Op("k" + std::to_string(i), i, i, 1 + shape);
            program.Sync();
        }
    }
    ExpectFaithful(program);
    EXPECT_GT(program.exact, SHAPES * 0.98);
}

TEST(Variants, RareOnesCostTheOthersNothing) {
    Program program(Limits(1000));
    for (int round = 0; round < 60; round++) {
        if (round == 40)
            program.ResetCounts();
        Rounds(program, 1, 20);
        Turn(program, 1000 + round); // never comes again
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.exact, 20u * 20);
    EXPECT_EQ(program.near, 20u);
}

TEST(Variants, OneIsBuiltWhenPatchingHasCostAsMuch) {
    Program program(Limits(1000));
    Rounds(program, 40, 9);
    EXPECT_EQ(program.built, 9u) << "a few as soon as they come again, the ninth later";
    Turn(program, 400); // takes the place of one, which is built again: the one to be patched
    Rounds(program, 2, 9);
    EXPECT_EQ(program.built, 10u);
    program.ResetCounts();
    unsigned met = 0;
    for (; !program.built && met < 100; met++) {
        Turn(program, 500);
        Turn(program, 501);
        Rounds(program, 1, 9);
    }
    EXPECT_GE(met, 10u);
    EXPECT_LE(met, 15u);
    ExpectFaithful(program);
}

// What is patched beside the program's thread costs the program nothing: a few graphs are enough.
TEST(Variants, AFewAreEnoughWherePatchingCostsNothing) {
    Program program(Limits(1000));
    program.aside = true;
    Rounds(program, 60, 20);
    EXPECT_EQ(program.built, (unsigned)CUS_VARIANTS_FEW);
    program.ResetCounts();
    Rounds(program, 10, 20);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.exact + program.near, 10u * 20);
    EXPECT_GE(program.exact, 10u * (CUS_VARIANTS_FEW - 1)) << "all but one stay what they are";
    program.aside = false; // that has ended
    Rounds(program, 40, 20);
    EXPECT_EQ(program.built, 20u - CUS_VARIANTS_FEW);
    ExpectFaithful(program);
}

TEST(Variants, WhatComesNoMoreGivesItsPlaceToWhatDoes) {
    Program program(Limits(12));
    std::mt19937 random(4);
    for (unsigned first : {0, 100}) {
        for (int round = 0; round < 60; round++) {
            if (round == 50)
                program.ResetCounts();
            std::vector<unsigned> shapes(12);
            std::iota(shapes.begin(), shapes.end(), first);
            if (round >= 40) // it is known which of them a graph is by now
                std::shuffle(shapes.begin(), shapes.end(), random);
            for (unsigned shape : shapes)
                Turn(program, shape);
        }
        EXPECT_EQ(program.exact, 10u * 12) << first;
        EXPECT_EQ(program.patched, 0u) << first;
        EXPECT_EQ(program.built, 0u) << first;
    }
    ExpectFaithful(program);
}

// An allocator's addresses take turns among a few, or are others each time.
TEST(Variants, ParamsAloneEarnAFew) {
    Program program(Limits(1000));
    for (int step = 0; step < 400; step++) {
        for (int i = 0; i < OPS; i++)
            program.Op("k" + std::to_string(i), 1000 * (step % 10) + i);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 4u);
}

// With more shapes than graphs, most of these stay what they are.
TEST(Variants, FewerThanShapesAreKeptForSome) {
    Program program(Limits(10));
    Rounds(program, 50, 30);
    program.ResetCounts();
    Rounds(program, 10, 30);
    ExpectFaithful(program);
    EXPECT_EQ(program.exact, 10u * 9) << "and one of them for all others";
    EXPECT_EQ(program.near, 10u * 21);
}

TEST(Variants, FurtherOnesMakeRoomForTheFirstOfAnotherSegment) {
    Program program(Limits(1000));
    for (int step = 0; step < 40; step++)
        Turn(program, step % 4);
    ASSERT_EQ(program.built, 4u);
    auto both = [&](bool begin) {
        Step(program, 0);
        for (int i = 0; i < (begin ? OPS / 2 : OPS); i++)
            program.Op("b" + std::to_string(i));
    };
    for (int step = 0; step < 2; step++) {
        both(false);
        program.Sync();
    }
    both(true);
    ASSERT_TRUE(program.plan.view.segment && program.plan.view.n == OPS / 2)
        << "a segment without a graph";
    for (unsigned i = 1; i <= 3; i++) {
        EXPECT_TRUE(cus_plan_drop_oldest(&program.plan));
        EXPECT_EQ(program.dropped, i);
    }
    EXPECT_FALSE(cus_plan_drop_oldest(&program.plan)) << "the one that is launched stays";
    program.Sync();
    program.ResetCounts();
    Turn(program, 0);
    EXPECT_EQ(program.exact, 1u);
    // Its further ones are not built at the cost of others.
    for (int step = 0; step < 40; step++)
        Turn(program, step % 4);
    Step(program, 0);
    program.Op("k0");
    EXPECT_FALSE(cus_plan_drop_oldest(&program.plan));
    program.Sync();
    ExpectFaithful(program);
}

// The memory of a segment that is not launched any more is given back one graph at a time.
TEST(Variants, ManyGoOneByOne) {
    Program program(Limits(1000));
    Rounds(program, ENOUGH, 20);
    for (int step = 0; step < 10; step++) {
        Step(program, 0, "other");
        program.Sync();
    }
    for (unsigned i = 1; i <= 12; i++) {
        ASSERT_TRUE(cus_plan_drop_oldest(&program.plan));
        EXPECT_EQ(program.dropped, i);
    }
    ASSERT_TRUE(cus_plan_drop_oldest(&program.plan));
    EXPECT_EQ(program.dropped, 20u) << "the few that are left go with their segment";
    Turn(program, 0);
    ExpectFaithful(program);
}

// A second graph for the same shapes that may not be built now costs no other shape its own.
TEST(Variants, WhatIsPutOffIsPatchedWhereTheShapesAreRight) {
    Program program(Limits(1000));
    auto turn = [&](unsigned grid, uint64_t pointer) {
        for (int i = 0; i < OPS; i++)
            program.Op("k" + std::to_string(i), pointer + i, i, grid);
        program.Sync();
    };
    for (int round = 0; round < 4; round++)
        for (unsigned grid : {1, 2})
            turn(grid, 0);
    ASSERT_EQ(program.built, 2u);
    program.later = true;
    for (int round = 0; round < 4; round++)
        for (uint64_t pointer : {1000, 2000})
            turn(2, pointer);
    EXPECT_GT(program.near, 0u) << "addresses in turn";
    program.ResetCounts();
    turn(1, 0);
    EXPECT_EQ(program.exact, 1u);
    EXPECT_EQ(program.patched, 0u);
    ExpectFaithful(program);
}

TEST(Variants, AnIdleStreamGivesUpALittleAtATime) {
    Program program(Limits(1000));
    Rounds(program, ENOUGH, 20);
    EXPECT_TRUE(cus_plan_evict(&program.plan, 5));
    EXPECT_EQ(program.dropped, 5u);
    EXPECT_TRUE(cus_plan_evict(&program.plan, 7));
    EXPECT_EQ(program.dropped, 12u);
    EXPECT_FALSE(cus_plan_evict(&program.plan, 5));
    EXPECT_EQ(program.dropped, 20u);
    Turn(program, 0);
    ExpectFaithful(program);
}

// In the midst of a segment of `ops` ops that has no graph yet, and comes behind so many of the
// shapes of the other one in turn.
void Want(Program &program, int ops, int shapes) {
    for (int step = 0; step < 3; step++) {
        Step(program, step % shapes);
        program.Break();
        for (int i = 0; i < (step < 2 ? ops : ops / 2); i++)
            program.Op("b" + std::to_string(i));
        if (step < 2)
            program.Sync();
    }
    ASSERT_TRUE(program.plan.view.segment && program.plan.view.segment->n == (uint32_t)ops);
}

// All that is beyond the first would not be enough: none of it goes.
TEST(Variants, NothingGoesInVain) {
    Program program({2, 2 * OPS, 2 * OPS, 0, 1000, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 20; step++)
        Turn(program, step % 2);
    ASSERT_EQ(program.built, 2u);
    Want(program, OPS + 1, 1);
    EXPECT_FALSE(cus_plan_drop_oldest(&program.plan)) << "a graph of 12 for one of 13";
    EXPECT_EQ(program.dropped, 0u);
    program.Sync();
    ExpectFaithful(program);
}

TEST(Variants, NoMoreGoesThanIsWanted) {
    for (int ops : std::initializer_list<int>{OPS - 1, OPS, OPS + 1, 2 * OPS}) {
        Program program({2, 2 * OPS, 2 * OPS, 0, 1000, 100000, CUS_MODE_PIECEWISE, false});
        for (int step = 0; step < 60; step++)
            Turn(program, step % 6);
        ASSERT_EQ(program.built, 6u);
        Want(program, ops, 1);
        EXPECT_TRUE(cus_plan_drop_oldest(&program.plan));
        EXPECT_EQ(program.dropped, ops <= OPS ? 1u : 2u) << ops;
        program.Sync();
        ExpectFaithful(program);
    }
}

// Graphs go at any time, the one that was launched last among them.
TEST(Variants, NothingIsLeftOfThoseThatWent) {
    for (unsigned seed = 0; seed < 30; seed++) {
        Program program(Limits(40));
        std::mt19937 random(seed);
        for (int step = 0; step < 2000; step++) {
            Step(program, random() % 30);
            if (random() % 3 == 0)
                Step(program, random() % 10, "other");
            program.Sync();
            if (random() % 50 == 0)
                cus_plan_drop_oldest(&program.plan);
            if (random() % 500 == 0)
                cus_plan_drop_handle(&program.plan, program.Kind("k0")->handle);
        }
        ExpectFaithful(program);
        EXPECT_GT(program.exact, 100u);
    }
}

TEST(Variants, NothingGoesInVainWhereSomeOfItIsInUse) {
    Program program({2, 2 * OPS, 2 * OPS, 0, 1000, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 30; step++)
        Turn(program, step % 3);
    ASSERT_EQ(program.built, 3u);
    Want(program, 2 * OPS, 2); // the third one does not come any more
    while (cus_plan_drop_oldest(&program.plan))
        ;
    EXPECT_EQ(program.dropped, 0u) << "a graph of 12 went where 24 were wanted";
    program.Sync();
    ExpectFaithful(program);
}

// Turns are counted in 32 bits: a stream without waits has that many.
TEST(Variants, AreMadeInALongLifeToo) {
    for (uint32_t turns : {0x80000010u, 0xfffffff0u}) {
        Program program(Limits(1000));
        program.plan.turns = turns;
        Rounds(program, 50, 4);
        EXPECT_EQ(program.built, 4u) << turns;
    }
}

// With as many graphs of a step as the next one may build, however many its segments have.
TEST(Variants, AreFormedAnewShareByShare) {
    enum { SHAPES = 40, HALF = 50, SHARE = 256 };
    Program program({2, HALF, HALF, 0, 1000, 100000, CUS_MODE_PIECEWISE, false});
    unsigned most = 0, all = 0;
    for (int step = 0; step < 30 * SHAPES; step++) {
        unsigned before = program.dropped;
        program.plan.view.build_quota = SHARE;
        for (int i = 0; i < 2 * HALF; i++) {
            if (i == HALF && step < 10)
                program.Break(); // this boundary is forgotten when the shapes have graphs
            program.Op("k" + std::to_string(i), i, i, 1 + step % SHAPES);
        }
        program.Sync();
        most = std::max(most, program.dropped - before);
        all += program.dropped - before;
    }
    ExpectFaithful(program);
    EXPECT_EQ(all, 2u * SHAPES) << "both halves were formed anew";
    EXPECT_EQ(most, SHARE / HALF + 0u);
}

// One that was to be a second graph of its shapes, and may not be built, takes none of other ones.
TEST(Variants, WhatIsPutOffIsPatchedWhereItIsNearest) {
    Program program(Limits(1000));
    auto turn = [&](unsigned grid, uint64_t head, uint64_t first, uint64_t second) {
        for (int i = 0; i < OPS; i++)
            program.Op("k" + std::to_string(i),
                       (i == 0        ? head
                        : i < OPS / 2 ? first
                                      : second) +
                           i,
                       i, grid);
        program.Sync();
    };
    for (int round = 0; round < 4; round++)
        for (unsigned grid : {1, 2})
            turn(grid, 0, 0, 0);
    ASSERT_EQ(program.built, 2u);
    for (int round = 0; round < 8; round++) // addresses in turn: a second graph of these shapes
        for (uint64_t pointer : {0, 1000})
            turn(2, pointer, pointer, pointer);
    ASSERT_EQ(program.built, 3u);
    program.later = true;
    program.ResetCounts();
    for (int round = 0; round < 9; round++) {
        turn(2, 0, 0, 0);
        turn(2, 0, 0, 0);
        turn(2, 0, 1000, 5000 + round % 3 * 1000); // begins as one and goes on as the other
    }
    EXPECT_GT(program.near, 0u) << "a further one was to be built";
    program.ResetCounts();
    turn(1, 0, 0, 0);
    EXPECT_EQ(program.exact, 1u);
    EXPECT_EQ(program.patched, 0u) << "it was made one of other shapes";
    ExpectFaithful(program);
}

// Only graphs that are further ones and came neither in this step nor in the one before.
TEST(Variants, MakeRoomPastThoseThatAreNeeded) {
    Program program(Limits(1000));
    for (int step = 0; step < 40; step++) {
        Step(program, 0, "a");        // one graph, in each step
        Step(program, step % 2, "d"); // two, which take turns
        Step(program, step < 36 ? step % 4 : 0);
        program.Sync();
    }
    ASSERT_EQ(program.built, 1u + 2 + 4);
    unsigned turn = 0;
    auto both = [&](bool begin) {
        Step(program, 0, "a");
        Step(program, turn++ % 2, "d");
        Step(program, 0);
        for (int i = 0; i < (begin ? OPS / 2 : OPS); i++)
            program.Op("b" + std::to_string(i));
    };
    for (int step = 0; step < 2; step++) {
        both(false);
        program.Sync();
    }
    both(true);
    ASSERT_TRUE(program.plan.view.segment && program.plan.view.n == OPS / 2);
    for (unsigned i = 1; i <= 3; i++) {
        EXPECT_TRUE(cus_plan_drop_oldest(&program.plan));
        EXPECT_EQ(program.dropped, i);
    }
    EXPECT_FALSE(cus_plan_drop_oldest(&program.plan));
    program.Sync();
    // Where the segment that is filled has a graph, none goes for it.
    Step(program, 0, "a");
    program.Op("d0", 0, 0, 1);
    ASSERT_TRUE(program.plan.view.segment && program.plan.view.segment->n_variants);
    EXPECT_FALSE(cus_plan_drop_oldest(&program.plan));
    EXPECT_EQ(program.dropped, 3u);
    uint32_t segments = program.plan.view.n_segments;
    cus_learn_no_room(&program.plan, program.plan.view.segment);
    EXPECT_EQ(program.plan.view.n_segments, segments) << "it has a graph to launch";
    program.Sync();
    ExpectFaithful(program);
}

} // namespace
