// Promise: segments get as large as the host's pace, the build quota and the end of the step allow.
// They are formed again when that pays, and end where the host pauses.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "tests/unit/plan/clock.h"

extern "C" {
#include "shim/plan/step.h"
}

namespace {

// The ops behind which segments of these sizes end.
std::set<uint32_t> EndsOf(const Sizes &segments) {
    std::set<uint32_t> ends;
    uint32_t at = 0;
    for (uint32_t size : segments)
        ends.insert(at += size);
    return ends;
}

// All of the step is in segments, the first of which is small and none larger than `most`.
void ExpectCut(const Sizes &segments, uint32_t ops, uint32_t most) {
    SCOPED_TRACE(testing::PrintToString(segments));
    ASSERT_FALSE(segments.empty());
    EXPECT_EQ(std::accumulate(segments.begin(), segments.end(), 0u), ops);
    EXPECT_EQ(segments.front(), 4u);
    EXPECT_LE(*std::max_element(segments.begin(), segments.end()), most);
}

// That, of a fast host. Behind the first segment each has at least as many ops as the one before,
// but for the last, which is the rest; the GPU waits for none of them for longer than one graph
// more would take it; and it would be done no sooner if two of them were one.
void ExpectFewestInTime(const Sizes &segments, uint32_t ops, double pace) {
    ASSERT_NO_FATAL_FAILURE(ExpectCut(segments, ops, 1024));
    SCOPED_TRACE(testing::PrintToString(segments));
    Times times = Clock(segments, pace);
    EXPECT_LE(times.idle, kGap);
    for (size_t i = 0; i + 1 < segments.size(); i++) {
        EXPECT_TRUE(i + 2 == segments.size() || segments[i] <= segments[i + 1]) << i;
        Sizes fewer = segments;
        fewer[i] += fewer[i + 1];
        fewer.erase(fewer.begin() + (long)i + 1);
        EXPECT_GT(Clock(fewer, pace).done, times.done) << i;
    }
}

// Sizes of the segments of a step of `ops` ops, learned at a host pace of `ns` per op.
Sizes SegmentsAtPace(uint64_t ns, unsigned ops) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 4; step++) {
        program.segments.clear();
        for (unsigned i = 0; i < ops; i++) {
            cus_plan_paced(&program.plan, 64, 64 * ns);
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
    }
    ExpectFaithful(program);
    return program.segments;
}

TEST(Sizes, FastHostFillsFewLargeSegments) {
    ExpectFewestInTime(SegmentsAtPace(100, 1000), 1000, 100);
    ExpectFewestInTime(SegmentsAtPace(160, 240), 240, 160);
    EXPECT_EQ(SegmentsAtPace(100, 1000), (Sizes{4, 17, 94, 550, 335})) << "shim/plan/sizing.md";
}

TEST(Sizes, SlowHostGetsSmallSegmentsTowardsTheEndOfTheStep) {
    Sizes segments = SegmentsAtPace(5000, 300);
    EXPECT_EQ(segments.front(), 4u);
    EXPECT_EQ(*std::max_element(segments.begin(), segments.end()), 64u);
    EXPECT_LE(segments.back(), 4u) << "what is deferred last is what the host then waits for";
}

TEST(Sizes, SegmentsShapedByAColdHostAreFormedAnewOnce) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 40; step++) {
        program.segments.clear();
        for (unsigned i = 0; i < 1000; i++) {
            cus_plan_paced(&program.plan, 64, 64 * (step < 5 ? 900 : 100));
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
    }
    ExpectFaithful(program);
    ExpectFewestInTime(program.segments, 1000, 100);
}

// The host's pace is never quite the same.
TEST(Sizes, SegmentsDoNotFollowAPaceThatWobbles) {
    for (uint64_t ns : {75, 130, 250, 500})
        for (unsigned ops : {60, 240, 1000}) {
            Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
            std::mt19937 random(ops);
            std::set<std::vector<uint32_t>> seen;
            for (int step = 0; step < 400; step++) {
                program.segments.clear();
                uint64_t pace = ns * (80 + random() % 41) / 100;
                for (unsigned i = 0; i < ops; i++) {
                    if (i % 20 == 19)
                        cus_plan_paced(&program.plan, 1000, 1000 * pace);
                    program.Op("k" + std::to_string(i % 7), i, i);
                }
                program.Sync();
                if (step >= 5)
                    seen.insert(program.segments);
            }
            ExpectFaithful(program);
            EXPECT_EQ(seen.size(), 1u) << ops << " ops at " << ns;
        }
}

