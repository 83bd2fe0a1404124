// Promise: text from outside is shown without anything that a terminal would obey.
#include "shim/base/clean.h"

#include <gtest/gtest.h>

#include <string>

namespace {

std::string Clean(std::string text) {
    EXPECT_EQ(cus_clean(text.data(), text.size()), text.size());
    return text;
}

TEST(Clean, NamesStayAsTheyAre) {
    for (const char *name : {"_Z6kernelPfi", "a b|c<d>",
                             "gr\xc3\xb6\xc3\x9f"
                             "e",
                             "\xe6\xa0\xb8", "\xf0\x9f\x9a\x80", ""})
        EXPECT_EQ(Clean(name), name);
}

TEST(Clean, ControlCharactersAreReplaced) {
    EXPECT_EQ(Clean("a\x1b[31mb\rc\td\x7f"), "a?[31mb?c?d?");
    EXPECT_EQ(Clean("one\ntwo"), "one two");
    EXPECT_EQ(Clean(std::string("a\0b", 3)), "a?b");
    EXPECT_EQ(Clean("a\xc2\x9b"
                    "31m"),
              "a??31m"); // C1 in UTF-8
    EXPECT_EQ(Clean("a\x9b"
                    "31m"),
              "a?31m"); // and as a byte
}

TEST(Clean, MarksThatTurnTheDirectionAreReplaced) {
    for (const char *mark : {"\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa8", "\xe2\x80\x8f"})
        EXPECT_EQ(Clean(std::string("a") + mark + "b"), "a???b");
    EXPECT_EQ(Clean("\xd8\x9c"), "??");
}

TEST(Clean, WhatIsNoUtf8IsReplaced) {
    EXPECT_EQ(Clean("\xc0\xaf"), "??");           // too long a form
    EXPECT_EQ(Clean("\xed\xa0\x80"), "???");      // half of a pair
    EXPECT_EQ(Clean("\xf4\x90\x80\x80"), "????"); // beyond U+10FFFF
    EXPECT_EQ(Clean("caf\xc3"), "caf?");          // cut short
    EXPECT_EQ(Clean("\xe2\x82z"), "??z");
}

TEST(Clean, ACharacterIsNotReadBeyondItsText) {
    EXPECT_EQ(cus_shown("\xe2\x82\xac", 3), 3u);
    EXPECT_EQ(cus_shown("\xe2\x82\xac", 2), 0u);
    EXPECT_EQ(cus_shown("a", 0), 0u);
}

} // namespace
