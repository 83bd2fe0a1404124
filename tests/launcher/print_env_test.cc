// Promise: cusplice run --print-env prints what the environment of a program needs, and no more: a
// program that somebody else starts so runs as under cusplice run.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "tests/launcher/launcher.h"

namespace {

std::set<std::string> Lines(const std::string &text) {
    std::set<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.insert(line);
    return lines;
}

// The environment of a program: under cusplice run, and in a shell that has evaluated the output.
std::set<std::string> Launched(Strings options, const Environment &more) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"--", "/bin/sh", "-c", "exec env"});
    return Lines(Cusplice(options, more).out);
}

std::set<std::string> Evaluated(const Strings &options, const Environment &more) {
    Strings shell = {"/bin/sh", "-ec", "eval \"$(\"$0\" run --print-env \"$@\")\"; exec env",
                     CuspliceProgram()};
    shell.insert(shell.end(), options.begin(), options.end());
    return Lines(RunProgram(shell, more).out);
}

Strings Only(const std::set<std::string> &a, const std::set<std::string> &b) {
    Strings only;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only));
    return only;
}

TEST(PrintEnv, IsTheEnvironmentOfAProgramUnderRun) {
    NEEDS_A_SHELL();
    const std::string folder = Folder() + "/stats", config = Write("a b.conf", "hold_us = 60\n");
    const struct {
        Strings options;
        Environment more;
    } cases[] = {
        {{}, {}},
        {{"-c", config, "--eager", "p1*", "--set", "hold_us=70", "--mode", "eager"},
         {{"CUSPLICE_EAGER", "p2"}, {"LD_PRELOAD", "/nowhere/one.so"}}},
        {{"--stats", folder + "/", "--why", "--set", "log=info"}, {{"ASAN_OPTIONS", "a=b"}}},
        {{"--stats", Folder() + "/it's $(one).json"}, {}},
        // An outer run's offer, where this one has none.
        {{"--mode", "off"}, {{"CUSPLICE_CACHE_OFFERED", "/nowhere"}, {"CUSPLICE_LIVE", "no"}}},
        {{}, {{"CUSPLICE_CACHE_DIR", ""}, {"XDG_CACHE_HOME", Folder() + "/cache"}}},
    };
    mkdir((Folder() + "/cache").c_str(), 0700);
    for (const auto &c : cases) {
        std::set<std::string> run = Launched(c.options, c.more),
                              evaluated = Evaluated(c.options, c.more);
        EXPECT_EQ(run.count("FAKE_WAS_HERE=yes") + evaluated.count("FAKE_WAS_HERE=yes"), 2u);
        EXPECT_EQ(Only(evaluated, run), Strings{});
        // The file of the hand-shake ends with the run.
        Strings missing = Only(run, evaluated);
        ASSERT_EQ(missing.size(), 1u) << ::testing::PrintToString(missing);
        EXPECT_EQ(missing[0].compare(0, 19, "CUSPLICE_HANDSHAKE="), 0) << missing[0];
    }
    struct stat info;
    ASSERT_EQ(stat(folder.c_str(), &info), 0) << "nobody else makes the folder";
    EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST(PrintEnv, HasNoPlaceForReportsThatNobodyGathers) {
    Result r = Cusplice({"run", "--why", "--print-env"});
    EXPECT_TRUE(Has(r.out, "export CUSPLICE_WHY='yes'\n")) << r.out;
    EXPECT_FALSE(Has(r.out, "CUSPLICE_WHY_FILE")) << r.out;
}

TEST(PrintEnv, NeedsNoMoreWhereAllIsThere) {
    const std::string command = CuspliceProgram() + " run --mode eager --print-env";
    Result r = RunProgram({"/bin/sh", "-ec", "eval \"$(" + command + ")\"; " + command});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out, "");
}

TEST(PrintEnv, LeavesAnOldFileOfCounters) {
    const std::string stats = Write("old.json", "old");
    EXPECT_EQ(Cusplice({"run", "--stats", stats, "--print-env"}).Exit(), 0);
    EXPECT_EQ(ReadFile(stats), "old");
}

TEST(PrintEnv, RefusesAsRunDoes) {
    const struct {
        Strings options;
        std::string says;
    } cases[] = {
        {{"--", Target()}, "--print-env runs no program: " + Target()},
        {{"--stats", "-"}, "--stats -: with --print-env a file or folder is expected"},
        {{"--set", "hold_u=7"}, "hold_us"},
        {{"-c", Write("bad.conf", "hold_us = x\n")}, "nothing is printed"},
    };
    for (const auto &c : cases) {
        Strings words = {"run", "--print-env"};
        words.insert(words.end(), c.options.begin(), c.options.end());
        Result r = Cusplice(words, {{"TMPDIR", Folder()}});
        EXPECT_EQ(r.Exit(), 125);
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, c.says)) << r.err;
    }
    Result r = RunProgram({"/bin/sh", "-c",
                           "ls -d " + Folder() +
                               "/cusplice-stats-* 2>/dev/null; "
                               "exec " +
                               CuspliceProgram() + " run --print-env >/dev/full"});
    EXPECT_EQ(r.out, "") << "no temporary folder is left";
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "stdout cannot be written")) << r.err;
}

TEST(PrintEnv, IsAnOptionOfRunAlone) {
    Result r = Cusplice({"record", "--print-env", "--", Target()});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "unknown option --print-env")) << r.err;
}

} // namespace
