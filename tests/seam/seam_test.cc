// Promise: the hooks work on each route to the driver. Small programs run as preloaded children, on
// a driver that logs its callers and over an engine that logs its calls. Each test reads that one
// log.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/seam/seam.h"

namespace {

const char *const kLaunch =
    "engine launch 0 f=f1 stream=51:legacy dims=1,2,3,4,5,6,7 attrs=0 params=9 extra=a";
const char *const kRealLaunch = "cuda cuLaunchKernel f1 1 2 3 4 5 6 7 51 9 a";

// ---- routes ----

TEST_F(Seam, ElfBindingReachesTheHooks) {
    Outcome outcome = Run("SEAM_PROBE_ELF", "elf");
    EXPECT_TRUE(outcome.Has(kLaunch));
    EXPECT_EQ(outcome.Count(kRealLaunch), 1);
    EXPECT_EQ(
        outcome.Story(),
        (Strings{kLaunch, "cuda cuLaunchKernel",
                 "engine record_begins e cuEventRecord 51:legacy flags 0", "engine flush_event e",
                 "engine flush S cuEventRecord 51:legacy", "cuda cuEventRecord",
                 "engine recorded e", "engine flush T cuStreamSynchronize 51:legacy",
                 "engine step_end 51:legacy", "cuda cuStreamSynchronize",
                 "engine wait_took 51:legacy", "engine take_error cuStreamSynchronize 51:legacy",
                 "cuda cuDeviceGetCount", "engine drain"}));
}

TEST_F(Seam, DlsymReachesTheHooks) {
    Outcome outcome = Run("SEAM_PROBE", "dlsym");
    EXPECT_TRUE(outcome.Has(kLaunch));
    EXPECT_EQ(outcome.Count(kRealLaunch), 1);
}

TEST_F(Seam, ResolverReachesTheHooksInItsFourAndFiveArgumentForms) {
    Outcome outcome = Run("SEAM_PROBE", "resolver");
    EXPECT_TRUE(outcome.Has(kLaunch));
    EXPECT_EQ(outcome.Count(kRealLaunch), 1);
}

TEST_F(Seam, NothingStartsBeforeASuccessfulInit) {
    Outcome outcome = Run("SEAM_PROBE", "failing_init");
    EXPECT_EQ(outcome.Count("engine start 1"), 1);
    size_t failed = 0, started = 0;
    for (size_t i = 0; i < outcome.log.size(); i++) {
        if (outcome.log[i] == "init failed")
            failed = i;
        if (outcome.log[i] == "engine start 1")
            started = i;
    }
    EXPECT_LT(failed, started);
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemFree_v2"), 2);
    EXPECT_EQ(outcome.Count("engine flush P cuMemFree_v2 -"), 1);
}

TEST_F(Seam, PerThreadTwinsAreTheirOwnFunctions) {
    Outcome outcome = Run("SEAM_PROBE", "twins");
    EXPECT_EQ(outcome.Story(),
              (Strings{"engine record_begins e cuEventRecord_ptsz 0:ptsz flags 0",
                       "engine flush_event e",
                       "engine flush S cuEventRecord_ptsz 0:ptsz",
                       "cuda cuEventRecord_ptsz",
                       "engine recorded e",
                       "engine record_begins e cuEventRecord 0:legacy flags 0",
                       "engine flush_event e",
                       "engine flush S cuEventRecord 0:legacy",
                       "cuda cuEventRecord",
                       "engine recorded e",
                       "engine memset dst=1000 pitch=0 value=7 elem=1 width=64 height=1 2d=0 "
                       "stream=0:ptsz",
                       "cuda cuMemsetD8Async_ptsz",
                       "engine flush T cuMemcpyHtoD_v2_ptds 0:ptsz",
                       "engine step_end 0:ptsz",
                       "engine copying 1",
                       "cuda cuMemcpyHtoD_v2_ptds",
                       "engine wait_took 0:ptsz",
                       "engine copying 0",
                       "engine take_error cuMemcpyHtoD_v2_ptds 0:ptsz",
                       "engine flush T cuMemcpyHtoD_v2 0:legacy",
                       "engine step_end 0:legacy",
                       "engine copying 1",
                       "cuda cuMemcpyHtoD_v2",
                       "engine wait_took 0:legacy",
                       "engine copying 0",
                       "engine take_error cuMemcpyHtoD_v2 0:legacy",
                       "engine drain"}));
}

TEST_F(Seam, LookUpsSeeTheirTrueCaller) {
    Run("SEAM_PROBE", "callers");
}

TEST_F(Seam, GlobalLookUpsFindTheHooksOnceLibcudaIsThere) {
    Run("SEAM_PROBE", "default");
}

// ---- unknown entry points ----

TEST_F(Seam, AnUnknownFunctionIsABarrierThatKeepsEveryArgument) {
    Outcome outcome = Run("SEAM_PROBE", "unknown");
    EXPECT_TRUE(
        outcome.Has("cuda cuFutureMixed -1 2.5 three 4.5 -5 6.5 7 8.5 -9 10.5 11 -12 13.5 14.5"));
    EXPECT_TRUE(outcome.Has("cuda cuFutureVariadic 10 55"));
    EXPECT_EQ(outcome.Count("engine flush P unknown_api -"), 3);
    EXPECT_EQ(outcome.Count("engine unknown_call"), 3);
}

TEST_F(Seam, AGraphicsApiEndsDeferring) {
    EXPECT_EQ(Run("SEAM_PROBE", "unknown")
                  .Count("engine defer_off a graphics API shares memory with the program"),
              1);
}

TEST_F(Seam, ALookUpThatNobodyKnowsEndsDeferringOnceItIsCalled) {
    Strings story = Run("SEAM_PROBE", "unknown_look_up").Story();
    const std::string off = "engine defer_off the program looks functions up by a call that this "
                            "library does not know";
    EXPECT_EQ(std::count(story.begin(), story.end(), off), 1);
    EXPECT_GT(std::find(story.begin(), story.end(), off),
              std::find(story.begin(), story.end(), "looks"));
}

TEST_F(Seam, MoreUnknownFunctionsThanStubsEndDeferring) {
    Outcome outcome = Run("SEAM_PROBE", "many");
    EXPECT_EQ(outcome.CountBeginning("engine defer_off"), 1);
    EXPECT_NE(outcome.errors.find("no stub is left"), std::string::npos);
}

// ---- staying out of the way ----

TEST_F(Seam, TheKillSwitchHandsOutTheRealFunctions) {
    Outcome outcome = Run("SEAM_PROBE", "off", {{"CUSPLICE", "off"}});
    EXPECT_FALSE(outcome.AnyEngine());
    EXPECT_EQ(outcome.handshake, (Strings{"there", "loaded"}));
}

TEST_F(Seam, TheKillSwitchPassesBoundCallsThrough) {
    Outcome outcome = Run("SEAM_PROBE_ELF", "off", {{"CUSPLICE", "off"}});
    EXPECT_FALSE(outcome.AnyEngine());
    EXPECT_EQ(outcome.Count("cuda cuLaunchKernel f1 1 2 3 4 5 6 7 51 0 0"), 1);
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemFree_v2 1000"), 1);
    EXPECT_EQ(outcome.handshake, (Strings{"there", "loaded", "off"}));
}

TEST_F(Seam, AProcessWithoutCudaIsLeftAlone) {
    Outcome outcome = Run("SEAM_PROBE", "without_cuda");
    EXPECT_TRUE(outcome.log.empty());
    EXPECT_EQ(outcome.handshake, (Strings{"there"}));
    EXPECT_EQ(outcome.errors, "");
}

TEST_F(Seam, AForkedChildPassesThrough) {
    Outcome outcome = Run("SEAM_PROBE", "fork");
    bool child = false;
    int calls = 0;
    for (const std::string &line : outcome.log) {
        if (line == "child" || line == "child done") {
            child = line == "child";
        } else if (child) {
            EXPECT_NE(line.rfind("engine", 0), 0u) << line;
        }
        calls += child && line.rfind("cuda cu", 0) == 0;
    }
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(outcome.Count("engine child"), 1);
    EXPECT_EQ(outcome.Count("engine drain"), 1);
    EXPECT_EQ(outcome.CountBeginning("engine launch"), 2);
    EXPECT_EQ(outcome.handshake, (Strings{"there", "loaded", "on", "exit 2 0"}));
}

TEST_F(Seam, OlderExitHandlersRunOnADrainedLibrary) {
    Outcome outcome = Run("SEAM_PROBE", "leaving");
    Strings story = outcome.Story();
    ASSERT_GE(story.size(), 3u);
    EXPECT_EQ(Strings(story.end() - 3, story.end()),
              (Strings{"engine drain", "older handler", "cuda cuLaunchKernel"}));
    EXPECT_EQ(outcome.handshake, (Strings{"there", "loaded", "on", "exit 1 1"}));
}

TEST_F(Seam, CallsFromInsideTheDriverGoStraightThrough) {
    Outcome outcome = Run("SEAM_PROBE", "callbacks");
    EXPECT_EQ(outcome.CountBeginning("cuda cuLaunchKernel f9"), 2);
    EXPECT_EQ(outcome.CountBeginning("engine launch"), 1);
}

TEST_F(Seam, SoDoThoseFromInsideALaunchThatIsPassedOn) {
    Outcome outcome = Run("SEAM_PROBE", "callback_passed", {{"SEAM_DEMOTED", "1"}});
    EXPECT_EQ(outcome.CountBeginning("engine launch"), 1) << "the second is passed on";
    EXPECT_EQ(outcome.CountBeginning("cuda cuLaunchKernel f9"), 2);
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemFree_v2"), 1);
    EXPECT_EQ(outcome.CountBeginning("engine flush P cuMemFree_v2"), 0);
}

// ---- where code is from ----

TEST_F(Seam, TheFileThatCodeIsFromIsKnownByItsImageOrItsPath) {
    Outcome outcome = Run("SEAM_PROBE", "origins", {{"SEAM_ASKS_LIBRARY", "1"}});
    EXPECT_EQ(About(outcome, "engine code_"),
              (Strings{"code_loaded a0 probe", "code_loaded a1 libuser.so", "code_loaded a2 probe",
                       "code_loaded a3 code.cubin", "code_loaded a4 libuser.so",
                       "code_loaded a5 code.fatbin", "code_loaded a6 -",
                       "code_loaded a7 libuser.so", "code_made f1 a0", "code_made e1 a4",
                       "code_made f2 e1", "code_made e2 a5", "code_made e3 a5", "code_made b0 a4",
                       "code_gone", "code_unloaded a0", "code_gone", "code_unloaded a4"}));
    // A load comes behind everything, whichever function it is.
    for (const char *load : {"cuModuleLoad", "cuModuleLoadDataEx", "cuModuleLoadFatBinary",
                             "cuLibraryLoadData", "cuLibraryLoadFromFile"})
        EXPECT_EQ(outcome.Count(std::string("engine flush P ") + load + " -"), 1) << load;
}

TEST_F(Seam, WhereNoRuleAsksForLibrariesNothingIsKept) {
    EXPECT_EQ(About(Run("SEAM_PROBE", "origins"), "engine code_"),
              (Strings{"code_gone", "code_gone"}));
}

// ---- errors and threads ----

TEST_F(Seam, ALateErrorIsToldByACallThatWouldSucceed) {
    Run("SEAM_PROBE", "late_error", {{"SEAM_LATE_ERROR", "719"}});
}

TEST_F(Seam, ThreadsThatStartTogetherGetTheSameAnswers) {
    Outcome outcome = Run("SEAM_PROBE", "race");
    EXPECT_EQ(outcome.Count("engine start 1"), 1);
    EXPECT_EQ(outcome.CountBeginning("cuda cuLaunchKernel"), 400);
    EXPECT_LE(outcome.CountBeginning("engine launch"), 400);
    EXPECT_EQ(outcome.CountBeginning("cuda cuFuncGetAttribute"), 400);
}

// ---- other libraries ----

TEST_F(Seam, AProfilerThatRecordsIsNoticedAndItsCallsPassOn) {
    Outcome outcome = Run("SEAM_PROBE", "profiler");
    EXPECT_EQ(
        outcome.Story(),
        (Strings{"engine opening 1", "engine profiling 1", "cupti cuptiActivityEnable 3",
                 "cupti cuptiActivityEnable a", "cupti cuptiActivityEnable a",
                 "cupti cuptiActivityDisable a", "engine profiling 0",
                 "cupti cuptiActivityDisable 3", "cupti cuptiEnableCallback 1",
                 "engine profiling 1", "cupti cuptiEnableCallback 1", "cupti cuptiEnableCallback 0",
                 "engine profiling 0", "cupti cuptiUnsubscribe 5b", "engine profiling 1",
                 "cupti cuptiActivityEnableContext c0", "engine profiling 0",
                 "cupti cuptiFinalize 0", "engine drain"}));
}

TEST_F(Seam, AProfilerThatWasThereFirstIsNoticedAtTheStart) {
    EXPECT_EQ(Run("SEAM_PROBE", "profiler_first").Count("engine profiling 1"), 1);
}

TEST_F(Seam, AProfilerThatALibraryIsLinkedToIsNoticedAndIsTheOneThatIsCalled) {
    Outcome outcome = Run("SEAM_PROBE", "profiler_linked");
    EXPECT_EQ(outcome.Count("engine profiling 1"), 1);
    EXPECT_EQ(outcome.Count("cupti cuptiActivityEnable 3"), 1);
}

TEST_F(Seam, AnInjectedToolCountsAsAProfiler) {
    EXPECT_EQ(Run("SEAM_PROBE", "dlsym", {{"CUDA_INJECTION64_PATH", "/nowhere.so"}})
                  .Count("engine profiling 1"),
              1);
}

TEST_F(Seam, ProfilersCanBeIgnored) {
    Outcome outcome = Run("SEAM_PROBE", "profiler", {{"CUSPLICE_PROFILE", "ignore"}});
    EXPECT_EQ(outcome.CountBeginning("engine profiling"), 0);
    // Graphs go on under it (HAZARDS A32): once, in front of the first kind of record.
    Strings story = outcome.Story();
    EXPECT_EQ(outcome.CountBeginning("engine nodes_timed"), 1);
    auto timed = std::find(story.begin(), story.end(), "engine nodes_timed 1");
    auto enabled = std::find(story.begin(), story.end(), "cupti cuptiActivityEnable 3");
    EXPECT_LT(timed, enabled);
    EXPECT_NE(enabled, story.end());
}

TEST_F(Seam, ALibraryWithAPrivateRouteEndsDeferring) {
    char name[] = "/tmp/seam_route.XXXXXX";
    std::string folder = mkdtemp(name), fake = Folder(Absolute("SEAM_FAKE"));
    const struct {
        const char *file, *said;
    } libraries[] = {
        {"libnvcuvid.so.1", "libnvcuvid.so"},
        {"libnvidia-encode.so.1", "libnvidia-encode.so"},
        {"libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so"},
        {"libnvidia-fbc.so.1", "libnvidia-fbc.so"},
        {"libnvidia-ifr.so.1", "libnvidia-ifr.so"},
        {"libnvidia-ngx.so.580.95.05", "libnvidia-ngx.so"},
        {"libnvoptix.so.1", "libnvoptix.so"},
        {"libcudla.so", "libcudla.so"},
        {"libnvidia-ptxjitcompiler.so.1", nullptr}, // brings no work
        {"libnvidia-ml.so.1", nullptr},
    };
    for (const auto &library : libraries) {
        std::string path = folder + "/" + library.file;
        ASSERT_EQ(symlink((fake + "/libnvcuvid.so.1").c_str(), path.c_str()), 0);
        Outcome outcome = Run("SEAM_PROBE", "private_route", {{"SEAM_ROUTE", path}});
        if (library.said) {
            EXPECT_EQ(outcome.Count(std::string("engine defer_off ") + library.said), 1)
                << library.file;
        } else {
            EXPECT_EQ(outcome.CountBeginning("engine defer_off"), 0) << library.file;
        }
        unlink(path.c_str());
    }
    rmdir(folder.c_str());
}

// ---- core dumps ----

TEST_F(Seam, CoreDumpsEndDeferring) {
    Outcome outcome = Run("SEAM_PROBE", "core_dumps");
    const char *off = "engine defer_off core dumps of the GPU are switched on";
    EXPECT_EQ(outcome.Count(off), 8);
    EXPECT_EQ(outcome.Count("engine flush P cuCoredumpSetAttribute -"), 4);
    EXPECT_EQ(outcome.Count("engine flush P cuCtxCreate_v4 -"), 1);
    size_t first = std::find(outcome.log.begin(), outcome.log.end(), off) - outcome.log.begin();
    size_t init = 0;
    for (size_t i = 0; i < outcome.log.size(); i++)
        if (outcome.log[i].rfind("cuda cuInit ", 0) == 0)
            init = i;
    EXPECT_GT(init, 0u);
    EXPECT_LT(init, first) << "not by the calls before the second cuInit";
}

TEST_F(Seam, CoreDumpsMayBeSwitchedOnBeforeTheStart) {
    Outcome outcome = Run("SEAM_PROBE", "core_dumps_early");
    EXPECT_EQ(outcome.CountBeginning("engine defer_off core dumps"), 1);
}

TEST_F(Seam, WhatTheDriverOpensInsideACallIsSeenByTheNextHook) {
    Outcome outcome = Run("SEAM_PROBE", "private_route_inside");
    EXPECT_EQ(outcome.CountBeginning("engine opening"), 0);
    Strings story = outcome.Story();
    auto at = [&](const std::string &line) {
        return std::find(story.begin(), story.end(), line) - story.begin();
    };
    EXPECT_EQ(outcome.Count("engine defer_off libnvcuvid.so"), 1);
    EXPECT_GT(at("engine defer_off libnvcuvid.so"), at("opened"));
    EXPECT_LT(at("engine defer_off libnvcuvid.so"), at("engine drain"));
}

// A program that opens something itself: everything is issued first, on one thread at a time.
TEST_F(Seam, WhatTheProgramOpensComesBehindEverything) {
    Outcome outcome = Run("SEAM_PROBE", "private_route",
                          {{"SEAM_ROUTE", Folder(Absolute("SEAM_FAKE")) + "/libnvcuvid.so.1"}});
    EXPECT_EQ(outcome.CountBeginning("engine opening 1"), 1);
    EXPECT_EQ(outcome.CountBeginning("engine opening"), 1);
}

class Stats : public Seam {
  protected:
    // Runs a probe that must leave a stats file.
    void Expect(const char *probe, const char *every) {
        char name[] = "/tmp/seam_stats.XXXXXX";
        std::string folder = mkdtemp(name), file = folder + "/stats.json";
        Run("SEAM_PROBE", probe, {{"CUSPLICE_STATS", file}, {"CUSPLICE_STATS_EVERY", every}});
        struct stat info;
        EXPECT_EQ(stat(file.c_str(), &info), 0);
        unlink(file.c_str());
        rmdir(folder.c_str());
    }
};

TEST_F(Stats, AreWrittenAtExit) {
    Expect("leaving", "0");
}

TEST_F(Stats, AreWrittenNowAndThenWhereThatIsAskedFor) {
    Expect("stats_in_time", "1");
}

} // namespace
