// Promise: a graph has a node for each op that needs one, whatever the driver refuses meanwhile, or
// there is no graph and nothing is left of it.
#include "tests/unit/graph/exec.h"

namespace {

// P: a programmatic launch, K: another one. Node n is that of op n.
TEST_F(Exec, OnlyNodesThatMayStillRunAreWaitedFor) {
    const struct {
        const char *ops;
        Strings story;
    } cases[] = {
        {"KPK", {"launch 1", "launch 2", "also behind 1", "launch 3"}},
        {"PPK", {"launch 1", "launch 2", "also behind 1", "launch 3"}},
        {"KKPPK",
         {"launch 1", "launch 2", "launch 3", "launch 4", "also behind 2", "also behind 3",
          "launch 5"}},
        {"KPKPK",
         {"launch 1", "launch 2", "also behind 1", "launch 3", "launch 4", "also behind 3",
          "launch 5"}},
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(c.ops);
        n_ = captures = 0;
        story.clear();
        for (const char *op = c.ops; *op; op++)
            *op == 'K' ? Add() : Add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1);
        ASSERT_TRUE(Build());
        story.pop_back();
        EXPECT_EQ(story, c.story);
        EXPECT_EQ(captures, 1u) << "the edges tell the nodes";
        ExpectPatchesReachTheirNodes();
        Destroy();
    }
}

TEST_F(Exec, OneOpIsCapturedOnce) {
    Add();
    ASSERT_TRUE(Build());
    EXPECT_EQ(captures, 1u);
    EXPECT_EQ(cus_exec_waited_ns(exec_), 0u) << "there is no clock";
    ExpectPatchesReachTheirNodes();
}

// The node of an op in front of a programmatic launch is known when the edges are read.
TEST_F(Exec, EdgesAreNotBelievedAgainstANodeThatIsKnown) {
    static CUresult (*whole)(CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *);
    whole = driver_.cuGraphGetEdges_v2;
    driver_.cuGraphGetEdges_v2 = [](CUgraph g, CUgraphNode *from, CUgraphNode *to,
                                    CUgraphEdgeData *d, size_t *n) {
        CUresult result = whole(g, from, to, d, n);
        for (CUgraphNode *list : {from, to})
            for (size_t i = 0; i < *n; i++)
                if (list[i] == Handle(0) || list[i] == Handle(1))
                    list[i] = list[i] == Handle(0) ? Handle(1) : Handle(0);
        return result;
    };
    Add();
    Add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1);
    Add();
    Add();
    edges.clear();
    ASSERT_TRUE(Build());
    EXPECT_EQ(captures, 2u);
    ExpectPatchesReachTheirNodes();
}

TEST_F(Exec, ACaptureOfAnythingElseMakesNoGraph) {
    using Info = decltype(driver_.cuStreamGetCaptureInfo_v3);
    static CUgraphNode nodes[2] = {Handle(0), Handle(1)};
    const Info wrong[] = {
        [](CUstream, CUstreamCaptureStatus *status, cuuint64_t *, CUgraph *,
           const CUgraphNode **deps, const CUgraphEdgeData **, size_t *n) {
            *status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            *deps = nodes;
            *n = 1;
            return CUDA_SUCCESS;
        },
        [](CUstream, CUstreamCaptureStatus *status, cuuint64_t *, CUgraph *,
           const CUgraphNode **deps, const CUgraphEdgeData **, size_t *n) {
            *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
            *deps = nodes;
            *n = 2;
            return CUDA_SUCCESS;
        },
    };
    Add();
    Add();
    for (Info info : wrong) {
        driver_.cuStreamGetCaptureInfo_v3 = info;
        EXPECT_FALSE(Build());
        EXPECT_EQ(why_, CUS_FALLBACK_CAPTURE);
    }
}

