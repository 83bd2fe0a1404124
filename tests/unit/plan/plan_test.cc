// Promise: ops come out in order and with the requested params, whatever the plan defers. A path
// that repeats is launched in segments; ops that fit no segment cost no more than eager launches.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <random>

namespace {

TEST(Plan, RepeatedStepIsLaunchedInRampingSegments) {
    Program program;
    for (int step = 0; step < 5; step++)
        program.Step(28);
    ExpectFaithful(program);
    EXPECT_EQ(program.segments.size(), 9u);
    EXPECT_EQ(program.segments[0], 4u);
    EXPECT_EQ(program.segments[1], 8u);
    EXPECT_EQ(program.segments[2], 16u);
    EXPECT_EQ(program.built, 3u);
    EXPECT_EQ(program.in_graphs, 3u * 28);
}

TEST(Plan, AnOpThatFailsEachTimeIsNotOneThatComesOften) {
    Program program;
    program.failing = "c";
    for (int step = 0; step < 20; step++) {
        for (const char *name : {"a", "b", "c", "d", "e", "f"})
            program.Op(name);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_GT(program.in_graphs, 0u);
    for (const auto &op : program.launched)
        EXPECT_NE(op.substr(0, 1), "c");
}

TEST(Plan, SegmentsThatMayNotBeginYetAreAsLargeAsOthers) {
    Program program;
    for (int step = 0; step < 5; step++) {
        program.may_begin = step == 4; // until then other threads build
        program.Step(28);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.segments, (std::vector<uint32_t>{4, 8, 16}));
}

// The hot path's comparison, for rows of words of any length.
TEST(Plan, EachWordThatDiffersIsSeen) {
    constexpr unsigned kWords = 11;
    for (unsigned n = 0; n <= kWords; n++) {
        struct {
            cus_expected expected;
            uint32_t dims[CUS_DIMS + 1];
            uint64_t params[kWords];
        } image = {};
        cus_plan plan = {};
        uint64_t requested[kWords];
        void *params[kWords];
        plan.view.at = &image.expected;
        image.expected.words = static_cast<uint16_t>(n);
        for (unsigned i = 0; i < kWords; i++) {
            image.params[i] = requested[i] = 0x0101010101010101u * i;
            params[i] = &requested[i];
        }
        EXPECT_FALSE(cus_plan_differs(&plan.view, params)) << n << " words";
        for (unsigned i = 0; i < kWords; i++)
            for (unsigned bit : {0, 31, 32, 63}) {
                requested[i] ^= uint64_t{1} << bit;
                EXPECT_EQ(cus_plan_differs(&plan.view, params), i < n)
                    << n << " words, bit " << bit << " of " << i;
                requested[i] ^= uint64_t{1} << bit;
            }
    }
}

// The hot path's way of asking for params as one block.
TEST(Plan, APackedBufferIsAskedForWhereItDiffers) {
    Program program;
    for (int step = 0; step < 4; step++)
        program.Step(8);
    program.Op("k0", 100, 0);
    struct __attribute__((packed)) {
        uint64_t pointer;
        uint32_t scalar;
    } flat = {101, 1};
    ASSERT_NE(cus_plan_midst(&program.plan.view), nullptr);
    cus_plan_request_flat(&program.plan.view, reinterpret_cast<const uint8_t *>(&flat));
    EXPECT_EQ(program.plan.view.dirty[0], 0u) << "the node holds it";
    flat.scalar = 7;
    cus_plan_request_flat(&program.plan.view, reinterpret_cast<const uint8_t *>(&flat));
    EXPECT_EQ(program.plan.view.dirty[0], 2u);
    const cus_values *values = cus_plan_values(&program.plan, 1);
    EXPECT_TRUE(cus_dims_same(values->dims, cus_plan_before(&program.plan.view)->dims));
    EXPECT_EQ(memcmp(values->params, &flat, sizeof flat), 0);
}

TEST(Plan, WarmupIsHonoured) {
    Program program({5, 4, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 5; step++)
        program.Step(12);
    EXPECT_EQ(program.in_graphs, 0u);
    program.Step(12);
    EXPECT_EQ(program.in_graphs, 12u);
}

TEST(Plan, UnchangedOpsPatchNothing) {
    Program program;
    for (int step = 0; step < 10; step++)
        program.Step(28);
    EXPECT_EQ(program.patched, 0u);
    EXPECT_EQ(program.exact, 7u * 3);
}

TEST(Plan, ChangedParamsArePatchedAndRunAsAsked) {
    Program program;
    for (int step = 0; step < 10; step++)
        program.Step(28, step == 7 ? 100000 : 100);
    ExpectFaithful(program);
    EXPECT_EQ(program.patched, 2u * 28) << "there and back";
}

TEST(Plan, NewBlockSizeRunsEagerlyFirst) {
    for (bool hot : {false, true}) {
        Program program;
        program.hot = hot;
        for (int step = 0; step < 4; step++)
            program.Step(12);
        program.ResetCounts();
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i % 5), 100 + i, i, 1, i == 2 ? 64 : 32);
        program.Sync();
        ExpectFaithful(program);
        EXPECT_GE(program.eager, 3u);
        EXPECT_LT(program.eager, 12u);
    }
}

TEST(Plan, BadGridIsNeverDeferred) {
    for (bool hot : {false, true}) {
        Program program;
        program.hot = hot;
        for (int step = 0; step < 4; step++)
            program.Step(12);
        size_t before = program.issued.size();
        for (uint32_t bad : {0u, 0x80000000u}) {
            program.Op("k0", 100, 0);
            program.Op("k1", 101, 1, bad);
            EXPECT_EQ(program.issued.size(), before + 2) << "the call itself must see its error";
            program.Sync();
            before = program.issued.size();
        }
        ExpectFaithful(program);
    }
}

// What the function's attributes allow, as the engine reads them.
static void Limit(Program &program, const char *name, uint32_t shared, uint32_t threads) {
    program.Kind(name)->shared_end = shared + 1;
    program.Kind(name)->threads_max = threads;
}

TEST(Plan, SharedMemoryIsNewAtEachStepAndDeferred) {
    for (bool hot : {false, true}) {
        Program program;
        program.hot = hot;
        Limit(program, "k1", 1000, 1024);
        for (int step = 0; step < 4; step++)
            program.Step(12);
        program.ResetCounts();
        for (uint32_t step = 0; step < 250; step++) {
            for (int i = 0; i < 12; i++)
                program.Op("k" + std::to_string(i % 5), 100 + i, i, 1, 32,
                           i % 5 == 1 ? 4 + 4 * step : 0);
            program.Sync();
        }
        ExpectFaithful(program);
        EXPECT_EQ(program.eager, 0u);
    }
}

TEST(Plan, SharedMemoryBeyondTheLimitIsNeverDeferred) {
    for (bool hot : {false, true}) {
        Program program;
        program.hot = hot;
        Limit(program, "k1", 1000, 1024);
        for (int step = 0; step < 4; step++)
            program.Step(12);
        size_t before = program.issued.size();
        program.Op("k0", 100, 0);
        program.Op("k1", 101, 1, 1, 32, 1000);
        EXPECT_EQ(program.issued.size(), before) << "the limit itself is allowed";
        program.Sync();
        before = program.issued.size();
        program.Op("k0", 100, 0);
        program.Op("k1", 101, 1, 1, 32, 1001);
        EXPECT_EQ(program.issued.size(), before + 2) << "the call itself must see its error";
        program.Sync();
        ExpectFaithful(program);
    }
}

TEST(Plan, NewBlockIsDeferredOnceTwoBlocksRan) {
    for (bool hot : {false, true}) {
        Program program;
        program.hot = hot;
        Limit(program, "k1", 0, 512);
        for (int step = 0; step < 4; step++)
            program.Step(12);
        auto last = [&](uint32_t block) { // how many ops are issued at the call
            size_t before = program.issued.size();
            program.Op("k0", 100, 0);
            program.Op("k1", 101, 1, 1, block);
            size_t issued = program.issued.size() - before;
            program.Sync();
            return issued;
        };
        EXPECT_EQ(last(64), 2u) << "the function may be compiled for 32 threads alone";
        for (int step = 0; step < 4; step++)
            program.Step(12);
        EXPECT_EQ(last(96), 0u);
        EXPECT_EQ(last(512), 0u);
        EXPECT_EQ(last(513), 2u) << "more threads than the function may have";
        ExpectFaithful(program);
    }
}

TEST(Plan, CooperativeLaunchIsDeferredWithAGridThatRanOnly) {
    Program program;
    program.Kind("k2")->cooperative = true;
    for (int step = 0; step < 4; step++)
        program.Step(12);
    for (uint32_t grid : {1u, 9u}) { // whether 9 blocks fit the device is for its own call to say
        program.ResetCounts();
        size_t before = program.issued.size();
        for (int i = 0; i < 3; i++)
            program.Op("k" + std::to_string(i), 100 + i, i, i == 2 ? grid : 1);
        EXPECT_EQ(program.issued.size(), grid == 1 ? before : before + 3);
        program.Sync();
    }
    ExpectFaithful(program);
}

TEST(Plan, DivergenceIssuesWhatWasDeferredInOrder) {
    Program program;
    for (int step = 0; step < 4; step++)
        program.Step(28);
    program.Op("k0", 100, 0);
    program.Op("k1", 101, 1);
    program.Op("other", 7, 7);
    program.Sync();
    ExpectFaithful(program);
    EXPECT_EQ(program.diverged, 1u);
}

TEST(Plan, OwnersCutBecomesABoundary) {
    Program program;
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < 30; i++) {
            program.Op("k" + std::to_string(i), i, i);
            if (i == 9)
                program.Break();
        }
        if (step == 8)
            program.ResetCounts();
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.eager, 0u) << "once learned, nothing is deferred where the call comes";
    EXPECT_EQ(program.flushes, 0u);
}

