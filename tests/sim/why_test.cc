// Promise: with why = yes a program says at exit what was in graphs, what was not and why, with the
// exact counts; nothing else changes.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace sim {
namespace {

const Case kDecode = {"decode_loop", 0, "", "", {}};
// 12 steps of 27 ops, of which 2 are attention_decode: runs of 7, 11 and 7 ops, each of which is
// one graph with these settings, whatever the host's pace. Two steps and the first launches behind
// the loop's beginning are learned; in 9 steps the runs are graphs.
const std::map<std::string, std::string> kEnv = {
    {"CUSPLICE_WHY", "yes"},
    {"CUSPLICE_HOLD_US", "1000000"},
    {"CUSPLICE_SEGMENT_FIRST", "64"},
    {"CUSPLICE_EAGER", "attention_decode;atention*;graph_of_nothing"},
};

Outcome Decode(bool preload, const std::map<std::string, std::string> &env = kEnv) {
    Setting setting;
    setting.preload = preload;
    setting.args = {"--steps", "12"};
    if (preload)
        setting.env = env;
    return RunCase(kDecode, setting);
}

const char kReport[] =
    "cusplice: why (mode piecewise)\n"
    "  coverage: 69.4 % of 324 ops in graphs\n"
    "    225 ops in 27 graph launches, 8.3 ops each; 99 ops one by one; 13 steps\n"
    "  costliest breaks, by launches issued one by one because of them + runs of graphs that they "
    "ended:\n"
    "    1. 24 + 18  attention_decode: an eager rule names it\n"
    "       to do: if it may be in graphs, take the rule out or put graph = NAME in front of it "
    "(the "
    "result is the same); mode = full ignores such rules\n"
    "    2. 17 + 0  copy_words: this order of launches has not come by often enough\n"
    "       to do: let steps launch the same kernels in the same order; warmup = 1 builds graphs "
    "one "
    "visit sooner\n"
    "    3. 11 + 0  residual_add: this order of launches has not come by often enough\n"
    "       to do: as for 2\n"
    "    4. 11 + 0  rmsnorm: this order of launches has not come by often enough\n"
    "       to do: as for 2\n"
    "    5. 0 + 9  cuStreamSynchronize: the host waits for the stream\n"
    "       to do: wait once a step, where the host needs a result, and not within it\n"
    "    6. 5 + 0  attention_combine: this order of launches has not come by often enough\n"
    "       to do: as for 2\n"
    "    7. 5 + 0  kv_append: this order of launches has not come by often enough\n"
    "       to do: as for 2\n"
    "    8. 5 + 0  rope: this order of launches has not come by often enough\n"
    "       to do: as for 2\n"
    "    9. 5 + 0  silu_mul: this order of launches has not come by often enough\n"
    "       to do: as for 2\n"
    "    10. 3 + 0  memcpy: this order of launches has not come by often enough\n"
    "       to do: as for 2\n"
    "    and 12 more, each smaller\n"
    "  rules that matched no kernel:\n"
    "    eager = atention*  (CUSPLICE_EAGER); the nearest kernel is attention_combine\n"
    "    eager = graph_of_nothing  (CUSPLICE_EAGER); the nearest kernel is attention_combine\n"
    "  kernels whose shape changes at half of their launches or more: none\n"
    "  graphs: 3 segments of 25 ops hold 77288 bytes; 77288 bytes at most (estimates)\n"
    "    32696 bytes, 11 ops, 1 variant, launched 9 times: attention_combine ... kv_append\n"
    "    22296 bytes, 7 ops, 1 variant, launched 9 times: attention_combine ... memcpy\n"
    "    22296 bytes, 7 ops, 1 variant, launched 9 times: axpy ... kv_append\n";

TEST(Why, EachSectionHasTheNumbersOfTheProgram) {
    Outcome plain = Decode(false), run = Decode(true);
    EXPECT_SAME(kDecode, plain, run);
    EXPECT_STATS(run);
    EXPECT_EQ(run.result.err, kReport);
}

TEST(Why, TheStatsFileHasTheSameFacts) {
    Outcome run = Decode(true);
    const Json &stats = run.stats;
    auto text = [&](const std::string &key) {
        auto found = stats.text.find(key);
        return found == stats.text.end() ? "" : found->second;
    };
    EXPECT_EQ(text("breaks_by_kernel.0.name"), "attention_decode");
    EXPECT_EQ(text("breaks_by_kernel.0.by"), "kernel");
    EXPECT_EQ(text("breaks_by_kernel.0.reason"), "rule");
    EXPECT_EQ(stats.Number("breaks_by_kernel.0.launches"), 24);
    EXPECT_EQ(stats.Number("breaks_by_kernel.0.runs"), 18);
    EXPECT_EQ(text("breaks_by_kernel.4.name"), "cuStreamSynchronize");
    EXPECT_EQ(text("breaks_by_kernel.4.by"), "call");
    double launches = stats.Number("breaks_beyond.launches");
    for (int i = 0; stats.Has("breaks_by_kernel." + std::to_string(i) + ".launches"); i++)
        launches += stats.Number("breaks_by_kernel." + std::to_string(i) + ".launches");
    EXPECT_EQ(launches, stats.Number("issued.eager"));
    EXPECT_EQ(text("rules_without_match.0.pattern"), "atention*");
    EXPECT_EQ(text("rules_without_match.0.nearest"), "attention_combine");
    EXPECT_EQ(stats.Number("graph_memory.segments"), 3);
    EXPECT_EQ(stats.Number("graph_memory.ops"), 25);
    EXPECT_EQ(stats.Number("graph_memory.bytes"), stats.Number("graph_bytes"));
    EXPECT_EQ(stats.Number("graph_memory.largest.0.ops"), 11);
    EXPECT_EQ(stats.Number("graph_memory.largest.0.launches"), 9);
    EXPECT_EQ(text("graph_memory.largest.0.last"), "kv_append");
    EXPECT_FALSE(stats.Has("changing_shapes.0.changed"));
}

TEST(Why, GoesWhereTheLogGoes) {
    std::string file = testing::TempDir() + "why." + std::to_string(getpid()) + ".log";
    std::map<std::string, std::string> env = kEnv;
    env["CUSPLICE_LOG_FILE"] = file;
    Outcome run = Decode(true, env);
    EXPECT_EQ(run.result.err, "");
    EXPECT_EQ(ReadFile(file), kReport);
    unlink(file.c_str());
}

TEST(Why, SaysNothingWhereItIsNotAskedOrNothingWasDone) {
    std::map<std::string, std::string> env = kEnv;
    env.erase("CUSPLICE_WHY");
    env["CUSPLICE_EAGER"] = "attention_decode";
    EXPECT_EQ(Decode(true, env).result.err, "");
    env = kEnv;
    env["CUSPLICE_MODE"] = "off";
    EXPECT_EQ(Decode(true, env).result.err, "");
}

// Without a launcher each process says it in its own log, unless the report has it.
TEST(Why, RulesThatMatchedNothingAreSaidUnasked) {
    std::map<std::string, std::string> env = kEnv;
    env.erase("CUSPLICE_WHY");
    Outcome plain = Decode(false), run = Decode(true, env);
    EXPECT_SAME(kDecode, plain, run);
    std::string err = run.result.err, said;
    for (size_t at; (at = err.find("cusplice[")) != std::string::npos;) {
        size_t text = err.find("] ", at), end = err.find('\n', at);
        said += err.substr(text + 2, end - text - 1);
        err.erase(at, end + 1 - at);
    }
    EXPECT_EQ(err, plain.result.err);
    EXPECT_EQ(said, "warn rules: eager = atention* (CUSPLICE_EAGER) matched no kernel; the nearest "
                    "kernel is attention_combine\n"
                    "warn rules: eager = graph_of_nothing (CUSPLICE_EAGER) matched no kernel; the "
                    "nearest kernel is attention_combine\n");
    env["CUSPLICE_LOG"] = "error";
    EXPECT_EQ(Decode(true, env).result.err, plain.result.err);
    // These launches pass, and yet rules are asked about their kernels.
    Setting setting;
    setting.preload = true;
    setting.args = {"--steps", "10"};
    setting.env = {{"CUSPLICE_EAGER", "no_such_kernel"}};
    run = RunCase(CaseOf("ptds"), setting);
    EXPECT_NE(run.result.err.find("eager = no_such_kernel (CUSPLICE_EAGER) matched no kernel; the "
                                  "nearest kernel is chain\n"),
              std::string::npos)
        << run.result.err;
}

// The engine runs as ever, but that is no reason: what the user asked for is.
TEST(Why, ModeEagerIsTheReasonOfItsOwn) {
    std::map<std::string, std::string> env = kEnv;
    env["CUSPLICE_MODE"] = "eager";
    Outcome run = Decode(true, env);
    std::map<std::string, double> launches;
    for (int i = 0;; i++) {
        std::string key = "breaks_by_kernel." + std::to_string(i);
        if (!run.stats.Has(key + ".launches"))
            break;
        launches[run.stats.text[key + ".reason"]] += run.stats.Number(key + ".launches");
        EXPECT_EQ(run.stats.Number(key + ".runs"), 0) << key;
    }
    EXPECT_EQ(launches["rule"], 24);
    EXPECT_EQ(launches["eager_mode"], 324 - 24 - launches["first"]);
    EXPECT_EQ(launches.size(), 3u);
}

// Such a program gains nothing. It reads so, and why.
TEST(Why, PerThreadDefaultStreamsAreSaidToPass) {
    Setting setting;
    setting.preload = true;
    setting.args = {"--steps", "10"};
    setting.env = {{"CUSPLICE_WHY", "yes"}};
    Outcome run = RunCase(CaseOf("ptds"), setting);
    EXPECT_STATS(run);
    EXPECT_EQ(run.stats.text["breaks_by_kernel.0.reason"], "per_thread_stream");
    EXPECT_EQ(run.stats.Number("breaks_by_kernel.0.launches"), 3 * 10 * 12);
    EXPECT_EQ(run.stats.Number("issued.in_graphs"), 0);
    EXPECT_NE(run.result.err.find(
                  "  1. 360 + 0  launches on per-thread default streams pass as they are: no other "
                  "thread could issue what was deferred there\n"
                  "       to do: nothing is gained there, and nothing lost; for graphs, launch on "
                  "streams made by cuStreamCreate\n"),
              std::string::npos)
        << run.result.err;
}

// Whatever a program does, each op that went out by itself has a reason.
TEST(Why, EveryScenarioAddsUp) {
    for (const Case &c : Cases()) {
        if (!c.log_whole)
            continue;
        SCOPED_TRACE(c.Title());
        Setting setting;
        setting.preload = true;
        setting.args = {"--steps", "10"};
        Outcome run = RunCase(c, setting);
        if (!run.stats.valid)
            continue;
        double launches = run.stats.Number("breaks_beyond.launches");
        for (int i = 0; run.stats.Has("breaks_by_kernel." + std::to_string(i) + ".launches"); i++)
            launches += run.stats.Number("breaks_by_kernel." + std::to_string(i) + ".launches");
        EXPECT_EQ(launches, run.stats.Number("issued.eager"));
    }
}

} // namespace
} // namespace sim
