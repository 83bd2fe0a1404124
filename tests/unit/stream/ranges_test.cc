// Promise: memory is of a kind only if the driver says so of all of it, and only while that can be
// true.
#include "tests/unit/stream/calls.h"
#include "tests/unit/stream/pointers.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

using fake::driver;

namespace {

const CUcontext kContext = (CUcontext)0x1000, kOther = (CUcontext)0x2000;
const CUmemoryPool kPool = (CUmemoryPool)0x700;

// What the driver says of addresses from `from` to `to`.
struct Told : fake::Pointer {
    uint64_t from, to;
    CUresult result = CUDA_SUCCESS, mapping = CUDA_SUCCESS; // asked for anything else; for mappings
    Told(uint64_t first, uint64_t end) : from(first), to(end) {
        start = base = first;
        size = bytes = end - first;
    }
};
std::vector<Told> told;
int asked;
CUcontext current;

CUresult Attributes(unsigned n, CUpointer_attribute *ids, void **values, CUdeviceptr address) {
    asked++;
    for (const Told &t : told) {
        if (address < t.from || address >= t.to)
            continue;
        fake::Answer(t, n, ids, values);
        return ids[0] == CU_POINTER_ATTRIBUTE_MAPPED ? t.mapping : t.result;
    }
    return CUDA_SUCCESS;
}

Told Memory(uint64_t from, uint64_t to) {
    return Told{from, to};
}
Told Mapping(uint64_t from, uint64_t to) {
    Told made{from, to};
    made.context = nullptr;
    made.mapped = 1;
    made.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    return made;
}

class Ranges : public fake::EngineTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({}));
    }
    void SetUp() override {
        Table();
        current = kContext;
        told.clear();
        asked = 0;
        memory_forget();
    }
    static void Table() {
        fake::Reset();
        cus_driver &t = driver().table;
        t.cuPointerGetAttributes = Attributes;
        t.cuCtxGetDevice = [](CUdevice *device) {
            *device = 0;
            return CUDA_SUCCESS;
        };
        t.cuCtxGetCurrent = [](CUcontext *context) {
            *context = current;
            return CUDA_SUCCESS;
        };
    }
    static memory Of(Told t) {
        told = {t};
        memory_forget();
        return memory_at(t.from + 16, 8);
    }
};

TEST_F(Ranges, OfTheCurrentDeviceAndContextAreDeviceMemory) {
    Told t = Memory(0x1000, 0x2000);
    EXPECT_EQ(Of(t), MEMORY_DEVICE);
    t.context = kOther;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN) << "of another context";
    t = Memory(0x1000, 0x2000);
    t.ordinal = 1;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN) << "of another device";
    t = Memory(0x1000, 0x2000);
    t.managed = 1;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t.context = nullptr;
    t.mapped = 1;
    t.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN) << "managed is not mapped";
    t = Memory(0x1000, 0x2000);
    t.type = CU_MEMORYTYPE_ARRAY;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = Memory(0x1000, 0x2000);
    t.size = 0;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN) << "the driver does not say how much";
    t = Memory(0x1000, 0x2000);
    t.result = CUDA_ERROR_INVALID_CONTEXT;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
}

TEST_F(Ranges, OfAPoolOrOfTheHostAreOfNoContext) {
    Told t = Memory(0x1000, 0x2000);
    t.pool = kPool;
    t.context = nullptr;
    EXPECT_EQ(Of(t), MEMORY_POOL);
    t.ordinal = 1;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN) << "a pool of another device";
    t = Memory(0x1000, 0x2000);
    t.type = CU_MEMORYTYPE_HOST;
    EXPECT_EQ(Of(t), MEMORY_HOST);
    t.context = nullptr;
    EXPECT_EQ(Of(t), MEMORY_HOST) << "registered for all contexts";
}

TEST_F(Ranges, AreUnknownWhereTheDriverDoesNotAnswer) {
    told = {Memory(0x1000, 0x2000)};
    driver().table.cuCtxGetDevice = [](CUdevice *device) {
        *device = 0;
        return CUDA_ERROR_INVALID_CONTEXT;
    };
    EXPECT_EQ(memory_at(0x1000, 8), MEMORY_UNKNOWN);
    current = nullptr;
    EXPECT_EQ(memory_at(0x9000, 8), MEMORY_UNKNOWN) << "there is no context";
    current = kContext;
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        *context = kContext;
        return CUDA_ERROR_NOT_INITIALIZED;
    };
    EXPECT_EQ(memory_at(0x9000, 8), MEMORY_UNKNOWN);
}

