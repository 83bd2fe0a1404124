// What the plan promises: ops come out in the order and with the params in which they were asked
// for, whatever it withholds; a path that repeats is launched in pieces; what does not fit costs no
// more than eager launches.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

namespace {

void Step(Program &program, unsigned ops, uint64_t pointer = 100) {
    for (unsigned i = 0; i < ops; i++)
        program.Op("k" + std::to_string(i % 5), pointer + i, i);
    program.Sync();
}

void ExpectFaithful(const Program &program) {
    ASSERT_EQ(program.asked.size(), program.issued.size());
    for (size_t i = 0; i < program.asked.size(); i++)
        ASSERT_EQ(program.asked[i], program.issued[i]) << "op " << i;
}

TEST(Plan, RepeatedStepIsLaunchedInRampingPieces) {
    Program program;
    for (int step = 0; step < 5; step++)
        Step(program, 28);
    ExpectFaithful(program);
    EXPECT_EQ(program.pieces.size(), 9u);
    EXPECT_EQ(program.pieces[0], 4u);
    EXPECT_EQ(program.pieces[1], 8u);
    EXPECT_EQ(program.pieces[2], 16u);
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

TEST(Plan, PiecesThatMayNotBeginYetAreAsLargeAsOthers) {
    Program program;
    for (int step = 0; step < 5; step++) {
        program.may_begin = step == 4; // until then other threads build
        Step(program, 28);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.pieces, (std::vector<uint32_t>{4, 8, 16}));
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
        uint64_t asked[kWords];
        void *params[kWords];
        plan.at = &image.expected;
        image.expected.words = static_cast<uint16_t>(n);
        for (unsigned i = 0; i < kWords; i++) {
            image.params[i] = asked[i] = 0x0101010101010101u * i;
            params[i] = &asked[i];
        }
        EXPECT_FALSE(cus_plan_differs(&plan, params)) << n << " words";
        for (unsigned i = 0; i < kWords; i++)
            for (unsigned bit : {0, 31, 32, 63}) {
                asked[i] ^= uint64_t{1} << bit;
                EXPECT_EQ(cus_plan_differs(&plan, params), i < n)
                    << n << " words, bit " << bit << " of " << i;
                asked[i] ^= uint64_t{1} << bit;
            }
    }
}

TEST(Plan, WarmupIsHonoured) {
    Program program({5, 4, 64, 0, 4, 100000, CUS_MODE_PIECEWISE});
    for (int step = 0; step < 5; step++)
        Step(program, 12);
    EXPECT_EQ(program.in_graphs, 0u);
    Step(program, 12);
    EXPECT_EQ(program.in_graphs, 12u);
}

TEST(Plan, UnchangedOpsPatchNothing) {
    Program program;
    for (int step = 0; step < 10; step++)
        Step(program, 28);
    EXPECT_EQ(program.patched, 0u);
    EXPECT_EQ(program.exact, 7u * 3);
}

TEST(Plan, ChangedParamsArePatchedAndRunAsAsked) {
    Program program;
    for (int step = 0; step < 10; step++)
        Step(program, 28, step == 7 ? 100000 : 100);
    ExpectFaithful(program);
    EXPECT_EQ(program.patched, 2u * 28) << "there and back";
}

TEST(Plan, AddressesThatTakeTurnsEarnASecondExec) {
    Program program;
    for (int step = 0; step < 20; step++) {
        if (step == 10)
            program.ResetCounts();
        Step(program, 28, step % 2 ? 5000 : 100);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.in_graphs, 10u * 28);
    EXPECT_EQ(program.patched, 0u);
}

// Layers are alike, and in each of them the same ops have other addresses: what stands for all must
// not be the same op of each layer, whichever that is.
TEST(Plan, AddressesOfAnyOpsOfALayerThatTakeTurnEarnASecondExec) {
    for (unsigned first = 0; first < 8; first++) {
        Program program({2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE});
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

TEST(Plan, OneNewScalarDoesNotHideThatAddressesTakeTurns) {
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
    EXPECT_EQ(program.patched, 8u * (2 + 2)) << "the new scalars, and two nodes of the first piece";
}

// The holes of a params struct hold what the stack held: every third op differs each time.
void StepWithHoles(Program &program, int step) {
    for (unsigned i = 0; i < 28; i++)
        program.Op("k" + std::to_string(i % 5), i + (step % 2) * 5000, i % 3 ? 7 : 100000 + step);
    program.Sync();
}

TEST(Plan, HolesThatAreNeverTheSameDoNotHideThatAddressesTakeTurns) {
    Program program;
    for (int step = 0; step < 40; step++) {
        if (step == 20)
            program.ResetCounts();
        StepWithHoles(program, step);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.patched, 20u * (10 + 2)) << "the holes, and two nodes of the first piece";
    EXPECT_EQ(program.dropped, 0u);
}

TEST(Plan, TheVariantThatCameNextBeforeIsPredicted) {
    Program program;
    for (int step = 0; step < 40; step++) {
        if (step == 20)
            program.ResetCounts();
        StepWithHoles(program, step);
    }
    // The first ops of the pieces (0, 4, 12) have holes but for one: they say nothing.
    EXPECT_EQ(program.mispredicted, 0u);
    EXPECT_EQ(program.exact, 20u * 3);
}

TEST(Plan, NoVariantIsBuiltForHolesAlone) {
    Program program;
    for (int step = 0; step < 300; step++) {
        for (unsigned i = 0; i < 28; i++)
            program.Op("k" + std::to_string(i % 5), i, i % 2 ? 7 : 100000 + step);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 3u);
}

TEST(Plan, AddressesThatNeverComeAgainEarnNone) {
    Program program;
    for (int step = 0; step < 20; step++)
        Step(program, 28, 1000 * step);
    ExpectFaithful(program);
    EXPECT_EQ(program.built, 3u);
}

TEST(Plan, GrowingGridIsPatchedNotMissed) {
    Program program;
    for (uint32_t step = 0; step < 20; step++) {
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), 1, 2, i == 5 ? step + 1 : 1);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.in_graphs, 18u * 12);
    EXPECT_EQ(program.built, 2u) << "one exec a piece: a size that never comes again earns none";
    EXPECT_EQ(program.patched, 17u);
}

TEST(Plan, BatchSizesInTurnHitExactlyFromTheThirdRound) {
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

TEST(Plan, NewBlockSizeRunsEagerlyFirst) {
    Program program;
    for (int step = 0; step < 4; step++)
        Step(program, 12);
    program.ResetCounts();
    for (int i = 0; i < 12; i++)
        program.Op("k" + std::to_string(i % 5), 100 + i, i, 1, i == 2 ? 64 : 32);
    program.Sync();
    ExpectFaithful(program);
    EXPECT_GE(program.eager, 3u);
    EXPECT_LT(program.eager, 12u);
}

TEST(Plan, BadGridIsNeverWithheld) {
    Program program;
    for (int step = 0; step < 4; step++)
        Step(program, 12);
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

TEST(Plan, CooperativeLaunchIsWithheldWithAGridThatRanOnly) {
    Program program;
    program.Kind("k2")->cooperative = true;
    for (int step = 0; step < 4; step++)
        Step(program, 12);
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

TEST(Plan, DivergenceIssuesWhatWasWithheldInOrder) {
    Program program;
    for (int step = 0; step < 4; step++)
        Step(program, 28);
    program.Op("k0", 100, 0);
    program.Op("k1", 101, 1);
    program.Op("other", 7, 7);
    program.Sync();
    ExpectFaithful(program);
    EXPECT_EQ(program.diverged, 1u);
}

TEST(Plan, RejoinsBehindADivergence) {
    Program program;
    auto step = [&](int odd_at) {
        for (int i = 0; i < 60; i++) {
            if (i == odd_at)
                program.Op("odd", 9, 9);
            program.Op("k" + std::to_string(i), 100 + i, i);
        }
        program.Sync();
    };
    for (int i = 0; i < 5; i++)
        step(-1);
    program.ResetCounts();
    step(9);
    ExpectFaithful(program);
    EXPECT_GE(program.in_graphs, 4u + 32) << "the pieces behind the odd op are found again";
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
    EXPECT_EQ(program.eager, 0u) << "once learned, nothing is withheld where the call comes";
    EXPECT_EQ(program.flushes, 0u);
}

// What comes between ops while they are observed would cut pieces later on: none is ever begun
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
    EXPECT_EQ(program.built, 0u) << "each piece is what it stays when it is first launched";
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
            if (i == 2 && step % 3 == 0 && program.plan.piece)
                program.Flush(CUS_CUT_OTHER);
        }
        program.Sync();
    }
    program.ResetCounts();
    for (int i = 0; i < 28; i++)
        program.Op("k" + std::to_string(i), i, i);
    program.Sync();
    ExpectFaithful(program);
    EXPECT_EQ(program.pieces, (std::vector<uint32_t>{4, 8, 16}));
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
    ASSERT_TRUE(cus_segments_json(&program.plan.last, text, sizeof text));
    EXPECT_STREQ(text, "[\"graph 7\", \"eager attention\", \"graph 9\"]");
}

TEST(Plan, LoopThatNeverSynchronisesConvergesInBoundedMemory) {
    Program program;
    for (int turn = 0; turn < 1000; turn++)
        for (int i = 0; i < 37; i++)
            program.Op("k" + std::to_string(i), i, i);
    EXPECT_GT(program.in_graphs, 37u * 1000 * 8 / 10);
    EXPECT_LT(program.plan.tree.n_nodes, 6000u);
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
    if (program.plan.piece)
        program.Flush(CUS_CUT_OTHER);
    ExpectFaithful(program);
}

TEST(Plan, TreeIsBounded) {
    Program program({2, 4, 64, 0, 4, 1000, CUS_MODE_PIECEWISE});
    std::mt19937 random(1);
    for (int i = 0; i < 20000; i++)
        program.Op("k" + std::to_string(random() % 50), i, i);
    if (program.plan.piece)
        program.Flush(CUS_CUT_OTHER);
    EXPECT_LE(program.plan.tree.n_nodes, 1000u);
    ExpectFaithful(program);
}

TEST(Plan, DroppingAHandleDropsItsPiecesOnly) {
    Program program;
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), i, i);
        program.Sync();
    }
    ASSERT_EQ(program.plan.n_pieces, 2u);
    cus_plan_drop_handle(&program.plan, program.Kind("k5")->handle);
    EXPECT_EQ(program.plan.n_pieces, 1u);
    EXPECT_EQ(program.dropped, 1u);
}

