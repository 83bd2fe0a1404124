// Promise: cusplice top shows what a running process does, keeps running after the process ended,
// and trusts no page.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "shim/base/process.h"
#include "shim/stats/page.h"
#include "tests/sim/child.h"
#include "tests/sim/json.h"
#include "tests/text.h"
#include "tests/within.h"

namespace sim {
namespace {

// A child that runs while the test goes on.
class Background {
  public:
    Background(const std::vector<std::string> &command,
               const std::map<std::string, std::string> &env) {
        folder_ = TempDir();
        pid_ = fork();
        if (pid_ != 0)
            return;
        int null = open("/dev/null", O_RDONLY);
        int out = open((folder_ + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int err = open((folder_ + "/err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(null, 0);
        dup2(out, 1);
        dup2(err, 2);
        for (const auto &entry : env)
            setenv(entry.first.c_str(), entry.second.c_str(), 1);
        std::vector<char *> argv;
        for (const auto &word : command)
            argv.push_back(const_cast<char *>(word.c_str()));
        argv.push_back(nullptr);
        execv(argv[0], argv.data());
        _exit(127);
    }
    ~Background() {
        if (!over_)
            kill(pid_, SIGKILL);
        Wait();
        unlink((folder_ + "/out").c_str());
        unlink((folder_ + "/err").c_str());
        rmdir(folder_.c_str());
    }
    int Wait() { // exit status, or -signal
        if (!over_)
            waitpid(pid_, &status_, 0);
        over_ = true;
        return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
    }
    std::string Pid() const { return std::to_string(pid_); }
    pid_t Number() const { return pid_; }
    std::string Out() const { return ReadFile(folder_ + "/out"); }
    std::string Err() const { return ReadFile(folder_ + "/err"); }

  private:
    pid_t pid_ = -1;
    bool over_ = false;
    int status_ = 0;
    std::string folder_;
};

class Top : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = TempDir();
        if (getenv("CUS_TEST_EMULATED"))
            GTEST_SKIP() << "qemu tells a process another start than others see";
    }
    void TearDown() override { rmdir(folder_.c_str()); }

    std::map<std::string, std::string> Env() {
        return {{"XDG_RUNTIME_DIR", folder_},
                {"ASAN_OPTIONS", "detect_leaks=0"},
                {"TSAN_OPTIONS", "suppressions=" + Runfile("tests/sim/tsan.supp")}};
    }

    // A program that launches for as long as it is let.
    std::vector<std::string> Program(const char *steps = "100000000") {
        return {Runfile("harness/scenario/scenario"), "launch_bound", "--steps", steps};
    }
    std::map<std::string, std::string> Preloaded() {
        auto env = Env();
        const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
        std::string libcuda = Runfile("harness/sim/lib/libcuda.so.1");
        env["LD_LIBRARY_PATH"] = libcuda.substr(0, libcuda.rfind('/'));
        env["LD_PRELOAD"] =
            (first && *first ? std::string(first) + ":" : "") + Runfile("shim/libcusplice.so");
        env["CUSPLICE_LIVE"] = "yes";
        return env;
    }

    Result Run(std::vector<std::string> args) {
        Child child;
        child.command = {Runfile("tools/cusplice"), "top"};
        child.command.insert(child.command.end(), args.begin(), args.end());
        child.env = Env();
        return sim::Run(child);
    }

    // One look, as soon as there is something to see.
    Json Look(const std::string &pid) {
        Json json;
        Result last;
        bool seen = Within(60, [&] {
            last = Run({pid, "--once", "--json", "--interval", "0.1"});
            json = ParseJson(last.out);
            return last.status == 0;
        });
        EXPECT_TRUE(seen) << last.err;
        EXPECT_TRUE(json.valid) << last.out;
        return json;
    }

    std::string PagePath(pid_t pid) {
        char path[CUS_PAGE_PATH];
        EXPECT_TRUE(cus_page_path(folder_.c_str(), geteuid(), pid, path));
        return path;
    }

    std::string folder_;
};

TEST_F(Top, ShowsAProcessAndOutlivesIt) {
    Background program(Program(), Preloaded());
    Json first = Look(program.Pid()), second = Look(program.Pid());
    EXPECT_EQ(second.Number("pid"), program.Number());
    EXPECT_EQ(second.text["program"], "scenario");
    EXPECT_EQ(second.text["mode"], "piecewise");
    EXPECT_EQ(second.text["gpu"], "1b:00.0") << "the simulator's first one";
    EXPECT_GT(second.Number("ops"), first.Number("ops"));
    EXPECT_GE(second.Number("ops"), second.Number("in_graphs"));
    EXPECT_GT(second.Number("in_graphs"), 0);
    EXPECT_GE(second.Number("in_graphs"), second.Number("graph_launches"));
    EXPECT_GT(second.Number("graph_bytes"), 0);
    EXPECT_LE(second.Number("graph_bytes"), second.Number("graph_bytes_limit"));
    EXPECT_GT(second.Number("launch_ns"), 0);
    EXPECT_GE(second.Number("now.seconds"), 0.09);
    EXPECT_GT(second.Number("now.launches_per_s"), 0);
    EXPECT_LE(second.Number("now.share_in_graphs"), 1.5); // a graph's ops may be of the look before
    double saved = (second.Number("in_graphs") * second.Number("launch_ns") -
                    second.Number("graph_launches") * second.Number("graph_ns")) /
                   1e9;
    EXPECT_NEAR(second.Number("saved_s"), saved, 1e-5);
    EXPECT_TRUE(second.Has("breaks.0.launches"));
    EXPECT_EQ(second.text["breaks.0.name"], "axpy");

    // As text. Where it is the only one it need not be named; others may be in /dev/shm.
    Result only = Run({"--once", "--interval", "0.1"});
    EXPECT_TRUE(Has(only.out, "(pid " + program.Pid() + ", ") ||
                Has(only.out, program.Pid() + " scenario\n"))
        << only.out << only.err;
    only = Run({program.Pid(), "--once", "--interval", "0.1"});
    EXPECT_EQ(only.status, 0) << only.err;
    EXPECT_TRUE(Has(only.out, "cusplice top: scenario (pid " + program.Pid() + ", mode piecewise)"))
        << only.out;
    for (const char *part : {"launches ", "in graphs ", "graph launches ", "host time saved ",
                             "graphs hold about ", "breaks so far ", "axpy: "})
        EXPECT_TRUE(Has(only.out, part)) << part << "\n" << only.out;
    EXPECT_FALSE(Has(only.out, "\x1b")) << "no terminal";

    Background viewer({Runfile("tools/cusplice"), "top", program.Pid(), "--interval", "0.1"},
                      Env());
    EXPECT_TRUE(Within(60, [&] { return Has(viewer.Out(), "breaks so far"); }));
    kill(program.Number(), SIGKILL);
    EXPECT_EQ(viewer.Wait(), 0) << viewer.Err();
    EXPECT_EQ(viewer.Err(), "cusplice: process " + program.Pid() + " has ended\n");
    EXPECT_FALSE(FileExists(PagePath(program.Number()))) << "nobody else would take it away";
    program.Wait();
    Result dead = Run({program.Pid(), "--once"});
    EXPECT_EQ(dead.status, 1);
    EXPECT_EQ(dead.err, "cusplice: there is no process " + program.Pid() + "\n");
}

TEST_F(Top, SaysThatLaunchesOnPerThreadDefaultStreamsPass) {
    Background program({Runfile("harness/scenario/scenario"), "ptds", "--steps", "100000000"},
                       Preloaded());
    Json seen = Look(program.Pid());
    EXPECT_EQ(seen.Number("in_graphs"), 0);
    EXPECT_EQ(seen.text["breaks.0.what"],
              "launches on per-thread default streams pass as they "
              "are: no other thread could issue what was deferred there");
}

TEST_F(Top, ListsSeveralAndRemovesThePagesOfDeadOnes) {
    Background one(Program(), Preloaded()), two(Program(), Preloaded());
    Look(one.Pid());
    Look(two.Pid());
    Result both = Run({});
    EXPECT_EQ(both.status, 0) << both.err;
    EXPECT_TRUE(Has(both.out, one.Pid() + " scenario\n")) << both.out;
    EXPECT_TRUE(Has(both.out, two.Pid() + " scenario\n")) << both.out;
    for (Background *program : {&one, &two}) {
        kill(program->Number(), SIGKILL);
        program->Wait();
        EXPECT_TRUE(FileExists(PagePath(program->Number())));
    }
    Result named = Run({one.Pid()});
    EXPECT_EQ(named.status, 1);
    EXPECT_EQ(named.err, "cusplice: process " + one.Pid() + " has ended\n");
    EXPECT_FALSE(FileExists(PagePath(one.Number())));
    // One that was ended before it had made a page of the file.
    pid_t ended = fork();
    if (ended == 0)
        _exit(0);
    std::ofstream(PagePath(ended)) << "";
    waitpid(ended, nullptr, 0);
    // Other processes of this user may have pages in /dev/shm.
    Result none = Run({"--once"});
    EXPECT_FALSE(Has(none.out, two.Pid() + " scenario\n")) << none.out;
    EXPECT_FALSE(FileExists(PagePath(two.Number())));
    EXPECT_FALSE(FileExists(PagePath(ended)));
}

TEST_F(Top, AllProcessesAreInOneTableByRank) {
    auto first = Preloaded(), second = Preloaded();
    first["RANK"] = "7";
    second["RANK"] = "3";
    Background seven(Program(), first), three(Program(), second), none(Program(), Preloaded());
    auto third = Preloaded();
    third["RANK"] = "5";
    Background five(Program(), third); // neither the order of starts nor its reverse is sorted
    for (const Background *one : {&seven, &three, &none, &five})
        Look(one->Pid());
    EXPECT_EQ(Look(seven.Pid()).Number("rank"), 7);
    EXPECT_FALSE(Look(none.Pid()).Has("rank"));
    Result all = Run({"--all", "--once", "--interval", "0.2"});
    EXPECT_EQ(all.status, 0) << all.err;
    auto row = [&](const std::string &rank, const Background &one, const std::string &text) {
        std::smatch found;
        std::regex form("\\n *" + rank + " +" + one.Pid() + "  1b:00.0 +scenario ");
        return std::regex_search(text, found, form) ? size_t(found.position()) : std::string::npos;
    };
    size_t at = row("3", three, all.out), next = row("7", seven, all.out),
           last = row("-", none, all.out);
    EXPECT_LT(at, row("5", five, all.out)) << all.out;
    EXPECT_LT(row("5", five, all.out), next) << all.out;
    ASSERT_NE(last, std::string::npos) << all.out;
    EXPECT_LT(at, next) << all.out;
    EXPECT_LT(next, last) << all.out;
    std::string line = all.out.substr(at + 1, all.out.find('\n', at + 1) - at - 1);
    EXPECT_TRUE(Has(line, " %") && Has(line, "axpy: ")) << line;
    Json json = ParseJson(Run({"--all", "--once", "--json", "--interval", "0.2"}).out);
    ASSERT_TRUE(json.valid);
    int at_three = 0; // processes of other tests may have pages in /dev/shm
    while (json.Has(std::to_string(at_three) + ".pid") &&
           json.Number(std::to_string(at_three) + ".pid") != three.Number())
        at_three++;
    EXPECT_EQ(json.Number(std::to_string(at_three) + ".rank"), 3);
    EXPECT_GT(json.Number(std::to_string(at_three) + ".now.launches_per_s"), 0);

    kill(three.Number(), SIGSTOP);
    all = Run({"--all", "--once", "--interval", "0.1"});
    EXPECT_EQ(all.status, 0) << all.err;
    at = row("3", three, all.out), next = row("7", seven, all.out);
    ASSERT_NE(next, std::string::npos) << all.out;
    EXPECT_TRUE(Has(all.out.substr(at, all.out.find('\n', at + 1) - at), "does not answer"))
        << all.out;
    std::string others = all.out.substr(next, all.out.find('\n', next + 1) - next);
    EXPECT_FALSE(Has(others, "does not answer")) << all.out;

    kill(three.Number(), SIGKILL);
    three.Wait();
    all = Run({"--all", "--once", "--interval", "0.1"});
    EXPECT_EQ(row("3", three, all.out), std::string::npos) << all.out;
    EXPECT_FALSE(FileExists(PagePath(three.Number())));
    Background viewer({Runfile("tools/cusplice"), "top", "--all", "--interval", "0.1"}, Env());
    EXPECT_TRUE(Within(60, [&] { return row("7", seven, viewer.Out()) != std::string::npos; }));
    kill(seven.Number(), SIGKILL);
    seven.Wait();
    EXPECT_TRUE(Within(60, [&] {
        std::string out = viewer.Out();
        return row("7", seven, out.substr(out.rfind("cusplice top: "))) == std::string::npos;
    })) << "it goes, and the others stay";
}

TEST_F(Top, AProcessThatIsStoppedDoesNotAnswer) {
    Background program(Program(), Preloaded());
    Look(program.Pid());
    kill(program.Number(), SIGSTOP);
    Result silent = Run({program.Pid(), "--once", "--interval", "0.1"});
    EXPECT_EQ(silent.status, 1);
    EXPECT_TRUE(Has(silent.err, "process " + program.Pid() + " does not answer")) << silent.err;
    EXPECT_EQ(silent.out, "");
}

TEST_F(Top, NoPageIsLeftBehindAndNoneIsMadeWhereNoneIsWanted) {
    Background clean(Program("20"), Preloaded());
    EXPECT_EQ(clean.Wait(), 0) << clean.Err();
    EXPECT_FALSE(FileExists(PagePath(clean.Number())));
    auto env = Preloaded();
    env.erase("CUSPLICE_LIVE"); // nobody has asked for a file
    env["CUSPLICE_STATS"] = folder_ + "/stats";
    env["CUSPLICE_STATS_EVERY"] = "1";
    Background hidden(Program(), env);
    EXPECT_TRUE(Within(60, [&] {
        return ParseJson(ReadFile(folder_ + "/stats")).Number("issued.in_graphs") > 0;
    }));
    EXPECT_FALSE(FileExists(PagePath(hidden.Number())));
    Result none = Run({hidden.Pid(), "--once"});
    EXPECT_EQ(none.status, 1);
    EXPECT_EQ(none.err,
              "cusplice: process " + hidden.Pid() + " shows no page (see cusplice top --help)\n");
    kill(hidden.Number(), SIGKILL);
    hidden.Wait();
    unlink((folder_ + "/stats").c_str());
    unlink((folder_ + "/stats." + hidden.Pid() + ".partial").c_str());
}

TEST_F(Top, WhatIsNoPageIsNotLookedAtAndStays) {
    std::string path = PagePath(getpid()), pid = std::to_string(getpid());
    std::ofstream(path) << std::string(CUS_PAGE_BYTES, 'x');
    chmod(path.c_str(), 0600);
    Result hostile = Run({pid, "--once"});
    EXPECT_EQ(hostile.status, 1);
    EXPECT_EQ(hostile.err, "cusplice: " + path + " is no page: not looked at\n");
    EXPECT_EQ(hostile.out, "");
    Result listed = Run({"--once"});
    EXPECT_TRUE(Has(listed.err, path + " is no page: left alone")) << listed.err;
    EXPECT_TRUE(FileExists(path));

    std::string target = folder_ + "/target";
    ASSERT_EQ(rename(path.c_str(), target.c_str()), 0);
    ASSERT_EQ(symlink(target.c_str(), path.c_str()), 0);
    Result link = Run({pid, "--once"});
    EXPECT_EQ(link.status, 1);
    EXPECT_EQ(link.err, "cusplice: " + path + " is a link: not looked at\n");
    Run({"--once"});
    struct stat info;
    EXPECT_EQ(lstat(path.c_str(), &info), 0);
    EXPECT_EQ(ReadFile(target), std::string(CUS_PAGE_BYTES, 'x'));
    unlink(path.c_str());
    unlink(target.c_str());
}

// A page may say anything, also that it is that of a process which runs.
TEST_F(Top, APageThatLiesIsShownWithinBoundsOrTakenForADeadOne) {
    std::string path = PagePath(getpid()), pid = std::to_string(getpid());
    cus_page page = {};
    memcpy(page.magic, CUS_PAGE_MAGIC, sizeof CUS_PAGE_MAGIC);
    page.version = CUS_PAGE_VERSION;
    page.bytes = CUS_PAGE_BYTES;
    page.pid = (uint64_t)getpid();
    page.start = cus_process_start(0);
    memset(page.program, '\x1b', sizeof page.program);
    memset(&page.facts, 0xff, sizeof page.facts);
    auto write = [&] {
        std::string bytes((const char *)&page, sizeof page);
        bytes.resize(CUS_PAGE_BYTES);
        std::ofstream(path) << bytes;
        chmod(path.c_str(), 0600);
    };
    write();
    // Nobody answers for it: this test does, once it is asked, until the viewer has ended.
    Background viewer(
        {Runfile("tools/cusplice"), "top", pid, "--once", "--json", "--interval", "0.1"}, Env());
    bool over = Within(60, [&] {
        int fd = open(path.c_str(), O_RDWR);
        page.answers++;
        page.facts.at_ns--; // time goes backwards, too
        EXPECT_EQ(pwrite(fd, &page.answers, 4, offsetof(cus_page, answers)), 4);
        EXPECT_EQ(pwrite(fd, &page.facts.at_ns, 8, offsetof(cus_page, facts)), 8);
        close(fd);
        siginfo_t info = {};
        return waitid(P_PID, (id_t)viewer.Number(), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == viewer.Number();
    });
    EXPECT_TRUE(over);
    EXPECT_EQ(viewer.Wait(), 0) << viewer.Err();
    Json json = ParseJson(viewer.Out());
    EXPECT_TRUE(json.valid) << viewer.Out();
    EXPECT_EQ(json.text["program"], std::string(sizeof page.program - 1, '?'));
    EXPECT_TRUE(json.Has("breaks.9.launches"));
    EXPECT_FALSE(json.Has("breaks.10.launches"));
    EXPECT_EQ(json.Number("now.seconds"), 0);

    page.start++;
    write();
    Result dead = Run({pid, "--once"});
    EXPECT_EQ(dead.status, 1);
    EXPECT_EQ(dead.err, "cusplice: process " + pid + " has ended\n");
    EXPECT_FALSE(FileExists(path));
}

TEST_F(Top, RefusesWhatItDoesNotKnow) {
    const struct {
        std::vector<std::string> args;
        const char *says;
    } rows[] = {
        {{"--interval", "0"}, "--interval 0: seconds from 0.1 to 3600 are expected"},
        {{"--interval", "nan"}, "--interval nan: seconds"},
        {{"--interval"}, "--interval: a value is missing"},
        {{"--intervall=3"}, "unknown option --intervall=3; the nearest is --interval"},
        {{"12x"}, "12x: the number of a process is expected"},
        {{"0"}, "0: the number of a process is expected"},
        {{"1", "2"}, "2: one process at a time"},
        {{"--all", "1"}, "1: --all goes with no number"},
        {{"--json"}, "--json goes with --once"},
    };
    for (const auto &row : rows) {
        Result r = Run(row.args);
        EXPECT_EQ(r.status, 2) << row.says;
        EXPECT_TRUE(Has(r.err, row.says)) << r.err;
    }
}

} // namespace
} // namespace sim
