// Promise: a stream whose graphs do not pay is demoted and then costs next to nothing. What paid
// before is recognised at once, and builds are spread over steps by time.
#include "shim/base/clock.h"
#include "tests/text.h"
#include "tests/unit/stream/pays.h"
#include "tests/unit/stream/waits.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <thread>

extern "C" {
#include "shim/base/mem.h"
}

namespace {

uint64_t Observed(const cus_counters &c) {
    return c.eager_by[CUS_EAGER_OBSERVING] + c.eager_by[CUS_EAGER_DIVERGED] +
           c.eager_by[CUS_EAGER_FLUSHED];
}

TEST_F(Pays, WhatNeverRepeatsIsLookedAtSeldom) {
    Bad(400);
    cus_counters early = Since();
    EXPECT_GE(early.fallbacks[CUS_FALLBACK_DEMOTED], 1u);
    EXPECT_LE(Observed(early), 6500u) << "of 96000";
    Bad(4000);
    EXPECT_LE(Observed(Since()), 4000 * OPS / 200u)
        << "a fresh op costs a quarter of a launch more";
}

TEST_F(Pays, FewThatRepeatAmongManyThatDoNotAreGivenUp) {
    Three(2000);
    cus_counters early = Since();
    EXPECT_GT(early.in_graphs, 0u) << "they were in graphs";
    EXPECT_GE(early.fallbacks[CUS_FALLBACK_DEMOTED], 1u);
    EXPECT_LE(Observed(early), 110000u) << "in less than half a second";
    Three(6000);
    EXPECT_LE(Observed(Since()), 6000 * OPS / 200u);
}

TEST_F(Pays, WhatPaysIsNotGivenUp) {
    Good(3000);
    cus_counters all = Since();
    EXPECT_EQ(all.fallbacks[CUS_FALLBACK_DEMOTED], 0u);
    EXPECT_GT(all.in_graphs, 2985u * OPS);
}

TEST_F(Pays, AGoodPhaseIsKnownAgainInItsSecondStep) {
    Good(50);
    Since();
    for (int turn = 0; turn < 6; turn++) {
        Bad(300);
        cus_counters bad = Since();
        EXPECT_GE(bad.fallbacks[CUS_FALLBACK_DEMOTED], 1u);
        EXPECT_LE(Observed(bad), 6500u) << turn;
        Good(40);
        cus_counters good = Since();
        EXPECT_GE(good.in_graphs, 39u * OPS) << turn;
        EXPECT_EQ(good.built, 0u) << "its graphs were kept";
    }
}

// A thread that goes to another stream with each op defers one on none of them for long: they
// come again, and never get into graphs.
TEST_F(Pays, StreamsInTurnAreLeftAlone) {
    std::vector<CUstream> streams(16);
    for (CUstream &stream : streams)
        stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    auto steps = [&](unsigned n) {
        for (; n; n--) {
            for (unsigned i = 0; i < 1024; i++) {
                stream_ = streams[i % streams.size()];
                Launch(Fixed(i), i);
            }
            for (CUstream stream : streams)
                fake::Sync(stream);
            Wait();
        }
    };
    steps(200);
    cus_counters early = Since();
    EXPECT_GE(early.fallbacks[CUS_FALLBACK_DEMOTED], streams.size());
    EXPECT_LE(Observed(early) + early.eager_by[CUS_EAGER_FLUSHED], 110000u);
    steps(1000);
    cus_counters late = Since();
    EXPECT_LE(Observed(late) + late.eager_by[CUS_EAGER_FLUSHED], 1000 * 1024 / 50u);
}

// What was learned with patience, because it repeated itself, is given up as soon as anything else.
TEST_F(Pays, ABadPhaseBehindOneThatWasFoundByItsRepetitionIsLeftAloneToo) {
    Bad(100);
    Good(250);
    ASSERT_GT(Since().in_graphs, 200u * OPS);
    Bad(400);
    EXPECT_LE(Observed(Since()), 7000u) << "of 96000";
}

// The first ops say what comes; where they lie each time, they are not listened to any more.
TEST_F(Pays, StepsThatBeginWellAreTriedAFewTimes) {
    Good(50);
    Since();
    Bad(400, 4);
    EXPECT_LE(Observed(Since()), 24000u) << "of 96000";
    Bad(4000, 4);
    EXPECT_LE(Observed(Since()), 4000 * OPS / 50u);
}

TEST_F(Pays, ARepeatedOrderIsFoundWithoutAWait) {
    Bad(100);
    ASSERT_GE(Since().fallbacks[CUS_FALLBACK_DEMOTED], 1u);
    for (unsigned i = 0; i < 400000; i++)
        Launch(Fixed(i % 37), i % 37);
    cus_counters loop = Since();
    EXPECT_GT(loop.in_graphs, 365000u) << "long before it would be looked at anyway";
    Wait();
}

// A stream that repeated something of which nothing could be made is not deaf to something else.
TEST_F(Pays, AGoodPhaseBehindStepsOfOneLaunchIsFound) {
    for (unsigned step = 0; step < 1000000; step++, Wait())
        Launch(0, 0);
    Since();
    Good(6000);
    EXPECT_GT(Since().in_graphs, 2500u * OPS);
}

// What repeats itself is looked at patiently, but not where all of it is known and comes to
// nothing.
TEST_F(Pays, PatienceEndsSoonWhereNothingCanComeOfIt) {
    for (unsigned step = 0; step < 500000; step++, Wait())
        Launch(0, 0);
    EXPECT_LE(Observed(Since()), 180000u);
}

// While graphs may not be built nothing can be said of it.
TEST_F(Pays, PatienceLastsWhileGraphsArePutOff) {
    Bad(400);
    cus_engine_copying(true);
    Good(400);
    cus_engine_copying(false);
    Since();
    Good(40);
    EXPECT_GE(Since().in_graphs, 20u * OPS);
}

// Nor before a long turn has come as often as it takes.
TEST_F(Pays, PatienceLastsForALongTurn) {
    enum { LONG = 14000 };
    std::vector<unsigned> turn;
    for (unsigned i = 0; i < LONG; i++)
        turn.push_back(random_() % CHOICE);
    Bad(400);
    for (int times = 0; times < 30; times++, Wait()) {
        Since();
        for (unsigned i = 0; i < LONG; i++)
            Launch(turn[i], i);
    }
    EXPECT_GE(Since().in_graphs, 0u + LONG / 8) << "there is memory for a fourth";
}

// Nor does it cost much where that is nothing, either: it is looked at now and then, and the same
// thing is not.
TEST_F(Pays, HopelessLoopsInTurnAreSeldomLookedAt) {
    const struct {
        unsigned loops, length, most;
    } programs[] = {{1, 20000, 4096}, {20, 20000, 250000}};
    for (const auto &program : programs) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        auto steps = [&](unsigned n) {
            for (unsigned step = 0; step < n; step++, Wait())
                Launch(step / program.length % program.loops, 0);
        };
        steps(1000000);
        Since();
        steps(3000000);
        uint64_t looked = Observed(Since());
        EXPECT_LE(looked, program.most) << program.loops;
    }
}

