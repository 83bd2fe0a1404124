// Promise: the comparison in the other tests finds every kind of mistake of a library.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

struct Wrong {
    const char *how;
    const char *scenario;
};

class Broken : public testing::TestWithParam<Wrong> {};

TEST_P(Broken, IsFound) {
    const Case &c = CaseOf(GetParam().scenario);
    Setting setting;
    Outcome plain = RunCase(c, setting);
    setting.preload = true;
    setting.library = "tests/sim/libbroken.so";
    Outcome right = RunCase(c, setting);
    EXPECT_SAME(c, plain, right);
    setting.env = {{"CUS_BROKEN", GetParam().how}};
    Outcome wrong = RunCase(c, setting);
    EXPECT_NE(Compare(c, plain, wrong), "");
    EXPECT_NE(CheckStats(wrong), "") << "it wrote no stats file";
}

INSTANTIATE_TEST_SUITE_P(
    Library, Broken,
    testing::Values(Wrong{"drop", "batch_sizes"}, Wrong{"twice", "batch_sizes"},
                    Wrong{"value", "stream_query"}, Wrong{"late", "stream_query"},
                    Wrong{"grid", "batch_sizes"}, Wrong{"memset", "batch_sizes"},
                    Wrong{"code", "errors"}, Wrong{"drop", "decode_loop"}),
    [](const auto &given) { return std::string(given.param.how) + "_" + given.param.scenario; });

// The same wrong launch that changes no memory that is printed is still seen in the log.
TEST(BrokenLog, IsFoundByTheLogAlone) {
    const Case &c = CaseOf("stream_recreate");
    Setting setting;
    Outcome plain = RunCase(c, setting);
    setting.preload = true;
    setting.library = "tests/sim/libbroken.so";
    setting.env = {{"CUS_BROKEN", "grid"}};
    Outcome wrong = RunCase(c, setting);
    wrong.result.out = plain.result.out;
    EXPECT_NE(Compare(c, plain, wrong).find("another log"), std::string::npos);
}

// What streams that wait for each other did is compared in any order, so their output must tell.
TEST(BrokenWait, IsFoundByTheOutputAlone) {
    for (const char *name :
         {"fork_layers", "fork_events",   "fork_wait_stream", "fork_two",     "fork_nested",
          "fork_open",   "fork_late",     "fork_old",         "fork_poll",    "fork_thread",
          "fork_moves",  "fork_priority", "fork_blocking",    "fork_diverge", "fork_capture",
          "fork_memory", "fork_free",     "fork_again",       "fork_given",   "fork_waits",
          "fork_legacy", "fork_trailing", "exit_forked"}) {
        const Case &c = CaseOf(name);
        Outcome plain = RunCase(c, {});
        Setting setting;
        setting.preload = true;
        setting.library = "tests/sim/libbroken.so";
        setting.env = {{"CUS_BROKEN", "wait"}};
        bool found = false;
        for (int seed = 1; seed <= 4 && !found; seed++) {
            setting.env["CUSIM_SEED"] = std::to_string(seed);
            found = RunCase(c, setting).result.out != plain.result.out;
        }
        EXPECT_TRUE(found) << name;
    }
}

// What CUDA does not promise holds on the simulator unless a setting breaks it.
struct Lucky {
    const char *how, *scenario;
    const char *setting, *value;
};

class BrokenLuck : public testing::TestWithParam<Lucky> {};

TEST_P(BrokenLuck, IsFoundWithTheSettingAlone) {
    const Lucky &p = GetParam();
    const Case &c = CaseOf(p.scenario);
    Outcome plain = RunCase(c, {});
    Setting setting;
    setting.preload = true;
    setting.library = "tests/sim/libbroken.so";
    setting.env = {{"CUS_BROKEN", p.how}};
    Outcome lucky = RunCase(c, setting);
    EXPECT_EQ(lucky.result.out, plain.result.out) << lucky.Describe();
    setting.env[p.setting] = p.value;
    setting.timeout_s = 4; // it may hang
    bool found = false;
    for (int seed = 1; seed <= 4 && !found; seed++) {
        setting.env["CUSIM_SEED"] = std::to_string(seed);
        Outcome wrong = RunCase(c, setting);
        found = wrong.result.timed_out || wrong.result.out != plain.result.out;
    }
    EXPECT_TRUE(found);
    setting.env["CUS_BROKEN"] = "";
    setting.timeout_s = 60;
    Outcome right = RunCase(c, setting);
    EXPECT_EQ(right.result.out, plain.result.out) << right.Describe();
}

INSTANTIATE_TEST_SUITE_P(Library, BrokenLuck,
                         testing::Values(Lucky{"early", "programmatic", "CUSIM_ORDER", "weak"},
                                         Lucky{"behind", "spin_behind",
                                               "CUDA_DEVICE_MAX_CONNECTIONS", "1"},
                                         Lucky{"build", "copy_asleep", "CUSIM_LOCKS", "measured"}),
                         [](const auto &given) { return std::string(given.param.how); });

// A graph in which an edge that should be full is a programmatic one.
TEST(BrokenGraph, IsFoundWithWeakOrderAlone) {
    const Case &c = CaseOf("programmatic");
    Outcome plain = RunCase(c, {});
    Setting setting;
    setting.preload = true;
    setting.env = {{"CUSIM_GRAPH_ERROR", "early:2"}};
    EXPECT_EQ(RunCase(c, setting).result.out, plain.result.out);
    setting.env["CUSIM_ORDER"] = "weak";
    bool found = false;
    for (int seed = 1; seed <= 4 && !found; seed++) {
        setting.env["CUSIM_SEED"] = std::to_string(seed);
        found = RunCase(c, setting).result.out != plain.result.out;
    }
    EXPECT_TRUE(found);
}

// A graph of the library that lacks one of its edges. An edge may be one that another path of edges
// makes good, so one launch in seven is wrong and each of the scenarios has hundreds.
TEST(BrokenGraph, IsFoundByTheOutputIfItLacksAnEdge) {
    for (const char *name : {"fork_layers", "fork_events", "fork_wait_stream", "fork_two",
                             "fork_legacy", "fork_diverge"}) {
        const Case &c = CaseOf(name);
        Outcome plain = RunCase(c, {});
        Setting setting;
        setting.preload = true;
        setting.env = {{"CUSIM_GRAPH_ERROR", "edge:7"}};
        bool found = false;
        for (int seed = 1; seed <= 4 && !found; seed++) {
            setting.env["CUSIM_SEED"] = std::to_string(seed);
            found = RunCase(c, setting).result.out != plain.result.out;
        }
        EXPECT_TRUE(found) << name;
    }
}

} // namespace
} // namespace sim
