// What the model says of traces that are known.
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/trace/golden.h"
#include "tools/trace/model.h"

namespace {

struct Made {
    cst_trace *trace = nullptr;
    model *m = nullptr;
    explicit Made(const std::function<void(Synth *)> &fill) {
        std::string path = Fresh("model.cst");
        Synth s(path);
        fill(&s);
        EXPECT_EQ(s.Close(), 0);
        char error[512];
        trace = cst_open(path.c_str(), error, sizeof error);
        EXPECT_TRUE(trace) << error;
        m = trace ? model_make(trace) : nullptr;
        EXPECT_TRUE(m);
    }
    ~Made() {
        model_free(m);
        cst_free(trace);
    }
    Made(const Made &) = delete;
};

void Begin(Synth *s) {
    s->Thread(1, "");
    s->Stream(CST_STREAM_LEGACY, 0);
    s->Stream(CST_STREAM_CREATED, 7);
    s->Kernel("a");
    s->Kernel("b");
}

TEST(Model, EagerOpsGoOutByThemselves) {
    Made t([](Synth *s) {
        Begin(s);
        s->Eager(1, 1, "rule", "rule");
        s->Eager(1, 2, "observing", "observing");
    });
    EXPECT_EQ(t.m->n_ops, 2u);
    EXPECT_EQ(t.m->eager, 2u);
    EXPECT_EQ(t.m->in_graphs + t.m->flushed + t.m->open, 0u);
    EXPECT_EQ(t.m->ops[0].out, nullptr);
    EXPECT_FALSE(model_in_graph(&t.m->ops[0]));
}

TEST(Model, WithheldOpsGoOutOldestFirst) {
    Made t([](Synth *s) {
        Begin(s);
        for (int i = 0; i < 6; i++)
            s->Op(1, 1);
        s->Eager(1, 2, "rule", "rule"); // not one of the queue
        s->Op(1, 1);
        s->Launch(1, 4, 1, CST_EXACT);
        s->Flush(1, 2, "cuEventRecord", "api");
        s->Op(1, 1);
    });
    ASSERT_EQ(t.m->n_ops, 9u);
    EXPECT_EQ(t.m->in_graphs, 4u);
    EXPECT_EQ(t.m->flushed, 2u);
    EXPECT_EQ(t.m->eager, 1u);
    EXPECT_EQ(t.m->open, 2u);
    EXPECT_EQ(t.m->graph_launches, 1u);
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_TRUE(model_in_graph(&t.m->ops[i])) << i;
        EXPECT_EQ(t.m->ops[i].place, i);
    }
    for (uint32_t i = 4; i < 6; i++) {
        ASSERT_TRUE(t.m->ops[i].out) << i;
        EXPECT_EQ(t.m->ops[i].out->type, uint8_t{CST_FLUSH});
        EXPECT_EQ(t.m->ops[i].place, i - 4);
    }
    EXPECT_EQ(t.m->ops[6].out, nullptr);
    EXPECT_EQ(t.m->ops[7].out, nullptr);
    EXPECT_EQ(t.m->steps[0].in_graphs, 4u);
    EXPECT_EQ(t.m->steps[0].graphs, 1u);
    EXPECT_EQ(t.m->steps[0].n_ops, 9u);
}

TEST(Model, StreamsHaveQueuesAndStepsOfTheirOwn) {
    Made t([](Synth *s) {
        Begin(s);
        for (int step = 0; step < 3; step++) {
            s->Op(1, 1);
            s->Op(2, 2);
            s->Op(1, 1);
            s->Launch(2, 1, 2, CST_EXACT);
            s->Launch(1, 2, 1, CST_EXACT);
            s->Sync(1);
            if (step == 1)
                s->Sync(2); // stream 2 waits once: its second step has one op
        }
        s->Sync(1); // no op since: no step
    });
    EXPECT_EQ(t.m->in_graphs, 9u);
    EXPECT_EQ(t.m->open, 0u);
    ASSERT_EQ(t.m->n_steps, 5u);
    const model_stream &one = t.m->streams[1], &two = t.m->streams[2];
    ASSERT_EQ(one.n_steps, 3u);
    ASSERT_EQ(two.n_steps, 2u);
    EXPECT_EQ(one.n_ops, 6u);
    EXPECT_EQ(two.n_ops, 3u);
    EXPECT_EQ(t.m->steps[two.steps[0]].n_ops, 2u);
    EXPECT_EQ(t.m->steps[two.steps[1]].n_ops, 1u);
    EXPECT_EQ(t.m->steps[two.steps[1]].first, 2u);
    EXPECT_EQ(t.m->steps[two.steps[1]].end, nullptr);
    for (uint32_t i = 0; i < 3; i++) {
        const model_step &step = t.m->steps[one.steps[i]];
        EXPECT_EQ(step.stream, 1u);
        EXPECT_EQ(step.number, i);
        EXPECT_EQ(step.first, 2 * i);
        EXPECT_EQ(step.signature, t.m->steps[one.steps[0]].signature);
        ASSERT_TRUE(step.end);
        EXPECT_EQ(step.end_ns, step.end->head.ns + step.end->host_ns);
        EXPECT_EQ(step.begin_ns, t.m->ops[one.ops[step.first]].op->head.ns);
    }
    EXPECT_NE(t.m->steps[two.steps[0]].signature, t.m->steps[two.steps[1]].signature);
}

TEST(Model, SignatureIsOfKindsAndShapesInOrderAndNotOfParams) {
    Made t([](Synth *s) {
        Begin(s);
        auto step = [&](uint32_t x, uint32_t y) { s->Op(1, x), s->Op(1, y), s->Sync(1); };
        step(1, 2);
        s->param = 99;
        step(1, 2);
        step(2, 1);
        s->grid = 2;
        step(1, 2);
    });
    ASSERT_EQ(t.m->n_steps, 4u);
    EXPECT_EQ(t.m->steps[0].signature, t.m->steps[1].signature);
    EXPECT_NE(t.m->steps[0].signature, t.m->steps[2].signature);
    EXPECT_NE(t.m->steps[0].signature, t.m->steps[3].signature);
}

TEST(Model, LostRecordsLeaveQueuesShortAndNothingBreaks) {
    Made t([](Synth *s) {
        Begin(s);
        s->Op(1, 1);
        s->Lost(3, 3);
        s->Launch(1, 4, 1, CST_EXACT); // three of its ops were lost
        s->Flush(2, 5, "watchdog", "watchdog");
        s->Op(1, 1);
    });
    EXPECT_EQ(t.m->in_graphs, 1u);
    EXPECT_EQ(t.m->flushed, 0u);
    EXPECT_EQ(t.m->graph_launches, 1u);
    EXPECT_EQ(t.m->open, 1u);
    EXPECT_EQ(t.trace->lost_ops, 3u);
}

// ---- GPU times ----

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

TEST(Model, TheGoldenTraceAddsUp) {
    Made t(WriteGolden);
    EXPECT_EQ(t.m->n_ops, 21u);
    EXPECT_EQ(t.m->eager, 8u); // six of step 0, attention twice
    EXPECT_EQ(t.m->in_graphs, 10u);
    EXPECT_EQ(t.m->flushed, 2u);
    EXPECT_EQ(t.m->open, 1u);
    EXPECT_EQ(t.m->n_steps, 4u);
    EXPECT_EQ(t.m->graph_launches, 4u);
}

} // namespace
