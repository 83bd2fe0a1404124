// Promise: rules have the right order and places, bad rules are reported, and missing rules cause a
// warning.
#include "shim/plan/rules.h"

#include <gtest/gtest.h>

#include <string>

#include "shim/plan/step.h"
#include "tests/unit/plan/nothing_left.h"
#include "tests/unit/plan/rule_files.h"

namespace {

class Rules : public RuleFiles {
  protected:
    std::string Decide(const char *name) {
        cus_verdict verdict = cus_rules_decide(rules, name);
        return std::string(cus_policy_name(verdict.policy)) + " " + std::to_string(verdict.rule);
    }
};

TEST_F(Rules, WithoutAnyEveryKernelMayBeInAGraph) {
    LoadAll();
    EXPECT_EQ(cus_rules_count(rules), 0u);
    EXPECT_EQ(Decide("anything"), "graph -1");
    EXPECT_EQ(Decide(nullptr), "graph -1");
}

TEST_F(Rules, TheFirstThatMatchesDecides) {
    Named("mode = eager\n[rules]\ngraph = flash_combine*\neager = flash*\nnever_defer = spin_*\n"
          "graph = *\neager = never_reached\n");
    LoadAll();
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(cus_rules_count(rules), 5u);
    EXPECT_EQ(Decide("flash_combine_f32"), "graph 0");
    EXPECT_EQ(Decide("_ZN5flash9flash_fwdIfEEvv"), "eager 1");
    EXPECT_EQ(Decide("spin_until"), "never_defer 2");
    EXPECT_EQ(Decide("never_reached"), "graph 3");
    EXPECT_EQ(Decide(nullptr), "graph -1");
}

TEST_F(Rules, ALibraryAndACallAreAskedInTheSameOrder) {
    std::string named = Named(
        "[rules]\ngraph = safe_*\nnever_defer = lib:libnccl*\neager = all_*\n"
        "graph = api:cuMemsetD8Async\neager = api:cuMemset*\nuniform = api:cuMemcpyDtoDAsync\n");
    LoadAll();
    EXPECT_EQ(problems, Strings{});
    auto ask = [&](const char *name, const char *lib, const char *call, int behind = -1) {
        cus_subject subject = {name, lib, call, nullptr, nullptr};
        cus_verdict verdict = cus_rules_ask(rules, &subject, behind);
        return std::string(cus_policy_name(verdict.policy)) + " " + std::to_string(verdict.rule);
    };
    EXPECT_EQ(ask("all_reduce", "libnccl.so.2", nullptr), "never_defer 1");
    EXPECT_EQ(ask("safe_reduce", "libnccl.so.2", nullptr), "graph 0");
    EXPECT_EQ(ask("safe_reduce", "libnccl.so.2", nullptr, 0), "never_defer 1");
    EXPECT_EQ(ask("all_reduce", "libother.so", nullptr), "eager 2");
    EXPECT_EQ(ask("all_reduce", nullptr, nullptr), "eager 2");
    EXPECT_EQ(ask(nullptr, "libnccl.so.2", nullptr), "never_defer 1");
    EXPECT_EQ(ask("cuMemsetD8Async", nullptr, nullptr), "graph -1");
    EXPECT_EQ(ask(nullptr, nullptr, "cuMemsetD8Async_ptsz"), "graph 3");
    EXPECT_EQ(ask(nullptr, nullptr, "cuMemsetD8Async", 3), "eager 4");
    EXPECT_EQ(ask(nullptr, nullptr, "cuMemsetD32Async"), "eager 4");
    EXPECT_EQ(ask(nullptr, nullptr, "cuMemcpyDtoDAsync_v2"), "uniform 5");
    EXPECT_EQ(ask(nullptr, nullptr, "cuMemcpyAsync"), "graph -1");
    for (cus_pattern_sort sort : {CUS_PATTERN_NAME, CUS_PATTERN_LIB, CUS_PATTERN_API})
        EXPECT_TRUE(cus_rules_have(rules, sort));
    Named("[rules]\neager = a\n");
    LoadAll();
    EXPECT_FALSE(cus_rules_have(rules, CUS_PATTERN_LIB));
    EXPECT_FALSE(cus_rules_have(rules, CUS_PATTERN_API));
}

TEST_F(Rules, ACallThatThereIsNotIsToldWithTheNearest) {
    std::string named = Named("[rules]\neager = api:cuMemcpyDtoDAsnc\neager = api:cudaMemcpy*\n"
                              "eager = api:cuMemAlloc\neager = lib:/lib/libx.so\n");
    LoadAll();
    ASSERT_EQ(problems.size(), 3u);
    EXPECT_EQ(problems[0], named + ":2: eager = api:cuMemcpyDtoDAsnc: the driver has no such call "
                                   "(nearest: cuMemcpyDtoDAsync)");
    EXPECT_EQ(problems[1].find(named + ":3: eager = api:cudaMemcpy*: the driver has no such call "
                                       "(nearest: cu"),
              0u)
        << problems[1];
    EXPECT_EQ(problems[2], named + ":5: eager = lib:/lib/libx.so: bad pattern: a library is named "
                                   "by its file name, without folders");
    EXPECT_EQ(cus_rules_count(rules), 1u); // a call that is no op: a rule without effect
}

TEST_F(Rules, AMarkerIsAKernel) {
    std::string named =
        Named("[step]\nmarker = lib:libx.so\n[step]\nmarker = api:cuMemsetD8Async\n");
    LoadAll();
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0], named + ":2: [step] marker = lib:libx.so: bad pattern: a marker is "
                                   "named by its kernel");
    EXPECT_EQ(cus_rules_steps(rules), 0u);
}

