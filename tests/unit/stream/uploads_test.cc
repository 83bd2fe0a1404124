// Promise: a small copy from pageable memory cuts no segment, and writes what the memory held at
// the call. A copy to pageable memory ends the step.
#include "tests/unit/stream/pointers.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "shim/base/clock.h"

using fake::Counters;
using fake::driver;

namespace {

const uint64_t kDevice = 0x10000, kDeviceBytes = 0x1000;
int access_pageable;
unsigned element; // bytes of the memset nodes

// Device memory; all other is pageable, of which the driver says nothing.
CUresult PointerGetAttributes(unsigned n, CUpointer_attribute *ids, void **values,
                              CUdeviceptr address) {
    fake::Pointer pointer;
    if (address - kDevice < kDeviceBytes) {
        pointer.start = kDevice;
        pointer.size = kDeviceBytes;
    } else {
        pointer.type = 0;
        pointer.ordinal = -2;
        pointer.context = nullptr;
    }
    fake::Answer(pointer, n, ids, values);
    return CUDA_SUCCESS;
}

CUresult DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS ? access_pageable : 0;
    return CUDA_SUCCESS;
}

// What the driver is asked for is in the journal: uploads by the program's own call as `copy`, and
// as memsets (`fill`) of the value.
CUresult RealUpload(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    uint32_t value = 0;
    memcpy(&value, src, bytes < sizeof value ? bytes : sizeof value);
    return fake::AsLaunch(fake::CopyFunction(), bytes, dst, value, stream);
}
CUresult RealDownload(void *, CUdeviceptr src, size_t bytes, CUstream stream) {
    driver().calls["download"]++;
    return fake::AsLaunch(fake::CopyFunction(), bytes, src, 0, stream);
}
CUresult Fill8(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream) {
    return fake::AsLaunch(fake::FillFunction(), n, dst, value, stream);
}
CUresult Fill16(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream) {
    return fake::AsLaunch(fake::FillFunction(), n, dst, value, stream);
}
CUresult Fill32(CUdeviceptr dst, unsigned value, size_t n, CUstream stream) {
    return fake::AsLaunch(fake::FillFunction(), n, dst, value, stream);
}

CUresult MemsetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params) {
    const auto *node = reinterpret_cast<const fake::Node *>(handle);
    *params = {};
    memcpy(&params->dst, node->params.data(), 8);
    params->elementSize = element;
    params->width = node->dims[0];
    params->height = 1;
    return CUDA_SUCCESS;
}

CUresult SetMemset(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,
                   CUcontext) {
    uint64_t a = params->dst;
    uint32_t b = params->value;
    void *pointers[2] = {&a, &b};
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    kernel.func = fake::FillFunction();
    kernel.gridDimX = (unsigned)params->width;
    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = pointers;
    return driver().table.cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
}

