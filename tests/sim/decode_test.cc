// Promise: the decode host, a program on the shared runtime and cuBLAS, writes the same text
// preloaded. Most of its launches are in graphs, and kernels on the eager list never are.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

namespace sim {
namespace {

Outcome Decode(const std::vector<std::string> &args, bool preload,
               std::map<std::string, std::string> env = {}) {
    Setting setting;
    setting.preload = preload;
    setting.env = std::move(env);
    setting.timeout_s = 120;
    return RunProgram(DecodeHost(args), setting);
}

const Case kDecode = {"decode", 60, "", "", {}};

TEST(Decode, SameTextAndMostlyGraphs) {
    std::vector<std::string> args = {"--tokens", "32"};
    Outcome plain = Decode(args, false);
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    ASSERT_GT(plain.result.out.size(), 32u);
    for (const char *delay : {"0", "20"}) {
        SCOPED_TRACE(delay);
        Outcome preloaded = Decode(args, true, {{"CUSIM_DELAY_US", delay}, {"CUSIM_SEED", "5"}});
        ASSERT_SAME(kDecode, plain, preloaded);
        ASSERT_STATS(preloaded);
        EXPECT_GE(preloaded.stats.Number("issued.in_graphs"), 0.6 * preloaded.stats.Sum("ops"))
            << preloaded.stats.Number("issued.in_graphs") << " of " << preloaded.stats.Sum("ops");
        EXPECT_LT(
            preloaded.calls.Number("cuLaunchKernel") + preloaded.calls.Number("cuLaunchKernelEx") +
                preloaded.calls.Number("cuGraphLaunch"),
            0.6 * (plain.calls.Number("cuLaunchKernel") + plain.calls.Number("cuLaunchKernelEx")));
    }
}

TEST(Decode, EagerRuleKeepsAttentionOut) {
    std::vector<std::string> args = {"--tokens", "24"};
    Outcome plain = Decode(args, false);
    Outcome ruled = Decode(args, true, {{"CUSPLICE_EAGER", "attention_decode"}});
    ASSERT_SAME(kDecode, plain, ruled);
    ASSERT_STATS(ruled);
    size_t attention = 0;
    for (const auto &stream : plain.log) {
        for (const auto &op : stream.second) {
            attention += op.rfind("kernel attention_decode ", 0) == 0;
        }
    }
    ASSERT_GT(attention, 0u);
    EXPECT_EQ(ruled.stats.Number("eager_by.rule"), (double)attention);
    EXPECT_GT(ruled.stats.Number("issued.in_graphs"), 0.5 * ruled.stats.Sum("ops"));
    // The step's list, as the demo prints it: "graph 7", "eager attention_decode", ...
    int graphs = 0, eager = 0;
    for (const auto &entry : ruled.stats.text) {
        if (entry.first.rfind("segment_list.", 0) == 0) {
            graphs += entry.second.rfind("graph ", 0) == 0;
            eager += entry.second == "eager attention_decode";
        }
    }
    EXPECT_GT(graphs, 0);
    EXPECT_GT(eager, 0);
}

TEST(Decode, EveryKindOfStreamAndBatch) {
    for (const char *stream : {"nonblocking", "blocking", "legacy"}) {
        for (const char *batch : {"1", "3"}) {
            SCOPED_TRACE(std::string(stream) + ", batch " + batch);
            std::vector<std::string> args = {"--tokens", "16",  "--stream",      stream,
                                             "--batch",  batch, "--temperature", "0.8"};
            Outcome plain = Decode(args, false);
            Outcome preloaded = Decode(args, true);
            EXPECT_SAME(kDecode, plain, preloaded);
            EXPECT_STATS(preloaded);
            EXPECT_GT(preloaded.stats.Number("issued.in_graphs"), 0);
        }
    }
}

// What the grids of a log's markers tell.
struct Markers {
    int steps = 0, one_each = 0, rows = 0, most = 0;
};

Markers MarkersOf(const Outcome &outcome) {
    Markers markers;
    for (const auto &stream : outcome.log) {
        for (const auto &op : stream.second) {
            unsigned x, y, z;
            if (sscanf(op.c_str(), "kernel embedding %u,%u,%u ", &x, &y, &z) == 3) {
                EXPECT_EQ(x, 2u);
                EXPECT_TRUE(z == 1 || z == 2) << z;
                markers.steps++;
                markers.one_each += z == 1;
                markers.rows += (int)y;
                markers.most = std::max(markers.most, (int)y);
            }
        }
    }
    return markers;
}

size_t CountOf(const Outcome &outcome, const std::string &kernel) {
    size_t count = 0;
    for (const auto &stream : outcome.log) {
        for (const auto &op : stream.second) {
            count += op.rfind("kernel " + kernel, 0) == 0;
        }
    }
    return count;
}

TEST(Decode, AStepOfTheBatchIsAHundredLaunchesAndItsMarkerSaysSo) {
    Outcome plain = Decode({"--tokens", "4", "--prompt", "Emma", "--batch", "3"}, false);
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    Markers markers = MarkersOf(plain);
    EXPECT_EQ(markers.steps, 8);
    EXPECT_EQ(markers.one_each, 8);
    EXPECT_EQ(markers.rows, 8 * 3);
    EXPECT_EQ(markers.most, 3);
    EXPECT_EQ(CountOf(plain, ""), 8u * 100);
    EXPECT_EQ(CountOf(plain, "attention_decode 5,1,3 "), 8u * 6);
    EXPECT_EQ(CountOf(plain, "rope 3,3,1 "), 8u * 6);
    EXPECT_EQ(CountOf(plain, "kv_append 2,3,1 "), 8u * 6);
    EXPECT_EQ(CountOf(plain, "argmax 3,1,1 "), 8u);
}

TEST(Decode, PrefillAndMixedStepsAreToldApartAndPreloadedTheSame) {
    struct Way {
        int batch;
        std::vector<std::string> options;
        // Steps, those with a row for each sequence, those of the whole batch at one position
        // (attention_decode; all others go by attention_rows), and the rows of the largest.
        int steps, one_each, in_step, most;
    };
    // 9 tokens and 16 characters, so 24 rows of each sequence.
    const std::vector<std::string> args = {"--prompt", "Emma was",      "--tokens",
                                           "16",       "--temperature", "0.7"};
    const std::vector<Way> ways = {
        {1, {"--prefill", "7"}, 17, 15, 15, 7},
        {4, {"--prefill", "1"}, 24, 24, 24, 4},
        {4, {"--prefill", "4"}, 18, 16, 16, 16},
        {4, {"--prefill", "64"}, 16, 15, 15, 36},
        {4, {"--mixed"}, 51, 51, 0, 3},
        {4, {"--mixed", "--prefill", "4"}, 27, 19, 0, 7},
        {4, {"--mixed", "--prefill", "64"}, 19, 15, 0, 12},
    };
    auto with = [&](int batch, const std::vector<std::string> &options) {
        std::vector<std::string> all = args;
        all.insert(all.end(), {"--batch", std::to_string(batch)});
        all.insert(all.end(), options.begin(), options.end());
        return all;
    };
    Outcome in_step = Decode(with(4, {}), false);
    ASSERT_EQ(in_step.result.status, 0) << in_step.Describe();
    // The first sequence writes what it writes alone.
    const size_t alone = 8 + 16 + 1;
    for (const Way &way : ways) {
        std::vector<std::string> all = with(way.batch, way.options);
        SCOPED_TRACE(std::to_string(way.batch) + " " + way.options.front() + " " +
                     way.options.back());
        Outcome plain = Decode(all, false);
        ASSERT_EQ(plain.result.status, 0) << plain.Describe();
        EXPECT_EQ(plain.result.out,
                  way.batch == 1 ? in_step.result.out.substr(0, alone) : in_step.result.out);
        Markers markers = MarkersOf(plain);
        EXPECT_EQ(markers.steps, way.steps);
        EXPECT_EQ(markers.one_each, way.one_each);
        EXPECT_EQ(markers.rows, way.batch * 24);
        EXPECT_EQ(markers.most, way.most);
        EXPECT_EQ(CountOf(plain, ""), 100u * (size_t)way.steps);
        EXPECT_EQ(CountOf(plain, "attention_decode "), 6u * (size_t)way.in_step);
        EXPECT_EQ(CountOf(plain, "attention_rows "), 6u * (size_t)(way.steps - way.in_step));
        Outcome preloaded = Decode(all, true);
        EXPECT_SAME(kDecode, plain, preloaded);
        EXPECT_STATS(preloaded);
        EXPECT_GT(preloaded.stats.Number("issued.in_graphs"), 0.3 * preloaded.stats.Sum("ops"))
            << preloaded.stats.Number("issued.in_graphs") << " of " << preloaded.stats.Sum("ops");
    }
}

TEST(Decode, KillSwitch) {
    std::vector<std::string> args = {"--tokens", "16"};
    Outcome plain = Decode(args, false);
    Outcome off = Decode(args, true, {{"CUSPLICE", "off"}});
    EXPECT_SAME(kDecode, plain, off);
    EXPECT_EQ(plain.calls.number, off.calls.number);
}

TEST(Decode, AnotherTextIsSeen) {
    EXPECT_NE(Compare(kDecode, Decode({"--tokens", "8", "--prompt", "He was"}, false),
                      Decode({"--tokens", "8", "--prompt", "She was"}, false)),
              "");
}

} // namespace
} // namespace sim
