// Promise: on the simulator the player repeats what was recorded, plain and preloaded, and reports
// every wrong result.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/player/play.h"

namespace {

class Plays : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, Plays, testing::Values("plain", "piecewise", "full", "eager"));

TEST_P(Plays, TheEndIsTheRecordedOneEachTime) {
    Environment more;
    if (GetParam() != "plain")
        more = {{"LD_PRELOAD", "shim/libcusplice.so"},
                {"CUSPLICE_MODE", GetParam()},
                {"CUSPLICE_LOG", "error"}};
    for (bool packed : {false, true}) {
        std::string trace = MakeSteps(GetParam() + ".cst", 12, packed);
        Result r = Play(trace, "check\nrun 12\nsums\ncheck\nquit\n", more);
        ASSERT_EQ(r.Exit(), 0) << r.out << r.err;
        EXPECT_EQ(r.err, "");
        sim::Json ready = Answer(r, 0), run = Answer(r, 2);
        EXPECT_EQ(ready.text["ready"], "true");
        EXPECT_EQ(ready.Number("steps"), 12);
        EXPECT_EQ(ready.Number("ops"), 12 * 17); // the wait for what was never recorded is none
        EXPECT_EQ(ready.Number("launches"), 12 * 8);
        EXPECT_EQ(ready.Number("memory_bytes"), 3 * kGranule);
        EXPECT_FALSE(ready.Has("warnings.0")) << r.out;
        for (size_t line : {1u, 3u, 4u}) {
            EXPECT_EQ(Answer(r, line).Number("checks"), 3);
            EXPECT_EQ(Answer(r, line).Number("wrong"), 0) << r.out;
        }
        EXPECT_TRUE(run.Has("ns.11"));
        bool graphs = GetParam() == "piecewise" || GetParam() == "full";
        EXPECT_EQ(ready.Number("interface"), GetParam() == "plain" ? 0 : 1);
        EXPECT_EQ(run.Number("issued"), GetParam() == "plain" ? 0 : 12 * 12 * 14);
        if (graphs)
            EXPECT_GE(run.Number("in_graphs"), run.Number("issued") / 3);
        else
            EXPECT_EQ(run.Number("in_graphs"), 0);
    }
}

std::vector<double> Curve(const Result &r, size_t line) {
    sim::Json answer = Answer(r, line);
    std::vector<double> ns;
    for (std::string at; at = "ns." + std::to_string(ns.size()), answer.Has(at);)
        ns.push_back(answer.Number(at));
    return ns;
}

// Steps of 3, 5, 5, 2, 5 calls: of a pass, three are typical.
TEST(Player, TheCurveIsOfTheFirstTypicalStepsInTheirOrder) {
    std::string path = Fresh("curve.cst");
    Made m(path);
    m.Module();
    uint64_t a = m.Alloc(0, 4096);
    for (int calls : {3, 5, 5, 2, 5}) {
        for (int i = 1; i < calls; i++)
            m.Chain(0, a, 3, 1, 4);
        m.Sync(0);
    }
    ASSERT_EQ(m.Close(), 0);
    Result r = Play(path, "curve\ncheck\ncurve\nrun 4\ncurve\nrun 90\ncurve\n");
    ASSERT_EQ(r.Exit(), 0) << r.out << r.err;
    std::vector<double> first = Curve(r, 3), then = Curve(r, 5), last = Curve(r, 7);
    EXPECT_TRUE(Curve(r, 1).empty()) << "nothing was played";
    ASSERT_EQ(first.size(), 3u) << "the pass of check";
    ASSERT_EQ(then.size(), 3u + 4 * 3);
    EXPECT_EQ(last.size(), 256u) << "no more are kept";
    last.resize(then.size());
    EXPECT_EQ(last, then) << "what was kept stays";
    for (size_t i = 0; i < 3; i++)
        EXPECT_EQ(then[i], first[i]);
    sim::Json run = Answer(r, 4);
    for (size_t pass = 0; pass < 4; pass++) { // the median of each pass is that of its three
        std::vector<double> steps(then.begin() + 3 * (pass + 1), then.begin() + 3 * (pass + 2));
        EXPECT_LT(steps[0] + steps[1] + steps[2], run.Number("ns." + std::to_string(pass)));
        std::sort(steps.begin(), steps.end());
        EXPECT_EQ(steps[1], run.Number("step_ns." + std::to_string(pass)));
    }
    // The first pass is in it, whoever asks for it.
    EXPECT_EQ(Curve(Play(path, "run 1\ncurve\n"), 2).size(), 6u);
}

