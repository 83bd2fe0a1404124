// Promise: a 2-D memset becomes a node, whose address and value are patched. Its width, height and
// pitch are never. What the driver refuses, or may refuse, is the program's own call.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/nodes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>

namespace {

// ---- the driver ----

struct Extent {
    size_t elem, pitch, height;
};
std::map<CUfunction, Extent> extents;
int patched, refused; // nodes

std::string Name(size_t elem, size_t pitch, size_t height) {
    return "rows" + std::to_string(elem) + "_" + std::to_string(height) + "x" +
           std::to_string(pitch);
}

// Stands for the memsets of these extents in the journal.
CUfunction RowsFunction(size_t elem, size_t pitch, size_t height) {
    static std::map<std::string, CUfunction> functions;
    CUfunction &f = functions[Name(elem, pitch, height)];
    if (!f) {
        f = fake::MakeFunction(Name(elem, pitch, height));
        extents[f] = {elem, pitch, height};
    }
    return f;
}

CUresult Rows8(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
               CUstream stream) {
    return fake::AsLaunch(RowsFunction(1, pitch, height), width, dst, value, stream);
}
CUresult Rows16(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
                CUstream stream) {
    return fake::AsLaunch(RowsFunction(2, pitch, height), width, dst, value, stream);
}
CUresult Rows32(CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height,
                CUstream stream) {
    return fake::AsLaunch(RowsFunction(4, pitch, height), width, dst, value, stream);
}

// As driver 580, but for memsets of one dimension, of which it says what the test `tells`.
size_t told_pitch;
CUresult GetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params) {
    const auto *node = reinterpret_cast<const fake::Node *>(handle);
    Extent extent = extents.count(node->f) ? extents[node->f] : Extent{1, 0, 1};
    *params = {};
    memcpy(&params->dst, node->params.data(), 8);
    params->elementSize = (unsigned)extent.elem;
    params->width = node->dims[0];
    params->height = extent.height;
    params->pitch = told_pitch ? told_pitch : extent.pitch;
    return CUDA_SUCCESS;
}

CUresult SetParams(CUgraphExec exec, CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS *params,
                   CUcontext) {
    const auto *node = reinterpret_cast<const fake::Node *>(handle);
    if (!extents.count(node->f))
        return AsNode(exec, handle, fake::FillFunction(), params->width, params->dst,
                      params->value);
    Extent extent = extents[node->f];
    patched++;
    if (params->width != node->dims[0] || params->height != extent.height ||
        params->pitch != extent.pitch || params->elementSize != extent.elem) {
        refused++;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return AsNode(exec, handle, node->f, params->width, params->dst, params->value);
}

class Rows : public Nodes {
  protected:
    static void SetUpTestSuite() {
        std::string path = ::testing::TempDir() + "rows.conf";
        std::ofstream(path) << "[rules]\neager = api:cuMemsetD2D16Async\n"
                               "never_defer = api:cuMemsetD2D32Async_ptsz\n"
                               "eager = api:cuMemsetD8Async_ptsz\n";
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"},
                                       {"CUSPLICE_SEGMENT_MAX", "4"},
                                       {"CUSPLICE_CONFIG", path}}));
    }

    void SetUp() override {
        Nodes::SetUp();
        cus_driver &t = driver().table;
        t.cuMemsetD2D8Async = Rows8;
        t.cuMemsetD2D16Async = Rows16;
        t.cuMemsetD2D32Async = Rows32;
        t.cuGraphMemsetNodeGetParams = GetParams;
        t.cuGraphExecMemsetNodeSetParams = SetParams;
        patched = refused = 0;
        told_pitch = 0;
    }

    CUresult Fill(uint64_t dst, size_t pitch, size_t width, size_t height, uint32_t value = 7,
                  uint32_t elem = 1, cus_abi abi = CUS_ABI_LEGACY) {
        cus_memset memset = {};
        memset.stream = {stream_, abi};
        memset.dst = dst;
        memset.pitch = pitch;
        memset.value = value;
        memset.elem = elem;
        memset.width = width;
        memset.height = height;
        memset.two_d = true;
        memset.real = elem == 1 ? (void *)Rows8 : elem == 2 ? (void *)Rows16 : (void *)Rows32;
        return cus_engine_memset(&memset);
    }

    // A step with this memset in its midst, which does what was asked for. True: it was deferred.
    bool StepWith(uint64_t dst, size_t pitch, size_t width, size_t height, uint32_t value = 7,
                  uint32_t elem = 1) {
        driver().journal.clear();
        for (int i = 0; i < 4; i++)
            Launch(i);
        EXPECT_EQ(Fill(dst, pitch, width, height, value, elem), CUDA_SUCCESS);
        bool deferred = driver().journal.size() < 5;
        for (int i = 4; i < 8; i++)
            Launch(i);
        Sync();
        EXPECT_EQ(driver().journal.size(), 9u);
        if (driver().journal.size() == 9) {
            EXPECT_EQ(driver().journal[4],
                      Line(Name(elem, pitch, height), dst, value, (unsigned)width));
        }
        return deferred;
    }
    void Teach(uint64_t dst, size_t pitch, size_t width, size_t height) {
        for (int step = 0; step < 12; step++)
            StepWith(dst, pitch, width, height);
        EXPECT_TRUE(StepWith(dst, pitch, width, height));
    }
};

