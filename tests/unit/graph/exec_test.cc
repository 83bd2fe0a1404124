// Promise: a graph built from ops has every launch in order, with the right edges for programmatic
// launches, and keeps nothing that a node does not return. Few driver calls build it, and a patch
// reaches its op's node.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "shim/graph/exec.h"
}

namespace {

using Strings = std::vector<std::string>;

// A driver that writes down what it is asked. Node n is handle n + 1.
Strings story;
size_t n_nodes;
size_t calls;           // of the driver, all
size_t captures, reads; // begun; of a node's params
size_t patched;         // handle of the node that was patched last
CUDA_KERNEL_NODE_PARAMS patched_with;
unsigned carveout;        // what a node says of that attribute
unsigned shape[6];        // what a node says of its grid and block
std::vector<size_t> open; // what the next node comes behind, as handles
std::vector<std::pair<size_t, size_t>> edges;

CUgraphNode Handle(size_t n) {
    return reinterpret_cast<CUgraphNode>(n + 1);
}

CUresult Launch(CUfunction f) {
    calls++;
    story.push_back("launch " + std::to_string(reinterpret_cast<uintptr_t>(f)));
    n_nodes++;
    for (size_t from : open)
        edges.emplace_back(from, n_nodes);
    open = {n_nodes};
    return CUDA_SUCCESS;
}

cus_driver MakeDriver() {
    cus_driver t = {};
    t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *) {
        calls++;
        return CUDA_SUCCESS;
    };
    t.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) {
        calls++;
        captures++;
        n_nodes = 0;
        open.clear();
        edges.clear();
        return CUDA_SUCCESS;
    };
    t.cuStreamEndCapture = [](CUstream, CUgraph *graph) {
        calls++;
        *graph = reinterpret_cast<CUgraph>(0x6000);
        return CUDA_SUCCESS;
    };
    t.cuStreamGetCaptureInfo_v3 = [](CUstream, CUstreamCaptureStatus *status, cuuint64_t *,
                                     CUgraph *, const CUgraphNode **deps, const CUgraphEdgeData **,
                                     size_t *n) {
        static CUgraphNode last;
        calls++;
        last = Handle(n_nodes - 1);
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        *deps = &last;
        *n = 1;
        return CUDA_SUCCESS;
    };
    t.cuStreamUpdateCaptureDependencies_v2 = [](CUstream, CUgraphNode *nodes,
                                                const CUgraphEdgeData *, size_t n, unsigned flags) {
        calls++;
        EXPECT_EQ(flags, (unsigned)CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
        for (size_t i = 0; i < n; i++) {
            open.push_back(reinterpret_cast<uintptr_t>(nodes[i]));
            story.push_back("also behind " + std::to_string(open.back()));
        }
        return CUDA_SUCCESS;
    };
    // The last edge first: nobody promises an order.
    t.cuGraphGetEdges_v2 = [](CUgraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                              size_t *n) {
        calls++;
        EXPECT_NE(data, nullptr) << "a driver refuses to leave out what an edge says";
        size_t room = *n;
        for (*n = 0; *n < edges.size() && *n < room; ++*n) {
            const auto &edge = edges[edges.size() - 1 - *n];
            from[*n] = reinterpret_cast<CUgraphNode>(edge.first);
            to[*n] = reinterpret_cast<CUgraphNode>(edge.second);
        }
        return CUDA_SUCCESS;
    };
    t.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec, CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS *params) {
        calls++;
        patched = reinterpret_cast<uintptr_t>(node);
        patched_with = *params;
        return CUDA_SUCCESS;
    };
    t.cuLaunchKernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **, void **) { return Launch(f); };
    t.cuLaunchKernelEx = [](const CUlaunchConfig *, CUfunction f, void **, void **) {
        return Launch(f);
    };
    t.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode, CUDA_KERNEL_NODE_PARAMS *params) {
        calls++;
        reads++;
        static void *extra[] = {CU_LAUNCH_PARAM_END};
        *params = {};
        params->extra = extra;
        params->gridDimX = shape[0];
        params->gridDimY = shape[1];
        params->gridDimZ = shape[2];
        params->blockDimX = shape[3];
        params->blockDimY = shape[4];
        params->blockDimZ = shape[5];
        return CUDA_SUCCESS;
    };
    t.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID,
                                         CUlaunchAttributeValue *value) {
        calls++;
        value->sharedMemCarveout = carveout;
        return CUDA_SUCCESS;
    };
    t.cuGraphInstantiateWithFlags = [](CUgraphExec *exec, CUgraph, unsigned long long flags) {
        calls++;
        story.push_back("instantiate " + std::to_string(flags));
        *exec = reinterpret_cast<CUgraphExec>(0x7000);
        return CUDA_SUCCESS;
    };
    t.cuGraphExecDestroy = [](CUgraphExec) {
        calls++;
        story.push_back("destroy exec");
        return CUDA_SUCCESS;
    };
    t.cuGraphDestroy = [](CUgraph) {
        calls++;
        story.push_back("destroy graph");
        return CUDA_SUCCESS;
    };
    return t;
}

