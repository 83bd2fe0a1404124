// Promise: segments get as large as the host's pace, the build quota and the end of the step allow.
// They are formed anew once, soon, if larger ones pay, and end where the host pauses.
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
            program.Op("k" + std::to_string((i * 2654435761u >> 16) % 7), i, i);
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

// What is learned again is shaped by a cold host again: the look is made once more.
TEST(Sizes, SegmentsAreFormedAnewOnceAfterThePathsWereForgotten) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 80; step++) {
        if (step == 40)
            cus_plan_clear(&program.plan);
        program.segments.clear();
        for (unsigned i = 0; i < 1000; i++) {
            cus_plan_paced(&program.plan, 64, 64 * (step % 40 < 5 ? 900 : 100));
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
                before = program.plan.view.n_formed;
        }
        ExpectFaithful(program);
        return program.plan.view.n_formed - before;
    };
    EXPECT_EQ(formed(4, 500, 2400, 1300), 0u) << "sizes double at either pace";
    EXPECT_GT(formed(4, 2000, 900, 400), 0u) << "larger segments are filled in time";
    EXPECT_EQ(formed(64, 50, 2000, 100), 0u) << "the step is one segment at either pace";
    EXPECT_EQ(formed(4, 1000, 100, 60), 0u) << "four segments, and the GPU waits for none";
    EXPECT_GT(formed(4, 1000, 900, 250), 0u) << "fewer segments";
    EXPECT_EQ(formed(4, 400, 290, 200), 0u) << "the host is hardly faster";
    EXPECT_GT(formed(4, 400, 310, 200), 0u);
    EXPECT_GT(formed(64, 500, 2000, 100), 0u);
}

// The second time would cost all graphs again, and the third.
TEST(Sizes, SegmentsAreFormedAnewOnceAtMost) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    std::vector<uint64_t> formed;
    for (int step = 0; step < 1000; step++) {
        bool slow = step < 5 || (step >= 10 && step < 200);
        program.plan.view.build_quota = step < 500 ? 300 : 1000;
        program.segments.clear();
        for (unsigned i = 0; i < 1000; i++) {
            cus_plan_paced(&program.plan, 64, 64 * (slow ? 2000 : 50));
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
        if (step == 5 || step == 20)
            formed.push_back(program.plan.view.n_formed);
    }
    ExpectFaithful(program);
    ExpectCut(program.segments, 1000, 300);
    EXPECT_GT(formed[1], formed[0]);
    EXPECT_EQ(program.plan.view.n_formed, formed[1]);
}

// Of several steps some are always formed while the host is busy: the others need not go for these.
TEST(Sizes, SegmentsAreNotFormedAnewForAFewThatASlowHostShaped) {
    auto formed = [](unsigned slow) {
        Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        for (int round = 0; round < 30; round++)
            for (unsigned which = 0; which < 6; which++) {
                for (unsigned i = 0; i < 200; i++) {
                    cus_plan_paced(&program.plan, 64, 64 * (round < 3 && which < slow ? 300 : 100));
                    program.Op("k" + std::to_string(i ? i % 7 : 10 + which), i, i);
                }
                program.Sync();
            }
        ExpectFaithful(program);
        return program.plan.view.n_formed;
    };
    uint64_t once = formed(0);
    EXPECT_EQ(formed(1), once + 2) << "the slow one has two segments more";
    EXPECT_EQ(formed(5), once + 5 * 2 + once) << "all were formed anew";
}

// Nor for a few that a small quota kept small.
TEST(Sizes, SegmentsAreNotFormedAnewForAFewThatAQuotaShaped) {
    auto formed = [](unsigned small) {
        Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        cus_plan_paced(&program.plan, 64, 64 * 100);
        for (int round = 0; round < 30; round++)
            for (unsigned which = 0; which < 6; which++) {
                program.plan.view.build_quota = round < 3 && which < small ? 40 : 0;
                for (unsigned i = 0; i < 200; i++)
                    program.Op("k" + std::to_string(i ? i % 7 : 10 + which), i, i);
                program.Sync();
            }
        ExpectFaithful(program);
        return program.plan.view.n_formed;
    };
    uint64_t once = formed(0);
    EXPECT_EQ(formed(1), once + 3) << "the small one has three segments more";
    EXPECT_EQ(formed(5), once + 5 * 3 + once) << "all were formed anew";
}