TEST(Plan, OldestPieceIsDroppedFirst) {
    Program program;
    for (int step = 0; step < 4; step++)
        Step(program, 12);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 4; i++)
            program.Op("z" + std::to_string(i), i, i);
        program.Sync();
    }
    ASSERT_TRUE(cus_plan_drop_oldest(&program.plan));
    EXPECT_EQ(program.plan.tree.root.child->piece, nullptr);
}

TEST(Plan, WhatTheNextStepWantsIsNotDropped) {
    Program program;
    for (int step = 0; step < 6; step++)
        Step(program, 28);
    EXPECT_FALSE(cus_plan_drop_oldest(&program.plan));
    EXPECT_EQ(program.dropped, 0u);
}

TEST(Plan, NothingBeginsWhileTheCallerMayNot) {
    Program program;
    program.may_begin = false;
    for (int step = 0; step < 10; step++)
        Step(program, 28);
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
    EXPECT_EQ(program.pieces[0], 5u);
}

// Sizes of the pieces of a step of `ops` ops, learned at a host pace of `ns` per op.
std::vector<uint32_t> PiecesAtPace(uint64_t ns, unsigned ops) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
    for (int step = 0; step < 4; step++) {
        program.pieces.clear();
        for (unsigned i = 0; i < ops; i++) {
            cus_plan_paced(&program.plan, 64, 64 * ns);
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
    }
    ExpectFaithful(program);
    return program.pieces;
}

