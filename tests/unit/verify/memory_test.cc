// Promise: live allocations are known, and every address in a graph's params leads to its
// allocation. Memory that the host uses is told apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

extern "C" {
#include "shim/verify/memory.h"
}

namespace {

struct Memory {
    uint64_t bytes;
    CUmemorytype type;
    bool managed;
    int device;
};
std::map<uint64_t, Memory> memory; // by address
CUcontext current;

CUresult Attributes(unsigned n, CUpointer_attribute *ids, void **values, CUdeviceptr address) {
    auto found = memory.upper_bound(address);
    bool known = found != memory.begin() &&
                 address < std::prev(found)->first + std::prev(found)->second.bytes;
    for (unsigned i = 0; i < n; i++) {
        switch (ids[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(CUmemorytype *)values[i] = known ? std::prev(found)->second.type : (CUmemorytype)0;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *(unsigned *)values[i] = known && std::prev(found)->second.managed;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(CUdeviceptr *)values[i] = known ? std::prev(found)->first : 0;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)values[i] = known ? std::prev(found)->second.bytes : 0;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[i] = known ? std::prev(found)->second.device : -2;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUresult Current(CUcontext *context) {
    *context = current;
    return CUDA_SUCCESS;
}

CUresult Device(CUdevice *device) {
    *device = 1;
    return CUDA_SUCCESS;
}

CUresult Exchange(CUstreamCaptureMode *) {
    return CUDA_SUCCESS;
}

class MemoryTest : public testing::Test {
  protected:
    void SetUp() override {
        driver.cuPointerGetAttributes = Attributes;
        driver.cuCtxGetCurrent = Current;
        driver.cuCtxGetDevice = Device;
        driver.cuThreadExchangeStreamCaptureMode = Exchange;
        current = (CUcontext)0x11;
        memory.clear();
    }

    void TearDown() override {
        for (const auto &one : memory)
            cus_memory_gone(one.first);
        cus_memory_free(&list);
    }

    void Make(uint64_t address, uint64_t bytes, CUmemorytype type = CU_MEMORYTYPE_DEVICE,
              bool managed = false, int device = 1) {
        memory[address] = {bytes, type, managed, device};
        cus_memory_made(&driver, address);
    }

    std::vector<uint64_t> Starts() {
        std::vector<uint64_t> starts;
        for (uint32_t i = 0; i < list.n; i++)
            starts.push_back(list.ranges[i].start);
        return starts;
    }

    cus_driver driver = {};
    cus_range_list list = {};
};

using Arguments = std::vector<std::vector<uint64_t>>;
using Addresses = std::vector<uint64_t>;

// A launch with these arguments, each of so many bytes.
struct Launch {
    cus_argument arguments[3];
    cus_layout layout;
    cus_kind kind = {};
    std::vector<uint8_t> stored;
    cus_verify_op op;

    explicit Launch(const Arguments &values) {
        uint32_t at = 0, n = 0;
        stored.assign(sizeof(cus_values) + 512, 0);
        for (const auto &value : values) {
            arguments[n] = {at, (uint32_t)(8 * value.size())};
            memcpy(stored.data() + sizeof(cus_values) + at, value.data(), 8 * value.size());
            at += arguments[n++].size;
        }
        layout = {n, at, arguments};
        kind.type = CUS_OP_LAUNCH;
        kind.layout = &layout;
        kind.param_bytes = at;
        op = {&kind, (const cus_values *)stored.data(), nullptr};
    }
};

TEST_F(MemoryTest, KnowsWhatWasMadeAndNotFreed) {
    for (uint64_t i = 0; i < 200; i++)
        Make(0x10000 * (200 - i), 0x100 + i);
    cus_memory_gone(0x10000 * 7);
    cus_memory_gone(0x10000 * 9 + 8); // begins nowhere
    memory.erase(0x10000 * 7);
    cus_memory_all(&driver, current, &list);
    EXPECT_EQ(list.n, 199u);
    Addresses starts = Starts();
    EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
    EXPECT_EQ(std::count(starts.begin(), starts.end(), 0x10000 * 7), 0);
    EXPECT_EQ(list.ranges[0].bytes, 0x100u + 199);
}

TEST_F(MemoryTest, OfThisContextAndStillAsItWas) {
    Make(0x10000, 64);
    Make(0x20000, 64);
    Make(0x30000, 64);
    current = (CUcontext)0x22;
    Make(0x40000, 64);
    memory.erase(0x20000);      // freed unseen
    memory[0x30000].bytes = 32; // and another one made at its place
    cus_memory_all(&driver, (CUcontext)0x11, &list);
    EXPECT_EQ(Starts(), (Addresses{0x10000}));
    cus_memory_gone(0x20000);
}

TEST_F(MemoryTest, PointersInParams) {
    Make(0x10000, 0x1000);
    Make(0x20000, 0x1000);
    Make(0x30000, 0x1000);
    memory[0x50000] = {0x100, CU_MEMORYTYPE_DEVICE, false, 1}; // made unseen
    // Inside of an allocation, in the middle of a struct, and behind an end.
    Launch launch(Arguments{{0x10abc}, {1, 0x20fff, 3}, {0x31000}});
    EXPECT_TRUE(cus_memory_of_ops(&driver, &launch.op, 1, &list));
    EXPECT_EQ(Starts(), (Addresses{0x10000, 0x20000}));
    Launch unseen(Arguments{{0x50010}});
    EXPECT_TRUE(cus_memory_of_ops(&driver, &unseen.op, 1, &list));
    EXPECT_EQ(Starts(), (Addresses{0x10000, 0x20000, 0x50000}));
    EXPECT_EQ(cus_memory_bytes(&list, false), 0x2100u);
}

TEST_F(MemoryTest, MemoryOfTheHostIsToldApart) {
    Make(0x10000, 64, CU_MEMORYTYPE_HOST);
    Make(0x20000, 64, CU_MEMORYTYPE_DEVICE, true);
    for (uint64_t address : {0x10000, 0x20000}) {
        Launch launch(Arguments{{address}});
        EXPECT_FALSE(cus_memory_of_ops(&driver, &launch.op, 1, &list)) << address;
    }
    EXPECT_EQ(list.n, 0u);
    cus_memory_all(&driver, current, &list);
    EXPECT_EQ(list.n, 0u);
}

// Its work may go on meanwhile: what it writes there would be lost.
TEST_F(MemoryTest, MemoryOfAnotherDeviceIsToldApart) {
    Make(0x10000, 64, CU_MEMORYTYPE_DEVICE, false, 0);
    Launch launch(Arguments{{0x10000}});
    EXPECT_FALSE(cus_memory_of_ops(&driver, &launch.op, 1, &list));
    cus_kind kind = {};
    kind.type = CUS_OP_COPY;
    std::vector<uint8_t> values(sizeof(cus_values) + 16);
    auto *requested = (cus_values *)values.data();
    cus_copy_params params = {0x10000, 0x20000};
    memcpy(requested->params, &params, sizeof params);
    requested->dims[0] = 0x30;
    cus_verify_op op = {&kind, requested, nullptr};
    EXPECT_FALSE(cus_memory_of_ops(&driver, &op, 1, &list));
    EXPECT_EQ(list.n, 0u);
    cus_memory_all(&driver, current, &list); // as from a pool of that device
    EXPECT_EQ(list.n, 0u);
}

TEST_F(MemoryTest, CopiesIntoPinnedMemoryWriteWhatTheyWrite) {
    Make(0x10000, 0x1000);
    memory[0x20000] = {0x1000, CU_MEMORYTYPE_HOST, false, 1};
    cus_kind kind = {};
    kind.type = CUS_OP_COPY;
    std::vector<uint8_t> values(sizeof(cus_values) + 16);
    auto *requested = (cus_values *)values.data();
    cus_copy_params params = {0x20010, 0x10000};
    memcpy(requested->params, &params, sizeof params);
    requested->dims[0] = 0x30;
    cus_verify_op op = {&kind, requested, nullptr};
    EXPECT_TRUE(cus_memory_of_ops(&driver, &op, 1, &list));
    ASSERT_EQ(list.n, 1u);
    EXPECT_EQ(list.ranges[0].start, 0x20010u);
    EXPECT_EQ(list.ranges[0].bytes, 0x30u);
    EXPECT_TRUE(list.ranges[0].host);
    EXPECT_EQ(cus_memory_bytes(&list, true), 0x30u);
    EXPECT_EQ(cus_memory_bytes(&list, false), 0u);

    params = {0x10008, 0x20000};
    memcpy(requested->params, &params, sizeof params);
    EXPECT_TRUE(cus_memory_of_ops(&driver, &op, 1, &list));
    ASSERT_EQ(list.n, 2u);
    EXPECT_EQ(list.ranges[1].start, 0x10000u);
    EXPECT_FALSE(list.ranges[1].host);
}

TEST_F(MemoryTest, TidyingSortsAndMerges) {
    cus_range ranges[] = {{0x300, 0x100, false},
                          {0x100, 0x20, true},
                          {0x300, 0x100, false},
                          {0x110, 0x30, true},
                          {0x50, 0x10, false}};
    std::vector<cus_range> room(std::begin(ranges), std::end(ranges));
    cus_range_list mine = {room.data(), 5, 5, false};
    cus_memory_tidy(&mine);
    ASSERT_EQ(mine.n, 3u);
    EXPECT_EQ(mine.ranges[0].start, 0x50u);
    EXPECT_EQ(mine.ranges[1].start, 0x100u);
    EXPECT_EQ(mine.ranges[1].bytes, 0x40u);
    EXPECT_EQ(mine.ranges[2].bytes, 0x100u);
}

} // namespace
