// Promise: with cusplice replay every strategy ends with the recorded memory; differences are
// reported, and mistakes before a player starts. Runs with the real library on the simulator, or
// with the test's own player if numbers must be known.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/launcher/launcher.h"
#include "tests/player/made.h"
#include "tests/sim/json.h"

namespace {

Result Replay(Strings arguments, Environment more = {}) {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice", "replay"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    more.emplace("CUSIM_LIB", "harness/sim/lib");
    more.emplace("CUSIM_DELAY_US", "0");
    return RunProgram(argv, more);
}

sim::Json Table(const Result &r) {
    sim::Json json = sim::ParseJson(r.out);
    EXPECT_TRUE(json.valid) << r.out << r.err;
    return json;
}

// The row of a strategy: "rows.2."
std::string Row(const sim::Json &json, const std::string &strategy) {
    for (const auto &[path, text] : json.text)
        if (text == strategy && path.size() > 9 &&
            path.compare(path.size() - 9, 9, ".strategy") == 0)
            return path.substr(0, path.size() - 8);
    ADD_FAILURE() << "no row " << strategy;
    return "";
}

double Share(const Result &r, const std::string &strategy) {
    sim::Json json = Table(r);
    return json.Number(Row(json, strategy) + "in_graphs");
}

TEST(ReplayVerb, AllStrategiesEndAsRecorded) {
    for (bool packed : {false, true}) {
        std::string trace = MakeSteps("all.cst", 6, packed);
        Result r = Replay({"--repeat", "2", "--pace=none", "--format", "json", trace});
        ASSERT_EQ(r.Exit(), 0) << r.out << r.err;
        EXPECT_EQ(r.err, "");
        sim::Json json = Table(r);
        EXPECT_EQ(json.Number("about.steps"), 6);
        EXPECT_EQ(json.Number("about.sums"), 3);
        int n = 0;
        for (const char *strategy : {"eager", "piecewise", "full", "as-recorded"}) {
            std::string row = Row(json, strategy);
            EXPECT_EQ(row, "rows." + std::to_string(n++) + ".");
            EXPECT_EQ(json.Number(row + "wrong_sums"), 0);
            EXPECT_GE(json.Number(row + "passes"), 2);
            EXPECT_GT(json.Number(row + "step_ns"), 0);
            EXPECT_LE(json.Number(row + "p10_ns"), json.Number(row + "step_ns"));
            EXPECT_LE(json.Number(row + "step_ns"), json.Number(row + "p90_ns"));
            if (std::string(strategy) == "eager")
                EXPECT_EQ(json.Number(row + "in_graphs"), 0);
            else
                EXPECT_GE(json.Number(row + "in_graphs"), 30) << strategy;
        }
        EXPECT_EQ(json.Number("rows.0.of_eager"), 100);
    }
}

TEST(ReplayVerb, RulesAndSettingsHold) {
    std::string trace = MakeSteps("rules.cst", 6);
    Strings args = {"--repeat=1", "--strategy=piecewise", "--strategy=as-recorded", "--format=json",
                    trace};
    double all = Share(Replay(args), "piecewise");
    args.insert(args.begin(), {"--eager", "chain"});
    Result r = Replay(args);
    EXPECT_LT(Share(r, "piecewise"), all / 2) << r.out;
    EXPECT_LT(Share(r, "as-recorded"), all / 2) << r.out;
    EXPECT_EQ(r.Exit(), 0) << r.err;
    args[0] = "--set";
    args[1] = "graph_mb=0";
    EXPECT_EQ(Share(Replay(args), "piecewise"), 0);
    EXPECT_EQ(Share(Replay(args), "as-recorded"), 0);
}

// As with the other verbs: -c, and --mode, which is a strategy; -o.
TEST(ReplayVerb, OptionsAreThoseOfOtherVerbs) {
    std::string trace = MakeSteps("options.cst", 4), out = Fresh("options.json");
    Strings args = {"--repeat=1",
                    "--mode",
                    "piecewise",
                    "--strategy=as-recorded",
                    "--format=json",
                    "-c",
                    Write("none.conf", "[rules]\neager = *\n"),
                    "-o",
                    out,
                    trace};
    Result r = Replay(args);
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out, "");
    r.out = ReadFile(out);
    EXPECT_EQ(Share(r, "piecewise"), 0) << r.out;
    EXPECT_GE(Share(r, "as-recorded"), 30) << "the rules of here and now are not those of then";
    r = Replay({"--mode", "verify", trace});
    EXPECT_EQ(r.Exit(), 2);
    EXPECT_TRUE(Has(r.err, "--mode verify: no such value: it may be eager, piecewise")) << r.err;
}

