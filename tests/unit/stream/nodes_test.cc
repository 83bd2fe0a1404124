// Promise: only the right ops become nodes of a graph.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/nodes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

extern "C" {
#include "shim/plan/op.h"
}

namespace {

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

// What the driver says to it comes from its own call.
TEST_F(Nodes, AMemsetOfNothingIsNoOp) {
    EXPECT_TRUE(Deferred([&] { return Memset(kDevice, 64, 1); }));
    driver().journal.clear();
    Launch(0);
    EXPECT_EQ(Memset(kDevice, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Memset(kDevice, 64, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver().journal.size(), 1u) << "and cuts nothing";
    Sync();
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

CUresult KeepsAttribute(CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue *value) {
    memset(value, 0, sizeof *value);
    return CUDA_SUCCESS;
}

TEST_F(Nodes, LaunchWithAnAttributeOfTheMomentIsNoOp) {
    driver().table.cuGraphKernelNodeGetAttribute = KeepsAttribute;
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
// A configuration without attributes need not say where they are.
TEST_F(Nodes, LaunchWithUpToAsManyAttributesAsAKindHasIsAnOp) {
    const CUlaunchAttributeID id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    driver().table.cuGraphKernelNodeGetAttribute = KeepsAttribute;
    EXPECT_TRUE(Deferred([&] { return LaunchWith(11, id, false, 0); }));
    EXPECT_TRUE(Deferred([&] { return LaunchWith(10, id, true, CUS_KIND_ATTRS); }));
    EXPECT_FALSE(Deferred([&] { return LaunchWith(9, id, true, CUS_KIND_ATTRS + 1); }));
}

// Of the union, the bytes that the id defines are the value; the others are garbage (HAZARDS A6).
TEST_F(Nodes, LaunchWithAnotherValueIsAnotherOp) {
    driver().table.cuGraphKernelNodeGetAttribute = KeepsAttribute;
    uint8_t garbage = 0;
    auto launch = [&](unsigned domain) {
        std::vector<CUlaunchAttribute> all(1);
        memset(all.data(), ++garbage, sizeof all[0]);
        all[0].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
        all[0].value.memSyncDomain = (CUlaunchMemSyncDomain)domain;
        return LaunchWith(11, all);
    };
    EXPECT_TRUE(Deferred([&] { return launch(0); }));
    driver().journal.clear();
    for (int i = 0; i < 4; i++)
        Launch(i);
    EXPECT_EQ(driver().journal.size(), 4u);
    EXPECT_EQ(launch(1), CUDA_SUCCESS);
    EXPECT_EQ(driver().journal.size(), 5u);
    Sync();
}

// HAZARDS A4. Only one attribute, with a value, lets a launch begin before the one ahead has ended.
TEST_F(Nodes, LaunchThatMayOverlapIsKnown) {
    static CUlaunchAttribute attribute;
    driver().table.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID,
                                                      CUlaunchAttributeValue *value) {
        *value = attribute.value;
        return CUDA_SUCCESS;
    };
    for (CUlaunchAttributeID id : {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN})
        for (unsigned value : {0u, 1u}) {
            SCOPED_TRACE(std::to_string(id) + " " + std::to_string(value));
            attribute = {};
            attribute.id = id;
            attribute.value.memSyncDomain = (CUlaunchMemSyncDomain)value;
            stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
            for (int step = 0; step < 8; step++) {
                Launch(0);
                LaunchWith(11, {attribute});
                Launch(1);
                Launch(2);
                Sync();
            }
            driver().journal.clear();
            Launch(0);
            ASSERT_TRUE(driver().journal.empty());
            EXPECT_EQ(last_engine_expects_overlap(),
                      id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && value == 1);
            Sync();
        }
}

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
    EXPECT_EQ(other_thread([&] { return Memset(kDevice, 16, 1, 4); }), 2u);
    // Of memory that nobody knows, which is no op at all; and by a rule that is about speed alone.
    EXPECT_EQ(other_thread([&] { return Memcpy(kDevice, kPageable, 64, CUS_COPY_HTOD); }), 2u);
    EXPECT_EQ(other_thread([&] { return Memset(kManaged, 16, 1, 4); }), 2u);
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
    cus_engine_code_loaded(library, nullptr, 0x5a5a); // the same, and its hash is known
    cus_engine_code_made(functions_[11], library);
    EXPECT_TRUE(deferred());
    cus_engine_code_gone();
    cus_engine_code_loaded(library, std::string("libeager").append(247, 'x').c_str(), 0);
    cus_engine_code_made(functions_[11], library);
    EXPECT_FALSE(deferred()) << "as long as a file's name may be";
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

// ---- functions and references ----

TEST_F(Nodes, FirstTouchOfAFunctionComesBehindWhatOtherThreadsDefer) {
    Steps(4);
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    EXPECT_TRUE(driver().journal.empty());
    fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), fake::MakeFunction("fresh"), 1, 2);
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line("k0", 100, 0));
}

// An engine of its own: it holds until that ends.
class NodesTainted : public Nodes {};

TEST_F(NodesTainted, NothingIsDeferredOnceReferencesAreUsed) {
    EXPECT_TRUE(Deferred([&] { return Launch(11); }));
    cus_engine_taint(nullptr);
    EXPECT_FALSE(Deferred([&] { return Launch(11); }));
    cus_engine_code_gone(); // of some other module
    int launches = driver().calls["cuGraphLaunch"];
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphLaunch"], launches);
}

} // namespace
