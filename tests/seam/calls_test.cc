// Promise: each kind of call does what the table says: what comes before it, what the engine is
// told, and what the program gets. The probes are in probe_calls.c.

#include <string>

#include <gtest/gtest.h>

#include "tests/seam/seam.h"

namespace {

// Records may be deferred. Every other call that names an event comes behind its deferred record;
// behind some of them, no record of it is deferred any more.
TEST_F(Seam, CallsThatNameAnEventComeBehindItsRecord) {
    Outcome outcome = Run("SEAM_PROBE", "events");
    EXPECT_EQ(outcome.handshake, (Strings{"there", "loaded", "on", "exit 4 0"}));
    EXPECT_EQ(
        outcome.Story(),
        (Strings{
            "engine flush T cuEventQuery -",
            "engine failed 600",
            "cuda cuEventCreate",
            "engine event_made 7771",
            "cuda cuEventCreate",
            "engine record_begins 7771 cuEventRecord 51:legacy flags 0",
            "engine record 7771 51:legacy",
            "engine record_begins 7771 cuEventRecordWithFlags 51:legacy flags 0",
            "engine record 7771 51:legacy with_flags",
            "engine record_begins 7771 cuEventRecordWithFlags 51:legacy flags 1",
            "engine flush_event 0",
            "engine flush S cuEventRecordWithFlags 51:legacy",
            "cuda cuEventRecordWithFlags",
            "engine recorded 7771",
            "engine record_begins 8881 cuEventRecord 51:legacy flags 0",
            "engine flush_event 8881",
            "engine flush S cuEventRecord 51:legacy",
            "cuda cuEventRecord",
            "engine recorded 8881",
            "engine wait 7772 cuStreamWaitEvent 51:legacy refused",
            "engine flush_event 7772",
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
            "engine record_begins 7770 cuEventRecordWithFlags_ptsz 0:ptsz flags 1",
            "engine flush_event 0",
            "engine flush S cuEventRecordWithFlags_ptsz 0:ptsz",
            "cuda cuEventRecordWithFlags_ptsz",
            "engine recorded 7770",
            "engine event_seen 7770 cuEventElapsedTime_v2",
            "engine event_seen 7775 cuEventElapsedTime_v2",
            "cuda cuEventElapsedTime_v2",
            "engine flush P cuGraphAddNode -",
            "engine event_named 7779 cuGraphAddNode",
            "cuda cuGraphAddNode",
            "engine flush P cuGraphNodeSetParams -",
            "engine event_named 7779 cuGraphNodeSetParams",
            "cuda cuGraphNodeSetParams",
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
            "engine flush P cuGraphKernelNodeSetAttribute -",
            "engine event_named 777a cuGraphKernelNodeSetAttribute",
            "cuda cuGraphKernelNodeSetAttribute",
            "engine flush P cuGraphKernelNodeSetAttribute -",
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
            "engine step_end 51:legacy", "engine take_error cuStreamQuery 51:legacy",
            "engine flush S cuStreamQuery 51:legacy", "cuda cuStreamQuery",
            "engine flush T cuStreamQuery 51:legacy", "engine failed 600",
            // An event that is ready costs nothing.
            "engine event_seen e cuEventQuery", "cuda cuEventQuery",
            "engine event_seen e cuEventQuery", "cuda cuEventQuery",
            "engine flush T cuEventQuery -", "engine failed 600",
            // What makes the host wait ends the step before it does.
            "engine flush T cuEventSynchronize -", "engine event_seen e cuEventSynchronize",
            "engine step_end -", "cuda cuEventSynchronize", "engine wait_took -",
            "engine take_error cuEventSynchronize -", "engine flush CT cuCtxSynchronize -",
            "engine step_end -", "engine wait_begins", "cuda cuCtxSynchronize",
            "engine wait_took -", "engine wait_ended 1", "engine pool_waited 1",
            "engine take_error cuCtxSynchronize -", "engine flush T cuMemcpyHtoD_v2 0:legacy",
            "engine step_end 0:legacy", "engine copying 1", "cuda cuMemcpyHtoD_v2",
            "engine wait_took 0:legacy", "engine copying 0",
            "engine take_error cuMemcpyHtoD_v2 0:legacy",
            // Ends of lives: the engine forgets before the driver does.
            "engine flush P cuMemFree_v2 -", "engine memory_gone", "engine memory_going 1000",
            "engine pool_memory_gone 1000", "cuda cuMemFree_v2", "engine free 1000 51:legacy",
            "engine flush S cuMemFreeAsync 51:legacy", "engine memory_going 1000",
            "cuda cuMemFreeAsync", "engine alloc_begins 64 51:legacy",
            "engine flush S cuMemAllocAsync 51:legacy", "cuda cuMemAllocAsync",
            "engine memory_made 2000", "engine alloc_made 2000 64 51:legacy",
            // What shows memory, and what a deferred or reused block would show.
            "engine shows cuPointerGetAttribute", "cuda cuPointerGetAttribute",
            "engine shows cuPointerGetAttribute", "engine pool_numbers",
            "cuda cuPointerGetAttribute", "engine flush P cuMemPoolGetAttribute -",
            "cuda cuMemPoolGetAttribute", "engine flush P cuMemPoolGetAttribute -",
            "engine pool_watched 70", "cuda cuMemPoolGetAttribute",
            "engine flush P cuMemPoolCreate -", "cuda cuMemPoolCreate", "engine pool_made 70 3",
            "engine flush P cuMemPoolCreate -", "cuda cuMemPoolCreate", "engine failed 1",
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
            "engine failed 201", "engine flush P cuCtxDestroy_v2 -", "engine context_gone",
            "engine context_goes bad", "cuda cuCtxDestroy_v2", "engine failed 201",
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
            "engine flush P cuMemAlloc_v2 -", "cuda cuMemAlloc_v2", "engine memory_made 2000",
            "engine flush S cuStreamCopyAttributes 51:legacy", "cuda cuStreamCopyAttributes",
            "engine stream_changed 51:legacy", "engine flush P cuLibraryGetModule -",
            "cuda cuLibraryGetModule", "engine flush P cuModuleEnumerateFunctions -",
            "cuda cuModuleEnumerateFunctions", "cuda cuModuleGetFunctionCount",
            "engine note_handle f3 function", "engine note_handle f4 function",
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
    const Strings failed = {"engine failed 201"};
    const Strings functions = {"engine flush P cuFuncSetAttribute -", "cuda cuFuncSetAttribute",
                               "engine function_changed f1", "engine flush P cuFuncGetAttribute -",
                               "cuda cuFuncGetAttribute"};
    const Strings buried = {"engine context_ended c1"};
    const Strings reset = {"engine flush P cuDevicePrimaryCtxReset_v2 -", "engine context_gone",
                           "cuda cuDevicePrimaryCtxReset_v2"};
    Strings expected;
    for (const Strings &part : {retained,  kept,
                                made,      retained,
                                kept,      ends,
                                retained,  functions,
                                kept,      buried,
                                functions, made,
                                retained,  reset,
                                goes,      failed,
                                retained,  kept,
                                failed,    kept,
                                failed,    Strings{"engine drain"}})
        expected.insert(expected.end(), part.begin(), part.end());
    EXPECT_EQ(Run("SEAM_PROBE", "primaries").Story(), expected);
}

TEST_F(Seam, OnlyTheFirstTouchOfAFunctionIsABarrier) {
    Outcome outcome = Run("SEAM_PROBE", "touches");
    EXPECT_EQ(outcome.Count("engine flush P cuFuncGetAttribute -"), 4);
    EXPECT_EQ(outcome.CountBeginning("cuda cuFuncGetAttribute"), 7);
    EXPECT_EQ(outcome.CountBeginning("engine flush P cuOccupancy"), 0);
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

// For each call of the function, F if a flush of its own comes before it, else a dot.
std::string Flushes(const Outcome &outcome, const std::string &call) {
    const std::string flush = "engine flush ";
    std::string found, last;
    for (const std::string &line : outcome.log) {
        if (line.rfind("cuda " + call + " ", 0) == 0)
            found += last.rfind(flush, 0) == 0 && last.find(" " + call + " ") != std::string::npos
                         ? 'F'
                         : '.';
        last = line;
    }
    return found;
}

TEST_F(Seam, AnotherFunctionAttributeValueOrPlaceIsAChange) {
    Outcome outcome = Run("SEAM_PROBE", "settings_of_functions");
    EXPECT_EQ(Flushes(outcome, "cuFuncSetAttribute"), "F.FFFFFF.");
    EXPECT_EQ(Flushes(outcome, "cuFuncSetCacheConfig"), "F.F");
    EXPECT_EQ(Flushes(outcome, "cuFuncSetSharedMemConfig"), "F");
    EXPECT_EQ(Flushes(outcome, "cuKernelSetCacheConfig"), "F.F");
    EXPECT_EQ(Flushes(outcome, "cuKernelSetAttribute"), "F.FFF.");
    EXPECT_EQ(outcome.Count("engine function_changed f1"), 9) << "one of the calls fails";
    EXPECT_EQ(outcome.Count("engine function_changed e1"), 6);
}

TEST_F(Seam, TheBytesOfAStreamsAttributeAloneAreCompared) {
    // Five attributes, an unknown one, other streams, copies, equal values, failures.
    EXPECT_EQ(Flushes(Run("SEAM_PROBE", "settings_of_streams"), "cuStreamSetAttribute"),
              "FF.FFF.FFF.FFF.FFF.FFFFF"
              "FFF."
              "F.."
              "FF"
              "FF");
}

TEST_F(Seam, MemoryThatRanOutIsGivenBackAndAskedForOnceMore) {
    Outcome outcome = Run("SEAM_PROBE", "out_of_memory", {{"SEAM_GIVES_BACK", "1"}});
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemAlloc_v2"), 4);
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemCreate"), 2);
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemAllocFromPoolAsync "), 2);
    outcome = Run("SEAM_PROBE", "out_of_memory");
    EXPECT_EQ(outcome.CountBeginning("cuda cuMemAlloc_v2"), 3) << "there was nothing to give";
    // For no other error. Pitch and height are the driver's to choose.
    Strings wanted;
    for (const char *bytes : {"66", "0", "68", "69", "70", "71", "72"})
        wanted.push_back(std::string("give_memory_back ") + bytes);
    EXPECT_EQ(About(outcome, "engine give_memory_back"), wanted);
}

TEST_F(Seam, WhatIsAllocatedIsKnownAndWhatCannotFitIsNotAskedFor) {
    Strings expected = {"engine flush P cuMemAlloc_v2 -",
                        "engine failed 2",
                        "engine flush P cuMemAlloc_v2 -",
                        "cuda cuMemAlloc_v2",
                        "engine flush P cuMemAllocManaged -",
                        "cuda cuMemAllocManaged",
                        "engine flush P cuMemAlloc_v2 -",
                        "cuda cuMemAlloc_v2",
                        "engine memory_made 9000",
                        "engine flush P cuMemAllocPitch_v2 -",
                        "cuda cuMemAllocPitch_v2",
                        "engine memory_made 9000",
                        "engine flush P cuMemAlloc_v2 -",
                        "cuda cuMemAlloc_v2",
                        "engine failed 1"};
    const struct {
        const char *call, *taken;
    } rooms[] = {
        {"cuStreamCreate", "engine room_taken by a stream"},
        {"cuStreamCreateWithPriority", "engine room_taken by a stream"},
        {"cuGraphInstantiate", "engine room_taken by a graph"},
        {"cuGraphInstantiate_v2", "engine room_taken by a graph"},
        {"cuGraphInstantiateWithFlags", "engine room_taken by a graph"},
        {"cuGraphInstantiateWithParams", "engine room_taken by a graph"},
        {"cuGraphInstantiateWithParams_ptsz", "engine room_taken by a graph"},
        {"cuStreamCreate", "engine failed 1"},
    };
    for (const auto &room : rooms)
        for (const std::string &line : {std::string("engine flush P ") + room.call + " -",
                                        std::string("cuda ") + room.call, std::string(room.taken)})
            expected.push_back(line);
    expected.push_back("engine drain");
    EXPECT_EQ(Run("SEAM_PROBE", "allocations").Story(), expected);
}

TEST_F(Seam, StreamOrderedMemoryIsFlushedForOnlyWhereTheEngineSaysSo) {
    const Strings asks = {"engine alloc_begins 768 51:legacy",
                          "engine flush S cuMemAllocAsync 51:legacy", "cuda cuMemAllocAsync"};
    const Strings again = {"cuda cuMemAllocAsync"},
                  back = {"engine give_memory_back 768", "cuda cuMemAllocAsync", "engine failed 2"};
    Strings expected;
    for (const Strings &part :
         {Strings{
              // Memory that was freed, memory that may come early, and pools.
              "engine alloc_begins 256 51:legacy", "engine alloc_begins 512 51:legacy",
              "cuda cuMemAllocAsync", "engine memory_made 7100",
              "engine alloc_made 7100 512 51:legacy", "engine alloc_begins 768 51:legacy of a pool",
              "engine flush S cuMemAllocFromPoolAsync 51:legacy", "cuda cuMemAllocFromPoolAsync",
              "engine memory_made 9000", "engine alloc_made 9000 768 51:legacy of a pool",
              "engine alloc_begins 768 0:ptsz of a pool",
              "engine flush S cuMemAllocFromPoolAsync_ptsz 0:ptsz",
              "cuda cuMemAllocFromPoolAsync_ptsz", "engine memory_made 9000",
              "engine alloc_made 9000 768 0:ptsz of a pool",
              // Without a place for the address, and of no bytes.
              "engine flush S cuMemAllocAsync 51:legacy", "cuda cuMemAllocAsync",
              "engine flush S cuMemAllocAsync 51:legacy", "cuda cuMemAllocAsync",
              "engine memory_made 9000", "engine alloc_made 9000 0 51:legacy",
              // Frees: one that may come early, a deferred one, any other.
              "engine free 7200 51:legacy", "engine memory_going 7200", "cuda cuMemFreeAsync",
              "engine free 7100 51:legacy", "engine free 7300 51:legacy",
              "engine flush S cuMemFreeAsync 51:legacy", "engine memory_going 7300",
              "cuda cuMemFreeAsync"},
          // An error is told. Out of memory: deferred frees are made, then graphs are given back.
          asks, Strings{"engine failed 1"}, asks,
          Strings{"engine alloc_failed cuMemAllocAsync frees"}, again, back, asks,
          Strings{"engine alloc_failed cuMemAllocAsync"}, back,
          Strings{"engine flush P cuMemFree_v2 -", "engine memory_gone", "engine memory_going 1000",
                  "engine pool_memory_gone 1000", "cuda cuMemFree_v2", "engine drain"}})
        expected.insert(expected.end(), part.begin(), part.end());
    EXPECT_EQ(Run("SEAM_PROBE", "stream_memory", {{"SEAM_GIVES_BACK", "1"}}).Story(), expected);
}

TEST_F(Seam, AWaitThatFailsEndsNothing) {
    EXPECT_EQ(Run("SEAM_PROBE", "waits_that_fail").Story(),
              (Strings{"engine flush CT cuCtxSynchronize -",
                       "engine step_end -",
                       "engine wait_begins",
                       "cuda cuCtxSynchronize",
                       "engine wait_took -",
                       "engine failed 700",
                       "engine flush T cuMemcpyHtoD_v2 0:legacy",
                       "engine step_end 0:legacy",
                       "engine copying 1",
                       "cuda cuMemcpyHtoD_v2",
                       "engine wait_took 0:legacy",
                       "engine copying 0",
                       "engine failed 1",
                       "engine flush S cuStreamQuery 51:legacy",
                       "cuda cuStreamQuery",
                       "engine failed 700",
                       "engine flush P cuStreamBeginCapture_v2 51:legacy",
                       "engine capture_begins",
                       "cuda cuStreamBeginCapture_v2",
                       "engine capture_tried",
                       "engine failed 401",
                       "engine drain"}));
}

TEST_F(Seam, ALaunchThatRecordsAnEventComesBehindItsDeferredRecord) {
    EXPECT_EQ(About(Run("SEAM_PROBE", "launch_events"), "engine event_named"),
              (Strings{"event_named 7772 cuLaunchKernelEx", "event_named 7772 cuLaunchKernelEx",
                       "event_named 7773 cuLaunchKernelEx"}));
}

TEST_F(Seam, AnOpThatSucceedsBeforeAnyInitStartsTheLibrary) {
    Strings log;
    for (const std::string &line : Run("SEAM_PROBE", "cold_launch").log)
        log.push_back(line.substr(0, line.find(' ', 14)));
    const std::string op = "cuda cuMemsetD8Async", deferred = "engine memset dst=1000";
    EXPECT_EQ(log, (Strings{"cuda cuStreamSynchronize", op, "failed", op, "engine start 1",
                            deferred, op, "engine drain"}));
}

TEST_F(Seam, AnEventCallThatFailsChangesNothing) {
    EXPECT_EQ(Run("SEAM_PROBE", "events_that_fail").Story(),
              (Strings{"cuda cuEventCreate",
                       "engine failed 2",
                       "engine record_begins 8881 cuEventRecord 51:legacy flags 0",
                       "engine flush_event 8881",
                       "engine flush S cuEventRecord 51:legacy",
                       "cuda cuEventRecord",
                       "engine failed 700",
                       "engine wait 7772 cuStreamWaitEvent 51:legacy refused",
                       "engine flush_event 7772",
                       "engine flush S cuStreamWaitEvent 51:legacy",
                       "engine event_seen 7772 cuStreamWaitEvent",
                       "cuda cuStreamWaitEvent",
                       "engine failed 700",
                       "engine event_seen e cuEventQuery",
                       "cuda cuEventQuery",
                       "engine failed 700",
                       "engine event_seen 1 cuEventElapsedTime",
                       "engine event_seen 2 cuEventElapsedTime",
                       "cuda cuEventElapsedTime",
                       "engine flush T cuEventElapsedTime -",
                       "engine failed 600",
                       "engine drain"}));
}

// While the process rests, records, waits for events and questions are not seen, unless flags make
// them nodes of a graph. Waits of the host and graph launches count for the pace.
TEST_F(Seam, RestingLetsPassWhatNeedsNothing) {
    setenv("SEAM_RESTS", "1", 1);
    Strings story = Run("SEAM_PROBE", "rests").Story();
    unsetenv("SEAM_RESTS");
    EXPECT_EQ(story, (Strings{"engine event_seen e cuEventQuery",
                              "cuda cuEventQuery",
                              "engine flush T cuStreamSynchronize 51:legacy",
                              "engine step_end 51:legacy",
                              "engine tick cuStreamSynchronize",
                              "cuda cuStreamSynchronize",
                              "engine wait_took 51:legacy",
                              "engine take_error cuStreamSynchronize 51:legacy",
                              "rests",
                              "cuda cuEventRecord",
                              "cuda cuEventRecordWithFlags",
                              "engine wait_passes e 51:legacy",
                              "cuda cuStreamWaitEvent",
                              "cuda cuEventQuery",
                              "cuda cuStreamQuery",
                              "cuda cuEventElapsedTime",
                              "engine flush S cuStreamQuery 2:legacy",
                              "cuda cuStreamQuery",
                              "engine step_end 2:legacy",
                              "engine take_error cuStreamQuery 2:legacy",
                              "waits",
                              "engine tick cuStreamSynchronize",
                              "cuda cuStreamSynchronize",
                              "engine tick cuEventSynchronize",
                              "cuda cuEventSynchronize",
                              "engine tick cuCtxSynchronize",
                              "engine flush CT cuCtxSynchronize -",
                              "engine step_end -",
                              "engine wait_begins",
                              "cuda cuCtxSynchronize",
                              "engine wait_took -",
                              "engine wait_ended 1",
                              "engine pool_waited 1",
                              "engine take_error cuCtxSynchronize -",
                              "engine tick cuMemcpyHtoD_v2",
                              "engine flush T cuMemcpyHtoD_v2 0:legacy",
                              "engine step_end 0:legacy",
                              "engine copying 1",
                              "cuda cuMemcpyHtoD_v2",
                              "engine wait_took 0:legacy",
                              "engine copying 0",
                              "engine take_error cuMemcpyHtoD_v2 0:legacy",
                              "engine flush T cuGraphLaunch 51:legacy",
                              "engine tick cuGraphLaunch",
                              "cuda cuGraphLaunch",
                              "engine tick cuStreamSynchronize",
                              "engine flush T cuStreamSynchronize 2:legacy",
                              "engine step_end 2:legacy",
                              "cuda cuStreamSynchronize",
                              "engine wait_took 2:legacy",
                              "engine take_error cuStreamSynchronize 2:legacy",
                              "with flags",
                              "engine record_begins e cuEventRecordWithFlags 51:legacy flags 1",
                              "engine flush_event 0",
                              "engine flush S cuEventRecordWithFlags 51:legacy",
                              "cuda cuEventRecordWithFlags",
                              "engine recorded e",
                              "engine flush S cuStreamWaitEvent 51:legacy",
                              "engine event_named e cuStreamWaitEvent",
                              "cuda cuStreamWaitEvent",
                              "engine wait_passes e 51:legacy",
                              "cuda cuStreamWaitEvent",
                              "everything else",
                              "engine flush P cuMemFree_v2 -",
                              "engine memory_gone",
                              "engine memory_going 1000",
                              "engine pool_memory_gone 1000",
                              "cuda cuMemFree_v2",
                              "engine flush S cuStreamDestroy_v2 51:legacy",
                              "engine stream_gone 51:legacy",
                              "cuda cuStreamDestroy_v2",
                              "engine event_goes e cuEventDestroy_v2",
                              "cuda cuEventDestroy_v2",
                              "engine drain"}));
}

TEST_F(Seam, StateOfTheDeviceMakesEachFunctionNew) {
    Outcome outcome = Run("SEAM_PROBE", "state");
    EXPECT_EQ(outcome.Count("engine function_changed 0"), 7) << "the eighth call fails";
    EXPECT_EQ(outcome.Count("engine limits_changed"), 7);
    EXPECT_EQ(outcome.Count("engine pool_set"), 2);
    EXPECT_EQ(About(outcome, "engine pool_watched"),
              (Strings{"pool_watched 76", "pool_watched 78", "pool_watched 7a"}));
}

TEST_F(Seam, AListOfFunctionsHasNoMoreThanItHasRoomFor) {
    Outcome outcome = Run("SEAM_PROBE", "handles");
    EXPECT_EQ(
        About(outcome, "engine note_handle"),
        (Strings{"note_handle f3 function", "note_handle f3 function", "note_handle f4 function",
                 "note_handle f2 function", "note_handle f2 function", "note_handle f2 function"}));
    EXPECT_EQ(Flushes(outcome, "cuKernelGetFunction"), "FF.");
    Strings counted; // the first argument is an address
    for (const std::string &line : outcome.log)
        if (line.rfind("cuda cuModuleGetFunctionCount ", 0) == 0)
            counted.push_back(line.substr(line.find(' ', 32), 2));
    EXPECT_EQ(counted, Strings(4, " 3"));
}

TEST_F(Seam, WhoAsksForTheNumberOfAnAllocationIsGivenOne) {
    Strings story;
    for (const std::string &line : Run("SEAM_PROBE", "numbers").Story())
        if (line.rfind("engine pool_", 0) == 0 || line.rfind("ask", 0) == 0)
            story.push_back(line);
    EXPECT_EQ(story, (Strings{"asks", "engine pool_numbers", "engine pool_numbers", "asked",
                              "engine pool_numbers"}));
}

TEST_F(Seam, AResetOfThePrimaryContextLeavesNothingKnownAndTheEndOfAnotherOneDoes) {
    Outcome outcome = Run("SEAM_PROBE", "primary_ends");
    EXPECT_EQ(Flushes(outcome, "cuDevicePrimaryCtxRetain"), "F..");
    EXPECT_EQ(outcome.Count("engine context_goes c5"), 1);
    EXPECT_EQ(outcome.Count("engine flush P cuDevicePrimaryCtxRelease_v2 -"), 1)
        << "of two releases, the last";
}

TEST_F(Seam, AReleaseFromInsideTheDriverLeavesNothingKnown) {
    Outcome outcome = Run("SEAM_PROBE", "primary_inside");
    EXPECT_EQ(outcome.CountBeginning("cuda cuDevicePrimaryCtxRelease_v2"), 4);
    EXPECT_EQ(outcome.Count("engine flush P cuDevicePrimaryCtxRelease_v2 -"), 2);
    EXPECT_EQ(outcome.Count("engine context_gone"), 2);
}

} // namespace
