// Promise: threads share streams while streams, code and contexts come and go and graph calls fail.
// Each thread's ops are issued once, in the order of its calls, across streams too.
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

namespace {

using fake::driver;

std::recursive_mutex driver_mutex; // a function of it asks another one
cus_driver unlocked;

// The fake driver knows one thread; here each of its functions runs under one mutex.
template <typename F, F cus_driver::*Field> struct Locked;
template <typename... A, CUresult (*cus_driver::*Field)(A...)>
struct Locked<CUresult (*)(A...), Field> {
    static CUresult Call(A... a) {
        std::lock_guard<std::recursive_mutex> guard(driver_mutex);
        return (unlocked.*Field)(a...);
    }
};

void LockDriver() {
    cus_driver &t = driver().table;
    unlocked = t;
#define LOCK(name, ...)                                                                            \
    if (t.name)                                                                                    \
        t.name = Locked<decltype(cus_driver::name), &cus_driver::name>::Call;
#define CUS_OWN_NEEDED LOCK
#define CUS_OWN_OPTIONAL LOCK
#include "shim/api/own.def"
#undef LOCK
}

CUstream NewStream(unsigned flags) {
    std::lock_guard<std::recursive_mutex> guard(driver_mutex);
    return fake::MakeStream(flags);
}

struct Shared {
    std::vector<CUstream> streams;
    std::vector<CUfunction> functions;
    CUfunction spin;
};

class Worker {
  public:
    Worker(const Shared &shared, unsigned id) : shared_(shared), id_(id), random_(id) {
        own_ = {NewStream(CU_STREAM_NON_BLOCKING), NewStream(CU_STREAM_DEFAULT)};
    }

    void Run(uint64_t ops) {
        while (asked < ops && !lost) {
            CUstream stream = random_() % 3 ? own_[random_() % 2]
                                            : shared_.streams[random_() % shared_.streams.size()];
            unsigned base = random_() % 3 * 7, n = 6 + random_() % 3 * 6;
            for (unsigned i = 0; i < n; i++) {
                Launch(stream, shared_.functions[base + i % 7]);
                if (random_() % 300 == 0)
                    Launch(own_[random_() % 2], shared_.functions[random_() % 21]);
            }
            Interfere(stream);
        }
    }

    uint64_t asked = 0;
    bool lost = false;

  private:
    void Launch(CUstream stream, CUfunction f) {
        fake::Launch(stream, f, asked++, id_, random_() % 20 ? 1 : 2);
    }

    // After a synchronise everything that this thread asked for is out.
    void Sync(CUstream stream) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_T, &ref, 7);
        std::string last = "," + std::to_string(asked - 1) + "," + std::to_string(id_) + ")";
        {
            std::lock_guard<std::recursive_mutex> guard(driver_mutex);
            const std::vector<std::string> &journal = driver().journal;
            size_t at = journal.size();
            bool found = false;
            while (at-- > 0 && !found)
                found =
                    journal[at].size() > last.size() &&
                    journal[at].compare(journal[at].size() - last.size(), last.size(), last) == 0;
            lost = !found;
        }
        cus_engine_step_end(&ref);
    }

    void Interfere(CUstream stream) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY}, own = {own_[0], CUS_ABI_LEGACY};
        switch (random_() % 16) {
        default:
            Sync(stream);
            break;
        case 0:
            cus_engine_flush(CUS_SCOPE_S, &own, 5);
            cus_engine_stream_gone(&own);
            own_[0] = NewStream(random_() % 2);
            break;
        case 1:
            cus_engine_flush(CUS_SCOPE_P, nullptr, 5);
            cus_engine_context_gone();
            break;
        case 2:
            cus_engine_flush(CUS_SCOPE_P, nullptr, 5);
            cus_engine_code_gone();
            break;
        case 3:
            cus_engine_function_changed(shared_.functions[random_() % 21]);
            break;
        case 4:
            if (random_() % 2)
                cus_engine_stream_changed(&ref);
            else
                cus_engine_limits_changed();
            break;
        case 5:
            cus_engine_profiling(true);
            cus_engine_profiling(false);
            break;
        case 6:
            Launch(own_[1], shared_.spin);
            Sync(own_[1]);
            break;
        case 7: {
            char text[512];
            fake::Counters();
            cus_engine_segment_list(text, sizeof text);
            break;
        }
        case 8:
            cus_engine_flush(CUS_SCOPE_S, &ref, 9);
            break;
        }
    }

    const Shared &shared_;
    uint32_t id_;
    std::mt19937 random_;
    std::vector<CUstream> own_;
};

