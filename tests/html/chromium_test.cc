// Promise: the page of `report --html` in a browser shows what the reports say, loads nothing from
// the network, and can be used.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>

#include "tests/html/chromium.h"
#include "tests/html/synthetic.h"
#include "tests/text.h"

extern "C" {
#include "tools/trace/html.h"
#include "tools/trace/report.h"
}

namespace {

std::string Temp(const std::string &name) {
    return testing::TempDir() + "/" + name;
}

// "1 234 ns", as the page writes a time's title.
std::string Grouped(int64_t number) {
    std::string digits = std::to_string(number);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<size_t>(at), "\xe2\x80\x89");
    return digits + " ns";
}

// The rows of a report as the page's cells have them in their titles.
std::vector<std::vector<std::string>> Expected(const struct look *look, const char *name) {
    std::vector<std::vector<std::string>> rows;
    struct table table = {};
    for (const report *report = report_list; report->name; report++)
        if (strcmp(report->name, name) == 0)
            report->fill(look, &table);
    EXPECT_FALSE(table.failed);
    for (size_t i = 0; i < table.n_rows; i++) {
        rows.emplace_back();
        for (unsigned c = 0; c < table.n_columns; c++) {
            table_value value = table.values[i * table.n_columns + c];
            char text[64];
            snprintf(text, sizeof text, "%.6g", value.real);
            switch (table.columns[c].unit) {
            case TABLE_TEXT:
                rows.back().push_back(value.text ? value.text : "");
                break;
            case TABLE_PERCENT:
                rows.back().push_back(text);
                break;
            case TABLE_NS:
                rows.back().push_back(Grouped(value.number));
                break;
            default:
                rows.back().push_back(std::to_string(value.number));
            }
            std::string &cell = rows.back().back();
            size_t bad = cell.find('\xff'); // no UTF-8
            if (bad != std::string::npos)
                cell.replace(bad, 1, "\xef\xbf\xbd");
        }
    }
    table_free(&table);
    std::sort(rows.begin(), rows.end());
    return rows;
}

// The same rows in the page; a report's columns are the first ones there.
std::vector<std::vector<std::string>> Shown(const std::string &dom, const char *name,
                                            size_t columns) {
    auto rows = Cells(dom, std::string("t-") + name);
    for (auto &row : rows)
        if (row.size() > columns)
            row.resize(columns);
    std::sort(rows.begin(), rows.end());
    return rows;
}

class Chromium : public testing::Test {
  protected:
    void Make(unsigned steps, const std::vector<std::string> &names) {
        std::string trace = Temp("chromium.cst");
        char error[9000];
        page_ = Temp("chromium.html");
        unlink(page_.c_str());
        counts_ = WriteSynthetic(trace, steps, names);
        ASSERT_TRUE(look_open(&look_, trace.c_str(), NAMES_BASE, error, sizeof error)) << error;
        open_ = true;
        ASSERT_EQ(trace_html(&look_, page_.c_str(), false, error, sizeof error), 0) << error;
    }
    void TearDown() override {
        if (open_)
            look_close(&look_);
    }
    void ExpectCounts(const Rendered &rendered) {
        auto data = rendered.data;
        EXPECT_EQ(data["ready"], "yes") << rendered.log << data["error"];
        EXPECT_EQ(data["ops"], std::to_string(counts_.ops));
        EXPECT_EQ(data["in-graphs"], std::to_string(counts_.in_graphs));
        EXPECT_EQ(data["eager"], std::to_string(counts_.eager));
        EXPECT_EQ(data["flushed"], std::to_string(counts_.flushed));
        EXPECT_EQ(data["open"], "1");
        EXPECT_EQ(data["graph-launches"], std::to_string(counts_.graph_launches));
        EXPECT_EQ(data["steps"], std::to_string(counts_.steps));
        EXPECT_EQ(data.count("error"), 0u) << data["error"];
        EXPECT_EQ(data.count("harm"), 0u) << data["harm"];
        EXPECT_EQ(rendered.console, "");
    }

