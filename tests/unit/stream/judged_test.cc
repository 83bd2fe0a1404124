// Promise: a stream's account is judged as shim/stream/demotion.md says: when, what it may lose,
// what ends its patience, what lets it pass at once, and for how long.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/pays.h"

namespace {

constexpr uint64_t WINDOW = 4096, LOOK = 1024, SLEEP = 65536, PATIENCE = 262144;
constexpr int64_t CREDIT = 15000000, PAID = 8000000, TRIAL = 117187;

class Judged : public Pays {
  protected:
    static void TearDownTestSuite() { fake::EndEngine(false); } // its windows are made up
    void SetUp() override {
        Pays::SetUp();
        Launch(0, 0);
        Wait();
        uint64_t ops, in_graphs;
        last_engine_account(&ops, &in_graphs);
        ASSERT_EQ(ops, 1u);
        Judge({.ops = WINDOW - 1, .steps = 4}); // whole windows from here on
        last_engine_may_lose(CREDIT, 0);
    }
    void TearDown() override {
        Pays::TearDown();
        driver().journal.clear();
    }
    static verdict Judge(window window) {
        now = last_engine_judged(&window);
        return now;
    }
    // A window of four steps, with the rest of it as said.
    static verdict Whole(window window) {
        window.ops = window.ops ? window.ops : WINDOW;
        window.steps = window.steps ? window.steps : 4;
        return Judge(window);
    }
    static void LetPass() { ASSERT_TRUE(Whole({.fresh = WINDOW}).passes); }
    static inline verdict now;
};

TEST_F(Judged, AfterSoManyOpsAndFourSteps) {
    struct {
        window first, then;
    } cases[] = {
        {{.ops = WINDOW - 1, .cut = 10, .steps = 4}, {.ops = 1}},
        {{.ops = WINDOW, .cut = 10, .steps = 3}, {.steps = 1}},
        {{.ops = 65535, .cut = 10}, {.ops = 1}},
    };
    int64_t credit = CREDIT;
    for (const auto &one : cases) {
        EXPECT_EQ(Judge(one.first).credit, credit) << &one - cases;
        credit -= 10 * 300;
        EXPECT_EQ(Judge(one.then).credit, credit) << &one - cases;
        EXPECT_EQ(now.next, WINDOW);
    }
}

// A program that makes its functions as it goes.
TEST_F(Judged, AlsoIfNoFunctionComesTwice) {
    for (unsigned i = 1; i <= WINDOW + 1; i++) {
        CUfunction once = fake::MakeFunction("once" + std::to_string(i));
        ASSERT_EQ(fake::Launch(stream_, once, 0), CUDA_SUCCESS);
        if (i % (WINDOW / 4) == 0)
            fake::Sync(stream_);
    }
    EXPECT_EQ(Since().fallbacks[CUS_FALLBACK_DEMOTED], 1u);
}

TEST_F(Judged, LosesWhatEachThingCosts) {
    const struct {
        window came;
        int64_t cost;
    } cases[] = {
        {{.launches = 3}, 6000}, {{.patched = 5}, 1000},
        {{.built = 7}, 17500},   {{.anew = 2}, 60000},
        {{.fresh = 11}, 7700},   {{.warm = 13}, 3900},
        {{.cut = 17}, 5100},     {{.in_graphs = 10, .launches = 20}, 16000},
    };
    int64_t credit = CREDIT;
    for (const auto &one : cases) {
        credit -= one.cost;
        EXPECT_EQ(Whole(one.came).credit, credit) << &one - cases;
    }
}

// By more than one op in 64 of the ops.
TEST_F(Judged, LosesNothingWhileTheShareInGraphsGrows) {
    const struct {
        uint64_t in_graphs;
        bool loses;
    } cases[] = {
        {64, true}, {129, false}, {192, true}, {193, true}, {257, false}, {320, true},  {321, true},
        {10, true}, {65, false},  {128, true}, {0, true},   {64, true},   {129, false},
    };
    int64_t credit = CREDIT;
    for (const auto &one : cases) {
        credit -= one.loses ? 1000 * 2000 - (int64_t)one.in_graphs * 2400 : 0;
        EXPECT_EQ(Whole({.in_graphs = one.in_graphs, .launches = 1000}).credit, credit)
            << &one - cases;
        last_engine_may_lose(credit = CREDIT, 0);
    }
}

TEST_F(Judged, MayLoseWhatItGainedUpToABound) {
    last_engine_may_lose(1000, 0);
    EXPECT_EQ(Whole({.in_graphs = 100}).credit, 1000 + 240000);
    EXPECT_EQ(Whole({}).credit, 241000) << "nothing gained, nothing lost";
    last_engine_may_lose(PAID - 240001, 0);
    EXPECT_EQ(Whole({.in_graphs = 100}).credit, PAID - 1);
    EXPECT_EQ(Whole({.in_graphs = 100}).credit, PAID);
    EXPECT_EQ(Whole({.in_graphs = WINDOW}).credit, PAID);
}

TEST_F(Judged, IsLetPassWhenTheCreditIsGone) {
    last_engine_may_lose(3000, 0);
    EXPECT_FALSE(Whole({.cut = 10}).passes);
    EXPECT_EQ(now.credit, 0);
    EXPECT_TRUE(Whole({.cut = 1}).passes);
    EXPECT_EQ(now.sleep, SLEEP);
    EXPECT_EQ(now.credit, TRIAL);
    EXPECT_EQ(now.next, LOOK);
}

// Whatever it may lose: half of its ops are new, or come of other streams, or are whole steps.
TEST_F(Judged, IsLetPassAtOnce) {
    const struct {
        window came;
        bool passes;
    } cases[] = {
        {{.fresh = 2048}, true},
        {{.fresh = 2047}, false},
        {{.in_graphs = 409, .fresh = 2048}, true},
        {{.in_graphs = 410, .fresh = 2048}, false},
        {{.arrived = 2048}, true},
        {{.arrived = 2047}, false},
        {{.in_graphs = 1, .arrived = 2048}, false},
        {{.steps = 2049}, true},
        {{.steps = 2048}, false},
        {{.in_graphs = 1, .steps = 2049}, false},
    };
    for (const auto &one : cases) {
        EXPECT_EQ(Whole(one.came).passes, one.passes) << &one - cases;
        last_engine_tried_again();
        Whole({.in_graphs = WINDOW});
        ASSERT_EQ(now.sleep, 0u) << "it counts as new";
    }
}

// Known ops that lead to nothing, in two windows in a row.
TEST_F(Judged, IsLetPassWhereNoSegmentComes) {
    EXPECT_FALSE(Whole({.warm = 2048}).passes);
    EXPECT_FALSE(Whole({.warm = 2047}).passes) << "not that many";
    EXPECT_FALSE(Whole({.warm = 2048}).passes);
    EXPECT_FALSE(Whole({.built = 1, .warm = 2048}).passes) << "something was built";
    EXPECT_FALSE(Whole({.warm = 2048}).passes);
    EXPECT_FALSE(Whole({.in_graphs = 1, .warm = 2048}).passes) << "an op was in a graph";
    EXPECT_FALSE(Whole({.warm = 2048}).passes);
    EXPECT_TRUE(Whole({.warm = 2048}).passes);
    last_engine_tried_again();
    last_engine_may_lose(CREDIT, 0);
    EXPECT_FALSE(Whole({.warm = 2048}).passes) << "counted anew";
}

TEST_F(Judged, WithoutGraphsItIsNotBlamedForThem) {
    process_may_build(false);
    for (int i = 0; i < 3; i++)
        EXPECT_FALSE(Whole({.warm = 2048}).passes);
    last_engine_may_lose(0, 0);
    EXPECT_FALSE(Whole({.cut = 1}).passes);
    process_may_build(true);
    EXPECT_TRUE(Whole({.cut = 1}).passes);
}

TEST_F(Judged, PatienceKeepsItFromPassing) {
    const struct {
        window came;
        uint64_t spent;
    } cases[] = {
        {{.fresh = WINDOW}, WINDOW},
        {{.built = 1000, .fresh = WINDOW}, WINDOW - 1000},
        {{.built = WINDOW, .fresh = WINDOW}, 0},
        {{.built = WINDOW + 1, .fresh = WINDOW}, 0},
        {{.in_graphs = 300, .fresh = WINDOW}, WINDOW}, // it loses
        {{.fresh = 2048, .warm = 2048}, 8 * WINDOW},   // they lead to nothing
    };
    for (const auto &one : cases) {
        last_engine_may_lose(CREDIT, PATIENCE);
        EXPECT_FALSE(Whole(one.came).passes);
        EXPECT_EQ(now.patience, PATIENCE - one.spent) << &one - cases;
        Whole({.in_graphs = WINDOW});
    }
    last_engine_may_lose(-1, WINDOW + 1);
    EXPECT_FALSE(Whole({.cut = 1}).passes);
    EXPECT_EQ(now.patience, 1u);
    EXPECT_EQ(now.credit, 0) << "it may not lose more than before";
    EXPECT_FALSE(Whole({.cut = 1}).passes);
    EXPECT_EQ(now.patience, 0u);
    EXPECT_TRUE(Whole({.cut = 1}).passes);
}

// Not by what its object counted for the stream before it.
TEST_F(Judged, AnotherStreamIsJudgedByItself) {
    Judge({.ops = 60000, .cut = 60000, .arrived = 5000}); // nothing is judged yet
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&ref);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Launch(0, 0);
    Wait();
    EXPECT_FALSE(Whole({}).passes);
    EXPECT_EQ(now.credit, CREDIT - 700) << "its one op was new";
}

