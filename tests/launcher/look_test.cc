// Promise: info, dump, report and diff print the right numbers, on traces whose numbers are all
// known.
#include <fcntl.h>

#include "tests/launcher/traces.h"

namespace {

// What Python's reader of JSON, which is a strict one, says of each line.
void ExpectJsonLines(const std::string &text) {
    Result r =
        RunProgram({"/usr/bin/env", "-u", "LD_PRELOAD", "python3", "-c",
                    "import json,sys\nfor l in sys.stdin.buffer: json.loads(l.decode('utf-8'))"},
                   {}, text);
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

size_t Count(const std::string &text, const std::string &part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        n++;
    return n;
}

std::string Line(const std::string &text, size_t nth) {
    size_t at = 0;
    while (nth--)
        at = text.find('\n', at) + 1;
    return text.substr(at, text.find('\n', at) - at);
}

// ---- info ----

TEST(Info, SaysWhatIsInTheTrace) {
    sim::Json j = Parse(Says({"info", "--json", golden}));
    EXPECT_EQ(j.text["facts.argv.1"], "--tokens");
    EXPECT_EQ(j.text["closed"], "true");
    const std::pair<const char *, double> numbers[] = {{"version", 1},
                                                       {"torn_bytes", 0},
                                                       {"lost_records", 7},
                                                       {"lost_ops", 5},
                                                       {"ops", 21},
                                                       {"in_graphs", 10},
                                                       {"eager", 8},
                                                       {"flushed", 2},
                                                       {"open", 1},
                                                       {"share", 47.619},
                                                       {"segments", 2},
                                                       {"graph_launches", 4},
                                                       {"calls", 4},
                                                       {"flushes", 1},
                                                       {"steps", 4},
                                                       {"gpu_records", 0},
                                                       {"gpu_known", 0},
                                                       {"kinds.launch", 4},
                                                       {"kinds.memset", 1},
                                                       {"kinds.copy", 1},
                                                       {"kinds.opaque", 1},
                                                       {"threads.1.tid", 4712},
                                                       {"streams.0.ops", 18},
                                                       {"streams.0.steps", 3},
                                                       {"streams.1.priority", -1},
                                                       {"duration_ns", 32000}};
    for (const auto &[key, value] : numbers)
        EXPECT_NEAR(j.Number(key), value, 0.001) << key;
    std::string text = Says({"info", golden});
    for (const char *part :
         {"trace of version 1, 32.00 us", "lost: 7 records, 5 of them ops", "decode --tokens 3",
          "21: 10 in graphs (47.6 %), 8 eager, 2 flushed, 1 open", "4712 worker",
          "2: created, 0x5555, context 1, device 0, priority -1: 3 ops, 1 steps"})
        EXPECT_TRUE(Has(text, part)) << part << "\n" << text;
    EXPECT_FALSE(Has(text, "good order"));
    EXPECT_TRUE(Has(text, "GPU times        none (cusplice record --gpu-times)")) << text;
}

TEST(Info, SaysWhatIsMissing) {
    std::string bytes = ReadAll(golden), path = Write("torn.cst", "");
    WriteAll(path, bytes.substr(0, bytes.size() - 50));
    std::string text = Says({"info", path});
    EXPECT_TRUE(Has(text, "the recording did not end in good order")) << text;
    EXPECT_TRUE(Has(text, "bytes at its end are no whole block and left out")) << text;
    EXPECT_EQ(Parse(Says({"info", "--json", path})).text["closed"], "false");
    EXPECT_TRUE(Has(Says({"report", "kernels", path}), "# incomplete: "));
    path = Make("nofacts.cst", [](Synth *s) { s->Facts("{\"a\": nonsense}"); });
    EXPECT_TRUE(Has(Says({"info", path}), "its facts are not JSON"));
    ExpectJsonLines(Says({"info", "--json", path}));
    ExpectJsonLines(Says({"dump", path}));
}

// ---- dump ----

TEST(Dump, EachEventIsALineWithItsNames) {
    std::string text = Says({"dump", golden});
    ExpectJsonLines(text);
    EXPECT_EQ(Count(text, "\n"), 34u); // the header and 33 events
    EXPECT_EQ(Count(text, "\"type\": \"op\""), 21u);
    EXPECT_EQ(Count(text, "\"outcome\": \"graph\""), 10u);
    EXPECT_EQ(Count(text, "\"outcome\": \"eager\""), 8u);
    EXPECT_EQ(Count(text, "\"outcome\": \"flushed\""), 2u);
    EXPECT_EQ(Count(text, "\"outcome\": \"open\""), 1u);
    EXPECT_EQ(Count(text, "\"type\": \"graph\""), 4u);
    EXPECT_EQ(Count(text, "\"type\": \"call\""), 4u);
    EXPECT_EQ(Count(text, "\"type\": \"segment\""), 2u);
    EXPECT_EQ(Count(text, "\"type\": \"flush\""), 1u);
    EXPECT_EQ(Count(text, "\"type\": \"lost\""), 1u);
    sim::Json header = Parse(Line(text, 0));
    EXPECT_EQ(header.text["type"], "header");
    EXPECT_EQ(header.text["facts.gpu"], "simulator");
    EXPECT_EQ(header.text["streams.1.handle"], "0x5555");
    sim::Json op = Parse(Line(text, 2));
    EXPECT_EQ(op.text["name"], "gemm");
    EXPECT_EQ(op.text["why"], "observing");
    EXPECT_EQ(op.Number("ns"), 1000);
    EXPECT_EQ(op.Number("block.0"), 32);
    op = Parse(Line(text, 5));
    EXPECT_EQ(op.text["kind"], "memset");
    EXPECT_EQ(op.Number("elements"), 256);
}

TEST(Dump, NamesHaveThreeForms) {
    EXPECT_TRUE(Has(Says({"dump", "--names", "mangled", golden}), "\"_ZN5model4gemmIfEEvPT_i\""));
    EXPECT_TRUE(Has(Says({"dump", "--names=demangled", golden}),
                    "\"void model::gemm<float>(float*, int)\""));
    EXPECT_TRUE(Has(Fails(2, {"dump", "--names", "bas", golden}), "the nearest is base"));
}

TEST(Dump, StepsAndStreamsAreSelected) {
    std::string text = Says({"dump", "--steps", "1-2", "--stream", "1", golden});
    EXPECT_EQ(Count(text, "\"type\": \"op\""), 12u);
    EXPECT_EQ(Count(text, "\"stream\": 2"), 0u);
    EXPECT_EQ(Count(text, "\"what\": \"step_end\""), 2u);
    text = Says({"dump", "--steps", "1", golden});
    EXPECT_EQ(Count(text, "\"type\": \"op\""), 6u);
    EXPECT_EQ(Count(text, "\"step\": 1"), 6u);
    text = Says({"dump", "--steps", "0", "--stream", "2", golden});
    EXPECT_EQ(Count(text, "\"type\": \"op\""), 3u);
    // The last step of the busiest stream: what begins behind it belongs to it.
    EXPECT_EQ(Count(Says({"dump", "--steps", "2", golden}), "\"type\": \"op\""), 9u);
    EXPECT_TRUE(Has(Fails(1, {"dump", "--steps", "1-3", golden}), "stream 1 has steps 0 to 2"));
    EXPECT_TRUE(Has(Fails(1, {"dump", "--stream", "3", golden}), "there is no stream 3"));
    EXPECT_TRUE(Has(Fails(2, {"dump", "--steps", "2-1", golden}), "A-B is expected"));
    EXPECT_TRUE(Has(Fails(2, {"dump", "--steps", "x", golden}), "A-B is expected"));
    EXPECT_TRUE(Has(Fails(2, {"dump", "--step", "1", golden}), "--step goes with --dot"));
}

TEST(Dump, DotDrawsGraphsAndMarksEagerOps) {
    std::string text = Says({"dump", "--dot", golden}); // the last step
    EXPECT_TRUE(Has(text, "stream 1, step 2, 6 ops, 5 of them in 2 graphs")) << text;
    EXPECT_EQ(Count(text, "subgraph cluster_"), 2u);
    EXPECT_EQ(Count(text, "octagon"), 1u);
    EXPECT_TRUE(Has(text, "op2 [label=\"attention\\neager: rule\""));
    EXPECT_TRUE(Has(text, "segment 2, patched, 1 patched"));
    EXPECT_EQ(Count(text, " -> "), 5u);
    EXPECT_EQ(Count(text, "{"), Count(text, "}"));
    text = Says({"dump", "--dot", "--step", "0", golden});
    EXPECT_EQ(Count(text, "octagon"), 6u);
    EXPECT_EQ(Count(text, "subgraph"), 0u);
    text = Says({"dump", "--dot", "--stream", "2", golden});
    EXPECT_EQ(Count(text, "\\nflushed: cuEventRecord"), 2u);
    EXPECT_EQ(Count(text, "\\nopen"), 1u);
}

TEST(Dump, HostileNamesBreakNothing) {
    std::string path = Make("hostile.cst", [](Synth *s) {
        uint32_t kind = s->Kernel("a\"b\\c\n|,<\x01\xff\xc3\xa9");
        s->Eager(1, kind, "e\"\n", "w\\\"");
        s->Sync(1);
    });
    std::string text = Says({"dump", path});
    ExpectJsonLines(text);
    EXPECT_TRUE(Has(text, "a\\\"b\\\\c\\u000a|,<\\u0001\xef\xbf\xbd\xc3\xa9")) << text;
    ExpectJsonLines(Says({"info", "--json", path}));
    text = Says({"report", "kernels", "--format", "csv", "--fields", "name,calls", path});
    EXPECT_EQ(text, "name,calls\n\"a\"\"b\\c?|,<??\xc3\xa9\",1\n");
    text = Says({"report", "kernels", "--format", "md", "--fields", "name,calls", path});
    EXPECT_TRUE(Has(text, "| a\"b\\\\c?\\|,&lt;??\xc3\xa9 |")) << text;
    EXPECT_EQ(Count(text, "\n"), 3u);
    EXPECT_EQ(Count(Says({"report", "kernels", "--fields", "calls,name", path}), "a\"b\\c?|,<?"),
              1u);
    text = Says({"dump", "--dot", path});
    EXPECT_TRUE(Has(text, "[label=\"a\\\"b\\\\c?|,<?")) << text;
}

// ---- GPU times ----

// Two steps of a, b, b and a memset that came to nothing, with GPU times but for the last b; and a
// kernel that was launched in a graph of the program's own.
std::string MakeMeasured() {
    return Make("measured.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b"), set = s->Memset(4);
        s->GpuStream(1, 7);
        for (uint32_t step = 0; step < 2; step++) {
            for (uint32_t kind : {a, b, set, b})
                s->Eager(1, kind, "rule", "rule");
            s->Gpu(7, CST_GPU_KERNEL, "theirs", 99999);
            s->Gpu(7, CST_GPU_KERNEL, "a", 1000 + step * 501);
            s->Gpu(7, CST_GPU_KERNEL, "b", 30000);
            if (!step)
                s->Gpu(7, CST_GPU_KERNEL, "b", 60000);
            s->Sync(1);
        }
    });
}