// What stands in the environment does not reach what is played as recorded, and no kill switch or
// mode of it reaches the others.
TEST(ReplayVerb, TheEnvironmentDoesNotSpoilStrategies) {
    std::string trace = MakeSteps("env.cst", 4);
    Strings args = {"--repeat=1", "--strategy=piecewise", "--strategy=as-recorded", "--format=json",
                    trace};
    Result r = Replay(args, {{"CUSPLICE", "off"}, {"CUSPLICE_MODE", "observe"}});
    EXPECT_GE(Share(r, "piecewise"), 30) << r.err;
    EXPECT_GE(Share(r, "as-recorded"), 30);
    r = Replay(args, {{"CUSPLICE_EAGER", "*"}});
    EXPECT_LT(Share(r, "piecewise"), 15);
    EXPECT_GE(Share(r, "as-recorded"), 30);
    r = Replay({"--strategy=full", trace}, {{"CUSPLICE_HOLD_US", "1"}});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "CUSPLICE_HOLD_US")) << r.err;
    EXPECT_TRUE(Has(r.err, "cusplice: full: the configuration to play by has a problem\n"))
        << r.err;
    EXPECT_EQ(r.out, "");
}

// Within a `cusplice run`. A cache that the user names is a setting as others.
TEST(ReplayVerb, ACacheThatARunOffersIsNotTaken) {
    std::string trace = MakeSteps("offered.cst", 4), offered = Folder() + "/offered",
                named = Folder() + "/named";
    Strings args = {"--repeat=1", "--strategy=piecewise", trace};
    struct stat info;
    Result r = Replay(args, {{"CUSPLICE_CACHE_DIR", ""}, {"CUSPLICE_CACHE_OFFERED", offered}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_NE(stat(offered.c_str(), &info), 0);
    r = Replay(args, {{"CUSPLICE_CACHE_DIR", named}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(stat(named.c_str(), &info), 0);
}

TEST(ReplayVerb, AWrongEndIsToldAndIsAFailure) {
    std::string trace = MakeSteps("wrong.cst", 2, false, true);
    Result r = Replay({"--strategy", "eager", "--strategy", "full", "--repeat", "1", trace});
    EXPECT_EQ(r.Exit(), 1);
    char says[200];
    for (const char *strategy : {"eager", "full"}) {
        snprintf(says, sizeof says,
                 "cusplice: %s: 1 of 3 sums of the memory at the end differ (first pass): 0x%lx "
                 "(8192 bytes)\n",
                 strategy, Base() + 3 * kGranule - 4096);
        EXPECT_TRUE(Has(r.err, says)) << r.err;
    }
    EXPECT_TRUE(Has(r.out, "\nfull ")) << r.out; // the figures are shown all the same
}

TEST(ReplayVerb, FormatsAreThoseOfReports) {
    std::string trace = MakeSteps("formats.cst", 1);
    Strings args = {"--strategy=eager", "--repeat=1", "--format=csv", trace};
    EXPECT_EQ(Replay(args).out.compare(
                  0, 60, "strategy,step_ns,noise_ns,p10_ns,p90_ns,of_eager,in_graphs,w"),
              0);
    args[2] = "--format=md";
    EXPECT_TRUE(Has(Replay(args).out, "| eager | "));
    args[2] = "--format=table";
    EXPECT_TRUE(Has(Replay(args).out, "# gpu: Simulated H200\n"));
}

TEST(ReplayVerb, WhatCannotBeReplayedIsNamedOnce) {
    std::string path = Fresh("obstacle.cst");
    Made m(path);
    m.Module();
    m.Obstacle("cuGraphLaunch", "graphs of the program are not replayed");
    m.Obstacle("cuMemAllocAsync", "memory of a pool");
    m.Chain(0, m.Alloc(0, 64), 1, 1, 4);
    ASSERT_EQ(m.Close(), 0);
    Result r = Replay({path});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err, "cusplice: " + path +
                         ": cannot be replayed:\n"
                         "cusplice:   the program called cuGraphLaunch: graphs of the program are "
                         "not replayed\n"
                         "cusplice:   the program called cuMemAllocAsync: memory of a pool\n");
    // Without a driver too, and before that is said.
    std::string folder = Folder() + "/no_driver";
    mkdir(folder.c_str(), 0755);
    Write("no_driver/libcuda.so.1", "");
    const Environment none = {{"LD_LIBRARY_PATH", folder}};
    Result without = RunProgram({"tools/cusplice", "replay", path}, none);
    EXPECT_EQ(without.Exit(), 1);
    EXPECT_EQ(without.err, r.err);
    without = RunProgram({"tools/cusplice", "replay", MakeSteps("driver.cst", 1)}, none);
    EXPECT_TRUE(Has(without.err, "there is no CUDA driver")) << without.err;
    r = Replay({"tests/golden/trace-v1.cst"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "record it with cusplice record --replayable")) << r.err;
}

TEST(ReplayVerb, BadWordsAreRefused) {
    std::string trace = MakeSteps("words.cst", 1), empty = Folder() + "/none.cst";
    WriteAll(empty, "no trace");
    const struct {
        int status;
        Strings arguments;
        std::string says;
    } refusals[] = {
        {2, {}, "a trace is missing: cusplice replay"},
        {2, {trace, trace}, "one trace at a time"},
        {2, {"--stratgy", "full", trace}, "unknown option --stratgy; the nearest is --strategy"},
        {2, {"--strategy", "fulll", trace}, "--strategy fulll: no such value; the nearest is full"},
        {2, {"--pace", "slow", trace}, "--pace slow: no such value"},
        {2,
         {"--format", "xml", trace},
         "--format xml: no such value: it may be table, csv, json or md"},
        {2, {"--repeat", "0", trace}, "--repeat 0: a number from 1 to 10000 is expected"},
        {2, {"--set", "warmupp=3", trace}, "warmup"},
        {2, {"--set", "mode=full", trace}, "the mode is what --strategy says"},
        {2, {"--set", "record=x", trace}, "a replay is not recorded"},
        {2, {"--eager", "a;b", trace}, "one pattern at a time"},
        {2, {trace, "--eager"}, "--eager: a value is missing"},
        {1,
         {"--eager", "chian", trace},
         "--eager chian: no kernel of the trace has that name; the "
         "nearest is chain"},
        {1, {"/nowhere/x.cst"}, "/nowhere/x.cst: No such file"},
        {1, {empty}, "not a trace of cusplice"},
    };
    for (const auto &refusal : refusals) {
        Result r = Replay(refusal.arguments);
        EXPECT_EQ(r.Exit(), refusal.status) << refusal.says << r.err;
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, refusal.says)) << "wanted: " << refusal.says << "\n" << r.err;
    }
}

TEST(ReplayVerb, ATraceThatDoesNotSayHowItWasRecorded) {
    std::string path = Fresh("bare.cst");
    Made m(path);
    m.s.Facts("{}");
    m.Module();
    m.Chain(0, m.Alloc(0, 64), 1, 1, 4);
    ASSERT_EQ(m.Close(), 0);
    Result r = Replay({"--repeat=1", "--format=csv", path});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, "as-recorded is left out")) << r.err;
    EXPECT_FALSE(Has(r.out, "as-recorded")) << r.out;
    r = Replay({"--strategy=as-recorded", path});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "it cannot be played as recorded")) << r.err;
}

