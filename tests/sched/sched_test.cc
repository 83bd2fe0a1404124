// Promise: under libsched.so a plan gives the same turns each time; faults of order come out by few
// plans, with the place of each thread; right programs show none. differential finds planted ones.
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/cases.h"
#include "tests/sim/child.h"

namespace {

struct Came {
    int status;
    std::string out, err;
};

Came Turns(const std::string &what, unsigned seed, unsigned depth) {
    sim::Child child;
    child.command = {sim::Runfile("tests/sched/turns"), what, std::to_string(seed),
                     std::to_string(depth)};
    child.timeout_s = 60;
    sim::Result result = sim::Run(child);
    EXPECT_FALSE(result.timed_out);
    return {result.status, result.out, result.err};
}

enum { SEEDS = 60, DEADLOCK = 96 };

// How many of the plans end so.
unsigned CountDeadlocks(const std::string &what, std::string *report) {
    unsigned n = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        Came came = Turns(what, seed, 1 + seed % 3);
        n += came.status == DEADLOCK;
        EXPECT_TRUE(came.status == 0 || came.status == DEADLOCK) << came.err;
        if (came.status == DEADLOCK)
            *report = came.err;
    }
    return n;
}

TEST(Turns, MutexesInOppositeOrderMeetAndEachThreadSaysWhere) {
    std::string report;
    EXPECT_GT(CountDeadlocks("opposite", &report), 0u);
    EXPECT_NE(report.find("all threads wait for each other"), std::string::npos) << report;
    EXPECT_NE(report.find("takes a mutex\n"), std::string::npos) << report;
    EXPECT_NE(report.find("joins a thread\n"), std::string::npos) << report;
    EXPECT_NE(report.find("turns+"), std::string::npos) << report;
    EXPECT_EQ(CountDeadlocks("alike", &report), 0u);
}

TEST(Turns, ASignalThatNobodyAwaitsYetIsLost) {
    std::string report;
    EXPECT_GT(CountDeadlocks("signal-wrong", &report), 0u);
    EXPECT_NE(report.find("waits for a condition\n"), std::string::npos) << report;
    EXPECT_EQ(CountDeadlocks("signal", &report), 0u);
}

TEST(Turns, AnUpdateBetweenLoadAndStoreIsLost) {
    std::set<std::string> wrong, right;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        wrong.insert(Turns("sum-wrong", seed, 2).out.substr(0, 5));
        right.insert(Turns("sum", seed, 2).out.substr(0, 5));
    }
    EXPECT_EQ(wrong, (std::set<std::string>{"sum 1", "sum 2"}));
    EXPECT_EQ(right, (std::set<std::string>{"sum 2"}));
}

TEST(Turns, ThoseOfAPlanAreTheSameEachTime) {
    std::set<std::string> all;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        Came first = Turns("opposite", seed, 3), again = Turns("opposite", seed, 3);
        EXPECT_EQ(first.status, again.status) << seed;
        EXPECT_EQ(first.out, again.out) << seed;
        all.insert(first.out);
    }
    EXPECT_GT(all.size(), 2u); // and not those of every plan
}

TEST(Turns, TimePassesWhereAllSleep) {
    Came came = Turns("sleep", 0, 0);
    EXPECT_EQ(came.status, 0) << came.err;
    EXPECT_NE(came.out.find("sum 1, 100 s"), std::string::npos) << came.out;
}

TEST(Turns, WhoLooksInVainIsTold) {
    Came came = Turns("vain", 1, 1);
    EXPECT_EQ(came.status, DEADLOCK);
    EXPECT_NE(came.err.find("2 s of the threads' clock are over"), std::string::npos) << came.err;
    EXPECT_NE(came.err.find("could go on\n"), std::string::npos) << came.err;
}

struct Ended {
    int status;
    std::string out, folder;
};

Ended Differential(const std::vector<std::string> &options, const sim::Setting &setting) {
    std::string folder = sim::TempDir();
    std::vector<std::string> command = {sim::Runfile("tests/fuzz/differential"), "--jobs", "1",
                                        "--out", folder};
    command.insert(command.end(), options.begin(), options.end());
    sim::Setting patient = setting;
    patient.timeout_s = 600;
    sim::Outcome outcome = sim::RunProgram(command, patient);
    EXPECT_FALSE(outcome.result.timed_out) << outcome.Describe();
    return {outcome.result.status, outcome.result.out, folder};
}

TEST(Programs, RunAlikeInAllOrders) {
    Ended run = Differential({"--programs", "200", "--schedules", "5"}, {});
    EXPECT_EQ(run.status, 0) << run.out;
    EXPECT_NE(run.out.find("fuzz: 1000 schedules"), std::string::npos) << run.out;
}

// Each is found, and comes again from what was written. Which program shows it first depends on the
// library and on where things lie in memory; the run stops there.
TEST(Programs, PlantedFaultsAreFound) {
    const struct {
        const char *name, *value, *says;
    } planted[] = {
        {"SCHED_PLANT", "wake:1", "died: exit status 96"},
        {"SCHED_PLANT", "take:20", "preloaded: died"},
    };
    for (const auto &fault : planted) {
        SCOPED_TRACE(std::string(fault.name) + "=" + fault.value);
        sim::Setting setting;
        setting.env = {{fault.name, fault.value}};
        Ended run =
            Differential({"--programs", "2000", "--schedules", "10", "--shrink", "20"}, setting);
        EXPECT_EQ(run.status, 1) << run.out;
        EXPECT_NE(run.out.find(fault.says), std::string::npos) << run.out;
        EXPECT_NE(run.out.find("fuzz: it differs again"), std::string::npos) << run.out;
    }
}

} // namespace
