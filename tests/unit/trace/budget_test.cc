// Promise: a process that uses more time or memory than its budget ends, and its outputs are
// removed. If a file is cut short, the process says so.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "tests/unit/trace/synth.h"
#include "tools/trace/budget.h"

namespace {

bool IsThere(const std::string &path) {
    return access(path.c_str(), F_OK) == 0;
}

TEST(BudgetDeath, TimeIsBoundAndOutputsAreRemoved) {
    std::string half = Fresh("half"), whole = Fresh("whole");
    WriteAll(half, "x");
    WriteAll(whole, "x");
    EXPECT_EXIT(
        {
            budget_begin();
            budget_seconds(1);
            budget_partial(half.c_str());
            budget_partial(whole.c_str());
            budget_whole(whole.c_str());
            budget_read(1);
            for (volatile int i = 0;; i = i + 1) {
                if (i % 1000000 == 0)
                    usleep(0); // TSan gives a signal where the C library is called
            }
        },
        testing::ExitedWithCode(1), "stopped after 1 s of processor time; --max-seconds S sets");
    EXPECT_FALSE(IsThere(half));
    EXPECT_TRUE(IsThere(whole));
}

TEST(BudgetDeath, AFileThatIsCutShortIsSaid) {
    std::string path = Fresh("cut"), half = Fresh("half");
    WriteAll(path, std::string(1 << 16, 'x'));
    WriteAll(half, "x");
    EXPECT_EXIT(
        {
            int fd = open(path.c_str(), O_RDWR);
            auto *map =
                static_cast<volatile char *>(mmap(nullptr, 1 << 16, PROT_READ, MAP_PRIVATE, fd, 0));
            budget_begin();
            budget_partial(half.c_str());
            budget_read(1 << 16);
            if (ftruncate(fd, 0) == 0)
                exit(map[1 << 15]);
        },
        testing::ExitedWithCode(1), "a file that it reads was cut short meanwhile");
    EXPECT_FALSE(IsThere(half));
}

// In a child, for bounds stay.
TEST(BudgetDeath, MemoryIsBoundByWhatIsReadUntilTheBoundIsLifted) {
    if (getenv("CUS_TEST_SANITIZER") || getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "memory of a sanitizer or of qemu is not bound";
    struct rlimit before;
    getrlimit(RLIMIT_DATA, &before);
    auto bound = [] {
        struct rlimit now;
        getrlimit(RLIMIT_DATA, &now);
        return static_cast<uint64_t>(now.rlim_cur);
    };
    EXPECT_EXIT(
        {
            budget_read(0); // not begun: nothing is bound
            bool good = bound() == before.rlim_cur && std::string(budget_hint()).empty();
            budget_begin();
            budget_read(0);
            good &= bound() == 256 << 20;
            good &= std::string(budget_hint()).find("it may use 256 MiB") != std::string::npos;
            budget_read(1 << 20);
            good &= bound() == 272 << 20;
            budget_more(1 << 20);
            good &= bound() == 273 << 20;
            budget_memory(300);
            budget_read(1 << 20);
            good &= bound() == 300 << 20;
            budget_memory(0);
            budget_read(1);
            good &= bound() == before.rlim_cur && std::string(budget_hint()).empty();
            budget_memory(300);
            budget_read(1);
            budget_lift();
            good &= bound() == before.rlim_cur && std::string(budget_hint()).empty();
            exit(good ? 7 : 8);
        },
        testing::ExitedWithCode(7), "");
}

TEST(Budget, FilesAreRegularOnes) {
    std::string pipe = Fresh("pipe"), file = Fresh("file");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    WriteAll(file, "x");
    for (const std::string &path : {pipe, std::string("/dev/zero"), std::string("/")}) {
        EXPECT_EQ(budget_file(path.c_str()), nullptr) << path;
        EXPECT_EQ(errno, EINVAL) << path;
    }
    EXPECT_EQ(budget_file("/nowhere"), nullptr);
    EXPECT_EQ(errno, ENOENT);
    FILE *open = budget_file(file.c_str());
    ASSERT_NE(open, nullptr);
    EXPECT_EQ(getc(open), 'x');
    fclose(open);
}

} // namespace
