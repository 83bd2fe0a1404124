// Promise: with a driver that logs everything, ops are issued in program order within a stream and,
// for one thread, across streams. Errors come from the call that they belong to. If any graph call
// fails, each op still runs once.
#include "shim/api/api.h"
#include "tests/unit/stream/engine.h"
#include "tests/unit/stream/engines.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace {

TEST_F(Engine, RepeatedStepsRunInGraphs) {
    Steps(6);
    /* How many segments a step makes follows the host's pace. */
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    EXPECT_GE(built, 2);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 4 * built);
    EXPECT_EQ(driver().calls["cuLaunchKernel"], 2 * 12 + 12) << "two steps observed, one captured";
    EXPECT_EQ(driver().calls["cuGraphExecKernelNodeSetParams_v2"], 0);
    ExpectBalance();
}

TEST_F(Engine, ChangedScalarsArePatched) {
    Steps(6, 1);
    EXPECT_EQ(driver().calls["cuGraphExecKernelNodeSetParams_v2"], 3 * 12);
    ExpectBalance();
}

// The mode is only exchanged for calls that a capture may forbid (D2), as where a node is read.
TEST_F(Engine, APatchOfANodeThatWasReadChangesNoCaptureMode) {
    Steps(6, 1);
    fake::mode_exchanges = 0;
    int patched = driver().calls["cuGraphExecKernelNodeSetParams_v2"];
    Steps(2, 1);
    EXPECT_GT(driver().calls["cuGraphExecKernelNodeSetParams_v2"], patched);
    EXPECT_EQ(fake::mode_exchanges, 0);
}

TEST_F(Engine, FirstLaunchOfAFunctionIsTheProgramsOwnCall) {
    Launch(functions_[0], 1, 2);
    EXPECT_EQ(driver().calls["cuLaunchKernel"], 1);
    EXPECT_EQ(driver().calls["cuStreamBeginCapture_v2"], 0);
}

// An engine of its own: the list that is shown is that of the longest step.
class EngineWithAnEagerRule : public Engine {};

TEST_F(EngineWithAnEagerRule, CutsAndKeepsOrder) {
    CUfunction eager = fake::MakeFunction("eager_attention");
    for (int step = 0; step < 5; step++) {
        driver().journal.clear();
        for (int i = 0; i < 4; i++)
            Launch(functions_[i], i, 0);
        Launch(eager, 9, step);
        EXPECT_EQ(driver().journal.size(), 5u) << "the eager kernel is issued at once";
        EXPECT_EQ(driver().journal.back(), Line("eager_attention", 9, step));
        for (int i = 4; i < 12; i++)
            Launch(functions_[i], i, 0);
        Sync();
        EXPECT_EQ(driver().journal.size(), 13u);
    }
    char text[256];
    ASSERT_TRUE(cus_engine_segment_list(text, sizeof text));
    const std::string list = "[\"graph 4\", \"eager eager_attention\", \"graph 8\"]";
    EXPECT_EQ(text, list);
    EXPECT_TRUE(cus_engine_segment_list(text, list.size() + 1));
    EXPECT_EQ(text, list);
    EXPECT_FALSE(cus_engine_segment_list(text, list.size())) << "with its end it is longer";
    EXPECT_STREQ(text, "[]");
    cus_counters before = Counters();
    Launch(functions_[0], 0, 0);
    Launch(functions_[1], 1, 0);
    EXPECT_EQ(Counters().breaks[CUS_BREAK_RULE], before.breaks[CUS_BREAK_RULE]);
    EXPECT_EQ(Counters().runs, before.runs);
    Launch(eager, 9, 5);
    EXPECT_EQ(Counters().breaks[CUS_BREAK_RULE], before.breaks[CUS_BREAK_RULE] + 2);
    EXPECT_EQ(Counters().runs, before.runs + 2) << "what was deferred, and the kernel";
    Launch(eager, 9, 6);
    EXPECT_EQ(Counters().breaks[CUS_BREAK_RULE], before.breaks[CUS_BREAK_RULE] + 3);
    EXPECT_EQ(Counters().runs, before.runs + 3);
    Sync();
}

