// Promise: globs, regular expressions and `mangled:` patterns match what they should; bad patterns
// are refused.
#include "shim/plan/pattern.h"

#include <fnmatch.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <random>
#include <string>

#include "tests/unit/plan/nothing_left.h"

namespace {

std::string Error(const char *text) {
    char error[160] = "";
    cus_pattern *pattern = cus_pattern_new(text, error, sizeof error);
    if (!pattern)
        return error;
    cus_pattern_free(pattern);
    return "(good)";
}

bool Matches(const char *text, const char *name) {
    char error[160] = "";
    cus_pattern *pattern = cus_pattern_new(text, error, sizeof error);
    EXPECT_NE(pattern, nullptr) << text << ": " << error;
    if (!pattern)
        return false;
    EXPECT_STREQ(cus_pattern_text(pattern), text);
    bool matches = cus_pattern_matches(pattern, name);
    cus_pattern_free(pattern);
    return matches;
}

TEST(Glob, Matches) {
    const struct {
        const char *glob, *name;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"abc", "ab", false},
        {"*", "", true},
        {"*", "anything", true},
        {"a*", "a", true},
        {"a*c", "abbbc", true},
        {"a*c", "abbbcd", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*ab", "aab", true},
        {"*aab", "aaab", true},
        {"?", "", false},
        {"?", "x", true},
        {"a?c", "abc", true},
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[a-c]x", "bx", true},
        {"[!a-c]x", "bx", false},
        {"[^a-c]x", "dx", true},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[a-]", "-", true},
        {"[-a]", "-", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"a\\?c", "abc", false},
        {"gemm_[0-9]*", "gemm_7x", true},
        {"[ab", "a", false},
        {"a\\", "a", false},
        {"**a", "ba", true},
        {"a**", "a", true},
        {"A", "a", false},
        {"[\x80-\xff]", "\xc3", true},
    };
    for (const auto &c : cases)
        EXPECT_EQ(cus_glob_matches(c.glob, c.name), c.matches) << c.glob << " on " << c.name;
}

// The C library's own globs are the same, but that a [ without its ] is a letter there.
TEST(Glob, MatchesWhatTheCLibraryMatches) {
    std::mt19937 random(1);
    unsigned compared = 0, matched = 0;
    // A backslash means another thing inside of brackets there.
    for (const std::string &letters : {std::string("ab-*?[]!^"), std::string("ab-*?\\")})
        for (int i = 0; i < 200000; i++) {
            std::string glob, name;
            for (unsigned n = 1 + random() % 8; n-- > 0;)
                glob += letters[random() % letters.size()];
            for (unsigned n = random() % 5; n-- > 0;)
                name += "ab-*]!^\\"[random() % 8];
            if (Error(glob.c_str()) != "(good)")
                continue;
            bool matches = cus_glob_matches(glob.c_str(), name.c_str());
            EXPECT_EQ(matches, fnmatch(glob.c_str(), name.c_str(), 0) == 0)
                << glob << " on " << name;
            compared++;
            matched += matches;
        }
    EXPECT_GT(compared, 100000u);
    EXPECT_GT(matched, 10000u);
}

TEST(Glob, ManyStarsTakeNoTime) {
    std::string glob, name(20000, 'a');
    for (int i = 0; i < 200; i++)
        glob += "a*";
    EXPECT_FALSE(cus_glob_matches((glob + "b").c_str(), name.c_str()));
}

TEST(Pattern, GlobIsForTheWholeBaseName) {
    EXPECT_TRUE(Matches("attention_decode", "attention_decode"));
    EXPECT_TRUE(Matches("attention_decode", "_Z16attention_decodePf"));
    EXPECT_TRUE(Matches("attention_decode", "_ZN3ops16attention_decodeILi4EEEvPf"));
    EXPECT_FALSE(Matches("attention", "attention_decode"));
    EXPECT_FALSE(Matches("ops*", "_ZN3ops16attention_decodeILi4EEEvPf"));
    EXPECT_FALSE(Matches("*float*", "_Z6kernelIfEvv"));
}

TEST(Pattern, RegexIsFoundInBaseOrQualifiedName) {
    const char *softmax = "_ZN2at6native12softmax_warpIfEEvPT_";
    EXPECT_TRUE(Matches("re:^at::native::", softmax));
    EXPECT_TRUE(Matches("re:^softmax_(warp|block)$", softmax));
    EXPECT_TRUE(Matches("re:max", softmax));
    EXPECT_FALSE(Matches("re:^native", softmax));
    EXPECT_FALSE(Matches("re:_ZN", softmax));
    EXPECT_TRUE(Matches("re:^flash_fwd(_splitkv)?$", "flash_fwd_splitkv"));
}

TEST(Pattern, RegexIsFoundInEitherOfTheNamesAskedFor) {
    char error[160];
    cus_pattern *pattern = cus_pattern_new("re:^kernel$", error, sizeof error);
    ASSERT_NE(pattern, nullptr) << error;
    EXPECT_TRUE(cus_pattern_matches_names(pattern, "kernel", "ns::kernel"));
    EXPECT_TRUE(cus_pattern_matches_names(pattern, "other", "kernel"));
    EXPECT_FALSE(cus_pattern_matches_names(pattern, "other", "ns::kernel"));
    cus_pattern_free(pattern);
}

TEST(Pattern, MangledIsForTheNameAsItIs) {
    EXPECT_TRUE(Matches("mangled:_ZN2at*", "_ZN2at6native6kernelEv"));
    EXPECT_FALSE(Matches("mangled:kernel", "_ZN2at6native6kernelEv"));
    EXPECT_TRUE(Matches("mangled:plain", "plain"));
}

bool MatchesLib(const char *text, const char *file) {
    char error[160];
    cus_pattern *pattern = cus_pattern_new(text, error, sizeof error);
    bool matches = cus_pattern_matches_lib(pattern, file);
    cus_pattern_free(pattern);
    return matches;
}

bool MatchesApi(const char *text, const char *symbol) {
    char error[160];
    cus_pattern *pattern = cus_pattern_new(text, error, sizeof error);
    bool matches = cus_pattern_matches_api(pattern, symbol);
    cus_pattern_free(pattern);
    return matches;
}

TEST(Pattern, LibIsForTheWholeFileName) {
    EXPECT_TRUE(MatchesLib("lib:libnccl*", "libnccl.so.2"));
    EXPECT_TRUE(MatchesLib("lib:libnccl.so.[0-9]", "libnccl.so.2"));
    EXPECT_FALSE(MatchesLib("lib:libnccl", "libnccl.so.2"));
    EXPECT_FALSE(MatchesLib("lib:nccl*", "libnccl.so.2"));
    EXPECT_FALSE(MatchesLib("libnccl*", "libnccl.so.2"));
    EXPECT_FALSE(MatchesLib("re:nccl", "libnccl.so.2"));
    // No kernel's name, and no call's.
    EXPECT_FALSE(Matches("lib:*", "kernel"));
    EXPECT_FALSE(MatchesApi("lib:*", "cuMemcpyAsync"));
}

TEST(Pattern, ApiIsForTheSymbolAndItsFamily) {
    const char *twin = "cuMemcpyDtoDAsync_v2_ptsz";
    for (const char *text :
         {"api:cuMemcpyDtoDAsync_v2_ptsz", "api:cuMemcpyDtoDAsync_v2", "api:cuMemcpyDtoDAsync_ptsz",
          "api:cuMemcpyDtoDAsync", "api:cuMemcpyDtoD*", "api:*Async"})
        EXPECT_TRUE(MatchesApi(text, twin)) << text;
    for (const char *text : {"api:cuMemcpyDtoD", "api:cuMemcpyAsync", "api:MemcpyDtoDAsync",
                             "cuMemcpyDtoDAsync", "mangled:cuMemcpyDtoDAsync"})
        EXPECT_FALSE(MatchesApi(text, twin)) << text;
    EXPECT_TRUE(MatchesApi("api:cuMemsetD8Async", "cuMemsetD8Async"));
    EXPECT_FALSE(MatchesApi("api:cuMemsetD8Async_ptsz", "cuMemsetD8Async"));
    EXPECT_TRUE(MatchesApi("api:cuMemsetD8", "cuMemsetD8_v2_ptds"));
    EXPECT_FALSE(MatchesApi("api:cuMemsetD", "cuMemsetD8_v2"));
    // What is too short for a suffix, or only like one.
    EXPECT_TRUE(MatchesApi("api:cuCtx", "cuCtx"));
    EXPECT_FALSE(MatchesApi("api:cuCt", "cuCtx"));
    EXPECT_FALSE(MatchesApi("api:*[!2]", "_v2"));
    EXPECT_FALSE(MatchesApi("api:cuMem", "cuMem_vA"));
    EXPECT_FALSE(MatchesApi("api:cuMem", "cuMem_v-"));
    EXPECT_FALSE(MatchesApi("api:*", std::string(200, 'x').c_str()));
    EXPECT_FALSE(Matches("api:*", "kernel"));
    EXPECT_FALSE(MatchesLib("api:*", "libnccl.so.2"));
}

TEST(Pattern, RegexThatWouldTakeAllMemoryOrTimeIsNone) {
    const std::string plus(60, '+');
    for (const std::string &text :
         {"re:a" + plus, std::string("re:(((a{100}){100}){100}){100}"),
          std::string("re:(a{1,30000})"),
          std::string("re:((((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)"),
          std::string("re:a{99999999999999999999}")}) {
        EXPECT_EQ(Error(text.c_str()), "the expression repeats too much") << text;
    }
    EXPECT_EQ(Error(("re:" + std::string(40, '(') + "a" + std::string(40, ')')).c_str()),
              "too many groups in each other");
    for (const char *back : {"re:(a*)\\1", "re:(a*)\\2", "re:(a*)\\9"})
        EXPECT_EQ(Error(back), "references back are not for rules") << back;
    EXPECT_EQ(Error(("re:" + std::string(33, '(') + "a" + std::string(33, ')')).c_str()),
              "too many groups in each other");
    EXPECT_EQ(Error(("re:" + std::string(32, '(') + "a" + std::string(32, ')')).c_str()), "(good)");
    // As large as may be, and one part more.
    EXPECT_EQ(Error("re:a{999}"), "(good)");
    EXPECT_EQ(Error("re:a{1000}"), "the expression repeats too much");
    EXPECT_EQ(Error("re:(a{9}b){82}"), "(good)");
    EXPECT_EQ(Error("re:(a{9}b){83}"), "the expression repeats too much");
    // What stands in brackets is one part.
    for (const char *set : {"[a{999}b{999}]", "[]a{999}b{999}]", "[^]a{999}b{999}]"})
        EXPECT_EQ(Error((std::string("re:") + set + "{99}").c_str()), "(good)") << set;
    EXPECT_EQ(Error("re:[^]](a{999})(a{999})"), "the expression repeats too much");
    // What people write is not affected.
    for (const char *text :
         {"re:^(gemm|conv)_[a-z0-9]+_(f16|f32){1,2}$", "re:^nccl.*Kernel", "re:a++",
          "re:(x+y+)+z{3,40}", "re:\\.\\*", "re:[]+{]+", "re:^at::.*[[:alpha:]]+"}) {
        EXPECT_EQ(Error(text), "(good)") << text;
    }
}

TEST(Pattern, NothingIsLeftOfThoseThatWent) {
    ExpectNothingLeft([] {
        for (const char *text : {"a*", "re:^(gemm|conv)_[a-z0-9]+", "re:(a", "re:a**",
                                 "mangled:_Z*", "lib:lib*", "lib:a/b", "api:cu*", "[", ""})
            Error(text);
    });
}

TEST(Pattern, WhatIsNoneIsToldWhy) {
    EXPECT_EQ(Error(""), "the pattern is empty");
    EXPECT_EQ(Error("re:"), "the pattern is empty");
    EXPECT_EQ(Error("mangled:"), "the pattern is empty");
    EXPECT_EQ(Error("lib:"), "the pattern is empty");
    EXPECT_EQ(Error("api:"), "the pattern is empty");
    EXPECT_EQ(Error("lib:libx[1"), "a [ without its ]");
    EXPECT_EQ(Error("lib:/usr/lib/libnccl*"),
              "a library is named by its file name, without folders");
    EXPECT_EQ(Error("api:cu/x"), "(good)"); // rules.c asks whether there is such a call
    EXPECT_EQ(Error("gemm[0-9"), "a [ without its ]");
    EXPECT_EQ(Error("mangled:gemm["), "a [ without its ]");
    EXPECT_EQ(Error("gemm\\"), "nothing follows the last backslash");
    EXPECT_NE(Error("re:(a"), "(good)");
    EXPECT_NE(Error("re:a**["), "(good)");
    EXPECT_NE(Error("re:["), "(good)");
    EXPECT_NE(Error("re:a["), "(good)");
    EXPECT_EQ(Error("re:a{2}"), "(good)");
}

// The C library takes hours to compile some of these.
TEST(Pattern, NothingRepeatsWhatMayBeEmpty) {
    for (const char *text :
         {"re:a**", "re:a*?", "re:*a", "re:^*", "re:(a*)*", "re:(a|b*)+", "re:a{}*",
          "re:((a?)(b|))*", "re:(|a)*", "re:(a{0,3}){2}", "re:x|+", "re:()*"})
        EXPECT_NE(Error(text).find("may be empty already"), std::string::npos) << text;
    for (const char *text : {"re:a*b?c+", "re:(ab*)*", "re:(a+)*", "re:(a|b)*$", "re:[*]*",
                             "re:a\\**", "re:^(x|y.*z)+", "re:a{1,3}*", "re:(a*)b", "re:.*"})
        EXPECT_EQ(Error(text), "(good)") << text;
    EXPECT_NE(Error(("re:^e" + std::string(100, '*') + "J").c_str()), "(good)");
}

// "never WHY (BETTER)", "odd ..." or "(good)".
std::string Doubt(const std::string &text) {
    char why[160] = "", better[300] = "";
    enum cus_doubt doubt = cus_pattern_doubt(text.c_str(), why, sizeof why, better, sizeof better);
    if (doubt == CUS_DOUBT_NONE)
        return "(good)";
    if (*better) { // what is offered is a pattern without a doubt
        EXPECT_EQ(Error(better), "(good)") << better;
        char again[160], none[300];
        EXPECT_EQ(cus_pattern_doubt(better, again, sizeof again, none, sizeof none), CUS_DOUBT_NONE)
            << better;
    }
    return (doubt == CUS_DOUBT_NEVER ? "never " : "odd ") + std::string(why) +
           (*better ? " (" + std::string(better) + ")" : "");
}

TEST(PatternDoubt, WhatCanMatchNothingIsToldWithTheFormThatIsRight) {
    const std::string comment =
        "nothing behind a value is a comment, which stands on a line of its own ";
    const struct {
        std::string text, doubt;
    } cases[] = {
        {"attention_decode # why", "never " + comment + "(attention_decode)"},
        {"attention_decode\t#why", "never " + comment + "(attention_decode)"},
        {"mangled:_Z1kv # why", "never " + comment + "(mangled:_Z1kv)"},
        {"re:^flash_fwd # why", "never " + comment + "(re:^flash_fwd)"},
        {"re:^flash_(fwd|bwd) # why", "odd " + comment + "(re:^flash_(fwd|bwd))"},
        {"lib:libnccl* # why", "odd " + comment + "(lib:libnccl*)"},
        {"api:cuMemsetD8Async # why", "never " + comment + "(api:cuMemsetD8Async)"},
        {"attention decode", "never a kernel's name has no blanks, and a rule has one pattern"},
        {"a, b", "never a rule has one pattern"},
        {"flash_fwd_kernel<...>", "never a base name has no template arguments (flash_fwd_kernel)"},
        {"flash_fwd_kernel<*", "never a base name has no template arguments (flash_fwd_kernel)"},
        {"void ns::flash*<float, 4>(float*)",
         "never a kernel's name has no blanks, and a rule has one pattern (re:^ns::flash)"},
        {"kernel(float*)", "never a base name has no parameters (kernel)"},
        {"pytorch_flash::flash_fwd_kernel",
         "never a base name has no namespaces (re:^pytorch_flash::flash_fwd_kernel$)"},
        {"pytorch_flash::flash_fwd_*",
         "never a base name has no namespaces (re:^pytorch_flash::flash_fwd_)"},
        {"*::k_?[!a]", "never a base name has no namespaces (re:^.*::k_.[^a]$)"},
        {"a::(anonymous namespace)::k",
         "never a base name has no namespaces (re:^a::\\(anonymous namespace\\)::k$)"},
        {"_ZN13pytorch_flash*", "odd it is compared with base names, which do not begin with _Z "
                                "(mangled:_ZN13pytorch_flash*)"},
        {"re:^_ZN2at", "odd it is compared with names that are not mangled (mangled:_ZN2at*)"},
        {"re:kernel<float>", "never the compared names have no template arguments (re:kernel)"},
        {"re:a b", "never the compared names have no blanks"},
        {"a|b", "never an expression begins with re: (re:a|b)"},
        {"^flash_fwd", "never an expression begins with re: (re:^flash_fwd)"},
        {"regex:flash", "never the prefixes are re:, mangled:, lib: and api:"},
        {"mangled:at::native::k", "never a mangled name has no '::'"},
        {"mangled:k<float>", "never a mangled name has no '<'"},
        {"k#", "never no kernel's name has the character '#'"},
        {"a\tb", "never a kernel's name has no blanks, and a rule has one pattern"},
        {"a;b", "never a rule has one pattern"},
        {"re:a\tb", "never the compared names have no blanks"},
        {"re:^_Z3foo.*", "odd it is compared with names that are not mangled"},
        {"!a::k<int>", "never no kernel's name has the character '!' (re:^!a::k$)"},
        // No pattern is offered that would be cut.
        {"a::" + std::string(400, 'k'), "never a base name has no namespaces"},
        {"k\\ l", "never no kernel's name has the character ' '"},
        {"k[ ,]", "never no kernel's name has a character of this set"},
    };
    for (const auto &c : cases)
        EXPECT_EQ(Doubt(c.text), c.doubt) << c.text;
}

// Each matches a name that the driver may give.
TEST(PatternDoubt, WhatMayMatchIsNotDoubted) {
    const struct {
        const char *text, *name;
    } cases[] = {
        {"*", "k"},
        {"flash_fwd*", "flash_fwd_kernel"},
        {"k?[a-z0-9]", "k_1"},
        {"k[ a]", "ka"},
        {"k[!a]", "kb"},
        {"k$%1.2-3@4", "k$%1.2-3@4"},
        {"k\\_1", "k_1"},
        {"gr\xc3\xb6\xc3\x9f*", "gr\xc3\xb6\xc3\x9f"
                                "e"},
        {"*)", "_ZN1aclEv"},
        {"operator()", "_ZN1aclEv"},
        {"{lambda}", "_ZZ1kvEUlvE_"},
        {"*,", "_ZcmRK1aS1_"},
        {"operator<*", "_ZlsRK1aS1_"},
        {"re:^at::native::", "_ZN2at6native1kEv"},
        {"re:\\(anonymous namespace\\)::k", "_ZN12_GLOBAL__N_11kEv"},
        {"re:\\<k\\>", "_ZN2at1kEv"},
        {"re:operator new", "_ZnwmPv"},
        {"re:^[^]#<> ]+$", "k"},
        {"mangled:_Z*Lb1E*", "_Z1kILb1EEvv"},
        {"mangled:*", "_Z1kv"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(Doubt(c.text), "(good)") << c.text;
        EXPECT_TRUE(Matches(c.text, c.name)) << c.text;
    }
    // Others say that these are no patterns.
    for (const char *text : {"re:a\\", "re:[ab"})
        EXPECT_EQ(Doubt(text), "(good)") << text;
    for (const char *text : {"lib:libnccl*", "lib:lib x#1.so", "lib:prog (old)", "api:cuMemset*"})
        EXPECT_EQ(Doubt(text), "(good)") << text;
}

// Whatever is refused matches no name of letters that PTX allows, nor one of the scanner's own.
TEST(PatternDoubt, NothingThatIsRefusedMatches) {
    const std::string letters("ab_Z9*?[]!-\\# <>():|^.${}~N1kE", 30), name_letters("ab_Z9N1kE$");
    unsigned seed = 7, refused = 0;
    std::string names[200];
    for (auto &name : names)
        for (int i = rand_r(&seed) % 5; i >= 0; i--)
            name += name_letters[(size_t)rand_r(&seed) % name_letters.size()];
    for (int round = 0; round < 20000; round++) {
        std::string text = round % 3 ? "" : round % 2 ? "re:" : "mangled:";
        for (int i = rand_r(&seed) % 6; i >= 0; i--)
            text += letters[(size_t)rand_r(&seed) % letters.size()];
        if (Error(text.c_str()) != "(good)" || Doubt(text).compare(0, 5, "never") != 0)
            continue;
        refused++;
        for (const auto &name : names)
            EXPECT_FALSE(Matches(text.c_str(), name.c_str())) << text << " on " << name;
    }
    EXPECT_GT(refused, 1000u);
}

} // namespace
