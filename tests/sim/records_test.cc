// Promise: logs agree where a record is left out that comes again; one that is the last, or at
// another place, is found.
#include "tests/sim/records.h"

#include <gtest/gtest.h>

namespace {

using Lines = std::vector<std::string>;

bool Agree(Lines expected, const Lines &actual) {
    sim::TakeOutRecords(&expected, actual);
    return expected == actual;
}

const Lines kPlain = {"S1 a", "S1 record E1", "S1 b", "S1 record E1", "S1 record E1", "S1 c"};

TEST(Records, MayBeLeftOutWhereTheyComeAgain) {
    EXPECT_TRUE(Agree(kPlain, kPlain));
    EXPECT_TRUE(Agree(kPlain, {"S1 a", "S1 b", "S1 record E1", "S1 c"}));
    EXPECT_TRUE(Agree(kPlain, {"S1 a", "S1 record E1", "S1 b", "S1 record E1", "S1 c"}));
    EXPECT_TRUE(Agree({"S1 free 0x10 8", "S1 record E1", "S1 a", "S1 record E1"},
                      {"S1 free 0x10 8", "S1 a", "S1 record E1"}));
    EXPECT_TRUE(
        Agree({"S1 record E1", "S1 record E2", "S1 record E1"}, {"S1 record E2", "S1 record E1"}));
}

TEST(Records, TheLastOneIsThereAndInItsPlace) {
    EXPECT_FALSE(Agree(kPlain, {"S1 a", "S1 record E1", "S1 b", "S1 c"}));
    EXPECT_FALSE(Agree(kPlain, {"S1 a", "S1 b", "S1 c", "S1 record E1"}));
    EXPECT_FALSE(Agree(kPlain, {"S1 a", "S1 b", "S1 c"}));
    EXPECT_FALSE(Agree(kPlain, {"S1 a", "S1 record E1", "S1 c"}));
    EXPECT_FALSE(Agree({"S1 a"}, {"S1 a", "S1 record E1"})) << "one too many";
    EXPECT_FALSE(Agree({"S1 record E1", "S2 record E1"}, {"S2 record E1"})) << "another stream";
}

} // namespace