// What comes between ops while they are observed would cut segments later on: none is ever begun
// across.
TEST(Plan, CallsThatComeWhileOpsAreObservedAreBoundaries) {
    Program program;
    for (int step = 0; step < 40; step++) {
        for (int i = 0; i < 60; i++) {
            program.Op("k" + std::to_string(i), i, i);
            if (i % 7 == 6)
                program.Break();
        }
        program.Sync();
        if (step == 3)
            program.ResetCounts();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.flushes, 0u);
    EXPECT_EQ(program.eager, 0u);
    EXPECT_EQ(program.built, 0u) << "each segment is what it stays when it is first launched";
}

// A cut is counted once, though the call that made it says that it came.
TEST(Plan, OneCutIsNoBoundary) {
    Program program;
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < 28; i++) {
            program.Op("k" + std::to_string(i), i, i);
            if (i == 9 && step == 10)
                program.Break();
        }
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.flushes, 1u);
    for (const cus_node *node = program.plan.tree.root.expect; node; node = node->expect)
        EXPECT_EQ(node->boundary, CUS_BOUNDARY_NONE) << node->key.kind->name;
}

TEST(Plan, ForeignCutsTeachNothing) {
    Program program;
    for (int step = 0; step < 40; step++) {
        for (int i = 0; i < 28; i++) {
            program.Op("k" + std::to_string(i), i, i);
            if (i == 2 && step % 3 == 0 && program.plan.view.segment)
                program.Flush(CUS_CUT_OTHER);
        }
        program.Sync();
    }
    program.ResetCounts();
    for (int i = 0; i < 28; i++)
        program.Op("k" + std::to_string(i), i, i);
    program.Sync();
    ExpectFaithful(program);
    EXPECT_EQ(program.segments, (std::vector<uint32_t>{4, 8, 16}));
}

