// Promise: launches are of one kind only if all of their attributes are the same, and none with a
// cluster is deferred in a shape that did not run.
#include "tests/unit/stream/calls.h"
#include "tests/unit/stream/engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "tests/unit/stream/held_locks.h"
}

namespace {

class Kinds : public Engine {
  protected:
    void SetUp() override {
        Engine::SetUp();
        driver().shared_max = 1000;
        fake::Launch(stream_, functions_[0], 100);
        fake::Launch(stream_, functions_[1], 101);
        driver().table.cuCtxGetCurrent(&context_);
    }
    void TearDown() override {
        driver().shared_max = -1;
        Engine::TearDown();
    }
    static CUlaunchAttribute Attribute(int id, unsigned value) {
        CUlaunchAttribute attribute = {};
        attribute.id = (CUlaunchAttributeID)id;
        attribute.value.clusterDim = {value, 1, 1};
        return attribute;
    }
    const cus_kind *Of(const std::vector<CUlaunchAttribute> &attrs, int function = 0) {
        fake::Call call(stream_, functions_[(size_t)function], 100);
        call.launch.form = CUS_LAUNCH_EX;
        call.launch.attrs = attrs.data();
        call.launch.n_attrs = (uint32_t)attrs.size();
        return launch_kind(context_, &call.launch);
    }

    CUcontext context_;
};

const int kCarveout = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
const int kDomain = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;

TEST_F(Kinds, AllAttributesCount) {
    const cus_kind *kind = Of({Attribute(kCarveout, 50), Attribute(kDomain, 0)});
    ASSERT_NE(kind, nullptr);
    EXPECT_EQ(kind->n_attrs, 2u);
    EXPECT_EQ(kind->attrs[1].id, (uint32_t)kDomain);
    EXPECT_EQ(Of({Attribute(kCarveout, 50), Attribute(kDomain, 0)}), kind);
    EXPECT_NE(Of({Attribute(kCarveout, 50), Attribute(kDomain, 1)}), kind);
    EXPECT_NE(Of({Attribute(kCarveout, 25), Attribute(kDomain, 0)}), kind);
    EXPECT_NE(Of({Attribute(kCarveout, 50)}), kind);
    EXPECT_NE(Of({Attribute(kCarveout, 50), Attribute(kDomain, 0)}, 1), kind);
    // In each process, too.
    EXPECT_NE(Of({Attribute(kCarveout, 50), Attribute(kDomain, 1)})->stable, kind->stable);
    EXPECT_NE(Of({Attribute(kCarveout, 25), Attribute(kDomain, 0)})->stable, kind->stable);
    EXPECT_NE(Of({Attribute(kCarveout, 50)})->stable, kind->stable);
}

// Bytes behind a value are whatever the program's memory held, and what is to be ignored is.
TEST_F(Kinds, OfAnAttributeItsValueCounts) {
    const int kMap = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP; // two bytes
    EXPECT_NE(Of({Attribute(kMap, 0x100)}), Of({Attribute(kMap, 0x200)}));
    EXPECT_NE(Of({Attribute(kMap, 0x100)}), Of({Attribute(kMap, 0x101)}));
    EXPECT_EQ(Of({Attribute(kMap, 0x10100)}), Of({Attribute(kMap, 0x20100)}));
    CUlaunchAttribute cluster = Attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2); // twelve bytes
    const cus_kind *kind = Of({cluster});
    cluster.value.pad[12] = 1;
    EXPECT_EQ(Of({cluster}), kind);
    cluster.value.clusterDim.z++;
    EXPECT_NE(Of({cluster}), kind);
    CUlaunchAttribute ignored = Attribute(CU_LAUNCH_ATTRIBUTE_IGNORE, 1);
    kind = Of({ignored, Attribute(kDomain, 1), ignored});
    ASSERT_NE(kind, nullptr);
    EXPECT_EQ(kind->n_attrs, 1u);
    EXPECT_EQ(Of({Attribute(kDomain, 1)}), kind);
}

