// Promise: a segment has ops of other streams only between a fork and a join that are both in it.
#include "tests/unit/plan/branch_kinds.h"
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

extern "C" {
#include "shim/plan/branches.h"
#include "shim/plan/segment.h"
}

namespace {

using Kinds = std::vector<cus_kind>;

cus_kind Overlapping() {
    cus_kind kind = LaunchOn(0);
    kind.pdl = 1;
    return kind;
}

// A record, a fork of branch `b` behind it, a launch there, its record and the join.
Kinds Region(uint8_t b) {
    return {RecordOn(0), WaitOn(b, 0, 1), LaunchOn(b), RecordOn(b), WaitOn(0, b, 1)};
}

Kinds operator+(Kinds a, const Kinds &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// How many of the ops a segment can have, in order.
size_t Taken(const Kinds &ops, cus_branches *branches) {
    *branches = {};
    size_t n = 0;
    while (n < ops.size() && cus_branches_take(branches, &ops[n], (uint32_t)n))
        n++;
    return n;
}

bool TakesAll(const Kinds &ops) {
    cus_branches branches;
    return Taken(ops, &branches) == ops.size();
}

// Where a segment of these ops could end: the numbers of ops up to there.
std::vector<size_t> Joined(const Kinds &ops) {
    cus_branches branches = {};
    std::vector<size_t> at;
    for (size_t i = 0; i < ops.size(); i++) {
        EXPECT_TRUE(cus_branches_take(&branches, &ops[i], (uint32_t)i)) << i;
        if (cus_branches_joined(&branches))
            at.push_back(i + 1);
    }
    return at;
}

TEST(Branches, ABranchIsOpenFromItsForkToItsJoin) {
    EXPECT_EQ(Joined(Kinds{LaunchOn(0)} + Region(1) + Kinds{LaunchOn(0)}),
              (std::vector<size_t>{1, 2, 6, 7}));
}

TEST(Branches, AJoinIsForTheLastOpOfItsBranch) {
    Kinds ops = {RecordOn(0), WaitOn(1, 0, 1), LaunchOn(1), RecordOn(1), LaunchOn(1)};
    EXPECT_EQ(Joined(ops + Kinds{WaitOn(0, 1, 2), LaunchOn(0)}), (std::vector<size_t>{1}));
    EXPECT_EQ(Joined(ops + Kinds{RecordOn(1), WaitOn(0, 1, 1)}), (std::vector<size_t>{1, 7}));
}

TEST(Branches, EachBranchIsJoinedByItself) {
    Kinds both = {RecordOn(0), WaitOn(1, 0, 1), WaitOn(2, 0, 2), LaunchOn(1), LaunchOn(2),
                  RecordOn(1), RecordOn(2),     WaitOn(0, 1, 2), LaunchOn(0), WaitOn(0, 2, 3)};
    EXPECT_EQ(Joined(both), (std::vector<size_t>{1, 10}));
}

// What waits for a branch need not be the segment's own stream.
TEST(Branches, AWaitOfAnotherBranchJoinsNothing) {
    Kinds ops = {RecordOn(0),     WaitOn(1, 0, 1), RecordOn(1),
                 WaitOn(2, 1, 1), RecordOn(2),     WaitOn(0, 2, 1)};
    EXPECT_EQ(Joined(ops), (std::vector<size_t>{1}));
    EXPECT_EQ(Joined(ops + Kinds{WaitOn(0, 1, 4)}), (std::vector<size_t>{1, 7}));
}

TEST(Branches, ABranchIsForkedAgain) {
    EXPECT_EQ(Joined(Region(1) + Region(1)), (std::vector<size_t>{1, 5, 6, 10}));
}

TEST(Branches, AnOpOfABranchComesBehindItsFork) {
    for (const cus_kind &op : {LaunchOn(1), RecordOn(1), KindOn(CUS_OP_MEMSET, 1)}) {
        EXPECT_FALSE(TakesAll({op}));
        EXPECT_FALSE(TakesAll(Region(2) + Kinds{op})) << "another branch is forked";
        EXPECT_FALSE(TakesAll(Region(1) + Kinds{op})) << "it is joined";
        EXPECT_TRUE(TakesAll({RecordOn(0), WaitOn(1, 0, 1), op}));
    }
}

TEST(Branches, AWaitIsForARecordOfTheSegment) {
    EXPECT_FALSE(TakesAll({LaunchOn(0), WaitOn(1, 0, 0)})) << "too far back";
    EXPECT_FALSE(TakesAll({LaunchOn(0), WaitOn(1, 0, 2)})) << "in front of the segment";
    EXPECT_TRUE(TakesAll({RecordOn(0), WaitOn(1, 0, 1)}));
    cus_kind wait = WaitOn(1, 0, 3);
    EXPECT_EQ(cus_branches_record(&wait, 2), CUS_NO_OP);
    EXPECT_EQ(cus_branches_record(&wait, 3), 0u);
}

// HAZARDS A4.
TEST(Branches, LaunchesThatOverlapAndWaitsAreNeverInOneSegment) {
    EXPECT_TRUE(TakesAll({LaunchOn(0), Overlapping(), Overlapping()}));
    EXPECT_FALSE(TakesAll(Kinds{LaunchOn(0), Overlapping()} + Region(1)));
    EXPECT_FALSE(TakesAll(Region(1) + Kinds{Overlapping()}));
    cus_branches branches;
    EXPECT_EQ(Taken(Kinds{Overlapping()} + Region(1), &branches), 2u) << "up to the wait";
}

TEST(Branches, TheBranchesOfASegmentAreKnown) {
    cus_branches branches;
    Kinds ops = Kinds{LaunchOn(0)} + Region(1) + Region(4);
    ASSERT_EQ(Taken(ops, &branches), ops.size());
    EXPECT_EQ(branches.used & ~1u, 1u << 1 | 1u << 4);
    ASSERT_EQ(Taken({LaunchOn(0), RecordOn(0)}, &branches), 2u);
    EXPECT_EQ(branches.used & ~1u, 0u);
}

// Segments formed along a path of these ops, each of which came often.
class Path {
  public:
    explicit Path(Kinds ops) : kinds_(std::move(ops)), nodes_(kinds_.size()) {
        dispatch_.mode = CUS_MODE_PIECEWISE;
        for (size_t i = 0; i < nodes_.size(); i++) {
            nodes_[i].key.kind = &kinds_[i];
            nodes_[i].key.parent = i ? &nodes_[i - 1] : nullptr;
            nodes_[i].expect = i + 1 < nodes_.size() ? &nodes_[i + 1] : nullptr;
            nodes_[i].visits = 2;
        }
    }
    ~Path() {
        for (cus_segment *segment : segments_)
            cus_segment_free(segment);
    }
    cus_segment *Form(size_t from, uint32_t max = 1024, uint32_t lead = 0) {
        cus_segment *segment = cus_segment_form(&nodes_[from], lead, max, 2, &dispatch_, &in_way_);
        if (segment)
            segments_.push_back(segment);
        return segment;
    }
    // Ops of a segment that begins there; 0: there is none.
    uint32_t Size(size_t from, uint32_t max = 1024, uint32_t lead = 0) {
        cus_segment *segment = Form(from, max, lead);
        return segment ? segment->n : 0;
    }
    cus_node &operator[](size_t i) { return nodes_[i]; }
    // Of the last segment that was not formed: what lay between a fork and its join.
    cus_segment *InWay() const { return in_way_; }
    void Drop(cus_segment *segment) {
        segments_.erase(std::find(segments_.begin(), segments_.end(), segment));
        cus_segment_free(segment);
    }

  private:
    cus_segment *in_way_ = nullptr;
    Kinds kinds_;
    std::vector<cus_node> nodes_;
    cus_dispatch dispatch_ = {};
    std::vector<cus_segment *> segments_;
};

const Kinds kTwo = {LaunchOn(0), LaunchOn(0)};

// HAZARDS B18.
TEST(Branches, ASegmentEndsWhereEveryBranchIsJoined) {
    Kinds open = kTwo + Kinds{RecordOn(0), WaitOn(1, 0, 1), LaunchOn(1), LaunchOn(1)};
    EXPECT_EQ(Path(open).Size(0), 2u) << "the path ends before the branch is joined";
    EXPECT_EQ(Path(open + Kinds{RecordOn(1), WaitOn(0, 1, 1)}).Size(0), 8u);
    Path cut(open + Kinds{RecordOn(1), WaitOn(0, 1, 1)} + kTwo);
    cut[5].boundary = CUS_BOUNDARY_CUT;
    EXPECT_EQ(cut.Size(0), 2u) << "a call came between fork and join";
    Path twice(kTwo + Region(1) + Kinds{RecordOn(0), WaitOn(1, 0, 1), LaunchOn(1)});
    EXPECT_EQ(twice.Size(0), 7u) << "the second fork is not joined";
}

TEST(Branches, ASegmentGoesOnUntilEachBranchIsJoined) {
    Kinds ops = kTwo + Region(1) + kTwo + kTwo;
    for (uint32_t max : {4, 5, 6})
        EXPECT_EQ(Path(ops).Size(0, max), 7u) << max;
    EXPECT_EQ(Path(ops).Size(0, 2), 2u) << "the fork comes behind";
    EXPECT_EQ(Path(ops).Size(0, 8), 8u);
    Kinds both =
        kTwo + Kinds{RecordOn(0), WaitOn(1, 0, 1), WaitOn(2, 0, 2), LaunchOn(1),    LaunchOn(2),
                     RecordOn(1), WaitOn(0, 1, 1), RecordOn(2),     WaitOn(0, 2, 1)};
    EXPECT_EQ(Path(both + kTwo).Size(0, 4), 11u) << "the second branch too";
}

TEST(Branches, ARegionLargerThanAnySegmentIsInNone) {
    Kinds ops = kTwo + Kinds{RecordOn(0), WaitOn(1, 0, 1)};
    for (int i = 0; i < CUS_SEGMENT_MAX; i++)
        ops.push_back(LaunchOn(1));
    EXPECT_EQ(Path(ops + Kinds{RecordOn(1), WaitOn(0, 1, 1)}).Size(0), 2u);
}

TEST(Branches, AnOpWhoseForkIsOutsideIsInNoSegment) {
    Path path(kTwo + Region(1) + kTwo);
    EXPECT_EQ(path.Size(4), 0u) << "of the branch";
    EXPECT_EQ(path.Size(5), 0u) << "its record";
    EXPECT_EQ(path.Size(6), 0u) << "the join";
    EXPECT_EQ(path.Size(3), 0u) << "the fork";
    EXPECT_EQ(path.Size(7), 2u);
}

TEST(Branches, ASegmentBetweenForkAndJoinIsInTheWayOfOneWithBoth) {
    Kinds open = kTwo + Kinds{RecordOn(0), WaitOn(1, 0, 1), LaunchOn(1), RecordOn(1)};
    Path path(open + kTwo + Kinds{WaitOn(0, 1, 3)} + kTwo);
    cus_segment *inner = path.Form(6);
    ASSERT_NE(inner, nullptr);
    EXPECT_EQ(inner->n, 2u);
    EXPECT_EQ(path.Size(0), 0u);
    EXPECT_EQ(path.InWay(), inner);
    path.Drop(inner);
    EXPECT_EQ(path.Size(0), 11u);
    EXPECT_EQ(path.InWay(), nullptr);
    Path never(open + kTwo);
    ASSERT_NE(never.Form(6), nullptr);
    EXPECT_EQ(never.Size(0), 2u) << "the branch is not joined in any case";
    EXPECT_EQ(never.InWay(), nullptr);
    Path behind(kTwo + kTwo);
    ASSERT_NE(behind.Form(2), nullptr);
    EXPECT_EQ(behind.Size(0), 2u) << "no branch is open there";
}

// The wait of a fork is for the record right in front of it.
TEST(Branches, ARecordForksWhereTheNextOpWaitsForIt) {
    Path fork({RecordOn(0), WaitOn(1, 0, 1)}), older({RecordOn(0), WaitOn(1, 0, 2)});
    EXPECT_TRUE(cus_record_forks(&fork[0]));
    EXPECT_FALSE(cus_record_forks(&older[0]));
    EXPECT_FALSE(cus_record_forks(&older[1])) << "nothing is known behind it";
}

// The first arguments that are words without holes are compared as such.
TEST(Branches, LeadingWordsEndAtAHole) {
    static const cus_argument arguments[] = {{0, 8}, {8, 8}, {24, 8}};
    static const cus_layout layout = {3, 32, arguments};
    cus_kind kernel = LaunchOn(0);
    kernel.layout = &layout;
    kernel.param_bytes = layout.bytes;
    Path path({kernel, kernel});
    cus_segment *segment = path.Form(0);
    ASSERT_NE(segment, nullptr);
    cus_variant *variant = cus_variant_new(segment);
    ASSERT_NE(variant, nullptr);
    EXPECT_EQ(cus_image_expected(variant->image, segment, 0)->words, 2);
    EXPECT_EQ(cus_image_expected(variant->image, segment, 0)->others, 1);
    cus_variant_free(variant);
}

// Libraries make their stream wait at the end of a call already.
TEST(Branches, AWaitBehindWhichTheBranchDoesNothingIsNoFork) {
    Kinds waits = {RecordOn(0), WaitOn(1, 0, 1)};
    Path bare(kTwo + Region(1) + waits + kTwo + Region(1));
    cus_segment *segment = bare.Form(0, 10);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(segment->n, 10u) << "an op behind the wait";
    EXPECT_FALSE(cus_segment_open(segment, 9));
    EXPECT_FALSE(cus_segment_open(segment, 10));
    EXPECT_TRUE(cus_segment_open(segment, 4)) << "behind the fork";
    EXPECT_TRUE(cus_segment_open(segment, 6));
    EXPECT_FALSE(cus_segment_open(segment, 7)) << "behind the join";
    EXPECT_EQ(bare.Size(10), 6u);
    Path early(kTwo + Region(1) + waits + kTwo + Region(1));
    EXPECT_EQ(early.Size(0, 9), 7u) << "the host would hear of that record too early";
    Path other(kTwo +
               Kinds{RecordOn(0), WaitOn(2, 0, 1), LaunchOn(2), RecordOn(2), WaitOn(1, 2, 1),
                     WaitOn(0, 2, 2)} +
               kTwo + Region(1));
    EXPECT_EQ(other.Size(0, 10), 15u) << "it waits for another branch: up to its join";
    Path forked(kTwo + Region(1) + waits + Kinds{LaunchOn(1)} + kTwo);
    EXPECT_EQ(forked.Size(0, 9), 7u) << "it has a launch";
    Path unknown(kTwo + Region(1) + waits + kTwo);
    EXPECT_EQ(unknown.Size(0), 7u) << "nobody knows yet";
    Path far(kTwo + Region(1) + waits + Kinds(CUS_SEGMENT_MAX + 1, LaunchOn(0)) + Region(1));
    EXPECT_EQ(far.Size(0, 10), 7u) << "nor is it looked for further than a segment goes";
    cus_kind again = WaitOn(1, 0, 1);
    again.goes_on = 1;
    Path more(kTwo + Region(1) + waits + Kinds{RecordOn(0), again} + kTwo);
    EXPECT_EQ(more.Size(0), 7u) << "the branch had work in front of the next wait";
    Path worked(kTwo + Kinds{RecordOn(0), WaitOn(1, 0, 1), LaunchOn(1), RecordOn(0), again} + kTwo +
                Region(1));
    EXPECT_EQ(worked.Size(0, 8), 14u) << "the branch had work in front of this wait";
}

// The ops that another segment has too are looked at first.
TEST(Branches, TheLeadOfASegmentCountsToo) {
    Kinds ops = Kinds{LaunchOn(0), RecordOn(0), WaitOn(1, 0, 1)} +
                Kinds{LaunchOn(1), RecordOn(1), WaitOn(0, 1, 1)} + kTwo;
    EXPECT_EQ(Path(ops).Size(3, 1024, 3), 8u);
    EXPECT_EQ(Path(ops).Size(3, 4, 3), 6u);
    Kinds apart = Kinds{LaunchOn(1)} + kTwo;
    EXPECT_EQ(Path(apart).Size(1, 1024, 1), 0u);
}

TEST(Branches, ASegmentSaysWhatItHas) {
    Path path(kTwo + Region(2) + kTwo);
    cus_segment *segment = path.Form(0);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(segment->n, 9u);
    EXPECT_EQ(segment->branches, 1u << 2);
    EXPECT_EQ(segment->records, 4u) << "records and waits";
    Path plain(kTwo + kTwo);
    EXPECT_EQ(plain.Form(0)->branches, 0u);
    // Two ops qualify, records and waits not counted.
    EXPECT_EQ(Path(Region(1)).Size(0), 0u);
    EXPECT_EQ(Path(Region(1) + Kinds{LaunchOn(0)}).Size(0), 6u);
}

// A launch on the hot path is one of the segment's own stream.
TEST(Branches, LaunchesOfABranchAreNotTakenForThoseOfTheStream) {
    Kinds ops = kTwo + Region(1) + kTwo;
    int functions[9];
    for (size_t i = 0; i < ops.size(); i++)
        ops[i].handle = &functions[i];
    Path path(ops);
    cus_segment *segment = path.Form(0);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(cus_image_expected(segment->requested, segment, 1)->plain, &functions[1]);
    EXPECT_EQ(cus_image_expected(segment->requested, segment, 4)->plain, &cus_expect_nothing);
    EXPECT_EQ(cus_image_expected(segment->requested, segment, 4)->kind->handle, &functions[4]);
}

TEST(Branches, LaunchesThatOverlapEndASegmentBeforeAWait) {
    EXPECT_EQ(Path(Kinds{LaunchOn(0), Overlapping()} + Region(1) + kTwo).Size(0), 2u);
    EXPECT_EQ(Path(kTwo + Region(1) + Kinds{LaunchOn(0), Overlapping()}).Size(0), 8u);
}

// ---- the plan ----

// Makes the op of this name one of another type, or of a branch.
void Become(Program *program, const char *name, const cus_kind &like) {
    cus_kind *kind = program->Kind(name);
    kind->type = like.type;
    kind->branch = like.branch;
    kind->from = like.from;
    kind->back = like.back;
}

// The sizes of a step's segments, once they are known.
std::vector<uint32_t> Segments(const std::vector<const char *> &step) {
    Program program;
    Become(&program, "record", RecordOn(0));
    Become(&program, "fork", WaitOn(1, 0, 1));
    Become(&program, "side", LaunchOn(1));
    Become(&program, "end", RecordOn(1));
    Become(&program, "join", WaitOn(0, 1, 1));
    for (int i = 0; i < 6; i++) {
        program.segments.clear();
        for (const char *name : step)
            program.Op(name);
        program.Sync();
    }
    ExpectFaithful(program);
    return program.segments;
}

// Any other record that began a segment would wait for all of it.
TEST(Branches, ARecordBeginsASegmentWhereABranchForksAlone) {
    using Sizes = std::vector<uint32_t>;
    EXPECT_EQ(Segments({"record", "fork", "side", "side", "end", "join"}), (Sizes{6}));
    EXPECT_EQ(Segments({"record", "k0", "k1", "k2"}), (Sizes{3})) << "no fork behind it";
    EXPECT_EQ(Segments({"record", "join", "k0", "k1", "k2"}), (Sizes{3})) << "no fork either";
    EXPECT_EQ(Segments({"record", "k0", "fork", "side", "k1", "k2"}), (Sizes{2})) << "not yet";
}

// A segment begins on its own stream, and with no wait.
TEST(Branches, NoOpOfABranchBeginsASegment) {
    using Sizes = std::vector<uint32_t>;
    EXPECT_EQ(Segments({"join", "k0", "k1", "k2"}), (Sizes{3}));
    EXPECT_EQ(Segments({"fork", "k0", "k1", "k2"}), (Sizes{3}));
    EXPECT_EQ(Segments({"side", "k0", "k1", "k2"}), (Sizes{3}));
    EXPECT_EQ(Segments({"end", "k0", "k1", "k2"}), (Sizes{3}));
}

// While calls come between fork and join, what lies behind them is a segment of its own.
TEST(Branches, ASegmentWithinARegionGivesWayOnceNoCallComesBetween) {
    Program program;
    Become(&program, "record", RecordOn(0));
    Become(&program, "fork", WaitOn(1, 0, 1));
    Become(&program, "side", LaunchOn(1));
    Become(&program, "end", RecordOn(1));
    Become(&program, "join", WaitOn(0, 1, 4));
    for (int i = 0; i < 80; i++) {
        program.segments.clear();
        for (const char *name :
             {"k0", "k1", "record", "fork", "side", "end", "k2", "k3", "k4", "join", "k5"}) {
            if (i < 10 && strcmp(name, "side") == 0)
                program.Break();
            program.Op(name);
        }
        program.Sync();
        if (i == 9) {
            EXPECT_EQ(program.segments, (std::vector<uint32_t>{2, 3})) << "around the call";
        }
    }
    ExpectFaithful(program);
    uint32_t ops = 0;
    for (uint32_t n : program.segments)
        ops += n;
    EXPECT_EQ(ops, 11u);
}

// Steps in which the path forks between the fork of a branch and its join, in `every`-th place.
std::vector<uint32_t> WithForks(const char *at, int every) {
    Program program;
    Become(&program, "record", RecordOn(0));
    Become(&program, "fork", WaitOn(1, 0, 1));
    for (const char *side : {"side0", "side1", "side2", "side3", "side4", "new"})
        Become(&program, side, LaunchOn(1));
    Become(&program, "end", RecordOn(1));
    Become(&program, "join", WaitOn(0, 1, 1));
    for (int i = 0; i < 200; i++) {
        program.segments.clear();
        for (const char *name : {"k0", "k1", "k2", "k3", "record", "fork", "side0", "side1",
                                 "side2", "side3", "side4", "end", "join", "k4", "k5"}) {
            if (i % every == every - 1 && i < 199 && strcmp(name, at) == 0)
                program.Op("new");
            program.Op(name);
        }
        program.Sync();
    }
    ExpectFaithful(program);
    return program.segments;
}

// A boundary there would keep the region out of graphs for ever.
TEST(Branches, APathThatForksBetweenForkAndJoinStaysInGraphs) {
    for (const char *at : {"side0", "side1", "side3", "end"}) {
        for (int every : {3, 7, 20}) {
            uint32_t ops = 0;
            for (uint32_t n : WithForks(at, every))
                ops += n;
            EXPECT_EQ(ops, 15u) << at << " " << every;
        }
    }
}

} // namespace
