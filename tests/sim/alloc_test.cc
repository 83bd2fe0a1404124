// Promise: if the library gets no memory for itself, nothing changes for the program. A loop makes
// each allocation of the library fail once, and then all from that one on.
#include "tests/sim/sweep.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

namespace sim {
namespace {

struct Program {
    const char *name;
    std::vector<std::string> args;
};

void PrintTo(const Program &program, std::ostream *out) {
    *out << program.name;
}

class Allocation : public testing::TestWithParam<Program> {};

std::string cache; // the folder of one; "": none

std::map<std::string, std::string> Env(const std::string &fault) {
    std::map<std::string, std::string> env = {{"CUSIM_DELAY_US", "0"}, {"CUSPLICE_EAGER", "fill"}};
    if (!cache.empty()) {
        env["CUSPLICE_CACHE_DIR"] = cache;
    }
    if (!fault.empty()) {
        env["CUS_TEST_ALLOC_FAULT"] = fault;
    }
    return env;
}

// How many allocations the library made is written to `count`: how fast the host is decides a
// little of it.
Outcome RunCounting(const Case &c, const std::string &fault, long *count) {
    std::string dir = TempDir();
    Setting setting = WithFaults(Env(fault));
    setting.env["CUS_TEST_ALLOC_COUNT"] = dir + "/count";
    Outcome run = RunCase(c, setting);
    *count = atol(ReadFile(dir + "/count").c_str());
    unlink((dir + "/count").c_str());
    rmdir(dir.c_str());
    return run;
}

// One run: as without the library. Says whether there was a stats file, which needs memory for its
// name.
bool CheckUnseen(const Case &c, const Outcome &plain, const std::string &fault) {
    SCOPED_TRACE("CUS_TEST_ALLOC_FAULT=" + fault);
    long count;
    Outcome run = RunCounting(c, fault, &count);
    EXPECT_SAME(c, plain, run);
    EXPECT_NOTHING(SaidOnce(run));
    if (!run.stats.valid) {
        return false;
    }
    EXPECT_STATS(run);
    if (count < atol(fault.c_str())) {
        return true; // it was not made this time
    }
    EXPECT_GT(run.stats.Number("fallbacks.no_memory"), 0) << run.Describe();
    EXPECT_NE(run.result.err.find("allocations failed"), std::string::npos) << run.Describe();
    return true;
}

TEST_P(Allocation, ThatFailsIsNotSeen) {
    Case c = CaseOf(GetParam().name);
    c.args = GetParam().args;
    Setting bare;
    bare.env = Env("");
    Outcome plain = RunCase(c, bare);
    long count = 0;
    Outcome whole = RunCounting(c, "", &count);
    ASSERT_SAME(c, plain, whole);
    ASSERT_GT(whole.stats.Number("issued.in_graphs"), 0) << whole.Describe();
    ASSERT_GT(count, 40);
    long without_stats = 0;
    for (long n = 1; n <= count && !HasFailure(); n++) {
        without_stats += !CheckUnseen(c, plain, std::to_string(n));
    }
    // Of those that are made while the settings are read, which are few.
    EXPECT_LE(without_stats, 10);
    for (long n : Picks(count)) {
        if (!HasFailure()) {
            CheckUnseen(c, plain, std::to_string(n) + "+");
        }
    }
}

const Program kPrograms[] = {
    {"copies", {"--steps", "12"}},        {"legacy_blocking", {}},
    {"two_contexts", {"--steps", "4"}},   {"diverge_replace", {"--steps", "16"}},
    {"func_attribute", {"--steps", "4"}}, {"never_sync", {"--steps", "200"}},
    {"module_reload", {"--steps", "4"}},
};

INSTANTIATE_TEST_SUITE_P(Of, Allocation, testing::ValuesIn(kPrograms),
                         [](const auto &given) { return std::string(given.param.name); });

// What reads, gathers and writes the signature cache.
TEST(Cache, AllocationThatFailsIsNotSeen) {
    Case c = CaseOf("launch_bound");
    c.args = {"--steps", "8"};
    Setting bare;
    bare.env = Env("");
    Outcome plain = RunCase(c, bare);
    cache = TempDir();
    long count = 0;
    Outcome whole = RunCounting(c, "", &count); // leaves something to be read
    Outcome second = RunCounting(c, "", &count);
    EXPECT_GT(second.stats.Number("cache.used"), 0) << second.Describe();
    for (long n : Picks(count)) {
        CheckUnseen(c, plain, std::to_string(n));
        CheckUnseen(c, plain, std::to_string(n) + "+");
    }
    // The last ones, where it is written.
    for (long n = count - 12; n <= count && !HasFailure(); n++) {
        unlink((cache + "/cusplice.cache").c_str());
        CheckUnseen(c, plain, std::to_string(n));
    }
    cache.clear();
}

// A rule may be what keeps a program from hanging: where one may be lost, nothing is deferred.
TEST(Rules, LostForMemoryDeferNothing) {
    const Case &c = CaseOf("eager_tenth");
    Outcome whole = RunCase(c, WithFaults({{"CUSPLICE_EAGER", "saxpy_n"}}));
    ASSERT_EQ(whole.stats.Number("eager_by.rule"), 20 * 4) << whole.Describe();
    long off = 0;
    for (int n = 1; n <= 40; n++) {
        SCOPED_TRACE(n);
        Outcome run = RunCase(c, WithFaults({{"CUSPLICE_EAGER", "saxpy_n"},
                                             {"CUS_TEST_ALLOC_FAULT", std::to_string(n)}}));
        EXPECT_EQ(run.result.out, whole.result.out);
        if (run.stats.valid && run.stats.Number("eager_by.rule") != 20 * 4) {
            EXPECT_EQ(run.calls.Number("cuGraphLaunch"), 0) << run.Describe();
            off++;
        }
    }
    EXPECT_GT(off, 0) << "no rule was lost: this shows nothing";
}

// The same of which library a kernel is from.
TEST(Rules, ByLibraryLostForMemoryDeferNothing) {
    Case c = CaseOf("eager_tenth");
    c.args = {"--steps", "6"};
    const std::string rule = "lib:scenario";
    Outcome whole = RunCase(c, WithFaults({{"CUSPLICE_EAGER", rule}}));
    ASSERT_EQ(whole.stats.Number("eager_by.rule"), whole.stats.Sum("ops")) << whole.Describe();
    long off = 0;
    for (int n = 1; n <= 120; n++) {
        SCOPED_TRACE(n);
        Outcome run = RunCase(
            c, WithFaults({{"CUSPLICE_EAGER", rule}, {"CUS_TEST_ALLOC_FAULT", std::to_string(n)}}));
        EXPECT_EQ(run.result.out, whole.result.out);
        EXPECT_EQ(run.calls.Number("cuGraphLaunch"), 0) << run.Describe();
        off += run.result.err.find("which library a kernel is from") != std::string::npos;
    }
    EXPECT_GT(off, 0) << "nothing was lost: this shows nothing";
}

} // namespace
} // namespace sim