// It is the function's, so the kinds that come later have it as well.
TEST_F(Kinds, ALimitHoldsForAllLaunchesOfAFunction) {
    const cus_kind *one = Of({}), *before = Of({Attribute(kDomain, 0)});
    kinds_read_limit(context_, one);
    EXPECT_EQ(one->shared_end, 1001u);
    EXPECT_EQ(before->shared_end, 1001u);
    EXPECT_EQ(Of({Attribute(kDomain, 1)})->shared_end, 1001u);
}

// An engine of its own: a taint holds until that ends.
class KindsTainted : public Kinds {};

TEST_F(KindsTainted, ATaintHoldsForAllLaunchesOfAFunction) {
    const cus_kind *before = Of({});
    EXPECT_TRUE(before->deferrable);
    cus_engine_taint(functions_[0]);
    EXPECT_FALSE(before->deferrable);
    EXPECT_FALSE(Of({Attribute(kDomain, 0)})->deferrable) << "of a kind that comes later";
    EXPECT_TRUE(Of({}, 1)->deferrable) << "another function";
}

TEST_F(KindsTainted, ATaintThatIsKnownIssuesNothing) {
    cus_engine_taint(functions_[11]);
    Teach(stream_);
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    ASSERT_TRUE(driver().journal.empty());
    cus_engine_taint(functions_[11]);
    EXPECT_TRUE(driver().journal.empty());
    cus_engine_taint(functions_[10]);
    EXPECT_EQ(driver().journal, std::vector<std::string>{Line("k0", 100, 0)});
}

TEST_F(Kinds, NoLimitIsKnownOfALaunchWithAClusterOrOfAWholeGrid) {
    EXPECT_NE(Of({})->threads_max, 0u);
    EXPECT_NE(Of({Attribute(kCarveout, 50)})->threads_max, 0u);
    for (int id : {(int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                   11, // CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION of later drivers
                   (int)CU_LAUNCH_ATTRIBUTE_COOPERATIVE}) {
        const cus_kind *kind = Of({Attribute(kDomain, 0), Attribute(id, 2)});
        ASSERT_NE(kind, nullptr) << id;
        EXPECT_EQ(kind->threads_max, 0u) << id;
        EXPECT_EQ(kind->cluster[0], id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ? 2u : 1u) << id;
    }
}

TEST_F(Kinds, TheClusterOfAFunctionIsThatOfItsLaunches) {
    static const auto query = driver().table.cuFuncGetAttribute;
    driver().table.cuFuncGetAttribute = [](int *value, CUfunction_attribute attribute,
                                           CUfunction f) {
        CUresult result = query(value, attribute, f);
        if (attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
            attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)
            *value = 2 + attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
        return result;
    };
    fake::Launch(stream_, functions_[2], 102);
    driver().table.cuFuncGetAttribute = query;
    const cus_kind *kind = Of({}, 2);
    ASSERT_NE(kind, nullptr);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(kind->cluster[i], 2 + i);
        EXPECT_EQ(Of({})->cluster[i], 1u);
    }
    EXPECT_EQ(kind->threads_max, 0u) << "whether a cluster fits is known by a run alone";
}

// What graphs are found by in another process.
TEST_F(Kinds, KindsThatDifferHaveOtherStableHashes) {
    const uint64_t hash = Of({Attribute(kCarveout, 50)})->stable;
    EXPECT_NE(hash, 0u);
    EXPECT_NE(Of({Attribute(kCarveout, 25)})->stable, hash);
    EXPECT_NE(Of({Attribute(kDomain, 50)})->stable, hash);
    EXPECT_NE(Of({})->stable, hash);
}

// Other processes find a graph by these hashes: each difference between two waits is in them.
TEST_F(Kinds, WaitsThatDifferHaveHashesThatDiffer) {
    const call_asked waits[] = {
        {CUS_OP_WAIT, CUS_ABI_LEGACY, nullptr, 0, 1, 1, 0},
        {CUS_OP_WAIT, CUS_ABI_LEGACY, nullptr, 0, 1, 2, 0},
        {CUS_OP_WAIT, CUS_ABI_LEGACY, nullptr, 0, 2, 1, 0},
        {CUS_OP_WAIT, CUS_ABI_LEGACY, nullptr, 1, 1, 1, 0},
        {CUS_OP_WAIT, CUS_ABI_LEGACY, nullptr, 0, 1, 1, 1},
        {CUS_OP_WAIT, CUS_ABI_LEGACY, nullptr, 0, 1, 300, 0},
    };
    std::set<uint64_t> hashes;
    for (const call_asked &wait : waits) {
        const cus_kind *kind = call_kind(context_, &wait);
        ASSERT_NE(kind, nullptr);
        EXPECT_EQ(kind->back, wait.back);
        EXPECT_EQ(call_kind(context_, &wait), kind);
        hashes.insert(kind->stable);
    }
    EXPECT_EQ(hashes.size(), std::size(waits));
}

