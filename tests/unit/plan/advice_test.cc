// Promise: what paid in an earlier run is in segments after its path came once, with the same ends.
// Wrong or foreign advice costs builds and nothing else; advice is used once.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <functional>

extern "C" {
#include "shim/plan/advice.h"
}

namespace {

using Entries = std::vector<cus_cache_entry>;
const cus_plan_limits kLimits = {2, 4, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false};

// What one process knows from others.
struct Known {
    explicit Known(Entries from) : entries(std::move(from)) {
        entries.resize(cus_cache_sort(entries.data(), (uint32_t)entries.size()));
        marks.resize(entries.size());
        advice = {entries.data(), (uint32_t)entries.size(), marks.data(), 0, 0, 0};
    }
    Entries entries;
    std::vector<uint8_t> marks;
    cus_advice advice;
};

void Step(Program &program, unsigned ops, const std::string &names = "k") {
    for (unsigned i = 0; i < ops; i++)
        program.Op(names + std::to_string(i % 7), i);
    program.Sync();
}

Entries Told(const Program &program) {
    Entries entries;
    cus_cache_entry entry;
    for (const cus_segment *segment = program.plan.view.segments; segment; segment = segment->next)
        if (cus_advice_of(segment, &entry))
            entries.push_back(entry);
    return entries;
}

// A run that knows nothing, and what it leaves behind. The break behind op 20 cuts its segments.
Entries Learn(uint64_t seed = 1, int steps = 20) {
    Program program(kLimits);
    cus_plan_advise(&program.plan, nullptr, seed);
    for (int i = 0; i < steps; i++)
        Step(program, 100);
    return Told(program);
}

TEST(Advice, SecondStepIsAllInSegmentsCutAsBefore) {
    Program before(kLimits);
    cus_plan_advise(&before.plan, nullptr, 1);
    for (int i = 0; i < 20; i++)
        Step(before, 100);
    before.ResetCounts();
    Step(before, 100);

    Known known(Told(before));
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    Step(program, 100);
    EXPECT_EQ(program.in_graphs, 0u) << "the first step is what every launch's first sight is";
    EXPECT_EQ(program.eager, 100u);
    EXPECT_EQ(known.advice.reached, known.entries.size());
    program.ResetCounts();
    Step(program, 100);
    EXPECT_EQ(program.in_graphs, 100u);
    EXPECT_EQ(program.built, known.entries.size());
    EXPECT_EQ(known.advice.formed, known.entries.size());
    EXPECT_EQ(program.segments, before.segments);
    program.ResetCounts();
    for (int i = 0; i < 30; i++)
        Step(program, 100);
    EXPECT_EQ(program.built, 0u) << "sizes are not looked for once more";
    EXPECT_EQ(program.in_graphs, 3000u);
    ExpectFaithful(program);
}

// A step that follows an earlier run's path is no loop; one that goes on far behind that path may
// be.
TEST(Advice, ALoopFarBehindItIsBelieved) {
    auto step = [](Program &program, unsigned turns) {
        for (unsigned i = 0; i < 20; i++)
            program.Op("k" + std::to_string(i), i);
        for (unsigned i = 0; i < turns * 5; i++)
            program.Op("l" + std::to_string(i % 5), i % 5);
        program.Sync();
    };
    Program before(kLimits);
    cus_plan_advise(&before.plan, nullptr, 1);
    for (int i = 0; i < 20; i++)
        step(before, 0);
    Known known(Told(before));
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    step(program, 600);
    ASSERT_GT(known.advice.reached, 0u);
    EXPECT_LT(program.plan.tree.n_nodes, 2700u) << "its turns have nodes of their own no more";
    ExpectFaithful(program);
}

TEST(Advice, WithoutItTheSecondStepIsEager) {
    Program program(kLimits);
    Step(program, 100);
    Step(program, 100);
    EXPECT_EQ(program.in_graphs, 0u);
}

TEST(Advice, BoundariesOfTheEarlierRunHold) {
    auto step = [](Program &program) {
        for (unsigned i = 0; i < 60; i++) {
            program.Op("k" + std::to_string(i), i);
            if (i == 20 || i == 31)
                program.Break();
        }
        program.Sync();
    };
    Program before(kLimits);
    for (int i = 0; i < 20; i++)
        step(before);
    Known known(Told(before));
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 0);
    step(program);
    program.ResetCounts();
    step(program);
    EXPECT_EQ(program.in_graphs, 60u);
    EXPECT_EQ(program.flushes, 0u) << "nothing is deferred where the break comes";
    ExpectFaithful(program);
}