TEST(Plan, FastHostFillsFewLargePieces) {
    EXPECT_EQ(PiecesAtPace(100, 1000), (std::vector<uint32_t>{4, 17, 94, 550, 335}));
    EXPECT_EQ(PiecesAtPace(160, 240), (std::vector<uint32_t>{4, 15, 51, 170}))
        << "as the step ends there no piece is smaller than it need be";
}

TEST(Plan, SlowHostGetsSmallPiecesTowardsTheEndOfTheStep) {
    std::vector<uint32_t> pieces = PiecesAtPace(5000, 300);
    EXPECT_EQ(pieces.front(), 4u);
    EXPECT_EQ(*std::max_element(pieces.begin(), pieces.end()), 64u);
    EXPECT_LE(pieces.back(), 4u) << "what is withheld last is what the host then waits for";
}

TEST(Plan, PiecesShapedByAColdHostAreFormedAnewOnce) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
    for (int step = 0; step < 40; step++) {
        program.pieces.clear();
        for (unsigned i = 0; i < 1000; i++) {
            cus_plan_paced(&program.plan, 64, 64 * (step < 5 ? 900 : 100));
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.pieces, (std::vector<uint32_t>{4, 17, 93, 539, 347}));
}

// The host's pace is never quite the same.
TEST(Plan, PiecesDoNotFollowAPaceThatWobbles) {
    for (uint64_t ns : {75, 130, 250, 500})
        for (unsigned ops : {60, 240, 1000}) {
            Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
            std::mt19937 random(ops);
            std::set<std::vector<uint32_t>> seen;
            for (int step = 0; step < 400; step++) {
                program.pieces.clear();
                uint64_t pace = ns * (80 + random() % 41) / 100;
                for (unsigned i = 0; i < ops; i++) {
                    if (i % 20 == 19)
                        cus_plan_paced(&program.plan, 1000, 1000 * pace);
                    program.Op("k" + std::to_string(i % 7), i, i);
                }
                program.Sync();
                if (step >= 5)
                    seen.insert(program.pieces);
            }
            ExpectFaithful(program);
            EXPECT_EQ(seen.size(), 1u) << ops << " ops at " << ns;
        }
}