TEST(GpuTimes, InfoSaysOfHowManyOps) {
    std::string path = MakeMeasured();
    sim::Json j = Parse(Says({"info", "--json", path}));
    EXPECT_EQ(j.Number("gpu_records"), 7);
    EXPECT_EQ(j.Number("gpu_known"), 5);
    std::string text = Says({"info", path});
    EXPECT_TRUE(Has(text, "GPU times        of 5 ops (62.5 %), from 7 records")) << text;
}

TEST(GpuTimes, DumpHasThemByOp) {
    std::string text = Says({"dump", MakeMeasured()});
    ExpectJsonLines(text);
    EXPECT_EQ(Parse(Line(text, 0)).Number("gpu_known"), 5);
    EXPECT_EQ(Count(text, "\"gpu_ns\": "), 5u);
    EXPECT_EQ(Count(text, "\"gpu_begin_ns\": "), 5u);
    std::vector<double> lengths;
    for (size_t i = 1; i < Count(text, "\n"); i++) {
        sim::Json event = Parse(Line(text, i));
        if (event.Has("gpu_ns"))
            lengths.push_back(event.Number("gpu_ns"));
    }
    EXPECT_EQ(lengths, (std::vector<double>{1000, 30000, 60000, 1501, 30000}));
    // The records are told to have begun 1000 ns after one another, from behind the ops.
    EXPECT_EQ(Parse(Line(text, 1)).Number("gpu_begin_ns"), 5000);
    EXPECT_EQ(Count(Says({"dump", golden}), "gpu_ns"), 0u);
}

