// No step is held up by building for longer than its share, whoever says what is to be built.
#include "tests/unit/stream/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace {

enum { PIECE = 125 };

// How long the step with so many launches takes more than its launches would have: all of them are
// built by advice, as far as that fits, in pieces of which each node takes `node_ns`.
struct Step {
    double late_us = 0;
    unsigned built = 0;
};
Step Build(uint32_t launches, uint64_t node_ns) {
    Step step;
    uint64_t ns = 30000 + PIECE * node_ns, saved = PIECE * 2400;
    shares_step(launches);
    for (uint32_t at = 0; at + PIECE <= launches; at += PIECE)
        if (shares_build(PIECE, ns, true)) {
            step.built += PIECE;
            step.late_us += ((double)ns - (double)saved) / 1000;
        }
    return step;
}

// What a node takes is measured, from test to test.
void Settle() {
    for (int step = 0; step < 40; step++)
        Build(1000, 2500);
}

TEST(Shares, AStepByAdviceIsInGraphsAtOnceWhereThatIsNoLonger) {
    Settle();
    for (uint32_t launches : {1000u, 10000u, 100000u}) {
        Step step = Build(launches, 2500);
        EXPECT_EQ(step.built, launches);
        EXPECT_LE(step.late_us, 0.7 * launches);
    }
    EXPECT_EQ(Build(1000, 1000).built, 1000u);
}

TEST(Shares, WhereBuildingIsSlowAdviceIsSpread) {
    for (uint64_t node_ns : {4000u, 8000u, 20000u})
        for (uint32_t launches : {1000u, 10000u}) {
            Build(launches, node_ns); // what a node takes is measured
            Build(launches, node_ns);
            Step step = Build(launches, node_ns);
            EXPECT_GE(step.built, (unsigned)PIECE) << "one fits always";
            EXPECT_LT(step.built, launches);
            // The last one may take longer than was thought, and one that is alone anything.
            double one = (30000 + PIECE * (node_ns - 2400.)) / 1000;
            EXPECT_LE(step.late_us, std::max(0.7 * launches, one) * 1.1) << node_ns;
        }
}

// The first graph of a process may take a millisecond, however small it is: the step goes on.
TEST(Shares, AFirstBuildThatSetsThingsUpIsNotTheWholeShare) {
    Settle();
    shares_step(1000);
    EXPECT_TRUE(shares_build(4, 5000000, true));
    EXPECT_TRUE(shares_build(PIECE, 340000, true));
    EXPECT_TRUE(shares_build(PIECE, 340000, true));
}

// Not more nodes than the step had launches, however fast they are built.
TEST(Shares, AdviceBuildsNoMoreThanTheStep) {
    shares_step(4000);
    unsigned built = 0;
    for (int i = 0; i < 100; i++)
        built += shares_build(PIECE, PIECE * 100, true) ? PIECE : 0;
    EXPECT_GE(built, 4000u);
    EXPECT_LE(built, 4000u + 256 * 4);
}

// What advice took is not there for others.
TEST(Shares, OneShareForAll) {
    Settle();
    shares_step(1000);
    EXPECT_TRUE(shares_build(PIECE, 1000000, true));
    EXPECT_FALSE(shares_build(PIECE, 300000, false));
    EXPECT_FALSE(shares_build(2, 5000, false));
    shares_step(1000);
    EXPECT_TRUE(shares_build(2, 5000, false));
}

} // namespace
