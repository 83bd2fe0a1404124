// Promise: trim keeps the meaning of what it keeps; it overwrites no file and leaves none
// half-written.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/launcher/traces.h"
#include "tools/trace/model.h"
#include "tools/trace/reader.h"

namespace {

std::string Out(const std::string &name) {
    std::string path = Folder() + "/" + name;
    unlink(path.c_str());
    unlink((path + ".partial").c_str());
    return path;
}

// Each step in the order in which they began, without its number and its time.
Strings Rows(const std::string &path) {
    sim::Json j = Report("coverage", path, {"--sort", "-step"});
    Strings steps[3], all;
    for (int i = 0; j.Has("rows." + std::to_string(i) + ".step"); i++) {
        std::string row = "rows." + std::to_string(i) + ".", text;
        for (const char *key : {"stream", "ops", "in_graphs", "eager", "flushed", "open", "graphs"})
            text += std::to_string(static_cast<int>(j.Number(row + key))) + " ";
        steps[static_cast<int>(j.Number(row + "stream"))].push_back(
            text + j.text[row + "signature"] + " " + j.text[row + "ended"]);
    }
    for (const Strings &of : steps)
        all.insert(all.end(), of.begin(), of.end());
    return all;
}

TEST(Trim, StepsMeanWhatTheyMeant) {
    Strings want = Rows(golden);
    want.erase(want.begin());
    for (const char *pack : {"--steps=1-2", "--pack"}) {
        std::string out = Out("part.cst");
        std::string said = Says({"trim", "--steps", "1-2", pack, "-o", out, golden});
        EXPECT_TRUE(Has(said, out + ": 15 of 21 ops, ")) << said;
        sim::Json j = Parse(Says({"info", "--json", out}));
        EXPECT_EQ(j.text["closed"], "true");
        EXPECT_EQ(j.Number("ops"), 15);
        EXPECT_EQ(j.Number("in_graphs"), 10);
        EXPECT_EQ(j.Number("eager"), 2);
        EXPECT_EQ(j.Number("flushed"), 2);
        EXPECT_EQ(j.Number("open"), 1);
        EXPECT_EQ(j.Number("kinds.launch"), 3); // what nobody launches is not defined any more
        EXPECT_EQ(j.Number("lost_records"), 7);
        EXPECT_EQ(j.text["facts.gpu"], "simulator");
        EXPECT_EQ(j.text["facts.trimmed.from"], golden);
        EXPECT_EQ(j.text["facts.trimmed.steps"], "1-2");
        EXPECT_EQ(j.Number("facts.trimmed.ops_before"), 21);
        // Steps 1 and 2 are now 0 and 1; nothing else of them has changed.
        EXPECT_EQ(Rows(out), want);
    }
}

// For others to see: nothing in the file that tells more than which kernels ran when.
TEST(Trim, BareTracesTellNothingOfTheProgram) {
    const std::string secret = "s3cr3t";
    std::string from = Out("secret.cst"), out = Out("bare.cst");
    Synth made(from);
    made.Facts("{\"argv\":[\"" + secret + "\"],\"exe\":\"/" + secret +
               "\",\"gpu\":\"H\",\"pid\":77,\"options\":{\"mode\":\"full\",\"log_file\":\"/" +
               secret + "\"}}");
    made.Thread(7, secret + " thread");
    uint32_t stream = made.Stream(CST_STREAM_CREATED, 0x10), kernel = made.Kernel("kernel");
    memcpy(&made.param, secret.data(), secret.size());
    for (int i = 0; i < 3; i++)
        made.Eager(stream, kernel, "observing", "observing");
    ASSERT_EQ(made.Close(), 0);
    EXPECT_NE(ReadFile(from).find(secret), std::string::npos);
    EXPECT_TRUE(Has(Says({"trim", "--bare", "-o", out, from}), ": 3 of 3 ops, "));
    EXPECT_EQ(ReadFile(out).find(secret), std::string::npos);
    sim::Json j = Parse(Says({"info", "--json", out}));
    EXPECT_EQ(j.Number("ops"), 3);
    EXPECT_EQ(j.text["facts.gpu"], "H");
    EXPECT_EQ(j.text["facts.options.mode"], "full");
    EXPECT_EQ(j.text["facts.trimmed.bare"], "true");
    EXPECT_FALSE(j.Has("facts.trimmed.from") || j.Has("facts.pid") || j.Has("facts.argv.0"));
    EXPECT_TRUE(Has(Says({"report", "kernels", out}), "kernel"));
}

TEST(Trim, GpuTimesOfWhatIsKeptAreKept) {
    std::string path = Out("measured.cst"), out = Out("measured.part.cst");
    Synth s(path);
    s.Thread(1, "");
    s.Stream(CST_STREAM_LEGACY, 0);
    uint32_t a = s.Kernel("a"), b = s.Kernel("b");
    cst_sink_string(&s.sink, 900, "a"); // a text of its own
    s.GpuStream(1, 7);
    for (uint64_t step = 0; step < 4; step++) {
        s.Eager(1, a, "rule", "rule");
        s.Eager(1, b, "rule", "rule");
        s.Gpu(7, CST_GPU_KERNEL, "", 1000 + step)->name = 900;
        s.Gpu(7, CST_GPU_KERNEL, "theirs", 5);
        s.Gpu(7, CST_GPU_KERNEL, "b", 2000 + step);
        s.Sync(1);
    }
    ASSERT_EQ(s.Close(), 0);
    Says({"trim", "--steps", "1-2", "-o", out, path});
    sim::Json j = Parse(Says({"info", "--json", out}));
    EXPECT_EQ(j.Number("gpu_records"), 4);
    EXPECT_EQ(j.Number("gpu_known"), 4);
    EXPECT_EQ(
        Says({"report", "kernels", "--format=csv", "--fields=name,gpu_ns", "--sort=gpu_ns", out}),
        "name,gpu_ns\nb,4003\na,2003\n");
}

TEST(Trim, BranchesStayWithTheirGraph) {
    for (bool long_step : {false, true}) {
        std::string path = Out("branches.cst"), out = Out("branches.part.cst");
        Synth s(path);
        s.Thread(1, "");
        uint32_t home = s.Stream(CST_STREAM_CREATED, 0x10);
        uint32_t side = s.Stream(CST_STREAM_CREATED, 0x20), a = s.Kernel("a"), b = s.Kernel("b");
        for (int step = 0; step < 3; step++) {
            for (uint32_t stream : {home, side, side, home, home})
                s.Op(stream, stream == home ? a : b);
            s.Branch(side, 2);
            s.Launch(home, 5, 1, CST_EXACT);
            s.Sync(home);
            if (!long_step)
                s.Sync(side);
        }
        ASSERT_EQ(s.Close(), 0);
        Says({"trim", "--steps", "1", "-o", out, path});
        sim::Json j = Parse(Says({"info", "--json", out}));
        // A long step of the side stream began before: then its ops are left out.
        EXPECT_EQ(j.Number("ops"), long_step ? 3 : 5);
        EXPECT_EQ(j.Number("in_graphs"), long_step ? 3 : 5);
        EXPECT_EQ(j.Number("open"), 0);
        EXPECT_EQ(j.Number("graph_launches"), 1);
        EXPECT_EQ(Has(Says({"dump", out}), "\"branch\""), !long_step);
    }
}

TEST(Trim, OneStepOfOneStream) {
    std::string out = Out("one.cst");
    Says({"trim", "--steps", "1", "-o", out, golden});
    sim::Json j = Parse(Says({"info", "--json", out}));
    EXPECT_EQ(j.Number("ops"), 6);
    EXPECT_EQ(j.Number("steps"), 1);
    EXPECT_EQ(j.Number("in_graphs"), 5);
    EXPECT_EQ(j.Number("calls"), 1);
    EXPECT_EQ(j.Number("lost_records"), 0);
    out = Out("two.cst");
    Says({"trim", "--steps", "0", "--stream", "2", "-o", out, golden});
    j = Parse(Says({"info", "--json", out}));
    EXPECT_EQ(j.Number("ops"), 3);
    EXPECT_EQ(j.Number("facts.trimmed.stream"), 2);
}

// Ops are the same, byte for byte, but for the number of their kind, whose name is the same.
TEST(Trim, OpsKeepEveryByte) {
    std::string out = Out("bytes.cst");
    Says({"trim", "--steps", "0-2", "--pack", "-o", out, golden});
    char error[512];
    cst_trace *a = cst_open(golden, error, sizeof error), *b = cst_open(out.c_str(), error, 512);
    ASSERT_TRUE(a && b) << error;
    ASSERT_EQ(a->n_events, b->n_events);
    EXPECT_EQ(a->n_ranges, b->n_ranges);
    for (size_t i = 0; i < a->n_events; i++) {
        const cst_record *x = a->events[i], *y = b->events[i];
        ASSERT_EQ(x->words, y->words);
        std::string left(reinterpret_cast<const char *>(x), x->words * 8u);
        std::string right(reinterpret_cast<const char *>(y), y->words * 8u);
        if (x->type == CST_OP) {
            const cst_kind *k = a->kinds[reinterpret_cast<const cst_op *>(x)->kind];
            const cst_kind *l = b->kinds[reinterpret_cast<const cst_op *>(y)->kind];
            EXPECT_STREQ(cst_string(a, k->name), cst_string(b, l->name));
            EXPECT_EQ(k->param_bytes, l->param_bytes);
            reinterpret_cast<cst_op *>(left.data())->kind = 0;
            reinterpret_cast<cst_op *>(right.data())->kind = 0;
        }
        EXPECT_EQ(left, right) << i;
    }
    cst_free(a);
    cst_free(b);
}

// Stream 2 has an op in the queue when the steps that are kept begin, and one when they end.
TEST(Trim, LaunchesSpeakOfTheOpsThatAreLeft) {
    std::string path = Make("across.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a"), b = s->Kernel("b");
        for (int step = 0; step < 4; step++) {
            s->Op(1, a), s->Op(1, a), s->Op(1, a), s->Op(1, a);
            s->Launch(1, 4, 1, CST_EXACT);
            // Steps of stream 2 end in the midst of those of stream 1, and its ops go out behind.
            s->Op(2, b);
            s->Eager(2, a, "rule", "rule");
            if (step % 2)
                s->Flush(2, 3 - (step == 1), "watchdog", "watchdog");
            s->Sync(2);
            s->Op(2, b);
            s->Sync(1);
        }
    });
    // By hand: stream 2's steps begin with the second op of a turn; steps 1-2 of stream 1 keep the
    // steps of stream 2 that begin in turns 1 and 2.
    std::string out = Out("across.trim.cst");
    Says({"trim", "--steps", "1-2", path});
    auto sums = [](const std::string &of, int stream, int from, int to) {
        sim::Json j = Report("coverage", of);
        std::string text;
        for (int i = 0; j.Has("rows." + std::to_string(i) + ".step"); i++) {
            std::string row = "rows." + std::to_string(i) + ".";
            if (j.Number(row + "stream") != stream || j.Number(row + "step") < from ||
                j.Number(row + "step") > to)
                continue;
            for (const char *key : {"ops", "in_graphs", "flushed", "open"})
                text += std::to_string(static_cast<int>(j.Number(row + key))) + " ";
            text += j.text[row + "ended"] + ", ";
        }
        return text;
    };
    std::string before = path, after = out;
    EXPECT_EQ(sums(after, 1, 0, 9), sums(before, 1, 1, 2));
    EXPECT_EQ(sums(after, 1, 0, 9), "4 4 0 0 cuStreamSynchronize, 4 4 0 0 cuStreamSynchronize, ");
    EXPECT_EQ(sums(after, 2, 0, 9), sums(before, 2, 2, 3));
    EXPECT_EQ(sums(after, 2, 0, 9), "3 0 2 0 cuStreamSynchronize, 3 0 0 2 cuStreamSynchronize, ");
}

