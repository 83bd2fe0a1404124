// Promise: only the right ops become nodes of a graph, and a stream keeps the right graphs for the
// right time. A table of ranges stands for memory. The journal shows copies and memsets as kernels
// "copy" (bytes, to, from) and "fill" (elements, to, value).
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using fake::Counters;
using fake::driver;

struct Range {
    uint64_t start;
    size_t bytes;
    CUmemorytype type;
    bool managed;
    unsigned access; // of a mapping in the reservation; 0: not mapped
};

const Range kRanges[] = {
    {0x10000, 0x1000, CU_MEMORYTYPE_DEVICE, false, 0}, // device
    {0x20000, 0x1000, CU_MEMORYTYPE_HOST, false, 0},   // pinned
    {0x30000, 0x1000, CU_MEMORYTYPE_HOST, false, 0},   // pinned
    {0x40000, 0x1000, CU_MEMORYTYPE_DEVICE, true, 0},  // managed
    {0x50000, 0x1000, CU_MEMORYTYPE_DEVICE, false, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE},
    {0x51000, 0x1000, CU_MEMORYTYPE_DEVICE, false, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE},
    {0x52000, 0x1000, CU_MEMORYTYPE_DEVICE, false, 0}, // reserved only
    {0x53000, 0x1000, CU_MEMORYTYPE_DEVICE, false, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ},
};
const Range kReservation = {0x50000, 0x8000, CU_MEMORYTYPE_DEVICE, false, 0};
const uint64_t kDevice = 0x10000, kPinned = 0x20000, kOtherPinned = 0x30000, kManaged = 0x40000,
               kVirtual = 0x50000, kUnmapped = 0x52000, kReadOnly = 0x53000, kPageable = 0x90000;

