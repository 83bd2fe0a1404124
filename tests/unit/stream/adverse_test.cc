// Promise: the engine stays right when everything around it misbehaves: calls that always fail,
// streams used from two contexts, functions tainted before they ran, handles that are destroyed
// early.
#include "shim/api/api.h"
#include "tests/unit/stream/adverse.h"
#include "tests/unit/stream/engines.h"

#include <algorithm>
#include <thread>

namespace {

using fake::Counters;
using fake::driver;
using fake::ExpectBalance;

class AdverseCalls : public Adverse, public ::testing::WithParamInterface<const char *> {};

TEST_P(AdverseCalls, FailForEver) {
    driver().fail = [&](const std::string &name) {
        return name == GetParam() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    };
    Steps(300, 1);
    EXPECT_LE(driver().calls["cuGraphInstantiateWithFlags"], 40)
        << "what is refused again and again is not built again and again";
    ExpectBalance();
}

INSTANTIATE_TEST_SUITE_P(Calls, AdverseCalls,
                         ::testing::Values("cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                           "cuStreamGetCaptureInfo_v3",
                                           "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                                           "cuGraphExecKernelNodeSetParams_v2",
                                           "cuStreamCreateWithPriority"));

TEST_F(Adverse, AStreamForCapturesIsRefusedOncePerStream) {
    static bool refused;
    refused = true;
    driver().fail = [](const std::string &name) {
        return refused && name == "cuStreamCreateWithPriority" ? CUDA_ERROR_OUT_OF_MEMORY
                                                               : CUDA_SUCCESS;
    };
    uint64_t captures = Counters().fallbacks[CUS_FALLBACK_CAPTURE],
             budget = Counters().fallbacks[CUS_FALLBACK_BUDGET];
    Steps(10);
    EXPECT_EQ(driver().calls["cuStreamCreateWithPriority"], 1);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_CAPTURE], captures);
    EXPECT_EQ(Counters().fallbacks[CUS_FALLBACK_BUDGET], budget);
    refused = false;
    Steps(10);
    EXPECT_EQ(driver().calls["cuStreamCreateWithPriority"], 1);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&ref);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING); // served by the same object
    Steps(10);
    EXPECT_GT(driver().calls["cuStreamCreateWithPriority"], 1);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
}

// Programs wait for a side stream alone, which waits for others.
TEST_F(Adverse, AWaitEndsTheStepsOfThreeStreams) {
    for (int i = 0; i < 5; i++) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        fake::Launch(stream_, functions_[0], 100);
        if (i)
            last_engine_waits_for_the_one_before();
    }
    uint64_t before = Counters().steps;
    Sync();
    EXPECT_EQ(Counters().steps, before + 3);
    Sync();
    EXPECT_EQ(Counters().steps, before + 3) << "nothing came meanwhile";
}

TEST_F(Adverse, FunctionTaintedBeforeItRanIsNeverDeferred) {
    cus_engine_taint(functions_[5]);
    for (int round = 0; round < 2; round++) {
        for (int step = 0; step < 6; step++) {
            for (int i = 0; i < 12; i++) {
                Launch(i, step);
                ASSERT_FALSE(i == 5 && driver().journal.empty());
                if (i == 5) {
                    EXPECT_EQ(driver().journal.back(), Line(5, step)) << "round " << round;
                }
            }
            Sync();
        }
        cus_engine_code_gone(); // of some other module
    }
}

TEST_F(Adverse, LayoutThatCannotBeReadIsNotNoLayout) {
    driver().table.cuFuncGetParamInfo = [](CUfunction, size_t i, size_t *offset, size_t *size) {
        if (i > 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *offset = 0;
        *size = 8;
        return CUDA_SUCCESS;
    };
    Steps(6, 1);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 0);
}

