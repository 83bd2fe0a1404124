// Promise: a program gains in its good phases, is left alone in bad ones, and no step waits long
// for a build. The test counts; tests/gpu measures times.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sim {
namespace {

struct Phase {
    Json all;
    size_t at;
    double operator()(const std::string &key) const {
        return all.Number("phases." + std::to_string(at) + "." + key);
    }
    // Of the step's launches, so many were in graphs.
    double Step(unsigned step) const { return (*this)("step_in_graphs." + std::to_string(step)); }
};

struct Played {
    Outcome plain, preloaded;
    Json said;
    Phase operator[](size_t at) const { return {said, at}; }
};

Outcome Run(const std::vector<std::string> &phases, bool preload,
            const std::map<std::string, std::string> &env) {
    Setting setting;
    setting.preload = preload;
    setting.env = {{"CUSIM_DELAY_US", "0"}, {"CUSPLICE_HOLD_US", "1000000"}};
    for (const auto &entry : env)
        setting.env[entry.first] = entry.second;
    std::vector<std::string> command = {Runfile("harness/bench/phases")};
    command.insert(command.end(), phases.begin(), phases.end());
    return RunProgram(command, setting);
}

// The same result plain and preloaded, and what the latter said.
Played Play(const std::vector<std::string> &phases,
            const std::map<std::string, std::string> &env = {}) {
    Played played = {Run(phases, false, {}), Run(phases, true, env), {}};
    EXPECT_EQ(played.plain.result.status, 0) << played.plain.Describe();
    EXPECT_EQ(played.preloaded.result.status, 0) << played.preloaded.Describe();
    EXPECT_STATS(played.preloaded);
    played.said = ParseJson(played.preloaded.result.out);
    EXPECT_EQ(ParseJson(played.plain.result.out).text.at("checksum"),
              played.said.text.at("checksum"));
    return played;
}

enum { OPS = 240 };

TEST(Phases, GoodOnesAreAsGoodBetweenBadOnes) {
    Played played = Play({"good:60", "none:200", "good:60", "none:200", "good:60"});
    for (size_t at : {0, 2, 4}) {
        EXPECT_GE(played[at]("in_graphs"), at ? 0.95 : 0.85) << at;
        EXPECT_LE(played[at]("first_replay"), at ? 2 : 3) << at;
    }
    // The bad ones: looked at until they are left alone, hardly from then on.
    EXPECT_GE(played.preloaded.stats.Number("fallbacks.demoted"), 2);
    EXPECT_GE(played.preloaded.stats.Number("eager_by.passthrough"), 2 * (200 * OPS - 7000));
    // Each of those is a step, too, and not all of them one.
    EXPECT_GE(played.preloaded.stats.Number("first_step_in_graphs"), 3);
}

TEST(Phases, KnownRunsInAnyOrderAreLearned) {
    EXPECT_GE(Play({"none:60", "runs:400"})[1]("in_graphs"), 0.7);
    // One step by itself, without all that goes by a clock: what a step may build, how long an op
    // may wait, and what does not pay.
    Played played = Play({"none:60", "runs:400"}, {{"CUSPLICE_BUILD_US", "0"},
                                                   {"CUSPLICE_HOLD_US", "1000000"},
                                                   {"CUSPLICE_DEMOTE", "no"},
                                                   {"CUSPLICE_SEGMENT_FIRST", "16"},
                                                   {"CUSPLICE_SEGMENT_MAX", "16"}});
    EXPECT_GE(played[1]("in_graphs"), 0.9);
    EXPECT_GE(played[1].Step(63), 0.9);
}

TEST(Phases, ChangingShapesArePatched) {
    Played played = Play({"shapes:40"});
    EXPECT_GE(played[0]("in_graphs"), 0.85);
    EXPECT_GT(played[0]("patched"), 0);
}

TEST(Phases, ThreeLaunchesAreAGraphEarly) {
    Played played = Play({"short:200"});
    EXPECT_EQ(played[0]("first_replay"), 3);
    EXPECT_GE(played[0]("in_graphs"), 0.98);
}

// Replay begins when a step comes for the third time, and no step builds more than its share.
TEST(Phases, ALongStepIsBuiltShareByShare) {
    const double share = 256. / 1000;
    Played played = Play({"--ops", "1000", "good:40"});
    EXPECT_EQ(played[0]("first_replay"), 3);
    EXPECT_LE(played[0]("mostly_replayed"), 20);
    EXPECT_GT(played[0]("mostly_replayed"), 5);
    double before = 0, most = 0;
    for (unsigned step = 0; step < 40; step++) {
        double now = played[0].Step(step);
        most = std::max(most, now);
        EXPECT_GE(now, most - 2 * share) << "step " << step << ": made anew share by share, too";
        EXPECT_LE(now, before + share + 0.001) << "step " << step;
        before = now;
    }
}

// Who waits for another program at each phase, or is stopped in a step, has nothing of it in its
// times, and does what it does.
TEST(Phases, StepsInWhichItWasStoppedAreNotTimed) {
    const std::string program = Runfile("harness/bench/phases");
    Setting setting;
    setting.env = {{"CUSIM_DELAY_US", "0"}};
    Outcome plain = RunProgram({program, "good:3000", "none:20"}, setting);
    Outcome stopped = RunProgram(
        {"/bin/sh", "-c",
         "stopped() { grep -q ') [TZ]' /proc/$pid/stat; }\n"
         "meet() { until stopped; do sleep 0.01; done; kill -USR1 $pid; kill -CONT $pid; }\n"
         "$0 --meet good:3000 none:20 & pid=$!\n"
         "meet\n"
         "for i in 1 2 3; do sleep 0.1; kill -STOP $pid; sleep 1; kill -CONT $pid; done\n"
         "meet\n"
         "wait $pid",
         program},
        setting);
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    ASSERT_EQ(stopped.result.status, 0) << stopped.Describe();
    Json said = ParseJson(stopped.result.out), before = ParseJson(plain.result.out);
    EXPECT_EQ(said.text.at("checksum"), before.text.at("checksum"));
    Phase good = {said, 0}, none = {said, 1};
    EXPECT_GE(good("stopped"), 1); // or the signal came between two steps
    EXPECT_LE(good("stopped"), 3);
    EXPECT_EQ(none("stopped"), 0);
    EXPECT_EQ((Phase{before, 0})("stopped"), 0);
    EXPECT_EQ(good("ops"), 3000 * OPS);
    EXPECT_LT(good("worst_step_us"), 1e6);
    EXPECT_LT(good("wall_ns") * good("ops"), 1e9 + 2 * (Phase{before, 0})("wall_ns") * good("ops"));
}

// With --past half of the steps are none of the library's, whatever it does in the others, and the
// result is the same. In a plain process both ways are one.
TEST(Phases, HalfOfTheStepsGoPastWhatWasPutBefore) {
    const unsigned good = 64, none = 96, round = 32;
    const std::vector<std::string> phases = {"good:" + std::to_string(good),
                                             "none:" + std::to_string(none)};
    std::vector<std::string> past = {"--past", "--early", "0"};
    past.insert(past.end(), phases.begin(), phases.end());
    Played played = Play(past);
    const Json &stats = played.preloaded.stats;
    const double handles = 128; // each launched once to begin with
    EXPECT_EQ(stats.Number("ops.launches"), handles + (good + none) / 2 * OPS);
    EXPECT_GT(stats.Number("issued.in_graphs"), 0);
    EXPECT_GE(played[0]("in_graphs"), 0.8) << "of those that did not go past";
    EXPECT_EQ(played[1]("ops"), none / 2 * OPS);
    EXPECT_EQ(played[1]("rounds"), none / round);
    for (const char *figure : {"over_past", "over_past_mean"}) {
        EXPECT_GT(played[1](figure), 0.2);
        EXPECT_LT(played[1](figure), 5);
    }
    EXPECT_EQ(played.said.text.at("checksum"), Play(phases).said.text.at("checksum"));
    EXPECT_EQ(played.said.Number("one_way"), 0);
    EXPECT_EQ(ParseJson(played.plain.result.out).Number("one_way"), 1);
}

} // namespace
} // namespace sim
