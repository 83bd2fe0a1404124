// Promise: noise does to a command what its options say, by a plan that a seed decides, and nothing
// else: the command's status and output are its own, and it never stays stopped.
extern "C" {
#include "harness/bench/noise_plan.h"
#include "harness/bench/noise_process.h"
}
#include "tests/sim/child.h"
#include "tests/sim/json.h"
#include "tests/within.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

namespace {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs;

noise_options Options(uint64_t seed) {
    noise_options o = {};
    o.seed = seed;
    o.stops = 40;
    o.from_ns = kMs / 5;
    o.to_ns = 3 * kMs;
    o.slow = true;
    o.slow_from_ns = kSecond;
    o.slow_to_ns = 3 * kSecond;
    o.moves = 4;
    return o;
}

std::vector<noise_event> Plan(const noise_options &options, size_t events) {
    noise_plan plan;
    std::vector<noise_event> made;
    noise_plan_begin(&plan, &options);
    for (size_t i = 0; i < events; i++)
        made.push_back(noise_plan_next(&plan));
    return made;
}

std::vector<noise_event> Of(noise_kind kind, const std::vector<noise_event> &plan) {
    std::vector<noise_event> some;
    std::copy_if(plan.begin(), plan.end(), std::back_inserter(some),
                 [&](const noise_event &event) { return event.kind == kind; });
    return some;
}

TEST(Plan, HasStopsAsOftenAndAsLongAsAsked) {
    std::vector<noise_event> stops = Of(NOISE_STOP, Plan(Options(1), 20000));
    uint64_t stopped = 0, shortest = UINT64_MAX, longest = 0, end = 0;
    for (const noise_event &stop : stops) {
        EXPECT_GE(stop.at_ns, end);
        end = stop.at_ns + stop.for_ns;
        stopped += stop.for_ns;
        shortest = std::min(shortest, stop.for_ns);
        longest = std::max(longest, stop.for_ns);
    }
    double running = (double)(end - stopped) / kSecond, n = (double)stops.size();
    EXPECT_NEAR(n / running, 40, 2);
    EXPECT_NEAR((double)stopped / n / kMs, 1.6, 0.05);
    EXPECT_GE(shortest, kMs / 5);
    EXPECT_LT(shortest, kMs / 4);
    EXPECT_LE(longest, 3 * kMs);
    EXPECT_GT(longest, 29 * kMs / 10);
}

TEST(Plan, IsSlowHalfOfTheTimeAndMoves) {
    std::vector<noise_event> plan = Plan(Options(1), 40000);
    std::vector<noise_event> slow = Of(NOISE_SLOW, plan), moves = Of(NOISE_MOVE, plan);
    uint64_t ns = 0, end = 0;
    for (const noise_event &event : slow) {
        EXPECT_GE(event.at_ns, end);
        EXPECT_GE(event.for_ns, kSecond);
        EXPECT_LE(event.for_ns, 3 * kSecond);
        end = event.at_ns + event.for_ns;
        ns += event.for_ns;
    }
    EXPECT_EQ(slow[0].at_ns, 0u);
    EXPECT_NEAR((double)ns / (double)end, 0.5, 0.05);
    EXPECT_NEAR((double)moves.size() * kSecond / (double)moves.back().at_ns, 4, 0.3);
}

bool Same(const noise_event &a, const noise_event &b) {
    return a.kind == b.kind && a.at_ns == b.at_ns && a.for_ns == b.for_ns && a.pick == b.pick;
}
bool Same(const std::vector<noise_event> &a, const std::vector<noise_event> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto &one, const auto &other) { return Same(one, other); });
}

TEST(Plan, IsInOrderAndOfItsSeed) {
    std::vector<noise_event> plan = Plan(Options(1), 1000);
    EXPECT_TRUE(std::is_sorted(plan.begin(), plan.end(),
                               [](const auto &a, const auto &b) { return a.at_ns < b.at_ns; }));
    EXPECT_TRUE(Same(plan, Plan(Options(1), 1000)));
    EXPECT_FALSE(Same(plan, Plan(Options(2), 1000)));
    noise_options stops = Options(1);
    stops.slow = false;
    stops.moves = 0;
    std::vector<noise_event> alone = Plan(stops, Of(NOISE_STOP, plan).size());
    EXPECT_TRUE(Same(alone, Of(NOISE_STOP, plan))) << "the kinds do not change each other";
    stops.stops = 0;
    EXPECT_EQ(Plan(stops, 1)[0].at_ns, UINT64_MAX);
}

// ---- the program ----

const std::string kNoise = sim::Runfile("harness/bench/noise");