// ---- trim and info ----

// Steps as MakeSteps has them, with two ops of two steps for the other verbs.
std::string WithOps(const std::string &name) {
    std::string path = Fresh(name);
    Made m(path);
    m.Module();
    uint32_t lane = m.Lane(CST_STREAM_LEGACY), stream = m.s.Stream(CST_STREAM_LEGACY, 0);
    uint64_t a = m.Alloc(0, 1 << 20);
    m.Contents(a + 1024, std::vector<uint32_t>(100000, 7));
    for (int step = 0; step < 2; step++) {
        m.Upload(lane, a, {1, 2, 3, 4});
        m.Chain(lane, a, 3, 1, 4);
        m.s.Eager(stream, 1, "rule", "rule");
        m.Sync(lane);
        m.s.Sync(stream);
    }
    m.Check(a, 1 << 20);
    EXPECT_EQ(m.Close(), 0);
    return path;
}

TEST(TrimOfReplayable, AllOfItIsPackedAndPlaysAsBefore) {
    std::string path = WithOps("whole.cst"), out = Fresh("whole.trim.cst");
    Result r = Cusplice({"trim", "--pack", "-o", out, path});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_FALSE(Has(r.out, "cannot be replayed")) << r.out;
    struct stat before, after;
    ASSERT_EQ(stat(path.c_str(), &before) | stat(out.c_str(), &after), 0);
    EXPECT_LT(after.st_size, before.st_size / 50);
    for (const std::string &trace : {path, out}) {
        r = Replay({"--strategy=full", "--repeat=1", "--format=json", trace});
        EXPECT_EQ(r.Exit(), 0) << r.err;
        sim::Json json = Table(r);
        EXPECT_EQ(json.Number("about.sums"), 1);
        EXPECT_EQ(json.Number("about.calls"), 6);
        EXPECT_EQ(json.Number("about.kernels"), 2);
        EXPECT_EQ(json.Number("about.steps"), 2);
    }
    EXPECT_TRUE(Has(Cusplice({"info", out}).out, "can be replayed  6 calls, with 5 blocks"));
}