// An op is lost in none, whether edges tell the nodes or the driver is asked for each.
TEST_F(Exec, AFailureOfAnyCallLeavesTheWholeGraphOrNothing) {
    const auto edges_of = driver_.cuGraphGetEdges_v2;
    Add();
    Add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1);
    Add();
    Add();
    for (bool ask : {false, true})
        for (bool absent : {false, true}) {
            driver_.cuGraphGetEdges_v2 = ask ? nullptr : edges_of;
            ops_[3].absent = absent;
            size_t made;
            failing = 0;
            do {
                failing++;
                SCOPED_TRACE(failing);
                calls = 0;
                if (Build())
                    EXPECT_EQ(n_nodes, absent ? 3u : 4u);
                else
                    EXPECT_EQ(exec_, nullptr);
                EXPECT_EQ(graphs, exec_ ? 1 : 0);
                EXPECT_EQ(execs, exec_ ? 1 : 0);
                EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
                made = calls;
                Destroy();
            } while (made >= failing);
            EXPECT_GT(failing, 8u) << "each call failed once";
        }
    failing = 0;
}

TEST_F(Exec, ASecondCaptureThatCannotBeginLeavesNothing) {
    Add();
    Add();
    static const auto begin = driver_.cuStreamBeginCapture_v2;
    driver_.cuStreamBeginCapture_v2 = [](CUstream stream, CUstreamCaptureMode how) {
        return captures ? CUDA_ERROR_UNKNOWN : begin(stream, how);
    };
    driver_.cuGraphGetEdges_v2 = [](CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *,
                                    size_t *) { return CUDA_ERROR_LOSSY_QUERY; };
    EXPECT_FALSE(Build());
    EXPECT_EQ(why_, CUS_FALLBACK_CAPTURE);
    EXPECT_EQ(graphs, 0);
}

TEST_F(Exec, AGraphThatIsRefusedSaysSo) {
    Add();
    driver_.cuGraphInstantiateWithFlags = [](CUgraphExec *, CUgraph, unsigned long long) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    };
    auto *out = reinterpret_cast<cus_exec *>(this);
    EXPECT_FALSE(
        cus_exec_build(&driver_, cus_exec_target{nullptr, nullptr}, ops_, 1, nullptr, &out, &why_));
    EXPECT_EQ(why_, CUS_FALLBACK_INSTANTIATE);
    EXPECT_EQ(out, nullptr);
}

// A record that is superseded has no node, wherever it is in the row.
TEST_F(Exec, WhatIsAbsentHasNoNodeAndTheOthersHaveTheirs) {
    for (size_t first : {0, 1, 4})
        for (size_t last : {first, first + 1}) {
            n_ = 0;
            for (int i = 0; i < 6; i++)
                Add();
            ops_[6] = {};
            ops_[first].absent = ops_[last].absent = true;
            story.clear();
            ASSERT_TRUE(Build());
            story.pop_back();
            Strings launched;
            for (uint32_t i = 0; i < n_; i++) {
                SCOPED_TRACE(i);
                EXPECT_EQ(cus_exec_has_node(exec_, i), !ops_[i].absent);
                if (!ops_[i].absent)
                    launched.push_back("launch " + std::to_string(i + 1));
                patched = 0;
                EXPECT_EQ(cus_exec_patch(&driver_, nullptr, exec_, i, ops_[i].kind, ops_[i].values),
                          CUDA_SUCCESS);
                EXPECT_EQ(patched, ops_[i].absent ? 0u : launched.size());
            }
            EXPECT_EQ(story, launched);
            Destroy();
        }
}

TEST_F(Exec, AGraphSaysItsSize) {
    Add();
    Add();
    Add();
    ASSERT_TRUE(Build());
    EXPECT_EQ(cus_exec_nodes(exec_), 3u);
    EXPECT_EQ(cus_exec_bytes(exec_), cus_exec_estimate(3));
    const uint64_t each = cus_exec_estimate(1) - cus_exec_estimate(0);
    EXPECT_GE(each, 1600u);
    EXPECT_EQ(cus_exec_estimate(1000) - cus_exec_estimate(0), 1000 * each);
}

TEST_F(Exec, WhatIsPutOffIsDestroyedLater) {
    Add();
    cus_exec *list = nullptr, *first;
    for (int i = 1; i <= 3; i++) {
        first = list;
        ASSERT_TRUE(Build());
        cus_exec_put_off(&list, exec_);
        ASSERT_EQ(list, exec_);
        EXPECT_EQ(cus_exec_next(list), first);
        EXPECT_EQ(execs, i);
    }
    exec_ = nullptr;
    cus_exec_destroy_list(&driver_, &list);
    EXPECT_EQ(list, nullptr);
    EXPECT_EQ(execs, 0);
}

} // namespace
