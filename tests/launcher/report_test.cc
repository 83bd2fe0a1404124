// report, on traces of which every number is known.
#include "tests/launcher/traces.h"

namespace {

// ---- report ----

TEST(Report, KernelsOfTheGoldenTrace) {
    sim::Json j = Report("kernels", golden);
    EXPECT_EQ(j.text["report"], "kernels");
    EXPECT_EQ(j.text["about.trace"], golden);
    EXPECT_EQ(j.text["about.program"], "decode --tokens 3");
    EXPECT_EQ(j.Number("about.ops"), 21);
    struct {
        const char *name;
        double calls, in_graphs, eager, flushed, open, patched, breaks, host;
    } rows[] = {{"norm", 6, 4, 2, 0, 0, 0, 0, 600},
                {"gemm", 6, 2, 1, 2, 1, 0, 0, 600},
                {"attention", 3, 0, 3, 0, 0, 0, 2, 2700},
                {"cuMemsetD32Async", 3, 2, 1, 0, 0, 0, 0, 300},
                {"cuMemcpyDtoDAsync", 3, 2, 1, 0, 0, 1, 0, 300}};
    for (const auto &row : rows) {
        std::string at = Row(j, "name", row.name);
        EXPECT_EQ(j.Number(at + "calls"), row.calls) << row.name;
        EXPECT_EQ(j.Number(at + "in_graphs"), row.in_graphs) << row.name;
        EXPECT_EQ(j.Number(at + "eager"), row.eager) << row.name;
        EXPECT_EQ(j.Number(at + "flushed"), row.flushed) << row.name;
        EXPECT_EQ(j.Number(at + "open"), row.open) << row.name;
        EXPECT_EQ(j.Number(at + "patched"), row.patched) << row.name;
        EXPECT_EQ(j.Number(at + "breaks"), row.breaks) << row.name;
        EXPECT_EQ(j.Number(at + "host_ns"), row.host) << row.name;
        EXPECT_EQ(j.Number(at + "host_avg_ns"), row.host / row.calls) << row.name;
        EXPECT_NEAR(j.Number(at + "share"), 100 * row.in_graphs / row.calls, 0.001) << row.name;
    }
    EXPECT_FALSE(j.Has("rows.5.calls"));           // what was never launched is no row
    EXPECT_EQ(j.text["rows.0.name"], "attention"); // by host time
}

TEST(Report, PercentileIsTheLeastThat99Of100DoNotExceed) {
    std::string path = Make("p99.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b"), c = s->Kernel("c"), d = s->Kernel("d");
        for (uint32_t i = 0; i < 1000; i++) { // 1 to 1000, shuffled
            s->host_ns = i * 7 % 1000 + 1;
            s->Op(1, a);
        }
        for (uint32_t i = 0; i < 100; i++) {
            s->host_ns = i == 50 ? 9999 : 5;
            s->Op(1, b);
            s->host_ns = i > 97 ? 100 + i : 7;
            s->Op(1, c);
        }
        s->host_ns = 42;
        s->Op(1, d);
    });
    sim::Json j = Report("kernels", path);
    EXPECT_EQ(j.Number(Row(j, "name", "a") + "host_p99_ns"), 990);
    EXPECT_EQ(j.Number(Row(j, "name", "b") + "host_p99_ns"), 5);
    EXPECT_EQ(j.Number(Row(j, "name", "c") + "host_p99_ns"), 198);
    EXPECT_EQ(j.Number(Row(j, "name", "d") + "host_p99_ns"), 42);
    EXPECT_EQ(j.Number(Row(j, "name", "a") + "host_ns"), 500500);
}

