// Promise: the watchdog learns nothing from a thread that had no processor, nor where it came too
// late itself, unless that comes at one place again and again. It learns from one that sleeps,
// polls or computes. The test says what the kernel would: the time, what each thread has run, and
// whether the thread could run.
#include "shim/base/clock.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

extern "C" {
#include "shim/stream/virtual.h"
}

namespace {

using fake::Counters;
using fake::driver;

enum {
    US = 1000,
    HOLD = 1000 * US, // hold_us
    LOOK = HOLD / 2,  // from look to look
    FUNCTIONS = 12,
    CUT = 5,  // the launch that a thread is held up before
    CUTS = 3, // by the watchdog at one place make a boundary
};

struct Thread {
    pid_t tid;
    uint64_t ran_ns;
    bool runnable;
};

class Paused : public testing::Test {
  protected:
    void SetUp() override {
        fake::Reset();
        cus_virtual.on = true;
        cus_virtual.ns = 1000000;
        cus_virtual.ran_ns = [](pid_t tid) { return Of(tid).ran_ns; };
        cus_virtual.runnable = [](pid_t tid) { return Of(tid).runnable; };
        threads_ = {{gettid(), 1, true}};
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", std::to_string(HOLD / US)},
                                       {"CUSPLICE_SEGMENT_FIRST", "64"},
                                       {"CUSPLICE_LOG", "error"}}));
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        functions_ = fake::MakeFunctions(FUNCTIONS);
        ASSERT_NO_FATAL_FAILURE(fake::Learn(stream_, functions_));
    }
    void TearDown() override { fake::EndEngine(); }

    static Thread &Of(pid_t tid) {
        for (Thread &thread : threads_)
            if (thread.tid == tid)
                return thread;
        ADD_FAILURE() << "nobody owns ops by this number: " << tid;
        return threads_[0];
    }
    static Thread &Own() { return Of(gettid()); }

    // Time goes on, and the calling thread runs for some of it. Then the watchdog looks.
    static void Look(uint64_t ns, uint64_t ran_ns) {
        cus_virtual.ns += ns;
        Own().ran_ns += ran_ns;
        cus_watchdog_look();
    }
    void Launches(int from, int to) {
        for (int i = from; i < to; i++)
            ASSERT_EQ(fake::Launch(stream_, functions_[i], 1, 2), CUDA_SUCCESS);
    }
    static bool Deferred() { return cus_watchdog_due() != UINT64_MAX; }

    // A step in which the thread is held up, and the watchdog issues what is deferred. It has seen
    // the ops twice before.
    template <typename HeldUp> void Step(HeldUp held_up) {
        uint64_t cuts = Counters().flushes[CUS_CAUSE_WATCHDOG];
        cus_watchdog_look();
        Launches(0, CUT);
        Look(1 * US, 1 * US);
        Look(LOOK, LOOK);
        EXPECT_TRUE(Deferred());
        held_up();
        EXPECT_FALSE(Deferred());
        EXPECT_EQ(Counters().flushes[CUS_CAUSE_WATCHDOG], cuts + 1);
        Launches(CUT, FUNCTIONS);
        fake::Sync(stream_);
    }
    // The thread is held up for a look, and runs for so long meanwhile.
    void Steps(uint64_t ran_ns) {
        for (int i = 0; i < CUTS; i++)
            Step([&] { Look(LOOK, ran_ns); });
    }
    // Do segments end at the place?
    bool Learned() {
        int graphs = 0;
        for (int i = 0; i < 4; i++) {
            graphs = driver().calls["cuGraphLaunch"];
            Launches(0, FUNCTIONS);
            fake::Sync(stream_);
            graphs = driver().calls["cuGraphLaunch"] - graphs;
        }
        EXPECT_TRUE(graphs == 1 || graphs == 2) << graphs;
        return graphs == 2;
    }

    static inline std::vector<Thread> threads_;
    CUstream stream_;
    std::vector<CUfunction> functions_;
};

// ---- the thread that owns the ops ----

TEST_F(Paused, HasNoProcessor) {
    Steps(0);
    EXPECT_FALSE(Learned());
}

// One that polls where processors are few: in each step it waits for one at the same place.
TEST_F(Paused, HasNoProcessorAtOnePlaceAgainAndAgain) {
    Steps(0);
    Step([&] { Look(LOOK, 0); });
    EXPECT_TRUE(Learned());
}

TEST_F(Paused, HasLessThanHalfOfAProcessor) {
    Steps(LOOK / 2 - 1);
    EXPECT_FALSE(Learned());
}

TEST_F(Paused, NotIfItHasHalfOfAProcessor) {
    Steps(LOOK / 2);
    EXPECT_TRUE(Learned());
}

TEST_F(Paused, NotIfItPollsOrComputes) {
    Steps(LOOK);
    EXPECT_TRUE(Learned());
}

TEST_F(Paused, NotIfItSleepsInACall) {
    Own().runnable = false;
    Steps(0);
    EXPECT_TRUE(Learned());
}

