// Promise: rules have the right order and places, bad rules are reported, and missing rules cause a
// warning.
#include "shim/plan/rules.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "tests/unit/base/captured.h"

namespace {

using Strings = std::vector<std::string>;

void TakeProblem(void *context, const cus_problem *p) {
    char text[1200];
    cus_problem_show(p, text, sizeof text);
    static_cast<Strings *>(context)->push_back(text);
}

class Rules : public testing::Test {
  protected:
    void SetUp() override {
        for (const char *name : {"CUSPLICE_EAGER", "CUSPLICE_CONFIG", "CUSPLICE", "CUSPLICE_MODE"})
            unsetenv(name);
        home = TempPath("home");
        mkdir(home.c_str(), 0700);
        mkdir((home + "/cusplice").c_str(), 0700);
        unlink((home + "/cusplice/cusplice.conf").c_str());
        setenv("XDG_CONFIG_HOME", home.c_str(), 1);
        system_file = TempPath("system.conf");
        unlink(system_file.c_str());
        cus_config_system_file = system_file.c_str();
    }
    void TearDown() override { cus_rules_free(rules); }
    void Load(bool secure = false) {
        int n = 0;
        problems.clear();
        cus_rules_free(rules);
        rules = cus_rules_load(secure, TakeProblem, &problems, &n);
        EXPECT_EQ((size_t)n, problems.size());
    }
    std::string Named(const std::string &text) {
        std::string path = WriteFile(TempPath("named.conf"), text);
        setenv("CUSPLICE_CONFIG", path.c_str(), 1);
        return path;
    }
    std::string Decide(const char *name) {
        cus_verdict verdict = cus_rules_decide(rules, name);
        return std::string(cus_policy_name(verdict.policy)) + " " + std::to_string(verdict.rule);
    }

    struct cus_rules *rules = nullptr;
    Strings problems;
    std::string home, system_file;
};

TEST_F(Rules, WithoutAnyEveryKernelMayBeInAGraph) {
    Load();
    EXPECT_EQ(cus_rules_count(rules), 0u);
    EXPECT_EQ(Decide("anything"), "graph -1");
    EXPECT_EQ(Decide(nullptr), "graph -1");
}

TEST_F(Rules, TheFirstThatMatchesDecides) {
    Named("mode = eager\n[rules]\ngraph = flash_combine*\neager = flash*\nnever_defer = spin_*\n"
          "graph = *\neager = never_reached\n");
    Load();
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
    Load();
    EXPECT_EQ(problems, Strings{});
    auto ask = [&](const char *name, const char *lib, const char *call, int behind = -1) {
        cus_subject subject = {name, lib, call};
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
    Load();
    EXPECT_FALSE(cus_rules_have(rules, CUS_PATTERN_LIB));
    EXPECT_FALSE(cus_rules_have(rules, CUS_PATTERN_API));
}

TEST_F(Rules, ACallThatThereIsNotIsToldWithTheNearest) {
    std::string named = Named("[rules]\neager = api:cuMemcpyDtoDAsnc\neager = api:cudaMemcpy*\n"
                              "eager = api:cuMemAlloc\neager = lib:/lib/libx.so\n");
    Load();
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
    Load();
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0], named + ":2: [step] marker = lib:libx.so: bad pattern: a marker is "
                                   "named by its kernel");
    EXPECT_EQ(cus_rules_steps(rules), 0u);
}

TEST_F(Rules, StrongerPlacesAreAskedFirst) {
    WriteFile(system_file, "[rules]\neager = k\neager = system\n");
    WriteFile(home + "/cusplice/cusplice.conf", "[rules]\nnever_defer = k\neager = user\n");
    std::string named = Named("[rules]\ngraph = k\neager = named\n");
    Load();
    EXPECT_EQ(Decide("k"), "graph 0");
    EXPECT_EQ(Decide("user"), "eager 3");
    EXPECT_EQ(Decide("system"), "eager 5");
    EXPECT_EQ(cus_rules_get(rules, 0)->file, named);
    EXPECT_EQ(cus_rules_get(rules, 1)->line, 3);
    EXPECT_EQ(cus_rules_get(rules, 6), nullptr);
    setenv("CUSPLICE_EAGER", " k ;; other*\nthird;", 1);
    Load();
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
    Load();
    ASSERT_EQ(problems.size(), 4u);
    EXPECT_EQ(problems[0].find(named + ":2: eager = re:(: bad pattern: "), 0u) << problems[0];
    EXPECT_EQ(problems[1], named + ":3: unknown kind of rule 'eagr' (nearest: eager)");
    EXPECT_EQ(problems[2], named + ":4: 'mode' is no rule: it belongs above [rules]");
    EXPECT_EQ(problems[3], named + ":5: eager = [x: bad pattern: a [ without its ]");
    EXPECT_EQ(Decide("good"), "eager 0");
}

TEST_F(Rules, RaisedPrivilegesReadNone) {
    Named("[rules]\neager = a\n");
    Load(true);
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
    Named("mode = off\n");
    EXPECT_EQ(Captured(announce), "");
}

} // namespace
