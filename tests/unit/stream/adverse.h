// An engine with the fake driver and two contexts, and the steps of adverse_test and room_test.
#ifndef TESTS_UNIT_STREAM_ADVERSE_H
#define TESTS_UNIT_STREAM_ADVERSE_H

#include "tests/unit/stream/fake_driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <utility>

const CUcontext kOther = (CUcontext)0x2000;

class Adverse : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (std::exchange(started_, true))
            return; // of a suite that is derived from this one
        std::string path = ::testing::TempDir() + "adverse.conf";
        std::ofstream(path) << "[rules]\nnever_defer = spin_*\n";
        setenv("CUSPLICE_CONFIG", path.c_str(), 1);
        setenv("CUSPLICE_HOLD_US", "1000000", 1);
        setenv("CUSPLICE_SEGMENT_MAX", "4", 1); // the same segments at any pace of the host
        fake::Reset();
        ASSERT_TRUE(cus_engine_start(&fake::driver().table));
    }

    static inline bool started_ = false;

    void SetUp() override {
        fake::Reset();
        contexts_ = {(CUcontext)0x1000};
        fake::driver().table.cuCtxGetCurrent = [](CUcontext *context) {
            *context = contexts_.empty() ? nullptr : contexts_.back();
            return CUDA_SUCCESS;
        };
        fake::driver().table.cuCtxPushCurrent_v2 = [](CUcontext context) {
            if (context == dead_)
                return CUDA_ERROR_CONTEXT_IS_DESTROYED;
            contexts_.push_back(context);
            return CUDA_SUCCESS;
        };
        fake::driver().table.cuCtxPopCurrent_v2 = [](CUcontext *context) {
            *context = contexts_.back();
            contexts_.pop_back();
            return CUDA_SUCCESS;
        };
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        functions_.clear();
        for (int i = 0; i < 12; i++)
            functions_.push_back(fake::MakeFunction("k" + std::to_string(i)));
    }

    void TearDown() override {
        dead_ = nullptr;
        fake::driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
        cus_engine_wait_ended(cus_engine_wait_begins());
    }

    CUresult Launch(CUfunction f, uint64_t a, uint32_t b, unsigned grid, CUstream on,
                    void **extra = nullptr) {
        void *params[2] = {&a, &b};
        cus_launch launch = {};
        launch.extra = extra;
        launch.stream = {on, CUS_ABI_LEGACY};
        launch.f = f;
        const uint32_t dims[7] = {grid, 1, 1, 32, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        launch.params = params;
        launch.real = (void *)fake::driver().table.cuLaunchKernel;
        return fake::Issue(launch);
    }
    CUresult Launch(int i, uint32_t b = 0, unsigned grid = 1) {
        return Launch(functions_[i], 100 + i, b, grid, stream_);
    }

    void Sync() {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_T, &ref, 7);
        cus_engine_step_end(&ref);
    }

    std::string Line(int i, uint32_t b, unsigned grid = 1) {
        return "S" + std::to_string(fake::Of(stream_)->id) + " k" + std::to_string(i) + "(" +
               std::to_string(grid) + "," + std::to_string(100 + i) + "," + std::to_string(b) + ")";
    }

    // `steps` steps of 12 launches, checked against the journal.
    void Steps(int steps, uint32_t grow = 0, unsigned grid = 1) {
        for (int step = 0; step < steps; step++) {
            fake::driver().journal.clear();
            std::vector<std::string> expected;
            for (int i = 0; i < 12; i++) {
                ASSERT_EQ(Launch(i, step * grow, grid), CUDA_SUCCESS);
                expected.push_back(Line(i, step * grow, grid));
            }
            Sync();
            ASSERT_EQ(fake::driver().journal, expected) << "step " << step;
        }
    }

    cus_counters Counters() {
        cus_counters counters;
        cus_engine_counters(&counters);
        return counters;
    }

    void ExpectBalance() {
        cus_counters c = Counters();
        uint64_t ops = 0, issued = c.in_graphs;
        for (uint64_t n : c.ops)
            ops += n;
        for (uint64_t n : c.eager_by)
            issued += n;
        EXPECT_EQ(ops, issued);
    }

    static inline thread_local std::vector<CUcontext> contexts_ = {(CUcontext)0x1000};
    static inline CUcontext dead_ = nullptr;
    CUstream stream_;
    std::vector<CUfunction> functions_;
};

#endif