// In their order: the second one of each pass waits.
TEST(Player, TheCurveHasEachStepAtItsPlace) {
    std::string path = Fresh("place.cst");
    Made m(path);
    m.Module();
    uint64_t a = m.Alloc(0, 4096);
    for (uint64_t ms : {0, 40, 0}) {
        m.gap_ns = ms * 1000000;
        m.Chain(0, a, 3, 1, 4);
        m.Sync(0);
    }
    ASSERT_EQ(m.Close(), 0);
    std::vector<double> ns = Curve(Play(path, "check\nrun 1\ncurve\n", {}, "recorded"), 3);
    ASSERT_EQ(ns.size(), 6u);
    EXPECT_GE(ns[1], 80e6);
    EXPECT_GE(ns[4], 80e6);
}

TEST(Player, AWrongSumIsFoundAndNamed) {
    std::string trace = MakeSteps("wrong.cst", 3, false, true);
    Result r = Play(trace, "check\ncheck\n");
    EXPECT_EQ(r.Exit(), 0);
    for (size_t line : {1u, 2u}) {
        EXPECT_EQ(Answer(r, line).Number("wrong"), 1);
        char where[64];
        snprintf(where, sizeof where, "0x%lx (8192 bytes)", Base() + 3 * kGranule - 4096);
        EXPECT_EQ(Answer(r, line).text["where.0"], where);
    }
}

// Ops that are swapped, left out or done twice change the end: the sums of the steps see it.
TEST(Player, EachPassBeginsWhereTheRecordingBegan) {
    std::string path = Fresh("again.cst");
    Made m(path);
    m.Module();
    uint64_t a = m.Alloc(0, 1 << 20), b = m.Alloc(kGranule, 4096);
    m.Contents(a + 512 * 1024, {1, 2, 3, 4});
    m.Chain(0, a + 512 * 1024, 3, 1, 4); // reads what it writes
    m.Chain(0, b, 5, 7, 16);
    m.Sync(0);
    m.Check(a, 1 << 20);
    m.Check(b, 4096);
    ASSERT_EQ(m.Close(), 0);
    Result r = Play(path, "run 3\nsums\nrun 2\nsums\ncheck\n");
    for (size_t line : {2u, 4u, 5u}) {
        EXPECT_EQ(Answer(r, line).Number("wrong"), 0) << r.out;
        EXPECT_EQ(Answer(r, line).Number("checks"), 2);
    }
}

TEST(Player, EverySortOfWorkIsDone) {
    std::string path = Fresh("sorts.cst"), log = Fresh("sorts.log");
    Made m(path);
    m.Module(false);
    uint32_t legacy = m.Lane(CST_STREAM_LEGACY), own = m.Lane(CST_STREAM_PER_THREAD);
    uint64_t a = m.Alloc(0, 1 << 16);
    m.Upload(legacy, a, {1, 2, 3, 4})->sync = 1;
    m.Upload(own, a + 256, {5, 6}, 0x1234000); // pageable
    m.Event(CST_WORK_RECORD, own, 0xe1);
    m.Event(CST_WORK_WAIT, legacy, 0xe1);
    m.Memset(legacy, a + 512, 1, 0x11, 5);
    m.Memset(legacy, a + 1024, 2, 0x2222, 5)->sync = 1;
    m.Memset(legacy, a + 1536, 4, 0x33333333, 5);
    m.Memset(legacy, a + 2048, 1, 0x44, 5, 3, 32);
    m.Memset(legacy, a + 3072, 2, 0x5555, 5, 3, 32)->sync = 1;
    m.Memset(legacy, a + 4096, 4, 0x66666666, 5, 3, 32);
    m.Move(legacy, a + 8192, a, 64)->sync = 1;
    m.Move(legacy, a + 8256, a + 512, 64);
    m.Download(legacy, a, 64)->sync = 1;
    m.Download(legacy, a, 64);
    uint32_t code = m.Code(1, "chain", {8, 4, 4, 4});
    cst_attribute cooperative = {2, 4, {1}};
    m.Launch(legacy, code, 1, 32, {a + 16384, 1, 9, 16}, {cooperative});
    m.Launch(legacy, code, 1, 32, {a + 16384, 2, 0, 16})->cooperative = 1;
    m.Event(CST_WORK_RECORD, legacy, 0xe1);
    m.Event(CST_WORK_SYNC, 0, 0xe1);
    m.Chain(legacy, a + 32768, 3, 4, 8);
    m.Check(a, 16384);
    ASSERT_EQ(m.Close(), 0);
    Result r = Play(path, "check\n", {{"CUSIM_LOG", log}});
    ASSERT_EQ(r.Exit(), 0) << r.out << r.err;
    EXPECT_EQ(Answer(r, 0).Number("steps"), 3); // a download that waits, a wait, the end
    EXPECT_EQ(Answer(r, 1).Number("wrong"), 0) << r.out;
    std::string text = ReadFile(log);
    EXPECT_TRUE(Has(text, "memset2d 0x")) << text;
    EXPECT_TRUE(Has(text, " cooperative")) << text;
}