class Threads : public fake::EngineTest {};

TEST_F(Threads, OpsAreIssuedOnceAndInTheOrderInWhichEachThreadAskedForThem) {
    constexpr unsigned kThreads = 4;
    constexpr uint64_t kOps = 60000;
    std::string path = ::testing::TempDir() + "threads.conf";
    std::ofstream(path) << "[rules]\nnever_defer = spin_*\n";
    fake::Reset();
    LockDriver();
    std::mt19937 random(1);
    driver().fail = [&](const std::string &name) {
        bool fails = (name == "cuGraphLaunch" && random() % 100 == 0) ||
                     (name == "cuGraphInstantiateWithFlags" && random() % 50 == 0) ||
                     (name == "cuGraphExecKernelNodeSetParams_v2" && random() % 500 == 0);
        return fails ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    ASSERT_TRUE(fake::StartEngine(
        {{"CUSPLICE_CONFIG", path}, {"CUSPLICE_HOLD_US", "200"}, {"CUSPLICE_LOG", "error"}}));
    Shared shared = {
        {fake::MakeStream(CU_STREAM_NON_BLOCKING), fake::MakeStream(CU_STREAM_DEFAULT), nullptr},
        {},
        fake::MakeFunction("spin_x")};
    shared.functions = fake::MakeFunctions(21);

    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < kThreads; id++) {
        workers.push_back(std::make_unique<Worker>(shared, id));
        threads.emplace_back([worker = workers.back().get()] { worker->Run(kOps); });
    }
    for (std::thread &thread : threads)
        thread.join();
    cus_engine_drain();

    uint64_t total = 0;
    for (const auto &worker : workers) {
        EXPECT_FALSE(worker->lost) << "a synchronise returned before its ops were issued";
        total += worker->asked;
    }
    EXPECT_EQ(driver().journal.size(), total);
    std::vector<unsigned long long> next(kThreads);
    for (const std::string &line : driver().journal) {
        unsigned long long op = 0;
        unsigned thread = 0;
        ASSERT_EQ(sscanf(line.c_str() + line.find('('), "(%*u,%llu,%u)", &op, &thread), 2) << line;
        ASSERT_EQ(op, next[thread]++) << line;
    }
    EXPECT_EQ(fake::ExpectBalance(), total);
    EXPECT_GT(fake::Counters().in_graphs, 0u);
}

// Another stream goes. What is deferred on the legacy stream is still in front of what comes on a
// stream that blocks.
TEST(Legacy, WorkIsInOrderOnceAnotherStreamHasGone) {
    fake::Reset();
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"},
                                   {"CUSPLICE_SEGMENT_MAX", "4"},
                                   {"CUSPLICE_LOG", "error"}}));
    std::vector<CUfunction> functions = fake::MakeFunctions(8);
    CUstream blocking = fake::MakeStream(CU_STREAM_DEFAULT);
    CUstream gone = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (CUstream on : {CU_STREAM_LEGACY, blocking, gone})
        ASSERT_NO_FATAL_FAILURE(fake::Learn(on, functions));
    cus_stream_ref ref = {gone, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 5);
    cus_engine_stream_gone(&ref);
    driver().journal.clear();
    std::thread([&] { fake::Launch(CU_STREAM_LEGACY, functions[0], 1, 2); }).join();
    EXPECT_TRUE(driver().journal.empty()) << "it is deferred";
    fake::Launch(blocking, functions[0], 3, 4);
    fake::Sync(blocking);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{fake::Line(CU_STREAM_LEGACY, "k0", 1, 2),
                                                          fake::Line(blocking, "k0", 3, 4)}));
    fake::EndEngine();
}

} // namespace
