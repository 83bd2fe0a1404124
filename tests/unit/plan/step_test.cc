// Promise: [step] sections are read and bad ones reported. A marker's grid tells the step class,
// and the class tells which kernels may be in graphs.
#include "shim/plan/step.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shim/plan/step_read.h"
#include "tests/unit/plan/rule_files.h"

namespace {

// ---- sections ----

class Step : public RuleFiles {
  protected:
    // One file; problems are told without its name.
    void Load(const std::string &text) {
        int n = 0;
        file = WriteFile(TempPath("steps.conf"), text);
        problems.clear();
        cus_rules_free(rules);
        rules = cus_rules_load_file(file.c_str(), TakeProblem, &problems, &n);
        EXPECT_EQ((size_t)n, problems.size());
        for (std::string &problem : problems) {
            EXPECT_EQ(problem.compare(0, file.size(), file), 0) << problem;
            problem = problem.substr(file.size());
        }
    }
    // The only problem of a section of which this line is the third of the file, and that the
    // section is left out.
    std::string Wrong(const std::string &line) {
        Load("[step]\nmarker = k\n" + line + "\n");
        EXPECT_EQ(cus_rules_steps(rules), 0u) << line;
        EXPECT_EQ(cus_rules_step(rules, "k"), nullptr) << line;
        EXPECT_EQ(problems.size(), 1u) << line;
        return problems.empty() ? "" : problems[0];
    }
    std::string Show(const cus_step_rule *rule, enum cus_step_key key) {
        char text[CUS_STEP_SHOWN];
        bool said = rule && cus_step_show(rule, key, text, sizeof text);
        EXPECT_EQ(said, rule && *text);
        return said ? text : "";
    }
    // Which section a kernel is the marker of, by its name.
    std::string NameOf(const char *kernel) {
        const cus_step_rule *rule = cus_rules_step(rules, kernel);
        return rule ? rule->name : "(none)";
    }

    std::string file;
};

TEST_F(Step, SectionIsReadWithAllItsKeys) {
    Load("mode = full\n[rules]\neager = a\n[step decode]\nmarker = embed*\ntokens = y\n"
         "tokens_each = 4\nuniform = tokens <= 16\nsingle = z==1\nsizes = 1, 2,4 ,8 .. 64 / 8\n");
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(cus_rules_count(rules), 1u);
    ASSERT_EQ(cus_rules_steps(rules), 1u);
    const cus_step_rule *rule = cus_rules_step_get(rules, 0);
    EXPECT_EQ(cus_rules_step_get(rules, 1), nullptr);
    EXPECT_EQ(cus_rules_step(rules, "_ZN2ns9embed_fwdIfEEvPT_"), rule);
    EXPECT_EQ(cus_rules_step(rules, "other"), nullptr);
    EXPECT_EQ(cus_rules_step(rules, nullptr), nullptr);
    EXPECT_STREQ(rule->name, "decode");
    EXPECT_STREQ(rule->marker, "embed*");
    EXPECT_EQ(rule->file, file);
    EXPECT_EQ(rule->line, 5);
    EXPECT_EQ(rule->tokens, CUS_STEP_Y);
    EXPECT_EQ(rule->tokens_each, 4u);
    EXPECT_EQ(rule->uniform.subject, CUS_STEP_TOKENS);
    EXPECT_EQ(rule->uniform.compare, CUS_STEP_LE);
    EXPECT_EQ(rule->uniform.number, 16u);
    EXPECT_EQ(rule->single.subject, CUS_STEP_Z);
    EXPECT_EQ(rule->single.compare, CUS_STEP_EQ);
    EXPECT_EQ(rule->single.number, 1u);
    const uint32_t sizes[][3] = {{1, 1, 1}, {2, 2, 1}, {4, 4, 1}, {8, 64, 8}};
    ASSERT_EQ(rule->n_sizes, 4u);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(rule->sizes[i].first, sizes[i][0]);
        EXPECT_EQ(rule->sizes[i].last, sizes[i][1]);
        EXPECT_EQ(rule->sizes[i].stride, sizes[i][2]);
    }
    EXPECT_EQ(Show(rule, CUS_STEP_KEY_MARKER), "embed*");
    EXPECT_EQ(Show(rule, CUS_STEP_KEY_TOKENS), "y");
    EXPECT_EQ(Show(rule, CUS_STEP_KEY_TOKENS_EACH), "4");
    EXPECT_EQ(Show(rule, CUS_STEP_KEY_UNIFORM), "tokens <= 16");
    EXPECT_EQ(Show(rule, CUS_STEP_KEY_SINGLE), "z == 1");
    EXPECT_EQ(Show(rule, CUS_STEP_KEY_SIZES), "1,2,4,8..64/8");
}

