// Promise: a thread that is about to issue an op or a graph waits for a build, also on a demoted
// stream, but never long. If no thread waits, builds lose this priority until one is held up.
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

extern "C" {
#include "tests/unit/stream/held_locks.h"
#include "tests/unit/stream/hot_call.h"
}

namespace {

using fake::driver;
using Clock = std::chrono::steady_clock;

constexpr unsigned kOps = 64, kSegment = 16, kBuilds = 64, kHoldMs = 1000;
std::vector<CUfunction> functions;

void Launch(CUstream stream, unsigned place, uint64_t a) {
    EXPECT_EQ(fake::Launch(stream, functions[place % functions.size()], a), CUDA_SUCCESS);
}

void Step(CUstream stream, unsigned ops = kOps) {
    for (unsigned place = 0; place < ops; place++)
        Launch(stream, place, 100 + place);
    fake::Sync(stream);
}

uint64_t GraphLaunches() {
    return fake::Counters().graph_launches;
}

double MsOf(const std::function<void()> &what) {
    auto begin = Clock::now();
    what();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::vector<bool> way;           // had priority, of each build
std::function<void()> meanwhile; // in each build, while it holds what it holds

CUresult Building(const std::string &name) {
    if (name != "cuGraphInstantiateWithFlags")
        return CUDA_SUCCESS;
    way.push_back(build_has_priority());
    if (auto now = meanwhile)
        now();
    return CUDA_SUCCESS;
}

class BuildPriority : public testing::Test {
  protected:
    // Once: the watchdog stays.
    static void SetUpTestSuite() {
        setenv("CUSPLICE_HOLD_US", std::to_string(kHoldMs * 1000).c_str(), 1);
        setenv("CUSPLICE_SEGMENT_FIRST", "16", 1);
        setenv("CUSPLICE_SEGMENT_MAX", "16", 1);
        setenv("CUSPLICE_BUILD_US", "0", 1);
        fake::Reset();
        driver().fail = Building;
        ASSERT_TRUE(cus_engine_start(&driver().table));
        functions = fake::MakeFunctions(16);
    }
    BuildPriority() {
        build_as_at_start();
        way.clear();
        meanwhile = nullptr;
    }

    // Streams whose steps are built, until there are so many graphs more.
    void Build(size_t builds) {
        for (size_t end = way.size() + builds; way.size() < end;) {
            CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
            for (int step = 0; step < 6; step++)
                Step(stream);
        }
    }
};

TEST_F(BuildPriority, OpsAndGraphsOfOtherThreadsWaitAndNotForLong) {
    CUstream ops = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream graphs = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream building = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Step(ops, 3); // its functions are known
    for (int step = 0; step < 6; step++)
        Step(graphs);
    way.clear();
    std::vector<double> op, graph;
    // No build ends before another thread's op has been issued, as if that held a lock.
    meanwhile = [&] {
        std::thread([&] {
            op.push_back(MsOf([&] { Launch(ops, 0, op.size()); }));
            graph.push_back(MsOf([&] {
                for (unsigned place = 0; place < kSegment; place++)
                    Launch(graphs, place, 100 + place);
            }));
            fake::Sync(graphs);
        }).join();
    };
    for (int step = 0; step < 6; step++)
        Step(building);
    meanwhile = nullptr;
    ASSERT_EQ(way.size(), kOps / kSegment);
    for (size_t i = 0; i < way.size(); i++) {
        EXPECT_TRUE(way[i]);
        EXPECT_GE(op[i], 0.9) << "an op did not wait";
        EXPECT_GE(graph[i], 0.9) << "a graph did not wait";
    }
    EXPECT_FALSE(build_has_priority()) << "nothing is built any more";
}

TEST_F(BuildPriority, OpsOfAStreamThatIsLeftAloneWait) {
    CUstream alone = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    unsigned random = 1;
    for (int i = 0; i < 16000; i++) {
        random = random * 1664525 + 1013904223;
        Launch(alone, random >> 24, i);
        if (i % 400 == 399)
            fake::Sync(alone);
    }
    // Another thread, which knows that the stream is demoted.
    std::promise<void> ready, builds, looked;
    bool passed_before = false, passed = true;
    double ms = 0;
    std::thread other([&] {
        Launch(alone, 1, 1);
        passed_before = hot_passes(alone, CUS_ABI_LEGACY, functions[1]);
        ready.set_value();
        builds.get_future().wait();
        passed = hot_passes(alone, CUS_ABI_LEGACY, functions[1]);
        ms = MsOf([&] { Launch(alone, 1, 1); });
        looked.set_value();
    });
    meanwhile = [&] {
        meanwhile = nullptr;
        builds.set_value();
        looked.get_future().wait();
    };
    ready.get_future().wait();
    Build(1);
    other.join();
    EXPECT_TRUE(passed_before) << "it is not left alone";
    EXPECT_FALSE(passed) << "it went by";
    EXPECT_GE(ms, 0.9) << "it did not wait";
}

// Nor is a stream that threads share held up for longer by as many of them.
TEST_F(BuildPriority, AStreamThatThreadsShareWaitsAFewTimesForOneBuild) {
    CUstream shared = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int step = 0; step < 6; step++)
        Step(shared);
    double ms = 0;
    unsigned waited = 0;
    meanwhile = [&] {
        meanwhile = nullptr;
        ms = MsOf([&] {
            for (int i = 0; i < 6; i++)
                std::thread([&] { Step(shared); }).join(); // four segments
        });
        waited = builds_waited();
    };
    Build(1);
    EXPECT_EQ(waited, 1u) << "it is the stream that does, not its threads";
    EXPECT_GE(ms, 3.6) << "four times";
}

// A complete segment waits no longer than its ops may be deferred: one that has been for so long
// (whoever issues it then is kept out here) goes out at once.
TEST_F(BuildPriority, WhatWasDeferredForLongEnoughWaitsForNoBuild) {
    static CUstream graphs;
    static unsigned waited[2];
    graphs = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int step = 0; step < 6; step++)
        Step(graphs);
    meanwhile = [&] {
        meanwhile = nullptr;
        auto segment = [] {
            for (unsigned place = 0; place + 1 < kSegment; place++)
                Launch(graphs, place, 100 + place);
        };
        auto last = [] {
            Launch(graphs, kSegment - 1, 100 + kSegment - 1);
            return builds_waited();
        };
        std::thread([&] {
            segment();
            waited[0] = last();
            fake::Sync(graphs);
        }).join();
        std::thread([&] {
            segment();
            hold_gate(
                [] { std::this_thread::sleep_for(std::chrono::milliseconds(kHoldMs + 100)); });
            waited[1] = last();
            fake::Sync(graphs);
        }).join();
    };
    uint64_t launches = GraphLaunches();
    Build(1);
    EXPECT_EQ(waited[0], 1u);
    EXPECT_EQ(waited[1], 1u) << "it waited as well";
    EXPECT_GE(GraphLaunches(), launches + 2) << "they went out as graphs";
}

