// Promise: the hot path takes no global lock. Eight threads with their own streams go through whole
// steps while the test holds every other lock that it can get.
//
// With lock counts built in (CUS_CHECKS) each op takes one lock, its engine's. A stream on which
// nothing is ever deferred takes no lock.
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

extern "C" {
#include "tests/unit/stream/held_locks.h"
}

namespace {

using fake::Counters;
using fake::driver;

constexpr unsigned kThreads = 8, kOps = 256;
constexpr auto kDeadline = std::chrono::seconds(20);

// The fake driver's journal and counts know one thread.
std::mutex driver_mutex;
CUresult (*launch_graph)(CUgraphExec, CUstream);

CUresult LaunchGraph(CUgraphExec exec, CUstream stream) {
    std::lock_guard<std::mutex> guard(driver_mutex);
    return launch_graph(exec, stream);
}

// Who is where. What is judged has the deadline, so that a failure is a line and not a hang.
struct Stage {
    std::mutex mutex;
    std::condition_variable moved;
    unsigned begun = 0, holders = 0, finished = 0;
    bool go = false, release = false;

    void Set(bool &what) {
        std::lock_guard<std::mutex> guard(mutex);
        what = true;
        moved.notify_all();
    }
    void Add(unsigned &what) {
        std::lock_guard<std::mutex> guard(mutex);
        what++;
        moved.notify_all();
    }
    template <typename Condition> bool Wait(Condition condition) {
        std::unique_lock<std::mutex> lock(mutex);
        return moved.wait_for(lock, kDeadline, condition);
    }
} stage;

// What a thread does that holds a lock; the main thread always releases it.
void Meanwhile() {
    stage.Add(stage.holders);
    std::unique_lock<std::mutex> lock(stage.mutex);
    stage.moved.wait(lock, [] { return stage.release; });
}

CUstream unknown_stream, bystander, green_stream;
CUcontext context;

CUresult GetFlags(CUstream stream, unsigned *flags) {
    if (stream == unknown_stream) {
        Meanwhile();
        return CUDA_ERROR_UNKNOWN;
    }
    *flags = fake::Of(stream)->flags;
    return CUDA_SUCCESS;
}

CUresult GetGreenCtx(CUstream stream, CUgreenCtx *green) {
    *green = stream == green_stream ? reinterpret_cast<CUgreenCtx>(1) : nullptr;
    return CUDA_SUCCESS;
}

std::vector<CUfunction> functions;

void Launch(CUstream stream, unsigned place) {
    EXPECT_EQ(fake::Launch(stream, functions[place % functions.size()], 100 + place), CUDA_SUCCESS);
}

// Steps until a whole one goes out in graphs that are there already.
bool Teach(CUstream stream) {
    for (int step = 0; step < 40; step++) {
        cus_counters before = Counters();
        for (unsigned place = 0; place < kOps; place++)
            Launch(stream, place);
        fake::Sync(stream);
        cus_counters after = Counters();
        if (after.in_graphs - before.in_graphs == kOps && after.built == before.built)
            return true;
    }
    return false;
}

// One thread of the eight: begins its step before the locks are held, and goes on when they are.
struct Worker {
    CUstream stream;
    uint64_t locks = 0, others = 0;

