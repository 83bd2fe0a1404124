// Promise: help and version work, options are the same everywhere, and so does the cache verb.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "shim/api/api.h"
#include "shim/base/options.h"
#include "shim/base/version.h"
#include "shim/cache/cache.h"
#include "tests/launcher/launcher.h"
#include "tests/sim/json.h"

namespace {

TEST(Verbs, HelpAndVersionGoToStdout) {
    Result r = Cusplice({"--version"});
    EXPECT_EQ(r.out,
              "cusplice " CUSPLICE_VERSION "\n"
              "commit   unknown\n"
              "drivers  graphs from CUDA 12.4 on; what calls do was measured with CUDA 13.0; "
              "with older drivers all launches pass\n"
              "toolkits any that such a driver runs; the " +
                  std::to_string(CUS_API_ROWS) +
                  " driver functions of CUDA 13.0 are known, any other one flushes\n");
    EXPECT_EQ(r.Exit(), 0);
    for (const Strings &arguments :
         {Strings{"--help"}, Strings{"-h"}, Strings{"help"}, Strings{"run", "--help"},
          Strings{"help", "run"}, Strings{"run", "--set", "mode=off", "--help"},
          Strings{"config", "--help"}}) {
        r = Cusplice(arguments);
        EXPECT_EQ(r.Exit(), 0) << arguments[0];
        EXPECT_EQ(r.err, "");
        EXPECT_TRUE(Has(r.out, "usage: cusplice ")) << r.out;
        for (size_t at = 0, end; at < r.out.size(); at = end + 1) {
            end = r.out.find('\n', at);
            EXPECT_LE(end - at, 120u) << r.out.substr(at, end - at);
        }
    }
    for (const char *word : {"--set", "--stats", "-c", "Exit status"})
        EXPECT_TRUE(Has(Cusplice({"run", "--help"}).out, word)) << word;
}

// In the table of the verbs, and in no list by hand.
TEST(Verbs, EachIsInTheReadmeAndHasHelp) {
    std::istringstream help(Cusplice({"--help"}).out);
    std::string line, readme = ReadFile("tools/README.md");
    size_t at = readme.find("## The verbs"), end = readme.find("\n## ", at + 1);
    ASSERT_LT(at, end);
    readme = readme.substr(at, end - at);
    int verbs = 0;
    while (std::getline(help, line)) {
        if (line.compare(0, 2, "  ") != 0 || line[2] == ' ' || Has(line, "cusplice"))
            continue;
        std::string verb = line.substr(2, line.find(' ', 2) - 2);
        Result r = Cusplice({verb, "--help"});
        EXPECT_EQ(r.Exit(), 0) << verb;
        EXPECT_EQ(r.out.find("usage: cusplice " + verb), 0u) << r.out;
        EXPECT_TRUE(Has(readme, "`" + verb + "`")) << verb << " is not in tools/README.md";
        verbs++;
    }
    EXPECT_GT(verbs, 10);
}

TEST(Verbs, PagesAndCompletionAreAskedOfHelp) {
    Result r = Cusplice({"help", "--man", "run"});
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_TRUE(Has(r.out, ".TH CUSPLICE\\-RUN 1 ")) << r.out;
    EXPECT_EQ(Cusplice({"help", "--man", "cusplice-run"}).out, r.out);
    EXPECT_TRUE(Has(Cusplice({"help", "--man"}).out, ".TH CUSPLICE 1 "));
    EXPECT_TRUE(Has(Cusplice({"help", "--man", "cusplice.conf"}).out, ".TH CUSPLICE.CONF 5 "));
    r = Cusplice({"help", "--man", "nothing"});
    EXPECT_EQ(r.Exit(), 2);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(Has(r.err, "'nothing' is no page")) << r.err;
    r = Cusplice({"help", "--completion", "fihs"});
    EXPECT_EQ(r.Exit(), 2);
    EXPECT_TRUE(Has(r.err, "the nearest is fish")) << r.err;
    EXPECT_EQ(Cusplice({"help", "--completion"}).Exit(), 2);
    EXPECT_EQ(Cusplice({"help", "--completion", "zsh", "more"}).Exit(), 2);
}

// Lines of an example stand each by itself; a text behind a word goes on below it.
TEST(Verbs, HelpKeepsLinesThatStandAsTheyAre) {
    std::string help = Cusplice({"config", "--help"}, {{"COLUMNS", "100"}}).out;
    EXPECT_TRUE(Has(help, "\n  mode = full_and_piecewise\n  [rules]\n  uniform = paged")) << help;
    EXPECT_TRUE(Has(help, "or > (never)\n  single       the same")) << help;
}

TEST(Verbs, UnknownOnesAreToldTheNearest) {
    Result r = Cusplice({"rnu"});
    EXPECT_EQ(r.Exit(), 2);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(Has(r.err, "the nearest is 'run'")) << r.err;
    EXPECT_TRUE(Has(Cusplice({"confgi"}).err, "the nearest is 'config'"));
    EXPECT_TRUE(Has(Cusplice({"./app"}).err, "cusplice run -- ./app"));
    EXPECT_EQ(Cusplice({}).Exit(), 2);
    EXPECT_TRUE(Has(Cusplice({"config", "--lst"}).err, "the nearest is --list"));
}

TEST(Verbs, HintsNameNothingThatIsFar) {
    EXPECT_EQ(Cusplice({"-V"}).out, Cusplice({"--version"}).out);
    EXPECT_EQ(Cusplice({"list"}).err, "cusplice: 'list' is no verb (see cusplice --help)\n");
    EXPECT_EQ(Cusplice({"-x"}).err, "cusplice: '-x' is no option (see cusplice --help)\n");
    EXPECT_EQ(Cusplice({"run", "--bogus", "x"}).err,
              "cusplice: unknown option --bogus (see cusplice run --help)\n");
    EXPECT_EQ(Cusplice({"info", "--format", "xml", "x"}).err,
              "cusplice: --format xml: no such value: it may be table or json\n");
    EXPECT_EQ(Cusplice({"diff", "--format", "xml", "x"}).err,
              "cusplice: --format xml: no such value: it may be table, csv, json or md\n");
    EXPECT_EQ(Cusplice({"report", "zzz", "x"}).err,
              "cusplice: there is no report 'zzz': there are kernels, segments, cache, breaks, "
              "coverage\n");
    Result r = Cusplice({"run", "--set", "zzzzzz=1", "--", "x"});
    EXPECT_EQ(r.err, "cusplice: --set: unknown key 'zzzzzz'\n");
    EXPECT_EQ(Cusplice({"config", "--explain", "api:zzzzz"}).err,
              "cusplice: the driver has no call zzzzz\n");
}

const char *const kVerbs[] = {"run",    "record", "info",   "dump",   "report",    "diff",
                              "trim",   "whatif", "replay", "bench",  "calibrate", "export",
                              "import", "verify", "top",    "config", "cache",     "repair",
                              "rules",  "doctor", "demo"};

// What a command prints on a terminal of 70 columns.
std::string OnTerminal(const Strings &arguments) {
    Strings command = {"/usr/bin/env",
                       "-u",
                       "LD_PRELOAD",
                       "python3",
                       "-c",
                       "import fcntl,os,pty,struct,sys,termios\n"
                       "pid, fd = pty.fork()\n"
                       "if pid == 0:\n"
                       "    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 70, 0, 0))\n"
                       "    os.execv(sys.argv[1], sys.argv[1:])\n"
                       "text = b''\n"
                       "try:\n"
                       "    while True:\n"
                       "        text += os.read(fd, 4096)\n"
                       "except OSError:\n"
                       "    pass\n"
                       "sys.stdout.write(text.decode().replace('\\r\\n', '\\n'))\n",
                       CuspliceProgram()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command, {{"COLUMNS", "100"}}).out;
}

size_t Widest(const std::string &text) {
    size_t widest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        widest = std::max(widest, line.size());
    return widest;
}

// As wide as the terminal (COLUMNS, where there is none), and 110 columns at most.
TEST(Verbs, HelpFitsTheTerminal) {
    for (const char *verb : kVerbs)
        for (const char *columns : {"60", "80", ""}) {
            Result r = Cusplice({verb, "--help"}, {{"COLUMNS", columns}});
            size_t most = *columns ? strtoul(columns, nullptr, 10) : 110;
            std::istringstream help(r.out);
            for (std::string line; std::getline(help, line);)
                EXPECT_LE(line.size(), most) << verb << ": " << line;
            EXPECT_EQ(Cusplice({"help", verb}, {{"COLUMNS", columns}}).out, r.out);
        }
    for (const char *columns : {"60", "80", ""}) {
        std::string help = Cusplice({"--help"}, {{"COLUMNS", columns}}).out;
        EXPECT_LE(Widest(help), *columns ? strtoul(columns, nullptr, 10) : 110) << help;
    }
    // A terminal says itself how wide it is.
    std::string text = OnTerminal({"replay", "--help"});
    EXPECT_LE(Widest(text), 70u) << text;
    EXPECT_GT(Widest(text), 60u) << text;
}

// No word is parted, and a pipe gets one line.
TEST(Verbs, MessagesAreFoldedOnATerminal) {
    std::string bad = Write("folded.conf", "mode = peicewise\n");
    std::string line = Cusplice({"config", "--check", bad}).err;
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    std::string text = OnTerminal({"config", "--check", bad}), joined;
    EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_TRUE(Has(text, "\n          ")) << text;
    std::istringstream words(text);
    for (std::string word; words >> word;)
        joined += (joined.empty() ? "" : " ") + word;
    EXPECT_EQ(joined + "\n", line);
    EXPECT_EQ(OnTerminal({"info", "/nowhere"}), Cusplice({"info", "/nowhere"}).err);
}

// A prefix as packages make it: the launcher becomes the demo there, in the words of demo.py.
TEST(Verbs, DemoIsThatOfThePackage) {
    Result r = Cusplice({"demo"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "in the source tree: tools/demo")) << r.err;
    std::string prefix = Folder() + "/prefix", bin = prefix + "/bin/cusplice";
    ASSERT_EQ(system(("mkdir -p " + prefix + "/bin " + prefix + "/lib/cusplice/demo && cp " +
                      CuspliceProgram() + " " + bin)
                         .c_str()),
              0);
    Write("prefix/lib/cusplice/demo/demo.py", "import sys\nprint(sys.argv[1:])\nsys.exit(7)\n");
    auto demo = [&](Strings words, const Environment &more = {}) {
        words.insert(words.begin(), {bin, "demo"});
        return RunProgram(words, more);
    };
    r = demo({});
    EXPECT_EQ(r.out, "[]\n") << r.err;
    EXPECT_EQ(r.Exit(), 7);
    std::string file = Folder() + "/demo.json";
    EXPECT_EQ(demo({"--sim", "--tokens", "60", "-o", file}).out,
              "['--device', 'sim', '--tokens', '60', '--json', '" + file + "']\n");
    EXPECT_EQ(demo({"--gpu"}).out, "['--device', 'gpu']\n");
    Write("demo.json", "kept");
    r = demo({"-o", file});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "--force replaces it")) << r.err;
    EXPECT_EQ(demo({"-o", file, "--force"}).Exit(), 7);
    for (const Strings &words :
         {Strings{"--sim", "--gpu"}, Strings{"word"}, Strings{"--tokens", "0"}})
        EXPECT_EQ(demo(words).Exit(), 2) << words[0];
    r = demo({}, {{"PATH", "/nowhere"}});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "python3, which the demo needs: No such file")) << r.err;
}

