// Promise: the program ends even if a thread sleeps in the driver and holds its stream's lock.
#include "tests/unit/stream/fake_driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace {

using fake::driver;

std::atomic<bool> asleep, open_gate, drained;

TEST(Exit, DoesNotWaitForAThreadThatSleepsInTheDriver) {
    setenv("CUSPLICE_HOLD_US", "1000000", 1);
    setenv("CUSPLICE_LOG", "error", 1);
    fake::Reset();
    ASSERT_TRUE(cus_engine_start(&driver().table));
    std::vector<CUfunction> functions;
    for (int i = 0; i < 8; i++)
        functions.push_back(fake::MakeFunction("k" + std::to_string(i)));
    cus_stream_ref busy = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
    cus_stream_ref other = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
    auto launch = [&](cus_stream_ref on, int i) {
        uint64_t a = 1;
        uint32_t b = 2;
        void *params[2] = {&a, &b};
        cus_launch launch = {};
        launch.stream = on;
        launch.f = functions[i];
        const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        launch.params = params;
        launch.real = (void *)driver().table.cuLaunchKernel;
        ASSERT_EQ(fake::Issue(launch), CUDA_SUCCESS);
    };
    for (cus_stream_ref on : {busy, other})
        for (int step = 0; step < 4; step++) {
            for (int i = 0; i < 8; i++)
                launch(on, i);
            cus_engine_flush(CUS_SCOPE_T, &on, 7);
            cus_engine_step_end(&on);
        }
    ASSERT_GT(driver().calls["cuGraphLaunch"], 0);
    std::thread sleeper([&] {
        driver().fail = [](const std::string &name) {
            if (name == "cuGraphLaunch" && !asleep.exchange(true))
                while (!open_gate)
                    usleep(1000);
            return CUDA_SUCCESS;
        };
        for (int i = 0; i < 8; i++)
            launch(busy, i);
    });
    while (!asleep)
        usleep(1000);
    driver().journal.clear();
    launch(other, 0);
    EXPECT_TRUE(driver().journal.empty());
    std::thread leaver([] {
        cus_engine_drain();
        cus_counters counters;
        char text[512];
        cus_engine_counters(&counters);
        cus_engine_segment_list(text, sizeof text);
        drained = true;
    });
    for (int i = 0; i < 30000 && !drained; i++)
        usleep(1000);
    EXPECT_TRUE(drained);
    EXPECT_EQ(driver().journal.size(), 1u) << "what others deferred is issued";
    open_gate = true;
    sleeper.join();
    leaver.join();
    EXPECT_EQ(driver().journal.size(), 1u + 8u) << "and the sleeper's ops once";
}

} // namespace
