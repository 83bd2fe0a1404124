// Promise: a kernel that ends its context, in a graph or not, is told of by the calls that would
// have told of it without the library, with its code; a new context works. A call of the library's
// that never returns keeps no thread but its own.
#include "tests/sim/sweep.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sim {
namespace {

std::map<std::string, std::string> Hurry(std::map<std::string, std::string> env) {
    env["CUSIM_DELAY_US"] = "0";
    return env;
}

std::vector<std::string> Lines(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

// ---- a kernel that ends its context ----

enum { kSteps = 24, kKernels = 16, kCalls = 24 }; // harness/scenario/lost.c

// As cuda.h has them: of a kernel, of the memory, of the link, of a time limit; and 46 and 709,
// which no kernel causes, but a device or context that goes under the program's feet.
const int kCodes[] = {700, 710, 714, 715, 716, 717, 718, 719, 702, 214, 220, 226, 46, 709};

struct Lost {
    Outcome plain, preloaded;
};

// The kernel with this number of the last step fails. Then comes the call `first` of lost.c.
Lost RunLost(unsigned kernel, int code, unsigned first, bool primary) {
    Case c = CaseOf("lost_context");
    Setting setting;
    setting.args = {"--steps", std::to_string(kSteps), "--seed",
                    std::to_string(first + (primary ? 100 : 0))};
    unsigned n = (kSteps - 1) * kKernels + kernel;
    setting.env =
        Hurry({{"CUSIM_FAULT", "kernel:" + std::to_string(n) + ":late=" + std::to_string(code)}});
    Lost lost;
    lost.plain = RunCase(c, setting);
    setting.preload = true;
    lost.preloaded = RunCase(c, setting);
    EXPECT_SAME(c, lost.plain, lost.preloaded);
    EXPECT_STATS(lost.preloaded);
    EXPECT_NOTHING(SaidOnce(lost.preloaded));
    return lost;
}

class LostContext : public testing::TestWithParam<bool> {};

// Each kind of call is the first one behind the loss, with another code and another kernel.
TEST_P(LostContext, IsToldByTheSameCalls) {
    size_t i = 0;
    for (unsigned first = 0; first < kCalls; first++, i++) {
        int code = kCodes[i % (sizeof kCodes / sizeof *kCodes)];
        unsigned kernel = 1 + (unsigned)i * 5 % kKernels;
        SCOPED_TRACE("kernel " + std::to_string(kernel) + ", code " + std::to_string(code) +
                     ", call " + std::to_string(first));
        Lost lost = RunLost(kernel, code, first, GetParam());
        const std::string &out = lost.preloaded.result.out;
        EXPECT_NE(out.find("then, synchronise the stream: " + std::to_string(code) + "\n"),
                  std::string::npos)
            << lost.preloaded.Describe();
        EXPECT_GT(lost.preloaded.stats.Number("issued.in_graphs"), kSteps * kKernels);
        if (HasFailure()) {
            return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Of, LostContext, testing::Bool(), [](const auto &given) {
    return std::string(given.param ? "APrimaryContext" : "AContext");
});

// The library says which graph was the last, once, and only of a context that is lost.
TEST(LostContext, IsSaidWithTheLastGraph) {
    const std::string said = "the context was lost with error 700. The last graph was launched";
    const std::string &err = RunLost(8, 700, 5, false).preloaded.result.err;
    EXPECT_NE(err.find(said), std::string::npos) << err;
    EXPECT_NE(err.find("to chain. `cusplice verify` names an op of a graph"), std::string::npos)
        << err;
    EXPECT_EQ(RunLost(8, 46, 5, false).preloaded.result.err.find("the context was lost"),
              std::string::npos);
}

// Whichever call tells the program, which then ends: a launch that no graph has, or a wait. Graphs
// are built at once, so that the launch comes behind the first of them at any pace.
TEST(LostContext, IsSaidByTheCallThatTellsTheProgram) {
    for (const char *call : {"cuLaunchKernel@program:45", "cuStreamSynchronize@program:12"}) {
        Outcome run = RunCase(CaseOf("lost_context"),
                              WithFaults(Hurry({{"CUSIM_FAULT", std::string(call) + ":lost=700"},
                                                {"CUSPLICE_HOLD_US", "1000000"},
                                                {"CUSPLICE_BUILD_US", "0"},
                                                {"CUSPLICE_EAGER", "trap"}})));
        EXPECT_EQ(Lines(run.result.out).size(), 1u) << run.Describe();
        EXPECT_NE(run.result.out.find("700\n"), std::string::npos) << run.Describe();
        EXPECT_NE(run.result.err.find("the context was lost with error 700. The last graph"),
                  std::string::npos)
            << run.Describe();
    }
}

// ---- calls that never return ----

// Of the threads, at most one stays away; the results of the others are as without the library.
std::string OneStays(const Outcome &plain, const Outcome &run) {
    std::vector<std::string> wanted = Lines(plain.result.out), got = Lines(run.result.out);
    size_t away = 0;
    if (run.result.timed_out || wanted.size() != got.size()) {
        return "the program did not end as it should";
    }
    for (size_t i = 0; i < wanted.size(); i++) {
        if (got[i].find("stays away") != std::string::npos) {
            away++;
        } else if (got[i] != wanted[i]) {
            return got[i] + ", not " + wanted[i];
        }
    }
    return away > 1 ? "more than one thread stays away" : "";
}

// Which calls of the library's a thread may stay in. The main thread makes the first of these, too,
// and nobody would wait for the others then.
std::vector<long> Hangs(const std::string &symbol, long count) {
    return {symbol == "cuCtxGetCurrent" ? count - count / 4 : 1, count / 2};
}

TEST(Hang, KeepsOneThread) {
    Case c = CaseOf("thread_hangs");
    Setting bare;
    bare.env = Hurry({});
    Outcome plain = RunCase(c, bare), whole = RunCase(c, WithFaults(Hurry({})));
    ASSERT_EQ(OneStays(plain, whole), "");
    ASSERT_GT(whole.stats.Number("issued.in_graphs"), 0);
    std::map<std::string, long> own = OwnCalls(whole);
    size_t stayed = 0;
    ASSERT_GT(own.count("cuGraphInstantiateWithFlags") + own.count("cuGraphLaunch"), 1u);
    for (const auto &call : own) {
        for (long n : Hangs(call.first, call.second)) {
            std::string fault = call.first + "@own:" + std::to_string(n) + ":hang";
            if (n < 1) {
                continue;
            }
            Outcome run = RunCase(c, WithFaults(Hurry({{"CUSIM_FAULT", fault}})));
            EXPECT_EQ(OneStays(plain, run), "") << fault << "\n" << run.Describe();
            stayed += run.result.out.find("stays away") != std::string::npos;
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_GT(stayed, own.size()) << "hardly a call was made for the n-th time";
}

} // namespace
} // namespace sim