// The line of an option; "" where the help has none.
std::string OptionOf(const std::string &help, const std::string &name) {
    std::istringstream lines(help);
    std::string begin = "--" + name + " ", line;
    while (std::getline(lines, line))
        if (line.size() > 6 && (line + " ").compare(6, begin.size(), begin) == 0)
            return line;
    return "";
}

// The letter, the name of the value and the words are those of one table.
TEST(Verbs, OptionsAreTheSameEverywhere) {
    const struct {
        const char *name;
        Strings verbs; // that have it
    } options[] = {
        {"config", {"run", "record", "verify", "whatif", "replay", "bench", "config"}},
        {"set", {"run", "record", "verify", "whatif", "replay", "bench"}},
        {"eager", {"run", "record", "verify", "whatif", "replay", "bench"}},
        {"mode",
         {"run", "record", "whatif"}}, // of verify: whose graphs; of replay, bench: a strategy
        {"output",
         {"record", "info", "dump", "report", "diff", "trim", "whatif", "replay", "bench",
          "calibrate", "import", "config", "cache", "repair", "rules", "demo"}},
        {"force",
         {"record", "info", "dump", "report", "diff", "trim", "whatif", "replay", "bench",
          "calibrate", "export", "import", "config", "cache", "repair", "rules", "demo"}},
        {"wide", {"report", "diff", "replay", "bench", "cache"}},
        {"format",
         {"info", "report", "diff", "whatif", "replay", "bench", "top", "config", "cache",
          "doctor"}},
    };
    std::map<std::string, std::string> help;
    for (const char *verb : kVerbs) {
        help[verb] = Cusplice({verb, "--help"}).out;
        for (const char *old : {"json", "out", "pieces"})
            EXPECT_EQ(OptionOf(help[verb], old), "") << verb;
    }
    for (const auto &option : options) {
        std::string first = OptionOf(help[option.verbs[0]], option.name);
        EXPECT_EQ(first.substr(0, 6), option.name == std::string("config")   ? "  -c, "
                                      : option.name == std::string("output") ? "  -o, "
                                                                             : "      ");
        for (const std::string &verb : option.verbs)
            EXPECT_EQ(OptionOf(help[verb], option.name).substr(0, 36), first.substr(0, 36)) << verb;
    }
}

