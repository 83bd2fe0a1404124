// Promise: nothing waits for a clock that stands still, as it does while cusplice whatif plays a
// program.
#include "shim/base/clock.h"
#include "tests/unit/stream/adverse.h"

#include <thread>

extern "C" {
#include "shim/stream/virtual.h"
}

namespace {

using fake::Counters;
using fake::driver;

class StillClock : public Adverse {
  protected:
    static void SetUpTestSuite() {
        cus_virtual.on = true;
        cus_virtual.ns = 1;
        Adverse::SetUpTestSuite();
    }
};

TEST_F(StillClock, RoomIsNotWaitedForWithoutEnd) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    Launch(0);
    Sync();
    for (int i = 0; i < 64; i++)
        cus_engine_room_taken(true);
    fake::Of(stream_)->busy = true;
    Steps(4);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_ROOM], 0u);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(stream_)->busy = false;
}

// A nanosecond before, nothing is overdue.
TEST_F(StillClock, TheWatchdogIsDueWhenOpsAreOverdue) {
    Steps(6);
    EXPECT_EQ(cus_watchdog_due(), UINT64_MAX);
    cus_virtual.ns += 5;
    Launch(0);
    driver().journal.clear();
    EXPECT_EQ(cus_watchdog_due(), cus_virtual.ns + 1000000000 + 1);
    cus_virtual.ns += 1000000000;
    cus_watchdog_issue();
    EXPECT_TRUE(driver().journal.empty());
    cus_virtual.ns += 1;
    cus_watchdog_issue();
    EXPECT_EQ(driver().journal.size(), 1u);
    Sync();

    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::thread([&] {
        fake::Learn(other, functions_);
        fake::Launch(other, functions_[0], 100);
    }).join();
    cus_virtual.ns += 1;
    Launch(0);
    EXPECT_EQ(cus_watchdog_due(), cus_virtual.ns + 1000000000) << "the other one's is earlier";
    Sync();
    fake::Sync(other);
}

// Steps that take 1 ms, and 0.6 ms with graphs, behind three of one op each. The report has what
// the clock says, and knows the program's steps from those that set it up.
class LearningCurve : public StillClock {};

TEST_F(LearningCurve, IsInTheReport) {
    const uint64_t kPlain = 1000000, kLate = 600000;
    for (int i = 0; i < 3; i++) {
        cus_virtual.ns += 50000;
        Launch(0);
        Sync();
    }
    uint64_t first_ten = 0;
    unsigned learned = 0;
    for (unsigned step = 1; step <= 200; step++) {
        uint64_t before = Counters().in_graphs;
        for (int i = 0; i < kOps; i++)
            Launch(i);
        bool graphs = Counters().in_graphs > before;
        if (graphs && !learned)
            learned = step;
        uint64_t ns = graphs ? kLate : kPlain;
        cus_virtual.ns += ns;
        first_ten += step > 1 && step <= 11 ? ns : 0;
        Sync();
    }
    cus_report report;
    cus_counters counters = Counters();
    cus_engine_report(&report, &counters, nullptr);
    EXPECT_GE(learned, 3u) << "there are plain steps to look at";
    EXPECT_LE(learned, 8u);
    EXPECT_EQ(report.learned.gain_at, learned);
    EXPECT_EQ(report.learned.first_ten_ns, first_ten);
    EXPECT_EQ(report.learned.late_ns, kLate);
    EXPECT_EQ(report.learned.first[0].ns, kPlain + 2 * 50000) << "from the first launch on";
    EXPECT_TRUE(report.learned.plain_seen);
    // All but what the library itself costs a plain step, some 100 ns an op.
    EXPECT_LE(report.learned.plain_ns, kPlain);
    EXPECT_GE(report.learned.plain_ns, kPlain - 1000 * kOps);
    EXPECT_EQ(report.learned.percent,
              (first_ten * 100 + 5 * report.learned.plain_ns) / (10 * report.learned.plain_ns));
    // The first 128 steps, and of the others one in 16. Those of one op belong to the first one.
    EXPECT_EQ(report.learned.steps, 128u + (200 - 128 + 15) / 16);
}

// A step that is longer than all before it together begins the count.
class LearningCurveBehindALongSetUp : public StillClock {};

TEST_F(LearningCurveBehindALongSetUp, HasNoneOfItsSteps) {
    for (int i = 0; i < 1000; i++) {
        cus_virtual.ns += 5000;
        Launch(0);
        Sync();
    }
    for (unsigned step = 0; step < 20; step++) {
        for (int i = 0; i < kOps * 12; i++)
            Launch(i % kOps);
        cus_virtual.ns += 700000;
        Sync();
    }
    cus_report report;
    cus_counters counters = Counters();
    cus_engine_report(&report, &counters, nullptr);
    EXPECT_EQ(report.learned.steps, 20u);
    EXPECT_EQ(report.learned.first_ten_ns, 7000000u);
    EXPECT_EQ(report.learned.late_ns, 700000u);
}

} // namespace
