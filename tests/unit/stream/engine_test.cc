// Promise: with a driver that logs everything, ops are issued in program order within a stream and,
// for one thread, across streams. Errors come from the call that they belong to. If any graph call
// fails, each op still runs once.
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace {

using fake::Counters;
using fake::driver;
using fake::ExpectBalance;

class Engine : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        if (std::exchange(started_, true))
            return;                               // of a suite that is derived from this one
        setenv("CUSPLICE_HOLD_US", "1000000", 1); // the watchdog has a test of its own
        setenv("CUSPLICE_SEGMENT_MAX", "4", 1);   // the same segments at any pace of the host
        setenv("CUSPLICE_EAGER", "eager_*", 1);
        fake::Reset();
        ASSERT_TRUE(cus_engine_start(&driver().table));
    }

    static inline bool started_ = false;

    void TearDown() override {
        ProgramTest::TearDown();
        // What ran on per-thread streams, which nobody else can ask, is over.
        cus_engine_wait_ended(cus_engine_wait_begins());
    }

    using ProgramTest::Launch;
    CUresult Launch(CUfunction f, uint64_t a, uint32_t b, unsigned grid = 1, unsigned block = 32) {
        return fake::Issue(fake::Call(stream_, f, a, b, grid, block).launch);
    }

    // The same steps on any stream, unchecked.
    void Teach(CUstream on) {
        for (int step = 0; step < 6; step++) {
            for (int i = 0; i < 12; i++)
                fake::Launch(on, functions_[i], 100 + i, 0);
            fake::Sync(on);
        }
        driver().journal.clear();
    }
};

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

TEST_F(Engine, FirstLaunchOfAFunctionIsTheProgramsOwnCall) {
    Launch(functions_[0], 1, 2);
    EXPECT_EQ(driver().calls["cuLaunchKernel"], 1);
    EXPECT_EQ(driver().calls["cuStreamBeginCapture_v2"], 0);
}

TEST_F(Engine, EagerRuleCutsAndKeepsOrder) {
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
    EXPECT_STREQ(text, "[\"graph 4\", \"eager eager_attention\", \"graph 8\"]");
}

TEST_F(Engine, OpOnAnotherStreamIssuesWhatThisThreadDeferred) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    fake::Launch(other, functions_[1], 5, 5);
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
}

TEST_F(Engine, LegacyStreamOrdersAgainstBlockingOnesBothWays) {
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    stream_ = blocking;
    Steps(4);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    std::thread([&] { fake::Launch(nullptr, functions_[1], 5, 5); }).join();
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
    EXPECT_EQ(driver().journal[1], "L k1(1,5,5)");
}

TEST_F(Engine, NonBlockingStreamIsNotTiedToTheLegacyOne) {
    Steps(4);
    driver().journal.clear();
    Launch(functions_[0], 100, 0);
    std::thread([&] { fake::Launch(nullptr, functions_[1], 5, 5); }).join();
    ASSERT_EQ(driver().journal.size(), 1u);
    EXPECT_EQ(driver().journal[0], "L k1(1,5,5)");
}

TEST_F(Engine, PerThreadStreamsDeferNothing) {
    for (int step = 0; step < 6; step++) {
        driver().journal.clear();
        for (int i = 0; i < 12; i++)
            fake::Launch(CU_STREAM_PER_THREAD, functions_[i], i, 0);
        EXPECT_EQ(driver().journal.size(), 12u) << "before the synchronise, too";
        fake::Sync(CU_STREAM_PER_THREAD);
        EXPECT_EQ(driver().calls["cuGraphLaunch"], 0);
    }
}

TEST_F(Engine, PerThreadStreamGoesBehindTheLegacyOne) {
    Teach(CU_STREAM_LEGACY);
    fake::Launch(CU_STREAM_LEGACY, functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    std::thread([&] { fake::Launch(CU_STREAM_PER_THREAD, functions_[1], 5, 5); }).join();
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], "L k0(1,100,0)");
}

