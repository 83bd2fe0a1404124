// Promise: each mode puts exactly the kernels that it names into graphs, by the step class that the
// decode host's marker tells. The text stays the same.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sim {
namespace {

const Case kDecode = {"decode", 60, "", "", {}};
enum { TOKENS = 40, STEPS = 41, LAYERS = 6 }; // a line end and the prompt are a step each

// Sequences side by side are the tokens of a step; up to `uniform` of them are a uniform decode.
std::string Config(int uniform, const char *policy, const char *more = "") {
    std::string path = testing::TempDir() + "modes." + std::to_string(getpid()) + ".conf";
    std::ofstream(path) << "[rules]\n"
                        << policy << " = attention_decode\n"
                        << "[step decode]\nmarker = embedding\ntokens = y\nuniform = tokens <= "
                        << uniform << "\n"
                        << more;
    return path;
}

Outcome DecodeWith(const std::vector<std::string> &args, bool preload,
                   const std::map<std::string, std::string> &env) {
    Setting setting;
    setting.preload = preload;
    setting.timeout_s = 120;
    setting.env = env;
    return RunProgram(DecodeHost(args), setting);
}

Outcome Decode(int batch, bool preload, const std::string &mode, const std::string &config) {
    std::map<std::string, std::string> env;
    if (preload)
        env = {{"CUSPLICE_MODE", mode}, {"CUSPLICE_CONFIG", config}};
    return DecodeWith(
        {"--prompt", "A", "--tokens", std::to_string(TOKENS), "--batch", std::to_string(batch)},
        preload, env);
}

// Launches of a kernel in a plain run.
double Launches(const Outcome &plain, const std::string &kernel) {
    double n = 0;
    for (const auto &stream : plain.log)
        for (const auto &op : stream.second)
            n += op.rfind("kernel " + kernel + " ", 0) == 0;
    return n;
}

std::string Text(const Outcome &run, const std::string &key) {
    auto found = run.stats.text.find(key);
    return found == run.stats.text.end() ? "" : found->second;
}

struct Row {
    const char *mode, *policy;
    int batch;
    const char *runs_as; // "" where there is no such class in the report
    double by_rule;      // launches issued by themselves for a rule, each of STEPS steps
    bool graphs;
};

TEST(Modes, DecodeHost) {
    const char *const kUniform = "uniform", *const kEager = "eager";
    const Row rows[] = {
        {"eager", kUniform, 2, "piecewise", LAYERS, false},
        {"piecewise", kUniform, 2, "piecewise", LAYERS, true},
        {"full", kEager, 8, "full", 0, true},
        {"full_decode_only", kUniform, 2, "full", 0, true},
        {"full_and_piecewise", kUniform, 2, "full", 0, true},
        {"full_and_piecewise", kUniform, 8, "piecewise", LAYERS, true},
        {"full_and_piecewise", "uniform_single", 2, "piecewise", LAYERS, true},
        {"full_and_piecewise", kEager, 2, "piecewise", LAYERS, true},
    };
    std::map<int, Outcome> plain;
    for (const Row &row : rows) {
        SCOPED_TRACE(testing::Message() << row.mode << ", " << row.policy << ", " << row.batch);
        if (!plain.count(row.batch))
            plain[row.batch] = Decode(row.batch, false, "", "");
        std::string config = Config(4, row.policy);
        Outcome run = Decode(row.batch, true, row.mode, config);
        unlink(config.c_str());
        EXPECT_SAME(kDecode, plain[row.batch], run);
        EXPECT_STATS(run);
        std::string step =
            std::string("step_classes.") + (row.batch <= 4 ? "uniform" : "mixed") + ".";
        EXPECT_EQ(run.stats.Number(step + "steps"), STEPS);
        EXPECT_EQ(Text(run, step + "mode"), row.runs_as);
        EXPECT_EQ(run.stats.Number("eager_by.rule"), row.by_rule * STEPS);
        EXPECT_EQ(run.stats.Number("issued.in_graphs") > 0, row.graphs);
        EXPECT_EQ(run.stats.Number("eager_by.size"), 0);
    }
}

// Sequences that begin one after another: prefill, mixed and uniform decode steps.
TEST(Modes, AServersStepsByThePreset) {
    std::string report = testing::TempDir() + "modes." + std::to_string(getpid()) + ".json";
    std::vector<std::string> args = {"--tokens",  "30", "--batch",  "4",   "--mixed",
                                     "--prefill", "7",  "--report", report};
    Outcome plain = DecodeWith(args, false, {});
    const Row rows[] = {
        {"full_and_piecewise", "", 0, "full", 0, true},
        {"piecewise", "", 0, "piecewise", 0, true},
        {"full", "", 0, "full", 0, true},
    };
    for (const Row &row : rows) {
        SCOPED_TRACE(row.mode);
        std::string mode = row.mode;
        Outcome run = DecodeWith(args, true,
                                 {{"CUSPLICE_CONFIG", Runfile("config/presets/decode-modes.conf")},
                                  {"CUSPLICE_MODE", mode}});
        EXPECT_SAME(kDecode, plain, run);
        EXPECT_STATS(run);
        Json said = ParseJson(ReadFile(report));
        ASSERT_GT(said.Number("mixed_steps"), 0);
        ASSERT_GT(said.Number("prefill_steps"), 0);
        EXPECT_EQ(run.stats.Number("step_classes.single.steps"), said.Number("decode_steps"));
        EXPECT_EQ(run.stats.Number("step_classes.mixed.steps"),
                  said.Number("mixed_steps") + said.Number("prefill_steps"));
        EXPECT_EQ(Text(run, "step_classes.single.mode"), row.runs_as);
        EXPECT_EQ(Text(run, "step_classes.mixed.mode"), mode == "full" ? "full" : "piecewise");
        double all = Launches(plain, "attention_rows") + Launches(plain, "attention_decode");
        double mixed = LAYERS * run.stats.Number("step_classes.mixed.steps");
        EXPECT_GT(all, mixed);
        EXPECT_EQ(run.stats.Number("eager_by.rule"), mode == "full"        ? 0
                                                     : mode == "piecewise" ? all
                                                                           : mixed);
    }
    unlink(report.c_str());
}

TEST(Modes, DecodeOnlyLeavesOtherStepsAlone) {
    std::string config = Config(4, "uniform");
    Outcome plain = Decode(8, false, "", "");
    Outcome run = Decode(8, true, "full_decode_only", config);
    unlink(config.c_str());
    EXPECT_SAME(kDecode, plain, run);
    EXPECT_EQ(Text(run, "step_classes.mixed.mode"), "none");
    EXPECT_EQ(run.calls.Number("cuGraphLaunch"), 0);
}

TEST(Modes, TheReportSaysWhichRuleDecided) {
    std::string config = Config(4, "eager");
    Outcome run = Decode(2, true, "full_and_piecewise", config);
    unlink(config.c_str());
    EXPECT_EQ(Text(run, "step_classes.uniform.kernel"), "attention_decode");
    EXPECT_EQ(Text(run, "step_classes.uniform.policy"), "eager");
    EXPECT_EQ(Text(run, "step_classes.uniform.pattern"), "attention_decode");
    EXPECT_EQ(Text(run, "step_classes.uniform.file"), config);
    EXPECT_EQ(run.stats.Number("step_classes.uniform.line"), 2);
}

TEST(Modes, StepsOfOtherSizesAreCountedAndStayEager) {
    std::string config = Config(4, "uniform", "sizes = 1,2,4..8/2\n");
    Outcome plain = Decode(3, false, "", "");
    Outcome run = Decode(3, true, "full_and_piecewise", config);
    unlink(config.c_str());
    EXPECT_SAME(kDecode, plain, run);
    EXPECT_EQ(run.stats.Number("step_classes.outside.steps"), STEPS);
    EXPECT_EQ(run.calls.Number("cuGraphLaunch"), 0);
    EXPECT_GT(run.stats.Number("eager_by.size"), 0);
}

} // namespace
} // namespace sim
