// Promise: sizing keeps a step close to its best time, by a model of host and GPU clocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/plan/clock.h"

extern "C" {
#include "shim/plan/ramp.h"
}

namespace {

constexpr cus_ramp_limits kLimits = {4, 1024, 500000, false};
constexpr uint32_t kMany = UINT32_MAX; // ops ahead of a step that goes on for long

// A step of `ops` ops as it is cut at this pace.
Sizes Cut(uint32_t ops, uint32_t pace, const cus_ramp_limits &limits = kLimits) {
    Sizes sizes;
    cus_ramp ramp = {limits.first, 0};
    while (ops) {
        uint32_t size = std::min(cus_ramp_size(&limits, ramp, pace, ops), ops);
        if (!size) {
            ADD_FAILURE() << "a segment of nothing";
            return sizes;
        }
        sizes.push_back(size);
        ops -= size;
        ramp = cus_ramp_up(&limits, ramp, size, pace);
    }
    return sizes;
}

// The rule before this one: segments grow by what fits the GPU time of the one before, at most six
// times.
Sizes CutByFactor(uint32_t ops, uint32_t pace) {
    uint32_t factor = std::min(std::max(800 / pace, 2u), 6u), next = 4;
    Sizes sizes;
    for (; ops; next = std::min(next * factor, 1024u)) {
        sizes.push_back(std::min(next, ops));
        ops -= sizes.back();
    }
    return sizes;
}

// Of one graph of the whole step that the host need not fill.
double OfWhole(const Sizes &sizes, double pace, double node = kNode) {
    double ops = 0;
    for (uint32_t size : sizes)
        ops += size;
    return Clock(sizes, pace, node).done / (kGraph + kStart + ops * (kOp + node));
}

TEST(Ramp, FastHostsStepTakesLittleMoreThanOneGraph) {
    const struct {
        uint32_t ops, pace;
        double most;
    } cases[] = {
        {60, 45, 1.054},    {60, 130, 1.062},   {240, 45, 1.010},    {240, 75, 1.018},
        {240, 90, 1.019},   {240, 130, 1.0195}, {240, 160, 1.028},   {240, 200, 1.029},
        {240, 300, 1.0415}, {1000, 130, 1.002}, {1000, 200, 1.0055}, {1000, 300, 1.009},
        {1000, 500, 1.03},  {4000, 130, 0.997}, {4000, 300, 0.999},  {4000, 500, 1.005},
    };
    for (const auto &c : cases)
        EXPECT_LE(OfWhole(Cut(c.ops, c.pace), c.pace), c.most) << c.ops << " at " << c.pace;
}

TEST(Ramp, HardlyEverWorseThanGrowthByAFactor) {
    for (uint32_t ops : {60, 240, 1000, 4000})
        for (uint32_t pace = 45; pace <= 400; pace += 5)
            EXPECT_LE(OfWhole(Cut(ops, pace), pace),
                      OfWhole(CutByFactor(ops, pace), pace) + (ops < 100 ? 0.0285 : 0.008))
                << ops << " at " << pace;
}

// Kernels of ten times the time that is taken for granted.
TEST(Ramp, LargeKernelsLoseLittle) {
    for (uint32_t ops : {60, 240, 1000, 4000})
        for (uint32_t pace : {45, 130, 300, 500})
            EXPECT_LE(OfWhole(Cut(ops, pace), pace, 10000), ops < 100 ? 1.012 : 1.005)
                << ops << " at " << pace;
}

TEST(Ramp, FirstSegmentIsSmallWhateverFollows) {
    for (uint32_t pace : {0, 45, 130, 5000})
        for (uint32_t ahead = 5; ahead < 3000; ahead += 7)
            EXPECT_EQ(cus_ramp_size(&kLimits, {4, 0}, pace, ahead), 4u) << pace << " " << ahead;
}

TEST(Ramp, DoublesWhereThePaceIsNotKnown) {
    EXPECT_EQ(Cut(1000, 0), (Sizes{4, 8, 16, 32, 64, 128, 256, 492}));
}

TEST(Ramp, GpuDoesNotWaitForAHostThatIsALittleSlower) {
    for (uint32_t pace = 45; pace <= 225; pace++)
        EXPECT_LE(Clock(Cut(6000, pace), pace * 1.05).idle, 150) << pace;
}

TEST(Ramp, HostThatIsNotFastEnoughFillsSegmentsThatGrowSlowly) {
    Sizes sizes = Cut(1000, 600);
    for (size_t i = 4; i + 1 < sizes.size(); i++)
        EXPECT_LE(sizes[i], sizes[i - 1] * 5 / 4) << i;
    EXPECT_LE(OfWhole(sizes, 600), 1.15);
    EXPECT_GT(OfWhole(CutByFactor(1000, 600), 600), 1.3);
}

TEST(Ramp, SegmentsOfASlowHostGetSmallTowardsTheEnd) {
    Sizes sizes = Cut(300, 5000);
    EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), 64u);
    EXPECT_LE(sizes.back(), 4u) << "what is deferred last is what the host then waits for";
    uint32_t left = 300;
    for (uint32_t size : sizes) {
        EXPECT_LE(size, std::max(4u, (left + 1) / 2)) << "of " << left << " that are left";
        left -= size;
    }
}