TEST(Report, PatchedNodesAreThoseThatChanged) {
    std::string path = Make("patched.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b"), c = s->Kernel("c", 16, CST_KIND_OPAQUE);
        for (uint64_t turn = 0; turn < 5; turn++) {
            s->param = turn;
            s->Op(1, a); // another param each time
            s->param = 0;
            s->grid = turn == 3 ? 2 : 1;
            s->Op(1, b); // another grid in turn 3, and back in turn 4
            s->grid = 1;
            s->param = turn;
            s->Op(1, c); // its params are not known
            s->Launch(1, 3, 1, turn ? CST_PATCHED : CST_BUILT, turn ? 1 : 0);
            s->Sync(1);
        }
        s->Op(1, a), s->Op(1, b), s->Op(1, c); // built anew: nothing is patched
        s->Launch(1, 3, 1, CST_BUILT);
        // Another variant of the segment holds ops of its own.
        s->Op(1, a), s->Op(1, b), s->Op(1, c);
        s->Launch(1, 3, 1, CST_BUILT)->variant = 1;
    });
    sim::Json j = Report("kernels", path);
    EXPECT_EQ(j.Number(Row(j, "name", "a") + "patched"), 4);
    EXPECT_EQ(j.Number(Row(j, "name", "b") + "patched"), 2);
    EXPECT_EQ(j.Number(Row(j, "name", "c") + "patched"), 0);
    j = Report("segments", path);
    EXPECT_EQ(j.Number("rows.0.variants"), 2);
    EXPECT_EQ(j.Number("rows.0.segments"), 1);
}

// The library calls a launch exact if its shapes are: nodes may be patched nevertheless.
TEST(Report, NodesOfExactLaunchesArePatchedToo) {
    std::string path = Make("exact.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b");
        for (uint64_t turn = 0; turn < 5; turn++) {
            s->param = turn;
            s->Op(1, a);
            s->param = 0;
            s->Op(1, b);
            s->Launch(1, 2, 1, turn ? CST_EXACT : CST_BUILT, turn ? 1 : 0);
            s->Sync(1);
        }
    });
    sim::Json j = Report("kernels", path);
    EXPECT_EQ(j.Number(Row(j, "name", "a") + "patched"), 4);
    EXPECT_EQ(j.Number(Row(j, "name", "b") + "patched"), 0);
    j = Report("segments", path);
    EXPECT_EQ(j.Number("rows.0.patched_nodes"), 4);
}

// After memory was freed a memset or copy is patched to the values that it has; a wait is no node;
// of a record of an event the number of patched nodes tells.
TEST(Report, PatchedNodesThatTheValuesDoNotTell) {
    std::string path = Make("same.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), copy = s->Copy(1), record = s->Record(), wait = s->Wait();
        const uint32_t patched[] = {0, 2, 1, 2, 3};
        for (uint64_t turn = 0; turn < 5; turn++) {
            s->param = turn;
            s->Op(1, a);
            s->Op(1, wait);
            if (turn < 3) // then the event stays
                s->param = 77;
            s->Op(1, record);
            s->param = 5;
            s->Op(1, copy);
            s->Launch(1, 4, 1, turn ? CST_EXACT : CST_BUILT, patched[turn]);
        }
    });
    // Turn 1: a and the copy. 2: a. 3: a and the record, or the copy. 4: all three.
    sim::Json j = Report("kernels", path);
    EXPECT_EQ(j.Number(Row(j, "name", "a") + "patched"), 4);
    EXPECT_EQ(j.Number(Row(j, "op", "wait") + "patched"), 0);
    EXPECT_EQ(j.Number(Row(j, "op", "copy") + "patched") +
                  j.Number(Row(j, "op", "record") + "patched"),
              4);
}

// The recorder says with each launch how large its graph is.
TEST(Report, TheMemoryOfAGraphCountsOnce) {
    std::string path = Make("bytes.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a");
        for (uint32_t turn = 0; turn < 10; turn++) {
            s->Op(1, a), s->Op(1, a);
            cst_launch *launch = s->Launch(1, 2, 1 + turn % 2, turn < 2 ? CST_BUILT : CST_EXACT);
            launch->bytes = 1000;
            s->Op(2, a), s->Op(2, a);
            launch = s->Launch(2, 2, 1, turn ? CST_EXACT : CST_BUILT);
            launch->bytes = turn ? 0 : 4000; // or with its building alone
            launch->variant = 3;
        }
    });
    sim::Json j = Report("segments", path);
    EXPECT_EQ(j.Number("rows.0.launches"), 20);
    EXPECT_EQ(j.Number("rows.0.segments"), 3);
    EXPECT_EQ(j.Number("rows.0.variants"), 3);
    EXPECT_EQ(j.Number("rows.0.bytes"), 6000);
}

