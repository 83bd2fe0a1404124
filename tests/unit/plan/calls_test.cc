// Promise: an `api:` rule can decide on exactly the calls that the engine turns into memory nodes.
#include "shim/plan/calls.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

TEST(Calls, RuledAreTheMemsetsTheCopiesThatAreOpsAndRecords) {
    std::set<std::string> ruled;
    unsigned n = 0;
    for (const cus_call_name *call; (call = cus_calls_get(n)); n++)
        if (cus_calls_ruled(call))
            ruled.insert(call->symbol);
    EXPECT_GT(n, 600u);
    std::set<std::string> expected;
    for (const char *symbol :
         {"cuMemcpyAsync", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
          "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuMemsetD2D8Async",
          "cuMemsetD2D16Async", "cuMemsetD2D32Async", "cuEventRecord"}) {
        expected.insert(symbol);
        expected.insert(std::string(symbol) + "_ptsz");
    }
    EXPECT_EQ(ruled, expected);
}

TEST(Calls, TheNearestIsOneOfThem) {
    EXPECT_STREQ(cus_calls_nearest("cuMemsetD8Asinc"), "cuMemsetD8Async");
    EXPECT_STREQ(cus_calls_nearest("cuLaunchKernle"), "cuLaunchKernel");
}

} // namespace
