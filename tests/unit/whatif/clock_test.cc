// Promise: the clocks of what-if give what a calculation by hand from trace and costs gives.
#include "tests/unit/whatif/timed.h"

namespace whatif {
namespace {

// Ten steps of three launches; `own` before each, `gpu` of each.
void ThreeLaunches(Timed &program, uint64_t own, uint32_t gpu, uint32_t streams = 1) {
    std::vector<uint32_t> s;
    for (uint32_t i = 0; i < streams; i++)
        s.push_back(program.Stream());
    uint32_t kernel = program.Kernel("k");
    program.WaitFor(s[0]);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 3; i++)
            program.Go(kernel, s[i % streams], gpu, own);
        for (uint32_t stream : s)
            program.WaitFor(stream);
    }
}

// Steps of so many launches, with other params in each; the host goes on for `own` behind them.
void NewParams(Timed &program, int steps, int launches, uint64_t own = 0) {
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    program.WaitFor(stream);
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < launches; i++)
            program.Go(kernel, stream, 700, 0, step);
        program.Wait(own);
        program.WaitFor(stream);
    }
}

TEST(Clock, HostBoundStepsTakeWhatTheHostDoes) {
    Timed program;
    ThreeLaunches(program, 20000, 700);
    whatif_times t = program.Times(Costs(), "off");
    EXPECT_EQ(t.steps, 10u);
    EXPECT_EQ(t.typical, 10u);
    EXPECT_EQ(t.step_ops, 3u);
    // Three times 20000 and a launch; the last kernel begins 500 later, runs 700, is heard of 2000
    // later.
    EXPECT_DOUBLE_EQ(t.step, 3 * 23000 + 500 + 700 + 2000);
    EXPECT_DOUBLE_EQ(t.own, 60000);
    EXPECT_DOUBLE_EQ(t.calls, 9000);
    EXPECT_DOUBLE_EQ(t.waits, 3200);
    EXPECT_DOUBLE_EQ(t.busy, 2100);
    EXPECT_DOUBLE_EQ(t.total, 10 * t.step);
    // As recorded: own time, launches, flush, end, 5000 and the wait's own 1000.
    EXPECT_DOUBLE_EQ(t.recorded_step, 3 * 21000 + 2000 + 5000 + 1000);
    EXPECT_DOUBLE_EQ(t.recorded_total, 10 * t.recorded_step);
}

// A host that is slower for most of the time: the median says so, the fastest tenth does not.
TEST(Clock, TheFastestTenthOfTheLaterHalf) {
    Timed program;
    uint32_t kernel = program.Kernel("k"), s = program.Stream();
    program.WaitFor(s);
    for (int step = 0; step < 40; step++) {
        uint64_t own = step < 20 || step == 30 ? 5000 : step % 7 ? 20000 : 10000; // 3 of 10000
        for (int i = 0; i < 3; i++)
            program.Go(kernel, s, 700, own);
        program.WaitFor(s);
    }
    whatif_times t = program.Times(Costs(), "off");
    EXPECT_DOUBLE_EQ(t.step, 3 * 23000 + 500 + 700 + 2000);
    EXPECT_DOUBLE_EQ(t.fast, 3 * 13000 + 500 + 700 + 2000);
    EXPECT_DOUBLE_EQ(t.recorded_step - t.recorded_fast, 3 * 10000);
}

TEST(Clock, GpuBoundStepsTakeWhatTheGpuDoes) {
    Timed program;
    ThreeLaunches(program, 0, 50000);
    // The first begins when it was launched; 1000 of gap ahead of each of the others.
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "off").step, 3000 + 500 + 3 * 50000 + 2 * 1000 + 2000);
    whatif_cost cost = Costs();
    cost.gpu.measured_more = 100;
    EXPECT_DOUBLE_EQ(program.Times(cost, "off").step, 3000 + 500 + 3 * 49900 + 2 * 1000 + 2000);
}

TEST(Clock, WhatWasNotMeasuredIsASmallKernel) {
    Timed program;
    ThreeLaunches(program, 0, WHATIF_NOT_MEASURED);
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "off").step, 9000 + 500 + 600 + 2000);
}

TEST(Clock, AGraphHasItsGaps) {
    Timed program;
    ThreeLaunches(program, 0, 50000);
    // Three are deferred and go out as one when the host waits; nothing is ahead of them.
    double first = 300 + 1500 + 30 + 500;
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise").step, first + 3 * 50000 + 2 * 200 + 2000);
    // A segment of two when the second comes; the third by itself at the wait.
    EXPECT_DOUBLE_EQ(
        program.Times(Costs(), "piecewise", {{"segment_first", "2"}, {"segment_max", "2"}}).step,
        200 + 1500 + 20 + 500 + 3 * 50000 + 200 + 1000 + 2000);
}