// Each attribute by itself says that the driver knows the memory, so it is not the host's alone.
TEST_F(Ranges, OfWhichTheDriverKnowsNothingAtAllArePageable) {
    Told nothing = Memory(0x1000, 0x2000);
    nothing.type = 0;
    nothing.start = nothing.size = 0;
    nothing.context = nullptr;
    EXPECT_EQ(Of(nothing), MEMORY_PAGEABLE);
    Told t = nothing;
    t.result = CUDA_ERROR_INVALID_VALUE;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = nothing;
    t.type = CU_MEMORYTYPE_HOST;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = nothing;
    t.managed = 1;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = nothing;
    t.start = 0x1000;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = nothing;
    t.size = 0x1000;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = nothing;
    t.pool = kPool;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = nothing;
    t.context = kContext;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
}

TEST_F(Ranges, OfAReservationAreVirtualWhereAMappingMayBeWritten) {
    Told t = Mapping(0x1000, 0x2000);
    EXPECT_EQ(Of(t), MEMORY_VIRTUAL);
    t.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = Mapping(0x1000, 0x2000);
    t.mapped = 0;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = Mapping(0x1000, 0x2000);
    t.mapping = CUDA_ERROR_INVALID_VALUE;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = Mapping(0x1000, 0x2000);
    t.base = 0x1018; // behind the address, which is 0x1010
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t = Mapping(0x1000, 0x2000);
    t.bytes = 0x10; // up to the address
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
    t.bytes = 0x18;
    EXPECT_EQ(Of(t), MEMORY_VIRTUAL);
    t = Mapping(0x1000, 0x2000);
    t.ordinal = 1;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
}

TEST_F(Ranges, NoBytesAreOfTheRangeThatTheyLieIn) {
    told = {Memory(0x1000, 0x2000)};
    EXPECT_EQ(memory_at(0x1800, 0), MEMORY_DEVICE) << "asked for";
    EXPECT_EQ(memory_at(0x1800, 0), MEMORY_DEVICE) << "known";
    EXPECT_EQ(asked, 1);
}

// Before the range is known and afterwards.
TEST_F(Ranges, AreKnownToTheirEndsAndNoFurther) {
    told = {Memory(0x1000, 0x2000)};
    for (bool known : {false, true}) {
        if (known) {
            EXPECT_EQ(memory_at(0x1000, 0x1000), MEMORY_DEVICE);
        } else {
            EXPECT_EQ(memory_at(0x1000, 0x1001), MEMORY_UNKNOWN);
            EXPECT_EQ(memory_at(0x1ff8, 16), MEMORY_UNKNOWN);
            EXPECT_EQ(memory_at(0x1010, UINT64_MAX), MEMORY_UNKNOWN) << "around all of memory";
        }
        EXPECT_EQ(memory_at(0x1000, 0x1001), MEMORY_UNKNOWN);
        EXPECT_EQ(memory_at(0x1010, UINT64_MAX), MEMORY_UNKNOWN);
        EXPECT_EQ(memory_at(0x1ff8, 8), MEMORY_DEVICE);
        EXPECT_EQ(memory_at(0x1000, 0), MEMORY_DEVICE);
    }
    Told t = Memory(0x1000, 0x2000);
    t.start = 0x1800; // the driver speaks of memory that is elsewhere
    t.size = 0x800;
    EXPECT_EQ(Of(t), MEMORY_UNKNOWN);
}

