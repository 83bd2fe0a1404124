// Promise: the program ends even if a thread sleeps in the driver and holds its stream's lock.
#include "shim/base/clock.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "tests/unit/stream/held_locks.h"
}

namespace {

using fake::driver;

extern "C" uint64_t cus_exit_patience_ns(void); // of shim/stream/access.h, which is C alone

std::atomic<bool> asleep, open_gate, drained;

class Exit : public testing::Test {
  protected:
    void TearDown() override { fake::EndEngine(); }
};

TEST_F(Exit, DoesNotWaitForAThreadThatSleepsInTheDriver) {
    fake::Reset();
    asleep = open_gate = drained = false;
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_LOG", "error"}}));
    const uint64_t patience = cus_exit_patience_ns();
    std::vector<CUfunction> functions = fake::MakeFunctions(8);
    CUstream busy = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    auto launch = [&](CUstream on, int i) {
        ASSERT_EQ(fake::Launch(on, functions[i], 1, 2), CUDA_SUCCESS);
    };
    for (CUstream on : {busy, other})
        ASSERT_NO_FATAL_FAILURE(fake::Learn(on, functions));
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
        char text[512];
        fake::Counters();
        cus_engine_segment_list(text, sizeof text);
        drained = true;
    });
    EXPECT_TRUE(Within(20, [] { return drained.load(); }));
    EXPECT_EQ(driver().journal.size(), 1u) << "what others deferred is issued";
    CUcontext context;
    driver().table.cuCtxGetCurrent(&context);
    EXPECT_FALSE(engine_is_free(busy, context)) << "it is the sleeper's";
    open_gate = true;
    sleeper.join();
    leaver.join();
    EXPECT_EQ(driver().journal.size(), 1u + 8u) << "and the sleeper's ops once";
    // The next engine is as patient as this one was.
    EXPECT_LT(cus_exit_patience_ns(), patience);
    fake::EndEngine();
    EXPECT_EQ(cus_exit_patience_ns(), patience);
}

// It is the lock of the first stream. It is given as soon as the other stream's op is out.
TEST_F(Exit, WaitsAWhileForAThreadThatGoesOn) {
    fake::Reset();
    cus_virtual.on = true; // no watchdog issues anything
    cus_virtual.ns = 1000000;
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_LOG", "error"}}));
    static CUcontext context;
    static CUstream first, other;
    static std::vector<CUfunction> functions;
    static std::atomic<bool> out;
    static std::thread leaver;
    const uint64_t patience = cus_exit_patience_ns();
    driver().table.cuCtxGetCurrent(&context);
    functions = fake::MakeFunctions(8);
    first = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (CUstream on : {first, other})
        std::thread([on] {
            fake::Learn(on, functions);
            driver().journal.clear();
            EXPECT_EQ(fake::Launch(on, functions[0], 7), CUDA_SUCCESS);
        }).join();
    ASSERT_TRUE(driver().journal.empty());
    out = drained = false;
    driver().fail = [](const std::string &) {
        out = true;
        return CUDA_SUCCESS;
    };
    hold_engine(first, context, [] {
        leaver = std::thread([] {
            cus_engine_drain();
            drained = true;
        });
        EXPECT_TRUE(Within(20, [] { return out.load(); }));
        EXPECT_TRUE(Within(20, [] { return drained || engine_is_waited_for(first, context); }));
    });
    leaver.join();
    const std::vector<std::string> expected = {fake::Line(other, "k0", 7),
                                               fake::Line(first, "k0", 7)};
    EXPECT_EQ(driver().journal, expected);
    EXPECT_EQ(cus_exit_patience_ns(), patience) << "nobody had to give up";
}

} // namespace
