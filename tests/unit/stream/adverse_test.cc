// What the stream engine promises when everything around it misbehaves: calls that fail for ever,
// streams seen from two contexts, functions tainted before they ran, handles that die early.
#include "tests/unit/stream/fake_driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

namespace {

using fake::driver;

const CUcontext kOther = (CUcontext)0x2000;

class Adverse : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (std::exchange(started_, true))
            return; // of a suite that is derived from this one
        std::string path = ::testing::TempDir() + "adverse.conf";
        std::ofstream(path) << "[rules]\nnever_defer = spin_*\n";
        setenv("CUSPLICE_CONFIG", path.c_str(), 1);
        setenv("CUSPLICE_HOLD_US", "1000000", 1);
        setenv("CUSPLICE_PIECE_MAX", "4",
               1); // the same pieces at any pace of the host // the watchdog has a test of its own
        fake::Reset();
        ASSERT_TRUE(cus_engine_start(&driver().table));
    }

    static inline bool started_ = false;

    void SetUp() override {
        fake::Reset();
        contexts_ = {(CUcontext)0x1000};
        driver().table.cuCtxGetCurrent = [](CUcontext *context) {
            *context = contexts_.empty() ? nullptr : contexts_.back();
            return CUDA_SUCCESS;
        };
        driver().table.cuCtxPushCurrent_v2 = [](CUcontext context) {
            if (context == dead_)
                return CUDA_ERROR_CONTEXT_IS_DESTROYED;
            contexts_.push_back(context);
            return CUDA_SUCCESS;
        };
        driver().table.cuCtxPopCurrent_v2 = [](CUcontext *context) {
            *context = contexts_.back();
            contexts_.pop_back();
            return CUDA_SUCCESS;
        };
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        for (int i = 0; i < 12; i++)
            functions_.push_back(fake::MakeFunction("k" + std::to_string(i)));
    }

    void TearDown() override {
        dead_ = nullptr;
        driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
        cus_engine_wait_ended(cus_engine_wait_begins());
    }

    CUresult Launch(CUfunction f, uint64_t a, uint32_t b, unsigned grid, CUstream on,
                    void **extra = nullptr) {
        void *params[2] = {&a, &b};
        cus_launch launch = {};
        launch.extra = extra;
        launch.stream = {on, CUS_ABI_LEGACY};
        launch.f = f;
        const uint32_t dims[7] = {grid, 1, 1, 32, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        launch.params = params;
        launch.real = (void *)driver().table.cuLaunchKernel;
        return fake::Issue(launch);
    }
    CUresult Launch(int i, uint32_t b = 0, unsigned grid = 1) {
        return Launch(functions_[i], 100 + i, b, grid, stream_);
    }

    void Sync() {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_T, &ref, 7);
        cus_engine_step_end(&ref);
    }

    std::string Line(int i, uint32_t b, unsigned grid = 1) {
        return "S" + std::to_string(fake::Of(stream_)->id) + " k" + std::to_string(i) + "(" +
               std::to_string(grid) + "," + std::to_string(100 + i) + "," + std::to_string(b) + ")";
    }

    // `steps` steps of 12 launches, checked against the journal.
    void Steps(int steps, uint32_t grow = 0, unsigned grid = 1) {
        for (int step = 0; step < steps; step++) {
            driver().journal.clear();
            std::vector<std::string> expected;
            for (int i = 0; i < 12; i++) {
                ASSERT_EQ(Launch(i, step * grow, grid), CUDA_SUCCESS);
                expected.push_back(Line(i, step * grow, grid));
            }
            Sync();
            ASSERT_EQ(driver().journal, expected) << "step " << step;
        }
    }

    cus_counters Counters() {
        cus_counters counters;
        cus_engine_counters(&counters);
        return counters;
    }

    void ExpectBalance() {
        cus_counters c = Counters();
        uint64_t ops = 0, issued = c.in_graphs;
        for (uint64_t n : c.ops)
            ops += n;
        for (uint64_t n : c.eager_by)
            issued += n;
        EXPECT_EQ(ops, issued);
    }

    static inline thread_local std::vector<CUcontext> contexts_ = {(CUcontext)0x1000};
    static inline CUcontext dead_ = nullptr;
    CUstream stream_;
    std::vector<CUfunction> functions_;
};

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
    ExpectBalance();
    Steps(4);
}