TEST_F(Ranges, OfOneContextSayNothingOfAnother) {
    told = {Memory(0x1000, 0x2000)};
    EXPECT_EQ(memory_at(0x1000, 8), MEMORY_DEVICE);
    for (CUcontext other :
         {kOther, (CUcontext)0x10}) { // above and below, in the order of the table
        current = other;
        EXPECT_EQ(memory_at(0x1000, 8), MEMORY_UNKNOWN);
    }
    // Host memory is of all of them, and is forgotten in all of them.
    told[0].type = CU_MEMORYTYPE_HOST;
    memory_forget();
    for (CUcontext context : {kContext, kOther}) {
        current = context;
        EXPECT_EQ(memory_at(0x1000, 8), MEMORY_HOST);
    }
    asked = 0;
    for (CUcontext context : {kContext, kOther}) {
        current = context;
        EXPECT_EQ(memory_at(0x1000, 8), MEMORY_HOST);
    }
    EXPECT_EQ(asked, 0) << "one context's range is not another one's";
    told.clear();
    EXPECT_FALSE(memory_forget_at(0x2000)) << "none is there";
    EXPECT_EQ(memory_at(0x1000, 8), MEMORY_HOST);
    EXPECT_TRUE(memory_forget_at(0x1fff));
    EXPECT_FALSE(memory_forget_at(0x1fff));
    for (CUcontext context : {kContext, kOther}) {
        current = context;
        EXPECT_EQ(memory_at(0x1000, 8), MEMORY_PAGEABLE);
    }
}

// Wherever they lie, and in whatever order they are asked for.
TEST_F(Ranges, OfSeveralContextsAreAskedForOnce) {
    const CUcontext contexts[] = {kOther, (CUcontext)0x10, kContext};
    for (uint64_t i = 0; i < 12; i++) {
        told.push_back(Memory(0x10000 * (i + 1), 0x10000 * (i + 1) + 0x100));
        told.back().type = CU_MEMORYTYPE_HOST;
    }
    for (int round = 0; round < 2; round++) {
        asked = 0;
        for (uint64_t i = 0; i < 36; i++) {
            current = contexts[i % 3];
            EXPECT_EQ(memory_at(0x10000 * (i * 7 % 12 + 1), 8), MEMORY_HOST) << i;
        }
        EXPECT_EQ(asked > 0, round == 0) << asked;
    }
}

// One context's are in front of the other one's in the table.
TEST_F(Ranges, AreForgottenAtTheirAddressesAlone) {
    told = {Memory(0x7000, 0x9000), Memory(0xa000, 0xb000)};
    told[1].context = kOther;
    EXPECT_EQ(memory_at(0x7000, 8), MEMORY_DEVICE);
    current = kOther;
    EXPECT_EQ(memory_at(0xa000, 8), MEMORY_DEVICE);
    asked = 0;
    uint32_t epoch = memory_epoch();
    EXPECT_FALSE(memory_forget_at(0x5000)) << "below both";
    EXPECT_FALSE(memory_forget_at(0x9800)) << "between them";
    EXPECT_EQ(memory_epoch(), epoch) << "what nodes hold is still known";
    EXPECT_EQ(memory_at(0xa000, 8), MEMORY_DEVICE);
    current = kContext;
    EXPECT_EQ(memory_at(0x7000, 8), MEMORY_DEVICE);
    EXPECT_EQ(asked, 0);
}

TEST_F(Ranges, OneIsForgottenAndTheOthersStay) {
    enum { RANGES = 5 };
    for (uint64_t gone = 0; gone < RANGES; gone++) {
        SCOPED_TRACE(gone);
        memory_forget();
        told.clear();
        for (uint64_t i = 1; i <= RANGES; i++) {
            told.push_back(Memory(0x10000 * i, 0x10000 * i + 0x1000 * i));
            EXPECT_EQ(memory_at(0x10000 * i, 8), MEMORY_DEVICE);
        }
        uint32_t epoch = memory_epoch();
        EXPECT_TRUE(memory_forget_at(0x10000 * (gone + 1)));
        EXPECT_NE(memory_epoch(), epoch);
        asked = 0;
        for (uint64_t i = 1; i <= RANGES; i++)
            if (i != gone + 1) {
                EXPECT_EQ(memory_at(0x10000 * i, 0x1000 * i), MEMORY_DEVICE) << i;
            }
        EXPECT_EQ(asked, 0);
        EXPECT_EQ(memory_at(0x10000 * (gone + 1), 8), MEMORY_DEVICE);
        EXPECT_EQ(asked, 1);
    }
}

TEST_F(Ranges, OfMemoryThatMayHaveGoneAreAskedForAnew) {
    fake::EndEngine(); // and with it what SetUp forgot
    SetUpTestSuite();
    Table();
    told = {Memory(0x1000, 0x2000), Memory(0x5000, 0x6000)};
    for (int round = 0; round < 3; round++) {
        for (int again = 0; again < 2; again++)
            for (uint64_t address : {0x5000, 0x1000})
                EXPECT_EQ(memory_at(address, 8), MEMORY_DEVICE);
        EXPECT_EQ(asked, 2 * (round + 1));
        memory_forget();
    }
}