TEST(Verbs, OptionsAreReadAlikeByAll) {
    // Behind words too, whatever the environment says of that; never by the beginning of a name.
    for (const char *verb :
         {"bench", "cache", "calibrate", "config", "demo", "diff", "doctor", "dump", "export",
          "import", "info", "repair", "replay", "report", "rules", "top", "trim", "whatif"}) {
        Result r = Cusplice({verb, "word", "-h"}, {{"POSIXLY_CORRECT", "1"}});
        EXPECT_EQ(r.Exit(), 0) << verb << ": " << r.err;
        EXPECT_TRUE(Has(r.out, std::string("usage: cusplice ") + verb)) << r.out;
        r = Cusplice({verb, "word", "--hel"});
        EXPECT_EQ(r.Exit(), 2) << verb;
        EXPECT_TRUE(Has(r.err, "unknown option --hel; the nearest is --help")) << r.err;
        r = Cusplice({verb, "--help=x"});
        EXPECT_EQ(r.Exit(), 2) << verb;
        EXPECT_TRUE(Has(r.err, "--help takes no value")) << r.err;
        r = Cusplice({verb, "-?"});
        EXPECT_EQ(r.Exit(), 2) << verb;
        EXPECT_EQ(r.err,
                  std::string("cusplice: unknown option -? (see cusplice ") + verb + " --help)\n");
    }
    Result r = Cusplice({"info", "--", "--json"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "--json: No such file")) << r.err;
    // A program's own options are its own.
    r = Cusplice({"run", "/nowhere/prog", "--help"}, {{"CUSPLICE_CONFIG", "/dev/null"}});
    EXPECT_EQ(r.Exit(), 127) << r.err;
    EXPECT_EQ(Cusplice({"run", "--hel"}).Exit(), 125);
}

