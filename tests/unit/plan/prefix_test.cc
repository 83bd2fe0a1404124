// Promise: if steps part in their first ops, deferred ops move from one segment to another. The ops
// issued are always those requested, and no dropped segment is used.
#include "tests/unit/plan/invariants.h"
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace {

#ifndef SEEDS
#define SEEDS 60
#endif

TEST(Prefix, RandomStepsThatBeginAlikeAreFaithful) {
    unsigned turned = 0, graphs = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        std::mt19937 random(seed);
        Program program({1 + seed % 3, 2 + seed % 4, 4 + seed % 60, 0, 1 + seed % 4,
                         seed % 7 ? 100000u : 200u, CUS_MODE_PIECEWISE, false});
        program.Kind("h1")->type = seed % 5 ? CUS_OP_LAUNCH : CUS_OP_MEMSET;
        unsigned tails = 2 + seed % 5, heads = 1 + seed / 5 % 4, rare = seed % 4 ? 400 : 40;
        auto chance = [&](unsigned one_in) { return random() % one_in == 0; };
        for (int step = 0; step < 150; step++) {
            unsigned parts = 1 + random() % 3;
            for (unsigned part = 0; part < parts; part++) {
                unsigned tail = chance(12) ? random() % 40 : random() % tails;
                unsigned length = heads + 1 + tail % 9;
                for (unsigned i = 0; i < length; i++) {
                    const cus_segment *begun = program.plan.view.segment;
                    uint32_t deferred = cus_plan_deferred(&program.plan.view);
                    program.failing = chance(rare) ? "h0" : "";
                    program.Op(i < heads ? "h" + std::to_string(i)
                                         : "t" + std::to_string((tail >> (i - heads) / 2) % 40) +
                                               "_" + std::to_string(i % 5),
                               chance(20) ? random() % 5 : i, i, chance(30) ? 1 + random() % 3 : 1,
                               chance(200) ? 64 : 32);
                    turned += begun && program.plan.view.segment &&
                              program.plan.view.segment != begun &&
                              program.plan.view.n == deferred + 1;
                    if (chance(rare))
                        program.Break();
                    if (chance(rare) && program.plan.view.segment)
                        program.Flush((cus_cut)(random() % 5));
                    if (chance(rare))
                        program.memory_epoch++;
                    if (chance(rare))
                        cus_plan_drop_oldest(&program.plan);
                    if (chance(rare) && !program.plan.view.segment)
                        cus_plan_drop_handle(
                            &program.plan,
                            program.Kind("h" + std::to_string(random() % 3))->handle);
                    if (chance(4 * rare) && !program.plan.view.segment)
                        cus_plan_demote(&program.plan);
                    if (chance(8 * rare) && !program.plan.view.segment)
                        cus_plan_evict(&program.plan, 2);
                    program.may_begin = !chance(50);
                }
                ASSERT_EQ(Invariants::Broken(&program.plan), "");
                if (HasFatalFailure())
                    FAIL() << "seed " << seed << " step " << step;
            }
            if (random() % 4)
                program.Sync();
        }
        if (program.plan.view.segment)
            program.Flush(CUS_CUT_OTHER);
        graphs += program.in_graphs;
        ExpectFaithful(program);
        if (HasFatalFailure())
            FAIL() << "seed " << seed;
    }
    EXPECT_GT(turned, SEEDS * 5u);
    EXPECT_GT(graphs, SEEDS * 300u);
}

// Steps of a head and one of some tails, each of so many ops.
void Tail(Program &program, const std::string &name, unsigned ops = 6) {
    for (unsigned i = 0; i < ops; i++)
        program.Op(name + std::to_string(i), i);
}

cus_segment *Led(const Program &program) {
    cus_segment *segment = program.plan.view.segments;
    while (segment && !segment->lead)
        segment = segment->next;
    return segment;
}

