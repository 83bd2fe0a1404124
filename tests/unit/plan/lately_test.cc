// Promise: recent events decide whether a segment ends somewhere or is dropped; neither rare
// chances nor older behaviour do.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>

extern "C" {
#include "shim/plan/account.h"
}

namespace {

enum { OPS = 12, CUT = 6 };

class Lately : public testing::Test {
  protected:
    Program program{{2, OPS, OPS, 0, 4, 100000, CUS_MODE_PIECEWISE, false}};

    void Step(bool cut = false) {
        for (int i = 0; i < OPS; i++) {
            if (i == CUT && cut)
                program.Break();
            program.Op("k" + std::to_string(i));
        }
        program.Sync();
    }
    void Steps(unsigned n) {
        while (n--)
            Step();
    }
    const cus_node *At(unsigned op) const {
        const cus_node *node = program.plan.tree.root.child;
        while (op--)
            node = node->child;
        return node;
    }
    unsigned Boundary(unsigned op = CUT - 1) const { return At(op)->boundary; }
};

TEST_F(Lately, CutsThatAreFarApartAreChance) {
    Steps(10);
    for (int step = 0; step < 1000; step++)
        Step(step % 16 == 0);
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_NONE);
    EXPECT_EQ(program.built, 1u);
    for (int step = 0; step < 8; step++)
        Step(step % 4 == 0);
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_CUT);
}

// A cut costs the ops that are deferred: where these are few it must come more often.
TEST_F(Lately, ACutOfManyOpsCountsMore) {
    auto boundary = [](unsigned ops, int every) {
        Program fresh{{2, OPS, OPS, 0, 4, 100000, CUS_MODE_PIECEWISE, false}};
        for (int step = -10; step < 200; step++) {
            for (unsigned i = 0; i < OPS; i++) {
                if (i == ops && step >= 0 && step % every == 0)
                    fresh.Break();
                fresh.Op("k" + std::to_string(i));
            }
            fresh.Sync();
        }
        const cus_node *node = fresh.plan.tree.root.child;
        for (unsigned op = 1; op < ops; op++)
            node = node->child;
        return node->boundary;
    };
    EXPECT_EQ(boundary(11, 10), CUS_BOUNDARY_CUT);
    EXPECT_EQ(boundary(11, 13), CUS_BOUNDARY_NONE);
    EXPECT_EQ(boundary(3, 5), CUS_BOUNDARY_NONE);
    EXPECT_EQ(boundary(3, 3), CUS_BOUNDARY_CUT);
}

// Boundaries where segments end anyway: the three are formed anew, and the one between them is
// counted once.
TEST_F(Lately, SegmentsThatAreFormedAnewAreCountedOnce) {
    const int third = OPS / 3;
    Program thirds{{2, third, third, 0, 4, 100000, CUS_MODE_PIECEWISE, false}};
    auto steps = [&](unsigned n, bool cut) {
        for (; n; n--) {
            for (int i = 0; i < OPS; i++) {
                if (i && i % third == 0 && cut)
                    thirds.Break();
                thirds.Op("k" + std::to_string(i));
            }
            thirds.Sync();
        }
    };
    steps(10, false);
    ASSERT_EQ(thirds.plan.view.n_segments, 3u);
    steps(4, true);
    EXPECT_EQ(thirds.dropped, 0u);
    steps(60, false);
    EXPECT_EQ(thirds.dropped, 3u);
    EXPECT_EQ(thirds.plan.n_stale, 0u);
}

// Where the host never waits they stay, and get further graphs.
TEST_F(Lately, InALoopWithoutWaitsNothingIsFormedAnew) {
    auto turns = [this](unsigned n, bool cut, unsigned grids) {
        for (unsigned turn = 0; turn < n; turn++)
            for (int i = 0; i < OPS; i++) {
                if (i == CUT && cut)
                    program.Break();
                program.Op("k" + std::to_string(i), 0, 0, 1 + turn % grids);
            }
    };
    turns(400, true, 1);
    turns(20000, false, 1);
    EXPECT_EQ(program.plan.n_stale, 0u);
    unsigned built = program.built;
    turns(4000, false, 2);
    EXPECT_GT(program.built, built);
    program.Break();
    EXPECT_EQ(program.issued, program.requested);
}

// As long as breaks come there, one for each as many passes as there are ops in front of it.
TEST_F(Lately, ABoundaryWithABreakNowAndThenStays) {
    Steps(10);
    for (int step = 0; step < 4; step++)
        Step(true);
    ASSERT_EQ(Boundary(), CUS_BOUNDARY_CUT);
    unsigned built = program.built;
    for (int step = 0; step < 100000; step++)
        Step(step % 4 == 0);
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_CUT);
    EXPECT_LE(program.built, built + 2);
    Steps(40000);
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_NONE) << "nor for ever";
}

