// Promise: a node of a memset or a copy is patched to what its op says, and only if it is described
// as the op was. Swapped and disabled nodes are the ones that were meant.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

extern "C" {
#include "shim/graph/exec.h"
}

namespace {

const uint64_t kWide = (1ull << 33) + 5;

// What the driver says of a node, and what it was given last. Node n is handle n + 1.
struct Driver {
    size_t n_nodes;
    CUDA_MEMSET_NODE_PARAMS memset, memset_given;
    CUDA_MEMCPY3D copy, copy_given;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUresult reads, patches;
    CUcontext context;
    CUgraphNode patched; // or switched; null: none
    unsigned on;
} driver;

CUresult Add() {
    driver.n_nodes++;
    return CUDA_SUCCESS;
}

CUresult Patched(CUgraphNode node, CUcontext context) {
    driver.patched = node;
    driver.context = context;
    return driver.patches;
}

cus_driver MakeDriver() {
    cus_driver t = {};
    t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *) { return CUDA_SUCCESS; };
    t.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) { return CUDA_SUCCESS; };
    t.cuStreamEndCapture = [](CUstream, CUgraph *graph) {
        *graph = reinterpret_cast<CUgraph>(0x6000);
        return CUDA_SUCCESS;
    };
    t.cuStreamGetCaptureInfo_v3 = [](CUstream, CUstreamCaptureStatus *status, cuuint64_t *,
                                     CUgraph *, const CUgraphNode **deps, const CUgraphEdgeData **,
                                     size_t *n) {
        static CUgraphNode last;
        last = reinterpret_cast<CUgraphNode>(driver.n_nodes);
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        *deps = &last;
        *n = 1;
        return CUDA_SUCCESS;
    };
    t.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **, void **) { return Add(); };
    t.cuMemsetD8Async = [](CUdeviceptr, unsigned char, size_t, CUstream) { return Add(); };
    t.cuMemsetD16Async = [](CUdeviceptr, unsigned short, size_t, CUstream) { return Add(); };
    t.cuMemsetD32Async = [](CUdeviceptr, unsigned, size_t, CUstream) { return Add(); };
    t.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr, CUdeviceptr, size_t, CUstream) { return Add(); };
    t.cuEventRecordWithFlags = [](CUevent, CUstream, unsigned) { return Add(); };
    t.cuGraphInstantiateWithFlags = [](CUgraphExec *exec, CUgraph, unsigned long long) {
        *exec = reinterpret_cast<CUgraphExec>(0x7000);
        return CUDA_SUCCESS;
    };
    t.cuGraphExecDestroy = [](CUgraphExec) { return CUDA_SUCCESS; };
    t.cuGraphDestroy = [](CUgraph) { return CUDA_SUCCESS; };
    t.cuGraphMemsetNodeGetParams = [](CUgraphNode, CUDA_MEMSET_NODE_PARAMS *params) {
        *params = driver.memset;
        return driver.reads;
    };
    t.cuGraphMemcpyNodeGetParams = [](CUgraphNode, CUDA_MEMCPY3D *params) {
        *params = driver.copy;
        return driver.reads;
    };
    t.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode, CUDA_KERNEL_NODE_PARAMS *params) {
        *params = driver.kernel;
        return driver.reads;
    };
    t.cuGraphExecMemsetNodeSetParams = [](CUgraphExec, CUgraphNode node,
                                          const CUDA_MEMSET_NODE_PARAMS *params,
                                          CUcontext context) {
        driver.memset_given = *params;
        return Patched(node, context);
    };
    t.cuGraphExecMemcpyNodeSetParams = [](CUgraphExec, CUgraphNode node,
                                          const CUDA_MEMCPY3D *params, CUcontext context) {
        driver.copy_given = *params;
        return Patched(node, context);
    };
    t.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec, CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS *) {
        return Patched(node, nullptr);
    };
    t.cuGraphNodeGetEnabled = [](CUgraphExec, CUgraphNode node, unsigned *on) {
        driver.patched = node;
        *on = driver.on;
        return driver.reads;
    };
    t.cuGraphNodeSetEnabled = [](CUgraphExec, CUgraphNode node, unsigned on) {
        driver.patched = node;
        driver.on = on;
        return driver.patches;
    };
    return t;
}