TEST_F(Adverse, NothingIsWithheldInAGreenContext) {
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

TEST_F(Adverse, NothingIsWithheldWhereGraphsAreKnownToHang) {
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
    auto calls = driver().calls;
    driver().journal.clear();
    cus_engine_context_ended(contexts_.back());
    EXPECT_TRUE(driver().journal.empty()) << "what was withheld is lost";
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

using Room = Adverse;

// No rule names the kernel.
TEST_F(Room, NothingIsBuiltBesideAKernelThatStays) {
    CUfunction spin = fake::MakeFunction("stays");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    no_room();
    Launch(spin, 1, 1, 1, other); // its first launch counts too
    fake::Of(other)->busy = true;
    for (int round = 0; round < 4; round++)
        for (unsigned grid : {2u, 3u, 4u})
            Steps(1, 0, grid);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
    EXPECT_GT(driver().calls["cuStreamQuery"], 0);
    fake::Of(other)->busy = false; // nobody ever waits for it
    for (int round = 0; round < 4; round++)
        for (unsigned grid : {2u, 3u, 4u})
            Steps(1, 0, grid);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

// ... also where the thread that launched it has suspended withholding (cusplice.h).
TEST_F(Adverse, AKernelOfASuspendedThreadMaySpinToo) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Launch(spin, 1, 1, 1, other); // it is known from here on, and over
    Steps(4);
    no_room();
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    ASSERT_GT(built, 0);
    cus_engine_suspend(true);
    Launch(spin, 1, 1, 1, other);
    cus_engine_suspend(false);
    fake::Of(other)->busy = true;
    for (int round = 0; round < 4; round++)
        for (unsigned grid : {2u, 3u, 4u})
            Steps(1, 0, grid);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
    fake::Of(other)->busy = false;
}

// What is withheld by another thread goes out before the first launch of a function, which may
// wait; from then on the function is known, and one that may spin keeps anything from being built.
class FirstLaunch : public Adverse {
  protected:
    // `quietly` launches on a stream of which nothing is withheld, as it does with `other`.
    template <typename Quietly> void Check(CUstream other, Quietly quietly) {
        Learned(quietly, [&] { fake::Of(other)->busy = true; });
        int built = driver().calls["cuGraphInstantiateWithFlags"];
        fake::Of(other)->busy = false;
        Regrow(2);
        EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
    }

    // The first launch of a function goes behind what is withheld, as does each of one that may
    // spin, which is known from the first one on: nothing is built then.
    template <typename Quietly>
    void Learned(
        Quietly quietly, const std::function<void()> &runs = [] {}) {
        Steps(4);
        int built = driver().calls["cuGraphInstantiateWithFlags"];
        ASSERT_GT(built, 0);
        no_room();
        CUfunction fresh = fake::MakeFunction("fresh");
        CUfunction spin = fake::MakeFunction("spin_" + std::to_string(functions_.size()));
        Withhold();
        quietly(fresh);
        EXPECT_TRUE(Issued(1)) << "the first launch of a function may wait";
        Withhold();
        quietly(fresh);
        EXPECT_TRUE(Issued(0)) << "it has been launched";
        Sync();
        quietly(spin);
        runs();
        Regrow(2);
        EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built) << "it may be running";
        Withhold();
        quietly(spin);
        EXPECT_TRUE(Issued(1)) << "it goes behind everything";
        Sync();
    }

    // Steps of grids that no graph has been made for.
    void Regrow(unsigned first) {
        for (int round = 0; round < 4; round++)
            for (unsigned grid : {first, first + 1, first + 2})
                Steps(1, 0, grid);
    }

    void TearDown() override {
        cus_engine_suspend(false);
        Adverse::TearDown();
    }

  private:
    // Another thread begins a piece.
    void Withhold() {
        driver().journal.clear();
        std::thread([&] { Launch(0); }).join();
        EXPECT_TRUE(driver().journal.empty());
    }
    testing::AssertionResult Issued(size_t withheld) {
        return driver().journal.size() == withheld + 1 &&
                       (!withheld || driver().journal[0] == Line(0, 0))
                   ? testing::AssertionSuccess()
                   : testing::AssertionFailure() << testing::PrintToString(driver().journal);
    }
};

TEST_F(FirstLaunch, BySuspendedThreadIsNoticed) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Launch(functions_[1], 1, 1, 1, other);
    Check(other, [&](CUfunction f) {
        cus_engine_suspend(true);
        EXPECT_EQ(Launch(f, 1, 1, 1, other), CUDA_SUCCESS);
        cus_engine_suspend(false);
    });
}

TEST_F(FirstLaunch, OnAStreamThatIsLeftAloneIsNoticed) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    unsigned random = 1;
    for (int i = 0; i < 16000; i++) {
        random = random * 1664525 + 1013904223;
        Launch(functions_[random >> 24 & 7], random, i, 1, other);
        if (i % 400 == 399) {
            cus_engine_flush(CUS_SCOPE_T, &ref, 7);
            cus_engine_step_end(&ref);
        }
    }
    uint64_t passed = Counters().eager_by[CUS_EAGER_PASSTHROUGH];
    Launch(functions_[1], 1, 1, 1, other);
    ASSERT_EQ(Counters().eager_by[CUS_EAGER_PASSTHROUGH], passed + 1) << "not left alone";
    Check(other, [&](CUfunction f) { EXPECT_EQ(Launch(f, 1, 1, 1, other), CUDA_SUCCESS); });
}

