// Promise: the ops of a graph get the records of its launch, all at once or not at all, and no
// other op gets them.
#include <gtest/gtest.h>

#include "tests/unit/trace/made.h"

namespace {

// Two graphs with a branch each, and launches of the side stream by themselves. The GPU runs the
// branches on streams 24 and 26, under the number of the graph's launch.
TEST(ModelGpuGraphs, BranchesRunOnStreamsThatTheTraceDoesNotKnow) {
    Made t([](Synth *s) {
        Begin(s);
        uint32_t wait = s->Wait(), record = s->Record();
        s->GpuStream(1, 7);
        s->GpuStream(2, 13);
        s->Eager(2, 2, "observing", "observing"); // 0
        for (int graph = 0; graph < 2; graph++) { // 1 to 6, 7 to 12
            s->Op(1, 1);
            s->Op(2, wait);
            s->Op(2, 2);
            s->Op(2, 2);
            s->Op(2, record);
            s->Op(1, 1);
            s->Branch(2, 4);
            s->Launch(1, 6, 1, CST_EXACT);
        }
        s->Eager(2, 2, "observing", "observing"); // 13
        s->Gpu(13, CST_GPU_KERNEL, "b");
        for (uint32_t graph = 1; graph < 3; graph++) {
            Node(s, 7, "a", graph, 10);
            Node(s, 24, "b", graph, 12);
            Node(s, 26, "b", graph, 13);
            Node(s, 7, "a", graph, 15); // 11 and 14 are the wait and the record
        }
        s->Gpu(24, CST_GPU_KERNEL, "b"); // of no graph of the program's
        s->Gpu(13, CST_GPU_KERNEL, "b");
    });
    const int want[] = {0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1, 8, 10};
    for (uint32_t i = 0; i < 14; i++)
        EXPECT_EQ(GpuOf(t, i), want[i]) << i;
    EXPECT_EQ(t.m->gpu_known, 10u);
}

// The GPU may run the home's ops on a stream of its own, and the branch's on the launch's, both at
// the same time: whose a kernel of both is, only its node says.
TEST(ModelGpuGraphs, BranchesMayRunOnEachOthersStreams) {
    Made t([](Synth *s) {
        Begin(s);
        uint32_t c = s->Kernel("c"), side = 2;
        s->GpuStream(1, 7);
        for (int graph = 0; graph < 5; graph++) { // 0 to 3, ... 16 to 19
            s->Op(1, 1);                          // a b
            s->Op(side, 1);                       // a c
            s->Op(1, 2);
            s->Op(side, c);
            s->Branch(side, 2);
            s->Launch(1, 4, 1, CST_EXACT);
        }
        Node(s, 24, "a", 5, 2); // the side stream's
        Node(s, 7, "a", 5, 1);
        Node(s, 24, "b", 5, 3);
        Node(s, 7, "c", 5, 4);
        Node(s, 24, "c", 6, 4); // one record was lost: nothing is told
        Node(s, 7, "a", 6, 1);
        Node(s, 7, "a", 6, 2);
        Node(s, 24, "a", 7, 2); // the node's number is not that of its op: nothing is told
        Node(s, 7, "a", 7, 1);
        Node(s, 24, "b", 7, 4);
        Node(s, 7, "c", 7, 3);
        Node(s, 24, "a", 8, 9); // no numbers: nothing is told
        Node(s, 7, "a", 8, 9);
        Node(s, 24, "b", 8, 9);
        Node(s, 7, "c", 8, 9);
        Node(s, 24, "a", 9, 1);
        Node(s, 7, "a", 9, 2);
        Node(s, 24, "b", 9, 3);
        Node(s, 7, "c", 9, 4);
        Node(s, 24, "c", 9, 5); // one more than it has
    });
    const int want[] = {1, 0, 2, 3};
    for (uint32_t i = 0; i < 20; i++)
        EXPECT_EQ(GpuOf(t, i), i < 4 ? want[i] : -1) << i;
    EXPECT_EQ(t.m->gpu_known, 4u);
}

// A chain with a branch: the GPU ran it on one stream, the launch's.
TEST(ModelGpuGraphs, BranchesMayAllRunOnTheStreamOfTheLaunch) {
    for (bool numbers : {true, false}) {
        Made t([&](Synth *s) {
            Begin(s);
            uint32_t wait = s->Wait();
            s->GpuStream(1, 7);
            s->GpuStream(2, 13);
            s->Op(1, 1);
            s->Op(2, wait);
            s->Op(2, 2);
            s->Branch(2, 2);
            s->Launch(1, 3, 1, CST_EXACT);
            s->Eager(2, 2, "observing", "observing");
            Node(s, 7, "a", 5, numbers ? 1 : 9);
            Node(s, 7, "b", 5, numbers ? 3 : 9);
            s->Gpu(13, CST_GPU_KERNEL, "b");
        });
        EXPECT_EQ(GpuOfAll(t), (Ints{0, -1, 1, 2})) << numbers;
    }
}

// Of nodes with numbers, these tell the order, not the times.
TEST(ModelGpuGraphs, BranchesOnOneStreamMayRunInAnyOrder) {
    Made t([](Synth *s) {
        Begin(s);
        s->GpuStream(1, 7);
        s->Op(1, 1);
        s->Op(2, 1);
        s->Op(1, 2);
        s->Branch(2, 1);
        s->Launch(1, 3, 1, CST_EXACT);
        Node(s, 7, "a", 5, 1);
        Node(s, 7, "b", 5, 3);
        Node(s, 7, "a", 5, 2);
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 2, 1}));
}

