// Promise: the nodes of a graph with branches come behind exactly what a capture of the same calls
// would put them behind.
#include "tests/unit/plan/branch_kinds.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

extern "C" {
#include "shim/graph/edges.h"
}

namespace {

using Places = std::set<int>;

class Edges : public ::testing::Test {
  protected:
    int Add(const cus_kind &kind, bool absent = false) {
        kinds_.push_back(kind);
        absent_.push_back(absent);
        return (int)kinds_.size() - 1;
    }
    int Launch(uint8_t branch) { return Add(LaunchOn(branch)); }
    int Record(uint8_t branch, bool absent = false) { return Add(RecordOn(branch), absent); }
    // Branch `branch` waits for a record.
    void Wait(uint8_t branch, int record) {
        size_t back = kinds_.size() - (size_t)record;
        Add(WaitOn(branch, kinds_[record].branch, (uint16_t)back));
    }
    bool Find() {
        std::vector<cus_exec_op> ops(kinds_.size());
        for (size_t i = 0; i < ops.size(); i++)
            ops[i] = {&kinds_[i], nullptr, absent_[i]};
        before_.assign(ops.size(), cus_edges{});
        return cus_edges_find(ops.data(), (uint32_t)ops.size(), before_.data(), ends_);
    }
    static Places In(const cus_edges &edges) {
        Places all(edges.of, edges.of + edges.n);
        EXPECT_EQ(all.size(), edges.n) << "one is named twice";
        return all;
    }
    Places Before(int op) const { return In(before_[(size_t)op]); }
    Places End(int branch) const { return In(ends_[branch]); }

    std::vector<cus_kind> kinds_;
    std::vector<bool> absent_;
    std::vector<cus_edges> before_;
    cus_edges ends_[CUS_BRANCHES + 1];
};

TEST_F(Edges, AForkAndAJoin) {
    int a = Launch(0), fork = Record(0);
    Wait(1, fork);
    int b = Launch(1), beside = Launch(0), end = Record(1);
    Wait(0, end);
    int joined = Launch(0);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(a), Places{});
    EXPECT_EQ(Before(fork), Places{a});
    EXPECT_EQ(Before(b), Places{fork});
    EXPECT_EQ(Before(beside), Places{fork});
    EXPECT_EQ(Before(end), Places{b});
    EXPECT_EQ(Before(joined), (Places{beside, end}));
    EXPECT_EQ(End(0), Places{joined});
    EXPECT_EQ(End(1), Places{end});
    EXPECT_EQ(End(2), Places{});
}

TEST_F(Edges, TwoBranchesAreApart) {
    int fork = Record(0);
    Wait(1, fork);
    Wait(2, fork);
    int b1 = Launch(1), b2 = Launch(2), end1 = Record(1), end2 = Record(2);
    Wait(0, end1);
    int midst = Launch(0);
    Wait(0, end2);
    int last = Launch(0);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b1), Places{fork});
    EXPECT_EQ(Before(b2), Places{fork});
    EXPECT_EQ(Before(midst), (Places{fork, end1}));
    EXPECT_EQ(Before(last), (Places{midst, end2}));
    EXPECT_EQ(End(1), Places{end1});
    EXPECT_EQ(End(2), Places{end2});
}

TEST_F(Edges, ABranchMayWaitForAnother) {
    int fork = Record(0);
    Wait(1, fork);
    int b1 = Launch(1), between = Record(1);
    Wait(2, between);
    int b2 = Launch(2), more = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b1), Places{fork});
    EXPECT_EQ(Before(b2), Places{between});
    EXPECT_EQ(Before(more), Places{between});
}

// The branch goes on behind what it has done so far.
TEST_F(Edges, AJoinInTheMidst) {
    int fork = Record(0);
    Wait(1, fork);
    int b = Launch(1), half = Record(1);
    Wait(0, half);
    int a = Launch(0), more = Launch(1), end = Record(1);
    Wait(0, end);
    int last = Launch(0);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(half), Places{b});
    EXPECT_EQ(Before(a), (Places{fork, half}));
    EXPECT_EQ(Before(more), Places{half});
    EXPECT_EQ(Before(last), (Places{a, end}));
}

TEST_F(Edges, ASecondForkIsBehindTheFirstJoin) {
    int fork = Record(0);
    Wait(1, fork);
    Launch(1);
    int end = Record(1);
    Wait(0, end);
    int a = Launch(0), again = Record(0);
    Wait(1, again);
    int b = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(again), Places{a});
    EXPECT_EQ(Before(b), Places{again}) << "which is behind all of the branch";
}

TEST_F(Edges, ARecordFromBeforeTheJoinCoversNothing) {
    int fork = Record(0);
    Wait(1, fork);
    Launch(1);
    int early = Record(0), end = Record(1);
    Wait(0, end);
    Wait(1, early);
    int b = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), (Places{end, early}));
}

