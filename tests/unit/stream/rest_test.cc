// Promise: a program that is faster without the library is left alone, and no other; while it is,
// nothing is deferred, and afterwards nothing is believed that was known before.
#include "shim/base/clock.h"
#include "tests/unit/stream/branches.h"
#include "tests/unit/stream/engines.h"

extern "C" {
#include "shim/stream/rest.h"
#include "tests/unit/stream/held_locks.h"
}

namespace {

using fake::driver;
using fake::Elsewhere;

class Resting : public Branches {
  protected:
    void TearDown() override {
        cus_rest_end();
        Branches::TearDown();
    }
    static cus_counters Counters() { return fake::Counters(); }
    // Steps of four launches on a stream, until they are graphs.
    void Teach(CUstream stream) {
        for (int step = 0; step < 8; step++) {
            for (int i = 0; i < 4; i++)
                On(stream, i);
            Await(stream);
        }
        Clear();
    }
    // Until steps are graphs with a branch; and the side stream is no branch now.
    void LearnAndPay() {
        Learn();
        Name(side_);
        Clear();
    }
};

TEST_F(Resting, BeginsWhileNothingIsDeferredAlone) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Teach(other);
    On(other, 0);
    On(other, 1);
    EXPECT_FALSE(cus_rest_begin());
    EXPECT_EQ(Issued(), 0u) << "nobody waits for a rest: it issues nothing";
    On(other, 2);
    On(other, 3);
    Await(other);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], 1) << "the segment went on";
    EXPECT_TRUE(cus_rest_begin());
    EXPECT_FALSE(cus_rest_begin()) << "there is one already";
}

// HAZARDS B19. The side stream owes a wait for the end of its branch.
TEST_F(Resting, DoesNotBeginBesideABranch) {
    Learn();
    EXPECT_FALSE(cus_rest_begin());
    Expect({EndWaited(side_), At(side_, 8)}, [&] { Side(8); });
    EXPECT_TRUE(cus_rest_begin());
}

// The side stream was no branch any more.
TEST_F(Resting, BeginsWhenAHomeWent) {
    LearnAndPay();
    Gone(stream_);
    EXPECT_TRUE(cus_rest_begin());
}

// The program would hear of the error with its next wait, which passes.
TEST_F(Resting, DoesNotBeginBeforeAnErrorIsTold) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Teach(other);
    On(other, 0);
    On(other, 1);
    driver().fail = [](const std::string &name) {
        return name == "cuLaunchKernel" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    };
    Await(other);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    EXPECT_FALSE(cus_rest_begin());
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, CUS_ROW_cuStreamSynchronize), CUDA_ERROR_INVALID_VALUE);
    EXPECT_TRUE(cus_rest_begin());
}

TEST_F(Resting, NotBesideAProfiler) {
    cus_engine_profiling(true);
    EXPECT_FALSE(cus_rest_begin());
    cus_engine_profiling(false);
    EXPECT_TRUE(cus_rest_begin());
}

TEST_F(Resting, NobodyWaitsForOne) {
    LearnAndPay();
    static bool began;
    CUcontext context;
    ASSERT_EQ(driver().table.cuCtxGetCurrent(&context), CUDA_SUCCESS);
    hold_engine(stream_, context, [] { Elsewhere([] { began = cus_rest_begin(); }); });
    EXPECT_FALSE(began);
    // It goes on as if nobody had asked.
    Step();
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
}

TEST_F(Resting, OpsPassAndAreCounted) {
    LearnAndPay();
    cus_counters before = Counters();
    ASSERT_TRUE(cus_rest_begin());
    Expect({At(stream_, 0), At(stream_, 1), At(side_, 2), At(stream_, 3)}, [&] {
        Home(0);
        Home(1);
        Side(2);
        Home(3);
    });
    EXPECT_EQ(Counters().ops[CUS_OP_LAUNCH], before.ops[CUS_OP_LAUNCH] + 4);
    EXPECT_EQ(Counters().in_graphs, before.in_graphs);
    fake::ExpectBalance();
}

