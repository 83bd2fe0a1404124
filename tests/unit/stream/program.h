// A program on the fake driver: what it asks the library for, and what the journal and the
// library's counters then say of it. A suite starts the engine itself, with the settings that it is
// about, and calls all of this from any of its threads.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_PROGRAM_H
#define CUSPLICE_TESTS_UNIT_STREAM_PROGRAM_H

#include "tests/unit/stream/fake_driver.h"
#include "tests/within.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace fake {

// Starts the engine, on the driver's table as it is now, with these environment variables. No other
// one is running. The engine's answer.
using Settings = std::vector<std::pair<std::string, std::string>>;
bool StartEngine(const Settings &settings);
// Makes a fresh table (Reset), has what is deferred issued, and ends the engine. Environment and
// clock are as before the start. Nothing is left: the next engine is that of a new process. Each op
// that was counted has gone out, unless the suite made ops up (`balanced`). Does nothing if none is
// running.
void EndEngine(bool balanced = true);

// A suite or a test of it starts an engine, which ends with the suite.
class EngineTest : public testing::Test {
  protected:
    static void TearDownTestSuite() { EndEngine(); }
};

// A launch of one of MakeFunction's as a hook describes it. A test may change `launch` before it
// issues it; the params that it points to are in here.
class Call {
  public:
    Call(CUstream stream, CUfunction f, uint64_t a, uint32_t b = 0, unsigned grid = 1,
         unsigned block = 32);
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    cus_launch launch = {};

  private:
    uint64_t a_;
    uint32_t b_;
    void *params_[2] = {&a_, &b_};
};

// As the hooks do: the hot path first.
CUresult Issue(const cus_launch &launch);
CUresult Launch(CUstream stream, CUfunction f, uint64_t a, uint32_t b = 0, unsigned grid = 1,
                cus_abi abi = CUS_ABI_LEGACY);
// The host waits for the stream: what is deferred goes out, and a step ends.
void Sync(CUstream stream, cus_abi abi = CUS_ABI_LEGACY);
// The functions k0, k1 and so on.
std::vector<CUfunction> MakeFunctions(unsigned n);
// Steps of a launch of each function, until graphs of them are launched.
void Learn(CUstream stream, const std::vector<CUfunction> &functions);

// Another context, which is known since a stream of it had work.
CUcontext MakeOtherContext();
// A context has ended, with all that is in it.
void EndContext(CUcontext context);

cus_counters Counters();
// Each op that was counted went out once, in a graph or by itself. Returns how many there were.
uint64_t ExpectBalance();

// A test of steps of 12 launches on a stream. Each test begins with a fresh driver and stream.
class ProgramTest : public EngineTest {
  protected:
    static constexpr int kOps = 12;

    void SetUp() override;
    void TearDown() override;

    // Launch `i` of a step; its first param is 100 + i.
    CUresult Launch(int i, uint32_t b = 0, unsigned grid = 1);
    void Sync() { fake::Sync(stream_); }
    std::string Line(const std::string &name, uint64_t a, uint32_t b, unsigned grid = 1);
    // What Launch with the same arguments writes into the journal.
    std::string Line(int i, uint32_t b, unsigned grid = 1);
    // A step, which is issued in the order of the program and each launch once.
    void Step(uint32_t b = 0, unsigned grid = 1);
    // Such steps; the second param of launches is `grow` larger in each.
    void Steps(int steps, uint32_t grow = 0, unsigned grid = 1);
    // Nothing is deferred on any other stream.
    void LeaveOthersAlone() const;

    CUstream stream_;
    std::vector<CUfunction> functions_;
};

} // namespace fake

#endif
