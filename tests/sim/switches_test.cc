// Promise: the kill switch and CUDA's own switches stop deferral; the watchdog issues ops that
// wait; eager rules hold exactly.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sim {
namespace {

Setting Preloaded(std::map<std::string, std::string> env = {}) {
    Setting setting;
    setting.preload = true;
    setting.env = std::move(env);
    return setting;
}

TEST(KillSwitch, GivesNoGraphAndTheSameRun) {
    for (const char *name :
         {"decode_loop", "batch_sizes", "never_sync", "copies", "capture_once"}) {
        SCOPED_TRACE(name);
        const Case &c = CaseOf(name);
        Outcome plain = RunCase(c, {});
        Outcome off = RunCase(c, Preloaded({{"CUSPLICE", "off"}}));
        EXPECT_SAME(c, plain, off);
        // Not one driver call more or less than plain, graph calls included.
        EXPECT_EQ(plain.calls.number, off.calls.number);
    }
}

TEST(KillSwitch, WorksByModeToo) {
    const Case &c = CaseOf("decode_loop");
    Outcome plain = RunCase(c, {});
    Outcome off = RunCase(c, Preloaded({{"CUSPLICE_MODE", "off"}}));
    EXPECT_SAME(c, plain, off);
    EXPECT_EQ(plain.calls.number, off.calls.number);
}

// cusplice.h: the program's marks end steps, what it suspends is counted as passed on.
TEST(Application, IsHeard) {
    Outcome run = RunCase(CaseOf("app_marks"), Preloaded());
    EXPECT_EQ(run.result.status, 0) << run.result.err;
    EXPECT_EQ(run.stats.Number("eager_by.passthrough"), 40 * 3);
    EXPECT_GE(run.stats.Number("steps"), 40);
    // What it breaks is known before the first graph is made: graphs end there, and none is cut.
    double runs = 0;
    for (int i = 0; run.stats.Has("breaks_by_kernel." + std::to_string(i) + ".runs"); i++) {
        std::string row = "breaks_by_kernel." + std::to_string(i);
        if (run.stats.text.at(row + ".reason") == "application") {
            runs += run.stats.Number(row + ".runs");
        }
    }
    EXPECT_GT(runs, 30);
    EXPECT_GT(run.stats.Number("graph_launches"), 0);
}

TEST(Application, HearsNothingOfALibraryThatIsOff) {
    for (const char *mode : {"off", "observe"}) {
        Outcome run = RunCase(CaseOf("app_marks"), Preloaded({{"CUSPLICE_MODE", mode}}));
        EXPECT_EQ(run.result.status, 0) << run.result.err;
        EXPECT_EQ(run.calls.Number("cuGraphLaunch"), 0);
    }
}

// By ctypes: the functions behind cusplice.h, in a process without CUDA.
TEST(Application, IsReachedFromPython) {
    if (getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "Python is the machine's, and cannot load the library";
    const char *const program =
        "import ctypes\n"
        "lib = ctypes.CDLL(None)\n"
        "lib.cusplice_read_counters_.restype = ctypes.c_size_t\n"
        "counters = (ctypes.c_uint64 * 12)(*[7] * 12)\n"
        "lib.cusplice_suspend_(), lib.cusplice_resume_(), lib.cusplice_resume_()\n"
        "lib.cusplice_mark_step_(), lib.cusplice_force_break_()\n"
        "bytes = lib.cusplice_read_counters_(counters, ctypes.c_size_t(96))\n"
        "print(lib.cusplice_interface_(), bytes, list(counters))\n";
    Result result = RunProgram({"/usr/bin/env", "python3", "-c", program}, Preloaded()).result;
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, "1 96 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n");
}

TEST(LaunchBlocking, NothingIsDeferred) {
    const Case &c = CaseOf("decode_loop");
    Outcome plain = RunCase(c, {});
    Outcome blocking = RunCase(c, Preloaded({{"CUDA_LAUNCH_BLOCKING", "1"}}));
    EXPECT_SAME(c, plain, blocking);
    EXPECT_EQ(blocking.calls.Number("cuGraphLaunch"), 0);
    EXPECT_EQ(blocking.stats.Number("issued.in_graphs"), 0);
    EXPECT_EQ(blocking.stats.Sum("flushes"), 0);
}

TEST(LaunchBlocking, ZeroMeansNo) {
    Outcome zero = RunCase(CaseOf("decode_loop"), Preloaded({{"CUDA_LAUNCH_BLOCKING", "0"}}));
    EXPECT_GT(zero.stats.Number("issued.in_graphs"), 0);
}

TEST(CoreDumps, NothingIsDeferredFromTheCallOn) {
    const Case &c = CaseOf("core_dumps");
    Outcome plain = RunCase(c, {}), run = RunCase(c, Preloaded());
    EXPECT_SAME(c, plain, run);
    EXPECT_GT(run.stats.Number("issued.in_graphs"), 0);
    EXPECT_LE(run.stats.Number("issued.in_graphs"), 16 * 20);
    std::string said = "nothing is deferred any more: core dumps of the GPU are switched on";
    size_t at = run.result.err.find(said);
    EXPECT_NE(at, std::string::npos) << run.result.err;
    EXPECT_EQ(run.result.err.find(said, at + 1), std::string::npos) << run.result.err;
}

TEST(Watchdog, EndsAHostThatPolls) {
    for (const char *hold : {"50", "200", "5000"}) {
        SCOPED_TRACE(hold);
        const Case &c = CaseOf("poll_pinned");
        Setting setting = Preloaded({{"CUSPLICE_HOLD_US", hold}});
        setting.timeout_s = 20;
        Outcome plain = RunCase(c, {});
        Outcome polled = RunCase(c, setting);
        EXPECT_SAME(c, plain, polled);
        EXPECT_STATS(polled);
    }
}

// Ways of waiting without a call of CUDA's. Nobody but the watchdog ends them, and with a long hold
// it must not have to each time: what it ended some times is a boundary.
class Liveness : public testing::TestWithParam<const char *> {};

TEST_P(Liveness, TheWatchdogEndsTheWaitAndIsNotHitEveryStep) {
    const Case &c = CaseOf(GetParam());
    Setting setting = Preloaded({{"CUSPLICE_HOLD_US", "20000"}}), plain;
    plain.args = setting.args = {"--steps", "200"};
    Outcome without = RunCase(c, plain);
    Outcome polled = RunCase(c, setting);
    ASSERT_EQ(polled.result.status, 0) << polled.Describe();
    EXPECT_SAME(c, without, polled);
    EXPECT_STATS(polled);
    EXPECT_GT(polled.stats.Number("flushes.watchdog"), 0) << polled.Describe();
    EXPECT_LT(polled.stats.Number("flushes.watchdog"), 60) << polled.Describe();
}

INSTANTIATE_TEST_SUITE_P(Host, Liveness,
                         testing::Values("poll_pinned", "poll_managed", "poll_copy", "lock_waits"),
                         [](const auto &it) { return std::string(it.param); });

TEST(EagerRule, CountsExactly) {
    const Case &c = CaseOf("eager_tenth");
    Outcome plain = RunCase(c, {});
    Outcome ruled = RunCase(c, Preloaded({{"CUSPLICE_EAGER", "saxpy_n"}}));
    EXPECT_SAME(c, plain, ruled);
    EXPECT_STATS(ruled);
    EXPECT_EQ(ruled.stats.Number("ops.launches"), 20 * 40);
    EXPECT_EQ(ruled.stats.Number("eager_by.rule"), 20 * 4);
    EXPECT_GE(ruled.stats.Number("issued.in_graphs"), 0.55 * 20 * 40);
}

// The list of the last whole step has every op, the eager ones where the program launches them.
TEST(EagerRule, StandsInItsPlaceInTheSegmentList) {
    Outcome ruled =
        RunCase(CaseOf("eager_tenth"),
                Preloaded({{"CUSPLICE_EAGER", "saxpy_n"}, {"CUSPLICE_HOLD_US", "1000000"}}));
    int ops = 0, eager = 0;
    for (int i = 0;; i++) {
        auto entry = ruled.stats.text.find("segment_list." + std::to_string(i));
        if (entry == ruled.stats.text.end())
            break;
        int n = 0;
        if (sscanf(entry->second.c_str(), "graph %d", &n) == 1) {
            EXPECT_LE(ops % 10 + n, 9) << "a graph over " << entry->second << " at " << ops;
            ops += n;
        } else {
            EXPECT_EQ(ops % 10 == 9, entry->second == "eager saxpy_n") << ops;
            eager += ops % 10 == 9;
            ops++;
        }
    }
    EXPECT_EQ(ops, 40) << ruled.Describe();
    EXPECT_EQ(eager, 4);
}

TEST(EagerRule, NamesEveryKernel) {
    const Case &c = CaseOf("decode_loop");
    Outcome plain = RunCase(c, {});
    Outcome ruled = RunCase(c, Preloaded({{"CUSPLICE_EAGER", "*"}}));
    EXPECT_SAME(c, plain, ruled);
    EXPECT_EQ(ruled.stats.Number("eager_by.rule"), ruled.stats.Number("ops.launches"));
}

TEST(EagerRule, ByConfigFileAndRegularExpression) {
    const Case &c = CaseOf("eager_tenth");
    std::string dir = TempDir(), file = dir + "/rules.conf";
    FILE *out = fopen(file.c_str(), "w");
    ASSERT_TRUE(out);
    fputs("[rules]\ngraph = ch?in\neager = re:^sa.*_n$\n", out);
    fclose(out);
    Outcome plain = RunCase(c, {});
    Outcome ruled = RunCase(c, Preloaded({{"CUSPLICE_CONFIG", file}}));
    remove(file.c_str());
    EXPECT_SAME(c, plain, ruled);
    EXPECT_EQ(ruled.stats.Number("eager_by.rule"), 20 * 4) << ruled.Describe();
}

// A kernel that spins until another stream's kernel ran, under a rule that says so.
TEST(NeverDefer, SpinningKernel) {
    const Case &c = CaseOf("spin_pair");
    std::string dir = TempDir(), file = dir + "/rules.conf";
    FILE *out = fopen(file.c_str(), "w");
    ASSERT_TRUE(out);
    fputs("[rules]\nnever_defer = spin_until\n", out);
    fclose(out);
    Outcome plain = RunCase(c, {});
    Setting setting = Preloaded({{"CUSPLICE_CONFIG", file}});
    setting.timeout_s = 30;
    Outcome ruled = RunCase(c, setting);
    remove(file.c_str());
    EXPECT_SAME(c, plain, ruled);
    EXPECT_EQ(ruled.stats.Number("eager_by.rule"), 16);
}

// What does not change is not patched, what changes is.
TEST(Signatures, SteadyIsExactAndGrowthIsPatched) {
    Outcome steady = RunCase(CaseOf("steady"), Preloaded());
    EXPECT_GT(steady.stats.Number("signatures.exact"), 20) << steady.Describe();
    EXPECT_EQ(steady.stats.Number("patched_nodes"), 0);
    Outcome growing = RunCase(CaseOf("growing_grid"), Preloaded());
    EXPECT_GT(growing.stats.Number("signatures.patched"), 10) << growing.Describe();
    EXPECT_GT(growing.stats.Number("patched_nodes"), 20);
}

// Four batch sizes in turn fit into four variants: in the end, shapes are met exactly.
TEST(Signatures, BatchSizesInTurnKeepTheirVariants) {
    Setting setting = Preloaded();
    setting.args = {"--steps", "200"};
    Outcome turns = RunCase(CaseOf("batch_sizes"), setting);
    EXPECT_GT(turns.stats.Number("signatures.exact"), turns.stats.Number("signatures.patched"))
        << turns.Describe();
}

// A loop that never synchronises converges: three times the turns, the same graphs. What a busy
// machine decides by chance is kept out of it: the watchdog, and the size of segments, which
// follows the host's pace; so are further variants, which params that take turns may earn at any
// turn.
TEST(Bounds, EndlessLoopKeepsItsGraphs) {
    double built[2];
    for (int i = 0; i < 2; i++) {
        Setting setting = Preloaded({{"CUSPLICE_HOLD_US", "1000000"},
                                     {"CUSPLICE_SEGMENT_FIRST", "16"},
                                     {"CUSPLICE_SEGMENT_MAX", "16"},
                                     {"CUSPLICE_VARIANTS", "1"}});
        setting.args = {"--steps", i ? "1800" : "600"};
        Outcome run = RunCase(CaseOf("never_sync"), setting);
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        built[i] = run.stats.Number("built");
        EXPECT_GT(run.stats.Number("issued.in_graphs"), 0.8 * run.stats.Sum("ops"));
    }
    EXPECT_LE(built[1], built[0] + 2);
}

TEST(Bounds, GraphMemory) {
    const Case &c = CaseOf("long_short");
    Outcome plain = RunCase(c, {});
    Outcome bounded = RunCase(c, Preloaded({{"CUSPLICE_GRAPH_MB", "1"}}));
    EXPECT_SAME(c, plain, bounded);
    EXPECT_STATS(bounded);
    EXPECT_LE(bounded.stats.Number("graph_bytes"), 1 << 20);
    EXPECT_GT(bounded.stats.Number("issued.in_graphs"), 0);
}

// Building is spread over steps, so that none of them is slow.
TEST(Bounds, NodesBuiltInAStep) {
    auto built = [](const char *nodes) {
        Setting setting = Preloaded({{"CUSPLICE_BUILD_NODES", nodes},
                                     {"CUSPLICE_SEGMENT_FIRST", "32"},
                                     {"CUSPLICE_SEGMENT_MAX", "32"},
                                     {"CUSPLICE_HOLD_US", "1000000"}});
        setting.args = {"--steps", "8"};
        Outcome run = RunCase(CaseOf("launch_bound"), setting);
        EXPECT_STATS(run);
        return run.stats.Number("built");
    };
    double few = built("64"), many = built("100000");
    EXPECT_GE(few, 6);
    EXPECT_LE(few, 8 * 2) << "two graphs of 32 nodes for each step";
    EXPECT_GT(many, 1000 / 32 - 1) << "and without that, as many as there are, at once";
}

TEST(Bounds, TreeNodes) {
    for (const char *name : {"never_repeat", "long_short", "decode_loop"}) {
        SCOPED_TRACE(name);
        const Case &c = CaseOf(name);
        Outcome plain = RunCase(c, {});
        Outcome bounded = RunCase(c, Preloaded({{"CUSPLICE_NODES_MAX", "1000"}}));
        EXPECT_SAME(c, plain, bounded);
        EXPECT_STATS(bounded);
    }
}

TEST(Bounds, SegmentSize) {
    for (int most : {2, 5, 64}) {
        Outcome run =
            RunCase(CaseOf("steady"), Preloaded({{"CUSPLICE_SEGMENT_MAX", std::to_string(most)}}));
        double launches = run.stats.Number("graph_launches");
        ASSERT_GT(launches, 0) << run.Describe();
        EXPECT_LE(run.stats.Number("issued.in_graphs") / launches, most);
    }
}

// With a profiler in the process the default is to leave the launches visible.
TEST(Profiler, TurnsGraphsOffUnlessTold) {
    const Case &c = CaseOf("decode_loop");
    Outcome plain = RunCase(c, {});
    Outcome profiled =
        RunCase(c, Preloaded({{"CUDA_INJECTION64_PATH", "/nonexistent/libinject.so"}}));
    EXPECT_SAME(c, plain, profiled);
    EXPECT_EQ(profiled.calls.Number("cuGraphLaunch"), 0);
    Outcome told = RunCase(c, Preloaded({{"CUDA_INJECTION64_PATH", "/nonexistent/libinject.so"},
                                         {"CUSPLICE_PROFILE", "ignore"}}));
    EXPECT_SAME(c, plain, told);
    EXPECT_GT(told.calls.Number("cuGraphLaunch"), 0);
}

// The program's memory comes first: where an allocation of its own fails once, graphs are dropped
// and it is tried again.
TEST(OutOfMemory, OfTheProgramIsTriedAgain) {
    Setting setting = Preloaded({{"CUSIM_FAULT", "cuMemAlloc_v2:150:2"}});
    setting.args = {"--steps", "120"};
    const Case &c = CaseOf("moving_buffers");
    Outcome run = RunCase(c, setting);
    EXPECT_EQ(run.result.status, 0) << run.Describe();
}

// One connection to the device: the order of the host is the order of execution, on all streams.
TEST(OneConnection, ChangesNothing) {
    for (const char *name : {"two_streams", "streams_interleaved", "many_streams", "spin_behind"}) {
        SCOPED_TRACE(name);
        const Case &c = CaseOf(name);
        Outcome plain = RunCase(c, {});
        Outcome one = RunCase(c, Preloaded({{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}}));
        EXPECT_SAME(c, plain, one);
    }
}

TEST(Idle, NoDeviceNoLaunchNoHarm) {
    const Case &c = CaseOf("idle");
    Outcome plain = RunCase(c, {});
    Outcome idle = RunCase(c, Preloaded());
    EXPECT_SAME(c, plain, idle);
}

// A program that has nothing to do with CUDA must not notice the library at all.
TEST(Inert, WithoutCuda) {
    if (getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "/bin/echo is the machine's, and cannot load the library";
    Setting setting = Preloaded();
    Outcome echo = RunProgram({"/bin/echo", "as", "ever"}, setting);
    EXPECT_EQ(echo.result.out, "as ever\n");
    EXPECT_EQ(echo.result.err, "");
    EXPECT_EQ(echo.result.status, 0);
    EXPECT_FALSE(echo.stats.valid) << "a stats file of a process without CUDA";
}

// Faults of the driver under the library: the program sees none of them.
class Fault : public testing::TestWithParam<const char *> {};

TEST_P(Fault, OfOwnCallsIsNotSeen) {
    for (const char *name : {"decode_loop", "batch_sizes", "diverge_replace", "never_sync"}) {
        SCOPED_TRACE(name);
        const Case &c = CaseOf(name);
        Outcome plain = RunCase(c, {});
        Outcome faulty = RunCase(c, Preloaded({{"CUSIM_FAULT", GetParam()}}));
        EXPECT_SAME(c, plain, faulty);
        EXPECT_STATS(faulty);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Own, Fault,
    testing::Values("cuGraphInstantiateWithFlags:1+:2", "cuGraphInstantiateWithFlags:3:2",
                    "cuGraphInstantiateWithParams:1+:2", "cuGraphLaunch:1:999",
                    "cuGraphLaunch:5:999", "cuGraphLaunch:4+:999",
                    "cuGraphExecKernelNodeSetParams_v2:1:1",
                    "cuGraphExecKernelNodeSetParams_v2:7:1",
                    "cuGraphExecKernelNodeSetParams_v2:2+:1", "cuStreamBeginCapture_v2:1+:900",
                    "cuStreamBeginCapture_v2:2:900", "cuStreamGetId:1+:1", "cuCtxGetDevice:1+:1",
                    "cuFuncGetParamInfo:1+:801", "cuKernelGetParamInfo:1+:801",
                    "cuPointerGetAttributes:1+:1", "cuGraphGetNodes:1+:1",
                    "cuThreadExchangeStreamCaptureMode:1+:1", "cuGraphKernelNodeGetAttribute:1+:1",
                    "cuGraphKernelNodeGetParams_v2:1+:1", "cuGraphExecMemcpyNodeSetParams:1+:1",
                    "cuGraphExecMemsetNodeSetParams:1+:1"));

} // namespace
} // namespace sim
