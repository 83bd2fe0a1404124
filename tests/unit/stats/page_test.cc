// Promise: a reader of a process's page gets what was written, and trusts nothing in its place.
#include "shim/stats/page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "shim/base/process.h"

namespace {

class Page : public testing::Test {
  protected:
    void SetUp() override {
        const char *base = getenv("TEST_TMPDIR");
        folder_ = std::string(base ? base : "/tmp") + "/page-XXXXXX";
        ASSERT_TRUE(mkdtemp(folder_.data()));
        setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
        ASSERT_TRUE(cus_page_path(folder_.c_str(), geteuid(), getpid(), path_));
    }
    void TearDown() override {
        cus_page_give_up(&own_);
        unlink(path_);
        rmdir(folder_.c_str());
    }

    // The page of this process, and its file mapped, to look at it and to spoil it.
    cus_page *Make() {
        EXPECT_TRUE(cus_page_place(placed_));
        EXPECT_TRUE(cus_page_make(&own_, placed_));
        EXPECT_STREQ(placed_, path_);
        int fd = open(path_, O_RDWR);
        void *map = mmap(nullptr, CUS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        EXPECT_NE(map, MAP_FAILED);
        return static_cast<cus_page *>(map);
    }

    std::string Refused() {
        const char *why = "";
        int fd = cus_page_open(path_, &why);
        if (fd < 0)
            return why ? why : "(not there)";
        cus_page copy;
        bool read = cus_page_read(fd, &copy, &why);
        close(fd);
        return read ? "" : why;
    }

    std::string folder_;
    char path_[CUS_PAGE_PATH], placed_[CUS_PAGE_PATH];
    cus_page_own own_ = {};
};

TEST_F(Page, WhatIsWrittenIsRead) {
    cus_page *page = Make();
    struct stat info;
    ASSERT_EQ(lstat(path_, &info), 0);
    EXPECT_EQ(info.st_mode, (mode_t)(S_IFREG | 0600));
    EXPECT_EQ(info.st_size, CUS_PAGE_BYTES);
    const char *why;
    int fd = cus_page_open(path_, &why);
    ASSERT_GE(fd, 0) << why;
    cus_page copy;
    ASSERT_TRUE(cus_page_read(fd, &copy, &why)) << why;
    EXPECT_EQ(copy.pid, (uint64_t)getpid());
    EXPECT_EQ(copy.start, cus_process_start(0));
    EXPECT_STREQ(copy.program, "page_test");
    EXPECT_EQ(copy.answers, 0u);
    EXPECT_FALSE(cus_page_is_asked(&own_));
    cus_page_ask(fd, &copy);
    EXPECT_EQ(page->asked, copy.asked + 1);
    EXPECT_TRUE(cus_page_is_asked(&own_));
    cus_page_facts facts = {};
    facts.ops = 11;
    facts.n_breaks = 1;
    strcpy(facts.mode, "full");
    strcpy(facts.breaks[0].name, "kernel");
    cus_page_answer(&own_, &facts);
    EXPECT_FALSE(cus_page_is_asked(&own_));
    ASSERT_TRUE(cus_page_read(fd, &copy, &why)) << why;
    EXPECT_EQ(copy.answers, 1u);
    EXPECT_EQ(copy.facts.ops, 11u);
    EXPECT_EQ(copy.facts.n_breaks, 1u);
    EXPECT_STREQ(copy.facts.mode, "full");
    EXPECT_STREQ(copy.facts.breaks[0].name, "kernel");
    close(fd);
    munmap(page, CUS_PAGE_BYTES);
}

TEST_F(Page, AnUmaskDoesNotMakeItUnreadable) {
    mode_t before = umask(0777);
    cus_page *page = Make();
    umask(before);
    EXPECT_EQ(Refused(), "");
    struct stat info;
    ASSERT_EQ(stat(path_, &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    munmap(page, CUS_PAGE_BYTES);
}

TEST_F(Page, AForkedChildHasItNot) {
    if (getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "qemu takes no notice of MADV_DONTFORK";
    cus_page *page = Make();
    char *start =
        reinterpret_cast<char *>(const_cast<uint32_t *>(own_.asked)) - offsetof(cus_page, asked);
    pid_t pid = fork();
    if (pid == 0)
        _exit(msync(start, CUS_PAGE_BYTES, MS_ASYNC) == -1 && errno == ENOMEM ? 0 : 1);
    int status;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    munmap(page, CUS_PAGE_BYTES);
}

TEST_F(Page, OneThatAnOlderProcessLeftIsReplaced) {
    std::ofstream(path_) << "old";
    int old = open(path_, O_RDONLY);
    cus_page *page = Make();
    EXPECT_EQ(Refused(), "");
    struct stat info;
    ASSERT_EQ(fstat(old, &info), 0);
    EXPECT_EQ(info.st_nlink, 0u) << "whoever had it open must not see the new one";
    EXPECT_EQ(info.st_size, 3);
    close(old);
    munmap(page, CUS_PAGE_BYTES);
}

TEST_F(Page, ALinkInItsPlaceIsLeftAlone) {
    std::string target = folder_ + "/target";
    std::ofstream(target) << "precious";
    ASSERT_EQ(symlink(target.c_str(), path_), 0);
    EXPECT_FALSE(cus_page_make(&own_, path_));
    struct stat info;
    ASSERT_EQ(lstat(path_, &info), 0);
    EXPECT_TRUE(S_ISLNK(info.st_mode));
    std::string text;
    std::getline(std::ifstream(target), text);
    EXPECT_EQ(text, "precious");
    EXPECT_EQ(Refused(), "is a link");
    unlink(target.c_str());
}

TEST_F(Page, AFolderThatOthersMayEnterIsNotUsed) {
    char folders[2][CUS_PAGE_PATH];
    EXPECT_EQ(cus_page_folders(folders), 2u);
    EXPECT_EQ(folders[0], folder_);
    chmod(folder_.c_str(), 0755);
    EXPECT_EQ(cus_page_folders(folders), 1u);
    EXPECT_STREQ(folders[0], "/dev/shm");
    chmod(folder_.c_str(), 0700);
    std::string relative = folder_.substr(1);
    setenv("XDG_RUNTIME_DIR", relative.c_str(), 1);
    EXPECT_EQ(cus_page_folders(folders), 1u);
}

TEST_F(Page, WhatIsNoPageIsRefused) {
    EXPECT_EQ(Refused(), "(not there)");
    ASSERT_EQ(mkfifo(path_, 0600), 0);
    EXPECT_EQ(Refused(), "is no file");
    unlink(path_);
    std::ofstream(path_) << "short";
    chmod(path_, 0600);
    EXPECT_EQ(Refused(), "has not the size of a page");
    ASSERT_EQ(truncate(path_, CUS_PAGE_BYTES), 0);
    EXPECT_EQ(Refused(), "is no page");
    chmod(path_, 0640);
    EXPECT_EQ(Refused(), "may be written or read by others");
    if (geteuid() == 0) {
        chmod(path_, 0600);
        ASSERT_EQ(chown(path_, 1, 1), 0);
        EXPECT_EQ(Refused(), "is another user's");
    }
}

TEST_F(Page, OneThatIsCutShortWhileItIsReadIsRefused) {
    munmap(Make(), CUS_PAGE_BYTES);
    const char *why;
    int fd = cus_page_open(path_, &why);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(truncate(path_, 100), 0);
    cus_page copy;
    EXPECT_FALSE(cus_page_read(fd, &copy, &why));
    EXPECT_STREQ(why, "cannot be read");
    copy.asked = 0;
    cus_page_ask(fd, &copy); // and does not end the viewer
    close(fd);
}

// In the target: every access to the file of a page is one that can fail.
TEST_F(Page, OneThatIsCutShortIsGivenUpByItsProcess) {
    munmap(Make(), CUS_PAGE_BYTES);
    cus_page_facts facts = {};
    ASSERT_EQ(truncate(path_, 0), 0);
    EXPECT_FALSE(cus_page_is_asked(&own_));
    EXPECT_FALSE(own_.asked);
    munmap(Make(), CUS_PAGE_BYTES);
    ASSERT_EQ(truncate(path_, 100), 0);
    cus_page_answer(&own_, &facts);
    EXPECT_FALSE(own_.asked);
    struct stat info;
    ASSERT_EQ(stat(path_, &info), 0);
    EXPECT_EQ(info.st_size, 100);
}

TEST_F(Page, AnotherFileInItsPlaceIsNotWritten) {
    munmap(Make(), CUS_PAGE_BYTES);
    std::string other = folder_ + "/other";
    std::ofstream(other) << std::string(CUS_PAGE_BYTES, 'x');
    ASSERT_EQ(rename(other.c_str(), path_), 0);
    cus_page_facts facts = {};
    cus_page_answer(&own_, &facts);
    EXPECT_FALSE(own_.asked);
    std::string text;
    std::getline(std::ifstream(path_), text);
    EXPECT_EQ(text, std::string(CUS_PAGE_BYTES, 'x'));
}

TEST_F(Page, AnotherVersionOrAnEndlessWriterIsRefused) {
    cus_page *page = Make();
    page->version++;
    EXPECT_EQ(Refused(), "is the page of another version of the library");
    page->version--;
    EXPECT_EQ(Refused(), "");
    page->seq = 5;
    EXPECT_EQ(Refused(), "is being written all the time");
    page->seq = 6;
    EXPECT_EQ(Refused(), "");
    munmap(page, CUS_PAGE_BYTES);
}

TEST_F(Page, WhoComesWhileItIsWrittenWaits) {
    cus_page *page = Make();
    uint32_t *seq = &page->seq;
    __atomic_store_n(seq, 5, __ATOMIC_RELAXED);
    std::thread writer([seq] {
        usleep(2000);
        __atomic_store_n(seq, 6, __ATOMIC_RELAXED);
    });
    EXPECT_EQ(Refused(), "");
    writer.join();
    munmap(page, CUS_PAGE_BYTES);
}

TEST_F(Page, TextsEndAndNumbersStayWithinBounds) {
    cus_page *page = Make();
    memset(page->program, '\x1b', sizeof page->program);
    memset(&page->facts, 0xff, sizeof page->facts);
    const char *why;
    int fd = cus_page_open(path_, &why);
    cus_page copy;
    ASSERT_TRUE(cus_page_read(fd, &copy, &why)) << why;
    EXPECT_EQ(copy.facts.n_breaks, (uint32_t)CUS_PAGE_BREAKS);
    EXPECT_EQ(std::string(copy.program), std::string(sizeof copy.program - 1, '?'));
    EXPECT_EQ(std::string(copy.facts.mode), std::string(sizeof copy.facts.mode - 1, '?'));
    EXPECT_EQ(std::string(copy.facts.gpu), std::string(sizeof copy.facts.gpu - 1, '?'));
    for (const cus_page_break &one : copy.facts.breaks) {
        EXPECT_EQ(std::string(one.name), std::string(sizeof one.name - 1, '?'));
        EXPECT_EQ(std::string(one.what), std::string(sizeof one.what - 1, '?'));
    }
    close(fd);
    munmap(page, CUS_PAGE_BYTES);
}

TEST(Process, ItsStartNamesIt) {
    EXPECT_GT(cus_process_start(0), 0u);
    EXPECT_EQ(cus_process_start(getpid()), cus_process_start(0));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
    EXPECT_EQ(cus_process_start(pid), 0u) << "it has ended, and waits for its parent only";
    waitpid(pid, nullptr, 0);
    EXPECT_EQ(cus_process_start(pid), 0u);
}

} // namespace