// Where somebody waits until the watchdog issues what is deferred, segments end for good: each time
// takes as long as some hundred ops.
TEST_F(Lately, APlaceThatKeepsAWaiterIsABoundaryAndStaysOne) {
    auto steps = [this](unsigned n, unsigned each) {
        for (unsigned step = 0; step < n; step++) {
            for (int i = 0; i < OPS; i++) {
                if (i == 3 && step % each == 0) {
                    if (program.plan.view.segment)
                        program.Flush(CUS_CUT_WATCHDOG);
                    program.now += 2000000;
                }
                program.Op("k" + std::to_string(i));
            }
            program.Sync();
        }
    };
    Steps(10);
    steps(1000, 100);
    EXPECT_EQ(Boundary(2), CUS_BOUNDARY_GAP);
    unsigned flushes = program.flushes, dropped = program.dropped;
    steps(20000, 100);
    EXPECT_EQ(program.flushes, flushes) << "nobody waits there any more";
    EXPECT_EQ(program.dropped, dropped);
    Steps(2000);
    EXPECT_EQ(Boundary(2), CUS_BOUNDARY_GAP) << "a pause in 400 passes keeps it";
    Steps(60000);
    EXPECT_EQ(Boundary(2), CUS_BOUNDARY_NONE) << "nor for ever";
    program.ResetCounts();
    Steps(2);
    EXPECT_EQ(program.segments.size(), 2u) << "one segment again";
}

// A thread that had no processor may lose it anywhere, and even some times in a row at one place.
class Pauses : public Lately {
  protected:
    // The thread is paused in each `every`-th of the steps.
    void Steps(int steps, int every) {
        for (int step = 1; step <= steps; step++) {
            for (int i = 0; i < OPS; i++) {
                if (i == 3 && step % every == 0 && program.plan.view.segment)
                    program.Flush(CUS_CUT_PAUSED);
                program.Op("k" + std::to_string(i));
            }
            program.Sync();
        }
    }
};

TEST_F(Pauses, OfChanceAreNoBoundary) {
    Steps(10, INT_MAX);
    Steps(1000, 9);
    EXPECT_EQ(Boundary(2), CUS_BOUNDARY_NONE);
    Steps(40, INT_MAX);
    Steps(3, 1);
    EXPECT_EQ(Boundary(2), CUS_BOUNDARY_NONE);
    EXPECT_EQ(program.dropped, 0u) << "nor is the segment lost";
}

// A thread that polls has to wait for its processor at the same place again.
TEST_F(Pauses, AtOnePlaceAgainAndAgainAreOne) {
    Steps(10, INT_MAX);
    Steps(1000, 8);
    EXPECT_EQ(Boundary(2), CUS_BOUNDARY_GAP);
    EXPECT_EQ(program.flushes, 4u) << "nobody waits there any more";
}

// Where it is one op that is lost, which would be in no graph by itself, it must come each time.
TEST_F(Lately, NoBoundaryIsWorthASingleOp) {
    for (int step = 0; step < 300; step++) {
        program.Op("k0");
        if (step % 3)
            program.Op("k1");
        program.Sync();
    }
    EXPECT_EQ(Boundary(0), CUS_BOUNDARY_NONE);
    EXPECT_GE(program.in_graphs, 2 * 190u);
    for (int step = 0; step < 30; step++) {
        program.Op("k0");
        program.Sync();
    }
    EXPECT_EQ(Boundary(0), CUS_BOUNDARY_CUT);
}

// So is one behind which a step ends now and then.
TEST_F(Lately, WhereStepsEndABoundaryStays) {
    Steps(10);
    unsigned built = 0;
    for (int step = 0; step < 10000; step++) {
        for (int i = 0; i < (step % 4 ? OPS : CUT); i++)
            program.Op("k" + std::to_string(i));
        program.Sync();
        if (step == 100)
            built = program.built;
    }
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_CUT);
    EXPECT_EQ(program.built, built);
    EXPECT_EQ(program.issued, program.requested);
}

// Each time that a boundary that was forgotten comes back soon it is kept twice as long.
TEST_F(Lately, ABoundaryThatComesBackSoonIsKeptLonger) {
    unsigned cuts = 0;
    auto passes = [&] {
        for (cuts = 0; Boundary() == CUS_BOUNDARY_NONE; cuts++)
            Step(true);
        unsigned n = 0;
        for (; Boundary() != CUS_BOUNDARY_NONE && n < 10000; n++)
            Step();
        return n;
    };
    Steps(10);
    unsigned least = 2;
    for (unsigned expected = 16; expected <= 4096; expected *= 2) {
        unsigned n = passes();
        EXPECT_GE(n, expected);
        EXPECT_LE(n, expected + 4);
        EXPECT_GE(cuts, std::min(least, 12u)) << "or it goes for being lost";
        least += 2;
        Steps(4);
        EXPECT_EQ(program.segments.back(), 0u + OPS) << "what it kept apart is one again";
    }
    EXPECT_LE(passes(), 4096u + 4) << "at most";
    Steps(4200); // it was in nobody's way for long
    EXPECT_LE(passes(), 16u + 4);
}

