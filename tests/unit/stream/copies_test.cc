// Promise: which copies are ops depends on the memory at both ends and on the form of the call, and
// on nothing else. A download that waits for its stream ends the step.
#include "tests/unit/stream/nodes.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

const char *const kForms[] = {"any", "device to device", "host to device", "device to host"};
static_assert(CUS_COPY_ANY == 0 && CUS_COPY_DTOD == 1 && CUS_COPY_HTOD == 2 && CUS_COPY_DTOH == 3,
              "kForms is in their order");

// As nodes.h, and the driver says that it knows nothing of pageable memory.
CUresult Attributes(unsigned n, CUpointer_attribute *ids, void **values, CUdeviceptr address) {
    return address >= kPageable ? CUDA_SUCCESS : PointerGetAttributes(n, ids, values, address);
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
    return address == kDevice || address == kVirtual;
}

TEST_F(Copies, AreOpsBetweenMemoryOfTheKindsThatTheirFormNames) {
    const uint64_t places[] = {kDevice, kVirtual, kPinned, kOtherPinned, kManaged, kPageable};
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
                /* Of four bytes: pinned memory is read in the order of the stream all the same. */
                size_t bytes = src == kPageable ? 64 : 4;
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

} // namespace