TEST(Clock, FromGraphToGraphThereIsASeam) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 4; i++)
            program.Go(kernel, stream, 50000);
        program.WaitFor(stream);
    }
    whatif_times t =
        program.Times(Costs(), "piecewise", {{"segment_first", "2"}, {"segment_max", "2"}});
    EXPECT_DOUBLE_EQ(t.step, 200 + 1500 + 20 + 500 + 4 * 50000 + 200 + (200 + 1200) + 200 + 2000);
}

// Two are deferred; the one that is not to be lets them go and is no match.
TEST(Clock, ABreakCostsALaunchByItself) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k"), out = program.Kernel("out");
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, stream, 700);
        program.Go(kernel, stream, 700);
        program.Go(out, stream, 700);
        program.WaitFor(stream);
    }
    whatif_times t = program.Times(Costs(), "piecewise", {{"eager", "out"}});
    EXPECT_DOUBLE_EQ(t.calls, 2 * 100 + 1500 + 20 + 3000);
}

TEST(Clock, PatchesCostTheHost) {
    Timed program;
    NewParams(program, 10, 3);
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise").step,
                     300 + 3 * 200 + 1500 + 30 + 500 + 3 * 700 + 2 * 200 + 2000);
}

TEST(Clock, AWaitForEachOpCannotBeFolded) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, stream, 700);
        program.WaitFor(stream);
    }
    for (const char *mode : {"off", "piecewise"}) {
        whatif_times t = program.Times(Costs(), mode, {{"warmup", "1000"}});
        EXPECT_EQ(t.steps, 9u) << "the first begins at the end of the first wait";
        EXPECT_DOUBLE_EQ(t.step, 3000 + 500 + 700 + 2000);
    }
}

TEST(Clock, AWaitForNothingIsShort) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, stream, 700);
        program.Wait(100000);
        program.WaitFor(stream);
    }
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "off").step, 3000 + 100000 + 1000);
    // Whoever asks has no thread to wake up.
    Timed asks;
    stream = asks.Stream(), kernel = asks.Kernel("k");
    asks.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        asks.Go(kernel, stream, 700);
        asks.WaitFor(stream, 0, "cuStreamQuery");
    }
    EXPECT_DOUBLE_EQ(asks.Times(Costs(), "off").step, 3000 + 500 + 700);
}

TEST(Clock, StreamsRunSideBySide) {
    Timed program;
    ThreeLaunches(program, 0, 50000, 2);
    whatif_times t = program.Times(Costs(), "off");
    EXPECT_EQ(t.steps, 20u) << "each stream's wait ends one";
    // Two kernels on the first stream, one on the other, which is done by then.
    EXPECT_DOUBLE_EQ(t.total, 10 * (3000 + 500 + 2 * 50000 + 1000 + 2000 + 1000));
}

TEST(Clock, TheLegacyStreamWaitsForBlockingOnes) {
    for (uint32_t flags : {0u, 1u}) {
        Timed program;
        uint32_t made = program.Stream(CST_STREAM_CREATED, flags),
                 legacy = program.Stream(CST_STREAM_LEGACY, 0), kernel = program.Kernel("k");
        program.WaitFor(legacy);
        for (int step = 0; step < 10; step++) {
            program.Go(kernel, made, 90000);
            program.Go(kernel, legacy, 700);
            program.WaitFor(legacy);
            program.WaitFor(made);
        }
        whatif_times t = program.Times(Costs(), "off");
        EXPECT_EQ(t.steps, 20u);
        double alone = 3000 + 500 + 90000 + 2000, behind = 3000 + 500 + 90000 + 700 + 2000 + 1000;
        EXPECT_DOUBLE_EQ(t.total, 10 * (flags ? alone : behind));
    }
}

TEST(Clock, EventsOrderStreams) {
    Timed program;
    uint32_t a = program.Stream(), b = program.Stream(), kernel = program.Kernel("k");
    program.WaitFor(b);
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, a, 90000);
        program.Call(CST_CALL_FLUSH, a, 0, "cuEventRecord", CST_SCOPE_S)->host_ns = 1000;
        program.Call(CST_CALL_FLUSH, b, 0, "cuStreamWaitEvent", CST_SCOPE_S)->host_ns = 1000;
        program.Go(kernel, b, 700);
        program.WaitFor(b);
    }
    // A gap ahead of it on its stream, as behind a kernel.
    whatif_times t = program.Times(Costs(), "off");
    EXPECT_DOUBLE_EQ(t.step, 3000 + 500 + 90000 + 1000 + 700 + 2000);
}

