// Promise: a trial says that the second way is faster where it is, by a hundredth or more, and not
// where chance, a drift, or what is left out of account makes it look so.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

extern "C" {
#include "shim/plan/trial.h"
}

namespace {

constexpr uint64_t kStretch = 100000000; // ns

struct Outcome {
    cus_trial_says says = CUS_TRIAL_GOES_ON;
    cus_trial trial = {};
    int stretches = 0;
};

// `pace`: marks in the stretch of this number, which is one of B where it is odd.
Outcome Decide(
    const std::function<double(int)> &pace,
    const std::function<bool(int)> &counts = [](int) { return true; }) {
    Outcome run;
    while (run.says == CUS_TRIAL_GOES_ON && run.stretches < 200) {
        int i = run.stretches++;
        EXPECT_EQ(run.trial.is_b, i % 2 == 1) << i;
        run.says = cus_trial_add(&run.trial, (uint64_t)pace(i), kStretch, counts(i));
    }
    return run;
}
std::function<double(int)> Faster(double b) {
    return [b](int i) { return 10000 * (i % 2 ? b : 1); };
}

TEST(Trial, ThePaceSaysWhichWayIsFaster) {
    for (double b : {1.02, 1.05, 1.5}) {
        Outcome run = Decide(Faster(b));
        EXPECT_EQ(run.says, CUS_TRIAL_B) << b;
        EXPECT_EQ(run.stretches, 13) << "six pairs that agree";
        EXPECT_NEAR(cus_trial_median(&run.trial), b * 1000000, 1000);
    }
    for (double b : {0.5, 0.95, 0.99, 1.0}) {
        Outcome run = Decide(Faster(b));
        EXPECT_EQ(run.says, CUS_TRIAL_A) << b;
        EXPECT_EQ(run.stretches, 13) << b;
    }
}

TEST(Trial, AGainBelowAHundredthIsNone) {
    Outcome run = Decide(Faster(1.008));
    EXPECT_EQ(run.says, CUS_TRIAL_A);
    EXPECT_EQ(run.trial.n, (uint32_t)CUS_TRIAL_PAIRS) << "it was not certain before";
}

// A process that was stopped for a quarter of an hour, or for longer.
TEST(Trial, AStretchOfHoursIsComparedWithinBounds) {
    for (uint64_t ns : {1000000000000ull, 2000000000000ull}) {
        cus_trial trial = {};
        EXPECT_EQ(cus_trial_add(&trial, 1, ns, true), CUS_TRIAL_GOES_ON);
        EXPECT_EQ(cus_trial_add(&trial, 10000, kStretch, true), CUS_TRIAL_GOES_ON);
        EXPECT_EQ(cus_trial_add(&trial, 1, ns, true), CUS_TRIAL_GOES_ON);
        if (ns == 1000000000000ull) {
            ASSERT_EQ(trial.n, 1u);
            EXPECT_EQ(trial.ratios[0], UINT32_MAX);
        } else {
            EXPECT_EQ(trial.n, 0u) << "its pace is nothing";
        }
    }
}

TEST(Trial, ADriftIsNoGain) {
    // From stretch to stretch by a hundredth: each A behind a B is faster still.
    EXPECT_EQ(Decide([](int i) { return 10000 * (1 + 0.01 * i); }).says, CUS_TRIAL_A);
    EXPECT_EQ(Decide([](int i) { return 10000 * (1 - 0.005 * i); }).says, CUS_TRIAL_A);
}

TEST(Trial, ChanceIsNoGain) {
    std::mt19937 random(1);
    std::normal_distribution<double> noise(0, 0.03);
    auto rests = [&](double b) {
        int n = 0;
        for (int i = 0; i < 1000; i++)
            n += Decide([&](int k) { return Faster(b)(k) * (1 + noise(random)); }).says ==
                 CUS_TRIAL_B;
        return n;
    };
    EXPECT_LT(rests(0.97), 10);
    EXPECT_LT(rests(1), 70);
    EXPECT_GT(rests(1.05), 800);
}

TEST(Trial, WhatDoesNotCountIsLeftOut) {
    // B is faster only beside an A that does not count, or where it does not itself.
    auto pace = [](int i) { return i % 8 == 3 ? 12000. : 10000.; };
    Outcome all = Decide(pace);
    EXPECT_GT(all.trial.ratios[all.trial.n - 1], 1100000u);
    for (int left_out : {2, 3, 4}) {
        Outcome run = Decide(pace, [=](int i) { return i % 8 != left_out; });
        EXPECT_EQ(run.says, CUS_TRIAL_A);
        EXPECT_LT(run.trial.ratios[run.trial.n - 1], 1010000u) << left_out;
    }
}

// Pairs whose ratios are these, in millionths.
cus_trial_says Of(const std::vector<uint32_t> &ratios, cus_trial *trial) {
    *trial = {};
    cus_trial_says says = cus_trial_add(trial, 1000000, kStretch, true);
    for (uint32_t ratio : ratios) {
        EXPECT_EQ(says, CUS_TRIAL_GOES_ON) << ratio;
        EXPECT_EQ(cus_trial_add(trial, ratio, kStretch, true), CUS_TRIAL_GOES_ON);
        says = cus_trial_add(trial, 1000000, kStretch, true);
    }
    return says;
}

TEST(Trial, TheVerdictIsThatOfNearlyAllPairs) {
    constexpr uint32_t kSlow = 970000, kFast = 1050000, kLittle = 1005000, kJust = 1010000;
    cus_trial trial;
    EXPECT_EQ(Of({kFast, kFast, kFast, kFast, kFast}, &trial), CUS_TRIAL_GOES_ON);
    EXPECT_EQ(Of({kSlow, kFast, kSlow, kSlow, kSlow, kSlow}, &trial), CUS_TRIAL_A);
    EXPECT_EQ(Of({kSlow, kFast, kSlow, kFast, kSlow, kSlow}, &trial), CUS_TRIAL_GOES_ON);
    EXPECT_EQ(Of({kFast, kFast, kFast, kFast, kFast, kSlow}, &trial), CUS_TRIAL_GOES_ON);
    EXPECT_EQ(Of({kJust, kJust, kJust, kJust, kJust, kJust}, &trial), CUS_TRIAL_B);
    // The third of six is the median, of twelve the sixth.
    EXPECT_EQ(Of({kLittle, kFast, kLittle, kFast, kLittle, kFast}, &trial), CUS_TRIAL_GOES_ON);
    EXPECT_EQ(cus_trial_median(&trial), kLittle);
    EXPECT_EQ(Of({kFast, kLittle, kFast, kFast, kLittle, kFast}, &trial), CUS_TRIAL_B);
    EXPECT_EQ(cus_trial_median(&trial), kFast);
    std::vector<uint32_t> twelve(12, kFast);
    twelve[0] = twelve[4] = kSlow;
    EXPECT_EQ(Of(twelve, &trial), CUS_TRIAL_B) << "ten of twelve";
    twelve[8] = kSlow;
    EXPECT_EQ(Of(twelve, &trial), CUS_TRIAL_A) << "nine of twelve";
}

TEST(Trial, ABLeftOutMakesNoPair) {
    cus_trial trial;
    ASSERT_EQ(Of({1050000}, &trial), CUS_TRIAL_GOES_ON);
    ASSERT_EQ(trial.n, 1u);
    cus_trial_skip(&trial);
    EXPECT_EQ(cus_trial_add(&trial, 1000000, kStretch, true), CUS_TRIAL_GOES_ON);
    EXPECT_EQ(trial.n, 1u);
}

TEST(Trial, EndsInAnyCase) {
    Outcome run = Decide(Faster(1.5), [](int) { return false; });
    EXPECT_EQ(run.says, CUS_TRIAL_A);
    EXPECT_EQ(run.trial.n, 0u);
    EXPECT_EQ(cus_trial_median(&run.trial), 0u);
    EXPECT_EQ(run.stretches, 2 * CUS_TRIAL_MOST + 1);
    // Nor does a B that never comes keep it.
    cus_trial trial = {};
    int stretches = 0;
    while (cus_trial_add(&trial, 100, kStretch, true) == CUS_TRIAL_GOES_ON) {
        ASSERT_LT(++stretches, 200);
        cus_trial_skip(&trial);
        EXPECT_FALSE(trial.is_b);
    }
    EXPECT_EQ(stretches, CUS_TRIAL_MOST);
}

} // namespace