TEST(GpuTimes, KernelsHaveThem) {
    std::string path = MakeMeasured();
    EXPECT_EQ(Says({"report", "kernels", "--format=csv", "--fields=name,calls,gpu_ns,gpu_avg_ns",
                    "--sort", "gpu_ns", path}),
              "name,calls,gpu_ns,gpu_avg_ns\nb,4,120000,40000\na,2,2501,1250\n"
              "cuMemsetD32Async,2,0,0\n");
    EXPECT_TRUE(Has(Says({"report", "kernels", path}), "  gpu_ns  gpu_avg_ns  op"));
    EXPECT_TRUE(Has(Says({"report", "kernels", "--format=md", path}), "| gpu_ns | gpu_avg_ns |"));
}

TEST(GpuTimes, WithoutThemOnlyProgramsSeeTheFields) {
    for (const char *format : {"table", "md"})
        EXPECT_FALSE(Has(Says({"report", "kernels", "--format", format, golden}), "gpu_"));
    for (const char *format : {"csv", "json"}) {
        std::string text = Says({"report", "kernels", "--format", format, golden});
        EXPECT_TRUE(Has(text, "gpu_ns") && Has(text, "gpu_avg_ns")) << text;
    }
    EXPECT_EQ(Says({"report", "kernels", "--format=md", "--fields=name,gpu_ns", "--top=1", golden}),
              "| name | gpu_ns |\n| --- | ---: |\n| attention | 0 ns |\n");
}

