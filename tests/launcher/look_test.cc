// Promise: info, dump, report and diff print the right numbers, on traces whose numbers are all
// known.

#include "tests/launcher/traces.h"

namespace {

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
    std::string bytes = ReadFile(golden), path = Write("torn.cst", "");
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

// Two steps of a launch, a record of an event and a launch.
std::string MakeRecorded(const std::string &name, bool as_op) {
    return Make(name, [&](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b"), record = s->Record();
        for (int step = 0; step < 2; step++) {
            s->Eager(1, a, "rule", "rule");
            s->param = 0x77;
            if (as_op)
                s->Op(1, record);
            else
                s->Call(1, CST_CALL_FLUSH, "cuEventRecord", CST_SCOPE_S);
            s->param = 0;
            s->Op(1, b);
            s->Launch(1, as_op ? 2 : 1, 1, CST_EXACT);
            s->Sync(1);
        }
    });
}

TEST(Records, AreOpsOfTheirOwn) {
    std::string path = MakeRecorded("records.cst", true);
    EXPECT_EQ(Parse(Says({"info", "--json", path})).Number("kinds.record"), 1);
    EXPECT_EQ(Parse(Says({"info", "--json", path})).Number("kinds.copy"), 0);
    EXPECT_TRUE(Has(Says({"info", path}), "0 memsets, 0 copies, 1 records of events"));
    sim::Json j = Report("kernels", path);
    std::string row = Row(j, "name", "cuEventRecord");
    EXPECT_EQ(j.text[row + "op"], "record");
    EXPECT_EQ(j.Number(row + "calls"), 2);
    EXPECT_EQ(j.Number(row + "in_graphs"), 2);
}

// A recording of before has records as calls: the steps are the same all the same.
TEST(Records, AreNoDifferenceFromOlderTraces) {
    std::string newer = MakeRecorded("newer.cst", true), older = MakeRecorded("older.cst", false);
    for (int turn = 0; turn < 2; turn++) {
        sim::Json j =
            Parse(Says({"diff", "--format", "json", turn ? newer : older, turn ? older : newer}));
        std::string b = Row(j, "name", "b");
        EXPECT_EQ(j.Number(b + "aligned"), 2) << turn;
        std::string record = Row(j, "name", "cuEventRecord");
        EXPECT_EQ(j.Number(record + "aligned"), 0);
        EXPECT_EQ(j.Number(record + (turn ? "only_a" : "only_b")), 2);
    }
    sim::Json same = Parse(Says({"diff", "--format", "json", newer, newer}));
    EXPECT_EQ(same.Number(Row(same, "name", "cuEventRecord") + "aligned"), 2);
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
              "cuMemsetD32Async,2,,\n");
    EXPECT_EQ(Report("kernels", path).text["rows.2.gpu_ns"], "null");
    EXPECT_TRUE(Has(Says({"report", "kernels", path}), "  gpu_us  gpu_avg_ns  op"));
    EXPECT_TRUE(Has(Says({"report", "kernels", "--format=md", path}), "| gpu_us | gpu_avg_ns |"));
}

TEST(GpuTimes, WithoutThemOnlyProgramsSeeTheFields) {
    for (const char *format : {"table", "md"})
        EXPECT_FALSE(Has(Says({"report", "kernels", "--format", format, golden}), "gpu_"));
    for (const char *format : {"csv", "json"}) {
        std::string text = Says({"report", "kernels", "--format", format, golden});
        EXPECT_TRUE(Has(text, "gpu_ns") && Has(text, "gpu_avg_ns")) << text;
    }
    EXPECT_EQ(Says({"report", "kernels", "--format=md", "--fields=name,gpu_ns", "--top=1", golden}),
              "| name | gpu_ns |\n| --- | ---: |\n| attention | - |\n");
}

TEST(GpuTimes, WhatIfTakesThem) {
    std::string cost = Folder() + "/cost";
    WriteAll(cost, "[host]\neager_launch=1000\nmatched_launch=1\ngraph_launch=1\npatched_node=1\n"
                   "built_node=1\n[gpu]\ngraph_kernel=50\ngraph_seam=1\neager_kernel=70\n"
                   "small_kernel=20\n");
    auto ask = [&](const std::string &path, const char *format, const char *mode = "eager") {
        return Says({"whatif", "--mode", mode, "--cost", cost, "--wide", "--format", format, path});
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
    std::string bytes = ReadFile(golden),
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