// Forming segments anew costs every graph of the stream.
TEST(Sizes, SegmentsAreFormedAnewWhereThatIsWorthIt) {
    auto formed = [](uint32_t segment_first, unsigned ops, uint64_t cold, uint64_t warm) {
        Program program({2, segment_first, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        uint64_t before = 0;
        for (int step = 0; step < 100; step++) {
            for (unsigned i = 0; i < ops; i++) {
                cus_plan_paced(&program.plan, 64, 64 * (step < 5 ? cold : warm));
                program.Op("k" + std::to_string(i % 7), i, i);
            }
            program.Sync();
            if (step == 6)
                before = program.plan.n_formed;
        }
        ExpectFaithful(program);
        return program.plan.n_formed - before;
    };
    EXPECT_EQ(formed(4, 500, 2400, 1300), 0u) << "sizes double at either pace";
    EXPECT_GT(formed(4, 2000, 900, 500), 0u) << "larger segments are filled in time";
    EXPECT_EQ(formed(64, 50, 2000, 100), 0u) << "the step is one segment at either pace";
    EXPECT_EQ(formed(4, 1000, 100, 60), 0u) << "four segments, and the GPU waits for none";
    EXPECT_GT(formed(4, 1000, 900, 250), 0u) << "fewer segments";
    EXPECT_GT(formed(64, 500, 2000, 100), 0u);
}

// A graph fewer in a step is worth it where the program goes on for long enough: as its host was
// not quite warm when they were formed, or builds were not, and a step might hold less then.
struct Long {
    uint64_t soon, late; // segments formed
    size_t segments;     // of the last step
};
Long InTheLongRun(const std::function<void(Program &, unsigned)> &before, unsigned kinds = 1,
                  unsigned break_at = 240) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    Long all = {};
    for (unsigned step = 0; step < 7000 * kinds; step++) {
        before(program, step / kinds);
        program.segments.clear();
        for (unsigned i = 0; i < 240; i++) {
            program.Op("k" + std::to_string(step % kinds * 7 + i % 7), i, i);
            if (i + 1 == break_at)
                program.Break();
        }
        program.Sync();
        if (step / kinds == 100)
            all.soon = program.plan.n_formed;
    }
    ExpectFaithful(program);
    all.late = program.plan.n_formed - all.soon;
    all.segments = program.segments.size();
    return all;
}
void Pace(Program &program, uint64_t ns) {
    for (int i = 0; i < 20; i++)
        cus_plan_paced(&program.plan, 1000, 1000 * ns);
}

TEST(Sizes, SegmentsAreFormedAnewWhereThatPaysInTheLongRun) {
    auto warms = [](uint64_t ns) {
        return [ns](Program &program, unsigned step) { Pace(program, step < 30 ? 100 : ns); };
    };
    Long faster = InTheLongRun(warms(60));
    EXPECT_LT(faster.segments, faster.soon) << "a graph fewer";
    EXPECT_EQ(faster.late, faster.segments) << "once";
    EXPECT_EQ(InTheLongRun(warms(95)).late, 0u) << "as many";
    EXPECT_EQ(InTheLongRun(warms(84)).late, 0u) << "one less, but the GPU waits for it";
    Long many = InTheLongRun(warms(60), 4);
    EXPECT_EQ(many.soon, 4 * faster.soon);
    EXPECT_EQ(many.late, 4 * faster.late) << "once each, when that many have come as often";
    EXPECT_EQ(InTheLongRun(warms(60), 1, 120).late, 0u)
        << "one ends where a call is, and would again";
}

// A segment whose first graph waits has cost nothing yet, but would once more.
TEST(Sizes, SegmentsThatWaitAreNotFormedAnewSooner) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    program.later = true;
    program.may_begin = false;
    for (unsigned step = 0; step < 100; step++) {
        Pace(program, step < 10 ? 100 : 60);
        program.may_begin = step >= 60;
        for (unsigned i = 0; i < 240; i++)
            program.Op("k" + std::to_string(i % 7), i, i);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.plan.n_formed, program.plan.n_segments) << "none twice";
    EXPECT_EQ(program.built, program.plan.n_segments);
}