TEST(Plan, BoundaryThatLostItsReasonAgesOut) {
    Program program;
    auto step = [&](bool cut) {
        for (int i = 0; i < 28; i++) {
            program.Op("k" + std::to_string(i), i, i);
            if (i == 6 && cut)
                program.Break();
        }
        program.Sync();
    };
    for (int i = 0; i < 8; i++)
        step(true);
    EXPECT_EQ(
        program.plan.tree.root.child->expect->expect->expect->expect->expect->expect->boundary,
        CUS_BOUNDARY_CUT);
    for (int i = 0; i < 80; i++)
        step(false);
    ExpectFaithful(program);
    EXPECT_EQ(
        program.plan.tree.root.child->expect->expect->expect->expect->expect->expect->boundary,
        CUS_BOUNDARY_NONE);
}

TEST(Plan, EagerKindCutsTheSegmentAndRunsInPlace) {
    Program program;
    program.Kind("attention")->policy = CUS_POLICY_EAGER;
    for (int step = 0; step < 6; step++) {
        if (step == 5)
            program.ResetCounts();
        for (int i = 0; i < 7; i++)
            program.Op("a" + std::to_string(i), i, i);
        program.Op("attention", 5, 5);
        for (int i = 0; i < 9; i++)
            program.Op("b" + std::to_string(i), i, i);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.eager, 1u);
    char text[256];
    ASSERT_TRUE(cus_segment_list_json(&program.plan.last, text, sizeof text));
    EXPECT_STREQ(text, "[\"graph 7\", \"eager attention\", \"graph 9\"]");
}