// Only branch 0 is behind what it joined.
TEST_F(Edges, ARecordOfAnotherBranchCoversNothing) {
    int fork = Record(0);
    Wait(1, fork);
    Wait(2, fork);
    Launch(1);
    int end = Record(1);
    Wait(0, end);
    Launch(2);
    int other = Record(2);
    Wait(1, other);
    int b = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), (Places{end, other}));
}

TEST_F(Edges, AWaitOfAnotherBranchIsNoJoin) {
    int fork = Record(0);
    Wait(1, fork);
    Wait(2, fork);
    Launch(1);
    int end = Record(1);
    Wait(2, end);
    Launch(0);
    int later = Record(0);
    Wait(1, later);
    int b = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), (Places{end, later}));
}

// Nor one from behind a join of a part.
TEST_F(Edges, AJoinOfAPartCoversNotTheRest) {
    int fork = Record(0);
    Wait(1, fork);
    Launch(1);
    int half = Record(1), more = Launch(1);
    Wait(0, half);
    int again = Record(0);
    Wait(1, again);
    int b = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), (Places{more, again}));
}

// Behind a second fork too.
TEST_F(Edges, AWaitInTheMidstOfABranchKeepsWhatTheBranchDid) {
    int fork = Record(0);
    Wait(1, fork);
    Launch(1);
    int end = Record(1);
    Wait(0, end);
    int again = Record(0);
    Wait(1, again);
    int b = Launch(1), later = Record(0);
    Wait(1, later);
    int more = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), Places{again});
    EXPECT_EQ(Before(more), (Places{b, later}));
}

TEST_F(Edges, AWaitBehindAWaitKeepsTheFirst) {
    int fork = Record(0);
    Wait(1, fork);
    Wait(2, fork);
    int b2 = Launch(2), of2 = Record(2), end = Record(1);
    Wait(0, end);
    int again = Record(0);
    Wait(1, of2);
    Wait(1, again);
    int b1 = Launch(1);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(of2), Places{b2});
    Places behind = Before(b1);
    EXPECT_TRUE(behind.count(of2)) << "of another branch, which is not joined";
    EXPECT_TRUE(behind.count(again));
}

TEST_F(Edges, ARecordThatIsWaitedForTwiceIsOneEdge) {
    Launch(0);
    int fork = Record(0);
    Wait(1, fork);
    Wait(1, fork);
    int b = Launch(1), end = Record(1);
    Wait(0, end);
    Wait(0, end);
    int joined = Launch(0);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), Places{fork});
    EXPECT_EQ(Before(joined), (Places{fork, end}));
}

TEST_F(Edges, AnAbsentRecordStandsForWhatIsInFrontOfIt) {
    int a = Launch(0), fork = Record(0, true);
    Wait(1, fork);
    int b = Launch(1), end = Record(1, true);
    Wait(0, end);
    int joined = Launch(0);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), Places{a});
    EXPECT_EQ(Before(joined), (Places{a, b}));
    EXPECT_EQ(End(1), Places{b});
}

TEST_F(Edges, ABranchMayBeginTheGraph) {
    int fork = Record(0, true);
    Wait(1, fork);
    int b = Launch(1), a = Launch(0), end = Record(1, true);
    Wait(0, end);
    int joined = Launch(0);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(b), Places{});
    EXPECT_EQ(Before(a), Places{});
    EXPECT_EQ(Before(joined), (Places{a, b}));
}

TEST_F(Edges, AWaitHasNoNode) {
    int fork = Record(0);
    Wait(1, fork);
    cus_exec_op op = {&kinds_[1], nullptr, false};
    EXPECT_FALSE(cus_edges_has_node(&op));
    op = {&kinds_[0], nullptr, false};
    EXPECT_TRUE(cus_edges_has_node(&op));
    op.absent = true;
    EXPECT_FALSE(cus_edges_has_node(&op));
}

TEST_F(Edges, NoMoreThanSomeBeforeOneNode) {
    int fork = Record(0);
    Wait(1, fork);
    std::vector<int> records;
    for (int i = 0; i < CUS_EDGES_MAX - 1; i++) {
        Launch(1);
        records.push_back(Record(1));
        Wait(0, records.back());
    }
    int last = Launch(0);
    ASSERT_TRUE(Find());
    EXPECT_EQ(Before(last).size(), (size_t)CUS_EDGES_MAX);
    kinds_.pop_back();
    absent_.pop_back();
    Launch(1);
    Wait(0, Record(1));
    Launch(0);
    EXPECT_FALSE(Find());
}

TEST_F(Edges, NoMoreThanSomeBeforeOneNodeIfTheRecordIsAbsentEither) {
    int fork = Record(0);
    Wait(1, fork);
    for (int i = 0; i < CUS_EDGES_MAX; i++) {
        Launch(1);
        Wait(0, Record(1, true));
    }
    EXPECT_FALSE(Find());
}

TEST_F(Edges, AWaitForARecordInFrontOfTheGraphIsRefused) {
    Launch(0);
    Add(WaitOn(1, 0, 2));
    EXPECT_FALSE(Find());
    kinds_[1].back = 0;
    EXPECT_FALSE(Find());
}

} // namespace
