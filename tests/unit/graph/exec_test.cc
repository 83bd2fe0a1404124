// What is built from ops: each launch in its order, edges where a programmatic launch leaves some
// open, nothing that a node does not give back, a graph that lives as long as its exec.
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
unsigned carveout; // what a node says of that attribute

CUgraphNode Handle(size_t n) {
    return reinterpret_cast<CUgraphNode>(n + 1);
}

CUresult Launch(CUfunction f) {
    story.push_back("launch " + std::to_string(reinterpret_cast<uintptr_t>(f)));
    n_nodes++;
    return CUDA_SUCCESS;
}

cus_driver MakeDriver() {
    cus_driver t = {};
    t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *) { return CUDA_SUCCESS; };
    t.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) { return CUDA_SUCCESS; };
    t.cuStreamEndCapture = [](CUstream, CUgraph *graph) {
        *graph = reinterpret_cast<CUgraph>(0x6000);
        return CUDA_SUCCESS;
    };
    t.cuStreamGetCaptureInfo_v3 = [](CUstream, CUstreamCaptureStatus *status, cuuint64_t *,
                                     CUgraph *, const CUgraphNode **deps, const CUgraphEdgeData **,
                                     size_t *n) {
        static CUgraphNode last;
        last = Handle(n_nodes - 1);
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        *deps = &last;
        *n = 1;
        return CUDA_SUCCESS;
    };
    t.cuStreamUpdateCaptureDependencies_v2 = [](CUstream, CUgraphNode *nodes,
                                                const CUgraphEdgeData *, size_t, unsigned flags) {
        EXPECT_EQ(flags, (unsigned)CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
        story.push_back("also behind " + std::to_string(reinterpret_cast<uintptr_t>(nodes[0])));
        return CUDA_SUCCESS;
    };
    t.cuLaunchKernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **, void **) { return Launch(f); };
    t.cuLaunchKernelEx = [](const CUlaunchConfig *, CUfunction f, void **, void **) {
        return Launch(f);
    };
    t.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode, CUDA_KERNEL_NODE_PARAMS *params) {
        *params = {};
        return CUDA_SUCCESS;
    };
    t.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID,
                                         CUlaunchAttributeValue *value) {
        value->sharedMemCarveout = carveout;
        return CUDA_SUCCESS;
    };
    t.cuGraphInstantiateWithFlags = [](CUgraphExec *exec, CUgraph, unsigned long long flags) {
        story.push_back("instantiate " + std::to_string(flags));
        *exec = reinterpret_cast<CUgraphExec>(0x7000);
        return CUDA_SUCCESS;
    };
    t.cuGraphExecDestroy = [](CUgraphExec) {
        story.push_back("destroy exec");
        return CUDA_SUCCESS;
    };
    t.cuGraphDestroy = [](CUgraph) {
        story.push_back("destroy graph");
        return CUDA_SUCCESS;
    };
    return t;
}

class Exec : public ::testing::Test {
  protected:
    void SetUp() override {
        story.clear();
        n_nodes = 0;
        carveout = 50;
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
        ops_[n_] = {&kind, &held_[n_]};
        n_++;
        return kind;
    }
    bool Build() { return cus_exec_build(&driver_, nullptr, ops_, (uint32_t)n_, &exec_, &why_); }

    cus_driver driver_ = MakeDriver();
    cus_kind kinds_[8];
    cus_held held_[8] = {};
    cus_exec_op ops_[8];
    size_t n_ = 0;
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
    std::vector<uint64_t> words(cus_held_bytes(&kind) / 8);
    auto *held = reinterpret_cast<cus_held *>(words.data());
    std::vector<uint8_t> value(kBytes);
    for (uint32_t i = 0; i < kBytes; i++)
        value[i] = (uint8_t)(i * 7 + i / 256);
    void *params[] = {value.data()};
    const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
    cus_launch_store(&kind, dims, params, held);
    ops_[0].held = held;
    ASSERT_TRUE(Build());
    driver_.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec, CUgraphNode,
                                                   const CUDA_KERNEL_NODE_PARAMS *node) {
        EXPECT_EQ(node->extra, nullptr);
        given = node->kernelParams[0];
        return CUDA_SUCCESS;
    };
    EXPECT_EQ(cus_exec_patch(&driver_, nullptr, exec_, 0, &kind, held), CUDA_SUCCESS);
    EXPECT_EQ(memcmp(given, value.data(), kBytes), 0);
}

// Nodes of the graph are what an exec is patched by.
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
