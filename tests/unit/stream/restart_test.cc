// Promise: an engine that starts after another one has ended is that of a new process. It has its
// own settings, counts what a new process counts, and leaves nothing behind.
#include "tests/unit/stream/pointers.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "shim/base/clock.h"
#include "shim/base/mem.h"

extern "C" {
#include "shim/api/api.h"
#include "shim/verify/report.h"
}

namespace {

using fake::driver;

// Rules, segments and modes differ; one has a library's rule, one is verified.
fake::Settings One() {
    return {{"CUSPLICE_HOLD_US", "1000000"},
            {"CUSPLICE_SEGMENT_MAX", "4"},
            {"CUSPLICE_EAGER", "eager_*;lib:libeager.so"},
            {"CUSPLICE_LOG", "info"},
            {"CUSPLICE_LOG_FILE", testing::TempDir() + "one.log"}};
}
fake::Settings Other() {
    return {{"CUSPLICE_HOLD_US", "1000000"},
            {"CUSPLICE_SEGMENT_MAX", "8"},
            {"CUSPLICE_MODE", "verify"},
            {"CUSPLICE_EAGER", "k3"},
            {"CUSPLICE_LOG", "error"}};
}

// A program: what it asks for does not depend on what ran before it.
void Run() {
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream gone = fake::MakeStream(CU_STREAM_DEFAULT);
    std::vector<CUfunction> functions = fake::MakeFunctions(12);
    functions.push_back(fake::MakeFunction("eager_a"));
    functions.push_back(fake::MakeFunction("of_a_library"));
    functions.push_back(fake::MakeFunction("tainted"));
    cus_engine_code_loaded(stream, "libeager.so", 0);
    cus_engine_code_made(functions[13], stream);
    cus_engine_taint(functions[14]);
    cus_engine_note_handle(functions[0], CUS_HANDLE_FUNCTION);
    for (CUstream on : {stream, gone})
        for (unsigned step = 0; step < 40; step++) {
            for (CUfunction f : functions)
                EXPECT_EQ(fake::Launch(on, f, step % 3, 2), CUDA_SUCCESS);
            fake::Sync(on);
        }
    cus_stream_ref ref = {gone, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&ref);
}

// All that reports say of an engine, but for times.
std::string Figures() {
    static cus_report report;
    std::ostringstream out;
    cus_counters counters = fake::Counters();
    counters.build_ns = 0;
    char list[4096];
    cus_engine_segment_list(list, sizeof list);
    cus_engine_report(&report, &counters, cus_api_name);
    const auto *words = reinterpret_cast<const uint64_t *>(&counters);
    for (size_t i = 0; i < sizeof counters / sizeof *words; i++)
        if (words[i])
            out << i << ":" << words[i] << " ";
    out << report.mode << " " << list << "\n";
    for (unsigned i = 0; i < report.n_breaks; i++)
        out << report.breaks[i].name << " " << report.breaks[i].launches << " "
            << report.breaks[i].runs << "\n";
    for (unsigned i = 0; i < report.n_segments; i++)
        out << report.largest[i].ops << "*" << report.largest[i].launches << " "
            << report.largest[i].first << "\n";
    out << report.n_rules << " " << report.segments << " " << report.gone << " " << report.gone_ops
        << " " << report.nodes << " " << report.host_bytes << " " << report.host_bytes_most << " "
        << report.first_step_in_graphs << "\n";
    unsigned at = 0, tallies = 0;
    for (cus_tally *tally = nullptr; (tally = cus_tally_next(tally, &at)); tallies++)
        ;
    cus_verify_counts verified;
    cus_report_get(&verified);
    out << tallies << " " << verified.launches << "\n";
    return out.str();
}

std::string FiguresOf(const fake::Settings &settings) {
    fake::Reset();
    cus_virtual.on = true; // what is decided by the time a call takes is the same each time
    cus_virtual.ns = 1000000;
    EXPECT_TRUE(fake::StartEngine(settings));
    Run();
    std::string figures = Figures();
    fake::EndEngine();
    return figures;
}

// In a process that has had no engine.
std::string Fresh(const fake::Settings &settings) {
    int ends[2];
    if (pipe(ends))
        return "no pipe";
    pid_t child = fork();
    if (child == 0) {
        std::string figures = FiguresOf(settings);
        bool written = write(ends[1], figures.data(), figures.size()) == (ssize_t)figures.size();
        _exit(!written || testing::Test::HasFailure());
    }
    close(ends[1]);
    std::string all;
    char part[4096];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
        all.append(part, (size_t)n);
    close(ends[0]);
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return all;
}

// Before any test has started an engine, in whatever order tests run.
class Processes : public testing::Environment {
  public:
    void SetUp() override {
        one = Fresh(One());
        other = Fresh(Other());
    }
    static inline std::string one, other;
};
const auto *const processes = testing::AddGlobalTestEnvironment(new Processes);

class Restart : public fake::EngineTest {};

TEST_F(Restart, EachEngineCountsWhatANewProcessCounts) {
    ASSERT_NE(Processes::one, Processes::other);
    for (int round = 0; round < 2; round++) {
        EXPECT_EQ(FiguresOf(One()), Processes::one) << "round " << round;
        EXPECT_EQ(FiguresOf(Other()), Processes::other) << "round " << round;
    }
}

void Steps(CUstream stream, const std::vector<CUfunction> &functions, int steps) {
    for (; steps; steps--, fake::Sync(stream))
        for (CUfunction f : functions)
            EXPECT_EQ(fake::Launch(stream, f, 1, 2), CUDA_SUCCESS);
}

size_t Threads() {
    std::filesystem::directory_iterator tasks("/proc/self/task");
    return (size_t)std::distance(begin(tasks), end(tasks));
}

TEST_F(Restart, ThreadsOfTheLibraryEndWithTheEngine) {
    std::thread([] {}).join(); // a sanitizer adds one of its own to the first
    size_t before = Threads();
    for (int round = 0; round < 8; round++) {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "2000"},
                                       {"CUSPLICE_SUBMIT_NS", "1"},
                                       {"CUSPLICE_DEMOTE", "no"},
                                       {"CUSPLICE_LIVE", "no"}}));
        CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        std::vector<CUfunction> functions = fake::MakeFunctions(12);
        Steps(stream, functions, 12);
        EXPECT_GT(Threads(), before);
        // Each engine has a watchdog.
        uint64_t flushes = fake::Counters().flushes[CUS_CAUSE_WATCHDOG];
        EXPECT_EQ(fake::Launch(stream, functions[0], 1, 2), CUDA_SUCCESS);
        EXPECT_TRUE(
            Within(20, [&] { return fake::Counters().flushes[CUS_CAUSE_WATCHDOG] != flushes; }));
        if (std::thread::hardware_concurrency() > 1) {
            EXPECT_GT(fake::Counters().submitted, 0u);
        }
        if (round == 0)
            usleep(200 * 1000); // they sleep until they are woken; if not, the test is only weaker
        fake::EndEngine();
        EXPECT_TRUE(Within(20, [&] { return Threads() == before; })); // the kernel's part of it
    }
}