TEST(Report, AGraphWithBranchesIsOneLaunch) {
    std::string path = Make("branches.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b");
        for (int turn = 0; turn < 3; turn++) {
            s->Op(1, a), s->Op(2, b), s->Op(1, a);
            s->Branch(2, 1);
            s->Launch(1, 3, 1, turn ? CST_EXACT : CST_BUILT)->bytes = 100;
            s->Eager(1, b, "rule", "rule");
            s->Sync(1);
            s->Sync(2);
        }
    });
    sim::Json j = Report("segments", path);
    EXPECT_EQ(j.Number("rows.0.launches"), 3);
    EXPECT_EQ(j.Number("rows.0.nodes"), 3);
    EXPECT_EQ(j.Number("rows.0.ops"), 9);
    EXPECT_EQ(j.Number("rows.0.bytes"), 100);
    EXPECT_EQ(j.text["rows.0.list"], "a x2, b");
    EXPECT_EQ(j.text["rows.0.ended"], "eager:rule 3") << "behind its own stream's ops";
    EXPECT_FALSE(j.Has("rows.1.launches"));
}

// Records of events are no part of a signature, but ops like others.
TEST(Report, TheShareOfASignatureIsOfAllItsOps) {
    std::string path = Make("shares.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), record = s->Record();
        for (uint32_t records : {0u, 2u}) {
            s->Op(1, a), s->Op(1, a);
            for (uint32_t i = 0; i < records; i++)
                s->Op(1, record);
            s->Launch(1, 2 + records, 1 + records, CST_BUILT);
            s->Sync(1);
        }
    });
    sim::Json j = Report("cache", path);
    EXPECT_EQ(j.Number("rows.0.steps"), 2);
    EXPECT_EQ(j.Number("rows.0.share"), 100);
}

TEST(Report, KernelsOfOneNameAreOneRow) {
    std::string path = Make("names.cst", [](Synth *s) {
        s->Eager(1, s->Kernel("_ZN1a4kernIfEEvT_"), "rule", "rule");
        s->Eager(1, s->Kernel("_ZN1a4kernIdEEvT_"), "rule", "rule");
        s->Eager(1, s->Kernel("kern"), "rule", "rule");
        s->Eager(1, s->Memset(1), "rule", "rule");
    });
    sim::Json j = Report("kernels", path);
    EXPECT_EQ(j.Number(Row(j, "name", "kern") + "calls"), 3);
    j = Report("kernels", path, {"--names", "demangled"});
    EXPECT_EQ(j.Number(Row(j, "name", "void a::kern<float>(float)") + "calls"), 1);
    EXPECT_EQ(j.Number(Row(j, "name", "void a::kern<double>(double)") + "calls"), 1);
    EXPECT_EQ(j.Number(Row(j, "name", "kern") + "calls"), 1);
    EXPECT_EQ(j.text[Row(j, "name", "cuMemsetD8Async") + "op"], "memset");
}

TEST(Report, SegmentsOfTheGoldenTrace) {
    sim::Json j = Report("segments", golden);
    std::string one = Row(j, "list", "norm, gemm");
    std::string two = Row(j, "list", "norm, cuMemsetD32Async, cuMemcpyDtoDAsync");
    EXPECT_FALSE(j.Has("rows.2.ops"));
    const std::tuple<const char *, double, double> numbers[] = {{"launches", 2, 2},
                                                                {"nodes", 2, 3},
                                                                {"ops", 4, 6},
                                                                {"segments", 1, 1},
                                                                {"variants", 1, 1},
                                                                {"exact", 1, 0},
                                                                {"patched", 0, 1},
                                                                {"built", 1, 1},
                                                                {"patched_nodes", 0, 1},
                                                                {"host_ns", 4000, 4000},
                                                                {"build_ns", 50000, 50000},
                                                                {"bytes", 4096, 6144},
                                                                {"share", 400.0 / 21, 600.0 / 21}};
    for (const auto &[key, first, second] : numbers) {
        EXPECT_NEAR(j.Number(one + key), first, 0.001) << key;
        EXPECT_NEAR(j.Number(two + key), second, 0.001) << key;
    }
    EXPECT_EQ(j.text[one + "ended"], "eager:rule 2");
    EXPECT_EQ(j.text[two + "ended"], "call:cuStreamSynchronize 2");
}