TEST_F(Engine, NullAndTheLegacyHandleAreOneStream) {
    Teach(CU_STREAM_LEGACY);
    fake::Launch(CU_STREAM_LEGACY, functions_[0], 100, 0);
    fake::Launch(nullptr, functions_[1], 101, 0);
    fake::Launch(CU_STREAM_LEGACY, functions_[2], 102, 0, 1, CUS_ABI_PTSZ);
    EXPECT_TRUE(driver().journal.empty()) << "the steps taught are followed";
    fake::Launch(nullptr, functions_[3], 103, 0, 1, CUS_ABI_PTSZ);
    EXPECT_EQ(driver().journal.size(), 4u) << "the stream of the thread is another one";
}

TEST_F(Engine, CallOnOneSideOfLegacyOrderIssuesWhatTheOtherDefers) {
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    Teach(CU_STREAM_LEGACY);
    Teach(blocking);
    for (bool legacy : {true, false}) {
        CUstream on = legacy ? CU_STREAM_LEGACY : blocking;
        cus_stream_ref named = {legacy ? blocking : CU_STREAM_LEGACY, CUS_ABI_LEGACY};
        driver().journal.clear();
        fake::Launch(on, functions_[0], 100, 0);
        EXPECT_TRUE(driver().journal.empty());
        std::thread([&] { cus_engine_flush(CUS_SCOPE_S, &named, 5); }).join();
        EXPECT_EQ(driver().journal.size(), 1u);
        fake::Sync(on);
    }
}

TEST_F(Engine, SyncOfAnotherStreamIssuesWhatThisThreadDeferred) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[1], 5, 5);
    Teach(stream_);
    Launch(functions_[0], 100, 0);
    EXPECT_TRUE(driver().journal.empty());
    fake::Sync(other);
    EXPECT_EQ(driver().journal.size(), 1u);
}

TEST_F(Engine, SyncByAnotherThreadEndsNoStep) {
    Launch(functions_[0], 100, 0);
    uint64_t steps = Counters().steps;
    std::thread([&] { Sync(); }).join();
    EXPECT_EQ(Counters().steps, steps);
    Sync();
    EXPECT_EQ(Counters().steps, steps + 1);
}

TEST_F(Engine, PrivateStreamIsNotTiedToTheLegacyOne) {
    static unsigned made;
    made = ~0u;
    driver().table.cuStreamCreateWithPriority = [](CUstream *stream, unsigned flags, int) {
        made = flags;
        *stream = fake::MakeStream(flags);
        return CUDA_SUCCESS;
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

// ---- what the program itself says (shim/include/cusplice.h) ----

TEST_F(Engine, NothingOfASuspendedThreadIsDeferred) {
    Teach(stream_);
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    ASSERT_TRUE(driver().journal.empty()) << "deferred";
    cus_engine_suspend(true);
    cus_engine_suspend(true);
    cus_engine_force_break(CUS_CAUSE_APP);
    EXPECT_EQ(driver().journal, std::vector<std::string>{Line("k0", 100, 0)});
    uint64_t passed = Counters().eager_by[CUS_EAGER_PASSTHROUGH];
    cus_engine_suspend(false);
    for (int i = 1; i < 4; i++) {
        ASSERT_EQ(Launch(functions_[i], 100 + i, 0), CUDA_SUCCESS);
        EXPECT_EQ(driver().journal.size(), size_t(1 + i));
    }
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_PASSTHROUGH] - passed, 3u);
    cus_engine_suspend(false);
    cus_engine_suspend(false); // one too many
    Sync();
    driver().journal.clear();
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    EXPECT_TRUE(driver().journal.empty()) << "deferred again";
    Sync();
    ExpectBalance();
}

TEST_F(Engine, OpsOfASuspendedThreadGoBehindWhatOthersDefer) {
    Teach(stream_);
    std::thread([&] {
        ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
        ASSERT_TRUE(driver().journal.empty());
    }).join();
    cus_engine_suspend(true);
    ASSERT_EQ(Launch(functions_[5], 1, 2), CUDA_SUCCESS);
    cus_engine_suspend(false);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k5", 1, 2)}));
}

