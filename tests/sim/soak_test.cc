// Promise: memory does not grow while a program runs. CUS_TEST_FULL=1: ten million operations.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/sim/child.h"
#include "tests/sim/json.h"

namespace sim {
namespace {

// Pages of a process that lie in memory; 0 when it is gone.
long ResidentKb(pid_t pid) {
    long size = 0, pages = 0;
    FILE *f = fopen(("/proc/" + std::to_string(pid) + "/statm").c_str(), "r");
    int got = f ? fscanf(f, "%ld %ld", &size, &pages) : 0;
    if (f)
        fclose(f);
    return got == 2 ? pages * (sysconf(_SC_PAGESIZE) / 1024) : 0;
}

TEST(Soak, ResidentSizeStaysAfterWarmUp) {
    const bool full = getenv("CUS_TEST_FULL") != nullptr;
    const std::string steps = full ? "152000" : "8000";
    const std::string stats = TempDir() + "/stats.json";
    const std::string program = Runfile("harness/scenario/scenario");
    const std::string folder = Runfile("harness/sim/lib/libcuda.so.1");
    const std::string library = Runfile("shim/libcusplice.so");
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    const std::string preload = (first ? std::string(first) + ":" : "") + library;
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        setenv("LD_LIBRARY_PATH", folder.substr(0, folder.rfind('/')).c_str(), 1);
        setenv("LD_PRELOAD", preload.c_str(), 1);
        setenv("CUSPLICE_STATS", stats.c_str(), 1);
        setenv("CUSIM_DELAY_US", "0", 1);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO), dup2(null, STDERR_FILENO);
        execl(program.c_str(), "scenario", "soak", "--steps", steps.c_str(), nullptr);
        _exit(127);
    }
    std::vector<long> samples;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (long kb = ResidentKb(pid))
            samples.push_back(kb);
        usleep(full ? 50000 : 5000);
    }
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    Json said = ParseJson(ReadFile(stats));
    const double ops = said.Sum("ops");
    EXPECT_GE(ops, full ? 10e6 : 5e5);
    EXPECT_GT(said.Number("issued.in_graphs"), ops / 3) << "the library did something";
    if (!Sanitizer().empty())
        GTEST_SKIP() << "a sanitizer keeps what was freed";
    if (getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "qemu's own heap grows with each step, of a plain run too";
    ASSERT_GE(samples.size(), 20u);
    auto most = [&](double from, double to) {
        return *std::max_element(samples.begin() + (long)(from * (double)samples.size()),
                                 samples.begin() + (long)(to * (double)samples.size()));
    };
    const long early = most(0.4, 0.6), late = most(0.8, 1.0);
    EXPECT_LE(late, early + 512) << "kilobytes, of " << samples.size() << " samples";
    printf("soak: %.0f operations, %ld kB resident in the middle, %ld kB at the end\n", ops, early,
           late);
}

} // namespace
} // namespace sim