TEST(TrimOfReplayable, APartSaysThatItIsNone) {
    std::string path = WithOps("part.cst"), out = Fresh("part.trim.cst");
    Result r = Cusplice({"trim", "--steps", "1", "-o", out, path});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "\nit cannot be replayed: what a replay needs was left out")) << r.out;
    sim::Json json = sim::ParseJson(Cusplice({"info", "--json", out}).out);
    EXPECT_EQ(json.Number("ops"), 1);
    EXPECT_EQ(json.Number("replay_calls"), 0);
    EXPECT_EQ(json.text["facts.trimmed.replay"], "left out");
    EXPECT_EQ(Replay({out}).Exit(), 1);
    // Nothing is said of a trace that could not be replayed before.
    unlink(out.c_str());
    r = Cusplice({"trim", "--steps", "1", "-o", out, "tests/golden/trace-v1.cst"});
    EXPECT_FALSE(Has(r.out, "replayed")) << r.out;
    EXPECT_TRUE(Has(Cusplice({"info", out}).out, "can be replayed  no (cusplice record --repl"));
}

TEST(TrimOfReplayable, BrokenDataDoesNotBecomeWhole) {
    std::string path = WithOps("broken.cst"), out = Fresh("broken.trim.cst"),
                bytes = ReadFile(path);
    bytes[bytes.find(std::string("\7\0\0\0\7\0\0\0", 8)) + 4000] ^= 1;
    WriteAll(path, bytes);
    Result r = Cusplice({"trim", "--pack", "-o", out, path});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.err, "cusplice: " + path +
                         ": corrupt: a data block (memory, 400000 bytes) does not match its "
                         "checksum\n");
    EXPECT_NE(access(out.c_str(), F_OK), 0);
    EXPECT_NE(access((out + ".partial").c_str(), F_OK), 0);
}

// ---- a player that is a script ----