TEST_F(Engine, AForcedBreakEndsTheRun) {
    Teach(stream_);
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    ASSERT_EQ(Launch(functions_[1], 101, 0), CUDA_SUCCESS);
    uint64_t before = Counters().flushes[CUS_CAUSE_APP];
    cus_engine_force_break(CUS_CAUSE_APP);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0)}));
    EXPECT_EQ(Counters().flushes[CUS_CAUSE_APP] - before, 1u);
}

TEST_F(Engine, AMarkEndsAStepWithoutAWait) {
    uint64_t steps = Counters().steps;
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < 12; i++)
            ASSERT_EQ(Launch(functions_[i], 100 + i, 0), CUDA_SUCCESS);
        cus_engine_force_break(CUS_CAUSE_APP);
        cus_engine_step_end(nullptr);
    }
    EXPECT_EQ(Counters().steps - steps, 6u);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
    ExpectBalance();
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

// The hot path alone: what it takes, and what it leaves to the long way without a trace.
class Hold : public Engine {
  public:
    bool Try(int i, uint64_t a, uint32_t b, CUstream on, unsigned grid = 1,
             cus_abi abi = CUS_ABI_LEGACY) {
        return TryShape(i, a, b, {grid, 1, 1, 32, 1, 1, 0}, on, abi);
    }
    bool TryShape(int i, uint64_t a, uint32_t b, std::vector<uint32_t> dims, CUstream on,
                  cus_abi abi = CUS_ABI_LEGACY) {
        void *params[2] = {&a, &b};
        return hot_launch(functions_[i], dims.data(), on, abi, params, nullptr);
    }
    // In the midst of a segment of 4: k0 is deferred.
    void Begin() {
        Steps(6);
        driver().journal.clear();
        ASSERT_EQ(Launch(functions_[0], 100, 6 * 0), CUDA_SUCCESS);
        ASSERT_TRUE(driver().journal.empty());
    }
    // Its ops never repeat.
    void LeaveAlone(CUstream stream) {
        for (int step = 0; step < 40; step++) {
            for (int i = 0; i < 400; i++) {
                random_ = random_ * 1664525 + 1013904223;
                fake::Launch(stream, functions_[random_ >> 24 & 7], random_, i);
            }
            fake::Sync(stream);
        }
    }
    unsigned random_ = 1;
};

TEST_F(Hold, TakesTheLaunchThatIsExpected) {
    Begin();
    EXPECT_TRUE(Try(1, 101, 0, stream_));
    EXPECT_TRUE(Try(2, 777, 0, stream_)) << "another argument is patched";
    EXPECT_TRUE(driver().journal.empty());
    EXPECT_FALSE(Try(3, 103, 0, stream_)) << "the last launch of a segment launches it";
    EXPECT_TRUE(driver().journal.empty());
    Launch(functions_[3], 103, 0);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0),
                                                          Line("k2", 777, 0), Line("k3", 103, 0)}));
    ExpectBalance();
}

TEST_F(Hold, LeavesEveryOtherLaunchAlone) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_FALSE(Try(0, 100, 0, stream_)) << "nothing is known of the stream";
    Begin();
    EXPECT_FALSE(Try(2, 102, 0, stream_)) << "another function";
    EXPECT_FALSE(TryShape(1, 101, 0, {1, 1, 1, 64, 1, 1, 0}, stream_)) << "a block that never ran";
    EXPECT_FALSE(TryShape(1, 101, 0, {1, 1, 1, 32, 1, 1, 8}, stream_)) << "nor did so much shared";
    EXPECT_FALSE(TryShape(1, 101, 0, {0, 1, 1, 32, 1, 1, 0}, stream_)) << "a grid that none is";
    EXPECT_FALSE(TryShape(1, 101, 0, {1, 65536, 1, 32, 1, 1, 0}, stream_)) << "one too large";
    EXPECT_FALSE(Try(1, 101, 0, other)) << "another stream";
    EXPECT_FALSE(Try(1, 101, 0, stream_, 1, CUS_ABI_PTSZ)) << "another meaning of the handle";
    std::thread([&] { EXPECT_FALSE(Try(1, 101, 0, stream_)) << "another thread"; }).join();
    EXPECT_TRUE(driver().journal.empty());
    EXPECT_TRUE(Try(1, 101, 0, stream_)) << "none of them left a trace";
    Launch(functions_[5], 5, 5);
    EXPECT_EQ(driver().journal,
              (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0), Line("k5", 5, 5)}));
    EXPECT_FALSE(Try(2, 102, 0, stream_)) << "nothing is deferred";
    ExpectBalance();
}

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