// The first builds are cold, and what a step may build is the less: it is looked at once more,
// soon. A quota of less than the first segment may have counts as that.
TEST(Sizes, SegmentsFollowAQuotaThatIsLargerSoon) {
    const struct {
        uint32_t first, later;
        bool anew;
    } cases[] = {{40, 20, false}, {40, 49, false}, {40, 50, true}, {1, 4, false}, {1, 5, true}};
    for (const auto &c : cases) {
        Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        uint64_t formed = 0;
        program.plan.view.build_quota = c.first;
        for (int step = 0; step < 400; step++) {
            if (step == 4) {
                formed = program.plan.view.n_formed;
                program.plan.view.build_quota = c.later;
            }
            for (unsigned i = 0; i < 1000; i++) {
                if (i % 20 == 19)
                    cus_plan_paced(&program.plan, 64, 64 * 100);
                program.Op("k" + std::to_string(i % 7), i, i);
            }
            program.Sync();
        }
        ASSERT_GT(formed, 8u);
        EXPECT_EQ(program.plan.view.n_formed > formed, c.anew) << c.first << " " << c.later;
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
                before = program.plan.view.n_formed;
                patched = program.patched;
            }
            if (step == 15)
                built = program.built;
        }
        ExpectFaithful(program);
        EXPECT_GT(built, 5u);
        EXPECT_EQ(program.plan.view.n_formed, before) << warm;
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
            formed = program.plan.view.n_formed;
    }
    ExpectFaithful(program);
    EXPECT_GT(formed, 90u);
    EXPECT_EQ(program.plan.view.n_formed, formed);
}

// A thread that waits for a processor in the midst of a segment has not become slow.
TEST(Sizes, OneStallSaysNothingOfTheHostsPace) {
    Program program;
    for (int i = 0; i < 10; i++)
        cus_plan_paced(&program.plan, 64, 64 * 100);
    cus_plan_paced(&program.plan, 64, 3000000);
    EXPECT_LT(program.plan.view.ns_per_op, 200u);
    for (int i = 0; i < 50; i++)
        cus_plan_paced(&program.plan, 64, 64 * 8000);
    EXPECT_GT(program.plan.view.ns_per_op, 7000u) << "but many do";
}

// The smallest segments say least, but not nothing.
TEST(Sizes, FastHostThatBecomesSlowIsNoticedBySmallSegments) {
    Program program;
    for (int i = 0; i < 10; i++)
        cus_plan_paced(&program.plan, 1000, 1000 * 40);
    for (int i = 0; i < 1000; i++)
        cus_plan_paced(&program.plan, 1, 8000);
    EXPECT_GT(program.plan.view.ns_per_op, 7000u);
}

// The first and the last op of a segment cost the host more than those between them.
TEST(Sizes, SmallSegmentsSayLittleOfTheHostsPace) {
    Program program;
    for (int step = 0; step < 10; step++) {
        cus_plan_paced(&program.plan, 3, 3 * 400);
        cus_plan_paced(&program.plan, 23, 23 * 200);
        cus_plan_paced(&program.plan, 900, 900 * 100);
    }
    EXPECT_LT(program.plan.view.ns_per_op, 120u);
}

TEST(Sizes, NoSegmentTakesTheHostLongToFill) {
    for (uint32_t size : SegmentsAtPace(50000, 300))
        EXPECT_LE(size, 10u) << "500 us at 50 us an op";
}

// The GPU is the slower side: the host waits behind each step, for `wait_ns` a step of `ops` ops.
// Returns the sizes of the segments after so many steps.
Sizes SegmentsWithWaits(Program &program, uint64_t pace, unsigned ops, unsigned steps,
                        const std::function<uint64_t(unsigned)> &wait_ns) {
    for (unsigned step = 0; step < steps; step++) {
        program.segments.clear();
        for (unsigned i = 0; i < ops; i++) {
            cus_plan_paced(&program.plan, 64, 64 * pace);
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
        cus_plan_waited(&program.plan, wait_ns(step));
    }
    ExpectFaithful(program);
    return program.segments;
}

uint32_t Largest(const Sizes &segments) {
    return segments.empty() ? 0 : *std::max_element(segments.begin(), segments.end());
}

constexpr uint64_t kIssuing = 300 * 7000; // of a step of 300 ops at 7 us an op

TEST(Sizes, SlowHostThatWaitsForTheGpuGetsSmallSegments) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    Sizes segments = SegmentsWithWaits(program, 7000, 300, 20, [](unsigned) { return kIssuing; });
    EXPECT_EQ(std::accumulate(segments.begin(), segments.end(), 0u), 300u);
    EXPECT_LT(Largest(segments), 16u)
        << "62.5 us at 7 us an op: 8 ops, and less than twice that stays";
    // And larger ones again for what is learned once the GPU is the faster side.
    SegmentsWithWaits(program, 7000, 300, 8, [](unsigned) { return kIssuing / 2 - 1; });
    cus_plan_clear(&program.plan);
    EXPECT_EQ(Largest(SegmentsWithWaits(program, 7000, 300, 4, [](unsigned) { return 0; })), 64u);
}