TEST(Trim, NothingIsOverwritten) {
    std::string out = Write("mine.cst", "mine");
    EXPECT_TRUE(Has(Fails(1, {"trim", "--steps", "1", "-o", out, golden}), "is there already"));
    EXPECT_EQ(ReadFile(out), "mine");
    // The name that is used without -o.
    std::string copy = Write("copy.cst", "");
    WriteAll(copy, ReadFile(golden));
    out = Out("copy.trim.cst");
    Says({"trim", "--steps", "1", copy});
    EXPECT_EQ(access(out.c_str(), R_OK), 0);
    EXPECT_TRUE(Has(Fails(1, {"trim", "--steps", "1", copy}), "copy.trim.cst"));
    // Of a trace that was trimmed: both notes are there.
    std::string again = Out("copy.trim.trim.cst");
    Says({"trim", "--pack", out});
    sim::Json j = Parse(Says({"info", "--json", again}));
    EXPECT_EQ(j.text["facts.trimmed.steps"], "1-1");
    EXPECT_EQ(j.text["facts.trimmed_2.from"], out);
}

TEST(Trim, AFullDiskLeavesNothing) {
    std::string large = Make("large.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a", 64);
        for (int i = 0; i < 5000; i++)
            s->Op(1, a);
    });
    std::string out = Out("full.cst");
    rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 100 * 1024;
    signal(SIGXFSZ, SIG_IGN); // as in the shell of somebody who has no more room
    setrlimit(RLIMIT_FSIZE, &limit);
    Result r = Cusplice({"trim", "--steps", "0", "-o", out, large});
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.err, "cusplice: " + out + ": cannot be written: File too large\n");
    EXPECT_NE(access(out.c_str(), F_OK), 0);
    EXPECT_NE(access((out + ".partial").c_str(), F_OK), 0);
    EXPECT_TRUE(Has(Fails(1, {"trim", "--pack", "-o", "/nowhere/x.cst", golden}),
                    "/nowhere/x.cst: cannot be written: No such file or directory"));
}