std::vector<std::string> Command(std::vector<std::string> options, const std::string &script) {
    options.insert(options.begin(), kNoise);
    for (const char *word : {"--", "/bin/sh", "-c"})
        options.push_back(word);
    options.push_back(script);
    return options;
}

sim::Result Under(const std::vector<std::string> &options, const std::string &script,
                  unsigned user = 0) {
    sim::Child child;
    child.command = Command(options, script);
    child.user = user;
    if (!user)
        return sim::Run(child);
    // Another user may not see the folder of the build.
    char folder[] = "/tmp/noise_test_XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    chmod(folder, 0755);
    child.command[0] = std::string(folder) + "/noise";
    std::filesystem::copy_file(kNoise, child.command[0]);
    chmod(child.command[0].c_str(), 0755);
    sim::Result result = sim::Run(child);
    std::filesystem::remove_all(folder);
    return result;
}

double Reported(const sim::Result &result, const char *what) {
    sim::Json json = sim::ParseJson(result.err);
    EXPECT_TRUE(json.valid && json.Has(what)) << what << ": " << result.err;
    return json.Number(what);
}

TEST(Program, StatusAndOutputAreTheCommands) {
    sim::Result result = Under({}, "echo said; exit 7");
    EXPECT_EQ(result.status, 7);
    EXPECT_EQ(result.out, "said\n");
    EXPECT_EQ(Reported(result, "status"), 7);
    EXPECT_EQ(Under({}, "kill -9 $$").status, 128 + SIGKILL);
    EXPECT_EQ(
        Under({}, "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.01; done").status, 9)
        << "a signal for noise reaches the command";
}

TEST(Program, CommandHasNoSignalsBlocked) {
    sim::Child child;
    child.command = {kNoise, "--", "/bin/grep", "SigBlk", "/proc/self/status"};
    EXPECT_EQ(sim::Run(child).out, "SigBlk:\t0000000000000000\n");
}

TEST(Program, SaysWhyItCannotBegin) {
    for (const std::vector<std::string> &words :
         std::vector<std::vector<std::string>>{{},
                                               {"--stops", "x", "--", "true"},
                                               {"--from", "2", "--to", "1", "--", "true"},
                                               {"--", "/nonexistent"}}) {
        sim::Child child;
        child.command = words;
        child.command.insert(child.command.begin(), kNoise);
        sim::Result result = sim::Run(child);
        EXPECT_EQ(result.status, 125);
        EXPECT_NE(result.err, "");
    }
}

TEST(Program, StopsTheCommand) {
    std::string path = sim::TempDir() + "/report";
    sim::Result result = Under({"--stops", "50", "--report", path}, "sleep 2");
    EXPECT_EQ(result.err, "");
    sim::Json json = sim::ParseJson(ReadFile(path));
    double stops = json.Number("stops");
    EXPECT_GT(stops, 10) << "fewer on a busy machine";
    EXPECT_LT(stops, 150);
    EXPECT_GE(json.Number("stopped_ns"), stops * 200000);
    EXPECT_EQ(json.Number("moves") + json.Number("slow_s"), 0);
}

const char kWork[] = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

// It has no more of a processor than the time that it was not stopped.
TEST(Program, HalvesThePace) {
    sim::Result slow = Under({"--stops", "0", "--slow"}, std::string(kWork) + "; times");
    int minutes = 0;
    double cpu_s = 1e9;
    ASSERT_EQ(sscanf(slow.out.c_str(), "%dm%lfs", &minutes, &cpu_s), 2) << slow.out;
    double slow_s = Reported(slow, "slow_s"), wall_s = Reported(slow, "wall_ns") / 1e9;
    EXPECT_GT(slow_s, 0.9 * std::min(wall_s, 1.0)) << "slow from the beginning";
    EXPECT_LT(cpu_s + 60 * minutes, wall_s - 0.3 * slow_s);
    EXPECT_EQ(Reported(slow, "stops"), 0);
}

// If both stops come within the same microseconds, the kernel makes one of them, and noise
// continues the command: 1 of 300 runs with a thousand stops a second.
TEST(Program, LeavesACommandThatStoppedByItselfStopped) {
    int stayed = 0;
    for (const char *stops : {"100", "1000", "1000"}) {
        sim::Result result = Under({"--stops", stops, "--to", "200"},
                                   "(sleep 1; kill -CONT $$) & kill -STOP $$; echo on");
        EXPECT_EQ(result.out, "on\n");
        stayed += result.seconds > 0.9;
    }
    EXPECT_GE(stayed, 2);
}

