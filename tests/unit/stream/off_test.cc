// Promise: once deferral is switched off, no op stays deferred, even if a thread was about to defer
// one.
#include "tests/unit/stream/fake_driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace {

using fake::driver;

std::atomic<bool> pause_at_query;
std::atomic<bool> paused;

TEST(Off, SwitchesThatPromiseCompletionForbidDeferring) {
    fake::Reset();
    for (const char *name :
         {"CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_WAITS_ON_EXCEPTION",
          "CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"}) {
        setenv(name, "1", 1);
        EXPECT_FALSE(cus_engine_start(&driver().table)) << name;
        setenv(name, "0", 1);
        EXPECT_TRUE(cus_engine_start(&driver().table)) << name;
        unsetenv(name);
    }
}

TEST(Off, NothingIsDeferredBehindTheBackOfWhoSwitchesItOff) {
    setenv("CUSPLICE_HOLD_US", "1000000", 1);
    fake::Reset();
    // The last thing that is asked before ops are deferred.
    driver().table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus *status) {
        if (pause_at_query.exchange(false)) {
            paused = true;
            usleep(200 * 1000);
        }
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    };
    ASSERT_TRUE(cus_engine_start(&driver().table));
    cus_stream_ref ref = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
    std::vector<CUfunction> functions;
    for (int i = 0; i < 8; i++)
        functions.push_back(fake::MakeFunction("k" + std::to_string(i)));
    auto launch = [&](int i) {
        uint64_t a = 1;
        uint32_t b = 2;
        void *params[2] = {&a, &b};
        cus_launch launch = {};
        launch.stream = ref;
        launch.f = functions[i];
        const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        launch.params = params;
        launch.real = (void *)driver().table.cuLaunchKernel;
        ASSERT_EQ(fake::Issue(launch), CUDA_SUCCESS);
    };
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 8; i++)
            launch(i);
        cus_engine_flush(CUS_SCOPE_T, &ref, 7);
        cus_engine_step_end(&ref);
    }
    ASSERT_GT(driver().calls["cuGraphLaunch"], 0);

    driver().journal.clear();
    pause_at_query = true;
    std::thread off([] {
        while (!paused)
            usleep(100);
        cus_engine_defer_off("a test says so");
    });
    launch(0);
    off.join();
    cus_engine_flush(CUS_SCOPE_T, &ref, 7); // a synchronise
    EXPECT_EQ(driver().journal.size(), 1u);
    launch(1);
    EXPECT_EQ(driver().journal.size(), 2u);
}

} // namespace
