// Promise: a period is told once all that is known of two turns is the same.
#include <gtest/gtest.h>

extern "C" {
#include "shim/plan/loop.h"
#include "shim/plan/op.h"
#include "shim/plan/step.h"
}

#include <vector>

namespace {

class Loop : public testing::Test {
  protected:
    void SetUp() override {
        for (uint32_t i = 0; i < kinds.size(); i++)
            kinds[i].id = i + 1;
    }
    void TearDown() override { cus_loop_free(&loop); }
    // The periods that were told during a turn of all kinds.
    unsigned Turn(cus_step_class step, uint32_t odd = UINT32_MAX) {
        unsigned told = 0;
        for (uint32_t i = 0; i < kinds.size(); i++) {
            uint8_t of = i == odd ? CUS_STEP_OUTSIDE : step;
            told += cus_loop_feed(&loop, {&kinds[i], of, 0}) != 0;
        }
        return told;
    }

    std::vector<cus_kind> kinds = std::vector<cus_kind>(300);
    cus_loop loop = {};
};

TEST_F(Loop, IsFoundWhereTurnsAreAlike) {
    EXPECT_EQ(Turn(CUS_STEP_MIXED), 0u);
    EXPECT_GT(Turn(CUS_STEP_MIXED) + Turn(CUS_STEP_MIXED), 0u);
}

// The same kernel in a step of another class is another op.
TEST_F(Loop, IsNotFoundAcrossAnotherStepClass) {
    EXPECT_EQ(Turn(CUS_STEP_MIXED), 0u);
    EXPECT_EQ(Turn(CUS_STEP_MIXED, 250), 0u);
    EXPECT_EQ(loop.at.period, 300u);
    EXPECT_LT(loop.at.run, 100u) << "counted anew behind the op";
}

} // namespace
