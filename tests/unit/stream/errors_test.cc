// Promise: what is deferred is issued before what it needs goes. An op that fails then is counted,
// and a lost context is said once.
#include "shim/api/api.h"
#include "tests/unit/stream/engine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

class Errors : public Engine {
  protected:
    void SetUp() override {
        Engine::SetUp();
        Teach(stream_);
    }
    void TearDown() override {
        driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
        Engine::TearDown();
    }
    static void LaunchesFail(CUresult result) {
        driver().fail = [result](const std::string &name) {
            return name == "cuLaunchKernel" ? result : CUDA_SUCCESS;
        };
    }
    // What is said of a launch that fails so.
    std::string SaidOf(CUresult result) {
        LaunchesFail(result);
        testing::internal::CaptureStderr();
        EXPECT_EQ(Launch(fake::MakeFunction("fails"), 1, 2), result);
        return testing::internal::GetCapturedStderr();
    }
};

TEST_F(Errors, AnOpThatFailsLateIsCounted) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    uint64_t late = Counters().fallbacks[CUS_FALLBACK_LATE_ERROR];
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    LaunchesFail(CUDA_ERROR_LAUNCH_FAILED);
    cus_engine_flush(CUS_SCOPE_T, &ref, CUS_ROW_cuStreamSynchronize);
    EXPECT_EQ(Counters().fallbacks[CUS_FALLBACK_LATE_ERROR] - late, 1u);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(Errors, AStreamThatGoesTakesNoOpWithIt) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    ASSERT_TRUE(driver().journal.empty());
    cus_engine_stream_gone(&ref);
    EXPECT_EQ(driver().journal, std::vector<std::string>{Line("k0", 100, 0)});
}

TEST_F(Errors, ALostContextIsSaidOnce) {
    EXPECT_EQ(SaidOf(CUDA_ERROR_OUT_OF_MEMORY).find("the context was lost"), std::string::npos);
    std::string said = SaidOf(CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_NE(said.find("the context was lost with error 700"), std::string::npos) << said;
    EXPECT_NE(said.find("4 ops, from k8 to k11. "), std::string::npos)
        << "the last graph: " << said;
    EXPECT_EQ(SaidOf(CUDA_ERROR_LAUNCH_FAILED), "");
}

} // namespace
