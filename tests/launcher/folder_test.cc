// Promise: --stats FOLDER/ names a file for each process in a folder of the user's own, and --why
// tells of a run of several processes in one bounded table.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/launcher/launcher.h"

namespace {

std::string Fresh(const std::string &name) {
    std::string folder = Folder() + "/" + name;
    EXPECT_EQ(mkdir(folder.c_str(), 0755), 0) << folder;
    return folder;
}

bool Exists(const std::string &path) {
    struct stat info;
    return lstat(path.c_str(), &info) == 0;
}

const Environment kFine = {{"FAKE_SAYS", "loaded,on 0,exit 5 0"}};
const Strings kNames = {"env=CUSPLICE_STATS", "env=CUSPLICE_WHY_FILE", "env=CUSPLICE_LOG_FILE"};

// What the program sees under these options.
Result Names(const Strings &options, Environment more = kFine) {
    Strings all = {"run"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", Target()});
    all.insert(all.end(), kNames.begin(), kNames.end());
    return Cusplice(all, more);
}

std::string Said(const std::string &stats, const std::string &why = "(unset)",
                 const std::string &log = "(unset)") {
    return "CUSPLICE_STATS=" + stats + "\nCUSPLICE_WHY_FILE=" + why + "\nCUSPLICE_LOG_FILE=" + log +
           "\n";
}

// ---- names ----

TEST(RunFolder, IsMadeAndHasANameForEachProcess) {
    std::string folder = Folder() + "/made";
    for (const std::string &given : {folder + "/", folder, folder + "//"})
        EXPECT_EQ(Names({"--stats", given}).out, Said(folder + "/{process}.json")) << given;
    struct stat info;
    ASSERT_EQ(stat(folder.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    EXPECT_EQ(Names({"--stats", Folder() + "/no-folder"}).out, Said(Folder() + "/no-folder"))
        << "one file, as ever";
}

TEST(RunFolder, HasReportsAndLogsWhereAskedFor) {
    std::string folder = Fresh("asked"), stats = folder + "/{process}.json",
                why = folder + "/{process}.why", log = folder + "/{process}.log";
    EXPECT_EQ(Names({"--stats", folder, "--why"}).out, Said(stats, why));
    EXPECT_EQ(Names({"--stats", folder, "--set", "log=info"}).out, Said(stats, "(unset)", log));
    std::string config = Write("why.conf", "why = yes\nlog = debug\n");
    EXPECT_EQ(Names({"--stats", folder, "-c", config}).out, Said(stats, why, log));
    EXPECT_EQ(Names({"--stats", folder, "--set", "log=info", "--set", "log_file=/x"}).out,
              Said(stats, "(unset)", "/x"));
}

TEST(RunFolder, ReportsGoWhereASettingSays) {
    EXPECT_EQ(Names({"--why", "--set", "why_file=/x"}).out, Said("(unset)", "/x"));
    EXPECT_EQ(Names({"--why", "--set", "log_file=/x"}).out, Said("(unset)", "(unset)", "/x"));
    EXPECT_EQ(Names({}).out, Said("(unset)")) << "nobody asked why";
}

TEST(RunFolder, ThatIsTemporaryGoes) {
    std::string folder = Fresh("temporary");
    Environment more = kFine;
    more["TMPDIR"] = folder;
    EXPECT_TRUE(Has(Names({"--why"}, more).out, "CUSPLICE_WHY_FILE=" + folder + "/cusplice-"));
    Cusplice({"run", "--why", "--", "/nowhere/prog"}, more);
    EXPECT_EQ(rmdir(folder.c_str()), 0) << "something is left in " << folder;
}

TEST(RunFolder, KeepsWhatIsThere) {
    std::string folder = Fresh("kept");
    Write("kept/pid-1.json", "{}");
    Names({"--stats", folder});
    EXPECT_EQ(ReadFile(folder + "/pid-1.json"), "{}") << "it may be of a run beside this one";
}

TEST(RunFolder, MayBeALinkOfTheUsers) {
    std::string folder = Fresh("real"), link = Folder() + "/link";
    ASSERT_EQ(symlink(folder.c_str(), link.c_str()), 0);
    EXPECT_EQ(Names({"--stats", link}).out, Said(link + "/{process}.json"));
}

// Processes on other machines reach the launcher where they leave their files.
TEST(RunFolder, HoldsWhatIsToldToTheLauncher) {
    std::string folder = Folder() + "/told";
    auto told = [](const Strings &options) {
        Strings all = {"run"};
        all.insert(all.end(), options.begin(), options.end());
        all.insert(all.end(), {"--", Target(), "env=CUSPLICE_HANDSHAKE"});
        return Cusplice(all, kFine).out;
    };
    const std::string there = "CUSPLICE_HANDSHAKE=" + folder + "/.cusplice-";
    EXPECT_EQ(told({"--stats", folder + "/"}).find(there), 0u);
    EXPECT_EQ(rmdir(folder.c_str()), 0) << "it is gone at the end";
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    for (mode_t others : {0770, 0707, 01777}) {
        ASSERT_EQ(chmod(folder.c_str(), others), 0);
        EXPECT_EQ(told({"--stats", folder}).find(there), std::string::npos)
            << "others could put another file there: " << others;
    }
    EXPECT_EQ(told({}).find(there), std::string::npos);
}

TEST(RunFolder, ThatCannotBeIsRefused) {
    std::string file = Write("a-file", "");
    const struct {
        std::string path, says;
    } refusals[] = {
        {file + "/", "it is no folder"},
        {"/nowhere/at/all/", "No such file or directory"},
        {"/" + std::string(5000, 'x') + "/", "File name too long"},
        {Folder() + "/for-{pid}/", "stand in names of files"},
        {Folder() + "/for-%p/", "stand in names of files"},
        {Folder() + "/for-{process}/", "stand in names of files"},
        {Folder() + "/for-{host}/", "stand in names of files"},
    };
    for (const auto &refusal : refusals) {
        Result r = Names({"--stats", refusal.path});
        EXPECT_EQ(r.Exit(), 125) << refusal.path;
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, "--stats " + refusal.path + ": ") && Has(r.err, refusal.says))
            << r.err;
    }
    EXPECT_FALSE(Exists(Folder() + "/for-{pid}"));
}

TEST(RunFolder, OfAnotherUserIsRefused) {
    if (geteuid() != 0)
        GTEST_SKIP() << "needs two users";
    std::string folder = Fresh("theirs");
    ASSERT_EQ(chown(folder.c_str(), 12345, 12345), 0);
    for (const char *verb : {"run", "record"}) {
        Result r = Cusplice({verb, std::string(verb) == "run" ? "--stats" : "-o", folder + "/",
                             "--", Target(), "out=started"},
                            kFine);
        EXPECT_EQ(r.Exit(), 125);
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, folder + "/: it is another user's")) << r.err;
    }
}