// It may have been destroyed since.
TEST_F(Adverse, AStreamWhoseCaptureEndedIsAskedNoMore) {
    static std::vector<CUstream> asked;
    CUstream ends = fake::MakeStream(CU_STREAM_NON_BLOCKING),
             goes_on = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    for (CUstream stream : {ends, goes_on}) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        fake::Of(stream)->program_captures = true;
        cus_engine_capture_began(&ref);
    }
    fake::Of(ends)->program_captures = false;
    static decltype(driver().table.cuStreamIsCapturing) real;
    real = driver().table.cuStreamIsCapturing;
    driver().table.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        asked.push_back(stream);
        return real(stream, status);
    };
    for (bool first : {true, false}) {
        asked.clear();
        Launch(0);
        EXPECT_EQ(std::count(asked.begin(), asked.end(), ends), first);
        EXPECT_EQ(std::count(asked.begin(), asked.end(), goes_on), 1);
        EXPECT_EQ(std::count(asked.begin(), asked.end(), nullptr), 0);
    }
    fake::Of(goes_on)->program_captures = false;
}

// An engine of its own, so that its stream is the newest one.
class AdverseCode : public Adverse {};

// Its kinds are freed, and a context that is lost then must not be told of them.
TEST_F(AdverseCode, TheLastGraphIsForgotten) {
    Steps(4);
    ASSERT_GT(last_engine_launched(), 0u);
    cus_engine_code_gone();
    EXPECT_EQ(last_engine_launched(), 0u);
}

TEST_F(Adverse, StreamIsOneWhicheverContextIsCurrent) {
    Steps(4);
    contexts_.back() = kOther;
    Launch(3); // a copy or a CUkernel may be launched into a stream of another context
    contexts_.back() = (CUcontext)0x1000;
    driver().journal.clear();
    EXPECT_EQ(Launch(0), CUDA_SUCCESS);
    EXPECT_TRUE(driver().journal.empty());
    contexts_.back() = kOther;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 3); // an event record on that stream
    EXPECT_EQ(driver().journal.size(), 1u);
    contexts_.back() = (CUcontext)0x1000;
    Sync();
    driver().journal.clear();
    Launch(0);
    std::thread([&] {
        contexts_.back() = kOther;
        Launch(1); // after the first by whatever the two threads share
    }).join();
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line(0, 0));
}

TEST_F(Adverse, ContextThatDiedUnseenLosesItsOpsAndNothingElse) {
    Steps(4);
    const uint64_t lost = cus_tally_none.cut_ops[CUS_WHY_LOST];
    Launch(0);
    Launch(1);
    dead_ = (CUcontext)0x1000;
    std::thread([] {
        contexts_.back() = kOther;
        cus_engine_flush(CUS_SCOPE_P, nullptr, 3);
        cus_engine_code_gone();
        cus_engine_flush(CUS_SCOPE_P, nullptr, 3);
    }).join();
    dead_ = nullptr;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_NE(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
    EXPECT_EQ(cus_tally_none.cut_ops[CUS_WHY_LOST], lost + 2);
    ExpectBalance();
    Steps(4);
}

TEST_F(Adverse, NothingIsDeferredInAGreenContext) {
    static CUstream green;
    green = stream_;
    driver().table.cuStreamGetGreenCtx = [](CUstream stream, CUgreenCtx *context) {
        *context = stream == green ? (CUgreenCtx)0x3000 : nullptr;
        return CUDA_SUCCESS;
    };
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 0);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
}

int capability[2], cuda_version;

