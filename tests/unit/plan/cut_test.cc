// Promise: of a step whose segment was cut, the plan knows what it would know if each of its ops
// had been issued by itself.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <string>

extern "C" {
#include "shim/plan/step.h"
}

namespace {

class Cut : public testing::Test {
  protected:
    enum { OPS = 8, BEFORE = 3 };

    void Ops(unsigned from, unsigned to) {
        for (unsigned i = from; i < to; i++)
            program_.Op("k" + std::to_string(i), i, i, i + 1);
    }
    // Until a step is one graph.
    void Learn() {
        for (int i = 0; i < 6; i++) {
            Ops(0, OPS);
            program_.Sync();
        }
        ASSERT_EQ(List(), "[\"graph 8\"]");
    }
    std::string List() {
        char text[256];
        EXPECT_TRUE(cus_segment_list_json(&program_.plan.last, text, sizeof text));
        return text;
    }

    Program program_{{2, 8, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false}};
};

TEST_F(Cut, OpsAreListedOneByOne) {
    for (int i = 0; i < 6; i++) {
        Ops(0, 2 * OPS);
        program_.Sync();
    }
    ASSERT_EQ(List(), "[\"graph 16\"]");
    Ops(0, BEFORE);
    program_.Break();
    Ops(BEFORE, 2 * OPS);
    program_.Sync();
    std::string eager; // those of the cut, and those up to where the next segment begins
    for (int i = 0; i < OPS; i++)
        eager += "\"eager k" + std::to_string(i) + "\", ";
    EXPECT_EQ(List(), "[" + eager + "\"graph 8\"]");
    ExpectFaithful(program_);
}

TEST_F(Cut, TheSignatureIsThatOfTheOps) {
    Ops(0, BEFORE);
    cus_signature eager = program_.plan.sig;
    Ops(BEFORE, OPS);
    program_.Sync();
    Learn();
    for (bool twice : {false, true}) {
        Ops(0, BEFORE);
        ASSERT_NE(program_.plan.view.segment, nullptr) << twice;
        program_.Break();
        EXPECT_TRUE(cus_signature_same(program_.plan.sig, eager)) << twice;
        Ops(BEFORE, OPS);
        program_.Sync();
    }
}

TEST_F(Cut, AStepIsCountedByItsMarker) {
    cus_step_rule rule = {};
    rule.marker = "k0";
    rule.tokens = CUS_STEP_X;
    rule.tokens_each = 1;
    rule.single = {CUS_STEP_TOKENS, CUS_STEP_LE, 4};
    program_.Kind("k0")->step = &rule;
    Learn();
    uint64_t before = program_.plan.steps[CUS_STEP_SINGLE];
    EXPECT_EQ(before, 6u);
    Ops(0, BEFORE);
    ASSERT_NE(program_.plan.view.segment, nullptr);
    program_.Break();
    EXPECT_EQ(program_.plan.steps[CUS_STEP_SINGLE], before + 1);
    Ops(BEFORE, OPS);
    program_.Sync();
    EXPECT_EQ(program_.plan.steps[CUS_STEP_SINGLE], before + 1);
}

} // namespace
