// Promise: an op that would be alone behind a segment is taken in by it, because a single op is
// never in a graph.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

namespace {

// So many steps of so many ops, with a call behind the first `before` of them that cuts what is
// deferred; 0: without one.
void Steps(Program *program, unsigned steps, unsigned ops, unsigned before) {
    while (steps--) {
        for (unsigned i = 0; i < ops; i++) {
            if (i && i == before)
                program->Break();
            program->Op("k" + std::to_string(i), 100 + i, i);
        }
        program->Sync();
    }
}

// The segments of a step of 28 ops, which are of 4, 8 and 16 where nothing cuts them.
std::vector<uint32_t> CutBehind(unsigned before) {
    Program program;
    Steps(&program, 10, 28, 0);
    EXPECT_EQ(std::vector<uint32_t>(program.segments.end() - 3, program.segments.end()),
              (std::vector<uint32_t>{4, 8, 16}));
    Steps(&program, 20, 28, before);
    program.ResetCounts();
    Steps(&program, 1, 28, before);
    EXPECT_EQ(program.eager, 0u) << before;
    ExpectFaithful(program);
    return program.segments;
}

TEST(Alone, TwoAreASegment) {
    EXPECT_EQ(CutBehind(10), (std::vector<uint32_t>{4, 6, 2, 16}));
    EXPECT_EQ(CutBehind(14), (std::vector<uint32_t>{4, 8, 2, 14}));
}

TEST(Alone, TheLastOpOfAStepIsTakenIn) {
    Program program;
    Steps(&program, 10, 29, 0);
    program.ResetCounts();
    Steps(&program, 1, 29, 0);
    EXPECT_EQ(program.segments, (std::vector<uint32_t>{4, 8, 17}));
}

// The GPU is to start behind the first four.
TEST(Alone, NotByTheFirstSegment) {
    Program program;
    Steps(&program, 10, 5, 0);
    program.ResetCounts();
    Steps(&program, 1, 5, 0);
    EXPECT_EQ(program.segments, (std::vector<uint32_t>{4}));
    EXPECT_EQ(program.eager, 1u);
}

TEST(Alone, NoSegmentIsLargerThanAnyMayBe) {
    Program program({2, 4, CUS_SEGMENT_MAX, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
    unsigned ops = 4 + 8 + 16 + 32 + 64 + 128 + 256 + 512 + CUS_SEGMENT_MAX + 1;
    Steps(&program, 10, ops, 0);
    program.ResetCounts();
    Steps(&program, 1, ops, 0);
    ASSERT_FALSE(program.segments.empty());
    EXPECT_EQ(program.segments.back(), (uint32_t)CUS_SEGMENT_MAX);
    EXPECT_EQ(program.eager, 1u);
    ExpectFaithful(program);
}

} // namespace