TEST(Report, SegmentsSayWhatCameBehindThem) {
    std::string path = Make("ended.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b");
        for (int i = 0; i < 7; i++) {
            s->Op(1, a), s->Op(1, a);
            s->Launch(1, 2, static_cast<uint32_t>(i % 2), CST_EXACT);
            if (i < 2) {
                s->Op(1, b); // another segment
                s->Launch(1, 1, 9, CST_EXACT);
            } else if (i < 5) {
                s->Op(1, b);
                s->Flush(1, 1, "cuMemAlloc", "api");
            }
            if (i < 6)
                s->Sync(1);
        }
    });
    sim::Json j = Report("segments", path);
    std::string row = Row(j, "list", "a x2");
    // The three most frequent ones, and of those that are as frequent the first.
    EXPECT_EQ(j.text[row + "ended"],
              "flush:cuMemAlloc 3, next segment 2, call:cuStreamSynchronize 1");
    EXPECT_EQ(j.Number(row + "segments"), 2);
    EXPECT_EQ(j.text[Row(j, "list", "b") + "ended"], "call:cuStreamSynchronize 2");
}

TEST(Report, CacheOfTheGoldenTrace) {
    sim::Json j = Report("cache", golden);
    EXPECT_EQ(j.Number("rows.0.steps"), 3);
    EXPECT_EQ(j.Number("rows.0.ops"), 6);
    EXPECT_EQ(j.Number("rows.0.in_graphs"), 10);
    EXPECT_EQ(j.Number("rows.0.graphs"), 4);
    EXPECT_NEAR(j.Number("rows.0.share"), 1000.0 / 18, 0.001);
    EXPECT_EQ(j.Number("rows.0.first_seen_ns"), 0);
    EXPECT_EQ(j.Number("rows.0.time_avg_ns"), (6100 + 10100 + 8100) / 3);
    EXPECT_EQ(j.Number("rows.1.steps"), 1);
    EXPECT_EQ(j.text["rows.1.list"], "gemm x3");
    EXPECT_EQ(j.Number("rows.1.first_seen_ns"), 27000);
    EXPECT_FALSE(j.Has("rows.2.steps"));
}

TEST(Report, SignaturesTellOrderAndShapeAndNotParams) {
    std::string path = Make("signatures.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b"), c = s->Kernel("c");
        for (auto [x, y] : {std::pair{a, b}, {b, a}, {c, b}, {b, b}, {a, b}}) {
            s->param++;
            s->Eager(1, x, "rule", "rule");
            s->Eager(1, y, "rule", "rule");
            s->Sync(1);
        }
        s->grid = 7;
        s->Eager(1, a, "rule", "rule");
        s->grid = 1;
        s->Eager(1, b, "rule", "rule");
    });
    sim::Json j = Report("cache", path);
    EXPECT_TRUE(j.Has("rows.4.steps"));
    EXPECT_FALSE(j.Has("rows.5.steps"));
    EXPECT_EQ(j.Number("rows.0.steps"), 2);
}

TEST(Report, BreaksOfTheGoldenTrace) {
    sim::Json j = Report("breaks", golden);
    struct {
        const char *key, *value, *how;
        double count, ops, runs;
    } rows[] = {{"reason", "observing", "eager", 5, 5, 0},
                {"reason", "rule", "eager", 3, 3, 2},
                {"by", "cuEventRecord", "flush", 1, 2, 0},
                {"how", "open", "open", 1, 1, 0}};
    for (const auto &row : rows) {
        std::string at = Row(j, row.key, row.value);
        EXPECT_EQ(j.text[at + "how"], row.how);
        EXPECT_EQ(j.Number(at + "count"), row.count) << row.value;
        EXPECT_EQ(j.Number(at + "ops"), row.ops) << row.value;
        EXPECT_EQ(j.Number(at + "runs"), row.runs) << row.value;
        EXPECT_NEAR(j.Number(at + "share"), 100 * row.ops / 21, 0.001) << row.value;
    }
    EXPECT_EQ(j.text[Row(j, "by", "cuEventRecord") + "reason"], "api");
    EXPECT_FALSE(j.Has("rows.4.ops"));
}

