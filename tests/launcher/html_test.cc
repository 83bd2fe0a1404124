// Promise: report --html takes its options, and its totals equal those of the other reports.
// tests/html tests the page.
#include "tests/launcher/traces.h"

namespace {

TEST(Html, TotalsAreThoseOfTheOtherReports) {
    std::string page = Folder() + "/page.html";
    unlink(page.c_str());
    EXPECT_EQ(Says({"report", "--html", page, golden}), "");
    std::string text = ReadFile(page), begin = "id=\"totals\">";
    size_t from = text.find(begin);
    ASSERT_NE(from, std::string::npos);
    from += begin.size();
    sim::Json totals = Parse(text.substr(from, text.find("</script>", from) - from));
    sim::Json report = Report("coverage", golden);
    for (const char *key : {"ops", "in_graphs", "eager", "flushed", "open", "graph_launches",
                            "steps", "lost_records", "lost_ops"})
        EXPECT_EQ(totals.Number(key), report.Number(std::string("about.") + key)) << key;
    EXPECT_EQ(totals.Number("ops"), 21);
    EXPECT_EQ(totals.Number("duration_ns"),
              Parse(Says({"info", "--json", golden})).Number("duration_ns"));
}

TEST(Html, ErrorsAreOneLine) {
    std::string page = Write("there.html", "precious");
    EXPECT_TRUE(Has(Fails(1, {"report", "--html", page, golden}),
                    page + ": cannot be written: it is there already"));
    EXPECT_EQ(ReadFile(page), "precious");
    Says({"report", "--html=" + page, "--force", golden});
    EXPECT_NE(ReadFile(page), "precious");
    EXPECT_TRUE(Has(Fails(2, {"report", "--html", page}), "TRACE is missing"));
    EXPECT_TRUE(Has(Fails(2, {"report", golden, "--html"}), "--html: FILE is missing"));
    EXPECT_TRUE(Has(Fails(2, {"report", "--html", "--force", page, golden}),
                    "--html: FILE is missing in front of --force"));
    EXPECT_TRUE(Has(Fails(2, {"report", "--html", page, "--forse", golden}), "is --force"));
    EXPECT_TRUE(Has(Fails(1, {"report", "--html", page + "2", "/nowhere.cst"}), "/nowhere.cst"));
    EXPECT_NE(access((page + "2").c_str(), F_OK), 0);
}

} // namespace
