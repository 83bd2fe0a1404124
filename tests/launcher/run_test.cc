// Promise: cusplice run preloads the library into the child alone, passes status and streams
// through, and says what went wrong.
#include <elf.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/launcher/launcher.h"

namespace {

const Environment kFine = {{"FAKE_SAYS", "loaded,on,exit 5 0"}};

Environment Says(const std::string &says) {
    return {{"FAKE_SAYS", says}};
}

TEST(Run, StreamsAndStatusPassThroughAndNothingIsAdded) {
    Result r =
        Cusplice({"run", "--", Target(), "out=hello", "cat", "exit=7"}, kFine, "from stdin\n");
    EXPECT_EQ(r.out, "hello\nfrom stdin\n");
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.Exit(), 7);
}

TEST(Run, TheDashesMayBeLeftOutAndArgumentsStayTheProgramsOwn) {
    Result r = Cusplice({"run", Target(), "out=--set", "exit=0"}, kFine);
    EXPECT_EQ(r.out, "--set\n");
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

TEST(Run, EndsByTheSameSignal) {
    for (int number : {SIGTERM, SIGKILL, SIGSEGV, SIGABRT}) {
        Result r = Cusplice({"run", "--", Target(), "kill=" + std::to_string(number)},
                            {{"FAKE_SAYS", "loaded,on,exit 5 0"},
                             {"ASAN_OPTIONS", "handle_segv=0:handle_abort=0:detect_leaks=0"},
                             {"TSAN_OPTIONS", "handle_segv=0:handle_abort=0"}});
        EXPECT_EQ(r.Exit(), -number) << r.err;
    }
}

TEST(Run, AShellSees128PlusTheSignal) {
    Result r = RunProgram(
        {"/bin/sh", "-c", CuspliceProgram() + " run -- " + Target() + " kill=15; echo status $?"},
        kFine);
    EXPECT_EQ(r.out, "status 143\n");
}

TEST(Run, OnlyTheChildIsPreloaded) {
    Result r = Cusplice({"run", "--", Target(), "env=FAKE_WAS_HERE", "env=LD_PRELOAD"}, kFine);
    EXPECT_EQ(r.out, "FAKE_WAS_HERE=yes\nLD_PRELOAD=" + First() + Library() + "\n");
}

TEST(Run, OtherPreloadsStayAndTheLibraryIsThereOnce) {
    std::string other = Write("other.so", "");
    std::string list = "/nowhere/one.so " + Library() + ":" + Library() + ":/nowhere/two.so";
    Result r = Cusplice({"run", "--", Target(), "env=LD_PRELOAD"},
                        {{"LD_PRELOAD", list}, {"FAKE_SAYS", "exit 1 0"}});
    EXPECT_EQ(r.out, "LD_PRELOAD=" + First() + Library() + ":/nowhere/one.so:/nowhere/two.so\n");
}

TEST(Run, ASanitizersRuntimeStaysInFront) {
    Result r = Cusplice({"run", "--", Target(), "env=LD_PRELOAD"},
                        {{"LD_PRELOAD", "/nowhere/a.so:/nowhere/libasan.so.8"}});
    EXPECT_EQ(r.out,
              "LD_PRELOAD=" + First() + "/nowhere/libasan.so.8:" + Library() + ":/nowhere/a.so\n");
}

TEST(Run, ProgramsWithTheAddressSanitizerMayStart) {
    const Strings run = {"run", "--", Target(), "env=ASAN_OPTIONS"};
    const std::string option = "verify_asan_link_order";
    const struct {
        std::string before, child;
    } cases[] = {
        {"", option + "=0"},
        {"detect_leaks=0", "detect_leaks=0:" + option + "=0"},
        {option + "=1", option + "=1"},
    };
    for (const auto &c : cases) {
        Environment more = kFine;
        more["ASAN_OPTIONS"] = c.before;
        EXPECT_EQ(Cusplice(run, more).out, "ASAN_OPTIONS=" + c.child + "\n");
    }
}

TEST(Run, SettingsReachTheChild) {
    std::string config = Write("good.conf", "hold_us = 60\n[rules]\neager = a\n");
    std::string stats = Folder() + "/s.json";
    Result r = Cusplice({"run", "-c", config, "--set", "hold_us=70", "--set=mode=eager", "--set",
                         "eager=p1*", "--set", "eager=re:^p2", "--stats", stats, "--", Target(),
                         "env=CUSPLICE_CONFIG", "env=CUSPLICE_HOLD_US", "env=CUSPLICE_MODE",
                         "env=CUSPLICE_EAGER", "env=CUSPLICE_STATS"},
                        {{"CUSPLICE_EAGER", "p3"}, {"FAKE_SAYS", "exit 1 0"}});
    EXPECT_EQ(r.out, "CUSPLICE_CONFIG=" + config +
                         "\nCUSPLICE_HOLD_US=70\nCUSPLICE_MODE=eager\n"
                         "CUSPLICE_EAGER=p1*;re:^p2;p3\nCUSPLICE_STATS=" +
                         stats + "\n");
    EXPECT_EQ(r.err, "");
}

// --eager and --mode are short for --set, with run and with record.
TEST(Run, EagerAndModeHaveOptionsOfTheirOwn) {
    for (const char *verb : {"run", "record"}) {
        std::string config = Write("mode.conf", "mode = observe\n");
        Result r = Cusplice({verb, "--mode", "full", "--eager", "a*", "--set", "eager=b", "--eager",
                             "re:^c", "-c", config, "--", Target(), "env=CUSPLICE_MODE",
                             "env=CUSPLICE_EAGER"},
                            {{"CUSPLICE_EAGER", "d"}, {"FAKE_SAYS", "exit 1 0"}});
        EXPECT_EQ(r.out, "CUSPLICE_MODE=full\nCUSPLICE_EAGER=a*;b;re:^c;d\n") << r.err;
        // The last one counts.
        r = Cusplice(
            {verb, "--mode=full", "--set", "mode=eager", "--", Target(), "env=CUSPLICE_MODE"},
            kFine);
        EXPECT_EQ(r.out, "CUSPLICE_MODE=eager\n");
        r = Cusplice(
            {verb, "--set", "mode=eager", "--mode", "full", "--", Target(), "env=CUSPLICE_MODE"},
            kFine);
        EXPECT_EQ(r.out, "CUSPLICE_MODE=full\n");
        r = Cusplice({verb, "--mode", "ful", "--", Target(), "out=started"}, kFine);
        EXPECT_EQ(r.Exit(), 125);
        EXPECT_EQ(r.out, "");
        EXPECT_EQ(r.err.find("cusplice: --mode: mode = ful: must be one of off, "), 0u) << r.err;
        r = Cusplice({verb, "--eager", "a;b", "--", Target(), "out=started"}, kFine);
        EXPECT_EQ(r.Exit(), 125);
        EXPECT_EQ(r.err, "cusplice: --eager a;b: one pattern at a time\n");
    }
}

TEST(Record, ForceReplacesATraceAndNothingElse) {
    std::string old = Write("old.cst", "mine"), folder = Folder() + "/old.folder";
    const Strings program = {"--", Target(), "out=started"};
    auto record = [&](Strings options) {
        options.insert(options.begin(), "record");
        options.insert(options.end(), program.begin(), program.end());
        return Cusplice(options, kFine);
    };
    Result r = record({"-o", old});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "is there already, and traces are not overwritten without --force"))
        << r.err;
    EXPECT_EQ(ReadFile(old), "mine");
    // What may still be written is not touched.
    std::string partial = Write("old.cst.partial", "another's");
    EXPECT_EQ(record({"--force", "-o", old}).Exit(), 125);
    EXPECT_EQ(ReadFile(old), "mine");
    EXPECT_EQ(ReadFile(partial), "another's");
    unlink(partial.c_str());
    r = record({"--force", "-o", old});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_NE(access(old.c_str(), F_OK), 0) << "the stand-in records nothing";
    ASSERT_EQ(symlink("/dev/null", old.c_str()), 0);
    r = record({"--force", "-o", old});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "the old file cannot be removed: it is no regular file")) << r.err;
    unlink(old.c_str());
    r = record({"-o", "-"});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "-o -: a trace goes into a file")) << r.err;
}

