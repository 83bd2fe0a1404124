// Promise: which copies are ops depends on the memory at both ends and on the form of the call, and
// on nothing else. A download that waits for its stream ends the step.
#include "tests/unit/stream/nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace {

const char *const kForms[] = {"any", "device to device", "host to device", "device to host"};
static_assert(CUS_COPY_ANY == 0 && CUS_COPY_DTOD == 1 && CUS_COPY_HTOD == 2 && CUS_COPY_DTOH == 3,
              "kForms is in their order");

const uint64_t kPool = 0x60000, kHuge = 1ull << 40, kHugeBytes = 1ull << 34;
uint64_t widest; // of the copies that the driver was asked for

// As nodes.h. The driver says that it knows nothing of pageable memory, that the memory at kPool is
// of a pool, and that there is much memory at kHuge.
CUresult Attributes(unsigned n, CUpointer_attribute *ids, void **values, CUdeviceptr address) {
    bool pool = address - kPool < 0x1000, huge = address - kHuge < kHugeBytes;
    if (!pool && !huge && address >= kPageable)
        return CUDA_SUCCESS;
    CUresult result = PointerGetAttributes(n, ids, values, pool || huge ? kDevice : address);
    for (unsigned i = 0; i < n && (pool || huge); i++) {
        if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
            *(CUdeviceptr *)values[i] = pool ? kPool : kHuge;
        if (ids[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE && huge)
            *(size_t *)values[i] = kHugeBytes;
        if (ids[i] == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE && pool)
            *(CUmemoryPool *)values[i] = (CUmemoryPool)0x700;
        if (ids[i] == CU_POINTER_ATTRIBUTE_CONTEXT && pool)
            *(CUcontext *)values[i] = nullptr;
    }
    return result;
}

class Copies : public Nodes {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(
            fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_SEGMENT_MAX", "4"}}));
    }
    void SetUp() override {
        Nodes::SetUp();
        driver().table.cuPointerGetAttributes = Attributes;
        driver().table.cuMemcpyDtoHAsync_v2 = [](void *dst, CUdeviceptr src, size_t bytes,
                                                 CUstream stream) {
            return fake::Copy((CUdeviceptr)(uintptr_t)dst, src, bytes, stream);
        };
    }
};

bool IsDevice(uint64_t address) {
    return address == kDevice || address == kVirtual || address == kPool;
}

TEST_F(Copies, AreOpsBetweenMemoryOfTheKindsThatTheirFormNames) {
    const uint64_t places[] = {kDevice,      kVirtual, kPool,    kPinned,
                               kOtherPinned, kManaged, kPageable};
    for (unsigned form = CUS_COPY_ANY; form <= CUS_COPY_DTOH; form++)
        for (uint64_t dst : places)
            for (uint64_t src : places) {
                SCOPED_TRACE(std::string(kForms[form]) + ", from " + std::to_string(src >> 16) +
                             " to " + std::to_string(dst >> 16));
                bool from_host = src == kPinned || src == kOtherPinned,
                     to_host = dst == kPinned || dst == kOtherPinned;
                bool right = form == CUS_COPY_DTOD   ? IsDevice(src) && IsDevice(dst)
                             : form == CUS_COPY_HTOD ? from_host && IsDevice(dst)
                             : form == CUS_COPY_DTOH
                                 ? IsDevice(src) && to_host
                                 : (IsDevice(src) || from_host) && (IsDevice(dst) || to_host) &&
                                       (IsDevice(src) || IsDevice(dst));
                /* Of four bytes: what of them is read at the call is uploads_test's. */
                size_t bytes = src == kPageable && form == CUS_COPY_HTOD ? 64 : 4;
                uint64_t steps = Counters().steps;
                stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
                EXPECT_EQ(
                    Deferred([&] { return Memcpy(dst + 128, src, bytes, (cus_copy_form)form); }),
                    right);
                bool waits = dst == kPageable && IsDevice(src) &&
                             (form == CUS_COPY_ANY || form == CUS_COPY_DTOH);
                EXPECT_EQ(Counters().steps - steps, waits ? 16u : 8u);
            }
    fake::ExpectBalance();
}

// A length of 5 GiB is one of 1 GiB in 32 bits.
TEST_F(Copies, OfMoreThan4GiBAreWhole) {
    cus_driver &t = driver().table;
    t.cuMemcpyAsync = [](CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
        widest = std::max<uint64_t>(widest, bytes);
        return fake::Copy(dst, src, bytes, stream);
    };
    widest = 0;
    const uint64_t gib = 1ull << 30;
    auto copy = [&](uint64_t bytes) { return Memcpy(kHuge, kHuge, bytes); };
    EXPECT_TRUE(Deferred([&] { return copy(5 * gib); }));
    EXPECT_EQ(widest, 5 * gib) << "as it was captured";
    for (int i = 0; i < 4; i++)
        Launch(i);
    EXPECT_EQ(copy(9 * gib), CUDA_SUCCESS);
    cus_engine_flush(CUS_SCOPE_P, nullptr, CUS_CAUSE_UNKNOWN_API);
    EXPECT_EQ(widest, 9 * gib) << "as it was flushed";
}

} // namespace
