// Promise: a call in a profile gets its class by its name.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "shim/trace/format.h"
#include "tools/trace/call_class.h"

namespace {

TEST(CallClass, EveryRowOfTheRuntimeIsThereOnceAndNamesARowOfTheDriver) {
    std::set<std::string> seen;
    auto check = [&](const char *runtime, const char *driver) {
        EXPECT_TRUE(seen.insert(runtime).second) << runtime << " twice";
        call_class found = call_class_of(runtime);
        EXPECT_TRUE(found.known) << runtime << ": no row " << (driver ? driver : "");
        EXPECT_STREQ(found.driver, driver) << runtime;
        EXPECT_EQ(!driver && found.kind != CALL_PASS, false) << runtime;
    };
#define RUNTIME_API(runtime, driver) check(#runtime, #driver);
#define RUNTIME_PASS(runtime) check(#runtime, nullptr);
#include "tools/trace/runtime_api.def"
    EXPECT_GT(seen.size(), 100u);
}

TEST(CallClass, IsThatOfTheDriversTable) {
    struct {
        const char *name;
        call_kind kind;
        int scope;
        const char *act;
    } cases[] = {
        {"cuLaunchKernel", CALL_OP, CST_SCOPE_S, "WRAP"},
        {"cudaLaunchKernel_v7000", CALL_OP, CST_SCOPE_S, "WRAP"},
        {"cudaLaunchKernelExC_v11060", CALL_OP, CST_SCOPE_S, "WRAP"},
        {"cudaStreamSynchronize_v3020", CALL_SYNC, CST_SCOPE_T, "SYNC"},
        {"cudaDeviceSynchronize_v3020", CALL_SYNC, CST_SCOPE_CT, "SYNC"},
        {"cudaMemcpy_v3020", CALL_SYNC, CST_SCOPE_T, "SYNC"},
        {"cudaEventQuery_v3020", CALL_SYNC, CST_SCOPE_T, "POLL"},
        {"cudaMalloc_v3020", CALL_BARRIER, CST_SCOPE_P, "ALLOC"},
        {"cudaFree_v3020", CALL_LIFE, CST_SCOPE_P, "MEMORY"},
        {"cudaEventRecord_v3020", CALL_STREAM, CST_SCOPE_S, "RECORD"},
        {"cuMemcpyHtoD_v2", CALL_SYNC, CST_SCOPE_T, "SYNC"},
        {"cudaDeviceGetLimit_v3020", CALL_GETTER, CST_SCOPE_T, "GETTER"},
        {"cudaStreamGetCaptureInfo_v2_v11030", CALL_PASS, CST_SCOPE_NONE, "PASS"},
    };
    for (const auto &one : cases) {
        call_class found = call_class_of(one.name);
        EXPECT_TRUE(found.known) << one.name;
        EXPECT_EQ(found.kind, one.kind) << one.name;
        EXPECT_EQ(found.scope, one.scope) << one.name;
        EXPECT_STREQ(found.act, one.act) << one.name;
    }
    EXPECT_TRUE(call_class_of("cudaLaunchKernel_ptsz_v7000").ptsz);
    EXPECT_TRUE(call_class_of("cuLaunchKernel_ptsz").ptsz);
    EXPECT_FALSE(call_class_of("cudaLaunchKernel_v7000").ptsz);
}

TEST(CallClass, WhatIsUnknownIsABarrierOfTheProcess) {
    for (const char *name : {"cudaNeverHeardOf_v13000", "cuNeverHeardOf", "", "_v7000"}) {
        call_class found = call_class_of(name);
        EXPECT_FALSE(found.known) << name;
        EXPECT_EQ(found.kind, CALL_BARRIER) << name;
        EXPECT_EQ(found.scope, CST_SCOPE_P) << name;
    }
}

} // namespace
