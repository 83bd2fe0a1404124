// Promise: a core counts as a thread's own if probes before and after some work were both fast, and
// as shared if both were slow.
extern "C" {
#include "harness/bench/core.h"
}

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

TEST(Core, IsAloneOrNotWhereBothSidesSaySo) {
    const struct {
        double before, behind;
        enum core core;
    } cases[] = {
        {0.67, 0.67, CORE_ALONE},   {0.67, 0.85, CORE_ALONE},   {0.67, 0.86, CORE_UNKNOWN},
        {0.86, 0.67, CORE_UNKNOWN}, {0.67, 1.30, CORE_UNKNOWN}, {1.30, 0.67, CORE_UNKNOWN},
        {1.00, 1.30, CORE_BESIDE},  {1.30, 1.00, CORE_BESIDE},  {0.99, 1.30, CORE_UNKNOWN},
        {1.30, 0.99, CORE_UNKNOWN}, {0.00, 0.67, CORE_UNKNOWN}, {0.67, 0.00, CORE_UNKNOWN},
        {0.00, 0.00, CORE_UNKNOWN}, {1.30, 0.00, CORE_UNKNOWN}, {0.67, 0.49, CORE_UNKNOWN},
        {0.49, 0.67, CORE_UNKNOWN}, {0.50, 0.67, CORE_ALONE},   {0.67, 0.50, CORE_ALONE},
    };
    for (const auto &one : cases)
        EXPECT_EQ(core_between(one.before, one.behind), one.core)
            << one.before << ", " << one.behind;
}

#ifdef __x86_64__
// Two cycles over three, up to twice that beside a neighbour; of many, for one that is interrupted
// says anything.
TEST(Core, TakesTwoCyclesOverThree) {
    std::vector<double> ratios(201);
    std::generate(ratios.begin(), ratios.end(), core_ratio);
    std::nth_element(ratios.begin(), ratios.begin() + 100, ratios.end());
    EXPECT_GT(ratios[100], 0.5);
    EXPECT_LT(ratios[100], 2.5) << "two hyperthreads share a core, not three";
}
#endif

} // namespace