// What a path was like before does not count when it changes for good.
TEST_F(Pays, AnotherWayInTheMidstIsLearnedHoweverLongTheFirstOneWasTaken) {
    for (unsigned before : {1000u, 100000u}) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Good(before);
        for (unsigned step = 0; step < 24; step++, Wait()) {
            Since();
            for (unsigned i = 0; i < OPS; i++)
                Launch(i == OPS / 2 ? CHOICE + 3 : Fixed(i), i);
        }
        EXPECT_EQ(Since().in_graphs, 0u + OPS) << before;
    }
}

TEST_F(Pays, BuildingIsSpreadByTime) {
    eager_ns = 2400;
    const uint64_t plain = 1000 * (launch_ns_ + eager_ns);
    for (uint64_t ns : {2500, 12000}) {
        node_ns = ns;
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        std::vector<uint64_t> took, in_graphs;
        unsigned first = 0;
        for (unsigned step = 1; step <= 40; step++) {
            uint64_t start = cus_virtual.ns;
            Since();
            Good(1, 1000);
            took.push_back(cus_virtual.ns - start);
            in_graphs.push_back(Since().in_graphs);
            if (!first && in_graphs.back())
                first = step;
        }
        EXPECT_EQ(first, 3u) << "replay begins when the step comes for the third time";
        EXPECT_LE(*std::max_element(took.begin(), took.end()), plain + 1000000) << ns;
        EXPECT_EQ(in_graphs.back(), 1000u) << ns;
    }
    // What was measured goes for the next one from its first graph on.
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    uint64_t most = 0;
    for (unsigned step = 1; step <= 40; step++) {
        uint64_t start = cus_virtual.ns;
        Good(1, 1000);
        most = std::max(most, cus_virtual.ns - start);
    }
    EXPECT_LE(most, plain + 800000);
}

// Beside threads that launch each graph waits until it may be begun, however small it is.
TEST_F(Pays, GraphsAreNoSmallerForWhatTheyWaitFor) {
    eager_ns = 2400;
    uint64_t usual = 0;
    for (uint64_t ns : {0, 150000}) {
        begin_ns = ns;
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Good(80, 1000);
        Since();
        Good(1, 1000);
        cus_counters last = Since();
        EXPECT_EQ(last.in_graphs, 1000u);
        if (!ns)
            usual = last.graph_launches;
        EXPECT_EQ(last.graph_launches, usual) << ns;
    }
}

