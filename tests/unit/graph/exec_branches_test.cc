// Promise: a graph with branches has the nodes and edges of its ops, records an event at the end of
// each branch, and leaves nothing behind if it cannot be built.
#include "tests/unit/plan/branch_kinds.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

extern "C" {
#include "shim/graph/exec.h"
#include "shim/graph/held.h"
}

namespace {

using Names = std::set<std::string>;

CUevent Event(uintptr_t number) {
    return reinterpret_cast<CUevent>(0xe000 + number);
}
CUevent End(uintptr_t branch) {
    return reinterpret_cast<CUevent>(0xf000 + branch);
}

// A driver that captures nodes; a node's name says what it does. Node n is handle n + 1.
struct Captured {
    std::vector<std::string> names;
    std::vector<std::set<size_t>> behind;
    std::set<size_t> next; // what the next node comes behind
    bool open = false;
    int begun = 0, graphs = 0, execs = 0; // graphs and execs: that exist
    int calls = 0, failing = -1;          // the number of the call that fails
    int moves = 0;                        // of what the next node comes behind
    CUresult patches = CUDA_SUCCESS;
    std::map<CUgraphNode, CUevent> set; // by patches
} captured;

CUresult Call() {
    return captured.calls++ == captured.failing ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult Add(const std::string &name) {
    if (CUresult failed = Call())
        return failed;
    EXPECT_TRUE(captured.open);
    captured.names.push_back(name);
    captured.behind.push_back(captured.next);
    captured.next = {captured.names.size()};
    return CUDA_SUCCESS;
}

std::string NameOf(CUevent event) {
    uintptr_t number = reinterpret_cast<uintptr_t>(event);
    return (number >= 0xf000 ? "end " : "record ") + std::to_string(number & 0xfff);
}

cus_driver MakeDriver() {
    cus_driver t = {};
    t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *) { return CUDA_SUCCESS; };
    t.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) {
        if (CUresult failed = Call())
            return failed;
        captured.open = true;
        captured.begun++;
        return CUDA_SUCCESS;
    };
    t.cuStreamEndCapture = [](CUstream, CUgraph *graph) {
        captured.open = false;
        *graph = nullptr;
        if (CUresult failed = Call())
            return failed;
        captured.graphs++;
        *graph = reinterpret_cast<CUgraph>(0x6000);
        return CUDA_SUCCESS;
    };
    t.cuStreamGetCaptureInfo_v3 = [](CUstream, CUstreamCaptureStatus *status, cuuint64_t *,
                                     CUgraph *, const CUgraphNode **deps, const CUgraphEdgeData **,
                                     size_t *n) {
        static CUgraphNode last;
        if (CUresult failed = Call())
            return failed;
        last = reinterpret_cast<CUgraphNode>(captured.names.size());
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        *deps = &last;
        *n = captured.next.size();
        return CUDA_SUCCESS;
    };
    t.cuStreamUpdateCaptureDependencies_v2 = [](CUstream, CUgraphNode *nodes,
                                                const CUgraphEdgeData *, size_t n, unsigned flags) {
        if (CUresult failed = Call())
            return failed;
        EXPECT_EQ(flags, (unsigned)CU_STREAM_SET_CAPTURE_DEPENDENCIES);
        captured.moves++;
        captured.next.clear();
        for (size_t i = 0; i < n; i++)
            captured.next.insert(reinterpret_cast<uintptr_t>(nodes[i]));
        return CUDA_SUCCESS;
    };
    t.cuLaunchKernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **,
                          void **) { return Add(reinterpret_cast<const char *>(f)); };
    t.cuEventRecordWithFlags = [](CUevent event, CUstream, unsigned flags) {
        EXPECT_EQ(flags, (unsigned)CU_EVENT_RECORD_EXTERNAL);
        return Add(NameOf(event));
    };
    t.cuGraphExecEventRecordNodeSetEvent = [](CUgraphExec, CUgraphNode node, CUevent event) {
        if (captured.patches == CUDA_SUCCESS)
            captured.set[node] = event;
        return captured.patches;
    };
    t.cuGraphInstantiateWithFlags = [](CUgraphExec *exec, CUgraph, unsigned long long) {
        if (CUresult failed = Call())
            return failed;
        captured.execs++;
        *exec = reinterpret_cast<CUgraphExec>(0x7000);
        return CUDA_SUCCESS;
    };
    t.cuGraphExecDestroy = [](CUgraphExec) {
        captured.execs--;
        return CUDA_SUCCESS;
    };
    t.cuGraphDestroy = [](CUgraph) {
        captured.graphs--;
        return CUDA_SUCCESS;
    };
    return t;
}

