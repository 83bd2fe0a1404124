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
