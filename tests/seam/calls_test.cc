// Promise: each kind of call does what the table says: what comes before it, what the engine is
// told, and what the program gets. The probes are in probe_calls.c.

#include <string>

#include <gtest/gtest.h>

#include "tests/seam/seam.h"

namespace {

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

} // namespace
