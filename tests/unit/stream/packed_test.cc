// Promise: a launch whose arguments lie in a packed buffer is deferred if the buffer is as the
// function's layout says. Any other is the program's own call, for the driver to judge.
#include "tests/unit/stream/engine.h"

#include <gtest/gtest.h>

#include <utility>

namespace {

decltype(cus_driver::cuLaunchKernel) plain;

// Takes the arguments from the buffer, wherever in `extra` it is.
CUresult LaunchPacked(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
    static uint8_t nothing[12];
    uint8_t *buffer = nothing;
    for (void **at = extra; at && at[0] != CU_LAUNCH_PARAM_END; at += 2)
        if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = static_cast<uint8_t *>(at[1]);
    void *unpacked[] = {buffer, buffer + 8};
    return plain(f, gx, gy, gz, bx, by, bz, shared, stream, params ? params : unpacked, nullptr);
}

class Packed : public Engine {
  protected:
    void SetUp() override {
        Engine::SetUp();
        plain = std::exchange(driver().table.cuLaunchKernel, LaunchPacked);
    }
    // Is a launch in this form, in the midst of a segment, deferred?
    bool Deferred(void **params, void **extra) {
        Teach(stream_);
        driver().journal.clear();
        Launch(functions_[0], 100, 0);
        EXPECT_TRUE(driver().journal.empty());
        fake::Call call(stream_, functions_[1], 101);
        call.launch.params = params;
        call.launch.extra = extra;
        call.launch.real = reinterpret_cast<void *>(LaunchPacked);
        EXPECT_EQ(cus_engine_launch(&call.launch), CUDA_SUCCESS);
        bool deferred = driver().journal.empty();
        Sync();
        EXPECT_EQ(driver().journal.size(), 2u);
        return deferred;
    }
};

TEST_F(Packed, IsDeferredIfTheBufferIsAsTheLayoutSays) {
    uint8_t buffer[16] = {77};
    size_t right = 12, padded = 16, shorter = 8;
    uint64_t a = 1;
    uint32_t b = 0;
    void *params[] = {&a, &b};
    void *const at = CU_LAUNCH_PARAM_BUFFER_POINTER, *const size = CU_LAUNCH_PARAM_BUFFER_SIZE,
                *const end = CU_LAUNCH_PARAM_END, *const unknown = (void *)7;
    struct {
        const char *what;
        bool deferred;
        void *extra[7];
        void **params;
    } forms[] = {
        {"pointer and size", true, {at, buffer, size, &right, end, unknown}, nullptr},
        {"size and pointer", true, {size, &right, at, buffer, end, unknown}, nullptr},
        {"with padding at the end", false, {at, buffer, size, &padded, end}, nullptr},
        {"too short", false, {at, buffer, size, &shorter, end}, nullptr},
        {"without a size", false, {at, buffer, end}, nullptr},
        {"without a buffer", false, {size, &right, end}, nullptr},
        {"with an unknown entry", false, {at, buffer, size, &right, unknown, buffer, end}, nullptr},
        {"an unknown entry first",
         false,
         {unknown, buffer, at, buffer, size, &right, end},
         nullptr},
        {"in both forms", false, {at, buffer, size, &right, end}, params},
    };
    for (auto &form : forms) {
        SCOPED_TRACE(form.what);
        EXPECT_EQ(Deferred(form.params, form.extra), form.deferred);
        if (form.deferred) {
            EXPECT_EQ(driver().journal[1], Line("k1", 77, 0));
        }
    }
    ExpectBalance();
}

// Segments end there, so that none is cut: not even the first one.
TEST_F(Packed, SegmentsEndInFrontOfOneThatCannotBeRead) {
    void *extra[] = {CU_LAUNCH_PARAM_END};
    Launch(functions_[9], 109, 0);
    Sync();
    const cus_counters before = fake::Counters();
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < 8; i++) {
            if (i == 3) {
                fake::Call call(stream_, functions_[9], 109);
                call.launch.params = nullptr;
                call.launch.extra = extra;
                call.launch.real = reinterpret_cast<void *>(LaunchPacked);
                EXPECT_EQ(cus_engine_launch(&call.launch), CUDA_SUCCESS);
            }
            Launch(functions_[i], 100 + i, 0);
        }
        Sync();
    }
    const cus_counters after = fake::Counters();
    EXPECT_GT(after.in_graphs, before.in_graphs);
    EXPECT_EQ(after.flushes[CUS_CAUSE_UNSUPPORTED], before.flushes[CUS_CAUSE_UNSUPPORTED]);
    ExpectBalance();
}

} // namespace