class Branched : public ::testing::Test {
  protected:
    void SetUp() override {
        captured = {};
        for (unsigned b = 1; b <= CUS_BRANCHES; b++)
            ends_[b] = End(b);
    }
    void TearDown() override { Destroy(); }
    void Destroy() {
        if (exec_)
            cus_exec_destroy(&driver_, exec_);
        exec_ = nullptr;
    }

    uint32_t Launch(const char *name, uint8_t branch) {
        cus_kind &kind = AddOp(LaunchOn(branch));
        kind.handle = name;
        kind.name = name;
        return n_ - 1;
    }
    uint32_t Record(uintptr_t event, uint8_t branch, bool absent = false) {
        AddOp(RecordOn(branch), event);
        ops_[n_ - 1].absent = absent;
        return n_ - 1;
    }
    void Wait(uint8_t branch, uint32_t record) {
        AddOp(WaitOn(branch, kinds_[record].branch, (uint16_t)(n_ - record)));
    }
    // a0, then b0 beside a1 and c0, then a2.
    void Two(bool absent = false) {
        Launch("a0", 0);
        uint32_t fork = Record(1, 0, absent);
        Wait(1, fork);
        Wait(2, fork);
        Launch("b0", 1);
        Launch("c0", 2);
        Launch("a1", 0);
        uint32_t b = Record(2, 1, absent), c = Record(3, 2, absent);
        Wait(0, b);
        Wait(0, c);
        Launch("a2", 0);
    }
    bool Build() {
        return cus_exec_build(&driver_, cus_exec_target{nullptr, ends_}, ops_, n_, nullptr, &exec_,
                              &why_);
    }
    static Names Behind(const std::string &name) {
        Names names;
        for (size_t i = 0; i < captured.names.size(); i++)
            if (captured.names[i] == name)
                for (size_t node : captured.behind[i])
                    names.insert(captured.names[node - 1]);
        return names;
    }
    static void ExpectNothingLeft() {
        EXPECT_FALSE(captured.open);
        EXPECT_EQ(captured.graphs, 0);
        EXPECT_EQ(captured.execs, 0);
        for (uintptr_t event = 1; event < 4; event++)
            EXPECT_FALSE(cus_held(Event(event)));
    }

    cus_driver driver_ = MakeDriver();
    cus_exec *exec_ = nullptr;
    cus_fallback why_ = CUS_FALLBACK_NO_MEMORY;
    CUevent ends_[CUS_BRANCHES + 1] = {};
    uint32_t n_ = 0;
    enum { MOST = 32 };
    cus_kind kinds_[MOST];
    uint64_t values_[MOST][8] = {}; // struct cus_values with the params of a record
    cus_exec_op ops_[MOST];

  private:
    cus_kind &AddOp(const cus_kind &kind, uintptr_t event = 0) {
        auto *values = reinterpret_cast<cus_values *>(values_[n_]);
        cus_record_params params = {reinterpret_cast<uint64_t>(Event(event)), 1};
        memcpy(values->params, &params, sizeof params);
        static_assert(sizeof(cus_values) + sizeof params <= sizeof values_[0], "room for both");
        kinds_[n_] = kind;
        ops_[n_] = {&kinds_[n_], values, false};
        return kinds_[n_++];
    }
};

TEST_F(Branched, NodesComeBehindWhatTheirOpsCameBehind) {
    Two();
    ASSERT_TRUE(Build());
    EXPECT_EQ(Behind("a0"), Names{});
    EXPECT_EQ(Behind("record 1"), Names{"a0"});
    EXPECT_EQ(Behind("b0"), Names{"record 1"});
    EXPECT_EQ(Behind("c0"), Names{"record 1"});
    EXPECT_EQ(Behind("a1"), Names{"record 1"});
    EXPECT_EQ(Behind("record 2"), Names{"b0"});
    EXPECT_EQ(Behind("record 3"), Names{"c0"});
    EXPECT_EQ(Behind("a2"), (Names{"a1", "record 2", "record 3"}));
    EXPECT_EQ(captured.begun, 1);
    EXPECT_EQ(captured.moves, 7)
        << "c0, a1, record 2, record 3, a2 and two ends are behind another "
           "node than the one before them";
}

