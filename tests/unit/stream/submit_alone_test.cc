// Promise: with one processor nothing is submitted, and the program's thread patches. Then each of
// many shapes that take turns gets its own graph.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "tests/unit/stream/program.h"

namespace {

class SubmittedAlone : public fake::EngineTest {};

TEST_F(SubmittedAlone, ManyShapesHaveAGraphEach) {
    constexpr unsigned kShapes = 24;
    cpu_set_t one, all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    fake::Reset();
    ASSERT_TRUE(fake::StartEngine({
        {"CUSPLICE_HOLD_US", "1000000"},
        {"CUSPLICE_SUBMIT_NS", "1"},
        {"CUSPLICE_DEMOTE", "no"},
        {"CUSPLICE_BUILD_US", "0"}, // however long that takes
    }));
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
    EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

} // namespace
