// Promise: a graph built from ops has every launch in order, with the right edges for programmatic
// launches, and keeps nothing that a node does not return. Few driver calls build it, and a patch
// reaches its op's node.
#include "tests/unit/graph/exec.h"

namespace {

// Kernel 3 may overlap 2, and 2 may overlap 1: what comes behind 3 waits for all of them.
TEST_F(Exec, WhatFollowsProgrammaticLaunchesWaitsForAllOfThem) {
    const auto pdl = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    Add();
    Add(pdl, 1);
    Add(pdl, 1);
    Add();
    Add();
    ASSERT_TRUE(Build());
    story.pop_back();
    EXPECT_EQ(story, (Strings{"launch 1", "launch 2", "launch 3", "also behind 1", "also behind 2",
                              "launch 4", "launch 5"}));
    EXPECT_EQ(captures, 1u);
    ExpectPatchesReachTheirNodes();
}

TEST_F(Exec, SaysHowLongItWaitedToBegin) {
    Add();
    Add();
    static uint64_t now = 70;
    static const auto begin = driver_.cuStreamBeginCapture_v2;
    driver_.cuStreamBeginCapture_v2 = [](CUstream stream, CUstreamCaptureMode mode) {
        now += 5;
        return begin(stream, mode);
    };
    driver_.cuGraphInstantiateWithFlags = [](CUgraphExec *, CUgraph, unsigned long long) {
        now += 1000;
        return CUDA_SUCCESS;
    };
    ASSERT_TRUE(Build([] { return now; }));
    EXPECT_EQ(cus_exec_waited_ns(exec_), 5u);
}

// Beside threads that launch, each call waits for the driver's lock.
TEST_F(Exec, OneDriverCallANodeAndAFewMore) {
    while (n_ < MOST)
        Add();
    ASSERT_TRUE(Build());
    EXPECT_GE(calls, (size_t)MOST);
    EXPECT_LE(calls, (size_t)MOST + 7);
    ExpectPatchesReachTheirNodes();
}

TEST_F(Exec, AttributesAreAskedForOnceForEachKind) {
    cus_kind &kind = Add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
    while (n_ < MOST) {
        Add();
        ops_[n_ - 1].kind = &kind;
    }
    ASSERT_TRUE(Build());
    EXPECT_LE(calls, (size_t)MOST + 8);
}

TEST_F(Exec, NodeIsReadWhenItIsPatchedFirst) {
    Add();
    Add();
    ASSERT_TRUE(Build());
    EXPECT_EQ(reads, 0u);
    EXPECT_FALSE(cus_exec_is_read(exec_, 0));
    ExpectPatchesReachTheirNodes();
    EXPECT_TRUE(cus_exec_is_read(exec_, 0));
    EXPECT_EQ(reads, 2u);
    ExpectPatchesReachTheirNodes();
    EXPECT_EQ(reads, 2u);
}

TEST_F(Exec, APatchHasTheWholeShapeOfItsOp) {
    Add();
    ASSERT_TRUE(Build());
    ExpectPatchesReachTheirNodes();
    for (uint32_t i = 0; i < CUS_DIMS; i++)
        values_[0].dims[i] = 21 + i;
    ExpectPatchesReachTheirNodes();
    const CUDA_KERNEL_NODE_PARAMS &p = patched_with;
    const std::vector<unsigned> dims = {p.gridDimX,  p.gridDimY,  p.gridDimZ,      p.blockDimX,
                                        p.blockDimY, p.blockDimZ, p.sharedMemBytes};
    EXPECT_EQ(dims, (std::vector<unsigned>{21, 22, 23, 24, 25, 26, 27}));
    EXPECT_EQ(p.extra, nullptr) << "the arguments are in kernelParams";
}

TEST_F(Exec, NodeThatIsNotWhatWasAskedForIsNotPatched) {
    for (uint32_t i = 0; i < 6; i++)
        Add();
    ASSERT_TRUE(Build());
    for (uint32_t i = 0; i < 6; i++) {
        shape[i] = 9;
        EXPECT_NE(cus_exec_patch(&driver_, nullptr, exec_, i, ops_[i].kind, ops_[i].values),
                  CUDA_SUCCESS)
            << i;
        shape[i] = i + 1;
    }
    EXPECT_EQ(patched, 0u);
}

TEST_F(Exec, NodeThatCannotBeReadIsNotPatched) {
    Add();
    ASSERT_TRUE(Build());
    driver_.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode, CUDA_KERNEL_NODE_PARAMS *) {
        return CUDA_ERROR_UNKNOWN;
    };
    EXPECT_NE(cus_exec_patch(&driver_, nullptr, exec_, 0, ops_[0].kind, ops_[0].values),
              CUDA_SUCCESS);
    EXPECT_EQ(patched, 0u);
}