TEST_F(Step, OnlyTheMarkerMustBeThere) {
    Load("[step]\nmarker = k\n");
    EXPECT_EQ(problems, Strings{});
    const cus_step_rule *rule = cus_rules_step(rules, "k");
    ASSERT_NE(rule, nullptr);
    EXPECT_STREQ(rule->name, "");
    EXPECT_EQ(rule->tokens, CUS_STEP_X);
    EXPECT_EQ(rule->tokens_each, 1u);
    EXPECT_EQ(rule->n_sizes, 0u);
    for (enum cus_step_key key : {CUS_STEP_KEY_UNIFORM, CUS_STEP_KEY_SINGLE, CUS_STEP_KEY_SIZES})
        EXPECT_EQ(Show(rule, key), "") << cus_step_keys[key];
}

TEST_F(Step, EveryComparisonAndSubjectIsRead) {
    const std::vector<std::pair<std::string, enum cus_step_compare>> compares = {
        {"==", CUS_STEP_EQ}, {"!=", CUS_STEP_NE}, {"<=", CUS_STEP_LE},
        {">=", CUS_STEP_GE}, {"<", CUS_STEP_LT},  {">", CUS_STEP_GT}};
    const std::vector<std::pair<std::string, enum cus_step_subject>> subjects = {
        {"x", CUS_STEP_X}, {"y", CUS_STEP_Y}, {"z", CUS_STEP_Z}, {"tokens", CUS_STEP_TOKENS}};
    for (const auto &compare : compares)
        for (const auto &subject : subjects)
            for (const char *blank : {"", " ", " \t "}) {
                std::string text = subject.first + blank + compare.first + blank + "4294967295";
                Load("[step]\nmarker = k\nuniform = " + text + "\n");
                const cus_step_rule *rule = cus_rules_step(rules, "k");
                ASSERT_NE(rule, nullptr) << text;
                EXPECT_EQ(rule->uniform.subject, subject.second) << text;
                EXPECT_EQ(rule->uniform.compare, compare.second) << text;
                EXPECT_EQ(rule->uniform.number, 4294967295u) << text;
                EXPECT_EQ(rule->single.compare, CUS_STEP_NEVER) << text;
                EXPECT_EQ(Show(rule, CUS_STEP_KEY_UNIFORM),
                          subject.first + " " + compare.first + " 4294967295");
            }
}

TEST_F(Step, FirstSectionWhoseMarkerMatchesDecides) {
    Load("[step a]\nmarker = one\n[step b]\nmarker = re:^(one|two)\n[rules]\ngraph = g\n"
         "[step c]\nmarker = *\n[step]\nmarker = never\n");
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(cus_rules_steps(rules), 4u);
    EXPECT_EQ(cus_rules_count(rules), 1u);
    EXPECT_EQ(NameOf("one"), "a");
    EXPECT_EQ(NameOf("two"), "b");
    EXPECT_EQ(NameOf("never"), "c");
}

TEST_F(Step, StrongerPlacesAreAskedFirst) {
    WriteFile(system_file, "[step system]\nmarker = k\n[step]\nmarker = s\n");
    WriteFile(User(), "[step user]\nmarker = k*\n[step bad]\ntokens = x");
    Named("[step named]\nmarker = k\n");
    LoadAll();
    EXPECT_EQ(problems, (Strings{home + "/cusplice/cusplice.conf:3: [step bad] has no marker"}));
    EXPECT_EQ(cus_rules_steps(rules), 4u);
    EXPECT_EQ(NameOf("k"), "named");
    EXPECT_EQ(NameOf("k2"), "user");
    EXPECT_EQ(NameOf("s"), "");
    LoadAll(true);
    EXPECT_EQ(cus_rules_steps(rules), 0u);
}

