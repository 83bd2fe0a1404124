// Promise: text from outside is harmless in each format in which it is printed.
#include "tools/trace/clean.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>
#include <string>

#include "shim/base/json.h"

namespace {

using Printer = std::function<void(FILE *)>;

std::string Printed(const Printer &print) {
    char *text = nullptr;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    print(to);
    fclose(to);
    std::string result(text, bytes);
    free(text);
    return result;
}

std::string Text(const std::string &text) {
    return Printed([&](FILE *to) { clean_text(to, text.c_str()); });
}

std::string Csv(const std::string &text) {
    return Printed([&](FILE *to) { clean_csv(to, text.c_str()); });
}

std::string Md(const std::string &text) {
    return Printed([&](FILE *to) { clean_md(to, text.c_str()); });
}

std::string Dot(const std::string &text) {
    return Printed([&](FILE *to) { clean_dot(to, text.c_str()); });
}

std::string Xml(const std::string &text, unsigned most = 1000) {
    return Printed([&](FILE *to) { clean_xml(to, text.c_str(), most); });
}

std::string Json(const std::string &text) {
    std::string result;
    char escape[CUS_JSON_ESCAPE];
    for (const char *at = text.c_str();;) {
        size_t plain = cus_json_plain(at);
        result.append(at, plain);
        at += plain;
        if (!*at)
            return result;
        at += cus_json_escape(at, escape);
        result += escape;
    }
}

// Each is one character that no format shows, or a byte that is none.
const char *const kHidden[] = {
    "\x01",         "\t",           "\n",           "\r",           "\x1b",         "\x1f",
    "\x7f",         "\x80",         "\x9b",         "\xff",         "\xc2\x80",     "\xc2\x9b",
    "\xc2\x9f",     "\xd8\x9c",     "\xe2\x80\x8b", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xef\xbb\xbf",
    "\xef\xbf\xbe", "\xef\xbf\xbf", "\xc3",
};
// And what is shown as it is.
const char *const kShown[] = {
    "a", " ", "~", "\xc2\xa0", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};

TEST(Clean, WhatIsNotShownIsAQuestionMarkInEveryFormat) {
    for (const char *text : kHidden) {
        std::string inside = std::string("a") + text + "b";
        for (const auto &print : {Text, Csv, Md, Dot})
            EXPECT_EQ(print(inside), "a?b") << inside;
        EXPECT_EQ(Xml(inside), "a?b") << inside;
        EXPECT_EQ(clean_columns(inside.c_str()), 3u);
    }
    for (const char *text : kShown) {
        EXPECT_EQ(Text(text), text);
        EXPECT_EQ(Csv(text), text);
        EXPECT_EQ(Dot(text), text);
        EXPECT_EQ(Xml(text), text);
        EXPECT_EQ(Json(text), text);
    }
}

TEST(Clean, WhatIsNoUtf8IsNotShown) {
    // Too long, a surrogate, beyond the last character, cut off.
    EXPECT_EQ(Text("\xc0\xaf|\xe0\x80\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xf0\x9f\x98"),
              "??|???|???|????|???");
}

TEST(Clean, CellsAreAsWideAsTheyLook) {
    auto cell = [](const char *text, size_t columns) {
        return Printed([&](FILE *to) { clean_cell(to, text, columns); });
    };
    EXPECT_EQ(cell("ab", 4), "ab  ");
    EXPECT_EQ(cell("\xc3\xa9", 3), "\xc3\xa9  ");
    EXPECT_EQ(cell("\xe6\x97\xa5", 3), "\xe6\x97\xa5 "); // takes two
    EXPECT_EQ(cell("e\xcc\x81", 3), "e\xcc\x81  ");      // takes one with its accent
    EXPECT_EQ(cell("\xc2\x9b", 3), "?  ");
    EXPECT_EQ(cell("abcd", 2), "ab");
    EXPECT_EQ(cell("a\xe6\x97\xa5", 2), "a "); // no half of one
}

TEST(Clean, ALineIsOneLine) {
    EXPECT_EQ(Printed([](FILE *to) { clean_print(to, "%s: %d\n\n", "a\nb\x1b[2J\n", 7); }),
              "a?b?[2J?: 7\n\n");
    EXPECT_EQ(Printed([](FILE *to) { clean_print(to, "%s", "x\n"); }), "x?");
    std::string large(100000, 'x');
    EXPECT_EQ(Printed([&](FILE *to) { clean_print(to, "%s\n", large.c_str()); }), large + "\n");
}

// ---- CSV ----

TEST(Clean, CsvIsQuotedWhereItMustBe) {
    EXPECT_EQ(Csv(""), "");
    EXPECT_EQ(Csv("a b_c;<d>"), "a b_c;<d>");
    EXPECT_EQ(Csv("a,b"), "\"a,b\"");
    EXPECT_EQ(Csv("a\"b"), "\"a\"\"b\"");
    EXPECT_EQ(Csv("void f<int>(int, float*)"), "\"void f<int>(int, float*)\"");
}

TEST(Clean, CsvHasNoFormulas) {
    for (const char *text : {"=1+1", "+1", "-1", "@SUM(A1)", " =1", "'=1", "`=1", "  ' @x",
                             "\xef\xbc\x9d"
                             "1",
                             "\xc2\xa0=1"})
        EXPECT_EQ(Csv(text), std::string("'") + text);
    EXPECT_EQ(Csv("\t=1"), "'?=1");
    EXPECT_EQ(Csv("\r=1"), "'?=1");
    EXPECT_EQ(Csv("=a,\"b\""), "\"'=a,\"\"b\"\"\"");
    EXPECT_EQ(Csv("\"=1"), "\"'\"\"=1\"");
    for (const char *text : {"a=1", "_Z1x", "operator-", "1-2", "'a'", "(=1)", "...", "<=>"})
        EXPECT_EQ(Csv(text), text);
}

// ---- Markdown ----

TEST(Clean, MarkdownReadsAsItIs) {
    EXPECT_EQ(Md("gemm_f32_nt"), "gemm_f32_nt");
    EXPECT_EQ(Md("ns::f__g(int)"), "ns::f__g(int)");
    EXPECT_EQ(Md("_Z3foov"), "\\_Z3foov");
    EXPECT_EQ(Md("a_"), "a\\_");
    EXPECT_EQ(Md("f_<x>_g"), "f\\_&lt;x>\\_g");
    EXPECT_EQ(Md("a|b\\c"), "a\\|b\\\\c");
    EXPECT_EQ(Md("*a* **b** `c` ~~d~~ $e$"), "\\*a\\* \\*\\*b\\*\\* \\`c\\` \\~\\~d\\~\\~ \\$e\\$");
    EXPECT_EQ(Md("<b>&lt;"), "&lt;b>\\&lt;");
    EXPECT_EQ(Md("![i](u) [l][r]"), "!\\[i\\](u) \\[l\\]\\[r\\]");
}

TEST(Clean, MarkdownBeginsNoListNorHeading) {
    EXPECT_EQ(Md("# a"), "\\# a");
    EXPECT_EQ(Md("- a"), "\\- a");
    EXPECT_EQ(Md("+ a"), "\\+ a");
    EXPECT_EQ(Md("> a"), "\\> a");
    EXPECT_EQ(Md("12. a"), "12\\. a");
    EXPECT_EQ(Md("1) a"), "1\\) a");
    EXPECT_EQ(Md("    a"), "a");
    EXPECT_EQ(Md("1.5 a-b #c"), "1.5 a-b #c");
}

TEST(Clean, MarkdownHasNoLinks) {
    EXPECT_EQ(Md("http://x https://y ftp://z"), "http`:`//x https`:`//y ftp`:`//z");
    EXPECT_EQ(Md("www.x.com WWW.y"), "www`.`x.com WWW`.`y");
    EXPECT_EQ(Md("mailto:a@b.c xmpp:d"), "mailto`:`a`@`b.c xmpp`:`d");
    EXPECT_EQ(Md("<http://x> @@"), "&lt;http`:`//x> `@@`");
}

// ---- dot, XML, JSON ----

TEST(Clean, DotHasNoEscapesOfOthers) {
    EXPECT_EQ(Dot("a\"b\\N\\G\\l\\"), "a\\\"b\\\\N\\\\G\\\\l\\\\");
    EXPECT_EQ(Dot("<b>&lt;{|}"), "<b>&amp;lt;{|}");
}

TEST(Clean, XmlHasNoMarkup) {
    EXPECT_EQ(Xml("<a b='c' d=\"e\">&amp;"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;amp;");
    EXPECT_EQ(Xml("abcdef", 6), "abcdef");
    EXPECT_EQ(Xml("abcdefg", 6), "abc...");
    EXPECT_EQ(Xml("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...");
}

TEST(Clean, JsonSaysWhatIsNotShown) {
    EXPECT_EQ(Json("a\"b\\c/"), "a\\\"b\\\\c/");
    EXPECT_EQ(Json("\n\x1b\x7f\xc2\x9b\xe2\x80\xa8\xe2\x80\xae\xef\xbf\xbf"),
              "\\u000a\\u001b\\u007f\\u009b\\u2028\\u202e\\uffff");
    EXPECT_EQ(Json("\xff\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

} // namespace