TEST(Sizes, SegmentsFollowAShareThatIsSomewhatLargerWhereThatPaysInTheLongRun) {
    auto build_quota = [](uint32_t later) {
        return InTheLongRun([later](Program &program, unsigned step) {
            program.plan.build_quota = step < 30 ? 180 : later;
            Pace(program, 50);
        });
    };
    Long all = build_quota(250);
    EXPECT_LT(all.segments, all.soon);
    EXPECT_EQ(all.late, all.segments) << "once";
    EXPECT_EQ(build_quota(230).late, 0u) << "not all of it may be built in one step";
}

// Of a step that is longer than its share as many go at a time as the share is: what begins behind
// goes with them where one segment has room for it, and all are formed anew once the share is
// larger.
struct Shares {
    uint32_t first, later; // behind 20 steps
    unsigned steps;
    unsigned shapes = 1, ops = 240;
    unsigned marker = 0; // op that begins another part of the step; 0: none
};
Sizes SegmentsOf(const Shares &quotas, uint64_t *formed = nullptr) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    cus_step_rule rule = {};
    rule.marker = "marker";
    rule.tokens = CUS_STEP_X;
    rule.tokens_each = 1;
    program.Kind("marker")->step = &rule;
    for (unsigned step = 0; step < quotas.steps; step++) {
        program.plan.build_quota = step < 20 ? quotas.first : quotas.later;
        Pace(program, step < 5 ? 900 : 50);
        program.segments.clear();
        for (unsigned i = 0; i < quotas.ops; i++)
            program.Op(i && i == quotas.marker ? "marker" : "k" + std::to_string(i % 7), i, i,
                       1 + step % quotas.shapes);
        program.Sync();
    }
    ExpectFaithful(program);
    if (formed)
        *formed = program.plan.n_formed;
    return program.segments;
}
TEST(Sizes, SegmentsFormedShareByShareNeedNotEndWhereTheSharesDid) {
    Sizes early = SegmentsOf({88, 88, 6}), late = SegmentsOf({88, 88, 20});
    ExpectCut(early, 240, 88);
    ExpectCut(late, 240, 88);
    EXPECT_LT(late.size(), early.size());
    uint32_t share_end = 0; // of the first share: as many of the early ones as go into it
    for (uint32_t end : EndsOf(early))
        share_end = end <= 88 ? end : share_end;
    EXPECT_EQ(EndsOf(late).count(share_end), 0u) << "what begins there went with the one before";
    Sizes twice = SegmentsOf({88, 88, 20, 2});
    ExpectCut(twice, 240, 88);
    EXPECT_EQ(EndsOf(twice).count(share_end), 1u) << "what has two graphs goes by itself";
    // A larger share is followed by what the smaller one kept small, wherever it ends.
    Sizes small = SegmentsOf({130, 130, 800, 1, 1000}),
          large = SegmentsOf({130, 256, 800, 1, 1000});
    ExpectCut(small, 1000, 130);
    ExpectCut(large, 1000, 256);
    EXPECT_LT(large.size(), small.size());
    EXPECT_GT(*std::max_element(large.begin(), large.end()), 130u);
}
TEST(Sizes, SegmentsFormedShareByShareAreFormedAnewWhereThatPays) {
    Sizes before = SegmentsOf({88, 88, 20}), after = SegmentsOf({88, 250, 800});
    EXPECT_EQ(SegmentsOf({88, 250, 300}), before) << "not so soon";
    ExpectFewestInTime(after, 240, 50);
    EXPECT_LT(after.size(), before.size());
    EXPECT_EQ(SegmentsOf({88, 230, 800}), before) << "not all of it may be built in one step";
    for (unsigned marker : {80, 100, 120, 140, 160}) {
        uint64_t before, after;
        SegmentsOf({.first = 88, .later = 250, .steps = 50, .marker = marker}, &before);
        SegmentsOf({.first = 88, .later = 250, .steps = 800, .marker = marker}, &after);
        EXPECT_EQ(after, before) << "one ends in front of a marker, and would again";
    }
}

// However the pace wobbles between what three and what four graphs are best for.
TEST(Sizes, SegmentsAreSeldomFormedAnewInTheLongRun) {
    std::mt19937 random(1);
    Long all = InTheLongRun([&](Program &program, unsigned step) {
        Pace(program, (step / 100 % 2 ? 80 : 95) + random() % 20);
    });
    EXPECT_LE(all.late, 4u) << "once";
}