// ---- nodes ----

TEST_F(Rows, AddressAndValueArePatched) {
    for (uint32_t elem : {1u, 4u}) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        patched = 0;
        bool deferred = false;
        for (unsigned step = 0; step < 24; step++)
            deferred = StepWith(kDevice + 128 * (step % 7), 64, 8, 4, step, elem);
        EXPECT_TRUE(deferred);
        EXPECT_GT(patched, 4);
    }
    EXPECT_EQ(refused, 0);
    fake::ExpectBalance();
}

// Also once memory may have gone, when what a node holds counts as unknown.
TEST_F(Rows, NodeIsSetAnewOnceMemoryMayHaveGone) {
    Teach(kDevice, 64, 8, 4);
    cus_engine_memory_gone();
    patched = 0;
    EXPECT_TRUE(StepWith(kDevice, 64, 8, 4));
    EXPECT_EQ(patched, 1);
    EXPECT_EQ(refused, 0);
}

TEST_F(Rows, NodeIsGivenNoOtherExtents) {
    const std::tuple<size_t, size_t, size_t> others[] = {
        {128, 8, 4}, {64, 9, 4}, {64, 8, 5}, {64, 8, 1}, {4096, 8, 1}};
    Teach(kDevice, 64, 8, 4);
    for (const auto &[pitch, width, height] : others) {
        EXPECT_TRUE(StepWith(kDevice, 64, 8, 4));
        StepWith(kDevice, pitch, width, height, 9);
        StepWith(kDevice + 16, 64, 8, 4, 10);
    }
    EXPECT_EQ(refused, 0);
    fake::ExpectBalance();
}

// A memset of one row is none of one dimension, nor the other way round. Also on the hot path.
TEST_F(Rows, OneRowIsAKindOfItsOwn) {
    Teach(kDevice, 64, 8, 1);
    for (int i = 0; i < 4; i++)
        Launch(i);
    EXPECT_FALSE(hot_memset(kDevice, 7, 1, 8, stream_, CUS_ABI_LEGACY));
    Sync();
    for (int step = 0; step < 12; step++) {
        driver().journal.clear();
        Launch(0);
        Memset(kDevice, 8, 1);
        for (int i = 2; i < 9; i++)
            Launch(i);
        Sync();
    }
    EXPECT_EQ(driver().journal[1], Line("fill", kDevice, 7, 8));
    driver().journal.clear();
    Launch(0);
    EXPECT_EQ(Fill(kDevice, 64, 8, 1), CUDA_SUCCESS);
    Sync();
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[1], Line(Name(1, 64, 1), kDevice, 7, 8));
}

// Extents are a part of what other processes know a kind by; its object is none.
TEST_F(Rows, KindIsKnownElsewhereByItsExtents) {
    auto known = [&](size_t pitch, size_t width, size_t height) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        for (int step = 0; step < 12; step++) {
            Launch(0);
            Fill(kDevice, pitch, width, height);
            for (int i = 2; i < 9; i++)
                Launch(i);
            Sync();
        }
        Launch(0);
        uint64_t expected = last_engine_expects();
        Fill(kDevice, pitch, width, height);
        Sync();
        return expected;
    };
    std::set<uint64_t> all = {known(64, 8, 4), known(128, 8, 4), known(64, 9, 4), known(64, 8, 5)};
    EXPECT_EQ(all.size(), 4u);
    cus_engine_code_gone();
    EXPECT_EQ(all.count(known(64, 8, 4)), 1u);
}

// A driver that describes the node in another way is not asked to patch it.
TEST_F(Rows, NodeWithAnotherPitchIsNotPatched) {
    Teach(kDevice, 64, 8, 4);
    told_pitch = 32;
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    patched = 0;
    for (unsigned step = 0; step < 24; step++)
        StepWith(kDevice + 128 * (step % 7), 64, 8, 4, step);
    EXPECT_EQ(patched, 0);
    // Of one row the pitch means nothing.
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    told_pitch = 0;
    for (unsigned step = 0; step < 24; step++)
        StepWith(kDevice + 128 * (step % 7), 64, 8, 1, step);
    EXPECT_GT(patched, 4);
}

// What was deferred, and is issued without a graph, is issued as it was asked for.
TEST_F(Rows, WhatIsCutIsIssuedAsItIs) {
    for (uint32_t elem : {1u, 4u}) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        for (int step = 0; step < 12; step++)
            StepWith(kDevice, 64, 8, 4, 7, elem);
        driver().journal.clear();
        for (int i = 0; i < 4; i++)
            Launch(i);
        EXPECT_EQ(Fill(kDevice + 32, 64, 8, 4, 9, elem), CUDA_SUCCESS);
        EXPECT_EQ(driver().journal.size(), 4u);
        Sync();
        ASSERT_EQ(driver().journal.size(), 5u);
        EXPECT_EQ(driver().journal[4], Line(Name(elem, 64, 4), kDevice + 32, 9, 8));
    }
}

