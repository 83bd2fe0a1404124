// Promise: cusplice whatif counts exactly what a real run with the same configuration counts, if
// sizes of graphs do not follow the host's pace. A recording describes itself.

#include "tests/sim/cases.h"
#include "tests/unit/whatif/program.h"

namespace sim {
namespace {

using Env = std::map<std::string, std::string>;

// Nothing that depends on time, and a driver that refuses no patch of memory: what it refuses is
// not in a trace.
const Env kFixed = {{"CUSPLICE_SEGMENT_FIRST", "16"},
                    {"CUSPLICE_SEGMENT_MAX", "16"},
                    {"CUSPLICE_HOLD_US", "1000000"},
                    {"CUSIM_GRAPH_RULES", "measured"},
                    {"CUSIM_DELAY_US", "0"}};

// So few that graphs are not yet made anew where the host has become faster. The turns that never
// synchronise are learned late. They are many, but under an emulator, which translates code and so
// becomes faster.
const char *Steps(const std::string &name) {
    if (name != "never_sync")
        return "7";
    return getenv("CUS_TEST_EMULATED") ? "12" : "300";
}

Outcome RunWith(const Case &c, Env env) {
    Setting setting;
    setting.preload = true;
    env["CUSPLICE_TRUST_DRIVER"] = "yes"; // when nothing ran is not recorded
    env.insert(kFixed.begin(), kFixed.end());
    setting.env = env;
    setting.args = {"--steps", Steps(c.name)};
    Outcome outcome = RunCase(c, setting);
    EXPECT_EQ(outcome.result.status, c.status) << outcome.Describe();
    EXPECT_STATS(outcome);
    return outcome;
}

Outcome Hostloop(const std::vector<std::string> &args, Env env) {
    Setting setting;
    setting.preload = true;
    env["CUSPLICE_TRUST_DRIVER"] = "yes";
    env["CUSIM_KERNELS"] = Runfile("harness/bench/libhostloop_kernels.so");
    env.insert(kFixed.begin(), kFixed.end());
    setting.env = env;
    std::vector<std::string> command = {Runfile("harness/bench/hostloop_driver"),
                                        "--launches",
                                        "60",
                                        "--steps",
                                        "6",
                                        "--warmup",
                                        "6"};
    command.insert(command.end(), args.begin(), args.end());
    Outcome outcome = RunProgram(command, setting);
    EXPECT_EQ(outcome.result.status, 0) << outcome.Describe();
    EXPECT_STATS(outcome);
    return outcome;
}

Json WhatIf(const std::string &trace, std::vector<std::string> words) {
    std::vector<std::string> command = {Runfile("tools/cusplice"), "whatif", "--format", "json"};
    command.insert(command.end(), words.begin(), words.end());
    command.push_back(trace);
    Result result = sim::Run({command, {}, 60});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return ParseJson(result.out);
}

bool IsCount(const std::string &path) {
    static const char *const names[] = {
        "ops.", "issued.", "eager_by.",  "graph_launches", "segments_formed", "built",
        "runs", "steps",   "signatures", "flushes.",       "patched_nodes",   "breaks."};
    for (const char *name : names)
        if (path.rfind(name, 0) == 0)
            return true;
    return false;
}

// Every count of the stats file, and no other.
std::string Difference(const Json &real, const Json &all, const std::string &part) {
    std::string text;
    size_t counts = 0;
    for (const auto &[path, value] : real.number) {
        if (!IsCount(path) || path.rfind("breaks_", 0) == 0)
            continue;
        counts++;
        if (!all.Has(part + path) || all.Number(part + path) != value)
            text += path + ": " + std::to_string((long)value) + " in the stats file, " +
                    std::to_string((long)all.Number(part + path)) + " by whatif\n";
    }
    for (const auto &[path, value] : all.number)
        if (path.rfind(part, 0) == 0 && IsCount(path.substr(part.size())) &&
            !real.Has(path.substr(part.size())))
            text +=
                path + ": not in the stats file, " + std::to_string((long)value) + " by whatif\n";
    return counts > 30 ? text : text + "no stats";
}

struct Question {
    const char *title;
    std::vector<std::string> words; // of whatif
    Env env;                        // of the real run
};

struct Program {
    const char *name, *eager; // a kernel of it
};

class WhatIfEqualsTheRun : public testing::TestWithParam<Program> {};

TEST_P(WhatIfEqualsTheRun, Exactly) {
    const Case &c = CaseOf(GetParam().name);
    const std::string eager = GetParam().eager;
    const Question questions[] = {
        {"Eager", {"--eager", eager}, {{"CUSPLICE_EAGER", eager}}},
        {"LargeSegments",
         {"--set", "segment_max=64", "--set", "segment_first=64"},
         {{"CUSPLICE_SEGMENT_MAX", "64"}, {"CUSPLICE_SEGMENT_FIRST", "64"}}},
        {"Mode", {"--mode", "eager"}, {{"CUSPLICE_MODE", "eager"}}},
        {"Warmup",
         {"--set", "warmup=4", "--set", "variants=1"},
         {{"CUSPLICE_WARMUP", "4"}, {"CUSPLICE_VARIANTS", "1"}}},
    };
    std::string path = NewPath();
    Outcome recorded = RunWith(c, {{"CUSPLICE_RECORD", path}});
    for (const Question &question : questions) {
        SCOPED_TRACE(question.title);
        Outcome real = RunWith(c, question.env);
        Json played = WhatIf(path, question.words);
        ASSERT_TRUE(played.valid);
        EXPECT_EQ(Difference(recorded.stats, played, "baseline."), "");
        EXPECT_EQ(Difference(real.stats, played, "whatif."), "");
        EXPECT_GT(played.Number("whatif.predicted.host_us_per_step"), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, WhatIfEqualsTheRun,
    testing::Values(Program{"decode_loop", "attention_decode"}, Program{"steady", "add_scalar"},
                    Program{"batch_sizes", "copy_words"}, Program{"growing_grid", "reduce_sum"},
                    Program{"diverge_branch", "iota"}, Program{"memsets", "chain"},
                    Program{"copies", "chain"}, Program{"never_sync", "add_scalar"},
                    Program{"eager_tenth", "saxpy_n"}, Program{"two_streams", "copy_words"},
                    Program{"capture_once", "chain"}, Program{"virtual_memory", "chain"},
                    Program{"module_reload", "add_scalar"},
                    Program{"memsets_2d", "api:cuMemsetD2D8Async"}),
    [](const auto &given) { return std::string(given.param.name); });

// Where a trace keeps no params, the pitch of a memset is not known; its size is.
TEST(WhatIf, TwoDimensionalMemsetsWithoutTheirParamsAreOps) {
    std::string path = NewPath(), bare = NewPath();
    RunWith(CaseOf("memsets_2d"), {{"CUSPLICE_RECORD", path}});
    Result trim =
        sim::Run({{Runfile("tools/cusplice"), "trim", "--bare", path, "-o", bare}, {}, 60});
    ASSERT_EQ(trim.status, 0) << trim.err;
    Json whole = WhatIf(path, {"--set", "warmup=4"}), played = WhatIf(bare, {"--set", "warmup=4"});
    double in_graphs = whole.Number("baseline.issued.in_graphs");
    EXPECT_GT(in_graphs, 0);
    // Kernels whose first launch has no params are in graphs a step later.
    EXPECT_GT(played.Number("baseline.issued.in_graphs"), 0.75 * in_graphs);
}

// Records of events, as ops of graphs: the same events in each step, other ones, and ones that the
// program looks at.
TEST(WhatIf, RecordsOfEventsEqualTheRun) {
    const std::vector<std::string> programs[] = {
        {"--record-every", "8"},
        {"--record-every", "5", "--record-timed"},
        {"--record-every", "3", "--record-events", "2"},
        {"--events"},
        {"--record-every", "4", "--streams", "3", "--run", "20"},
    };
    const Question questions[] = {
        {"Eager", {"--eager", "api:cuEventRecord"}, {{"CUSPLICE_EAGER", "api:cuEventRecord"}}},
        {"LargeSegments",
         {"--set", "segment_max=64", "--set", "segment_first=64"},
         {{"CUSPLICE_SEGMENT_MAX", "64"}, {"CUSPLICE_SEGMENT_FIRST", "64"}}},
        {"Mode", {"--mode", "eager"}, {{"CUSPLICE_MODE", "eager"}}},
    };
    for (const auto &args : programs) {
        SCOPED_TRACE(args[0] + (args.size() > 1 ? " " + args[1] : ""));
        std::string path = NewPath(), none = NewPath();
        Outcome recorded = Hostloop(args, {{"CUSPLICE_RECORD", path}});
        EXPECT_GT(recorded.stats.Number("ops.records"), 0);
        // A recording in which nothing was deferred says the same of what would be.
        Hostloop(args, {{"CUSPLICE_RECORD", none}, {"CUSPLICE_MODE", "eager"}});
        EXPECT_EQ(Difference(recorded.stats, WhatIf(none, {"--mode", "piecewise"}), "whatif."), "");
        for (const Question &question : questions) {
            SCOPED_TRACE(question.title);
            Outcome real = Hostloop(args, question.env);
            Json played = WhatIf(path, question.words);
            ASSERT_TRUE(played.valid);
            EXPECT_EQ(Difference(recorded.stats, played, "baseline."), "");
            EXPECT_EQ(Difference(real.stats, played, "whatif."), "");
        }
    }
}

// A wait of another stream, or the host, looks at an event: its record is issued there, also when
// it was issued at once in the recording.
TEST(WhatIf, LooksAtEventsEqualTheRun) {
    for (const char *name :
         {"two_streams", "streams_interleaved", "legacy_barriers", "event_query"}) {
        SCOPED_TRACE(name);
        std::string path = NewPath(), none = NewPath();
        Outcome recorded = RunWith(CaseOf(name), {{"CUSPLICE_RECORD", path}});
        RunWith(CaseOf(name), {{"CUSPLICE_RECORD", none}, {"CUSPLICE_MODE", "eager"}});
        EXPECT_EQ(Difference(recorded.stats, WhatIf(path, {}), "baseline."), "");
        EXPECT_EQ(Difference(recorded.stats, WhatIf(none, {"--mode", "piecewise"}), "whatif."), "");
    }
}

// Waits for events, as ops of graphs with branches; also where the recorded program's own calls
// made them.
TEST(WhatIf, ForksEqualTheRun) {
    const Question questions[] = {
        {"Eager",
         {"--eager", "api:cuStreamWaitEvent"},
         {{"CUSPLICE_EAGER", "api:cuStreamWaitEvent"}}},
        {"LargeSegments",
         {"--set", "segment_max=64", "--set", "segment_first=64"},
         {{"CUSPLICE_SEGMENT_MAX", "64"}, {"CUSPLICE_SEGMENT_FIRST", "64"}}},
    };
    for (const char *name :
         {"fork_layers", "fork_events", "fork_wait_stream", "fork_two", "fork_nested", "fork_open",
          "fork_late", "fork_old", "fork_moves", "fork_blocking", "fork_diverge", "fork_again",
          "fork_legacy", "fork_trailing"}) {
        SCOPED_TRACE(name);
        std::string path = NewPath(), none = NewPath();
        Outcome recorded = RunWith(CaseOf(name), {{"CUSPLICE_RECORD", path}});
        EXPECT_GT(recorded.stats.Number("ops.waits"), 0);
        RunWith(CaseOf(name), {{"CUSPLICE_RECORD", none}, {"CUSPLICE_MODE", "eager"}});
        EXPECT_EQ(Difference(recorded.stats, WhatIf(none, {"--mode", "piecewise"}), "whatif."), "");
        for (const Question &question : questions) {
            SCOPED_TRACE(question.title);
            Outcome real = RunWith(CaseOf(name), question.env);
            Json played = WhatIf(path, question.words);
            EXPECT_EQ(Difference(recorded.stats, played, "baseline."), "");
            EXPECT_EQ(Difference(real.stats, played, "whatif."), "");
        }
    }
}

TEST(WhatIf, TakesTheRecordedRulesAndNotThoseOfHereAndNow) {
    std::string path = NewPath();
    Outcome recorded =
        RunWith(CaseOf("steady"),
                {{"CUSPLICE_RECORD", path}, {"CUSPLICE_EAGER", "chain"}, {"CUSPLICE_WARMUP", "3"}});
    Result result = sim::Run({{Runfile("tools/cusplice"), "whatif", "--format", "json", path},
                              {{"CUSPLICE_EAGER", "add_scalar"}, {"CUSPLICE_MODE", "eager"}},
                              60});
    EXPECT_EQ(Difference(recorded.stats, ParseJson(result.out), "baseline."), "");
    EXPECT_GT(recorded.stats.Number("eager_by.rule"), 0);
    // A configuration brings rules of its own.
    Outcome plain = RunWith(CaseOf("steady"), {{"CUSPLICE_WARMUP", "3"}});
    EXPECT_EQ(Difference(plain.stats, WhatIf(path, {"-c", "/dev/null"}), "whatif."), "");
}

TEST(WhatIf, SweepTriesEachKernelAndRanksThem) {
    std::string path = NewPath();
    RunWith(CaseOf("batch_sizes"), {{"CUSPLICE_RECORD", path}});
    Json played = WhatIf(path, {"--sweep"});
    EXPECT_EQ(played.Number("kernels"), 4);
    double last = 0;
    for (int i = 0; i < 4; i++) {
        std::string at = "sweep." + std::to_string(i) + ".";
        Json alone = WhatIf(path, {"--eager", played.text[at + "base_name"]});
        EXPECT_EQ(alone.Number("whatif.graph_launches"),
                  played.Number(at + "counts.graph_launches"));
        EXPECT_GT(alone.Number("whatif.eager_by.rule"), 0);
        double host = played.Number(at + "counts.predicted.host_us_per_step");
        EXPECT_GE(host, last);
        last = host;
    }
}

// So many steps of 40 launches and a wait, of which the times are known, as nothing is recorded.
void MakeLoop(whatif::Program *program, int steps) {
    uint32_t stream = program->Stream(), kernel = program->Kernel("k");
    for (int step = 0; step <= steps; step++) {
        for (int i = 0; i < 40 && step; i++)
            program->Launch(kernel, stream, 0x100)->host_ns = 900;
        program->Call(CST_CALL_FLUSH, stream, 0, "cuStreamSynchronize", CST_SCOPE_T)->host_ns = 900;
        program->Call(CST_CALL_STEP_END, stream)->host_ns = 900;
        program->Call(CST_CALL_WAITED, stream)->host_ns = 900;
    }
    program->Close();
}

// The engine looks on for `warmup` steps and builds in the next one; the gain is behind that.
TEST(WhatIf, TheFirstStepsAreComparedWithThoseWithoutTheLibrary) {
    whatif::Program program;
    MakeLoop(&program, 30);
    Json off = WhatIf(program.Path(), {"--mode", "off"});
    double plain = off.Number("whatif.predicted.first_ten_us");
    EXPECT_NEAR(plain, 10 * off.Number("whatif.predicted.step_us"), 0.1);
    EXPECT_DOUBLE_EQ(off.Number("whatif.predicted.first_ten_of_plain"), 100);
    EXPECT_EQ(off.text["whatif.predicted.gain_at_step"], "null");
    EXPECT_NEAR(off.Number("recorded.first_ten_us"), 10 * off.Number("recorded.step_us"), 0.1);
    double last = 0;
    for (int warmup : {2, 3, 6, 8}) {
        Json played = WhatIf(program.Path(), {"--set", "warmup=" + std::to_string(warmup)});
        for (const char *part : {"baseline.predicted.", "whatif.predicted."}) {
            std::string at = part;
            EXPECT_NEAR(played.Number(at + "first_ten_of_plain"),
                        100 * played.Number(at + "first_ten_us") / plain, 1e-3);
            EXPECT_LT(played.Number(at + "step_us"), 0.7 * off.Number("whatif.predicted.step_us"));
        }
        EXPECT_EQ(played.Number("baseline.predicted.gain_at_step"), 2 + 2) << "the setting is 2";
        EXPECT_EQ(played.Number("whatif.predicted.gain_at_step"), warmup + 2);
        EXPECT_GT(played.Number("whatif.predicted.first_ten_us"), last) << "fewer fast ones";
        last = played.Number("whatif.predicted.first_ten_us");
    }
    // In a sweep as well.
    Json swept = WhatIf(program.Path(), {"--sweep"});
    EXPECT_NEAR(swept.Number("sweep.0.counts.predicted.first_ten_of_plain"),
                100 * swept.Number("sweep.0.counts.predicted.first_ten_us") / plain, 1e-3);
}

TEST(WhatIf, TheFirstStepsInEachForm) {
    whatif::Program program, few, none;
    MakeLoop(&program, 30);
    MakeLoop(&few, 7);
    MakeLoop(&none, 0);
    auto show = [](const whatif::Program &of, const std::string &form) {
        Result result = sim::Run({{Runfile("tools/cusplice"), "whatif", "--mode", "off", "--wide",
                                   "--format=" + form, of.Path()},
                                  {},
                                  60});
        EXPECT_EQ(result.status, 0) << result.err;
        return result.out;
    };
    auto has = [](const std::string &text, const std::string &part) {
        return text.find(part) != std::string::npos;
    };
    std::string csv = show(program, "csv"), md = show(program, "md"), said = show(program, "table");
    EXPECT_TRUE(has(csv, "\npredicted.gain_at_step,,4,\n")) << csv;
    EXPECT_TRUE(has(md, "\n| predicted.gain_at_step | - | 4 | - |\n")) << md;
    EXPECT_TRUE(has(md, " | 100.0 |\n| predicted.gain_at_step")) << md;
    for (const std::string &text : {csv, md, said})
        EXPECT_TRUE(has(text, "predicted.first_ten_us") &&
                    has(text, "predicted.first_ten_of_plain") && !has(text, "first_ten_us is of"))
            << text;
    EXPECT_TRUE(has(show(few, "table"), "note: first_ten_us is of 7 steps: "))
        << show(few, "table");
    EXPECT_TRUE(has(show(none, "csv"), "predicted.first_ten_us,,,\npredicted.first_ten_of_plain,,,"
                                       "\npredicted.gain_at_step,,,\n"))
        << show(none, "csv");
    EXPECT_FALSE(has(show(none, "json"), "first_ten")) << show(none, "json");
}

TEST(WhatIf, SaysWhatIsWrong) {
    std::string path = NewPath();
    RunWith(CaseOf("steady"), {{"CUSPLICE_RECORD", path}});
    struct {
        std::vector<std::string> words;
        int status;
        std::string says;
    } wrong[] = {
        {{"--eager", "add_scaler", path},
         1,
         "--eager add_scaler: no kernel of the trace has that name; the nearest is add_scalar"},
        {{"--eager", "api:cuMemsetD8Async", path},
         1,
         "no memset, copy or record of the trace has that name; the nearest is cuMemset"},
        {{"--eager", "re:(", path}, 1, "re:("},
        {{"--set", "warmop=1", path}, 2, "warmup"},
        {{"--mode", "ful", path}, 2, "full"},
        {{"--format", "xml", path},
         2,
         "--format xml: no such value: it may be table, csv, json or md"},
        {{"--eagre", "x", path}, 2, "--eager"},
        {{path, path}, 2, "one trace at a time"},
        {{}, 2, "a trace is missing"},
        {{"/nonexistent.cst"}, 1, "/nonexistent.cst"},
        {{"--cost", "/nonexistent", path}, 1, "--cost /nonexistent: No such file"},
        {{"-c", "/nonexistent", path}, 1, "/nonexistent"},
    };
    for (auto &it : wrong) {
        std::vector<std::string> command = {Runfile("tools/cusplice"), "whatif"};
        command.insert(command.end(), it.words.begin(), it.words.end());
        Result result = sim::Run({command, {}, 60});
        EXPECT_EQ(result.status, it.status) << it.says;
        EXPECT_EQ(result.out, "") << it.says;
        EXPECT_NE(result.err.find(it.says), std::string::npos) << result.err;
    }
}

TEST(WhatIf, EachFormHasTheSameNumbers) {
    std::string path = NewPath();
    RunWith(CaseOf("steady"), {{"CUSPLICE_RECORD", path}});
    std::string n =
        std::to_string((long)WhatIf(path, {"--set", "warmup=3"}).Number("whatif.issued.in_graphs"));
    for (const char *form : {"table", "csv", "md"}) {
        Result result = sim::Run({{Runfile("tools/cusplice"), "whatif", "--set", "warmup=3",
                                   std::string("--format=") + form, path},
                                  {},
                                  60});
        EXPECT_EQ(result.status, 0) << result.err;
        size_t row = result.out.find("issued.in_graphs");
        ASSERT_NE(row, std::string::npos) << result.out;
        std::string line = result.out.substr(row, result.out.find('\n', row) - row);
        EXPECT_NE(line.find(n), std::string::npos) << line;
    }
}

} // namespace
} // namespace sim
