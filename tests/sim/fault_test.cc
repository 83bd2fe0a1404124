// Promise: a failing driver call of the library changes nothing for the program; a failing call of
// the program has its usual effect. A loop makes each call site fail once.
//
// By default only a sample of each function's later calls fails; CUS_TEST_FULL=1 makes every call
// fail.
#include "tests/sim/sweep.h"

#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <set>

extern "C" {
#include "shim/api/driver.h"
}

namespace sim {
namespace {

// Short, and together through every driver function that the library calls (see Coverage).
struct Program {
    const char *name;
    std::vector<std::string> args;
    // Of those that are run with faults of the library's own calls alone:
    std::string fault = ""; // one that the library makes good for
    std::string rules = ""; // of a config file

    bool IsPlain() const { return fault.empty() && rules.empty(); }
};

void PrintTo(const Program &program, std::ostream *out) {
    *out << program.name;
}

const std::vector<Program> kPrograms = {
    {"copies", {"--steps", "12"}},
    {"memsets", {"--steps", "12"}},
    {"launch_ex", {"--steps", "12"}},
    {"two_contexts", {"--steps", "12"}},
    {"legacy_blocking", {}},
    {"cooperative", {"--steps", "12"}},
    {"capture_once", {"--steps", "16"}},
    {"capture_global", {}},
    {"capture_failing", {"--steps", "20"}},
    {"decode_loop", {"--steps", "10"}},
    {"diverge_replace", {"--steps", "16"}},
    {"handles", {"--steps", "12"}},
    {"errors", {"--steps", "16"}},
    // An allocation of the program's fails: graphs are dropped, and it is tried again.
    {"free_reuse", {"--steps", "40"}, "cuMemAlloc_v2@program:35:2"},
    // Records, other events in the same nodes, and destroys, which the library may make later (the
    // rule as below).
    {"event_recreate", {"--steps", "12"}, "", "eager = no_such_kernel\n"},
    {"event_elapsed", {"--steps", "16"}, "", "eager = no_such_kernel\n"},
    // Branches (the rule as above).
    {"fork_layers", {"--steps", "12"}, "", "eager = no_such_kernel\n"},
    // Frees that are deferred (no rule matches; with one, only the library's own calls fail).
    {"pool_loop", {"--steps", "12"}, "", "eager = no_such_kernel\n"},
    {"pool_changes", {"--steps", "24"}, "", "eager = no_such_kernel\n"},
    // Nothing is built while such a kernel may wait, and whether it does is asked.
    {"spin_pair", {}, "", "never_defer = spin_until\n"},
};

Case CaseFor(const Program &program) {
    Case c = CaseOf(program.name);
    c.args = program.args;
    return c;
}

std::string With(const Program &program, const std::string &fault) {
    return program.fault + (program.fault.empty() || fault.empty() ? "" : ",") + fault;
}

// Streams hurry, and the watchdog stays out of it, so that a run makes the same calls each time.
std::map<std::string, std::string> Steady(std::map<std::string, std::string> env = {}) {
    env["CUSIM_DELAY_US"] = "0";
    env["CUSPLICE_HOLD_US"] = "1000000";
    // What graphs are built and dropped is news each time, and may read alike.
    env["CUSPLICE_LOG"] = "info,graph:warn";
    return env;
}

// The program's config file, as long as this lives.
class Config {
  public:
    explicit Config(const Program &program) {
        if (!program.rules.empty()) {
            dir_ = TempDir();
            std::ofstream(Path()) << "[rules]\n" << program.rules;
        }
    }
    ~Config() {
        if (!dir_.empty()) {
            unlink(Path().c_str());
            rmdir(dir_.c_str());
        }
    }
    Setting On(const std::string &fault) const {
        Setting setting = WithFaults(Steady({{"CUSIM_FAULT", fault}}));
        if (!dir_.empty()) {
            setting.env["CUSPLICE_CONFIG"] = Path();
        }
        return setting;
    }

