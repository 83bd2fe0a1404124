// Shared code of the simulator's tests: a context, their own kernels, a gate.
//
// The tests are linked to libcuda.so.1 of harness/sim and register their kernels there; they need
// no other library.
#ifndef TESTS_UNIT_SIM_SIM_H
#define TESTS_UNIT_SIM_SIM_H

#include <cuda.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "harness/sim/cusim_kernel.h"

extern "C" {
CUresult cuSimKernelRegister(struct cusim_kernel *kernel);
CUresult cuSimSetDelay(unsigned max_us);
CUresult cuSimSetFault(const char *text);
CUresult cuSimBeginCaptureX(CUstream stream, CUstreamCaptureMode mode);
}

namespace sim {

void RegisterKernels();

// A flag that a kernel waits for; opened by Open() or when it goes out of scope, so that no test
// can hang the next. The flag itself lives on, since the kernel may look at it a moment longer.
class Gate {
  public:
    Gate();
    ~Gate() { Open(); }
    void Open() { flag_->store(1); }
    std::atomic<int> *flag() { return flag_; }

  private:
    std::atomic<int> *flag_;
};

class Sim : public ::testing::Test {
  protected:
    void SetUp() override;
    void TearDown() override;

    CUdeviceptr Alloc(size_t bytes, int value = 0);
    int Read(CUdeviceptr p);
    CUstream Stream(unsigned flags = CU_STREAM_NON_BLOCKING);
    CUresult Mix(CUdeviceptr p, int v, CUstream stream);   // *p = *p * 3 + v
    CUresult Wait(Gate &gate, CUstream stream);            // spins until the gate is open
    CUresult Write(CUdeviceptr p, int v, CUstream stream); // *p = v
    CUresult Copy(CUdeviceptr to, CUdeviceptr from, CUstream stream); // *to = *from, by a kernel
    CUfunction Func(const char *name);

    CUcontext ctx = nullptr;
    CUmodule module = nullptr;
};

#define CU_OK(call) ASSERT_EQ(CUDA_SUCCESS, (call))
#define CU_EXPECT(code, call) EXPECT_EQ(code, (call))

} // namespace sim

#endif
