// Promise: pools that a program makes are used again, queried, destroyed as the driver does it.
#include "tests/unit/sim/sim.h"

#include <unistd.h>

namespace sim {
namespace {

enum { kInvalid = CUDA_ERROR_INVALID_VALUE };

class PoolTest : public Sim {
  protected:
    static CUmemPoolProps Props(size_t most = 0) {
        CUmemPoolProps props = {};
        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        props.maxSize = most;
        return props;
    }
    static CUmemoryPool Make(size_t most = 0) {
        CUmemoryPool pool = nullptr;
        CUmemPoolProps props = Props(most);
        EXPECT_EQ(CUDA_SUCCESS, cuMemPoolCreate(&pool, &props));
        return pool;
    }
    static CUdeviceptr From(CUmemoryPool pool, size_t bytes, CUstream stream) {
        CUdeviceptr memory = 0;
        EXPECT_EQ(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&memory, bytes, pool, stream));
        return memory;
    }
    static void Allow(CUmemoryPool pool, bool events, bool opportunistic, bool internal) {
        int on[] = {events, opportunistic, internal};
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(CUDA_SUCCESS,
                      cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(i + 1), &on[i]));
    }
    static cuuint64_t Get(CUmemoryPool pool, CUmemPool_attribute attribute) {
        cuuint64_t value = 0;
        EXPECT_EQ(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, attribute, &value));
        return value;
    }
};

// One stream frees behind a gate, and another one allocates.
TEST_F(PoolTest, AnotherStreamGetsABlockAsThePoolAllows) {
    enum { NOTHING, EVENT, EXECUTED };
    CUstream a = Stream();
    CUevent event;
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int allowed = 0; allowed < 8; allowed++)
        for (int between : {NOTHING, EVENT, EXECUTED}) {
            SCOPED_TRACE(testing::Message() << allowed << " " << between);
            bool events = allowed & 1, opportunistic = allowed & 2, internal = allowed & 4;
            CUstream b = Stream();
            CUmemoryPool pool = Make();
            Allow(pool, events, opportunistic, internal);
            CUdeviceptr first = From(pool, 512, a);
            Gate gate;
            CU_OK(Wait(gate, a));
            CU_OK(cuMemFreeAsync(first, a));
            CU_OK(cuEventRecord(event, a));
            if (between == EVENT) {
                CU_OK(cuStreamWaitEvent(b, event, 0));
            }
            if (between == EXECUTED) {
                gate.Open();
                CU_OK(cuStreamSynchronize(a));
            }
            CUdeviceptr second = From(pool, 512, b);
            EXPECT_EQ(second == first, internal || (between == EVENT && events) ||
                                           (between == EXECUTED && opportunistic));
            CU_OK(cuMemFreeAsync(second, b));
            CU_OK(cuMemPoolDestroy(pool));
        }
}

TEST_F(PoolTest, ItsMemoryIsItsOwn) {
    CUstream s = Stream();
    CUmemoryPool pool = Make(), of = nullptr;
    CUdeviceptr p = From(pool, 1024, s), q;
    CU_OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    EXPECT_EQ(pool, of);
    EXPECT_EQ(1024u, Get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    CU_OK(cuMemFreeAsync(p, s));
    CU_OK(cuMemAllocAsync(&q, 1024, s));
    EXPECT_NE(p, q) << "of the default pool";
    EXPECT_EQ(0u, Get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    CU_OK(cuDeviceSetMemPool(0, pool));
    CUdeviceptr r;
    CU_OK(cuMemAllocAsync(&r, 1024, s));
    EXPECT_EQ(p, r);
    CU_OK(cuMemFree(r));
    EXPECT_EQ(0u, Get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    EXPECT_EQ(1024u, Get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
    CU_OK(cuMemPoolTrimTo(pool, 64 << 20));
    EXPECT_EQ(32u << 20, Get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    CU_OK(cuMemPoolTrimTo(pool, 0));
    EXPECT_EQ(0u, Get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    CU_OK(cuMemPoolDestroy(pool)); // the device has its default pool again
    CUmemoryPool current, first;
    CU_OK(cuDeviceGetMemPool(&current, 0));
    CU_OK(cuDeviceGetDefaultMemPool(&first, 0));
    EXPECT_EQ(first, current);
    CU_OK(cuMemFreeAsync(q, s));
}

TEST_F(PoolTest, MemoryOutlivesItsPoolWhoseHandleComesAgain) {
    CUstream s = Stream();
    CUmemoryPool pool = Make();
    CUdeviceptr p = From(pool, 512, s), q = From(pool, 512, s);
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuMemFreeAsync(p, s));
    CU_OK(cuMemPoolDestroy(pool)); // does not wait
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    CUdeviceptr refused;
    CU_EXPECT(kInvalid, cuMemAllocFromPoolAsync(&refused, 512, pool, s));
    CU_EXPECT(kInvalid, cuMemPoolDestroy(pool));
    EXPECT_NE(pool, Make());
    gate.Open();
    CU_OK(Write(q, 3, s));
    EXPECT_EQ(3, Read(q));
    CU_OK(cuMemFreeAsync(q, s));
    CU_EXPECT(kInvalid, cuMemFreeAsync(q, s));
    CU_OK(cuStreamSynchronize(s));
    EXPECT_EQ(pool, Make()) << "all its memory is freed";
}

TEST_F(PoolTest, ALargestSizeIsKept) {
    CUstream s = Stream();
    CUmemoryPool pool = Make(32 << 20);
    CUdeviceptr p = From(pool, 24 << 20, s), q;
    CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 16 << 20, pool, s));
    CU_OK(cuMemFreeAsync(p, s));
    CU_OK(cuStreamSynchronize(s));
    CU_OK(cuMemAllocFromPoolAsync(&q, 16 << 20, pool, s));
    CU_OK(cuMemFreeAsync(q, s));
    CU_OK(cuMemPoolDestroy(pool));
}

TEST_F(PoolTest, OnlyAPoolThatIsForOthersIsExported) {
    int file = -1;
    CUmemoryPool pool = Make(), shared;
    CU_EXPECT(kInvalid, cuMemPoolExportToShareableHandle(
                            &file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUmemPoolProps props = Props();
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CU_OK(cuMemPoolCreate(&shared, &props));
    CU_OK(cuMemPoolExportToShareableHandle(&file, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                           0));
    EXPECT_EQ(0, close(file));
    CUmemLocation here = Props().location;
    CUmemAccess_flags flags;
    CU_OK(cuMemPoolGetAccess(&flags, pool, &here));
    EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags);
    CU_OK(cuMemPoolDestroy(pool));
    CU_OK(cuMemPoolDestroy(shared));
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    CU_EXPECT(kInvalid, cuMemPoolCreate(&pool, &props));
}

} // namespace
} // namespace sim
