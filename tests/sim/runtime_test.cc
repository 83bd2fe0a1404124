// Promise: a program with a shared CUDA runtime runs the same whether the library intercepts its
// launches before the runtime, in the driver alone, or not at all. Launches that repeat are
// intercepted before the runtime.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace sim {
namespace {

enum { STEPS = 40, EACH = 24 }; // of runtime_calls

const char *const kFast[] = {"yes", "no"};

// Not left to the pace of the machine: no watchdog, segments as the plan would have them, built
// when they are due and launched by who made them.
Setting With(const char *fast, bool steady = true) {
    Setting setting;
    setting.preload = fast != nullptr;
    if (fast)
        setting.env["CUSPLICE_RUNTIME_FAST_PATH"] = fast;
    if (steady) {
        setting.env["CUSPLICE_HOLD_US"] = "1000000";
        setting.env["CUSPLICE_BUILD_US"] = "0";
        setting.env["CUSPLICE_SUBMIT_NS"] = "0";
        setting.env["CUSIM_DELAY_US"] = "0";
        if (!sim::Sanitizer().empty() || getenv("CUS_TEST_EMULATED"))
            setting.env["CUSPLICE_SEGMENT_FIRST"] = "64"; // a slow host has many that are small
    }
    return setting;
}

double Met(const Outcome &run) {
    return run.stats.Number("answered_before_runtime");
}

// ---- every scenario, with its plain launches made by the runtime

class Scenario : public testing::TestWithParam<Case> {};

TEST_P(Scenario, IsAsPlain) {
    const Case &c = GetParam();
    Setting setting = With(nullptr, false);
    setting.binary = "harness/scenario/scenario_cudart";
    Outcome plain = RunCase(c, setting);
    for (const char *fast : kFast) {
        SCOPED_TRACE(fast);
        setting = With(fast, false);
        setting.binary = "harness/scenario/scenario_cudart";
        Outcome run = RunCase(c, setting);
        ASSERT_SAME(c, plain, run);
        if (c.name == "idle")
            continue;
        ASSERT_STATS(run);
        EXPECT_LE(Met(run), *fast == 'n' ? 0 : run.stats.Number("issued.in_graphs"));
    }
}

std::vector<Case> Some() {
    std::vector<Case> some;
    for (const Case &c : Cases()) {
        // The runtime makes a context current where none is, so that this program's launch there
        // succeeds and races with its others.
        if (c.name != "errors_context")
            some.push_back(c);
    }
    return some;
}

INSTANTIATE_TEST_SUITE_P(All, Scenario, testing::ValuesIn(Some()),
                         [](const auto &given) { return given.param.Title(); });

// What is deferred, and where segments are cut, does not depend on where launches are met.
TEST(Counts, AreTheSame) {
    for (const char *name : {"steady", "module_reload", "many_params", "growing_grid", "errors"}) {
        SCOPED_TRACE(name);
        std::vector<Outcome> runs;
        for (const char *fast : kFast) {
            Setting setting = With(fast);
            setting.binary = "harness/scenario/scenario_cudart";
            setting.env["CUSPLICE_SEGMENT_FIRST"] = "64";
            Case c = CaseOf(name);
            if (c.name == "growing_grid")
                c.args = {"--steps", "96"}; // so that one more that is learned makes no difference
            runs.push_back(RunCase(c, setting));
            EXPECT_EQ(runs.back().result.status, 0) << runs.back().Describe();
        }
        for (const char *key :
             {"ops.launches", "ops.memsets", "ops.copies", "issued.in_graphs", "eager_by.observing",
              "eager_by.diverged", "eager_by.flushed", "eager_by.unsupported", "graph_launches",
              "segments_formed", "runs", "steps", "signatures.exact", "signatures.patched",
              "signatures.missed", "patched_nodes"})
            EXPECT_EQ(runs[0].stats.Number(key), runs[1].stats.Number(key)) << key;
        double part = name == std::string("growing_grid") ? 1.5 : 3; // met in another shape as well
        EXPECT_GT(Met(runs[0]), runs[0].stats.Number("ops.launches") / part) << name;
        EXPECT_EQ(Met(runs[1]), 0);
    }
}

// ---- what is about the runtime itself

struct Program {
    const char *what;
    int steps;  // of EACH launches that repeat themselves
    int learns; // how often what they are is learned anew, in steps: two to learn, some launches
                // more
    const char *binary = "tests/sim/runtime_calls";
};

void PrintTo(const Program &program, std::ostream *out) {
    *out << program.what;
}

std::vector<std::string> Command(const Program &program) {
    std::vector<std::string> command = {Runfile(program.binary), program.what};
    std::string what = program.what;
    if (what == "unload")
        command.insert(command.end(), {Runfile("tests/sim/libruntime_add.so"),
                                       Runfile("tests/sim/libruntime_iota.so")});
    if (what == "device")
        command.push_back(Runfile("tests/cupti/whole/libcupti.so.13"));
    if (what == "two")
        command.insert(command.end(), {Runfile("harness/sim/rt/libcudart.so.12"),
                                       Runfile("tests/sim/libruntime_old.so")});
    return command;
}

Outcome RunIt(const Program &program, const char *fast,
              const std::map<std::string, std::string> &env = {}) {
    Setting setting = With(fast);
    for (const auto &entry : env)
        setting.env[entry.first] = entry.second;
    return RunProgram(Command(program), setting);
}

class Runtime : public testing::TestWithParam<Program> {};

const Case kAsItIs = {"runtime_calls", 0, "", "", {}};

TEST_P(Runtime, IsAsPlain) {
    const Program &program = GetParam();
    if (program.what == std::string("signals") && sim::Sanitizer() == "tsan")
        GTEST_SKIP() << "the simulator takes memory in a signal handler, which TSan does not allow";
    Outcome plain = RunIt(program, nullptr);
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    ASSERT_NE(plain.result.out, "");
    // qemu does not map a library where another one lay.
    if (program.what == std::string("unload") && !getenv("CUS_TEST_EMULATED")) {
        EXPECT_NE(plain.result.err.find("in its place"), std::string::npos)
            << "no library lay where the one before it lay: " << plain.result.err;
    }
    for (const char *fast : kFast) {
        SCOPED_TRACE(fast);
        Outcome run = RunIt(program, fast);
        EXPECT_SAME(kAsItIs, plain, run);
        EXPECT_STATS(run);
        if (*fast == 'n') {
            EXPECT_EQ(Met(run), 0);
            continue;
        }
        // Of a step's segments (4, 8, and the rest) all but the ends, once each has its graph; one
        // step more where the driver must first be given room for it.
        EXPECT_GE(Met(run), (program.steps - 9 * program.learns) * (EACH - 8)) << run.Describe();
        EXPECT_EQ(run.stats.Number("fallbacks.runtime_path"), 0);
    }
    if (program.what == std::string("signals")) {
        Outcome run = RunIt(program, "yes");
#if defined(__x86_64__)
        EXPECT_EQ(run.result.err.find("interrupted 0 times"), std::string::npos) << run.Describe();
#endif
        EXPECT_GT(Met(run), 0);
    }
    // Whoever listens to calls of the runtime hears of each, also where graphs go on.
    if (program.what == std::string("forms")) {
        Outcome heard = RunIt(program, "yes",
                              {{"CUSPLICE_PROFILE", "ignore"}, {"CUDA_INJECTION64_PATH", "/no"}});
        EXPECT_SAME(kAsItIs, plain, heard);
        EXPECT_EQ(Met(heard), 0);
        EXPECT_GT(heard.stats.Number("issued.in_graphs"), 0);
        Outcome off = RunIt(program, "yes", {{"CUSPLICE", "off"}});
        EXPECT_SAME(kAsItIs, plain, off);
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, Runtime,
    testing::Values(Program{"forms", 5 * STEPS, 5}, Program{"legacy", STEPS, 1},
                    Program{"errors", 0, 0}, Program{"devices", 2 * STEPS, 4},
                    Program{"reset", 3 * STEPS, 3}, Program{"unload", 6 * STEPS, 6},
                    Program{"two", 0, 0}, Program{"lookups", 2 * STEPS, 2},
                    Program{"threads", 4 * STEPS, 4}, Program{"signals", 0, 0}),
    [](const auto &given) { return std::string(given.param.what); });
INSTANTIATE_TEST_SUITE_P(
    Ptsz, Runtime,
    testing::Values(Program{"forms", 5 * STEPS, 5, "tests/sim/runtime_calls_ptsz"},
                    Program{"threads", 4 * STEPS, 4, "tests/sim/runtime_calls_ptsz"}),
    [](const auto &given) { return std::string(given.param.what); });

// A runtime that does not hand on what it is given is left to itself.
TEST(Strange, RuntimeIsNotGuessedAt) {
    const Program program = {"legacy", 0, 0};
    Outcome plain = RunIt(program, nullptr, {{"CUSIM_RUNTIME_NAMES", "1"}});
    Outcome run = RunIt(program, "yes", {{"CUSIM_RUNTIME_NAMES", "1"}});
    EXPECT_SAME(kAsItIs, plain, run);
    EXPECT_EQ(Met(run), 0);
    EXPECT_EQ(run.stats.Number("fallbacks.runtime_path"), 1);
    EXPECT_GT(run.stats.Number("issued.in_graphs"), 0);
}

// Libraries that bring a runtime each, and export it: each launches by its own.
TEST(Strange, ALibrarysOwnRuntimeLaunchesItsKernels) {
    const std::vector<std::string> command = {Runfile("tests/sim/runtime_alone"),
                                              Runfile("tests/sim/libruntime_own_add.so"),
                                              Runfile("tests/sim/libruntime_own_iota.so")};
    Outcome plain = RunProgram(command, With(nullptr));
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    Outcome run = RunProgram(command, With("yes"));
    EXPECT_SAME(kAsItIs, plain, run);
    EXPECT_EQ(Met(run), 0);
    EXPECT_GT(run.stats.Number("issued.in_graphs"), 0);
}

// Also where it stands before one half of <<<>>> only, and before dlclose.
TEST(Strange, AToolBehindHearsOfEachCall) {
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    std::string begin = first && *first ? std::string(first) + ":" : "";
    std::string tool = Runfile("tests/sim/libruntime_half.so");
    for (const char *what : {"forms", "unload"}) {
        SCOPED_TRACE(what);
        const Program program = {what, 0, 0};
        Outcome plain = RunIt(program, nullptr, {{"LD_PRELOAD", begin + tool}});
        ASSERT_NE(plain.result.out.find("half: "), std::string::npos) << plain.Describe();
        Outcome run = RunIt(program, "yes",
                            {{"LD_PRELOAD", begin + Runfile("shim/libcusplice.so") + ":" + tool}});
        EXPECT_SAME(kAsItIs, plain, run);
        EXPECT_GT(Met(run), 0);
    }
}

// Which device a thread works on is what the runtime says, whatever changes it; and it is not asked
// where the driver knows as much and nobody listens: the first time for each device, and again
// where all is forgotten.
TEST(Device, IsTheRuntimes) {
    const std::map<std::string, std::string> two = {{"CUSIM_DEVICES", "2"}};
    Outcome plain = RunIt({"device", 0, 0}, nullptr, two);
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    ASSERT_NE(plain.result.out.find("own, destroyed"), std::string::npos) << plain.Describe();
    for (const char *fast : kFast) {
        SCOPED_TRACE(fast);
        Outcome run = RunIt({"device", 0, 0}, fast, two);
        EXPECT_SAME(kAsItIs, plain, run);
        double asked = run.calls.Number("cuCtxGetDevice_v2");
        if (*fast == 'y') {
            EXPECT_GE(asked, 100); // while somebody listens
            EXPECT_LT(asked, 140);
        } else {
            EXPECT_EQ(asked, plain.calls.Number("cuCtxGetDevice_v2"));
        }
    }
    for (const auto &[name, value] : std::map<std::string, std::string>{
             {"CUSPLICE", "off"}, {"CUDA_INJECTION64_PATH", "/no"}}) {
        SCOPED_TRACE(name);
        auto env = two;
        env[name] = value;
        Outcome run = RunIt({"device", 0, 0}, "yes", env);
        EXPECT_SAME(kAsItIs, plain, run);
        EXPECT_EQ(run.calls.Number("cuCtxGetDevice_v2"), plain.calls.Number("cuCtxGetDevice_v2"));
    }
}

// A runtime with numbers of its own is asked each time.
TEST(Device, NumbersAreNotGuessedAt) {
    const std::map<std::string, std::string> strange = {{"CUSIM_DEVICES", "2"},
                                                        {"CUSIM_RUNTIME_NAMES", "1"}};
    Outcome plain = RunIt({"device", 0, 0}, nullptr, strange);
    Outcome run = RunIt({"device", 0, 0}, "yes", strange);
    EXPECT_SAME(kAsItIs, plain, run);
    EXPECT_EQ(run.calls.Number("cuCtxGetDevice_v2"), plain.calls.Number("cuCtxGetDevice_v2"));
}

TEST(Device, AToolBeforeTheRuntimeHearsOfEachQuestion) {
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    std::string begin = first && *first ? std::string(first) + ":" : "";
    std::string tool = Runfile("tests/sim/libruntime_between.so");
    std::string library = Runfile("shim/libcusplice.so");
    std::map<std::string, std::string> two = {{"CUSIM_DEVICES", "2"}};
    two["LD_PRELOAD"] = begin + tool;
    Outcome plain = RunIt({"device", 0, 0}, nullptr, two);
    ASSERT_NE(plain.result.out.find("between: asked"), std::string::npos) << plain.Describe();
    for (const std::string &both : {library + ":" + tool, tool + ":" + library}) {
        two["LD_PRELOAD"] = begin + both;
        Outcome run = RunIt({"device", 0, 0}, "yes", two);
        EXPECT_SAME(kAsItIs, plain, run);
        EXPECT_EQ(run.stats.Number("fallbacks.runtime_path"), 0) << "which counts kernels";
    }
}

// A tool that stands before the runtime hears of each launch, whichever of the two comes first.
TEST(Strange, AToolBeforeTheRuntimeHearsOfEachLaunch) {
    const Program program = {"reset", 0, 0};
    std::string tool = Runfile("tests/sim/libruntime_between.so");
    std::string library = Runfile("shim/libcusplice.so");
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    std::string begin = first && *first ? std::string(first) + ":" : "";
    Outcome plain = RunIt(program, nullptr, {{"LD_PRELOAD", begin + tool}});
    ASSERT_NE(plain.result.out.find("between: 2880"), std::string::npos) << plain.Describe();
    Outcome behind = RunIt(program, "yes", {{"LD_PRELOAD", begin + library + ":" + tool}});
    EXPECT_SAME(kAsItIs, plain, behind);
    EXPECT_EQ(Met(behind), 0);
    EXPECT_GT(behind.stats.Number("fallbacks.runtime_path"), 0);
    EXPECT_GT(behind.stats.Number("issued.in_graphs"), 0);
    Outcome before = RunIt(program, "yes", {{"LD_PRELOAD", begin + tool + ":" + library}});
    EXPECT_SAME(kAsItIs, plain, before);
    EXPECT_GT(Met(before), 0);
}

} // namespace
} // namespace sim