TEST(Advice, AnotherSeedKernelOrStepIsAnotherPath) {
    Known known(Learn(1));
    ASSERT_GT(known.entries.size(), 2u);
    const std::function<void(Program &)> others[] = {
        [](Program &p) {
            cus_plan_advise(&p.plan, p.plan.advice, 2);
            Step(p, 100);
        },
        [](Program &p) { Step(p, 100, "other"); },
        [](Program &p) {
            p.Op("first");
            Step(p, 100);
        },
    };
    for (const auto &other : others) {
        Program program(kLimits);
        cus_plan_advise(&program.plan, &known.advice, 1);
        other(program);
        other(program);
        EXPECT_EQ(program.in_graphs, 0u);
        EXPECT_EQ(known.advice.reached, 0u);
        other(program);
        other(program);
        EXPECT_GT(program.in_graphs, 0u) << "it is learned as ever";
        ExpectFaithful(program);
    }
}

TEST(Advice, AProgramThatEndsOtherwiseUsesWhatIsTheSame) {
    Known known(Learn());
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    auto step = [](Program &p) {
        for (unsigned i = 0; i < 100; i++)
            p.Op((i < 50 ? "k" : "z") + std::to_string(i % 7), i);
        p.Sync();
    };
    step(program);
    step(program);
    EXPECT_GT(program.in_graphs, 10u);
    EXPECT_LE(program.in_graphs, 50u);
    for (int i = 0; i < 10; i++)
        step(program);
    program.ResetCounts();
    step(program);
    EXPECT_EQ(program.in_graphs, 100u);
    ExpectFaithful(program);
}

// Every path of the program, each with a length of its own: what an enemy who knows all could
// write.
TEST(Advice, HostileEntriesCostBuildsAndNothingElse) {
    Program scout(kLimits);
    cus_plan_advise(&scout.plan, nullptr, 1);
    Step(scout, 100);
    for (unsigned length : {2u, 3u, 50u, 100u, 101u, 1024u}) {
        SCOPED_TRACE(length);
        Entries entries;
        for (const cus_node *node = scout.plan.tree.root.expect; node; node = node->expect)
            entries.push_back({node->path, length, UINT32_MAX, UINT32_MAX, UINT32_MAX});
        Known known(entries);
        Program program(kLimits);
        cus_plan_advise(&program.plan, &known.advice, 1);
        for (int i = 0; i < 40; i++)
            Step(program, 100);
        ExpectFaithful(program);
        EXPECT_LE(program.built, 100u) << "each op is in one segment, formed once or twice";
        program.ResetCounts();
        Step(program, 100);
        EXPECT_GE(program.in_graphs, 98u);
        EXPECT_EQ(program.built, 0u);
    }
}

TEST(Advice, WhatNeverComesAgainIsBuiltOnceAtMost) {
    Known known(Learn());
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    Step(program, 100);
    for (int i = 0; i < 50; i++)
        Step(program, 60, "n" + std::to_string(i));
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(Told(program).size(), 0u);
    ExpectFaithful(program);
}

TEST(Advice, OnlyWhatPaidIsTold) {
    EXPECT_EQ(Learn(1, 2).size(), 0u);
    EXPECT_EQ(Learn(1, 4).size(), 0u) << "launched twice";
    EXPECT_GT(Learn(1, 12).size(), 2u);
    // A segment that is cut at most of its launches.
    Program program(kLimits);
    for (int i = 0; i < 12; i++)
        Step(program, 4);
    ASSERT_EQ(Told(program).size(), 1u);
    const cus_segment *segment = program.plan.view.segments;
    const_cast<cus_segment *>(segment)->lost.n = segment->begun;
    EXPECT_EQ(Told(program).size(), 0u);
}

// Where it was launched whole, the host waits in its midst now.
TEST(Advice, WithoutAGraphOnlyWhatWasAdvisedIsTold) {
    Program program(kLimits);
    Step(program, 20);
    Step(program, 20);
    Step(program, 20);
    cus_segment *segment = program.plan.view.segments;
    ASSERT_NE(segment, nullptr);
    cus_cache_entry entry;
    segment->nodes[0]->advised = 1; // an earlier run found that it pays
    EXPECT_TRUE(cus_advice_of(segment, &entry));
    uint32_t variants = segment->n_variants;
    segment->n_variants = 0;
    EXPECT_FALSE(cus_advice_of(segment, &entry));
    segment->advised = true;
    EXPECT_TRUE(cus_advice_of(segment, &entry));
    uint64_t fired = segment->fired;
    segment->fired = UINT64_MAX;
    EXPECT_TRUE(cus_advice_of(segment, &entry));
    EXPECT_EQ(entry.launches, UINT32_MAX) << "more than an entry can say";
    segment->n_variants = variants;
    segment->fired = fired;
}

