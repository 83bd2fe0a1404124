// Promise: a path merges with a known one only where the same ops led to an op of the same kind and
// step class.
#include <gtest/gtest.h>

#include <array>

extern "C" {
#include "shim/plan/merges.h"
#include "shim/plan/op.h"
#include "shim/plan/step.h"
#include "shim/plan/tree.h"
}

namespace {

class Merges : public testing::Test {
  protected:
    void TearDown() override { cus_merges_clear(&merges); }
    // Ops with grids from `first` on, until the last one's place is checked.
    void Feed(uint32_t first) {
        for (uint32_t x = first; !merges.slot; x++) {
            cus_op op = {&kind, {x, 1, 1, 32, 1, 1, 0}, nullptr, nullptr};
            cus_merges_feed(&merges, &op);
        }
    }

    cus_kind kind = {}, other = {};
    cus_op op = {&kind, {1, 1, 1, 32, 1, 1, 0}, nullptr, nullptr};
    cus_op of_other = {&other, {1, 1, 1, 32, 1, 1, 0}, nullptr, nullptr};
    cus_merges merges = {};
};

TEST_F(Merges, KindAndStepClassMustBeTheSame) {
    cus_node node = {};
    node.key.kind = &kind;
    node.key.step = CUS_STEP_MIXED;
    Feed(1);
    EXPECT_EQ(cus_merges_known(&merges, &op, CUS_STEP_MIXED), nullptr) << "nobody was here";
    cus_merges_note(&merges, &node);
    EXPECT_EQ(cus_merges_known(&merges, &op, CUS_STEP_MIXED), &node);
    EXPECT_EQ(cus_merges_known(&merges, &op, CUS_STEP_SINGLE), nullptr);
    EXPECT_EQ(cus_merges_known(&merges, &of_other, CUS_STEP_MIXED), nullptr);
    merges.gram++;
    EXPECT_EQ(cus_merges_known(&merges, &op, CUS_STEP_MIXED), nullptr) << "other ops led here";
}

} // namespace