// A function and a kernel are different handles, and what is set on them is set by different calls.
TEST(Player, FunctionsAreNamedAsTheProgramNamedThem) {
    for (uint32_t kernel : {0u, 1u}) {
        std::string path = Fresh("handles.cst"), calls = Folder() + "/handles.json";
        Made m(path);
        m.Module();
        uint64_t a = m.Alloc(0, 4096);
        uint32_t name = m.s.String("touch");
        auto *code = static_cast<cst_code *>(cst_sink_add(
            &m.s.sink, CST_CODE, sizeof(cst_code) + sizeof(cst_argument) + sizeof(cst_setting)));
        code->id = code->module = 1;
        code->name = name;
        code->kernel = kernel;
        code->n_arguments = code->n_attributes = 1;
        code->param_bytes = 8;
        auto *argument = reinterpret_cast<cst_argument *>(code + 1);
        *argument = {0, 8};
        *reinterpret_cast<cst_setting *>(argument + 1) = {8, 4096};
        cst_work *work = m.Work(CST_WORK_LAUNCH, 0, 8);
        work->code = 1;
        for (int i = 0; i < 6; i++)
            work->dims[i] = 1;
        memcpy(work + 1, &a, 8);
        ASSERT_EQ(m.Close(), 0);
        Result r = Play(path, "check\n", {{"CUSIM_STATS", calls}});
        EXPECT_EQ(r.Exit(), 0) << r.out;
        sim::Json called = sim::ParseJson(ReadFile(calls));
        std::map<std::string, double> of;
        for (const auto &[where, number] : called.number)
            of[where.substr(where.rfind('.') + 1)] += number;
        EXPECT_EQ(of["cuKernelGetFunction"], kernel ? 0 : 1);
        EXPECT_EQ(of["cuFuncSetAttribute"], kernel ? 0 : 1);
        EXPECT_EQ(of["cuKernelSetAttribute"], kernel ? 1 : 0);
    }
}

// A limit that the program raised and lowered between launches: with either alone, some would fail.
TEST(Player, SettingsAreThoseOfEachLaunch) {
    std::string path = Fresh("settings.cst"), calls = Folder() + "/settings.json";
    Made m(path);
    m.Module();
    uint64_t a = m.Alloc(0, 1 << 20);
    uint32_t name = m.s.String("reduce_dynamic");
    for (uint32_t id : {1u, 2u}) {
        auto *code = static_cast<cst_code *>(
            cst_sink_add(&m.s.sink, CST_CODE,
                         sizeof(cst_code) + 3 * sizeof(cst_argument) + sizeof(cst_setting)));
        code->id = id;
        code->module = code->kernel = code->n_attributes = 1;
        code->name = name;
        code->n_arguments = 3;
        code->param_bytes = 20;
        auto *argument = reinterpret_cast<cst_argument *>(code + 1);
        argument[0] = {0, 8};
        argument[1] = {8, 8};
        argument[2] = {16, 4};
        *reinterpret_cast<cst_setting *>(argument + 3) = {8, id == 1 ? 65536 : 49152};
    }
    for (uint32_t id : {1u, 1u, 2u, 1u}) {
        cst_work *work = m.Work(CST_WORK_LAUNCH, 0, 24);
        uint64_t params[3] = {a, a + 4096, 256};
        work->code = id;
        for (int i = 0; i < 6; i++)
            work->dims[i] = i == 3 ? 256 : 1;
        work->dims[6] = id == 1 ? 65536 : 2048;
        memcpy(work + 1, params, 24);
    }
    ASSERT_EQ(m.Close(), 0);
    Result r = Play(path, "check\nrun 2\n", {{"CUSIM_STATS", calls}});
    EXPECT_EQ(r.Exit(), 0) << r.out;
    double set = 0;
    for (const auto &[where, number] : sim::ParseJson(ReadFile(calls)).number)
        if (where.substr(where.rfind('.') + 1) == "cuKernelSetAttribute")
            set += number;
    EXPECT_EQ(set, 2 + 3 * 3); // when it is loaded; and at the first launch, and at each change
}