TEST_F(Step, SectionWithoutMarkerIsTold) {
    Load("[step]\n[step a b]\ntokens = y\n# a comment\n[rules]\neager = e\n[step c]\n");
    EXPECT_EQ(problems, (Strings{":1: [step] has no marker", ":2: [step a b] has no marker",
                                 ":7: [step c] has no marker"}));
    EXPECT_EQ(cus_rules_steps(rules), 0u);
    EXPECT_EQ(cus_rules_count(rules), 1u);
}

TEST_F(Step, NothingOfABadSectionIsUsed) {
    Load("[step a]\nmarker = k\nsizes = 4\nsize = 3\ntokens = y\n[step b]\nmarker = k\n"
         "[step c]\nmarker = [x\n");
    EXPECT_EQ(problems, (Strings{":4: [step a] unknown key 'size' (nearest: sizes)",
                                 ":9: [step c] marker = [x: bad pattern: a [ without its ]"}));
    ASSERT_EQ(cus_rules_steps(rules), 1u);
    EXPECT_EQ(NameOf("k"), "b");
    EXPECT_EQ(cus_rules_step(rules, "k")->n_sizes, 0u);
    EXPECT_EQ(cus_rules_step(rules, "k")->tokens, CUS_STEP_X);
}

TEST_F(Step, EveryProblemOfASectionIsTold) {
    Load("[step a]\nsingle = w == 1\nmarkr = k\nsizes = 0\n");
    EXPECT_EQ(problems,
              (Strings{":2: [step a] single = w == 1: must be x, y, z or tokens, then ==, !=, <=, "
                       ">=, < or >, then a number (nearest: x)",
                       ":3: [step a] unknown key 'markr' (nearest: marker)",
                       ":4: [step a] sizes = 0: '0': there are no steps of 0 tokens",
                       ":1: [step a] has no marker"}));
}

TEST_F(Step, KeysOfOtherPlacesAreSaidToBelongThere) {
    EXPECT_EQ(Wrong("hold_us = 60"),
              ":3: [step] 'hold_us' is a setting: it belongs above all sections");
    EXPECT_EQ(Wrong("include = other.conf"),
              ":3: [step] 'include' is a setting: it belongs above all sections");
    EXPECT_EQ(Wrong("never_defer = k"), ":3: [step] 'never_defer' is a rule: it belongs below "
                                        "[rules]");
    Load("[rules]\nmarker = k\n");
    EXPECT_EQ(problems, (Strings{":2: 'marker' is no rule: it belongs in a [step] section"}));
}

TEST_F(Step, NoKeyMayBeThereTwice) {
    EXPECT_EQ(Wrong("marker = other"), ":3: [step] marker is there twice");
    for (const char *text :
         {"tokens = x", "tokens_each = 2", "uniform = x == 1", "single = x == 1", "sizes = 1"}) {
        std::string line = text;
        Load("[step]\nmarker = k\n" + line + "\n" + line + "\n");
        std::string key = line.substr(0, line.find(' '));
        EXPECT_EQ(problems, (Strings{":4: [step] " + key + " is there twice"}));
        EXPECT_EQ(cus_rules_steps(rules), 0u);
    }
    Load("[step]\nmarker = k\ntokens = x\n[step]\nmarker = k\ntokens = x\n");
    EXPECT_EQ(problems, Strings{});
}

TEST_F(Step, BadDimensionsAndFactorsAreTold) {
    EXPECT_EQ(Wrong("tokens = X"), ":3: [step] tokens = X: must be x, y or z (nearest: x)");
    EXPECT_EQ(Wrong("tokens = tokens").find(":3: [step] tokens = tokens: must be x, y or z"), 0u);
    EXPECT_EQ(Wrong("tokens =").find(":3: [step] tokens = : must be x, y or z"), 0u);
    for (const char *value : {"0", "-1", "two", "4294967296", "99999999999999999999999", "1 2", ""})
        EXPECT_EQ(Wrong(std::string("tokens_each = ") + value),
                  std::string(":3: [step] tokens_each = ") + value +
                      ": must be a whole number from 1 to 4294967295");
}