void DriverSaysWhatItIs() {
    driver().table.cuCtxGetDevice = [](CUdevice *device) {
        *device = 0;
        return CUDA_SUCCESS;
    };
    driver().table.cuDeviceGetAttribute = [](int *value, CUdevice_attribute attribute, CUdevice) {
        *value = capability[attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
        return CUDA_SUCCESS;
    };
    driver().table.cuDriverGetVersion = [](int *version) {
        *version = cuda_version;
        return CUDA_SUCCESS;
    };
}

// Whether graphs are made on a GPU of that compute capability with a driver of that version.
bool GraphsOn(int major, int minor, int version, const std::function<void()> &steps) {
    capability[0] = major;
    capability[1] = minor;
    cuda_version = version;
    int before = driver().calls["cuGraphLaunch"];
    steps();
    return driver().calls["cuGraphLaunch"] > before;
}

// A context that is made where an old one was may be one of another GPU.
TEST_F(Adverse, TheNextContextAtAnAddressIsAskedWhetherGraphsHangThere) {
    DriverSaysWhatItIs();
    contexts_.back() = (CUcontext)0xa0000;
    auto steps = [&] {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Steps(6);
    };
    EXPECT_TRUE(GraphsOn(9, 0, 13000, steps));
    fake::EndContext(contexts_.back());
    EXPECT_FALSE(GraphsOn(10, 3, 13000, steps));
    fake::EndContext(contexts_.back());
    EXPECT_TRUE(GraphsOn(9, 0, 13000, steps));
}

TEST_F(Adverse, NothingIsDeferredWhereGraphsAreKnownToHang) {
    DriverSaysWhatItIs();
    uintptr_t context = 0x9000;
    auto steps = [&] {
        contexts_.back() = (CUcontext)(context += 0x100); // each is asked for once
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Steps(6);
    };
    EXPECT_FALSE(GraphsOn(10, 3, 13000, steps));
    EXPECT_TRUE(GraphsOn(10, 3, 13010, steps));
    EXPECT_TRUE(GraphsOn(10, 0, 13000, steps));
    EXPECT_TRUE(GraphsOn(9, 0, 13000, steps));
    driver().table.cuDriverGetVersion = [](int *) { return CUDA_ERROR_NOT_INITIALIZED; };
    EXPECT_TRUE(GraphsOn(10, 3, 13000, steps)) << "nothing is known against it";
}

TEST_F(Adverse, WhatIsKnownOfAGpuDiesWithTheContext) {
    DriverSaysWhatItIs();
    auto steps = [&] {
        contexts_.back() = (CUcontext)0xa000; // of another GPU each time
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Steps(6);
    };
    EXPECT_FALSE(GraphsOn(10, 3, 13000, steps));
    cus_engine_context_gone();
    EXPECT_TRUE(GraphsOn(9, 0, 13000, steps));
    cus_engine_context_gone();
    EXPECT_FALSE(GraphsOn(10, 3, 13000, steps));
}

TEST_F(Adverse, ContextThatHasEndedUnseenIsNotTouched) {
    Steps(4);
    Launch(0);
    EXPECT_EQ(last_engine_group_pending(), 1u);
    auto calls = driver().calls;
    driver().journal.clear();
    fake::EndContext(contexts_.back());
    EXPECT_TRUE(driver().journal.empty()) << "what was deferred is lost";
    EXPECT_EQ(last_engine_group_pending(), 0u);
    for (const char *name : {"cuGraphExecDestroy", "cuGraphDestroy", "cuStreamDestroy_v2"})
        EXPECT_EQ(driver().calls[name], calls[name]) << name;
    // The next context at this address begins anew.
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphLaunch"], calls["cuGraphLaunch"]);
}

TEST_F(Adverse, ThreadThatIssuesForAnotherContextGetsItsOwnBack) {
    Steps(4);
    driver().journal.clear();
    Launch(0);
    std::thread([] {
        contexts_.back() = kOther;
        cus_engine_flush(CUS_SCOPE_P, nullptr, 3);
        EXPECT_EQ(contexts_, std::vector<CUcontext>{kOther});
    }).join();
    EXPECT_EQ(driver().journal.size(), 1u);
}

TEST_F(Adverse, DestroyedStreamIsNotAskedWhetherItCaptures) {
    static CUstream gone;
    gone = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    static bool asked;
    asked = false;
    Steps(4);
    cus_stream_ref ref = {gone, CUS_ABI_LEGACY};
    cus_engine_capture_began(&ref);
    cus_engine_stream_gone(&ref);
    driver().table.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        asked |= stream == gone;
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    };
    Steps(2);
    EXPECT_FALSE(asked);
}

// Whatever else the driver writes then.
TEST_F(Adverse, AStreamThatCannotBeAskedDoesNotCapture) {
    static CUstream other;
    static CUresult answer;
    other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    driver().table.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        *status = stream == other ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
        return stream == other ? answer : CUDA_SUCCESS;
    };
    // A capture in the strictest mode answers IMPLICIT for the legacy stream.
    for (CUresult result : {CUDA_SUCCESS, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                            CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_CONTEXT_IS_DESTROYED}) {
        answer = result;
        cus_engine_capture_began(&ref);
        driver().journal.clear();
        Launch(0);
        bool captures = result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        EXPECT_EQ(driver().journal.empty(), !captures) << result;
        cus_engine_capture_ended(&ref);
        Sync();
    }
}

