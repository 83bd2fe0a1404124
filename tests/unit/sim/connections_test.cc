// Promise: with CUDA_DEVICE_MAX_CONNECTIONS streams share hardware queues in turn, and an operation
// begins once those put into its queue before have begun.
#include "tests/unit/sim/sim.h"

namespace sim {
namespace {

// Read when the simulator is first called.
const int kSet = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 1);

class Connections : public Sim {
  protected:
    // Streams a and c share a queue; b has the other one.
    void Open() {
        for (CUstream *s : {&a, &b, &c}) {
            *s = Stream();
            CU_OK(Write(p, 0, *s));
            CU_OK(cuStreamSynchronize(*s));
        }
    }
    static bool IsDone(CUstream s) {
        for (int ms = 0; ms < 30 && cuStreamQuery(s) == CUDA_ERROR_NOT_READY; ms++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return cuStreamQuery(s) == CUDA_SUCCESS;
    }
    CUdeviceptr p = 0;
    CUstream a = nullptr, b = nullptr, c = nullptr;
};

TEST_F(Connections, AnOperationWaitsForThoseThatHaveNotBegun) {
    ASSERT_EQ(0, kSet);
    Gate gate;
    p = Alloc(12);
    Open();
    CU_OK(Wait(gate, a));
    CU_OK(Write(p + 4, 1, c)); // the gate's kernel has begun
    EXPECT_TRUE(IsDone(c));
    CU_OK(Write(p, 2, a)); // has not
    CU_OK(Write(p + 4, 3, c));
    CU_OK(Write(p + 8, 4, b));
    EXPECT_TRUE(IsDone(b));
    EXPECT_FALSE(IsDone(c));
    gate.Open();
    CU_OK(cuStreamSynchronize(c));
}

TEST_F(Connections, AWaitForAValueIsAWaitOfTheQueue) {
    p = Alloc(12);
    CUdeviceptr flag = Alloc(4);
    Open();
    CU_OK(cuStreamWaitValue32(a, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    CU_OK(Write(p + 4, 1, c));
    EXPECT_FALSE(IsDone(c));
    CU_OK(cuStreamWriteValue32(b, flag, 1, 0));
    CU_OK(cuStreamSynchronize(c));
}

} // namespace
} // namespace sim