TEST(RunFolder, HasATraceOfEachProcess) {
    std::string folder = Folder() + "/traces";
    Result r =
        Cusplice({"record", "-o", folder + "/", "--", Target(), "env=CUSPLICE_RECORD"}, kFine);
    EXPECT_EQ(r.out, "CUSPLICE_RECORD=" + folder + "/{process}.cst\n") << r.err;
    r = Cusplice({"record", "-o", folder + "/", "--", Target(), "env=CUSPLICE_RECORD"}, kFine);
    EXPECT_EQ(r.Exit(), 0) << "more traces may go there: " << r.err;
}

// ---- the table ----

// A shell that starts a process for each text, one after another.
Result Tree(const Strings &says, const Strings &options = {"--why"}, Environment more = {}) {
    std::string script;
    for (const std::string &one : says)
        script += "FAKE_SAYS='" + one + "' " + Target() + "\n";
    Strings all = {"run"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "/bin/sh", Write("tree.sh", script)});
    return Cusplice(all, more);
}

std::string Ran(int rank, int ops, int in_graphs, const std::string &top = "gemm: a rule") {
    return "loaded,on " + std::to_string(rank + 1) + ",ran " + std::to_string(rank + 1) + " 1500 " +
           std::to_string(ops) + " " + std::to_string(in_graphs) + " prog\t1b:00.0 +7\t" + top +
           ",exit " + std::to_string(ops) + " 0";
}

size_t Lines(const std::string &text) {
    size_t n = 0;
    for (char c : text)
        n += c == '\n';
    return n;
}