TEST(Plan, LoopThatNeverSynchronisesConvergesInBoundedMemory) {
    Program program;
    for (int turn = 0; turn < 1000; turn++)
        for (int i = 0; i < 37; i++)
            program.Op("k" + std::to_string(i), i, i);
    EXPECT_GT(program.in_graphs, 37u * 1000 * 8 / 10);
    EXPECT_LT(program.plan.tree.n_nodes, 6000u);
    if (program.plan.view.segment)
        program.Flush(CUS_CUT_OTHER);
    ExpectFaithful(program);
}

// An op that fails each time is no part of the loop: its turns are as long as without it.
TEST(Plan, LoopThatNeverSynchronisesIsFoundAroundAnOpThatFails) {
    Program with, without;
    with.failing = "fails";
    for (int turn = 0; turn < 300; turn++)
        for (int i = 0; i < 37; i++) {
            with.Op("k" + std::to_string(i), i, i);
            without.Op("k" + std::to_string(i), i, i);
            if (i == 20)
                with.Op("fails");
        }
    EXPECT_GT(without.in_graphs, 37u * 300 * 7 / 10);
    EXPECT_GT(with.in_graphs, without.in_graphs * 9 / 10);
    EXPECT_LT(with.plan.tree.n_nodes, without.plan.tree.n_nodes + 500);
    with.Flush(CUS_CUT_OTHER);
    ExpectFaithful(with);
}

TEST(Plan, LoopWithAPrologueAndRepeatedKernelsConvergesToo) {
    Program program;
    for (int i = 0; i < 11; i++)
        program.Op("init" + std::to_string(i), i, i);
    for (int turn = 0; turn < 3000; turn++)
        for (int i = 0; i < 12; i++)
            program.Op(i % 3 == 2 ? "b" + std::to_string(i) : "a", i / 2, 0);
    EXPECT_GT(program.in_graphs, 12u * 3000 * 8 / 10);
    if (program.plan.view.segment)
        program.Flush(CUS_CUT_OTHER);
    ExpectFaithful(program);
}

TEST(Plan, TreeIsBounded) {
    Program program({2, 4, 64, 0, 4, 1000, CUS_MODE_PIECEWISE, false});
    std::mt19937 random(1);
    for (int i = 0; i < 20000; i++)
        program.Op("k" + std::to_string(random() % 50), i, i);
    if (program.plan.view.segment)
        program.Flush(CUS_CUT_OTHER);
    EXPECT_LE(program.plan.tree.n_nodes, 1000u);
    ExpectFaithful(program);
}

TEST(Plan, DroppingAHandleDropsItsSegmentsOnly) {
    Program program;
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), i, i);
        program.Sync();
    }
    ASSERT_EQ(program.plan.view.n_segments, 2u);
    cus_plan_drop_handle(&program.plan, program.Kind("k5")->handle);
    EXPECT_EQ(program.plan.view.n_segments, 1u);
    EXPECT_EQ(program.dropped, 1u);
}

TEST(Plan, OldestSegmentIsDroppedFirst) {
    Program program;
    for (int step = 0; step < 4; step++)
        program.Step(12);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 4; i++)
            program.Op("z" + std::to_string(i), i, i);
        program.Sync();
    }
    ASSERT_TRUE(cus_plan_drop_oldest(&program.plan));
    EXPECT_EQ(program.plan.tree.root.child->segment, nullptr);
}

TEST(Plan, WhatTheNextStepWantsIsNotDropped) {
    Program program;
    for (int step = 0; step < 6; step++)
        program.Step(28);
    EXPECT_FALSE(cus_plan_drop_oldest(&program.plan));
    EXPECT_EQ(program.dropped, 0u);
}

TEST(Plan, NothingBeginsWhileTheCallerMayNot) {
    Program program;
    program.may_begin = false;
    for (int step = 0; step < 10; step++)
        program.Step(28);
    EXPECT_EQ(program.in_graphs, 0u);
    ExpectFaithful(program);
}

