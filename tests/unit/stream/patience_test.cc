// Promise: the nodes of a long turn that are being built use up none of the patience with which the
// stream is learned. The test counts; its clock does not move.
#include "shim/base/clock.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <random>

namespace {

using fake::Counters;
using fake::driver;

enum { FUNCTIONS = 64, STEP = 500, STEPS = 100, TURN = STEPS * STEP };

class Patience : public fake::EngineTest {
  protected:
    void SetUp() override {
        fake::Reset();
        cus_virtual.on = true;
        cus_virtual.ns = 1000000;
        ASSERT_TRUE(fake::StartEngine({
            {"CUSPLICE_BUILD_US", "0"},
            {"CUSPLICE_BUILD_NODES", "400"}, // of the 500 of a step
            {"CUSPLICE_GRAPH_MB", "256"},
        }));
        functions_ = fake::MakeFunctions(FUNCTIONS + STEPS);
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    }
    void TearDown() override {
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
        fake::EndEngine();
    }

    // So many ops in an order that `seed` says; the first op of a step is its own. Returns how many
    // of them were in graphs.
    uint64_t Ops(unsigned ops, unsigned seed) {
        std::mt19937 random(seed);
        uint64_t before = Counters().in_graphs;
        for (unsigned i = 0; i < ops; i++) {
            unsigned function = i % STEP ? random() % FUNCTIONS : FUNCTIONS + i / STEP;
            EXPECT_EQ(fake::Launch(stream_, functions_[function], i), CUDA_SUCCESS);
            if (i % STEP == STEP - 1) {
                fake::Sync(stream_);
                driver().journal.clear();
            }
        }
        return Counters().in_graphs - before;
    }
    static uint64_t Demotions() { return Counters().fallbacks[CUS_FALLBACK_DEMOTED]; }

    std::vector<CUfunction> functions_;
    CUstream stream_;
};

// Learning takes most of the patience that is left after three demotions. Then the graphs of three
// launches in five are built in one turn, which is more than the rest.
TEST_F(Patience, NodesThatAreBuiltCostNone) {
    for (unsigned seed = 1; Demotions() < 3; seed++) {
        Ops(TURN, seed);
        ASSERT_LT(seed, 40u) << "nothing repeats";
    }
    uint64_t in_graphs = 0;
    for (unsigned turn = 0; turn < 7; turn++)
        in_graphs = Ops(TURN, 0);
    EXPECT_EQ(Demotions(), 3u);
    EXPECT_EQ(in_graphs, 0u + TURN);
}

} // namespace