  private:
    std::string Path() const { return dir_ + "/rules.conf"; }
    std::string dir_;
};

// Which fallback is counted when the only call of a function that is made fails each time.
const std::map<std::string, std::string> kFallback = {
    {"cuGraphInstantiateWithFlags", "instantiate_failed"},
    {"cuStreamBeginCapture_v2", "capture_failed"},
    {"cuStreamEndCapture", "capture_failed"},
    {"cuStreamGetCaptureInfo_v3", "capture_failed"},
    {"cuStreamUpdateCaptureDependencies_v2", "capture_failed"},
    {"cuStreamCreateWithPriority", "capture_failed"},
    {"cuStreamGetPriority", "capture_failed"},
    {"cuGraphExecKernelNodeSetParams_v2", "setparams_refused"},
    {"cuGraphExecMemsetNodeSetParams", "setparams_refused"},
    {"cuGraphExecMemcpyNodeSetParams", "setparams_refused"},
    {"cuEventRecordWithFlags", "capture_failed"},
    {"cuGraphExecEventRecordNodeSetEvent", "setparams_refused"},
    {"cuGraphLaunch", "graph_launch_failed"},
    {"cuGraphKernelNodeGetParams_v2", "setparams_refused"},
    {"cuGraphKernelNodeGetAttribute", "attribute_lost"},
    {"cuGraphMemcpyNodeGetParams", "setparams_refused"},
    {"cuGraphMemsetNodeGetParams", "setparams_refused"},
    {"cuFuncGetName", "no_layout"},
    {"cuFuncGetParamInfo", "no_layout"},
    {"cuKernelGetParamInfo", "no_layout"},
};

// A fault of the n-th call, and beyond.
std::string Fault(const std::string &symbol, const char *who, long n, const char *what) {
    return symbol + "@" + who + ":" + std::to_string(n) + ":" + what;
}

// Was that call made this time? How fast the host is decides how large segments get, and so a
// little of how many calls it takes.
bool Made(const Outcome &run, const std::string &symbol, const char *who, long n) {
    return (*who == 'o' ? OwnCalls(run) : ProgramCalls(run))[symbol] >= n;
}

class OwnCall : public testing::TestWithParam<Program> {};

// How a program runs without the library; and, where the library makes good for a fault of the
// program's, how it runs with that fault, which is what it sees when the library is kept from that.
struct Plain {
    Outcome right;
    std::unique_ptr<Outcome> given_up;

