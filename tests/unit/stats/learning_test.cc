// Promise: the figures of the learning curve are those of the steps that were added.
#include <gtest/gtest.h>

#include "shim/stats/learning.h"

namespace {

// Times in us.
class Learning : public testing::Test {
  protected:
    void Add(unsigned n, uint32_t ops, uint32_t in_graphs, uint64_t us, int64_t saved_us = 0) {
        cus_learning_step step = {ops, in_graphs, us * 1000, saved_us * 1000};
        for (unsigned i = 0; i < n; i++)
            cus_learning_add(&learning_, &step);
    }
    cus_learned Sum() { return cus_learning_sum(&learning_); }

    cus_learning learning_ = {};
};

TEST_F(Learning, FiguresOfStepsThatBecomeFaster) {
    Add(1, 100, 0, 5000); // loads code
    Add(3, 100, 0, 1000);
    Add(2, 100, 60, 800);
    Add(20, 100, 100, 500);
    cus_learned sum = Sum();
    EXPECT_EQ(sum.steps, 26u);
    EXPECT_TRUE(sum.plain_seen);
    EXPECT_EQ(sum.plain_ns, 1000000u);
    EXPECT_EQ(sum.late_ns, 500000u);
    EXPECT_EQ(sum.gain_at, 7u);
    EXPECT_EQ(sum.first_ten_ns, (3 * 1000 + 2 * 800 + 5 * 500) * 1000u);
    EXPECT_EQ(sum.percent, 71u);
    EXPECT_EQ(sum.n_first, 26u);
    EXPECT_EQ(sum.first[4].in_graphs, 60u);
    Add(20, 100, 100, 500);
    EXPECT_EQ(Sum().n_first, 32u);
}

// What the library costs a step without graphs is subtracted; such a step may have a few graphs.
TEST_F(Learning, PlainStepsAreCorrectedByTheAccount) {
    Add(1, 100, 0, 5000, -90);
    Add(3, 100, 5, 1000, -30);
    Add(20, 100, 100, 500, 400);
    EXPECT_EQ(Sum().plain_ns, 970000u);
    EXPECT_TRUE(Sum().plain_seen);
}

TEST_F(Learning, WithoutPlainStepsTheAccountEstimates) {
    Add(1, 100, 6, 5000, 20);
    Add(30, 100, 100, 500, 240);
    EXPECT_FALSE(Sum().plain_seen);
    EXPECT_EQ(Sum().plain_ns, 740000u);
    EXPECT_EQ(Sum().gain_at, 2u);
    EXPECT_EQ(Sum().percent, 68u);
}

TEST_F(Learning, TooFewStepsSayNothing) {
    EXPECT_EQ(Sum().steps, 0u);
    Add(2, 100, 0, 1000);
    EXPECT_EQ(Sum().steps, 0u);
    Add(8, 100, 0, 1000);
    EXPECT_EQ(Sum().steps, 10u);
    EXPECT_EQ(Sum().percent, 0u) << "ten steps, and the first is not one of the ten";
    EXPECT_EQ(Sum().plain_ns, 1000000u);
    Add(1, 100, 0, 1000);
    EXPECT_EQ(Sum().percent, 100u);
}

// The first step began when the library did not look.
TEST_F(Learning, AStepWithoutATimeIsSkipped) {
    Add(1, 100, 0, 0);
    Add(2, 100, 0, 1000);
    Add(20, 100, 100, 500);
    EXPECT_EQ(Sum().gain_at, 4u);
}

TEST_F(Learning, OneLongStepIsNotTheProgram) {
    Add(1, 100000, 0, 90000);
    Add(2, 50, 0, 1000);
    Add(40, 60, 60, 400);
    EXPECT_EQ(Sum().steps, 42u);
    EXPECT_EQ(Sum().late_ns, 400000u);
}

// Twice as long still counts as the same step, as do half as many ops.
TEST_F(Learning, StepsOfAboutOneLengthBelongTogether) {
    Add(5, 100, 0, 1000);
    Add(5, 200, 0, 1000);
    Add(5, 50, 0, 1000);
    Add(1, 201, 0, 1000);
    Add(1, 49, 0, 1000);
    EXPECT_EQ(Sum().steps, 15u);
}

TEST_F(Learning, OfLateStepsOneInSixteenIsKept) {
    Add(CUS_LEARNING_STEPS, 100, 0, 1000);
    for (unsigned i = 0; i < 1600; i++) {
        bool wants = cus_learning_wants(&learning_);
        EXPECT_EQ(wants, i % CUS_LEARNING_EVERY == 0) << i;
        Add(1, 100, 100, wants ? 300 : 0);
    }
    cus_learned sum = Sum();
    EXPECT_EQ(sum.steps, CUS_LEARNING_STEPS + CUS_LEARNING_LATE);
    EXPECT_EQ(sum.late_ns, 300000u);
}

TEST_F(Learning, AStepLongerThanAllBeforeBeginsAnew) {
    Add(CUS_LEARNING_STEPS + 40, 2, 0, 10);
    Add(1, 2 * CUS_LEARNING_STEPS, 0, 999);
    EXPECT_EQ(learning_.steps, 40u + CUS_LEARNING_STEPS + 1) << "as long as all together";
    Add(1, 2 * CUS_LEARNING_STEPS + 1, 0, 1000);
    EXPECT_EQ(learning_.steps, 1u);
    Add(19, 2 * CUS_LEARNING_STEPS, 200, 500);
    EXPECT_EQ(Sum().steps, 20u);
    EXPECT_EQ(Sum().late_ns, 500000u);
}

// 20 waits for a copy in front of each step: once the table is full, they belong to the step.
TEST_F(Learning, ShortStepsBelongToTheNextOne) {
    for (int i = 0; i < 100; i++) {
        if (cus_learning_counts(&learning_, 1))
            Add(20, 1, 0, 10, -1);
        Add(1, 150, i < 40 ? 0 : 150, i < 40 ? 1000 : 500, i < 40 ? -20 : 300);
    }
    cus_learned sum = Sum();
    EXPECT_EQ(sum.steps, 100u);
    EXPECT_EQ(sum.first[0].ns, 1200000u);
    EXPECT_EQ(sum.first[5].ns, 1200000u);
    EXPECT_EQ(sum.first[7].ns, 1000000u) << "the caller's time has the waits in it from here on";
    EXPECT_EQ(sum.first[0].saved_ns, -40000);
    EXPECT_FALSE(cus_learning_counts(&learning_, 18));
    EXPECT_TRUE(cus_learning_counts(&learning_, 19));
    Add(1, 150 * 129, 0, 9000);
    EXPECT_FALSE(cus_learning_counts(&learning_, 18)) << "the table is not full";
}

} // namespace