TEST_F(Judged, PatienceIsOfNoUseBesideStreamsAndSteps) {
    for (const window &came : {window{.arrived = 2048}, {.steps = 2049}}) {
        last_engine_may_lose(CREDIT, PATIENCE);
        EXPECT_TRUE(Whole(came).passes);
        EXPECT_EQ(now.patience, 0u);
        last_engine_tried_again();
        Whole({.in_graphs = WINDOW});
    }
    last_engine_may_lose(CREDIT, PATIENCE);
    Whole({.warm = 2048});
    EXPECT_TRUE(Whole({.warm = 2048}).passes) << "nor where no segment comes";
}

TEST_F(Judged, WhatPaysUsesUpPatience) {
    last_engine_may_lose(CREDIT, 1000);
    EXPECT_EQ(Whole({.in_graphs = 100}).patience, 200u);
    EXPECT_EQ(Whole({.in_graphs = 100}).patience, 0u);
    last_engine_may_lose(CREDIT, 1000);
    EXPECT_EQ(Whole({.in_graphs = 100, .launches = 121}).patience, 1000u) << "it lost";
}

TEST_F(Judged, PassesFourTimesAsManyEachTime) {
    for (uint64_t sleep : {65536, 262144, 1048576, 4194304, 16777216, 16777216}) {
        LetPass();
        EXPECT_EQ(now.sleep, sleep);
        last_engine_tried_again();
    }
    Whole({.in_graphs = 2047});
    EXPECT_EQ(now.sleep, 16777216u);
    EXPECT_EQ(now.next, LOOK) << "on trial";
    Whole({.in_graphs = 2048});
    EXPECT_EQ(now.sleep, 0u) << "half of the ops were in graphs";
    Whole({});
    EXPECT_EQ(now.next, WINDOW);
    LetPass();
    EXPECT_EQ(now.sleep, SLEEP);
    EXPECT_EQ(now.credit, TRIAL) << "counted anew";
}

