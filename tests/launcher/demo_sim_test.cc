// tools/demo.py with the real decode host, launcher and library, on the simulator.
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

} // namespace
