// Promise: what-if counts what the engine would have counted: it runs the engine itself, with the
// clock and memory of the trace.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/unit/whatif/program.h"

extern "C" {
#include "shim/api/api.h"
#include "tools/whatif/run.h"
}

namespace whatif {
namespace {

// Sizes that do not follow the host's pace.
const std::map<std::string, std::string> kFixed = {
    {"segment_first", "16"}, {"segment_max", "16"}, {"hold_us", "1000000"}};

whatif_played Play(Program &program, std::map<std::string, std::string> settings = {},
                   const char *eager = nullptr, const char *recorded = "") {
    whatif_played played;
    char error[512] = "";
    std::vector<const char *> names, values;
    settings.insert(kFixed.begin(), kFixed.end());
    for (const auto &setting : settings) {
        names.push_back(setting.first.c_str());
        values.push_back(setting.second.c_str());
    }
    whatif_setup setup = {recorded, nullptr, names.data(), values.data(), (unsigned)names.size(),
                          eager,    nullptr};
    EXPECT_TRUE(whatif_run(program.Trace(), &setup, &played, error, sizeof error)) << error;
    uint64_t ops = 0, issued = played.counters.in_graphs;
    for (uint64_t n : played.counters.ops)
        ops += n;
    for (uint64_t n : played.counters.eager_by)
        issued += n;
    EXPECT_EQ(ops, issued);
    EXPECT_EQ(played.asked.own + played.asked.issued + played.counters.in_graphs, ops);
    EXPECT_EQ(played.asked.graph_launches, played.counters.graph_launches);
    EXPECT_EQ(played.asked.patched, played.counters.patched_nodes);
    return played;
}

std::vector<uint32_t> Kernels(Program &program, int n) {
    std::vector<uint32_t> kernels;
    for (int i = 0; i < n; i++)
        kernels.push_back(program.Kernel("k" + std::to_string(i)));
    return kernels;
}

// Steps of 30 launches, each ended by a wait.
void Steps(Program &program, int steps, const std::vector<uint32_t> &kernels, uint32_t stream,
           uint32_t grow = 0, uint32_t grow_grid = 0) {
    for (int step = 0; step < steps; step++) {
        for (size_t i = 0; i < kernels.size(); i++)
            program.Launch(kernels[i], stream, 100 + i, step * grow, 1 + step * grow_grid);
        program.Sync(stream);
    }
}

TEST(Player, StepsThatRepeatRunInGraphs) {
    Program program;
    uint32_t stream = program.Stream();
    Steps(program, 10, Kernels(program, 30), stream);
    whatif_played played = Play(program);
    const cus_counters &c = played.counters;
    EXPECT_EQ(c.ops[CUS_OP_LAUNCH], 300u);
    EXPECT_EQ(c.steps, 10u);
    EXPECT_EQ(c.eager_by[CUS_EAGER_OBSERVING], 60u) << "two steps are observed";
    EXPECT_EQ(c.in_graphs, 240u);
    EXPECT_EQ(c.built, 2u) << "16 and 14";
    EXPECT_EQ(c.graph_launches, 16u);
    EXPECT_EQ(c.sig_missed, 2u);
    EXPECT_EQ(c.sig_exact, 14u);
    EXPECT_EQ(c.patched_nodes, 0u);
    EXPECT_EQ(played.asked.captured, 30u);
    EXPECT_EQ(played.asked.own, 60u);
    EXPECT_EQ(played.threads, 1u);
    EXPECT_EQ(played.switches, 0u);
}

TEST(Player, ParamsThatChangeArePatched) {
    Program program;
    uint32_t stream = program.Stream();
    Steps(program, 10, Kernels(program, 30), stream, 1);
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.in_graphs, 240u);
    EXPECT_EQ(played.counters.patched_nodes, 7u * 30);
}

TEST(Player, GridsThatChangeArePatched) {
    Program program;
    uint32_t stream = program.Stream();
    Steps(program, 10, Kernels(program, 30), stream, 0, 1);
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.in_graphs, 240u);
    EXPECT_EQ(played.counters.patched_nodes, 7u * 30);
    EXPECT_EQ(played.counters.sig_patched, 14u);
}

TEST(Player, EagerRuleCuts) {
    Program program;
    uint32_t stream = program.Stream();
    Steps(program, 10, Kernels(program, 30), stream);
    whatif_played played = Play(program, {}, "k10;mangled:k20");
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_RULE], 20u);
    EXPECT_EQ(played.counters.in_graphs, 8u * 28);
    EXPECT_EQ(played.counters.graph_launches, 8u * 3) << "10, 9 and 9";
    EXPECT_EQ(played.rules_unmet, 0u);
}

