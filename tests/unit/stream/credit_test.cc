// Promise: a stream that is let pass and tried again may lose less each time, and a repeat that led
// to nothing is not believed again. What a stream saved is its credit, up to a bound.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/pays.h"

#include <algorithm>

namespace {

class Credit : public Pays {
  protected:
    static uint64_t Demotions() { return Counters().fallbacks[CUS_FALLBACK_DEMOTED]; }
    // Until the stream is let pass once more.
    void UntilLetPass() {
        uint64_t before = Demotions();
        for (int step = 0; step < 1000 && Demotions() == before; step++)
            Bad(1);
        ASSERT_EQ(Demotions(), before + 1);
    }
};

TEST_F(Credit, IsHalvedForEachTrialInVainSixTimesAtMost) {
    for (uint32_t times : {0u, 1u, 5u, 6u, 7u, 40u}) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Bad(1);
        last_engine_was_let_pass(times);
        UntilLetPass();
        EXPECT_EQ(last_engine_credit(), 117187 >> std::min(times, 6u)) << times;
    }
}

// A thousandth of the ops or more is sampled. Those of the trial are not.
TEST_F(Credit, WhatCameBeforeATrialIsNotForgotten) {
    UntilLetPass();
    UntilLetPass();
    EXPECT_GT(last_engine_samples(), 65536u / 1000);
}

// It pays for building all of its graphs once more.
TEST_F(Credit, GrowsWithTheGraphsOfAStreamThatPays) {
    const int64_t paid = 8000000, of_nodes = OPS * 2500;
    Good(300);
    Bad(1); // an op that goes out by itself: the stream is judged
    EXPECT_GT(last_engine_credit(), paid + of_nodes);
    EXPECT_LT(last_engine_credit(), paid + 3 * of_nodes);
}

TEST_F(Credit, ARepeatThatLedToNothingIsNotBelievedAgain) {
    const struct {
        repeats known;
        uint64_t left;
        bool believed;
    } cases[] = {
        {{0, 0, false, 0, 0}, 1000, true},    {{7, 7, false, 7, 0}, 1000, true},
        {{7, 7, true, 5, 1000}, 1000, true},  // another one, and enough ops have passed
        {{7, 7, true, 5, 1000}, 1001, false}, // not enough
        {{7, 7, true, 7, 1000}, 1000, false}, // the same
        {{7, 6, true, 5, 1000}, 1000, false}, // nobody knows what it is
        {{0, 0, true, 5, 1000}, 1000, false}, // nor here
    };
    for (const auto &one : cases)
        EXPECT_EQ(repeats_are_believed(&one.known, one.left), one.believed) << &one - cases;
}

} // namespace