// One of which nothing comes goes out op by op: how long that takes is nothing that graphs take.
TEST_F(Pays, WhatFailsIsNoMeasureOfWhatGraphsTake) {
    auto learn = [this] {
        std::vector<uint64_t> in_graphs;
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Since();
        for (int step = 0; step < 12; step++) {
            Good(1, 480);
            in_graphs.push_back(Since().in_graphs);
        }
        return in_graphs;
    };
    eager_ns = 2400;
    for (int i = 0; i < 4; i++)
        learn();
    std::vector<uint64_t> usual = learn();
    EXPECT_EQ(usual.back(), 480u);
    driver().fail = [](const std::string &name) {
        return name == "cuGraphInstantiateWithFlags" ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    eager_ns = 30000;
    EXPECT_EQ(learn().back(), 0u);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    eager_ns = 2400;
    EXPECT_EQ(learn(), usual);
}

// The first builds are slow, and the first steps may build little: 14 graphs of a step would stay.
TEST_F(Pays, SegmentsThatWereKeptSmallWhileBuildingWasSlowAreMadeAnew) {
    eager_ns = 2400;
    node_ns = 30000;
    Good(6, 1000);
    EXPECT_GT(Since().built, 0u);
    CUstream slow = stream_;
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    node_ns = 2500; // which is seen where something is built
    Good(100, 1000);
    stream_ = slow;
    Good(100, 1000);
    Since();
    Good(1, 1000);
    cus_counters last = Since();
    EXPECT_EQ(last.in_graphs, 1000u);
    EXPECT_LE(last.graph_launches, 8u);
    Good(300, 1000);
    EXPECT_EQ(Since().built, 0u) << "once";
}

// Segments that a cold host has shaped are made anew, share by share, while the others are
// launched.
TEST_F(Pays, SegmentsAreMadeAnewShareByShare) {
    uint64_t built = 0, least = 1000;
    for (unsigned step = 1; step <= 60; step++) {
        launch_ns_ = step < 8 ? 900 : 50;
        Since();
        Good(1, 1000);
        cus_counters now = Since();
        if (step >= 8) { // all of it is in graphs
            built += now.built;
            least = std::min(least, now.in_graphs);
        }
    }
    EXPECT_GE(built, 4u) << "they were";
    EXPECT_GE(least, 700u);
}

TEST_F(Pays, TheFirstGraphOfAStepGoesOutWithItsFourthLaunch) {
    Good(20);
    for (int step = 0; step < 4; step++) {
        Since();
        for (unsigned i = 0; i < OPS; i++) {
            Launch(Fixed(i), i);
            if (i + 1 == 4) {
                EXPECT_EQ(Since().graph_launches, 1u);
            }
        }
        Wait();
    }
}

// Another thread has found the stream awake, and waits for its lock until it is demoted: what it
// defers then goes out before what is asked for next.
TEST_F(Pays, WhatIsDeferredWhileTheStreamIsLeftAloneGoesOutFirst) {
    driver().lines = true;
    Good(50);
    for (unsigned step = 0; step < 8; step++, Wait()) // graphs that are not launched often
        for (unsigned i = 0; i < OPS; i++)
            Launch(Fixed(i + 500), i);
    for (unsigned i = 0; i < 4; i++)
        Launch(Fixed(i), i);
    const std::vector<std::string> good = driver().journal;
    ASSERT_EQ(good.size(), 4u) << "a graph";
    Wait();
    Since();

    std::thread other;
    auto &table = driver().table;
    static std::function<void()> at_destroy;
    static decltype(table.cuGraphExecDestroy) real_destroy;
    real_destroy = table.cuGraphExecDestroy;
    at_destroy = [&] {
        std::promise<int> tid;
        other = std::thread([&] {
            tid.set_value(gettid());
            for (unsigned i = 0; i < 3; i++)
                EXPECT_EQ(Issue(Fixed(i), i), CUDA_SUCCESS);
        });
        for (int id = tid.get_future().get(); !Waits(id);)
            std::this_thread::yield();
    };
    table.cuGraphExecDestroy = [](CUgraphExec exec) {
        std::function<void()> once;
        once.swap(at_destroy);
        if (once)
            once();
        return real_destroy(exec);
    };
    for (unsigned i = 0; at_destroy && i < 100 * OPS; i++) {
        Launch(random_() % CHOICE, i % OPS);
        if (i % OPS == OPS - 1 && at_destroy)
            Wait();
    }
    table.cuGraphExecDestroy = real_destroy;
    ASSERT_TRUE(other.joinable());
    other.join();
    for (unsigned i = 0; i < 3; i++)
        expected_.push_back(Fixed(i));
    EXPECT_EQ(Since().fallbacks[CUS_FALLBACK_DEMOTED], 1u) << "that was when";
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[Fixed(3)]));
    Launch(Fixed(3), 3);
    EXPECT_TRUE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[Fixed(3)]));
    cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
    auto &journal = driver().journal;
    ASSERT_GE(journal.size(), 4u);
    EXPECT_EQ(std::vector<std::string>(journal.end() - 4, journal.end()), good);
    Wait();
}

