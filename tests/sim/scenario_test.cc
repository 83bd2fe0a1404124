// Promise: every scenario, preloaded with default settings, has the output, exit status and
// operations of each stream that it has plain. Scenarios that repeat themselves use graphs.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sim {
namespace {

struct Timing {
    const char *seed;
    const char *delay_us;
    const char *order = "", *locks = "";
};

// Streams that hurry, streams that lag, and something between. In the last the simulator breaks
// what CUDA does not promise.
const Timing kTimings[] = {{"1", "20"}, {"2", "0"}, {"3", "120"}, {"4", "60", "weak", "measured"}};

Setting At(const Timing &timing, bool preload) {
    Setting setting;
    setting.preload = preload;
    setting.env = {{"CUSIM_SEED", timing.seed},
                   {"CUSIM_DELAY_US", timing.delay_us},
                   {"CUSIM_ORDER", timing.order},
                   {"CUSIM_LOCKS", timing.locks}};
    return setting;
}

class Scenario : public testing::TestWithParam<Case> {};

TEST_P(Scenario, PreloadedIsAsPlain) {
    const Case &c = GetParam();
    Outcome plain = RunCase(c, At(kTimings[0], false));
    ASSERT_EQ(plain.result.status, c.status) << "plain: " << plain.Describe();
    if (c.name != "idle") {
        ASSERT_GT(CountOps(plain.log), 0u) << "plain: no log";
    }
    double best = 0; // share of ops in graphs
    for (const Timing &timing : kTimings) {
        SCOPED_TRACE(std::string("seed ") + timing.seed + ", delay " + timing.delay_us + " us");
        Outcome preloaded = RunCase(c, At(timing, true));
        ASSERT_SAME(c, plain, preloaded);
        if (c.name == "idle") {
            continue;
        }
        ASSERT_STATS(preloaded);
        const Json &s = preloaded.stats;
        double share = 100 * s.Number("issued.in_graphs") / s.Sum("ops");
        best = std::max(best, share);
        // With weak order the host sees what it polls for before the operation is complete: what is
        // built meanwhile is another question there.
        EXPECT_GE(share, *timing.order && c.name == "poll_copy" ? 0 : c.Least())
            << s.Number("issued.in_graphs") << " of " << s.Sum("ops") << " in graphs; observing "
            << s.Number("eager_by.observing") << ", diverged " << s.Number("eager_by.diverged")
            << ", flushed " << s.Number("eager_by.flushed") << ", unsupported "
            << s.Number("eager_by.unsupported") << ", passthrough "
            << s.Number("eager_by.passthrough");
        if (!c.must_flush.empty()) {
            EXPECT_GT(s.Number("flushes." + c.must_flush), 0) << c.must_flush;
        }
        if (!c.must_not_flush.empty()) {
            EXPECT_EQ(s.Number("flushes." + c.must_not_flush), 0) << c.must_not_flush;
        }
    }
    EXPECT_GE(best, c.min_in_graphs);
}

INSTANTIATE_TEST_SUITE_P(All, Scenario, testing::ValuesIn(Cases()),
                         [](const auto &given) { return given.param.Title(); });

// Streams of eight threads come into graphs, though some are busy at any time: there is room for
// these once the GPU has rested. Where each op takes the GPU longer than the host it never does,
// and graphs gain nothing.
TEST(Threads, ThatLaunchAllTheTimeComeIntoGraphs) {
    Setting setting = At({"2", "0"}, true);
    setting.args = {"--steps", "80"};
    double in_graphs = 0;
    // A busy machine keeps threads from it. An emulated GPU is slow, and rests in some runs alone.
    const int runs = getenv("CUS_TEST_EMULATED") ? 10 : 3;
    for (int run = 0; run < runs && in_graphs < 40; run++) {
        Outcome preloaded = RunCase(CaseOf("threads_bound"), setting);
        ASSERT_EQ(preloaded.result.status, 0) << preloaded.Describe();
        const Json &s = preloaded.stats;
        in_graphs = 100 * s.Number("issued.in_graphs") / s.Sum("ops");
    }
    EXPECT_GE(in_graphs, 40);
}

// The table names every scenario that there is, so that none is left out.
TEST(Table, NamesEveryScenario) {
    Setting setting;
    Outcome list = RunProgram({Runfile(setting.binary), "--list"}, setting);
    ASSERT_EQ(list.result.status, 0) << list.Describe();
    std::string missing;
    std::string text = list.result.out;
    size_t count = 0;
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        std::string name = text.substr(at, end - at);
        bool known = false;
        for (const Case &c : Cases()) {
            known |= c.name == name;
        }
        if (!known) {
            missing += name + " ";
        }
        count++;
    }
    EXPECT_EQ(missing, "");
    EXPECT_GE(count, 60u);
}

} // namespace
} // namespace sim