TEST_F(Rules, StrongerPlacesAreAskedFirst) {
    WriteFile(system_file, "[rules]\neager = k\neager = system\n");
    WriteFile(User(), "[rules]\nnever_defer = k\neager = user\n");
    std::string named = Named("[rules]\ngraph = k\neager = named\n");
    LoadAll();
    EXPECT_EQ(Decide("k"), "graph 0");
    EXPECT_EQ(Decide("user"), "eager 3");
    EXPECT_EQ(Decide("system"), "eager 5");
    EXPECT_EQ(cus_rules_get(rules, 0)->file, named);
    EXPECT_EQ(cus_rules_get(rules, 1)->line, 3);
    EXPECT_EQ(cus_rules_get(rules, 6), nullptr);
    setenv("CUSPLICE_EAGER", " k ;; other*\nthird;", 1);
    LoadAll();
    EXPECT_EQ(Decide("k"), "eager 0");
    EXPECT_EQ(Decide("other_kernel"), "eager 1");
    EXPECT_EQ(Decide("third"), "eager 2");
    EXPECT_EQ(cus_rules_count(rules), 9u);
    EXPECT_STREQ(cus_rules_get(rules, 0)->file, "CUSPLICE_EAGER");
    EXPECT_STREQ(cus_rules_get(rules, 0)->pattern, "k");
}

TEST_F(Rules, BadOnesAreToldAndTheOthersCount) {
    std::string named =
        Named("[rules]\neager = re:(\neagr = a\nmode = off\neager = [x\neager = good\n");
    LoadAll();
    ASSERT_EQ(problems.size(), 4u);
    EXPECT_EQ(problems[0].find(named + ":2: eager = re:(: bad pattern: "), 0u) << problems[0];
    EXPECT_EQ(problems[1], named + ":3: unknown kind of rule 'eagr' (nearest: eager)");
    EXPECT_EQ(problems[2], named + ":4: 'mode' is no rule: it belongs above [rules]");
    EXPECT_EQ(problems[3], named + ":5: eager = [x: bad pattern: a [ without its ]");
    EXPECT_EQ(Decide("good"), "eager 0");
}

TEST_F(Rules, AProblemThatNobodyListensToIsCounted) {
    Named("[rules]\neager = [x\neager = re:^_ZN2at\neager = good\n");
    int n = 0;
    struct cus_rules *quiet = cus_rules_load(false, nullptr, nullptr, &n);
    EXPECT_EQ(n, 2) << "one is refused, one is told";
    EXPECT_EQ(cus_rules_count(quiet), 2u);
    EXPECT_FALSE(cus_rules_matched(quiet, 1));
    EXPECT_FALSE(cus_rules_matched(quiet, 2)) << "there is none";
    cus_rules_free(quiet);
}