TEST(Advice, WhatIsCutMoreOftenThanNotIsDropped) {
    Program before(kLimits);
    for (int i = 0; i < 12; i++)
        Step(before, 4);
    Known known(Told(before));
    ASSERT_EQ(known.entries.size(), 1u);
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 0);
    Step(program, 4);
    for (int i = 0; i < 60; i++) {
        program.Op("k0", 0);
        program.Op("k1", 1);
        // By chance: no boundary is learned.
        if (program.plan.view.segment)
            program.Flush(CUS_CUT_OTHER);
        program.Op("k2", 2);
        program.Op("k3", 3);
        program.Sync();
    }
    EXPECT_EQ(known.advice.bad, 1u);
    EXPECT_TRUE(known.marks[0] & CUS_ADVICE_BAD);
    ExpectFaithful(program);
}

TEST(Advice, OfTwoCutsTheLaterOneHolds) {
    Program scout(kLimits);
    cus_plan_advise(&scout.plan, nullptr, 1);
    Step(scout, 100);
    Entries both;
    unsigned i = 0;
    for (const cus_node *node = scout.plan.tree.root.expect; node; node = node->expect)
        if (++i % 10 == 0)
            both.push_back({node->path, 10, 0, 9, 1}); // 10, 20, 30 ...
        else if (i % 25 == 0)
            both.push_back({node->path, 25, 0, 4, 1}); // 25, 75
    Known known(both);
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    Step(program, 100);
    Step(program, 100);
    EXPECT_EQ(program.segments, std::vector<uint32_t>(10, 10));
    // The other way round: the cut that is reached last is the later one.
    for (cus_cache_entry &entry : both)
        entry.used = entry.ops == 10 ? 4 : 9;
    Known other(both);
    Program again(kLimits);
    cus_plan_advise(&again.plan, &other.advice, 1);
    Step(again, 100);
    Step(again, 100);
    EXPECT_EQ(again.segments[0], 25u);
}

TEST(Advice, AShortRunKeepsWhatALongOneKnew) {
    Entries first = Learn();
    Known known(first);
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    Step(program, 100);
    Step(program, 100);
    EXPECT_EQ(Told(program).size(), first.size());
    for (const cus_cache_entry &entry : Told(program)) {
        uint32_t at =
            cus_cache_find(known.entries.data(), (uint32_t)known.entries.size(), entry.path);
        ASSERT_LT(at, known.entries.size());
        EXPECT_EQ(known.entries[at].ops, entry.ops);
    }
}

// Segments of 4, which were right at this pace.
Entries SmallSegments(uint32_t pace_ns) {
    Program scout(kLimits);
    cus_plan_advise(&scout.plan, nullptr, 1);
    Step(scout, 100);
    Entries entries;
    unsigned i = 0;
    for (const cus_node *node = scout.plan.tree.root.expect; node; node = node->expect)
        if (++i % 4 == 0)
            entries.push_back({node->path, 4, pace_ns, 1, 1});
    return entries;
}

