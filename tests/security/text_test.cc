// Promise: the contents of a trace are only text in each format. No terminal obeys it, no
// spreadsheet computes it, no renderer follows it.
#include "tests/security/hostile.h"
#include "tests/security/stage.h"

#include <string.h>

#include <algorithm>

#include "tests/player/made.h"

namespace security {
namespace {

const std::string kNames[] = {
    "\x1b]0;title\x07\x1b[2J\x9b"
    "31m\xc2\x9b"
    "31m\r\nSECOND LINE",
    "\xe2\x80\xaereversed\xe2\x81\xa6\xe2\x80\xa8",
    "\xff\xfe\xc0\xaf\xed\xa0\x80",
    "=HYPERLINK(\"http://x/?\"&A1,\"y\")",
    "@SUM(1)",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "\t=1+1",
    "[y](javascript:alert(1)) ![x](http://x/p.png) `z` <b>b</b> | cell",
    "www.x.y me@x.y",
    "</text><script>alert(1)</script>\"'&quot;<!-- ]]>",
    "a\" ]; evil [label=\"b\\",
};

std::string Hostile() {
    return TraceWith([](Synth *s) {
        for (int step = 0; step < 3; step++) {
            for (const std::string &name : kNames)
                s->Eager(1, s->Kernel(name), name, name);
            s->Call(1, CST_CALL_BREAK, kNames[0]);
            s->Sync(1);
        }
    });
}

std::string Says(const Strings &words) {
    Result result = Ran(Launcher(words));
    EXPECT_EQ(result.status, 0) << words[0] << result.err;
    EXPECT_NE(result.out, "") << words[0];
    return result.out;
}

// The first byte of a character that is not well-formed, or that more than shows itself; or npos.
size_t Raw(const std::string &text) {
    for (size_t i = 0; i < text.size();) {
        unsigned char byte = text[i];
        size_t n = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 0;
        unsigned code = n == 1 ? byte : n == 2 ? byte & 31 : n == 3 ? byte & 15 : byte & 7;
        if (n == 0 || i + n > text.size())
            return i;
        for (size_t j = 1; j < n; j++) {
            if ((text[i + j] & 0xc0) != 0x80)
                return i;
            code = code << 6 | (text[i + j] & 63);
        }
        bool control = (code < 0x20 && code != '\n') || (code >= 0x7f && code < 0xa0);
        bool turns = (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
        bool wrong = (n == 3 && code < 0x800) || (code >= 0xd800 && code < 0xe000) ||
                     (n == 4 && (code < 0x10000 || code > 0x10ffff));
        if (control || turns || wrong)
            return i;
        i += n;
    }
    return std::string::npos;
}

TEST(Text, NothingThatATerminalObeysIsPrinted) {
    std::string trace = Hostile();
    for (const Strings &words :
         {Strings{"info", trace}, Strings{"info", "--json", trace}, Strings{"dump", trace},
          Strings{"dump", "--dot", trace}, Strings{"whatif", trace},
          Strings{"diff", trace, sim::Runfile("tests/golden/trace-v1.cst")},
          Strings{"export", "--perfetto", "-", trace}, Strings{"export", "--jsonl", "-", trace}})
        EXPECT_EQ(Raw(Says(words)), std::string::npos) << words[0] << words[1];
    for (const char *report : {"kernels", "segments", "cache", "breaks", "coverage"})
        for (const char *format : {"table", "csv", "md", "json"})
            for (const char *names : {"base", "mangled", "demangled"}) {
                std::string text =
                    Says({"report", report, "--format", format, "--names", names, trace});
                EXPECT_EQ(Raw(text), std::string::npos) << report << format << text;
            }
}

// Cells of a line, as RFC 4180 has them.
Strings Cells(const std::string &line) {
    Strings cells(1);
    bool quoted = false;
    for (size_t i = 0; i < line.size(); i++) {
        if (line[i] == '"' && quoted && line[i + 1] == '"')
            cells.back() += line[i++];
        else if (line[i] == '"')
            quoted = !quoted;
        else if (line[i] == ',' && !quoted)
            cells.emplace_back();
        else
            cells.back() += line[i];
    }
    EXPECT_FALSE(quoted) << line;
    return cells;
}

Strings Lines(const std::string &text) {
    Strings lines;
    size_t at = 0;
    for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        lines.push_back(text.substr(at, end - at));
    return lines;
}

TEST(Text, NoCellOfCsvIsAFormula) {
    for (const char *report : {"kernels", "breaks"}) {
        Strings lines = Lines(Says({"report", report, "--format", "csv", Hostile()}));
        size_t columns = Cells(lines[0]).size();
        EXPECT_GT(lines.size(), 1u) << report;
        for (const std::string &line : lines) {
            EXPECT_EQ(Cells(line).size(), columns) << line;
            for (const std::string &cell : Cells(line))
                EXPECT_FALSE(!cell.empty() && strchr("=+-@\t\r", cell[0])) << cell;
        }
    }
}

// The text with what is behind a backslash taken out: nothing that is left may begin anything.
TEST(Text, NothingInMarkdownIsALinkOrHtml) {
    for (const char *report : {"kernels", "breaks"}) {
        std::string text = Says({"report", report, "--format", "md", Hostile()}), bare;
        for (size_t i = 0; i < text.size(); i++) {
            if (text[i] == '\\')
                i++;
            else
                bare += text[i];
        }
        for (const char *mark : {"](", "<b", "<s", "<!", "![", "`z`", "http://", "www.x", "me@x"})
            EXPECT_FALSE(Has(bare, mark)) << mark << "\n" << text;
        Strings lines = Lines(bare);
        auto bars = [](const std::string &line) {
            return std::count(line.begin(), line.end(), '|');
        };
        for (const std::string &line : lines)
            EXPECT_TRUE(line[0] != '|' || bars(line) == bars(lines[0])) << line;
    }
}

// Quotes that no backslash takes away come in pairs, and outside of them stands nothing of a name.
TEST(Text, NoNameEndsItsStringInDot) {
    std::string text = Says({"dump", "--dot", Hostile()}), outside;
    bool quoted = false;
    for (size_t i = 0; i < text.size(); i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            outside += text[i];
    }
    EXPECT_FALSE(quoted);
    EXPECT_FALSE(Has(outside, "evil")) << outside;
    EXPECT_FALSE(Has(outside, "HYPERLINK") || Has(outside, "script")) << outside;
}

TEST(Text, NoElementOfAPlotIsATracesOwn) {
    std::string svg = Folder() + "/t.svg";
    std::string name = Folder() + "/&\"'<script>alert(1)<|script>.cst";
    std::string trace = ReplayableWithFacts(
        "{\"argv\":[\"</text><script>alert(1)</script>\"],\"program\":\"</text><script>\","
        "\"gpu\":\"Simulated H200\",\"compute_capability\":90,\"options\":{},\"rules\":[]}");
    ASSERT_EQ(rename(trace.c_str(), name.c_str()), 0);
    Result result = Ran(Launcher({"bench", "--strategy", "piecewise", "--segments", "8", "--break",
                                  "none", "--break", "chai[n<script>&\"']", "--rounds", "1",
                                  "--pace", "none", "--svg", svg, name}));
    EXPECT_TRUE(Ended(result));
    std::string text = ReadFile(svg);
    EXPECT_TRUE(Has(text, "</svg>")) << result.err;
    EXPECT_FALSE(Has(text, "<script")) << text;
    EXPECT_EQ(Raw(text), std::string::npos);
}

} // namespace
} // namespace security
