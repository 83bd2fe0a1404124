// What each scenario promises, and how to run it plain and preloaded.
#ifndef TESTS_SIM_CASES_H
#define TESTS_SIM_CASES_H

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/sim/child.h"
#include "tests/sim/json.h"
#include "tests/sim/oracle.h"

namespace sim {

struct Case {
    std::string name;  // of the scenario
    int min_in_graphs; // per cent of all ops that must go out in graphs with default settings; 0:
                       // none need to
    std::string must_flush; // a flush cause that must have been counted, "" if none need to
    std::string must_not_flush;
    CompareRules rules;
    bool log_whole = true; // false: the program ends with work pending, so the log may be cut short
    std::vector<std::string> args = {};
    int status = 0;
    int least_in_graphs = -1; // of the slowest timing, where the host's pace decides: the best one
                              // reaches min_in_graphs. -1: each one does

    int Least() const { return least_in_graphs < 0 ? min_in_graphs : least_in_graphs; }
    std::string Title() const; // fit for a test's name
};

void PrintTo(const Case &c, std::ostream *out);

const std::vector<Case> &Cases();
const Case &CaseOf(const std::string &name);

// Settings of one run, beside the case.
struct Setting {
    bool preload = false;
    std::string library; // another library than libcusplice.so, for tests of the tests
    std::map<std::string, std::string> env;
    std::vector<std::string> args;
    std::string binary = "harness/scenario/scenario";
    int timeout_s = 60;
};

struct Outcome {
    Result result;
    Log log;
    Json stats; // the library's; valid only if it wrote any
    Json calls; // the simulator's count of driver calls by symbol
    std::string Describe() const;
};

Outcome RunCase(const Case &c, const Setting &setting);
Outcome RunProgram(const std::vector<std::string> &command, const Setting &setting);
// The decode host with its model and these arguments.
std::vector<std::string> DecodeHost(const std::vector<std::string> &args);

// "" if `actual` is as `expected`: output, exit status, log.
std::string Compare(const Case &c, const Outcome &expected, const Outcome &actual);

// "" if the numbers of the stats file agree with each other and with what the simulator counted.
std::string CheckStats(const Outcome &preloaded);

testing::AssertionResult IsNothing(const char *expression, const std::string &difference);

} // namespace sim

// What differs is shown as it is, not quoted in one line.
#define EXPECT_SAME(...) EXPECT_PRED_FORMAT1(sim::IsNothing, sim::Compare(__VA_ARGS__))
#define ASSERT_SAME(...) ASSERT_PRED_FORMAT1(sim::IsNothing, sim::Compare(__VA_ARGS__))
#define EXPECT_STATS(outcome) EXPECT_PRED_FORMAT1(sim::IsNothing, sim::CheckStats(outcome))
#define ASSERT_STATS(outcome) ASSERT_PRED_FORMAT1(sim::IsNothing, sim::CheckStats(outcome))

#endif