TEST(Ramp, NoSegmentTakesLongToFill) {
    for (uint32_t pace : {45, 700, 3000, 50000, 400000})
        for (uint32_t fill_ns : {20000, 500000}) {
            Sizes sizes = Cut(5000, pace, {4, 1024, fill_ns, false});
            EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), std::max(4u, fill_ns / pace));
        }
}

TEST(Ramp, EndOfTheStepIsLookedForWhereItMatters) {
    EXPECT_EQ(cus_ramp_looks(0), 0u) << "unknown";
    EXPECT_EQ(cus_ramp_looks(1000), 0u);
    uint32_t far = cus_ramp_looks(1001);
    EXPECT_EQ(far, 128u) << "two segments";
    // What is looked at up to there is as good as no end.
    EXPECT_EQ(cus_ramp_size(&kLimits, {64, 0}, 1001, far),
              cus_ramp_size(&kLimits, {64, 0}, 1001, kMany));
    EXPECT_LT(cus_ramp_size(&kLimits, {64, 0}, 1001, far - 2),
              cus_ramp_size(&kLimits, {64, 0}, 1001, far));
}

TEST(Ramp, SegmentThatEndsEarlyDoesNotHoldTheNextOnesBack) {
    cus_ramp ramp = cus_ramp_up(&kLimits, {64, 0}, 5, 0);
    EXPECT_EQ(ramp.size, 128u);
    ramp = cus_ramp_up(&kLimits, {4, 0}, 64, 0);
    EXPECT_EQ(ramp.size, 128u) << "and one that was larger than it might be helps them";
}

TEST(Ramp, GrowthIsBoundedAndSoIsWhatIsKept) {
    EXPECT_EQ(cus_ramp_up(&kLimits, {4, 0}, 4, 1).size, 32u) << "eight times";
    EXPECT_EQ(cus_ramp_up(&kLimits, {1024, UINT32_MAX}, 1024, 1).lead_ns, UINT32_MAX);
    cus_ramp_limits small = {4, 64, 0, false};
    EXPECT_EQ(cus_ramp_up(&small, {1024, 0}, 4, 100).lead_ns,
              cus_ramp_up(&small, {64, 0}, 4, 100).lead_ns)
        << "no segment was larger";
}

TEST(Ramp, SizesAreInRangeWhateverIsSaid) {
    std::mt19937 random(1);
    const uint32_t odd[] = {0, 1, 4, 45, 700, 1000, 1001, 10000, 1000000000, UINT32_MAX};
    auto any = [&] { return odd[random() % std::size(odd)]; };
    for (int i = 0; i < 100000; i++) {
        uint32_t max = 2 + (uint32_t)random() % 1023;
        cus_ramp_limits limits = {std::min(1 + (uint32_t)random() % 64, max), max, any(),
                                  random() % 2 == 0};
        cus_ramp ramp = {any(), any()};
        uint32_t pace = any();
        uint32_t size = cus_ramp_size(&limits, ramp, pace, any());
        ASSERT_GE(size, limits.first);
        ASSERT_LE(size, max);
        cus_ramp next = cus_ramp_up(&limits, ramp, size, pace);
        ASSERT_GE(next.size, std::min(2u, max));
        ASSERT_LE(next.size, max);
    }
}