// The tail is another one than last time: it is not the segment that is foreseen.
TEST(Prefix, MemoryNodesOfTheOtherSegmentAreNotReliedUponEither) {
    Program program;
    program.Kind("copy")->type = CUS_OP_COPY;
    auto step = [&](const char *tail, uint32_t epoch) {
        program.memory_epoch = epoch;
        program.Op("copy", 7, 7);
        const cus_segment *begun = program.plan.view.segment;
        Tail(program, tail, 3);
        bool turned = begun && program.plan.view.segments != begun;
        program.Sync();
        return turned;
    };
    for (int i = 0; i < 12; i++) {
        step("k", 1);
        step("j", 1);
    }
    program.ResetCounts();
    EXPECT_FALSE(step("k", 1));
    EXPECT_TRUE(step("k", 1));
    EXPECT_EQ(program.patched, 0u);
    EXPECT_FALSE(step("k", 2));
    EXPECT_EQ(program.patched, 1u) << "the copy, at the same address";
    EXPECT_EQ(program.eager, 0u);
    bool turned = false;
    for (uint32_t epoch = 3; epoch < 9; epoch++) {
        program.ResetCounts();
        turned |= step(epoch % 4 < 2 ? "k" : "j", epoch);
        EXPECT_EQ(program.patched, 1u) << epoch;
    }
    EXPECT_TRUE(turned);
    ExpectFaithful(program);
}

TEST(Prefix, EachShapeOfWhatTheyHaveInCommonHasAGraph) {
    Program program;
    std::mt19937 random(1);
    for (int round = 0; round < 120; round++) {
        if (round == 80)
            program.ResetCounts();
        program.Op("head");
        program.Op("second", 1, 1, 1 + random() % 2);
        Tail(program, random() % 2 ? "k" : "j", 2);
        program.Sync();
    }
    EXPECT_EQ(program.patched, 0u);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.eager, 0u);
    ExpectFaithful(program);
}

// The graph of the other segment has one shape for it, too.
TEST(Prefix, AShapeOfWhatTheyHaveInCommonThatNeverCameIsPatched) {
    Program program({2, 4, 64, 0, 1, 100000, CUS_MODE_PIECEWISE, false});
    auto step = [&](const char *tail, uint32_t grid) {
        program.Op("head");
        program.Op("second", 1, 1, grid);
        Tail(program, tail, 2);
        program.Sync();
    };
    for (int i = 0; i < 24; i++)
        step(i % 2 ? "k" : "j", 1);
    step("k", 1); // twice, and it is expected next
    program.ResetCounts();
    step("j", 2);
    EXPECT_EQ(program.patched, 1u);
    EXPECT_EQ(program.reshaped, 1u);
    EXPECT_EQ(program.eager, 0u);
    ExpectFaithful(program);
}

TEST(Prefix, AtABoundaryAllOfThemEnd) {
    Program program;
    for (int i = 0; i < 8; i++) {
        for (const char *tail : {"k", "j", "l"}) {
            Tail(program, "head", 2);
            Tail(program, tail);
            program.Sync();
        }
    }
    ASSERT_TRUE(Led(program));
    for (int i = 0; i < 2; i++) {
        Tail(program, "head", 2);
        program.Break();
        Tail(program, "k");
        program.Sync();
    }
    for (const cus_segment *segment = program.plan.view.segments; segment; segment = segment->next)
        for (uint32_t i = 0; i + 1 < segment->n; i++)
            EXPECT_EQ(segment->nodes[i]->boundary, CUS_BOUNDARY_NONE);
    ExpectFaithful(program);
}

TEST(Prefix, NoneIsMadeAcrossABoundary) {
    Program program;
    for (int i = 0; i < 6; i++) {
        program.Op("head");
        Tail(program, "k");
        program.Sync();
    }
    ASSERT_GT(program.in_graphs, 0u);
    program.may_begin = false;
    for (int i = 0; i < 6; i++) {
        program.Op("head");
        program.Break();
        Tail(program, "j");
        program.Sync();
    }
    program.may_begin = true;
    program.Op("head");
    ASSERT_TRUE(program.plan.view.segment);
    Tail(program, "j");
    program.Sync();
    EXPECT_FALSE(Led(program));
    EXPECT_EQ(program.diverged, 1u);
    ExpectFaithful(program);
}

