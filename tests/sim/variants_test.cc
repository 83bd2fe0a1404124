// Promise: if batch sizes take turns, a size with a variant is launched unpatched, and other sizes
// are patched. Once every size came, no launch is missed and memory stays constant.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

enum { SIZES = 5, OPS = 25, KNOWN = 3, ROUNDS = 100 }; // of scenario batch_turns: ops of a step

// One segment for each step, whatever the host's pace; nodes may be patched to what a GPU's driver
// lets them be.
Outcome Turns(int rounds, const std::string &variants) {
    Setting setting;
    setting.preload = true;
    setting.env = {{"CUSPLICE_VARIANTS", variants},   {"CUSPLICE_SEGMENT_FIRST", "64"},
                   {"CUSPLICE_HOLD_US", "1000000"},   {"CUSPLICE_GRAPH_MB", "1"},
                   {"CUSIM_GRAPH_RULES", "measured"}, {"CUSIM_DELAY_US", "0"}};
    setting.args = {"--steps", std::to_string(rounds * SIZES)};
    Outcome run = RunCase(CaseOf("batch_turns"), setting);
    EXPECT_EQ(run.result.status, 0) << run.Describe();
    EXPECT_STATS(run);
    return run;
}

// What the rounds behind the third added to a count.
struct Added {
    Outcome known, all;
    double operator()(const std::string &key) const {
        return all.stats.Number(key) - known.stats.Number(key);
    }
};

TEST(Variants, OneForEachBatchSizeIsAnExactHitFromTheThirdRoundOn) {
    Added added = {Turns(KNOWN, "8"), Turns(ROUNDS, "8")};
    const int steps = (ROUNDS - KNOWN) * SIZES;
    EXPECT_EQ(added("signatures.exact"), steps);
    EXPECT_EQ(added("signatures.patched"), 0);
    EXPECT_EQ(added("signatures.missed"), 0);
    EXPECT_EQ(added("patched_nodes"), 0);
    EXPECT_EQ(added("graph_launches"), steps);
    EXPECT_EQ(added("issued.in_graphs"), steps * OPS);
    EXPECT_EQ(added("issued.eager"), 0);
    EXPECT_EQ(added("graph_bytes"), 0);
    EXPECT_GT(added.all.stats.Number("graph_bytes"), 0);
    EXPECT_LT(added.all.stats.Number("graph_bytes"), 1 << 20);
    EXPECT_EQ(added.all.calls.Number("cuGraphInstantiateWithFlags"), SIZES);
}

TEST(Variants, FewerThanBatchSizesArePatchedAndNothingIsMissed) {
    Added added = {Turns(KNOWN, "2"), Turns(ROUNDS, "2")};
    const int steps = (ROUNDS - KNOWN) * SIZES;
    EXPECT_EQ(added("signatures.exact") + added("signatures.patched"), steps);
    EXPECT_GT(added("signatures.patched"), steps / 2);
    EXPECT_EQ(added("signatures.missed"), 0);
    EXPECT_EQ(added("issued.in_graphs"), steps * OPS);
    EXPECT_EQ(added("issued.eager"), 0);
    EXPECT_EQ(added("graph_bytes"), 0);
    EXPECT_EQ(added.all.calls.Number("cuGraphInstantiateWithFlags"), 2);
    EXPECT_LT(added.all.stats.Number("graph_bytes"), Turns(KNOWN, "8").stats.Number("graph_bytes"));
}

// With the settings that everybody has, segments are what the host's pace makes them: almost all
// hit.
TEST(Variants, ByDefaultTooNearlyAllAreHits) {
    Setting setting;
    setting.preload = true;
    setting.env = {
        {"CUSPLICE_VARIANTS", "8"}, {"CUSPLICE_HOLD_US", "1000000"}, {"CUSIM_DELAY_US", "0"}};
    setting.args = {"--steps", std::to_string(40 * SIZES)};
    Setting same = setting;
    same.preload = false;
    Outcome run = RunCase(CaseOf("batch_turns"), setting);
    EXPECT_SAME(CaseOf("batch_turns"), RunCase(CaseOf("batch_turns"), same), run);
    double exact = run.stats.Number("signatures.exact"), all = run.stats.Sum("signatures");
    EXPECT_GT(exact, 0.8 * all) << run.Describe();
}

} // namespace
} // namespace sim