CUresult PointerGetAttributes(unsigned n, CUpointer_attribute *ids, void **values,
                              CUdeviceptr address) {
    for (const Range &range : kRanges) {
        if (address < range.start || address >= range.start + range.bytes)
            continue;
        bool is_virtual = address - kReservation.start < kReservation.bytes;
        const Range &whole = is_virtual ? kReservation : range;
        for (unsigned i = 0; i < n; i++) {
            switch (ids[i]) {
            case CU_POINTER_ATTRIBUTE_MAPPED:
                *(unsigned *)values[i] = !is_virtual || range.access;
                break;
            case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
                *(unsigned *)values[i] = range.access;
                break;
            case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
                *(CUdeviceptr *)values[i] = range.start;
                break;
            case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
                *(size_t *)values[i] = range.bytes;
                break;
            case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
                *(CUmemorytype *)values[i] = range.type;
                break;
            case CU_POINTER_ATTRIBUTE_IS_MANAGED:
                *(unsigned *)values[i] = range.managed;
                break;
            case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
                *(int *)values[i] = 0;
                break;
            case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
                *(CUdeviceptr *)values[i] = whole.start;
                break;
            case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                *(size_t *)values[i] = whole.bytes;
                break;
            case CU_POINTER_ATTRIBUTE_CONTEXT:
                *(CUcontext *)values[i] = is_virtual ? nullptr : (CUcontext)0x1000;
                break;
            default:
                break;
            }
        }
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult AsNode(CUgraphExec exec, CUgraphNode node, CUfunction f, size_t size, uint64_t a,
                uint32_t b) {
    void *params[2] = {&a, &b};
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    kernel.func = f;
    kernel.gridDimX = (unsigned)size;
    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = params;
    return driver().table.cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
}

CUresult Fill16(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream) {
    return fake::AsLaunch(fake::FillFunction(), n, dst, value, stream);
}
CUresult CopyIn(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    return fake::AsLaunch(fake::CopyFunction(), bytes, dst, (uint32_t)(uintptr_t)src, stream);
}
CUresult Fill2D(CUdeviceptr dst, size_t, unsigned char value, size_t width, size_t height,
                CUstream stream) {
    return fake::AsLaunch(fake::FillFunction(), width * height, dst, value, stream);
}
// Of calls and libraries that the other tests have nothing to do with.
const char *const kRules = "[rules]\neager = lib:libeager*\nnever_defer = lib:libspin.so\n"
                           "eager = api:cuMemcpyDtoDAsync\ngraph = api:cuMemsetD16Async_ptsz\n"
                           "eager = api:cuMemsetD16Async\nnever_defer = api:cuMemcpyHtoD*\n";

class Nodes : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        if (std::exchange(started_, true))
            return;                               // of a suite that is derived from this one
        setenv("CUSPLICE_HOLD_US", "1000000", 1); // the watchdog has a test of its own
        setenv("CUSPLICE_SEGMENT_MAX", "4", 1);   // the same segments at any pace of the host
        setenv("CUSPLICE_GRAPH_MB", "1", 1);
        std::string path = ::testing::TempDir() + "nodes.conf";
        std::ofstream(path) << kRules;
        setenv("CUSPLICE_CONFIG", path.c_str(), 1);
        fake::Reset();
        ASSERT_TRUE(cus_engine_start(&driver().table));
    }

    static inline bool started_ = false;

    void SetUp() override {
        ProgramTest::SetUp();
        cus_driver &t = driver().table;
        t.cuCtxGetDevice = [](CUdevice *device) {
            *device = 0;
            return CUDA_SUCCESS;
        };
        t.cuPointerGetAttributes = PointerGetAttributes;
        t.cuMemcpyAsync = fake::Copy;
        t.cuMemsetD8Async = fake::Fill;
        t.cuMemsetD16Async = Fill16;
        t.cuMemcpyDtoDAsync_v2 = fake::Copy;
        t.cuMemcpyHtoDAsync_v2 = CopyIn;
        t.cuLaunchKernelEx = fake::LaunchEx;
        t.cuGraphMemcpyNodeGetParams = [](CUgraphNode handle, CUDA_MEMCPY3D *params) {
            const auto *node = reinterpret_cast<const fake::Node *>(handle);
            uint32_t src;
            *params = {};
            params->srcMemoryType = params->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
            memcpy(&params->dstDevice, node->params.data(), 8);
            memcpy(&src, node->params.data() + 8, 4);
            params->srcDevice = src;
            params->WidthInBytes = node->dims[0];
            params->Height = params->Depth = 1;
            return CUDA_SUCCESS;
        };
        t.cuGraphExecMemcpyNodeSetParams = [](CUgraphExec exec, CUgraphNode node,
                                              const CUDA_MEMCPY3D *params, CUcontext) {
            driver().calls["cuGraphExecMemcpyNodeSetParams"]++;
            return AsNode(exec, node, fake::CopyFunction(), params->WidthInBytes, params->dstDevice,
                          (uint32_t)params->srcDevice);
        };
        t.cuGraphMemsetNodeGetParams = [](CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params) {
            const auto *node = reinterpret_cast<const fake::Node *>(handle);
            *params = {};
            memcpy(&params->dst, node->params.data(), 8);
            params->elementSize = 1;
            params->width = node->dims[0];
            params->height = 1;
            return CUDA_SUCCESS;
        };
        t.cuGraphExecMemsetNodeSetParams = [](CUgraphExec exec, CUgraphNode node,
                                              const CUDA_MEMSET_NODE_PARAMS *params, CUcontext) {
            return AsNode(exec, node, fake::FillFunction(), params->width, params->dst,
                          params->value);
        };
        cus_engine_memory_gone();
    }

    CUresult LaunchWith(int i, CUlaunchAttributeID id, bool attributes = true) {
        uint64_t a = 1;
        uint32_t b = 2;
        void *params[2] = {&a, &b};
        CUlaunchAttribute attribute = {};
        attribute.id = id;
        CUlaunchConfig config = {};
        config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY =
            config.blockDimZ = 1;
        config.hStream = stream_;
        config.attrs = attributes ? &attribute : nullptr;
        config.numAttrs = 1;
        cus_launch launch = {};
        launch.form = CUS_LAUNCH_EX;
        launch.stream = {stream_, CUS_ABI_LEGACY};
        launch.f = functions_[i];
        const uint32_t dims[7] = {1, 1, 1, 1, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        launch.n_attrs = 1;
        launch.attrs = config.attrs;
        launch.params = params;
        launch.config = &config;
        launch.real = (void *)fake::LaunchEx;
        return cus_engine_launch(&launch);
    }

    CUresult Memcpy(uint64_t dst, uint64_t src, size_t bytes, cus_copy_form form = CUS_COPY_ANY,
                    cus_abi abi = CUS_ABI_LEGACY) {
        cus_copy copy = {};
        copy.form = form;
        copy.stream = {stream_, abi};
        copy.dst = dst;
        copy.src = src;
        copy.bytes = bytes;
        copy.real = form == CUS_COPY_HTOD ? (void *)CopyIn : (void *)fake::Copy;
        return cus_engine_copy(&copy);
    }

    CUresult Memset(uint64_t dst, size_t width, size_t height) {
        cus_memset memset = {};
        memset.stream = {stream_, CUS_ABI_LEGACY};
        memset.dst = dst;
        memset.value = 7;
        memset.elem = 1;
        memset.width = width;
        memset.height = height;
        memset.pitch = height > 1 ? 64 : 0;
        memset.two_d = height > 1;
        memset.real = height > 1 ? (void *)Fill2D : (void *)fake::Fill;
        return cus_engine_memset(&memset);
    }

    CUresult Memset16(cus_abi abi) {
        cus_memset memset = {};
        memset.stream = {stream_, abi};
        memset.dst = kDevice;
        memset.value = 7;
        memset.elem = 2;
        memset.width = 64;
        memset.height = 1;
        memset.real = (void *)Fill16;
        return cus_engine_memset(&memset);
    }

    // Steps that are alike.
    void Steps(int steps, uint32_t b = 0) {
        for (; steps; steps--)
            ASSERT_NO_FATAL_FAILURE(Step(b));
    }

    // Is this op, between launches that repeat, deferred in the end? Another one may follow it.
    bool Deferred(const std::function<CUresult()> &op,
                  const std::function<CUresult()> &next = nullptr) {
        bool deferred = false;
        for (int step = 0; step < 8; step++) {
            driver().journal.clear();
            for (int i = 0; i < 4; i++)
                Launch(i);
            EXPECT_EQ(op(), CUDA_SUCCESS);
            deferred = driver().journal.size() < 5;
            if (next) {
                EXPECT_EQ(next(), CUDA_SUCCESS);
            }
            for (int i = 4; i < 8; i++)
                Launch(i);
            Sync();
            EXPECT_EQ(driver().journal.size(), next ? 10u : 9u) << "step " << step;
        }
        return deferred;
    }
};

// ---- which ops ----

TEST_F(Nodes, CopyWithinKnownMemoryIsAnOp) {
    EXPECT_TRUE(Deferred([&] { return Memcpy(kDevice, kPinned, 64); }));
    EXPECT_TRUE(Deferred([&] { return Memcpy(kDevice, kDevice + 128, 64); }));
    EXPECT_TRUE(Deferred([&] { return Memset(kDevice, 64, 1); }));
}

TEST_F(Nodes, CopyPastTheEndOfItsMemoryIsItsOwnCall) {
    EXPECT_FALSE(Deferred([&] { return Memcpy(kDevice + 0x1000 - 32, kPinned, 64); }));
    EXPECT_FALSE(Deferred([&] { return Memcpy(kDevice, kPinned + 0x1000 - 32, 64); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kDevice + 0x1000 - 32, 64, 1); }));
}