// `-` is stdout here as everywhere, behind what the program printed.
TEST(Run, StatsMayGoToStdout) {
    Result r = Cusplice({"run", "--stats", "-", "--", "/bin/sh", "-c",
                         "echo mine; echo '{\"x\":1}' > $CUSPLICE_STATS; echo $CUSPLICE_STATS >&2"},
                        kFine);
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out, "mine\n{\"x\":1}\n");
    std::string path = r.err.substr(0, r.err.find('\n'));
    EXPECT_TRUE(Has(path, "/cusplice-stats-")) << r.err;
    EXPECT_NE(access(path.substr(0, path.rfind('/')).c_str(), F_OK), 0) << path << " stays";
    EXPECT_NE(access("-", F_OK), 0);
    r = Cusplice({"run", "--stats=-", "--", "/nowhere/prog"}, kFine);
    EXPECT_EQ(r.Exit(), 127);
    EXPECT_EQ(r.out, "");
}

// A folder for files that last a while is named by an absolute path, or is /tmp.
TEST(Run, TemporaryFilesAreInNoFolderThatGoesByTheWorkingDirectory) {
    for (const char *folder : {"relative", ""}) {
        Environment env = kFine;
        env["TMPDIR"] = folder;
        Result r = Cusplice({"run", "--stats", "-", "--", Target(), "env=CUSPLICE_STATS"}, env);
        EXPECT_EQ(r.out.find("CUSPLICE_STATS=/tmp/cusplice-stats-"), 0u) << r.out << r.err;
    }
    Environment env = kFine;
    env["TMPDIR"] = "/" + std::string(5000, 'x');
    Result r = Cusplice({"run", "--stats", "-", "--", Target(), "out=never"}, env);
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(Has(r.err, "--stats -: no temporary folder: File name too long")) << r.err;
}

