// Promise: rules by library and by call keep exactly the named ops out of graphs: for kernels of
// the program, of a shared library, of an image in memory, and for all forms of a call. Results are
// the same.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sim {
namespace {

const Case kProgram = {"two_objects", 0, "", "", {}};
const Case kDecode = {"decode", 0, "", "", {}};
enum { STEPS = 40, OPS = 4 + 2 + 1 + 3 + 4 }; // of two_objects

Outcome RunWith(const std::vector<std::string> &command, const std::string &rules,
                const std::string &mode = "piecewise") {
    Setting setting;
    setting.timeout_s = 120;
    setting.preload = !rules.empty();
    std::string path = testing::TempDir() + "rules." + std::to_string(getpid()) + ".conf";
    std::ofstream(path) << "[rules]\n" << rules;
    if (setting.preload)
        setting.env = {{"CUSPLICE_MODE", mode}, {"CUSPLICE_CONFIG", path}};
    Outcome run = RunProgram(command, setting);
    unlink(path.c_str());
    return run;
}

std::vector<std::string> Program() {
    return {Runfile("tests/sim/two_objects"), Runfile("tests/sim/libtwo_objects.so")};
}

const char *const kNone = "eager = no_such_kernel\n";

TEST(Rules, EachNamesExactlyWhatItSays) {
    Outcome plain = RunWith(Program(), "");
    ASSERT_EQ(plain.result.status, 0) << plain.result.err;
    const struct {
        std::string rules;
        int each; // ops of a step that go out by themselves
    } rows[] = {
        {kNone, 0},
        {"eager = lib:libtwo_objects.so\n", 2},
        {"never_defer = lib:libtwo_obj*\n", 2},
        {"eager = lib:two_objects\n", 8},
        {"eager = lib:*\n", 10}, // not the one out of an image in memory
        {"graph = add_scalar\neager = lib:*\n", 8},
        {"eager = lib:libtwo\n", 0},
        {"eager = api:cuMemcpyDtoDAsync\n", 2},
        {"eager = api:cuMemcpyDtoDAsync_v2\n", 2},
        {"never_defer = api:cuMemcpyDtoDAsync\n", 2},
        {"eager = api:cuMemcpyDtoDAsync_ptsz\n", 1},
        {"graph = api:*_ptsz\neager = api:cuMemcpyDtoDAsync*\n", 1},
        {"eager = api:cuMemcpyDtoDAsync\neager = api:cuMemset*\n", 3},
        {"eager = api:cuMemcpyHtoDAsync\n", 0},
        {"eager = api:*\n", 3}, // the launches are kernels
        {"graph = api:cuStreamSynchronize\neager = api:cuLaunchKernel\n", 0},
        {"uniform = api:cuMemsetD32Async\nuniform_single = lib:libtwo*\n", 3},
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.rules);
        Outcome run = RunWith(Program(), row.rules);
        EXPECT_SAME(kProgram, plain, run);
        EXPECT_STATS(run);
        EXPECT_EQ(run.stats.Sum("ops"), OPS * STEPS);
        EXPECT_EQ(run.stats.Number("eager_by.rule"), row.each * STEPS) << run.Describe();
        EXPECT_GT(run.stats.Number("issued.in_graphs"), 0);
        EXPECT_EQ(run.stats.Number("steps"), STEPS) << "a rule made a barrier into an op";
    }
}

TEST(Rules, AStepWithAWeakerCallIsDecidedByIt) {
    Outcome plain = RunWith(Program(), "");
    const std::string step = "[step]\nmarker = chain\nuniform = x == 4\n";
    for (const char *policy : {"uniform", "eager"}) {
        SCOPED_TRACE(policy);
        Outcome run = RunWith(Program(), std::string(policy) + " = api:cuMemsetD32Async\n" + step,
                              "full_and_piecewise");
        EXPECT_SAME(kProgram, plain, run);
        bool whole = policy == std::string("uniform");
        // The first comes before anything weaker than a graph was met.
        EXPECT_EQ(run.stats.Number("eager_by.rule"), whole ? 0 : STEPS - 1);
        EXPECT_EQ(run.stats.text["step_classes.uniform.mode"], whole ? "full" : "piecewise");
        EXPECT_EQ(run.stats.text["step_classes.uniform.kernel"], "memset");
        EXPECT_EQ(run.stats.text["step_classes.uniform.pattern"], "api:cuMemsetD32Async");
    }
}

double Launches(const Outcome &plain, const std::string &kernel) {
    double n = 0;
    for (const auto &stream : plain.log)
        for (const auto &op : stream.second)
            n += op.rfind("kernel " + kernel, 0) == 0;
    return n;
}

// The program matches by the name of its file, the matrix products by that of their library.
TEST(Rules, DecodeHostAndItsLibrary) {
    std::vector<std::string> command = DecodeHost({"--prompt", "A", "--tokens", "20"});
    Outcome plain = RunWith(command, "");
    double all = Launches(plain, ""), library = Launches(plain, "cublas");
    ASSERT_GT(library, 0);
    ASSERT_GT(all, library);
    Outcome run = RunWith(command, "eager = lib:libcublas.so*\n");
    EXPECT_SAME(kDecode, plain, run);
    EXPECT_EQ(run.stats.Number("eager_by.rule"), library);
    run = RunWith(command, "eager = lib:decode\n");
    EXPECT_SAME(kDecode, plain, run);
    EXPECT_EQ(run.stats.Number("eager_by.rule"), all - library);
}

} // namespace
} // namespace sim
