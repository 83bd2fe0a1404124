// Promise: the log keeps its format, levels by domain and cap on repeats, leaves errno, and never
// uses stdout.
#include "shim/base/log.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include <sstream>

#include "shim/base/clock.h"
#include "tests/unit/base/captured.h"

namespace {

// A POSIX extended regular expression, for the whole of a text.
bool Matches(const std::string &text, const std::string &pattern) {
    regex_t regex;
    EXPECT_EQ(regcomp(&regex, ("^" + pattern + "$").c_str(), REG_EXTENDED | REG_NOSUB), 0);
    bool matches = regexec(&regex, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&regex);
    return matches;
}

} // namespace

TEST(Log, LineHasProcessThreadLevelDomainAndText) {
    std::string text = Captured([] { cus_log(CUS_WARN, "graph", "%d of %s", 3, "four"); });
    EXPECT_TRUE(Matches(text, "cusplice\\[([0-9]+):\\1\\] warn graph: 3 of four\n")) << text;
}

TEST(Log, DefaultIsWarn) {
    std::string text = Captured([] {
        cus_log(CUS_ERROR, "a", "one");
        cus_log(CUS_INFO, "a", "two");
        cus_log(CUS_DEBUG, "a", "three");
    });
    EXPECT_EQ(Count(text, "\n"), 1u) << text;
    EXPECT_NE(text.find("error a: one"), std::string::npos);
}

TEST(Log, DomainsHaveLevelsOfTheirOwn) {
    std::string text = Captured([] {
        cus_log_configure("error,graph:debug,quiet:error", nullptr);
        cus_log(CUS_DEBUG, "graph", "yes");
        cus_log(CUS_WARN, "graph2", "no");
        cus_log(CUS_WARN, "quiet", "no");
        cus_log(CUS_ERROR, "quiet", "yes");
        cus_log(CUS_WARN, "other", "no");
    });
    EXPECT_EQ(Count(text, ": yes\n"), 2u) << text;
    EXPECT_EQ(Count(text, ": no\n"), 0u) << text;
}

TEST(Log, OnAnswersAsTheLineWould) {
    EXPECT_TRUE(cus_log_on(CUS_WARN, "x"));
    EXPECT_FALSE(cus_log_on(CUS_INFO, "x"));
}

TEST(Log, SpecErrorsPointAtTheBadPart) {
    EXPECT_EQ(cus_log_spec_error("warn"), nullptr);
    EXPECT_EQ(cus_log_spec_error(""), nullptr);
    EXPECT_EQ(cus_log_spec_error("warn,graph:debug,x:error"), nullptr);
    EXPECT_STREQ(cus_log_spec_error("warn,graph:loud"), "graph:loud");
    EXPECT_STREQ(cus_log_spec_error("verbose"), "verbose");
    EXPECT_STREQ(cus_log_spec_error("warn,:debug"), ":debug");
    EXPECT_STREQ(cus_log_spec_error("warn:"), "warn:");
}

TEST(Log, TheSameWarningIsCapped) {
    std::string text = Captured([] {
        cus_log_configure("info", nullptr);
        for (int i = 0; i < 100; i++) {
            cus_log(CUS_WARN, "a", "again %d", i);
            cus_log(CUS_INFO, "a", "info %d", i);
        }
    });
    EXPECT_EQ(Count(text, "again"), 10u);
    EXPECT_EQ(Count(text, "no more of this"), 1u);
    EXPECT_EQ(Count(text, ": info "), 100u) << "whoever asks for info gets all of it";
}

TEST(Log, OnceIsOncePerPlace) {
    std::string text = Captured([] {
        for (int i = 0; i < 5; i++)
            CUS_LOG_ONCE(CUS_WARN, "a", "first place");
        CUS_LOG_ONCE(CUS_WARN, "a", "second place");
    });
    EXPECT_EQ(Count(text, "\n"), 2u) << text;
}

TEST(Log, LongLinesAreCutAndStayOneLine) {
    std::string text = Captured([] {
        std::string big(5000, 'x');
        cus_log(CUS_WARN, "a", "%s", big.c_str());
        cus_log(CUS_WARN, "a", "two\nlines");
    });
    EXPECT_EQ(Count(text, "\n"), 2u);
    EXPECT_LT(text.size(), 1200u);
    EXPECT_NE(text.find("two lines\n"), std::string::npos);
}

