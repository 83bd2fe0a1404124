// Promise: noise of the machine teaches the library nothing. Where the program's thread is stopped
// at random, or has half of its pace, its ops are in graphs as without. Where it sleeps by itself,
// its ops go out meanwhile. Time is the test's (noise.h), so the figures are the same each time.
#include "tests/unit/stream/noise.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

namespace {

using fake::Counters;
using fake::driver;

// False: the first two bounds are not checked, and their tests are skipped with the figures. They
// do not hold yet: each pause that the watchdog sees cuts a segment, and three cuts at a place are
// a boundary.
constexpr bool kBoundsHold = true;
constexpr double kShareKept = 0.97;    // of the share of ops in graphs that there is without noise
constexpr double kGainKept = 0.90;     // of the host's time that graphs save without noise
constexpr double kNoRepetition = 1.02; // of the time without the library

enum { FUNCTIONS = 64, LEARNED = 30 /* steps */, SECOND = 1000000000, SLEEP = 2000000 };

const Noise kQuiet = {"none", 0, false, Thread::kNotRunning, 0};
const Noise kNoises[] = {
    {"20 a second", 20, false, Thread::kNotRunning, 1},
    {"40 a second", 40, false, Thread::kNotRunning, 2},
    {"60 a second", 60, false, Thread::kNotRunning, 3},
    {"60, and slow", 60, true, Thread::kNotRunning, 4},
    {"40, all stop", 40, true, Thread::kStopped, 5},
};

struct Program {
    const char *name;
    unsigned turns, launches; // of a step; each turn is the same
    unsigned ns;              // from launch to launch, if each is issued by itself
    unsigned steps;           // that are measured, once it is learned
    bool repeats;
};

std::ostream &operator<<(std::ostream &to, const Program &program) {
    return to << program.name;
}

// What became of some steps.
struct Result {
    uint64_t ops, in_graphs, graphs, cuts;
    double share; // of ops in graphs
    double saved; // ns of the host for an op
    double ratio; // of the time without the library, the pauses aside
};

class Play {
  public:
    struct Moment {
        cus_counters counters;
        uint64_t spent;
    };

    Play(const Program &program, const Noise &noise) : program_(program) {
        fake::Reset();
        Machine::Start();
        bool started = fake::StartEngine({{"CUSPLICE_BUILD_US", "500"}, {"CUSPLICE_LOG", "error"}});
        EXPECT_TRUE(started);
        functions_ = fake::MakeFunctions(FUNCTIONS);
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Machine::Disturb(noise);
    }
    ~Play() {
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        fake::EndEngine();
    }

    // The program sleeps in each step, ahead of this launch.
    void SleepAt(unsigned launch) { sleeps_at_ = launch; }
    void Steps(unsigned steps) {
        for (; steps; steps--, step_++) {
            Launches(program_.turns * program_.launches);
            fake::Sync(stream_);
            EXPECT_TRUE(driver().journal == expected_) << "each op once, in order";
            driver().journal.clear();
            expected_.clear();
        }
    }
    void Launches(unsigned n) {
        for (unsigned i = 0; i < n; i++)
            Launch(i, i % program_.launches);
    }
    static Moment Now() { return {Counters(), Machine::SpentNs()}; }
    Result Since(const Moment &then) const {
        Moment here = Now();
        const cus_counters &now = here.counters, &was = then.counters;
        uint64_t looked = 0, spent = here.spent - then.spent;
        for (auto eager : {CUS_EAGER_OBSERVING, CUS_EAGER_DIVERGED, CUS_EAGER_FLUSHED})
            looked += now.eager_by[eager] - was.eager_by[eager];
        Result r = {};
        r.ops = now.ops[CUS_OP_LAUNCH] - was.ops[CUS_OP_LAUNCH];
        r.in_graphs = now.in_graphs - was.in_graphs;
        r.graphs = now.graph_launches - was.graph_launches;
        r.cuts = now.flushes[CUS_CAUSE_WATCHDOG] - was.flushes[CUS_CAUSE_WATCHDOG];
        spent += r.in_graphs * MATCHED + looked * (program_.repeats ? LOOKED_AT : NEW) +
                 (r.ops - r.in_graphs - looked) * LEFT_ALONE;
        r.share = (double)r.in_graphs / (double)r.ops;
        r.saved = LAUNCH - (double)spent / (double)r.ops;
        r.ratio = 1 - r.saved / program_.ns;
        return r;
    }