struct Op {
    cus_kind kind = {};
    bool absent = false;
    std::vector<uint64_t> words = std::vector<uint64_t>(16);
    cus_values *values() { return reinterpret_cast<cus_values *>(words.data()); }
    void Width(uint64_t width) {
        values()->dims[0] = (uint32_t)width;
        values()->dims[1] = (uint32_t)(width >> 32);
    }
    template <typename T> void Params(const T &params) {
        memcpy(values()->params, &params, sizeof params);
    }
};

class ExecOps : public ::testing::Test {
  protected:
    void SetUp() override { driver = {}; }
    void TearDown() override { Destroy(); }
    void Destroy() {
        if (exec_)
            cus_exec_destroy(&table_, exec_);
        exec_ = nullptr;
        driver.n_nodes = 0;
    }
    static Op Kernel() {
        static const cus_layout none = {};
        Op op;
        op.kind.type = CUS_OP_LAUNCH;
        op.kind.layout = &none;
        return op;
    }
    static Op Memset(unsigned elem, uint64_t dst, uint64_t width, uint32_t value,
                     uint32_t height = 1, uint64_t pitch = 0) {
        Op op;
        op.kind.type = CUS_OP_MEMSET;
        op.kind.elem = (uint8_t)elem;
        op.Width(width);
        op.Params(cus_memset_params{dst, pitch, value, height});
        return op;
    }
    static Op Copy(uint64_t dst, uint64_t src, uint64_t bytes) {
        Op op;
        op.kind.type = CUS_OP_COPY;
        op.kind.copy_form = CUS_COPY_DTOD;
        op.Width(bytes);
        op.Params(cus_copy_params{dst, src});
        return op;
    }
    // The driver says that the node is this.
    static void NodeIs(unsigned elem, uint64_t dst, uint64_t width, uint32_t height = 1,
                       uint64_t pitch = 0) {
        driver.memset = {};
        driver.memset.elementSize = elem;
        driver.memset.dst = dst;
        driver.memset.width = width;
        driver.memset.height = height;
        driver.memset.pitch = pitch;
    }
    static void NodeIs(CUmemorytype to, uint64_t dst, CUmemorytype from, uint64_t src,
                       uint64_t bytes) {
        driver.copy = {};
        driver.copy.dstMemoryType = to;
        driver.copy.srcMemoryType = from;
        if (to == CU_MEMORYTYPE_HOST)
            driver.copy.dstHost = reinterpret_cast<void *>(dst);
        else
            driver.copy.dstDevice = dst;
        if (from == CU_MEMORYTYPE_HOST)
            driver.copy.srcHost = reinterpret_cast<void *>(src);
        else
            driver.copy.srcDevice = src;
        driver.copy.WidthInBytes = bytes;
        driver.copy.Height = driver.copy.Depth = 1;
    }
    void Build(std::vector<Op *> list) {
        Destroy();
        std::vector<cus_exec_op> ops;
        for (Op *op : list)
            ops.push_back({&op->kind, op->values(), op->absent});
        cus_fallback why;
        ASSERT_TRUE(cus_exec_build(&table_, cus_exec_target{nullptr, nullptr}, ops.data(),
                                   (uint32_t)ops.size(), nullptr, &exec_, &why));
    }
    CUresult Patch(uint32_t i, Op &op) {
        driver.patched = nullptr;
        return cus_exec_patch(&table_, reinterpret_cast<CUcontext>(0x4000), exec_, i, &op.kind,
                              op.values());
    }
    // Is a node of `asked` that is as the driver says patched?
    bool IsPatched(Op asked) {
        Build({&asked});
        CUresult result = Patch(0, asked);
        EXPECT_EQ(result, driver.patched ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
        return result == CUDA_SUCCESS;
    }

    cus_driver table_ = MakeDriver();
    cus_exec *exec_ = nullptr;
};

TEST_F(ExecOps, AMemsetIsPatchedToItsAddressWidthAndValue) {
    const struct { unsigned elem, value; } cases[] = {{1, 0x04}, {2, 0x0304}, {4, 0x01020304}};
    for (const auto &c : cases) {
        SCOPED_TRACE(c.elem);
        Op op = Memset(c.elem, 1000, 7, 9);
        NodeIs(c.elem, 1000, 7);
        Build({&op});
        Op now = Memset(c.elem, 2000, kWide, 0x01020304);
        ASSERT_EQ(Patch(0, now), CUDA_SUCCESS);
        EXPECT_EQ(driver.memset_given.dst, 2000u);
        EXPECT_EQ(driver.memset_given.width, kWide);
        EXPECT_EQ(driver.memset_given.value, c.value);
        EXPECT_EQ(driver.memset_given.elementSize, c.elem);
        EXPECT_EQ(driver.memset_given.height, 1u);
        EXPECT_EQ(driver.context, reinterpret_cast<CUcontext>(0x4000));
    }
}

TEST_F(ExecOps, AMemsetThatItsNodeDescribesInAnotherWayIsNotPatched) {
    NodeIs(2, 1000, kWide, 3, 64);
    EXPECT_TRUE(IsPatched(Memset(2, 1000, kWide, 0, 3, 64)));
    EXPECT_FALSE(IsPatched(Memset(4, 1000, kWide, 0, 3, 64)));
    EXPECT_FALSE(IsPatched(Memset(2, 1001, kWide, 0, 3, 64)));
    EXPECT_FALSE(IsPatched(Memset(2, 1000, kWide + 1, 0, 3, 64)));
    EXPECT_FALSE(IsPatched(Memset(2, 1000, 5, 0, 3, 64))) << "the upper half of the width";
    EXPECT_FALSE(IsPatched(Memset(2, 1000, kWide, 0, 2, 64)));
    EXPECT_FALSE(IsPatched(Memset(2, 1000, kWide, 0, 3, 65)));
    NodeIs(2, 1000, kWide, 2, 64);
    EXPECT_FALSE(IsPatched(Memset(2, 1000, kWide, 0, 2, 65)));
    NodeIs(2, 1000, kWide, 1, 64);
    EXPECT_TRUE(IsPatched(Memset(2, 1000, kWide, 0, 1, 65))) << "the pitch of one row";
}

TEST_F(ExecOps, ACopyIsPatchedToItsAddressesAndBytes) {
    for (CUmemorytype to : {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST})
        for (CUmemorytype from : {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST}) {
            Op op = Copy(1000, 2000, 7), now = Copy(3000, 4000, kWide);
            NodeIs(to, 1000, from, 2000, 7);
            Build({&op});
            ASSERT_EQ(Patch(0, now), CUDA_SUCCESS);
            NodeIs(to, 3000, from, 4000, kWide);
            EXPECT_EQ(memcmp(&driver.copy_given, &driver.copy, sizeof driver.copy), 0);
            EXPECT_EQ(driver.context, reinterpret_cast<CUcontext>(0x4000));
        }
}

TEST_F(ExecOps, ACopyThatItsNodeDescribesInAnotherWayIsNotPatched) {
    for (CUmemorytype type : {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST}) {
        NodeIs(type, 1000, type, 2000, kWide);
        EXPECT_TRUE(IsPatched(Copy(1000, 2000, kWide)));
        EXPECT_FALSE(IsPatched(Copy(1001, 2000, kWide)));
        EXPECT_FALSE(IsPatched(Copy(1000, 2001, kWide)));
        EXPECT_FALSE(IsPatched(Copy(1000, 2000, kWide + 1)));
        EXPECT_FALSE(IsPatched(Copy(1000, 2000, 5)));
    }
    const std::function<void(CUDA_MEMCPY3D *)> others[] = {
        [](CUDA_MEMCPY3D *copy) { copy->Height = 2; },
        [](CUDA_MEMCPY3D *copy) { copy->Depth = 2; },
        [](CUDA_MEMCPY3D *copy) { copy->srcXInBytes = 8; },
        [](CUDA_MEMCPY3D *copy) { copy->dstXInBytes = 8; },
        [](CUDA_MEMCPY3D *copy) { copy->srcMemoryType = CU_MEMORYTYPE_ARRAY; },
        [](CUDA_MEMCPY3D *copy) { copy->dstMemoryType = CU_MEMORYTYPE_ARRAY; },
    };
    for (const auto &change : others) {
        NodeIs(CU_MEMORYTYPE_DEVICE, 1000, CU_MEMORYTYPE_DEVICE, 2000, 64);
        change(&driver.copy);
        EXPECT_FALSE(IsPatched(Copy(1000, 2000, 64)));
    }
}

TEST_F(ExecOps, ANodeThatCannotBeReadIsNotPatched) {
    driver.reads = CUDA_ERROR_UNKNOWN;
    NodeIs(1, 1000, 7);
    EXPECT_FALSE(IsPatched(Memset(1, 1000, 7, 0)));
    NodeIs(CU_MEMORYTYPE_DEVICE, 1000, CU_MEMORYTYPE_DEVICE, 2000, 7);
    EXPECT_FALSE(IsPatched(Copy(1000, 2000, 7)));
}

TEST_F(ExecOps, WhatTheDriverAnswersToAPatchIsTheAnswer) {
    Op memset = Memset(1, 1000, 7, 0), copy = Copy(1000, 2000, 7), kernel = Kernel();
    NodeIs(1, 1000, 7);
    NodeIs(CU_MEMORYTYPE_DEVICE, 1000, CU_MEMORYTYPE_DEVICE, 2000, 7);
    Build({&memset, &copy, &kernel});
    driver.patches = CUDA_ERROR_NOT_READY;
    EXPECT_EQ(Patch(0, memset), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(Patch(1, copy), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(Patch(2, kernel), CUDA_ERROR_NOT_READY);
}

TEST_F(ExecOps, SwappedNodesAreThoseOfTheOtherOps) {
    Op first = Kernel(), memset = Memset(1, 1000, 7, 0), copy = Copy(1000, 2000, 7),
       last = Kernel();
    NodeIs(1, 1000, 7);
    NodeIs(CU_MEMORYTYPE_DEVICE, 1000, CU_MEMORYTYPE_DEVICE, 2000, 7);
    Build({&first, &memset, &copy, &last});
    EXPECT_EQ(Patch(1, memset), CUDA_SUCCESS); // it is read, the copy is not
    cus_exec_swap(exec_, 1);
    EXPECT_TRUE(cus_exec_is_read(exec_, 2));
    EXPECT_FALSE(cus_exec_is_read(exec_, 1));
    Op *const now[] = {&first, &copy, &memset, &last};
    const uintptr_t nodes[] = {1, 3, 2, 4};
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(Patch(i, *now[i]), CUDA_SUCCESS) << i;
        EXPECT_EQ(driver.patched, reinterpret_cast<CUgraphNode>(nodes[i])) << i;
    }
}

TEST_F(ExecOps, ANodeIsSwitchedOffAndOn) {
    Op first = Kernel(), absent = Kernel(), last = Kernel();
    absent.absent = true;
    Build({&first, &absent, &last});
    for (bool on : {false, true}) {
        EXPECT_TRUE(cus_exec_enable(&table_, exec_, 2, on));
        EXPECT_EQ(driver.patched, reinterpret_cast<CUgraphNode>(2));
        EXPECT_EQ(driver.on, on);
        driver.patched = nullptr;
        EXPECT_EQ(cus_exec_enabled(&table_, exec_, 2), on);
        EXPECT_EQ(driver.patched, reinterpret_cast<CUgraphNode>(2));
    }
    driver.patched = nullptr;
    EXPECT_FALSE(cus_exec_enabled(&table_, exec_, 1));
    EXPECT_FALSE(cus_exec_enable(&table_, exec_, 1, true));
    EXPECT_EQ(driver.patched, nullptr) << "it has no node";
    driver.reads = driver.patches = CUDA_ERROR_UNKNOWN;
    EXPECT_FALSE(cus_exec_enabled(&table_, exec_, 2));
    EXPECT_FALSE(cus_exec_enable(&table_, exec_, 2, true));
    table_.cuGraphNodeGetEnabled = nullptr;
    table_.cuGraphNodeSetEnabled = nullptr;
    EXPECT_FALSE(cus_exec_enabled(&table_, exec_, 2));
    EXPECT_FALSE(cus_exec_enable(&table_, exec_, 2, true));
}

} // namespace
