// Promise: no setting changes what a program does, and each setting changes the library as it says.
// By default a scenario runs with a third of the settings, each with others; CUS_TEST_FULL=1: with
// all of them.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sim {
namespace {

struct Knobs {
    const char *title;
    std::map<std::string, std::string> env;
};

const Knobs kKnobs[] = {
    {"TightWatchdog", {{"CUSPLICE_HOLD_US", "50"}, {"CUSIM_DELAY_US", "60"}}},
    {"SmallSegments", {{"CUSPLICE_SEGMENT_FIRST", "2"}, {"CUSPLICE_SEGMENT_MAX", "2"}}},
    {"LargeSegments",
     {{"CUSPLICE_SEGMENT_FIRST", "64"},
      {"CUSPLICE_SEGMENT_MAX", "64"},
      {"CUSPLICE_HOLD_US", "1000000"},
      {"CUSPLICE_WARMUP", "1"}}},
    {"OneVariant", {{"CUSPLICE_VARIANTS", "1"}, {"CUSPLICE_WARMUP", "1"}}},
    {"Submitted", {{"CUSPLICE_SUBMIT_NS", "1"}, {"CUSPLICE_DEMOTE", "no"}}},
    {"NoGraphs", {{"CUSPLICE_GRAPH_MB", "0"}}},
    {"ModeEager", {{"CUSPLICE_MODE", "eager"}}},
    {"ModeObserve", {{"CUSPLICE_MODE", "observe"}}},
};

// Polling programs wait for the watchdog, and a second of it in each of 30 steps proves no more
// than a tenth.
std::map<std::string, std::string> Env(const Knobs &knobs, const Case &c) {
    auto env = knobs.env;
    bool waits =
        c.name.rfind("poll_", 0) == 0 || c.name == "fork_poll" || c.name == "host_func_two";
    if (waits && env.count("CUSPLICE_HOLD_US") && env["CUSPLICE_HOLD_US"] == "1000000") {
        env["CUSPLICE_HOLD_US"] = "20000";
    }
    return env;
}

class Settings : public testing::TestWithParam<size_t> {};

TEST_P(Settings, ChangeNothing) {
    const Case &c = Cases()[GetParam()];
    Outcome plain = RunCase(c, {});
    ASSERT_EQ(plain.result.status, c.status) << plain.Describe();
    size_t number = GetParam();
    for (const Knobs &knobs : kKnobs) {
        if (number++ % 3 && !getenv("CUS_TEST_FULL")) {
            continue;
        }
        SCOPED_TRACE(knobs.title);
        Setting setting;
        setting.preload = true;
        setting.env = Env(knobs, c);
        Outcome preloaded = RunCase(c, setting);
        ASSERT_SAME(c, plain, preloaded);
        if (c.name == "idle") {
            continue;
        }
        EXPECT_STATS(preloaded);
        if (knobs.env.count("CUSPLICE_GRAPH_MB") || knobs.env.count("CUSPLICE_MODE")) {
            EXPECT_EQ(preloaded.stats.Number("issued.in_graphs"), 0);
            EXPECT_EQ(preloaded.stats.Number("graph_launches"), 0);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Settings, testing::Range<size_t>(0, Cases().size()),
                         [](const auto &given) { return Cases()[given.param].Title(); });

} // namespace
} // namespace sim
