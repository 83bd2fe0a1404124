// Promise: each op gets the record of the GPU that is its own, or none.
#include <gtest/gtest.h>

#include "tests/unit/trace/made.h"

namespace {

// Which record of the GPU the op has, counted from 0 in the order in which they began; -1: none.
int GpuOf(const Made &t, uint32_t op) {
    for (size_t i = 0; i < t.trace->n_gpu; i++)
        if (t.m->ops[op].gpu == t.trace->gpu[i])
            return static_cast<int>(i);
    return -1;
}

std::vector<int> GpuOfAll(const Made &t) {
    std::vector<int> all;
    for (uint32_t i = 0; i < t.m->n_ops; i++)
        all.push_back(GpuOf(t, i));
    return all;
}

using Ints = std::vector<int>;

TEST(ModelGpu, OpsInOrderHaveTheirTimes) {
    Made t([](Synth *s) {
        Begin(s);
        uint32_t set = s->Memset(4), copy = s->Copy(1);
        for (uint32_t kind : {1u, 2u, set, copy, 1u})
            s->Op(1, kind);
        s->GpuStream(1, 7);
        s->Gpu(7, CST_GPU_KERNEL, "a");
        s->Gpu(7, CST_GPU_KERNEL, "b");
        s->Gpu(7, CST_GPU_MEMSET);
        s->Gpu(7, CST_GPU_MEMCPY);
        s->Gpu(7, CST_GPU_KERNEL, "a");
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 1, 2, 3, 4}));
    EXPECT_EQ(t.m->gpu_known, 5u);
}

TEST(ModelGpu, OpsOfWhichTheGpuKnowsNothingAreSkipped) {
    Made t([](Synth *s) {
        Begin(s);
        uint32_t set = s->Memset(4);
        s->Op(1, 1);
        s->grid = 0;
        s->Op(1, set); // of no elements
        s->grid = 1;
        s->Op(1, 2);
        s->Op(1, set);
        s->GpuStream(1, 7);
        s->Gpu(7, CST_GPU_KERNEL, "a");
        s->Gpu(7, CST_GPU_KERNEL, "b");
        s->Gpu(7, CST_GPU_MEMSET);
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, -1, 1, 2}));
    EXPECT_EQ(t.m->gpu_known, 3u);
}

// CUPTI says nothing of them. A copy of no known length would be taken for any op.
TEST(ModelGpu, RecordsOfEventsHaveNoTimes) {
    Made t([](Synth *s) {
        Begin(s);
        uint32_t record = s->Record(), copy = s->Copy(1);
        for (uint32_t kind : {1u, record, copy, record, 1u})
            s->Op(1, kind);
        s->GpuStream(1, 7);
        s->Gpu(7, CST_GPU_KERNEL, "a");
        s->Gpu(7, CST_GPU_MEMCPY);
        s->Gpu(7, CST_GPU_KERNEL, "a");
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, -1, 1, -1, 2}));
}

// A record of a graph's node.
cst_gpu *Node(Synth *s, uint32_t stream, const char *name, uint32_t launch, uint64_t node) {
    cst_gpu *gpu = s->Gpu(stream, CST_GPU_KERNEL, name);
    gpu->correlation = launch;
    gpu->node = node;
    return gpu;
}

