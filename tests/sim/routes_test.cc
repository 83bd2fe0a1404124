// Promise: whichever way a program finds the driver's functions, the library sees, defers and
// issues its launches in the same way.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

struct Route {
    const char *name;
    const char *binary;
};

const Route kRoutes[] = {
    {"elf", "harness/scenario/scenario"},          {"dlsym", "harness/scenario/scenario"},
    {"dlsym", "harness/scenario/scenario_dl"},     {"getproc", "harness/scenario/scenario"},
    {"getproc", "harness/scenario/scenario_dl"},   {"getproc11", "harness/scenario/scenario"},
    {"getproc11", "harness/scenario/scenario_dl"}, {"export", "harness/scenario/scenario_dl"},
    {"runtime", "harness/scenario/scenario"},      {"runtime", "harness/scenario/scenario_dl"},
};

class Routes : public testing::TestWithParam<const char *> {};

TEST_P(Routes, AllLeadToTheSame) {
    const Case &c = CaseOf(GetParam());
    Outcome plain = RunCase(c, {});
    ASSERT_EQ(plain.result.status, c.status) << plain.Describe();
    double seen = -1;
    for (const Route &route : kRoutes) {
        SCOPED_TRACE(std::string(route.binary) + " --route " + route.name);
        Setting setting;
        setting.binary = route.binary;
        setting.args = {"--route", route.name};
        Outcome bare = RunCase(c, setting);
        EXPECT_SAME(c, plain, bare);
        setting.preload = true;
        Outcome preloaded = RunCase(c, setting);
        ASSERT_SAME(c, plain, preloaded);
        ASSERT_STATS(preloaded);
        double ops = preloaded.stats.Sum("ops");
        EXPECT_GE(100 * preloaded.stats.Number("issued.in_graphs"), c.Least() * ops);
        if (seen < 0) {
            seen = ops;
        }
        EXPECT_EQ(ops, seen) << "another number of ops was seen by this route";
    }
}

INSTANTIATE_TEST_SUITE_P(Some, Routes,
                         testing::Values("decode_loop", "memsets", "ptds_legacy", "many_params",
                                         "capture_once", "errors"),
                         [](const auto &given) { return std::string(given.param); });

// What the library counts is what the program asked for: the plain run's calls, as the simulator
// counted them.
TEST(Seen, EveryOpOnce) {
    for (const char *name : {"decode_loop", "batch_sizes", "growing_grid", "never_repeat",
                             "never_sync", "many_params", "handles", "threads"}) {
        SCOPED_TRACE(name);
        const Case &c = CaseOf(name);
        Outcome plain = RunCase(c, {});
        Setting setting;
        setting.preload = true;
        Outcome preloaded = RunCase(c, setting);
        const Json &calls = plain.calls;
        EXPECT_EQ(preloaded.stats.Number("ops.launches"),
                  calls.Number("cuLaunchKernel") + calls.Number("cuLaunchKernelEx"));
    }
}

} // namespace
} // namespace sim