// It remembers a stream of the engine before, on which it had deferred ops, and its context.
TEST_F(Restart, AThreadThatWasThereBeforeUsesTheEngineThatIsThereNow) {
    const fake::Settings settings = {{"CUSPLICE_HOLD_US", "1000000"},
                                     {"CUSPLICE_SEGMENT_MAX", "4"}};
    std::vector<CUfunction> functions = fake::MakeFunctions(12);
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::atomic<int> turn{0};
    fake::Reset();
    ASSERT_TRUE(fake::StartEngine(settings));
    std::thread program([&] {
        for (int engine = 0; engine < 3; engine++) {
            EXPECT_TRUE(Within(60, [&] { return turn == 2 * engine; }));
            Steps(stream, functions, 6);
            for (int i = 0; i < 3; i++)
                EXPECT_EQ(fake::Launch(stream, functions[i], 1, 2), CUDA_SUCCESS);
            turn++;
        }
    });
    for (int engine = 0; engine < 3; engine++) {
        EXPECT_TRUE(Within(60, [&] { return turn == 2 * engine + 1; }));
        EXPECT_EQ(driver().journal.size(), 6 * 12u) << "three are deferred";
        EXPECT_EQ(fake::Counters().steps, 6u);
        EXPECT_GT(fake::Counters().in_graphs, 0u);
        fake::EndEngine();
        ASSERT_TRUE(fake::StartEngine(settings));
        Steps(other, functions, engine); // another stream takes its object
        driver().journal.clear();
        cus_stream_ref ref = {other, CUS_ABI_LEGACY};
        cus_engine_stream_gone(&ref);
        fake::EndEngine();
        ASSERT_TRUE(fake::StartEngine(settings));
        turn++;
    }
    program.join();
    fake::EndEngine();
}

