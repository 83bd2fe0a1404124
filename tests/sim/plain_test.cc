// Promise: without a preload every scenario gives the same output and log, with every timing of the
// simulator and by every route. Otherwise differences in other tests would prove nothing.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

class Plain : public testing::TestWithParam<Case> {};

TEST_P(Plain, IsDeterministic) {
    const Case &c = GetParam();
    Setting first;
    Outcome expected = RunCase(c, first);
    ASSERT_EQ(expected.result.status, c.status) << expected.Describe();
    for (const char *delay : {"0", "150"}) {
        Setting other;
        other.env = {{"CUSIM_SEED", "77"}, {"CUSIM_DELAY_US", delay}};
        EXPECT_SAME(c, expected, RunCase(c, other));
    }
}

INSTANTIATE_TEST_SUITE_P(All, Plain, testing::ValuesIn(Cases()),
                         [](const auto &given) { return given.param.Title(); });

} // namespace
} // namespace sim
