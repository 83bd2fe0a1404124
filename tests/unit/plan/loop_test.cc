// Promise: a period is told once all that is known of two turns is the same.
#include <gtest/gtest.h>

extern "C" {
#include "shim/plan/loop.h"
#include "shim/plan/op.h"
#include "shim/plan/step.h"
}

#include <utility>
#include <vector>

namespace {

class Loop : public testing::Test {
  protected:
    void SetUp() override {
        for (uint32_t i = 0; i < kinds.size(); i++)
            kinds[i].id = i + 1;
    }
    void TearDown() override { cus_loop_free(&loop); }
    // The periods that were told during a turn of all kinds.
    unsigned Turn(cus_step_class step, uint32_t odd = UINT32_MAX) {
        unsigned told = 0;
        for (uint32_t i = 0; i < kinds.size(); i++) {
            uint8_t of = i == odd ? CUS_STEP_OUTSIDE : step;
            told += cus_loop_feed(&loop, {&kinds[i], of, 0}) != 0;
        }
        return told;
    }

    std::vector<cus_kind> kinds = std::vector<cus_kind>(300);
    cus_loop loop = {};
};

TEST_F(Loop, IsFoundWhereTurnsAreAlike) {
    EXPECT_EQ(Turn(CUS_STEP_MIXED), 0u);
    EXPECT_GT(Turn(CUS_STEP_MIXED) + Turn(CUS_STEP_MIXED), 0u);
}

// The same kernel in a step of another class is another op.
TEST_F(Loop, IsNotFoundAcrossAnotherStepClass) {
    EXPECT_EQ(Turn(CUS_STEP_MIXED), 0u);
    EXPECT_EQ(Turn(CUS_STEP_MIXED, 250), 0u);
    EXPECT_EQ(loop.at.period, 300u);
    EXPECT_LT(loop.at.run, 100u) << "counted anew behind the op";
}

class LoopTurns : public Loop {
  protected:
    LoopTurns() { kinds.resize(6000); }
    uint32_t Feed(uint32_t kind) { return cus_loop_feed(&loop, {&kinds[kind], 0, 0}); }
    // Feeds kinds [from, from + length) again and again, `most` ops at most, until a period is
    // told. The ops that it took, and the period; {most, 0} if none is told.
    std::pair<uint32_t, uint32_t> Told(uint32_t length, uint32_t most, uint32_t from = 0) {
        for (uint32_t i = 0; i < most; i++)
            if (uint32_t period = Feed(from + i % length))
                return {i + 1, period};
        return {most, 0};
    }
};

using Pair = std::pair<uint32_t, uint32_t>;

// A short body must repeat for CUS_LOOP_RUN ops, a longer one once.
TEST_F(LoopTurns, AreToldWithTheOpThatMakesThemWhole) {
    for (uint32_t length : {1u, 2u, 32u, 33u, CUS_LOOP_BODY - 1u}) {
        EXPECT_EQ(Told(length, 1000), Pair(length + CUS_LOOP_RUN, length));
        cus_loop_free(&loop);
    }
    for (uint32_t length : {CUS_LOOP_BODY + 0u, CUS_LOOP_RUN + 0u, 400u}) {
        EXPECT_EQ(Told(length, 1000), Pair(2 * length, length));
        cus_loop_free(&loop);
    }
}

TEST_F(LoopTurns, AreToldUntilTheyAreTaken) {
    Told(300, 600);
    EXPECT_EQ(Feed(0), 300u);
    EXPECT_EQ(Feed(1), 300u);
    cus_loop_told(&loop);
    for (uint32_t i = 2; i < 700; i++)
        ASSERT_EQ(Feed(i % 300), 0u) << i;
    EXPECT_EQ(loop.at.run, 300u + 700);
}

// Another loop behind it is told anew.
TEST_F(LoopTurns, AreToldThoughAnotherWasTaken) {
    Told(300, 600);
    cus_loop_told(&loop);
    EXPECT_EQ(Told(200, 1000, 1000), Pair(400, 200));
}

// The first ops that can be compared are the first CUS_LOOP_GRAM ones of a step.
TEST_F(LoopTurns, AreACandidateWhenSoManyOpsCameAgain) {
    for (uint32_t i = 0; i < 300; i++)
        Feed(i);
    for (uint32_t i = 0; i + 1 < CUS_LOOP_GRAM; i++) {
        Feed(i);
        ASSERT_EQ(loop.at.period, 0u) << i;
    }
    Feed(CUS_LOOP_GRAM - 1);
    EXPECT_EQ(loop.at.period, 300u);
    EXPECT_EQ(loop.at.run, CUS_LOOP_GRAM + 0u);
}

// What came before a gap is compared with nothing.
TEST_F(LoopTurns, BeginAnewBehindAGap) {
    EXPECT_EQ(Told(300, 600), Pair(600, 300));
    cus_loop_gap(&loop);
    EXPECT_EQ(cus_loop_known(&loop), 0u);
    EXPECT_EQ(Told(300, 1000), Pair(600, 300)) << "neither the run nor the ops in front count";
}

TEST_F(LoopTurns, AreNotLostWithTheOpsOfAGap) {
    for (uint32_t i = 0; i < 50; i++)
        Feed(5000 + i);
    cus_loop_gap(&loop);
    for (uint32_t i = 0; i < CUS_LOOP_GRAM - 1; i++)
        Feed(i);
    EXPECT_EQ(loop.at.period, 0u);
    cus_loop_gap(&loop);
    EXPECT_EQ(Told(300, 1000), Pair(600, 300)) << "the ops in front change no hash";
}

// Taking an op back and feeding it again finds the same.
TEST_F(LoopTurns, AreFoundThoughAnOpIsTakenBack) {
    for (uint32_t i = 0; i < 599; i++) {
        cus_loop_at before = loop.at;
        ASSERT_EQ(Feed(i == 400 ? 5999 : i % 300), 0u) << i;
        if (i == 400) {
            loop.at = before;
            ASSERT_EQ(Feed(100), 0u);
        }
    }
    EXPECT_EQ(Feed(299), 300u);
}

// A loop that is longer than the first window is found in the second turn that the larger one has
// whole, one that is longer than that never.
TEST_F(LoopTurns, MayBeLongerThanTheFirstWindow) {
    Told(300, 590);
    for (uint32_t i = 0; i < CUS_LOOP_WINDOW_FIRST; i++)
        Feed((590 + i) % 300);
    EXPECT_EQ(loop.window, CUS_LOOP_WINDOW_FIRST + 0u) << "a loop that is found needs no more";
    cus_loop_free(&loop);

    // The window grows behind op 1024. The first turn's ops from 0 on are still in it, but where
    // they came is not, so that the second turn is known by those behind.
    auto [ops, period] = Told(1500, 6000);
    EXPECT_EQ(period, 1500u);
    EXPECT_EQ(ops, 3000u);
    EXPECT_EQ(loop.window, CUS_LOOP_WINDOW + 0u);
    EXPECT_EQ(cus_loop_known(&loop), 3000u);
    for (uint32_t back = 0; back < 3000; back++)
        ASSERT_EQ(cus_loop_op(&loop, back)->kind, &kinds[(2999 - back) % 1500]) << back;
    cus_loop_free(&loop);

    std::vector<cus_kind> more(CUS_LOOP_WINDOW + 1);
    for (uint32_t i = 0; i < more.size(); i++)
        more[i].id = i + 1;
    for (uint32_t turn = 0; turn < 3; turn++)
        for (cus_kind &kind : more)
            ASSERT_EQ(cus_loop_feed(&loop, {&kind, 0, 0}), 0u);
    EXPECT_EQ(cus_loop_known(&loop), CUS_LOOP_WINDOW + 0u);
}

} // namespace