TEST_F(Engine, PrivateStreamIsNotTiedToTheLegacyOne) {
    static unsigned made;
    static decltype(driver().table.cuStreamCreateWithPriority) make;
    made = ~0u;
    make = driver().table.cuStreamCreateWithPriority;
    driver().table.cuStreamCreateWithPriority = [](CUstream *stream, unsigned flags, int priority) {
        made = flags;
        return make(stream, flags, priority);
    };
    stream_ = fake::MakeStream(CU_STREAM_DEFAULT);
    Steps(4);
    EXPECT_EQ(made, unsigned{CU_STREAM_NON_BLOCKING}) << "though the program's stream is";
}

// A capture of the program in the strictest mode: what would spoil it is done under the relaxed
// one, and the thread has its own mode again afterwards.
TEST_F(Engine, OwnCallsDisturbNoCapture) {
    fake::capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::set<std::string> disturbing;
    driver().fail = [&](const std::string &name) {
        if (fake::capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED && name != "cuLaunchKernel" &&
            name != "cuGraphLaunch" && name != "cuGraphExecKernelNodeSetParams_v2")
            disturbing.insert(name);
        return CUDA_SUCCESS;
    };
    Steps(6, 1);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&ref);
    EXPECT_GT(driver().calls["cuGraphExecDestroy"], 0);
    EXPECT_GT(driver().calls["cuStreamDestroy_v2"], 0);
    EXPECT_EQ(disturbing, std::set<std::string>{});
    EXPECT_EQ(fake::capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
}

TEST_F(Engine, StreamThatCapturesIsAskedNothingElse) {
    static CUstream capturing;
    static bool asked;
    capturing = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    asked = false;
    driver().table.cuStreamGetFlags = [](CUstream stream, unsigned *flags) {
        asked |= stream == capturing;
        *flags = fake::Of(stream)->flags;
        return CUDA_SUCCESS;
    };
    driver().table.cuStreamGetId = [](CUstream stream, unsigned long long *id) {
        asked |= stream == capturing;
        *id = fake::Of(stream)->id;
        return CUDA_SUCCESS;
    };
    fake::Of(capturing)->program_captures = true;
    fake::Launch(capturing, functions_[0], 100, 0);
    EXPECT_FALSE(asked);
    fake::Of(capturing)->program_captures = false;
    fake::Launch(capturing, functions_[0], 100, 0);
    EXPECT_TRUE(asked);
}

TEST_F(Engine, HandleThatIsKnownIsNotProbed) {
    static int failed;
    failed = 0;
    driver().table.cuKernelGetName = [](const char **, CUkernel) {
        failed++;
        return CUDA_ERROR_INVALID_HANDLE;
    };
    cus_engine_note_handle(functions_[0], CUS_HANDLE_FUNCTION);
    Launch(functions_[0], 100, 0);
    EXPECT_EQ(failed, 0);
    Launch(functions_[1], 101, 0);
    EXPECT_EQ(failed, 1) << "one probe of a handle from nowhere";
}

TEST_F(Engine, NoThreadIsCancelledWhileItIssues) {
    std::set<std::string> cancellable;
    bool own_calls = true; // of the program's
    driver().fail = [&](const std::string &name) {
        int state, unused;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        pthread_setcancelstate(state, &unused);
        if (state == PTHREAD_CANCEL_ENABLE && !(own_calls && name == "cuLaunchKernel"))
            cancellable.insert(name);
        return CUDA_SUCCESS;
    };
    Steps(6, 1);
    own_calls = false;
    Launch(functions_[0], 100, 0);
    Launch(functions_[1], 101, 0);
    Sync();
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&ref);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
    EXPECT_GT(driver().calls["cuStreamDestroy_v2"], 0);
    EXPECT_EQ(cancellable, std::set<std::string>{});
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE) << "as it was";
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
}

TEST_F(Engine, ErrorBelongsToItsCall) {
    Steps(4);
    EXPECT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    EXPECT_EQ(Launch(functions_[1], 101, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Launch(functions_[1], 101, 0, 1, 2048), CUDA_ERROR_INVALID_VALUE);
    Sync();
    ExpectBalance();
    Steps(4);
}

TEST_F(Engine, NothingIsDeferredWhileTheProgramCaptures) {
    Steps(4);
    fake::Of(stream_)->program_captures = true;
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_EQ(driver().journal.size(), 1u);
    fake::Of(stream_)->program_captures = false;
    Sync();
    Steps(4);
}

TEST_F(Engine, OpenCaptureElsewhereInTheContextStopsDeferring) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    fake::Of(other)->program_captures = true;
    cus_engine_capture_began(&ref);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_EQ(driver().journal.size(), 1u);
    fake::Of(other)->program_captures = false;
    Sync();
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty()) << "replay resumes once it ended, however it ended";
    Sync();
}