// An op that two nodes stand for, or none: the edges are another chain, or no chain.
TEST_F(Exec, NodesAreAskedForOneByOneWhereTheEdgesDoNotTell) {
    const auto all = driver_.cuGraphGetEdges_v2;
    static CUresult (*whole)(CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *);
    whole = all;
    using Edges = decltype(driver_.cuGraphGetEdges_v2);
    const Edges wrong[] = {
        // one too few
        [](CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *d, size_t *n) {
            CUresult result = whole(g, from, to, d, n);
            --*n;
            return result;
        },
        // one too many
        [](CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *d, size_t *n) {
            CUresult result = whole(g, from, to, d, n);
            from[*n] = to[0];
            to[(*n)++] = Handle(70);
            return result;
        },
        // a chain of as many nodes with another end
        [](CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *d, size_t *n) {
            CUresult result = whole(g, from, to, d, n);
            to[0] = Handle(70);
            return result;
        },
        // the right order with one edge more
        [](CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *d, size_t *n) {
            CUresult result = whole(g, from, to, d, n);
            from[*n] = Handle(0);
            to[(*n)++] = Handle(4);
            return result;
        },
        [](CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *d, size_t *n) {
            whole(g, from, to, d, n);
            return CUDA_ERROR_LOSSY_QUERY;
        },
        nullptr, // a driver without
    };
    for (int i = 0; i < 5; i++)
        Add();
    for (Edges edges_of : wrong) {
        captures = 0;
        driver_.cuGraphGetEdges_v2 = edges_of;
        ASSERT_TRUE(Build());
        EXPECT_EQ(captures, edges_of ? 2u : 1u);
        EXPECT_EQ(graphs, 1) << "the first one is gone";
        ExpectPatchesReachTheirNodes();
        Destroy();
    }
}

TEST_F(Exec, AttributeThatANodeDoesNotGiveBackIsNotLost) {
    carveout = 0;
    cus_kind &kind = Add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
    EXPECT_FALSE(Build());
    EXPECT_EQ(why_, CUS_FALLBACK_ATTRIBUTE);
    EXPECT_FALSE(kind.deferrable) << "such launches go out one by one from now on";
    EXPECT_EQ(story.back(), "destroy graph");
}

TEST_F(Exec, AttributesThatNobodyCanReadAreNotLost) {
    cus_kind &kind = Add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
    driver_.cuGraphKernelNodeGetAttribute = nullptr;
    EXPECT_FALSE(Build());
    EXPECT_EQ(why_, CUS_FALLBACK_ATTRIBUTE);
    EXPECT_FALSE(kind.deferrable);
}

TEST_F(Exec, AttributeThatANodeGivesBackIsTaken) {
    cus_kind &kind = Add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
    kind.attrs[1] = kind.attrs[0]; // behind the last one
    kind.attrs[1].value[0] = 25;
    EXPECT_TRUE(Build());
    EXPECT_TRUE(kind.deferrable);
}

// The largest list of arguments that the driver takes.
TEST_F(Exec, ArgumentsBeyondFourKilobytesReachTheNodeWhole) {
    static const uint32_t kBytes = 32764;
    static const cus_argument argument = {0, kBytes};
    static const cus_layout layout = {1, kBytes, &argument};
    static const void *given;
    cus_kind &kind = Add();
    Add();
    kind.layout = &layout;
    kind.param_bytes = kBytes;
    std::vector<uint64_t> words(cus_values_bytes(&kind) / 8);
    auto *values = reinterpret_cast<cus_values *>(words.data());
    std::vector<uint8_t> value(kBytes);
    for (uint32_t i = 0; i < kBytes; i++)
        value[i] = (uint8_t)(i * 7 + i / 256);
    void *params[] = {value.data()};
    const uint32_t dims[7] = {1, 2, 3, 4, 5, 6, 0};
    cus_launch_store(&kind, dims, params, values);
    ops_[0].values = values;
    ASSERT_TRUE(Build());
    driver_.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec, CUgraphNode,
                                                   const CUDA_KERNEL_NODE_PARAMS *node) {
        EXPECT_EQ(node->extra, nullptr);
        given = node->kernelParams[0];
        return CUDA_SUCCESS;
    };
    EXPECT_EQ(cus_exec_patch(&driver_, nullptr, exec_, 0, &kind, values), CUDA_SUCCESS);
    EXPECT_EQ(memcmp(given, value.data(), kBytes), 0);
}

// Nodes of the graph are what an exec is patched by; it is made without flags (HAZARDS A18, A21).
TEST_F(Exec, TheGraphLivesAsLongAsItsExec) {
    Add();
    Add();
    ASSERT_TRUE(Build());
    EXPECT_EQ(story.back(), "instantiate 0") << "no flag: not for launches by the device";
    cus_exec_destroy(&driver_, exec_);
    exec_ = nullptr;
    EXPECT_EQ(story[story.size() - 2], "destroy exec");
    EXPECT_EQ(story.back(), "destroy graph");
}

} // namespace
