// tools/demo.py and cusplice run with the real decode host, launcher and library, on the simulator.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/launcher/launcher.h"

namespace {

bool Has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

TEST(Demo, RunsWholeOnTheSimulator) {
    const char *sanitizer = getenv("CUS_TEST_SANITIZER");
    if (sanitizer && std::string(sanitizer) == "tsan")
        GTEST_SKIP() << "Python does not run under TSan's runtime";
    Result r =
        RunProgram({"/usr/bin/env", "python3", "tools/demo.py", "--bin", ".", "--tokens", "60"});
    EXPECT_EQ(r.Exit(), 0) << r.out << r.err;
    EXPECT_TRUE(Has(r.out, "byte for byte")) << r.out;
    EXPECT_TRUE(Has(r.out, "[graph ")) << r.out;
    EXPECT_TRUE(Has(r.out, "eager attention_decode, graph ")) << r.out;
}

// The launcher where Bazel put it, with the library beside it.
Result Simulated(Strings arguments, const Environment &more = {}) {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice", "run"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Environment all = {{"CUSIM_LIB", "harness/sim/lib"}};
    all.insert(more.begin(), more.end());
    return RunProgram(argv, all);
}

TEST(RealLibrary, AProgramWithLaunchesIsLeftInPeaceAndCounted) {
    std::string stats = Folder() + "/real.json";
    Result r = Simulated({"-c", "config/presets/decode.conf", "--stats", stats, "--",
                          "harness/decode/decode", "--tokens", "8"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_FALSE(Has(r.err, "cusplice")) << r.err;
    EXPECT_TRUE(Has(Read(stats), "\"mode\": \"piecewise\"")) << Read(stats);
}

TEST(RealLibrary, WhySaysWhatBrokeAndNothingElse) {
    Result r = Simulated({"--why", "-c", "config/presets/decode.conf", "--",
                          "harness/decode/decode", "--tokens", "8"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    size_t at = r.err.find("\ncusplice: why (mode piecewise)\n  coverage: ");
    ASSERT_NE(at, std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("cusplice"), at + 1) << r.err;
    EXPECT_EQ(r.err.find("cusplice", at + 2), std::string::npos) << r.err;
    EXPECT_TRUE(Has(r.err, "attention_decode: an eager rule names it\n       to do: ")) << r.err;
}

TEST(RealLibrary, NoEagerRuleIsSaidLoudlyOnce) {
    Result r = Simulated({"--", "harness/decode/decode", "--tokens", "2"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    size_t at = r.err.find("no eager rule: every kernel may be put into a graph");
    EXPECT_NE(at, std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("no eager rule", at + 1), std::string::npos) << r.err;
}

TEST(RealLibrary, ModeOffIsToldAndNothingElseIs) {
    Result r = Simulated({"--", "harness/decode/decode", "--tokens", "2"}, {{"CUSPLICE", "off"}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, "cusplice: mode is off")) << r.err;
    EXPECT_FALSE(Has(r.err, "no eager rule")) << r.err;
}

TEST(RealLibrary, AProgramWithoutCudaIsTold) {
    Result r = Simulated({"--set", "eager=x", "--", Target(), "out=hello"});
    EXPECT_EQ(r.out, "hello\n");
    EXPECT_TRUE(Has(r.err, "never came up: " + Target() + " used no CUDA")) << r.err;
}

} // namespace
