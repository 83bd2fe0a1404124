// The learning curve (shim/base/curve.h).
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "shim/base/curve.h"
}

namespace {

uint32_t Reached(const std::vector<uint64_t> &ns, uint64_t plain, uint64_t late) {
    return cus_curve_reached(ns.data(), static_cast<uint32_t>(ns.size()), plain, late);
}

TEST(Curve, AddsUpTheFirstTen) {
    std::vector<uint64_t> ns(12, 5);
    ns[0] = 100;
    EXPECT_EQ(cus_curve_first(ns.data(), 12), 145u);
    EXPECT_EQ(cus_curve_first(ns.data(), 3), 110u);
    EXPECT_EQ(cus_curve_first(ns.data(), 0), 0u);
}

// Of 1000 ns plain and 500 late, nine tenths of the gain are there at 550.
TEST(Curve, NineTenthsOfTheGain) {
    EXPECT_EQ(Reached({1000, 800, 551, 550, 550, 550, 500}, 1000, 500), 4u);
    EXPECT_EQ(Reached({550, 550, 550}, 1000, 500), 1u);
    EXPECT_EQ(Reached({551, 551, 551, 551}, 1000, 500), 0u);
}

TEST(Curve, OneStepDecidesNothing) {
    EXPECT_EQ(Reached({1000, 500, 900, 800, 500, 500, 500}, 1000, 500), 5u) << "a fast one";
    EXPECT_EQ(Reached({1000, 500, 900, 500, 500, 500}, 1000, 500), 2u) << "a pause";
    EXPECT_EQ(Reached({1000, 500, 500, 500}, 1000, 500), 2u) << "the step itself is fast";
    EXPECT_EQ(Reached({1000, 500, 500}, 1000, 500), 0u) << "too few behind it";
}

TEST(Curve, NoGain) {
    EXPECT_EQ(Reached({1000, 1000, 1000, 1000}, 1000, 1000), 0u);
    EXPECT_EQ(Reached({900, 900, 900}, 1000, 1100), 0u);
    EXPECT_EQ(Reached({980, 980, 980}, 1000, 980), 0u) << "less than a fiftieth";
    EXPECT_EQ(Reached({970, 970, 970}, 1000, 970), 1u);
    EXPECT_EQ(Reached({}, 1000, 500), 0u);
}

} // namespace