TEST_F(Rules, NothingIsLeftOfThoseThatWent) {
    Named("mode = eager\n[rules]\neager = [x\neager = re:^_ZN2at\neager = good\neager = a b\n"
          "graph = re:^g\neager = api:cuNone\neager = api:cuMemcpy*\neager = lib:libnccl*\n"
          "[step]\nmarker = a*\nclass = mixed\n[step]\nmarker = [\n[step]\nclass = decode\n");
    ExpectNothingLeft([this] { LoadAll(); });
}

TEST_F(Rules, OfANamedFileAreNamed) {
    std::string named = Named("[rules]\neager = a\n");
    int n = 0;
    struct cus_rules *of_file = cus_rules_load_file(named.c_str(), nullptr, nullptr, &n);
    ASSERT_EQ(cus_rules_count(of_file), 1u);
    EXPECT_EQ(cus_rules_get(of_file, 0)->source, CUS_SOURCE_NAMED);
    cus_rules_free(of_file);
}

TEST_F(Rules, RaisedPrivilegesReadNone) {
    Named("[rules]\neager = a\n");
    LoadAll(true);
    EXPECT_EQ(cus_rules_count(rules), 0u);
}

TEST_F(Rules, ARunningProgramIsWarnedOnceAndGoesOn) {
    Named("[rules]\neager = re:[\neager = fine\n");
    std::string text = Captured([] {
        if (cus_rules_count(cus_rules()) != 1 || cus_rules() != cus_rules())
            abort();
        cus_rules_announce();
    });
    EXPECT_EQ(Count(text, "\n"), 1u) << text;
    EXPECT_EQ(Count(text, "bad pattern"), 1u) << text;
}

TEST_F(Rules, NoEagerRuleIsSaidLoudlyOnce) {
    const std::string word = "no eager rule: every kernel may be put into a graph";
    auto announce = [] {
        cus_rules_announce();
        cus_rules_announce();
    };
    EXPECT_EQ(Count(Captured(announce), word), 1u);
    Named("[rules]\ngraph = a\n"); // keeps nothing out
    EXPECT_EQ(Count(Captured(announce), word), 1u);
    Named("[rules]\neager = a\n");
    EXPECT_EQ(Captured(announce), "");
    Named("[rules]\nnever_defer = a\n");
    EXPECT_EQ(Captured(announce), "");
    for (const char *mode : {"off", "observe", "eager"}) { // these make no graph
        Named("mode = " + std::string(mode) + "\n");
        EXPECT_EQ(Captured(announce), "") << mode;
    }
}

TEST_F(Rules, ALaterFileIsAskedFirstAndAFileBeforeWhatItIncludes) {
    std::string a = WriteFile(TempPath("a.conf"), "[rules]\neager = k\neager = a\n");
    std::string c = WriteFile(TempPath("c.conf"), "[rules]\nuniform = k\neager = c\n"
                                                  "[step c]\nmarker = m\n");
    std::string b = WriteFile(TempPath("b.conf"), "include = " + c +
                                                      "\n[rules]\ngraph = k\neager = b\n"
                                                      "[step b]\nmarker = m\n");
    setenv("CUSPLICE_CONFIG", (a + ":" + b).c_str(), 1);
    LoadAll();
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(Decide("k"), "graph 0");
    EXPECT_EQ(Decide("b"), "eager 1");
    EXPECT_EQ(Decide("c"), "eager 3");
    EXPECT_EQ(Decide("a"), "eager 5");
    EXPECT_STREQ(cus_rules_step(rules, "m")->name, "b");
    EXPECT_TRUE(cus_rules_step_matched(rules, 0));
    EXPECT_FALSE(cus_rules_step_matched(rules, 1));
    EXPECT_FALSE(cus_rules_step_matched(rules, 2));
    setenv("CUSPLICE_CONFIG", (b + ":" + a).c_str(), 1);
    LoadAll();
    EXPECT_EQ(Decide("k"), "eager 0");
    setenv("CUSPLICE_EAGER", "x", 1);
    WriteFile(User(), "[rules]\neager = u\n");
    LoadAll();
    EXPECT_EQ(cus_rules_get(rules, 0)->source, CUS_SOURCE_ENVIRONMENT);
    EXPECT_EQ(cus_rules_get(rules, 1)->source, CUS_SOURCE_NAMED);
    EXPECT_EQ(cus_rules_get(rules, 7)->source, CUS_SOURCE_USER);
}