// As those of a demoted stream: the driver is not even asked for the context.
TEST_F(Resting, OpsPassByTheShortWay) {
    LearnAndPay();
    ASSERT_TRUE(cus_rest_begin());
    static int asked;
    static decltype(driver().table.cuCtxGetCurrent) get;
    asked = 0;
    get = driver().table.cuCtxGetCurrent;
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        asked++;
        return get(context);
    };
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    On(other, 4); // of a stream that is new, from the second op on
    EXPECT_GT(asked, 0);
    On(other, 4);
    asked = 0;
    for (int i = 0; i < 10; i++)
        On(other, 4);
    EXPECT_EQ(asked, 0);
    // Two functions may have one place among those that are known: the last one is.
    for (int i = 0; i < 3; i++) {
        Home(i);
        asked = 0;
        Home(i);
        EXPECT_EQ(asked, 0);
    }
    int other_ones = 0; // all three at one place are not to be expected
    for (int i = 0; i < 3; i++) {
        asked = 0;
        Home(i);
        other_ones += asked == 0;
    }
    EXPECT_GT(other_ones, 0);
}

TEST_F(Resting, StepsEndUnseen) {
    LearnAndPay();
    Home(0);
    Sync();
    uint64_t steps = Counters().steps;
    ASSERT_TRUE(cus_rest_begin());
    Home(0);
    Sync();
    EXPECT_EQ(Counters().steps, steps);
    cus_rest_end();
    Home(0);
    Sync();
    EXPECT_EQ(Counters().steps, steps + 1);
}

// Nor does one that had begun.
TEST_F(Resting, AStepThatHasBegunEndsBehindIt) {
    LearnAndPay();
    Sync();
    uint64_t steps = Counters().steps;
    Home(9); // nothing is deferred
    ASSERT_TRUE(cus_rest_begin());
    Sync();
    EXPECT_EQ(Counters().steps, steps);
    cus_rest_end();
    Sync();
    EXPECT_EQ(Counters().steps, steps + 1);
}

// Work on a stream without an engine, of which room must know (G5).
TEST_F(Resting, UntrackedWorkIsNoted) {
    Home(0);
    Sync();
    uint32_t before = untracked_used();
    ASSERT_TRUE(cus_rest_begin());
    Name(fake::MakeStream(CU_STREAM_NON_BLOCKING));
    EXPECT_EQ(untracked_used(), before + 1);
    // A stream with ops has an engine, so it can be asked.
    On(fake::MakeStream(CU_STREAM_NON_BLOCKING), 4);
    EXPECT_EQ(untracked_used(), before + 1);
}

TEST_F(Resting, GraphsAreThereAgainBehindIt) {
    LearnAndPay();
    ASSERT_TRUE(cus_rest_begin());
    for (int i = 0; i < 100; i++)
        Home(i % 6);
    cus_rest_end();
    Step(); // its region is the program's own, and joins the side stream
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
}

// HAZARDS B21. A side stream that was joined may have waited for another stream since.
TEST_F(Resting, AStreamThatWasJoinedMayHaveWorkAfterwards) {
    LearnAndPay();
    Step(); // joins it
    ASSERT_TRUE(cus_rest_begin());
    fake::RealWait(side_, fake::Event(9), 0);
    cus_rest_end();
    Clear();
    First();
    EXPECT_TRUE(Has(Waited(side_, 0)));
    EXPECT_TRUE(Has(At(side_, 2)));
}

// A wait of another thread that passes, and reaches the driver when the rest is over and a region
// has joined the stream.
TEST_F(Resting, AWaitOnItsWayAcrossTheEnd) {
    LearnAndPay();
    ASSERT_TRUE(cus_rest_begin());
    Elsewhere([&] {
        cus_wait wait = {{side_, CUS_ABI_LEGACY}, fake::Event(9), nullptr, 0};
        EXPECT_TRUE(cus_engine_wait_passes(&wait));
    });
    cus_rest_end();
    Step();
    fake::RealWait(side_, fake::Event(9), 0);
    Clear();
    First();
    EXPECT_TRUE(Has(Waited(side_, 0)));
    EXPECT_TRUE(Has(At(side_, 2)));
}