TEST(Player, ModeAndSettingsAreThoseAsked) {
    Program program;
    uint32_t stream = program.Stream();
    Steps(program, 10, Kernels(program, 30), stream);
    EXPECT_EQ(Play(program, {{"mode", "eager"}}).counters.in_graphs, 0u);
    EXPECT_EQ(Play(program, {{"mode", "observe"}}).counters.eager_by[CUS_EAGER_PASSTHROUGH], 300u);
    EXPECT_EQ(Play(program, {{"warmup", "5"}}).counters.in_graphs, 150u);
    EXPECT_EQ(Play(program, {{"graph_mb", "0"}}).counters.in_graphs, 0u);
    EXPECT_EQ(Play(program, {{"mode", "verify"}}).counters.in_graphs, 240u) << "as verify_mode";
    EXPECT_EQ(Play(program, {}, nullptr, "warmup = 5\n").counters.in_graphs, 150u);
    EXPECT_EQ(Play(program, {{"warmup", "2"}}, nullptr, "warmup = 5\n").counters.in_graphs, 240u);
}

TEST(Player, OutcomesOfTheRecordingAreNotFed) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 30);
    for (int step = 0; step < 10; step++) {
        for (size_t i = 0; i < kernels.size(); i++)
            program.Launch(kernels[i], stream, i)->head.flags = CST_DEFERRED;
        auto *flush = (cst_flush *)program.Add(CST_FLUSH, sizeof(cst_flush));
        flush->stream = stream;
        flush->n = 30;
        program.Sync(stream);
    }
    EXPECT_EQ(Play(program).counters.in_graphs, 240u);
}

// A step of one thread goes on while the other one's is in the midst of a segment.
TEST(Player, TwoThreadsOnStreamsOfTheirOwnDoNotDisturbEachOther) {
    Program program;
    uint32_t streams[2] = {program.Stream(), program.Stream()};
    auto kernels = Kernels(program, 30);
    for (int step = 0; step < 10; step++) {
        for (size_t i = 0; i < kernels.size(); i++)
            for (uint32_t t = 0; t < 2; t++) {
                program.Thread(t + 1);
                program.Launch(kernels[i], streams[t], i);
            }
        for (uint32_t t = 0; t < 2; t++) {
            program.Thread(t + 1);
            program.Sync(streams[t]);
        }
    }
    whatif_played played = Play(program);
    EXPECT_EQ(played.threads, 2u);
    EXPECT_GT(played.switches, 500u);
    EXPECT_EQ(played.counters.in_graphs, 2u * 240);
    EXPECT_EQ(played.counters.steps, 20u);
    EXPECT_EQ(played.counters.flushes[CUS_CAUSE_OTHER_STREAM], 0u);
}

// ... and one thread has ops deferred on one stream at most.
TEST(Player, OneThreadOnTwoStreamsIssuesWhatItDeferredOnTheOther) {
    Program program;
    uint32_t streams[2] = {program.Stream(), program.Stream()};
    auto kernels = Kernels(program, 30);
    for (int step = 0; step < 10; step++) {
        for (size_t i = 0; i < kernels.size(); i++)
            program.Launch(kernels[i], streams[i / (step < 9 ? 10 : 7) % 2], i); // sooner at last
        program.Sync(streams[0]);
        program.Sync(streams[1]);
    }
    whatif_played played = Play(program);
    EXPECT_EQ(played.threads, 1u);
    EXPECT_GT(played.counters.flushes[CUS_CAUSE_OTHER_STREAM], 0u);
}

TEST(Player, MemsetsAndCopiesOfKnownMemoryAreInGraphs) {
    Program program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    uint32_t set = program.Memset("cuMemsetD32Async", 4),
             copy = program.Copy("cuMemcpyDtoDAsync_v2", 1),
             in = program.Copy("cuMemcpyHtoDAsync_v2", 2);
    program.Range(0x10000, 0x10000, 2);
    program.Range(0x80000, 0x1000, 1);
    program.Range(0, 0, 0, 0, 1, 0x90000);
    for (int step = 0; step < 10; step++) {
        program.Fill(set, stream, 0x10000, 64);
        program.Launch(kernel, stream, 0x10000);
        program.Move(copy, stream, 0x12000, 0x10000, 256);
        program.Move(in, stream, 0x12000, 0x80000, 256);
        program.Move(in, stream, 0x12000, 0x90000, 256); /* of pageable memory */
        program.Sync(stream);
    }
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_UNSUPPORTED], 10u);
    EXPECT_EQ(played.counters.in_graphs, 8u * 4);
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_OBSERVING], 2u * 4);
    EXPECT_EQ(played.asked.assumed, 0u);
}