TEST_F(Rules, WhatCanMatchNothingIsRefusedAndWhatHardlyMatchesIsTold) {
    std::string named = Named("[rules]\neager = attention_decode # why\neager = ns::k\n"
                              "eager = _ZN2ns1kEv\neager = fine\ninclude = x\n"
                              "[step]\nmarker = a b\n[step]\nmarker = _Z1mv\n");
    LoadAll();
    EXPECT_EQ(
        problems,
        (Strings{named + ":2: eager = attention_decode # why: matches nothing: nothing behind a "
                         "value is a comment, which stands on a line of its own (nearest: "
                         "attention_decode)",
                 named + ":3: eager = ns::k: matches nothing: a base name has no namespaces "
                         "(nearest: re:^ns::k$)",
                 named + ":4: eager = _ZN2ns1kEv: matches hardly what is meant: it is compared "
                         "with base names, which do not begin with _Z (nearest: "
                         "mangled:_ZN2ns1kEv)",
                 named + ":6: 'include' is no rule: it belongs above [rules]",
                 named + ":8: marker = a b: matches nothing: a kernel's name has no blanks, and "
                         "a rule has one pattern",
                 named + ":10: marker = _Z1mv: matches hardly what is meant: it is compared with "
                         "base names, which do not begin with _Z (nearest: mangled:_Z1mv)"}));
    ASSERT_EQ(cus_rules_count(rules), 2u);
    EXPECT_STREQ(cus_rules_get(rules, 0)->pattern, "_ZN2ns1kEv");
    EXPECT_EQ(Decide("fine"), "eager 1");
    EXPECT_EQ(cus_rules_steps(rules), 1u);
}

// In traces kernels may be named as no compiler names them.
TEST_F(Rules, ToolsThatPlayTracesTakeAnyName) {
    setenv("CUSPLICE_EAGER", "mangled:void ns::k<float>(int);a b", 1);
    std::string named = Named("[rules]\neager = c d\n");
    cus_rules_any_name = true;
    LoadAll();
    cus_rules_any_name = false;
    EXPECT_EQ(problems, (Strings{named + ":2: eager = c d: matches nothing: a kernel's name has no "
                                         "blanks, and a rule has one pattern"}));
    EXPECT_EQ(Decide("void ns::k<float>(int)"), "eager 0");
    EXPECT_EQ(Decide("a b"), "eager 1");
    EXPECT_EQ(Decide("c d"), "eager 2");
    LoadAll();
    EXPECT_EQ(cus_rules_count(rules), 0u);
}

TEST_F(Rules, AKernelWithoutItsMangledNameIsAskedByTheOthers) {
    Named("[rules]\neager = mangled:*\nuniform = re:^ns::k$\neager = k\n[step]\nmarker = "
          "re:^ns::m\n");
    LoadAll();
    auto ask = [&](const char *base, const char *qualified) {
        cus_subject subject = {nullptr, nullptr, nullptr, base, qualified};
        return cus_rules_ask(rules, &subject, -1).rule;
    };
    EXPECT_EQ(ask("k", "ns::k"), 1);
    EXPECT_EQ(ask("k", "k"), 2);
    EXPECT_EQ(ask("j", "ns::j"), -1);
    cus_subject marker = {nullptr, nullptr, nullptr, "m", "ns::m"};
    EXPECT_NE(cus_rules_step_of(rules, &marker), nullptr);
}

// Where no graphs are made, no kernel is put into one.
TEST_F(Rules, NoEagerRuleIsNotSaidWhereNoGraphsAreMade) {
    for (const char *mode : {"off", "observe", "eager", "full_decode_only"}) {
        Named(std::string("mode = ") + mode + "\n");
        EXPECT_EQ(Captured([] { cus_rules_announce(); }), "") << mode;
    }
    Named("mode = full_decode_only\n[step]\nmarker = k\n");
    EXPECT_EQ(Count(Captured([] { cus_rules_announce(); }), "no eager rule"), 1u);
}

} // namespace