TEST(CacheVerb, ListsAndClears) {
    std::string folder = Folder() + "/cache";
    const cus_cache_entry entries[] = {{0xabc, 12, 0, 0, 5}, {0x1000, 1024, 450, 0, 900}};
    uint32_t n;
    bool wrote;
    const char *why;
    ASSERT_EQ(Cusplice({"cache", folder, "--list"}).Exit(), 1);
    ASSERT_EQ(cus_cache_update(folder.c_str(), 100, entries, 2, nullptr, 0, &n, &wrote, &why),
              CUS_CACHE_GOOD);
    Result r = Cusplice({"cache", "--list", folder});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out, folder + "/cusplice.cache: 2 graphs, 1036 launches in them, 88 bytes, written "
                              "1 times\n"
                              "path               ops  pace_ns  launches  used\n"
                              "0000000000001000  1024      450       900     1\n"
                              "0000000000000abc    12        0         5     1\n");
    EXPECT_EQ(Cusplice({"cache", "--list"}, {{"CUSPLICE_CACHE_DIR", folder}}).out, r.out);
    std::string file = ReadFile(folder + "/cusplice.cache");
    Write("cache/cusplice.cache", file.substr(0, 50));
    r = Cusplice({"cache", folder, "--list"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "its size is not what it says")) << r.err;
    EXPECT_EQ(Cusplice({"cache", folder, "--clear"}).Exit(), 0);
    EXPECT_EQ(ReadFile(folder + "/cusplice.cache"), "");
    r = Cusplice({"cache", folder, "--clear"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "there is no such file")) << r.err;
}