// Nobody can be asked when a kernel on a per-thread stream ends: nothing is built behind one that
// may spin. Until then first launches there are noticed as elsewhere.
TEST_F(FirstLaunch, OnAPerThreadStreamIsNoticed) {
    auto quietly = [](CUfunction f) {
        uint64_t a = 1;
        uint32_t b = 2;
        void *params[2] = {&a, &b};
        cus_launch launch = {};
        launch.stream = {CU_STREAM_PER_THREAD, CUS_ABI_PTSZ};
        launch.f = f;
        const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        launch.params = params;
        launch.real = (void *)driver().table.cuLaunchKernel;
        // By another thread: its own might ask it.
        std::thread([&] { EXPECT_EQ(fake::Issue(launch), CUDA_SUCCESS); }).join();
    };
    uint64_t passed = Counters().eager_by[CUS_EAGER_PASSTHROUGH];
    uint64_t fallen = Counters().fallbacks[CUS_FALLBACK_ROOM];
    Learned(quietly);
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_PASSTHROUGH], passed + 4);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_ROOM], fallen);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    Regrow(5);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built) << "nobody knows that it ended";
    cus_engine_wait_ended(cus_engine_wait_begins());
    Regrow(5);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

// Neither dropping graphs nor asking once more helps where something stays.
TEST_F(Room, OutOfMemoryWaitsForNoKernelThatStays) {
    static int waits;
    waits = 0;
    driver().table.cuCtxSynchronize = [] {
        waits++;
        return CUDA_SUCCESS;
    };
    driver().table.cuMemGetInfo_v2 = [](size_t *available, size_t *total) {
        *available = 1 << 20;
        *total = 1 << 30;
        return CUDA_SUCCESS;
    };
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    Launch(functions_[1], 1, 1, 1, other);
    int alive = driver().calls["cuGraphInstantiateWithFlags"];
    ASSERT_GT(alive, 0);
    EXPECT_FALSE(cus_engine_give_memory_back(4ull << 30))
        << "more is wanted than graphs could hold";
    EXPECT_FALSE(cus_engine_cannot_fit(4ull << 30)) << "the driver may look: nothing runs";
    fake::Of(other)->busy = true;
    EXPECT_FALSE(cus_engine_cannot_fit(2 << 20));
    EXPECT_FALSE(cus_engine_give_memory_back(2 << 20));
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    fake::Of(other)->busy = false;
    EXPECT_TRUE(cus_engine_give_memory_back(2 << 20));
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], alive);
    EXPECT_EQ(waits, 0);
    fake::Of(other)->busy = true; // what the graphs held is in the driver's pools now
    EXPECT_TRUE(cus_engine_cannot_fit(4ull << 30));
    fake::Of(other)->busy = false;
}

// Graphs of the sizes that were wanted are built while nothing runs, and go again: then there is
// room for them, whatever runs.
TEST_F(Room, IsMadeOnceTheHostHasWaited) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    auto busy = [&](bool on) { fake::Of(stream_)->busy = on; };
    auto built = [] { return driver().calls["cuGraphInstantiateWithFlags"]; };
    Launch(0);
    Sync();
    no_room();
    busy(true);
    Steps(4);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_ROOM], 0u);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
    EXPECT_EQ(built(), 0) << "it runs";
    usleep(10000); // it is not tried again at once
    Steps(1);
    busy(false);
    driver().journal.clear();
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
    int made = built();
    EXPECT_GT(made, 0);
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], made);
    EXPECT_TRUE(driver().journal.empty()) << "none of them is launched";
    busy(true); // as it is for a GPU that is behind
    Steps(2);
    busy(false);
    EXPECT_EQ(built(), 2 * made);
}

