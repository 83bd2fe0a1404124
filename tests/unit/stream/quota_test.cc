// Promise: no step is held up by builds for longer than its build quota, whoever asks for the
// builds.
#include "tests/unit/stream/quota.h"

#include <gtest/gtest.h>

#include "shim/base/clock.h"

#include <algorithm>
#include <cstdlib>

namespace {

enum { SEGMENT = 125 };

// A step with so many launches, behind which a segment is built after each SEGMENT of them as far
// as that fits, each node of which takes `node_ns`; the others are issued by themselves. How much
// longer it takes than the launches by themselves.
struct Step {
    double late_us = 0;
    unsigned built = 0;
};
Step Build(uint32_t launches, uint64_t node_ns, bool advised = true) {
    Step step;
    uint64_t ns = 30000 + SEGMENT * node_ns, saved = SEGMENT * 2400 - 2000;
    for (uint32_t at = 0; at + SEGMENT <= launches; at += SEGMENT) {
        bool fits = quota_build(SEGMENT, ns, advised);
        quota_ops(SEGMENT, fits);
        if (fits) {
            step.built += SEGMENT;
            step.late_us += ((double)ns - (double)saved) / 1000;
        }
    }
    quota_step();
    return step;
}

// What a node takes is measured, from test to test.
void Settle() {
    for (int step = 0; step < 40; step++)
        Build(1000, 2500);
}

TEST(Quota, AStepByAdviceIsInGraphsAtOnce) {
    Settle();
    for (uint64_t node_ns : {1000u, 2500u, 6000u, 10000u})
        for (uint32_t launches : {1000u, 10000u}) {
            Build(launches, node_ns); // what a node takes is measured
            Build(launches, node_ns);
            EXPECT_EQ(Build(launches, node_ns).built, launches) << node_ns;
            EXPECT_LT(Build(launches, 5000, false).built, launches) << "nobody advised it";
        }
}

// What is large comes early in a step: the share is that of all of it.
TEST(Quota, AdviceHasTheShareOfTheWholeStepFromItsBeginning) {
    enum { LARGE = 1024, NODE_NS = 11000 };
    for (int step = 0; step < 3; step++)
        Build(10000, NODE_NS); // what a node takes is measured
    for (int i = 0; i < 9; i++) {
        EXPECT_TRUE(quota_build(LARGE, 30000 + LARGE * NODE_NS, true)) << i;
        quota_ops(LARGE, true);
    }
    quota_step();
}

TEST(Quota, WhereBuildingIsVerySlowAdviceIsSpread) {
    for (uint64_t node_ns : {20000u, 50000u})
        for (uint32_t launches : {1000u, 10000u}) {
            for (int step = 0; step < 40; step++) // longer ones are forgotten
                quota_step();
            Build(launches, node_ns);
            Build(launches, node_ns);
            Step step = Build(launches, node_ns);
            EXPECT_GE(step.built, (unsigned)SEGMENT) << "one fits always";
            EXPECT_LT(step.built, launches);
            // The last one may take longer than was thought.
            double one = (30000 + SEGMENT * (node_ns - 2400.)) / 1000;
            EXPECT_LE(step.late_us, 20 * 0.5 * launches + one) << node_ns;
        }
}

// The first graph of a process may take a millisecond, however small it is: the step goes on.
TEST(Quota, AFirstBuildThatSetsThingsUpIsNotTheWholeShare) {
    Settle();
    EXPECT_TRUE(quota_build(4, 5000000, true));
    EXPECT_TRUE(quota_build(SEGMENT, 340000, true));
    EXPECT_TRUE(quota_build(SEGMENT, 340000, true));
}

// Not more nodes than the step has launches, however fast they are built.
TEST(Quota, AdviceBuildsNoMoreThanTheStep) {
    unsigned built = 0;
    Settle();
    quota_ops(4000, false);
    for (int i = 0; i < 100; i++)
        built += quota_build(SEGMENT, SEGMENT * 100, true) ? SEGMENT : 0;
    EXPECT_GE(built, 4000u);
    EXPECT_LE(built, 4000u + SEGMENT);
    quota_step();
}

// A step that takes long has time for more nodes than its launches allow: a tenth of what it takes.
TEST(Quota, ASlowStepMayBuildInATenthOfItsTime) {
    auto built = [](uint64_t op_ns) {
        unsigned n = 0;
        cus_virtual.on = true;
        for (int at = 0; at < 4000; at += SEGMENT) {
            bool fits = quota_build(SEGMENT, 30000 + SEGMENT * 2500, false);
            n += fits ? SEGMENT : 0;
            quota_ops(SEGMENT, fits);
            cus_virtual.ns += SEGMENT * op_ns;
        }
        quota_step();
        cus_virtual.on = false;
        return n;
    };
    Settle();
    EXPECT_LE(built(1000), 1125u) << "256 of each thousand, and the first one";
    EXPECT_GE(built(10000), 3600u) << "at the pace of Python, from the fifth millisecond on";
}

// What advice took is not there for others.
TEST(Quota, OneShareForAll) {
    Settle();
    EXPECT_TRUE(quota_build(SEGMENT, 1000000, true));
    EXPECT_FALSE(quota_build(SEGMENT, 300000, false));
    EXPECT_FALSE(quota_build(20, 80000, false));
    quota_step();
    EXPECT_TRUE(quota_build(20, 80000, false));
    quota_step();
}

// A program that waits for a copy before each of its long steps has a share for each thousand
// launches of the long one all the same, and does not spend it in the short one.
TEST(Quota, AreOfTheRunningStepWhateverTheLastOneWas) {
    Settle();
    for (int turn = 0; turn < 3; turn++) {
        EXPECT_EQ(Build(8000, 2500, false).built,
                  2000u); // 256 of each thousand, in segments of 125
        unsigned built = 0;
        while (quota_build(SEGMENT, 300000, false))
            built += SEGMENT;
        EXPECT_EQ(built, 250u);
        quota_step();
    }
}

// Beside many threads each graph waits before it is begun, small ones as long as large ones: that
// makes none smaller, and fewer of them are built in a step.
TEST(Quota, SegmentsAreNotSmallerForWhatIsWaitedFor) {
    enum { SMALL = 20, NODE_NS = 2500, WAITED_NS = 150000, NS = 30000 + SMALL * NODE_NS };
    auto built = [](uint64_t waited) {
        unsigned n = 0;
        for (int step = 0; step < 40; step++) {
            for (n = 0; n < 12 && quota_build_behind(SMALL, NS + waited, waited); n++)
                quota_ops(SMALL, true);
            quota_ops(1000 - n * SMALL, false);
            quota_step();
        }
        return n;
    };
    Settle();
    unsigned usual = built(0);
    uint32_t segment = quota_segment();
    EXPECT_EQ(usual, 12u);
    EXPECT_EQ(built(WAITED_NS), 2u) << "500 us, and what is saved";
    EXPECT_EQ(quota_segment(), segment);
    EXPECT_EQ(built(0), usual) << "nobody is waited for any more";
}

// One build that waited for ten seconds says little of what the next one waits for.
TEST(Quota, OneLongWaitIsNotBelieved) {
    enum { SMALL = 20, NODE_NS = 2500, NS = 30000 + SMALL * NODE_NS };
    const uint64_t waited = 10000000000;
    auto built = [](uint64_t extra) {
        unsigned n = 0;
        for (; n < 12 && quota_build_behind(SMALL, NS + extra, extra); n++)
            quota_ops(SMALL, true);
        quota_ops(1000 - n * SMALL, false);
        quota_step();
        return n;
    };
    Settle();
    for (int step = 0; step < 40; step++)
        EXPECT_EQ(built(0), 12u) << step;
    EXPECT_TRUE(quota_build_behind(SMALL, NS + waited, waited));
    quota_step();
    EXPECT_GT(built(0), 2u);
}

// What fails, for want of memory for instance, fails at once, or after long: it says nothing of how
// long a graph takes, and what it took is taken from the step's share all the same.
TEST(Quota, WhatFailsIsSpentAndNotMeasured) {
    auto built = [] {
        unsigned n = Build(1000, 2500, false).built;
        Build(1000, 2500, false);
        return n;
    };
    Settle();
    for (int i = 0; i < 40; i++)
        quota_step();
    unsigned usual = built();
    EXPECT_EQ(usual, 250u) << "256 nodes of a thousand launches";
    uint32_t segment = quota_segment();
    for (uint64_t ns : {1000u, 20000000u}) {
        for (int i = 0; i < 20; i++) {
            quota_fail(SEGMENT, ns);
            quota_step();
        }
        EXPECT_EQ(quota_segment(), segment) << ns;
        EXPECT_EQ(built(), usual) << ns;
    }
    EXPECT_TRUE(quota_build(20, 80000, false));
    quota_fail(SEGMENT, 1000000);
    EXPECT_FALSE(quota_build(20, 80000, false)) << "the share is spent";
    quota_step();
}

// Nor do short steps make the segments of the long ones small.
TEST(Quota, SegmentsHaveTheShareOfTheLongestStepLately) {
    Settle();
    for (int i = 0; i < 40; i++)
        quota_step();
    uint32_t least = quota_segment();
    EXPECT_EQ(least, 256u);
    for (int i = 0; i < 2; i++) {
        quota_ops(8000, false);
        quota_step();
        EXPECT_EQ(quota_segment(), 8 * least);
        quota_ops(1, false);
        quota_step();
        EXPECT_GE(quota_segment(), 6 * least);
    }
    for (int i = 0; i < 40; i++)
        quota_step();
    EXPECT_EQ(quota_segment(), least);
    for (uint32_t ops = 900; ops;
         ops = ops * 9 / 10) { // each longer than what the last one faded to
        quota_ops(ops, false);
        quota_step();
        EXPECT_EQ(quota_segment(), least) << ops;
    }
}

// Beside other load a node may take a hundred times as long. What is formed then is large enough to
// be measured, and where nothing is built any more that moment is forgotten.
TEST(Quota, OneBadMomentDoesNotKeepSegmentsSmall) {
    Settle();
    uint32_t usual = quota_segment();
    for (int i = 0; i < 40; i++) {
        quota_build(20, 20 * 250000, false);
        quota_step();
    }
    EXPECT_EQ(quota_segment(), 8u);
    for (int i = 0; i < 40; i++) {
        EXPECT_TRUE(quota_build(8, 8 * 250000, false)) << "one fits always";
        quota_step();
    }
    EXPECT_EQ(quota_segment(), 8u) << "it is slow still";
    for (int i = 0; i < 1000; i++)
        quota_step();
    EXPECT_EQ(quota_segment(), usual);
}

// What graphs save in a step may be spent on more of them: it takes no longer than without any.
TEST(Quota, AStepThatIsInGraphsMayBuildMore) {
    for (int i = 0; i < 40; i++)
        Build(1000, 8000);
    unsigned before = 0, behind = 0;
    quota_ops(1000, false);
    while (quota_build(40, 350000, false))
        before += 40;
    quota_step();
    quota_ops(1000, true);
    while (quota_build(40, 350000, false))
        behind += 40;
    quota_step();
    EXPECT_EQ(before, 40u);  // 500 us
    EXPECT_EQ(behind, 240u); // all that 1000 launches may build
}

} // namespace
