// Promise: cusplice run of a tree of processes leaves one file for each that uses CUDA, by rank and
// number, and tells of all of them once; on the simulator, with the real library.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "tests/launcher/launcher.h"
#include "tests/sim/json.h"

namespace {

Result RunTree(const std::string &verb, const Strings &options, const std::string &script,
               const Environment &more = {}) {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice", verb, "--set", "eager=x"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.insert(argv.end(), {"--", "/bin/bash", Write("tree.sh", script)});
    Environment all = {{"CUSIM_LIB", "harness/sim/lib"}};
    all.insert(more.begin(), more.end());
    return RunProgram(argv, all);
}

const std::string kProgram = "harness/scenario/scenario launch_bound --steps 20 >/dev/null";

std::set<std::string> FilesIn(const std::string &path) {
    std::set<std::string> files;
    DIR *folder = opendir(path.c_str());
    EXPECT_NE(folder, nullptr) << path;
    while (struct dirent *entry = folder ? readdir(folder) : nullptr)
        if (*entry->d_name != '.')
            files.insert(entry->d_name);
    if (folder)
        closedir(folder);
    return files;
}

// The shell prints the number of each process that it starts.
std::string Start(const std::string &rank) {
    return (rank.empty() ? "" : "RANK=" + rank + " ") + kProgram + " & echo $!\n";
}

Strings Words(const std::string &text) {
    Strings words;
    size_t at = 0, end;
    while ((end = text.find('\n', at)) != std::string::npos) {
        words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

TEST(Tree, EachProcessHasItsFiles) {
    std::string folder = Folder() + "/each";
    Result r = RunTree("run", {"--stats", folder + "/", "--why"},
                       Start("0") + Start("1") + Start("1") + Start("") + Start("../7") +
                           "/bin/true\nwait\n");
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Strings pids = Words(r.out);
    ASSERT_EQ(pids.size(), 5u) << r.out;
    const std::string names[] = {"rank-0.pid-" + pids[0], "rank-1.pid-" + pids[1],
                                 "rank-1.pid-" + pids[2], "pid-" + pids[3], "pid-" + pids[4]};
    std::set<std::string> expected;
    for (const std::string &name : names)
        for (const char *suffix : {".json", ".why"})
            expected.insert(name + suffix);
    EXPECT_EQ(FilesIn(folder), expected) << "and none of a process without CUDA";
    sim::Json json = sim::ParseJson(ReadFile(folder + "/" + names[1] + ".json"));
    ASSERT_TRUE(json.valid);
    EXPECT_EQ(json.Number("rank"), 1);
    EXPECT_EQ(json.Number("pid"), atof(pids[1].c_str()));
    EXPECT_GT(json.Number("ran_ms"), 0);
    EXPECT_EQ(json.text["gpus.0"], "1b:00.0");
    EXPECT_FALSE(sim::ParseJson(ReadFile(folder + "/" + names[3] + ".json")).Has("rank"));
    EXPECT_TRUE(Has(r.err, "cusplice: 5 processes\n")) << r.err;
    EXPECT_EQ(Count(r.err, "  1b:00.0     scenario "), 5u) << r.err;
    EXPECT_TRUE(Has(r.err, "cusplice: the report of each process is in " + folder + "\n"));
    EXPECT_FALSE(Has(r.err, "coverage:")) << "reports are in the folder: " << r.err;
    EXPECT_EQ(ReadFile(folder + "/" + names[0] + ".why").find("cusplice: why (mode piecewise)\n"),
              0u);
    struct stat info;
    ASSERT_EQ(stat((folder + "/" + names[0] + ".why").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST(Tree, AReportFollowsTheTableWithoutAFolder) {
    std::string temporary = Folder() + "/temporary";
    ASSERT_EQ(mkdir(temporary.c_str(), 0700), 0);
    Result r =
        RunTree("run", {"--why"}, Start("0") + Start("1") + "wait\n", {{"TMPDIR", temporary}});
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_EQ(r.err.find("cusplice: 2 processes\n"), 0u) << r.err;
    size_t at = r.err.find("coverage: ");
    ASSERT_NE(at, std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("coverage: ", at + 1), std::string::npos) << "one: " << r.err;
    EXPECT_EQ(FilesIn(temporary), std::set<std::string>());
}

TEST(Tree, OneProcessHasItsReportAsEver) {
    std::string folder = Folder() + "/one";
    Result r = RunTree("run", {"--why", "--stats", folder + "/"}, "RANK=0 exec " + kProgram);
    EXPECT_EQ(r.err.find("cusplice: why (mode piecewise)\n  coverage: "), 0u) << r.err;
    EXPECT_EQ(FilesIn(folder).size(), 2u);
}

TEST(Tree, AKilledProcessIsARowWithoutAReport) {
    std::string folder = Folder() + "/killed";
    Result r =
        RunTree("run", {"--why", "--stats", folder + "/"},
                Start("0") + "RANK=1 harness/scenario/scenario launch_bound --steps 100000000 "
                             ">/dev/null & pid=$!\n"
                             "until grep -q \"^$pid on\" $CUSPLICE_HANDSHAKE; do sleep 0.05; done\n"
                             "kill -9 $pid\nwait\n");
    EXPECT_EQ(FilesIn(folder).size(), 2u) << "those of the other one";
    EXPECT_TRUE(Has(r.err, "cusplice: 2 processes\n")) << r.err;
    size_t row = r.err.find("\n       1 ");
    ASSERT_NE(row, std::string::npos) << "its rank is known: " << r.err;
    EXPECT_TRUE(Has(r.err.substr(row), "ended without its exit handlers")) << r.err;
}

TEST(Tree, ARunWithinARunFillsTheSameFolder) {
    std::string folder = Folder() + "/nested";
    Result r = RunTree("run", {"--why", "--stats", folder + "/"},
                       Start("0") + "wait\ntools/cusplice run --why -- /bin/bash " +
                           Write("inner.sh", Start("1") + Start("2") + "wait\n"));
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_EQ(FilesIn(folder).size(), 6u);
    EXPECT_TRUE(Has(r.err, "cusplice: 3 processes\n")) << r.err;
    EXPECT_FALSE(Has(r.err, "coverage:")) << r.err;
}

// Starts a program without an end, and kills it when it has done so much and has made its page.
std::string Killed(const std::string &partial) {
    return "harness/scenario/scenario launch_bound --steps 100000000 >/dev/null & pid=$!\n"
           "page=/dev/shm/cusplice-$EUID-$pid\n"
           "until [ -e $page ] && [ -e " +
           partial +
           " ]; do sleep 0.05; done\n"
           "kill -9 $pid; wait 2>/dev/null; ls $page\n";
}

TEST(Tree, AKilledProcessLeavesNoPageAndItsTraceIsNamed) {
    std::string folder = Folder() + "/recorded-in-part";
    for (const std::string &output :
         {folder + "/", folder + "/{process}.b", folder + "/one-%p", folder + "/one"}) {
        std::string partial = output == folder + "/" ? folder + "/pid-$pid.cst" : output;
        for (const char *mark : {"{process}", "%p"})
            if (size_t at = partial.find(mark); at != std::string::npos)
                partial.replace(at, strlen(mark), *mark == '%' ? "$pid" : "pid-$pid");
        Result r = RunTree("record", {"-o", output}, Killed(partial + ".partial"),
                           {{"XDG_RUNTIME_DIR", ""}});
        std::string page = Words(r.out).at(0);
        EXPECT_EQ(page.find("/dev/shm/cusplice-"), 0u) << r.out << r.err;
        EXPECT_NE(access(page.c_str(), F_OK), 0) << page;
        std::string pid = page.substr(page.rfind('-') + 1);
        if (size_t at = partial.find("$pid"); at != std::string::npos)
            partial.replace(at, 4, pid);
        EXPECT_TRUE(Has(r.err, "cusplice: process " + pid + " ended without its exit handlers"))
            << r.err;
        EXPECT_TRUE(Has(r.err, "is in " + partial + ".partial, ")) << r.err;
        EXPECT_EQ(Cusplice({"info", partial + ".partial"}).Exit(), 0);
    }
}

TEST(Tree, AProcessThatGoesOnKeepsItsPageAndIsNotSaidToHaveEnded) {
    std::string trace = Folder() + "/goes-on";
    Result r = RunTree("record", {"-o", trace},
                       "harness/scenario/scenario launch_bound --steps 100000000 >/dev/null "
                       "2>&1 & pid=$!\necho /dev/shm/cusplice-$EUID-$pid\n"
                       "until [ -e /dev/shm/cusplice-$EUID-$pid ] && [ -e " +
                           trace + ".partial ]; do sleep 0.05; done\n",
                       {{"XDG_RUNTIME_DIR", ""}});
    std::string page = Words(r.out).at(0);
    EXPECT_EQ(access(page.c_str(), F_OK), 0) << page;
    EXPECT_FALSE(Has(r.err, "its trace is in")) << r.err;
    kill(std::stoi(page.substr(page.rfind('-') + 1)), SIGKILL);
    unlink(page.c_str());
}

TEST(Tree, ARecordedTreeHasATraceOfEachProcess) {
    std::string folder = Folder() + "/recorded";
    Result r =
        RunTree("record", {"-o", folder + "/"}, Start("0") + Start("1") + "/bin/true\nwait\n");
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Strings pids = Words(r.out);
    ASSERT_EQ(pids.size(), 2u);
    EXPECT_EQ(FilesIn(folder), (std::set<std::string>{"rank-0.pid-" + pids[0] + ".cst",
                                                      "rank-1.pid-" + pids[1] + ".cst"}));
    Result table = Cusplice({"report", "--format", "csv", "--fields", "rank,pid,program", folder});
    EXPECT_EQ(table.out,
              "rank,pid,program\n0," + pids[0] + ",scenario\n1," + pids[1] + ",scenario\n")
        << table.err;
}

TEST(Tree, ALogThatIsAskedForIsInTheFolder) {
    std::string folder = Folder() + "/logs";
    Result r =
        RunTree("run", {"--set", "log=info", "--stats", folder + "/"}, "RANK=0 exec " + kProgram);
    EXPECT_EQ(r.err,
              "cusplice: eager = x (CUSPLICE_EAGER) matched no kernel; the nearest kernel is "
              "axpy\n");
    bool found = false;
    for (const std::string &name : FilesIn(folder))
        if (Has(name, ".log")) {
            EXPECT_EQ(name.find("rank-0.pid-"), 0u) << name;
            found = Has(ReadFile(folder + "/" + name), "info hook: on, mode piecewise");
        }
    EXPECT_TRUE(found);
}

} // namespace
