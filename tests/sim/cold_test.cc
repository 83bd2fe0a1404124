// Promise: with a cache folder the second run of a program is in graphs from its second step on.
// Whatever the file holds (another program's or build's data, hostile or broken data), results are
// those of the plain run, and builds are bounded.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "shim/cache/cache.h"

namespace sim {
namespace {

const Case kProgram = {"program", 0, "", "", {}};

std::string File(const std::string &folder) {
    return folder + "/" CUS_CACHE_FILE;
}

Outcome RunIn(const std::string &folder, const std::vector<std::string> &command,
              std::map<std::string, std::string> env = {}, int timeout_s = 60) {
    Setting setting;
    setting.preload = true;
    setting.timeout_s = timeout_s;
    // A machine that is busy, and now and then slow, counts the same: sizes follow no clock.
    // Whether the driver has room for 32 graphs at once is no matter here.
    setting.env = {{"CUSIM_DELAY_US", "0"},
                   {"CUSPLICE_TRUST_DRIVER", "yes"},
                   {"CUSPLICE_HOLD_US", "1000000"},
                   {"CUSPLICE_SEGMENT_FIRST", "32"},
                   {"CUSPLICE_SEGMENT_MAX", "32"}};
    if (!folder.empty())
        setting.env["CUSPLICE_CACHE_DIR"] = folder;
    for (const auto &entry : env)
        setting.env[entry.first] = entry.second;
    return RunProgram(command, setting);
}

// Steps of so many launches on one stream, a wait behind each.
std::vector<std::string> Loop(unsigned launches, const std::vector<std::string> &more = {},
                              unsigned steps = 15) {
    std::vector<std::string> command = {
        Runfile("harness/bench/growth"), "--nodes", std::to_string(launches), "--warmup",
        std::to_string(steps),           "--steps", std::to_string(steps)};
    command.insert(command.end(), more.begin(), more.end());
    return command;
}

std::string Sum(const Outcome &outcome) {
    return ParseJson(outcome.result.out).text["checksum"];
}

std::vector<cus_cache_entry> Entries(const std::string &folder) {
    cus_cache cache;
    const char *why;
    EXPECT_EQ(cus_cache_read(folder.c_str(), &cache, &why), CUS_CACHE_GOOD) << why;
    std::vector<cus_cache_entry> entries(cache.entries, cache.entries + cache.n);
    cus_cache_free(&cache);
    return entries;
}

void Write(const std::string &folder, std::vector<cus_cache_entry> entries) {
    bool wrote = false;
    uint32_t n;
    const char *why;
    entries.resize(cus_cache_sort(entries.data(), (uint32_t)entries.size()));
    ASSERT_EQ(cus_cache_update(folder.c_str(), 1 << 20, entries.data(), (uint32_t)entries.size(),
                               nullptr, 0, &n, &wrote, &why),
              CUS_CACHE_GOOD)
        << why;
    ASSERT_TRUE(wrote);
}

TEST(Cold, SecondRunIsInGraphsFromItsSecondStep) {
    const std::string folder = TempDir();
    Outcome first = RunIn(folder, Loop(1000)), second = RunIn(folder, Loop(1000));
    ASSERT_EQ(first.result.status, 0) << first.Describe();
    ASSERT_EQ(second.result.status, 0) << second.Describe();
    ASSERT_STATS(first);
    ASSERT_STATS(second);
    EXPECT_EQ(Sum(first), Sum(second));
    const Json &before = first.stats, &now = second.stats;
    EXPECT_EQ(before.text.at("cache.state"), "none");
    EXPECT_GE(before.Number("first_step_in_graphs"), 3);
    EXPECT_GE(before.Number("issued.eager"), 2000);
    EXPECT_EQ(now.text.at("cache.state"), "good");
    EXPECT_EQ(now.Number("first_step_in_graphs"), 2);
    EXPECT_EQ(now.Number("issued.eager"), 1000) << "the first step, and nothing else";
    EXPECT_EQ(now.Number("cache.entries"), before.Number("cache.in_file"));
    EXPECT_EQ(now.Number("cache.met"), now.Number("cache.entries"));
    EXPECT_EQ(now.Number("cache.used"), now.Number("cache.entries"));
    EXPECT_EQ(now.Number("cache.built"), now.Number("cache.entries"));
    EXPECT_EQ(now.Number("built"), now.Number("cache.built"));
    EXPECT_EQ(now.Number("cache.written"), 0) << "there was nothing to add";
}

TEST(Cold, WithoutAFolderThereIsNoCache) {
    Outcome run = RunIn("", Loop(100));
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    EXPECT_EQ(run.stats.text.count("cache.state"), 0u);
    EXPECT_GE(run.stats.Number("first_step_in_graphs"), 3);
}

// Steps of several kinds in turn: each from the second time on that it comes, and not counted as if
// what never came could have been a graph.
TEST(Cold, EachOfSeveralStepsIsInGraphsWhenItComesAgain) {
    const std::string folder = TempDir();
    const auto turns = Loop(300, {"--signatures", "3", "--differ", "order"}, 30);
    Outcome first = RunIn(folder, turns), second = RunIn(folder, turns);
    ASSERT_STATS(first);
    ASSERT_STATS(second);
    EXPECT_GE(first.stats.Number("first_step_in_graphs"), 4);
    EXPECT_EQ(second.stats.Number("first_step_in_graphs"), 2);
    EXPECT_EQ(second.stats.Number("issued.eager"), 3 * 300);
}

// Its matrix products are from a library, its copies are nodes, its grids change.
TEST(Cold, TheDecodeHostIsFasterThereWithTheSameText) {
    const std::string folder = TempDir();
    std::vector<std::string> command = DecodeHost({"--prompt", "A", "--tokens", "24"});
    Setting plain_setting;
    Outcome plain = RunProgram(command, plain_setting);
    Outcome first = RunIn(folder, command), second = RunIn(folder, command);
    EXPECT_SAME(kProgram, plain, first);
    EXPECT_SAME(kProgram, plain, second);
    EXPECT_STATS(second);
    EXPECT_GE(first.stats.Number("first_step_in_graphs"), 3) << first.Describe();
    EXPECT_EQ(second.stats.Number("first_step_in_graphs"), 2) << second.Describe();
    EXPECT_LT(second.stats.Number("issued.eager"), 0.7 * first.stats.Number("issued.eager"));
    EXPECT_LE(second.stats.Number("built"), first.stats.Number("built"));
}

// One folder for all of them: paths of one are looked for in the others.
TEST(Cold, ScenariosAreTheSameWithWhatAllOthersLeft) {
    const std::string folder = TempDir();
    const char *const names[] = {
        "steady",       "batch_sizes",     "diverge_insert",    "growing_grid",
        "block_smem",   "two_streams",     "never_sync",        "moving_sync",
        "copies",       "memsets",         "module_reload",     "library_reload",
        "two_contexts", "stream_recreate", "capture_each_step", "thread_handover",
        "never_repeat", "errors",          "threads",           "spin_pair"};
    for (const char *name : names) {
        SCOPED_TRACE(name);
        const Case &scenario = CaseOf(name);
        Setting setting;
        Outcome plain = RunCase(scenario, setting);
        setting.preload = true;
        setting.env["CUSPLICE_CACHE_DIR"] = folder;
        for (int run = 0; run < 2; run++) {
            Outcome cached = RunCase(scenario, setting);
            EXPECT_SAME(scenario, plain, cached);
            EXPECT_STATS(cached);
        }
    }
    EXPECT_GT(Entries(folder).size(), 20u);
}

TEST(Cold, AnotherProgramIsNotMisled) {
    const std::string folder = TempDir();
    ASSERT_EQ(RunIn(folder, Loop(300)).result.status, 0);
    const std::vector<std::string> others[] = {
        Loop(300, {"--signatures", "3", "--differ", "grid"}),  // other shapes
        Loop(300, {"--signatures", "3", "--differ", "order"}), // kernels in another order
        Loop(170),                                             // it ends earlier
        Loop(900),
    };
    for (const auto &command : others) {
        Outcome without = RunIn("", command), with = RunIn(folder, command);
        ASSERT_EQ(with.result.status, 0) << with.Describe();
        ASSERT_STATS(with);
        EXPECT_EQ(Sum(without), Sum(with));
        EXPECT_LE(with.stats.Number("built"),
                  without.stats.Number("built") + with.stats.Number("cache.entries"));
        EXPECT_GE(with.stats.Number("issued.in_graphs"), without.stats.Number("issued.in_graphs"));
    }
    // Another order of launches is another path from its first launch on.
    Outcome order = RunIn(folder, Loop(200, {"--signatures", "2", "--differ", "order"}));
    Outcome settings = RunIn(folder, Loop(300), {{"CUSPLICE_SEGMENT_FIRST", "8"}});
    EXPECT_EQ(settings.stats.Number("cache.met"), 0) << "cut under other settings";
    EXPECT_GT(settings.stats.Number("cache.entries"), 0);
}

// Graphs of a segment for other shapes are no matter of the cache's.
TEST(Cold, AdviceIsUsedForOneGraphOfASegment) {
    const std::string folder = TempDir();
    const auto turns = Loop(200, {"--signatures", "3", "--differ", "grid"}, 40);
    ASSERT_EQ(RunIn(folder, turns).result.status, 0);
    Outcome run = RunIn(folder, turns);
    ASSERT_STATS(run);
    EXPECT_GT(run.stats.Number("cache.built"), 0);
    EXPECT_GT(run.stats.Number("built"), run.stats.Number("cache.built")) << "variants";
    EXPECT_LE(run.stats.Number("cache.built"), run.stats.Number("cache.used"));
}

// The same program with another build of its library.
TEST(Cold, AnotherBuildOfAModuleIsAnotherModule) {
    const std::string folder = TempDir(), copy = folder + "/libtwo_objects.so";
    const std::string library = Runfile("tests/sim/libtwo_objects.so");
    std::string bytes = ReadFile(library);
    const std::string note("\4\0\0\0\x14\0\0\0\3\0\0\0GNU", 16); // of a build id, which follows
    size_t at = bytes.find(note);
    ASSERT_NE(at, std::string::npos) << "the library has no build id";
    auto run = [&] { return RunIn(folder, {Runfile("tests/sim/two_objects"), copy}); };
    std::ofstream(copy, std::ios::binary) << bytes;
    Outcome first = run(), second = run();
    ASSERT_EQ(second.result.status, 0) << second.Describe();
    EXPECT_GT(second.stats.Number("cache.met"), 0);
    EXPECT_EQ(second.stats.Number("first_step_in_graphs"), 2);
    bytes[at + 18] = (char)(bytes[at + 18] + 1);
    unlink(copy.c_str());
    std::ofstream(copy, std::ios::binary) << bytes;
    Outcome other = run();
    EXPECT_LT(other.stats.Number("cache.met"), second.stats.Number("cache.met"));
    EXPECT_GE(other.stats.Number("first_step_in_graphs"), 3);
    EXPECT_EQ(other.result.out, first.result.out);
}

// Paths that are right, with lengths that are not, among many that nobody has.
TEST(Cold, HostileEntriesDoNoHarm) {
    const std::string folder = TempDir();
    Outcome honest = RunIn(folder, Loop(400));
    const std::vector<cus_cache_entry> known = Entries(folder);
    ASSERT_GT(known.size(), 2u);
    std::mt19937_64 random(7);
    for (int round = 0; round < 4; round++) {
        std::vector<cus_cache_entry> entries;
        for (cus_cache_entry entry : known) {
            entry.ops = 2 + random() % 1023;
            entry.pace_ns = (uint32_t)random();
            entry.used = entry.launches = UINT32_MAX;
            entries.push_back(entry);
        }
        for (int i = 0; i < 20000; i++)
            entries.push_back({random(), (uint32_t)(2 + random() % 1023), (uint32_t)random(),
                               UINT32_MAX, UINT32_MAX});
        unlink(File(folder).c_str());
        Write(folder, entries);
        Outcome run = RunIn(folder, Loop(400));
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        ASSERT_STATS(run);
        EXPECT_EQ(Sum(run), Sum(honest));
        EXPECT_EQ(run.stats.Number("cache.entries"), 20000 + (double)known.size());
        EXPECT_LE(run.stats.Number("built"), honest.stats.Number("built") + (double)known.size());
        EXPECT_GE(run.stats.Number("issued.in_graphs"), 400 * 20);
    }
}

TEST(Cold, AFileThatCannotBeReadIsSaidOnceAndReplaced) {
    const std::string folder = TempDir();
    Outcome first = RunIn(folder, Loop(200));
    const std::string good = ReadFile(File(folder));
    const std::string broken[] = {"", "what is this?", good.substr(0, good.size() - 5), good + good,
                                  std::string(good).replace(50, 1, "\x55")};
    for (const std::string &text : broken) {
        std::ofstream(File(folder), std::ios::binary) << text;
        Outcome run = RunIn(folder, Loop(200));
        EXPECT_EQ(Sum(run), Sum(first));
        EXPECT_EQ(run.stats.text.at("cache.state"), "corrupt");
        size_t said = run.result.err.find("is not used");
        EXPECT_NE(said, std::string::npos) << run.result.err;
        EXPECT_EQ(run.result.err.find("is not used", said + 1), std::string::npos);
        Outcome next = RunIn(folder, Loop(200));
        EXPECT_EQ(next.stats.text.at("cache.state"), "good");
        EXPECT_EQ(next.stats.Number("first_step_in_graphs"), 2);
        EXPECT_EQ(next.result.err.find("cache"), std::string::npos) << next.result.err;
    }
}

TEST(Cold, AFolderThatCannotBeWrittenIsSaidOnceAndNothingElse) {
    const std::string folder = TempDir(), everybodys = folder + "/everybodys";
    ASSERT_EQ(mkdir(everybodys.c_str(), 0700), 0);
    ASSERT_EQ(chmod(everybodys.c_str(), 0777), 0);
    for (const std::string &bad : {std::string("/proc/no/such"), everybodys}) {
        Outcome run = RunIn(bad, Loop(200));
        EXPECT_EQ(run.result.status, 0) << run.Describe();
        EXPECT_EQ(run.stats.Number("cache.written"), 0);
        EXPECT_NE(run.result.err.find("is not written"), std::string::npos) << run.result.err;
    }
}

TEST(Cold, ProcessesThatEndAtOnceLoseNothingThatWasThere) {
    const std::string folder = TempDir();
    ASSERT_EQ(RunIn(folder, Loop(150)).result.status, 0);
    const std::vector<cus_cache_entry> before = Entries(folder);
    std::vector<std::thread> runs;
    std::vector<Outcome> outcomes(4);
    for (unsigned i = 0; i < 4; i++)
        runs.emplace_back([&, i] { // other settings: other paths
            outcomes[i] =
                RunIn(folder, Loop(150), {{"CUSPLICE_SEGMENT_MAX", std::to_string(33 + i)}});
        });
    for (auto &run : runs)
        run.join();
    double written = 0;
    for (const Outcome &outcome : outcomes) {
        EXPECT_EQ(outcome.result.status, 0) << outcome.Describe();
        written += outcome.stats.Number("cache.written");
    }
    EXPECT_GE(written, 1);
    const std::vector<cus_cache_entry> after = Entries(folder);
    EXPECT_GT(after.size(), before.size());
    for (const cus_cache_entry &entry : before)
        EXPECT_LT(cus_cache_find(after.data(), (uint32_t)after.size(), entry.path), after.size());
    EXPECT_EQ(RunIn(folder, Loop(150)).stats.Number("first_step_in_graphs"), 2);
}

// Nothing runs at its end.
TEST(Cold, AProgramThatIsKilledHasWrittenBefore) {
    const std::string folder = TempDir();
    Outcome killed = RunIn(folder, Loop(150, {}, 100000000), {{"CUSPLICE_CACHE_EVERY", "1"}}, 4);
    ASSERT_TRUE(killed.result.timed_out);
    EXPECT_GT(Entries(folder).size(), 0u);
    EXPECT_EQ(RunIn(folder, Loop(150)).stats.Number("first_step_in_graphs"), 2);
}

TEST(Cold, TheFileStaysWithinItsSize) {
    const std::string folder = TempDir();
    std::vector<cus_cache_entry> entries;
    std::mt19937_64 random(3);
    for (int i = 0; i < 60000; i++)
        entries.push_back({random(), 8, 0, 1, 1});
    Write(folder, entries);
    Outcome run = RunIn(folder, Loop(200), {{"CUSPLICE_CACHE_MB", "1"}});
    EXPECT_EQ(run.stats.Number("cache.written"), 1);
    struct stat info;
    ASSERT_EQ(stat(File(folder).c_str(), &info), 0);
    EXPECT_LE(info.st_size, 1 << 20);
    EXPECT_GT(info.st_size, 1000000);
    EXPECT_EQ(
        RunIn(folder, Loop(200), {{"CUSPLICE_CACHE_MB", "1"}}).stats.Number("first_step_in_graphs"),
        2);
}

} // namespace
} // namespace sim
