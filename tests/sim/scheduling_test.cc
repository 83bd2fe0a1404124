// Promise: a host that polls sees what it launched, with any scheduling and any number of
// processors. If the watchdog cannot run above a real-time thread, the library defers nothing for
// that thread.
#include "tests/sim/cases.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace sim {
namespace {

Setting Preloaded() {
    Setting setting;
    setting.preload = true;
    return setting;
}

// What a child inherits for as long as this lives: one processor.
class OneProcessor {
  public:
    OneProcessor() {
        cpu_set_t one;
        CPU_ZERO(&one);
        sched_getaffinity(0, sizeof before_, &before_);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }

  private:
    cpu_set_t before_;
};

// ---- real-time threads ----

class RealTime : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override {
        sched_param param = {}, ordinary = {};
        param.sched_priority = 50;
        if (sched_setscheduler(0, SCHED_FIFO, &param) != 0)
            GTEST_SKIP() << "no right to real-time priorities: " << strerror(errno);
        sched_setscheduler(0, SCHED_OTHER, &ordinary);
    }
};

TEST_P(RealTime, ThreadThatPollsHasTheWatchdogAboveIt) {
    const Case &c = CaseOf(GetParam());
    Outcome plain = RunCase(c, {}), preloaded = RunCase(c, Preloaded());
    EXPECT_SAME(c, plain, preloaded);
    EXPECT_GT(preloaded.stats.Number("issued.in_graphs"), 0);
    EXPECT_GT(preloaded.stats.Number("flushes.watchdog"), 0);
    EXPECT_EQ(preloaded.stats.Number("fallbacks.realtime"), 0);
}

// On the simulator the GPU's threads want the processor, too: they have what the kernel keeps from
// real-time threads.
TEST_P(RealTime, OneProcessorIsEnough) {
    if (ReadFile("/proc/sys/kernel/sched_rt_runtime_us") == "-1\n")
        GTEST_SKIP() << "the simulator's GPU would not run (sched_rt_runtime_us)";
    OneProcessor one;
    Setting setting = Preloaded(), plain;
    plain.args = setting.args = {"--steps", "12"};
    Outcome without = RunCase(CaseOf(GetParam()), plain);
    EXPECT_SAME(CaseOf(GetParam()), without, RunCase(CaseOf(GetParam()), setting));
}

TEST_P(RealTime, ThreadThatTheWatchdogMayNotBeAboveDefersNothing) {
    rlimit before, limit;
    ASSERT_EQ(getrlimit(RLIMIT_RTTIME, &before), 0);
    limit = before;
    limit.rlim_cur = 100000000; // 100 s, which nobody takes
    ASSERT_EQ(setrlimit(RLIMIT_RTTIME, &limit), 0);
    const Case &c = CaseOf(GetParam());
    Outcome plain = RunCase(c, {});
    Setting why = Preloaded();
    why.env["CUSPLICE_WHY"] = "yes";
    Outcome preloaded = RunCase(c, why);
    setrlimit(RLIMIT_RTTIME, &before);
    EXPECT_SAME(c, plain, preloaded);
    EXPECT_EQ(preloaded.stats.Number("issued.in_graphs"), 0);
    EXPECT_GT(preloaded.stats.Number("fallbacks.realtime"), 0);
    EXPECT_NE(preloaded.result.err.find("real-time threads could keep the watchdog"),
              std::string::npos)
        << preloaded.result.err;
}

INSTANTIATE_TEST_SUITE_P(All, RealTime, testing::Values("poll_fifo", "poll_rr"),
                         [](const auto &given) { return std::string(given.param); });

// ---- processors that are few, or move ----

TEST(Processors, OneIsEnough) {
    OneProcessor one;
    for (const char *name : {"poll_pinned", "poll_copy", "lock_waits", "poll_moved"}) {
        SCOPED_TRACE(name);
        Setting setting = Preloaded(), plain;
        plain.args = setting.args = {"--steps", "60"};
        Outcome without = RunCase(CaseOf(name), plain);
        EXPECT_SAME(CaseOf(name), without, RunCase(CaseOf(name), setting));
    }
}

// A control group of the test's own, below that of `controller`; of either version.
class Group {
  public:
    explicit Group(const std::string &controller) {
        for (const std::string &root :
             {"/sys/fs/cgroup/" + controller, std::string("/sys/fs/cgroup")}) {
            std::string path = root + "/cusplice-test-" + std::to_string(getpid());
            if (mkdir(path.c_str(), 0755) == 0) {
                path_ = path;
                return;
            }
        }
    }
    ~Group() {
        for (int i = 0; !path_.empty() && rmdir(path_.c_str()) != 0 && i < 100; i++)
            usleep(10000);
    }
    bool Set(const std::string &key, const std::string &value) const {
        int fd = path_.empty() ? -1 : open((path_ + "/" + key).c_str(), O_WRONLY | O_CLOEXEC);
        bool set = fd >= 0 && write(fd, value.data(), value.size()) == (ssize_t)value.size();
        if (fd >= 0)
            close(fd);
        return set;
    }
    // Runs a case within.
    Outcome RunIn(const Case &c, Setting setting) const {
        setting.args.insert(setting.args.begin(), c.name);
        std::vector<std::string> command = {"/bin/sh", "-c", "echo $$ > \"$0\" && exec \"$@\"",
                                            path_ + "/cgroup.procs", Runfile(setting.binary)};
        command.insert(command.end(), setting.args.begin(), setting.args.end());
        return RunProgram(command, setting);
    }

  private:
    std::string path_;
};

TEST(Processors, CpusetMayChangeMeanwhile) {
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    std::vector<std::string> each;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all))
            each.push_back(std::to_string(i));
    Group group("cpuset");
    std::string nodes = ReadFile("/sys/fs/cgroup/cpuset/cpuset.mems");
    if (each.size() < 2 || !group.Set("cpuset.cpus", each[0] + "," + each[1]) ||
        !group.Set("cpuset.mems", nodes.empty() ? "0" : nodes))
        GTEST_SKIP() << "no cpuset of the test's own";
    const Case &c = CaseOf("poll_pinned");
    Setting setting = Preloaded(), plain;
    plain.args = setting.args = {"--steps", "300"};
    Outcome without = RunCase(c, plain);
    std::atomic<bool> end{false};
    std::atomic<int> moves{0};
    std::thread mover([&] {
        for (size_t i = 0; !end; i++) {
            moves += group.Set("cpuset.cpus", each[i % 2]);
            usleep(5000);
        }
    });
    Outcome moved = group.RunIn(c, setting);
    end = true;
    mover.join();
    EXPECT_SAME(c, without, moved);
    EXPECT_STATS(moved);
    EXPECT_GT(moves, 1);
}

TEST(Processors, QuotaMayRunOut) {
    Group group("cpu");
    bool limited =
        group.Set("cpu.max", "10000 50000") ||
        (group.Set("cpu.cfs_period_us", "50000") && group.Set("cpu.cfs_quota_us", "10000"));
    if (!limited)
        GTEST_SKIP() << "no control group of the test's own";
    const Case &c = CaseOf("poll_pinned");
    Setting setting = Preloaded(), plain;
    plain.args = setting.args = {"--steps", "100"};
    Outcome without = RunCase(c, plain), limited_run = group.RunIn(c, setting);
    EXPECT_SAME(c, without, limited_run);
    EXPECT_STATS(limited_run);
}

} // namespace
} // namespace sim
