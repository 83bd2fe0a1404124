// Promises: generated programs run alike plain and preloaded, also if calls of the library fail. A
// program's results do not depend on timing. The fuzzer finds a planted error and makes the program
// small; the printed program compiles and does the same.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "shim/trace/record.h"
#include "tests/fuzz/servers.h"
#include "tests/sim/child.h"
#include "tools/trace/model.h"
#include "tools/trace/reader.h"

namespace {

using sim::Result;

const std::string differential = "tests/fuzz/differential";

Result Fuzz(std::vector<std::string> words, std::map<std::string, std::string> env = {}) {
    sim::Child child;
    child.command = {sim::Runfile(differential)};
    child.command.insert(child.command.end(), words.begin(), words.end());
    child.env = std::move(env);
    for (const char *name :
         {"CUS_TEST_PRELOAD_FIRST", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
        if (const char *value = getenv(name)) {
            child.env[name] = value;
        }
    }
    if (sim::Sanitizer() == "tsan") {
        child.env["FUZZ_TSAN_SUPPRESSIONS"] = sim::Runfile("tests/fuzz/tsan.supp");
    }
    child.timeout_s = 800;
    return sim::Run(child);
}

// Sanitizers and qemu cost ten times the time and more.
std::string Count(unsigned programs) {
    const bool slow = !sim::Sanitizer().empty() || getenv("CUS_TEST_EMULATED");
    return std::to_string(slow ? programs / 10 : programs);
}

std::string LastLine(const std::string &text) {
    size_t end = text.find_last_not_of('\n');
    size_t from = text.rfind('\n', end);
    return text.substr(from + 1, end - from);
}

// One pair of servers for all, and more programs than are kept (tools/soak).
TEST(Differential, OnePairOfServersRunsThemAll) {
    Result r = Fuzz({"--programs", Count(130), "--one-pair", "--seed", "3", "--min-share", "0",
                     "--out", sim::TempDir()});
    EXPECT_EQ(r.status, 0) << r.out << r.err;
    EXPECT_NE(r.out.find(" " + Count(130) + " programs, 0 differences"), std::string::npos)
        << r.out;
}

TEST(Differential, ProgramsRunAlike) {
    Result r =
        Fuzz({"--programs", Count(2000), "--seed", "1", "--jobs", "2", "--out", sim::TempDir()});
    EXPECT_EQ(r.status, 0) << r.out << r.err;
    EXPECT_NE(r.out.find(" " + Count(2000) + " programs, 0 differences"), std::string::npos)
        << r.out;
    printf("%s\n", LastLine(r.out).c_str());
}

TEST(Differential, ProgramsRunAlikeWhereCallsOfTheLibraryFail) {
    Result r = Fuzz({"--programs", Count(600), "--seed", "2", "--jobs", "2", "--faults", "--out",
                     sim::TempDir()});
    EXPECT_EQ(r.status, 0) << r.out << r.err;
    EXPECT_NE(r.out.find(" 0 differences"), std::string::npos) << r.out;
    printf("%s\n", LastLine(r.out).c_str());
}

// While it is recorded a program runs alike, and the trace is whole. A process records less than
// one ring holds, so nothing is lost however long the writer is kept from its work.
TEST(Differential, RecordedProgramsRunAlike) {
    constexpr int PROCESSES = 40;
    std::string dir = sim::TempDir() + "/traces";
    ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
    for (int seed = 3; seed < 3 + PROCESSES; seed++) {
        Result r = Fuzz({"--programs", Count(15), "--seed", std::to_string(seed), "--jobs", "1",
                         "--out", sim::TempDir()},
                        {{"FUZZ_RECORD", dir}});
        EXPECT_EQ(r.status, 0) << r.out << r.err;
    }
    uint64_t ops = 0, in_graphs = 0, traces = 0;
    for (const auto &file : std::filesystem::directory_iterator(dir)) {
        char error[512];
        cst_trace *trace = cst_open(file.path().c_str(), error, sizeof error);
        ASSERT_TRUE(trace) << error;
        model *model = model_make(trace);
        ASSERT_TRUE(model);
        EXPECT_TRUE(trace->closed) << file.path();
        EXPECT_LT(file.file_size(), static_cast<uintmax_t>(CUS_RING)) << file.path();
        EXPECT_EQ(trace->lost_records, 0u) << file.path();
        EXPECT_EQ(model->in_graphs + model->flushed + model->eager, trace->ops) << file.path();
        ops += trace->ops;
        in_graphs += model->in_graphs;
        traces++;
        model_free(model);
        cst_free(trace);
    }
    EXPECT_GE(traces, static_cast<uint64_t>(PROCESSES));
    EXPECT_GT(in_graphs, ops / 20);
}

TEST(Differential, ProgramsHaveOneRightAnswer) {
    fuzz::Paths paths = fuzz::FindPaths();
    for (uint64_t batch = 0; batch < 4; batch++) {
        fuzz::Case c;
        for (uint64_t i = 0; i < 30; i++) {
            c.programs.push_back(fuzz::MakeProgram(77, batch * 30 + i, false));
        }
        EXPECT_EQ(fuzz::RunPlainTwice(paths, c, batch), "");
    }
}

// A program that is shrunk because it is stuck is given less time than those that others run.
TEST(Server, HasALimitOfItsOwn) {
    fuzz::Paths paths = fuzz::FindPaths();
    fuzz::Server hurried(paths, {}, false, 20), patient(paths, {}, false);
    fuzz_request request = {};
    request.program = fuzz::MakeProgram(77, 3, false);
    request.seed = 1;
    request.delay_us = 2000;
    ASSERT_TRUE(hurried.Send(request));
    ASSERT_TRUE(patient.Send(request));
    fuzz::Answer answer;
    EXPECT_EQ(hurried.Receive(&answer).substr(0, 25), "stuck: no answer in 20 ms");
    EXPECT_EQ(patient.Receive(&answer), "");
    EXPECT_GT(answer.log.size(), 0u);
}

// One job: with two, it is chance which program is found first, and how rarely it differs.
TEST(Planted, ADroppedNodeIsFoundAndTheProgramIsSmall) {
    std::string dir = sim::TempDir();
    Result r = Fuzz({"--programs", "400", "--seed", "5", "--jobs", "1", "--out", dir},
                    {{"FUZZ_PLANT", "drop:3"}});
    EXPECT_EQ(r.status, 1) << r.out << r.err;
    EXPECT_NE(r.out.find("static const struct op ops_0[]"), std::string::npos) << r.out;
    size_t at = r.out.find(dir + "/fuzz-5-");
    ASSERT_NE(at, std::string::npos);
    std::string file = r.out.substr(at, r.out.find(".txt", at) + 4 - at);
    fuzz::Case c;
    ASSERT_EQ(fuzz::FromText(ReadFile(file), &c), "");
    EXPECT_EQ(c.programs.size(), 1u);
    EXPECT_LE(c.programs.back().n_ops, 8u) << ReadFile(file);
    EXPECT_NE(ReadFile(file.substr(0, file.size() - 3) + "c").find("int main(void)"),
              std::string::npos);
    // The saved program differs again where the error is, and nowhere else.
    EXPECT_EQ(Fuzz({"--replay", file, "--tries", "100"}, {{"FUZZ_PLANT", "drop:3"}}).status, 1);
    EXPECT_EQ(Fuzz({"--replay", file}).status, 0);
}

TEST(Planted, SwappedNodesAreFound) {
    Result r = Fuzz({"--programs", "400", "--seed", "6", "--jobs", "2", "--out", sim::TempDir()},
                    {{"FUZZ_PLANT", "swap:20"}});
    EXPECT_EQ(r.status, 1) << r.out << r.err;
    EXPECT_NE(r.out.find("differs"), std::string::npos);
}

// Of a graph that forks, or has programmatic launches.
TEST(Planted, AnEdgeThatIsIgnoredIsFound) {
    Result r = Fuzz({"--programs", "400", "--seed", "1", "--jobs", "2", "--shrink", "0", "--out",
                     sim::TempDir()},
                    {{"FUZZ_PLANT", "edge:3"}});
    EXPECT_EQ(r.status, 1) << r.out << r.err;
    EXPECT_NE(r.out.find("differs"), std::string::npos);
}

// tests/fuzz/README.md says how long one in 10,000 takes.
TEST(Planted, APatchThatIsLostIsFound) {
    Result r = Fuzz({"--programs", "400", "--seed", "1", "--jobs", "2", "--shrink", "0", "--out",
                     sim::TempDir()},
                    {{"FUZZ_PLANT", "patch:500"}});
    EXPECT_EQ(r.status, 1) << r.out << r.err;
    EXPECT_NE(r.out.find("differs"), std::string::npos);
}

TEST(Planted, ALibraryWithoutGraphsIsNotTakenForAGoodOne) {
    Result r = Fuzz({"--programs", "240", "--seed", "1", "--jobs", "2", "--out", sim::TempDir()},
                    {{"FUZZ_PRELOAD", sim::Runfile("harness/sim/lib/libcusim_kernels.so")}});
    EXPECT_EQ(r.status, 1) << r.out << r.err;
    EXPECT_NE(r.out.find("too few of the operations went out in graphs"), std::string::npos)
        << r.out;
}

// Once a launch was left out: it stood where an earlier segment had a record that came again
// (plan.c: begin).
TEST(Differential, NoLaunchIsTakenForARecordThatComesAgain) {
    Result r = Fuzz({"--replay", sim::Runfile("tests/fuzz/superseded.txt")});
    EXPECT_EQ(r.status, 0) << r.out;
}

TEST(Printed, EveryVerbCompilesAndRunsAlike) {
    std::string text = ReadFile(sim::Runfile("tests/fuzz/every_verb.txt"));
    for (unsigned v = 0; v < FUZZ_VERBS; v++) {
        EXPECT_NE(text.find(std::string("op ") + fuzz::VerbName(v) + " "), std::string::npos)
            << fuzz::VerbName(v);
    }
    sim::Child child;
    child.command = {sim::Runfile("tests/fuzz/every_verb")};
    std::string lib = sim::Runfile("harness/sim/lib/libcuda.so.1");
    child.env = {{"LD_LIBRARY_PATH", lib.substr(0, lib.rfind('/'))},
                 {"TSAN_OPTIONS", "suppressions=" + sim::Runfile("tests/fuzz/tsan.supp")}};
    Result plain = sim::Run(child);
    EXPECT_EQ(plain.status, 0) << plain.err;
    EXPECT_NE(plain.out.find("lane 3: "), std::string::npos);
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    child.env["LD_PRELOAD"] =
        (first ? std::string(first) + ":" : "") + sim::Runfile("shim/libcusplice.so");
    child.env["CUSPLICE_WARMUP"] = "1";
    Result preloaded = sim::Run(child);
    EXPECT_EQ(preloaded.status, 0) << preloaded.err;
    EXPECT_EQ(plain.out, preloaded.out);
}

// What one run leaves behind, the same programs begin with in the next one.
TEST(Differential, ProgramsRunAlikeWithASignatureCache) {
    std::string folder = sim::TempDir();
    for (int run = 0; run < 2; run++) {
        Result r =
            Fuzz({"--programs", Count(400), "--seed", "21", "--jobs", "2", "--out", sim::TempDir()},
                 {{"FUZZ_CACHE", folder}});
        EXPECT_EQ(r.status, 0) << r.out << r.err;
        EXPECT_NE(r.out.find(" programs, 0 differences"), std::string::npos) << r.out;
    }
    EXPECT_GT(ReadFile(folder + "/cusplice.cache").size(), 1000u);
}

TEST(Help, NamesEveryOption) {
    Result r = Fuzz({"--help"});
    EXPECT_EQ(r.status, 0);
    for (const char *word : {"--programs", "--seconds", "--seed", "--jobs", "--faults", "--replay",
                             "--minimise", "--print"}) {
        EXPECT_NE(r.out.find(word), std::string::npos) << word;
    }
    EXPECT_EQ(Fuzz({"--no-such"}).status, 2);
    EXPECT_EQ(Fuzz({"--replay", "/no/such/file"}).status, 2);
}

} // namespace
