// Promise: globs, regular expressions and `mangled:` patterns match what they should; bad patterns
// are refused.
#include "shim/plan/pattern.h"

#include <gtest/gtest.h>

#include <string>

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
    EXPECT_EQ(Error("re:(a*)\\1"), "references back are not for rules");
    // What people write is not affected.
    for (const char *text :
         {"re:^(gemm|conv)_[a-z0-9]+_(f16|f32){1,2}$", "re:^nccl.*Kernel", "re:a++",
          "re:(x+y+)+z{3,40}", "re:\\.\\*", "re:[]+{]+", "re:^at::.*[[:alpha:]]+"}) {
        EXPECT_EQ(Error(text), "(good)") << text;
    }
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
    EXPECT_EQ(Error("re:a{2}"), "(good)");
}

// The C library takes hours to compile some of these.
TEST(Pattern, NothingRepeatsWhatMayBeEmpty) {
    for (const char *text : {"re:a**", "re:a*?", "re:*a", "re:^*", "re:(a*)*", "re:(a|b*)+",
                             "re:((a?)(b|))*", "re:(a{0,3}){2}", "re:x|+", "re:()*"})
        EXPECT_NE(Error(text).find("may be empty already"), std::string::npos) << text;
    for (const char *text : {"re:a*b?c+", "re:(ab*)*", "re:(a+)*", "re:(a|b)*$", "re:[*]*",
                             "re:a\\**", "re:^(x|y.*z)+", "re:a{1,3}*", "re:(a*)b", "re:.*"})
        EXPECT_EQ(Error(text), "(good)") << text;
    EXPECT_NE(Error(("re:^e" + std::string(100, '*') + "J").c_str()), "(good)");
}

} // namespace