// The host was no colder when they were formed than it is in any run.
TEST(Advice, SegmentsOfALittleSlowerHostStay) {
    Known known(SmallSegments(400));
    Program program({2, 4, 64, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
    cus_plan_advise(&program.plan, &known.advice, 1);
    Step(program, 100);
    for (int step = 0; step < 20; step++) {
        Step(program, 100);
        program.plan.view.ns_per_op = 200;
    }
    EXPECT_EQ(program.built, 25u);
    EXPECT_EQ(program.segments, std::vector<uint32_t>(20 * 25, 4));
}

TEST(Advice, WhatIsForgottenIsAdvisedAnew) {
    Known known(Learn());
    Program program(kLimits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    for (int round = 0; round < 2; round++) {
        Step(program, 100);
        program.ResetCounts();
        Step(program, 100);
        EXPECT_EQ(program.in_graphs, 100u);
        cus_plan_clear(&program.plan); // as where code is unloaded
    }
}

// Small segments were right for a slow host. They stay unless this one is four times as fast.
TEST(Advice, SegmentsOfAnotherPaceAreFormedAnew) {
    auto segments = [](uint64_t ns, unsigned in_graphs) {
        Known known(SmallSegments(50000));
        Program program({2, 4, 64, 500000, 4, 100000, CUS_MODE_PIECEWISE, false});
        cus_plan_advise(&program.plan, &known.advice, 1);
        Step(program, 100);
        Step(program, 100);
        EXPECT_EQ(program.segments.size(), 25u);
        for (int step = 0; step < 20; step++) {
            cus_plan_paced(&program.plan, 64, 64 * ns);
            Step(program, 100);
        }
        program.ResetCounts();
        Step(program, 100);
        EXPECT_EQ(program.in_graphs, in_graphs);
        ExpectFaithful(program);
        return program.segments.size();
    };
    EXPECT_LT(segments(300, 100), 8u);
    EXPECT_LT(segments(12000, 99), 25u) << "one op is left for the end of the step";
    EXPECT_EQ(segments(13000, 100), 25u);
}

// A long step whose ops come round again, behind short ones, looks like a loop that never waits.
// One that an earlier run knew as a step does not.
TEST(Advice, AKnownStepIsNoLoop) {
    auto run = [](cus_advice *advice, Program &program) {
        cus_plan_advise(&program.plan, advice, 1);
        Step(program, 20, "first");
        Step(program, 1000);
    };
    Program before(kLimits), without(kLimits), program(kLimits);
    run(nullptr, before);
    for (int i = 0; i < 20; i++)
        Step(before, 1000);
    Known known(Told(before));
    ASSERT_GT(known.entries.size(), 10u);
    for (Program *again : {&without, &program}) {
        run(again == &program ? &known.advice : nullptr, *again);
        again->ResetCounts();
        Step(*again, 1000);
        ExpectFaithful(*again);
    }
    EXPECT_EQ(program.in_graphs, 1000u);
    EXPECT_LT(without.in_graphs, 500u) << "nothing is shown where it is no loop anyway";
}

// The steps of one run are a loop in another, which does not wait: it is found, even where the
// known path is longer than the tree has room for.
TEST(Advice, AKnownPathIsALoopAllTheSame) {
    cus_plan_limits limits = kLimits;
    limits.segment_max = 1024;
    Program before(limits);
    cus_plan_advise(&before.plan, nullptr, 1);
    for (int i = 0; i < 24; i++)
        Step(before, 2000);
    Known known(Told(before));
    limits.nodes_max = 17500;
    Program program(limits);
    cus_plan_advise(&program.plan, &known.advice, 1);
    for (unsigned i = 0; i < 200000; i++)
        program.Op("k" + std::to_string(i % 7), i);
    EXPECT_GT(known.advice.reached, 2u);
    EXPECT_GT(program.in_graphs, 150000u);
    program.Sync();
    ExpectFaithful(program);
}

// A loop of one op, whose turns are alike wherever they begin, is found as soon as without.
TEST(Advice, OfALoopThatNeverWaitsTheFirstGraphIsNotLater) {
    auto run = [](cus_advice *advice, Entries *told) {
        cus_plan_limits limits = kLimits;
        limits.segment_max = 1024;
        Program program(limits);
        cus_plan_advise(&program.plan, advice, 1);
        unsigned first = 0;
        for (unsigned i = 1; i <= 6000; i++) {
            program.Op("k", i);
            if (!first && program.in_graphs)
                first = i;
        }
        *told = Told(program);
        program.Sync();
        return first;
    };
    Entries told, again;
    unsigned first = run(nullptr, &told);
    Known known(told);
    ASSERT_GT(told.size(), 0u);
    unsigned then = run(&known.advice, &again);
    EXPECT_GT(then, 0u);
    EXPECT_LE(then, first);
}

TEST(Advice, OfALoopThatNeverWaitsTheSecondTurnIsInGraphs) {
    auto run = [](cus_advice *advice, Entries *told) {
        Program program(kLimits);
        cus_plan_advise(&program.plan, advice, 1);
        for (unsigned i = 0; i < 3000; i++)
            program.Op("k" + std::to_string(i % 50), i % 50);
        *told = Told(program);
        unsigned eager = program.eager;
        program.Sync();
        EXPECT_EQ(program.requested, program.issued);
        return eager;
    };
    Entries told, again;
    unsigned first = run(nullptr, &told);
    Known known(told);
    ASSERT_GT(told.size(), 0u);
    EXPECT_LE(run(&known.advice, &again), first);
    EXPECT_LT(first, 420u) << "nothing is warmed up in a loop";
}

} // namespace