TEST_F(Nodes, WhatWasKnownOfMemoryThatGoesIsForgotten) {
    auto copy = [&] { return Memcpy(kDevice, kPinned, 64); };
    EXPECT_TRUE(Deferred(copy));
    driver().table.cuPointerGetAttributes = [](unsigned, CUpointer_attribute *, void **,
                                               CUdeviceptr) { return CUDA_ERROR_INVALID_VALUE; };
    EXPECT_TRUE(Deferred(copy)) << "the driver is not asked again";
    cus_engine_memory_gone();
    EXPECT_FALSE(Deferred(copy));
}

TEST_F(Nodes, CopyInTheMidstOfASegmentIsLookedAtOnceMemoryMayHaveGone) {
    auto hot = [&] {
        return hot_copy(CUS_COPY_ANY, kDevice, kPinned + 64, 64, stream_, CUS_ABI_LEGACY);
    };
    EXPECT_TRUE(Deferred([&] { return Memcpy(kDevice, kPinned, 64); },
                         [&] { return Memcpy(kDevice, kPinned + 64, 64); }));
    for (bool gone : {false, true}) {
        for (int i = 0; i < 4; i++)
            Launch(i);
        driver().journal.clear();
        Memcpy(kDevice, kPinned, 64);
        ASSERT_TRUE(driver().journal.empty());
        if (gone)
            cus_engine_memory_gone();
        EXPECT_EQ(hot(), !gone);
        Sync();
    }
}

