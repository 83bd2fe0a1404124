// Promise: if a program has more steps than graphs have room for, results are right and the budget
// holds. Nothing is built again and again, and the program gets the memory that it asks for.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

enum { STEPS = 60, OPS = 200, ROUNDS = 12, BUDGET_MB = 8 };

Outcome Turns(const std::string &differ, bool preload, std::map<std::string, std::string> env = {},
              std::vector<std::string> more = {}) {
    Setting setting;
    setting.preload = preload;
    setting.env = {{"CUSPLICE_GRAPH_MB", std::to_string(BUDGET_MB)}, {"CUSIM_DELAY_US", "0"}};
    for (const auto &entry : env)
        setting.env[entry.first] = entry.second;
    std::vector<std::string> command = {Runfile("harness/bench/growth"),
                                        "--differ",
                                        differ,
                                        "--nodes",
                                        std::to_string(OPS),
                                        "--signatures",
                                        std::to_string(STEPS),
                                        "--warmup",
                                        std::to_string(ROUNDS * STEPS),
                                        "--steps",
                                        std::to_string(STEPS)};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, setting);
}

Json Said(const Outcome &outcome) {
    return ParseJson(outcome.result.out);
}

// The pace of the host decides neither how large graphs are nor how many are built in a step: what
// is counted is the same on a slow one.
std::map<std::string, std::string> AnyPace(std::map<std::string, std::string> env = {}) {
    env.insert({{"CUSPLICE_HOLD_US", "1000000"},
                {"CUSPLICE_BUILD_US", "0"},
                {"CUSPLICE_SEGMENT_FIRST", "32"},
                {"CUSPLICE_SEGMENT_MAX", "32"}});
    return env;
}

TEST(Growth, StepsThatHaveNothingInCommonStayWithinTheBudget) {
    Outcome plain = Turns("order", false), preloaded = Turns("order", true, AnyPace());
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    ASSERT_EQ(preloaded.result.status, 0) << preloaded.Describe();
    ASSERT_STATS(preloaded);
    EXPECT_EQ(Said(plain).text.at("checksum"), Said(preloaded).text.at("checksum"));
    const Json &s = preloaded.stats;
    EXPECT_LE(s.Number("graph_bytes"), BUDGET_MB << 20);
    EXPECT_GT(s.Number("fallbacks.budget"), 0) << "there was not room for all";
    EXPECT_GT(s.Number("issued.in_graphs"), 0);
    // Twelve turns: a cache that cycles would build each segment in each of them.
    EXPECT_LT(s.Number("built"), 500);
    EXPECT_GT(s.Number("host_memory.bytes_per_node"), 100);
    EXPECT_LT(s.Number("host_memory.bytes_per_node"), 1000);
}

TEST(Growth, StepsThatAreAlikeShareTheirGraphs) {
    Outcome plain = Turns("prefix", false), preloaded = Turns("prefix", true);
    ASSERT_EQ(preloaded.result.status, 0) << preloaded.Describe();
    ASSERT_STATS(preloaded);
    EXPECT_EQ(Said(plain).text.at("checksum"), Said(preloaded).text.at("checksum"));
    EXPECT_LE(preloaded.stats.Number("graph_bytes"), BUDGET_MB << 20);
    EXPECT_GT(Said(preloaded).Number("in_graphs"), 0.9);
}

// A hundred thousand launches until one comes again: they are learned, built and kept, where there
// is room for as many; else the program is left alone and nothing is kept of it. Where the driver
// might wait a graph is built in a later turn; so there are more turns than a fast machine needs.
TEST(Growth, WhatComesAgainAfterManyLaunchesIsLearnedWhereThereIsRoom) {
    const std::vector<std::string> more = {"--signatures", "500", "--warmup", "4500"};
    const std::string room = std::to_string(OPS * 500 * 3 / 2), less = "20000";
    Outcome plain = Turns("order", false, {}, more);
    Outcome learned = Turns(
        "order", true, AnyPace({{"CUSPLICE_GRAPH_MB", "512"}, {"CUSPLICE_NODES_MAX", room}}), more);
    Outcome alone = Turns(
        "order", true, AnyPace({{"CUSPLICE_GRAPH_MB", "512"}, {"CUSPLICE_NODES_MAX", less}}), more);
    for (const Outcome &outcome : {learned, alone}) {
        ASSERT_EQ(outcome.result.status, 0) << outcome.Describe();
        ASSERT_STATS(outcome);
        EXPECT_EQ(Said(plain).text.at("checksum"), Said(outcome).text.at("checksum"));
        EXPECT_GT(outcome.stats.Number("fallbacks.demoted"), 0) << "at first nothing came again";
    }
    EXPECT_GT(Said(learned).Number("in_graphs"), 0.9);
    EXPECT_LT(alone.stats.Number("issued.in_graphs"), 1000);
    EXPECT_LT(alone.stats.Number("host_memory.bytes_most"), 4 << 20) << "nor was it tried";
}

TEST(Growth, AProgramThatNeedsTheMemoryGetsIt) {
    const std::vector<std::string> more = {"--alloc-mb", "16"};
    const std::map<std::string, std::string> full = {{"CUSIM_FAULT", "cuMemAlloc_v2:2:2"}};
    EXPECT_EQ(Turns("prefix", false, full, more).result.status, 3) << "it fails by itself";
    Outcome preloaded = Turns("prefix", true, full, more);
    EXPECT_EQ(preloaded.result.status, 0) << preloaded.Describe();
    EXPECT_GT(preloaded.stats.Number("fallbacks.budget"), 0) << "graphs were dropped for it";
}

} // namespace
} // namespace sim
