// Promise: either there is a watchdog, which runs above a real-time thread that polls, or the
// library defers nothing.
//
// The watchdog starts once, so each test has its own process. That process has one processor: a
// thread that polls there keeps all others off it unless they have a higher priority.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "shim/base/thread.h"
#include "tests/unit/stream/program.h"

namespace {

constexpr int kOps = 8, kSkipped = 9;
std::atomic<int> g_issued{0}; // launches and graphs that reached the driver

bool Become(int policy, int priority) {
    sched_param param = {};
    param.sched_priority = priority;
    return sched_setscheduler(0, policy, &param) == 0;
}

// No real-time thread may run for long: the watchdog is not raised.
void ForbidRaising() {
    rlimit limit = {3600000000u, 3600000000u};
    ASSERT_EQ(setrlimit(RLIMIT_RTTIME, &limit), 0);
}

class Realtime : public testing::Test {
  protected:
    void InProcess(const std::function<void()> &body) {
        pid_t child = fork();
        if (child == 0) {
            alarm(50);
            cpu_set_t one;
            sched_getaffinity(0, sizeof all_, &all_);
            CPU_ZERO(&one);
            CPU_SET(sched_getcpu(), &one);
            sched_setaffinity(0, sizeof one, &one);
            cus_thread_note();
            if (!Become(SCHED_FIFO, 1) || !Become(SCHED_OTHER, 0))
                _exit(kSkipped);
            Warm();
            body();
            fflush(stdout);
            _exit(testing::Test::HasFailure());
        }
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped)
            GTEST_SKIP() << "no right to SCHED_FIFO";
        EXPECT_EQ(status, 0);
    }

    void Warm(const fake::Settings &more = {}) {
        fake::Reset();
        fake::driver().fail = [](const std::string &call) {
            g_issued += call == "cuLaunchKernel" || call == "cuGraphLaunch";
            return CUDA_SUCCESS;
        };
        fake::Settings settings = {{"CUSPLICE_HOLD_US", "2000"}, {"CUSPLICE_SEGMENT_FIRST", "8"}};
        settings.insert(settings.end(), more.begin(), more.end());
        ASSERT_TRUE(fake::StartEngine(settings));
        functions_ = fake::MakeFunctions(kOps);
        Turn();
    }
    // To a new stream, whose step is known then and goes out as a graph.
    void Turn() {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        int before = fake::driver().calls["cuGraphLaunch"];
        for (int step = 0; step < 6; step++)
            Step();
        ASSERT_GT(fake::driver().calls["cuGraphLaunch"], before);
    }
    void Launch(int i) { ASSERT_EQ(fake::Launch(stream_, functions_[i], 1, 2), CUDA_SUCCESS); }
    void Step() {
        for (int i = 0; i < kOps; i++)
            Launch(i);
        Wait();
    }
    void Wait() { fake::Sync(stream_); }
    // Does the first op of a step reach the driver at once?
    bool GoesOut() {
        int before = g_issued;
        Launch(0);
        bool out = g_issued != before;
        Wait();
        return out;
    }
    // The host looks at memory, and calls nothing. Once for a stream: it is remembered.
    void PollDeferred() {
        int before = g_issued;
        Launch(0);
        ASSERT_EQ(g_issued, before) << "not deferred";
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
        while (g_issued == before && std::chrono::steady_clock::now() < end) {
        }
        EXPECT_NE(g_issued, before) << "stuck";
        Wait();
    }
    uint64_t Counted() { return fake::Counters().fallbacks[CUS_FALLBACK_REALTIME]; }

    cpu_set_t all_;
    CUstream stream_;
    std::vector<CUfunction> functions_;
};

