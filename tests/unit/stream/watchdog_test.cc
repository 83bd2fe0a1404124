// Promise: no op is deferred longer than hold_us, even if the program makes no further call.
#include "tests/unit/stream/fake_driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

extern "C" bool cus_watchdog_kick(void); // of shim/stream/state.h, which is C alone

namespace {

using fake::driver;

TEST(Watchdog, IssuesWhatTheHostWaitsForWithoutACall) {
    setenv("CUSPLICE_HOLD_US", "2000", 1);
    fake::Reset();
    ASSERT_TRUE(cus_engine_start(&driver().table));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions;
    for (int i = 0; i < 8; i++)
        functions.push_back(fake::MakeFunction("k" + std::to_string(i)));
    cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
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

    // Twice: the second time the thread has to be woken from its long sleep.
    for (int round = 0; round < 2; round++) {
        cus_counters before, after;
        cus_engine_counters(&before);
        launch(0);
        auto start = std::chrono::steady_clock::now();
        do {
            usleep(500);
            cus_engine_counters(&after);
        } while (after.flushes[CUS_CAUSE_WATCHDOG] == before.flushes[CUS_CAUSE_WATCHDOG] &&
                 std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
        EXPECT_EQ(after.flushes[CUS_CAUSE_WATCHDOG], before.flushes[CUS_CAUSE_WATCHDOG] + 1);
        cus_engine_step_end(&ref);
        usleep(300 * 1000);
    }
    // Who woke it looks at the clock again.
    EXPECT_TRUE(cus_watchdog_kick());
    EXPECT_FALSE(cus_watchdog_kick());
    cus_engine_drain();
}

} // namespace