TEST(RunTable, HasARowForEachProcessByRank) {
    Result r = Tree({Ran(-1, 30, 3), Ran(10, 20, 5), Ran(2, 10, 10), "loaded,on 0,exit 0 0"});
    EXPECT_TRUE(Has(r.err, "cusplice: 3 processes\n")) << r.err;
    size_t two = r.err.find("\n       2 "), ten = r.err.find("\n      10 "),
           none = r.err.find("\n       - ");
    ASSERT_NE(none, std::string::npos) << r.err;
    EXPECT_LT(two, ten) << r.err;
    EXPECT_LT(ten, none) << r.err;
    EXPECT_TRUE(Has(
        r.err, "  1b:00.0 +7  prog                       20      25.0 %       1.5  gemm: a rule\n"))
        << r.err;
    EXPECT_TRUE(Has(r.err, "which launched most, follows")) << r.err;
}

TEST(RunTable, IsForSeveralAndThoseWhoAsk) {
    EXPECT_EQ(Tree({Ran(0, 10, 5), Ran(1, 10, 5)}, {}).err, "");
    EXPECT_EQ(Tree({Ran(0, 10, 5)}).err, "") << "its report is enough";
    EXPECT_EQ(Tree({Ran(0, 10, 5), "loaded,on 2,exit 0 0"}).err, "")
        << "one that launched nothing is no row";
}

// On a terminal of 50 columns: what the launcher copies of a report. In a pipe it stays as it is.
TEST(RunTable, AReportFitsTheTerminal) {
    std::string report = "cusplice: why (mode piecewise)\n    1. 3 + 4  a kernel: " +
                         std::string("many words about why, ") + "and what is to be done of it\n";
    std::string script =
        Write("report.sh", "FAKE_SAYS='" + Ran(0, 10, 5) + "' " + Target() +
                               " & wait; cat >${CUSPLICE_WHY_FILE%/*}/rank-0.pid-$!.why <<E\n" +
                               report + "E\n");
    const Strings run = {"run", "--why", "--", "/bin/sh", script};
    EXPECT_EQ(Cusplice(run).err, report);
    Strings pty = {"/usr/bin/env",
                   "-u",
                   "LD_PRELOAD",
                   "python3",
                   "-c",
                   "import fcntl,os,pty,struct,sys,termios\n"
                   "pid, fd = pty.fork()\n"
                   "if pid == 0:\n"
                   "    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 50, 0, 0))\n"
                   "    os.execv(sys.argv[1], sys.argv[1:])\n"
                   "text = b''\n"
                   "try:\n"
                   "    while True:\n"
                   "        text += os.read(fd, 4096)\n"
                   "except OSError:\n"
                   "    pass\n"
                   "sys.stdout.write(text.decode().replace('\\r', ''))\n",
                   CuspliceProgram()};
    pty.insert(pty.end(), run.begin(), run.end());
    EXPECT_EQ(RunProgram(pty).out, "cusplice: why (mode piecewise)\n"
                                   "    1. 3 + 4  a kernel: many words about why, and\n"
                                   "      what is to be done of it\n");
}

TEST(RunTable, IsBounded) {
    Strings says;
    for (int rank = 0; rank < 70; rank++)
        says.push_back(Ran(rank, 10, 5));
    Result r = Tree(says, {"--why", "--set", "why_file=/dev/null"});
    EXPECT_TRUE(Has(r.err, "cusplice: 70 processes\n")) << r.err;
    EXPECT_TRUE(Has(r.err, "\n      63 ") && Has(r.err, "\n  and 6 more\n")) << r.err;
    EXPECT_FALSE(Has(r.err, "\n      64 ")) << r.err;
    EXPECT_EQ(Lines(r.err), 2u + 64 + 1);
    std::string many =
        "on 1,exit 0 0,on 1,ran 1 1 1 1 p\t-\tb,exit 1 0"; // one process says it for 1100
    for (int i = 0; i < 1099; i++)
        many += ",on 1,ran 1 1 1 1 p\t-\tb,exit 1 0";
    r = Tree({many}, {"--why", "--set", "why_file=/dev/null"});
    EXPECT_TRUE(Has(r.err, "cusplice: 1100 processes\n")) << r.err.substr(0, 200);
    EXPECT_TRUE(Has(r.err, "\n  and 1036 more\n")) << r.err;
}

TEST(RunTable, TellsOfThoseThatWereKilled) {
    Result r = Tree({Ran(0, 10, 5), "loaded,on 5"}, {"--why"});
    EXPECT_TRUE(Has(r.err, "cusplice: 2 processes\n")) << r.err;
    size_t row = r.err.find("\n       4 ");
    ASSERT_NE(row, std::string::npos) << r.err;
    EXPECT_TRUE(Has(r.err.substr(row), "ended without its exit handlers")) << r.err;
}

