// Promise: mode verify compares each graph with its launches one by one, reports what differs and
// from which launch on, and leaves the program its plain results.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sim {
namespace {

struct Verified {
    Outcome run;
    Json report;
};

// The scenario in mode verify, with the plain run's output and status.
Verified Verify(const std::string &name, std::map<std::string, std::string> env = {},
                std::vector<std::string> args = {}) {
    const Case &c = CaseOf(name);
    Setting plain, mine;
    plain.args = mine.args = args;
    mine.preload = true;
    mine.timeout_s = 120;
    std::string report = TempDir() + "/report.json";
    env["CUSPLICE_MODE"] = "verify";
    env["CUSPLICE_VERIFY_REPORT"] = report;
    mine.env = env;
    Outcome expected = RunCase(c, plain);
    Verified verified = {RunCase(c, mine), {}};
    verified.report = ParseJson(ReadFile(report));
    EXPECT_TRUE(verified.report.valid) << name << "\n" << ReadFile(report);
    EXPECT_EQ(verified.run.result.out, expected.result.out) << name;
    EXPECT_EQ(verified.run.result.status, expected.result.status) << name;
    return verified;
}

double Launches(const Verified &v) {
    return v.report.Number("graph_launches");
}

double Interrupted(const Verified &v) {
    return v.report.Number("not_verified.other_threads") + v.report.Number("disturbed");
}

// A watchdog that the machine stops inside a hook keeps the verifier out, now and then: such a run
// is made again, so that each launch of what is returned could be verified.
Verified Undisturbed(const std::string &name, std::map<std::string, std::string> env = {},
                     std::vector<std::string> args = {}) {
    Verified v = Verify(name, env, args);
    for (int more = 0; more < 4 && Interrupted(v) > 0; more++)
        v = Verify(name, env, args);
    EXPECT_EQ(Interrupted(v), 0) << name << ": five times";
    return v;
}

// Each launch of a graph is accounted for once.
void ExpectSum(const Verified &v) {
    const Json &r = v.report;
    EXPECT_EQ(Launches(v), r.Number("verified") + r.Number("disturbed") + r.Sum("not_verified"));
    EXPECT_EQ(r.Number("verified"),
              r.Number("equal") + r.Number("different") + r.Number("not_the_same_twice"));
    EXPECT_EQ(r.Number("verified"),
              r.Number("with_all_memory") + r.Number("with_memory_of_pointers"));
}

std::string Text(const Json &json, const std::string &key) {
    auto found = json.text.find(key);
    return found == json.text.end() ? "" : found->second;
}

// All kinds of ops, patched and built nodes, forked streams, memory of all kinds that can be set
// back.
TEST(Verify, EveryGraphOfTheseIsVerifiedAndEqual) {
    for (const char *name : {"steady",
                             "decode_loop",
                             "growing_grid",
                             "batch_sizes",
                             "memsets",
                             "memsets_2d",
                             "copies",
                             "copies_registered",
                             "pool_memory",
                             "pool_loop",
                             "pool_own",
                             "pool_changes",
                             "free_reuse",
                             "diverge_insert",
                             "cooperative",
                             "launch_ex",
                             "extra_form",
                             "many_params",
                             "two_contexts",
                             "legacy_blocking",
                             "module_reload",
                             "primary_reset",
                             "fork",
                             "event_loop",
                             "event_reuse",
                             "event_recreate",
                             "event_graphs",
                             "event_capture",
                             "fork_layers",
                             "fork_events",
                             "fork_wait_stream",
                             "fork_two",
                             "fork_nested",
                             "fork_open",
                             "fork_old",
                             "fork_moves",
                             "fork_priority",
                             "fork_blocking",
                             "fork_legacy",
                             "fork_trailing",
                             "fork_diverge",
                             "fork_capture",
                             "fork_memory",
                             "fork_free",
                             "fork_again",
                             "fork_given",
                             "fork_waits",
                             "exit_forked"}) {
        SCOPED_TRACE(name);
        Verified v = Undisturbed(name);
        EXPECT_GT(v.report.Number("verified"), 5);
        EXPECT_EQ(v.report.Number("verified"), Launches(v));
        EXPECT_EQ(v.report.Number("equal"), Launches(v));
        ExpectSum(v);
        EXPECT_EQ(v.run.stats.Number("graph_launches"), Launches(v));
        EXPECT_GT(v.report.Number("saved_bytes"), 0);
    }
}

// With other threads in the driver, or once a stream has gone with work in it (fork_late), a graph
// is left unverified, and never wrong for it.
TEST(Verify, ThreadsAreLeftInPeace) {
    for (const char *name :
         {"threads", "threads_bound", "thread_pester", "random_threads", "capture_other_thread",
          "spin_pair", "event_threads", "event_across", "event_elapsed", "fork_thread", "fork_poll",
          "fork_spin", "fork_late"}) {
        SCOPED_TRACE(name);
        Verified v = Verify(name);
        EXPECT_EQ(v.report.Number("different"), 0);
        ExpectSum(v);
    }
}

// A thread that only waits is in nobody's way.
TEST(Verify, BesideAThreadThatWaits) {
    Verified v = Verify("thread_waits");
    EXPECT_GT(v.report.Number("verified"), Launches(v) / 4);
    EXPECT_EQ(v.report.Number("different"), 0);
    ExpectSum(v);
}

// What a stream waits for may come from the thread that launches: it must get there.
TEST(Verify, AStreamThatWaitsForTheHost) {
    Verified v = Undisturbed("value_host");
    EXPECT_GT(Launches(v), 0);
    EXPECT_EQ(v.report.Number("not_verified.not_idle"), Launches(v));
    ExpectSum(v);
}

// Verifying takes longer here than a thread waits in front of the gate.
TEST(Verify, WhatAThreadWritesMeanwhileStays) {
    Verified v = Verify("thread_writes", {}, {"--steps", "190"});
    EXPECT_EQ(v.report.Number("different"), 0);
    ExpectSum(v);
}

TEST(Verify, MemoryThatTheHostUsesIsNotSetBack) {
    Verified v = Undisturbed("managed");
    EXPECT_GT(Launches(v), 0);
    EXPECT_EQ(v.report.Number("not_verified.host_memory"), Launches(v));
    EXPECT_EQ(v.report.Number("verified"), 0);
}

TEST(Verify, ADroppedOpIsFound) {
    Verified v =
        Undisturbed("launch_bound", {{"CUSPLICE_VERIFY_PLANT", "dropped"}}, {"--steps", "12"});
    EXPECT_GT(v.report.Number("planted"), 0);
    EXPECT_EQ(v.report.Number("different"), v.report.Number("planted"));
    EXPECT_EQ(v.report.Number("verified"), v.report.Number("planted"));
    double ops = v.report.Number("differences.0.ops");
    EXPECT_GT(ops, 1);
    EXPECT_EQ(v.report.Number("differences.0.op"), (int)ops / 2); // where it was put
    EXPECT_NE(Text(v.report, "differences.0.kernel"), "");
    EXPECT_EQ(Text(v.report, "differences.0.graph"), "built");
    EXPECT_GT(v.report.Number("differences.0.memory_bytes"), 0);
    EXPECT_NE(v.run.result.err.find("a graph differs from its launches: first at op"),
              std::string::npos)
        << v.run.result.err;
    EXPECT_EQ(v.run.stats.Number("issued.in_graphs"), 0); // no such graph is used
    EXPECT_STATS(v.run);
}

// An allocation and a free around each launch.
Outcome WithMemory(const std::string &mode, const std::string &report, const std::string &plant) {
    Setting setting;
    setting.preload = true;
    setting.timeout_s = 120;
    setting.env = {{"CUSIM_DELAY_US", "0"},
                   {"CUSIM_KERNELS", Runfile("harness/bench/libhostloop_kernels.so")},
                   {"CUSPLICE_DEMOTE", "no"},
                   {"CUSPLICE_HOLD_US", "1000000"},
                   {"CUSPLICE_MODE", mode},
                   {"CUSPLICE_VERIFY_PLANT", plant},
                   {"CUSPLICE_VERIFY_REPORT", report}};
    Outcome run = RunProgram({Runfile("harness/bench/hostloop_driver"), "--alloc", "--stream",
                              "nonblocking", "--launches", "120", "--steps", "60"},
                             setting);
    EXPECT_EQ(run.result.status, 0) << run.Describe();
    return run;
}

// Frees are deferred as in other modes, so that segments are those of other modes.
TEST(Verify, SegmentsWithDeferredFreesAreVerifiedWhole) {
    const std::string report = TempDir() + "/memory.json";
    Outcome graphs = WithMemory("piecewise", report, "none");
    Verified v;
    for (int more = 0; more < 5 && (more == 0 || Interrupted(v) > 0); more++) {
        v.run = WithMemory("verify", report, "none");
        v.report = ParseJson(ReadFile(report));
        ASSERT_TRUE(v.report.valid);
    }
    double launches = ParseJson(graphs.result.out).Number("issued");
    EXPECT_GT(graphs.stats.Number("issued.in_graphs") / launches, 0.5);
    EXPECT_NEAR(v.run.stats.Number("issued.in_graphs") / launches,
                graphs.stats.Number("issued.in_graphs") / launches, 0.01);
    EXPECT_GE(v.run.stats.Number("reused_frees") / launches, 0.4);
    EXPECT_EQ(ParseJson(v.run.result.out).text.at("checksum"),
              ParseJson(graphs.result.out).text.at("checksum"));
    EXPECT_GT(Launches(v), 0);
    EXPECT_EQ(v.report.Number("equal"), Launches(v));
    ExpectSum(v);

    v.run = WithMemory("verify", report, "dropped");
    v.report = ParseJson(ReadFile(report));
    EXPECT_EQ(ParseJson(v.run.result.out).text.at("checksum"),
              ParseJson(graphs.result.out).text.at("checksum"));
    EXPECT_GT(v.report.Number("planted"), 0);
    EXPECT_EQ(v.report.Number("different"), v.report.Number("planted"));
    EXPECT_EQ(v.run.stats.Number("issued.in_graphs"), 0);
}

TEST(Verify, TwoSwappedOpsAreFound) {
    Verified v = Verify("launch_bound", {{"CUSPLICE_VERIFY_PLANT", "swapped"}}, {"--steps", "12"});
    EXPECT_GT(v.report.Number("planted"), 0);
    EXPECT_EQ(v.report.Number("different"), v.report.Number("planted"));
    double ops = v.report.Number("differences.0.ops"), op = v.report.Number("differences.0.op");
    EXPECT_EQ(op, (int)ops / 2); // the second of the two, which ran in place of the first
    EXPECT_EQ(Text(v.report, "differences.0.kernel"), "axpy");
}

TEST(Verify, ANodeThatWasNotPatchedIsFoundWithWhatItHeld) {
    Verified v = Verify("decode_loop", {{"CUSPLICE_VERIFY_PLANT", "unpatched"}});
    EXPECT_GT(v.report.Number("planted"), 0);
    EXPECT_GT(v.report.Number("different"), 0);
    EXPECT_EQ(Text(v.report, "differences.0.graph"), "patched");
    std::string asked = Text(v.report, "differences.0.arguments.0.asked"),
                held = Text(v.report, "differences.0.arguments.0.node_before");
    EXPECT_EQ(asked.rfind("0x", 0), 0u) << asked;
    EXPECT_EQ(held.rfind("0x", 0), 0u) << held;
    EXPECT_NE(asked, held);
}

// Without a fault, and then with one, at a kernel that gives another number each time.
TEST(Verify, AKernelThatDoesNotDoTheSameTwiceIsNoFaultAndHidesNone) {
    Verified v = Verify("unsteady");
    EXPECT_EQ(v.report.Number("different"), 0);
    EXPECT_GT(v.report.Number("not_the_same_twice"), 0);
    EXPECT_EQ(Text(v.report, "kernels_not_the_same_twice.0"), "stamp");
    EXPECT_FALSE(v.report.text.count("kernels_not_the_same_twice.1"));
    ExpectSum(v);

    Verified planted = Verify("unsteady", {{"CUSPLICE_VERIFY_PLANT", "swapped"}});
    EXPECT_GT(planted.report.Number("planted"), 0);
    EXPECT_GT(planted.report.Number("different"), 0);
    EXPECT_EQ(Text(planted.report, "differences.0.kernel"), "chain");
}

TEST(Verify, AShareOfLaunches) {
    Verified v = Verify("steady", {{"CUSPLICE_VERIFY_EVERY", "1000000"}});
    EXPECT_EQ(v.report.Number("verified"), v.run.stats.Number("built")); // each graph's first
    EXPECT_LT(v.report.Number("verified"), Launches(v));
    ExpectSum(v);
    Verified third = Verify("steady", {{"CUSPLICE_VERIFY_EVERY", "3"}});
    EXPECT_GT(third.report.Number("verified"), v.report.Number("verified"));
    EXPECT_LT(third.report.Number("verified"), Launches(third));
    ExpectSum(third);
}

// Memory that fills up beside what the ops use: with 1 MB for saving, only what they point at is
// saved.
TEST(Verify, WithLittleMemoryWhatIsPointedAtIsSaved) {
    Verified all = Undisturbed("decode_loop");
    EXPECT_EQ(all.report.Number("with_all_memory"), Launches(all));
    EXPECT_EQ(Verify("errors_memory").report.Number("with_memory_of_pointers"), 0);
    Verified few = Verify("errors_memory", {{"CUSPLICE_VERIFY_MB", "1"}});
    EXPECT_GT(few.report.Number("with_memory_of_pointers"), 0);
    EXPECT_EQ(few.report.Number("different"), 0);
    ExpectSum(few);
}

// What was saved there is given back also where no graph is left.
TEST(Verify, TheProgramsMemoryComesFirst) {
    Verified v = Undisturbed("memory_late", {{"CUSIM_MEM_MB", "128"}});
    EXPECT_GT(v.report.Number("with_all_memory"), 0);
    EXPECT_EQ(v.report.Number("equal"), Launches(v));
}

// The modes whose graphs are looked at: with an eager rule, piecewise cuts and full does not.
TEST(Verify, OtherModesToo) {
    std::map<std::string, std::string> rule = {{"CUSPLICE_EAGER", "saxpy_n"}};
    Verified segments = Undisturbed("eager_tenth", rule);
    rule["CUSPLICE_VERIFY_MODE"] = "full";
    Verified full = Undisturbed("eager_tenth", rule);
    EXPECT_EQ(Text(segments.report, "mode"), "piecewise");
    EXPECT_EQ(Text(full.report, "mode"), "full");
    EXPECT_EQ(full.run.stats.Number("eager_by.rule"), 0);
    EXPECT_GT(segments.run.stats.Number("eager_by.rule"), 0);
    EXPECT_EQ(full.report.Number("equal"), Launches(full));
    EXPECT_EQ(segments.report.Number("equal"), Launches(segments));
}

TEST(Verify, WithoutADriverThatCanIsSaid) {
    Verified v = Undisturbed("steady", {{"CUSIM_FAULT", "cuModuleLoadData:2+:999"}});
    EXPECT_EQ(v.report.Number("verified"), 0);
    EXPECT_EQ(v.report.Number("not_verified.driver"), Launches(v));
    EXPECT_GT(v.run.stats.Number("issued.in_graphs"), 0); // as graphs, unverified
}

// The program sees what it would have seen, and is told which of its launches it was.
TEST(Verify, AnOpThatLosesTheContextIsNamed) {
    Verified v = Undisturbed("lost_context", {}, {"--seed", "205"});
    EXPECT_EQ(v.report.Number("context_lost.error"), 719);
    EXPECT_EQ(Text(v.report, "context_lost.kernel"), "trap");
    double op = v.report.Number("context_lost.op"), ops = v.report.Number("context_lost.ops");
    EXPECT_LT(op, ops);
    EXPECT_EQ(v.report.Number("not_verified.context_lost"), 1);
    EXPECT_EQ(v.report.Number("different"), 0);
    ExpectSum(v);
    std::string said = "the context was lost with error 719 at op " + std::to_string((int)op + 1) +
                       " of " + std::to_string((int)ops) + ", trap, on stream " +
                       std::to_string((int)v.report.Number("context_lost.stream"));
    const std::string &err = v.run.result.err;
    EXPECT_NE(err.find("verify: " + said), std::string::npos) << err;
    EXPECT_NE(err.find("verify:   " + said), std::string::npos) << "in the summary: " << err;
    EXPECT_EQ(err.find("no verified graph"), std::string::npos) << err;
}

TEST(Verify, AnOpOutsideOfGraphsThatLosesTheContextIsSaidToBeOne) {
    Verified v = Undisturbed("lost_context", {{"CUSPLICE_EAGER", "trap"}}, {"--seed", "205"});
    EXPECT_EQ(v.report.Number("not_verified.context_lost"), 0);
    EXPECT_FALSE(v.report.text.count("context_lost.kernel"));
    EXPECT_NE(v.run.result.err.find("719 by an op that is in no verified graph"), std::string::npos)
        << v.run.result.err;
}

// Its ops were issued before, one by one, and none of them failed.
TEST(Verify, AGraphThatLosesTheContextIsNamedByItsEnds) {
    Setting setting;
    std::string report = TempDir() + "/report.json";
    setting.preload = true;
    setting.library = "tests/sim/libcusplice_faults.so";
    setting.env = {{"CUSPLICE_MODE", "verify"},
                   {"CUSPLICE_VERIFY_REPORT", report},
                   {"CUSIM_FAULT", "cuGraphLaunch@own:40:late=700"}};
    Outcome run = RunCase(CaseOf("lost_context"), setting);
    Json json = ParseJson(ReadFile(report));
    ASSERT_TRUE(json.valid) << run.Describe();
    EXPECT_NE(run.result.out.find(": 700\n"), std::string::npos) << run.Describe();
    EXPECT_EQ(json.Number("context_lost.error"), 700);
    EXPECT_GT(json.Number("context_lost.ops"), 1);
    EXPECT_FALSE(json.number.count("context_lost.op"));
    EXPECT_NE(json.text["context_lost.first"], "");
    EXPECT_NE(json.text["context_lost.last"], "");
    EXPECT_NE(run.result.err.find("Which of them failed is not known. Issued one by one, none did"),
              std::string::npos)
        << run.result.err;
}

// Whatever call of the verifier's own fails, the program has what its launches did. A copy back
// that fails half-way is left out: nobody can help that.
TEST(Verify, CallsOfItsOwnThatFailAreNotSeen) {
    Case c = CaseOf("launch_bound");
    Setting plain, mine;
    plain.args = mine.args = {"--steps", "8"};
    Outcome expected = RunCase(c, plain);
    mine.preload = true;
    mine.library = "tests/sim/libcusplice_faults.so";
    for (const char *plant : {"none", "dropped"})
        for (const char *fault : {"cuModuleGetFunction@own:1",   "cuMemAlloc_v2@own:1",
                                  "cuMemAlloc_v2@own:2",         "cuMemcpyDtoDAsync_v2@own:1",
                                  "cuMemsetD8Async@own:1",       "cuMemsetD8Async@own:2",
                                  "cuMemsetD8Async@own:5",       "cuStreamSynchronize@own:1",
                                  "cuStreamSynchronize@own:2",   "cuStreamSynchronize@own:3",
                                  "cuStreamSynchronize@own:4",   "cuStreamSynchronize@own:5",
                                  "cuStreamSynchronize@own:6",   "cuStreamSynchronize@own:7",
                                  "cuStreamSynchronize@own:8",   "cuStreamSynchronize@own:9",
                                  "cuMemcpyDtoHAsync_v2@own:1",  "cuMemcpyDtoHAsync_v2@own:3",
                                  "cuCtxSynchronize@own:2",      "cuStreamQuery@own:2",
                                  "cuGraphNodeSetEnabled@own:2", "cuGraphNodeGetEnabled@own:1",
                                  "cuGraphLaunch@own:1",         "cuGraphLaunch@own:2"}) {
            SCOPED_TRACE(testing::Message() << fault << ", planted " << plant);
            // What the graph did stands where nothing can be said of it: with a fault in it, too.
            std::string name = fault;
            bool unjudged = name.find("cuStreamSynchronize") != std::string::npos ||
                            name.find(":2") != std::string::npos ||
                            name.find("cuMemcpyDtoH") != std::string::npos ||
                            name.find("cuMemset") != std::string::npos;
            if (*plant == 'd' && unjudged)
                continue;
            mine.env = {{"CUSPLICE_MODE", "verify"},
                        {"CUSPLICE_VERIFY_PLANT", plant},
                        {"CUSIM_FAULT", std::string(fault) + ":999"}};
            Outcome run = RunCase(c, mine);
            EXPECT_EQ(run.result.out, expected.result.out) << run.result.err;
            EXPECT_EQ(run.result.status, 0) << run.result.err;
            EXPECT_TRUE(run.stats.valid) << "not preloaded: " << run.result.err;
        }
}

} // namespace
} // namespace sim
