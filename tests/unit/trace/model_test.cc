// Promise: the model gives the right answers for known traces.
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/trace/golden.h"
#include "tests/unit/trace/made.h"

namespace {

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

TEST(Model, DeferredOpsGoOutOldestFirst) {
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

TEST(Model, BranchesGoOutWithTheirHome) {
    Made t([](Synth *s) {
        Begin(s);
        s->Op(1, 1);
        s->Op(2, 2);
        s->Op(1, 1);
        s->Op(2, 2);
        s->Op(2, 2);
        s->Op(1, 1); // of the next graph
        s->Branch(2, 2);
        s->Launch(1, 4, 1, CST_EXACT);
        s->Branch(2, 1);
        s->Flush(1, 2, "cuEventRecord", "api");
        s->Op(1, 1);
        s->Launch(1, 1, 1, CST_EXACT); // without branches
    });
    EXPECT_EQ(t.m->in_graphs, 5u);
    EXPECT_EQ(t.m->flushed, 2u);
    EXPECT_EQ(t.m->open, 0u);
    EXPECT_EQ(t.m->graph_launches, 2u);
    const struct {
        bool graph;
        uint32_t place; // the home's come first
    } want[] = {{true, 0}, {true, 2}, {true, 1}, {true, 3}, {false, 1}, {false, 0}, {true, 0}};
    for (uint32_t i = 0; i < 7; i++) {
        EXPECT_EQ(model_in_graph(&t.m->ops[i]), want[i].graph) << i;
        EXPECT_EQ(t.m->ops[i].place, want[i].place) << i;
    }
    EXPECT_EQ(t.m->ops[0].out, t.m->ops[1].out);
    ASSERT_EQ(t.m->launches[0].n, 4u);
    ASSERT_EQ(t.m->launches[1].n, 1u);
    for (uint32_t place = 0; place < 4; place++)
        EXPECT_EQ(t.m->ops[t.m->launches[0].ops[place]].place, place);
    EXPECT_EQ(&t.m->launches[0].record->head, t.m->ops[0].out);
    EXPECT_EQ(t.m->launches[1].ops[0], 6u);
    const model_step &side = t.m->steps[t.m->streams[2].steps[0]];
    EXPECT_EQ(side.in_graphs, 2u);
    EXPECT_EQ(side.graphs, 0u) << "it is the home's";
}

TEST(Model, ABranchOfAnotherThreadIsNotTaken) {
    Made t([](Synth *s) {
        Begin(s);
        s->Thread(8, "other");
        s->Stream(CST_STREAM_CREATED, 8);
        s->Op(1, 1);
        s->Op(2, 2);
        s->Branch(2, 1);
        s->thread = 2;
        s->Op(3, 1);
        s->Launch(3, 1, 1, CST_EXACT);
        s->thread = 1;
        s->Launch(1, 2, 1, CST_EXACT);
    });
    EXPECT_EQ(t.m->open, 0u);
    EXPECT_EQ(t.m->ops[0].out, t.m->ops[1].out);
    EXPECT_NE(t.m->ops[0].out, t.m->ops[2].out);
}

TEST(Model, AWaitSaysWhichEvent) {
    Made t([](Synth *s) {
        Begin(s);
        s->param = 0x77;
        s->Op(1, s->Wait());
    });
    uint64_t event = 0, number = 9;
    EXPECT_TRUE(model_event(t.trace, t.m->ops[0].op, &event, &number));
    EXPECT_EQ(event, 0x77u);
    EXPECT_EQ(number, 0u);
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