TEST_F(Step, BadConditionsAreTold) {
    for (const char *value : {"", "y", "y = 1", "y === 1", "y ==", "== 1", "y == 1 2", "y == -1",
                              "y == 0x1", "y =< 1", "y <> 1", "y == x", "1 == y", "y == 4294967296",
                              "y == 1 and x == 1", "yy == 1", "Y == 1", "token == 1"})
        for (const char *key : {"uniform", "single"}) {
            std::string line = std::string(key) + " = " + value;
            std::string expected = ":3: [step] " + line +
                                   ": must be x, y, z or tokens, then ==, !=, <=, >=, < or >, then "
                                   "a number";
            EXPECT_EQ(Wrong(line).compare(0, expected.size(), expected), 0) << line << "\n"
                                                                            << Wrong(line);
        }
    EXPECT_NE(Wrong("uniform = token == 1").find("(nearest: tokens)"), std::string::npos);
}

TEST_F(Step, BadSizesAreTold) {
    const std::string form = "must be a number, first..last or first..last/stride";
    const std::vector<Strings> cases = {
        // the list, its bad entry, what is wrong with it
        {"8..4", "8..4", "ends before it begins"},
        {"1,,2", "", "an entry is empty"},
        {"", "", "an entry is empty"},
        {"1,2,", "", "an entry is empty"},
        {",1", "", "an entry is empty"},
        {"8..64/0", "8..64/0", "the stride must be 1 at least"},
        {"0..4", "0..4", "there are no steps of 0 tokens"},
        {"4,0", "0", "there are no steps of 0 tokens"},
        {"8/2", "8/2", form},
        {"8..", "8..", form},
        {"..8", "..8", form},
        {"8.64", "8.64", form},
        {"8...64", "8...64", form},
        {"8..64/", "8..64/", form},
        {"8..64/8/2", "8..64/8/2", form},
        {"1;2", "1;2", form},
        {"1 2", "1 2", form},
        {"-1", "-1", form},
        {"all", "all", form},
        {"4294967296", "4294967296", form},
        {"1..4294967296", "1..4294967296", form},
    };
    for (const Strings &one : cases)
        EXPECT_EQ(Wrong("sizes = " + one[0]),
                  ":3: [step] sizes = " + one[0] + ": '" + one[1] + "': " + one[2]);
    EXPECT_NE(Wrong("sizes = " + std::string(300, '1')).find("too long"), std::string::npos);
}

TEST_F(Step, SizesAreShownAsTheyWereRead) {
    Load("[step]\nmarker = k\nsizes = 1, 2..4, 8..64/8\n");
    const cus_step_rule *rule = cus_rules_step(rules, "k");
    EXPECT_EQ(Show(rule, CUS_STEP_KEY_SIZES), "1,2..4,8..64/8");
    char little[4] = "xxx";
    EXPECT_TRUE(cus_step_show(rule, CUS_STEP_KEY_SIZES, little, sizeof little));
    EXPECT_STREQ(little, "1,2") << "cut where there is no room";
}

TEST_F(Step, LongWordsAndMarkersAreRefused) {
    std::string wrong = Wrong("tokens = " + std::string(100, 'x'));
    EXPECT_NE(wrong.find("must be x, y or z"), std::string::npos) << wrong;
    cus_step_rule rule;
    char error[300];
    const char *nearest;
    cus_step_defaults(&rule);
    EXPECT_FALSE(cus_step_set(&rule, CUS_STEP_KEY_MARKER, "k", error, sizeof error, &nearest));
    EXPECT_STREQ(error, "marker = k: must be left to those who make patterns");
}

TEST_F(Step, ThereIsRoomForSixtyFourSizesAndNoMore) {
    std::string list = "1";
    for (int i = 2; i <= CUS_STEP_SIZES; i++)
        list += "," + std::to_string(4000000000u + (unsigned)i) + "..4294967295/4294967295";
    Load("[step]\nmarker = k\nsizes = " + list + "\n");
    EXPECT_EQ(problems, Strings{});
    ASSERT_EQ(cus_rules_steps(rules), 1u);
    EXPECT_EQ(cus_rules_step_get(rules, 0)->n_sizes, (uint32_t)CUS_STEP_SIZES);
    EXPECT_EQ(Show(cus_rules_step_get(rules, 0), CUS_STEP_KEY_SIZES), list);
    EXPECT_EQ(Wrong("sizes = " + list + ",7"), ":3: [step] sizes: more than 64 entries");
}