// Of functions, code, streams, memory and the thread.
TEST_F(Restart, WhatWasSaidToAnEngineIsUnknownToTheNext) {
    const fake::Settings settings = {{"CUSPLICE_HOLD_US", "1000000"},
                                     {"CUSPLICE_SEGMENT_MAX", "4"},
                                     {"CUSPLICE_EAGER", "lib:libeager.so"}};
    std::vector<CUfunction> functions = fake::MakeFunctions(12);
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Reset();
    driver().table.cuStreamGetFlags = [](CUstream, unsigned *) { return CUDA_ERROR_UNKNOWN; };
    ASSERT_TRUE(fake::StartEngine(settings));
    Steps(stream, functions, 6);
    EXPECT_EQ(fake::Counters().in_graphs, 0u);
    cus_engine_suspend(true);
    fake::EndEngine();
    // This one sees no context.
    ASSERT_TRUE(fake::StartEngine(settings));
    cus_engine_taint(functions[0]);
    cus_engine_note_handle(functions[1], CUS_HANDLE_KERNEL);
    cus_engine_code_loaded(&settings, "libeager.so", 0);
    cus_engine_code_made(functions[2], &settings);
    fake::EndEngine();

    ASSERT_TRUE(fake::StartEngine(settings));
    Steps(stream, functions, 6);
    uint64_t before = fake::Counters().in_graphs;
    EXPECT_GT(before, 0u);
    Steps(stream, functions, 1);
    EXPECT_EQ(fake::Counters().in_graphs, before + 12);
    fake::EndEngine();
}

// The table that they are in has grown; EndEngine asks what is left of it.
TEST_F(Restart, RangesOfMemoryGoWithTheEngine) {
    std::set<uint64_t> held;
    for (int engine = 0; engine < 2; engine++) {
        fake::Reset();
        driver().table.cuMemcpyAsync = fake::Copy;
        driver().table.cuCtxGetDevice = [](CUdevice *device) {
            *device = 0;
            return CUDA_SUCCESS;
        };
        driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids,
                                                   void **values, CUdeviceptr address) {
            fake::Pointer pointer;
            pointer.start = address & ~4095ull;
            pointer.size = 4096;
            fake::Answer(pointer, n, ids, values);
            return CUDA_SUCCESS;
        };
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}}));
        cus_copy copy = {};
        copy.stream = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
        copy.bytes = 16;
        copy.real = (void *)fake::Copy;
        for (uint64_t i = 0; i < 200; i++) {
            copy.dst = i << 16;
            copy.src = 1ull << 32 | i << 16;
            EXPECT_EQ(cus_engine_copy(&copy), CUDA_SUCCESS);
        }
        held.insert(cus_mem_held());
        fake::EndEngine();
    }
    EXPECT_EQ(held.size(), 1u) << "the table has grown in each";
}