TEST(Player, RecordsOfEventsAreInGraphs) {
    Program program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k"), record = program.RecordOf();
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 3; i++) {
            program.Launch(kernel, stream);
            program.Record(record, stream, 0x100 + i);
        }
        program.Sync(stream);
    }
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.ops[CUS_OP_RECORD], 30u);
    EXPECT_EQ(played.counters.in_graphs, 8u * 5) << "the last op of a segment is no record";
    EXPECT_EQ(played.counters.patched_nodes, 0u);
    EXPECT_EQ(played.asked.records, 2u * 3 + 8u);
    EXPECT_EQ(played.asked.graph_records, 8u * 2);
    whatif_played eager = Play(program, {}, "api:cuEventRecord");
    EXPECT_EQ(eager.counters.in_graphs, 0u) << "one launch is no graph";
    EXPECT_EQ(eager.asked.records, 30u);
}

// A handle that was given out again is another event.
TEST(Player, RecordsOfOtherEventsArePatched) {
    for (bool again : {false, true}) {
        Program program;
        uint32_t stream = program.Stream(), kernel = program.Kernel("k");
        uint32_t record = program.RecordOf();
        for (int step = 0; step < 10; step++) {
            program.Launch(kernel, stream);
            program.Launch(kernel, stream);
            program.Record(record, stream, again ? 0x100 : 0x100 + step, again ? step : 1);
            program.Launch(kernel, stream);
            program.Launch(kernel, stream);
            program.Sync(stream);
        }
        whatif_played played = Play(program);
        EXPECT_EQ(played.counters.in_graphs, 8u * 5);
        EXPECT_EQ(played.counters.patched_nodes, 7u);
    }
}

// Whoever can see it. What was looked at before is issued already.
TEST(Player, ALookAtAnEventIssuesItsRecord) {
    Program program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k"), record = program.RecordOf();
    for (int step = 0; step < 10; step++) {
        program.Launch(kernel, stream);
        program.Launch(kernel, stream);
        program.Record(record, stream, 0x100);
        program.Launch(kernel, stream);
        program.Call(CST_CALL_EVENT_SEEN, CST_NONE, step < 5 ? 0x100 : 0x200, "cuEventQuery");
        program.Launch(kernel, stream);
        program.Sync(stream);
    }
    whatif_played played = Play(program);
    EXPECT_GT(played.counters.flushes[cus_api_find("cuEventQuery")], 0u);
    EXPECT_LE(played.counters.flushes[cus_api_find("cuEventQuery")], 5u);
}

// The trace does not say which event it was: it was refused then, and is now.
TEST(Player, RecordsOfEventsOfOtherContextsAreLeftAlone) {
    Program program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    uint32_t record = program.RecordOf(CST_KIND_OPAQUE);
    uint32_t eager = program.String("unsupported"), why = program.String("event");
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 4; i++)
            program.Launch(kernel, stream);
        cst_op *op = program.Record(record, stream, 0);
        op->eager = eager;
        op->why = why;
        program.Sync(stream);
    }
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_UNSUPPORTED], 10u);
    EXPECT_EQ(played.counters.in_graphs, 8u * 4);
}

// Memory that goes and comes again elsewhere in the same place.
TEST(Player, RangesAreThoseOfTheirTime) {
    Program program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    uint32_t in = program.Copy("cuMemcpyHtoDAsync_v2", 2);
    program.Range(0x10000, 0x10000, 2);
    program.Range(0x80000, 0x1000, 1);
    for (int step = 0; step < 20; step++) {
        if (step == 10) {
            program.Call(CST_CALL_FLUSH, CST_NONE, 0, "cuMemFreeHost", CST_SCOPE_P);
            program.Call(CST_CALL_MEMORY_GONE);
            program.Range(0, 0, 0, 0, 1, 0x80000); /* nobody's memory */
        }
        program.Launch(kernel, stream, 0x10000);
        program.Move(in, stream, 0x12000, 0x80000, 256);
        program.Launch(kernel, stream, 0x10000);
        program.Sync(stream);
    }
    EXPECT_EQ(Play(program).counters.eager_by[CUS_EAGER_UNSUPPORTED], 10u);
}