// A record that is an op orders them as well.
TEST(Clock, RecordsOrderStreams) {
    Timed program;
    uint32_t a = program.Stream(), b = program.Stream(), kernel = program.Kernel("k");
    uint32_t record = program.RecordOf();
    program.WaitFor(b);
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, a, 90000);
        program.Record(record, a, 0x100)->host_ns = 1000;
        program.OtherOp();
        program.Call(CST_CALL_FLUSH, b, 0, "cuStreamWaitEvent", CST_SCOPE_S)->host_ns = 500;
        program.Call(CST_CALL_EVENT_SEEN, CST_NONE, 0x100, "cuStreamWaitEvent")->host_ns = 500;
        program.Go(kernel, b, 700);
        program.WaitFor(b);
    }
    whatif_cost cost = Costs();
    cost.host.eager_record = 1900;
    cost.gpu.record = 1300;
    whatif_times t = program.Times(cost, "off");
    EXPECT_DOUBLE_EQ(t.step, 3000 + 500 + 90000 + 1300 + 1000 + 700 + 2000);
    t = program.Times(cost, "piecewise");
    EXPECT_GT(t.step, 500 + 90000 + 1300 + 1000 + 700 + 2000) << "the next kernel waits for it";
    EXPECT_LT(t.step, 2 * 90000);
}

TEST(Clock, ThreadsThatTakeTurnsWaitForEachOther) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    program.Thread(1);
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        program.Thread(1);
        program.Go(kernel, stream, 700);
        program.Thread(2);
        for (int i = 0; i < 5; i++)
            program.Go(kernel, stream, 700, 10000);
        program.Thread(1);
        program.WaitFor(stream);
    }
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "off").step, 6 * 3000 + 5 * 10000 + 500 + 700 + 2000);
}

// A trace in which nothing was built says nothing of how long that takes: the costs do.
TEST(Clock, BuildingIsSpreadByItsCost) {
    double took[2];
    for (int slow = 0; slow < 2; slow++) {
        Timed program;
        uint32_t stream = program.Stream();
        std::vector<uint32_t> kernels;
        for (int i = 0; i < 3000; i++)
            kernels.push_back(program.Kernel("k" + std::to_string(i)));
        for (int step = 0; step < 12; step++) {
            for (uint32_t kernel : kernels)
                program.Go(kernel, stream);
            program.WaitFor(stream);
        }
        whatif_cost cost = Costs();
        cost.host.built_node = slow ? 100000 : 1000;
        took[slow] = program.Times(cost, "piecewise", {{"segment_max", "64"}}).step;
    }
    EXPECT_GT(took[1], 2 * took[0]) << "one graph a step, the others are launched by themselves";
}

TEST(Clock, WhatRecordingAddsIsTakenAway) {
    Timed program;
    ThreeLaunches(program, 20000, 700);
    whatif_cost cost = Costs();
    cost.recorder.op = 150;
    // Between four calls: the wait and three launches. Ahead of the flush there is nothing to take.
    EXPECT_DOUBLE_EQ(program.Times(cost, "off").own, 3 * (20000 - 150));
}

TEST(Clock, LaunchesOfThisProgramMayCostMore) {
    Timed program;
    ThreeLaunches(program, 0, 700);
    whatif_timing timing = {};
    timing.eager = 1.5;
    timing.matched = 2;
    timing.graph = 3;
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "off", {}, timing).calls, 3 * 4500);
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", {}, timing).calls,
                     3 * 200 + 3 * (1500 + 30));
}

TEST(Clock, PatchesOfThisProgramMayCostMore) {
    Timed program;
    NewParams(program, 10, 3);
    whatif_timing timing = {};
    timing.graph = 2;
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", {}, timing).calls,
                     300 + 2 * (3 * 200 + 1500 + 30));
}

// ---- what the second thread patches and launches

const std::map<std::string, std::string> kHands = {{"submit_ns", "1"}};
enum { MANY = 40 }; // steps: the first segments are not submitted

TEST(Clock, WhatIsSubmittedCostsTheHostNothing) {
    Timed program;
    NewParams(program, MANY, 3, 100000);
    double graph = 3 * 200 + 1500 + 30;
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise").step, 300 + graph + 100000 + 1000);
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", kHands).step, 300 + 100000 + 1000);
    whatif_timing timing = {}; // nor does it go slower behind it
    timing.behind_graph = 900;
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", {}, timing).own, 100900);
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", kHands, timing).own, 100000);
}