    SyntheticCounts counts_;
    struct look look_;
    std::string page_;
    bool open_ = false;
};

#define NEEDS_CHROMIUM()                                                                           \
    if (FindChromium().empty())                                                                    \
    GTEST_SKIP() << "no chromium here; tools/setup installs it"

// What a user does, and what the page has become, in data- attributes.
const char kUse[] = R"js(<script>{
const told = document.body.dataset, input = document.getElementById("search");
const head = document.querySelector("#t-kernels button[data-key=name]");
head.click();
told.usedSort = document.querySelector("#t-kernels tbody td:last-child").title;
document.querySelector("#t-kernels button[data-key=name]").click();
told.usedSortDown = document.querySelector("#t-kernels tbody td:last-child").title;
document.getElementById("step-number").value = 3;
document.getElementById("step-number").dispatchEvent(new Event("change"));
told.usedStep = `${told.step} ${told.stepOps} ${told.stepInGraphs} ${told.stepGraphs} ${told.cells}`;
page.search("__PROTO__");
told.usedFound = `${told.found} ${document.getElementById("t-kernels").dataset.rows}`;
told.usedHits = page.hits.reduce((a, b) => a + b, 0);
const strip = page.strip, places = [];
const next = () => places.push(`${strip.stream.value}.${told.step}.${strip.op}`);
input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" })), next();
document.getElementById("next-match").click(), next();
document.getElementById("strip-box").dispatchEvent(new KeyboardEvent("keydown", { key: "n" })), next();
told.usedNext = places.join(" ");
page.search("cuStreamSync");
told.usedFlushes = told.found;
page.search("");
strip.show(page.d.streamSteps[1][3]);
const first = strip.ops[0];
told.usedTip = page.opLines(first).join("|");
told.usedGpu = page.opLines(page.d.gpuOf.indexOf(5)).join("|");
told.usedBuilt = page.opLines(strip.ops[10]).join("|");
page.d.outPatched[0] = 1; // of an exact launch
told.usedExact = `${outText(page.d, 0)}; ${outClass(page.d, 0) === PATCHED}`;
told.usedWide = [...document.querySelectorAll(".table")].filter((t) => t.scrollWidth > t.clientWidth).map((t) => t.id).join();
const kernels = document.getElementById("t-kernels"), rows = [...kernels.querySelectorAll("tbody tr")];
told.usedUnits = [...kernels.querySelectorAll("th button")].filter((head, i) => /_ns$/.test(head.dataset.key) &&
    / (ns|\u00b5s|ms|s)$/.test(head.textContent) && rows.every((row) => /^[-\u2013\d\u2009.]+$/.test(row.cells[i].textContent))).length;
const advice = document.querySelector("#t-breaks tbody td:last-child span");
told.usedAdvice = getComputedStyle(advice).display;
told.usedWhy = page.opLines(strip.ops.find((op) => page.d.opAlone[op])).join("|");
}</script></body>)js";

TEST_F(Chromium, ShowsWhatTheReportsSayWithAndWithoutANetwork) {
    NEEDS_CHROMIUM();
    ASSERT_NO_FATAL_FAILURE(Make(6, HostileNames()));
    auto other = std::async(std::launch::async, [this] { return Render(page_, true); });
    Rendered online = Render(page_, false), offline = other.get();
    ExpectCounts(online);
    ExpectCounts(offline);
    EXPECT_EQ(online.dom, offline.dom);

    for (const char *name : {"kernels", "breaks", "cache", "segments"}) {
        auto expected = Expected(&look_, name);
        ASSERT_FALSE(expected.empty()) << name;
        EXPECT_EQ(Shown(offline.dom, name, expected[0].size()), expected) << name;
    }
    EXPECT_EQ(offline.data["cells"], "16");
    EXPECT_EQ(offline.data["step-in-graphs"], "12");
    EXPECT_EQ(offline.data["step-graphs"], "3");
    EXPECT_EQ(offline.dom.find("<dt>steps</dt>"), std::string::npos) << "an empty list is no fact";
    EXPECT_NE(offline.dom.find("<dd>mode"), 0u);
    EXPECT_NE(offline.dom.find("<dd>warmup = 7</dd>"), std::string::npos);
    EXPECT_NE(offline.dom.find("<dd>2023-11-14 22:13:20 UTC</dd>"), std::string::npos);
    EXPECT_NE(offline.dom.find("<dd>prog &lt;/script&gt;&lt;b&gt;\"&amp;'</dd>"),
              std::string::npos);
}