TEST(Log, ErrnoIsKeptAndPercentMShowsIt) {
    std::string text = Captured([] {
        errno = ENOENT;
        cus_log(CUS_WARN, "a", "why: %m");
        if (errno != ENOENT)
            cus_log(CUS_WARN, "a", "errno was lost");
    });
    EXPECT_NE(text.find(strerror(ENOENT)), std::string::npos);
    EXPECT_EQ(text.find("errno was lost"), std::string::npos);
}

TEST(Log, FileTakesTheLinesInsteadOfStderr) {
    std::string stem = TempPath("log");
    std::string text = Captured([&] {
        std::string path = stem + ".{pid}";
        cus_log_configure("warn", path.c_str());
        cus_log(CUS_WARN, "a", "into the file");
        cus_log(CUS_WARN, "a", "into the file too");
        rename((stem + "." + std::to_string(getpid())).c_str(), stem.c_str());
    });
    EXPECT_EQ(text, "");
    EXPECT_EQ(Count(ReadFile(stem), "into the file"), 2u);
}

TEST(Log, AFileThatCannotBeOpenedFallsBackToStderr) {
    std::string text = Captured([] {
        cus_log_configure("warn", "/nowhere/at/all");
        cus_log(CUS_WARN, "a", "still heard");
    });
    EXPECT_EQ(Count(text, "still heard"), 1u);
}

