// Promise: what verbs print fits the terminal and says its units, a page tells what a trace is, and
// -o, --force and - mean the same with all verbs that read traces.
#include <sstream>

#include "tests/launcher/traces.h"

namespace {

size_t Widest(const std::string &text) {
    size_t widest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        widest = std::max(widest, line.size());
    return widest;
}

// Long names, times and sizes of every magnitude, all outcomes.
std::string MakeLarge() {
    static std::string path;
    if (!path.empty())
        return path;
    return path = Make("large.cst", [](Synth *s) {
               for (int i = 0; i < 12; i++) {
                   std::string name = "kernel_of_a_name_that_is_much_longer_than_any_column_" +
                                      std::string(60, 'x') + std::to_string(i);
                   uint32_t a = s->Kernel(name), b = s->Kernel("short" + std::to_string(i));
                   s->host_ns = i < 6 ? 40u << i : 7450000;
                   for (int k = 0; k < 30; k++) {
                       s->Op(1, a), s->Op(1, b);
                       s->Launch(1, 2, static_cast<uint32_t>(i), k ? CST_PATCHED : CST_BUILT, 1);
                       s->Eager(1, b, "rule", "rule");
                       s->Op(1, a);
                       s->Flush(1, 1, "cuMemAlloc", "api");
                       s->Sync(1);
                   }
               }
           });
}

Result At(const char *columns, const Strings &arguments) {
    Result r = Cusplice(arguments, {{"COLUMNS", columns}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    return r;
}

// ---- width ----

TEST(Width, TablesFitTheTerminal) {
    std::string path = "large.cst"; // a path is never shortened
    unlink(path.c_str());
    ASSERT_EQ(symlink(MakeLarge().c_str(), path.c_str()), 0);
    const Strings tables[] = {{"report", path},
                              {"report", "kernels", path},
                              {"report", "segments", path},
                              {"report", "cache", path},
                              {"report", "breaks", path},
                              {"report", "coverage", path},
                              {"report", Folder()},
                              {"info", path},
                              {"diff", path, golden},
                              {"diff", "--by", "steps", path, golden},
                              {"whatif", "--eager", "short*", path},
                              {"whatif", "--sweep", path},
                              {"help", "config"}};
    for (const Strings &table : tables) {
        for (const char *columns : {"80", "100", "120"})
            EXPECT_LE(Widest(At(columns, table).out), strtoul(columns, nullptr, 10))
                << table[0] << " " << table[1] << "\n"
                << At(columns, table).out;
        // Nobody says how wide a pipe is.
        EXPECT_EQ(At("", table).out, At("120", table).out);
        EXPECT_EQ(At("x", table).out, At("120", table).out);
    }
    unlink(path.c_str());
}

TEST(Width, SentencesAreFoldedAndNotCut) {
    for (const char *columns : {"60", "80"}) {
        std::string page = At(columns, {"report", golden}).out;
        for (const char *part :
             {"\n  rule: an eager rule names it\n", "\n  cuEventRecord: an event is"})
            EXPECT_TRUE(Has(page, part)) << page;
        EXPECT_LE(Widest(page), 80u) << page;
        // A command can be pasted: it is in one line.
        EXPECT_TRUE(Has(page, "cusplice report --html page.html " + std::string(golden) + "\n"))
            << page;
    }
}

TEST(Width, ANameThatIsCutSaysSo) {
    std::string path = MakeLarge();
    std::string sweep = At("80", {"whatif", "--sweep", path}).out;
    EXPECT_EQ(Count(sweep, "\nkernel_of_a_name_that.. "), 12u) << sweep;
}

TEST(Width, WhatIsLeftOutIsNamedAndWideHasIt) {
    std::string path = MakeLarge();
    std::string narrow = At("80", {"report", "kernels", path}).out;
    std::string wide = At("80", {"report", "kernels", "--wide", path}).out;
    EXPECT_TRUE(Has(narrow, "\n# left out here (--wide has all): open, host_p99_ns, flushed"))
        << narrow;
    EXPECT_FALSE(Has(narrow, std::string(60, 'x')));
    EXPECT_TRUE(Has(narrow, "..\n")) << narrow;
    EXPECT_FALSE(Has(wide, "left out"));
    EXPECT_TRUE(Has(wide, std::string(60, 'x') + "11\n"));
    for (const char *key : {"  open", "host_p99_", "  flushed", "  patched", "  op "}) {
        EXPECT_FALSE(Has(narrow.substr(narrow.find("\ncalls")), key)) << key << narrow;
        EXPECT_TRUE(Has(wide, key)) << key << wide;
    }
    // A column that is asked for is there.
    EXPECT_TRUE(Has(
        At("40", {"report", "kernels", "--fields", "open,flushed,patched,op,eager,name", path}).out,
        "\nopen  flushed  patched  op      eager  name"));
    // Programs have everything, and so has a file.
    for (const char *format : {"csv", "json", "md"})
        EXPECT_EQ(At("40", {"report", "kernels", "--format", format, path}).out,
                  At("400", {"report", "kernels", "--format", format, path}).out);
    std::string out = Folder() + "/wide.txt";
    unlink(out.c_str());
    EXPECT_EQ(At("40", {"report", "kernels", "-o", out, path}).out, "");
    EXPECT_EQ(ReadFile(out), wide);
}

// ---- units ----

TEST(Units, AColumnHasOneAndItsHeadNamesIt) {
    std::string path = MakeLarge();
    std::string text =
        Says({"report", "kernels", "--fields", "host_ns,host_avg_ns,name", "--top", "12", path});
    std::istringstream lines(text.substr(text.find("host_")));
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line.substr(0, line.find("name")), "host_ms  host_avg_us  ") << text;
    size_t rows = 0;
    for (; std::getline(lines, line); rows++)
        EXPECT_EQ(line.substr(0, 22).find_first_not_of(" .0123456789"), std::string::npos) << line;
    EXPECT_EQ(rows, 12u);
    // 60 calls of 7450 us; sorted by what stands in the head, too.
    EXPECT_TRUE(Has(text, "\n  447.0       7450.0  short")) << text;
    for (const char *name : {"host_ns", "host_ms", "host_s"})
        EXPECT_EQ(Says({"report", "kernels", "--sort", name, "--fields", name, path}),
                  Says({"report", "kernels", "--sort", "host_ns", "--fields", "host_ns", path}));
    EXPECT_TRUE(Has(Fails(2, {"report", "kernels", "--sort", "host_KiB", path}), "no field"));
    EXPECT_TRUE(Has(Fails(2, {"report", "kernels", "--sort", "calls_ns", path}), "no field"));
    EXPECT_TRUE(Has(Fails(2, {"report", "breaks", "--sort", "zzzz", path}),
                    "breaks has no field 'zzzz'; its fields are count, ops, runs, share, how, "));
    // Programs have nanoseconds and bytes.
    text = Says({"report", "segments", "--format", "csv", path});
    EXPECT_TRUE(Has(text, ",host_ns,build_ns,bytes,")) << text;
}

TEST(Units, SizesHaveTheirs) {
    std::string path = Make("sizes.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b");
        s->Op(1, a), s->Op(1, a);
        s->Launch(1, 2, 1, CST_BUILT)->bytes = 16 << 20;
        s->Op(1, b), s->Op(1, b);
        s->Launch(1, 2, 2, CST_BUILT)->bytes = 512;
    });
    std::string text = Says({"report", "segments", "--fields", "bytes,list", path});
    EXPECT_TRUE(Has(text, "bytes_KiB  list\n  16384.0  a x2\n      0.5  b x2\n")) << text;
    EXPECT_EQ(Says({"report", "segments", "--fields", "bytes_KiB,list", path}), text);
    EXPECT_TRUE(
        Has(Says({"report", "segments", "--fields", "bytes,list", golden}), "\nbytes  list"));
}