// Machines and containers number their processes by themselves. Here one process speaks for two.
TEST(RunTable, ProcessesOfOneNumberOnTwoMachinesAreTwo) {
    const std::string ran = " 1500 20 10 prog\t-\tb", both = ",exit 20 0,exit 20 0";
    const Strings quiet = {"--why", "--set", "why_file=/dev/null"};
    Result r = Tree({"on 1,on 2,ran 1" + ran + ",ran 2" + ran + both}, quiet);
    EXPECT_TRUE(Has(r.err, "cusplice: 2 processes\n")) << r.err;
    EXPECT_TRUE(Has(r.err, "\n       0 ") && Has(r.err, "\n       1 ")) << r.err;
    EXPECT_FALSE(Has(r.err, "ended without")) << r.err;
    r = Tree({"on 0,on 0,ran 0" + ran + ",ran 0" + ran + both}, quiet);
    EXPECT_TRUE(Has(r.err, "cusplice: 2 processes\n")) << "without ranks, too: " << r.err;
    for (const char *which : {"1", "2"}) {
        r = Tree({"on 1,on 2,ran " + (which + ran) + ",exit 20 0"}, quiet);
        EXPECT_TRUE(Has(r.err, "cusplice: 2 processes\n")) << r.err;
        EXPECT_EQ(Count(r.err, "ended without"), 1u) << "the other one: " << r.err;
        EXPECT_EQ(Count(r.err, " prog "), 1u) << r.err;
    }
}

TEST(RunTable, ShowsWhatATerminalObeysToNobody) {
    Result r = Tree({Ran(0, 10, 5, "\x1b]0;x\x07"), Ran(1, 10, 5, std::string(300, 'y')),
                     "on 1,ran 1 x y z,ran 1000002 1 1 1 p\t-\tb,ran,exit,-5 on,exit 1 0"});
    EXPECT_FALSE(Has(r.err, "\x1b")) << r.err;
    EXPECT_TRUE(Has(r.err, "?]0;x?\n")) << r.err;
    EXPECT_TRUE(Has(r.err, std::string(150, 'y')) && !Has(r.err, std::string(160, 'y'))) << r.err;
    EXPECT_FALSE(Has(r.err, "1000001")) << "no rank: " << r.err;
}

TEST(RunTable, OfARunWithinARunIsOne) {
    std::string inner =
        CuspliceProgram() + " run --why -- /bin/sh " +
        Write("inner.sh", "FAKE_SAYS='" + Ran(0, 10, 5) + "' " + Target() + "\nFAKE_SAYS='" +
                              Ran(1, 10, 5) + "' " + Target() + "\n");
    Strings run = {"run", "--why", "--", "/bin/sh",
                   Write("outer.sh", inner + "\nFAKE_SAYS='" + Ran(2, 10, 5) + "' " + Target())};
    Result r = Cusplice(run);
    EXPECT_TRUE(Has(r.err, "cusplice: 3 processes\n")) << r.err;
    EXPECT_EQ(r.err.find("processes"), r.err.rfind("processes")) << "one table: " << r.err;
    r = Cusplice({"run", "--", "/bin/sh", Write("outer.sh", inner)});
    EXPECT_TRUE(Has(r.err, "cusplice: 2 processes\n")) << "the outer one does not tell: " << r.err;
    EXPECT_FALSE(Has(r.err, "never came up")) << r.err;
}

TEST(RunTable, APipeThatNobodyReadsChangesNoStatus) {
    NEEDS_A_SHELL();
    Write("tree.sh", "FAKE_SAYS='" + Ran(0, 10, 5) + "' " + Target() + "\nFAKE_SAYS='" +
                         Ran(1, 10, 5) + "' " + Target() + "\nexit 7\n");
    std::string folder = Fresh("closed");
    Environment more = {{"TMPDIR", folder}};
    Result r = RunProgram({"/bin/bash", "-c",
                           CuspliceProgram() + " run --why -- /bin/sh " + Folder() +
                               "/tree.sh 2> >(exec sleep 0 <&-); echo status $?"},
                          more);
    EXPECT_EQ(r.out, "status 7\n");
    EXPECT_EQ(rmdir(folder.c_str()), 0) << "something is left in " << folder;
}

} // namespace
