// Promise: a stream keeps the right graphs for the right time.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/nodes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

std::map<CUgraphExec, std::set<CUstream>> launched;
decltype(cus_driver::cuGraphLaunch) graph_launch;

TEST_F(Nodes, EachStreamHasGraphsOfItsOwn) {
    CUstream streams[2] = {stream_, fake::MakeStream(CU_STREAM_NON_BLOCKING)};
    launched.clear();
    graph_launch = driver().table.cuGraphLaunch;
    driver().table.cuGraphLaunch = [](CUgraphExec exec, CUstream stream) {
        launched[exec].insert(stream);
        return graph_launch(exec, stream);
    };
    for (int step = 0; step < 12; step++) {
        CUstream stream = streams[step % 2];
        driver().journal.clear();
        for (int i = 0; i < 12; i++)
            fake::Launch(stream, functions_[i], 100 + i);
        fake::Sync(stream);
        std::vector<std::string> expected;
        for (int i = 0; i < kOps; i++)
            expected.push_back(fake::Line(stream, "k" + std::to_string(i), 100 + i));
        ASSERT_EQ(driver().journal, expected);
    }
    std::set<CUstream> seen;
    for (const auto &entry : launched) {
        EXPECT_EQ(entry.second.size(), 1u) << "a graph that two streams launch";
        seen.insert(entry.second.begin(), entry.second.end());
    }
    EXPECT_EQ(seen, (std::set<CUstream>{streams[0], streams[1]}));
}

// Two sets of params in turn earn a second graph: it is made from the ops of that moment.
TEST_F(Nodes, GraphIsBuiltFromTheOpsThatAreIssued) {
    Steps(5, 1);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    for (int turn = 0; turn < 5; turn++) {
        Steps(1, 2);
        Steps(1, 1);
    }
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

int priority;
CUstream made, copied_to, copied_from;

TEST_F(Nodes, CapturesOnAStreamLikeTheOneThatLaunches) {
    cus_driver &t = driver().table;
    priority = 0;
    made = copied_to = copied_from = nullptr;
    t.cuStreamGetPriority = [](CUstream, int *value) {
        *value = -3;
        return CUDA_SUCCESS;
    };
    static decltype(t.cuStreamCreateWithPriority) make;
    make = t.cuStreamCreateWithPriority;
    t.cuStreamCreateWithPriority = [](CUstream *stream, unsigned flags, int value) {
        EXPECT_EQ(flags, (unsigned)CU_STREAM_NON_BLOCKING);
        priority = value;
        CUresult result = make(stream, flags, value);
        made = *stream;
        return result;
    };
    t.cuStreamCopyAttributes = [](CUstream to, CUstream from) {
        copied_to = to;
        copied_from = from;
        return CUDA_SUCCESS;
    };
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
    EXPECT_EQ(priority, -3);
    EXPECT_NE(made, nullptr);
    EXPECT_EQ(copied_to, made);
    EXPECT_EQ(copied_from, stream_);
}

// Where a driver does not copy them, they are kept by building nothing.
TEST_F(Nodes, AttributesOfTheLegacyStreamAreKeptToo) {
    static CUresult copies;
    auto steps = [&] {
        driver().calls.clear();
        copied_from = nullptr;
        for (int step = 0; step < 5; step++) {
            for (int i = 0; i < 12; i++)
                fake::Launch(CU_STREAM_LEGACY, functions_[i], 100 + i);
            fake::Sync(CU_STREAM_LEGACY);
        }
        return driver().calls["cuGraphLaunch"];
    };
    driver().table.cuStreamCopyAttributes = [](CUstream, CUstream from) {
        copied_from = from;
        return copies;
    };
    copies = CUDA_SUCCESS;
    EXPECT_GT(steps(), 0);
    EXPECT_EQ(copied_from, nullptr) << "it has none";
    cus_stream_ref legacy = {nullptr, CUS_ABI_LEGACY};
    cus_engine_stream_changed(&legacy);
    EXPECT_GT(steps(), 0);
    EXPECT_EQ(copied_from, CU_STREAM_LEGACY);
    cus_engine_stream_changed(&legacy);
    copies = CUDA_ERROR_INVALID_HANDLE;
    EXPECT_EQ(steps(), 0);
    cus_engine_stream_changed(&legacy); // for the tests behind this one
}

// The driver took the new params and refused them: what the node holds is anybody's guess.
TEST_F(Nodes, GraphWithARefusedNodeIsNotLaunchedAsItIs) {
    static bool refuse;
    static decltype(cus_driver::cuGraphExecKernelNodeSetParams_v2) set_params;
    refuse = true;
    set_params = driver().table.cuGraphExecKernelNodeSetParams_v2;
    driver().table.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec exec, CUgraphNode node,
                                                          const CUDA_KERNEL_NODE_PARAMS *params) {
        set_params(exec, node, params);
        return std::exchange(refuse, false) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    };
    Steps(5, 0);
    Steps(1, 9);
    EXPECT_FALSE(refuse);
    int launches = driver().calls["cuGraphLaunch"];
    Steps(2, 0);
    EXPECT_GT(driver().calls["cuGraphLaunch"], launches);
}

