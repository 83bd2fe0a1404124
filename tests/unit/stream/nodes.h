// Shared code of nodes_test and graphs_test. A table of ranges stands for memory. The journal shows
// copies and memsets as kernels "copy" (bytes, to, from) and "fill" (elements, to, value).
#ifndef CUSPLICE_TESTS_UNIT_STREAM_NODES_H
#define CUSPLICE_TESTS_UNIT_STREAM_NODES_H

#include "tests/unit/stream/pointers.h"
#include "tests/unit/stream/program.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using fake::Counters;
using fake::driver;

struct Range {
    uint64_t start;
    size_t bytes;
    CUmemorytype type;
    bool managed;
    unsigned access; // of a mapping in the reservation; 0: not mapped
};

inline const Range kRanges[] = {
    {0x10000, 0x1000, CU_MEMORYTYPE_DEVICE, false, 0}, // device
    {0x20000, 0x1000, CU_MEMORYTYPE_HOST, false, 0},   // pinned
    {0x30000, 0x1000, CU_MEMORYTYPE_HOST, false, 0},   // pinned
    {0x40000, 0x1000, CU_MEMORYTYPE_DEVICE, true, 0},  // managed
    {0x50000, 0x1000, CU_MEMORYTYPE_DEVICE, false, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE},
    {0x51000, 0x1000, CU_MEMORYTYPE_DEVICE, false, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE},
    {0x52000, 0x1000, CU_MEMORYTYPE_DEVICE, false, 0}, // reserved only
    {0x53000, 0x1000, CU_MEMORYTYPE_DEVICE, false, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ},
};
inline const Range kReservation = {0x50000, 0x8000, CU_MEMORYTYPE_DEVICE, false, 0};
inline const uint64_t kDevice = 0x10000, kPinned = 0x20000, kOtherPinned = 0x30000,
                      kManaged = 0x40000, kVirtual = 0x50000, kUnmapped = 0x52000,
                      kReadOnly = 0x53000, kPageable = 0x90000;

inline CUresult PointerGetAttributes(unsigned n, CUpointer_attribute *ids, void **values,
                                     CUdeviceptr address) {
    for (const Range &range : kRanges) {
        if (address < range.start || address >= range.start + range.bytes)
            continue;
        bool is_virtual = address - kReservation.start < kReservation.bytes;
        const Range &whole = is_virtual ? kReservation : range;
        fake::Pointer pointer;
        pointer.start = whole.start;
        pointer.size = whole.bytes;
        pointer.type = range.type;
        pointer.managed = range.managed;
        pointer.context = is_virtual ? nullptr : pointer.context;
        pointer.mapped = !is_virtual || range.access;
        pointer.access = range.access;
        pointer.base = range.start;
        pointer.bytes = range.bytes;
        fake::Answer(pointer, n, ids, values);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

inline CUresult AsNode(CUgraphExec exec, CUgraphNode node, CUfunction f, size_t size, uint64_t a,
                       uint32_t b) {
    void *params[2] = {&a, &b};
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    kernel.func = f;
    kernel.gridDimX = (unsigned)size;
    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = params;
    return driver().table.cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
}

inline CUresult Fill16(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream) {
    return fake::AsLaunch(fake::FillFunction(), n, dst, value, stream);
}
inline CUresult Fill32(CUdeviceptr dst, unsigned value, size_t n, CUstream stream) {
    return fake::AsLaunch(fake::FillFunction(), n, dst, value, stream);
}
inline CUresult CopyIn(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    return fake::AsLaunch(fake::CopyFunction(), bytes, dst, (uint32_t)(uintptr_t)src, stream);
}
// Of calls and libraries that the other tests have nothing to do with.
inline const char *const kRules =
    "[rules]\neager = lib:libeager*\nnever_defer = lib:libspin.so\n"
    "eager = api:cuMemcpyDtoDAsync\ngraph = api:cuMemsetD16Async_ptsz\n"
    "eager = api:cuMemsetD16Async\nnever_defer = api:cuMemcpyHtoD*\n"
    "never_defer = api:cuMemsetD32Async\n";

class Nodes : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        std::string path = ::testing::TempDir() + "nodes.conf";
        std::ofstream(path) << kRules;
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine(
            {{"CUSPLICE_HOLD_US", "1000000"}, // the watchdog has a test of its own
             {"CUSPLICE_SEGMENT_MAX", "4"},   // the same segments at any pace of the host
             {"CUSPLICE_GRAPH_MB", "1"},
             {"CUSPLICE_CONFIG", path}}));
    }

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

    // `n`: so many attributes of this id.
    CUresult LaunchWith(int i, CUlaunchAttributeID id, bool attributes = true, unsigned n = 1) {
        std::vector<CUlaunchAttribute> all(n);
        for (CUlaunchAttribute &each : all)
            each.id = id;
        return LaunchWith(i, all, attributes);
    }
    CUresult LaunchWith(int i, std::vector<CUlaunchAttribute> all, bool attributes = true) {
        uint64_t a = 1;
        uint32_t b = 2;
        void *params[2] = {&a, &b};
        CUlaunchConfig config = {};
        config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY =
            config.blockDimZ = 1;
        config.hStream = stream_;
        config.attrs = attributes ? all.data() : nullptr;
        config.numAttrs = (unsigned)all.size();
        cus_launch launch = {};
        launch.form = CUS_LAUNCH_EX;
        launch.stream = {stream_, CUS_ABI_LEGACY};
        launch.f = functions_[i];
        const uint32_t dims[7] = {1, 1, 1, 1, 1, 1, 0};
        memcpy(launch.dims, dims, sizeof dims);
        launch.n_attrs = config.numAttrs;
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

    CUresult Memset(uint64_t dst, size_t width, size_t height, uint32_t elem = 1) {
        cus_memset memset = {};
        memset.stream = {stream_, CUS_ABI_LEGACY};
        memset.dst = dst;
        memset.value = 7;
        memset.elem = elem;
        memset.width = width;
        memset.height = height;
        memset.real = elem == 4 ? (void *)Fill32 : (void *)fake::Fill;
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

#endif