TEST(Sizes, TheFirstSegmentsAreSmallWhereTheHostWaitedBefore) {
    Program program({30, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    auto waits = [](unsigned) { return kIssuing; };
    EXPECT_TRUE(SegmentsWithWaits(program, 7000, 300, 20, waits).empty());
    EXPECT_TRUE(program.plan.late);
    Sizes segments = SegmentsWithWaits(program, 7000, 300, 20, waits);
    EXPECT_EQ(std::accumulate(segments.begin(), segments.end(), 0u), 300u);
    EXPECT_LT(Largest(segments), 16u);
}

TEST(Sizes, WaitsBeforeThereAreSegmentsAreNoRoundOfFormingAnew) {
    Program program({30, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    auto waits = [](unsigned) { return kIssuing; };
    EXPECT_TRUE(SegmentsWithWaits(program, 7000, 300, 10, waits).empty());
    EXPECT_TRUE(program.plan.late);
    auto none = [](unsigned) { return 0; };
    EXPECT_EQ(Largest(SegmentsWithWaits(program, 7000, 300, 40, none)), 64u);
    EXPECT_LT(Largest(SegmentsWithWaits(program, 7000, 300, 20, waits)), 16u);
}

TEST(Sizes, ASegmentThatIsFormedAnewInAnyCaseIsCountedOnce) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    SegmentsWithWaits(program, 7000, 300, 14, [&program](unsigned step) {
        for (cus_segment *s = program.plan.view.segments; step == 13 && s; s = s->next)
            s->stale = true;
        if (step == 13)
            program.plan.n_stale = program.plan.view.n_segments;
        return step < 10 ? 0 : kIssuing; // the fourth wait makes large segments stale
    });
    EXPECT_TRUE(program.plan.late);
    EXPECT_GT(program.plan.n_stale, 4u);
    EXPECT_EQ(program.plan.n_stale, program.plan.view.n_segments);
}

TEST(Sizes, SlowHostThatWaitsSeldomOrShortlyKeepsItsSegments) {
    auto largest = [](const std::function<uint64_t(unsigned)> &wait_ns) {
        Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        return Largest(SegmentsWithWaits(program, 7000, 300, 40, wait_ns));
    };
    EXPECT_EQ(largest([](unsigned) { return kIssuing / 2 - 1; }), 64u);
    EXPECT_EQ(largest([](unsigned step) { return step % 2 ? kIssuing : 0; }), 64u);
    EXPECT_LT(largest([](unsigned step) { return step % 4 ? kIssuing : 0; }), 16u);
}

TEST(Sizes, FastHostThatWaitsForTheGpuKeepsItsSegments) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    ExpectFewestInTime(SegmentsWithWaits(program, 100, 1000, 20, [](unsigned) { return 1000000; }),
                       1000, 100);
}

// Neither a small build quota is a reason to form segments anew, nor a few ops too many.
TEST(Sizes, SegmentsThatAreFilledSoonStayWhereTheHostWaits) {
    Program program({2, 16, 16, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    auto ids = [&program] {
        std::set<uint32_t> found;
        for (const cus_segment *s = program.plan.view.segments; s; s = s->next)
            found.insert(s->id);
        return found;
    };
    SegmentsWithWaits(program, 1500, 300, 10, [](unsigned) { return 0; });
    std::set<uint32_t> before = ids();
    program.plan.view.build_quota = 4;
    SegmentsWithWaits(program, 1500, 300, 20, [](unsigned) { return kIssuing; });
    EXPECT_EQ(ids(), before);
    EXPECT_GT(before.size(), 10u);
    EXPECT_TRUE(program.plan.late);
}

// Two waits behind one step are one: the second one says nothing.
TEST(Sizes, WaitsWithoutOpsSayNothing) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    auto wait_twice = [&program](unsigned) {
        cus_plan_waited(&program.plan, 0);
        return kIssuing;
    };
    EXPECT_EQ(Largest(SegmentsWithWaits(program, 7000, 300, 20, wait_twice)), 64u);
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
    unsigned formed = (unsigned)program.plan.view.n_formed;
    EXPECT_EQ(EndsOf(SegmentsWithPause(program, 300000, 10000, at)).count(11), 1u);
    EXPECT_EQ(program.plan.view.n_formed, formed) << "for as long as it does";
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
        return program.plan.view.n_formed;
    };
    EXPECT_EQ(formed(60000), formed(0)) << "7 ops take as long";
    EXPECT_GT(formed(120000), formed(0));
}

TEST(Sizes, ShortPausesAndThoseOfChanceCutNothing) {
    Program none, brief, chance;
    SegmentsWithPause(none, 0, 300, [](unsigned) { return 10u; });
    SegmentsWithPause(brief, 30000, 300, [](unsigned) { return 10u; });
    EXPECT_EQ(brief.plan.view.n_formed, none.plan.view.n_formed);
    SegmentsWithPause(chance, 300000, 300, [](unsigned step) { return step * 7 % 64; });
    EXPECT_EQ(chance.plan.view.n_formed, none.plan.view.n_formed);
}

TEST(Sizes, OpsAreTimedSeldom) {
    Program program;
    unsigned timed = 0, steps = 1024;
    for (unsigned step = 0; step < steps; step++) {
        program.Op("a");
        timed += program.plan.view.timed;
        program.Op("b");
        program.Sync();
    }
    EXPECT_GT(timed, 0u);
    EXPECT_LE(timed, 10u);
    EXPECT_EQ(program.in_graphs, 2 * (steps - 2));
}

} // namespace
