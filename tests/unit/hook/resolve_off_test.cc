// Promise: with mode off every look-up answers the real function.
#include <gtest/gtest.h>
#include <stdlib.h>

extern "C" {
#include "shim/hook/resolve.h"
#include "tests/unit/hook/world.h"
}

namespace {

TEST(ResolveOff, LookUpsAnswerTheRealFunctions) {
    setenv("CUSPLICE", "off", 1);
    world_reset();
    EXPECT_TRUE(cus_resolve_off());
    void *function = nullptr, *launch = world_driver + world_row("cuLaunchKernel");
    world.function = launch;
    EXPECT_EQ(world_look("cuLaunchKernel", &function, 12000), CUDA_SUCCESS);
    EXPECT_EQ(function, launch);
    EXPECT_EQ(world.looks, 0u);
}

} // namespace