TEST(GpuTimes, WhatIfTakesThem) {
    std::string cost = Folder() + "/cost";
    WriteAll(cost, "[host]\neager_launch=1000\nmatched_launch=1\ngraph_launch=1\npatched_node=1\n"
                   "built_node=1\n[gpu]\ngraph_kernel=50\ngraph_seam=1\neager_kernel=70\n"
                   "small_kernel=20\n");
    auto ask = [&](const std::string &path, const char *format, const char *mode = "eager") {
        return Says({"whatif", "--mode", mode, "--cost", cost, "--format", format, path});
    };
    sim::Json j = Parse(ask(MakeMeasured(), "json"));
    EXPECT_EQ(j.Number("gpu_measured"), 5);
    // Eight ops a 70 ns, in 5 of them 20 ns are replaced by what was measured; two steps.
    double gpu = (8 * 70 - 5 * 20 + 122501) / 2000.0;
    EXPECT_NEAR(j.Number("whatif.predicted.gpu_us_per_step"), gpu, 0.06);
    EXPECT_NEAR(j.Number("whatif.predicted.host_us_per_step"), 4, 0.06);
    EXPECT_NEAR(j.Number("whatif.predicted.us_per_step"), gpu, 0.06);
    EXPECT_TRUE(Has(j.text["notes.0"] + j.text["notes.1"] + j.text["notes.2"] + j.text["notes.3"],
                    "the GPU runs 5 of 8 ops as long as was measured, the others are taken for "
                    "small kernels"));
    std::string text = ask(MakeMeasured(), "table");
    EXPECT_TRUE(Has(text, "predicted.us_per_step")) << text;
    EXPECT_FALSE(Has(text, "takes all kernels for small ones")) << text;
    // A mode that counts no steps has those of the baseline.
    j = Parse(ask(MakeMeasured(), "json", "off"));
    EXPECT_NEAR(j.Number("whatif.predicted.gpu_us_per_step"), gpu, 0.06);
    EXPECT_NEAR(j.Number("whatif.predicted.host_us_per_step"), 4, 0.06);
    // Without GPU times the host is what takes longer here.
    std::string without = Make("unmeasured.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a");
        for (int i = 0; i < 4; i++)
            s->Eager(1, a, "rule", "rule");
        s->Sync(1);
    });
    j = Parse(ask(without, "json"));
    EXPECT_EQ(j.Number("gpu_measured"), 0);
    EXPECT_NEAR(j.Number("whatif.predicted.gpu_us_per_step"), 0.28, 0.06);
    EXPECT_NEAR(j.Number("whatif.predicted.us_per_step"), 4, 0.06);
    EXPECT_TRUE(Has(ask(without, "table"), "GPU time takes all kernels for small ones"));
}

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
              "| 2.70 us | 0.0 % | attention |\n| 600 ns | 66.7 % | norm |\n");
    std::string text =
        Says({"report", "kernels", "--fields", "host_ns,op,share,name", "--top", "2", golden});
    EXPECT_EQ(text.substr(text.find("host_ns")), "host_ns  op       share  name\n"
                                                 "2.70 us  launch   0.0 %  attention\n"
                                                 " 600 ns  launch  66.7 %  norm\n");
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