TEST_F(Restart, WhatIsSaidOnceIsSaidByEachEngine) {
    std::string path = testing::TempDir() + "said.log";
    std::filesystem::remove(path);
    for (int engine = 0; engine < 3; engine++) {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_LOG_FILE", path}}));
        fake::EndEngine();
    }
    std::ifstream lines(path);
    int said = 0;
    for (std::string line; std::getline(lines, line);)
        said += line.find("no eager rule") != std::string::npos;
    EXPECT_EQ(said, 3);
}

// Engines that keep what they learned in a folder, one behind the other.
class SignatureCache : public Restart {
  protected:
    void SetUp() override {
        ASSERT_TRUE(mkdtemp(folder_.data()));
        cached_.emplace_back("CUSPLICE_CACHE_DIR", folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    // What an engine with these settings says of its cache behind the program.
    cus_stats_cache Facts(const fake::Settings &settings, const std::function<void()> &program) {
        static cus_report report;
        fake::Reset();
        EXPECT_TRUE(fake::StartEngine(settings));
        program();
        cus_counters counters = fake::Counters();
        cus_engine_report(&report, &counters, cus_api_name);
        cus_engine_cache_save(true);
        fake::EndEngine();
        return report.cache;
    }
    void StepsOfAStream(int steps = 12) {
        Steps(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions_, steps);
    }

    std::string folder_ = testing::TempDir() + "restart-XXXXXX";
    std::vector<CUfunction> functions_ = fake::MakeFunctions(12);
    const fake::Settings plain_ = {{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_SEGMENT_MAX", "4"}};
    fake::Settings cached_ = plain_;
};

TEST_F(SignatureCache, IsTheOneOfItsSettings) {
    auto steps = [&] { StepsOfAStream(); };
    EXPECT_EQ(Facts(cached_, steps).entries, 0u);
    cus_stats_cache again = Facts(cached_, steps);
    EXPECT_GT(again.entries, 0u);
    EXPECT_EQ(again.built, 3u) << "graphs of four ops each";
    EXPECT_EQ(Facts(plain_, steps).state, nullptr);
    EXPECT_EQ(Facts(cached_, steps).built, again.built);
}

TEST_F(SignatureCache, ServesTheNextContextAtAnAddress) {
    Facts(cached_, [&] { StepsOfAStream(); });
    cus_stats_cache facts = Facts(cached_, [&] {
        CUcontext context;
        StepsOfAStream(1);
        driver().table.cuCtxGetCurrent(&context);
        fake::EndContext(context);
        StepsOfAStream();
    });
    EXPECT_EQ(facts.built, 3u);
}

TEST_F(SignatureCache, HasWhatWasLearnedOfCodeThatHasGone) {
    Facts(cached_, [&] {
        StepsOfAStream();
        cus_engine_code_gone();
    });
    EXPECT_EQ(Facts(cached_, [] {}).entries, 3u);
}

// The table of what is kept for the next run begins with 1024 places.
TEST_F(SignatureCache, Grows) {
    functions_ = fake::MakeFunctions(2200);
    const fake::Settings settings = {{"CUSPLICE_HOLD_US", "1000000"},
                                     {"CUSPLICE_SEGMENT_MAX", "2"},
                                     {"CUSPLICE_BUILD_US", "0"},
                                     {"CUSPLICE_DEMOTE", "no"},
                                     {"CUSPLICE_CACHE_DIR", folder_}};
    Facts(settings, [&] { StepsOfAStream(); });
    EXPECT_EQ(Facts(settings, [] {}).entries, 1100u);
}

} // namespace

int main(int argc, char **argv) {
#ifdef __SANITIZE_ADDRESS__
    // Tests of --config=asan are told to look for no leaks; this one looks.
    const char *leaks = "detect_leaks=1:exitcode=99", *now = getenv("ASAN_OPTIONS");
    if (!now || strcmp(now, leaks) != 0) {
        setenv("ASAN_OPTIONS", leaks, 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
#endif
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