// The launch's stream has a number; which of the nodes ran on it is all the same.
TEST(ModelGpuGraphs, AnyNodeMayHaveRunOnTheStreamOfTheLaunch) {
    Made t([](Synth *s) {
        Begin(s);
        s->GpuStream(s->Stream(CST_STREAM_CREATED, 8), 20);
        s->GpuStream(2, 13);
        s->GpuStream(1, 7);
        s->Op(1, 1);
        s->Op(2, 2);
        s->Branch(2, 1);
        s->Launch(1, 2, 1, CST_EXACT);
        Node(s, 24, "a", 5, 1);
        Node(s, 7, "b", 5, 2);
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 1}));
}

// A graph of the program's own runs the kernel of its ops; so does one that is launched whole.
TEST(ModelGpuGraphs, ARecordOfAGraphIsOfNoOpByItself) {
    Made t([](Synth *s) {
        Begin(s);
        s->GpuStream(1, 7);
        for (int i = 0; i < 3; i++)
            s->Eager(1, 1, "observing", "observing");
        s->Op(1, 1);
        s->Launch(1, 1, 1, CST_EXACT);
        s->Gpu(7, CST_GPU_KERNEL, "a");
        Node(s, 7, "a", 5, 1); // their graph
        Node(s, 7, "a", 5, 2);
        s->Gpu(7, CST_GPU_KERNEL, "a");
        s->Gpu(7, CST_GPU_KERNEL, "a");
        s->Gpu(7, CST_GPU_KERNEL, "a"); // of no op, and of no graph
        Node(s, 7, "a", 9, 7);
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 3, 4, 6}));
}

// The records of a whole graph, or none.
TEST(ModelGpuGraphs, AGraphOfWhichARecordIsLostHasNoTimes) {
    Made t([](Synth *s) {
        Begin(s);
        s->GpuStream(1, 7);
        for (int graph = 0; graph < 3; graph++) {
            s->Op(1, 1);
            s->Op(1, 2);
            s->Launch(1, 2, 1, CST_EXACT);
        }
        Node(s, 7, "a", 5, 1);
        Node(s, 7, "b", 5, 2);
        Node(s, 7, "a", 6, 1); // "b" is lost
        Node(s, 7, "a", 8, 1);
        Node(s, 7, "b", 8, 2);
        Node(s, 7, "c", 8, 3); // one more than it has
        Node(s, 7, "a", 9, 1);
        Node(s, 7, "b", 9, 2);
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 1, 6, 7, -1, -1}));
}

// CUPTI tells the length with which a node was built, after it was patched, too.
TEST(ModelGpuGraphs, CopiesOfGraphsMayHaveAnyLength) {
    Made t([](Synth *s) {
        Begin(s);
        s->grid = 64;
        s->Op(1, s->Copy(1));
        s->Launch(1, 1, 1, CST_PATCHED);
        s->GpuStream(1, 7);
        cst_gpu *gpu = s->Gpu(7, CST_GPU_MEMCPY);
        gpu->bytes = 32;
        gpu->node = 3;
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0}));
}

} // namespace