// A build that waits for what another thread has yet to launch.
TEST_F(BuildPriority, AThreadWaitsAFewTimesForOneBuild) {
    CUstream beside = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Step(beside, 3);
    double ms = 0;
    meanwhile = [&] {
        meanwhile = nullptr;
        std::thread([&] {
            ms = MsOf([&] {
                for (unsigned i = 0; i < 60; i++)
                    Launch(beside, i % 3, i * i);
            });
        }).join();
    };
    Build(1);
    EXPECT_GE(ms, 3.6) << "four times";
    EXPECT_LT(ms, 45) << "not with each of 60";
}

// One that had no way tells by its time whether it was held up: of those only the first is known
// here.
TEST_F(BuildPriority, WhereNobodyWaitsThereIsNoneUntilABuildIsHeldUp) {
    Build(kBuilds);
    meanwhile = [&] {
        meanwhile = nullptr;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    Build(kBuilds + 2);
    for (size_t i = 0; i <= 2 * kBuilds + 1; i++)
        EXPECT_EQ(way[i], i != kBuilds && i != 2 * kBuilds + 1) << i;
}

// The driver's lock goes to whoever asks most often: a build beside many threads would never end.
TEST_F(BuildPriority, ABuildThatTakesLongHasItFromThenOn) {
    CUstream beside = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Step(beside, 3);
    Build(kBuilds);
    unsigned waited[3];
    bool has[3];
    double ms = 0;
    meanwhile = [&] {
        meanwhile = nullptr;
        auto look = [&](int i) {
            std::thread([&] { ms = MsOf([&] { Launch(beside, 0, i); }); }).join();
            waited[i] = builds_waited();
            has[i] = build_has_priority();
        };
        has[0] = build_has_priority();
        std::this_thread::sleep_for(std::chrono::milliseconds(1)); // 16 nodes: 0.12
        look(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        look(2);
    };
    Build(1);
    EXPECT_FALSE(has[0]);
    EXPECT_TRUE(has[1]) << "whoever comes says so to the others";
    EXPECT_TRUE(has[2]);
    EXPECT_EQ(waited[1], 1u);
    EXPECT_EQ(waited[2], 2u);
    EXPECT_GE(ms, 0.9) << "it did not wait";
    EXPECT_FALSE(build_has_priority()) << "nothing is built any more";
}

// Nobody waits for one that takes no longer than it should: 1000 nodes 7.5 ms.
TEST_F(BuildPriority, ABuildThatTakesNotLongHasNone) {
    static bool waits[2];
    Build(kBuilds);
    hold_priority(1000, [] {
        waits[0] = waits_for_build();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        waits[1] = waits_for_build();
    });
    EXPECT_FALSE(waits[0]);
    EXPECT_TRUE(waits[1]);
    EXPECT_FALSE(build_has_priority()) << "nothing is built any more";
}

// A thread that has waited for one build often enough waits for the next one all the same.
TEST_F(BuildPriority, EachBuildIsWaitedForAFewTimes) {
    for (int build = 0; build < 3; build++)
        hold_priority(4, [] {
            int waits = 0;
            while (waits < 100 && waits_again_for_build())
                waits++;
            EXPECT_EQ(waits, 4);
        });
}

TEST_F(BuildPriority, AsLongAsThreadsWaitForThemBuildsHaveIt) {
    CUstream beside[3];
    for (CUstream &stream : beside) {
        stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Step(stream, 3);
    }
    unsigned waiting = 3;
    meanwhile = [&] {
        for (unsigned i = 0; i < waiting; i++)
            std::thread([&] { Launch(beside[i], 0, way.size()); }).join();
        if (!waiting) // one, which a build does not mind
            std::thread([&] {
                for (unsigned i = 0; i < 6; i++)
                    Launch(beside[i % 3], 0, way.size());
            }).join();
    };
    Build(2 * kBuilds);
    for (size_t i = 0; i < way.size(); i++)
        EXPECT_TRUE(way[i]) << i;
    waiting = 0;
    size_t before = way.size();
    Build(kBuilds + 1);
    for (size_t i = before; i <= before + kBuilds; i++)
        EXPECT_EQ(way[i], i < before + kBuilds) << i;
}

} // namespace
