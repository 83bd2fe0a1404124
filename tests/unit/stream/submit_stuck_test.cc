// Promise: if the submit thread sleeps in the driver because the GPU's queue is full, only those
// wait who need that launch.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/unit/stream/program.h"

namespace {

using fake::driver;

constexpr int kOps = 8;

std::atomic<bool> stops, asleep, awake;

void Step(CUstream stream, const std::vector<CUfunction> &functions, uint64_t value, int n = kOps) {
    for (int i = 0; i < n; i++)
        ASSERT_EQ(fake::Launch(stream, functions[i], value + i), CUDA_SUCCESS);
}

uint64_t WatchdogFlushes() {
    return fake::Counters().flushes[CUS_CAUSE_WATCHDOG];
}

class SubmittedStuck : public fake::EngineTest {};

TEST_F(SubmittedStuck, OthersGoOnAndTheProgramEnds) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "nothing is submitted where there is one processor";
    fake::Reset();
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "20000"},
                                   {"CUSPLICE_SUBMIT_NS", "1"},
                                   {"CUSPLICE_DEMOTE", "no"},
                                   {"CUSPLICE_LOG", "error"}}));
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
    std::vector<CUfunction> functions = fake::MakeFunctions(kOps);
    uint64_t value = 0;
    for (int step = 0; step < 8; step++)
        for (CUstream stream : {stuck, free}) {
            Step(stream, functions, value += 100);
            fake::Sync(stream);
        }
    stops = true;
    const uint64_t on_its_way = value += 100;
    Step(stuck, functions, on_its_way, 4); // a segment
    ASSERT_TRUE(Within(20, [] { return asleep.load(); }));
    usleep(100 * 1000); // it is overdue by now

    // Another thread's launch that nobody asks for goes out in time,
    uint64_t before = WatchdogFlushes();
    std::thread([&] {
        other = std::this_thread::get_id();
        Step(free, functions, value += 100, 2);
        Within(20, [&] { return WatchdogFlushes() != before; });
        EXPECT_EQ(WatchdogFlushes(), before + 1);
        // and so do whole steps of it, by its own thread, which nobody has to ask.
        fake::Sync(free);
        for (int step = 0; step < 4; step++) {
            size_t out = driver().journal.size();
            Step(free, functions, value += 100, 4); // a segment
            EXPECT_EQ(driver().journal.size(), out + 4);
            fake::Sync(free);
        }
    }).join();
    EXPECT_FALSE(awake);

    std::atomic<bool> drained{false};
    std::thread leaver([&] {
        cus_engine_drain();
        drained = true;
    });
    EXPECT_TRUE(Within(20, [&] { return drained.load(); }));
    awake = true;
    leaver.join();
    // What was on its way arrives, once.
    fake::Sync(stuck);
    for (uint64_t step = 100; step <= on_its_way; step += 200) // the other stream's come between
        EXPECT_EQ(std::count(driver().journal.begin(), driver().journal.end(),
                             fake::Line(stuck, "k3", step + 3)),
                  1);
}

} // namespace
