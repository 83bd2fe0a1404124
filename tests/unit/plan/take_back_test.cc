// Promise: an op that failed is taken back as if it had never come, unless the path went on since
// then.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

namespace {

const cus_plan_limits kLimits = {2, 4, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false};

class TakeBack : public testing::Test {
  protected:
    void Start(const cus_plan_limits &limits) { program = std::make_unique<Program>(limits); }
    // The op is recorded, and may be taken back.
    cus_plan_mark Record(const std::string &name) {
        uint64_t pointer = 1;
        uint32_t scalar = 2;
        void *params[2] = {&pointer, &scalar};
        cus_op op = {program->Kind(name), {1, 1, 1, 32, 1, 1, 0}, params, nullptr};
        cus_proposal proposal;
        cus_plan_mark mark = {};
        EXPECT_EQ(cus_plan_offer(&program->plan, &op, &proposal), CUS_OFFER_EAGER);
        cus_plan_record_offered(&program->plan, &op, &mark);
        return mark;
    }
    cus_plan &Plan() { return program->plan; }

    std::unique_ptr<Program> program;
};

TEST_F(TakeBack, IsAsIfItHadNotCome) {
    Start(kLimits);
    Record("a");
    const cus_node *a = Plan().cur;
    const cus_signature sig = Plan().sig;
    cus_plan_mark mark = Record("b");
    ASSERT_NE(Plan().cur, a);
    cus_plan_take_back(&Plan(), &mark);
    EXPECT_EQ(Plan().cur, a);
    EXPECT_EQ(mark.node->visits, 0u);
    EXPECT_EQ(Plan().view.step_ops, 1u);
    EXPECT_TRUE(cus_signature_same(Plan().sig, sig));
}

TEST_F(TakeBack, NotOnceAnotherOpCame) {
    Start(kLimits);
    cus_plan_mark mark = Record("a");
    Record("b");
    const cus_node *b = Plan().cur;
    cus_plan_take_back(&Plan(), &mark);
    EXPECT_EQ(Plan().cur, b);
    EXPECT_EQ(mark.node->visits, 1u);
    EXPECT_EQ(Plan().view.step_ops, 2u);
}

TEST_F(TakeBack, NotOnceTheStepEnded) {
    Start(kLimits);
    cus_plan_mark mark = Record("a");
    cus_plan_step_end(&Plan());
    Record("b");
    const cus_node *b = Plan().cur;
    cus_plan_take_back(&Plan(), &mark);
    EXPECT_EQ(Plan().cur, b);
    EXPECT_EQ(mark.node->visits, 1u);
    EXPECT_EQ(Plan().view.step_ops, 1u);
}

// The op is the last one of a loop that is known.
TEST_F(TakeBack, NotOnceATurnEndedWithIt) {
    Start({2, 4, 64, 0, 1024, 200000, CUS_MODE_PIECEWISE, false});
    for (unsigned i = 0; i < 3000; i++) {
        std::string name = "k" + std::to_string(i % 200);
        program->Kind(name)->deferrable = false;
        uint32_t turns = Plan().turns;
        cus_plan_mark mark = Record(name);
        if (Plan().turns == turns)
            continue;
        const cus_node *behind = Plan().cur;
        ASSERT_NE(behind, mark.cur);
        cus_plan_take_back(&Plan(), &mark);
        EXPECT_EQ(Plan().cur, behind);
        return;
    }
    FAIL() << "no turn ended";
}

TEST_F(TakeBack, WhereTheTreeIsFull) {
    cus_plan_limits full = kLimits;
    full.nodes_max = 0;
    Start(full);
    cus_plan_mark mark = Record("a");
    EXPECT_EQ(mark.node, nullptr);
    ASSERT_EQ(Plan().view.step_ops, 1u);
    cus_plan_take_back(&Plan(), &mark);
    EXPECT_EQ(Plan().view.step_ops, 0u);
    EXPECT_EQ(Plan().cur, &Plan().tree.root);
}

// Where nothing is learned, ops are counted all the same.
TEST_F(TakeBack, WhereOpsAreCountedOnly) {
    cus_plan_limits limits = kLimits;
    limits.count_only = true;
    Start(limits);
    cus_plan_mark mark = Record("a");
    ASSERT_EQ(Plan().view.step_ops, 1u);
    cus_plan_take_back(&Plan(), &mark);
    EXPECT_EQ(Plan().view.step_ops, 0u);
    mark = Record("a");
    cus_plan_step_end(&Plan());
    Record("b");
    cus_plan_take_back(&Plan(), &mark);
    EXPECT_EQ(Plan().view.step_ops, 1u) << "the op is one of a step that ended";
    EXPECT_EQ(cus_plan_nodes(&Plan()), 0u);
}

} // namespace