// Of many steps some are always formed while the host is busy: the others need not go for these.
TEST(Sizes, SegmentsAreNotFormedAnewForAFewThatASlowHostShaped) {
    auto formed = [](unsigned slow) {
        Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        for (int round = 0; round < 30; round++)
            for (unsigned which = 0; which < 40; which++) {
                for (unsigned i = 0; i < 100; i++) {
                    cus_plan_paced(&program.plan, 64, 64 * (round < 4 && which < slow ? 900 : 100));
                    program.Op("k" + std::to_string(i ? i % 7 : 10 + which), i, i);
                }
                program.Sync();
            }
        ExpectFaithful(program);
        EXPECT_GT(program.plan.n_paced, 0u);
        cus_plan_clear(&program.plan);
        EXPECT_EQ(program.plan.n_paced, 0u) << "they are gone";
        EXPECT_EQ(program.plan.paces, 0u);
        return program.plan.n_formed;
    };
    uint64_t once = formed(0);
    EXPECT_LT(formed(4), once * 5 / 4);
    EXPECT_GT(formed(36), once * 7 / 4);
}

// What one step may build is never quite the same either.
void FollowShare(bool small) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    auto formed = [&](uint32_t build_quota) {
        uint64_t before = program.plan.n_formed;
        program.plan.build_quota = build_quota;
        for (int step = 0; step < 400; step++) {
            for (unsigned i = 0; i < 1000; i++) {
                if (i % 20 == 19)
                    cus_plan_paced(&program.plan, 64, 64 * 100);
                program.Op("k" + std::to_string(i % 7), i, i);
            }
            program.Sync();
        }
        return program.plan.n_formed - before;
    };
    EXPECT_GT(formed(small ? 1 : 100), 0u);
    EXPECT_GT(program.plan.n_bounded, 0u);
    EXPECT_EQ(formed(small ? 7 : 150), 0u);
    EXPECT_EQ(formed(small ? 3 : 50), 0u);
    EXPECT_GT(formed(small ? 8 : 200), 0u);
    ExpectFaithful(program);
    cus_plan_clear(&program.plan);
    EXPECT_EQ(program.plan.n_bounded, 0u) << "they are gone";
    EXPECT_EQ(program.plan.quotas, 0u);
}
TEST(Sizes, SegmentsFollowAShareThatIsTwiceAsLarge) {
    FollowShare(false);
    FollowShare(true); // less than the first segment may have: segments have that
}

// The first builds are cold, and what a step may build is the less: it is looked at once more,
// soon.
TEST(Sizes, FirstSegmentsFollowAShareThatIsSomewhatLarger) {
    for (uint32_t build_quota : {120, 160}) {
        Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        uint64_t formed = 0;
        program.plan.build_quota = 100;
        for (int step = 0; step < 400; step++) {
            if (step == 4) {
                formed = program.plan.n_formed;
                program.plan.build_quota = build_quota;
            }
            for (unsigned i = 0; i < 1000; i++) {
                if (i % 20 == 19)
                    cus_plan_paced(&program.plan, 64, 64 * 100);
                program.Op("k" + std::to_string(i % 7), i, i);
            }
            program.Sync();
        }
        ASSERT_GT(formed, 8u);
        EXPECT_EQ(program.plan.n_formed > formed, build_quota == 160) << build_quota;
        ExpectFaithful(program);
    }
}

// Each segment that is formed anew misses once for every shape: not after the third round of five.
// Where it ends at an op at which none ended before, shapes come there unknown: they are patched
// into the graphs of others, the last of which is built again at the beginning of the fourth round.
TEST(Sizes, SegmentsOfFiveShapesInTurnAreSettledInThreeRounds) {
    for (uint64_t warm : {900, 350, 200, 100}) {
        Program program({2, 4, 1024, 500000, 8, 100000, CUS_MODE_PIECEWISE, false});
        uint64_t before = 0;
        unsigned built = 0, patched = 0;
        for (int step = 0; step < 500; step++) {
            for (unsigned i = 0; i < 60; i++) {
                cus_plan_paced(&program.plan, 64, 64 * (step < 5 ? 2000 : warm));
                program.Op("k" + std::to_string(i % 7), i, i, 1 + step % 5);
            }
            program.Sync();
            if (step == 14) {
                before = program.plan.n_formed;
                patched = program.patched;
            }
            if (step == 15)
                built = program.built;
        }
        ExpectFaithful(program);
        EXPECT_GT(built, 5u);
        EXPECT_EQ(program.plan.n_formed, before) << warm;
        EXPECT_EQ(program.patched, patched) << warm;
        EXPECT_EQ(program.built, built) << warm;
    }
}

