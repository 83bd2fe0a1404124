// Promise: what a new user does in the first hour prints what tests/launcher/first_hour says.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "tests/launcher/launcher.h"

namespace {

namespace fs = std::filesystem;

struct Step {
    int line = 0;
    std::string command;
    Strings expected; // lines
    int status = 0;
};

std::vector<Step> ReadSteps(const std::string &path) {
    std::vector<Step> steps;
    std::istringstream in(ReadFile(path));
    std::string line;
    for (int n = 1; std::getline(in, line); n++) {
        if (line.empty() || line[0] == '#')
            continue;
        if (line.compare(0, 2, "$ ") == 0)
            steps.push_back({n, line.substr(2), {}, 0});
        else if (line[0] == '[' && line.find_first_not_of("0123456789", 1) == line.size() - 1)
            steps.back().status = atoi(line.c_str() + 1);
        else
            steps.back().expected.push_back(line);
    }
    return steps;
}

// "..." stands for any text.
bool Matches(const std::string &text, size_t at, const std::string &pattern, size_t from) {
    for (; from < pattern.size(); at++, from++) {
        if (pattern.compare(from, 3, "...") == 0) {
            for (size_t to = at; to <= text.size(); to++)
                if (Matches(text, to, pattern, from + 3))
                    return true;
            return false;
        }
        if (at >= text.size() || text[at] != pattern[from])
            return false;
    }
    return at == text.size();
}

// A line "..." stands for any number of lines.
bool Matches(const Strings &lines, size_t at, const Strings &expected, size_t from) {
    for (; from < expected.size(); at++, from++) {
        if (expected[from] == "...") {
            for (size_t to = at; to <= lines.size(); to++)
                if (Matches(lines, to, expected, from + 1))
                    return true;
            return false;
        }
        if (at >= lines.size() || !Matches(lines[at], 0, expected[from], 0))
            return false;
    }
    return at == lines.size();
}

bool Matches(const std::string &text, const Strings &expected) {
    Strings lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return Matches(lines, 0, expected, 0);
}

TEST(FirstHour, TheExpectationsThemselvesCanFail) {
    EXPECT_TRUE(Matches("a 12 b\nc\n", {"a ... b", "c"}));
    EXPECT_TRUE(Matches("a\nb\nc\n", {"...", "b", "...", "c"}));
    EXPECT_TRUE(Matches("a\n", {"...", "a", "..."}));
    EXPECT_FALSE(Matches("a 12 b\nc\n", {"a ... b"}));
    EXPECT_FALSE(Matches("a 12 b\n", {"a ... c"}));
    EXPECT_FALSE(Matches("a\n", {"...", "b", "..."}));
    EXPECT_FALSE(Matches("", {"a"}));
}

// The steps of `cusplice top`, or the others.
void ExpectSteps(bool top) {
    std::string folder = Folder() + (top ? "/top" : "/first_hour"), root = fs::current_path();
    fs::create_directory(folder);
    fs::create_directory_symlink(root, folder + "/bazel-bin");
    fs::create_directory_symlink(root + "/tools", folder + "/tools");
    fs::create_directory_symlink(root + "/config", folder + "/config");
    fs::create_directory(folder + "/run");
    chmod((folder + "/run").c_str(), 0700);
    std::vector<Step> steps = ReadSteps("tests/launcher/first_hour");
    EXPECT_GT(steps.size(), 20u);
    for (const Step &step : steps) {
        if (Has(step.command, "cusplice top ") != top)
            continue;
        Result r = RunProgram({"/bin/sh", "-c", "cd " + folder + "; exec 2>&1; " + step.command},
                              {{"CUSIM_LIB", root + "/harness/sim/lib"},
                               {"XDG_RUNTIME_DIR", folder + "/run"},
                               {"TERM", "dumb"}});
        EXPECT_EQ(r.Exit(), step.status) << "line " << step.line << ": " << step.command;
        EXPECT_TRUE(Matches(r.out, step.expected))
            << "line " << step.line << ": $ " << step.command << "\n"
            << r.out;
    }
}

TEST(FirstHour, PrintsWhatIsExpected) {
    if (Sanitized())
        GTEST_SKIP() << "Python and shells do not run under a sanitizer's runtime";
    ExpectSteps(false);
}

TEST(FirstHour, ShowsAProgramThatRuns) {
    if (Sanitized())
        GTEST_SKIP() << "shells do not run under a sanitizer's runtime";
    if (getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "qemu tells a process another start than others see";
    ExpectSteps(true);
}

} // namespace