// In a trace: the name of a function that did not run here is empty.
TEST_F(Kinds, AFunctionHasItsNameOnceItRan) {
    EXPECT_TRUE(function_has_name(context_, functions_[0], "k0"));
    EXPECT_TRUE(function_has_name(context_, functions_[2], ""));
    cus_engine_note_handle(functions_[3], CUS_HANDLE_FUNCTION);
    fake::Launch(stream_, functions_[3], 100);
    EXPECT_TRUE(function_has_name(context_, functions_[3], "k3"));
    cus_engine_note_handle(functions_[4], CUS_HANDLE_KERNEL);
    fake::Launch(stream_, functions_[4], 100);
    EXPECT_FALSE(function_has_name(context_, functions_[4], "k4")) << "no kernel has this handle";
}

// What a lock guards, functions of a context and streams with work, is left alone while another
// thread has the lock.
TEST_F(Kinds, WhoeverNeedsALockWaitsForIt) {
    static std::function<void()> call;
    static std::atomic<bool> done;
    static std::thread other;
    static bool early;
    auto meanwhile = [] {
        done = false;
        other = std::thread([] {
            call();
            done = true;
        });
        usleep(30000);
        early = done;
    };
    const cus_kind *kind = Of({}), *tainted = Of({}, 1);
    ASSERT_NE(kind->threads_max, 0u);
    ASSERT_TRUE(tainted->deferrable);
    launch_forget_shapes(context_); // a limit that is known is not read
    for (int which : {0, 1, 2}) {
        SCOPED_TRACE(which);
        call = [&, which] {
            which == 0   ? kinds_read_limit(context_, kind)
            : which == 1 ? kinds_taint(context_, functions_[1])
                         : room_begins_elsewhere(context_);
        };
        if (which < 2)
            hold_context(context_, meanwhile);
        else
            hold_build(meanwhile);
        other.join();
        EXPECT_FALSE(early);
        EXPECT_TRUE(done);
    }
    EXPECT_FALSE(tainted->deferrable);
}

// Of a configuration with a step that k1 marks.
class KindsOfAStep : public Kinds {
  protected:
    static void SetUpTestSuite() {
        const std::string path = ::testing::TempDir() + "kinds.conf";
        std::ofstream(path) << "[step one]\nmarker = k1\n[rules]\neager = k3\n";
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_CONFIG", path}}));
    }
};

TEST_F(KindsOfAStep, AMarkerMarksItsStep) {
    ASSERT_NE(Of({}, 1), nullptr);
    EXPECT_NE(Of({}, 1)->step, nullptr);
    EXPECT_EQ(Of({}, 0)->step, nullptr);
}

// Two streams had such steps. The report names the kernel that allows least, whichever goes last.
TEST_F(KindsOfAStep, TheWeakestKernelOfAllStreamsIsKept) {
    cus_stats_step steps[CUS_STATS_STEPS];
    char list[512];
    for (int least : {3, 2}) {
        CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        for (int step = 0; step < 4; step++) {
            for (int i : {1, 2, least})
                fake::Launch(stream, functions_[(size_t)i], 100);
            fake::Sync(stream);
        }
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        cus_engine_stream_gone(&ref);
    }
    cus_engine_segment_list(list, sizeof list);
    ASSERT_EQ(cus_engine_steps(steps), 1u);
    EXPECT_GE(steps[0].steps, 8u);
    EXPECT_STREQ(steps[0].kernel, "k3");
    EXPECT_STREQ(steps[0].policy, "eager");
    EXPECT_STREQ(steps[0].pattern, "k3");
    EXPECT_EQ(steps[0].line, 4) << "of the configuration";
}

} // namespace