TEST(Run, SeveralFilesReachTheChildInTheirOrder) {
    std::string one = Write("one.conf", "hold_us = 60\n"), two = Write("t:w\\o.conf", "");
    Strings run = {"run", "-c", one, "-c", two, "--", Target(), "env=CUSPLICE_CONFIG"};
    Result r = Cusplice(run, {{"CUSPLICE_CONFIG", "/gone.conf"}, {"FAKE_SAYS", "exit 1 0"}});
    EXPECT_EQ(r.out, "CUSPLICE_CONFIG=" + one + ":" + Folder() + "/t\\:w\\\\o.conf\n") << r.err;
    EXPECT_EQ(r.err, "");
    // A relative path is made absolute: the program may start elsewhere.
    ASSERT_EQ(symlink(one.c_str(), "here.conf"), 0);
    char here[4096];
    ASSERT_TRUE(getcwd(here, sizeof here));
    r = Cusplice({"run", "-c", "here.conf", "--", Target(), "env=CUSPLICE_CONFIG"}, kFine);
    EXPECT_EQ(r.out, "CUSPLICE_CONFIG=" + std::string(here) + "/here.conf\n");
    unlink("here.conf");
    std::string bad = Write("bad_include.conf", "# x\ninclude = gone.conf\n");
    r = Cusplice({"run", "-c", one, "-c", bad, "--", Target(), "out=started"}, kFine);
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(Has(r.err, bad + ":2: include = gone.conf: cannot be opened: No such file"))
        << r.err;
}

TEST(Run, PatternsOfTheCommandLineStayApart) {
    Result r = Cusplice({"run", "--set", "eager=a", "--set", "eager=b", "--set", "eager=c", "--",
                         Target(), "env=CUSPLICE_EAGER"},
                        kFine);
    EXPECT_EQ(r.out, "CUSPLICE_EAGER=a;b;c\n");
}