TEST_F(Ranges, OfTheEngineBeforeAreForgotten) {
    told = {Memory(0x1000, 0x2000)};
    EXPECT_EQ(memory_at(0x1000, 8), MEMORY_DEVICE);
    fake::EndEngine();
    SetUpTestSuite();
    Table();
    told.clear();
    EXPECT_EQ(memory_at(0x1000, 8), MEMORY_PAGEABLE);
}

TEST_F(Ranges, ThatTouchAreOneOnlyIfBothAreMappings) {
    for (int first = 0; first < 2; first++)
        for (int kinds = 0; kinds < 4; kinds++) {
            SCOPED_TRACE(std::to_string(kinds) + ", the first one asked for is " +
                         std::to_string(first));
            bool mapped[2] = {(kinds & 1) != 0, (kinds & 2) != 0};
            told = {mapped[0] ? Mapping(0x1000, 0x2000) : Memory(0x1000, 0x2000),
                    mapped[1] ? Mapping(0x2000, 0x3000) : Memory(0x2000, 0x3000)};
            memory_forget();
            for (int i : {first, 1 - first})
                EXPECT_EQ(memory_at(0x1000 + 0x1000 * i, 8),
                          mapped[i] ? MEMORY_VIRTUAL : MEMORY_DEVICE);
            asked = 0;
            EXPECT_EQ(memory_at(0x1000, 0x1000), mapped[0] ? MEMORY_VIRTUAL : MEMORY_DEVICE);
            EXPECT_EQ(memory_at(0x2000, 0x1000), mapped[1] ? MEMORY_VIRTUAL : MEMORY_DEVICE);
            EXPECT_EQ(asked, 0) << "both are known";
            EXPECT_EQ(memory_at(0x1ff0, 0x20),
                      mapped[0] && mapped[1] ? MEMORY_VIRTUAL : MEMORY_UNKNOWN);
            EXPECT_EQ(asked == 0, mapped[0] && mapped[1]);
        }
}

// A mapping may grow on both sides, and a range that another one overlaps is outdated.
TEST_F(Ranges, ThatOverlapReplaceWhatWasKnown) {
    told = {Mapping(0x1000, 0x2000), Mapping(0x2000, 0x3000), Mapping(0x3000, 0x4000)};
    EXPECT_EQ(memory_at(0x1000, 8), MEMORY_VIRTUAL);
    EXPECT_EQ(memory_at(0x3000, 8), MEMORY_VIRTUAL);
    EXPECT_EQ(memory_at(0x2000, 8), MEMORY_VIRTUAL);
    asked = 0;
    EXPECT_EQ(memory_at(0x1000, 0x3000), MEMORY_VIRTUAL);
    EXPECT_EQ(asked, 0);
    memory_forget();
    EXPECT_EQ(memory_at(0x1000, 0x1000), MEMORY_VIRTUAL);
    EXPECT_EQ(asked, 2) << "nothing behind its end";
    for (bool below : {true, false}) {
        memory_forget();
        uint64_t old = below ? 0x1000 : 0x3000;
        told = {Memory(old, old + 0x1800)};
        EXPECT_EQ(memory_at(old, 8), MEMORY_DEVICE);
        EXPECT_EQ(memory_at(old + 0x1000, 8), MEMORY_DEVICE);
        told = {Memory(0x2000, 0x3800)};
        EXPECT_EQ(memory_at(below ? 0x2800 : 0x2000, 8), MEMORY_DEVICE);
        EXPECT_EQ(memory_at(below ? 0x1000 : 0x4000, 8), MEMORY_PAGEABLE);
    }
}

// HAZARDS D2.
TEST_F(Ranges, TheCaptureModeIsAsItWas) {
    static CUstreamCaptureMode mode;
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    driver().table.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *other) {
        std::swap(mode, *other);
        return CUDA_SUCCESS;
    };
    told = {Memory(0x1000, 0x2000), Mapping(0x4000, 0x5000)};
    memory_at(0x1000, 16);
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(memory_at(0x4000, 16), MEMORY_VIRTUAL);
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

} // namespace
