// Promise: the recorder's times agree with CLOCK_MONOTONIC and keep their order, for all pairs of
// both clocks. If the kernel does not trust the counter, nobody reads it.
extern "C" {
#include "shim/trace/ticks.h"
}

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

// Where the kernel says this of its clock; NULL: nothing.
bool UsableWith(const char *source) {
    std::string path = testing::TempDir() + "current_clocksource";
    remove(path.c_str());
    if (source)
        std::ofstream(path) << source;
    const char *kernels = std::exchange(cus_ticks_source, path.c_str());
    bool usable = cus_ticks_usable();
    cus_ticks_source = kernels;
    return usable;
}

// A counter of 3 GHz or so beside a clock whose pace is not quite even.
struct Played {
    std::unique_ptr<cus_ticks> ticks = std::make_unique<cus_ticks>();
    uint64_t at = 5000000000u, ns = 70000000000u;
    unsigned random = 1;
    void Pair(uint64_t after_ns) {
        random = random * 1664525 + 1013904223;
        ns += after_ns;
        at += after_ns * 3 + random % 50;
        cus_ticks_add(ticks.get(), at, ns);
    }
};

TEST(Ticks, AreUsedWhereTheKernelsClockIsThem) {
    EXPECT_FALSE(UsableWith("hpet\n"));
    EXPECT_FALSE(UsableWith("kvm-clock\n"));
    EXPECT_FALSE(UsableWith("tsc-early\n"));
    EXPECT_FALSE(UsableWith(""));
    EXPECT_FALSE(UsableWith(nullptr));
    if (cus_ticks_usable()) {
        EXPECT_TRUE(UsableWith("tsc\n"));
    }
}

TEST(Ticks, ElsewhereMomentsAreTheClock) {
    cus_ticks_use(false);
    uint64_t before = cus_clock_ns(), moment = cus_ticks_now(), after = cus_clock_ns();
    EXPECT_LE(before, moment);
    EXPECT_LE(moment, after);
    uint64_t took = cus_ticks_since(before);
    EXPECT_GE(took, after - before);
    EXPECT_LE(took, cus_clock_ns() - before);
}

TEST(Ticks, AreNearTheClock) {
    enum { NEAR_NS = 2000, MOMENTS = 2000 };
    if (!cus_ticks_usable())
        GTEST_SKIP() << "the kernel's clock is another one";
    struct Moment {
        uint64_t before, moment, after;
        uint32_t took;
    };
    std::vector<Moment> moments;
    auto ticks = std::make_unique<cus_ticks>();
    cus_ticks_use(true);
    cus_ticks_pair(ticks.get());
    for (int i = 0; i < MOMENTS; i++) {
        Moment m;
        m.before = cus_clock_ns();
        m.moment = cus_ticks_now();
        m.after = cus_clock_ns();
        m.took = cus_ticks_since(m.moment);
        moments.push_back(m);
        if (i % 100 == 99)
            cus_ticks_pair(ticks.get());
    }
    cus_ticks_use(false);
    uint64_t last = 0;
    for (const Moment &m : moments) {
        uint64_t ns = cus_ticks_ns(ticks.get(), m.moment);
        ASSERT_GE(ns + NEAR_NS, m.before);
        ASSERT_LE(ns, m.after + NEAR_NS);
        ASSERT_GE(ns, last) << "never back";
        last = ns;
        ASSERT_GE(ns + cus_ticks_length(ticks.get(), m.moment, m.took) + NEAR_NS, m.after);
    }
}

TEST(Ticks, KeepTheirOrderAndLieBetweenTheirPairs) {
    Played p;
    std::vector<std::pair<uint64_t, uint64_t>> pairs;
    for (int i = 0; i < 900; i++) {
        p.Pair(1 + p.random % 20000);
        pairs.emplace_back(p.at, p.ns);
    }
    uint64_t last = 0;
    for (size_t i = 0; i + 1 < pairs.size(); i++) {
        EXPECT_EQ(cus_ticks_ns(p.ticks.get(), pairs[i].first), pairs[i].second);
        uint64_t step = (pairs[i + 1].first - pairs[i].first) / 7 + 1;
        for (uint64_t at = pairs[i].first; at < pairs[i + 1].first; at += step) {
            uint64_t ns = cus_ticks_ns(p.ticks.get(), at);
            ASSERT_GE(ns, last);
            ASSERT_GE(ns, pairs[i].second);
            ASSERT_LE(ns, pairs[i + 1].second);
            last = ns;
        }
    }
    EXPECT_EQ(cus_ticks_ns(p.ticks.get(), p.at + 1000000), p.ns) << "nothing is foretold";
}

// What began long ago is still told from what began before that.
TEST(Ticks, OldPairsLieFurtherApart) {
    Played p;
    std::vector<std::pair<uint64_t, uint64_t>> pairs;
    for (int i = 0; i < 100000; i++) {
        p.Pair(20000000);
        pairs.emplace_back(p.at, p.ns);
        ASSERT_LE(p.ticks->n, (uint32_t)CUS_TICKS_PAIRS);
    }
    uint64_t last = 0;
    for (const auto &[at, ns] : pairs) {
        uint64_t told = cus_ticks_ns(p.ticks.get(), at);
        ASSERT_NEAR((double)told, (double)ns, 10000);
        ASSERT_GT(told, last);
        last = told;
    }
}

TEST(Ticks, ACounterThatWasSetBackGoesOn) {
    Played p;
    for (int i = 0; i < 10; i++)
        p.Pair(20000000);
    uint64_t old = p.at, then = p.ns;
    p.at = 1000;
    p.Pair(50);
    EXPECT_EQ(cus_ticks_ns(p.ticks.get(), old), then + 50) << "at the end of that time";
    uint64_t at = p.at, ns = p.ns;
    p.Pair(20000000);
    EXPECT_NEAR((double)cus_ticks_ns(p.ticks.get(), (at + p.at) / 2), (double)(ns + 10000000), 100);
}

TEST(Ticks, ALengthIsCutAtWhatAFileHolds) {
    Played p;
    p.Pair(0);
    uint64_t began = p.at;
    p.Pair(60000000000u);
    EXPECT_NEAR(cus_ticks_length(p.ticks.get(), began, 3000000 / 8), 1000000, 10);
    EXPECT_EQ(cus_ticks_length(p.ticks.get(), began, 0xffffffff), UINT32_MAX);
}

} // namespace
