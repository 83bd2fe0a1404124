// Promise: while the gate is shut for one thread, no other thread enters, for two seconds at most.
// The gate does not shut while other threads are inside, or were a moment ago.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

extern "C" {
#include "shim/verify/gate.h"
}

namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `inside` on another thread, and waits for it.
template <class F> void Elsewhere(F inside) {
    std::thread(inside).join();
}

TEST(Gate, OthersWaitUntilItIsOpen) {
    std::atomic<bool> in{false};
    cus_gate_enter();
    ASSERT_TRUE(cus_gate_shut());
    std::thread other([&] {
        cus_gate_enter();
        in = true;
        cus_gate_leave();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(in);
    EXPECT_FALSE(cus_gate_forced());
    cus_gate_open();
    other.join();
    EXPECT_TRUE(in);
    cus_gate_leave();
}

TEST(Gate, ItsOwnThreadGoesInAgain) {
    cus_gate_enter();
    ASSERT_TRUE(cus_gate_shut());
    EXPECT_TRUE(cus_gate_try());
    cus_gate_leave();
    Elsewhere([] { EXPECT_FALSE(cus_gate_try()); });
    cus_gate_open();
    Elsewhere([] {
        EXPECT_TRUE(cus_gate_try());
        cus_gate_leave();
    });
    cus_gate_leave();
}

TEST(Gate, IsNotShutWhileAnotherIsInside) {
    std::atomic<int> stage{0};
    auto stays = [&] {
        cus_gate_enter();
        stage = 1;
        while (stage != 2)
            std::this_thread::yield();
        cus_gate_leave();
    };
    std::thread other(stays);
    while (stage != 1)
        std::this_thread::yield();
    cus_gate_enter();
    auto waits = [] {
        auto start = Clock::now();
        EXPECT_FALSE(cus_gate_shut());
        return Since(start);
    };
    for (int i = 0; i < 3; i++)
        EXPECT_GE(waits(), 0.02);
    double fastest = 1; // who stays is not waited for as long again
    for (int i = 0; i < 20; i++)
        fastest = std::min(fastest, waits());
    EXPECT_LT(fastest, 0.02);
    stage = 2;
    other.join();
    EXPECT_TRUE(cus_gate_shut());
    cus_gate_open();
    stage = 0; // and who comes later is waited for again
    std::thread later(stays);
    while (stage != 1)
        std::this_thread::yield();
    EXPECT_GE(waits(), 0.02);
    stage = 2;
    later.join();
    cus_gate_leave();
}

TEST(Gate, IsNotShutForTwo) {
    cus_gate_enter();
    ASSERT_TRUE(cus_gate_shut());
    Elsewhere([] { EXPECT_FALSE(cus_gate_shut()); });
    cus_gate_open();
    cus_gate_leave();
}

// Who goes on into the driver is on the way for a moment.
TEST(Gate, IsNotShutRightBehindOneWhoPassed) {
    bool shut;
    auto start = Clock::now();
    Elsewhere([] {
        cus_gate_enter();
        cus_gate_pass();
    });
    cus_gate_enter();
    if ((shut = cus_gate_shut()))
        cus_gate_open();
    EXPECT_TRUE(!shut || Since(start) > 0.0009);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(cus_gate_shut());
    cus_gate_open();
    cus_gate_pass(); // its own passing is no reason
    cus_gate_enter();
    EXPECT_TRUE(cus_gate_shut());
    cus_gate_open();
    cus_gate_leave();
}

TEST(Gate, NobodyWaitsForEver) {
    cus_gate_enter();
    ASSERT_TRUE(cus_gate_shut());
    auto start = Clock::now();
    Elsewhere([] {
        cus_gate_enter();
        cus_gate_leave();
    });
    EXPECT_GE(Since(start), 1.9);
    EXPECT_TRUE(cus_gate_forced());
    cus_gate_open();
    EXPECT_TRUE(cus_gate_shut()) << "and the next one begins afresh";
    EXPECT_FALSE(cus_gate_forced());
    cus_gate_open();
    cus_gate_leave();
}

} // namespace
