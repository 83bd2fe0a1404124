// Shared code of engine_test and hot_path_test: steps of launches in segments of four ops, and an
// eager rule.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_ENGINE_H
#define CUSPLICE_TESTS_UNIT_STREAM_ENGINE_H

#include "tests/unit/stream/program.h"

#include <cstdlib>
#include <vector>

using fake::Counters;
using fake::driver;
using fake::ExpectBalance;

class Engine : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine(
            {{"CUSPLICE_HOLD_US", "1000000"}, // the watchdog has a test of its own
             {"CUSPLICE_SEGMENT_MAX", "4"},   // the same segments at any pace of the host
             {"CUSPLICE_EAGER", "eager_*"}}));
    }

    void TearDown() override {
        ProgramTest::TearDown();
        // What ran on per-thread streams, which nobody else can ask, is over.
        cus_engine_wait_ended(cus_engine_wait_begins());
    }

    using ProgramTest::Launch;
    CUresult Launch(CUfunction f, uint64_t a, uint32_t b, unsigned grid = 1, unsigned block = 32) {
        return fake::Issue(fake::Call(stream_, f, a, b, grid, block).launch);
    }

    // The same steps on any stream, unchecked.
    void Teach(CUstream on) {
        for (int step = 0; step < 6; step++) {
            for (int i = 0; i < 12; i++)
                fake::Launch(on, functions_[i], 100 + i, 0);
            fake::Sync(on);
        }
        driver().journal.clear();
    }
};

// The hot path alone: what it takes, and what it leaves to the long way without a trace.
class Hold : public Engine {
  public:
    bool Try(int i, uint64_t a, uint32_t b, CUstream on, unsigned grid = 1,
             cus_abi abi = CUS_ABI_LEGACY) {
        return TryShape(i, a, b, {grid, 1, 1, 32, 1, 1, 0}, on, abi);
    }
    bool TryShape(int i, uint64_t a, uint32_t b, std::vector<uint32_t> dims, CUstream on,
                  cus_abi abi = CUS_ABI_LEGACY) {
        void *params[2] = {&a, &b};
        return hot_launch(functions_[i], dims.data(), on, abi, params, nullptr);
    }
    // In the midst of a segment of 4: k0 is deferred.
    void Begin() {
        Steps(6);
        driver().journal.clear();
        ASSERT_EQ(Launch(functions_[0], 100, 6 * 0), CUDA_SUCCESS);
        ASSERT_TRUE(driver().journal.empty());
    }
    // Its ops never repeat. The last one is of functions_[0]: a function of the same hash would
    // take its place among those that may pass.
    void LeaveAlone(CUstream stream) {
        for (int step = 0; step < 40; step++) {
            for (int i = 0; i < 400; i++) {
                random_ = random_ * 1664525 + 1013904223;
                fake::Launch(stream, functions_[random_ >> 24 & 7], random_, i);
            }
            fake::Launch(stream, functions_[0], random_);
            fake::Sync(stream);
        }
    }
    unsigned random_ = 1;
};

#endif
