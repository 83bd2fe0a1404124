// Promise: ops that no graph stands for are deferred only if their graph may be built now.
#include "tests/unit/stream/calls.h"
#include "tests/unit/stream/engine.h"
#include "tests/unit/stream/engines.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace {

class Builds : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"},
                                       {"CUSPLICE_SEGMENT_MAX", "4"},
                                       {"CUSPLICE_BUILD_NODES", "4"}}));
    }
    // How many of a step's launches are deferred when they return.
    int Deferred() {
        int deferred = 0;
        driver().journal.clear();
        for (int i = 0; i < kOps; i++) {
            size_t before = driver().journal.size();
            EXPECT_EQ(Launch(i), CUDA_SUCCESS);
            deferred += driver().journal.size() == before;
        }
        Sync();
        EXPECT_EQ(driver().journal.size(), size_t{kOps});
        return deferred;
    }
    int Built() { return driver().calls["cuGraphInstantiateWithFlags"]; }
};

// Of each segment of four, all but the last launch, which launches the graph.
TEST_F(Builds, OpsAreDeferredSegmentBySegmentAsTheQuotaAllows) {
    EXPECT_EQ(Deferred(), 0);
    EXPECT_EQ(Deferred(), 0);
    for (int segments : {1, 2, 3, 3}) {
        EXPECT_EQ(Deferred(), segments * 3);
        EXPECT_EQ(Built(), segments);
    }
    fake::ExpectBalance();
}

TEST_F(Builds, NothingIsDeferredForAGraphWhileAnotherThreadBuilds) {
    EXPECT_EQ(Deferred(), 0);
    EXPECT_EQ(Deferred(), 0);
    cus_counters before = fake::Counters();
    WhileAnotherThreadBuilds([&] { EXPECT_EQ(Deferred(), 0); });
    EXPECT_EQ(fake::Counters().eager_by[CUS_EAGER_OBSERVING] - before.eager_by[CUS_EAGER_OBSERVING],
              uint64_t{kOps})
        << "it will be built, so it is learned";
    EXPECT_EQ(Built(), 0);
    EXPECT_EQ(Deferred(), 3);
    EXPECT_EQ(Built(), 1);
    fake::ExpectBalance();
}

// HAZARDS D6. A stream captures in global mode, so the legacy stream may not be used.
TEST_F(Builds, NothingIsDeferredBesideACaptureThatCoversTheStream) {
    EXPECT_EQ(Deferred(), 0);
    EXPECT_EQ(Deferred(), 0);
    const auto capturing = driver().table.cuStreamIsCapturing;
    driver().table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus *) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    };
    EXPECT_EQ(Deferred(), 0);
    driver().table.cuStreamIsCapturing = capturing;
    EXPECT_EQ(Deferred(), 3);
    fake::ExpectBalance();
}

// Two steps that begin alike: where they part, the deferred ops go on as the second one's segment
// if its graph may be built.
TEST_F(Builds, OpsGoOnAsAnotherSegmentOnlyIfItsGraphMayBeBuilt) {
    auto issued_by = [&](std::initializer_list<int> launches) {
        std::vector<size_t> issued;
        driver().journal.clear();
        for (int i : launches) {
            EXPECT_EQ(Launch(i), CUDA_SUCCESS);
            issued.push_back(driver().journal.size());
        }
        Sync();
        return issued;
    };
    using Counts = std::vector<size_t>;
    for (int step = 0; step < 6; step++)
        issued_by({0, 1, 2, 3});
    EXPECT_EQ(Built(), 1);
    const Counts parts = {0, 0, 3, 4}, whole = {0, 0, 0, 4};
    EXPECT_EQ(issued_by({0, 1, 8, 9}), parts);
    EXPECT_EQ(issued_by({0, 1, 8, 9}), parts);
    WhileAnotherThreadBuilds([&] { EXPECT_EQ(issued_by({0, 1, 8, 9}), parts); });
    last_engine_spend(4);
    EXPECT_EQ(issued_by({0, 1, 8, 9}), parts) << "the step has built enough";
    const int64_t budget = int64_t{1024} << 20; // of graph_mb
    graphs_hold(budget);
    EXPECT_EQ(issued_by({0, 1, 8, 9}), parts) << "no memory is left for it";
    graphs_hold(-budget);
    EXPECT_EQ(Built(), 1);
    EXPECT_EQ(issued_by({0, 1, 8, 9}), whole);
    EXPECT_EQ(Built(), 2);
    fake::ExpectBalance();
}

// Steps of other shapes than the one that has graphs.
class OtherShapes : public Engine {
  protected:
    void SetUp() override {
        Engine::SetUp();
        Steps(6);
        before_ = fake::Counters();
        ASSERT_EQ(Tried(), 3);
    }
    void InTurn(unsigned steps) {
        for (unsigned i = 0; i < steps; i++)
            Step(0, 2 + i % 4);
    }
    static int Tried() { return driver().calls["cuGraphInstantiateWithFlags"]; }
    // The graphs of the first shape were patched for each step.
    void ExpectPatched(uint64_t steps) {
        cus_counters now = fake::Counters();
        EXPECT_EQ(now.sig_patched - before_.sig_patched, steps * 3);
        EXPECT_EQ(now.sig_missed, before_.sig_missed);
    }
    cus_counters before_;
};

TEST_F(OtherShapes, GetGraphsOnceNobodyElseBuilds) {
    WhileAnotherThreadBuilds([&] { InTurn(40); });
    ExpectPatched(40);
    EXPECT_EQ(Tried(), 3);
    InTurn(4);
    EXPECT_EQ(Tried(), 3 * 4) << "not to build is no failure, however often";
}

TEST_F(OtherShapes, AreTriedMoreAndMoreRarelyWhereTheyCannotBeBuilt) {
    driver().fail = [](const std::string &name) {
        return name == "cuGraphInstantiateWithFlags" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    };
    InTurn(200);
    ExpectPatched(200);
    EXPECT_GT(Tried(), 3);
    EXPECT_LT(Tried(), 200);
}

} // namespace
