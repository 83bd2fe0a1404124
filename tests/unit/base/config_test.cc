// Promise: the reader of settings accepts the documented files, and reports each problem with its
// line.
#include "shim/base/config.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/unit/base/config_files.h"

namespace {

struct Got {
    std::vector<std::string> settings, problems, heads;
};

void TakeSetting(void *context, const cus_setting *s) {
    if (!s->key)
        static_cast<Got *>(context)->heads.push_back(std::to_string(s->line) + " " + s->section +
                                                     "/" + s->value);
    else
        static_cast<Got *>(context)->settings.push_back(std::to_string(s->line) + " " + s->section +
                                                        "/" + s->key + "=" + s->value);
}

// Without the name of the file.
void TakePlace(void *context, const cus_problem *p) {
    std::string shown = Shown(p), file = p->file;
    EXPECT_EQ(shown.compare(0, file.size(), file), 0);
    static_cast<Got *>(context)->problems.push_back(shown.substr(file.size()));
}

Got Read(const std::string &text) {
    Got got;
    int fd = memfd_create("config", MFD_CLOEXEC);
    fchmod(fd, 0600); // settings that others may write are not believed
    EXPECT_EQ(write(fd, text.data(), text.size()), (ssize_t)text.size());
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    cus_config_read_file(path.c_str(), false, TakeSetting, TakePlace, &got);
    close(fd);
    return got;
}

TEST(Config, SettingsThenRulesWithTheirLines) {
    Got got =
        Read("# a comment\nmode = off\n\n; another\nhold_us=5\n[rules]\neager = a*\neager = b\n");
    EXPECT_EQ(got.settings,
              (Strings{"2 /mode=off", "5 /hold_us=5", "7 rules/eager=a*", "8 rules/eager=b"}));
    EXPECT_EQ(got.problems, Strings{});
}

TEST(Config, BlanksBomCarriageReturnsAndAMissingLastLineEnd) {
    Got got = Read("\xef\xbb\xbfmode = off\r\n\t  hold_us   =   7  \r\n[rules]\r\n  eager =  x y");
    EXPECT_EQ(got.settings, (Strings{"1 /mode=off", "2 /hold_us=7", "4 rules/eager=x y"}));
    EXPECT_EQ(got.problems, Strings{});
}

TEST(Config, AnIndentedLineIsALineOfItsOwn) {
    Got got = Read("[rules]\neager = a\n    eager = b\n    graph = c\n");
    EXPECT_EQ(got.settings, (Strings{"2 rules/eager=a", "3 rules/eager=b", "4 rules/graph=c"}));
}

TEST(Config, NothingBehindAValueIsAComment) {
    Got got = Read("stats = /a ;b #c\n[rules]\neager = re:x ;y|[#]=z:\n");
    EXPECT_EQ(got.settings, (Strings{"1 /stats=/a ;b #c", "3 rules/eager=re:x ;y|[#]=z:"}));
    EXPECT_EQ(got.problems, Strings{});
}

TEST(Config, ValuesAsLongAsMangledNames) {
    std::string name(3000, 'n');
    Got got = Read("[rules]\neager = mangled:" + name + "\ngraph = g\n");
    EXPECT_EQ(got.settings, (Strings{"2 rules/eager=mangled:" + name, "3 rules/graph=g"}));
    EXPECT_EQ(got.problems, Strings{});
}

TEST(Config, TooLongALineIsToldAndNotCutSilently) {
    Got got = Read("stats = " + std::string(5000, 'n') + "\nmode = off\n");
    EXPECT_EQ(got.settings, (Strings{"2 /mode=off"}));
    EXPECT_EQ(got.problems, (Strings{":1: this line is too long"}));
}

TEST(Config, LinesThatAreNoSettingAreToldEachWithItsLine) {
    Got got = Read("mode off\nhold_us = 5\nwhat is this\n");
    EXPECT_EQ(got.settings, (Strings{"2 /hold_us=5"}));
    EXPECT_EQ(got.problems, (Strings{":1: neither 'key = value' nor '[section]' nor a comment",
                                     ":3: neither 'key = value' nor '[section]' nor a comment"}));
}

TEST(Config, UnknownSectionIsToldOnceAndItsSettingsAreLeftOut) {
    Got got = Read("[rule]\neager = a\neager = b\n[rules]\neager = c\n");
    EXPECT_EQ(got.settings, (Strings{"5 rules/eager=c"}));
    EXPECT_EQ(got.problems, (Strings{":1: unknown section [rule] (nearest: rules)"}));
}

TEST(Config, ASectionWithoutItsEndSwitchesNothing) {
    Got got = Read("[rules]\neager = a\n[rules\neager = b\n");
    EXPECT_EQ(got.settings, (Strings{"2 rules/eager=a"}));
    EXPECT_EQ(got.problems, (Strings{":3: this section's head has no ']'"}));
}

TEST(Config, HeadsAreToldAndStepsMayHaveNames) {
    Got got = Read("[step]\nmarker = a\n[step]\n[step  a b]\nmarker = b\n[rules]\neager = c\n"
                   "[steps]\nmarker = d\n[stepx y]\n[rules x]\neager = e\n[step\nmarker = f\n[]\n");
    EXPECT_EQ(got.settings, (Strings{"2 step/marker=a", "5 step/marker=b", "7 rules/eager=c"}));
    EXPECT_EQ(got.heads, (Strings{"1 step/", "3 step/", "4 step/a b", "6 rules/", "8 ?/", "10 ?/",
                                  "11 ?/", "13 ?/", "15 ?/"}));
    EXPECT_EQ(got.problems, (Strings{":8: unknown section [steps] (nearest: step)",
                                     ":10: unknown section [stepx y] (nearest: step)",
                                     ":11: unknown section [rules x] (nearest: rules)",
                                     ":13: this section's head has no ']'",
                                     ":15: unknown section [] (nearest: step)"}));
}

TEST(Config, ASectionsHeadIsNotCutSilently) {
    Got got = Read("[step " + std::string(42, 'n') + "]\nmarker = a\n[step " +
                   std::string(43, 'n') + "]\nmarker = b\n");
    EXPECT_EQ(got.settings, (Strings{"2 step/marker=a"}));
    EXPECT_EQ(got.heads, (Strings{"1 step/" + std::string(42, 'n'), "3 ?/"}));
    EXPECT_EQ(got.problems, (Strings{":3: this section's head is too long"}));
}

TEST(Config, BinaryLinesAreTold) {
    Got got = Read(std::string("mode = o\0ff\nhold_us = 5\n", 23));
    EXPECT_EQ(got.settings, (Strings{"2 /hold_us=5"}));
    EXPECT_EQ(got.problems, (Strings{":1: not a line of text"}));
}

TEST(Config, AFileThatIsNotThereIsAProblemOnlyIfItMustBe) {
    Got got;
    cus_config_read_file("/nowhere/x.conf", true, TakeSetting, TakePlace, &got);
    EXPECT_EQ(got.problems, Strings{});
    cus_config_read_file("/nowhere/x.conf", false, TakeSetting, TakePlace, &got);
    EXPECT_EQ(got.problems, (Strings{": cannot be opened: No such file or directory"}));
}

TEST(Config, AFolderIsAProblem) {
    Got got;
    cus_config_read_file("/", false, TakeSetting, TakePlace, &got);
    ASSERT_EQ(got.problems.size(), 1u);
    EXPECT_NE(got.problems[0].find("not believed: it is no regular file"), std::string::npos);
}

TEST(Config, NoInputMakesTheReaderFall) {
    unsigned seed = 12345;
    const std::string alphabet("[]=:;# \t\r\nrulesegm*\\\xef\xbb\xbf\0x", 26);
    for (int round = 0; round < 3000; round++) {
        std::string text;
        for (int i = rand_r(&seed) % 400; i > 0; i--)
            text += alphabet[(size_t)rand_r(&seed) % alphabet.size()];
        Got got = Read(text);
        for (const std::string &setting : got.settings)
            EXPECT_TRUE(setting.find(" /") != std::string::npos ||
                        setting.find(" rules/") != std::string::npos)
                << setting;
    }
}

// A hint that is far from the word only misleads.
TEST(Config, NearIsASlipOrABeginning) {
    const char *const words[] = {"run",         "top",    "diff", "config",
                                 "segment_max", "format", "md",   nullptr};
    const struct {
        const char *word, *near;
    } cases[] = {
        {"m", nullptr},
        {"mx", "md"},
        {"rnu", "run"},
        {"ru", "run"},
        {"confgi", "config"},
        {"cnfg", nullptr},
        {"conf", "config"},
        {"segmentmax", "segment_max"},
        {"list", nullptr},
        {"V", nullptr},
        {"?", nullptr},
        {"bogus", nullptr},
        {"", nullptr},
        {"frmat", "format"},
        {"tpo", "top"},
        {"xml", nullptr},
        {"segment", "segment_max"},
        {"fomrat", "format"},
        {"to", "top"},
        {"diffs", "diff"},
    };
    for (const auto &c : cases)
        EXPECT_STREQ(cus_near(c.word, words), c.near) << c.word;
    const char *const none[] = {nullptr};
    EXPECT_EQ(cus_near("x", none), nullptr);
}

TEST(Config, NearestIsByEditDistance) {
    const char *const words[] = {"mode", "hold_us", "segment_max", "segment_first", nullptr};
    EXPECT_STREQ(cus_nearest("holdus", words), "hold_us");
    EXPECT_STREQ(cus_nearest("segment-max", words), "segment_max");
    EXPECT_STREQ(cus_nearest("Mode", words), "mode");
    EXPECT_STREQ(cus_nearest(std::string(300, 'e').c_str(), words), "segment_max");
    const char *const none[] = {nullptr};
    EXPECT_EQ(cus_nearest("x", none), nullptr);
}

// A word that goes on behind the end of a known one is compared no further than that end.
TEST(Config, NearReadsNoFurtherThanAWordGoes) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    char *pages = static_cast<char *>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
    char *known = pages + page - sizeof "mode";
    memcpy(known, "mode", sizeof "mode");
    const char *const words[] = {known, nullptr};
    EXPECT_EQ(cus_near("mode_and_more", words), nullptr);
    EXPECT_STREQ(cus_near("moed", words), "mode");
    munmap(pages, 2 * page);
}

} // namespace