// ---- the page ----

TEST(Summary, IsOnePageOfWhatItWasAndWhatToTry) {
    std::string text = Says({"report", golden});
    for (const char *part :
         {"tests/golden/trace-v1.cst\n  32.00 us of decode --tokens 3, on simulator; records were "
          "lost\n",
          "\n  47.6 % of 21 ops went into graphs: 4 graph launches in 4 steps\n",
          "\n  8 ops were issued by the program's own calls, 2 deferred and then issued one by "
          "one\n",
          "\nkernels that took most of the host's time, by their calls\n",
          "\n    3   0.0 %       2     2700          900  attention\n",
          "\nwhat kept ops out of graphs\n", "\n  3  14.3 %     2  rule           attention\n",
          "\n  2   9.5 %     0  cuEventRecord  gemm\n", "\n  rule: an eager rule names it\n",
          "\n  cuEventRecord: an event is recorded between launches\n",
          "\nwhat to try next\n  - rule: if it may be in graphs, take the rule out",
          "\n  - how long kernels run: record with --gpu-times\n",
          "cusplice whatif --sweep tests/golden/trace-v1.cst\n",
          "cusplice report --html page.html tests/golden/trace-v1.cst\n"})
        EXPECT_TRUE(Has(text, part)) << part << text;
    EXPECT_LE(Count(text, "\n"), 40u);
    EXPECT_LE(Count(Says({"report", MakeLarge()}), "\n"), 40u);
}