// A record is no work of the stream's, whoever makes it, and whether calls pass or not.
class RecordElsewhere : public Resting, public testing::WithParamInterface<bool> {};
TEST_P(RecordElsewhere, IsNoWork) {
    LearnAndPay();
    ASSERT_EQ(GetParam() && cus_rest_begin(), GetParam());
    Elsewhere([&] {
        cus_stream_ref ref = {side_, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuEventRecord);
    });
    cus_rest_end();
    Step();
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
}
INSTANTIATE_TEST_SUITE_P(InARest, RecordElsewhere, testing::Bool());

// The same without a rest, and of any call that gives the stream work.
TEST_F(Resting, ACallOfAnotherThreadOnItsWay) {
    LearnAndPay();
    Elsewhere([&] { Name(side_); });
    Step();
    fake::RealWait(side_, fake::Event(9), 0); // stands for the real call
    Clear();
    First();
    EXPECT_TRUE(Has(Waited(side_, 0)));
    EXPECT_TRUE(Has(At(side_, 2)));
}

// And of a call that no table knows: it may give any stream work.
TEST_F(Resting, AnUnknownCallOfAnotherThreadOnItsWay) {
    LearnAndPay();
    Elsewhere([&] { cus_engine_flush(CUS_SCOPE_P, nullptr, CUS_CAUSE_UNKNOWN_API); });
    Step();
    fake::RealWait(side_, fake::Event(9), 0); // stands for the real call
    Clear();
    First();
    EXPECT_TRUE(Has(Waited(side_, 0)));
    EXPECT_TRUE(Has(At(side_, 2)));
}

TEST_F(Resting, AWaitIsLookedAtWhereThereIsNoRest) {
    cus_wait wait = {{side_, CUS_ABI_LEGACY}, fake::Event(9), nullptr, 0};
    EXPECT_FALSE(cus_engine_wait_passes(&wait));
}

TEST_F(Resting, EndsNothingThatWasSwitchedOff) {
    LearnAndPay();
    ASSERT_TRUE(cus_rest_begin());
    cus_engine_defer_off("a test says so");
    cus_rest_end();
    EXPECT_FALSE(cus_rest_begin());
    for (int i = 0; i < 6; i++) {
        Expect({At(stream_, 0)}, [&] { Home(0); });
        Sync();
    }
}

// ---- when ----

class Pace : public fake::ProgramTest {
  protected:
    static constexpr uint64_t kMs = 1000000;

    void SetUp() override {
        fake::Reset();
        Start({});
        ProgramTest::SetUp();
    }
    void TearDown() override {
        ProgramTest::TearDown();
        fake::EndEngine();
    }
    void Start(fake::Settings settings) {
        fake::EndEngine();
        cus_virtual.on = true;
        cus_virtual.ns = 1000000000;
        settings.emplace_back("CUSPLICE_HOLD_US", "1000000");
        ASSERT_TRUE(fake::StartEngine(settings));
        passes_ = false;
    }
    // Steps that take so many ns while calls pass, and while they do not, for so many seconds. The
    // share of that time in which calls passed.
    template <typename Work>
    double Share(double seconds, uint64_t passing, uint64_t else_ns, const Work &work) {
        uint64_t began = cus_virtual.ns, passed = 0;
        while (cus_virtual.ns < began + (uint64_t)(seconds * 1e9)) {
            uint64_t ns = passes_ ? passing : else_ns;
            cus_virtual.ns += ns;
            passed += passes_ ? ns : 0;
            work();
            passes_ = cus_engine_tick(CUS_ROW_cuStreamSynchronize);
        }
        return (double)passed / (double)(cus_virtual.ns - began);
    }
    void WholeStep() {
        for (int i = 0; i < kOps; i++)
            Launch(i);
        Sync();
    }
    static uint64_t Rested() { return fake::Counters().fallbacks[CUS_FALLBACK_RESTED]; }
    bool passes_ = false;
};

