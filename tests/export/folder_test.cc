// Promise: a folder of traces, one for each process of a run, is one timeline and one table, on one
// clock.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/export/make.h"
#include "tests/launcher/launcher.h"

namespace {

const char kScaled[] = "_ZN3app6scaledIfEEvPT_i";

std::string Path(const std::string &name) {
    return Folder() + "/" + name;
}

std::string Python(const Strings &arguments, const std::string &input = "") {
    Strings all = {"/usr/bin/env", "-u", "LD_PRELOAD", "python3"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    Result r = RunProgram(all, {}, input);
    return r.out + r.err;
}

// An expression of what perfetto.py found, d.
std::string Of(const std::string &found, const std::string &expression) {
    std::string out =
        Python({"-c", "import json,sys; d=json.load(sys.stdin); print(" + expression + ")"}, found);
    return out.empty() ? out : out.substr(0, out.size() - 1);
}

// The trace of one process of a run: a launch by itself at `ns`, and one in a graph.
void OfRun(const std::string &path, uint64_t ns, const std::string &facts) {
    Maker m(path);
    m.Facts(facts);
    uint32_t main = m.Thread(4000, "main"), s1 = m.Stream(), scaled = m.Kernel(kScaled);
    m.Op(ns, main, s1, scaled, {4, 1, 1, 32, 1, 1, 0}, CST_EAGER, 200);
    m.Op(ns + 1000, main, s1, scaled, {4, 1, 1, 32, 1, 1, 0}, CST_DEFERRED);
    m.Launch(ns + 2000, main, s1, 1, 7);
    m.Close();
}

std::string TheRun() {
    std::string folder = Path("run");
    if (mkdir(folder.c_str(), 0700) == 0) {
        OfRun(folder + "/rank-10.pid-4000.cst", 5000, R"({"pid":4000,"rank":10,"exe":"/b/prog"})");
        OfRun(folder + "/rank-2.pid-4000.cst", 8000, R"({"pid":4000,"rank":2,"exe":"/b/prog"})");
        OfRun(folder + "/pid-7.cst", 9000, R"({"pid":7,"rank":"x","exe":"/b/o"})");
        WriteAll(folder + "/other.json", "{}");
    }
    return folder;
}

TEST(Folder, EachProcessHasItsTracksOnOneClock) {
    std::string out = Path("run.json");
    Result r = Cusplice({"export", "--force", "--perfetto", out, TheRun()});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    std::string found = Python({"tests/export/perfetto.py", out});
    EXPECT_EQ(Of(found, "d['problems']"), "[]") << found;
    EXPECT_EQ(Of(found, "d['base']"), "5000");
    EXPECT_EQ(
        Of(found, "d['processes']"),
        "['GPU 0 of pid 7, o', 'GPU 0 of rank 10, prog', 'GPU 0 of rank 2, prog', 'pid 7, o', "
        "'rank 10, prog', 'rank 2, prog']");
    EXPECT_EQ(Of(found, "len({e[3] for e in d['executions']})"), "3") << "GPUs of their own";
    EXPECT_EQ(Of(found, "[e[5] for e in d['executions']]"), "[4200, 6000, 3200, 5000, 200, 2000]");
    EXPECT_EQ(Of(found, "[(l['gpu_times'][:9], l['facts']['pid']) for l in d['labels']]"),
              "[('estimated', 7), ('estimated', 4000), ('estimated', 4000)]");
}

TEST(Folder, IsATableWithARowForEachProcess) {
    Result r = Cusplice({"report", "--format", "csv", "--fields",
                         "rank,pid,program,begin_ns,ops,share,graphs,break,trace", TheRun()});
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.out, "rank,pid,program,begin_ns,ops,share,graphs,break,trace\n"
                     "-1,7,o,4000,2,50,1,rule: never_defer,pid-7.cst\n"
                     "2,4000,prog,3000,2,50,1,rule: never_defer,rank-2.pid-4000.cst\n"
                     "10,4000,prog,0,2,50,1,rule: never_defer,rank-10.pid-4000.cst\n");
}

const char kFields[] =
    "rank_a,rank_b,program,ops_a,ops_b,share_a,share_b,graphs_a,graphs_b,steps_a,"
    "steps_b,steps_aligned,gained,lost,step_avg_a_ns,step_avg_b_ns,in,trace_a,"
    "trace_b";

Result Diff(const Strings &folders) {
    Strings all = {"diff", "--format", "csv", "--fields", kFields};
    all.insert(all.end(), folders.begin(), folders.end());
    return Cusplice(all);
}

TEST(Folder, IsComparedWithAnotherRankByRank) {
    std::string other = Path("other");
    if (mkdir(other.c_str(), 0700) == 0) {
        OfRun(other + "/rank-2.pid-1.cst", 100, R"({"pid":1,"rank":2,"exe":"/b/prog"})");
        OfRun(other + "/rank-3.pid-2.cst", 100, R"({"pid":2,"rank":3,"exe":"/b/more"})");
        // Both launches by themselves, and slower.
        Maker m(other + "/pid-9.cst");
        m.Facts(R"({"pid":9,"exe":"/b/o"})");
        uint32_t main = m.Thread(4000, "main"), s1 = m.Stream(), scaled = m.Kernel(kScaled);
        m.Op(100, main, s1, scaled, {4, 1, 1, 32, 1, 1, 0}, CST_EAGER, 200);
        m.Op(5100, main, s1, scaled, {4, 1, 1, 32, 1, 1, 0}, CST_EAGER, 200);
        m.Close();
    }
    Result r = Diff({TheRun(), other});
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.out, std::string(kFields) +
                         "\n"
                         ",3,more,,2,,50,,1,,1,,,,,,B,,rank-3.pid-2.cst\n"
                         "-1,-1,o,2,2,50,0,1,0,1,1,1,0,1,1100,5200,both,pid-7.cst,pid-9.cst\n"
                         "2,2,prog,2,2,50,50,1,1,1,1,1,0,0,1100,1100,both,rank-2.pid-4000.cst,"
                         "rank-2.pid-1.cst\n"
                         "10,,prog,2,,50,,1,,1,,,,,,,A,rank-10.pid-4000.cst,\n");
    Result back =
        Cusplice({"diff", "--format", "csv", "--fields", "rank_a,gained,lost", other, TheRun()});
    EXPECT_TRUE(Has(back.out, "\n-1,1,0\n")) << back.out;
}