const char kReady[] = "'{\"ready\":true,\"gpu\":\"G\",\"ops\":9,\"launches\":4,\"steps\":2,"
                      "\"memory_bytes\":7,\"checks\":1,\"interface\":1,\"warnings\":[]}'";

Result ByScript(const std::string &script, Strings arguments, std::string trace = "") {
    std::string folder = CuspliceProgram();
    folder = folder.substr(0, folder.rfind("/bin/")) + "/lib/cusplice";
    mkdir(folder.c_str(), 0755);
    std::string path = folder + "/player";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    chmod(path.c_str(), 0755);
    arguments.insert(arguments.begin(), "replay");
    arguments.push_back(trace.empty() ? MakeSteps("script.cst", 1) : trace);
    return Cusplice(arguments);
}

// Answers `run N` with times of 200, 400, 600 ... for each pass, and steps of half of that; `curve`
// with steps of 7.
std::string Answers(const std::string &check, const std::string &in_graphs = "3") {
    return std::string("while read -r word n; do case $word in\n") + "check | sums) echo '" +
           check +
           "' ;;\n"
           "run) i=0; list=; steps=; while [ $i -lt $n ]; do i=$((i + 1)); list=$list,$((i * "
           "200)); "
           "steps=$steps,$((i * 100)); done\n"
           "echo '{\"ns\":['${list#,}'],\"step_ns\":['${steps#,}'],\"steps\":2,\"in_graphs\":" +
           in_graphs +
           ",\"issued\":4}' ;;\n"
           "curve) echo '{\"ns\":[7,7,7]}' ;;\n"
           "esac; done\n";
}

// A player that says that it was started.
TEST(ReplayRefuses, WhatIsNotWholeBeforeAPlayerIsStarted) {
    std::string mark = Folder() + "/started";
    auto refused = [&](const std::string &trace) {
        Result r = ByScript("touch " + mark + "\nexit 7\n", {}, trace);
        EXPECT_EQ(r.Exit(), 1);
        EXPECT_NE(access(mark.c_str(), F_OK), 0) << r.err;
        EXPECT_TRUE(Has(r.err, trace + ": cannot be replayed:\n")) << r.err;
        return r.err;
    };
    for (bool packed : {false, true}) {
        std::string path = MakeSteps("whole.cst", 2, packed), bytes = ReadFile(path);
        WriteAll(path, bytes.substr(0, bytes.size() - sizeof(cst_block)));
        EXPECT_TRUE(Has(refused(path), "  the recording did not end in good order"));
        cst_block block;
        std::string changed = bytes;
        for (size_t at = sizeof(cst_file); at + sizeof block <= bytes.size();
             at += sizeof block + (block.bytes + 7) / 8 * 8) {
            memcpy(&block, &bytes[at], sizeof block);
            if (block.type == CST_BLOCK_DATA)
                changed[at + offsetof(cst_block, check)] ^= 1;
        }
        WriteAll(path, changed);
        EXPECT_TRUE(Has(refused(path), "corrupt: a data block ("));
    }
    std::string path = Fresh("gap.cst");
    Made m(path);
    uint32_t lane = m.Lane(CST_STREAM_CREATED);
    m.Memset(lane, m.Alloc(0, 4096), 4, 7, 2);
    m.s.Lost(3, 1);
    m.Data(CST_DATA_INPUT, 90, 0, "abcd");
    m.Data(CST_DATA_INPUT, 90, 8, "efgh");
    ASSERT_EQ(m.Close(), 0);
    std::string why = refused(path);
    EXPECT_TRUE(Has(why, "  3 records were lost when it was recorded")) << why;
    EXPECT_TRUE(Has(why, "  corrupt: the blocks of input 90 overlap, or something is")) << why;
}