TEST_F(Nodes, PageableMemoryIsNoOps) {
    EXPECT_FALSE(Deferred([&] { return Memcpy(kDevice, kPageable, 64); }));
    EXPECT_FALSE(Deferred([&] { return Memcpy(kPageable, kDevice, 64); }));
}

TEST_F(Nodes, CopyFromHostToHostIsNoOp) {
    EXPECT_FALSE(Deferred([&] { return Memcpy(kPinned, kOtherPinned, 64); }));
}

TEST_F(Nodes, ManagedMemoryIsNoOps) {
    EXPECT_FALSE(Deferred([&] { return Memcpy(kDevice, kManaged, 64); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kManaged, 64, 1); }));
}

TEST_F(Nodes, VirtualMemoryIsAnOpWhereItIsMappedAndMayBeWritten) {
    EXPECT_TRUE(Deferred([&] { return Memset(kVirtual, 64, 1); }));
    EXPECT_TRUE(Deferred([&] { return Memcpy(kVirtual + 0x1000, kPinned, 64); }));
    EXPECT_TRUE(Deferred([&] { return Memcpy(kDevice, kVirtual, 64); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kUnmapped, 64, 1); }));
    EXPECT_FALSE(Deferred([&] { return Memcpy(kVirtual, kUnmapped, 64); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kReadOnly, 64, 1); }));
}

TEST_F(Nodes, VirtualMemoryMayLieInMappingsThatTouch) {
    EXPECT_TRUE(Deferred([&] { return Memset(kVirtual + 0x1000 - 32, 64, 1); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kUnmapped - 32, 64, 1); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kReadOnly - 32, 64, 1); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kVirtual, 0x2001, 1); }));
    EXPECT_TRUE(Deferred([&] { return Memset(kVirtual, 0x2000, 1); }));
}

TEST_F(Nodes, MappingsThatTouchAreAskedAboutOnceAndForgottenTogether) {
    static int asked;
    asked = 0;
    driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids, void **values,
                                               CUdeviceptr address) {
        asked++;
        return PointerGetAttributes(n, ids, values, address);
    };
    Memset(kVirtual + 0x1000, 64, 1);
    Memset(kVirtual, 64, 1);
    EXPECT_EQ(asked, 4); // twice each
    Memset(kVirtual, 0x2000, 1);
    Memset(kVirtual + 0x1000 - 8, 16, 1);
    EXPECT_EQ(asked, 4);
    cus_engine_memory_gone();
    driver().table.cuPointerGetAttributes = [](unsigned, CUpointer_attribute *, void **,
                                               CUdeviceptr) { return CUDA_ERROR_INVALID_VALUE; };
    EXPECT_FALSE(Deferred([&] { return Memset(kVirtual, 64, 1); }));
    EXPECT_FALSE(Deferred([&] { return Memset(kVirtual + 0x1000, 64, 1); }));
}

