// Promise: all forms of hostloop leave the same in memory: plain, preloaded, one graph by hand,
// segments by hand, with the runtime and with the driver. Its checksum shows an operation that is
// lost or out of order.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <tuple>

namespace sim {
namespace {

enum { LAUNCHES = 120, STEPS = 6, WARMUP = 14 };

Outcome Hostloop(const std::string &program, std::vector<std::string> args, bool preload = false,
                 std::map<std::string, std::string> env = {}) {
    Setting setting;
    setting.preload = preload;
    setting.env = env;
    setting.env["CUSIM_DELAY_US"] = "0";
    setting.env["CUSIM_KERNELS"] = Runfile("harness/bench/libhostloop_kernels.so");
    std::vector<std::string> command = {Runfile("harness/bench/" + program),
                                        "--launches",
                                        std::to_string(LAUNCHES),
                                        "--steps",
                                        std::to_string(STEPS),
                                        "--warmup",
                                        std::to_string(WARMUP)};
    command.insert(command.end(), args.begin(), args.end());
    return RunProgram(command, setting);
}

std::vector<std::string> With(std::vector<std::string> args, std::vector<std::string> more) {
    args.insert(args.end(), more.begin(), more.end());
    return args;
}

Json Said(const Outcome &outcome) {
    return ParseJson(outcome.result.out);
}

struct Pattern {
    std::string name;
    std::vector<std::string> args;
    int segments; // that --graph --segment 16 makes of a step; 0: refused
    bool graphs;  // launches go out in graphs preloaded
};

void PrintTo(const Pattern &p, std::ostream *out) {
    *out << p.name;
}

const Pattern kPatterns[] = {
    {"plain", {}, 8, true},
    {"eager", {"--eager-every", "10"}, 24, true}, // twelve graphs, each with a kernel behind it
    {"patched", {"--scalar-every", "4", "--grid-every", "10"}, 8, true},
    {"all_patched", {"--scalar-every", "1", "--grid-every", "1"}, 8, true},
    {"reshaped", {"--shared-every", "4", "--block-every", "10"}, 8, true},
    {"recorded", {"--record-every", "8"}, 8, true},
    {"recorded_timed", {"--record-every", "5", "--record-timed"}, 8, true},
    {"recorded_in_turn", {"--record-every", "3", "--record-events", "2"}, 8, true},
    {"forked", {"--fork", "15"}, 0, true},
    {"forked_patched", {"--fork", "15", "--scalar-every", "3", "--memset-every", "7"}, 0, true},
    {"memsets_and_copies", {"--memset-every", "4", "--copy-every", "5"}, 8, true},
    {"streams", {"--streams", "3", "--run", "40"}, 9, true},
    {"streams_in_turn", {"--streams", "4"}, LAUNCHES, false},
    {"threads", {"--threads", "2"}, 8, true},
    {"events", {"--events"}, 8, true},
    {"legacy", {"--stream", "legacy"}, 8, true},
    {"loop", {"--loop", "37", "--turns", "40"}, 3, true},
};

class Forms : public testing::TestWithParam<std::tuple<std::string, Pattern>> {};

TEST_P(Forms, LeaveTheSame) {
    const auto &[program, pattern] = GetParam();
    Outcome plain = Hostloop(program, pattern.args);
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    const std::string wanted = Said(plain).text.at("checksum");

    Outcome whole = Hostloop(program, With(pattern.args, {"--graph"}));
    ASSERT_EQ(whole.result.status, 0) << whole.Describe();
    EXPECT_EQ(Said(whole).text.at("checksum"), wanted) << "one graph";
    EXPECT_EQ(Said(whole).Number("graphs"), 1);

    Outcome segments = Hostloop(program, With(pattern.args, {"--graph", "--segment", "16"}));
    ASSERT_EQ(segments.result.status, pattern.segments ? 0 : 2) << segments.Describe();
    if (pattern.segments) {
        EXPECT_EQ(Said(segments).text.at("checksum"), wanted) << "graphs of segments";
        EXPECT_EQ(Said(segments).Number("graphs"), pattern.segments);
    }

    Outcome preloaded = Hostloop(program, pattern.args, true);
    ASSERT_EQ(preloaded.result.status, 0) << preloaded.Describe();
    ASSERT_STATS(preloaded);
    EXPECT_EQ(Said(preloaded).text.at("checksum"), wanted) << "preloaded";
    EXPECT_EQ(Said(preloaded).Number("issued"), preloaded.stats.Number("ops.launches"));
    EXPECT_GE(preloaded.stats.Number("issued.in_graphs"), pattern.graphs ? 1 : 0);

    Outcome handed = Hostloop(program, pattern.args, true,
                              {{"CUSPLICE_SUBMIT_NS", "1"}, {"CUSPLICE_DEMOTE", "no"}});
    ASSERT_EQ(handed.result.status, 0) << handed.Describe();
    ASSERT_STATS(handed);
    EXPECT_EQ(Said(handed).text.at("checksum"), wanted) << "submitted";
    bool second = std::thread::hardware_concurrency() > 1;
    EXPECT_EQ(handed.stats.Number("submitted") > 0, pattern.graphs && second);
    EXPECT_EQ(preloaded.stats.Number("submitted"), 0);
    for (const Outcome *one : {&plain, &whole, &preloaded, &handed})
        EXPECT_EQ(Said(*one).Number("gpu_us") > 0, pattern.name == "events");
}

std::string NameOf(const testing::TestParamInfo<std::tuple<std::string, Pattern>> &info) {
    return std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Runtime, Forms,
                         testing::Combine(testing::Values("hostloop_shared"),
                                          testing::ValuesIn(kPatterns)),
                         NameOf);
// By the driver those that lead to other calls of it.
INSTANTIATE_TEST_SUITE_P(Driver, Forms,
                         testing::Combine(testing::Values("hostloop_driver"),
                                          testing::ValuesIn(kPatterns, kPatterns + 12)),
                         NameOf);

// Otherwise equal sums would say nothing. Each fifth launch of the graph, the last step's too,
// loses its last node, or begins with its second. The last node is the memset or copy.
TEST(Hostloop, TheChecksumShowsWhatAGraphDoesWrong) {
    for (const char *pattern : {"--eager-every", "--memset-every", "--copy-every"}) {
        const std::vector<std::string> args = {pattern, "10", "--graph"};
        const std::string right = Said(Hostloop("hostloop_driver", args)).text.at("checksum");
        for (const char *error : {"drop:5", "swap:5"}) {
            Outcome wrong =
                Hostloop("hostloop_driver", args, false, {{"CUSIM_GRAPH_ERROR", error}});
            ASSERT_EQ(wrong.result.status, 0) << wrong.Describe();
            EXPECT_NE(Said(wrong).text.at("checksum"), right) << pattern << " " << error;
        }
    }
}

// The simulator orders nodes by the seed where edges leave a choice.
TEST(Hostloop, AForkByHandHasEveryEdgeThatItNeeds) {
    for (const char *program : {"hostloop_driver", "hostloop_shared"}) {
        auto sum = [&](std::vector<std::string> args,
                       const std::map<std::string, std::string> &env) {
            Outcome run = Hostloop(program, With({"--fork", "15"}, args), false, env);
            EXPECT_EQ(run.result.status, 0) << run.Describe();
            return Said(run).text.at("checksum");
        };
        const std::string right = sum({}, {});
        for (const char *seed : {"1", "2", "3", "4"})
            EXPECT_EQ(sum({"--graph"}, {{"CUSIM_SEED", seed}}), right) << seed;
        EXPECT_NE(sum({"--graph"}, {{"CUSIM_GRAPH_ERROR", "drop:5"}}), right);
    }
}

// What is recorded or verified is launched by who completes it, as the trace says and the proof
// asks.
TEST(Hostloop, NothingIsSubmittedWhileItIsRecordedOrVerified) {
    std::string trace = TempDir() + "/trace";
    for (const std::map<std::string, std::string> &env :
         std::vector<std::map<std::string, std::string>>{{{"CUSPLICE_RECORD", trace}},
                                                         {{"CUSPLICE_MODE", "verify"}}}) {
        auto all = env;
        all["CUSPLICE_SUBMIT_NS"] = "1";
        all["CUSPLICE_DEMOTE"] = "no";
        Outcome run = Hostloop("hostloop_driver", {"--scalar-every", "1"}, true, all);
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        EXPECT_GT(run.stats.Number("graph_launches"), 0);
        EXPECT_EQ(run.stats.Number("submitted"), 0);
    }
    unlink(trace.c_str());
}

// A step's scalars and grids are in the sum: a graph by hand that is not patched would not do.
TEST(Hostloop, WhatChangesFromStepToStepIsInTheChecksum) {
    const std::vector<std::vector<std::string>> patterns = {{},
                                                            {"--scalar-every", "4"},
                                                            {"--grid-every", "4"},
                                                            {"--shared-every", "4"},
                                                            {"--block-every", "4"}};
    std::set<std::string> sums;
    for (const auto &args : patterns)
        sums.insert(Said(Hostloop("hostloop_driver", args)).text.at("checksum"));
    EXPECT_EQ(sums.size(), patterns.size());
}

// Every size of shared memory is a new one. What must run eagerly is the first block of each kernel
// besides its usual one.
TEST(Hostloop, GrowingSharedMemoryAndNewBlocksAreInGraphsAsNewGridsAre) {
    for (const char *program : {"hostloop_driver", "hostloop_shared"}) {
        auto share = [&](std::vector<std::string> pattern) {
            // The watchdog stays out of it.
            Outcome run = Hostloop(program, With(pattern, {"--steps", "300"}), true,
                                   {{"CUSPLICE_DEMOTE", "no"}, {"CUSPLICE_HOLD_US", "1000000"}});
            EXPECT_EQ(run.result.status, 0) << run.Describe();
            return run.stats.Number("issued.in_graphs") / Said(run).Number("issued");
        };
        double grids = share({"--grid-every", "4"});
        EXPECT_GE(share({"--shared-every", "4"}), grids - 0.01) << program;
        EXPECT_GE(share({"--shared-every", "4", "--block-every", "10"}), grids - 0.02) << program;
    }
}

// An allocation and a free around each launch cut nothing, and few of them reach the driver.
TEST(Hostloop, StreamOrderedMemoryCutsNoSegment) {
    const std::vector<std::string> args = {"--alloc", "--steps", "300", "--stream", "nonblocking"};
    for (const char *program : {"hostloop_driver", "hostloop_shared"}) {
        Outcome plain = Hostloop(program, args);
        ASSERT_EQ(plain.result.status, 0) << plain.Describe();
        // The watchdog stays out of it.
        Outcome run = Hostloop(program, args, true,
                               {{"CUSPLICE_DEMOTE", "no"}, {"CUSPLICE_HOLD_US", "1000000"}});
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        EXPECT_EQ(Said(run).text.at("checksum"), Said(plain).text.at("checksum"));
        EXPECT_GE(run.stats.Number("issued.in_graphs") / Said(run).Number("issued"), 0.9);
        EXPECT_GE(run.stats.Number("reused_frees") / Said(run).Number("issued"), 0.5);
        EXPECT_LE(Said(run).Number("pool_kb"), 1.25 * Said(plain).Number("pool_kb"));
    }
}

// An upload of 4 bytes cuts no segment; one of 16 KB cuts one.
TEST(Hostloop, ASmallUploadCutsNoSegment) {
    const int steps = 300, all = WARMUP + steps;
    auto run = [&](std::vector<std::string> pattern) {
        Outcome outcome =
            Hostloop("hostloop_driver", With(pattern, {"--steps", std::to_string(steps)}), true,
                     {{"CUSPLICE_DEMOTE", "no"}, {"CUSPLICE_HOLD_US", "1000000"}});
        EXPECT_EQ(outcome.result.status, 0) << outcome.Describe();
        return outcome;
    };
    Outcome none = run({}), uploads = run({"--upload"});
    EXPECT_EQ(Said(uploads).text.at("checksum"), Said(none).text.at("checksum"));
    EXPECT_EQ(uploads.stats.Number("ops.copies"), 2 * all);
    EXPECT_EQ(uploads.stats.Number("eager_by.unsupported"), all) << "those of 16 KB";
    EXPECT_GE(uploads.stats.Number("issued.in_graphs"), 0.9 * all * LAUNCHES);
}

// A record cuts no segment. Of the records of one event that nobody looks at, only the last one of
// a segment has a node.
TEST(Hostloop, RecordsCutNoSegment) {
    const int steps = 300, all = WARMUP + steps;
    for (const char *program : {"hostloop_driver", "hostloop_shared"}) {
        auto run = [&](std::vector<std::string> pattern) {
            // The same segments at any pace of the host; the watchdog stays out of it.
            Outcome outcome =
                Hostloop(program, With(pattern, {"--steps", std::to_string(steps)}), true,
                         {{"CUSPLICE_DEMOTE", "no"},
                          {"CUSPLICE_HOLD_US", "1000000"},
                          {"CUSPLICE_SEGMENT_FIRST", "40"},
                          {"CUSPLICE_SEGMENT_MAX", "40"}});
            EXPECT_EQ(outcome.result.status, 0) << outcome.Describe();
            return outcome;
        };
        Outcome none = run({}), each = run({"--record-every", "8"}),
                one = run({"--record-every", "3", "--record-events", "1"});
        double records = each.stats.Number("ops.records");
        EXPECT_EQ(records, all * (LAUNCHES / 8));
        EXPECT_GE(each.stats.Number("issued.in_graphs"),
                  0.9 * (each.stats.Number("ops.launches") + records));
        EXPECT_LE(each.stats.Number("graph_launches"), none.stats.Number("graph_launches") + all);
        EXPECT_EQ(one.stats.Number("ops.records"), all * (LAUNCHES / 3));
        EXPECT_LE(one.calls.Number("cuEventRecordWithFlags"), one.stats.Number("built"));
        EXPECT_GT(one.calls.Number("cuEventRecordWithFlags"), 0);
    }
}

// Nor do a fork and a join: their records and waits are in the graphs too.
TEST(Hostloop, ForksCutNoSegment) {
    for (const char *program : {"hostloop_driver", "hostloop_shared"}) {
        // The watchdog stays out of it.
        Outcome run = Hostloop(program, {"--fork", "15", "--scalar-every", "3", "--steps", "100"},
                               true, {{"CUSPLICE_DEMOTE", "no"}, {"CUSPLICE_HOLD_US", "1000000"}});
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        EXPECT_GE(run.stats.Number("issued.in_graphs"), 0.9 * run.stats.Sum("ops"));
        EXPECT_GT(run.stats.Number("ops.waits"), 0.9 * 100 * 30);
        EXPECT_EQ(run.stats.Sum("flushes"), 0);
    }
}

TEST(Hostloop, VerifyFindsNoDifference) {
    const std::string file = TempDir() + "/report";
    const std::vector<std::vector<std::string>> patterns = {
        {"--shared-every", "4", "--block-every", "10"},
        {"--record-every", "8"},
        {"--record-every", "8", "--record-timed"},
        {"--record-every", "3", "--record-events", "2"},
        {"--fork", "6"}};
    for (const auto &args : patterns) {
        Outcome run = Hostloop("hostloop_driver", args, true,
                               {{"CUSPLICE_MODE", "verify"}, {"CUSPLICE_VERIFY_REPORT", file}});
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        EXPECT_EQ(Said(run).text.at("checksum"),
                  Said(Hostloop("hostloop_driver", args)).text.at("checksum"));
        Json report = ParseJson(ReadFile(file));
        EXPECT_GT(report.Number("equal"), 0) << args[0];
        EXPECT_EQ(report.Number("different"), 0) << args[0];
        EXPECT_EQ(report.Number("not_the_same_twice"), 0) << args[0];
        unlink(file.c_str());
    }
}

// Before what is timed, and behind the step in which its turn is over: nowhere else.
TEST(Hostloop, StopsBetweenStepsForOthers) {
    for (int turns_over : {0, 2}) {
        pid_t child = fork();
        if (child == 0) {
            setenv("CUSIM_DELAY_US", "0", 1);
            setenv("CUSIM_KERNELS", Runfile("harness/bench/libhostloop_kernels.so").c_str(), 1);
            std::string driver = Runfile("harness/sim/lib/libcuda.so.1");
            setenv("LD_LIBRARY_PATH", driver.substr(0, driver.rfind('/')).c_str(), 1);
            std::string program = Runfile("harness/bench/hostloop_driver");
            execl(program.c_str(), program.c_str(), "--steps", "20", "--stops", nullptr);
            _exit(127);
        }
        int status, stops = 0;
        while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
            EXPECT_EQ(WSTOPSIG(status), SIGSTOP);
            if (stops++ < turns_over)
                kill(child, SIGUSR2);
            kill(child, SIGCONT);
        }
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
        EXPECT_EQ(stops, 1 + turns_over);
    }
}

// With --core each step is asked what its core was; the work is the same, and no time is said of a
// few steps.
TEST(Hostloop, SaysWhichStepsHadTheirCoreForThemselves) {
    const std::string right = Said(Hostloop("hostloop_driver", {})).text.at("checksum");
    for (const char *steps : {"6", "200"}) {
        Outcome run = Hostloop("hostloop_driver", {"--core", "--warmup", "14", "--steps", steps});
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        Json said = Said(run);
        double alone = said.Number("steps_alone"), beside = said.Number("steps_beside");
        ASSERT_TRUE(said.Has("steps_alone") && said.Has("steps_beside")) << run.Describe();
        EXPECT_LE(alone + beside, std::stoi(steps));
        EXPECT_EQ(said.Has("host_alone_ns"), alone >= 20) << run.Describe();
        EXPECT_EQ(said.Has("host_beside_ns"), beside >= 20) << run.Describe();
        if (alone >= 20) {
            EXPECT_GT(said.Number("host_alone_ns"), 0);
        }
        if (*steps == '6') {
            EXPECT_EQ(said.text.at("checksum"), right);
        }
    }
    Json none = Said(Hostloop("hostloop_driver", {}));
    EXPECT_FALSE(none.Has("steps_alone"));
}

TEST(Hostloop, RefusesWhatDoesNotGoTogether) {
    const std::vector<std::vector<std::string>> wrong = {
        {"--segment", "4"},
        {"--random", "5", "--graph"},
        {"--events", "--threads", "2"},
        {"--stops", "--threads", "2"},
        {"--core", "--threads", "2"},
        {"--core", "--loop", "37"},
        {"--streams", "2", "--threads", "2"},
        {"--streams", "2", "--stream", "legacy"},
        {"--fork", "2", "--streams", "2"},
        {"--fork", "2", "--threads", "2"},
        {"--fork", "2", "--alloc"},
        {"--fork", "2", "--loop", "37"},
        {"--fork", "0"},
        {"--launches", "0"},
        {"--graph", "--segment", "x"},
    };
    for (const auto &args : wrong)
        EXPECT_EQ(Hostloop("hostloop_driver", args).result.status, 2) << args[0];
}

} // namespace
} // namespace sim