TEST(ReplayPace, IsThePlayers) {
    const std::vector<std::string> paces = {"recorded", "fastest", "none"};
    for (const std::string &pace : paces) {
        Result r = ByScript("echo '{\"ready\":false,\"obstacles\":[\"'\"$1 $2\"'.\"]}'; exit 3",
                            {"--strategy=eager", "--pace", pace});
        EXPECT_EQ(r.Exit(), 1);
        EXPECT_TRUE(Has(r.err, "--pace " + pace + ".")) << r.err;
    }
}

TEST(ReplayFigures, AreThoseOfThePasses) {
    Result r = ByScript(std::string("echo ") + kReady + "\n" +
                            Answers("{\"checks\":1,\"wrong\":0,\"where\":[]}"),
                        {"--strategy=eager", "--strategy=full", "--repeat=1", "--format=csv"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    // 20 passes: 100, 200 ... 2000 ns a step.
    EXPECT_EQ(r.out, "strategy,step_ns,noise_ns,p10_ns,p90_ns,of_eager,in_graphs,wrong_sums,passes,"
                     "first_ten_of_eager,gain_at_step\n"
                     "eager,1050,500,290,1810,100,75,0,20,100,\n"
                     "full,1050,500,290,1810,100,75,0,20,100,\n");
}

// The driver alone has steps of 1000, and preloaded they are 500 in the end: nine tenths of that
// are there at 550, in the fifth. First ten: 12000 and 9600. What is behind them does not count.
TEST(ReplayFigures, TheFirstStepsAreComparedWithThePlainDriver) {
    const std::string preloaded = "4000,1200,800,560,540,500,500,500,500,500,7000,500,500",
                      plain = "3000,1000,1000,1000,1000,1000,1000,1000,1000,1000,9000,1000,1000";
    const std::string script =
        std::string("echo ") + kReady + "\nstep=1000 curve=" + plain +
        "\n[ -z \"$CUSPLICE_MODE\" ] || { step=500 curve=" + preloaded +
        "; }\n"
        "while read -r word n; do case $word in check | sums) echo '{\"checks\":1,\"wrong\":0}' "
        ";;\n"
        "run) list=$(i=0; while [ $i -lt $n ]; do i=$((i + 1)); printf ,$step; done)\n"
        "echo '{\"ns\":['${list#,}'],\"step_ns\":['${list#,}'],\"steps\":2}' ;;\n"
        "curve) echo '{\"ns\":['$curve']}' ;; esac; done\n";
    const std::string eager = "\neager,1000,0,1000,1000,100,0,0,20,100,\n",
                      full = "\nfull,500,0,500,500,50,0,0,20,80,5\n";
    for (const char *order : {"eager,full", "full,eager"}) {
        bool first = *order == 'e';
        Result r = ByScript(script, {first ? "--strategy=eager" : "--strategy=full",
                                     first ? "--strategy=full" : "--strategy=eager", "--repeat=1",
                                     "--format=csv"});
        ASSERT_EQ(r.Exit(), 0) << r.err;
        EXPECT_TRUE(Has(r.out, eager) && Has(r.out, full)) << r.out;
    }
    Result r =
        ByScript(script, {"--strategy=eager", "--strategy=full", "--repeat=1", "--format=json"});
    EXPECT_TRUE(Has(r.out, "\"first_ten_of_eager\": 100, \"gain_at_step\": null}")) << r.out;
    EXPECT_TRUE(Has(r.out, "\"first_ten_of_eager\": 80, \"gain_at_step\": 5}")) << r.out;
    r = ByScript(script, {"--strategy=eager", "--strategy=full", "--repeat=1", "--format=md"});
    EXPECT_TRUE(Has(r.out, " | 100.0 % |  |\n") && Has(r.out, " | 80.0 % | 5 |\n")) << r.out;
    // Alone it is compared with nothing.
    r = ByScript(script, {"--strategy=full", "--repeat=1", "--format=csv"});
    EXPECT_TRUE(Has(r.out, "\nfull,500,0,500,500,,0,0,20,,\n")) << r.out;
    r = ByScript(script, {"--strategy=full", "--repeat=1", "--format=json"});
    EXPECT_TRUE(Has(r.out, "\"of_eager\": null,") && Has(r.out, "\"first_ten_of_eager\": null,"))
        << r.out;
    r = ByScript(script, {"--strategy=full", "--repeat=1"});
    EXPECT_TRUE(Has(r.out, "\nfull ") && !Has(r.out, "of_eager") && !Has(r.out, "gain_at"))
        << r.out;
}

TEST(ReplayFigures, ACurveThatMakesNoSenseIsAFailure) {
    std::string many = "1";
    for (int i = 0; i < 256; i++)
        many += ",1";
    for (const std::string &curve : {std::string(), many}) {
        Result r = ByScript(std::string("echo ") + kReady +
                                "\nwhile read -r word n; do case $word in curve) echo "
                                "'{\"ns\":[" +
                                curve +
                                "]}' ;; run) list=$(yes ,5 | head -$n | tr -d '\\n')\n"
                                "echo '{\"ns\":['${list#,}'],\"step_ns\":['${list#,}']}' ;;\n"
                                "*) echo '{\"wrong\":0}' ;; esac; done\n",
                            {"--strategy=eager", "--repeat=1"});
        EXPECT_EQ(r.Exit(), 1);
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, "cusplice: eager: the player's answer makes no sense\n")) << r.err;
    }
}