// ---- diff ----

TEST(Diff, ATraceIsNotDifferentFromItself) {
    sim::Json j = Parse(Says({"diff", "--format", "json", golden, golden}));
    EXPECT_EQ(j.Number("about.steps_aligned"), 4);
    EXPECT_EQ(j.Number("about.steps_only_a"), 0);
    for (int i = 0; i < 5; i++) {
        std::string row = "rows." + std::to_string(i) + ".";
        EXPECT_EQ(j.Number(row + "calls_a"), j.Number(row + "aligned"));
        EXPECT_EQ(j.Number(row + "only_b") + j.Number(row + "gained") + j.Number(row + "lost") +
                      j.Number(row + "host_delta_ns"),
                  0);
        EXPECT_EQ(j.text[row + "in"], "both");
    }
}

// Steps of a, b; B defines its kernels in another order, has its steps at other times and in
// another order, and `a` in graphs.
TEST(Diff, StepsAreAlignedBySignatureAndOccurrence) {
    std::string a = Make("a.cst", [](Synth *s) {
        uint32_t x = s->Kernel("x"), y = s->Kernel("y"), only = s->Kernel("old");
        for (uint32_t grid : {1u, 2u, 1u, 2u, 1u}) {
            s->grid = grid;
            s->host_ns = 100 * grid;
            s->Eager(1, x, "observing", "observing");
            s->Op(1, y);
            s->Launch(1, 1, 1, CST_EXACT);
            s->Sync(1);
        }
        s->Eager(1, only, "rule", "rule");
    });
    std::string b = Make("b.cst", [](Synth *s) {
        uint32_t fresh = s->Kernel("new"), y = s->Kernel("y"), x = s->Kernel("x");
        s->now = 99000000;
        for (uint32_t grid : {2u, 1u, 1u, 3u}) {
            s->grid = grid;
            s->host_ns = 100 * grid + 10;
            s->Op(1, x);
            s->Launch(1, 1, 1, CST_EXACT);
            s->Eager(1, y, "rule", "rule");
            s->Sync(1);
        }
        s->Op(1, fresh);
        s->Flush(1, 1, "exit", "exit");
    });
    sim::Json j = Parse(Says({"diff", "--format", "json", a, b}));
    EXPECT_EQ(j.Number("about.steps_aligned"), 3); // one of grid 2, two of grid 1
    EXPECT_EQ(j.Number("about.steps_only_a"), 3);
    EXPECT_EQ(j.Number("about.steps_only_b"), 2);
    std::string x = Row(j, "name", "x"), y = Row(j, "name", "y");
    const std::tuple<const char *, double, double> numbers[] = {
        {"calls_a", 5, 5},       {"calls_b", 4, 4},      {"aligned", 3, 3},
        {"only_a", 2, 2},        {"only_b", 1, 1},       {"in_graphs_a", 0, 5},
        {"in_graphs_b", 4, 0},   {"gained", 3, 0},       {"lost", 0, 3},
        {"breaks_a", 0, 0},      {"breaks_b", 0, 4},     {"host_delta_ns", 30, 30},
        {"host_a_ns", 700, 700}, {"host_b_ns", 740, 740}};
    for (const auto &[key, of_x, of_y] : numbers) {
        EXPECT_EQ(j.Number(x + key), of_x) << key;
        EXPECT_EQ(j.Number(y + key), of_y) << key;
    }
    EXPECT_EQ(j.text[Row(j, "name", "old") + "in"], "A");
    EXPECT_EQ(j.text[Row(j, "name", "new") + "in"], "B");
    EXPECT_EQ(j.text[x + "in"], "both");

    j = Parse(Says({"diff", "--by", "steps", "--format", "json", a, b}));
    EXPECT_EQ(j.Number("rows.0.steps_a"), 3); // grid 1
    EXPECT_EQ(j.Number("rows.0.steps_b"), 2);
    EXPECT_EQ(j.Number("rows.0.aligned"), 2);
    EXPECT_EQ(j.Number("rows.0.in_graphs_a"), 3);
    EXPECT_EQ(j.Number("rows.0.graphs_b"), 2);
    EXPECT_EQ(j.text["rows.0.in"], "both");
    EXPECT_EQ(j.Number("rows.1.aligned"), 1); // grid 2
    EXPECT_EQ(j.text[Row(j, "list", "old") + "in"], "A");
    EXPECT_EQ(j.text[Row(j, "list", "new") + "in"], "B");
}

