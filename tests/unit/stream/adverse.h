// An engine with the fake driver and two contexts, and the steps of adverse_test and room_test.
#ifndef TESTS_UNIT_STREAM_ADVERSE_H
#define TESTS_UNIT_STREAM_ADVERSE_H

#include "tests/unit/stream/program.h"

#include <fstream>

const CUcontext kOther = (CUcontext)0x2000;

class Adverse : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        std::string path = ::testing::TempDir() + "adverse.conf";
        std::ofstream(path) << "[rules]\nnever_defer = spin_*\n";
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({
            {"CUSPLICE_CONFIG", path},
            {"CUSPLICE_HOLD_US", "1000000"},
            {"CUSPLICE_SEGMENT_MAX", "4"}, // the same segments at any pace of the host
        }));
    }

    void SetUp() override {
        ProgramTest::SetUp();
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
    }

    void TearDown() override {
        dead_ = nullptr;
        fake::driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
        ProgramTest::TearDown();
        cus_engine_wait_ended(cus_engine_wait_begins());
    }

    static inline thread_local std::vector<CUcontext> contexts_ = {(CUcontext)0x1000};
    static inline CUcontext dead_ = nullptr;
};

#endif