TEST_F(Realtime, WatchdogRunsAboveAThreadThatPolls) {
    for (int policy : {SCHED_FIFO, SCHED_RR})
        InProcess([&] {
            Become(policy, 50);
            Wait(); // the kernel is asked once a step
            PollDeferred();
            int highest = 0;
            cus_thread_urgent(1, &highest);
            EXPECT_EQ(highest, 51);
            for (int higher : {51, 60}) { // beside the watchdog, and above it
                Become(policy, higher);
                Turn();
                PollDeferred();
                cus_thread_urgent(1, &highest);
                EXPECT_EQ(highest, higher + 1);
            }
            Become(SCHED_OTHER, 0);
            EXPECT_EQ(Counted(), 0u);
        });
}

TEST_F(Realtime, WatchdogOfTheNextEngineRunsAboveItToo) {
    InProcess([&] {
        Become(SCHED_FIFO, 50);
        Wait();
        PollDeferred();
        fake::EndEngine();
        Warm();
        Wait();
        PollDeferred();
        int highest = 0;
        cus_thread_urgent(1, &highest);
        EXPECT_EQ(highest, 51);
        Become(SCHED_OTHER, 0);
    });
}

// The promise with one processor: the kernel lets the watchdog in.
TEST_F(Realtime, OneProcessorIsEnoughForOrdinaryThreads) {
    InProcess([&] {
        PollDeferred();
        EXPECT_EQ(Counted(), 0u);
        int highest = 0;
        EXPECT_EQ(cus_thread_urgent(1, &highest), 0u) << "the watchdog is an ordinary thread, too";
    });
}

TEST_F(Realtime, NothingIsDeferredWhereTheWatchdogMayNotBeAbove) {
    InProcess([&] {
        ForbidRaising();
        EXPECT_FALSE(GoesOut());
        for (int round = 0; round < 2; round++) {
            SCOPED_TRACE(round);
            Turn();
            if (round) // at an even step and at an odd one
                Step();
            Launch(0);
            Become(SCHED_FIFO, 50);
            Wait();
            EXPECT_TRUE(GoesOut());
            EXPECT_GT(Counted(), 0u);
            Become(SCHED_OTHER, 0);
            Wait();
            EXPECT_FALSE(GoesOut());
        }
    });
}

// There is nothing above this one.
TEST_F(Realtime, NothingIsDeferredAtTheHighestPriority) {
    InProcess([&] {
        Become(SCHED_RR, 99);
        Wait();
        const cus_tally *tally = cus_tally_of("k0", true);
        uint64_t before = tally->alone[CUS_WHY_REALTIME];
        EXPECT_TRUE(GoesOut());
        EXPECT_EQ(tally->alone[CUS_WHY_REALTIME], before + 1);
        Become(SCHED_OTHER, 0);
    });
}

// There is no address space for a thread's stack.
TEST_F(Realtime, NothingIsDeferredWhereTheWatchdogCannotStart) {
    if (getenv("CUS_TEST_SANITIZER"))
        GTEST_SKIP() << "a sanitizer's runtime has most of the address space";
    pid_t child = fork();
    if (child == 0) {
        alarm(50);
        unsigned long pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlim_t bytes = pages * (rlim_t)getpagesize() + (4 << 20);
        rlimit limit = {bytes, bytes};
        EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
        fake::Reset();
        fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}});
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        functions_ = fake::MakeFunctions(kOps);
        for (int step = 0; step < 12; step++) {
            for (int i = 0; i < kOps; i++) {
                size_t before = fake::driver().journal.size();
                Launch(i);
                EXPECT_EQ(fake::driver().journal.size(), before + 1);
            }
            Wait();
        }
        fflush(stdout);
        _exit(testing::Test::HasFailure());
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(Realtime, SegmentThatIsTakenOverIsIssuedFirst) {
    InProcess([&] {
        ForbidRaising();
        int before = g_issued;
        Launch(0);
        ASSERT_EQ(g_issued, before);
        std::thread([&] {
            Become(SCHED_FIFO, 50);
            Launch(1);
            EXPECT_EQ(g_issued, before + 2);
            Become(SCHED_OTHER, 0);
        }).join();
    });
}