// From a file, the environment and --set: the program runs, and the name now is said.
TEST(Run, OldNamesOfSettingsWorkAndAreTold) {
    std::string config = Write("old.conf", "piece_first = 8\n");
    Environment old = kFine;
    old["CUSPLICE_HAND_OVER_NS"] = "7";
    old["CUSPLICE_SEGMENT_MAX"] = "32";
    Result r = Cusplice({"run", "-c", config, "--set", "piece_max=64", "--", Target(),
                         "env=CUSPLICE_SEGMENT_MAX", "env=CUSPLICE_PIECE_MAX"},
                        old);
    EXPECT_EQ(r.out, "CUSPLICE_SEGMENT_MAX=64\nCUSPLICE_PIECE_MAX=(unset)\n") << r.err;
    EXPECT_TRUE(Has(r.err, config + ":1: 'piece_first' is called segment_first now")) << r.err;
    EXPECT_TRUE(Has(r.err, "CUSPLICE_HAND_OVER_NS: 'hand_over_ns' is called submit_ns now"));
    EXPECT_TRUE(Has(r.err, "--set: 'piece_max' is called segment_max now")) << r.err;
    r = Cusplice({"config", "--check", config});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out, config + ": ok\n");
    EXPECT_TRUE(Has(r.err, "'piece_first' is called segment_first now")) << r.err;
}

TEST(Run, WhyIsASettingOfTheChild) {
    Result r = Cusplice({"run", "--why", "--", Target(), "env=CUSPLICE_WHY"}, kFine);
    EXPECT_EQ(r.out, "CUSPLICE_WHY=yes\n");
    EXPECT_EQ(r.err, "");
    r = Cusplice({"run", "--", Target(), "env=CUSPLICE_WHY"}, kFine);
    EXPECT_EQ(r.out, "CUSPLICE_WHY=(unset)\n");
}

TEST(Run, AProgramMayBeLookedAtUnlessTheUserSaysOtherwise) {
    const Strings run = {"run", "--", Target(), "env=CUSPLICE_LIVE"};
    EXPECT_EQ(Cusplice(run, kFine).out, "CUSPLICE_LIVE=yes\n");
    Environment no = kFine;
    no["CUSPLICE_LIVE"] = "no";
    EXPECT_EQ(Cusplice(run, no).out, "CUSPLICE_LIVE=no\n");
    std::string config = Write("live.conf", "live = no\n");
    Result r = Cusplice({"run", "-c", config, "--", Target(), "env=CUSPLICE_LIVE"}, kFine);
    EXPECT_EQ(r.out, "CUSPLICE_LIVE=(unset)\n") << "the file says it";
}

TEST(Run, RelativePathsAreMadeAbsolute) {
    Write("rel.conf", "hold_us = 60\n");
    Result r = RunProgram({"/bin/sh", "-c",
                           "cd " + Folder() + " && exec " + CuspliceProgram() +
                               " run -c rel.conf --stats rel.json -- " + Target() +
                               " env=CUSPLICE_CONFIG env=CUSPLICE_STATS"},
                          kFine);
    EXPECT_EQ(r.out, "CUSPLICE_CONFIG=" + Folder() + "/rel.conf\nCUSPLICE_STATS=" + Folder() +
                         "/rel.json\n");
}

TEST(Run, AnOldStatsFileIsNotTakenForTheNewOne) {
    std::string stats = Write("old.json", "{}");
    EXPECT_EQ(Cusplice({"run", "--stats", stats, "--", Target()}, kFine).Exit(), 0);
    EXPECT_NE(access(stats.c_str(), F_OK), 0);
}

// ---- refusals: the program is never started ----

struct Refusal {
    Strings arguments;
    std::string says;
};