// The share grows anew then.
TEST_F(Judged, WhatWasInGraphsBeforeItPassedIsForgotten) {
    ASSERT_TRUE(Whole({.in_graphs = 400, .fresh = WINDOW}).passes);
    last_engine_tried_again();
    last_engine_may_lose(CREDIT, 0);
    EXPECT_EQ(Whole({.in_graphs = 65, .launches = 1000}).credit, CREDIT);
    EXPECT_LT(Whole({.in_graphs = 65, .launches = 1000}).credit, CREDIT);
}

// It gets credit and patience, half as much with each trial before it that came to nothing.
TEST_F(Judged, IsLearnedWithPatienceWhenItsOpsRepeat) {
    for (int tries = 0; tries < 9; tries++) {
        LetPass();
        last_engine_repeats(100);
        Whole({.cut = 1});
        int halved = std::min(tries, 6);
        EXPECT_EQ(now.patience, PATIENCE >> halved) << tries;
        EXPECT_EQ(now.credit, (CREDIT >> halved) - 300) << tries;
        EXPECT_EQ(now.next, WINDOW) << tries;
        last_engine_may_lose(CREDIT, 0);
    }
}

// Until each op of the turn came often enough: `warmup` turns, which are two, and one.
TEST_F(Judged, PatienceLastsForThreeTurns) {
    LetPass();
    last_engine_repeats(87382);
    EXPECT_EQ(Whole({}).patience, 3u * 87382);
    last_engine_may_lose(CREDIT, 0);
    LetPass();
    EXPECT_EQ(now.sleep, 16u * 3 * 87382) << "sixteen times what it took";
    EXPECT_EQ(now.next, WINDOW) << "what repeats is not believed now";
}

// If that is more than four times what passed before.
TEST_F(Judged, WhatWasLearnedInVainPassesSixteenTimes) {
    for (uint32_t turn : {1000u, 10000u}) {
        LetPass();
        uint64_t before = now.sleep;
        last_engine_repeats(turn);
        Whole({});
        last_engine_may_lose(CREDIT, 0);
        LetPass();
        EXPECT_EQ(now.sleep, std::max(4 * before, uint64_t(16 * 3) * turn)) << turn;
        SetUp(); // another stream
    }
}

TEST_F(Judged, AFalseBeginningIsForgottenAtTheThird) {
    Good(40); // graphs that pay
    Whole({});
    LetPass();
    for (int tries = 1; tries <= 3; tries++) {
        ASSERT_TRUE(last_engine_knows_ops()) << tries;
        last_engine_begins_alike();
        Whole({});
        EXPECT_EQ(now.patience, 0u);
        EXPECT_EQ(now.next, WINDOW);
        LetPass();
        EXPECT_EQ(now.next, LOOK);
    }
    EXPECT_FALSE(last_engine_knows_ops());
}

} // namespace