  private:
    void Launch(unsigned i, unsigned a) {
        unsigned function = (a * 2654435761u >> 7) % 1021 % FUNCTIONS;
        if (!program_.repeats)
            function = order_() % FUNCTIONS;
        if (i == sleeps_at_)
            Sleep();
        Machine::Run(program_.ns - LAUNCH);
        uint32_t b = a % 10 ? 0 : step_ % 2; // others than in the step before
        ASSERT_EQ(fake::Launch(stream_, functions_[function], a, b), CUDA_SUCCESS);
        expected_.push_back(fake::Line(stream_, "k" + std::to_string(function), a, b));
    }
    void Sleep() {
        Machine::Pause(SLEEP, Thread::kSleeps);
        ASSERT_TRUE(driver().journal == expected_) << "nothing is deferred for longer than hold_us";
    }

    const Program &program_;
    std::vector<CUfunction> functions_;
    CUstream stream_;
    std::vector<std::string> expected_;
    std::mt19937 order_{1};
    unsigned step_ = 0, sleeps_at_ = UINT32_MAX;
};

// ---- the noise itself ----

const Program kShort = {"short", 1, 200, 5000, 0, true};

TEST(Noise, IsWhatItSays) {
    for (const Noise &noise : kNoises) {
        Play play(kShort, noise);
        uint64_t start = cus_virtual.ns;
        while (cus_virtual.ns - start < 20ull * SECOND)
            Machine::Run(5000);
        double s = (double)(cus_virtual.ns - start) / SECOND;
        uint64_t pauses = Machine::Pauses(), slow = Machine::SlowNs();
        double running = s - (double)Machine::PausedNs() / SECOND;
        EXPECT_NEAR((double)pauses / running, noise.pauses, noise.pauses * 0.1) << noise.name;
        EXPECT_NEAR((double)Machine::PausedNs() / (double)pauses, 1.6e6, 0.1e6) << noise.name;
        EXPECT_NEAR((double)slow / SECOND / s, noise.slow ? 0.5 : 0, noise.slow ? 0.1 : 0);
    }
}

// Its work is done in the time that it has.
TEST(Noise, TakesTheProgramsTimeAndNotItsWork) {
    for (const Noise &noise : kNoises) {
        Play play(kShort, noise);
        uint64_t start = Machine::RanNs(), work = 10ull * SECOND;
        Machine::Run(work);
        EXPECT_NEAR((double)(Machine::RanNs() - start), (double)(work + Machine::SlowNs() / 2),
                    noise.slow ? 5e8 : 0);
    }
}

TEST(Noise, OfOneSeedIsTheSame) {
    for (const Noise &noise : kNoises) {
        uint64_t ns[2], in_graphs[2], cuts[2];
        for (int i = 0; i < 2; i++) {
            Play play(kShort, noise);
            Play::Moment start = Play::Now();
            play.Steps(300);
            Result r = play.Since(start);
            ns[i] = cus_virtual.ns, in_graphs[i] = r.in_graphs, cuts[i] = r.cuts;
        }
        EXPECT_EQ(ns[0], ns[1]) << noise.name;
        EXPECT_EQ(in_graphs[0], in_graphs[1]) << noise.name;
        EXPECT_EQ(cuts[0], cuts[1]) << noise.name;
    }
}

// The watchdog issues ops during a pause, but where it is stopped too: then the thread gets another
// half of hold_us, once.
TEST(Noise, StopsTheWatchdogOnlyIfItSaysSo) {
    for (Thread thread : {Thread::kSleeps, Thread::kNotRunning, Thread::kStopped}) {
        Play play(kShort, kQuiet);
        play.Steps(LEARNED);
        play.Launches(2);
        ASSERT_NE(cus_watchdog_due(), UINT64_MAX);
        uint64_t end = cus_virtual.ns + SLEEP;
        Machine::Pause(SLEEP, thread);
        EXPECT_EQ(cus_watchdog_due() == UINT64_MAX, thread != Thread::kStopped);
        EXPECT_EQ(cus_virtual.ns, end);
        Machine::Run(600000);
        EXPECT_EQ(cus_watchdog_due(), UINT64_MAX);
    }
}

// ---- how soon ----

// Loops are in graphs in the first step that has them, long steps of a slow host in the fourth.
TEST(Learning, TakesFewSteps) {
    struct Bound {
        Program program;
        double share[4]; // of ops in graphs, by step
    };
    for (const Bound &bound :
         {Bound{{"100x8_at_20us", 100, 8, 20000, 0, true}, {0.45, 0.95, 0.99, 0.99}},
          Bound{{"20x194_at_20us", 20, 194, 20000, 0, true}, {0.85, 0.99, 0.99, 0.99}},
          Bound{{"50x200_at_10us", 50, 200, 10000, 0, true}, {0.93, 0.99, 0.99, 0.99}},
          Bound{{"500x200_at_10us", 500, 200, 10000, 0, true}, {0.98, 0.99, 0.99, 0.99}},
          Bound{{"4000_at_10us", 1, 4000, 10000, 0, true}, {0, 0, 0.90, 0.97}}}) {
        Play play(bound.program, kQuiet);
        for (double share : bound.share) {
            Play::Moment then = Play::Now();
            play.Steps(1);
            Result r = play.Since(then);
            printf("%-15s %.4f in graphs of %.1f\n", bound.program.name, r.share,
                   (double)r.in_graphs / (double)std::max(r.graphs, uint64_t{1}));
            EXPECT_GE(r.share, share) << bound.program.name;
            EXPECT_EQ(r.cuts, 0u) << bound.program.name;
        }
    }
}

// ---- what is no noise ----

// The ops ahead of a sleep go out meanwhile, and the segment soon ends there.
TEST(Sleeps, AreSeenAndLearned) {
    for (unsigned ns : {5000, 20000}) {
        Program program = {"sleeps", 1, 400, ns, 0, true};
        Play play(program, kQuiet);
        play.SleepAt(250);
        Play::Moment start = Play::Now();
        play.Steps(LEARNED);
        EXPECT_GE(play.Since(start).cuts, 1u) << ns;
        Play::Moment learned = Play::Now();
        play.Steps(200);
        Result r = play.Since(learned);
        EXPECT_EQ(r.cuts, 0u) << ns;
        EXPECT_GE(r.share, 0.99) << ns;
    }
}

// ---- the bounds ----

struct Figures {
    Result steps, late; // those behind the learned ones; their last quarter
    uint64_t pauses;
};

Figures Measure(const Program &program, const Noise &noise) {
    Play play(program, noise);
    play.Steps(LEARNED);
    Play::Moment learned = Play::Now();
    play.Steps(program.steps * 3 / 4);
    Play::Moment late = Play::Now();
    play.Steps(program.steps / 4);
    return {play.Since(learned), play.Since(late), Machine::Pauses()};
}

void Tell(const Program &program, const Noise &noise, const Figures &f, const Figures &quiet) {
    printf("%-15s %-12s %6.2f %% in graphs (kept %.4f), then %6.1f ns saved a launch (kept %.4f) "
           "by graphs of %5.1f; %4u cuts by %4u pauses\n",
           program.name, noise.name, 100 * f.steps.share, f.steps.share / quiet.steps.share,
           f.late.saved, f.late.saved / quiet.late.saved,
           (double)f.late.in_graphs / (double)f.late.graphs, (unsigned)f.steps.cuts,
           (unsigned)f.pauses);
}

class Repeats : public testing::TestWithParam<Program> {};

TEST_P(Repeats, NoiseTakesLittle) {
    Figures quiet = Measure(GetParam(), kQuiet);
    Tell(GetParam(), kQuiet, quiet, quiet);
    EXPECT_GE(quiet.steps.share, 0.99);
    double share = 1, gain = 1;
    for (const Noise &noise : kNoises) {
        Figures f = Measure(GetParam(), noise);
        Tell(GetParam(), noise, f, quiet);
        EXPECT_GT(f.pauses, 5u);
        share = std::min(share, f.steps.share / quiet.steps.share);
        gain = std::min(gain, f.late.saved / quiet.late.saved);
    }
    if (!kBoundsHold)
        GTEST_SKIP() << "not checked yet: share kept " << share << ", bound " << kShareKept
                     << "; gain kept " << gain << ", bound " << kGainKept;
    EXPECT_GE(share, kShareKept);
    EXPECT_GE(gain, kGainKept);
}

INSTANTIATE_TEST_SUITE_P(Noise, Repeats,
                         testing::Values(Program{"1000_at_5us", 1, 1000, 5000, 400, true},
                                         Program{"1000_at_20us", 1, 1000, 20000, 300, true},
                                         Program{"20x194_at_5us", 20, 194, 5000, 100, true},
                                         Program{"20x194_at_20us", 20, 194, 20000, 100, true},
                                         // What is learned from noise adds up.
                                         Program{"100_at_20us_long", 1, 100, 20000, 9000, true}),
                         testing::PrintToStringParamName());

class NeverRepeats : public testing::TestWithParam<Program> {};

TEST_P(NeverRepeats, FirstSecondTakesNoLonger) {
    for (int i = -1; i < (int)std::size(kNoises); i++) {
        const Noise &noise = i < 0 ? kQuiet : kNoises[i];
        Play play(GetParam(), noise);
        Play::Moment start = Play::Now();
        while (cus_virtual.ns < SECOND)
            play.Steps(1);
        Result r = play.Since(start);
        printf("%-15s %-12s %.4f of the time without, %u launches\n", GetParam().name, noise.name,
               r.ratio, (unsigned)r.ops);
        EXPECT_LE(r.ratio, kNoRepetition) << noise.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Noise, NeverRepeats,
                         testing::Values(Program{"never_at_2500ns", 1, 240, 2500, 0, false},
                                         Program{"never_at_5us", 1, 1000, 5000, 0, false},
                                         Program{"never_at_20us", 1, 1000, 20000, 0, false}),
                         testing::PrintToStringParamName());

} // namespace