// By these the branches' own streams wait for the graph (HAZARDS B19).
TEST_F(Branched, EachBranchHasAnEndThatIsRecorded) {
    Two();
    ASSERT_TRUE(Build());
    EXPECT_EQ(Behind("end 1"), Names{"record 2"});
    EXPECT_EQ(Behind("end 2"), Names{"record 3"});
    EXPECT_EQ(captured.names.size(), 10u) << "and no other";
}

TEST_F(Branched, TheLastBranchHasAnEndToo) {
    Launch("a0", 0);
    uint32_t fork = Record(1, 0);
    for (uint8_t b = 1; b <= CUS_BRANCHES; b++)
        Wait(b, fork);
    for (uint8_t b = 1; b <= CUS_BRANCHES; b++)
        Wait(0, Record(2, b, true));
    Launch("a1", 0);
    ASSERT_TRUE(Build());
    for (unsigned b = 1; b <= CUS_BRANCHES; b++)
        EXPECT_EQ(Behind("end " + std::to_string(b)), Names{"record 1"}) << b;
}

TEST_F(Branched, ABranchMayBeginTheGraphBehindNothing) {
    uint32_t fork = Record(1, 0, true);
    Wait(1, fork);
    Launch("a0", 0);
    Launch("b0", 1);
    Wait(0, Record(2, 1, true));
    Launch("a1", 0);
    ASSERT_TRUE(Build());
    EXPECT_EQ(Behind("a0"), Names{});
    EXPECT_EQ(Behind("b0"), Names{});
    EXPECT_EQ(Behind("a1"), (Names{"a0", "b0"}));
}

TEST_F(Branched, AWaitOfTheOnlyStreamHasNoNode) {
    Launch("a0", 0);
    uint32_t record = Record(1, 0);
    Wait(0, record);
    Launch("a1", 0);
    ASSERT_TRUE(Build());
    EXPECT_EQ(captured.names, (std::vector<std::string>{"a0", "record 1", "a1"}));
    EXPECT_EQ(Behind("a1"), Names{"record 1"});
    EXPECT_FALSE(cus_exec_has_node(exec_, 2));
    EXPECT_TRUE(cus_exec_is_read(exec_, 2)) << "nothing is to be read";
}

TEST_F(Branched, ADriverThatCannotMoveACaptureMakesNoGraph) {
    Two();
    driver_.cuStreamUpdateCaptureDependencies_v2 = nullptr;
    EXPECT_FALSE(Build());
    EXPECT_EQ(why_, CUS_FALLBACK_CAPTURE);
    ExpectNothingLeft();
}

TEST_F(Branched, ARecordThatIsPatchedHoldsItsEventAlone) {
    Record(1, 0);
    Launch("a0", 0);
    ASSERT_TRUE(Build());
    cus_record_params params = {reinterpret_cast<uint64_t>(Event(3)), 1};
    auto *values = reinterpret_cast<cus_values *>(values_[0]);
    memcpy(values->params, &params, sizeof params);
    captured.patches = CUDA_ERROR_NOT_READY;
    EXPECT_EQ(cus_exec_patch(&driver_, nullptr, exec_, 0, &kinds_[0], values),
              CUDA_ERROR_NOT_READY);
    EXPECT_TRUE(cus_held(Event(1)));
    EXPECT_FALSE(cus_held(Event(3)));
    captured.patches = CUDA_SUCCESS;
    EXPECT_EQ(cus_exec_patch(&driver_, nullptr, exec_, 0, &kinds_[0], values), CUDA_SUCCESS);
    EXPECT_FALSE(cus_held(Event(1)));
    EXPECT_TRUE(cus_held(Event(3)));
    Destroy();
    ExpectNothingLeft();
}

TEST_F(Branched, ABranchWithoutNodesEndsWhereTheGraphBegins) {
    uint32_t fork = Record(1, 0, true);
    Wait(1, fork);
    Wait(0, Record(2, 1, true));
    Launch("a0", 0);
    ASSERT_TRUE(Build());
    EXPECT_EQ(captured.names, (std::vector<std::string>{"a0", "end 1"}));
    EXPECT_EQ(Behind("end 1"), Names{});
}

