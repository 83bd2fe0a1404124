// Promise: cuGetProcAddress handles versions, the per-thread flag and unknown names; exports are
// right.
#include "tests/unit/sim/sim.h"

#include <dlfcn.h>

namespace sim {
namespace {

struct Answer {
    CUresult result;
    void *address;
    CUdriverProcAddressQueryResult status;
};

Answer Ask(const char *name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
    Answer a{CUDA_SUCCESS, &a, static_cast<CUdriverProcAddressQueryResult>(9)};
    a.result = cuGetProcAddress(name, &a.address, version, flags, &a.status);
    return a;
}

void *Symbol(const char *name) {
    static void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return dlsym(library, name);
}

const auto kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

TEST(Resolve, TheNewestSymbolNotNewerThanTheVersionIsFound) {
    struct Row {
        const char *base;
        int version;
        cuuint64_t flags;
        const char *symbol;
    };
    const Row rows[] = {
        {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
        {"cuMemAlloc", 3010, 0, "cuMemAlloc"},
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 13000, kPerThread, "cuMemAlloc_v2"}, // has no twin
        {"cuLaunchKernel", 4000, 0, "cuLaunchKernel"},
        {"cuLaunchKernel", 13000, 0, "cuLaunchKernel"},
        {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuLaunchKernel"},
        {"cuLaunchKernel", 13000, kPerThread, "cuLaunchKernel_ptsz"},
        {"cuLaunchKernel", 7000, kPerThread, "cuLaunchKernel_ptsz"},
        {"cuLaunchKernel", 6050, kPerThread, "cuLaunchKernel"},
        {"cuMemcpyHtoD", 13000, kPerThread, "cuMemcpyHtoD_v2_ptds"},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        {"cuGetProcAddress", 11080, 0, "cuGetProcAddress"},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
        {"cuStreamGetCaptureInfo", 10010, 0, "cuStreamGetCaptureInfo"},
        {"cuStreamGetCaptureInfo", 11030, 0, "cuStreamGetCaptureInfo_v2"},
        {"cuStreamGetCaptureInfo", 12030, 0, "cuStreamGetCaptureInfo_v3"},
        {"cuSimBeginCaptureX", 13000, 0, "cuSimBeginCaptureX"},
        {"cuSimFillX", 13000, 0, "cuSimFillX"},
    };
    for (const Row &row : rows) {
        SCOPED_TRACE(testing::Message() << row.base << " " << row.version << " " << row.flags);
        Answer a = Ask(row.base, row.version, row.flags);
        EXPECT_EQ(CUDA_SUCCESS, a.result);
        EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, a.status);
        ASSERT_NE(nullptr, Symbol(row.symbol));
        EXPECT_EQ(Symbol(row.symbol), a.address);
    }
}

TEST(Resolve, WhatIsNotThereIsSaidByTheStatus) {
    Answer a = Ask("cuNoSuchCall", 13000);
    EXPECT_EQ(CUDA_SUCCESS, a.result);
    EXPECT_EQ(nullptr, a.address);
    EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, a.status);
    a = Ask("cuLaunchKernelEx", 11050);
    EXPECT_EQ(nullptr, a.address);
    EXPECT_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, a.status);
    a = Ask("cuMemAlloc_v2", 13000); // base names only
    EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, a.status);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask("cuMemAlloc", 13010).result); // newer than the driver
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Ask("cuMemAlloc", 13000, 8).result);
    void *address = &a;
    EXPECT_EQ(CUDA_SUCCESS, cuGetProcAddress("cuNoSuchCall", &address, 13000, 0, nullptr));
    EXPECT_EQ(nullptr, address);
    auto four = reinterpret_cast<CUresult (*)(const char *, void **, int, cuuint64_t)>(
        Symbol("cuGetProcAddress"));
    EXPECT_EQ(CUDA_SUCCESS, four("cuMemAlloc", &address, 3020, 0));
    EXPECT_EQ(Symbol("cuMemAlloc_v2"), address);
}

TEST(Resolve, WhatIsNotImplementedSaysSo) {
    ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
    auto call = reinterpret_cast<CUresult (*)(void *, void *)>(Symbol("cuMipmappedArrayCreate"));
    ASSERT_NE(nullptr, call);
    EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, call(nullptr, nullptr));
}

// What a newer driver's own functions look like: no symbol, but an address inside the library.
TEST(Resolve, AHiddenCallHasNoSymbol) {
    Answer a = Ask("cuSimHiddenFill", 13000);
    EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, a.status);
    ASSERT_NE(nullptr, a.address);
    EXPECT_EQ(nullptr, Symbol("cuSimHiddenFill"));
    EXPECT_EQ(nullptr, Symbol("cusim_hidden_fill"));
    Dl_info hidden, known;
    ASSERT_NE(0, dladdr(a.address, &hidden));
    ASSERT_NE(0, dladdr(Symbol("cuInit"), &known));
    EXPECT_EQ(known.dli_fbase, hidden.dli_fbase);
}

TEST(Resolve, OnlyNamesOfTheDriverAreExported) {
    EXPECT_EQ(nullptr, Symbol("cusim_lock"));
    EXPECT_NE(nullptr, Symbol("cuGraphLaunch_ptsz"));
}

} // namespace
} // namespace sim