TEST(Run, RefusesWhatIsWrongAndDoesNotStartTheProgram) {
    std::string unknown = Write("unknown.conf", "# one\nhold_uss = 5\n");
    std::string value = Write("value.conf", "mode = peicewise\n");
    std::string pattern = Write("pattern.conf", "[rules]\neager = ok\neager = re:(\n");
    std::string kind = Write("kind.conf", "[rules]\neagre = ok\n");
    std::string section = Write("section.conf", "[rule]\neager = ok\n");
    std::string step = Write("step.conf", "[step]\nmarker = ok\nsize = 1\n");
    std::string line = Write("line.conf", "mode = off\nnonsense\n");
    const Refusal refusals[] = {
        {{"-c", unknown}, unknown + ":2: unknown key 'hold_uss' (nearest: hold_us)"},
        {{"-c", value},
         value + ":1: mode = peicewise: must be one of off, observe, eager, piecewise, full, "
                 "full_decode_only, full_and_piecewise, verify "
                 "(nearest: piecewise)"},
        {{"-c", pattern}, pattern + ":3: eager = re:(: bad pattern: "},
        {{"-c", kind}, kind + ":2: unknown kind of rule 'eagre' (nearest: eager)"},
        {{"-c", section}, section + ":1: unknown section [rule] (nearest: rules)"},
        {{"-c", step}, step + ":3: [step] unknown key 'size' (nearest: sizes)"},
        {{"-c", line}, line + ":2: neither 'key = value' nor '[section]' nor a comment"},
        {{"-c", "/nowhere.conf"}, "/nowhere.conf: cannot be opened: "},
        {{"--set", "hold=5"}, "--set: unknown key 'hold'"},
        {{"--set", "holdus=500"}, "--set: unknown key 'holdus' (nearest: hold_us)"},
        {{"--set", "hold_us=5"}, "--set: hold_us = 5: must be a whole number from 50 to 1000000"},
        {{"--set", "hold_us"}, "KEY=VALUE is expected"},
        {{"--set", "eager=[x"}, "CUSPLICE_EAGER: eager = [x: bad pattern: a [ without its ]"},
        {{"--set", "eager=a b"}, "CUSPLICE_EAGER: eager = a b: matches nothing: "},
        {{"--set", "eager=n::k"},
         "CUSPLICE_EAGER: eager = n::k: matches nothing: a base name has no namespaces (nearest: "
         "re:^n::k$)"},
        {{"-c", ""}, "--config: the name of a file or preset is expected"},
        {{"--set"}, "--set: a value is missing"},
        {{"--stats", "/nowhere/at/all.json"}, "--stats /nowhere/at/all.json: No such file"},
        {{"--stat", "x"}, "unknown option --stat; the nearest is --stats"},
        {{"--bogus=3"}, "unknown option --bogus=3 (see cusplice run --help)"},
        {{"-config", "x"}, "unknown option -config; the nearest is --config"},
    };
    for (const Refusal &refusal : refusals) {
        Strings arguments = {"run"};
        arguments.insert(arguments.end(), refusal.arguments.begin(), refusal.arguments.end());
        if (refusal.arguments.back() != "--set")
            arguments.insert(arguments.end(), {"--", Target(), "out=started"});
        Result r = Cusplice(arguments, kFine);
        EXPECT_EQ(r.Exit(), 125) << refusal.says;
        EXPECT_EQ(r.out, "") << refusal.says;
        EXPECT_TRUE(Has(r.err, "cusplice: ") && Has(r.err, refusal.says))
            << "wanted: " << refusal.says << "\ngot: " << r.err;
    }
}

TEST(Run, RefusesABadEnvironmentToo) {
    Result r = Cusplice({"run", "--", Target(), "out=started"}, {{"CUSPLICE_HOLD_US", "many"}});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "CUSPLICE_HOLD_US: hold_us = many: must be")) << r.err;
    EXPECT_EQ(r.out, "");
}

TEST(Run, WithoutAProgramSaysSo) {
    Result r = Cusplice({"run"});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "a program is missing")) << r.err;
}