// Which tables are wider than their place, and of which the last column, that of names, is out of
// it.
const char kNarrow[] = R"js(<script>{
const told = document.body.dataset, tables = [...document.querySelectorAll(".table")];
const right = (e) => e.getBoundingClientRect().right;
told.usedWide = tables.filter((t) => t.scrollWidth > t.clientWidth).map((t) => t.id).join();
told.usedOut = tables.filter((t) => ["th", "td"].some((cell) => t.querySelector(cell) &&
    right(t.querySelector(`${cell}:last-child`)) > right(t) + 1)).map((t) => t.id).join();
}</script></body>)js";

TEST_F(Chromium, NamesStayInSightWhereThePageIsNarrow) {
    NEEDS_CHROMIUM();
    ASSERT_NO_FATAL_FAILURE(Make(6, HostileNames()));
    std::string text = ReadFile(page_), used = Temp("narrow.html");
    size_t end = text.rfind("</body>");
    ASSERT_NE(end, std::string::npos);
    std::ofstream(used) << text.substr(0, end) << kNarrow << text.substr(end + strlen("</body>"));
    Rendered rendered = Render(used, true, 100, 800);
    EXPECT_NE(rendered.data["used-wide"].find("t-kernels"), std::string::npos)
        << rendered.data["used-wide"];
    EXPECT_EQ(rendered.data.count("used-out"), 1u) << rendered.log;
    EXPECT_EQ(rendered.data["used-out"], "");
}

// The page of a trace in which nothing is.
std::string WithoutOps() {
    std::string trace = Temp("empty.cst"), page = Temp("empty.html");
    struct look look;
    char error[9000];
    unlink(page.c_str());
    WriteSynthetic(trace, 0, {});
    EXPECT_TRUE(look_open(&look, trace.c_str(), NAMES_BASE, error, sizeof error)) << error;
    EXPECT_EQ(trace_html(&look, page.c_str(), false, error, sizeof error), 0) << error;
    look_close(&look);
    return page;
}