// Two graphs with a branch each, and launches of the side stream by themselves. The GPU runs the
// branches on streams 24 and 26, under the number of the graph's launch.
TEST(ModelGpu, BranchesRunOnStreamsThatTheTraceDoesNotKnow) {
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
TEST(ModelGpu, BranchesMayRunOnEachOthersStreams) {
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
TEST(ModelGpu, BranchesMayAllRunOnTheStreamOfTheLaunch) {
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
TEST(ModelGpu, BranchesOnOneStreamMayRunInAnyOrder) {
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
TEST(ModelGpu, AnyNodeMayHaveRunOnTheStreamOfTheLaunch) {
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
TEST(ModelGpu, ARecordOfAGraphIsOfNoOpByItself) {
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
TEST(ModelGpu, AGraphOfWhichARecordIsLostHasNoTimes) {
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

// A synchronous copy of the same length, say, that was over when the op was called.
TEST(ModelGpu, WhatRanBeforeTheCallIsNotOfIt) {
    const uint64_t call = 5000000, slack = 20000;
    for (bool early : {false, true}) {
        Made t([&](Synth *s) {
            Begin(s);
            s->GpuStream(1, 7);
            s->Eager(1, 1, "observing", "observing")->head.ns = call;
            s->Gpu(7, CST_GPU_KERNEL, "a")->head.ns = call - slack - early;
            s->Gpu(7, CST_GPU_KERNEL, "a")->head.ns = call + slack;
        });
        EXPECT_EQ(GpuOfAll(t), (Ints{early ? 1 : 0})) << early;
    }
    // Ops of a graph do not run before it is launched.
    Made u([&](Synth *s) {
        Begin(s);
        s->GpuStream(1, 7);
        s->Op(1, 1);
        s->Launch(1, 1, 1, CST_EXACT)->head.ns = call;
        Node(s, 7, "a", 5, 1)->head.ns = call - slack - 1;
        Node(s, 7, "a", 6, 1)->head.ns = call;
    });
    EXPECT_EQ(GpuOfAll(u), (Ints{1}));
    // Nor does any one of them.
    Made v([&](Synth *s) {
        Begin(s);
        s->GpuStream(1, 7);
        s->Op(1, 1);
        s->Op(1, 2);
        s->Launch(1, 2, 1, CST_EXACT)->head.ns = call;
        Node(s, 7, "a", 5, 1)->head.ns = call;
        Node(s, 7, "b", 5, 2)->head.ns = call - slack - 1;
    });
    EXPECT_EQ(GpuOfAll(v), (Ints{-1, -1}));
}

TEST(ModelGpu, WhatFailedHasNoRecord) {
    Made t([](Synth *s) {
        Begin(s);
        s->GpuStream(1, 7);
        s->Eager(1, 1, "observing", "observing")->result = 1;
        s->Eager(1, 1, "observing", "observing");
        s->Gpu(7, CST_GPU_KERNEL, "a");
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{-1, 0}));
}

// An imported trace has an op for each record, whose node it may tell.
TEST(ModelGpu, ImportedOpsMayHaveRunInGraphs) {
    Made t([](Synth *s) {
        s->Facts(R"({"imported":true})");
        Begin(s);
        s->GpuStream(1, 7);
        s->Eager(1, 1, "", "");
        s->Eager(1, 2, "", "");
        Node(s, 7, "a", 5, 1);
        Node(s, 7, "b", 5, 1);
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 1}));
}

TEST(ModelGpu, WhatIsNoOpIsPassedOver) {
    Made t([](Synth *s) {
        Begin(s);
        s->Op(1, 1);
        s->Op(1, 2);
        s->GpuStream(1, 7);
        s->Gpu(7, CST_GPU_KERNEL, "a");
        for (int i = 0; i < 3; i++) // of a graph of the program's own
            s->Gpu(7, CST_GPU_KERNEL, "theirs")->node = 5;
        s->Gpu(7, CST_GPU_MEMCPY)->node = 6;
        s->Gpu(7, CST_GPU_KERNEL, "b");
        s->Gpu(7, CST_GPU_KERNEL, "b"); // there are no more ops
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 5}));
    EXPECT_EQ(t.m->gpu_known, 2u);
}

TEST(ModelGpu, EachStreamHasItsOwn) {
    Made t([](Synth *s) {
        Begin(s);
        s->Op(1, 1);
        s->Op(2, 1);
        s->Op(1, 1);
        s->Op(2, 1);
        s->GpuStream(2, 7);
        s->GpuStream(1, 13);
        for (uint32_t gpu_stream : {13u, 13u, 99u, 7u, 7u})
            s->Gpu(gpu_stream, CST_GPU_KERNEL, "a");
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 3, 1, 4}));
    // Of a stream that CUPTI's number is not known of, nothing is known.
    Made u([](Synth *s) {
        Begin(s);
        s->Op(1, 1);
        s->Op(2, 1);
        s->GpuStream(2, 7);
        s->Gpu(1, CST_GPU_KERNEL, "a");
        s->Gpu(7, CST_GPU_KERNEL, "a");
    });
    EXPECT_EQ(GpuOfAll(u), (Ints{-1, 1}));
}

TEST(ModelGpu, StreamsOfTwoContextsMayHaveOneNumber) {
    auto fill = [](bool told, Synth *s) {
        Begin(s);
        s->context = 2;
        uint32_t other = s->Stream(CST_STREAM_CREATED, 8);
        s->Op(1, 1);
        s->Op(other, 1);
        s->Op(1, 1);
        s->GpuStream(1, 7);
        s->GpuStream(other, 7);
        if (told) {
            s->GpuContext(other, 4);
            s->GpuContext(1, 3);
        }
        s->Gpu(7, CST_GPU_KERNEL, "a")->context = 5; // of nobody
        for (uint32_t context : {4u, 3u, 3u})
            s->Gpu(7, CST_GPU_KERNEL, "a")->context = context;
    };
    Made t([&](Synth *s) { fill(true, s); });
    EXPECT_EQ(GpuOfAll(t), (Ints{2, 1, 3}));
    // A file of before does not tell the contexts: by number alone, as ever.
    Made u([&](Synth *s) { fill(false, s); });
    EXPECT_EQ(GpuOfAll(u), (Ints{0, 0, 1}));
}

// When a context goes, the library numbers the streams of the others anew.
TEST(ModelGpu, AStreamThatIsNumberedAnewGoesOn) {
    Made t([](Synth *s) {
        Begin(s);
        s->Op(1, 1);
        s->Op(1, 1);
        uint32_t again = s->Stream(CST_STREAM_LEGACY, 0);
        s->Op(again, 1);
        s->GpuStream(1, 7);
        s->GpuStream(again, 7);
        for (int i = 0; i < 3; i++)
            s->Gpu(7, CST_GPU_KERNEL, "a");
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{0, 1, 2}));
    EXPECT_EQ(t.m->gpu_known, 3u);
}

// ---- GPU times of a recording that began in the midst ----

const char kLate[] = R"({"options":{"record_from":"5"}})";

// Five ops "a" at 10000, 11000 ..., with a wait behind the first `waited`, and GPU records that
// begin at these times.
void Late(Synth *s, uint32_t waited, const std::string &call, std::vector<uint64_t> gpu) {
    s->Facts(kLate);
    Begin(s);
    s->now = 10000;
    for (uint32_t i = 0; i < 5; i++) {
        if (i == waited) {
            s->now += 90000;
            s->Call(1, CST_CALL_WAITED, call);
        }
        s->Op(1, 1);
    }
    s->GpuStream(1, 7);
    for (uint64_t ns : gpu) {
        s->now = ns;
        s->Gpu(7, CST_GPU_KERNEL, "a");
    }
}

TEST(ModelGpu, WorkOfBeforeTheRecordingIsLeftOut) {
    // The step that ended still ran when the recording began: the host waited for it first.
    Made t([](Synth *s) {
        Late(s, 0, "cuStreamSynchronize",
             {10001, 20000, 30000, 101500, 102500, 103500, 104500, 105500});
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{3, 4, 5, 6, 7}));
    // The queue was long: ops are asked for while it runs.
    Made u([](Synth *s) {
        Late(s, 3, "cuStreamQuery", {10001, 20000, 30000, 40000, 50000, 60000, 104500, 105500});
    });
    EXPECT_EQ(GpuOfAll(u), (Ints{3, 4, 5, 6, 7}));
    // By what was waited for its context.
    Made v([](Synth *s) {
        Late(s, 3, "cuCtxSynchronize", {20000, 30000, 40000, 50000, 104500, 105500});
    });
    EXPECT_EQ(GpuOfAll(v), (Ints{1, 2, 3, 4, 5}));
}

TEST(ModelGpu, AWaitForAnotherStreamOrPartOfTheWorkSaysNothing) {
    for (const char *call : {"cuEventSynchronize", "cuMemcpyDtoD_v2", "cuCtxSynchronize_v2"}) {
        Made t([&](Synth *s) { Late(s, 3, call, {20000, 30000, 40000, 104500, 105500}); });
        EXPECT_EQ(t.m->gpu_known, 0u) << call;
    }
    Made other([](Synth *s) {
        Late(s, 9, "", {10001, 20000, 30000, 104500, 105500});
        s->now = 20001;
        s->Call(2, CST_CALL_WAITED, "cuStreamSynchronize");
        s->Call(1, CST_CALL_STEP_END, "cuStreamSynchronize");
    });
    EXPECT_EQ(other.m->gpu_known, 0u);
    Made context([](Synth *s) {
        Late(s, 9, "", {10001, 101500});
        s->now = 20001;
        s->Call(2, CST_CALL_WAITED, "cuCtxSynchronize"); // both are of one context
    });
    EXPECT_GT(context.m->gpu_known, 0u);
}

TEST(ModelGpu, AWholeRecordingNeedsNoWait) {
    for (const char *facts : {R"({"options":{"record_from":"0"}})", "{}",
                              R"({"options":{"record_from":"5"},"trimmed":"steps"})"}) {
        Made t([&](Synth *s) {
            s->Facts(facts);
            Begin(s);
            s->Op(1, 1);
            s->Op(1, 1);
            s->GpuStream(1, 7);
            s->Gpu(7, CST_GPU_KERNEL, "a");
            s->Gpu(7, CST_GPU_KERNEL, "a");
        });
        EXPECT_EQ(GpuOfAll(t), (Ints{0, 1})) << facts;
    }
}

TEST(ModelGpu, CopiesMustBeAsLong) {
    Made t([](Synth *s) {
        Begin(s);
        s->grid = 64;
        s->Op(1, s->Copy(1));
        s->GpuStream(1, 7);
        s->Gpu(7, CST_GPU_MEMCPY)->bytes = 32; // a synchronous one, say
        s->Gpu(7, CST_GPU_MEMCPY)->bytes = 64;
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{1}));
}

TEST(ModelGpu, AMemsetIsNoCopy) {
    Made t([](Synth *s) {
        Begin(s);
        s->Op(1, s->Copy(1));
        s->GpuStream(1, 7);
        s->Gpu(7, CST_GPU_MEMSET);
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{-1}));
}

// CUPTI tells the length with which a node was built, after it was patched, too.
TEST(ModelGpu, CopiesOfGraphsMayHaveAnyLength) {
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

TEST(ModelGpu, AMemsetOfOneElementMayBeACopy) {
    for (uint32_t bytes : {4u, 2u}) {
        Made t([&](Synth *s) {
            Begin(s);
            s->Eager(1, s->Memset(4), "observing", "observing");
            s->Eager(1, s->Copy(1), "observing", "observing");
            s->GpuStream(1, 7);
            s->Gpu(7, CST_GPU_MEMCPY)->bytes = bytes;
            s->Gpu(7, CST_GPU_MEMSET)->bytes = 4;
        });
        EXPECT_EQ(GpuOfAll(t), (bytes == 4 ? Ints{0, -1} : Ints{1, -1})) << bytes;
    }
}

TEST(ModelGpu, NameGridAndSortOfWorkMustBeTheSame) {
    Made t([](Synth *s) {
        Begin(s);
        uint32_t set = s->Memset(4), copy = s->Copy(1);
        s->grid = 3;
        s->Op(1, 1);
        s->Op(1, set);
        s->Op(1, copy);
        s->GpuStream(1, 7);
        s->Gpu(7, CST_GPU_KERNEL, "ab");
        s->Gpu(7, CST_GPU_KERNEL, "");
        s->Gpu(7, CST_GPU_KERNEL, "a")->grid[0] = 4;
        s->Gpu(7, CST_GPU_KERNEL, "a")->grid[1] = 2;
        s->Gpu(7, CST_GPU_KERNEL, "a")->grid[2] = 2;
        s->Gpu(7, CST_GPU_KERNEL, "a")->head.flags = 3; // not known what
    });
    EXPECT_EQ(GpuOfAll(t), (Ints{-1, -1, -1}));
    EXPECT_EQ(t.m->gpu_known, 0u);
}

// Not searched further than that: a kernel of the program's own graph would take the place of one
// of its name that comes much later, and what is between would be lost.
TEST(ModelGpu, OpsFarAheadAreNotSearched) {
    for (int skipped : {255, 256}) {
        Made t([&](Synth *s) {
            Begin(s);
            for (int i = 0; i < skipped; i++)
                s->Op(1, 1);
            s->Op(1, 2);
            s->Op(1, 1);
            s->GpuStream(1, 7);
            s->Gpu(7, CST_GPU_KERNEL, "b");
            s->Gpu(7, CST_GPU_KERNEL, "a");
        });
        uint32_t b = static_cast<uint32_t>(skipped);
        bool found = skipped == 255;
        EXPECT_EQ(GpuOf(t, b), found ? 0 : -1) << skipped;
        EXPECT_EQ(GpuOf(t, b + 1), found ? 1 : -1) << skipped;
        EXPECT_EQ(GpuOf(t, 0), found ? -1 : 1) << skipped;
        EXPECT_EQ(t.m->gpu_known, found ? 2u : 1u) << skipped;
    }
}

// As many contexts as a program makes one after the other, each with a stream 7.
TEST(ModelGpu, ManyContextsWithOneNumberKeepApart) {
    for (uint32_t n : {8u, 9u, 40u}) {
        Made t([&](Synth *s) {
            s->Thread(1, "");
            s->Kernel("a");
            for (uint32_t i = 1; i <= n; i++) {
                s->context = i;
                s->Stream(CST_STREAM_CREATED, i);
                s->GpuStream(i, 7);
                s->GpuContext(i, 100 + i);
                s->Op(i, 1);
                s->Op(i, 1);
            }
            for (uint32_t i = 2 * n; i-- > 0;) // the last context's first
                s->Gpu(7, CST_GPU_KERNEL, "a")->context = 101 + i / 2;
        });
        std::vector<int> wanted;
        for (int i = 0; i < static_cast<int>(n); i++)
            for (int k : {0, 1})
                wanted.push_back(2 * (static_cast<int>(n) - 1 - i) + k);
        EXPECT_EQ(GpuOfAll(t), wanted) << n;
    }
}

} // namespace