// A grid that the kernel did not have before is one that its node may be given (HAZARDS A12).
TEST_F(Hold, TakesAnotherGrid) {
    Begin();
    EXPECT_TRUE(Try(1, 777, 5, stream_, 3));
    EXPECT_TRUE(Try(2, 102, 0, stream_, 65536));
    EXPECT_TRUE(driver().journal.empty());
    cus_counters before = Counters();
    Launch(functions_[3], 103, 0);
    std::vector<std::string> line = {Line("k0", 100, 0), Line("k1", 777, 5, 3),
                                     Line("k2", 102, 0, 65536), Line("k3", 103, 0)};
    EXPECT_EQ(driver().journal, line);
    EXPECT_EQ(Counters().in_graphs - before.in_graphs, 4u);
    EXPECT_EQ(Counters().sig_patched - before.sig_patched, 1u) << "it counts as another shape";
    ExpectBalance();
}

// A launch with attributes: whether it may be given the grid depends on these as well.
TEST_F(Hold, TakesAnotherGridThatItsAttributesAllow) {
    driver().table.cuLaunchKernelEx = fake::LaunchEx;
    static CUlaunchAttribute of[3];
    of[0].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    of[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    of[1].value.clusterDim.x = 2;
    of[1].value.clusterDim.y = of[1].value.clusterDim.z = 1;
    of[2].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    of[2].value.cooperative = 1;
    driver().table.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID id,
                                                      CUlaunchAttributeValue *value) {
        for (const CUlaunchAttribute &attr : of)
            if (attr.id == id)
                *value = attr.value;
        return CUDA_SUCCESS;
    };
    auto with = [&](int i, uint64_t a, unsigned grid, bool hot) {
        CUlaunchConfig config = {};
        config.gridDimX = grid;
        config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.blockDimX = 32;
        config.hStream = stream_;
        config.attrs = &of[i % 3];
        config.numAttrs = 1;
        uint32_t b = 0;
        void *params[2] = {&a, &b};
        if (hot)
            return hot_launch_ex(&config, functions_[i], CUS_ABI_LEGACY, params);
        cus_launch launch = {};
        launch.form = CUS_LAUNCH_EX;
        launch.stream = {stream_, CUS_ABI_LEGACY};
        launch.f = functions_[i];
        launch.dims[0] = grid;
        launch.dims[1] = launch.dims[2] = launch.dims[4] = launch.dims[5] = 1;
        launch.dims[3] = 32;
        launch.n_attrs = 1;
        launch.attrs = config.attrs;
        launch.params = params;
        launch.config = &config;
        launch.real = (void *)driver().table.cuLaunchKernelEx;
        return fake::Issue(launch) == CUDA_SUCCESS;
    };
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < 4; i++)
            EXPECT_TRUE(with(i, 100 + i, 4, false));
        Sync();
    }
    driver().journal.clear();
    cus_counters before = Counters();
    EXPECT_TRUE(with(0, 100, 4, false));
    EXPECT_FALSE(with(1, 777, 7, true)) << "no number of clusters";
    EXPECT_TRUE(with(1, 777, 6, true));
    EXPECT_FALSE(with(2, 102, 6, true)) << "whether so many blocks fit is for its own call to say";
    EXPECT_TRUE(with(2, 778, 4, true));
    EXPECT_TRUE(driver().journal.empty());
    EXPECT_TRUE(with(3, 103, 5, false));
    EXPECT_EQ(driver().journal,
              (std::vector<std::string>{Line("k0", 100, 0, 4), Line("k1", 777, 0, 6),
                                        Line("k2", 778, 0, 4), Line("k3", 103, 0, 5)}));
    EXPECT_EQ(Counters().in_graphs - before.in_graphs, 4u);
    ExpectBalance();
}