void Nothing() {}

// HAZARDS F15.
TEST_F(Pace, AProgramThatIsFasterWithoutIsLeftAlone) {
    EXPECT_GT(Share(4, 950000, kMs, Nothing), 0.4) << "it was timed, then left alone";
    EXPECT_EQ(Rested(), 1u);
    EXPECT_GT(Share(100, 950000, kMs, Nothing), 0.93);
    EXPECT_EQ(Rested(), 4u) << "for 10, 20, 40 and 40 seconds";
}

TEST_F(Pace, AProgramThatIsNotIsTimedMoreAndMoreRarely) {
    EXPECT_LT(Share(10, 1050000, kMs, Nothing), 0.15);
    double share = Share(1000, 1050000, kMs, Nothing);
    EXPECT_LT(share, 0.01);
    EXPECT_GT(share, 0.002) << "but it is timed";
    EXPECT_LT(Share(1000, kMs, kMs, Nothing), 0.01) << "nor one for which it is the same";
    EXPECT_EQ(Rested(), 0u);
}

TEST_F(Pace, NeverMoreRarelyThanEach320Seconds) {
    for (int part = 0; part < 6; part++)
        EXPECT_GT(Share(330, 1050000, kMs, Nothing), 0) << part;
}

TEST_F(Pace, AProgramThatChangesIsTimedAnew) {
    Share(30, 950000, kMs, Nothing);
    EXPECT_LT(Share(60, 1050000, kMs, Nothing), 0.7) << "the rest that it is in comes to its end";
    EXPECT_LT(Share(60, 1050000, kMs, Nothing), 0.05);
}

// Once graphs were found to pay, the first rests are short again.
TEST_F(Pace, AfterATrialInVainRestsBeginWithTheShortest) {
    Share(100, 950000, kMs, Nothing);
    ASSERT_EQ(Rested(), 4u) << "now one of 40 seconds";
    Share(20, 1050000, kMs, Nothing); // it ends, and the next trial is in vain
    ASSERT_EQ(Rested(), 4u);
    Share(30, 950000, kMs, Nothing);
    EXPECT_EQ(Rested(), 6u) << "for 10 seconds, then longer";
}

TEST_F(Pace, TheNextEngineBeginsWithTheShortest) {
    Share(100, 950000, kMs, Nothing);
    ASSERT_TRUE(passes_);
    Start({});
    EXPECT_FALSE(cus_engine_tick(CUS_ROW_cuStreamSynchronize)) << "a rest is its engine's";
    uint64_t before = Rested();
    Share(30, 950000, kMs, Nothing);
    EXPECT_EQ(Rested() - before, 2u) << "for 10 seconds, then longer";
}

// Each second time in a rest, as if the rest had been the cause; at many ticks a second and at few.
TEST_F(Pace, APauseIsNobodysFault) {
    for (uint64_t step : {kMs, 3 * kMs}) {
        SCOPED_TRACE(step);
        Start({});
        uint64_t before = Rested(), paused = 0;
        bool passed = false;
        Share(5, step * 9 / 10, step, [&] {
            if (passes_ && !passed && ++paused % 2)
                cus_virtual.ns += 60 * kMs;
            passed = passes_;
        });
        EXPECT_EQ(Rested() - before, 1u) << paused;
    }
}

// It nearly stands still while calls pass: a rest is no place to stay.
TEST_F(Pace, AStretchOfFewWaitsEndsTheTrial) {
    EXPECT_LT(Share(30, 40 * kMs, kMs, Nothing), 0.1);
}

TEST_F(Pace, AFewWaitsSayNothing) {
    EXPECT_EQ(Share(60, 5 * kMs, 10 * kMs, Nothing), 0);
}