// Asking how far a stream is may spoil a capture: also before a stream is destroyed.
TEST_F(Room, AsksInTheRelaxedModeOnly) {
    static int asked, strict;
    asked = strict = 0;
    driver().table.cuStreamQuery = [](CUstream) {
        asked++;
        strict += fake::capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        return CUDA_SUCCESS;
    };
    Launch(0);
    Sync();
    no_room();
    Steps(4);
    int before = asked;
    EXPECT_GT(before, 0);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 5);
    cus_engine_stream_gone(&ref);
    EXPECT_GT(asked, before);
    EXPECT_EQ(strict, 0);
    EXPECT_NE(fake::capture_mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

// The memory of a thread that ended is that of the next one; its per-thread stream is not.
TEST_F(Room, PerThreadStreamOfAThreadThatEndedIsNotTheNextOnes) {
    Launch(0);
    Sync();
    no_room();
    std::thread([&] { Launch(functions_[1], 1, 1, 1, CU_STREAM_PER_THREAD); }).join();
    std::thread([&] {
        Launch(functions_[1], 1, 1, 1, CU_STREAM_PER_THREAD);
        Steps(6);
    }).join();
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    cus_engine_wait_ended(cus_engine_wait_begins());
    Steps(2);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

// What the program makes may be what there was room for.
TEST_F(Room, GoesToWhatTheProgramMakes) {
    Launch(0);
    Sync();
    for (int i = 0; i < 8; i++)
        cus_engine_room_taken(false);
    fake::Of(stream_)->busy = true;
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(stream_)->busy = false;
    Steps(2);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

TEST_F(Adverse, NothingIsBuiltWhileAThreadCopiesPageableMemory) {
    Steps(2);
    cus_engine_copying(true);
    Steps(4);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    cus_engine_copying(false);
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

// Destroying sleeps behind such a copy as building does.
TEST_F(Adverse, NoGraphIsDestroyedWhileAThreadCopiesPageableMemory) {
    auto steps_cut_in_the_midst = [&] {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        for (int step = 0; step < 4; step++) {
            for (int i = 0; i < 12; i++) {
                Launch(i);
                if (i == 5)
                    cus_engine_flush(CUS_SCOPE_T, &ref, 7);
            }
            Sync();
        }
    };
    auto alive = [] {
        return driver().calls["cuGraphInstantiateWithFlags"] - driver().calls["cuGraphExecDestroy"];
    };
    Steps(6);
    ASSERT_GT(alive(), 0);
    cus_engine_copying(true);
    steps_cut_in_the_midst(); // which makes a boundary: the piece is dropped
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    cus_engine_copying(false);
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphExecDestroy"], 0) << "but later on";
    cus_engine_copying(true);
    cus_engine_code_gone();
    EXPECT_EQ(alive(), 0) << "before code goes they must";
    cus_engine_copying(false);
}

TEST_F(Adverse, TwoSpinnersAreOverWhenBothAre) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream one = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream two = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Launch(spin, 1, 1, 1, one);
    Launch(spin, 1, 1, 1, two);
    no_room();
    fake::Of(one)->busy = true;
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(one)->busy = false;
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

TEST_F(Adverse, SpinnersStreamIsNotQueriedWhileItCaptures) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Launch(spin, 1, 1, 1, other);
    no_room();
    fake::Of(other)->program_captures = true; // a query would spoil the capture
    static CUstream captures;
    captures = other;
    static bool queried;
    queried = false;
    driver().table.cuStreamQuery = [](CUstream stream) {
        queried |= stream == captures;
        return CUDA_SUCCESS;
    };
    Steps(6);
    EXPECT_FALSE(queried);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(other)->program_captures = false;
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

TEST_F(Adverse, ASynchronisedEventIsNoProofThatASpinnerEnded) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(2);
    no_room();
    Launch(spin, 1, 1, 1, other);
    fake::Of(other)->busy = true;
    cus_engine_step_end(nullptr);
    EXPECT_EQ(cus_engine_take_error(nullptr, 0), CUDA_SUCCESS);
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 5);
    cus_engine_stream_gone(&ref);
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0) << "its stream is gone, it is not";
    cus_engine_wait_ended(cus_engine_wait_begins());
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0) << "all was waited for";
    fake::Of(other)->busy = false;
}

TEST_F(Adverse, AKernelThatMaySpinIsOneAlsoWhereItsArgumentsCannotBeRead) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Launch(spin, 1, 1, 1, other);
    Steps(4);
    no_room();
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    EXPECT_TRUE(driver().journal.empty());
    void *extra[] = {CU_LAUNCH_PARAM_END};
    fake::Of(other)->busy = true;
    Launch(spin, 1, 1, 1, other, extra); // as NCCL does: a buffer that is not as the layout says
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line(0, 0));
    Sync();
    for (int round = 0; round < 4; round++)
        for (unsigned grid : {2u, 3u, 4u})
            Steps(1, 0, grid);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
    fake::Of(other)->busy = false;
    for (int round = 0; round < 4; round++)
        for (unsigned grid : {2u, 3u, 4u})
            Steps(1, 0, grid);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

TEST_F(Adverse, OpAppendedToAnotherThreadsPieceGoesBeforeThisThreadsNextStream) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    Launch(1);
    EXPECT_TRUE(driver().journal.empty());
    Launch(functions_[7], 7, 7, 1, other);
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

} // namespace