TEST_F(Chromium, CanBeUsed) {
    NEEDS_CHROMIUM();
    ASSERT_NO_FATAL_FAILURE(Make(6, HostileNames()));
    std::string text = ReadFile(page_), used = Temp("used.html");
    size_t end = text.rfind("</body>");
    ASSERT_NE(end, std::string::npos);
    std::ofstream(used) << text.substr(0, end) << kUse << text.substr(end + strlen("</body>"));
    auto other = std::async(std::launch::async, [] { return Render(WithoutOps(), true); });
    Rendered rendered = Render(used, true), empty = other.get();
    EXPECT_EQ(empty.data["ready"], "yes") << empty.data["error"];
    EXPECT_EQ(empty.data["ops"], "0");
    EXPECT_NE(empty.dom.find("<dd>2023-11-14 22:13:20 UTC</dd>"), std::string::npos)
        << "that of the recording, since there is no first event";
    EXPECT_EQ(empty.console, "");
    auto data = rendered.data;
    EXPECT_EQ(data.count("error"), 0u) << data["error"];
    EXPECT_EQ(rendered.console, "");
    auto names = HostileNames();
    std::sort(names.begin(), names.end());
    EXPECT_EQ(data["used-sort"], names.front());
    EXPECT_EQ(data["used-sort-down"], "line\xe2\x80\xa8separator");
    EXPECT_EQ(data["used-step"], "3 16 12 3 16");
    // In each step of both streams ops 6 and 9 bear that name. The next ones come in trace order.
    EXPECT_EQ(data["used-found"], "24 1");
    EXPECT_EQ(data["used-hits"], "24");
    EXPECT_EQ(data["used-next"], "1.3.6 1.3.9 2.3.6");
    EXPECT_EQ(data["used-flushes"], "24"); // the ops that waits flushed
    EXPECT_NE(data["used-tip"].find("|grid 1\xc3\x97"
                                    "2\xc3\x97"
                                    "3, block 4\xc3\x97"
                                    "5\xc3\x97"
                                    "6|graph of 4 ops, as it was: segment 1, variant 0"),
              std::string::npos)
        << data["used-tip"];
    EXPECT_NE(data["used-gpu"].find("|on the GPU at "), std::string::npos) << data["used-gpu"];
    EXPECT_NE(data["used-gpu"].find(" for 600\xe2\x80\x89ns"), std::string::npos);
    EXPECT_NE(data["used-built"].find("|graph of 4 ops, built in 3.46\xe2\x80\x89s: segment 3"),
              std::string::npos)
        << data["used-built"];
    EXPECT_NE(data["used-exact"].find("graph of 4 ops, 1 node patched: segment 1"),
              std::string::npos)
        << data["used-exact"];
    EXPECT_NE(data["used-exact"].find("; true"), std::string::npos) << "and is coloured so";
    EXPECT_EQ(data["used-units"], "5") << "a unit a column, in its head";
    EXPECT_EQ(data["used-advice"], "inline") << "advice is read as a whole";
    EXPECT_EQ(data["used-wide"], "") << "tables with columns off the screen";
    EXPECT_NE(data["used-why"].find("|eager: rule (never_defer): a never_defer rule names it"),
              std::string::npos)
        << data["used-why"];
}

// By hand: bazel test //tests/html:million_test --test_output=all
TEST_F(Chromium, DISABLED_AMillionOps) {
    NEEDS_CHROMIUM();
    auto begin = std::chrono::steady_clock::now();
    auto passed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    ASSERT_NO_FATAL_FAILURE(Make(31250, {"gemm", "norm", "rope", "add", "softmax"}));
    std::string text = ReadFile(page_), used = Temp("used.html");
    printf("%lu ops: trace and page made in %.1f s, page of %.1f MB\n", counts_.ops, passed(),
           static_cast<double>(text.size()) / 1e6);
    EXPECT_LT(text.size(), 25000000u);
    size_t end = text.rfind("</body>");
    std::ofstream(used) << text.substr(0, end) << R"js(<script>
        document.body.dataset.open = performance.now().toFixed(0);
        let at = performance.now();
        for (let i = 0; i < 20; i++) page.strip.show(100 * i);
        document.body.dataset.draw = ((performance.now() - at) / 20).toFixed(1);
        at = performance.now();
        page.search("rope");
        document.body.dataset.search = (performance.now() - at).toFixed(0);
        page.search("");
        </script></body>)js"
                        << text.substr(end + strlen("</body>"));
    begin = std::chrono::steady_clock::now();
    Rendered rendered = Render(used, true, 300);
    auto data = rendered.data;
    printf("opened by chromium in %.1f s; in the page: ready after %s ms, a step in %s ms, a "
           "search in %s ms\n",
           passed(), data["open"].c_str(), data["draw"].c_str(), data["search"].c_str());
    EXPECT_EQ(data["ops"], std::to_string(counts_.ops));
    EXPECT_EQ(data["in-graphs"], std::to_string(counts_.in_graphs));
    EXPECT_EQ(data["steps"], std::to_string(counts_.steps));
    EXPECT_EQ(rendered.console, "");
}

} // namespace