// A stream whose graphs paid is judged as seldom as a new one, and not as one on trial.
TEST_F(Pays, AStreamThatPaidIsOnTrialNoMore) {
    Bad(100);
    ASSERT_GE(Since().fallbacks[CUS_FALLBACK_DEMOTED], 1u);
    Good(250);
    Bad(1);
    Good(100);
    ASSERT_GT(Since().in_graphs, 300u * OPS);
    unsigned steps = 0;
    for (; steps < 40 && !Since().fallbacks[CUS_FALLBACK_DEMOTED]; steps++)
        Bad(1);
    EXPECT_GE(steps, 4096u / OPS);
    EXPECT_LT(steps, 40u) << "none of it repeats";
}

// Graphs of two fifths of the ops pay, although the other ones never repeat.
TEST_F(Pays, NewOpsAloneAreNoReasonToGiveUp) {
    Bad(100, 110);
    cus_counters all = Since();
    EXPECT_EQ(all.fallbacks[CUS_FALLBACK_DEMOTED], 0u);
    EXPECT_GT(all.in_graphs, 90u * 90);
}

// Nor is it one that the thread comes from another stream with every other op, or that the host
// waits behind every other one, where graphs of the rest pay.
TEST_F(Pays, OpsThatAreNeverDeferredAreNoReasonToGiveUp) {
    enum { TURNS = 80, TOGETHER = 60, STEPS = 200 };
    CUstream here = stream_, there = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (unsigned step = 0; step < STEPS; step++) {
        if (step == STEPS - 10)
            Since();
        for (unsigned i = 0; i < 2 * TURNS; i++) {
            stream_ = i % 2 ? there : here;
            Launch(Fixed(i), i);
        }
        stream_ = here;
        for (unsigned i = 0; i < TOGETHER; i++)
            Launch(Fixed(1000 + i), i);
        fake::Sync(there);
        Wait();
    }
    EXPECT_EQ(Since().in_graphs, 10u * TOGETHER);
}

TEST_F(Pays, StepsOfOneOpAreNoReasonToGiveUp) {
    enum { SINGLE = 40, TOGETHER = 24, TURNS = 400 };
    for (unsigned turn = 0; turn < TURNS; turn++) {
        if (turn == TURNS - 10)
            Since();
        for (unsigned i = 0; i < SINGLE; i++, Wait())
            Launch(50, 0);
        for (unsigned i = 0; i < TOGETHER; i++)
            Launch(i, i);
        Wait();
    }
    EXPECT_EQ(Since().in_graphs, 10u * TOGETHER);
}

// A stream that works keeps its graphs, although another one has no room.
TEST_F(Pays, MemoryOfAStreamThatWorksIsNotThereForOthers) {
    const unsigned kept = 3000, wanted = 3800; // of the nodes that 12 MiB hold, about 4800
    cus_virtual.ns += 10000000000;
    Good(50, kept);
    CUstream works = stream_, other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    uint64_t in_graphs = 0;
    for (int step = 0; step < 60; step++) {
        cus_virtual.ns += 20000000;
        stream_ = other;
        Good(1, wanted);
        stream_ = works;
        Since();
        Good(1, kept);
        in_graphs = Since().in_graphs;
    }
    EXPECT_GT(in_graphs, kept * 95 / 100);
}

// What a stream has kept goes when another one has no room.
TEST_F(Pays, MemoryOfAStreamLeftAloneIsThereForOthers) {
    const unsigned kept = 1500, wanted = 3800; // of the nodes that 12 MiB hold, about 4800
    Good(50, kept);
    ASSERT_GT(Since().in_graphs, 40u * kept);
    Bad(100);
    ASSERT_GE(Since().fallbacks[CUS_FALLBACK_DEMOTED], 1u);
    CUstream alone = stream_, other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int step = 0; step < 300; step++) { // it goes on, too
        cus_virtual.ns += 20000000;
        stream_ = alone;
        Bad(1);
        Since();
        stream_ = other;
        Good(1, wanted);
    }
    EXPECT_GT(Since().in_graphs, wanted * 95 / 100);
}

} // namespace