// A stream that goes in the midst of its capture ends that one alone.
TEST_F(Engine, ACaptureThatGoesWithItsStreamLeavesTheOther) {
    CUstream goes = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream stays = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    for (CUstream stream : {goes, stays}) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        fake::Of(stream)->program_captures = true;
        cus_engine_capture_began(&ref);
    }
    cus_stream_ref gone = {goes, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&gone);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_EQ(driver().journal.size(), 1u) << "the other one is still open";
    fake::Of(stays)->program_captures = false;
    Sync();
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    Sync();
}

// Each graph call fails once, at each occurrence in turn: the ops run all the same, once, in order,
// with their own params.
class EngineFaults : public Engine, public ::testing::WithParamInterface<const char *> {};

TEST_P(EngineFaults, OpsRunOnceInOrder) {
    for (int nth = 0; nth < 14; nth++) {
        int seen = 0;
        driver().fail = [&](const std::string &name) {
            return name == GetParam() && seen++ == nth ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        };
        Steps(8, 1);
        driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
        if (HasFatalFailure())
            FAIL() << GetParam() << " failing at call " << nth;
        cus_engine_code_gone();
    }
    ExpectBalance();
}

INSTANTIATE_TEST_SUITE_P(Calls, EngineFaults,
                         ::testing::Values("cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                           "cuStreamGetCaptureInfo_v3",
                                           "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                                           "cuGraphExecKernelNodeSetParams_v2",
                                           "cuStreamCreateWithPriority"));

// Two threads begin at the same moment: each looked for the other before there was anything. From
// then on what has returned in one thread goes before what the other asks for.
TEST_F(Hold, LegacyWorkThatBeganMeanwhileGoesFirst) {
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    for (CUstream on : {CU_STREAM_LEGACY, blocking})
        for (int round = 0; round < 6; round++) {
            for (int i = 0; i < 12; i++)
                fake::Launch(on, functions_[i], 100 + i, 0);
            fake::Sync(on);
        }
    driver().journal.clear();
    static std::function<void()> meanwhile;
    static CUstream where;
    where = blocking;
    meanwhile = [&] {
        std::thread([&] { fake::Launch(CU_STREAM_LEGACY, functions_[0], 100, 0); }).join();
    };
    driver().table.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (stream == where && meanwhile)
            std::exchange(meanwhile, nullptr)();
        return CUDA_SUCCESS;
    };
    stream_ = blocking;
    Launch(functions_[0], 100, 0);
    ASSERT_TRUE(driver().journal.empty()) << "both are deferred";
    Launch(functions_[1], 101, 0);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{"L k0(1,100,0)"}));
    fake::Sync(blocking);
    ExpectBalance();
}

TEST_F(Engine, LateErrorIsAnsweredForByTheNextSync) {
    Steps(4);
    Launch(functions_[0], 100, 0);
    driver().fail = [](const std::string &name) {
        return name == "cuLaunchKernel" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
    };
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_T, &ref, 7);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
}

TEST_F(Engine, LateErrorGoesWithItsContext) {
    Steps(4);
    Launch(functions_[0], 100, 0);
    driver().fail = [](const std::string &name) {
        return name == "cuLaunchKernel" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
    };
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_T, &ref, 7);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    cus_engine_context_gone();
    EXPECT_EQ(cus_engine_take_error(nullptr, 0), CUDA_SUCCESS);
}

TEST_F(Engine, ChangedFunctionAttributeDropsItsExecs) {
    Steps(4);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    cus_engine_function_changed(functions_[2]);
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

TEST_F(Engine, StreamThatComesBackIsANewOne) {
    Steps(4);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&ref);
    fake::Of(stream_)->id = 4711;
    int launches = driver().calls["cuGraphLaunch"];
    Steps(2);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], launches) << "nothing of the old stream is replayed";
}

// So that no segment of what is learned there spans the call.
TEST_F(Engine, ACallThatNamesTheStreamCutsNoSegmentEver) {
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    uint64_t cut = Counters().cut_ops[CUS_ROW_cuStreamGetFlags];
    for (int step = 0; step < 8; step++) {
        for (int i = 0; i < 8; i++) {
            if (i == 2)
                cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuStreamGetFlags);
            Launch(functions_[i], 100 + i, 0);
        }
        Sync();
    }
    EXPECT_EQ(Counters().cut_ops[CUS_ROW_cuStreamGetFlags], cut);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
}