TEST_F(Nodes, GraphsOfCodeThatGoesAreDestroyedFirst) {
    Steps(4);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    ASSERT_GT(built, 0);
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    cus_engine_code_gone();
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], built);
    EXPECT_EQ(driver().calls["cuGraphDestroy"], built);
}

TEST_F(Nodes, AGraphWithAMemsetIsDroppedUnderAToolOnceMemoryWent) {
    bool memset;
    auto step = [&] { // how many graphs it launched
        driver().journal.clear();
        int before = driver().calls["cuGraphLaunch"];
        for (int i = 0; i < 4; i++)
            EXPECT_EQ(memset && i == 2 ? Memset(kDevice, 64, 1) : Launch(i), CUDA_SUCCESS);
        Sync();
        EXPECT_EQ(driver().journal.size(), 4u);
        return driver().calls["cuGraphLaunch"] - before;
    };
    auto learn = [&] {
        functions_ = fake::MakeFunctions(kOps);
        for (int i = 0; i < 16; i++)
            step();
        ASSERT_EQ(step(), 1);
    };
    for (bool with : {false, true}) {
        memset = with;
        learn();
        cus_engine_memory_gone();
        EXPECT_EQ(step(), 1) << "nobody looks";
        cus_engine_nodes_timed(true);
        EXPECT_EQ(step(), !memset) << "memory may have gone before";
        EXPECT_EQ(step(), 1) << "a new graph";
        cus_engine_nodes_timed(false);
        cus_engine_memory_gone();
        EXPECT_EQ(step(), 1) << "nobody looks any more";
        cus_engine_nodes_timed(true);
        for (auto goes : {cus_engine_memory_gone, cus_engine_unknown_call}) {
            learn();
            goes();
            EXPECT_EQ(step(), !memset);
        }
        cus_engine_nodes_timed(false);
    }
}

// Another context's memory, to which a graph of this one may have been built, goes with it.
TEST_F(Nodes, AGraphWithAMemsetIsDroppedUnderAToolOnceAnotherContextEnded) {
    CUcontext theirs = fake::MakeOtherContext();
    cus_engine_nodes_timed(true);
    auto step = [&] { // how many graphs it launched
        int before = driver().calls["cuGraphLaunch"];
        Launch(0);
        Memset(kDevice, 64, 1);
        Launch(1);
        Launch(2);
        Sync();
        return driver().calls["cuGraphLaunch"] - before;
    };
    for (int i = 0; i < 16; i++)
        step();
    ASSERT_EQ(step(), 1);
    fake::EndContext(theirs);
    EXPECT_EQ(step(), 0);
    EXPECT_EQ(step(), 1) << "a new graph";
    cus_engine_nodes_timed(false);
}

// Of a program that frees memory all the time, the memset is left out of graphs, and not the copy
// in front of it.
TEST_F(Nodes, AMemsetUnderAToolIsLeftOutByItself) {
    cus_engine_nodes_timed(true);
    uint64_t in_graphs = 0, refused = Counters().fallbacks[CUS_FALLBACK_TIMED];
    for (int step = 0; step < 60; step++) {
        uint64_t before = Counters().in_graphs;
        driver().journal.clear();
        EXPECT_EQ(Launch(0), CUDA_SUCCESS);
        EXPECT_EQ(Memcpy(kDevice + 512, kDevice + 1024, 64), CUDA_SUCCESS);
        EXPECT_EQ(Memset(kDevice, 64, 1), CUDA_SUCCESS);
        EXPECT_EQ(Launch(1), CUDA_SUCCESS);
        EXPECT_EQ(Launch(2), CUDA_SUCCESS);
        Sync();
        ASSERT_EQ(driver().journal.size(), 5u);
        EXPECT_EQ(driver().journal[2], Line("fill", kDevice, 7, 64));
        in_graphs = Counters().in_graphs - before;
        cus_engine_memory_gone();
    }
    EXPECT_EQ(in_graphs, 4u);
    EXPECT_EQ(Counters().fallbacks[CUS_FALLBACK_TIMED] - refused, 2u);
    cus_engine_nodes_timed(false);
}

// A graph for which there was no room is not one that the driver refused: it is tried again.
TEST_F(Nodes, WhatHadNoRoomInTheBudgetIsBuiltOnceThereIsSome) {
    graphs_hold(1 << 20);
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    graphs_hold(-(1 << 20));
    Steps(200);
    uint64_t before = Counters().in_graphs;
    Steps(1);
    EXPECT_EQ(Counters().in_graphs - before, 0u + kOps);
}

TEST_F(Nodes, GraphsStayWithinTheirBudget) {
    uint64_t before = Counters().graph_bytes;
    for (int phrase = 0; phrase < 60; phrase++) {
        functions_ = fake::MakeFunctions(kOps);
        Steps(4);
        if (HasFatalFailure())
            return;
    }
    EXPECT_LE(Counters().graph_bytes - before, 1u << 20);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_BUDGET], 0u) << "some were dropped";
}

} // namespace
