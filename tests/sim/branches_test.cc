// Promise: logs agree where operations of a forked stream ran under the stream that forked it; a
// lost, doubled or changed one is found, and so is one that any other stream did.
#include "tests/sim/branches.h"

#include <gtest/gtest.h>

namespace {

using Lines = std::vector<std::string>;

bool Agree(Lines expected, Lines actual, bool all = false) {
    sim::JoinBranches(all, &expected, &actual);
    return expected == actual;
}

// S1 forks S2, and joins it. S3 waits for S1, and nobody for S3.
const Lines kPlain = {"S1 kernel a", "S1 record E1", "S1 kernel b", "S1 wait E2",
                      "S1 kernel c", "S2 wait E1",   "S2 kernel d", "S2 record E2",
                      "S3 wait E1",  "S3 record E4", "S3 kernel e", "S3 kernel f"};

TEST(Branches, MayRunUnderTheStreamThatForkedThem) {
    EXPECT_TRUE(Agree(kPlain, kPlain));
    EXPECT_TRUE(
        Agree(kPlain, {"S1 kernel a", "S1 kernel d", "S1 kernel b", "S1 record E7", "S1 kernel c",
                       "S2 wait E7", "S3 wait E0", "S3 record E5", "S3 kernel e", "S3 kernel f"}));
}

TEST(Branches, AreAsManyOperations) {
    for (size_t i : {0, 2, 4, 6, 8, 9, 10}) {
        Lines less = kPlain, more = kPlain;
        less.erase(less.begin() + static_cast<long>(i));
        more.insert(more.begin() + static_cast<long>(i), kPlain[i]);
        EXPECT_FALSE(Agree(kPlain, less)) << kPlain[i];
        EXPECT_FALSE(Agree(kPlain, more)) << kPlain[i];
    }
    Lines changed = kPlain;
    changed[6] = "S2 kernel g";
    EXPECT_FALSE(Agree(kPlain, changed));
}

TEST(Branches, AreNotThoseOfAStreamThatOnlyWaits) {
    Lines other = kPlain, swapped = kPlain;
    other[10] = "S1 kernel e";
    std::swap(swapped[10], swapped[11]);
    EXPECT_FALSE(Agree(kPlain, other));
    EXPECT_FALSE(Agree(kPlain, swapped));
}

TEST(Branches, OfBranchesAreTogether) {
    Lines nested = {"S1 record E1", "S1 wait E3", "S2 wait E1",   "S2 record E2",
                    "S3 wait E2",   "S3 a",       "S3 record E3", "S4 wait E3"};
    EXPECT_TRUE(Agree(nested, {"S1 a", "S4 wait E1"}));
    EXPECT_FALSE(Agree(nested, {"S1 a"})); // the wait of S4
}

TEST(Branches, AreNoneWhereNobodyWaits) {
    Lines alone = {"S1 a", "S1 b", "S2 record E1", "S2 wait E1", "S2 c"}, swapped = alone;
    std::swap(swapped[0], swapped[1]);
    EXPECT_FALSE(Agree(alone, swapped));
    EXPECT_FALSE(Agree(alone, {"S1 a", "S1 b", "S2 record E2", "S2 wait E2", "S2 c"}));
    EXPECT_TRUE(Agree(alone, {"S1 a", "S2 c", "S3 b"}, true));
}

TEST(Branches, MayUseOtherBlocksOfAPool) {
    auto with = [](const char *address, const char *parameter) {
        return Lines{"S1 record E1",
                     "S1 wait E2",
                     "S2 wait E1",
                     "S2 record E2",
                     std::string("S1 alloc ") + address + " 512",
                     std::string("S2 kernel a 1,1,1 1,1,1 0 ") + parameter + "03000000",
                     std::string("S2 memcpy DtoD ") + address + " 0x400000000000 16"};
    };
    Lines plain = with("0x300000000c00", "100c000000300000");
    EXPECT_TRUE(Agree(plain, with("0x300000001400", "1014000000300000")));
    EXPECT_FALSE(Agree(plain, with("0x300000001400", "1018000000300000"))); // behind the block
}

} // namespace
