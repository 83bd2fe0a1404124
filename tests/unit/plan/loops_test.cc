// Promise: a body that repeats within a step is found in the first step that has it. Its turns
// share segments, which are patched; memory follows the body's size, not the step's.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <random>

extern "C" {
#include "shim/plan/loops.h"
}

namespace {

const cus_plan_limits kLimits = {2, 4, 64, 0, 1024, 200000, CUS_MODE_PIECEWISE, false};

std::string Name(const std::string &of, unsigned i) {
    return of + std::to_string(i);
}

// A turn of a denoising loop: 16 blocks of 12 launches and two more. `value`: what differs from
// turn to turn, in one launch of each block.
void Denoise(Program &program, unsigned value, unsigned blocks = 16) {
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned i = 0; i < 12; i++)
            program.Op(Name("block", i), 100 * block + i, i == 5 ? value : 0);
    program.Op("scale", 1, value);
    program.Op("add", 2);
}

// A body of `ops` kernels of 40 in an order without a period of its own.
void Body(Program &program, unsigned ops, unsigned value = 0) {
    for (unsigned i = 0; i < ops; i++)
        program.Op(Name("k", (i * 2654435761u >> 16) % 40), i, value);
}

double Share(const Program &program) {
    return (double)program.in_graphs / (program.in_graphs + program.eager);
}

TEST(Loops, OfTheFirstStepAreInGraphsFromTheThirdTurnOn) {
    Program program(kLimits);
    for (int step = 0; step < 3; step++) {
        program.ResetCounts();
        for (unsigned turn = 0; turn < 20; turn++) {
            unsigned before = program.eager;
            Denoise(program, turn);
            if (step || turn >= 3) {
                EXPECT_LE(program.eager - before, 2u) << step << " " << turn;
            }
        }
        program.Sync();
        EXPECT_GT(Share(program), step ? 0.98 : 0.84) << step;
    }
    ExpectFaithful(program);
}

void CountOfLoop(cus_node *node, void *n) {
    *static_cast<unsigned *>(n) += node->loop;
}

// A turn is as many bodies as reach CUS_LOOP_BODY.
TEST(Loops, HaveWholeBodiesInATurn) {
    for (auto [body, turn] : {std::pair(1u, 128u),
                              {3u, 129u},
                              {127u, 254u},
                              {128u, 128u},
                              {129u, 129u},
                              {130u, 130u}}) {
        Program program(kLimits);
        for (unsigned i = 0; i < 4000; i++)
            program.Op(Name("body", i % body));
        unsigned n = 0;
        cus_tree_each(&program.plan.tree, CountOfLoop, &n);
        EXPECT_EQ(n, turn) << body;
        program.Sync();
        ExpectFaithful(program);
    }
}

TEST(Loops, MayBeginAndEndOtherwise) {
    Program program(kLimits);
    for (int step = 0; step < 8; step++) {
        program.ResetCounts();
        for (unsigned i = 0; i < 50; i++)
            program.Op(Name("first", i), i);
        for (unsigned turn = 0; turn < 20; turn++)
            Body(program, 200, turn);
        Body(program, 77); // the last turn ends early
        for (unsigned i = 0; i < 30; i++)
            program.Op(Name("last", i), i);
        program.Sync();
        if (step == 1) {
            EXPECT_GT(Share(program), 0.94);
        }
        if (step > 5) {
            EXPECT_GT(Share(program), 0.99) << step;
        }
    }
    ExpectFaithful(program);
}

TEST(Loops, OfAnyLengthTakeTheMemoryOfTheirBody) {
    for (unsigned turns : {50u, 500u}) {
        Program program(kLimits);
        for (int step = 0; step < 3; step++) {
            program.ResetCounts();
            for (unsigned turn = 0; turn < turns; turn++)
                Body(program, 200, turn % 3);
            program.Sync();
            EXPECT_GT(Share(program), 0.93) << step;
            if (step) {
                EXPECT_GT(Share(program), 0.99) << step;
            }
        }
        EXPECT_LT(program.plan.tree.n_nodes, 1000u);
        ExpectFaithful(program);
    }
}