TEST_F(Step, LinesThatTheReaderRefusesSpoilTheirSectionAndNoOther) {
    // They are told with the problems of reading, not here.
    Load("[step a]\nmarker = a\nsingle\n[step b]\nmarker = b\n[stpe]\ntokens = y\n[step c]\n"
         "marker = c\n[step d]\nmarker = d\nsizes = " +
         std::string(5000, '1') + "\n[step e] x\nmarker = e\n[step f]\nmarker = f\n[step\n" +
         "tokens = y\n[step g]\nmarker = g\nuniform");
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(NameOf("a"), "(none)");
    EXPECT_EQ(NameOf("b"), "b");
    EXPECT_EQ(NameOf("c"), "c");
    EXPECT_EQ(NameOf("d"), "(none)");
    EXPECT_EQ(NameOf("e"), "(none)");
    EXPECT_EQ(NameOf("f"), "f");
    EXPECT_EQ(cus_rules_step(rules, "f")->tokens, CUS_STEP_X);
    EXPECT_EQ(NameOf("g"), "(none)");
}

TEST_F(Step, ARunningProgramIsWarnedOnceAndGoesOn) {
    setenv(
        "CUSPLICE_CONFIG",
        WriteFile(TempPath("named.conf"), "[step]\nmarker = k\nsizes = 8..4\n[step]\nmarker = m\n")
            .c_str(),
        1);
    std::string text = Captured([] {
        if (cus_rules_steps(cus_rules()) != 1 || cus_rules_step(cus_rules(), "k") ||
            !cus_rules_step(cus_rules(), "m"))
            abort();
    });
    EXPECT_EQ(Count(text, "\n"), 1u) << text;
    EXPECT_EQ(Count(text, "ends before it begins; ignored"), 1u) << text;
}

// ---- what a grid says ----

cus_step_rule Rule(const char *uniform = nullptr, const char *single = nullptr,
                   const char *sizes = nullptr) {
    cus_step_rule rule;
    char error[300];
    const char *nearest;
    cus_step_defaults(&rule);
    const std::pair<enum cus_step_key, const char *> fields[] = {{CUS_STEP_KEY_UNIFORM, uniform},
                                                                 {CUS_STEP_KEY_SINGLE, single},
                                                                 {CUS_STEP_KEY_SIZES, sizes}};
    for (const auto &field : fields)
        EXPECT_TRUE(!field.second ||
                    cus_step_set(&rule, field.first, field.second, error, sizeof error, &nearest))
            << error;
    return rule;
}

enum cus_step_class Classify(const cus_step_rule &rule, uint32_t x, uint32_t y = 1,
                             uint32_t z = 1) {
    const uint32_t grid[3] = {x, y, z};
    uint64_t tokens;
    return cus_step_classify(&rule, grid, &tokens);
}

TEST(StepClass, HasAName) {
    EXPECT_STREQ(cus_step_name(CUS_STEP_UNKNOWN), "unknown");
    EXPECT_STREQ(cus_step_name(CUS_STEP_OUTSIDE), "outside");
}

TEST(StepClass, WithoutConditionsEveryStepIsMixed) {
    EXPECT_EQ(Classify(Rule(), 1), CUS_STEP_MIXED);
    EXPECT_EQ(Classify(Rule(), 1u << 31, 7, 7), CUS_STEP_MIXED);
}

TEST(StepClass, EveryComparisonBelowAtAndAboveItsNumber) {
    // Whether 4, 5 and 6 compare with 5 so.
    const std::pair<const char *, const char *> rows[] = {{"== 5", "-y-"}, {"!= 5", "y-y"},
                                                          {"<= 5", "yy-"}, {">= 5", "-yy"},
                                                          {"< 5", "y--"},  {"> 5", "--y"}};
    for (const auto &row : rows)
        for (uint32_t i = 0; i < 3; i++) {
            enum cus_step_class uniform = row.second[i] == 'y' ? CUS_STEP_UNIFORM : CUS_STEP_MIXED;
            enum cus_step_class single = row.second[i] == 'y' ? CUS_STEP_SINGLE : CUS_STEP_MIXED;
            auto of = [&](const char *subject) { return std::string(subject) + row.first; };
            EXPECT_EQ(Classify(Rule(of("x").c_str()), 4 + i, 5, 5), uniform) << row.first;
            EXPECT_EQ(Classify(Rule(of("y").c_str()), 5, 4 + i, 5), uniform) << row.first;
            EXPECT_EQ(Classify(Rule(of("z").c_str()), 5, 5, 4 + i), uniform) << row.first;
            EXPECT_EQ(Classify(Rule(of("tokens").c_str()), 4 + i, 5, 5), uniform) << row.first;
            EXPECT_EQ(Classify(Rule(nullptr, of("y").c_str()), 5, 4 + i, 5), single) << row.first;
        }
}