TEST_F(Paused, NotIfItSleepsInACallAfterAWhile) {
    Own().runnable = false;
    Steps(LOOK / 2 - 1);
    EXPECT_TRUE(Learned());
}

// ---- what is not known ----

TEST_F(Paused, NotIfNoTimeCanBeRead) {
    cus_virtual.ran_ns = [](pid_t) { return uint64_t{0}; };
    Steps(0);
    EXPECT_TRUE(Learned());
}

TEST_F(Paused, NotIfNoTimeCanBeReadAnyMore) {
    for (int i = 0; i < CUTS; i++)
        Step([] {
            cus_virtual.ran_ns = [](pid_t) { return uint64_t{0}; };
            Look(LOOK, 0);
            cus_virtual.ran_ns = [](pid_t tid) { return Of(tid).ran_ns; };
        });
    EXPECT_TRUE(Learned());
}

TEST_F(Paused, NotIfNothingIsKnownOfThreads) {
    cus_virtual.ran_ns = nullptr;
    Steps(0);
    EXPECT_TRUE(Learned());
}

TEST_F(Paused, NotIfNoStateCanBeRead) {
    cus_virtual.runnable = nullptr;
    Steps(0);
    EXPECT_TRUE(Learned());
}

// ---- another thread ----

class PausedOfTwo : public Paused {
  protected:
    // The calling thread owns ops at a look, then another one that is held up.
    void Steps(uint64_t ran_ns) {
        for (int i = 0; i < CUTS; i++) {
            Own().ran_ns += 100 * HOLD;
            Seen();
            Other([&] { Step([&] { Look(LOOK, ran_ns); }); });
        }
    }
    void Seen() {
        Launches(0, CUT);
        Look(1 * US, 1 * US);
        Launches(CUT, FUNCTIONS);
        fake::Sync(stream_);
    }
    template <typename Does> static void Other(Does does) {
        std::thread([&] {
            threads_.push_back({gettid(), 1, true});
            does();
            threads_.pop_back();
        }).join();
    }
};

TEST_F(PausedOfTwo, TheOwnerHasNoProcessor) {
    Steps(0);
    EXPECT_FALSE(Learned());
}

TEST_F(PausedOfTwo, NotIfTheOwnerPolls) {
    Steps(LOOK);
    EXPECT_TRUE(Learned());
}

// ---- the watchdog itself is late ----

// The thread may have been stopped too, and has only just begun to run again.
TEST_F(Paused, NoOpGoesOutAtALateLook) {
    for (int i = 0; i < CUTS; i++)
        Step([] {
            Look(HOLD + 1, 0);
            EXPECT_TRUE(Deferred());
            Look(LOOK, LOOK);
        });
    EXPECT_FALSE(Learned());
}

TEST_F(Paused, OpsGoOutAtASecondLateLook) {
    for (int i = 0; i < CUTS; i++)
        Step([] {
            Look(HOLD + 1, 0);
            EXPECT_TRUE(Deferred());
            Look(HOLD + 1, HOLD + 1);
        });
    EXPECT_FALSE(Learned());
}

TEST_F(Paused, ALookIsInTimeForAllOfHoldUs) {
    for (int i = 0; i < CUTS; i++)
        Step([] { Look(HOLD, HOLD); });
    EXPECT_TRUE(Learned());
}

// A late look at which nothing is overdue changes nothing.
TEST_F(Paused, ALateLookIsForgotten) {
    for (int i = 0; i < CUTS; i++) {
        cus_virtual.ns += 100 * HOLD;
        Step([] { Look(LOOK, LOOK); });
    }
    EXPECT_TRUE(Learned());
}

// As `cusplice whatif` does: it looks only when ops are due, and knows nothing of threads.
TEST_F(Paused, NotWhereAToolOnlyIssues) {
    cus_virtual.ran_ns = nullptr;
    cus_virtual.runnable = nullptr;
    for (int i = 0; i < CUTS; i++) {
        Launches(0, CUT);
        cus_virtual.ns += 10 * HOLD;
        cus_watchdog_issue();
        EXPECT_FALSE(Deferred());
        Launches(CUT, FUNCTIONS);
        fake::Sync(stream_);
    }
    EXPECT_TRUE(Learned());
}

// At the look before nothing was deferred, or ops of another thread, or there was no such look.
class PausedUnseen : public PausedOfTwo {
  protected:
    void Unseen() {
        Launches(0, CUT);
        Look(HOLD + 1, HOLD + 1);
        EXPECT_TRUE(Deferred());
        Look(LOOK, LOOK);
        EXPECT_FALSE(Deferred());
        Launches(CUT, FUNCTIONS);
        fake::Sync(stream_);
    }
};

TEST_F(PausedUnseen, OpsGetHalfOfHoldUs) {
    for (int i = 0; i < CUTS; i++) {
        Unseen();
        cus_watchdog_look();
    }
    EXPECT_FALSE(Learned());
}

TEST_F(PausedUnseen, OpsOfANewOwnerToo) {
    for (int i = 0; i < CUTS; i++) {
        Seen();
        Other([&] { Unseen(); });
    }
    EXPECT_FALSE(Learned());
}

} // namespace