TEST(ReplayFigures, OneBehindTheOtherWhereMemoryDoesNotSuffice) {
    std::string here = Folder() + "/taken";
    Result r =
        ByScript("if mkdir " + here + " 2>/dev/null; then echo " + kReady +
                     "; else echo '{\"ready\":false,\"no_memory\":true,\"obstacles\":[\"no "
                     "room\"],\"warnings\":[]}'; exit 3; fi\n" +
                     Answers("{\"checks\":1,\"wrong\":0,\"where\":[]}") + "rmdir " + here + "\n",
                 {"--repeat=1", "--format=csv"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, "one behind the other")) << r.err;
    EXPECT_TRUE(Has(r.out, "eager,") && Has(r.out, "full,") && Has(r.out, "as-recorded,")) << r.out;
    // Not even one has room.
    mkdir(here.c_str(), 0755);
    r = ByScript("echo '{\"ready\":false,\"no_memory\":true,\"obstacles\":[\"no room\"]}'\n", {});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "cannot be replayed:\ncusplice:   no room\n")) << r.err;
}

TEST(ReplayFigures, APlayerThatFailsIsNotWaitedFor) {
    std::string ready = std::string("echo ") + kReady + "\nread -r word\n";
    const struct {
        std::string script, says;
    } ends[] = {
        {"kill -KILL $$\n", "cusplice: eager: the player was ended by signal 9"},
        {"exit 7\n", "cusplice: eager: the player ended with status 7"},
        {"echo '{\"error\":\"op 3 of 9: \\u0041\"}'\nexit 1\n", "cusplice: eager: op 3 of 9: A\n"},
        {"echo nonsense\nexit 0\n", "cusplice: eager: the player ended with status 0"},
    };
    for (const auto &end : ends) {
        Result r = ByScript(ready + end.script, {"--strategy=eager"});
        EXPECT_EQ(r.Exit(), 1);
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, end.says)) << r.err;
    }
    // A wrong sum behind the measured passes alone.
    Result r =
        ByScript(std::string("echo ") + kReady +
                     "\nn=0\nwhile read -r word k; do case $word in check | sums) echo "
                     "'{\"checks\":1,\"wrong\":'$n',\"where\":[\"0x10\"]}'; n=1 ;; run) echo "
                     "'{\"ns\":[5000000000'$(yes ,5000000000 | head -$((k - 1)) | tr -d "
                     "'\\n')'],\"step_ns\":[5'$(yes ,5 | head -$((k - 1)) | tr -d "
                     "'\\n')'],\"steps\":2}' ;; curve) echo '{\"ns\":[5]}' ;; esac; done\n",
                 {"--strategy=eager", "--repeat=1"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "1 of 1 sums of the memory at the end differ (last measured pass): "
                           "0x10\n"))
        << r.err;
}

} // namespace