// First execs that may not be built in a step wait until they are begun, or are gone.
TEST(Sizes, WhatIsPutOffWaitsUntilItIsBegun) {
    Program program;
    auto steps = [&](const char *name, int n) {
        for (; n; n--) {
            for (unsigned i = 0; i < 20; i++)
                program.Op(name + std::to_string(i), i, i);
            program.Sync();
        }
    };
    EXPECT_FALSE(cus_plan_put_off_lately(&program.plan));
    program.later = true;
    program.may_begin = false;
    steps("a", 5);
    EXPECT_TRUE(cus_plan_put_off_lately(&program.plan));
    uint32_t waiting = program.plan.n_waiting;
    EXPECT_GT(waiting, 0u);
    steps("a", 5);
    EXPECT_EQ(program.plan.n_waiting, waiting) << "each counts once";
    program.may_begin = true;
    steps("a", 1);
    EXPECT_FALSE(cus_plan_put_off_lately(&program.plan));
    program.may_begin = false;
    steps("b", 5);
    EXPECT_TRUE(cus_plan_put_off_lately(&program.plan));
    cus_plan_clear(&program.plan);
    EXPECT_EQ(program.plan.n_waiting, 0u);
}

// Where breaks shape nearly all segments they would be the same at another pace.
TEST(Sizes, SegmentsThatBreaksShapeAreNotFormedAnew) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    uint64_t formed = 0;
    for (int step = 0; step < 200; step++) {
        for (unsigned i = 0; i < 400; i++) {
            cus_plan_paced(&program.plan, 64, 64 * (step < 5 ? 2000 : 100));
            program.Op("k" + std::to_string(i % 7), i, i);
            if (i % 4 == 3 && i < 360)
                program.Break();
        }
        program.Sync();
        if (step == 5)
            formed = program.plan.n_formed;
    }
    ExpectFaithful(program);
    EXPECT_GT(formed, 90u);
    EXPECT_EQ(program.plan.n_formed, formed);
}

// A thread that waits for a processor in the midst of a segment has not become slow.
TEST(Sizes, OneStallSaysNothingOfTheHostsPace) {
    Program program;
    for (int i = 0; i < 10; i++)
        cus_plan_paced(&program.plan, 64, 64 * 100);
    cus_plan_paced(&program.plan, 64, 3000000);
    EXPECT_LT(program.plan.ns_per_op, 200u);
    for (int i = 0; i < 50; i++)
        cus_plan_paced(&program.plan, 64, 64 * 8000);
    EXPECT_GT(program.plan.ns_per_op, 7000u) << "but many do";
}

// The smallest segments say least, but not nothing.
TEST(Sizes, FastHostThatBecomesSlowIsNoticedBySmallSegments) {
    Program program;
    for (int i = 0; i < 10; i++)
        cus_plan_paced(&program.plan, 1000, 1000 * 40);
    for (int i = 0; i < 1000; i++)
        cus_plan_paced(&program.plan, 1, 8000);
    EXPECT_GT(program.plan.ns_per_op, 7000u);
}

// Threads in the way of each other shape small segments, again when they are formed anew.
TEST(Sizes, SegmentsShapedByAHostInDistressAreFormedAnewAgain) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    std::vector<unsigned> formed;
    for (int step = 0; step < 2000; step++) {
        bool slow = step < 5 || (step > 7 && step < 15);
        program.segments.clear();
        for (unsigned i = 0; i < 1000; i++) {
            cus_plan_paced(&program.plan, 64, 64 * (slow ? 2000 : 100));
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
        if (step == 15 || step == 100)
            formed.push_back((unsigned)program.plan.n_formed);
    }
    ExpectFaithful(program);
    ExpectFewestInTime(program.segments, 1000, 100);
    EXPECT_GT(formed[1], formed[0]);
    EXPECT_EQ(program.plan.n_formed, formed[1]) << "and then no more";
}

