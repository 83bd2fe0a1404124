// Promise: no op is deferred longer than hold_us, even if the program makes no further call.
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

extern "C" bool cus_watchdog_kick(void); // of shim/stream/state.h, which is C alone

namespace {

using fake::driver;

class Watchdog : public fake::EngineTest {};

TEST_F(Watchdog, IssuesWhatTheHostWaitsForWithoutACall) {
    fake::Reset();
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "2000"}}));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions = fake::MakeFunctions(8);
    auto launch = [&](int i) { ASSERT_EQ(fake::Launch(stream, functions[i], 1, 2), CUDA_SUCCESS); };
    ASSERT_NO_FATAL_FAILURE(fake::Learn(stream, functions));

    // Its calls do no harm to a capture of the program, in whatever mode that is.
    static const pid_t own = gettid();
    static std::atomic<int> strict, of_others;
    strict = of_others = 0;
    driver().fail = [](const std::string &) {
        of_others += gettid() != own;
        strict += gettid() != own && fake::capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        return CUDA_SUCCESS;
    };

    cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    auto flushes = [] { return fake::Counters().flushes[CUS_CAUSE_WATCHDOG]; };
    // Twice: the second time the thread has to be woken from its long sleep.
    for (int round = 0; round < 2; round++) {
        uint64_t before = flushes();
        launch(0);
        EXPECT_TRUE(Within(20, [&] { return flushes() != before; }));
        EXPECT_EQ(flushes(), before + 1);
        cus_engine_step_end(&ref);
        clock_t began = clock();
        usleep(300 * 1000);
        EXPECT_LT(clock() - began, CLOCKS_PER_SEC / 6) << "it does not sleep";
    }
    EXPECT_GT(of_others, 0);
    EXPECT_EQ(strict, 0);
    // Who woke it looks at the clock again.
    EXPECT_TRUE(cus_watchdog_kick());
    EXPECT_FALSE(cus_watchdog_kick());
    cus_engine_drain();
}

} // namespace