TEST_F(Hold, TakesAPackedBuffer) {
    Begin();
    uint8_t buffer[12];
    uint64_t a = 101;
    memcpy(buffer, &a, 8);
    memset(buffer + 8, 0, 4);
    size_t bytes = sizeof buffer, more = 16;
    const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
    auto form = [&](void *one, void *two, void *three, void *four) {
        void *extra[] = {one, two, three, four, CU_LAUNCH_PARAM_END};
        return hot_launch(functions_[1], dims, stream_, CUS_ABI_LEGACY, nullptr, extra);
    };
    void *const at = CU_LAUNCH_PARAM_BUFFER_POINTER, *const size = CU_LAUNCH_PARAM_BUFFER_SIZE;
    void *nothing[] = {CU_LAUNCH_PARAM_END};
    EXPECT_FALSE(hot_launch(functions_[1], dims, stream_, CUS_ABI_LEGACY, nullptr, nothing));
    EXPECT_FALSE(form(at, buffer, size, &more)) << "of another size";
    EXPECT_FALSE(form(size, &bytes, at, buffer)) << "in another order";
    EXPECT_TRUE(form(at, buffer, size, &bytes));
    Sync();
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0)}));
    Begin();
    buffer[0]++;
    EXPECT_TRUE(form(at, buffer, size, &bytes)) << "of other content than the node's";
    buffer[0]++; // it was copied
    Sync();
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 102, 0)}));
    Begin();
    const uint32_t wider[7] = {9, 1, 1, 32, 1, 1, 0}, never[7] = {9, 1, 1, 96, 1, 1, 0};
    void *extra[] = {at, buffer, size, &bytes, CU_LAUNCH_PARAM_END};
    auto in = [&](const uint32_t *shape, void **as) {
        return hot_launch(functions_[1], shape, stream_, CUS_ABI_LEGACY, nullptr, as);
    };
    EXPECT_FALSE(in(wider, nothing));
    EXPECT_FALSE(in(wider, nullptr)) << "no arguments at all";
    EXPECT_FALSE(in(never, extra));
    EXPECT_TRUE(in(wider, extra)) << "of another grid";
    Sync();
    EXPECT_EQ(driver().journal,
              (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 103, 0, 9)}));
    ExpectBalance();
}

// Threads that match ops on streams of their own write no line of memory that another one writes.
TEST_F(Hold, NoTwoStreamsWriteOneLine) {
    std::vector<hot_memory> all;
    for (int i = 0; i < 6; i++) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Teach(stream_);
        Launch(functions_[0], 100, 0);
        EXPECT_TRUE(Try(1, 777, 0, stream_)) << "in the midst of a segment";
        hot_memory written[2];
        hot_writes(written);
        for (const auto &memory : written) {
            EXPECT_EQ(memory.begin % HOT_LINE, 0u);
            for (const auto &other : all)
                EXPECT_TRUE(memory.begin / HOT_LINE > (other.end - 1) / HOT_LINE ||
                            other.begin / HOT_LINE > (memory.end - 1) / HOT_LINE);
            all.push_back(memory);
        }
        Sync();
    }
    ExpectBalance();
}

// A stream that does not pay is demoted: its ops go straight to the driver.
TEST_F(Hold, AStreamThatDoesNotPayIsPassed) {
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0]));
    LeaveAlone(stream_);
    uint64_t launches = Counters().ops[CUS_OP_LAUNCH];
    EXPECT_TRUE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0]));
    EXPECT_EQ(Counters().ops[CUS_OP_LAUNCH], launches + 1) << "it is counted";
    CUfunction fresh = fake::MakeFunction("fresh");
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, fresh)) << "nobody knows it";
    Launch(fresh, 1, 1);
    EXPECT_TRUE(hot_passes(stream_, CUS_ABI_LEGACY, fresh));
    cus_engine_code_gone();
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, fresh)) << "it may be another now";
    Launch(functions_[0], 1, 1);
    Launch(fresh, 1, 1); // last: one of the same hash would take its place
    EXPECT_TRUE(hot_passes(stream_, CUS_ABI_LEGACY, fresh));
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_PTSZ, functions_[0]));
    EXPECT_FALSE(hot_passes(fake::MakeStream(0), CUS_ABI_LEGACY, functions_[0]));
    std::thread([&] { EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0])); }).join();
    cus_stream_ref never = {fake::MakeStream(0), CUS_ABI_LEGACY};
    cus_engine_stream_gone(&never);
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0])) << "a stream may have gone";
    ExpectBalance();
}