TEST(Player, LoopWithoutAWaitConverges) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 30);
    for (int turn = 0; turn < 200; turn++)
        for (size_t i = 0; i < kernels.size(); i++)
            program.Launch(kernels[i], stream, i);
    whatif_played played = Play(program);
    EXPECT_GT(played.counters.in_graphs, 4000u);
    EXPECT_GT(played.counters.breaks[CUS_BREAK_LOOP], 0u);
    EXPECT_LT(played.counters.flushes[CUS_CAUSE_EXIT], 2u);
}

TEST(Player, WhatIsDeferredWhenTheTraceEndsGoesOut) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 30);
    Steps(program, 9, kernels, stream);
    for (int i = 0; i < 5; i++)
        program.Launch(kernels[i], stream, 100 + i);
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.flushes[CUS_CAUSE_EXIT], 1u);
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_FLUSHED], 5u);
}

// The pause is longer than hold_us: what was deferred before it goes out in it.
TEST(Player, WatchdogLooksAtTheTimeOfTheTrace) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 30);
    for (int step = 0; step < 6; step++) {
        for (size_t i = 0; i < kernels.size(); i++) {
            program.Launch(kernels[i], stream, i);
            if (i == 19 && step == 4)
                program.Wait(5000000);
        }
        program.Sync(stream);
    }
    EXPECT_EQ(Play(program, {{"hold_us", "1000"}}).counters.flushes[CUS_CAUSE_WATCHDOG], 1u);
    EXPECT_EQ(Play(program, {{"hold_us", "10000"}}).counters.flushes[CUS_CAUSE_WATCHDOG], 0u);
}

// A host that is slow fills small graphs only, and the trace says how slow it was.
TEST(Player, SizesFollowThePaceOfTheRecording) {
    uint64_t launches[2];
    for (int slow = 0; slow < 2; slow++) {
        Program program;
        uint32_t stream = program.Stream();
        auto kernels = Kernels(program, 30);
        for (int step = 0; step < 20; step++) {
            for (uint32_t kernel : kernels) {
                program.Launch(kernel, stream);
                program.Wait(slow ? 100000 : 0);
            }
            program.Sync(stream);
        }
        whatif_played played =
            Play(program, {{"segment_first", "4"}, {"segment_max", "1024"}, {"hold_us", "1000"}});
        launches[slow] = played.counters.graph_launches;
        EXPECT_EQ(played.counters.flushes[CUS_CAUSE_WATCHDOG], 0u) << "each is filled in time";
    }
    EXPECT_GT(launches[1], launches[0]);
}

// Where the recorded program waits for the GPU for long, a slow host gets small graphs.
TEST(Player, SizesFollowTheWaitsOfTheRecording) {
    auto launches = [](uint64_t wait_ns, const char *api) {
        Program program;
        uint32_t stream = program.Stream();
        auto kernels = Kernels(program, 60);
        for (int step = 0; step < 40; step++) {
            for (uint32_t kernel : kernels) {
                program.Launch(kernel, stream);
                program.Wait(8000);
            }
            program.Call(CST_CALL_FLUSH, stream, 0, api, CST_SCOPE_T);
            program.Call(CST_CALL_STEP_END, stream, 0, api);
            program.Wait(wait_ns);
            program.Call(CST_CALL_WAITED, stream, 0, api);
        }
        return Play(program, {{"segment_first", "4"}, {"segment_max", "1024"}, {"hold_us", "1000"}})
            .counters.graph_launches;
    };
    uint64_t few = launches(1000, "cuStreamSynchronize");
    EXPECT_GT(launches(400000, "cuStreamSynchronize"), few + few / 4);
    EXPECT_EQ(launches(400000, "cuStreamQuery"), few) << "a program that asks does not wait";
}

// 3000 launches a step, a graph of `nodes` built in `us` behind each step that `built` names.
using Built = std::map<int, std::vector<std::pair<uint32_t, uint32_t>>>;
uint64_t InGraphs(const Built &built) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 3000);
    for (int step = 0; step < 8; step++) {
        Steps(program, 1, kernels, stream);
        auto of = built.find(step);
        if (of == built.end())
            continue;
        for (auto [nodes, us] : of->second) {
            auto *launch = (cst_launch *)program.Add(CST_LAUNCH, sizeof(cst_launch));
            launch->head.flags = CST_BUILT;
            launch->stream = stream;
            launch->n = nodes;
            launch->host_ns = us * 1000;
        }
    }
    return Play(program, {{"segment_max", "64"}, {"build_us", "700"}, {"build_nodes", "1024"}})
        .counters.in_graphs;
}