TEST(Run, ProgramsThatCannotRunGiveTheShellsNumbers) {
    Result r = Cusplice({"run", "--", "/nowhere/prog"}, kFine);
    EXPECT_EQ(r.Exit(), 127);
    EXPECT_EQ(r.err, "cusplice: /nowhere/prog: No such file or directory\n");
    std::string file = Write("plain.txt", "text");
    r = Cusplice({"run", "--", file}, kFine);
    EXPECT_EQ(r.Exit(), 126);
    EXPECT_EQ(r.err, "cusplice: " + file + ": Permission denied\n");
}

TEST(Run, WithoutTheLibrarySaysWhereItLooked) {
    std::string folder = Folder() + "/alone";
    mkdir(folder.c_str(), 0755);
    ASSERT_EQ(system(("cp " + CuspliceProgram() + " " + folder + "/cusplice").c_str()), 0);
    Result r = RunProgram({folder + "/cusplice", "run", "--", Target(), "out=started"});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(Has(r.err, "libcusplice.so was found neither in")) << r.err;
}

TEST(Run, APathThatLdPreloadCannotNameIsRefused) {
    std::string folder = Folder() + "/with blank";
    mkdir(folder.c_str(), 0755);
    ASSERT_EQ(system(("cp " + CuspliceProgram() + " '" + folder + "/cusplice' && cp " + Library() +
                      " '" + folder + "/libcusplice.so'")
                         .c_str()),
              0);
    Result r = RunProgram({folder + "/cusplice", "run", "--", Target()});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_TRUE(Has(r.err, "LD_PRELOAD cannot name")) << r.err;
}

// ---- what is said afterwards ----

TEST(Afterwards, SilentWhereLaunchesWereSeen) {
    EXPECT_EQ(Cusplice({"run", "--", Target()}, Says("loaded,on,exit 1 0")).err, "");
    EXPECT_EQ(Cusplice({"run", "--", Target()}, Says("loaded,loaded,on,exit 0 0,exit 9 3")).err,
              "");
}

TEST(Afterwards, TellsWhatWasMissing) {
    const struct {
        std::string says, heard;
    } cases[] = {
        {"", "the library never came up: it was not loaded into " + Target()},
        {"there", "the library never came up: " + Target() + " used no CUDA"},
        {"there,absent",
         "the library never came up: libcuda.so.1 was not found, which " + Target()},
        {"there,absent,loaded", "never initialised CUDA"},
        {"loaded", "never initialised CUDA"},
        {"loaded,on,exit 0 0",
         "the library saw no launch: " + Target() + " initialised CUDA and launched nothing"},
        {"loaded,on,exit 0 12", "launched only graphs of its own (12 times)"},
        {"loaded,on", "1 of 1 processes ended without their exit handlers"},
        {"loaded,off,exit 0 0", "mode is off: the program ran as it is"},
    };
    for (const auto &c : cases) {
        Result r = Cusplice({"run", "--", Target(), "exit=3"}, Says(c.says));
        EXPECT_EQ(r.Exit(), 3);
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, c.heard)) << "wanted: " << c.heard << "\ngot: " << r.err;
        EXPECT_EQ(r.err.find('\n'), r.err.size() - 1) << "one line: " << r.err;
    }
}

// The processes of a run within a run are told of once.
TEST(Afterwards, ARunWithinARunAddsNothing) {
    NEEDS_A_SHELL();
    const std::string inner = CuspliceProgram() + " run -- " + Target();
    EXPECT_EQ(Cusplice({"run", "--", "/bin/sh", "-c", inner}, kFine).err, "");
    std::string err = Cusplice({"run", "--", "/bin/sh", "-c", "unset FAKE_SAYS; " + inner},
                               Says("loaded,on,exit 5 0"))
                          .err;
    EXPECT_EQ(err.find("cusplice: ", 1), std::string::npos) << "the inner one alone: " << err;
}

