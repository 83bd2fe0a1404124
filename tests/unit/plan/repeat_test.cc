// Promise: a demoted stream is told to repeat itself where its ops do, and at no other time.
#include <gtest/gtest.h>

#include <random>

extern "C" {
#include "shim/plan/repeat.h"
}

namespace {

class Repeat : public testing::Test {
  protected:
    void TearDown() override { cus_repeat_free(&repeat); }
    // A window of ops. True: it was told to repeat.
    template <class Next> bool Window(Next next) {
        bool told = false;
        for (int i = 0; i < CUS_REPEAT_WINDOW; i++)
            told |= cus_repeat_feed(&repeat, next(i));
        return told;
    }
    static uint64_t Turn(int i) { return 1000 + i % 64; }

    cus_repeat repeat = {};
};

TEST_F(Repeat, BeforeAStartNothingRepeats) {
    EXPECT_FALSE(Window(Turn));
    EXPECT_FALSE(Window(Turn));
    EXPECT_EQ(cus_repeat_as(&repeat), 0u);
    cus_repeat_look(&repeat, 5);
    EXPECT_EQ(repeat.samples, 0u);
}

TEST_F(Repeat, AStartForgetsWhatRepeated) {
    ASSERT_TRUE(cus_repeat_start(&repeat));
    const void *memory = repeat.history;
    for (int window = 0; window < 3; window++)
        Window(Turn);
    ASSERT_NE(cus_repeat_as(&repeat), 0u);
    ASSERT_TRUE(cus_repeat_start(&repeat));
    EXPECT_EQ(repeat.history, memory) << "it is kept";
    EXPECT_EQ(cus_repeat_as(&repeat), 0u);
}

TEST_F(Repeat, TurnsAreToldAndKnownAgain) {
    ASSERT_TRUE(cus_repeat_start(&repeat));
    EXPECT_EQ(cus_repeat_as(&repeat), 0u) << "no window is complete";
    Window(Turn);
    EXPECT_EQ(cus_repeat_as(&repeat), 0u) << "one is";
    EXPECT_TRUE(Window(Turn));
    EXPECT_TRUE(Window(Turn));
    EXPECT_NE(cus_repeat_as(&repeat), 0u);
    std::mt19937_64 random(1);
    EXPECT_FALSE(Window([&](int) { return random(); }));
    EXPECT_EQ(cus_repeat_as(&repeat), 0u);
}

// The short form does all of an op, or nothing.
TEST_F(Repeat, WithoutACallItCountsTheSameOrNothing) {
    ASSERT_TRUE(cus_repeat_start(&repeat));
    unsigned calls = 0;
    for (int i = 0; i < CUS_REPEAT_WINDOW - 1; i++) {
        uint32_t ops = repeat.ops;
        uint64_t gram = repeat.gram;
        if (!cus_repeat_feed_only(&repeat, Turn(i))) {
            EXPECT_EQ(repeat.ops, ops);
            EXPECT_EQ(repeat.gram, gram);
            calls++;
            cus_repeat_feed(&repeat, Turn(i));
        }
        ASSERT_EQ(repeat.ops, ops + 1);
    }
    EXPECT_GT(calls, 0u);
    EXPECT_LT(calls, 1000u);
    repeat.bar = 0; // no hash is below it
    EXPECT_FALSE(cus_repeat_feed_only(&repeat, 5)) << "the window ends with it";
}

} // namespace