// However many there are: each is asked about once, and found again among all of them.
TEST_F(Nodes, ThousandsOfAllocationsAreAskedAboutOnceEach) {
    enum { ALLOCATIONS = 3000, STRIDE = 0x10000, BYTES = 0x1000 };
    static unsigned asked;
    asked = 0;
    driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids, void **values,
                                               CUdeviceptr address) {
        asked++;
        CUresult result = PointerGetAttributes(n, ids, values, kDevice);
        for (unsigned i = 0; i < n; i++) {
            if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
                *(CUdeviceptr *)values[i] = address / STRIDE * STRIDE;
            if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
                *(size_t *)values[i] = address % STRIDE < BYTES ? BYTES : 0;
        }
        return result;
    };
    auto turn = [&](unsigned from) {
        asked = 0;
        for (unsigned i = 0; i < ALLOCATIONS; i++)
            Memset((CUdeviceptr)STRIDE * (from + i * 7919 % ALLOCATIONS) + 64, 64, 1);
        return asked;
    };
    EXPECT_EQ(turn(1000), (unsigned)ALLOCATIONS);
    EXPECT_EQ(turn(1000), 0u);
    // More than are kept: some are found, and what is between two ranges is in neither.
    turn(5000), turn(9000);
    EXPECT_LT(turn(9000) + turn(1000), 2000u);
    cus_engine_memory_gone();
    EXPECT_EQ(turn(9000), (unsigned)ALLOCATIONS);
    auto asks = [&](CUdeviceptr from, size_t bytes) {
        asked = 0;
        Memset((CUdeviceptr)STRIDE * 9077 + from, bytes, 1);
        return asked > 0;
    };
    EXPECT_FALSE(asks(0, BYTES));
    EXPECT_FALSE(asks(BYTES - 16, 16));
    EXPECT_TRUE(asks(BYTES - 16, 17)) << "not wholly in it";
    EXPECT_TRUE(asks(BYTES, 16)) << "behind it";
    cus_engine_memory_gone();
}

TEST_F(Nodes, MemsetOfTwoDimensionsIsNoOp) {
    EXPECT_FALSE(Deferred([&] { return Memset(kDevice, 32, 4); }));
}

TEST_F(Nodes, LaunchWithAnAttributeOfTheMomentIsNoOp) {
    driver().table.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID,
                                                      CUlaunchAttributeValue *value) {
        memset(value, 0, sizeof *value);
        return CUDA_SUCCESS;
    };
    EXPECT_TRUE(Deferred(
        [&] { return LaunchWith(11, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE); }));
    for (CUlaunchAttributeID id :
         {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
          CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, CU_LAUNCH_ATTRIBUTE_PRIORITY,
          CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW})
        EXPECT_FALSE(Deferred([&] { return LaunchWith(11, id); })) << id;
}

// One attribute, and nowhere to read it: what that means is for the driver to say. Also where the
// same launch with one is what is expected.
TEST_F(Nodes, LaunchWithAttributesNowhereIsTheDrivers) {
    EXPECT_FALSE(Deferred([&] { return LaunchWith(10, CU_LAUNCH_ATTRIBUTE_IGNORE, false); }));
    for (int step = 0; step < 6; step++) {
        driver().journal.clear();
        Launch(0);
        EXPECT_EQ(LaunchWith(10, CU_LAUNCH_ATTRIBUTE_PRIORITY, step < 5), CUDA_SUCCESS);
        Launch(1);
        Sync();
        EXPECT_EQ(driver().journal.size(), 3u) << step;
    }
}

