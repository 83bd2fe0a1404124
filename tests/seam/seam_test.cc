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
    EXPECT_EQ(outcome.Story(),
              (Strings{kLaunch, "cuda cuLaunchKernel",
                       "engine record_begins e cuEventRecord 51:legacy flags 0",
                       "engine flush S cuEventRecord 51:legacy", "cuda cuEventRecord",
                       "engine recorded e", "engine flush T cuStreamSynchronize 51:legacy",
                       "engine step_end 51:legacy", "cuda cuStreamSynchronize",
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
    EXPECT_EQ(
        outcome.Story(),
        (Strings{"engine record_begins e cuEventRecord_ptsz 0:ptsz flags 0",
                 "engine flush S cuEventRecord_ptsz 0:ptsz", "cuda cuEventRecord_ptsz",
                 "engine recorded e", "engine record_begins e cuEventRecord 0:legacy flags 0",
                 "engine flush S cuEventRecord 0:legacy", "cuda cuEventRecord", "engine recorded e",
                 "engine memset dst=1000 pitch=0 value=7 elem=1 width=64 height=1 2d=0 "
                 "stream=0:ptsz",
                 "cuda cuMemsetD8Async_ptsz", "engine flush T cuMemcpyHtoD_v2_ptds 0:ptsz",
                 "engine step_end 0:ptsz", "cuda cuMemcpyHtoD_v2_ptds",
                 "engine flush T cuMemcpyHtoD_v2 0:legacy", "engine step_end 0:legacy",
                 "cuda cuMemcpyHtoD_v2", "engine drain"}));
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

// ---- what each kind of call does ----

// Records may be deferred. Every other call that names an event comes behind its deferred record;
// behind some of them, no record of it is deferred any more.
TEST_F(Seam, CallsThatNameAnEventComeBehindItsRecord) {
    EXPECT_EQ(
        Run("SEAM_PROBE", "events").Story(),
        (Strings{
            "engine flush T cuEventQuery -",
            "cuda cuEventCreate",
            "engine event_made 7771",
            "cuda cuEventCreate",
            "engine record_begins 7771 cuEventRecord 51:legacy flags 0",
            "engine record 7771 51:legacy",
            "engine record_begins 7771 cuEventRecordWithFlags 51:legacy flags 0",
            "engine record 7771 51:legacy with_flags",
            "engine record_begins 7771 cuEventRecordWithFlags 51:legacy flags 1",
            "engine flush S cuEventRecordWithFlags 51:legacy",
            "cuda cuEventRecordWithFlags",
            "engine recorded 7771",
            "engine record_begins 8881 cuEventRecord 51:legacy flags 0",
            "engine flush S cuEventRecord 51:legacy",
            "cuda cuEventRecord",
            "engine recorded 8881",
            "engine wait 7772 cuStreamWaitEvent 51:legacy refused",
            "engine flush S cuStreamWaitEvent 51:legacy",
            "engine event_seen 7772 cuStreamWaitEvent",
            "cuda cuStreamWaitEvent",
            "engine waited 7772",
            "engine flush S cuStreamWaitEvent 51:legacy",
            "engine event_named 7773 cuStreamWaitEvent",
            "cuda cuStreamWaitEvent",
            "engine wait 7774 cuStreamWaitEvent 51:legacy",
            "engine event_seen 7774 cuEventElapsedTime",
            "engine event_seen 7775 cuEventElapsedTime",
            "cuda cuEventElapsedTime",
            "engine flush P cuIpcGetEventHandle -",
            "engine event_named 7776 cuIpcGetEventHandle",
            "cuda cuIpcGetEventHandle",
            "engine flush P cuGraphAddEventRecordNode -",
            "engine event_named 7777 cuGraphAddEventRecordNode",
            "cuda cuGraphAddEventRecordNode",
            "engine flush P cuGraphAddEventWaitNode -",
            "engine event_named 7778 cuGraphAddEventWaitNode",
            "cuda cuGraphAddEventWaitNode",
            "engine flush P cuGraphEventRecordNodeSetEvent -",
            "engine event_named 7779 cuGraphEventRecordNodeSetEvent",
            "cuda cuGraphEventRecordNodeSetEvent",
            "engine flush P cuGraphExecEventWaitNodeSetEvent -",
            "engine event_named 777a cuGraphExecEventWaitNodeSetEvent",
            "cuda cuGraphExecEventWaitNodeSetEvent",
            "engine flush P cuGraphAddNode_v2 -",
            "engine event_named 777b cuGraphAddNode_v2",
            "cuda cuGraphAddNode_v2",
            "engine flush P cuGraphExecNodeSetParams -",
            "engine event_named 777b cuGraphExecNodeSetParams",
            "cuda cuGraphExecNodeSetParams",
            "engine flush P cuGraphNodeSetParams -",
            "cuda cuGraphNodeSetParams",
            "engine flush P cuGraphKernelNodeSetAttribute -",
            "engine event_named 777c cuGraphKernelNodeSetAttribute",
            "cuda cuGraphKernelNodeSetAttribute",
            "engine event_named 777c cuLaunchKernelEx",
            "engine launch 1 f=f1 stream=51:legacy dims=0,0,0,0,0,0,0 attrs=1 params=0 extra=0",
            "cuda cuLaunchKernelEx",
            "engine event_goes 777d cuEventDestroy_v2",

            "engine flush P cuEventDestroy -",
            "engine event_goes 777e cuEventDestroy",
            "cuda cuEventDestroy",
            "engine drain"}));
}

TEST_F(Seam, EachKindOfCallDoesWhatTheTableSays) {
    EXPECT_EQ(
        Run("SEAM_PROBE", "kinds").Story(),
        (Strings{
            // A stream that is ready ends the step; one that is not flushes what the host
            // waits for.
            "engine flush S cuStreamQuery 51:legacy", "cuda cuStreamQuery",
            "engine step_end 51:legacy", "engine flush S cuStreamQuery 51:legacy",
            "cuda cuStreamQuery", "engine flush T cuStreamQuery 51:legacy",
            // An event that is ready costs nothing.
            "engine event_seen e cuEventQuery", "cuda cuEventQuery",
            "engine event_seen e cuEventQuery", "cuda cuEventQuery",
            "engine flush T cuEventQuery -",
            // What makes the host wait ends the step before it does.
            "engine flush T cuEventSynchronize -", "engine event_seen e cuEventSynchronize",
            "engine step_end -", "cuda cuEventSynchronize", "engine flush CT cuCtxSynchronize -",
            "engine step_end -", "cuda cuCtxSynchronize", "engine flush T cuMemcpyHtoD_v2 0:legacy",
            "engine step_end 0:legacy", "cuda cuMemcpyHtoD_v2",
            // Ends of lives: the engine forgets before the driver does.
            "engine flush P cuMemFree_v2 -", "engine memory_gone", "cuda cuMemFree_v2",
            "engine free 1000 51:legacy", "engine flush S cuMemFreeAsync 51:legacy",
            "cuda cuMemFreeAsync", "engine alloc_begins 64 51:legacy",
            "engine flush S cuMemAllocAsync 51:legacy", "cuda cuMemAllocAsync",
            "engine alloc_made 2000 64",
            // What shows memory, and what a deferred or reused block would show.
            "engine shows cuPointerGetAttribute", "cuda cuPointerGetAttribute",
            "engine shows cuPointerGetAttribute", "engine pool_numbers",
            "cuda cuPointerGetAttribute", "engine flush P cuMemPoolGetAttribute -",
            "cuda cuMemPoolGetAttribute", "engine flush P cuMemPoolGetAttribute -",
            "engine pool_watched 70", "cuda cuMemPoolGetAttribute",
            "engine flush P cuMemPoolCreate -", "cuda cuMemPoolCreate", "engine pool_made 70 3",
            "engine flush P cuMemPoolCreate -", "cuda cuMemPoolCreate",
            "engine flush P cuMemPoolExportToShareableHandle -", "engine pool_shared 70",
            "cuda cuMemPoolExportToShareableHandle", "engine flush P cuMemPoolDestroy -",
            "engine memory_gone", "engine pool_goes 70", "cuda cuMemPoolDestroy",
            "engine flush S cuStreamDestroy_v2 51:legacy", "engine stream_gone 51:legacy",
            "cuda cuStreamDestroy_v2", "engine flush P cuModuleUnload -", "engine code_gone",
            "cuda cuModuleUnload", "engine flush P cuDevicePrimaryCtxReset_v2 -",
            "engine context_gone", "cuda cuDevicePrimaryCtxReset_v2",
            "engine flush P cuCtxDestroy_v2 -", "engine context_gone", "engine context_goes c5",
            "cuda cuCtxDestroy_v2", "engine flush P cuCtxDestroy_v2 -", "engine context_gone",
            "engine context_goes c5", "cuda cuCtxDestroy_v2", "engine context_stays c5",
            "engine flush P cuCtxDestroy_v2 -", "engine context_gone", "engine context_goes bad",
            "cuda cuCtxDestroy_v2",
            // Handles are known from the call that made them.
            "engine flush P cuModuleGetFunction -", "cuda cuModuleGetFunction",
            "engine note_handle f1 function", "engine flush P cuLibraryGetKernel -",
            "cuda cuLibraryGetKernel", "engine note_handle e1 kernel",
            "engine flush P cuLibraryEnumerateKernels -", "cuda cuLibraryEnumerateKernels",
            "cuda cuLibraryGetKernelCount", "engine note_handle e2 kernel",
            "engine note_handle e3 kernel", "engine flush P cuKernelGetFunction -",
            "cuda cuKernelGetFunction", "engine note_handle f2 function",
            // Captures.
            "engine flush P cuStreamBeginCapture_v2 51:legacy", "engine capture_begins",
            "cuda cuStreamBeginCapture_v2", "engine capture_tried",
            "engine capture_began 51:legacy", "cuda cuStreamEndCapture",
            "engine capture_ended 51:legacy",
            // State that launches read; the old launch API; texture references.
            "engine flush P cuCtxSetLimit -", "cuda cuCtxSetLimit", "engine function_changed 0",
            "engine limits_changed", "engine flush P cuLaunchGrid -", "engine taint f1",
            "cuda cuLaunchGrid", "engine flush P cuModuleGetTexRef -", "engine taint 0",
            "cuda cuModuleGetTexRef", "engine flush T cuGraphLaunch 51:legacy",
            "cuda cuGraphLaunch",
            // Getters: the engine decides whether one flushes, or it passes.
            "engine getter cuCtxGetLimit", "cuda cuCtxGetLimit", "cuda cuModuleGetLoadingMode",
            // The stream is the eighth argument and lies on the stack.
            "engine flush S cuMemcpyBatchAsync_v2 52:legacy", "cuda cuMemcpyBatchAsync_v2",
            // What allocates, changes a stream or loads code comes behind everything it may see.
            "engine flush P cuMemAlloc_v2 -", "cuda cuMemAlloc_v2",
            "engine flush S cuStreamCopyAttributes 51:legacy", "cuda cuStreamCopyAttributes",
            "engine stream_changed 51:legacy", "engine flush P cuLibraryGetModule -",
            "cuda cuLibraryGetModule", "engine flush P cuModuleEnumerateFunctions -",
            "cuda cuModuleEnumerateFunctions", "cuda cuModuleGetFunctionCount",
            "engine flush P cuGraphicsMapResources -",
            "engine defer_off a graphics API shares memory with the program",
            "cuda cuGraphicsMapResources", "engine drain"}));
}

TEST_F(Seam, OnlyTheLastReleaseOfAPrimaryContextEndsIt) {
    const Strings retained = {"cuda cuDevicePrimaryCtxGetState", "cuda cuDevicePrimaryCtxRetain"};
    const Strings made = {"cuda cuDevicePrimaryCtxGetState",
                          "engine flush P cuDevicePrimaryCtxRetain -",
                          "cuda cuDevicePrimaryCtxRetain"};
    const Strings kept = {"cuda cuDevicePrimaryCtxRelease_v2", "cuda cuDevicePrimaryCtxGetState"};
    const Strings goes = {"engine flush P cuDevicePrimaryCtxRelease_v2 -", "engine context_gone",
                          "cuda cuDevicePrimaryCtxRelease_v2", "cuda cuDevicePrimaryCtxGetState"};
    const Strings ends = {"engine flush P cuDevicePrimaryCtxRelease -", "engine context_gone",
                          "cuda cuDevicePrimaryCtxRelease", "cuda cuDevicePrimaryCtxGetState"};
    const Strings buried = {"engine context_ended c1"};
    const Strings reset = {"engine flush P cuDevicePrimaryCtxReset_v2 -", "engine context_gone",
                           "cuda cuDevicePrimaryCtxReset_v2"};
    Strings expected;
    for (const Strings &part :
         {retained, kept, made, retained, kept, ends, retained, kept, buried, made, retained, reset,
          goes, retained, kept, kept, Strings{"engine drain"}})
        expected.insert(expected.end(), part.begin(), part.end());
    EXPECT_EQ(Run("SEAM_PROBE", "primaries").Story(), expected);
}

TEST_F(Seam, OnlyTheFirstTouchOfAFunctionIsABarrier) {
    Outcome outcome = Run("SEAM_PROBE", "touches");
    EXPECT_EQ(outcome.Count("engine flush P cuFuncGetAttribute -"), 4);
    EXPECT_EQ(outcome.CountBeginning("cuda cuFuncGetAttribute"), 6);
    EXPECT_EQ(outcome.CountBeginning("engine flush P cuOccupancy"), 0);
}

Strings About(const Outcome &outcome, const std::string &beginning) {
    Strings found;
    for (const std::string &line : outcome.log)
        if (line.rfind(beginning, 0) == 0)
            found.push_back(line.substr(strlen("engine ")));
    return found;
}

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

TEST_F(Seam, SettingTheSameValueAgainIsNoChange) {
    Outcome outcome = Run("SEAM_PROBE", "settings");
    EXPECT_EQ(outcome.CountBeginning("cuda cuFuncSetAttribute"), 104);
    EXPECT_EQ(outcome.Count("engine flush P cuFuncSetAttribute -"), 5);
    EXPECT_EQ(outcome.Count("engine function_changed f1"), 2);
    EXPECT_EQ(outcome.Count("engine function_changed f2"), 1);
    EXPECT_EQ(outcome.Count("engine function_changed f3"), 0);
    EXPECT_EQ(outcome.Count("engine flush P cuKernelSetAttribute -"), 2);
    EXPECT_EQ(outcome.Count("engine function_changed e1"), 2);
    EXPECT_EQ(outcome.Count("engine flush S cuStreamSetAttribute 51:legacy"), 2);
    EXPECT_EQ(outcome.Count("engine flush S cuStreamSetAttribute 0:legacy"), 2);
    EXPECT_EQ(outcome.Count("engine stream_changed 51:legacy"), 2);
    EXPECT_EQ(outcome.Count("engine stream_changed 0:legacy"), 2);
}

TEST_F(Seam, MemoryThatRanOutIsGivenBackAndAskedForOnceMore) {
    Outcome outcome = Run("SEAM_PROBE", "out_of_memory", {{"SEAM_GIVES_BACK", "1"}});
    EXPECT_EQ(outcome.Count("engine give_memory_back"), 1) << "for no other error";
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemAlloc_v2"), 4);
    outcome = Run("SEAM_PROBE", "out_of_memory");
    EXPECT_EQ(outcome.Count("engine give_memory_back"), 1);
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemAlloc_v2"), 3) << "there was nothing to give";
}

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
    EXPECT_EQ(Run("SEAM_PROBE", "profiler", {{"CUSPLICE_PROFILE", "ignore"}})
                  .CountBeginning("engine profiling"),
              0);
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
    size_t init = std::find(outcome.log.rbegin(), outcome.log.rend(), "cuda cuInit 0").base() -
                  outcome.log.begin();
    EXPECT_LE(init, first) << "not by the calls before the second cuInit";
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