// Forming pieces anew costs every graph of the stream.
TEST(Plan, PiecesAreFormedAnewWhereThatIsWorthIt) {
    auto formed = [](uint32_t piece_first, unsigned ops, uint64_t cold, uint64_t warm) {
        Program program({2, piece_first, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
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
    EXPECT_GT(formed(4, 2000, 900, 500), 0u) << "larger pieces are filled in time";
    EXPECT_EQ(formed(64, 50, 2000, 100), 0u) << "the step is one piece at either pace";
    EXPECT_EQ(formed(4, 1000, 100, 60), 0u) << "four pieces, and the GPU waits for none";
    EXPECT_GT(formed(4, 1000, 900, 250), 0u) << "fewer pieces";
    EXPECT_GT(formed(64, 500, 2000, 100), 0u);
}

// Of many steps some are always formed while the host is busy: the others need not go for these.
TEST(Plan, PiecesAreNotFormedAnewForAFewThatASlowHostShaped) {
    auto formed = [](unsigned slow) {
        Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
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
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
    auto formed = [&](uint32_t share) {
        uint64_t before = program.plan.n_formed;
        program.plan.share = share;
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
    EXPECT_GT(program.plan.n_shared, 0u);
    EXPECT_EQ(formed(small ? 7 : 150), 0u);
    EXPECT_EQ(formed(small ? 3 : 50), 0u);
    EXPECT_GT(formed(small ? 8 : 200), 0u);
    ExpectFaithful(program);
    cus_plan_clear(&program.plan);
    EXPECT_EQ(program.plan.n_shared, 0u) << "they are gone";
    EXPECT_EQ(program.plan.shares, 0u);
}
TEST(Plan, PiecesFollowAShareThatIsTwiceAsLarge) {
    FollowShare(false);
    FollowShare(true); // less than the first piece may have: pieces have that
}

// Each piece that is formed anew misses once for every shape: not after the third round of five.
// Where it ends at an op at which none ended before, shapes come there unknown: they are patched
// into the graphs of others, the last of which is built again at the beginning of the fourth round.
TEST(Plan, PiecesOfFiveShapesInTurnAreSettledInThreeRounds) {
    for (uint64_t warm : {900, 350, 200, 100}) {
        Program program({2, 4, 1024, 500000, 8, 100000, CUS_MODE_PIECEWISE});
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
TEST(Plan, WhatIsPutOffWaitsUntilItIsBegun) {
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

// Where breaks shape nearly all pieces they would be the same at another pace.
TEST(Plan, PiecesThatBreaksShapeAreNotFormedAnew) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
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

// A thread that waits for a processor in the midst of a piece has not become slow.
TEST(Plan, OneStallSaysNothingOfTheHostsPace) {
    Program program;
    for (int i = 0; i < 10; i++)
        cus_plan_paced(&program.plan, 64, 64 * 100);
    cus_plan_paced(&program.plan, 64, 3000000);
    EXPECT_LT(program.plan.ns_per_op, 200u);
    for (int i = 0; i < 50; i++)
        cus_plan_paced(&program.plan, 64, 64 * 8000);
    EXPECT_GT(program.plan.ns_per_op, 7000u) << "but many do";
}

// The smallest pieces say least, but not nothing.
TEST(Plan, FastHostThatBecomesSlowIsNoticedBySmallPieces) {
    Program program;
    for (int i = 0; i < 10; i++)
        cus_plan_paced(&program.plan, 1000, 1000 * 40);
    for (int i = 0; i < 1000; i++)
        cus_plan_paced(&program.plan, 1, 8000);
    EXPECT_GT(program.plan.ns_per_op, 7000u);
}

// Threads in the way of each other shape small pieces, again when they are formed anew.
TEST(Plan, PiecesShapedByAHostInDistressAreFormedAnewAgain) {
    Program program({2, 4, 1024, 500000, 4, 100000, CUS_MODE_PIECEWISE});
    std::vector<unsigned> formed;
    for (int step = 0; step < 2000; step++) {
        bool slow = step < 5 || (step > 7 && step < 15);
        program.pieces.clear();
        for (unsigned i = 0; i < 1000; i++) {
            cus_plan_paced(&program.plan, 64, 64 * (slow ? 2000 : 100));
            program.Op("k" + std::to_string(i % 7), i, i);
        }
        program.Sync();
        if (step == 15 || step == 100)
            formed.push_back((unsigned)program.plan.n_formed);
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.pieces, (std::vector<uint32_t>{4, 17, 93, 539, 347}));
    EXPECT_GT(formed[1], formed[0]);
    EXPECT_EQ(program.plan.n_formed, formed[1]) << "and then no more";
}

// The first and the last op of a piece cost the host more than those between them.
TEST(Plan, SmallPiecesSayLittleOfTheHostsPace) {
    Program program;
    for (int step = 0; step < 10; step++) {
        cus_plan_paced(&program.plan, 3, 3 * 400);
        cus_plan_paced(&program.plan, 23, 23 * 200);
        cus_plan_paced(&program.plan, 900, 900 * 100);
    }
    EXPECT_LT(program.plan.ns_per_op, 120u);
}

TEST(Plan, NoPieceTakesTheHostLongToFill) {
    for (uint32_t size : PiecesAtPace(50000, 300))
        EXPECT_LE(size, 10u) << "500 us at 50 us an op";
}

// Steps of 64 ops between which the host pauses behind op `at(step)` for `ns`. Returns the sizes of
// the pieces of the last step.
std::vector<uint32_t> PiecesWithPause(Program &program, uint64_t ns, unsigned steps,
                                      const std::function<unsigned(unsigned)> &at) {
    for (unsigned step = 0; step < steps; step++) {
        program.pieces.clear();
        for (unsigned i = 0; i < 64; i++) {
            program.Op("k" + std::to_string(i % 7), i, i);
            if (i == at(step))
                program.now += ns;
        }
        program.Sync();
    }
    ExpectFaithful(program);
    return program.pieces;
}

TEST(Plan, PieceEndsWhereTheHostPauses) {
    Program program;
    auto at = [](unsigned) { return 10u; };
    EXPECT_EQ(PiecesWithPause(program, 300000, 5, at), (std::vector<uint32_t>{4, 8, 16, 32, 4}));
    EXPECT_EQ(PiecesWithPause(program, 300000, 20, at)[1], 7u) << "ops 4 to 10";
    unsigned formed = (unsigned)program.plan.n_formed;
    EXPECT_EQ(PiecesWithPause(program, 300000, 10000, at)[1], 7u);
    EXPECT_EQ(program.plan.n_formed, formed) << "for as long as it does";
}

TEST(Plan, PieceEndsAtEachOfTwoPauses) {
    Program program;
    for (unsigned step = 0; step < 200; step++) {
        program.pieces.clear();
        for (unsigned i = 0; i < 64; i++) {
            program.Op("k" + std::to_string(i % 7), i, i);
            if (i == 32 || i == 50)
                program.now += 300000 + step * (i == 32 ? 7919 : 104729) % 20000;
        }
        program.Sync();
    }
    ExpectFaithful(program);
    uint32_t at = 0;
    std::set<uint32_t> ends;
    for (uint32_t n : program.pieces)
        ends.insert(at += n);
    EXPECT_EQ(ends.count(33), 1u);
    EXPECT_EQ(ends.count(51), 1u);
}

TEST(Plan, ShortPausesAndThoseOfChanceCutNothing) {
    Program brief, chance;
    PiecesWithPause(brief, 30000, 300, [](unsigned) { return 10u; });
    EXPECT_EQ(brief.plan.n_formed, 5u);
    PiecesWithPause(chance, 300000, 300, [](unsigned step) { return step * 7 % 64; });
    EXPECT_EQ(chance.plan.n_formed, 5u);
}

TEST(Plan, OpsAreTimedSeldom) {
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

TEST(Plan, EachOfManyNodesIsPatchedAlone) {
    Program program({2, 1000, 1024, 0, 4, 100000, CUS_MODE_PIECEWISE});
    for (int step = 0; step < 12; step++) {
        if (step == 4)
            program.ResetCounts();
        for (unsigned i = 0; i < 1000; i++)
            program.Op("k" + std::to_string(i % 7), i, step >= 4 && i % 97 == 0 ? step : 0);
        program.Sync();
    }
    ExpectFaithful(program);
    EXPECT_EQ(program.pieces, std::vector<uint32_t>(8, 1000u));
    EXPECT_EQ(program.patched, 8u * 11);
}

TEST(Plan, MemoryNodesAreNotReliedUponOnceMemoryMayHaveGone) {
    Program program;
    program.Kind("copy")->type = CUS_OP_COPY;
    auto step = [&](uint32_t epoch) {
        cus_plan_memory(&program.plan, epoch);
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
    ExpectFaithful(program);
}

TEST(Plan, StreamThatNeverEndedAStepIsSearchedForALoopSoon) {
    Program program;
    for (int turn = 0; turn < 100; turn++)
        for (int i = 0; i < 37; i++)
            program.Op("k" + std::to_string(i % 10), i, turn);
    if (program.plan.piece)
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
                         CUS_MODE_PIECEWISE});
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
                    if (random() % 80 == 0 && program.plan.piece)
                        program.Flush((cus_cut)(random() % 4));
                    program.may_begin = random() % 50 != 0;
                }
            }
            if (random() % 3)
                program.Sync();
        }
        if (program.plan.piece)
            program.Flush(CUS_CUT_OTHER);
        ExpectFaithful(program);
        if (HasFatalFailure())
            FAIL() << "seed " << seed;
    }
}

// What was launched often is kept, with the way to it; everything else goes.
TEST(Plan, RestKeepsWhatWasLaunchedOften) {
    Program program;
    auto good = [&] {
        for (int i = 0; i < 12; i++)
            program.Op("k" + std::to_string(i), i);
        program.Sync();
    };
    auto bad = [&](int step) {
        for (int i = 0; i < 30; i++)
            program.Op("b" + std::to_string((step * 7 + i * i) % 23), i);
        program.Sync();
    };
    EXPECT_FALSE(cus_plan_rest(&program.plan)) << "there is nothing";
    for (int step = 0; step < 40; step++)
        good();
    uint32_t nodes = program.plan.tree.n_nodes;
    for (int step = 0; step < 40; step++)
        bad(step);
    EXPECT_GT(program.plan.tree.n_nodes, nodes);
    ASSERT_TRUE(cus_plan_rest(&program.plan));
    EXPECT_EQ(program.plan.tree.n_nodes, nodes);
    uint64_t heads[CUS_HEADS];
    ASSERT_EQ(cus_plan_heads(&program.plan, heads, CUS_HEADS), 1u);
    uint64_t head = 0;
    for (int i = 0; i < CUS_HEAD_OPS; i++)
        head = cus_head_add(head, (uintptr_t)program.Kind("k" + std::to_string(i))->handle);
    EXPECT_EQ(heads[0], head);
    program.ResetCounts();
    good();
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.eager, 0u);
    cus_plan_drop_handle(&program.plan, nullptr);
    EXPECT_FALSE(cus_plan_rest(&program.plan)) << "no graph is left";
    EXPECT_EQ(program.plan.tree.n_nodes, 0u);
    ExpectFaithful(program);
}

// What goes may be the path that was there first, and the one that was taken last.
TEST(Plan, RestKeepsTheWayToStepsThatCameLater) {
    Program program;
    uint64_t pointer = 0; // another one each time: a piece is not found by its first op
    auto step = [&](const std::string &name) {
        for (int i = 0; i < 12; i++)
            program.Op(name + std::to_string(i), pointer++);
        program.Sync();
    };
    step("once");
    for (int i = 0; i < 40; i++) {
        step("a");
        step("b");
    }
    step("other");
    ASSERT_TRUE(cus_plan_rest(&program.plan));
    uint32_t nodes = program.plan.tree.n_nodes;
    EXPECT_EQ(nodes, 24u);
    program.ResetCounts();
    step("a");
    step("b");
    step("a");
    EXPECT_EQ(program.eager, 0u);
    EXPECT_EQ(program.built, 0u);
    EXPECT_EQ(program.plan.tree.n_nodes, nodes);
    ExpectFaithful(program);
}

TEST(Plan, RandomProgramsThatRestAreFaithful) {
    unsigned kept = 0;
    for (unsigned seed = 0; seed < 60; seed++) {
        std::mt19937 random(seed);
        Program program({1 + seed % 3, 2 + seed % 5, 2 + seed % 40, 0, 1 + seed % 4, 100000,
                         CUS_MODE_PIECEWISE});
        for (int step = 0; step < 150; step++) {
            unsigned phrase = random() % 3;
            for (unsigned i = 0; i < 4 + phrase * 7; i++) {
                program.Op("p" + std::to_string(phrase) + "_" + std::to_string(i % 6),
                           random() % 40 ? i : random() % 5, i, 1, random() % 90 ? 32 : 64);
                if (random() % 200 == 0 && program.plan.piece)
                    program.Flush((cus_cut)(random() % 4));
                if (random() % 400 == 0 && !program.plan.piece)
                    kept += cus_plan_rest(&program.plan);
            }
            if (random() % 8)
                program.Sync();
            if (random() % 30 == 0 && !program.plan.piece)
                kept += cus_plan_rest(&program.plan);
        }
        if (program.plan.piece)
            program.Flush(CUS_CUT_OTHER);
        ExpectFaithful(program);
        if (HasFatalFailure())
            FAIL() << "seed " << seed;
    }
    EXPECT_GT(kept, 50u);
}

} // namespace
