// Promise: programs run as without the library on drivers of each version, on those that lack
// functions and on those with unknown functions. If a driver tells no layout of parameters, the
// library makes no graphs and says so once.
//
// CUS_TEST_FULL=1: all scenarios on all drivers.
#include "tests/sim/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "shim/api/api.h"

namespace sim {
namespace {

struct Driver {
    const char *name;
    const char *version; // of the library of harness/sim that plays it; NULL: that of CUDA 13.0
    const char *unknown; // entry points that it has anew, at addresses that no symbol has
    bool TellsLayouts() const { return !version || atoi(version) >= CUS_GRAPHS_VERSION; }
};

void PrintTo(const Driver &driver, std::ostream *out) {
    *out << driver.name;
}

// Whatever a step may consist of.
#define OPS                                                                                        \
    "cuLaunchKernel,cuLaunchKernelEx,cuMemcpyDtoDAsync,cuMemcpyHtoDAsync,cuMemcpyDtoHAsync,"       \
    "cuMemcpyAsync,cuMemsetD8Async,cuMemsetD16Async,cuMemsetD32Async,cuMemsetD2D8Async,"           \
    "cuMemsetD2D16Async,cuMemsetD2D32Async"
#define ORDER                                                                                      \
    "cuStreamSynchronize,cuStreamWaitEvent,cuEventRecord,cuEventSynchronize,cuStreamQuery,"        \
    "cuCtxSynchronize,cuMemcpyDtoH,cuMemcpyHtoD,cuMemcpy,cuMemsetD32"
#define LIFE                                                                                       \
    "cuMemFree,cuMemFreeAsync,cuMemAllocAsync,cuMemHostUnregister,cuModuleUnload,cuStreamDestroy," \
    "cuCtxDestroy,cuLaunchHostFunc,cuGraphLaunch,cuStreamBeginCapture,cuStreamEndCapture"

const Driver kDrivers[] = {
    {"v11080", "11080", ""},
    {"v12000", "12000", ""},
    {"v12030", "12030", ""},
    {"v12040", "12040", ""},
    {"v12060", "12060", ""},
    {"v12080", "12080", ""},
    {"v12090", "12090", ""},
    {"v13050", "13050", ""},
    {"v14000", "14000", ""},
    {"new_ops", nullptr, OPS},
    {"new_order", nullptr, ORDER},
    {"new_life", nullptr, LIFE},
    {"new_launch_and_order", nullptr, "cuLaunchKernel," ORDER},
    {"new_lookup", nullptr, "cuGetProcAddress"},
};

// What each of them is run with unless all are asked for.
const char *const kSome[] = {
    "decode_loop",    "decode_legacy",       "copies",          "memsets",
    "memsets_2d",     "streams_interleaved", "legacy_blocking", "capture_once",
    "capture_global", "graph_program",       "diverge_insert",  "moving_buffers",
    "free_reuse",     "pool_memory",         "host_func",       "errors",
    "two_contexts",   "module_reload",       "stream_recreate", "poll_pinned",
    "handles",
};

class OnDriver : public testing::TestWithParam<Driver> {};

Setting On(const Driver &driver, bool preload) {
    Setting setting;
    setting.preload = preload;
    setting.binary = "harness/scenario/scenario_dl";
    std::string newest = Runfile("harness/sim/lib/libcuda.so.1");
    newest = newest.substr(0, newest.rfind('/'));
    setting.env["CUSIM_DELAY_US"] = "0";
    if (driver.version) {
        std::string old = Runfile(std::string("harness/sim/") + driver.version + "/libcuda.so.1");
        setting.env["LD_LIBRARY_PATH"] = old.substr(0, old.rfind('/')) + ":" + newest;
        setting.env["CUSIM_KERNELS"] = newest + "/libcusim_kernels.so";
        setting.args = {"--route", "dlsym"};
    } else {
        setting.env["CUSIM_UNKNOWN"] = driver.unknown;
        setting.args = {"--route", "getproc"};
    }
    return setting;
}

// Compares, and says whether the program is one that this driver is new enough for.
bool CheckOn(const Driver &driver, const Case &c) {
    SCOPED_TRACE(c.Title());
    Setting setting = On(driver, false);
    if (driver.version && driver.TellsLayouts() && c.name.size() % 2) // by either look-up
        setting.args = {"--route", "getproc"};
    Outcome plain = RunCase(c, setting);
    setting.preload = true;
    Outcome run = RunCase(c, setting);
    EXPECT_SAME(c, plain, run);
    EXPECT_NOTHING(SaidOnce(run));
    if (CountOps(plain.log) == 0 || c.name == "exit_quick") {
        return false; // nothing was asked for, or nothing is counted
    }
    if (run.result.status == c.status) {
        EXPECT_STATS(run);
    }
    if (!driver.TellsLayouts()) {
        EXPECT_EQ(run.stats.Number("issued.in_graphs"), 0);
        EXPECT_NE(run.result.err.find("this driver lacks functions"), std::string::npos)
            << run.Describe();
    } else if (driver.version) {
        // All that these ask for is there, so the results are those of any other driver.
        if (c.name != "unknown_calls" && c.name != "fork_given") {
            EXPECT_SAME(c, RunCase(c, On({"", nullptr, ""}, false)), run);
        }
        EXPECT_EQ(run.result.err.find("this driver lacks functions"), std::string::npos)
            << run.Describe();
        EXPECT_TRUE(run.stats.Number("issued.in_graphs") > 0 || !c.min_in_graphs) << run.Describe();
    }
    return plain.result.status == c.status;
}

TEST_P(OnDriver, ProgramsRunAsEver) {
    std::vector<std::string> names(std::begin(kSome), std::end(kSome));
    int asked = 0, suited = 0;
    for (const Case &c : Cases()) {
        bool is_some = std::find(names.begin(), names.end(), c.name) != names.end();
        if (is_some || FullSweep()) {
            suited += CheckOn(GetParam(), c);
            asked++;
        }
    }
    EXPECT_GT(suited, GetParam().TellsLayouts() ? asked - 4 : asked / 2);
}

INSTANTIATE_TEST_SUITE_P(Of, OnDriver, testing::ValuesIn(kDrivers),
                         [](const auto &given) { return std::string(given.param.name); });

// Where only the look-up is new, the rest is known as ever, and graphs are used.
TEST(NewLookup, StillLeadsToTheKnown) {
    Outcome run = RunCase(CaseOf("decode_loop"), On(kDrivers[std::size(kDrivers) - 1], true));
    EXPECT_GT(run.stats.Number("issued.in_graphs"), 0) << run.Describe();
}

// Calls that no table knows are ordered behind what is deferred, each time: found by look-ups,
// bound by the loader when they are made, and newer forms of calls that the table knows.
struct Unknown {
    const char *binary, *version;
    unsigned launches; // of a step
};

class UnknownCalls : public testing::TestWithParam<Unknown> {};

TEST_P(UnknownCalls, AreSeenAsSuch) {
    const Case &c = CaseOf("unknown_calls");
    Setting setting = On({"", GetParam().version, ""}, false);
    setting.binary = GetParam().binary;
    setting.args = {};
    Outcome plain = RunCase(c, setting);
    ASSERT_GT(CountOps(plain.log), 24u * GetParam().launches - 3 * 8)
        << "the driver has them not: this shows nothing";
    setting.preload = true;
    Outcome run = RunCase(c, setting);
    EXPECT_SAME(c, plain, run);
    EXPECT_GE(run.stats.Number("flushes.unknown_api"), 10) << run.Describe();
    EXPECT_GT(run.stats.Number("issued.in_graphs"), 100) << run.Describe();
}

INSTANTIATE_TEST_SUITE_P(Of, UnknownCalls,
                         testing::Values(Unknown{"harness/scenario/scenario", nullptr, 36},
                                         Unknown{"harness/scenario/scenario_unknown", nullptr, 36},
                                         Unknown{"harness/scenario/scenario", "14000", 45}),
                         [](const auto &given) {
                             std::string binary = given.param.binary;
                             return binary.substr(binary.rfind('/') + 1) +
                                    (given.param.version ? "_14000" : "");
                         });

// What a look-up of unknown form gives out passes by the library, so nothing may be deferred.
TEST(UnknownLookup, EndsDeferring) {
    const Case &c = CaseOf("copies");
    Setting setting = On({"", "14000", ""}, false);
    Outcome plain = RunCase(c, setting);
    setting.args = {"--route", "getproc14"};
    EXPECT_SAME(c, plain, RunCase(c, setting));
    setting.preload = true;
    Outcome run = RunCase(c, setting);
    EXPECT_SAME(c, plain, run);
    EXPECT_EQ(run.stats.Number("issued.in_graphs"), 0) << run.Describe();
    EXPECT_GT(run.stats.Number("ops.launches"), 0) << "the launches went past the hooks, too";
    EXPECT_NE(run.result.err.find("by a call that this library does not know"), std::string::npos)
        << run.Describe();
}

} // namespace
} // namespace sim
