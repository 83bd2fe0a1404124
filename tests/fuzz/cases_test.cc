// Promises: a seed always makes the same programs, and every verb is drawn. Text can be read back
// unchanged. The shrinker keeps exactly what the difference needs.
#include <gtest/gtest.h>
#include <string.h>

#include <set>

#include "tests/fuzz/case.h"
#include "tests/fuzz/minimise.h"

namespace fuzz {
namespace {

bool Same(const fuzz_program &a, const fuzz_program &b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

TEST(Generate, ASeedMakesTheSameProgramsAndSettings) {
    for (uint64_t n = 0; n < 200; n++) {
        EXPECT_TRUE(Same(MakeProgram(3, n, false), MakeProgram(3, n, false)));
        EXPECT_FALSE(Same(MakeProgram(3, n, false), MakeProgram(4, n, false)));
        EXPECT_EQ(MakeEnv(3, n), MakeEnv(3, n));
    }
}

TEST(Generate, EveryVerbIsDrawnAndEveryNumberIsInRange) {
    std::set<unsigned> verbs;
    std::set<unsigned> kinds, threads;
    for (uint64_t n = 0; n < 2000; n++) {
        fuzz_program p = MakeProgram(1, n, false);
        threads.insert(p.threads);
        ASSERT_TRUE(p.lanes >= p.threads && p.lanes <= FUZZ_LANES && p.threads <= FUZZ_THREADS &&
                    p.n_ops > 0);
        for (unsigned l = 0; l < p.lanes; l++) {
            kinds.insert(p.kind[l]);
            ASSERT_LT(p.thread[l], p.threads);
        }
        for (unsigned i = 0; i < p.n_ops; i++) {
            const fuzz_op &o = p.op[i];
            verbs.insert(o.verb);
            ASSERT_TRUE(o.lane < p.lanes && o.other < p.lanes && o.every > 0 && o.phase < o.every &&
                        o.repeat > 0);
        }
    }
    EXPECT_EQ(verbs.size(), static_cast<size_t>(FUZZ_VERBS));
    EXPECT_EQ(kinds.size(), static_cast<size_t>(FUZZ_KINDS));
    EXPECT_EQ(threads.size(), 3u);
}

TEST(Generate, WithFaultsNoProgramMakesGraphs) {
    for (uint64_t n = 0; n < 500; n++) {
        fuzz_program p = MakeProgram(1, n, true);
        for (unsigned i = 0; i < p.n_ops; i++) {
            std::string verb = VerbName(p.op[i].verb);
            EXPECT_TRUE(verb != "capture" && verb != "graph_launch" && verb != "graph_nodes" &&
                        verb != "capture_begin");
        }
    }
}

TEST(Text, GivesBackWhatWasWritten) {
    for (uint64_t n = 0; n < 300; n++) {
        Case c, again;
        c.env = MakeEnv(9, n);
        c.fault = n % 2 ? MakeFault(9, n) : "";
        c.programs = {MakeProgram(9, n, false), MakeProgram(9, n + 1, false)};
        ASSERT_EQ(FromText(ToText(c), &again), "");
        EXPECT_EQ(again.env, c.env);
        EXPECT_EQ(again.fault, c.fault);
        ASSERT_EQ(again.programs.size(), 2u);
        EXPECT_TRUE(Same(again.programs[0], c.programs[0]) &&
                    Same(again.programs[1], c.programs[1]));
    }
}

TEST(Text, SaysWhatIsWrong) {
    Case c;
    EXPECT_EQ(FromText("", &c), "no program");
    EXPECT_EQ(FromText("op chain 0 0 0 1 0 1 0 1 1 0\n", &c), "line 1: no program yet");
    EXPECT_EQ(FromText("program 1 1 9\n", &c), "line 1: not a program");
    EXPECT_EQ(FromText("program 1 1 1\nlane NONE 0\n", &c), "line 2: not a lane");
    EXPECT_EQ(FromText("program 1 1 1\nlane LEGACY 0\nop nothing 0 0 0 1 0 1 0 1 1 0\n", &c),
              "line 3: no verb nothing");
    EXPECT_EQ(FromText("program 1 1 1\nlane LEGACY 0\nop chain 1 0 0 1 0 1 0 1 1 0\n", &c),
              "line 3: not an op");
}

TEST(Print, HoldsTheVerbsThatAreUsedAndNoOther) {
    Case c;
    ASSERT_EQ(FromText("program 2 1 1\nlane LEGACY 0\nop fill 0 0 0 1 0 1 0 1 1 0\n", &c), "");
    std::string text = ToC(c, "head line");
    EXPECT_NE(text.find(" * head line\n"), std::string::npos);
    EXPECT_NE(text.find("static void op_fill("), std::string::npos);
    EXPECT_EQ(text.find("static void op_chain("), std::string::npos);
    EXPECT_NE(text.find("{op_fill, 0, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0},"), std::string::npos);
}

// A difference that needs a fill with an odd value behind a chain, in the last program, of two
// steps and more, and a module in a program before it.
bool Differs(const Case &c) {
    auto has = [](const fuzz_program &p, unsigned verb, unsigned from, unsigned *at) {
        for (unsigned i = from; i < p.n_ops; i++) {
            if (p.op[i].verb == verb) {
                *at = i;
                return true;
            }
        }
        return false;
    };
    const fuzz_program &p = c.programs.back();
    unsigned at = 0;
    bool before = false;
    for (size_t i = 0; i + 1 < c.programs.size(); i++) {
        before = before || has(c.programs[i], FUZZ_module, 0, &at);
    }
    return before && p.steps >= 2 && has(p, FUZZ_chain, 0, &at) && has(p, FUZZ_fill, at, &at) &&
           c.env.count("A") > 0;
}

TEST(Minimise, KeepsWhatIsNeededAndNothingElse) {
    Case c;
    c.env = {{"A", "1"}, {"B", "2"}};
    std::string text;
    for (uint64_t n = 0; n < 12; n++) {
        c.programs.push_back(MakeProgram(4, n, false));
    }
    c.programs[5].op[0].verb = FUZZ_module;
    fuzz_program &last = c.programs.back();
    last.op[0].verb = FUZZ_chain;
    last.op[last.n_ops - 1].verb = FUZZ_fill;
    unsigned asked = 0;
    ASSERT_TRUE(Differs(c));
    Case small = Minimise(
        c,
        [&](const Case &smaller) {
            asked++;
            return Differs(smaller);
        },
        1000);
    EXPECT_TRUE(Differs(small));
    ASSERT_EQ(small.programs.size(), 2u);
    EXPECT_EQ(small.programs[0].n_ops, 1u);
    EXPECT_EQ(small.programs[1].n_ops, 2u);
    EXPECT_EQ(small.programs[1].steps, 2u);
    EXPECT_EQ(small.programs[1].threads, 1u);
    EXPECT_EQ(small.programs[1].lanes, 1u);
    EXPECT_EQ(small.env, (Env{{"A", "1"}}));
    EXPECT_LE(asked, 1000u);
}

TEST(Minimise, StopsAtItsBudget) {
    Case c;
    c.programs = {MakeProgram(4, 1, false)};
    unsigned asked = 0;
    Minimise(
        c,
        [&](const Case &) {
            asked++;
            return true;
        },
        5);
    EXPECT_EQ(asked, 5u);
}

} // namespace
} // namespace fuzz
