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
          "exit_forked"}) {
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

} // namespace
} // namespace sim