class Uploads : public fake::ProgramTest {
  protected:
    virtual int Access() { return 0; }
    void SetUp() override {
        fake::Reset();
        access_pageable = Access();
        cus_driver &t = driver().table;
        t.cuPointerGetAttributes = PointerGetAttributes;
        t.cuDeviceGetAttribute = DeviceGetAttribute;
        t.cuCtxGetDevice = [](CUdevice *device) {
            *device = 0;
            return CUDA_SUCCESS;
        };
        t.cuGraphMemsetNodeGetParams = MemsetParams;
        t.cuGraphExecMemsetNodeSetParams = SetMemset;
        t.cuMemcpyHtoDAsync_v2 = RealUpload;
        t.cuMemcpyDtoHAsync_v2 = RealDownload;
        t.cuMemsetD8Async = Fill8;
        t.cuMemsetD16Async = Fill16;
        t.cuMemsetD32Async = Fill32;
        ASSERT_TRUE(
            fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_SEGMENT_FIRST", "64"}}));
        cus_driver table = t;
        ProgramTest::SetUp();
        t = table;
    }
    void TearDown() override {
        ProgramTest::TearDown();
        fake::EndEngine();
    }

    CUresult Upload(uint64_t dst, const void *src, size_t bytes) {
        cus_copy copy = {};
        copy.form = CUS_COPY_HTOD;
        copy.stream = {stream_, CUS_ABI_LEGACY};
        copy.dst = dst;
        copy.src = reinterpret_cast<uintptr_t>(src);
        copy.bytes = bytes;
        copy.real = reinterpret_cast<void *>(RealUpload);
        return cus_engine_copy(&copy);
    }
    CUresult Download(void *dst, uint64_t src, size_t bytes) {
        cus_copy copy = {};
        copy.form = CUS_COPY_DTOH;
        copy.stream = {stream_, CUS_ABI_LEGACY};
        copy.dst = reinterpret_cast<uintptr_t>(dst);
        copy.src = src;
        copy.bytes = bytes;
        copy.real = reinterpret_cast<void *>(RealDownload);
        return cus_engine_copy(&copy);
    }
    // Launches with an upload of `value` in their midst, whose source is used again at once. True:
    // the upload was deferred with them.
    bool StepWith(uint32_t value, size_t bytes, uint64_t dst = kDevice) {
        uint32_t source[4] = {value, value, value, value};
        element = (unsigned)bytes;
        for (int i = 0; i < 4; i++)
            Launch(i);
        size_t before = driver().journal.size();
        EXPECT_EQ(Upload(dst, source, bytes), CUDA_SUCCESS);
        bool deferred = driver().journal.size() == before;
        memset(source, 0xee, sizeof source);
        for (int i = 4; i < 8; i++)
            Launch(i);
        Sync();
        return deferred;
    }
    std::string Filled(uint32_t value) { return fake::Line(stream_, "fill", kDevice, value); }
};

TEST_F(Uploads, AreReadAtTheCall) {
    for (uint32_t value = 1; value < 12; value++)
        StepWith(value, 4);
    for (uint32_t value : {500u, 0xffffffffu, 0u}) {
        driver().journal.clear();
        uint64_t graphs = Counters().graph_launches;
        EXPECT_TRUE(StepWith(value, 4));
        EXPECT_EQ(Counters().graph_launches, graphs + 1) << "one segment";
        ASSERT_EQ(driver().journal.size(), 9u);
        EXPECT_EQ(driver().journal[4], Filled(value));
    }
    fake::ExpectBalance();
}

TEST_F(Uploads, OfOneAndTwoBytesToo) {
    for (size_t bytes : {1u, 2u}) {
        for (int step = 0; step < 10; step++)
            StepWith(7, bytes);
        driver().journal.clear();
        EXPECT_TRUE(StepWith(0x1234, bytes));
        EXPECT_EQ(driver().journal[4], Filled(bytes == 1 ? 0x34 : 0x1234));
    }
}

// They go out by the program's own call, as before.
TEST_F(Uploads, OfOtherSizesAndToOddPlacesCutTheSegment) {
    for (int step = 0; step < 10; step++) {
        EXPECT_FALSE(StepWith(7, 8));
        EXPECT_FALSE(StepWith(7, 3));
        EXPECT_FALSE(StepWith(7, 4, kDevice + 2)) << "a memset must be aligned";
    }
    static uint32_t pageable;
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int step = 0; step < 10; step++)
        EXPECT_FALSE(StepWith(7, 4, (uintptr_t)&pageable)) << "no device memory";
}

// Nor is the program's memory read, once nothing is deferred.
TEST_F(Uploads, AreNotLookedAtOnceNothingIsDeferred) {
    StepWith(7, 4);
    static int asked;
    asked = 0;
    driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids, void **values,
                                               CUdeviceptr address) {
        asked++;
        return PointerGetAttributes(n, ids, values, address);
    };
    StepWith(7, 4);
    EXPECT_GT(asked, 0);
    cus_engine_defer_off("a test");
    asked = 0;
    StepWith(7, 4);
    EXPECT_EQ(asked, 0);
}

// What was deferred is issued as the memset that it is.
TEST_F(Uploads, AreFlushedWithTheirValue) {
    for (uint32_t value = 1; value < 12; value++)
        StepWith(value, 4);
    uint32_t source = 77;
    for (int i = 0; i < 4; i++)
        Launch(i);
    Upload(kDevice, &source, 4);
    source = 78;
    driver().journal.clear();
    cus_engine_flush(CUS_SCOPE_P, nullptr, CUS_CAUSE_UNKNOWN_API);
    ASSERT_EQ(driver().journal.size(), 5u);
    EXPECT_EQ(driver().journal[4], Filled(77));
    fake::ExpectBalance();
}