class Exec : public ::testing::Test {
  protected:
    void SetUp() override {
        story.clear();
        n_nodes = calls = captures = reads = patched = 0;
        carveout = 50;
        for (unsigned i = 0; i < 6; i++) {
            shape[i] = i + 1;
            for (auto &values : values_)
                values.dims[i] = i + 1;
        }
    }
    void TearDown() override {
        if (exec_)
            cus_exec_destroy(&driver_, exec_);
    }

    // The next kernel, with an attribute or without; functions are 1, 2, ... as nodes are.
    cus_kind &Add(CUlaunchAttributeID id = CU_LAUNCH_ATTRIBUTE_IGNORE, uint32_t value = 0) {
        static const cus_layout none = {};
        cus_kind &kind = kinds_[n_];
        kind = {};
        kind.handle = reinterpret_cast<void *>(n_ + 1);
        kind.layout = &none;
        kind.name = "kernel";
        kind.deferrable = true;
        if (id != CU_LAUNCH_ATTRIBUTE_IGNORE) {
            kind.n_attrs = 1;
            kind.attrs[0].id = id;
            kind.attrs[0].bytes = sizeof value;
            memcpy(kind.attrs[0].value, &value, sizeof value);
            kind.pdl = id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        }
        ops_[n_] = {&kind, &values_[n_], false};
        n_++;
        return kind;
    }
    // Does a patch of each op reach its own node?
    void ExpectPatchesReachTheirNodes() {
        for (uint32_t i = 0; i < n_; i++) {
            ASSERT_EQ(cus_exec_patch(&driver_, nullptr, exec_, i, ops_[i].kind, ops_[i].values),
                      CUDA_SUCCESS);
            EXPECT_EQ(patched, i + 1u);
        }
    }
    bool Build(cus_exec_clock *clock = nullptr) {
        return cus_exec_build(&driver_, cus_exec_target{nullptr, ends_}, ops_, (uint32_t)n_, clock,
                              &exec_, &why_);
    }

    cus_driver driver_ = MakeDriver();
    enum { MOST = 100 };
    cus_kind kinds_[MOST];
    cus_values values_[MOST] = {};
    cus_exec_op ops_[MOST];
    size_t n_ = 0;
    CUevent ends_[CUS_BRANCHES + 1] = {};
    cus_exec *exec_ = nullptr;
    cus_fallback why_ = CUS_FALLBACK_NO_MEMORY;
};

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
    ExpectPatchesReachTheirNodes();
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
        [](CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *) {
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
        ExpectPatchesReachTheirNodes();
        cus_exec_destroy(&driver_, exec_);
        exec_ = nullptr;
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

TEST_F(Exec, AttributeThatANodeGivesBackIsTaken) {
    cus_kind &kind = Add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
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
