// Promise: a program that ends waits a while for a segment that is being launched, and issues what
// is deferred behind it. What other streams defer does not wait for that.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "tests/unit/stream/submitted.h"
#include "tests/unit/stream/waits.h"

extern "C" {
#include "tests/unit/stream/held_locks.h"
}

namespace {

extern "C" uint64_t cus_exit_patience_ns(void); // of shim/stream/access.h, which is C alone

class SubmittedAtExit : public Submitted {};

// The stream is the first one of the process. Its graph is launched as soon as the other stream's
// op is out.
TEST_F(SubmittedAtExit, WhatIsDeferredGoesOut) {
    static std::function<void()> program;
    static std::atomic<int> leaver;
    static std::atomic<bool> out;
    static decltype(driver().table.cuLaunchKernel) real;
    const uint64_t patience = cus_exit_patience_ns();
    std::atomic<bool> drained{false};
    leaver = 0;
    out = false;
    real = driver().table.cuLaunchKernel;
    driver().table.cuLaunchKernel = [](auto... arguments) {
        CUresult result = real(arguments...);
        out = out || leaver == gettid();
        return result;
    };
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions = fake::MakeFunctions(kOps);
    std::thread([&] {
        fake::Learn(other, functions);
        driver().journal.clear();
        EXPECT_EQ(fake::Launch(other, functions[0], 7), CUDA_SUCCESS);
    }).join();
    StopAt("cuGraphLaunch", false);
    int n = UntilSubmitted();
    ASSERT_GT(n, 0);
    ASSERT_LT(n, kOps);
    Ops(n, n + 1);
    ASSERT_TRUE(driver().journal.empty());
    std::thread leaves;
    program = [&] {
        leaves = std::thread([&] {
            leaver = gettid();
            cus_engine_drain();
            drained = true;
        });
        EXPECT_TRUE(Within(20, [] { return out.load(); }));
        EXPECT_TRUE(Within(20, [&] { return drained || Waits(leaver); }));
        Open();
    };
    hold_gate([] { program(); }); // the watchdog issues nothing
    leaves.join();
    Sync();
    expected_.insert(expected_.begin(), fake::Line(other, "k0", 7));
    EXPECT_EQ(driver().journal, expected_);
    EXPECT_EQ(cus_exit_patience_ns(), patience) << "nobody had to give up";
}

} // namespace