TEST(StepClass, SingleIsMoreThanUniform) {
    cus_step_rule rule = Rule("y <= 4", "y == 1");
    EXPECT_EQ(Classify(rule, 8, 1), CUS_STEP_SINGLE);
    EXPECT_EQ(Classify(rule, 8, 4), CUS_STEP_UNIFORM);
    EXPECT_EQ(Classify(rule, 8, 5), CUS_STEP_MIXED);
    EXPECT_EQ(Classify(Rule(nullptr, "y == 1"), 8, 1), CUS_STEP_SINGLE);
}

TEST(StepClass, TokensAreADimensionTimesItsFactor) {
    cus_step_rule rule = Rule("tokens > 4294967295");
    const uint32_t grid[3] = {3, 1u << 31, 7};
    uint64_t tokens = 0;
    rule.tokens_each = 6;
    EXPECT_EQ(cus_step_classify(&rule, grid, &tokens), CUS_STEP_MIXED);
    EXPECT_EQ(tokens, 18u);
    rule.tokens = CUS_STEP_Z;
    cus_step_classify(&rule, grid, &tokens);
    EXPECT_EQ(tokens, 42u);
    rule.tokens = CUS_STEP_Y;
    EXPECT_EQ(cus_step_classify(&rule, grid, &tokens), CUS_STEP_UNIFORM);
    EXPECT_EQ(tokens, 6ull << 31); // more than 32 bits
}

TEST(StepClass, SizesThatMayNotBeCapturedAreOutsideWhateverElseTheyAre) {
    cus_step_rule rule = Rule("y == 1", "z == 1", "1,2,4,8..64/8,100..103");
    for (uint32_t x = 1; x < 200; x++) {
        bool in = x == 1 || x == 2 || x == 4 || (x >= 8 && x <= 64 && x % 8 == 0) ||
                  (x >= 100 && x <= 103);
        EXPECT_EQ(Classify(rule, x, 1, 1), in ? CUS_STEP_SINGLE : CUS_STEP_OUTSIDE) << x;
        EXPECT_EQ(Classify(rule, x, 1, 2), in ? CUS_STEP_UNIFORM : CUS_STEP_OUTSIDE) << x;
        EXPECT_EQ(Classify(rule, x, 2, 2), in ? CUS_STEP_MIXED : CUS_STEP_OUTSIDE) << x;
    }
    rule.tokens_each = 2; // it is tokens that count, not the dimension
    EXPECT_EQ(Classify(rule, 4), CUS_STEP_SINGLE);
    EXPECT_EQ(Classify(rule, 6), CUS_STEP_OUTSIDE);
    // A stride counts from the first size, and the last need not be met.
    rule = Rule(nullptr, nullptr, "3..10/4");
    for (uint32_t x = 1; x < 20; x++)
        EXPECT_EQ(Classify(rule, x), x == 3 || x == 7 ? CUS_STEP_MIXED : CUS_STEP_OUTSIDE) << x;
}

// ---- what a mode makes of it ----

// A line for each weakest policy of the steps of a class, a letter for each policy of the kernel,
// both in the order graph, uniform, uniform_single, eager, never_defer. y: may be in a graph. (A
// kernel weaker than the weakest is never asked for; where the whole step is a graph, the weakest
// stands for all of its kernels.)
using Block = const char *const[5];

// No size that may be captured, or no step that may be a graph as a whole.
Block kNothing = {"-----", "-----", "-----", "-----", "-----"};
// Only what no rule, or a graph rule, leaves free; whatever other kernels are there.
Block kGraph = {"y----", "y----", "y----", "y----", "y----"};
// Rules are ignored, but for kernels that nothing may be deferred around.
Block kAllButNever = {"yyyy-", "yyyy-", "yyyy-", "yyyy-", "yyyy-"};
// The whole step or nothing: a uniform decode of several tokens, with a kernel that supports no
// more than single tokens (third line), or none at all (the last two), is nothing.
Block kWholeUniform = {"yyyy-", "yyyy-", "-----", "-----", "-----"};
Block kWholeSingle = {"yyyy-", "yyyy-", "yyyy-", "-----", "-----"};
// The whole step, else segments.
Block kUniformOrSegments = {"yyyy-", "yyyy-", "y----", "y----", "y----"};
Block kSingleOrSegments = {"yyyy-", "yyyy-", "yyyy-", "y----", "y----"};