TEST(Clock, WhatIsSubmittedBeginsWhenItIsLaunched) {
    Timed program;
    NewParams(program, MANY, 3);
    whatif_times t = program.Times(Costs(), "piecewise", kHands);
    EXPECT_DOUBLE_EQ(t.calls, 300);
    EXPECT_DOUBLE_EQ(t.step, 300 + (3 * 200 + 1500 + 30) + 500 + 3 * 700 + 2 * 200 + 2000);
}

TEST(Clock, TheNextGraphWaitsForTheOneThatWasSubmitted) {
    Timed program;
    NewParams(program, MANY, 4, 100000);
    std::map<std::string, std::string> twos = {{"segment_first", "2"}, {"segment_max", "2"}};
    twos.insert(kHands.begin(), kHands.end());
    whatif_times t = program.Times(Costs(), "piecewise", twos);
    EXPECT_DOUBLE_EQ(t.calls, 200 + (2 * 200 + 1500 + 20)) << "the first's; not its own";
}

TEST(Clock, ALaunchByItselfWaitsForWhatWasSubmitted) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k"), out = program.Kernel("out");
    program.WaitFor(stream);
    for (int step = 0; step < MANY; step++) {
        program.Go(kernel, stream, 700);
        program.Go(kernel, stream, 700);
        program.Go(out, stream, 700, 1000);
        program.WaitFor(stream);
    }
    std::map<std::string, std::string> settings = {{"eager", "out"}};
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", settings).calls, 200 + 1520 + 3000);
    settings.insert(kHands.begin(), kHands.end());
    EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", settings).calls, 200 + 520 + 3000);
}

// Then the program launches by itself.
TEST(Clock, TheSecondThreadMayBeBusyWithAnotherStream) {
    for (uint64_t between : {0, 5000}) {
        Timed program;
        uint32_t a = program.Stream(), b = program.Stream(), kernel = program.Kernel("k");
        program.WaitFor(a);
        for (int step = 0; step < MANY; step++) {
            for (int i = 0; i < 6; i++)
                program.Go(kernel, i < 3 ? a : b, 700, i == 3 ? between : 0, step);
            program.WaitFor(a);
            program.WaitFor(b);
        }
        // The wait for each ends a step, on average:
        EXPECT_DOUBLE_EQ(2 * program.Times(Costs(), "piecewise", kHands).calls,
                         600 + (between ? 0 : 3 * 200 + 1500 + 30));
    }
}

TEST(Clock, NothingIsSubmittedWhereTheHostIsFast) {
    Timed program;
    uint32_t slow = program.Stream(), fast = program.Stream(), kernel = program.Kernel("k");
    program.WaitFor(slow);
    for (int step = 0; step < MANY; step++) {
        for (int i = 0; i < 6; i++)
            program.Go(kernel, i < 3 ? slow : fast, 700, i <= 3 ? 20000 : 0);
        program.WaitFor(slow);
        program.WaitFor(fast);
    }
    whatif_times t = program.Times(Costs(), "piecewise", {{"submit_ns", "10000"}});
    EXPECT_DOUBLE_EQ(2 * t.calls, 600 + 1500 + 30);
}

TEST(Clock, NodesThatAreNoKernelsCostMore) {
    Timed program;
    uint32_t stream = program.Stream(), set = program.Memset("cuMemsetD32Async", 4),
             kernel = program.Kernel("k");
    program.Range(0x10000, 0x10000, 2);
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, stream, 700);
        program.Fill(set, stream, 0x10000, 64);
        program.OtherOp(700);
        program.WaitFor(stream);
    }
    whatif_cost cost = Costs();
    cost.host.graph_other = 1700;
    EXPECT_DOUBLE_EQ(program.Times(cost, "piecewise").calls, 200 + 1500 + 20 + 1700);
}

// Without a gap ahead of it: what it needs is what it costs.
TEST(Clock, RecordsOfEventsCostWhatTheyCost) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k"), record = program.RecordOf();
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, stream, 700);
        program.Go(kernel, stream, 700);
        program.Record(record, stream, 0x100)->host_ns = 1000;
        program.OtherOp();
        program.Go(kernel, stream, 700);
        program.WaitFor(stream);
    }
    whatif_cost cost = Costs();
    cost.host.eager_record = 1900;
    cost.host.graph_record = 1100;
    cost.host.graph_other = 7000;
    cost.gpu.record = 1300;
    cost.gpu.memset_more = 5000;
    whatif_times t = program.Times(cost, "off");
    EXPECT_DOUBLE_EQ(t.calls, 3 * 3000 + 1900);
    EXPECT_DOUBLE_EQ(t.busy, 3 * 700 + 1300);
    EXPECT_DOUBLE_EQ(t.step, 3 * 3000 + 1900 + 500 + 700 + 2000);
    t = program.Times(cost, "piecewise");
    EXPECT_DOUBLE_EQ(t.calls, 4 * 100 + 1500 + 4 * 10 + 1100);
    EXPECT_DOUBLE_EQ(t.step, t.calls + 500 + 3 * 700 + 2 * 200 + 1300 + 2000); // 200: of an edge
}