TEST(Ramp, PaceIsInRangeWhateverIsSaid) {
    for (uint64_t ns : {uint64_t{0}, uint64_t{1000}, UINT64_MAX}) {
        uint32_t pace = 0;
        for (int i = 0; i < 1000; i++) {
            pace = cus_ramp_paced(pace, 1, ns);
            ASSERT_GE(pace, 1u);
            ASSERT_LE(pace, 1000000000u);
        }
        EXPECT_EQ(pace, ns == 0 ? 1u : ns == 1000 ? 1001u : 1000000000u);
    }
}

TEST(Ramp, PaceIsWhatItTakesToTheNextOp) {
    EXPECT_EQ(cus_ramp_paced(0, 10, 10000), 1001u) << "rounded up";
    EXPECT_EQ(cus_ramp_paced(1001, 10, 10000), 1001u);
    EXPECT_EQ(cus_ramp_paced(0, 3, 9000), 3001u);
    EXPECT_EQ(cus_ramp_paced(1000, 1, 1000), 1001u) << "a little more counts, too";
}

// The GPU is the slower side.
TEST(Ramp, ASlowHostAloneTakesLessTimeWhereTheGpuIsLate) {
    auto size = [](bool late, uint32_t pace) {
        cus_ramp_limits limits = {4, 1024, 160000, late};
        return cus_ramp_size(&limits, {1024, 0}, pace, 100000);
    };
    for (uint32_t pace : {200u, 1000u})
        EXPECT_EQ(size(true, pace), size(false, pace)) << pace;
    EXPECT_EQ(size(true, 1000), 160u);
    EXPECT_EQ(size(false, 1001), 64u);
    EXPECT_EQ(size(true, 1001), 160000u / 8 / 1001);
}

TEST(Ramp, PaceFollowsAFasterHostSoonerThanASlowerOne) {
    uint32_t down = cus_ramp_paced(1000, 16, 16 * 500), up = cus_ramp_paced(1000, 16, 16 * 1500);
    EXPECT_LE(down, 760u);
    EXPECT_LE(up, 1110u);
    EXPECT_GT(up, 1050u);
    EXPECT_LE(cus_ramp_paced(1000, 1000, 1000000000), 2000u) << "a stall";
}

TEST(Ramp, StepIsCutAnewWhereThatIsWorthIt) {
    EXPECT_TRUE(cus_ramp_outgrown(&kLimits, 900, &kLimits, 100, 1000));
    EXPECT_TRUE(cus_ramp_outgrown(&kLimits, 50000, &kLimits, 300, 100));
    EXPECT_TRUE(cus_ramp_outgrown(&kLimits, 2000, &kLimits, 100, 60));
    EXPECT_FALSE(cus_ramp_outgrown(&kLimits, 100, &kLimits, 60, 1000))
        << "as many segments, and no wait";
    EXPECT_FALSE(cus_ramp_outgrown(&kLimits, 150, &kLimits, 95, 1000)) << "next to nothing";
    EXPECT_FALSE(cus_ramp_outgrown(&kLimits, 2400, &kLimits, 1300, 500)) << "the same sizes";
    EXPECT_FALSE(cus_ramp_outgrown(&kLimits, 2000, &kLimits, 100, 4)) << "one segment";
    EXPECT_FALSE(cus_ramp_outgrown(&kLimits, 2000, &kLimits, 100, 0));
    for (uint32_t pace : {0, 1, 100, 5000})
        EXPECT_FALSE(cus_ramp_outgrown(&kLimits, pace, &kLimits, pace, 1000));
}

} // namespace