// Building is spread over steps by the time that it takes, and what it took is in the trace.
TEST(Player, GraphsTakeAsLongToBuildAsRecorded) {
    EXPECT_GT(InGraphs({}), 5u * 3000) << "nothing is known of it";
    EXPECT_GT(InGraphs({{7, {{64, 100}}}}), 5u * 3000);
    uint64_t slow = InGraphs({{7, {{64, 10000}}}});
    EXPECT_LT(slow, 3000u) << "a graph a step";
    EXPECT_GT(slow, 0u);
}

// Much of what a small graph takes is no matter of its nodes.
TEST(Player, GraphsTakeAsLongToBuildAsOnesOfTheirSizeDid) {
    uint64_t alone = InGraphs({{7, {{64, 100}}}});
    EXPECT_EQ(InGraphs({{7, {{64, 100}, {2, 500}}}}), alone);
    EXPECT_EQ(InGraphs({{7, {{2, 500}, {64, 100}}}}), alone);
    EXPECT_LT(InGraphs({{7, {{2, 500}}}}), alone) << "a quarter of a millisecond a node";
}

// A host is slow at times.
TEST(Player, GraphsTakeAsLongToBuildAsAtThatTime) {
    uint64_t slow = InGraphs({{7, {{64, 10000}}}});
    EXPECT_GT(InGraphs({{3, {{64, 100}}}, {4, {{64, 10000}}}}), 4 * slow) << "built by then";
    EXPECT_LT(InGraphs({{3, {{64, 10000}}}, {4, {{64, 100}}}}), 2 * slow);
    EXPECT_EQ(InGraphs({{7, {{64, 10000}, {64, 100}}}}), slow) << "the first of them is nearer";
}

// What a step may build goes into segments that have no exec yet, also where those in front of them
// earned a second one.
TEST(Player, FirstExecsComeBeforeSecondOnes) {
    auto play = [](int steps) {
        Program program;
        uint32_t stream = program.Stream();
        auto kernels = Kernels(program, 3000);
        for (int step = 0; step < steps; step++) {
            for (size_t i = 0; i < kernels.size(); i++)
                program.Launch(kernels[i], stream, 100 + i + (i % 2 ? step % 3 * 10000 : 0));
            program.Sync(stream);
        }
        return Play(program, {{"segment_max", "64"}, {"build_us", "0"}, {"build_nodes", "128"}})
            .counters;
    };
    cus_counters c = play(40), first = play(14), later = play(20);
    EXPECT_GT(c.built, 3000u / 64 * 2) << "second ones come in the end";
    EXPECT_GT(c.in_graphs, 33u * 3000) << "384 nodes a step: all have an exec after eight";
    EXPECT_LE(first.built, 55u);
    EXPECT_GT(later.built, 70u) << "and then the others come, as soon as their params have";
}

TEST(Player, NothingIsDeferredWhileTheProgramCaptures) {
    Program program;
    uint32_t stream = program.Stream(), other = program.Stream();
    auto kernels = Kernels(program, 30);
    Steps(program, 5, kernels, stream);
    program.Call(CST_CALL_CAPTURE_BEGAN, other);
    Steps(program, 2, kernels, stream);
    program.Call(CST_CALL_CAPTURE_ENDED, other);
    Steps(program, 3, kernels, stream);
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_PASSTHROUGH], 4u) << "where segments would begin";
    EXPECT_EQ(played.counters.in_graphs, 180u);
}

TEST(Player, CallsMeanWhatTheyMeantToTheEngine) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 30);
    Steps(program, 5, kernels, stream);
    program.Call(CST_CALL_PROFILING, CST_NONE, 1);
    Steps(program, 1, kernels, stream);
    program.Call(CST_CALL_PROFILING, CST_NONE, 0);
    program.Call(CST_CALL_SUSPEND, CST_NONE, 1);
    Steps(program, 1, kernels, stream);
    program.Call(CST_CALL_SUSPEND, CST_NONE, 0);
    Steps(program, 1, kernels, stream);
    program.Call(CST_CALL_STREAM_GONE, stream);
    program.Call(CST_CALL_FLUSH, CST_NONE, 0, "cuModuleUnload", CST_SCOPE_P);
    program.Call(CST_CALL_CODE_GONE);
    uint32_t again = program.Stream();
    Steps(program, 3, kernels, again);
    program.Call(CST_CALL_OFF);
    Steps(program, 2, kernels, again);
    program.Call(CST_CALL_DRAIN);
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.in_graphs, 30u * (3 + 1 + 1));
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_PASSTHROUGH], 2u + 30 + 60)
        << "where segments would begin; suspended; off";
    EXPECT_EQ(played.counters.fallbacks[CUS_FALLBACK_OFF], 1u);
    /* ... where the question is another one: the profiler is not minded. */
    EXPECT_EQ(Play(program, {{"profile", "ignore"}}).counters.in_graphs, 30u * (3 + 1 + 1 + 1));
}