TEST(StepAllows, WhatIsWrittenHere) {
    static const struct {
        enum cus_mode mode;
        Block *unknown, *mixed, *uniform, *single, *outside;
    } table[] = {
        // That nothing becomes a graph in the first three is decided before; eager must cut where
        // piecewise does.
        {CUS_MODE_OFF, &kGraph, &kGraph, &kGraph, &kGraph, &kNothing},
        {CUS_MODE_OBSERVE, &kGraph, &kGraph, &kGraph, &kGraph, &kNothing},
        {CUS_MODE_EAGER, &kGraph, &kGraph, &kGraph, &kGraph, &kNothing},
        {CUS_MODE_PIECEWISE, &kGraph, &kGraph, &kGraph, &kGraph, &kNothing},
        {CUS_MODE_FULL, &kAllButNever, &kAllButNever, &kAllButNever, &kAllButNever, &kNothing},
        {CUS_MODE_FULL_DECODE_ONLY, &kNothing, &kNothing, &kWholeUniform, &kWholeSingle, &kNothing},
        {CUS_MODE_FULL_AND_PIECEWISE, &kGraph, &kGraph, &kUniformOrSegments, &kSingleOrSegments,
         &kNothing},
    };
    unsigned cells = 0;
    for (const auto &row : table) {
        Block *const blocks[] = {row.unknown, row.mixed, row.uniform, row.single, row.outside};
        for (int step = CUS_STEP_UNKNOWN; step <= CUS_STEP_OUTSIDE; step++)
            for (int weakest = CUS_POLICY_GRAPH; weakest <= CUS_POLICY_NEVER_DEFER; weakest++)
                for (int policy = CUS_POLICY_GRAPH; policy <= CUS_POLICY_NEVER_DEFER; policy++) {
                    cells++;
                    EXPECT_EQ(cus_step_allows(row.mode, (enum cus_step_class)step,
                                              (enum cus_policy)weakest, (enum cus_policy)policy),
                              (*blocks[step])[weakest][policy] == 'y')
                        << cus_mode_name(row.mode) << ", step " << step << ", weakest "
                        << cus_policy_name((enum cus_policy)weakest) << ", kernel "
                        << cus_policy_name((enum cus_policy)policy);
                }
    }
    EXPECT_EQ(cells, 7u * 5 * 5 * 5);
    EXPECT_EQ(CUS_STEP_CLASSES, 5);
    EXPECT_EQ(CUS_MODE_FULL_AND_PIECEWISE, 6); // a new mode wants a row
}

TEST(StepAllows, WhatAStepRunsAsIsSaid) {
    // A word for each class, a letter for each weakest policy: f full, p piecewise, n none.
    const struct {
        enum cus_mode mode;
        const char *unknown, *mixed, *uniform, *single, *outside;
    } table[] = {
        {CUS_MODE_PIECEWISE, "ppppp", "ppppp", "ppppp", "ppppp", "nnnnn"},
        {CUS_MODE_FULL, "fffff", "fffff", "fffff", "fffff", "nnnnn"},
        {CUS_MODE_FULL_DECODE_ONLY, "nnnnn", "nnnnn", "ffnnn", "fffnn", "nnnnn"},
        {CUS_MODE_FULL_AND_PIECEWISE, "ppppp", "ppppp", "ffppp", "fffpp", "nnnnn"},
    };
    for (const auto &row : table) {
        const char *words[] = {row.unknown, row.mixed, row.uniform, row.single, row.outside};
        for (int step = CUS_STEP_UNKNOWN; step <= CUS_STEP_OUTSIDE; step++)
            for (int weakest = CUS_POLICY_GRAPH; weakest <= CUS_POLICY_NEVER_DEFER; weakest++)
                EXPECT_EQ(*cus_step_runs_as(row.mode, (enum cus_step_class)step,
                                            (enum cus_policy)weakest),
                          words[step][weakest])
                    << cus_mode_name(row.mode) << ", " << cus_step_name((enum cus_step_class)step)
                    << ", " << cus_policy_name((enum cus_policy)weakest);
    }
}

} // namespace