TEST(Prefix, WhatIsDroppedIsWaitedForBehindWhatTheyHaveInCommon) {
    for (bool evicted : {true, false}) {
        Program program;
        for (int i = 0; i < 6; i++) {
            for (const char *tail : {"k", "j"}) {
                Tail(program, "head", 2);
                Tail(program, tail);
                program.Sync();
            }
        }
        const cus_segment *led = Led(program);
        ASSERT_TRUE(led);
        const cus_node *head = led->nodes[0], *own = led->nodes[led->lead];
        const std::string tail = std::string(own->key.kind->name, 1);
        for (int i = 0; i < 60 && own->segment; i++) {
            Tail(program, "head", 2);
            if (evicted) {
                Tail(program, tail == "k" ? "j" : "k");
            } else {
                Tail(program, tail, 1);
                ASSERT_EQ(program.plan.view.segment, led);
                program.Flush(CUS_CUT_OTHER);
            }
            program.Sync();
            if (evicted && i > 4)
                cus_plan_drop_oldest(&program.plan);
        }
        EXPECT_FALSE(own->segment);
        EXPECT_GT(own->retry_at, own->visits) << evicted;
        EXPECT_LE(head->retry_at, head->visits) << evicted;
        ExpectFaithful(program);
    }
}

TEST(Prefix, AMarkerBeginsASegmentHereToo) {
    cus_step_rule rule = {};
    rule.marker = "marker";
    rule.tokens = CUS_STEP_X;
    rule.tokens_each = 1;
    rule.uniform = {CUS_STEP_TOKENS, CUS_STEP_LE, 8};
    rule.single = {CUS_STEP_TOKENS, CUS_STEP_LE, 4};
    Program program;
    program.Kind("marker")->step = &rule;
    for (int i = 0; i < 10; i++) {
        program.Op("marker");
        Tail(program, "k");
        program.Sync();
        program.Op("marker");
        program.Op("marker");
        Tail(program, "j");
        program.Sync();
    }
    for (const cus_segment *segment = program.plan.view.segments; segment; segment = segment->next)
        for (uint32_t i = 1; i < segment->n; i++)
            EXPECT_FALSE(segment->places[i].kind->step);
    EXPECT_GT(program.in_graphs, 0u);
    ExpectFaithful(program);
}

// A segment that begins where the others part stays as long as it is mostly begun by itself.
TEST(Prefix, WhatBeginsWhereTheyPartIsReplacedWhereItSeldomBegins) {
    Program program;
    auto step = [&](bool alone, const char *tail) {
        program.may_begin = !alone;
        program.Op("head");
        program.may_begin = true;
        Tail(program, tail);
        program.Sync();
    };
    for (int i = 0; i < 6; i++)
        step(false, "k");
    for (int i = 0; i < 20; i++)
        step(true, "j");
    program.ResetCounts();
    program.dropped = 0;
    for (int i = 0; i < 4; i++)
        step(false, "j");
    EXPECT_EQ(program.diverged, 4u);
    EXPECT_EQ(program.dropped, 0u);
    EXPECT_FALSE(Led(program));
    for (int i = 0; i < 40; i++)
        step(false, "j");
    EXPECT_GT(program.dropped, 0u);
    ASSERT_TRUE(Led(program));
    program.ResetCounts();
    step(false, "j");
    EXPECT_EQ(program.eager, 0u);
    ExpectFaithful(program);
}

// All that begin there go, not only the one that was met.
TEST(Prefix, NothingIsLeftWhereNothingBeginsAnyMore) {
    Program program;
    auto step = [&](bool alone, const char *tail) {
        program.may_begin = !alone;
        program.Op("head");
        program.may_begin = true;
        if (*tail != 'k')
            program.Op("x");
        Tail(program, tail);
        program.Sync();
    };
    for (int i = 0; i < 6; i++)
        step(false, "k");
    for (int i = 0; i < 20; i++)
        step(true, i % 2 ? "j" : "l");
    auto beginning_with_x = [&] {
        unsigned n = 0;
        for (const cus_segment *segment = program.plan.view.segments; segment;
             segment = segment->next)
            n += segment->places[0].kind == program.Kind("x");
        return n;
    };
    ASSERT_EQ(beginning_with_x(), 2u);
    for (int i = 0; i < 80 && beginning_with_x() == 2; i++)
        step(false, i % 2 ? "j" : "l");
    EXPECT_EQ(beginning_with_x(), 0u);
    for (int i = 0; i < 4; i++)
        step(false, i % 2 ? "j" : "l");
    program.ResetCounts();
    step(false, "j");
    step(false, "l");
    EXPECT_EQ(program.eager, 0u);
    ExpectFaithful(program);
}

} // namespace