// A thread that goes from stream to stream knows those again that it was on lately, as long as none
// may have gone.
TEST_F(Hold, StreamsInTurnThatDoNotPayArePassed) {
    std::vector<CUstream> streams(40);
    for (CUstream &stream : streams)
        stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    LeaveAlone(streams[0]);
    LeaveAlone(streams[1]);
    auto passed = [&] {
        unsigned n = 0;
        for (CUstream stream : {streams[0], streams[1]})
            n += hot_passes(stream, CUS_ABI_LEGACY, functions_[0]);
        return n;
    };
    uint64_t launches = Counters().ops[CUS_OP_LAUNCH];
    EXPECT_EQ(passed(), 2u);
    EXPECT_EQ(passed(), 2u);
    EXPECT_EQ(Counters().ops[CUS_OP_LAUNCH], launches + 4) << "they are counted";
    EXPECT_FALSE(hot_passes(streams[0], CUS_ABI_PTSZ, functions_[0]));
    cus_stream_ref gone = {streams[0], CUS_ABI_LEGACY};
    cus_engine_stream_gone(&gone);
    EXPECT_EQ(passed(), 0u) << "it may be another one now, and so may each";
    fake::Launch(streams[0], functions_[0], 1);
    fake::Launch(streams[1], functions_[0], 1);
    EXPECT_EQ(passed(), 1u) << "the first one is new";
    for (unsigned i = 2; i < streams.size(); i++)
        LeaveAlone(streams[i]);
    unsigned known = 0;
    for (CUstream stream : streams)
        known += hot_passes(stream, CUS_ABI_LEGACY, functions_[0]);
    EXPECT_GT(known, 8u);
    EXPECT_LT(known, streams.size()) << "there are not so many places";
    driver().journal.clear();
    std::vector<std::string> expected;
    for (unsigned i = 0; i < streams.size(); i++) {
        fake::Launch(streams[i], functions_[0], i);
        expected.push_back(fake::Line(streams[i], "k0", i));
    }
    EXPECT_EQ(driver().journal, expected);
    ExpectBalance();
}

// Whatever route the program switched by.
TEST_F(Hold, ALaunchInAnotherContextIsAnother) {
    Begin();
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        *context = (CUcontext)0x2000;
        return CUDA_SUCCESS;
    };
    EXPECT_FALSE(Try(1, 101, 0, stream_));
    EXPECT_FALSE(Try(1, 777, 0, stream_, 4)) << "nor in another shape";
    uint8_t buffer[12] = {7};
    size_t bytes = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    for (uint32_t grid : {1u, 4u}) {
        const uint32_t dims[7] = {grid, 1, 1, 32, 1, 1, 0};
        EXPECT_FALSE(hot_launch(functions_[1], dims, stream_, CUS_ABI_LEGACY, nullptr, extra));
    }
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        *context = (CUcontext)0x1000;
        return CUDA_SUCCESS;
    };
    EXPECT_TRUE(Try(1, 101, 0, stream_));
    Sync();
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0)}));
}

TEST_F(Hold, AStreamThatMayHaveGoneIsLookedUpAgain) {
    Begin();
    cus_stream_ref never = {fake::MakeStream(0), CUS_ABI_LEGACY};
    cus_engine_stream_gone(&never);
    EXPECT_FALSE(Try(1, 101, 0, stream_));
}

TEST_F(Hold, AnErrorThatWaitsIsAnsweredFirst) {
    Begin();
    driver().fail = [](const std::string &name) {
        return name == "cuLaunchKernel" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
    };
    std::thread([&] { cus_engine_flush(CUS_SCOPE_P, nullptr, 0); }).join();
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    EXPECT_FALSE(Try(1, 101, 0, stream_));
    EXPECT_EQ(Launch(functions_[1], 101, 0), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(Launch(functions_[2], 102, 0), CUDA_SUCCESS);
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
    Steps(4);
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