TEST(Folder, AloneIsComparedWithItsFirstProcess) {
    Result r = Cusplice({"diff", "--format", "csv", "--fields",
                         "rank_a,rank_b,in,steps_aligned,trace_a,trace_b", TheRun()});
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.out, "rank_a,rank_b,in,steps_aligned,trace_a,trace_b\n"
                     "-1,2,both,1,pid-7.cst,rank-2.pid-4000.cst\n"
                     "-1,10,both,1,pid-7.cst,rank-10.pid-4000.cst\n");
}

TEST(Folder, OfAStrangerShowsNothingThatATerminalObeys) {
    std::string folder = Path("strange"), out = Path("strange.json");
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    OfRun(folder + "/a.cst", 5000, "{\"exe\":\"/b/\x1b]0;x\",\"rank\":\"1\\u001b\"}");
    OfRun(folder + "/\x1b"
                   "b.cst",
          5000, R"({"exe":"/b/\u001b]0;","rank":1000000,"pid":"x"})");
    Result r = Cusplice({"report", folder});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_FALSE(Has(r.out, "\x1b")) << r.out;
    EXPECT_FALSE(Has(r.out, "1000000")) << "no rank: " << r.out;
    ASSERT_EQ(Cusplice({"export", "--perfetto", out, folder}).Exit(), 0);
    EXPECT_EQ(Of(Python({"tests/export/perfetto.py", out}), "d['problems']"), "[]");
}

TEST(Folder, ThatHoldsNoTraceOrABadOneIsRefusedAndNothingIsLeft) {
    std::string empty = Path("empty"), bad = Path("bad"), far = Path("far"), out = Path("none"),
                one = Path("one");
    for (const std::string &folder : {empty, bad, far, one})
        mkdir(folder.c_str(), 0700);
    OfRun(bad + "/a.cst", 5000, "{}");
    WriteAll(bad + "/b.cst", "what is this?");
    OfRun(far + "/a.cst", 5000, "{}");
    OfRun(one + "/a.cst", 5000, "{}");
    OfRun(far + "/b.cst", uint64_t{1} << 54, "{}");
    const struct {
        Strings arguments;
        int status;
        std::string says;
    } refusals[] = {
        {{"export", "--perfetto", out, empty}, 1, empty + ": no trace (*.cst) is in it"},
        {{"report", empty}, 1, empty + ": no trace (*.cst) is in it"},
        {{"export", "--perfetto", out, bad}, 1, bad + "/b.cst"},
        {{"report", bad}, 1, bad + "/b.cst"},
        {{"export", "--perfetto", out, far}, 1, "they are not of one run"},
        {{"export", "--jsonl", out, TheRun()}, 2, "a folder goes with --perfetto alone"},
        {{"export", "--perfetto", out, "--sqlite", out, TheRun()}, 2, "with --perfetto alone"},
        {{"export", "--force", "--perfetto", TheRun() + "/pid-7.cst", TheRun()}, 1, "pid-7.cst"},
        {{"report", "kernels", TheRun()}, 2, "more than is expected"},
        {{"diff", empty}, 1, empty + ": no trace (*.cst) is in it"},
        {{"diff", TheRun(), bad}, 1, bad + "/b.cst"},
        {{"diff", TheRun(), TheRun() + "/pid-7.cst"},
         2,
         "/pid-7.cst: a folder is compared with a folder"},
        {{"diff", TheRun(), TheRun(), far}, 2, "more than is expected"},
        {{"diff", "--by", "steps", TheRun()}, 2, "--by"},
        {{"diff", one}, 1, one + ": there is one trace in it"},
        {{"diff", TheRun() + "/pid-7.cst"}, 2, "trace B is missing"},
    };
    for (const auto &refusal : refusals) {
        Result r = Cusplice(refusal.arguments);
        EXPECT_EQ(r.Exit(), refusal.status) << r.err;
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, refusal.says)) << refusal.says << "\n" << r.err;
        EXPECT_NE(access(out.c_str(), F_OK), 0) << refusal.says;
    }
}

} // namespace