TEST(Summary, ProgramsHaveItsTables) {
    sim::Json j = Parse(Says({"report", "--format", "json", golden}));
    EXPECT_EQ(j.text["report"], "summary");
    EXPECT_EQ(j.Number("about.ops"), 21);
    EXPECT_EQ(j.text["rows.0.name"], "attention");
    EXPECT_EQ(j.text["breaks.1.reason"], "rule");
    EXPECT_EQ(j.text["breaks.1.kernel"], "attention");
    EXPECT_TRUE(Has(j.text["breaks.1.advice"], "take the rule out"));
    EXPECT_EQ(j.Number("breaks.1.ops"), 3);
    j = Parse(Says({"report", "--format", "json", MakeLarge()}));
    EXPECT_TRUE(j.Has("rows.4.name"));
    EXPECT_FALSE(j.Has("rows.5.name"));
    EXPECT_TRUE(
        Parse(Says({"report", "--format", "json", "--top", "9", MakeLarge()})).Has("rows.8.name"));
}

TEST(Summary, GpuTimesComeFirstWhereTheyAreKnown) {
    std::string path = Make("gpu.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b");
        s->GpuStream(1, 7);
        s->Eager(1, a, "rule", "rule");
        s->host_ns = 9;
        s->Eager(1, b, "rule", "rule");
        s->Gpu(7, CST_GPU_KERNEL, "a", 1000);
        s->Gpu(7, CST_GPU_KERNEL, "b", 30000);
        s->Sync(1);
    });
    std::string text = Says({"report", path});
    EXPECT_TRUE(Has(text, "took most of the GPU's time\n")) << text;
    EXPECT_TRUE(Has(text, "gpu_ns  host_ns  name\n    1  0.0 %       0   30000        9  b\n"))
        << text;
    EXPECT_FALSE(Has(text, "--gpu-times")) << text;
}

TEST(Summary, AReportsNameIsNoTrace) {
    EXPECT_TRUE(Has(Fails(2, {"report", "kernels"}), "TRACE is missing"));
    EXPECT_TRUE(Has(Fails(2, {"report"}), "TRACE is missing"));
    // A folder of that name, as in this tree, is no folder of traces.
    mkdir("kernels", 0700);
    EXPECT_TRUE(Has(Says({"report", "kernels", golden}), "attention"));
    rmdir("kernels");
    EXPECT_TRUE(Has(Fails(2, {"report", "kernels", Folder()}), "a folder of traces has one table"));
    EXPECT_TRUE(Has(Fails(2, {"report", "--html", "x.html", "--sort", "calls", golden}),
                    "only --names and --force go with it"));
}

// ---- info ----

TEST(InfoInWords, FactsAreNoJson) {
    std::string facts =
        "{\"argv\":[\"prog\",\"--x\"],\"driver\":12040,\"compute_capability\":90,"
        "\"clock\":{\"monotonic_ns\":5,\"realtime_ns\":1795752078398552622},"
        "\"options\":{\"mode\":\"full\",\"hold_us\":\"60\",\"warmup\":\"2\",\"record\":"
        "\"/x\",\"strange\":\"1\"},"
        "\"rules\":[{\"policy\":\"eager\",\"pattern\":\"a{\\\"}*\"},{\"policy\":"
        "\"never_defer\",\"pattern\":\"nccl*\"}],\"steps\":[],"
        "\"trimmed\":{\"steps\":\"1-2\",\"ops_before\":21}}";
    std::string path = Make("facts.cst", [&](Synth *s) { s->Facts(facts); });
    std::string text = Says({"info", path});
    for (const char *part :
         {"\n  program          prog --x\n", "\n  driver           CUDA 12.4\n",
          "\n  GPU capability   9.0\n", "\n  recorded at      2026-11-27 04:01:18 UTC\n",
          "\n  settings         mode = full, hold_us = 60, strange = 1; all others as built in\n",
          "\n  rules            eager = a{\"}*\n                   never_defer = nccl*\n",
          "\n  [step] rules     none\n", "\n  trimmed          steps 1-2, ops_before 21\n"})
        EXPECT_TRUE(Has(text, part)) << part << text;
    EXPECT_FALSE(Has(text, "\":")) << text;
    // Programs have the facts as they are.
    EXPECT_TRUE(Has(Says({"info", "--format", "json", path}), facts));
    EXPECT_EQ(Says({"info", "--format", "json", path}), Says({"info", "--json", path}));
}

TEST(InfoInWords, CountsAreOfWhatTheySay) {
    std::string path = Make("opaque.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b", 16, CST_KIND_OPAQUE);
        s->Op(1, a), s->Op(1, b);
        s->Launch(1, 2, 7, CST_EXACT); // formed before the recording began
        s->Op(1, a), s->Op(1, b);
        s->Launch(1, 2, 7, CST_EXACT);
        s->Op(1, b);
        s->Launch(1, 1, 8, CST_EXACT);
        s->Eager(1, s->Memset(4, "", CST_KIND_OPAQUE), "rule", "rule"); // is no kernel
    });
    std::string text = Says({"info", path});
    EXPECT_TRUE(Has(text, "\n  graph launches   3, of 2 different lists of ops\n")) << text;
    EXPECT_TRUE(Has(text, " 2 kernels (1 opaque, 0 cooperative)")) << text;
}