TEST(Clock, WhatIsLetThroughCostsTheLibrary) {
    Timed program;
    ThreeLaunches(program, 0, 700);
    whatif_cost cost = Costs();
    cost.host.let_through = 250;
    EXPECT_DOUBLE_EQ(program.Times(cost, "off").calls, 3 * 3000);
    EXPECT_DOUBLE_EQ(program.Times(cost, "eager").calls, 3 * 3250);
}

// What was recorded as issued is deferred, and the other way round; four times of its own a step.
TEST(Clock, TheProgramGoesSlowerBehindTheDriver) {
    enum { ALL_ISSUED, ALL_DEFERRED, ONE_GRAPH };
    for (int recorded : {ALL_ISSUED, ALL_DEFERRED, ONE_GRAPH}) {
        Timed program;
        uint32_t stream = program.Stream(), kernel = program.Kernel("k");
        program.WaitFor(stream);
        for (int step = 0; step < 10; step++) {
            for (int i = 0; i < 3; i++)
                program.Go(kernel, stream, 700, 20000)->head.flags =
                    recorded == ALL_ISSUED ? CST_EAGER : CST_DEFERRED;
            if (recorded == ONE_GRAPH) {
                auto *launch = (cst_launch *)program.Add(CST_LAUNCH, sizeof(cst_launch));
                launch->head.ns -= 10; // within the third
                launch->stream = stream;
                launch->n = 3;
            }
            program.Wait(20000);
            program.WaitFor(stream);
        }
        whatif_timing timing = {};
        timing.behind_eager = 400;
        timing.behind_graph = 900;
        double quiet = 4 * 20000 - (recorded == ALL_ISSUED  ? 3 * 400
                                    : recorded == ONE_GRAPH ? 900
                                                            : 0);
        EXPECT_DOUBLE_EQ(program.Times(Costs(), "off", {}, timing).own, quiet + 3 * 400);
        // One graph, which goes out with the third.
        EXPECT_DOUBLE_EQ(program.Times(Costs(), "piecewise", {}, timing).own, quiet + 900);
    }
}

TEST(Clock, MemsetsAndCopiesCostWhatTheyCost) {
    Timed program;
    uint32_t stream = program.Stream(), set = program.Memset("cuMemsetD32Async", 4),
             copy = program.Copy("cuMemcpyDtoDAsync_v2", 1);
    program.Range(0x10000, 0x10000, 2);
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        program.Fill(set, stream, 0x10000, 64);
        program.Move(copy, stream, 0x12000, 0x10000, 256);
        program.OtherOp(50000);
        program.OtherOp(50000);
        program.WaitFor(stream);
    }
    whatif_cost cost = Costs();
    cost.gpu.memset_more = 300;
    whatif_times t = program.Times(cost, "off");
    // Recorded, they took no time: the 1000 up to the next call are the program's own.
    EXPECT_DOUBLE_EQ(t.calls, 6000);
    EXPECT_DOUBLE_EQ(t.step, 2000 + 500 + 50000 + 1300 + 50000 + 2000);
}

TEST(Clock, ACopyToPageableMemoryIsWaitedFor) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k"),
             out = program.Copy("cuMemcpyDtoHAsync_v2", 3);
    program.Range(0x10000, 0x10000, 2);
    program.Range(0, 0, 0, 0, 1, 0x90000);
    program.WaitFor(stream);
    for (int step = 0; step < 10; step++) {
        program.Go(kernel, stream, 50000);
        program.Move(out, stream, 0x90000, 0x10000, 4);
        program.OtherOp();
        program.WaitFor(stream);
    }
    whatif_times t = program.Times(Costs(), "off");
    EXPECT_DOUBLE_EQ(t.step, 3000 + 500 + 50000 + 9000 + 1000 + 1000);
}

TEST(Clock, ATraceWithoutAWaitHasNoSteps) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    for (int i = 0; i < 10; i++)
        program.Go(kernel, stream);
    whatif_times t = program.Times(Costs(), "piecewise");
    EXPECT_EQ(t.steps, 0u);
    EXPECT_LT(t.step, 0);
}

} // namespace
} // namespace whatif
