// Promise: the decode host, an ordinary program on the shared runtime and cuBLAS, writes the same
// text preloaded, and most of its launches go out in graphs; kernels on the eager list never do.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

Outcome Decode(std::vector<std::string> args, bool preload,
               std::map<std::string, std::string> env = {}) {
    Setting setting;
    setting.preload = preload;
    setting.env = std::move(env);
    setting.timeout_s = 120;
    std::vector<std::string> command = {Runfile("harness/decode/decode"), "--model",
                                        Runfile("harness/decode/model/austen.bin")};
    command.insert(command.end(), args.begin(), args.end());
    return RunProgram(command, setting);
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
