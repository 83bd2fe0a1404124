// Shared code of the fault tests: which calls of a run fail, and what must hold for each such run.
// Runs on the test's thread.
#ifndef TESTS_SIM_SWEEP_H
#define TESTS_SIM_SWEEP_H

#include <string>
#include <vector>

#include "tests/sim/cases.h"

namespace sim {

// With CUS_TEST_FULL=1 in the environment: every n, every form.
bool FullSweep();

// Numbers from 1 to `count`: the first ones, then fewer and fewer, and the last. All in a full
// sweep.
std::vector<long> Picks(long count);

// The library with its own calls marked (own_calls.cc).
Setting WithFaults(std::map<std::string, std::string> env = {});

// Calls of the program and of the library, by symbol, as the simulator counted them.
std::map<std::string, long> OwnCalls(const Outcome &run);
std::map<std::string, long> ProgramCalls(const Outcome &run);

// "" if no line of the library's log was said twice.
std::string SaidOnce(const Outcome &run);

// "" if each stream executed a part of what it executed in `whole`, in the same order: all but
// `holes` operations somewhere, and all behind some point.
std::string Truncated(const Log &whole, const Log &part, size_t holes);

} // namespace sim

#define EXPECT_NOTHING(text) EXPECT_PRED_FORMAT1(sim::IsNothing, text)

#endif