// A node takes memory of the families that it was captured with, and no other.
TEST_F(Nodes, CopyNodeIsNotPatchedToMemoryOfAnotherFamily) {
    enum { LAST = 16 }; // long after segments are formed anew for the pace of the host
    for (uint64_t other : {kPinned, kVirtual}) {
        for (int step = 0; step <= LAST; step++) {
            uint64_t from = step == LAST ? other : kDevice + 128 * (step + 1);
            driver().journal.clear();
            driver().calls["cuGraphExecMemcpyNodeSetParams"] = 0;
            for (int i = 0; i < 4; i++)
                Launch(i);
            EXPECT_EQ(Memcpy(kDevice, from, 64), CUDA_SUCCESS);
            for (int i = 4; i < 8; i++)
                Launch(i);
            Sync();
            ASSERT_EQ(driver().journal.size(), 9u);
            EXPECT_EQ(driver().journal[4], Line("copy", kDevice, (uint32_t)from, 64));
            if (step == LAST - 1) {
                EXPECT_GT(driver().calls["cuGraphExecMemcpyNodeSetParams"], 0);
            }
        }
        EXPECT_EQ(driver().calls["cuGraphExecMemcpyNodeSetParams"], 0);
    }
}

// ---- rules about calls and libraries ----

TEST_F(Nodes, CopyThatARuleNamesGoesOutByItself) {
    uint64_t before = Counters().eager_by[CUS_EAGER_RULE];
    EXPECT_FALSE(Deferred([&] { return Memcpy(kDevice, kDevice + 128, 64, CUS_COPY_DTOD); }));
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_RULE] - before, 8u);
    EXPECT_FALSE(
        Deferred([&] { return Memcpy(kDevice, kDevice + 128, 64, CUS_COPY_DTOD, CUS_ABI_PTSZ); }));
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_RULE] - before, 16u);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_TRUE(Deferred([&] { return Memcpy(kDevice, kDevice + 128, 64); })) << "another call";
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_RULE] - before, 16u);
}

TEST_F(Nodes, TwinsOfACallMayHaveRulesOfTheirOwn) {
    EXPECT_FALSE(Deferred([&] { return Memset16(CUS_ABI_LEGACY); }));
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_TRUE(Deferred([&] { return Memset16(CUS_ABI_PTSZ); }));
    // In the midst of a segment too: the same memset, by the call that a rule keeps out.
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 5; i++)
            Launch(i);
        driver().journal.clear();
        if (step >= 8) {
            EXPECT_FALSE(hot_memset(kDevice, 7, 2, 64, stream_, CUS_ABI_LEGACY));
        }
        Memset16(step == 9 ? CUS_ABI_LEGACY : CUS_ABI_PTSZ);
        EXPECT_EQ(driver().journal.empty(), step < 9 && step > 1) << step;
        for (int i = 5; i < 11; i++)
            Launch(i);
        Sync();
    }
}

