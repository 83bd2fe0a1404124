// Promise: each op gets the record of the GPU that is its own, or none. model_gpu_graphs_test.cc
// has the ops of graphs.
#include <gtest/gtest.h>

#include "tests/unit/trace/made.h"

namespace {

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