TEST(Diff, OptionsAreChecked) {
    EXPECT_TRUE(Has(Fails(2, {"diff", golden}), "trace B is missing"));
    EXPECT_TRUE(Has(Fails(2, {"diff", "--by", "step", golden, golden}), "is steps"));
    EXPECT_TRUE(Has(Fails(2, {"diff", "--sort", "calls", golden, golden}), "is 'calls_a'"));
    EXPECT_TRUE(Has(Fails(1, {"diff", golden, "/nowhere"}), "/nowhere: No such file"));
    EXPECT_TRUE(Has(Fails(1, {"diff", "/nowhere", golden}), "/nowhere: No such file"));
}

// ---- bad input, for every verb ----

const std::vector<Strings> verbs = {{"info"},
                                    {"info", "--json"},
                                    {"dump"},
                                    {"dump", "--dot"},
                                    {"report", "kernels"},
                                    {"report", "segments"},
                                    {"report", "cache"},
                                    {"report", "breaks"},
                                    {"report", "coverage"},
                                    {"diff", golden},
                                    {"trim", "--pack", "-o", "out.cst"}};

TEST(BadInput, IsTheReadersOneLineAndStatusOne) {
    std::string bytes = ReadAll(golden),
                foreign = Write("foreign.cst", "SQLite format 3...........");
    std::string corrupt = Write("corrupt.cst", ""), newer = Write("newer.cst", "");
    bytes[100] ^= 1;
    WriteAll(corrupt, bytes);
    bytes[8] = 9;
    WriteAll(newer, bytes);
    for (Strings verb : verbs) {
        verb.push_back("");
        auto with = [&](const std::string &path) {
            verb.back() = path;
            return Fails(1, verb);
        };
        EXPECT_TRUE(Has(with("/nowhere.cst"), "cusplice: /nowhere.cst: No such file"));
        EXPECT_TRUE(Has(with(foreign), "not a trace of cusplice"));
        EXPECT_TRUE(Has(with(corrupt), "corrupt: the block at byte"));
        EXPECT_TRUE(Has(with(newer), "of version 9"));
        EXPECT_TRUE(Has(with(Write("empty.cst", "")), "it is empty"));
    }
    EXPECT_NE(access("out.cst", F_OK), 0);
}

TEST(BadInput, ATraceWithoutOpsIsATrace) {
    std::string path = Make("void.cst", [](Synth *) {});
    for (const Strings &verb : verbs) {
        if (verb[0] == "trim" || verb.back() == "--dot" || verb[0] == "diff")
            continue;
        Strings arguments = verb;
        arguments.push_back(path);
        Says(arguments);
    }
    Says({"diff", path, golden});
    EXPECT_TRUE(Has(Fails(1, {"dump", "--dot", path}), "no step"));
    EXPECT_TRUE(Has(Fails(1, {"dump", "--steps", "0", path}), "no ops"));
    EXPECT_TRUE(Has(Fails(1, {"trim", "--steps", "0", path}), "no ops"));
}

TEST(BadInput, AFullDiskIsTold) {
    for (const Strings &verb : verbs) {
        if (verb[0] == "trim")
            continue;
        std::string command = CuspliceProgram();
        for (const std::string &word : verb)
            command += " " + word;
        Result r = RunProgram({"/bin/sh", "-c", command + " " + golden + " >/dev/full"});
        EXPECT_EQ(r.Exit(), 1) << verb[0];
        EXPECT_EQ(r.err, "cusplice: stdout: cannot be written: No space left on device\n");
    }
}

} // namespace