// ---- which memsets ----

TEST_F(Rows, WhatTheDriverMayRefuseIsNoOp) {
    const uint64_t last = kDevice + 0x1000;
    auto deferred = [&](uint64_t dst, size_t pitch, size_t width, size_t height,
                        uint32_t elem = 1) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        return Deferred([&] { return Fill(dst, pitch, width, height, 7, elem); });
    };
    EXPECT_TRUE(deferred(kDevice, 32, 32, 4)) << "rows may touch";
    EXPECT_FALSE(deferred(kDevice, 31, 32, 4)) << "and not overlap";
    EXPECT_FALSE(deferred(kDevice, 31, 32, 1));
    EXPECT_FALSE(deferred(kDevice, 31, 8, 4, 4)) << "rows of 32 bytes";
    EXPECT_FALSE(deferred(kDevice, 34, 8, 4, 4)) << "a row would not be aligned";
    EXPECT_FALSE(deferred(kDevice + 2, 32, 8, 4, 4));
    EXPECT_TRUE(deferred(last - 3 * 64 - 32, 64, 32, 4)) << "the last row ends with the memory";
    EXPECT_FALSE(deferred(last - 3 * 64 - 31, 64, 32, 4));
    EXPECT_FALSE(deferred(last - 3 * 64 - 28, 64, 8, 4, 4));
    EXPECT_FALSE(deferred(kPinned, 64, 32, 4));
    EXPECT_FALSE(deferred(kManaged, 64, 32, 4));
    EXPECT_TRUE(deferred(kVirtual, 0x1000, 0x1000, 2));
    EXPECT_FALSE(deferred(kVirtual, 0x1000, 1, 3));
    // Extents whose products do not fit 64 bits, nor a height 32.
    const size_t high = (size_t)1 << 63;
    EXPECT_FALSE(deferred(kDevice, high, 1, 3));
    EXPECT_FALSE(deferred(kDevice, SIZE_MAX, 16, 2));
    EXPECT_FALSE(deferred(kDevice, SIZE_MAX - 3, high / 2 + 4, 2, 4));
    EXPECT_FALSE(deferred(kDevice, 1, 1, ((size_t)1 << 32) + 1));
    driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids, void **values,
                                               CUdeviceptr address) {
        CUresult result = PointerGetAttributes(n, ids, values, address);
        for (unsigned i = 0; i < n; i++)
            if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
                *(size_t *)values[i] = (size_t)1 << 33;
        return result;
    };
    cus_engine_memory_gone();
    EXPECT_TRUE(deferred(kDevice, 1, 1, ((size_t)1 << 32) - 1));
    EXPECT_FALSE(deferred(kDevice, 1, 1, ((size_t)1 << 32) + 1))
        << "though it lies in known memory";
    cus_engine_memory_gone();
}

// Extents that never come again fill no table. Those that are known stay ops.
TEST_F(Rows, TooManyExtentsStayEager) {
    enum { MANY = 400, MOST = 256 };
    cus_engine_code_gone(); // kinds of other tests
    Teach(kDevice, 64, 8, 4);
    for (size_t width = 1; width <= MANY; width++)
        Fill(kDevice, 512, width, 2);
    Sync();
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_TRUE(Deferred([&] { return Fill(kDevice, 512, MOST - 1, 2); }));
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_FALSE(Deferred([&] { return Fill(kDevice, 512, MOST, 2); }));
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Teach(kDevice, 64, 8, 4);
    cus_engine_code_gone();
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_TRUE(Deferred([&] { return Fill(kDevice, 512, MOST, 2); })) << "none is left";
}

TEST_F(Rows, RulesNameTheirCalls) {
    uint64_t before = Counters().eager_by[CUS_EAGER_RULE];
    EXPECT_FALSE(Deferred([&] { return Fill(kDevice, 64, 8, 4, 7, 2); }));
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_RULE] - before, 8u);
    // One that may wait for what other threads defer comes behind everything.
    for (cus_abi abi : {CUS_ABI_LEGACY, CUS_ABI_PTSZ}) {
        Steps(4);
        driver().journal.clear();
        std::thread([&] { Launch(0); }).join();
        CUstream mine = stream_;
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        EXPECT_EQ(Fill(kDevice, 64, 8, 4, 7, 4, abi), CUDA_SUCCESS);
        stream_ = mine;
        EXPECT_EQ(driver().journal.size(), abi == CUS_ABI_PTSZ ? 2u : 1u);
        Sync();
    }
}

// The first of the calls that rules may name.
TEST_F(Rows, AMemsetOfBytesHasARuleToo) {
    auto bytes = [&](cus_abi abi) {
        cus_memset memset = fake::FillCall(stream_, abi, kDevice);
        return Deferred([&] { return cus_engine_memset(&memset); });
    };
    EXPECT_TRUE(bytes(CUS_ABI_LEGACY));
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_FALSE(bytes(CUS_ABI_PTSZ));
}

} // namespace
