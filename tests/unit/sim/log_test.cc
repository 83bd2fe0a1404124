// Promise: log and statistics are right, also when a process ends. Each case runs this program
// again as a child with its own environment.
#include "tests/text.h"
#include "tests/unit/sim/sim.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace sim {
namespace {

// ---- the child ----

struct Host : Sim { // for its helpers only
    void TestBody() override {}
    using Sim::Alloc;
    using Sim::Mix;
    using Sim::SetUp;
    using Sim::Stream;
    using Sim::Wait;
    using Sim::Write;
};

void Basic(Host &h, bool with_private_stream) {
    CUstream hidden = nullptr;
    CUgraph graph;
    CUgraphExec exec = nullptr;
    CUdeviceptr p;
    cuMemAlloc(&p, 64);
    if (with_private_stream) { // what a preloaded library does: created first, captures only
        hidden = h.Stream();
        cuStreamBeginCapture(hidden, CU_STREAM_CAPTURE_MODE_RELAXED);
        h.Mix(p, 7, hidden);
        h.Mix(p, 8, hidden);
        cuStreamEndCapture(hidden, &graph);
        cuGraphInstantiate(&exec, graph, 0);
    }
    CUstream a = h.Stream(), b = h.Stream();
    CUevent unused, e;
    cuEventCreate(&unused, 0);
    cuEventCreate(&e, 0);
    int host[4] = {}, *pinned;
    cuMemHostAlloc(reinterpret_cast<void **>(&pinned), 16, 0);
    cuMemcpyHtoDAsync(p, host, 16, b);
    cuEventRecord(e, b);
    cuStreamWaitEvent(a, e, 0);
    if (exec) {
        cuGraphLaunch(exec, a);
    } else {
        h.Mix(p, 7, a);
        h.Mix(p, 8, a);
    }
    cuMemsetD16Async(p + 16, 5, 4, a);
    cuMemcpyDtoHAsync(pinned, p, 16, a);
    cuMemcpyDtoDAsync(p + 32, p, 8, a);
    cuLaunchHostFunc(
        a, [](void *) {}, nullptr);
    cuCtxSynchronize();
}

int Child(const std::string &what) {
    Host h;
    h.SetUp();
    if (what == "basic" || what == "private") {
        Basic(h, what == "private");
    } else if (what == "pending") { // ends with work in its streams
        CUstream s = h.Stream(), t = h.Stream();
        CUdeviceptr p = h.Alloc(4), q = h.Alloc(4);
        for (int i = 0; i < 200; i++) {
            h.Mix(p, i, s);
            h.Mix(q, i, t);
        }
    } else if (what == "stuck") {     // ends while a kernel spins for ever
        static Gate *gate = new Gate; // never opened, still reachable
        h.Wait(*gate, h.Stream());
    } else if (what == "fork") {
        pid_t child = fork();
        if (child == 0)
            _exit(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
    }
    return 0;
}

// ---- the parent ----

std::string TempName(const std::string &name) {
    const char *dir = getenv("TEST_TMPDIR");
    return std::string(dir ? dir : "/tmp") + "/cusim_log_test." + std::to_string(getpid()) + name;
}

int RunChild(const std::string &what, const std::map<std::string, std::string> &env) {
    pid_t child = fork();
    if (child == 0) {
        setenv("CUSIM_TEST_CHILD", what.c_str(), 1);
        for (const auto &[key, value] : env)
            setenv(key.c_str(), value.c_str(), 1);
        execl("/proc/self/exe", "log_test", nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

std::string LogOf(const std::string &what, std::map<std::string, std::string> env = {}) {
    std::string path = TempName(".log");
    env["CUSIM_LOG"] = path;
    EXPECT_EQ(0, RunChild(what, env));
    std::string text = ReadFile(path);
    unlink(path.c_str());
    return text;
}

// The lines of one stream, in order.
std::string OfStream(const std::string &log, const std::string &stream) {
    std::stringstream in(log);
    std::string line, out;
    while (std::getline(in, line))
        if (line.compare(0, stream.size() + 1, stream + " ") == 0)
            out += line + "\n";
    return out;
}

const char kStream1[] = "S1 wait E0\n"
                        "S1 kernel mix 1,1,1 1,1,1 0 000000000030000007000000\n"
                        "S1 kernel mix 1,1,1 1,1,1 0 000000000030000008000000\n"
                        "S1 memset 0x300000000010 8 0x5 2\n"
                        "S1 memcpy DtoH 0x320000000000 0x300000000000 16\n"
                        "S1 memcpy DtoD 0x300000000020 0x300000000000 8\n"
                        "S1 hostfn\n";
const char kStream2[] = "S2 memcpy HtoD 0x300000000000 host 16\n"
                        "S2 record E0\n";

bool ArenaElsewhere() { // under ThreadSanitizer the addresses are others
#ifdef __SANITIZE_THREAD__
    return true;
#else
    return false;
#endif
}

TEST(Log, EachExecutedOperationIsOneLineOfItsStream) {
    if (ArenaElsewhere())
        GTEST_SKIP();
    std::string log = LogOf("basic");
    EXPECT_EQ(kStream1, OfStream(log, "S1"));
    EXPECT_EQ(kStream2, OfStream(log, "S2"));
    EXPECT_EQ("", OfStream(log, "S0"));
}

TEST(Log, AStreamThatOnlyCapturesLeavesNoTraceAndAGraphLooksLikeItsOperations) {
    std::string plain = LogOf("basic"), graph = LogOf("private");
    EXPECT_NE("", plain);
    for (const char *stream : {"S0", "S1", "S2", "S3"})
        EXPECT_EQ(OfStream(plain, stream), OfStream(graph, stream));
}

TEST(Log, SeedsAndDelaysChangeNothing) {
    std::string first = LogOf("basic", {{"CUSIM_DELAY_US", "0"}});
    for (const char *seed : {"1", "2", "3"}) {
        std::string other = LogOf("basic", {{"CUSIM_SEED", seed}, {"CUSIM_DELAY_US", "200"}});
        for (const char *stream : {"S1", "S2"})
            EXPECT_EQ(OfStream(first, stream), OfStream(other, stream));
    }
}

TEST(Log, AProgramThatEndsWithWorkPendingIsDrained) {
    std::string log = LogOf("pending");
    std::stringstream in(log);
    std::string line;
    int n = 0;
    while (std::getline(in, line))
        n += line.find(" kernel mix ") != std::string::npos;
    EXPECT_EQ(400, n);
}

TEST(Log, AProgramThatEndsWhileAKernelSpinsDoesNotHang) {
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(0, RunChild("stuck", {{"CUSIM_EXIT_WAIT_MS", "100"}}));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Log, AForkedChildIsToldThatNothingIsInitialized) {
    EXPECT_EQ(0, RunChild("fork", {}));
}

TEST(Log, StatisticsCountCallsByExportedName) {
    std::string path = TempName(".json");
    EXPECT_EQ(0, RunChild("basic", {{"CUSIM_STATS", path}}));
    std::string text = ReadFile(path);
    unlink(path.c_str());
    EXPECT_NE(std::string::npos, text.find("\"cuLaunchKernel\": 2"));
    EXPECT_NE(std::string::npos, text.find("\"cuMemcpyDtoHAsync_v2\": 1"));
    EXPECT_EQ(std::string::npos, text.find("cuGraphLaunch"));
}

// A program does not run with a fault that is another than was meant.
TEST(Log, WhatIsNotUnderstoodEndsTheProgram) {
    EXPECT_EQ(2, RunChild("basic", {{"CUSIM_FAULT", "cuLaunchKernl:2:1"}}));
    EXPECT_EQ(2, RunChild("basic", {{"CUSIM_FAULT", "cuLaunchKernel:2"}}));
    EXPECT_EQ(2, RunChild("basic", {{"CUSIM_UNKNOWN", "cuLaunchKernl"}}));
    EXPECT_EQ(2, RunChild("basic", {{"CUSIM_UNKNOWN", "cuLaunchKernel,"}}));
    EXPECT_EQ(0, RunChild("basic", {{"CUSIM_UNKNOWN", "cuLaunchKernel,cuInit"}}));
}

TEST(Log, AFaultCanBeAskedForInTheEnvironment) {
    std::string log = LogOf("basic", {{"CUSIM_FAULT", "cuLaunchKernel:2:1"}});
    size_t first = log.find(" kernel mix ");
    ASSERT_NE(std::string::npos, first);
    EXPECT_EQ(std::string::npos, log.find(" kernel mix ", first + 1));
}

} // namespace
} // namespace sim

int main(int argc, char **argv) {
    if (const char *child = getenv("CUSIM_TEST_CHILD"))
        return sim::Child(child);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
