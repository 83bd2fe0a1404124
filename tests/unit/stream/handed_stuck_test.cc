// Promise: if the submit thread sleeps in the driver because the GPU's queue is full, only those
// wait who need that launch.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/unit/stream/fake_driver.h"

namespace {

using fake::driver;
using Clock = std::chrono::steady_clock;

constexpr int kOps = 8;

std::atomic<bool> stops, asleep, awake;

void Step(CUstream stream, const std::vector<CUfunction> &functions, uint64_t value, int n = kOps) {
    for (int i = 0; i < n; i++)
        ASSERT_EQ(fake::Launch(stream, functions[i], value + i), CUDA_SUCCESS);
}

void Sync(CUstream stream) {
    cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_T, &ref, 7);
    cus_engine_step_end(&ref);
}

uint64_t WatchdogFlushes() {
    cus_counters counters;
    cus_engine_counters(&counters);
    return counters.flushes[CUS_CAUSE_WATCHDOG];
}

TEST(SubmittedStuck, OthersGoOnAndTheProgramEnds) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "nothing is submitted where there is one processor";
    setenv("CUSPLICE_HOLD_US", "20000", 1);
    setenv("CUSPLICE_SUBMIT_NS", "1", 1);
    setenv("CUSPLICE_DEMOTE", "no", 1);
    setenv("CUSPLICE_LOG", "error", 1);
    fake::Reset();
    ASSERT_TRUE(cus_engine_start(&driver().table));
    static const std::thread::id test = std::this_thread::get_id();
    static std::atomic<std::thread::id> other;
    driver().fail = [](const std::string &name) {
        auto self = std::this_thread::get_id();
        if (name == "cuGraphLaunch" && stops && self != test && self != other) {
            asleep = true;
            while (!awake)
                usleep(1000);
        }
        return CUDA_SUCCESS;
    };
    CUstream stuck = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream free = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions;
    for (int i = 0; i < kOps; i++)
        functions.push_back(fake::MakeFunction("k" + std::to_string(i)));
    uint64_t value = 0;
    for (int step = 0; step < 8; step++)
        for (CUstream stream : {stuck, free}) {
            Step(stream, functions, value += 100);
            Sync(stream);
        }
    stops = true;
    Step(stuck, functions, value += 100, 4); // a segment
    auto begin = Clock::now();
    while (!asleep && Clock::now() - begin < std::chrono::seconds(20))
        usleep(1000);
    ASSERT_TRUE(asleep);
    usleep(100 * 1000); // it is overdue by now

    // Another thread's launch that nobody asks for goes out in time,
    uint64_t before = WatchdogFlushes();
    std::thread([&] {
        other = std::this_thread::get_id();
        Step(free, functions, value += 100, 2);
        auto begin = Clock::now();
        while (WatchdogFlushes() == before && Clock::now() - begin < std::chrono::seconds(20))
            usleep(1000);
        EXPECT_EQ(WatchdogFlushes(), before + 1);
        // and so do whole steps of it, by its own thread, which nobody has to ask.
        Sync(free);
        for (int step = 0; step < 4; step++) {
            size_t out = driver().journal.size();
            Step(free, functions, value += 100, 4); // a segment
            EXPECT_EQ(driver().journal.size(), out + 4);
            Sync(free);
        }
    }).join();
    EXPECT_FALSE(awake);

    std::atomic<bool> drained{false};
    begin = Clock::now();
    std::thread leaver([&] {
        cus_engine_drain();
        drained = true;
    });
    while (!drained && Clock::now() - begin < std::chrono::seconds(20))
        usleep(1000);
    EXPECT_TRUE(drained);
    awake = true;
    leaver.join();
    // What was on its way arrives, once.
    std::string last = "S" + std::to_string(fake::Of(stuck)->id) + " k3(1,";
    auto arrived = [&] {
        int n = 0;
        for (const std::string &line : driver().journal)
            n += line.rfind(last, 0) == 0;
        return n;
    };
    Sync(stuck);
    EXPECT_EQ(arrived(), 9);
}

} // namespace