TEST_F(Nodes, CopyThatIsNeverDeferredComesBehindEverything) {
    auto other_thread = [&](const std::function<CUresult()> &op) {
        Steps(4);
        driver().journal.clear();
        std::thread([&] { Launch(0); }).join();
        EXPECT_TRUE(driver().journal.empty());
        CUstream mine = stream_;
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        EXPECT_EQ(op(), CUDA_SUCCESS);
        stream_ = mine;
        return driver().journal.size();
    };
    EXPECT_EQ(other_thread([&] { return Memcpy(kDevice, kPinned, 64, CUS_COPY_HTOD); }), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
    // Of memory that nobody knows, which is no op at all; and by a rule that is about speed alone.
    EXPECT_EQ(other_thread([&] { return Memcpy(kDevice, kPageable, 64, CUS_COPY_HTOD); }), 2u);
    EXPECT_EQ(other_thread([&] { return Memcpy(kDevice, kDevice + 64, 64, CUS_COPY_DTOD); }), 1u);
}

TEST_F(Nodes, KernelIsDecidedOnByTheFileThatItIsFrom) {
    const void *library = (const void *)0x500, *module = (const void *)0x501;
    auto deferred = [&] { return Deferred([&] { return Launch(11); }); };
    EXPECT_TRUE(cus_engine_asks_library());
    cus_engine_code_loaded(library, "libeager.so.2", 0);
    cus_engine_code_made(module, library);
    cus_engine_code_made(functions_[11], module);
    EXPECT_FALSE(deferred());
    cus_engine_code_gone(); // some other module: what it is from is still known
    EXPECT_FALSE(deferred());
    cus_engine_code_gone();
    cus_engine_code_unloaded(library);
    cus_engine_code_loaded(library, "libother.so", 0);
    cus_engine_code_made(functions_[11], library); // its handle is given out again
    EXPECT_TRUE(deferred());
    cus_engine_code_gone();
    cus_engine_code_loaded(library, "libeager.so", 0); // the library's as well
    EXPECT_FALSE(deferred());
    cus_engine_code_gone();
    cus_engine_code_loaded(library, nullptr, 0); // from memory of its own
    EXPECT_TRUE(deferred());
    cus_engine_code_gone();
    cus_engine_code_loaded(library, "libeager.so", 0);
    cus_engine_code_unloaded(library);
    EXPECT_TRUE(deferred());
}

TEST_F(Nodes, KernelOfALibraryThatIsNeverDeferredComesBehindEverything) {
    cus_engine_code_loaded((const void *)0x500, "libspin.so", 0);
    cus_engine_code_made(functions_[11], (const void *)0x500);
    Steps(4);
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    EXPECT_TRUE(driver().journal.empty());
    fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions_[11], 1, 2);
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
    EXPECT_FALSE(Deferred([&] { return Launch(11); }));
    cus_engine_code_unloaded((const void *)0x500);
}

// ---- which graphs ----

std::map<CUgraphExec, std::set<CUstream>> launched;
decltype(cus_driver::cuGraphLaunch) graph_launch;

TEST_F(Nodes, EachStreamHasGraphsOfItsOwn) {
    CUstream streams[2] = {stream_, fake::MakeStream(CU_STREAM_NON_BLOCKING)};
    launched.clear();
    graph_launch = driver().table.cuGraphLaunch;
    driver().table.cuGraphLaunch = [](CUgraphExec exec, CUstream stream) {
        launched[exec].insert(stream);
        return graph_launch(exec, stream);
    };
    for (int step = 0; step < 12; step++) {
        CUstream stream = streams[step % 2];
        driver().journal.clear();
        for (int i = 0; i < 12; i++)
            fake::Launch(stream, functions_[i], 100 + i);
        fake::Sync(stream);
        std::vector<std::string> expected;
        for (int i = 0; i < kOps; i++)
            expected.push_back(fake::Line(stream, "k" + std::to_string(i), 100 + i));
        ASSERT_EQ(driver().journal, expected);
    }
    std::set<CUstream> seen;
    for (const auto &entry : launched) {
        EXPECT_EQ(entry.second.size(), 1u) << "a graph that two streams launch";
        seen.insert(entry.second.begin(), entry.second.end());
    }
    EXPECT_EQ(seen, (std::set<CUstream>{streams[0], streams[1]}));
}

