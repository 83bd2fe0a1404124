// Promise: an op that would be alone behind a segment is taken in by it, because a single op is
// never in a graph. So is a record between two segments, with the op behind it.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

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

// ---- records of events ----

// The segments of a step, with `|` behind each; r: a record. Ops by themselves are in capitals. The
// host takes `pace` ns from op to op; 0: that is not known, and segments are of 4, 8 and 16 ops.
std::string Cut(const std::string &ops, uint64_t pace = 0) {
    Program program({2, 4, 1024, 400000, 4, 100000, CUS_MODE_PIECEWISE, false});
    program.Kind("r")->type = CUS_OP_RECORD;
    std::string cut;
    for (int step = 0; step < 20; step++) {
        cut.clear();
        for (size_t i = 0; i < ops.size(); i++) {
            unsigned eager = program.eager;
            size_t segments = program.segments.size();
            if (pace)
                cus_plan_paced(&program.plan, 64, 64 * pace);
            program.Op(ops[i] == 'r' ? "r" : ops[i] + std::to_string(i), i, i);
            cut += program.eager > eager ? (char)toupper(ops[i]) : ops[i];
            if (program.segments.size() > segments)
                cut += '|';
        }
        program.Sync();
    }
    ExpectFaithful(program);
    return cut;
}

// A host in a hurry and one that takes 0.2 ms from op to op. The record that the step ends with is
// no segment's last op.
TEST(Alone, NoRecordIsBetweenSegments) {
    const std::string ops = "lllrllllrllllrllllrllllcr"; // of the scenario event_recreate
    for (uint64_t pace : {100, 300, 900, 1500, 6000, 25000, 50000, 100000, 200000}) {
        std::string cut = Cut(ops, pace);
        EXPECT_EQ(std::count_if(cut.begin(), cut.end(), isupper), 1) << pace << ": " << cut;
        EXPECT_EQ(cut.back(), 'R') << pace << ": " << cut;
    }
    EXPECT_EQ(Cut(ops, 6000), "lllrl|lllrllllrl|lllrl|lllc|R");
}

TEST(Alone, RecordsInARowAreTakenInTogether) {
    EXPECT_EQ(Cut("lllrrrllllll"), "lllrrrl|lllll|");
    EXPECT_EQ(Cut("llllrrrlllll"), "llllrrrl|llll|");
}

// A segment does not become longer and longer where there is one behind each op.
TEST(Alone, ARecordBehindEachOpIsNotAvoided) {
    EXPECT_EQ(Cut("lrlrlrlrlrlrlrlrlrlr"), "lrlrl|Rlrlrlrlrlrl|RLR");
}

TEST(Alone, TheLastOpIsTakenInThoughRecordsComeBehindIt) {
    EXPECT_EQ(Cut("llllllllllllcr"), "llll|llllllllc|R");
    EXPECT_EQ(Cut("llllllllllllcrr"), "llll|llllllllc|RR");
    EXPECT_EQ(Cut("llllllllllllcrl"), "llll|llllllll|crl|") << "two ops are a segment";
}

} // namespace