// A rest that cannot begin at one tick begins at a later one.
TEST_F(Pace, ARestBeginsAtTheFirstTickThatMayBeginOne) {
    cus_engine_profiling(true);
    EXPECT_EQ(Share(8, 950000, kMs, Nothing), 0);
    Start({});
    int ticks = 0;
    EXPECT_GT(Share(8, 950000, kMs, [&] { cus_engine_profiling(++ticks % 8); }), 0.4);
}

// A trial whose rests cannot begin ends: what would be tried at each tick costs time, too.
TEST_F(Pace, ATrialThatCannotRestEnds) {
    cus_engine_profiling(true);
    Share(50, 950000, kMs, Nothing);
    cus_engine_profiling(false);
    EXPECT_EQ(Share(1, 950000, kMs, Nothing), 0) << "the next one comes later";
    EXPECT_GT(Share(60, 950000, kMs, Nothing), 0.2) << "but it comes";
}

// Whatever its pace: what a trial would cost is more than the hooks do.
TEST_F(Pace, AProgramThatGraphsHelpIsNotTimed) {
    Steps(8);
    EXPECT_EQ(Share(30, 100000, 100000, [&] { WholeStep(); }), 0);
    EXPECT_GT(fake::Counters().in_graphs, 1000u);
    EXPECT_GT(Share(8, 950000, kMs, Nothing), 0.4) << "no trial was in vain";
}

// Its graphs save little beside what it does else; and one that can have none.
TEST_F(Pace, AProgramThatGraphsHelpLittleIsTimed) {
    Steps(8);
    EXPECT_GT(Share(8, 950000, kMs, [&] { WholeStep(); }), 0.4);
    EXPECT_GT(fake::Counters().in_graphs, 1000u);
}

// It comes to such a phase in the midst of a trial: the rest of it would cost half of the gain.
TEST_F(Pace, ATrialEndsWhereGraphsHelp) {
    Steps(8);
    Share(1.45, kMs, kMs, Nothing);
    EXPECT_GT(Share(0.4, kMs, kMs, Nothing), 0.4) << "it is timed";
    EXPECT_LT(Share(2, 100000, 100000, [&] { WholeStep(); }), 0.16);
    EXPECT_GT(fake::Counters().in_graphs, 1000u);
    // And is timed again later, as behind each trial in vain.
    EXPECT_GT(Share(12, kMs, kMs, Nothing), 0.03);
}

TEST_F(Pace, AProgramOfSingleOpsIsTimed) {
    EXPECT_GT(Share(12, 950000, kMs,
                    [&] {
                        Launch(0);
                        Sync();
                    }),
              0.4);
}

TEST_F(Pace, AProgramThatIsBeingLearnedIsNotTimed) {
    Start({{"CUSPLICE_WARMUP", "1000"}});
    EXPECT_EQ(Share(2.9, 27 * kMs / 10, 3 * kMs, [&] { WholeStep(); }), 0);
    EXPECT_GT(Share(8, 27 * kMs / 10, 3 * kMs, [&] { WholeStep(); }), 0.4) << "it is learned";
}

// It goes on with steps that graphs help, and that poll: what polls is no tick.
TEST_F(Pace, ARestEndsThoughNoTickComes) {
    Steps(8);
    Share(4, 900000, kMs, Nothing);
    ASSERT_TRUE(passes_);
    cus_virtual.ns += 3600ull * 1000000000;
    uint64_t before = fake::Counters().in_graphs;
    for (int step = 0; step < 8000; step++)
        WholeStep();
    EXPECT_GT(fake::Counters().in_graphs, before);
}

// Not even in the last second of ten.
TEST_F(Pace, AnOpOfANewStreamEndsNoRest) {
    Share(11.8, 900000, kMs, Nothing);
    ASSERT_TRUE(passes_);
    fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions_[0], 1);
    EXPECT_TRUE(cus_engine_tick(CUS_ROW_cuStreamSynchronize));
}

TEST_F(Pace, NotWhereItIsSwitchedOff) {
    Start({{"CUSPLICE_DEMOTE", "no"}});
    EXPECT_EQ(Share(30, 950000, kMs, Nothing), 0);
}

} // namespace
