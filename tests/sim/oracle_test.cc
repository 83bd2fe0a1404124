// Promise: two logs agree only if every stream executed the same operations in the same order.
// Otherwise the comparison shows the first difference.
#include "tests/sim/oracle.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

const char kLog[] = "S0 kernel chain 2,1,1 64,1,1 0 aabb\n"
                    "S1 memset d+0 16 0x1 4\n"
                    "S0 kernel chain 2,1,1 64,1,1 0 aacc\n"
                    "S1 record E0\n"
                    "S0 wait E0\n";

std::string Compare(const std::string &a, const std::string &b, CompareRules rules = {}) {
    return CompareLogs(ParseLog(a), ParseLog(b), rules);
}

TEST(Oracle, EqualLogsAgree) {
    EXPECT_EQ(Compare(kLog, kLog), "");
}

TEST(Oracle, OrderBetweenStreamsIsNotCompared) {
    EXPECT_EQ(Compare("S0 a\nS1 b\nS0 c\n", "S1 b\nS0 a\nS0 c\n"), "");
}

TEST(Oracle, SeesAChangedParameter) {
    std::string other = kLog;
    other.replace(other.find("aacc"), 4, "aacd");
    std::string difference = Compare(kLog, other);
    EXPECT_NE(difference.find("stream S0 differs at operation 1"), std::string::npos) << difference;
    EXPECT_NE(difference.find("aacd"), std::string::npos) << difference;
}

TEST(Oracle, SeesAMissingOperation) {
    std::string other = kLog;
    other.resize(other.rfind("S0 wait"));
    EXPECT_NE(Compare(kLog, other).find("(end)"), std::string::npos);
}

TEST(Oracle, SeesOneTooMany) {
    EXPECT_NE(Compare(kLog, std::string(kLog) + "S1 hostfn\n").find("stream S1"),
              std::string::npos);
}

TEST(Oracle, SeesAStreamTooMany) {
    EXPECT_NE(Compare(kLog, std::string(kLog) + "S7 hostfn\n").find("stream S7"),
              std::string::npos);
}

TEST(Oracle, SeesASwap) {
    EXPECT_NE(Compare("S0 a\nS0 b\n", "S0 b\nS0 a\n"), "");
}

TEST(Oracle, SeesAnOperationOnAnotherStream) {
    EXPECT_NE(Compare("S0 a\nS1 b\n", "S0 a\nS0 b\n"), "");
    EXPECT_NE(Compare("S0 a\nS1 b\n", "S0 a\nS0 b\n", {true, false}), "");
}

TEST(Oracle, StreamNumbersMayBeLeftOpen) {
    EXPECT_NE(Compare("S0 a\nS1 b\n", "S1 a\nS0 b\n"), "");
    EXPECT_EQ(Compare("S0 a\nS1 b\n", "S1 a\nS0 b\n", {true, false}), "");
    EXPECT_NE(Compare("S0 a\nS1 b\n", "S1 a\nS0 c\n", {true, false}), "");
}

TEST(Oracle, OrderInsideAStreamMayBeLeftOpen) {
    EXPECT_EQ(Compare("S0 a\nS0 b\n", "S0 b\nS0 a\n", {false, true}), "");
    EXPECT_NE(Compare("S0 a\nS0 b\n", "S0 b\nS0 b\n", {false, true}), "");
}

TEST(Oracle, BranchesMayBeUnderAnotherStream) {
    const char fork[] = "S0 a\nS0 record E0\nS1 wait E0\nS1 b\nS1 record E1\nS0 wait E1\n";
    EXPECT_NE(Compare(fork, "S0 b\nS0 a\n"), "");
    EXPECT_EQ(Compare(fork, "S0 b\nS0 a\n", {false, false, true}), "");
    EXPECT_NE(Compare(fork, "S0 b\nS0 b\n", {false, false, true}), "");
    EXPECT_NE(Compare("S0 a\nS1 b\n", "S0 a\nS0 b\n", {false, false, true}), "");
    EXPECT_EQ(Compare("S0 a\nS1 b\n", "S0 a\nS0 b\n", {true, false, true}), "");
}

} // namespace
} // namespace sim