// Two sets of params in turn earn a second graph: it is made from the ops of that moment.
TEST_F(Nodes, GraphIsBuiltFromTheOpsThatAreIssued) {
    Steps(5, 1);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    for (int turn = 0; turn < 5; turn++) {
        Steps(1, 2);
        Steps(1, 1);
    }
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

int priority;
CUstream made, copied_to, copied_from;

TEST_F(Nodes, CapturesOnAStreamLikeTheOneThatLaunches) {
    cus_driver &t = driver().table;
    priority = 0;
    made = copied_to = copied_from = nullptr;
    t.cuStreamGetPriority = [](CUstream, int *value) {
        *value = -3;
        return CUDA_SUCCESS;
    };
    t.cuStreamCreateWithPriority = [](CUstream *stream, unsigned flags, int value) {
        EXPECT_EQ(flags, (unsigned)CU_STREAM_NON_BLOCKING);
        priority = value;
        *stream = made = fake::MakeStream(flags);
        return CUDA_SUCCESS;
    };
    t.cuStreamCopyAttributes = [](CUstream to, CUstream from) {
        copied_to = to;
        copied_from = from;
        return CUDA_SUCCESS;
    };
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
    EXPECT_EQ(priority, -3);
    EXPECT_NE(made, nullptr);
    EXPECT_EQ(copied_to, made);
    EXPECT_EQ(copied_from, stream_);
}

// Where a driver does not copy them, they are kept by building nothing.
TEST_F(Nodes, AttributesOfTheLegacyStreamAreKeptToo) {
    static CUresult copies;
    auto steps = [&] {
        driver().calls.clear();
        copied_from = nullptr;
        for (int step = 0; step < 5; step++) {
            for (int i = 0; i < 12; i++)
                fake::Launch(CU_STREAM_LEGACY, functions_[i], 100 + i);
            fake::Sync(CU_STREAM_LEGACY);
        }
        return driver().calls["cuGraphLaunch"];
    };
    driver().table.cuStreamCopyAttributes = [](CUstream, CUstream from) {
        copied_from = from;
        return copies;
    };
    copies = CUDA_SUCCESS;
    EXPECT_GT(steps(), 0);
    EXPECT_EQ(copied_from, nullptr) << "it has none";
    cus_stream_ref legacy = {nullptr, CUS_ABI_LEGACY};
    cus_engine_stream_changed(&legacy);
    EXPECT_GT(steps(), 0);
    EXPECT_EQ(copied_from, CU_STREAM_LEGACY);
    cus_engine_stream_changed(&legacy);
    copies = CUDA_ERROR_INVALID_HANDLE;
    EXPECT_EQ(steps(), 0);
    cus_engine_stream_changed(&legacy); // for the tests behind this one
}

// The driver took the new params and refused them: what the node holds is anybody's guess.
TEST_F(Nodes, GraphWithARefusedNodeIsNotLaunchedAsItIs) {
    static bool refuse;
    static decltype(cus_driver::cuGraphExecKernelNodeSetParams_v2) set_params;
    refuse = true;
    set_params = driver().table.cuGraphExecKernelNodeSetParams_v2;
    driver().table.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec exec, CUgraphNode node,
                                                          const CUDA_KERNEL_NODE_PARAMS *params) {
        set_params(exec, node, params);
        return std::exchange(refuse, false) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    };
    Steps(5, 0);
    Steps(1, 9);
    EXPECT_FALSE(refuse);
    int launches = driver().calls["cuGraphLaunch"];
    Steps(2, 0);
    EXPECT_GT(driver().calls["cuGraphLaunch"], launches);
}

TEST_F(Nodes, GraphsOfCodeThatGoesAreDestroyedFirst) {
    Steps(4);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    ASSERT_GT(built, 0);
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    cus_engine_code_gone();
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], built);
    EXPECT_EQ(driver().calls["cuGraphDestroy"], built);
}

TEST_F(Nodes, GraphsStayWithinTheirBudget) {
    uint64_t before = Counters().graph_bytes;
    for (int phrase = 0; phrase < 60; phrase++) {
        functions_ = fake::MakeFunctions(kOps);
        Steps(4);
        if (HasFatalFailure())
            return;
    }
    EXPECT_LE(Counters().graph_bytes - before, 1u << 20);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_BUDGET], 0u) << "some were dropped";
}

TEST_F(Nodes, FirstTouchOfAFunctionComesBehindWhatOtherThreadsDefer) {
    Steps(4);
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    EXPECT_TRUE(driver().journal.empty());
    fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), fake::MakeFunction("fresh"), 1, 2);
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
}

// The last one: it holds for the rest of the process.
TEST_F(Nodes, NothingIsDeferredOnceReferencesAreUsed) {
    EXPECT_TRUE(Deferred([&] { return Launch(11); }));
    cus_engine_taint(nullptr);
    EXPECT_FALSE(Deferred([&] { return Launch(11); }));
    cus_engine_code_gone(); // of some other module
    int launches = driver().calls["cuGraphLaunch"];
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], launches);
}

} // namespace