TEST(Plan, PdlFollowerIsNotCutOff) {
    Program program;
    program.Kind("k4")->pdl = true;
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), i, i);
        program.Sync();
    }
    EXPECT_EQ(program.segments[0], 5u);
}

TEST(Plan, EachOfManyNodesIsPatchedAlone) {
    Program program({2, 1000, 1024, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
    for (int step = 0; step < 12; step++) {
        if (step == 4)
            program.ResetCounts();
        for (unsigned i = 0; i < 1000; i++)
            program.Op("k" + std::to_string(i % 7), i, step >= 4 && i % 97 == 0 ? step : 0);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.segments, std::vector<uint32_t>(8, 1000u));
    EXPECT_EQ(program.patched, 8u * 11);
}

TEST(Plan, MemoryNodesAreNotReliedUponOnceMemoryMayHaveGone) {
    Program program;
    program.Kind("copy")->type = CUS_OP_COPY;
    auto step = [&](uint32_t epoch) {
        program.memory_epoch = epoch;
        for (int i = 0; i < 3; i++)
            program.Op("k" + std::to_string(i), i, i);
        program.Op("copy", 7, 7);
        program.Sync();
    };
    for (int i = 0; i < 4; i++)
        step(1);
    program.ResetCounts();
    step(1);
    EXPECT_EQ(program.patched, 0u);
    step(2);
    EXPECT_EQ(program.patched, 1u) << "the copy, at the same address; no kernel";
    step(2);
    EXPECT_EQ(program.patched, 1u);
    EXPECT_EQ(program.in_graphs, 12u);
    // What is built is as new as the memory.
    cus_plan_drop_handle(&program.plan, nullptr);
    for (int i = 0; i < 4; i++)
        step(3);
    EXPECT_EQ(program.built, 1u);
    EXPECT_EQ(program.patched, 1u);
    ExpectFaithful(program);
}

TEST(Plan, StreamThatNeverEndedAStepIsSearchedForALoopSoon) {
    Program program;
    for (int turn = 0; turn < 100; turn++)
        for (int i = 0; i < 37; i++)
            program.Op("k" + std::to_string(i % 10), i, turn);
    if (program.plan.view.segment)
        program.Flush(CUS_CUT_OTHER);
    ExpectFaithful(program);
    EXPECT_GT(program.in_graphs, 37u * 100 / 2) << "params differ from turn to turn";
}

TEST(Plan, LongFirstStepOfAStreamThatDoesSynchroniseIsNoLoop) {
    Program program;
    for (int step = 0; step < 5; step++) {
        if (step == 1)
            program.ResetCounts();
        for (unsigned i = 0; i < 1000; i++)
            program.Op("k" + std::to_string(i % 4), i, i);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.in_graphs, 2000u);
    EXPECT_EQ(program.patched, 0u) << "each op of the step has a node of its own";
}

// Random programs: steps made of random runs of known phrases, random params, shapes, cuts.
// Whatever happens, what is issued is what was asked for, in order.
TEST(Plan, RandomProgramsAreFaithful) {
    for (unsigned seed = 0; seed < 200; seed++) {
        std::mt19937 random(seed);
        Program program({1 + seed % 3, 2 + seed % 5, 2 + seed % 90, 0, 1 + seed % 4, 100000,
                         CUS_MODE_PIECEWISE, false});
        program.hot = seed % 2;
        for (int step = 0; step < 40; step++) {
            unsigned phrases = 1 + random() % 4;
            for (unsigned p = 0; p < phrases; p++) {
                unsigned phrase = random() % 3, length = 3 + phrase * 7;
                for (unsigned i = 0; i < length; i++) {
                    uint32_t grid = random() % 10 ? 1 : 1 + random() % 4;
                    program.Op("p" + std::to_string(phrase) + "_" + std::to_string(i % 6),
                               random() % 20 ? i : random() % 5, i, grid, random() % 40 ? 32 : 64);
                    if (random() % 60 == 0)
                        program.Break();
                    if (random() % 80 == 0 && program.plan.view.segment)
                        program.Flush((cus_cut)(random() % 4));
                    program.may_begin = random() % 50 != 0;
                }
            }
            if (random() % 3)
                program.Sync();
        }
        if (program.plan.view.segment)
            program.Flush(CUS_CUT_OTHER);
        ExpectFaithful(program);
        if (HasFatalFailure())
            FAIL() << "seed " << seed;
    }
}

} // namespace