    Plain(const Case &c, const Program &program) : right(RunCase(c, {})) {
        if (!program.fault.empty()) {
            Setting setting;
            setting.env = Steady({{"CUSIM_FAULT", program.fault}});
            given_up = std::make_unique<Outcome>(RunCase(c, setting));
        }
    }
};

// One run with a fault of the library's own call: as without the library, and accounted for.
void CheckUnseen(const Case &c, const Config &config, const Plain &plain, const std::string &symbol,
                 long n, const std::string &fault, const std::string &fallback) {
    SCOPED_TRACE("CUSIM_FAULT=" + fault);
    Outcome run = RunCase(c, config.On(fault));
    bool as_without = plain.given_up && Compare(c, *plain.given_up, run).empty();
    if (!as_without) {
        EXPECT_SAME(c, plain.right, run);
    }
    EXPECT_STATS(run);
    EXPECT_NOTHING(SaidOnce(run));
    // Nothing stands for a wait of a side stream that is refused: the program is told.
    if (symbol == "cuStreamWaitEvent" && Made(run, symbol, "own", n)) {
        EXPECT_GT(run.stats.Number("fallbacks.late_error"), 0);
    } else {
        EXPECT_EQ(run.stats.Number("fallbacks.late_error"), 0);
    }
    if (!fallback.empty() && Made(run, symbol, "own", n)) {
        EXPECT_GT(run.stats.Number("fallbacks." + fallback), 0) << run.Describe();
    }
}

TEST_P(OwnCall, ThatFailsIsNotSeen) {
    const Program &program = GetParam();
    Case c = CaseFor(program);
    Config config(program);
    Plain plain(c, program);
    Outcome whole = RunCase(c, config.On(program.fault));
    ASSERT_SAME(c, plain.right, whole);
    std::map<std::string, long> own = OwnCalls(whole);
    ASSERT_GT(own.size(), 8u) << "nothing is marked as the library's own";
    for (const auto &call : own) {
        if (call.first == "cuCtxPopCurrent_v2" || call.first == "cuCtxPushCurrent_v2") {
            // Nothing can be done about these: what was pushed stays current; and a context that
            // cannot be pushed is taken for dead, with what is deferred in it.
            continue;
        }
        auto known = kFallback.find(call.first);
        std::string fallback = known == kFallback.end() ? "" : known->second;
        for (long n : Picks(call.second)) {
            CheckUnseen(c, config, plain, call.first, n,
                        With(program, Fault(call.first, "own", n, "999")), "");
            if (HasFailure()) {
                return;
            }
        }
        CheckUnseen(c, config, plain, call.first, 1, With(program, call.first + "@own:1+:999"),
                    fallback);
        if (HasFailure()) {
            return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Of, OwnCall, testing::ValuesIn(kPrograms),
                         [](const auto &given) { return std::string(given.param.name); });

// A capture of the library's that is spoilt in the middle, whoever did it.
TEST_P(OwnCall, WhoseCaptureIsSpoiltIsNotSeen) {
    const Program &program = GetParam();
    Case c = CaseFor(program);
    Config config(program);
    Plain plain(c, program);
    Outcome whole = RunCase(c, config.On(program.fault));
    std::map<std::string, long> own = OwnCalls(whole);
    for (const char *call : {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel",
                             "cuMemsetD8Async", "cuMemsetD2D8Async", "cuMemcpyAsync",
                             "cuEventRecordWithFlags", "cuStreamGetCaptureInfo_v3",
                             "cuStreamUpdateCaptureDependencies_v2", "cuStreamEndCapture"}) {
        for (long n : Picks(own[call])) {
            // A capture of the program's own in the same context would be spoilt too: there is
            // none while the library captures.
            CheckUnseen(c, config, plain, call, n,
                        With(program, Fault(call, "own", n, "invalidate")), "capture_failed");
            if (HasFailure()) {
                return;
            }
        }
    }
}

// No function that the library calls is left out.
TEST(Coverage, EveryCallOfTheLibrarysFailsSomewhere) {
    std::set<std::string> called;
    for (const Program &program : kPrograms) {
        Config config(program);
        for (const auto &call : OwnCalls(RunCase(CaseFor(program), config.On(program.fault)))) {
            called.insert(call.first);
        }
    }
    called.insert("cuMemFreeAsync"); // a call of the program's, made later
    called.insert("cuEventRecord");
#define CUS_OWN_NEEDED(name, ...) EXPECT_TRUE(called.count(#name)) << #name;
#define CUS_OWN_OPTIONAL(name, ...) EXPECT_TRUE(called.count(#name)) << #name;
#include "shim/api/own.def"
}

// ---- the program's own calls ----

class ProgramCall : public testing::TestWithParam<Program> {};

bool IsOp(const std::string &symbol) {
    if (symbol.compare(0, 13, "cuEventRecord") == 0) {
        return true;
    }
    for (const char *op : {"cuLaunch", "cuMemsetD", "cuMemcpy"}) {
        if (symbol.compare(0, strlen(op), op) == 0 && symbol != "cuLaunchHostFunc") {
            return symbol.find("Async") != std::string::npos || symbol[2] == 'L';
        }
    }
    return false;
}

// Every call of the program's that is not an op reaches the driver once, and its code the program.
TEST_P(ProgramCall, ThatFailsIsSeenAsItIs) {
    Case c = CaseFor(GetParam());
    Setting bare;
    bare.env = Steady();
    Outcome plain = RunCase(c, bare);
    Outcome whole = RunCase(c, WithFaults(Steady()));
    std::map<std::string, long> wanted = ProgramCalls(plain), seen = ProgramCalls(whole);
    ASSERT_GT(wanted.size(), 8u);
    for (const auto &call : wanted) {
        if (IsOp(call.first)) {
            continue;
        }
        EXPECT_EQ(seen[call.first], call.second) << call.first;
        for (long n : Picks(call.second)) {
            std::string fault = Fault(call.first, "program", n, "999");
            SCOPED_TRACE("CUSIM_FAULT=" + fault);
            Setting setting = bare;
            setting.env["CUSIM_FAULT"] = fault;
            Outcome expected = RunCase(c, setting);
            Outcome actual = RunCase(c, WithFaults(Steady({{"CUSIM_FAULT", fault}})));
            EXPECT_SAME(c, expected, actual);
            if (actual.stats.valid) {
                EXPECT_STATS(actual);
            }
            if (HasFailure()) {
                return;
            }
        }
    }
}

// The line in which a scenario says the hash of the codes that it got.
std::string Codes(const Outcome &run) {
    size_t at = run.result.out.rfind("codes: ");
    return at == std::string::npos ? "" : run.result.out.substr(at);
}

// Did the program get this code from some call? Either it ended there, or said so, or hashed it.
bool Heard(const Outcome &plain, const Outcome &run, const std::string &code) {
    return run.result.out.find(": " + code + "\n") != std::string::npos ||
           (!Codes(run).empty() && Codes(run) != Codes(plain));
}

// An op that fails, deferred or not: the program hears of it, by that call or one behind it, and
// nothing else is lost or doubled.
TEST_P(ProgramCall, OpThatFailsIsHeardOf) {
    Case c = CaseFor(GetParam());
    Setting bare;
    bare.env = Steady();
    Outcome plain = RunCase(c, bare);
    Outcome whole = RunCase(c, WithFaults(Steady()));
    for (const auto &call : ProgramCalls(whole)) {
        if (!IsOp(call.first)) {
            continue;
        }
        for (long n : Picks(call.second)) {
            std::string fault = Fault(call.first, "program", n, "999");
            SCOPED_TRACE("CUSIM_FAULT=" + fault);
            Outcome run = RunCase(c, WithFaults(Steady({{"CUSIM_FAULT", fault}})));
            EXPECT_TRUE(Heard(plain, run, "999") || !Made(run, call.first, "program", n))
                << run.Describe();
            EXPECT_NOTHING(Truncated(plain.log, run.log, 1));
            EXPECT_STATS(run);
            EXPECT_NOTHING(SaidOnce(run));
            if (HasFailure()) {
                return;
            }
        }
    }
}

// ---- a context that is lost ----

// From the fault on every call of the context answers the error. Nothing hangs, nothing runs twice,
// and what the streams executed is the beginning of what they should have.
class LostContext : public testing::TestWithParam<Program> {};

TEST_P(LostContext, AnywhereEndsTheProgram) {
    Case c = CaseFor(GetParam());
    Setting bare;
    bare.env = Steady();
    Outcome plain = RunCase(c, bare);
    Outcome whole = RunCase(c, WithFaults(Steady()));
    size_t turn = 0;
    for (const auto &call : OwnCalls(whole)) {
        for (const char *what : {"lost=", "late="}) {
            if (what[1] == 'a' && call.first != "cuGraphLaunch") {
                continue; // the other calls of the library's submit nothing
            }
            for (long n : Picks(call.second)) {
                // A kernel, the memory or the device failed, or the context went.
                const char *code = (const char *[]){"719", "700", "214", "46", "709"}[turn++ % 5];
                std::string fault = Fault(call.first, "own", n, what) + code;
                SCOPED_TRACE("CUSIM_FAULT=" + fault);
                Setting setting = WithFaults(Steady({{"CUSIM_FAULT", fault}}));
                setting.timeout_s = 20;
                Outcome run = RunCase(c, setting);
                EXPECT_FALSE(run.result.timed_out);
                // The last calls are made when the program has ended.
                EXPECT_TRUE(Heard(plain, run, code) || Compare(c, plain, run).empty())
                    << run.Describe();
                EXPECT_NOTHING(Truncated(plain.log, run.log, 0));
                EXPECT_STATS(run);
                EXPECT_NOTHING(SaidOnce(run));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

// Where one thread ends the program, how far another one got is chance.
std::vector<Program> OneThread() {
    std::vector<Program> programs;
    for (const Program &program : kPrograms) {
        if (program.IsPlain() && std::string(program.name) != "capture_global") {
            programs.push_back(program);
        }
    }
    return programs;
}

INSTANTIATE_TEST_SUITE_P(Of, ProgramCall, testing::ValuesIn(OneThread()),
                         [](const auto &given) { return std::string(given.param.name); });

// A few of them: what is lost is lost in the same way everywhere.
std::vector<Program> Few() {
    std::vector<Program> programs;
    for (const Program &program : OneThread()) {
        for (const char *name : {"copies", "launch_ex", "legacy_blocking", "two_contexts"}) {
            if (FullSweep() || strcmp(program.name, name) == 0) {
                programs.push_back(program);
                break;
            }
        }
    }
    return programs;
}

INSTANTIATE_TEST_SUITE_P(Of, LostContext, testing::ValuesIn(Few()),
                         [](const auto &given) { return std::string(given.param.name); });

} // namespace
} // namespace sim