    void Run() {
        Launch(stream, 0); // finds its engine in the registry
        stage.Add(stage.begun);
        stage.Wait([] { return stage.go; });
        uint64_t all[2], other[2];
        locks_taken(&all[0], &other[0]);
        for (unsigned place = 1; place < kOps; place++)
            Launch(stream, place);
        locks_taken(&all[1], &other[1]);
        locks = all[1] - all[0];
        others = other[1] - other[0];
        stage.Add(stage.finished);
    }
};

// Both tests run in one process, whose engine starts and ends once.
void Start() {
    stage.begun = stage.holders = stage.finished = 0;
    stage.go = stage.release = false;
    if (!functions.empty())
        return;
    setenv("CUSPLICE_HOLD_US", "1000000", 1);
    setenv("CUSPLICE_SEGMENT_FIRST", "64", 1); // four segments of 64, whatever the host's pace
    setenv("CUSPLICE_SEGMENT_MAX", "64", 1);
    fake::Reset();
    cus_driver &table = driver().table;
    launch_graph = table.cuGraphLaunch;
    table.cuGraphLaunch = LaunchGraph;
    table.cuStreamGetFlags = GetFlags;
    table.cuStreamGetGreenCtx = GetGreenCtx;
    ASSERT_TRUE(cus_engine_start(&table));
    table.cuCtxGetCurrent(&context);
    functions = fake::MakeFunctions(16);
}

// Its ops and calls go on while the registry's lock is held; the answer is asked for again once
// the stream may be another one.
TEST(Scaling, StreamWithoutAnEngineIsLookedUpOnce) {
    ASSERT_NO_FATAL_FAILURE(Start());
    bystander = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    ASSERT_TRUE(Teach(bystander));
    CUstream green = green_stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {green, CUS_ABI_LEGACY};
    uint64_t all[2] = {}, others[2] = {};
    cus_counters before = Counters();
    std::thread worker([&] {
        Launch(green, 0);
        stage.Add(stage.begun);
        stage.Wait([] { return stage.go; });
        locks_taken(&all[0], &others[0]);
        for (unsigned place = 1; place < kOps; place++) {
            Launch(green, place);
            cus_engine_flush(CUS_SCOPE_S, &ref, 7);
            cus_engine_step_end(&ref);
        }
        locks_taken(&all[1], &others[1]);
        stage.Add(stage.finished);
    });
    bool ready = stage.Wait([] { return stage.begun == 1; });
    unknown_stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::thread holder([] { hold_registry(unknown_stream, context); });
    ready = ready && stage.Wait([] { return stage.holders == 1; });
    stage.Set(stage.go);
    bool all_done = stage.Wait([] { return stage.finished == 1; });
    stage.Set(stage.release);
    worker.join();
    holder.join();
    ASSERT_TRUE(ready);
    EXPECT_TRUE(all_done) << "waited for the registry's lock";
    EXPECT_EQ(all[1] - all[0], 0u) << "locks taken";
    EXPECT_EQ(Counters().in_graphs - before.in_graphs, 0u);

    EXPECT_FALSE(Teach(green));
    green_stream = nullptr;
    EXPECT_FALSE(Teach(green)) << "nobody says that it may be another";
    cus_engine_stream_gone(&ref);
    EXPECT_TRUE(Teach(green));
}

TEST(Scaling, EightThreadsGoOnWhileEveryLockButTheirOwnIsHeld) {
    ASSERT_NO_FATAL_FAILURE(Start());
    bystander = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    ASSERT_TRUE(Teach(bystander));
    std::vector<Worker> workers(kThreads);
    for (Worker &worker : workers) {
        worker.stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        ASSERT_TRUE(Teach(worker.stream));
    }
    cus_counters before = Counters();

    // The gate first: no watchdog issues what the threads begin.
    std::vector<std::thread> threads;
    threads.emplace_back([] { hold_gate(Meanwhile); });
    bool ready = stage.Wait([] { return stage.holders == 1; });
    for (Worker &worker : workers)
        threads.emplace_back([&worker] { worker.Run(); });
    ready = ready && stage.Wait([] { return stage.begun == kThreads; });
    unknown_stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    threads.emplace_back([] { hold_engine(bystander, context, Meanwhile); });
    ready = ready && stage.Wait([] { return stage.holders == 2; });
    threads.emplace_back([] { hold_registry(unknown_stream, context); });
    threads.emplace_back([] { hold_build(Meanwhile); });
    threads.emplace_back([] { hold_list(Meanwhile); });
    ready = ready && stage.Wait([] { return stage.holders == 5; });
    stage.Set(stage.go);
    unsigned finished = 0;
    bool all = stage.Wait([&] { return (finished = stage.finished) == kThreads; });
    stage.Set(stage.release);
    for (std::thread &thread : threads)
        thread.join();

    ASSERT_TRUE(ready) << "begun: " << stage.begun << ", holders: " << stage.holders;
    EXPECT_TRUE(all) << finished << " of " << kThreads
                     << " threads could go on; the others waited for a lock of the whole process";
    cus_counters after = Counters();
    EXPECT_EQ(after.in_graphs - before.in_graphs, kThreads * kOps) << "not the hot path";
    uint64_t unused;
    if (locks_taken(&unused, &unused)) {
        for (const Worker &worker : workers) {
            EXPECT_GE(worker.locks, kOps - 1);
            EXPECT_EQ(worker.others, 0u) << "locks taken that are no engine's";
        }
    }
    cus_engine_drain();
}

} // namespace