// It would wait for a thread that is not real-time.
TEST_F(Realtime, ItsGraphsAreSubmittedByNobodyElse) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "nothing is submitted where there is one processor";
    InProcess([&] {
        fake::EndEngine();
        sched_setaffinity(0, sizeof all_, &all_);
        Warm({{"CUSPLICE_HOLD_US", "1000000"},
              {"CUSPLICE_SUBMIT_NS", "1"},
              {"CUSPLICE_DEMOTE", "no"}});
        auto submits = [&] {
            cus_counters before = fake::Counters();
            Step();
            EXPECT_EQ(fake::Counters().graph_launches, before.graph_launches + 1);
            return fake::Counters().submitted != before.submitted;
        };
        EXPECT_TRUE(submits());
        Become(SCHED_FIFO, 50);
        Wait(); // the kernel is asked once a step
        EXPECT_FALSE(submits());
        Become(SCHED_OTHER, 0);
        Wait();
        EXPECT_TRUE(submits());
        fake::EndEngine();
    });
}

// A thread that launches nothing may poll for what another one defers. Nothing can be above the
// highest priority: it bars no other thread.
TEST_F(Realtime, WatchdogRunsAboveThreadsThatDoNotLaunchToo) {
    for (int priority : {60, 99})
        InProcess([&] {
            std::atomic<bool> end{false}, runs{false};
            std::thread other([&] {
                Become(SCHED_RR, priority);
                for (runs = true; !end;)
                    usleep(1000);
            });
            while (!runs)
                usleep(1000);
            Become(SCHED_FIFO, 50);
            Wait();
            PollDeferred();
            int highest = 0;
            cus_thread_urgent(1, &highest);
            EXPECT_EQ(highest, priority == 60 ? 61 : 99);
            Become(SCHED_OTHER, 0);
            EXPECT_EQ(Counted(), 0u);
            end = true;
            other.join();
        });
}

TEST_F(Realtime, AThreadOnOneOfTwoProcessorsEndsNothing) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "there is one processor";
    InProcess([&] {
        fake::EndEngine();
        sched_setaffinity(0, sizeof all_, &all_);
        cus_thread_note();
        Warm({{"CUSPLICE_HOLD_US", "1000000"}});
        ForbidRaising();
        std::atomic<bool> end{false};
        std::thread other([&] {
            Become(SCHED_FIFO, 50);
            while (!end)
                usleep(1000);
        });
        for (int i = 0; i < 2500; i++) { // two looks of the watchdog
            Step();
            usleep(1000);
        }
        EXPECT_EQ(Counted(), 0u);
        // A look has found one since this thread was asked, so it is asked again.
        std::thread([&] {
            stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
            for (int step = 0; step < 6; step++)
                Step();
            usleep(1600000);
            Become(SCHED_FIFO, 50);
            EXPECT_TRUE(GoesOut());
            Become(SCHED_OTHER, 0);
        }).join();
        end = true;
        other.join();
        fake::EndEngine();
    });
}

// They do not launch, but they can poll for what another thread defers.
TEST_F(Realtime, AsManyThreadsAsProcessorsEndDeferring) {
    InProcess([&] {
        ForbidRaising();
        std::atomic<bool> end{false};
        std::thread other([&] {
            Become(SCHED_FIFO, 1);
            while (!end)
                usleep(1000);
        });
        for (int i = 0; i < 20000 && !Counted(); i++) {
            Step();
            usleep(1000);
        }
        EXPECT_GT(Counted(), 0u);
        EXPECT_TRUE(GoesOut());
        end = true;
        other.join();
        bool out = true;
        for (int i = 0; i < 20000 && out; i++) {
            usleep(1000);
            out = GoesOut();
        }
        EXPECT_FALSE(out) << "for ever";
    });
}

} // namespace