TEST(Program, ASignalForACommandThatStoppedByItselfDoesNotContinueIt) {
    sim::Result result =
        Under({"--stops", "200", "--from", "3000", "--to", "3000"},
              "trap 'echo got' USR1; (sleep 0.4; for i in 1 2 3 4 5 6 7 8; do kill -USR1 $PPID; "
              "sleep 0.05; done; sleep 0.2; kill -CONT $$) & kill -STOP $$; echo on");
    EXPECT_EQ(result.out, "got\non\n");
    EXPECT_GT(result.seconds, 0.9);
}

// A command may stop itself after noise looked at it, and must stay so.
TEST(Process, TellsWhoStoppedIt) {
    for (bool by_itself : {false, true}) {
        SCOPED_TRACE(by_itself);
        pid_t pid = fork();
        if (pid == 0) {
            if (by_itself)
                raise(SIGSTOP);
            for (;;)
                pause();
        }
        ASSERT_GT(pid, 0);
        int status = 0;
        if (by_itself)
            waitpid(pid, &status, WUNTRACED);
        EXPECT_EQ(noise_sigstop_of(pid), NOISE_TAKEN) << "none was sent";
        kill(pid, SIGSTOP);
        if (!by_itself)
            waitpid(pid, &status, WUNTRACED);
        EXPECT_TRUE(WIFSTOPPED(status));
        EXPECT_EQ(noise_sigstop_of(pid), by_itself ? NOISE_TOO_LATE : NOISE_TAKEN);
        kill(pid, SIGCONT);
        EXPECT_EQ(waitpid(pid, &status, WCONTINUED), pid);
        EXPECT_EQ(noise_sigstop_of(pid), NOISE_TAKEN);
        kill(pid, SIGKILL);
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
    }
}

TEST(Program, MovesTheCommandAndLeavesItsProcessors) {
    cpu_set_t may;
    ASSERT_EQ(sched_getaffinity(0, sizeof may, &may), 0);
    std::string mask = "grep Cpus_allowed_list /proc/$$/status";
    sim::Result result = Under({"--stops", "0", "--move"}, mask + "; sleep 3; " + mask);
    size_t line = result.out.find('\n') + 1;
    EXPECT_EQ(result.out.substr(0, line), result.out.substr(line));
    if (CPU_COUNT(&may) > 1)
        EXPECT_GE(Reported(result, "moves"), 1);
    else
        EXPECT_EQ(Reported(result, "moves"), 0);
}

TEST(Program, IsRealtimeOrSaysThatItMayNot) {
    sched_param priority = {1};
    if (sched_setscheduler(0, SCHED_FIFO, &priority) == 0) {
        priority.sched_priority = 0;
        ASSERT_EQ(sched_setscheduler(0, SCHED_OTHER, &priority), 0);
        sim::Result result = Under({"--realtime", "--stops", "100"}, kWork);
        EXPECT_EQ(result.status, 0) << result.err;
        EXPECT_GE(Reported(result, "stopped_ns"), 200000 * Reported(result, "stops"));
        EXPECT_GE(Reported(result, "stops"), 1);
    }
    rlimit may = {};
    getrlimit(RLIMIT_RTPRIO, &may);
    sim::Result result = Under({"--realtime"}, "echo began", geteuid() ? 0 : 65534);
    EXPECT_EQ(result.status, may.rlim_cur ? 0 : 125);
    EXPECT_EQ(result.out, may.rlim_cur ? "began\n" : "");
    EXPECT_NE(Has(result.err, "SCHED_FIFO"), may.rlim_cur != 0) << result.err;
}

char State(pid_t pid) {
    std::string text = ReadFile("/proc/" + std::to_string(pid) + "/stat");
    size_t at = text.rfind(')');
    return at == std::string::npos ? 0 : text[at + 2];
}

// It is stopped for a minute from the first second on, and noise dies.
TEST(Program, LeavesNothingStopped) {
    std::string path = sim::TempDir() + "/pid";
    std::vector<std::string> words =
        Command({"--stops", "2", "--from", "60000000", "--to", "60000000"},
                "echo $$ > " + path + "; exec sleep 60");
    pid_t noise = fork();
    if (noise == 0) {
        std::vector<char *> argv;
        for (std::string &word : words)
            argv.push_back(word.data());
        argv.push_back(nullptr);
        execv(argv[0], argv.data());
        _exit(1);
    }
    pid_t pid = 0;
    auto stopped = [&] { return (pid = atoi(ReadFile(path).c_str())) && State(pid) == 'T'; };
    bool was = Within(10, stopped);
    kill(noise, SIGKILL);
    ASSERT_EQ(waitpid(noise, nullptr, 0), noise);
    ASSERT_TRUE(was);
    EXPECT_TRUE(Within(10, [&] { return State(pid) == 'S'; })) << State(pid);
    kill(pid, SIGKILL);
}

} // namespace