// The host reads what came back: a step is what lies between two such copies.
TEST_F(Uploads, ACopyToPageableMemoryEndsTheStep) {
    uint32_t back;
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < 8; i++)
            Launch(i);
        EXPECT_EQ(Download(&back, kDevice, 4), CUDA_SUCCESS);
    }
    EXPECT_EQ(Counters().steps, 12u);
    EXPECT_EQ(driver().calls["download"], 12);
    EXPECT_GT(Counters().in_graphs, 12u * 8 / 3);
    fake::ExpectBalance();
}

// The driver judges them; nothing is read in its place.
TEST_F(Uploads, FromNowhereAreLeftToTheDriver) {
    cus_copy copy = {};
    copy.form = CUS_COPY_HTOD;
    copy.stream = {stream_, CUS_ABI_LEGACY};
    copy.dst = kDevice;
    copy.bytes = 4;
    decltype(cus_driver::cuMemcpyHtoDAsync_v2) real =
        [](CUdeviceptr, const void *, size_t, CUstream) { return CUDA_ERROR_INVALID_VALUE; };
    copy.real = reinterpret_cast<void *>(real);
    Launch(0);
    EXPECT_EQ(cus_engine_copy(&copy), CUDA_ERROR_INVALID_VALUE);
    copy.src = 0xffff; // the last address at which there is no memory
    EXPECT_EQ(cus_engine_copy(&copy), CUDA_ERROR_INVALID_VALUE);
    // A tool that plays a trace has addresses of another process.
    copy.src = 1ull << 46;
    cus_virtual.on = true;
    EXPECT_EQ(cus_engine_copy(&copy), CUDA_ERROR_INVALID_VALUE);
    cus_virtual.on = false;
}

class AccessiblePageableMemory : public Uploads {
    int Access() override { return 1; }
};

// A kernel may write to the source: the driver may read it later than at the call.
TEST_F(AccessiblePageableMemory, IsLeftToTheDriver) {
    for (uint32_t value = 1; value < 12; value++)
        EXPECT_FALSE(StepWith(value, 4));
}

// The driver has read it when the call returns, and does not wait for the stream.
TEST_F(AccessiblePageableMemory, AnUploadFromItEndsNoStep) {
    uint32_t value = 7;
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 8; i++)
            Launch(i);
        EXPECT_EQ(Upload(kDevice, &value, 4), CUDA_SUCCESS);
        Launch(8);
        Sync();
    }
    EXPECT_EQ(Counters().steps, 3u);
}

// The next context at its address is perhaps on another GPU, which is asked about once more.
TEST_F(Uploads, TheNextContextAtAnAddressIsAskedAgain) {
    for (uint32_t value = 1; value < 12; value++)
        StepWith(value, 4);
    EXPECT_TRUE(StepWith(12, 4));
    CUcontext context;
    driver().table.cuCtxGetCurrent(&context);
    fake::EndContext(context);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    access_pageable = 1;
    for (uint32_t value = 1; value < 12; value++)
        EXPECT_FALSE(StepWith(value, 4));
}

// A driver that does not say is taken for one whose kernels access it.
TEST_F(Uploads, AreLeftToADriverThatDoesNotSayWhatKernelsAccess) {
    driver().table.cuDeviceGetAttribute = nullptr;
    for (uint32_t value = 1; value < 12; value++)
        EXPECT_FALSE(StepWith(value, 4));
}

TEST_F(Uploads, AreLeftToADriverThatFailsToSayWhatKernelsAccess) {
    driver().table.cuDeviceGetAttribute = [](int *value, CUdevice_attribute, CUdevice) {
        *value = 0;
        return CUDA_ERROR_INVALID_VALUE;
    };
    for (uint32_t value = 1; value < 12; value++)
        EXPECT_FALSE(StepWith(value, 4));
}

TEST_F(Uploads, AreLeftToADriverThatDoesNotSayWhichDeviceIsTheirs) {
    Launch(0); // the stream is known
    static int asked;
    asked = 0;
    driver().table.cuCtxGetDevice = [](CUdevice *device) { // first for the memory itself
        *device = 0;
        return ++asked == 2 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    };
    for (uint32_t value = 1; value < 12; value++)
        EXPECT_FALSE(StepWith(value, 4));
}

} // namespace
