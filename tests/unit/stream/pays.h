// Shared code of pays_test and breaks_test: counted steps of launches on a stream, with a clock
// that moves only when a driver call of the test moves it.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_PAYS_H
#define CUSPLICE_TESTS_UNIT_STREAM_PAYS_H

#include "shim/base/clock.h"
#include "tests/unit/stream/program.h"

#include <random>
#include <string>
#include <vector>

using fake::Counters;
using fake::driver;

enum { OPS = 240, FUNCTIONS = 64, CHOICE = 50 };

inline uint64_t node_ns; // what a node takes to build
inline decltype(cus_driver::cuStreamBeginCapture_v2) real_begin_capture;
inline uint64_t begin_ns; // what a graph waits for other threads until it is begun
inline uint64_t eager_ns; // what a launch by itself takes
inline decltype(cus_driver::cuLaunchKernel) real_launch;
inline unsigned built; // nodes

class Pays : public fake::EngineTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        cus_virtual.on = true;
        cus_virtual.ns = 1000000;
        auto &table = driver().table;
        real_launch = table.cuLaunchKernel;
        table.cuLaunchKernel = [](auto... arguments) {
            __atomic_add_fetch(&cus_virtual.ns, eager_ns, __ATOMIC_RELAXED); // from two threads
            return real_launch(arguments...);
        };
        real_begin_capture = table.cuStreamBeginCapture_v2;
        table.cuStreamBeginCapture_v2 = [](CUstream stream, CUstreamCaptureMode mode) {
            cus_virtual.ns += begin_ns;
            return real_begin_capture(stream, mode);
        };
        driver().building = [](unsigned nodes) {
            cus_virtual.ns += nodes * node_ns;
            built += nodes;
        };
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_BUILD_US", "700"}, {"CUSPLICE_GRAPH_MB", "12"}}));
        functions_ = fake::MakeFunctions(FUNCTIONS);
    }
    void SetUp() override {
        node_ns = 2500;
        eager_ns = 0;
        begin_ns = 0;
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        driver().lines = false;
        before_ = Counters();
    }
    void TearDown() override {
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
    }

    void Launch(unsigned function, uint64_t a) {
        cus_virtual.ns += launch_ns_;
        ASSERT_EQ(Issue(function, a), CUDA_SUCCESS);
        expected_.push_back(function);
    }
    CUresult Issue(unsigned function, uint64_t a) {
        return fake::Launch(stream_, functions_[function], a);
    }
    void Wait() {
        fake::Sync(stream_);
        ASSERT_EQ(driver().journal.size(), expected_.size()) << "each op once";
        driver().journal.clear();
        expected_.clear();
    }
    static unsigned Fixed(unsigned i) { return (i * 2654435761u >> 7) % 1021 % FUNCTIONS; }

    // Steps that are alike.
    void Good(unsigned steps, unsigned ops = OPS) {
        for (; steps; steps--, Wait())
            for (unsigned i = 0; i < ops; i++)
                Launch(Fixed(i), i);
    }
    // In an order that never repeats, but for the first `alike` ops of each step.
    void Bad(unsigned steps, unsigned alike = 0) {
        for (; steps; steps--, Wait())
            for (unsigned i = 0; i < OPS; i++)
                Launch(i < alike ? Fixed(i) : random_() % CHOICE, i);
    }
    // ... but for three of 16.
    void Three(unsigned steps) {
        for (; steps; steps--, Wait())
            for (unsigned i = 0; i < OPS; i++)
                Launch(i % 16 < 3 ? CHOICE + i % 16 : random_() % CHOICE, i % 16);
    }
    // Since the last call, or the beginning of the test.
    cus_counters Since() {
        cus_counters now = Counters(), since = now;
        since.in_graphs -= before_.in_graphs;
        since.built -= before_.built;
        since.graph_launches -= before_.graph_launches;
        for (int i = 0; i < CUS_EAGERS; i++)
            since.eager_by[i] -= before_.eager_by[i];
        since.fallbacks[CUS_FALLBACK_DEMOTED] -= before_.fallbacks[CUS_FALLBACK_DEMOTED];
        before_ = now;
        return since;
    }

    static inline std::vector<CUfunction> functions_;
    std::vector<unsigned> expected_;
    uint64_t launch_ns_ = 0; // between two launches
    std::mt19937 random_{1};
    cus_counters before_ = {};
    CUstream stream_;
};

#endif