TEST(Report, CoverageOfTheGoldenTrace) {
    sim::Json j = Report("coverage", golden);
    EXPECT_EQ(j.text["about.overall"], "47.6 %");
    double in_graphs = 0;
    for (int i = 0; i < 4; i++)
        in_graphs += j.Number("rows." + std::to_string(i) + ".in_graphs");
    EXPECT_EQ(in_graphs, 10);
    EXPECT_EQ(j.Number("rows.0.eager"), 6);
    EXPECT_EQ(j.Number("rows.1.stream"), 2);
    EXPECT_EQ(j.Number("rows.1.flushed"), 2);
    EXPECT_EQ(j.Number("rows.1.open"), 1);
    EXPECT_EQ(j.text["rows.1.ended"], "");
    EXPECT_EQ(j.Number("rows.3.step"), 2);
    EXPECT_EQ(j.Number("rows.3.graphs"), 2);
    EXPECT_EQ(j.Number("rows.3.time_ns"), 8100);
    EXPECT_EQ(j.text["rows.3.ended"], "cuStreamSynchronize");
    EXPECT_EQ(j.text["rows.0.signature"], j.text["rows.3.signature"]);
    EXPECT_NE(j.text["rows.0.signature"], j.text["rows.1.signature"]);
}

TEST(Report, FormsSortsAndFields) {
    EXPECT_EQ(Says({"report", "kernels", "--format", "csv", "--fields", "name,calls,share",
                    "--sort", "name", golden}),
              "name,calls,share\nattention,3,0\ncuMemcpyDtoDAsync,3,66.6667\n"
              "cuMemsetD32Async,3,66.6667\ngemm,6,33.3333\nnorm,6,66.6667\n");
    EXPECT_EQ(Says({"report", "kernels", "--format=csv", "--fields=calls,name", "--sort=-host_ns",
                    "--top=2", golden}),
              "calls,name\n3,cuMemsetD32Async\n3,cuMemcpyDtoDAsync\n");
    EXPECT_EQ(Says({"report", "kernels", "--format", "md", "--fields", "host_ns,share,name",
                    "--top", "2", golden}),
              "| host_ns | share | name |\n| ---: | ---: | --- |\n"
              "| 2700 | 0.0 % | attention |\n| 600 | 66.7 % | norm |\n");
    std::string text =
        Says({"report", "kernels", "--fields", "host_ns,op,share,name", "--top", "2", golden});
    EXPECT_EQ(text.substr(text.find("host_ns")), "host_ns  op       share  name\n"
                                                 "   2700  launch   0.0 %  attention\n"
                                                 "    600  launch  66.7 %  norm\n");
    EXPECT_EQ(text.substr(0, 36), "# trace: tests/golden/trace-v1.cst\n#");
    ExpectJsonLines(Says({"dump", golden}));
    for (const char *name : {"kernels", "segments", "cache", "breaks", "coverage"})
        for (const char *format : {"table", "csv", "json", "md"})
            EXPECT_NE(Says({"report", name, "--format", format, golden}), "");
}

TEST(Report, WhatDoesNotExistIsToldWithTheNearest) {
    EXPECT_TRUE(Has(Fails(2, {"report", "kernal", golden}), "the nearest is 'kernels'"));
    EXPECT_TRUE(Has(Fails(2, {"report", "kernels", "--sort", "host", golden}),
                    "kernels has no field 'host'; the nearest is 'host_ns'"));
    EXPECT_TRUE(Has(Fails(2, {"report", "breaks", "--fields", "ops,cout", golden}),
                    "breaks has no field 'cout'; the nearest is 'count'"));
    EXPECT_TRUE(Has(Fails(2, {"report", "cache", "--format", "cvs", golden}), "is csv"));
    EXPECT_TRUE(Has(Fails(2, {"report", "cache", "--formt", "csv", golden}), "is --format"));
    EXPECT_TRUE(Has(Fails(2, {"report", "cache", "--top", "0", golden}), "from 1 on"));
    EXPECT_TRUE(Has(Fails(2, {"report", "cache"}), "TRACE is missing"));
    EXPECT_TRUE(Has(Fails(2, {"report"}), "kernels, segments, cache, breaks, coverage"));
    EXPECT_TRUE(Has(Fails(2, {"report", "cache", golden, golden}), "more than is expected"));
    EXPECT_TRUE(Has(Fails(2, {"report", "cache", golden, "--sort"}), "--sort: FIELD is missing"));
}

} // namespace