TEST_F(Adverse, OpAppendedToAnotherThreadsSegmentGoesBeforeThisThreadsNextStream) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    Launch(1);
    EXPECT_TRUE(driver().journal.empty());
    fake::Launch(other, functions_[7], 7, 7);
    ASSERT_EQ(driver().journal.size(), 3u);
    EXPECT_EQ(driver().journal[0], Line(0, 0));
    EXPECT_EQ(driver().journal[1], Line(1, 0));
}

TEST_F(Adverse, AttributeOfAStreamNeverUsedDropsNothing) {
    Steps(4);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    cus_stream_ref ref = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
    cus_engine_stream_changed(&ref);
    Steps(2);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
}

TEST_F(Adverse, StreamWhoseHandleCameBackUnseenIsLookedAtAgain) {
    fake::Of(stream_)->id = 100001;
    Steps(4);
    cus_stream_ref never = {fake::MakeStream(0), CUS_ABI_LEGACY};
    cus_engine_stream_gone(&never);
    fake::Of(stream_)->id = 100002; // destroyed and made again by a route that nobody saw
    fake::Of(stream_)->flags = CU_STREAM_DEFAULT;
    int launches = driver().calls["cuGraphLaunch"];
    Steps(2);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], launches) << "nothing of the old stream is replayed";
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphLaunch"], launches);
}

TEST_F(Adverse, PageableCopyIsLookedAtOnce) {
    static int asked;
    asked = 0;
    driver().table.cuPointerGetAttributes = [](unsigned, CUpointer_attribute *, void **,
                                               CUdeviceptr) {
        asked++;
        return CUDA_ERROR_INVALID_VALUE;
    };
    cus_copy copy = {};
    copy.stream = {stream_, CUS_ABI_LEGACY};
    copy.dst = 0x10000;
    copy.src = 0x20000;
    copy.bytes = 64;
    copy.real = (void *)+[](CUdeviceptr, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; };
    EXPECT_EQ(cus_engine_copy(&copy), CUDA_SUCCESS);
    EXPECT_LE(asked, 2);
}

// The context is waited for, not the stream.
TEST_F(Adverse, WhatAnotherThreadDefersGoesOutBeforeAWaitForItsContext) {
    Steps(4);
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    EXPECT_TRUE(driver().journal.empty());
    cus_engine_flush(CUS_SCOPE_C, nullptr, CUS_ROW_cuCtxSynchronize);
    EXPECT_EQ(driver().journal, std::vector<std::string>{Line(0, 0)});
}

// Even what the first stream of the process defers.
TEST_F(Adverse, WhatIsDeferredGoesOutBeforeAProfilerRecords) {
    fake::EndEngine();
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}}));
    Steps(4);
    driver().journal.clear();
    Launch(0);
    EXPECT_TRUE(driver().journal.empty());
    cus_engine_profiling(true);
    EXPECT_EQ(driver().journal, std::vector<std::string>{Line(0, 0)});
    cus_engine_profiling(false);
}

TEST_F(Adverse, TheFirstErrorIsTheOneThatIsTold) {
    Steps(4);
    Launch(0);
    Launch(1);
    int n = 0;
    driver().fail = [&](const std::string &name) {
        if (name != "cuLaunchKernel")
            return CUDA_SUCCESS;
        return n++ ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_ERROR_INVALID_VALUE;
    };
    Sync();
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    EXPECT_EQ(n, 2);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS) << "once";
}

TEST_F(Adverse, AContextThatEndsWhileNothingIsDeferredLosesNothing) {
    Steps(4);
    fake::EndContext(contexts_.back());
    EXPECT_EQ(cus_engine_take_error(nullptr, 0), CUDA_SUCCESS);
}

// A graph was built with the old limits.
TEST_F(Adverse, GraphsAreBuiltAnewWhenALimitOfTheDeviceChanged) {
    Steps(6);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    Step();
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
    cus_engine_limits_changed();
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

} // namespace