TEST(Afterwards, OneStatsFileOfSeveralProcessesIsTold) {
    std::string stats = Folder() + "/several.json";
    const std::string two = "on,exit 5 0,on,exit 6 0";
    EXPECT_EQ(Cusplice({"run", "--stats", stats, "--", Target()}, Says(two)).err,
              "cusplice: --stats " + stats +
                  ": 2 processes wrote it, each over the one before: --stats FOLDER/, or {pid} in "
                  "the name, keeps all\n");
    EXPECT_EQ(Cusplice({"run", "--stats", stats, "--", Target()}, kFine).err, "");
    for (const std::string &name : {stats + "{pid}", stats + "%p", Folder() + "/several/"})
        EXPECT_EQ(Cusplice({"run", "--stats", name, "--", Target()}, Says(two)).err, "") << name;
}

// As root too, whom the mode of a folder does not stop.
TEST(Record, AFolderThatTakesNoTraceIsSaidBeforeTheProgramRuns) {
    for (const std::string options : {"", "-o t.cst "}) {
        Result r = RunProgram({"/bin/sh", "-c",
                               "cd /proc/self && exec " + CuspliceProgram() + " record " + options +
                                   "-- " + Target() + " out=ran"});
        EXPECT_EQ(r.Exit(), 125);
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, options.empty() ? "cusplice: the trace cannot go to target.cst: "
                                               : "cusplice: --output t.cst: "))
            << r.err;
    }
}

// What no process of a run met; the nearest kernel is one of each process.
TEST(Afterwards, TellsWhatNoProcessMet) {
    const std::string a = "unmet eager = a matched no kernel", b = "unmet eager = b matched none";
    const std::string near = "; the nearest kernel is ";
    const struct {
        std::string says, heard;
    } cases[] = {
        {"on,exit 5 0," + a, "cusplice: eager = a matched no kernel\n"},
        {"on,on,exit 5 0,exit 5 0," + a, ""},
        {"on,on,exit 5 0," + a + near + "x,exit 0 0",
         "cusplice: eager = a matched no kernel" + near + "x\n"},
        {"on,on,exit 5 0," + a + near + "x,exit 5 0," + a + near + "y," + b,
         "cusplice: eager = a matched no kernel" + near + "x\n"},
        {"on,on,exit 5 0," + a, "cusplice: eager = a matched no kernel (as far as is known: 1 of 2 "
                                "processes ended without "
                                "their exit handlers)\n"},
        {"on,exit 5 0,steps 84 5000", "cusplice: the trace holds nothing: it was to begin with "
                                      "step 5000, and the program had 84 "
                                      "steps, counted from 0\n"},
        {"on,on,exit 5 0,exit 5 0,steps 84 5000,steps 5001 5000", ""},
        {"on,exit 5 0,unmet ,unmet", ""},
    };
    for (const auto &c : cases) {
        Result r = Cusplice({"run", "--", Target(), "exit=3"}, Says(c.says));
        EXPECT_EQ(r.Exit(), 3);
        EXPECT_EQ(r.out, "");
        EXPECT_EQ(r.err, c.heard) << c.says;
    }
}

TEST(Afterwards, TellsThatModeIsOff) {
    Result r = Cusplice({"run", "--", Target()}, {{"CUSPLICE", "off"}});
    EXPECT_EQ(r.err, "cusplice: mode is off: the program ran as it is\n");
    r = Cusplice({"run", "--set", "mode=off", "--", Target()}, Says("loaded"));
    EXPECT_EQ(r.err, "cusplice: mode is off: the program ran as it is\n");
}

TEST(Afterwards, TellsAboutAStaticProgram) {
    for (const std::string &target : {StaticTarget(), StaticTarget() + "_pie"}) {
        Result r = Cusplice({"run", "--", target, "env=FAKE_WAS_HERE"}, kFine);
        EXPECT_EQ(r.out, "FAKE_WAS_HERE=(unset)\n");
        EXPECT_TRUE(Has(r.err, "never came up: ") && Has(r.err, "statically linked")) << r.err;
    }
}

TEST(Afterwards, LooksThroughScripts) {
    std::string script = Write("script", "#!" + StaticTarget() + "\n");
    chmod(script.c_str(), 0755);
    std::string second = Write("second", "#!/usr/bin/env -S " + script + "\n");
    chmod(second.c_str(), 0755);
    Result r = Cusplice({"run", "--", script}, kFine);
    EXPECT_TRUE(Has(r.err, "statically linked")) << r.err;
}

