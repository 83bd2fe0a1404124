// Promise: the plan handles a large program: many different steps, more than there is room for, and
// new ones later. The test counts nodes and builds, not time.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

extern "C" {
#include "shim/base/mem.h"
#include "shim/plan/repeat.h"
}

namespace {

// A step of its own: another order of kernels than any other.
void OwnStep(Program &program, unsigned which, unsigned ops) {
    std::mt19937 random(which);
    for (unsigned i = 0; i < ops; i++)
        program.Op("k" + std::to_string(random() % 50), i, which);
    program.Sync();
}

// Steps that differ in their first two ops alone.
void AlikeStep(Program &program, unsigned which, unsigned ops) {
    program.Op("a" + std::to_string(which % 10), 1);
    program.Op("b" + std::to_string(which / 10), 2);
    for (unsigned i = 0; i < ops; i++)
        program.Op("k" + std::to_string(i * 7919 % 31), 100 + i);
    program.Sync();
}

TEST(Growth, StepsThatAreAlikeButForTheirBeginningShareWhatFollows) {
    Program program;
    const unsigned kSteps = 60, kOps = 200;
    for (int round = 0; round < 6; round++) {
        program.ResetCounts();
        for (unsigned which = 0; which < kSteps; which++)
            AlikeStep(program, which, kOps);
    }
    ExpectFaithful(program);
    EXPECT_LT(program.plan.tree.n_nodes, kSteps * 40) << "of " << kSteps * kOps;
    EXPECT_GT(program.in_graphs, kSteps * kOps * 9 / 10);
    EXPECT_EQ(program.patched, 0u);
    EXPECT_EQ(program.built, 0u);
}

// Whether addresses come again is known by a table of what came: a long step must not take the
// place of what it knows before it comes round.
TEST(Growth, AddressesThatTakeTurnsEarnASecondExecInALongStep) {
    Program program({2, 16, 16, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
    const unsigned kOps = 30000;
    for (unsigned step = 0; step < 12; step++) {
        if (step == 10)
            program.ResetCounts();
        for (unsigned i = 0; i < kOps; i++)
            program.Op("k" + std::to_string((i * 2654435761u >> 16) % 31), i + step % 2 * 100000);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_GT(program.in_graphs, 2 * kOps * 99 / 100);
    EXPECT_LT(program.patched, 2 * kOps / 50);
}

// What is common may be in one segment with what stands before it on the path that was there first:
// those that come later come into the midst of that.
TEST(Growth, ASegmentEndsWhereOtherPathsComeToItsMidst) {
    Program program({2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
    const unsigned kOps = 1200;
    auto round = [&](unsigned from, unsigned to) {
        program.ResetCounts();
        for (unsigned which = from; which < to; which++)
            AlikeStep(program, which, kOps);
    };
    for (int i = 0; i < 6; i++)
        round(0, 1);
    ASSERT_EQ(program.eager, 0u);
    for (int i = 0; i < 10; i++)
        round(1, 9);
    ExpectFaithful(program);
    EXPECT_LT(program.plan.tree.n_nodes, 2 * kOps) << "they have it in common";
    EXPECT_LE(program.eager, 8 * 3u) << "not all up to the end of that segment";
    EXPECT_EQ(program.built, 0u);
}

// Where a path comes to the last op of a segment, that op would go out by itself for ever.
TEST(Growth, APathThatJoinsAtTheEndOfASegmentJoinsLater) {
    unsigned all = 0;
    for (unsigned shift = 0; shift < 12; shift++) {
        Program program({2, 16, 16, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
        unsigned alone = 0; // the last op of a step not counted: it may be left over
        for (int round = 0; round < 8; round++) {
            alone = 0;
            for (unsigned which = 0; which < 40; which++) {
                program.ResetCounts();
                program.Op("a" + std::to_string(which), 1);
                for (unsigned i = 0; i < shift; i++)
                    program.Op("c" + std::to_string(i), which);
                for (unsigned i = 0; i < 63; i++)
                    program.Op("k" + std::to_string(i * 7919 % 31), 100 + i);
                alone += program.eager;
                program.Op("end", 1);
                program.Sync();
            }
        }
        ExpectFaithful(program);
        EXPECT_LT(program.plan.tree.n_nodes, 40u * 60) << shift;
        all += alone;
    }
    EXPECT_LE(all, 12 * 40 / 10u) << "of as many steps: joins may lie side by side";
}

// Steps that begin alike: which one it is need not be known before they part.
TEST(Growth, StepsThatPartInTheirFirstOpsAreInGraphsFromTheFirstOne) {
    for (unsigned alike = 1; alike <= CUS_PREFIX_MAX; alike++) {
        Program program;
        unsigned foreseen = 0;
        for (int round = 0; round < 8; round++) {
            program.ResetCounts();
            for (unsigned which = 0; which < 30; which++) {
                for (unsigned i = 0; i < alike; i++)
                    program.Op("a" + std::to_string(i), i, which % 3, 1 + which % 2);
                const cus_segment *begun = program.plan.view.segment;
                for (unsigned i = 0; i < 20; i++) {
                    program.Op("k" + std::to_string((which * 31 + i * 17) % 40), i, which);
                    foreseen += round == 7 && i == 0 && program.plan.view.segment == begun;
                }
                program.Sync();
            }
        }
        ExpectFaithful(program);
        EXPECT_EQ(program.eager, 0u) << alike;
        EXPECT_EQ(program.diverged, 0u) << alike;
        EXPECT_EQ(program.built, 0u) << alike;
        EXPECT_EQ(program.patched, 0u) << alike << ": each has a graph of its own";
        if (alike < CUS_PREFIX_MAX) { // else the first graph is complete
            EXPECT_GE(foreseen, 29u) << "what came next came next before";
        }
    }
}

// What comes behind it is another thing each time: then it goes out by itself again.
TEST(Growth, ASegmentThatNothingComesBehindIsGivenUp) {
    Program program;
    unsigned fresh = 0;
    auto step = [&](bool good) {
        program.Op("a", 1);
        for (unsigned i = 0; i < 6; i++)
            program.Op(good || i ? "k" + std::to_string(i) : "u" + std::to_string(fresh++), i);
        program.Sync();
    };
    for (unsigned i = 0; i < 10; i++)
        step(true);
    EXPECT_GT(program.in_graphs, 0u);
    program.ResetCounts();
    for (unsigned i = 0; i < 8000; i++)
        step(false);
    ExpectFaithful(program);
    EXPECT_LT(program.diverged, 5000u);
    for (unsigned i = 0; i < 10; i++)
        step(true);
    program.ResetCounts();
    step(true);
    EXPECT_GT(program.in_graphs, 4u) << "what comes behind it begins by itself";
}

// The signature of a step is the same however it is cut into segments, and what a segment adds to
// it is known before: a segment that many steps share is not hashed anew in each.
TEST(Growth, SignatureOfASegmentIsAppendedInOneGo) {
    Program program;
    std::mt19937 random(7);
    struct cus_signature all = {0, 0}, first = {0, 0}, rest = {0, 0};
    for (unsigned i = 0; i < 100; i++) {
        const uint32_t dims[CUS_DIMS] = {(uint32_t)random() % 9 + 1, 1, 1, 32, 1, 1, 0};
        const cus_kind *kind = program.Kind("k" + std::to_string(random() % 20));
        all = cus_signature_add(all, kind, dims);
        struct cus_signature &part = i < 37 ? first : rest;
        part = cus_signature_add(part, kind, dims);
    }
    EXPECT_TRUE(
        cus_signature_same(all, cus_signature_append(first, rest, cus_signature_power(63))));
    EXPECT_FALSE(
        cus_signature_same(all, cus_signature_append(rest, first, cus_signature_power(37))));
}

TEST(Growth, APathNeverJoinsItself) {
    Program program;
    for (int round = 0; round < 4; round++) {
        program.ResetCounts();
        // The same 40 ops, 50 times, and an end that tells how often they came.
        for (unsigned i = 0; i < 2000; i++)
            program.Op("k" + std::to_string(i % 40), i % 40);
        for (unsigned i = 0; i < 30; i++)
            program.Op("end", i);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.in_graphs, 2030u);
    EXPECT_EQ(program.diverged, 0u);
}

TEST(Growth, WhatDoesNotComeAnyMoreIsForgotten) {
    Program program({2, 4, 64, 0, 4, 1000, CUS_MODE_PIECEWISE, false});
    auto round = [&](unsigned from) {
        program.ResetCounts();
        for (unsigned which = from; which < from + 10; which++)
            OwnStep(program, which, 99);
    };
    for (int i = 0; i < 6; i++)
        round(0);
    EXPECT_GT(program.in_graphs, 800u) << "the tree is full of these";
    for (int i = 0; i < 40; i++)
        round(10);
    EXPECT_GT(program.in_graphs, 800u) << "and now of those";
    EXPECT_LE(program.plan.tree.n_nodes, 1000u);
    ExpectFaithful(program);
}

TEST(Growth, OfStepsThatDoNotAllHaveRoomSomeAreKept) {
    Program program({2, 4, 64, 0, 4, 1000, CUS_MODE_PIECEWISE, false});
    for (int i = 0; i < 60; i++) {
        if (i == 20)
            program.ResetCounts();
        for (unsigned which = 0; which < 20; which++)
            OwnStep(program, which, 99);
    }
    EXPECT_GT(program.in_graphs, 40u * 20 * 99 * 4 / 10) << "half of them have room";
    EXPECT_EQ(program.built, 0u) << "the same ones all the time";
    ExpectFaithful(program);
}

TEST(Growth, WhatIsDroppedForTheBudgetIsNotBuiltAgainAndAgain) {
    Program program;
    const unsigned kRounds = 300;
    for (unsigned round = 0; round < kRounds; round++) {
        for (unsigned which = 0; which < 6; which++)
            OwnStep(program, which, 60);
        while (cus_plan_drop_oldest(&program.plan)) // a budget that two steps fill
            ;
    }
    ExpectFaithful(program);
    // Tried again after 64 rounds, then after 128 more.
    EXPECT_GT(program.built, 0u);
    EXPECT_LT(program.built, 130u);
}

TEST(Growth, OldestIsTheOneLaunchedLeastRecently) {
    Program program;
    for (int round = 0; round < 5; round++)
        for (unsigned which = 0; which < 4; which++)
            OwnStep(program, which, 28);
    OwnStep(program, 0, 28);
    ASSERT_TRUE(cus_plan_drop_oldest(&program.plan));
    auto eager = [&](unsigned which) {
        program.ResetCounts();
        OwnStep(program, which, 28);
        return program.eager;
    };
    EXPECT_GT(eager(1), 0u) << "its first segment was the oldest";
    EXPECT_EQ(eager(2), 0u);
    EXPECT_EQ(eager(0), 0u);
}

// A pace that changes: what was formed at the old one goes, but never all in one step.
TEST(Growth, SegmentsOfManyStepsAreFormedAnewStepByStep) {
    Program program({2, 4, 64, 20000, 4, 100000, CUS_MODE_PIECEWISE, false});
    const unsigned kSteps = 6; // sizes are looked at when all of them have segments
    unsigned most = 0, all = 0;
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned which = 0; which < kSteps; which++) {
            bool slow = round < 2 || (round == 2 && which + 1 < kSteps);
            cus_plan_paced(&program.plan, 64, 64 * (slow ? 5000 : 50));
            unsigned before = program.dropped;
            OwnStep(program, which, 120);
            most = std::max(most, program.dropped - before);
            all += program.dropped - before;
        }
    }
    ExpectFaithful(program);
    EXPECT_GT(all, kSteps * 4) << "they were formed anew";
    EXPECT_LE(most, 120 / 2u) << "segments of one step at most";
}

TEST(Growth, ShedDropsALittleAtATimeAndThenForgets) {
    Program program;
    for (int round = 0; round < 4; round++)
        for (unsigned which = 0; which < 10; which++)
            OwnStep(program, which, 60);
    unsigned segments = program.plan.view.n_segments;
    ASSERT_GT(segments, 8u);
    EXPECT_TRUE(cus_plan_evict(&program.plan, 4));
    EXPECT_EQ(program.plan.view.n_segments, segments - 4);
    EXPECT_GT(program.plan.tree.n_nodes, 0u);
    while (cus_plan_evict(&program.plan, 4))
        ;
    EXPECT_EQ(program.plan.view.n_segments, 0u);
    EXPECT_EQ(program.plan.tree.n_nodes, 0u);
    OwnStep(program, 0, 60);
    ExpectFaithful(program);
}

// ---- coming round again ----

// Ops until it is seen; 0: not within `most`. `*turn`: how long a turn is taken to be.
uint64_t Seen(std::function<uint64_t(uint64_t)> op, uint64_t most, uint32_t *turn = nullptr) {
    cus_repeat repeat = {};
    EXPECT_TRUE(cus_repeat_start(&repeat));
    uint64_t seen = 0;
    for (uint64_t i = 1; i <= most && !seen; i++)
        if (cus_repeat_feed(&repeat, op(i)))
            seen = i;
    if (turn)
        *turn = repeat.turn;
    cus_mem_shrink(repeat.history);
    return seen;
}

uint64_t Kernel(uint64_t random) {
    random = (random + 1) * 0xd1b54a32d192ed03u;
    random = (random ^ random >> 29) * 0x9e3779b97f4a7c15u;
    return 0x55550000u + (random >> 32) % 50 * 64;
}

TEST(Repeat, IsSeenHoweverLongATurnIs) {
    for (uint64_t period : {1, 3, 40, 700, 20000, 100000, 200000, 1000000, 2000000}) {
        uint32_t turn;
        uint64_t seen =
            Seen([&](uint64_t i) { return Kernel(i % period); }, 3 * period + 20000, &turn);
        EXPECT_LE(turn, period + CUS_REPEAT_WINDOW) << period;
        EXPECT_GE(turn + 2 * CUS_REPEAT_WINDOW, period) << period;
        EXPECT_GT(seen, period < 4096 ? 0 : period) << period;
        EXPECT_LE(seen, period + 4 * CUS_REPEAT_WINDOW + period / 2) << period;
    }
}

TEST(Repeat, IsNotSeenWhereThereIsNone) {
    EXPECT_EQ(Seen([](uint64_t i) { return Kernel(i); }, 3000000), 0u);
}

// What was not shown to it counts.
TEST(Repeat, ATurnIsAsLongAsItWas) {
    cus_repeat repeat = {};
    ASSERT_TRUE(cus_repeat_start(&repeat));
    const uint64_t kPeriod = 300000, kShown = 60000;
    bool seen = false;
    for (uint64_t i = 0; i < kShown; i++)
        seen |= cus_repeat_feed(&repeat, Kernel(i));
    EXPECT_FALSE(seen);
    cus_repeat_passed(&repeat, kPeriod - kShown);
    for (uint64_t i = 0; i < kShown && !seen; i++)
        seen = cus_repeat_feed(&repeat, Kernel(i));
    EXPECT_TRUE(seen);
    EXPECT_NEAR(repeat.turn, kPeriod, 2 * CUS_REPEAT_WINDOW);
    cus_mem_shrink(repeat.history);
}

// What comes round within a window is the same thing in each, and another one is not; of what does
// not nothing is said.
TEST(Repeat, SomethingElseIsTold) {
    cus_repeat repeat = {};
    EXPECT_EQ(cus_repeat_as(&repeat), 0u);
    ASSERT_TRUE(cus_repeat_start(&repeat));
    auto windows = [&](double n, uint64_t from, uint64_t period) {
        for (uint64_t i = 0; i < (uint64_t)(n * CUS_REPEAT_WINDOW); i++)
            cus_repeat_feed(&repeat, Kernel(from + i % period));
        return cus_repeat_as(&repeat);
    };
    std::set<uint64_t> told;
    for (uint64_t period : {1, 3, 40, 700, 3000}) {
        uint64_t as = windows(3.5, period, period);
        EXPECT_NE(as, 0u) << period;
        EXPECT_EQ(windows(7, period, period), as) << period;
        told.insert(as);
        EXPECT_EQ(windows(2.5, 1000000 * period, 1000000), 0u) << period;
    }
    EXPECT_EQ(told.size(), 5u);
    cus_mem_shrink(repeat.history);
}

} // namespace
