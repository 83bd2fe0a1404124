// Promise: logs agree however late a free was made, and a free that came too early is found.
#include "tests/sim/blocks.h"

#include <gtest/gtest.h>

namespace {

using Lines = std::vector<std::string>;

const char *const kAlloc = "S1 alloc 0x300000000c00 1024";
const char *const kFree = "S1 free 0x300000000c00 1024";
// Its second parameter is 0x300000000c10.
const char *const kUses = "S1 kernel add 1,1,1 64,1,1 0 0000000000400000100c000000300000";
const char *const kCopies = "S1 memcpy DtoD 0x300000000fff 0x400000000000 1";
const char *const kOther = "S1 kernel add 1,1,1 64,1,1 0 00000000004000000010000000300000";

TEST(Blocks, AreTakenOutWhereverTheyStand) {
    Lines lines = {kAlloc, kUses, kFree, kOther, "S2 free 0x300000000c00 1024", kCopies};
    EXPECT_NE(sim::TakeOutBlocks(&lines), "");
    EXPECT_EQ(lines, (Lines{kUses, kOther, kCopies}));
    Lines late = {kAlloc, kUses, kOther, kCopies, kFree};
    EXPECT_EQ(sim::TakeOutBlocks(&late), "");
    EXPECT_EQ(late, lines);
}

TEST(Blocks, AreUsedWhileTheyLive) {
    for (const char *use : {kUses, kCopies}) {
        Lines early = {kAlloc, kFree, use};
        EXPECT_NE(sim::TakeOutBlocks(&early).find(use), std::string::npos) << use;
        Lines again = {kAlloc, kFree, kAlloc, use};
        EXPECT_EQ(sim::TakeOutBlocks(&again), "") << use;
    }
    Lines beside = {kAlloc, kFree, kOther, "S2 memset 0x300000000c00 1 0x0 4"};
    EXPECT_EQ(sim::TakeOutBlocks(&beside), "") << "of this stream's blocks alone";
}

} // namespace
