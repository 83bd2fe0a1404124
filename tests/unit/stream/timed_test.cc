// Promise: one launch in 16 of a thread that goes out by itself is timed, and no other call.
#include "shim/base/clock.h"
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <thread>

namespace {

using fake::driver;

uint64_t g_takes; // ns of each call

class Timed : public fake::EngineTest {
  protected:
    void SetUp() override {
        fake::Reset();
        cus_virtual.on = true;
        cus_virtual.ns = 1000000;
        static decltype(driver().table.cuLaunchKernel) real;
        real = driver().table.cuLaunchKernel;
        driver().table.cuLaunchKernel = [](auto... arguments) {
            cus_virtual.ns += g_takes;
            return real(arguments...);
        };
        driver().table.cuMemsetD8Async = fake::Fill;
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_MODE", "eager"}}));
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        f_ = fake::MakeFunction("k");
    }
    void TearDown() override { fake::EndEngine(); }

    CUstream stream_;
    CUfunction f_;
};

// Each launch takes longer than the one before.
TEST_F(Timed, EverySixteenthLaunchOfAThread) {
    uint32_t took;
    EXPECT_EQ(launches_timed(&took), 0u);
    std::thread([&] {
        for (uint64_t i = 1; i <= 40; i++) {
            g_takes = 100 * i;
            ASSERT_EQ(fake::Launch(stream_, f_, i), CUDA_SUCCESS);
            ASSERT_EQ(launches_timed(&took), i / 16) << i;
            ASSERT_EQ(took, i / 16 * 1600) << i;
        }
    }).join();
}

TEST_F(Timed, NoMemset) {
    uint32_t took;
    cus_memset memset = fake::FillCall(stream_);
    g_takes = 100;
    std::thread([&] {
        for (int i = 0; i < 15; i++)
            ASSERT_EQ(fake::Launch(stream_, f_, 1), CUDA_SUCCESS);
        for (int i = 0; i < 40; i++)
            ASSERT_EQ(cus_engine_memset(&memset), CUDA_SUCCESS);
        EXPECT_EQ(launches_timed(&took), 0u);
        ASSERT_EQ(fake::Launch(stream_, f_, 1), CUDA_SUCCESS);
        EXPECT_EQ(launches_timed(&took), 1u);
    }).join();
}

} // namespace