TEST(CacheVerb, ListsForProgramsAndIntoAFile) {
    std::string folder = Folder() + "/listed", out = Folder() + "/listed.out";
    const cus_cache_entry entries[] = {{0xabc, 12, 0, 0, 5}, {0x1000, 1024, 450, 0, 900}};
    uint32_t n;
    bool wrote;
    const char *why;
    ASSERT_EQ(cus_cache_update(folder.c_str(), 100, entries, 2, nullptr, 0, &n, &wrote, &why),
              CUS_CACHE_GOOD);
    EXPECT_EQ(Cusplice({"cache", "--list", "--format", "csv", folder}).out,
              "path,ops,pace_ns,launches,used\n0000000000001000,1024,450,900,1\n"
              "0000000000000abc,12,0,5,1\n");
    sim::Json j = sim::ParseJson(Cusplice({"cache", "--list", "--format=json", folder}).out);
    ASSERT_TRUE(j.valid);
    EXPECT_EQ(j.text["about.file"], folder + "/cusplice.cache");
    EXPECT_EQ(j.Number("about.graphs"), 2);
    EXPECT_EQ(j.Number("about.ops"), 1036);
    EXPECT_EQ(j.Number("about.bytes"), 88);
    EXPECT_EQ(j.Number("about.written"), 1);
    EXPECT_EQ(j.text["rows.0.path"], "0000000000001000");
    EXPECT_EQ(j.Number("rows.1.launches"), 5);
    EXPECT_TRUE(Has(Cusplice({"cache", "--list", "--format", "md", folder}).out,
                    "| 0000000000001000 | 1024 | "));
    // Into a file, which is replaced where that is said; never the cache itself.
    std::string text = Cusplice({"cache", "--list", folder}).out;
    EXPECT_EQ(Cusplice({"cache", "--list", folder, "-o", out}).out, "");
    EXPECT_EQ(ReadFile(out), text);
    Result r = Cusplice({"cache", "--list", folder, "--output", out});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, out + ": cannot be written: it is there already")) << r.err;
    EXPECT_EQ(Cusplice({"cache", "--list", "--force", "-o", out, folder}).Exit(), 0);
    EXPECT_EQ(Cusplice({"cache", "--list", "-o", "-", folder}).out, text);
    std::string file = folder + "/cusplice.cache", bytes = ReadFile(file);
    r = Cusplice({"cache", "--list", "--force", "-o", file, folder});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "it is what is read")) << r.err;
    EXPECT_EQ(ReadFile(file), bytes);
    // They are of the list.
    for (const Strings &more : {Strings{"--format", "csv"}, Strings{"-o", out + "2"},
                                Strings{"--force"}, Strings{"--wide"}}) {
        Strings clear = {"cache", "--clear", folder};
        clear.insert(clear.end(), more.begin(), more.end());
        EXPECT_EQ(Cusplice(clear).Exit(), 2) << more[0];
    }
    EXPECT_EQ(ReadFile(file), bytes);
}

TEST(CacheVerb, FindsTheFolderThatRunOffers) {
    std::string home = Folder() + "/caches";
    ASSERT_EQ(mkdir(home.c_str(), 0700), 0);
    const cus_cache_entry entry = {0xabc, 12, 0, 0, 5};
    bool wrote;
    uint32_t n;
    const char *why;
    ASSERT_EQ(cus_cache_update((home + "/cusplice").c_str(), 100, &entry, 1, nullptr, 0, &n, &wrote,
                               &why),
              CUS_CACHE_GOOD);
    Environment env = {{"CUSPLICE_CACHE_DIR", ""}, {"XDG_CACHE_HOME", home}}; // "": unset
    Result r = Cusplice({"cache", "--list"}, env);
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, home + "/cusplice/cusplice.cache: 1 graphs")) << r.out;
    env["CUSPLICE_CACHE_DIR"] = "/nowhere";
    EXPECT_TRUE(Has(Cusplice({"cache", "--list"}, env).err, "/nowhere/cusplice.cache"));
    env.erase("CUSPLICE_CACHE_DIR"); // that of these tests, which is empty
    EXPECT_EQ(Cusplice({"cache", "--clear"}, env).Exit(), 2) << "switched off";
    env["CUSPLICE_CACHE_DIR"] = "";
    EXPECT_EQ(Cusplice({"cache", "--clear"}, env).Exit(), 0);
    EXPECT_EQ(Cusplice({"cache", "--clear"}, env).Exit(), 1) << "there is none now";
    env["XDG_CACHE_HOME"] = env["HOME"] = "";
    EXPECT_EQ(Cusplice({"cache", "--list"}, env).Exit(), 2);
}

TEST(CacheVerb, WhatIsMissingOrTooMuchIsSaid) {
    EXPECT_EQ(Cusplice({"cache"}).Exit(), 2);
    EXPECT_EQ(Cusplice({"cache", "--list"}).Exit(), 2);
    EXPECT_EQ(Cusplice({"cache", "a", "b", "--list"}).Exit(), 2);
    EXPECT_EQ(Cusplice({"cache", "a", "--list", "--clear"}).Exit(), 2);
    EXPECT_TRUE(Has(Cusplice({"cache", "--lst"}).err, "the nearest is --list"));
}

} // namespace
