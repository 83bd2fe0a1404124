// Promise: every scenario of tests/sim, preloaded, ends as it does plain, in many orders of its
// threads' turns. SCHED_SEEDS=N tries N orders of each in place of one.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/fuzz/case.h"
#include "tests/sim/cases.h"

namespace sim {
namespace {

// What waits without a call that gives the turn away.
const struct {
    const char *name, *why;
} kLeftOut[] = {{"resident_process", "waits for another process"},
                {"poll_fifo", "looks at memory, and yields to nobody"},
                {"poll_rr", "looks at memory, and yields to nobody"}};

class Orders : public testing::TestWithParam<Case> {};

TEST_P(Orders, PreloadedIsAsPlain) {
    const Case &c = GetParam();
    for (const auto &left : kLeftOut) {
        if (c.name == left.name) {
            GTEST_SKIP() << left.why;
        }
    }
    const char *asked = getenv("SCHED_SEEDS");
    unsigned seeds = asked ? static_cast<unsigned>(atoi(asked)) : 1;
    Outcome plain = RunCase(c, {});
    ASSERT_EQ(plain.result.status, c.status) << "plain: " << plain.Describe();
    for (unsigned seed = 0; seed < seeds; seed++) {
        fuzz::Random r(seed);
        std::ostringstream plan;
        plan << r.Next() << " " << 1 + r.Below(5) << " " << r.Of<unsigned>({2000, 20000, 100000})
             << " " << r.Below(2);
        SCOPED_TRACE("SCHED_PLAN=" + plan.str());
        Setting setting;
        setting.preload = true;
        setting.library = "tests/sched/libcusplice.so";
        setting.env = {{"SCHED_PLAN", plan.str()},
                       {"LD_PRELOAD", Runfile("tests/sched/libsched.so") + ":" +
                                          Runfile("tests/sched/libcusplice.so")}};
        Outcome preloaded = RunCase(c, setting);
        ASSERT_SAME(c, plain, preloaded);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Orders, testing::ValuesIn(Cases()),
                         [](const auto &given) { return given.param.Title(); });

} // namespace
} // namespace sim
