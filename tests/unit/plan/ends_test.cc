// Promise: the events that make a boundary, or drop a segment, are counted exactly.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

extern "C" {
#include "shim/plan/learn.h"
}

namespace {

enum { OPS = 12, BEHIND = 5, PAUSE_NS = 1000000 };

class Ends : public testing::Test {
  protected:
    Program program{{2, OPS, OPS, 0, 4, 100000, CUS_MODE_PIECEWISE, false}};

    // Behind op BEHIND, or `behind`, the host pauses.
    void Step(bool pause, unsigned behind = BEHIND) {
        for (unsigned i = 0; i < OPS; i++) {
            program.Op("k" + std::to_string(i));
            if (i == behind && pause)
                program.now += PAUSE_NS;
        }
        program.Sync();
    }
    cus_segment *Segment() { return program.plan.view.segments; }
    const cus_node *At(unsigned op) {
        const cus_node *node = program.plan.tree.root.child;
        while (op--)
            node = node->child;
        return node;
    }
    // Pauses until so many were counted in a row.
    void PauseUntil(unsigned gaps, unsigned behind = BEHIND) {
        for (int i = 0; i < 5000 && Segment()->gaps < gaps; i++)
            Step(true, behind);
        ASSERT_EQ(Segment()->gaps, gaps);
    }
};

TEST_F(Ends, EightPausesInARowAtOnePlaceAreOne) {
    for (int i = 0; i < 3; i++)
        Step(false);
    ASSERT_NE(Segment(), nullptr);
    PauseUntil(7);
    Step(false);
    EXPECT_EQ(Segment()->gaps, 0u) << "one without begins anew";
    PauseUntil(7);
    Step(true, BEHIND + 2);
    EXPECT_EQ(Segment()->gaps, 0u) << "so does one elsewhere";
    PauseUntil(1, BEHIND + 2);
    EXPECT_EQ(Segment()->gap, BEHIND + 2u);
    Step(false);
    PauseUntil(7);
    EXPECT_EQ(At(BEHIND)->boundary, CUS_BOUNDARY_NONE);
    Step(true);
    EXPECT_EQ(At(BEHIND)->boundary, CUS_BOUNDARY_GAP);
    EXPECT_EQ(At(BEHIND + 2)->boundary, CUS_BOUNDARY_NONE);
    ExpectFaithful(program);
}

// A break each time keeps a boundary: nothing else is counted there.
TEST_F(Ends, BreaksAreCountedUpToABound) {
    auto broken = [this] {
        for (unsigned i = 0; i < OPS; i++) {
            program.Op("k" + std::to_string(i));
            if (i == BEHIND)
                program.Break();
        }
        program.Sync();
    };
    for (int i = 0; i < 20; i++)
        broken();
    ASSERT_EQ(At(BEHIND)->boundary, CUS_BOUNDARY_CUT);
    for (int i = 0; i < 2000; i++) {
        unsigned before = At(BEHIND)->cuts;
        broken();
        ASSERT_EQ(At(BEHIND)->cuts, before + 1 < 512 ? before + 1 : 256);
        ASSERT_EQ(At(BEHIND)->passes, 0u);
    }
    Step(false);
    EXPECT_EQ(At(BEHIND)->passes, 1u);
    ExpectFaithful(program);
}

// Of many begins the last 64 count, with the part of them that was lost.
TEST_F(Ends, LostBeginsAreThoseOfLate) {
    auto step = [this](bool lost) {
        for (unsigned i = 0; i < OPS; i++)
            program.Op(lost && i == BEHIND ? "other" : "k" + std::to_string(i));
        program.Sync();
    };
    for (int i = 0; i < 100; i++)
        step(i >= 10 && i % 10 == 0);
    cus_segment *segment = Segment();
    while (segment->nodes[0] != At(0))
        segment = segment->next;
    const cus_lately before = segment->lost;
    ASSERT_EQ(before.n, 9u);
    ASSERT_EQ(before.from, 0u);
    while (segment->begun < 127)
        step(false);
    step(true); // of twice as many begins the older half goes
    EXPECT_EQ(segment->begun, 128u);
    EXPECT_EQ(segment->lost.from, 64u);
    EXPECT_EQ(segment->lost.n, 9u * 64 / 128 + 1);
    while (segment->begun < 199)
        step(false);
    step(true);
    EXPECT_EQ(segment->begun, 200u);
    EXPECT_EQ(segment->lost.from, 136u);
    EXPECT_EQ(segment->lost.n, 5u * 64 / 136 + 1);
    ExpectFaithful(program);
}

// A pause takes a quarter of the time from the first op to the last, however many there are.
TEST(Pause, TakesMuchOfTheTime) {
    for (auto [pause, boundary] :
         {std::pair(100000u, CUS_BOUNDARY_NONE), {250000u, CUS_BOUNDARY_GAP}}) {
        Program slow{{2, 64, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false}};
        for (int step = 0; step < 300; step++) {
            for (unsigned i = 0; i < 64; i++) {
                slow.now += 9000;
                slow.Op("k" + std::to_string(i));
                if (i == BEHIND)
                    slow.now += pause;
            }
            slow.Sync();
        }
        const cus_node *node = slow.plan.tree.root.child;
        for (unsigned i = 0; i < BEHIND; i++)
            node = node->child;
        EXPECT_EQ(node->boundary, boundary) << pause;
        ExpectFaithful(slow);
    }
}

// What was evicted comes back after so many visits, each time after twice as many.
TEST_F(Ends, EvictedOpsWaitForLonger) {
    for (unsigned times = 0; times < 3; times++) {
        for (int i = 0; i < 400; i++)
            Step(false);
        ASSERT_TRUE(At(0)->segment && At(0)->segment->n_variants) << times;
        for (int step = 0; step < 3; step++) {
            for (unsigned i = 0; i < OPS; i++)
                program.Op("z" + std::to_string(i));
            program.Sync();
        }
        ASSERT_TRUE(cus_plan_drop_oldest(&program.plan));
        const cus_node *node = program.plan.tree.root.child;
        for (unsigned i = 0; i < OPS; i++, node = node->child) {
            EXPECT_EQ(node->retry_at, node->visits + (64u << times)) << i;
            EXPECT_EQ(node->evicted, times + 1);
        }
    }
    ExpectFaithful(program);
}

// A stream that is demoted keeps what was launched 16 times.
TEST_F(Ends, DemotedStreamsKeepWhatWasLaunchedOften) {
    for (int i = 0; i < 2 + 15; i++)
        Step(false);
    ASSERT_EQ(Segment()->fired, 15u);
    EXPECT_FALSE(cus_plan_demote(&program.plan));
    EXPECT_EQ(program.plan.view.n_segments, 0u);
    for (int i = 0; i < 2 + 16; i++)
        Step(false);
    ASSERT_EQ(Segment()->fired, 16u);
    EXPECT_TRUE(cus_plan_demote(&program.plan));
    EXPECT_EQ(program.plan.view.n_segments, 1u);
    EXPECT_EQ(program.plan.loop.window, 0u) << "the memory of the loop finder is given back";
    // Without a graph it is not kept.
    program.refuse = true;
    Step(false);
    ASSERT_EQ(Segment()->n_variants, 0u);
    EXPECT_FALSE(cus_plan_demote(&program.plan));
    ExpectFaithful(program);
}

// What the driver refuses is kept out of segments for a while, and the ops around it are not.
class Refused : public Ends {
  protected:
    void SetUp() override {
        for (int i = 0; i < 4; i++)
            Step(false);
        ASSERT_EQ(program.in_graphs, 2u * OPS);
    }
    void Refuse() {
        program.refuse = true;
        Step(false);
        ASSERT_FALSE(program.refuse);
    }
    unsigned KeptOut() {
        unsigned n = 0;
        for (unsigned i = 0; i < OPS; i++)
            n += At(i)->retry_at > At(i)->visits;
        return n;
    }
};

TEST_F(Refused, OnceIsTriedWithAnotherGraph) {
    Refuse();
    EXPECT_EQ(program.dropped, 1u) << "the graph, of which nothing is known any more";
    EXPECT_EQ(Segment()->n_variants, 0u);
    EXPECT_EQ(program.plan.view.built_anew, 0u);
    Step(false);
    EXPECT_EQ(program.built, 2u);
    EXPECT_EQ(program.plan.view.built_anew, 1u);
    EXPECT_EQ(KeptOut(), 0u);
    ExpectFaithful(program);
}

TEST_F(Refused, TwiceIsLeftOutForAWhile) {
    Refuse();
    Step(false);
    Refuse();
    EXPECT_EQ(program.plan.view.n_segments, 0u);
    EXPECT_EQ(KeptOut(), OPS + 0u) << "any of them may be the one";
    program.in_graphs = 0;
    for (int i = 0; i < CUS_RETRY_LOST; i++)
        Step(false);
    EXPECT_EQ(program.in_graphs, 0u);
    for (int i = 0; i < 3; i++)
        Step(false);
    EXPECT_GT(program.in_graphs, 0u);
    ExpectFaithful(program);
}

TEST_F(Refused, TwiceFarApartIsChance) {
    Refuse();
    for (int i = 0; i < 300; i++)
        Step(false);
    Refuse();
    EXPECT_EQ(program.plan.view.n_segments, 1u);
    EXPECT_EQ(KeptOut(), 0u);
    for (int i = 0; i < 200; i++)
        Step(false);
    Refuse();
    EXPECT_EQ(program.plan.view.n_segments, 0u) << "these count together";
    ExpectFaithful(program);
}

// The node whose patch failed holds what nobody knows.
TEST_F(Refused, APatchThatIsRefusedTwiceLeavesItsNodeOut) {
    for (int times = 0; times < 2; times++) {
        ASSERT_NE(Segment(), nullptr);
        ASSERT_EQ(Segment()->n_variants, 1u);
        cus_variant *variant = Segment()->newest;
        cus_variant_know(variant, Segment(), BEHIND, false);
        cus_plan_failed(&program.plan, variant);
        Step(false);
        Step(false);
    }
    EXPECT_EQ(KeptOut(), 1u);
    EXPECT_GT(At(BEHIND)->retry_at, At(BEHIND)->visits);
    program.ResetCounts();
    for (int i = 0; i < 20; i++)
        Step(false);
    EXPECT_GE(program.in_graphs, 15u * (OPS - 1)) << "the others are in graphs";
    ExpectFaithful(program);
}

} // namespace