TEST(Afterwards, TellsAboutA32BitProgram) {
    // The smallest i386 program: exit(7).
    const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80};
    Elf32_Ehdr head = {};
    Elf32_Phdr part = {};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS32;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_EXEC;
    head.e_machine = EM_386;
    head.e_version = EV_CURRENT;
    head.e_entry = 0x08048000 + sizeof head + sizeof part;
    head.e_phoff = sizeof head;
    head.e_ehsize = sizeof head;
    head.e_phentsize = sizeof part;
    head.e_phnum = 1;
    part.p_type = PT_LOAD;
    part.p_vaddr = part.p_paddr = 0x08048000;
    part.p_filesz = part.p_memsz = sizeof head + sizeof part + sizeof code;
    part.p_flags = PF_R | PF_X;
    part.p_align = 0x1000;
    std::string path = Folder() + "/prog32";
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char *>(&head), sizeof head);
    out.write(reinterpret_cast<const char *>(&part), sizeof part);
    out.write(reinterpret_cast<const char *>(code), sizeof code);
    out.close();
    chmod(path.c_str(), 0755);
    Result r = Cusplice({"run", "--", path}, kFine);
    if (r.Exit() != 7)
        GTEST_SKIP() << "this kernel runs no 32-bit programs: " << r.err;
    EXPECT_TRUE(Has(r.err, "it is a 32-bit program")) << r.err;
}

TEST(Afterwards, TellsAboutASetuidProgram) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can make a program of another owner";
    std::string path = Folder() + "/setuid";
    ASSERT_EQ(system(("cp " + Target() + " " + path).c_str()), 0);
    if (chown(path.c_str(), 1, 1) != 0 || chmod(path.c_str(), 04755) != 0)
        GTEST_SKIP() << "no such files here";
    Result r = Cusplice({"run", "--", path, "env=FAKE_WAS_HERE"}, kFine);
    if (Has(r.out, "yes"))
        GTEST_SKIP() << "setuid bits mean nothing on this file system";
    EXPECT_TRUE(Has(r.err, "it is setuid or setgid")) << r.err;
}

TEST(Afterwards, LeavesNoFileBehind) {
    std::string folder = Folder() + "/temporary";
    mkdir(folder.c_str(), 0755);
    Environment more = {{"TMPDIR", folder}, {"FAKE_SAYS", "loaded,on,exit 1 0"}};
    Result r = Cusplice({"run", "--", Target(), "env=CUSPLICE_HANDSHAKE"}, more);
    EXPECT_TRUE(Has(r.out, folder + "/cusplice-")) << r.out;
    Cusplice({"run", "--", "/nowhere/prog"}, more);
    EXPECT_EQ(rmdir(folder.c_str()), 0) << "something is left in " << folder;
}

// ---- signals ----

TEST(Signals, WhatIsSentToTheLauncherReachesTheProgram) {
    for (int number : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
        int out;
        pid_t pid = Start({"run", "--", Target(), "wait=" + std::to_string(number)}, &out);
        char text[64] = "";
        ASSERT_EQ(read(out, text, 6), 6); // "ready\n"
        kill(pid, number);
        int status = 0;
        waitpid(pid, &status, 0);
        ssize_t got = read(out, text, sizeof text - 1);
        text[got > 0 ? got : 0] = 0;
        close(out);
        char expected[16];
        snprintf(expected, sizeof expected, "got %02d\n", number);
        EXPECT_STREQ(text, expected);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

TEST(Signals, AKilledLauncherTakesTheProgramAlong) {
    int out;
    pid_t pid = Start({"run", "--", Target(), "wait=15"}, &out);
    char text[64] = "";
    ASSERT_EQ(read(out, text, 6), 6);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    EXPECT_EQ(read(out, text, sizeof text), 0) << "the pipe closes when the program is gone";
    close(out);
}

} // namespace