// The first and the last op of a segment cost the host more than those between them.
TEST(Sizes, SmallSegmentsSayLittleOfTheHostsPace) {
    Program program;
    for (int step = 0; step < 10; step++) {
        cus_plan_paced(&program.plan, 3, 3 * 400);
        cus_plan_paced(&program.plan, 23, 23 * 200);
        cus_plan_paced(&program.plan, 900, 900 * 100);
    }
    EXPECT_LT(program.plan.ns_per_op, 120u);
}

TEST(Sizes, NoSegmentTakesTheHostLongToFill) {
    for (uint32_t size : SegmentsAtPace(50000, 300))
        EXPECT_LE(size, 10u) << "500 us at 50 us an op";
}

// Steps of 64 ops between which the host pauses behind op `at(step)` for `ns`. Returns the sizes of
// the segments of the last step.
Sizes SegmentsWithPause(Program &program, uint64_t ns, unsigned steps,
                        const std::function<unsigned(unsigned)> &at) {
    for (unsigned step = 0; step < steps; step++) {
        program.segments.clear();
        for (unsigned i = 0; i < 64; i++) {
            program.Op("k" + std::to_string(i % 7), i, i);
            if (i == at(step))
                program.now += ns;
        }
        program.Sync();
    }
    ExpectFaithful(program);
    return program.segments;
}

TEST(Sizes, SegmentEndsWhereTheHostPauses) {
    Program program;
    auto at = [](unsigned) { return 10u; };
    EXPECT_EQ(EndsOf(SegmentsWithPause(program, 300000, 5, at)).count(11), 0u) << "not known yet";
    EXPECT_EQ(EndsOf(SegmentsWithPause(program, 300000, 20, at)).count(11), 1u);
    unsigned formed = (unsigned)program.plan.n_formed;
    EXPECT_EQ(EndsOf(SegmentsWithPause(program, 300000, 10000, at)).count(11), 1u);
    EXPECT_EQ(program.plan.n_formed, formed) << "for as long as it does";
}

TEST(Sizes, SegmentEndsAtEachOfTwoPauses) {
    Program program;
    for (unsigned step = 0; step < 200; step++) {
        program.segments.clear();
        for (unsigned i = 0; i < 64; i++) {
            program.Op("k" + std::to_string(i % 7), i, i);
            if (i == 32 || i == 50)
                program.now += 300000 + step * (i == 32 ? 7919 : 104729) % 20000;
        }
        program.Sync();
    }
    ExpectFaithful(program);
    std::set<uint32_t> ends = EndsOf(program.segments);
    EXPECT_EQ(ends.count(33), 1u);
    EXPECT_EQ(ends.count(51), 1u);
}

// Of a host that takes 10 us from op to op.
TEST(Sizes, WhatIsNoPauseForASlowHostCutsNothing) {
    auto formed = [](uint64_t ns) {
        Program program;
        for (unsigned step = 0; step < 300; step++) {
            for (unsigned i = 0; i < 64; i++) {
                program.now += 9000;
                program.Op("k" + std::to_string(i % 7), i, i);
                if (i % 8 == 6) // again and again: less than half of a small segment's time
                    program.now += ns;
            }
            program.Sync();
        }
        ExpectFaithful(program);
        return program.plan.n_formed;
    };
    EXPECT_EQ(formed(60000), formed(0)) << "7 ops take as long";
    EXPECT_GT(formed(120000), formed(0));
}

TEST(Sizes, ShortPausesAndThoseOfChanceCutNothing) {
    Program none, brief, chance;
    SegmentsWithPause(none, 0, 300, [](unsigned) { return 10u; });
    SegmentsWithPause(brief, 30000, 300, [](unsigned) { return 10u; });
    EXPECT_EQ(brief.plan.n_formed, none.plan.n_formed);
    SegmentsWithPause(chance, 300000, 300, [](unsigned step) { return step * 7 % 64; });
    EXPECT_EQ(chance.plan.n_formed, none.plan.n_formed);
}

TEST(Sizes, OpsAreTimedSeldom) {
    Program program;
    unsigned timed = 0, steps = 1024;
    for (unsigned step = 0; step < steps; step++) {
        program.Op("a");
        timed += program.plan.timed;
        program.Op("b");
        program.Sync();
    }
    EXPECT_GT(timed, 0u);
    EXPECT_LE(timed, 10u);
    EXPECT_EQ(program.in_graphs, 2 * (steps - 2));
}

} // namespace