TEST(Player, FlushesAreCountedUnderTheirApi) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 30);
    Steps(program, 5, kernels, stream);
    for (int i = 0; i < 20; i++)
        program.Launch(kernels[i], stream, 100 + i);
    program.Call(CST_CALL_FLUSH, stream, 0, "cuEventRecord", CST_SCOPE_S);
    program.Sync(stream);
    uint64_t by_api = 0;
    whatif_played played = Play(program);
    for (unsigned row = 0; row < CUS_API_ROWS_MAX; row++)
        by_api += played.counters.flushes[row];
    EXPECT_EQ(by_api, 1u);
    EXPECT_EQ(played.counters.flushes[CUS_CAUSE_UNKNOWN_API], 0u);
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_FLUSHED], 4u);
}

TEST(Player, LaunchesThatFailedFailAgain) {
    Program program;
    uint32_t stream = program.Stream();
    auto kernels = Kernels(program, 30);
    for (int step = 0; step < 10; step++) {
        for (size_t i = 0; i < kernels.size(); i++)
            program.Launch(kernels[i], stream, i, 0, 1, i == 15 ? 2048 : 32)->result =
                i == 15 ? 1 : 0;
        program.Sync(stream);
    }
    whatif_played played = Play(program);
    EXPECT_LE(played.counters.in_graphs, 8u * 29) << "the one that fails never becomes a node";
    EXPECT_GE(played.counters.eager_by[CUS_EAGER_OBSERVING], 60u + 8) << "and is never known";
}

TEST(Player, StreamsOfOtherSortsAreLeftAlone) {
    Program program;
    uint32_t own = program.Stream(CST_STREAM_PER_THREAD, 0),
             green = program.Stream(CST_STREAM_UNKNOWN),
             legacy = program.Stream(CST_STREAM_LEGACY, 0);
    auto kernels = Kernels(program, 30);
    uint32_t why = program.String("stream");
    Steps(program, 10, kernels, own);
    for (int step = 0; step < 10; step++) {
        for (uint32_t kernel : kernels)
            program.Launch(kernel, green)->why = why;
        program.Sync(green);
    }
    EXPECT_EQ(Play(program).counters.in_graphs, 0u);
    Program default_stream;
    legacy = default_stream.Stream(CST_STREAM_LEGACY, 0);
    Steps(default_stream, 10, Kernels(default_stream, 30), legacy);
    EXPECT_EQ(Play(default_stream).counters.in_graphs, 240u);
}

TEST(Player, KindsWithoutParamsAreTakenForOnesThatNeverChange) {
    Program program;
    uint32_t stream = program.Stream();
    std::vector<uint32_t> kernels;
    for (int i = 0; i < 30; i++)
        kernels.push_back(program.Kernel("k" + std::to_string(i), CST_KIND_OPAQUE));
    kernels[12] = program.Kernel("refused", CST_KIND_OPAQUE | CST_KIND_NO_NODE);
    Steps(program, 10, kernels, stream, 1);
    whatif_played played = Play(program);
    EXPECT_EQ(played.counters.eager_by[CUS_EAGER_UNSUPPORTED], 9u) << "the first is not known";
    EXPECT_GE(played.counters.in_graphs, 6u * 29);
    EXPECT_EQ(played.counters.patched_nodes, 0u);
    EXPECT_EQ(played.opaque, 300u);
}

TEST(Player, StartsWithoutAnyEvent) {
    Program program;
    EXPECT_EQ(Play(program).counters.steps, 0u);
}

TEST(Run, SaysWhyItCouldNotPlay) {
    Program program;
    whatif_played played;
    char error[512] = "";
    const char *name = "warmup", *value = "many";
    whatif_setup setup = {"", nullptr, &name, &value, 1, nullptr, nullptr};
    EXPECT_FALSE(whatif_run(program.Trace(), &setup, &played, error, sizeof error));
    EXPECT_NE(std::string(error).find("configuration"), std::string::npos) << error;
}

} // namespace
} // namespace whatif
