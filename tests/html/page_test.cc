// Promise: without a browser, the file of `report --html` has the totals of the reports and names
// no place outside of it. It replaces no other file unless told, and a full disk leaves nothing
// behind.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/html/synthetic.h"
#include "tests/text.h"

extern "C" {
#include "tools/trace/html.h"
}

namespace {

std::string Temp(const std::string &name) {
    return testing::TempDir() + "/" + name;
}

bool Exists(const std::string &path) {
    struct stat there;
    return lstat(path.c_str(), &there) == 0;
}

// What stands between the tags of the script element of that id.
std::string Element(const std::string &page, const std::string &id) {
    size_t at = page.find("id=\"" + id + "\">");
    EXPECT_NE(at, std::string::npos) << id;
    at = page.find('>', at) + 1;
    return page.substr(at, page.find("</script>", at) - at);
}

class Page : public testing::Test {
  protected:
    void SetUp() override {
        trace_ = Temp("page.cst");
        out_ = Temp("page.html");
        unlink(out_.c_str());
        counts_ = WriteSynthetic(trace_, 5, HostileNames());
        ASSERT_TRUE(look_open(&look_, trace_.c_str(), NAMES_BASE, error_, sizeof error_)) << error_;
    }
    void TearDown() override { look_close(&look_); }
    int Make(bool force = false) {
        return trace_html(&look_, out_.c_str(), force, error_, sizeof error_);
    }

    std::string trace_, out_;
    SyntheticCounts counts_;
    struct look look_;
    char error_[9000];
};

TEST_F(Page, HoldsTheTotalsUnderTheNamesOfTheReports) {
    ASSERT_EQ(Make(), 0) << error_;
    std::string totals = Element(ReadFile(out_), "totals");
    const std::pair<const char *, unsigned long> expected[] = {
        {"ops", counts_.ops},
        {"in_graphs", counts_.in_graphs},
        {"eager", counts_.eager},
        {"flushed", counts_.flushed},
        {"open", 1},
        {"graph_launches", counts_.graph_launches},
        {"steps", counts_.steps},
        {"kernels", HostileNames().size()},
        {"streams", 2},
        {"threads", 2},
        {"lost_records", 0},
        {"torn_bytes", 0},
    };
    for (const auto &[key, value] : expected)
        EXPECT_NE(totals.find("\"" + std::string(key) + "\": " + std::to_string(value) + ","),
                  std::string::npos)
            << key << " is not " << value << " in " << totals;
}

TEST_F(Page, NoTextOfTheTraceEndsTheElementThatItStandsIn) {
    ASSERT_EQ(Make(), 0) << error_;
    std::string hostile = ReadFile(out_);
    ASSERT_NE(hostile.find("dataset.harm='script'"), std::string::npos);
    ASSERT_NE(hostile.find("onerror="), std::string::npos);
    // The same trace with tame names has as many tags.
    look_close(&look_);
    WriteSynthetic(trace_, 5, std::vector<std::string>(1, "tame"));
    ASSERT_TRUE(look_open(&look_, trace_.c_str(), NAMES_BASE, error_, sizeof error_)) << error_;
    ASSERT_EQ(Make(true), 0) << error_;
    std::string tame = ReadFile(out_);
    for (const char *tag : {"<script", "</script", "<!--", "<img", "</style", "<b"})
        EXPECT_EQ(Count(hostile, tag), Count(tame, tag)) << tag;
}

TEST_F(Page, NamesNoOtherPlaceThanItself) {
    ASSERT_EQ(Make(), 0) << error_;
    std::string page = ReadFile(out_);
    for (const char *elsewhere : {"http://", "https://", "src=\"", "@import", "url(", "import("})
        EXPECT_EQ(Count(page, elsewhere), 0u) << elsewhere;
    EXPECT_EQ(Count(page, "default-src 'none'"), 1u);
}

TEST_F(Page, GoesOverNoFileUnlessTold) {
    std::ofstream(out_) << "precious";
    EXPECT_EQ(Make(), 1);
    EXPECT_NE(std::string(error_).find(out_ + ": cannot be written: it is there already"),
              std::string::npos)
        << error_;
    EXPECT_EQ(ReadFile(out_), "precious");
    ASSERT_EQ(Make(true), 0) << error_;
    EXPECT_NE(ReadFile(out_).find("id=\"totals\""), std::string::npos);
    EXPECT_FALSE(Exists(out_ + "." + std::to_string(getpid()) + ".partial"));
}

TEST_F(Page, IsNotWrittenThroughALinkThatIsThere) {
    std::string other = Temp("other");
    std::ofstream(other) << "precious";
    std::string partial = out_ + "." + std::to_string(getpid()) + ".partial";
    ASSERT_EQ(symlink(other.c_str(), partial.c_str()), 0);
    ASSERT_EQ(symlink(other.c_str(), out_.c_str()), 0);
    EXPECT_EQ(Make(), 1);
    ASSERT_EQ(Make(true), 0) << error_;
    EXPECT_EQ(ReadFile(other), "precious");
    EXPECT_NE(ReadFile(out_).find("id=\"totals\""), std::string::npos);
    EXPECT_FALSE(Exists(partial));
}

TEST_F(Page, NothingIsLeftWhereTheDiskIsFull) {
    rlimit was, little = {30000, 30000};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
    little.rlim_max = was.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    int status = Make();
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
    EXPECT_EQ(status, 1);
    EXPECT_NE(std::string(error_).find(out_ + ": cannot be written: File too large"),
              std::string::npos)
        << error_;
    EXPECT_FALSE(Exists(out_));
    EXPECT_FALSE(Exists(out_ + "." + std::to_string(getpid()) + ".partial"));
}

TEST_F(Page, AFolderThatIsNotThereIsNamed) {
    out_ = Temp("no/such/page.html");
    EXPECT_EQ(Make(), 1);
    EXPECT_NE(std::string(error_).find(out_ + ": cannot be written: No such file"),
              std::string::npos)
        << error_;
}

// Times stand in no picture of the page: it says which verb writes them for a viewer.
TEST_F(Page, NamesTheCommandThatWritesATimeline) {
    ASSERT_EQ(Make(), 0) << error_;
    EXPECT_EQ(Count(ReadFile(out_), "cusplice export --perfetto OUT.json TRACE"), 1u);
}

// An empty trace has a page, too.
TEST(EmptyPage, IsWritten) {
    std::string trace = Temp("empty.cst"), out = Temp("empty.html");
    unlink(out.c_str());
    WriteSynthetic(trace, 0, {"k"});
    struct look look;
    char error[9000];
    ASSERT_TRUE(look_open(&look, trace.c_str(), NAMES_BASE, error, sizeof error)) << error;
    EXPECT_EQ(trace_html(&look, out.c_str(), false, error, sizeof error), 0) << error;
    EXPECT_NE(Element(ReadFile(out), "totals").find("\"ops\": 1,"), std::string::npos);
    look_close(&look);
}

} // namespace