TEST(Trim, PackedIsSmallerAndReadsTheSame) {
    std::string large = Make("repeat.cst", [](Synth *s) {
        uint32_t a = s->Kernel("a", 64);
        for (int i = 0; i < 30000; i++) { // more than two blocks
            s->Op(1, a);
            s->Launch(1, 1, 1, CST_EXACT);
        }
    });
    std::string out = Out("packed.cst");
    Says({"trim", "--pack", "-o", out, large});
    struct stat a, b;
    ASSERT_EQ(stat(large.c_str(), &a), 0);
    ASSERT_EQ(stat(out.c_str(), &b), 0);
    EXPECT_LT(b.st_size, a.st_size / 5);
    EXPECT_EQ(Says({"report", "kernels", "--format", "csv", large}),
              Says({"report", "kernels", "--format", "csv", out}));
    EXPECT_EQ(Says({"report", "segments", "--format", "csv", large}),
              Says({"report", "segments", "--format", "csv", out}));
}

TEST(Trim, OptionsAreChecked) {
    EXPECT_TRUE(Has(Fails(2, {"trim", golden}), "--steps A-B is missing"));
    EXPECT_TRUE(Has(Fails(2, {"trim", "--steps", "1"}), "TRACE is missing"));
    EXPECT_TRUE(Has(Fails(1, {"trim", "--steps", "5-9", "-o", Out("x"), golden}),
                    "there is no step 5: stream 1 has steps 0 to 2"));
    EXPECT_TRUE(Has(Fails(2, {"trim", "--pak", golden}), "the nearest is --pack"));
}

} // namespace