TEST(Player, EachLaneIsAStreamOfItsOwn) {
    std::string trace = MakeSteps("lanes.cst", 1), log = Fresh("lanes.log");
    Result r = Play(trace, "check\n", {{"CUSIM_LOG", log}});
    EXPECT_EQ(r.Exit(), 0) << r.out;
    std::string text = ReadFile(log);
    EXPECT_TRUE(Has(text, "\nS1 kernel copy_words")) << text; // S0: the player's own copies
    EXPECT_TRUE(Has(text, "\nS2 memset ")) << text;
}

// It decides how a copy is done, and whether a graph can hold it.
TEST(Player, HostMemoryIsPinnedWhereItWas) {
    for (bool pinned : {false, true}) {
        std::string path = Fresh("pinned.cst"), calls = Folder() + "/pinned.json";
        Made m(path);
        m.Module();
        uint64_t a = m.Alloc(0, 4096), host = 0x7f1000000000;
        m.Span(CST_SPAN_HOST, host, 4096, "cuMemHostAlloc");
        m.Span(CST_SPAN_HOST, host + 8192, 4096, "cuMemHostAlloc");
        m.Upload(0, a, {1, 2}, pinned ? host + 8 : host - 8);
        m.Download(0, a, 8, pinned ? host + 64 : host - 64);
        m.Download(0, a, 16, pinned ? host + 128 : host - 128); // in the block of the last
        m.Download(0, a, 16, pinned ? host + 8192 : host - 8192);
        m.Check(a, 8);
        ASSERT_EQ(m.Close(), 0);
        Result r = Play(path, "check\n", {{"CUSIM_STATS", calls}});
        EXPECT_EQ(Answer(r, 1).Number("wrong"), 0) << r.out;
        double allocated = 0;
        for (const auto &[where, number] : sim::ParseJson(ReadFile(calls)).number)
            if (where.substr(where.rfind('.') + 1) == "cuMemHostAlloc")
                allocated += number;
        EXPECT_EQ(allocated, pinned ? 4 : 1); // one is the player's own
    }
}

TEST(Player, TheHostTakesTheTimeThatItTook) {
    std::string path = Fresh("pace.cst");
    Made m(path);
    m.Module();
    uint64_t a = m.Alloc(0, 4096);
    m.gap_ns = 2000000;
    for (int i = 0; i < 5; i++)
        m.Chain(0, a, 3, 1, 4);
    ASSERT_EQ(m.Close(), 0);
    Result r = Play(path, "run 2\n", {}, "recorded");
    EXPECT_GE(Answer(r, 1).Number("ns.0"), 4 * 2000000) << r.out; // the first has nothing before it
    EXPECT_GE(Answer(r, 1).Number("ns.1"), 4 * 2000000) << r.out;
}

// Steps that issue the same calls take the times of the fastest of them; others, and the one that a
// thread begins with, keep their own where they are typical.
TEST(Player, TheHostTakesTheTimeOfTheFastestStep) {
    std::string path = Fresh("fastest.cst");
    Made m(path);
    m.Module();
    uint64_t a = m.Alloc(0, 4096);
    for (uint64_t ms : {1, 900, 7, 900, 900}) {
        m.gap_ns = ms * 1000000;
        m.Chain(0, a, 3, 1, 4);
        m.Sync(0);
    }
    m.gap_ns = 60000000; // as many calls, but not the same
    m.Memset(0, a, 4, 1, 16);
    m.Sync(0);
    ASSERT_EQ(m.Close(), 0);
    double ns = Answer(Play(path, "run 1\n", {}, "fastest"), 1).Number("ns.0");
    EXPECT_GE(ns, 1e6 + 4 * 2 * 7e6 + 2 * 60e6);
    EXPECT_LT(ns, 2 * 900e6) << "a slow step";
    EXPECT_EQ(Play(path, "quit\n", {}, "slowest").Exit(), 2);
}

TEST(Player, AFailingCallIsNamedWithItsOp) {
    Small t("fails.cst");
    t.m.Chain(t.lane, t.a, 3, 1, 16);
    cst_work *work = t.m.Launch(t.lane, 1, 1, 4096, {t.a, 1, 1, 1}); // too many threads
    EXPECT_EQ(work->dims[3], 4096u);
    Result r = Play(t.End(), "check\nquit\n");
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(
        Has(Answer(r, 1).text["error"], "op 1 of 4 (kernel chain): CUDA_ERROR_INVALID_VALUE"))
        << r.out;
}

} // namespace