// Cuts by others teach nothing of where it should end, but they cost what is deferred.
TEST_F(Lately, ASegmentThatIsLostMoreOftenThanNotGoesHoweverLongItWasLaunched) {
    Steps(10000);
    ASSERT_EQ(program.dropped, 0u);
    for (int step = 0; step < 140; step++) {
        for (int i = 0; i < OPS; i++) {
            if (i == 1 + step % 9 && program.plan.view.segment)
                program.Flush(CUS_CUT_OTHER);
            program.Op("k" + std::to_string(i));
        }
        program.Sync();
    }
    EXPECT_GE(program.dropped, 1u);
    EXPECT_EQ(program.issued, program.requested);
}

TEST_F(Lately, ASegmentThatIsLostNowAndThenStays) {
    for (int step = 0; step < 10000; step++) {
        for (int i = 0; i < OPS; i++) {
            if (i == 1 + step % 9 && step % 5 < 2 && program.plan.view.segment)
                program.Flush(CUS_CUT_OTHER);
            program.Op("k" + std::to_string(i));
        }
        program.Sync();
    }
    EXPECT_EQ(program.dropped, 0u);
}

TEST_F(Lately, PathsPartWhereAnotherWayIsTakenNowHoweverLongTheFirstOneWas) {
    Steps(10000);
    auto another = [this](const std::string &instead) {
        for (int i = 0; i < OPS; i++)
            program.Op(i == CUT ? instead : "k" + std::to_string(i));
        program.Sync();
    };
    for (int step = 0; step < 64; step++) {
        another("chance");
        Steps(7);
    }
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_NONE) << "one of eight";
    for (int step = 0; step < 16; step++)
        another("other");
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_FORK);
}

// Some in a row that are odd, at another place each time.
TEST_F(Lately, PathsDoNotPartForAFewOddSteps) {
    for (int odd = 2; odd < OPS; odd++) {
        Steps(1000);
        for (int step = 0; step < 8; step++) {
            for (int i = 0; i < OPS; i++)
                program.Op(i == odd ? "odd" : "k" + std::to_string(i));
            program.Sync();
        }
    }
    program.ResetCounts();
    Steps(10);
    EXPECT_EQ(program.segments, std::vector<uint32_t>(10, OPS));
}

// Ways that are both taken stay apart; where it is one alone, for long, they do not.
TEST_F(Lately, AForkIsForgotten) {
    auto steps = [this](unsigned n, unsigned other) {
        for (unsigned step = 0; step < n; step++) {
            for (int i = 0; i < OPS; i++)
                program.Op((other && step % other == 0 && i >= CUT ? "other" : "k") +
                           std::to_string(i));
            program.Sync();
        }
    };
    steps(10, 0);
    steps(40, 2);
    ASSERT_EQ(Boundary(), CUS_BOUNDARY_FORK);
    steps(20000, 100);
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_FORK);
    steps(4110, 0);
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_NONE);
    program.ResetCounts();
    Steps(10);
    EXPECT_EQ(program.segments, std::vector<uint32_t>(10, OPS)) << "one segment";
    steps(200, 2);
    EXPECT_EQ(Boundary(), CUS_BOUNDARY_FORK);
    EXPECT_EQ(program.issued, program.requested);
}

// The same behind its first op, where it is not cut: which segment it is need not be known yet.
TEST_F(Lately, PathsPartEarlyWhereMostLeaveForWhatNoSegmentHas) {
    Steps(10000);
    for (int step = 0; step < 9000; step++) {
        program.Op("k0");
        program.Op("stray" + std::to_string(step));
        program.Sync();
    }
    EXPECT_EQ(Boundary(0), CUS_BOUNDARY_FORK);
    EXPECT_EQ(program.issued, program.requested);
}

TEST(Account, AGraphThatIsMadeAnewCostsMoreThanItsNodes) {
    cus_account built = {}, anew = {};
    built.ops = anew.ops = built.in_graphs = anew.in_graphs = built.built = anew.built = 20;
    built.launches = anew.launches = anew.anew = 1;
    EXPECT_GT(cus_account_balance(&built), -5000) << "as much as the ops by themselves, nearly";
    EXPECT_EQ(cus_account_balance(&anew), cus_account_balance(&built) - CUS_COST_ANEW);
}

} // namespace