TEST(Loops, OfFewOpsHaveTurnsOfSeveralBodies) {
    Program program(kLimits);
    for (int step = 0; step < 3; step++) {
        program.ResetCounts();
        for (unsigned turn = 0; turn < 500; turn++)
            for (unsigned i = 0; i < 7; i++)
                program.Op(Name("cell", i), turn, i);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_GT(Share(program), 0.95);
    for (const cus_segment *s = program.plan.view.segments; s; s = s->next)
        EXPECT_GT(s->n, 4u);
}

// The inner loop is found first. The outer one then has its ops one by one in its body.
TEST(Loops, MayHoldOthers) {
    Program program(kLimits);
    for (int step = 0; step < 3; step++) {
        program.ResetCounts();
        for (unsigned turn = 0; turn < 30; turn++)
            Denoise(program, turn, 40); // 482 launches
        program.Sync();
        EXPECT_GT(Share(program), step ? 0.97 : 0.85) << step;
    }
    ExpectFaithful(program);
}

// A body of more ops than are remembered at first.
TEST(Loops, MayBeLong) {
    Program program(kLimits);
    for (int step = 0; step < 2; step++) {
        program.ResetCounts();
        for (unsigned turn = 0; turn < 6; turn++)
            Body(program, 3000, turn);
        program.Sync();
    }
    EXPECT_GT(Share(program), 0.98);
    EXPECT_EQ(program.plan.loop.window, (uint32_t)CUS_LOOP_WINDOW);
    ExpectFaithful(program);
}

// Where a call comes in each turn, segments end from the first one on.
TEST(Loops, KnowTheCallsInTheirBody) {
    Program program(kLimits);
    for (int step = 0; step < 2; step++) {
        if (step)
            program.ResetCounts();
        for (unsigned turn = 0; turn < 30; turn++)
            for (unsigned i = 0; i < 150; i++) {
                program.Op(Name("k", i), turn, i);
                if (i % 40 == 39 || i == 149)
                    program.Break();
            }
        if (!step) {
            EXPECT_EQ(program.flushes, 0u);
        }
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.flushes, 0u);
    EXPECT_GT(Share(program), 0.99);
}

// Params that differ from turn to turn but come again in each step: turns get graphs of their own
// when patching has cost as much.
TEST(Loops, GetGraphsOfTheirOwnWhereTurnsDiffer) {
    Program program(kLimits);
    for (int step = 0; step < 20; step++) {
        program.ResetCounts();
        for (unsigned turn = 0; turn < 20; turn++)
            Body(program, 200, turn);
        program.Sync();
        if (step == 1) {
            EXPECT_GT(program.patched, 500u);
        }
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.patched, 0u);
}

// In front of the first marker nobody knows the class of the step: those ops are others.
TEST(Loops, BeginBehindTheFirstMarker) {
    static const cus_step_rule marker = {};
    Program program(kLimits);
    program.Kind("marker")->step = &marker;
    for (unsigned turn = 0; turn < 20; turn++) {
        Body(program, 100);
        program.Op("marker");
        Body(program, 150);
    }
    if (program.plan.view.segment)
        program.Flush(CUS_CUT_OTHER);
    ExpectFaithful(program);
    EXPECT_GT(Share(program), 0.7);
    EXPECT_EQ(program.plan.tree.root.expect->join, nullptr) << "the first op leads to no loop";
}

// A further graph is built by one thread at a time.
TEST(Loops, GetNoGraphsOfTheirOwnWhileAnotherThreadPatches) {
    Program program(kLimits);
    unsigned built = 0;
    for (int step = 0; step < 20; step++) {
        program.aside = step > 1;
        program.ResetCounts();
        for (unsigned turn = 0; turn < 20; turn++)
            Body(program, 200, turn);
        program.Sync();
        built += step > 1 ? program.built : 0;
    }
    EXPECT_EQ(built, 0u);
    EXPECT_GT(program.patched, 500u);
    ExpectFaithful(program);
}

// What allocators hand out anew each time, from the same few addresses, does not come again as a
// whole: a graph for it would never be launched again.
TEST(Loops, GetNoGraphsWhereAddressesAreMixedAnew) {
    Program program(kLimits);
    std::mt19937 random(1);
    for (int step = 0; step < 40; step++)
        for (unsigned turn = 0; turn < 20; turn++)
            for (unsigned i = 0; i < 200; i++)
                program.Op(Name("k", (i * 2654435761u >> 16) % 40), random() % 3);
    EXPECT_LT(program.built, 20u);
    EXPECT_GT(Share(program), 0.98);
}

TEST(Loops, AreNotFoundWhereTheSecondTurnDiffers) {
    Program program(kLimits);
    std::mt19937 random(1);
    for (unsigned i = 0; i < 20000; i++)
        program.Op(Name("k", random() % 40), i);
    EXPECT_EQ(program.in_graphs, 0u);
    EXPECT_EQ(program.plan.looped, 0u);
    program.Sync();
    ExpectFaithful(program);
}

// A step of 2048 ops at most is learned as a whole: its graphs need no patches.
TEST(Loops, OfAShortStepAreForgotten) {
    Program program(kLimits);
    for (int step = 0; step < 6; step++) {
        program.ResetCounts();
        for (unsigned turn = 0; turn < 10; turn++)
            Denoise(program, turn);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.patched, 0u);
    EXPECT_GT(Share(program), 0.99);
    for (const cus_segment *s = program.plan.view.segments; s; s = s->next)
        EXPECT_FALSE(s->nodes[0]->loop);
}

// A slow host's segments are no larger than a turn, so the loop stays, and the second step is in
// graphs.
TEST(Loops, OfAShortStepStayWhileTheHostIsSlow) {
    Program program(kLimits);
    for (int step = 0; step < 12; step++) {
        cus_plan_paced(&program.plan, 64, 64 * (step < 2 ? 10000 : 100));
        if (step > 1)
            for (int i = 0; i < 200; i++)
                cus_plan_paced(&program.plan, 64, 64 * 100);
        program.ResetCounts();
        for (unsigned turn = 0; turn < 100; turn++)
            for (unsigned i = 0; i < 7; i++)
                program.Op(Name("cell", i), turn, i);
        program.Sync();
        if (step) {
            EXPECT_TRUE(Share(program) > 0.93 || (step > 1 && step < 6)) << step;
        }
    }
    EXPECT_EQ(program.patched, 0u) << "a fast host's step is a whole by now";
    ExpectFaithful(program);
}

TEST(Loops, SurviveWhenOtherPathsAreForgotten) {
    cus_plan_limits limits = kLimits;
    limits.nodes_max = 3000;
    Program program(limits);
    auto step = [&program] {
        program.ResetCounts();
        for (unsigned turn = 0; turn < 20; turn++)
            Denoise(program, turn);
        program.Sync();
    };
    for (int i = 0; i < 4; i++)
        step();
    ASSERT_TRUE(cus_plan_demote(&program.plan));
    step();
    EXPECT_GT(Share(program), 0.98);
    std::mt19937 random(1);
    for (int round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 1000; i++)
            program.Op(Name("other", random() % 40), i);
        program.Sync();
        if (round % 3 == 0)
            step();
    }
    step();
    EXPECT_GT(Share(program), 0.98);
    ExpectFaithful(program);
}

