// Promise: with one processor nothing is submitted, and the program's thread patches. Then each of
// many shapes that take turns gets its own graph.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "tests/unit/stream/program.h"

namespace {

TEST(SubmittedAlone, ManyShapesHaveAGraphEach) {
    constexpr unsigned kShapes = 24;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    setenv("CUSPLICE_HOLD_US", "1000000", 1);
    setenv("CUSPLICE_SUBMIT_NS", "1", 1);
    setenv("CUSPLICE_DEMOTE", "no", 1);
    setenv("CUSPLICE_BUILD_US", "0", 1); // however long that takes
    fake::Reset();
    ASSERT_TRUE(cus_engine_start(&fake::driver().table));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions = fake::MakeFunctions(4);
    for (int round = 0; round < 40; round++)
        for (unsigned grid = 1; grid <= kShapes; grid++) {
            for (unsigned i = 0; i < 4; i++)
                ASSERT_EQ(fake::Launch(stream, functions[i], 100 * grid + i, 0, grid),
                          CUDA_SUCCESS);
            fake::Sync(stream);
        }
    cus_counters counters = fake::Counters();
    EXPECT_EQ(counters.submitted, 0u);
    EXPECT_GE(counters.built, kShapes);
}

} // namespace