TEST(Log, AFileIsTheUsersAloneAndNoLink) {
    std::string theirs = TempPath("theirs"), link = TempPath("log_link"), own = TempPath("own_log");
    ASSERT_EQ(symlink(theirs.c_str(), link.c_str()), 0);
    std::string text = Captured([&] {
        umask(0);
        cus_log_configure("warn", link.c_str());
        cus_log(CUS_WARN, "a", "not through a link");
        cus_log_configure("warn", own.c_str());
        cus_log(CUS_WARN, "a", "into my own");
    });
    EXPECT_EQ(Count(text, "not through a link"), 1u) << "told on stderr instead";
    struct stat info;
    EXPECT_NE(stat(theirs.c_str(), &info), 0) << "nothing was made behind the link";
    ASSERT_EQ(stat(own.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(Log, AReportGoesIntoItsOwnFileAnewAndIntoASharedOneBehind) {
    std::string own = TempPath("report.{pid}"), shared = TempPath("report");
    std::string mine = TempPath("report." + std::to_string(getpid()));
    for (int i = 0; i < 2; i++) {
        cus_log_text_in(own.c_str(), "one\n", 4);
        cus_log_text_in(shared.c_str(), "one\n", 4);
    }
    EXPECT_EQ(ReadFile(mine), "one\n");
    EXPECT_EQ(ReadFile(shared), "one\none\n");
}

TEST(Log, AReportWithoutAFileOfItsOwnIsInTheLog) {
    std::string link = TempPath("report.link"), other = WriteFile(TempPath("other"), "theirs");
    ASSERT_EQ(symlink(other.c_str(), link.c_str()), 0);
    for (const std::string &file :
         {std::string(), link, std::string("/nowhere/at/all"), link + "%p/x"})
        EXPECT_EQ(Captured([&] { cus_log_text_in(file.c_str(), "two\nlines\n", 10); }),
                  "two\nlines\n")
            << file;
    EXPECT_EQ(ReadFile(other), "theirs");
}

// A limit stands for a disk that is full: both refuse the line while the file is open.
TEST(Log, AFileThatIsFullIsSaidOnceAndItsLinesAreOnStderr) {
    std::string path = WriteFile(TempPath("full"), std::string(9000, 'x'));
    std::string text = Captured([&] {
        cus_log_configure("info", path.c_str());
        const struct rlimit limit = {9000, 9000};
        signal(SIGXFSZ, SIG_DFL);
        cus_log(CUS_WARN, "a", "there is room");
        setrlimit(RLIMIT_FSIZE, &limit);
        cus_log(CUS_WARN, "a", "the first");
        cus_log(CUS_INFO, "a", "the second");
        cus_log_text("a report\n", 9);
    });
    EXPECT_EQ(Count(text, "warn log: the log file " + path + ": File too large\n"), 1u) << text;
    EXPECT_EQ(Count(text, "warn a: the first\n"), 1u) << text;
    EXPECT_EQ(Count(text, "info a: the second\n"), 1u) << text;
    EXPECT_EQ(Count(text, "a report\n"), 1u) << text;
    EXPECT_EQ(Count(ReadFile(path), "there is room"), 1u);
}

TEST(Log, LinesOfInfoAndDebugHaveABoundEach) {
    std::string text = Captured([] {
        cus_virtual.on = true;
        cus_log_configure("debug", nullptr);
        for (uint64_t second = 1; second <= 2; second++) {
            cus_virtual.ns = second * 1000000000;
            for (int i = 0; i < 3000; i++)
                cus_log(CUS_DEBUG, "a", "often");
            cus_log(CUS_INFO, "a", "seldom");
            cus_log(CUS_WARN, "a", "bad");
        }
        cus_log_end();
        cus_log_end();
    });
    EXPECT_EQ(Count(text, "often\n"), 2000u);
    EXPECT_EQ(Count(text, "seldom"), 2u) << "no flood of another level takes its room";
    EXPECT_EQ(Count(text, "bad"), 2u);
    EXPECT_EQ(Count(text, "info log: 4000 lines are left out: at most 1000 a second and 20000 in "
                          "all"),
              1u)
        << text.substr(text.size() - 300);
}

TEST(Log, TheLastLineOfAllSaysSo) {
    std::string text = Captured([] {
        cus_virtual.on = true;
        cus_log_configure("info", nullptr);
        for (uint64_t second = 1; second <= 30; second++) {
            cus_virtual.ns = second * 1000000000;
            for (int k = 0; k < 900; k++)
                cus_log(CUS_INFO, "a", "line");
        }
        cus_log_end();
    });
    EXPECT_EQ(Count(text, "info a: line"), 20000u);
    EXPECT_EQ(Count(text, "line (so many lines are enough: no more of them)\n"), 1u);
    EXPECT_EQ(Count(text, ": 7000 lines are left out"), 1u);
}

// Under a lock: other threads wait meanwhile.
TEST(Log, NoLineOfInfoWaitsForAReader) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::string fill(65536, 'x');
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], fill.data(), fill.size()) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
    uint64_t took = 0;
    std::string path = TempPath("took");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        cus_log_configure("info", nullptr);
        uint64_t begun = cus_clock_real_ns();
        for (int i = 0; i < 20; i++)
            cus_log(CUS_INFO, "a", "nobody reads");
        took = cus_clock_real_ns() - begun;
        begun = cus_clock_real_ns();
        cus_log(CUS_WARN, "a", "a warning has its second");
        _exit(took > 500000000 ? 1 : cus_clock_real_ns() - begun < 500000000 ? 2 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    close(ends[0]), close(ends[1]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Log, WhatWasAskedForIsWrittenAtAnyLevel) {
    std::string text = Captured([] {
        cus_log_configure("error", nullptr);
        cus_log_asked("verify", "all %d equal", 3);
    });
    EXPECT_TRUE(Matches(text, "cusplice\\[[0-9]+:[0-9]+\\] info verify: all 3 equal\n")) << text;
}

TEST(Log, AStderrThatNobodyReadsEndsNobody) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGPIPE, SIG_DFL);
        close(ends[0]);
        dup2(ends[1], STDERR_FILENO);
        cus_log_configure("warn", "");
        cus_log(CUS_WARN, "a", "nobody hears");
        sigset_t waiting;
        sigpending(&waiting);
        _exit(sigismember(&waiting, SIGPIPE) ? 2 : 0);
    }
    close(ends[0]), close(ends[1]);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Log, ManyThreadsWriteWholeLines) {
    std::string text = Captured([] {
        cus_log_configure("info", nullptr);
        pthread_t threads[4];
        for (auto &thread : threads)
            pthread_create(
                &thread, nullptr,
                [](void *) -> void * {
                    for (int i = 0; i < 200; i++)
                        cus_log(CUS_INFO, "a", "begin %d end", i);
                    return nullptr;
                },
                nullptr);
        for (auto &thread : threads)
            pthread_join(thread, nullptr);
    });
    std::stringstream lines(text);
    size_t n = 0;
    for (std::string one; std::getline(lines, one); n++)
        EXPECT_TRUE(Matches(one, "cusplice\\[[0-9]+:[0-9]+\\] info a: begin [0-9]+ end")) << one;
    EXPECT_EQ(n, 800u);
}