// Loops of loops, of lengths that change, with calls, and other paths between: whatever is
// believed, each op is issued once, in order, as it was asked for.
TEST(Loops, OfRandomProgramsAreFaithful) {
    for (unsigned seed = 1; seed <= 30; seed++) {
        cus_plan_limits limits = kLimits;
        limits.nodes_max = seed % 3 ? 200000 : 2000;
        Program program(limits);
        std::mt19937 random(seed);
        auto some = [&random](unsigned n) { return (unsigned)(random() % n); };
        program.hot = seed % 2;
        unsigned bodies[3] = {1 + some(12), 40 + some(100), 200 + some(300)}, calls = some(4);
        uint64_t in_graphs = 0;
        for (int step = 0; step < 12; step++) {
            for (unsigned part = 0; part < 1 + some(3); part++) {
                unsigned body = bodies[some(3)], inner = 1 + some(3) * some(30);
                for (unsigned turn = 0; turn < 4000 / body / inner + some(20); turn++) {
                    for (unsigned again = 0; again < inner; again++)
                        for (unsigned i = 0; i < body; i++)
                            program.Op(Name("k", (i * 2654435761u >> 16) % 40 + body % 7), turn % 5,
                                       some(50) ? i : turn, 1 + (some(200) == 0));
                    for (unsigned call = 0; call < calls && some(3); call++)
                        program.Break();
                    if (!some(100) && program.plan.view.segment)
                        program.Flush(some(2) ? CUS_CUT_WATCHDOG : CUS_CUT_PAUSED);
                    if (!some(300))
                        program.Op(Name("other", some(100)), turn);
                }
                if (!some(20) && !program.plan.view.segment)
                    cus_plan_demote(&program.plan);
                if (!some(20) && !program.plan.view.segment)
                    cus_plan_drop_handle(&program.plan, program.Kind("k3")->handle);
            }
            program.Sync();
            in_graphs = program.in_graphs;
        }
        ExpectFaithful(program);
        EXPECT_GT(in_graphs, 1000u) << seed;
    }
}

} // namespace