TEST_F(Branched, AbsentRecordsHaveNoNode) {
    Two(true);
    ASSERT_TRUE(Build());
    EXPECT_EQ(captured.names,
              (std::vector<std::string>{"a0", "b0", "c0", "a1", "a2", "end 1", "end 2"}));
    EXPECT_EQ(Behind("b0"), Names{"a0"});
    EXPECT_EQ(Behind("a2"), (Names{"a1", "b0", "c0"}));
    EXPECT_FALSE(cus_held(Event(1)));
    for (uint32_t i = 0; i < n_; i++)
        EXPECT_EQ(cus_exec_has_node(exec_, i), kinds_[i].type == CUS_OP_LAUNCH) << i;
}

TEST_F(Branched, APatchReachesTheNodeOfItsOp) {
    Two();
    ASSERT_TRUE(Build());
    EXPECT_TRUE(cus_held(Event(2)));
    cus_record_params params = {reinterpret_cast<uint64_t>(Event(9)), 1};
    auto *values = reinterpret_cast<cus_values *>(values_[7]);
    memcpy(values->params, &params, sizeof params);
    ASSERT_EQ(kinds_[7].type, CUS_OP_RECORD);
    ASSERT_EQ(cus_exec_patch(&driver_, nullptr, exec_, 7, &kinds_[7], values), CUDA_SUCCESS);
    ASSERT_EQ(captured.set.size(), 1u);
    auto node = reinterpret_cast<uintptr_t>(captured.set.begin()->first);
    EXPECT_EQ(captured.names[node - 1], "record 2");
    EXPECT_EQ(captured.set.begin()->second, Event(9));
    EXPECT_FALSE(cus_held(Event(2)));
    // A wait has no node.
    ASSERT_EQ(kinds_[2].type, CUS_OP_WAIT);
    EXPECT_EQ(cus_exec_patch(&driver_, nullptr, exec_, 2, &kinds_[2], ops_[2].values),
              CUDA_SUCCESS);
    EXPECT_EQ(captured.set.size(), 1u);
    EXPECT_FALSE(cus_exec_has_node(exec_, 2));
}

TEST_F(Branched, AFailureOfAnyCallLeavesNothingBehind) {
    Two();
    for (captured.failing = 0; !Build(); captured.failing++) {
        SCOPED_TRACE(captured.failing);
        ASSERT_EQ(exec_, nullptr);
        EXPECT_NE(why_, CUS_FALLBACK_NO_MEMORY);
        ExpectNothingLeft();
        int failing = captured.failing;
        captured = {};
        captured.failing = failing;
        ASSERT_LT(failing, 100);
    }
    EXPECT_GT(captured.failing, 20) << "each call of the build failed once";
    Destroy();
    ExpectNothingLeft();
}

TEST_F(Branched, ABranchWithoutAnEventHasNoGraph) {
    Two();
    ends_[2] = nullptr;
    EXPECT_FALSE(Build());
    EXPECT_EQ(why_, CUS_FALLBACK_CAPTURE);
    ExpectNothingLeft();
}

TEST_F(Branched, TooManyEdgesMakeNoGraph) {
    Launch("a0", 0);
    uint32_t fork = Record(1, 0);
    Wait(1, fork);
    for (int i = 0; i < 8; i++) {
        Launch("b", 1);
        Wait(0, Record(2, 1));
    }
    Launch("a1", 0);
    EXPECT_FALSE(Build());
    EXPECT_EQ(why_, CUS_FALLBACK_CAPTURE);
    EXPECT_EQ(captured.begun, 0) << "found before the capture";
    ExpectNothingLeft();
}

// A copy of the ops in mode verify runs in one row.
TEST_F(Branched, WithoutEndsTheNodesAreInOneRow) {
    Launch("a0", 0);
    Launch("b0", 1);
    Launch("a1", 0);
    driver_.cuGraphGetEdges_v2 = nullptr;
    ASSERT_TRUE(cus_exec_build(&driver_, cus_exec_target{nullptr, nullptr}, ops_, n_, nullptr,
                               &exec_, &why_));
    EXPECT_EQ(captured.names, (std::vector<std::string>{"a0", "b0", "a1"}));
    EXPECT_EQ(Behind("b0"), Names{"a0"});
    EXPECT_EQ(Behind("a1"), Names{"b0"});
}

} // namespace