// ---- what if ----

TEST(WhatIf, ShowsWhatChanged) {
    std::string text = Says({"whatif", "--eager", "short*", MakeLarge()});
    EXPECT_EQ(text.find("A step takes "), 0u) << text;
    EXPECT_TRUE(Has(text, " us in place of ")) << text;
    EXPECT_TRUE(Has(text, "what if    change\n")) << text;
    EXPECT_TRUE(Has(text, "\nissued.in_graphs ")) << text;
    EXPECT_TRUE(Has(text, "\nstep_us ")) << text;
    for (const char *row : {"ops.launches", "us_per_step", "predicted.", "signatures."})
        EXPECT_FALSE(Has(text, row)) << row << text;
    EXPECT_LE(Count(text, "\n"), 30u) << text;
    std::string wide = Says({"whatif", "--wide", "--eager", "short*", MakeLarge()});
    for (const char *row : {"ops.launches", "predicted.us_per_step", "predicted.step_us"})
        EXPECT_TRUE(Has(wide, row)) << row << wide;
    // Nothing changed: of the rest no row is there.
    text = Says({"whatif", "--set", "warmup=2", MakeLarge()});
    EXPECT_FALSE(Has(text, "eager_by.") || Has(text, "built ") || Has(text, "total_us")) << text;
    EXPECT_TRUE(Has(text, "(+0.0 %)")) << text;
    // Without a question: what there is.
    text = Says({"whatif", MakeLarge()});
    EXPECT_EQ(text.find("With the settings of here a step takes "), 0u) << text;
    EXPECT_TRUE(Has(text, "\neager_by.") && !Has(text, "what if")) << text;
}

// ---- where it goes ----

TEST(Output, IsNamedAlikeByAllVerbs) {
    const Strings verbs[] = {{"info", golden},
                             {"info", "--format", "json", golden},
                             {"dump", golden},
                             {"dump", "--dot", golden},
                             {"report", golden},
                             {"report", "kernels", "--wide", golden},
                             {"diff", "--wide", golden, golden},
                             {"whatif", "--wide", golden}};
    std::string out = Folder() + "/out.txt", input = Folder() + "/input.cst";
    for (const Strings &verb : verbs) {
        Strings named = verb;
        std::string said = At("1000", verb).out;
        unlink(out.c_str());
        named.insert(named.end(), {"-o", out});
        EXPECT_EQ(Says(named), "") << verb[0];
        EXPECT_EQ(ReadFile(out), At("1000", verb).out) << verb[0];
        // Never over a file that is there, unless told to.
        WriteAll(out, "mine");
        EXPECT_TRUE(Has(Fails(1, named), out + ": cannot be written: it is there already"))
            << verb[0];
        EXPECT_EQ(ReadFile(out), "mine");
        named.push_back("--force");
        EXPECT_EQ(Says(named), "");
        EXPECT_EQ(ReadFile(out), said) << verb[0];
        // Never over what is read.
        WriteAll(input, ReadFile(golden));
        Strings own = verb;
        std::replace(own.begin(), own.end(), std::string(golden), input);
        own.insert(own.end(), {"--output=" + input, "--force"});
        EXPECT_TRUE(Has(Fails(1, own), "it is what is read")) << verb[0];
        EXPECT_EQ(ReadFile(input), ReadFile(golden));
        // - is stdout.
        own = verb;
        own.insert(own.end(), {"-o", "-"});
        EXPECT_EQ(At("1000", own).out, said);
        EXPECT_NE(access("-", F_OK), 0);
    }
}

TEST(Output, OfTracesIsAFile) {
    std::string out = Folder() + "/part.cst";
    unlink(out.c_str());
    EXPECT_TRUE(Has(Fails(2, {"trim", "--pack", "-o", "-", golden}), "a trace goes into a file"));
    EXPECT_TRUE(Has(Fails(2, {"import", "-o", "-", golden}), "a trace goes into a file"));
    Says({"trim", "--pack", "--output", out, golden});
    EXPECT_TRUE(Has(Fails(1, {"trim", "--pack", "--out", out, golden}), "is there already"));
    WriteAll(out, "mine");
    EXPECT_TRUE(
        Has(Says({"trim", "--pack", "--force", "-o", out, golden}), out + ": 21 of 21 ops"));
    EXPECT_EQ(Parse(Says({"info", "--format", "json", out})).Number("ops"), 21);
    EXPECT_TRUE(Has(Fails(1, {"trim", "--pack", "--force", "-o", out, out}), "it is what is read"));
    EXPECT_EQ(Parse(Says({"info", "--format", "json", out})).Number("ops"), 21);
}

} // namespace
