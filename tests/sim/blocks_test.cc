// Promise: logs agree however late a free was made and whichever block an allocation got; a free
// that came too early is found, and memory that two allocations share.
#include "tests/sim/blocks.h"

#include <gtest/gtest.h>

namespace {

using Lines = std::vector<std::string>;

const std::string kAt[2] = {"0x300000000c00", "0x300000001400"};
const std::string kParam[2] = {"100c000000300000", "1014000000300000"}; // 16 bytes behind

std::string Alloc(int block) {
    return "S1 alloc " + kAt[block] + " 1024";
}
std::string Free(int block) {
    return "S1 free " + kAt[block] + " 1024";
}
std::string Kernel(int block) {
    return "S1 kernel add 1,1,1 64,1,1 0 0000000000400000" + kParam[block] + "07000000";
}
std::string Copy(int block) {
    return "S1 memcpy DtoD " + kAt[block] + " 0x400000000000 1";
}
const std::string kOther = "S1 kernel add 1,1,1 64,1,1 0 00000000004000000010000000500000";

// What is left of `actual`; its fault instead.
Lines Left(Lines expected, Lines actual) {
    std::string fault = sim::TakeOutBlocks(&expected, &actual);
    return fault.empty() ? actual : Lines{fault};
}

TEST(Blocks, AFreeMayComeLate) {
    EXPECT_EQ(Left({Alloc(0), Kernel(0), Free(0), kOther}, {Alloc(0), Kernel(0), kOther, Free(0)}),
              (Lines{Kernel(0), kOther}));
}

// Of memory that was allocated before the logs began.
TEST(Blocks, AFreeMayBeInOneLogAlone) {
    EXPECT_EQ(Left({kOther}, {kOther, Free(0)}), Lines{kOther});
}

TEST(Blocks, MemoryLivesWhereItIsUsed) {
    Lines plain = {Alloc(0), Kernel(0), Copy(0), Free(0)};
    EXPECT_EQ(Left(plain, {Alloc(0), Kernel(0), Free(0), Copy(0)}).size(), 1u);
    EXPECT_EQ(Left(plain, {Kernel(0), Copy(0), Alloc(0), Free(0)}), (Lines{Kernel(0), Copy(0)}))
        << "it was allocated before the log began";
    EXPECT_EQ(Left({Alloc(0), Free(0), Kernel(0)}, {Alloc(0), Free(0), Kernel(0)}),
              (Lines{Kernel(0)}))
        << "a program that is odd by itself";
}

TEST(Blocks, AnAllocationMayGetAnotherBlock) {
    Lines plain = {Alloc(0), Kernel(0), Free(0), Alloc(0), Kernel(0), Copy(0), Free(0)};
    Lines wanted = {Kernel(0), Kernel(0), Copy(0)};
    EXPECT_EQ(Left(plain, {Alloc(0), Kernel(0), Alloc(1), Free(0), Kernel(1), Copy(1), Free(1)}),
              wanted);
    EXPECT_EQ(Left(plain, {Alloc(0), Kernel(0), Kernel(0), Copy(0), Free(0)}), wanted)
        << "the same one without a call";
    EXPECT_NE(Left(plain, {Alloc(0), Alloc(1), Kernel(0), Kernel(1), Copy(0), Free(0), Free(1)}),
              wanted)
        << "two blocks for one allocation";
}

TEST(Blocks, TwoAllocationsThatLiveAtATimeHaveTwo) {
    Lines plain = {Alloc(0), Alloc(1), Kernel(0), Copy(1), Free(0), Free(1)};
    EXPECT_EQ(Left(plain, {Alloc(1), Alloc(0), Kernel(1), Copy(0)}), (Lines{Kernel(0), Copy(1)}));
    EXPECT_NE(Left(plain, {Alloc(0), Alloc(1), Kernel(0), Copy(0)}), (Lines{Kernel(0), Copy(1)}));
}

} // namespace