// Another thread meets it while the driver is asked about it, with no lock held.
TEST_F(Engine, StreamThatTwoThreadsMeetAtOnceIsOne) {
    static std::function<void()> meanwhile;
    static decltype(driver().table.cuStreamGetFlags) real;
    real = driver().table.cuStreamGetFlags;
    driver().table.cuStreamGetFlags = [](CUstream stream, unsigned *flags) {
        if (auto once = std::exchange(meanwhile, nullptr))
            once();
        return real(stream, flags);
    };
    meanwhile = [this] { std::thread([this] { Launch(functions_[0], 1, 2); }).join(); };
    stream_ = fake::MakeStream(CU_STREAM_DEFAULT);
    Launch(functions_[1], 1, 2);
    EXPECT_FALSE(meanwhile);
    EXPECT_EQ(engines_of(stream_), 1u);
}

TEST_F(Engine, ProfilerSeesOpsOneByOne) {
    Steps(4);
    cus_engine_profiling(true);
    int launches = driver().calls["cuGraphLaunch"];
    Steps(2);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], launches);
    cus_engine_profiling(false);
    Steps(2);
    EXPECT_GT(driver().calls["cuGraphLaunch"], launches);
}

TEST_F(Engine, FlushByRowIsCountedUnderTheRow) {
    Teach(stream_);
    uint64_t before = Counters().flushes[42];
    Launch(functions_[0], 100, 0);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 42);
    EXPECT_EQ(Counters().flushes[42], before + 1);
    EXPECT_EQ(driver().journal.back(), Line("k0", 100, 0));
}

TEST_F(Engine, ScopePReachesOpsOfOtherThreads) {
    Steps(4);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    std::thread([] { cus_engine_flush(CUS_SCOPE_P, nullptr, 3); }).join();
    EXPECT_EQ(driver().journal.size(), 1u);
}

// No graph comes of them, however well they repeat; steps that come later are learned all the same.
TEST_F(Engine, StepsOfOneLaunchAreLeftAlone) {
    cus_counters before = Counters();
    for (int i = 0; i < 20000; i++) {
        Launch(functions_[0], 1, 1);
        Sync();
        Sync(); // waits twice
    }
    cus_counters after = Counters();
    EXPECT_EQ(after.fallbacks[CUS_FALLBACK_DEMOTED] - before.fallbacks[CUS_FALLBACK_DEMOTED], 1u);
    uint64_t observed = after.eager_by[CUS_EAGER_OBSERVING] - before.eager_by[CUS_EAGER_OBSERVING];
    EXPECT_LT(observed, 5000u);
    for (int step = 0; step < 400; step++) {
        for (CUfunction f : functions_)
            Launch(f, 1, 1);
        Sync();
    }
    EXPECT_GT(Counters().in_graphs, after.in_graphs);
    ExpectBalance();
}

// Each second launch is on the eager list, so no segment has two ops; the steps repeat all the
// same.
TEST_F(Engine, StepsWithoutSegmentsAreLeftAloneSoon) {
    CUfunction eager = fake::MakeFunction("eager_attention");
    cus_counters before = Counters();
    for (int step = 0; step < 250; step++) {
        for (int i = 0; i < 100; i++) {
            Launch(functions_[i % 12], i, 0);
            Launch(eager, 9, step);
        }
        Sync();
    }
    cus_counters after = Counters();
    EXPECT_EQ(after.in_graphs, before.in_graphs);
    EXPECT_GT(after.fallbacks[CUS_FALLBACK_DEMOTED], before.fallbacks[CUS_FALLBACK_DEMOTED]);
    uint64_t passed =
        after.eager_by[CUS_EAGER_PASSTHROUGH] - before.eager_by[CUS_EAGER_PASSTHROUGH];
    EXPECT_GT(passed, 25000u) << "of 50,000";
    ExpectBalance();
}

TEST_F(Engine, LaunchesThatNeverRepeatAreLeftAlone) {
    unsigned random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        Launch(functions_[(random >> 16) % 12], i, i);
        if (i % 1000 == 999)
            Sync();
    }
    EXPECT_GE(Counters().fallbacks[CUS_FALLBACK_DEMOTED], 1u);
    ExpectBalance();
}

} // namespace
