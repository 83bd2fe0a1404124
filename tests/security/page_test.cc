// Promise: nobody can end a program by its page for cusplice top. No page of another user is made,
// shown or followed.
#include "tests/security/stage.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "shim/base/process.h"
#include "shim/stats/page.h"
#include "tests/within.h"

namespace security {
namespace {

std::string Private(unsigned user = 0) {
    std::string folder = Folder(user);
    EXPECT_EQ(chmod(folder.c_str(), 0700), 0);
    return folder;
}

// The only file there, "" as long as there is none.
std::string Only(const std::string &folder) {
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        return entry.path();
    return "";
}

// For a test that waits until a program is shown.
#define NEEDS_ITS_START()                                                                          \
    if (getenv("CUS_TEST_EMULATED"))                                                               \
    GTEST_SKIP() << "qemu tells a process another start than others see"

// A program with a page there, which runs until there is a file `stop`.
Child Lives(const std::string &folder, const std::string &stop) {
    Child child = Preloaded({"guest", "until", stop},
                            {{"CUSPLICE_LIVE", "yes"}, {"XDG_RUNTIME_DIR", folder}});
    child.timeout_s = 60;
    return child;
}

std::string Pid(const std::string &page) {
    return page.substr(page.rfind('-') + 1);
}

Result Top(const std::string &pid, const std::string &folder, unsigned user = 0) {
    return Ran(
        Launcher({"top", pid, "--once", "--interval", "0.1"}, {{"XDG_RUNTIME_DIR", folder}}, user));
}

// It is shown as soon as the library has made it whole.
bool IsShown(const std::string &page, const std::string &folder) {
    return Within(30, [&] { return Top(Pid(page), folder).status == 0; });
}

// What somebody does to the page while the program runs, between two looks at it.
void ExpectThatTheProgramGoesOn(const std::function<void(const std::string &)> &act) {
    std::string folder = Private(), stop = Folder() + "/stop";
    auto program = std::async(std::launch::async, [&] { return Ran(Lives(folder, stop)); });
    bool made = Within(30, [&] { return Only(folder) != ""; });
    EXPECT_TRUE(made);
    std::string page = Only(folder);
    if (made) {
        EXPECT_TRUE(IsShown(page, folder));
        act(page);
        for (int look = 0; look < 3; look++)
            EXPECT_TRUE(Ended(Top(Pid(page), folder)));
        EXPECT_NE(program.wait_for(std::chrono::seconds(0)), std::future_status::ready)
            << "it ended before anything could happen";
    }
    Write(stop, "");
    Result result = program.get();
    EXPECT_TRUE(Ended(result));
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    EXPECT_TRUE(Has(result.out, "descriptor -1")) << result.out;
}

TEST(Page, CutShortItDoesNotEndTheProgram) {
    NEEDS_ITS_START();
    for (off_t bytes : {0, 1, 4096})
        ExpectThatTheProgramGoesOn(
            [=](const std::string &page) { EXPECT_EQ(truncate(page.c_str(), bytes), 0); });
}

TEST(Page, FullOfAnythingItDoesNotEndTheProgram) {
    NEEDS_ITS_START();
    ExpectThatTheProgramGoesOn([](const std::string &page) {
        int fd = open(page.c_str(), O_WRONLY);
        std::string bytes(CUS_PAGE_BYTES * 4, '\xff');
        EXPECT_EQ(pwrite(fd, bytes.data(), bytes.size(), 0), (ssize_t)bytes.size());
        close(fd);
    });
}

TEST(Page, PutAwayItIsNotMadeThroughALink) {
    NEEDS_ITS_START();
    std::string victim = Write(Folder() + "/victim", std::string(CUS_PAGE_BYTES, 'k'));
    ExpectThatTheProgramGoesOn([&](const std::string &page) {
        const char *why = nullptr;
        cus_page copy;
        int fd = cus_page_open(page.c_str(), &why); // whoever has it open can ask all the same
        ASSERT_TRUE(cus_page_read(fd, &copy, &why)) << why;
        EXPECT_EQ(unlink(page.c_str()), 0);
        Link(page, victim);
        cus_page_ask(fd, &copy);
        usleep(100000);
        close(fd);
    });
    EXPECT_EQ(ReadFile(victim), std::string(CUS_PAGE_BYTES, 'k'));
}

// The number of a process can be guessed.
TEST(Page, ALinkInItsPlaceIsNotFollowed) {
    std::string folder = Private(), fresh = Folder() + "/new",
                victim = Write(Folder() + "/victim", "keep");
    for (const std::string &to : {victim, fresh}) {
        Child child = Lives(folder, "");
        child.command = {
            "/bin/sh",
            "-c",
            "ln -s \"$1\" \"$2/cusplice-$(id -u)-$$\" && exec \"$0\" database /dev/null",
            Staged("bin/guest"),
            to,
            folder};
        Result result = Ran(child);
        EXPECT_EQ(result.status, 0) << result.out << result.err;
        EXPECT_EQ(ReadFile(victim), "keep");
        EXPECT_FALSE(sim::FileExists(fresh));
    }
}

// Is that the page of a program of this test's own?
bool IsOfAGuest(const std::string &page) {
    std::error_code none;
    return page.compare(0, 18, "/dev/shm/cusplice-") == 0 &&
           std::filesystem::read_symlink("/proc/" + Pid(page) + "/exe", none) ==
               Staged("bin/guest");
}

// Runs until it has deferred launches, and a page is there that has been found in /dev/shm instead.
void ExpectNoPageIn(const std::string &folder) {
    std::string stop = Folder() + "/stop", page;
    auto program = std::async(std::launch::async, [&] { return Ran(Lives(folder, stop)); });
    EXPECT_TRUE(Within(30, [&] {
        for (const auto &entry : std::filesystem::directory_iterator("/dev/shm"))
            if (IsOfAGuest(entry.path()))
                page = entry.path();
        return page != "";
    }));
    EXPECT_EQ(Only(folder), "");
    EXPECT_TRUE(IsShown(page, folder));
    Write(stop, "");
    EXPECT_EQ(program.get().status, 0);
    EXPECT_EQ(Only(folder), "");
}

TEST(Page, NoneIsMadeInAFolderThatOthersMayEnter) {
    NEEDS_ITS_START();
    std::string folder = Folder();
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    ExpectNoPageIn(folder);
}

TEST(Page, NoneIsMadeInAFolderOfAnotherUser) {
    NEEDS_ROOT();
    NEEDS_ITS_START();
    ExpectNoPageIn(Private(kUser));
}

// A page of a process that runs, with texts that a terminal would obey.
std::string PageOf(pid_t pid, uint64_t start) {
    cus_page page = {};
    memcpy(page.magic, CUS_PAGE_MAGIC, sizeof CUS_PAGE_MAGIC);
    page.version = CUS_PAGE_VERSION;
    page.bytes = CUS_PAGE_BYTES;
    page.pid = static_cast<uint64_t>(pid);
    page.start = start;
    strcpy(page.program, "\x1b]0;STRANGER\x07\xc2\x9b");
    std::string bytes(reinterpret_cast<const char *>(&page), sizeof page);
    bytes.resize(CUS_PAGE_BYTES);
    return bytes;
}

TEST(Page, OneThatAnotherUserHasMadeIsNotShown) {
    NEEDS_ROOT();
    pid_t pid = getpid();
    for (unsigned user : {0u, kUser}) {
        std::string path = "/dev/shm/cusplice-" + std::to_string(user) + "-" + std::to_string(pid);
        Write(path, PageOf(pid, cus_process_start(0)), kOther, 0666);
        Result result = Top(std::to_string(pid), "/nonexistent", user);
        EXPECT_TRUE(Refused(result, path)) << user;
        EXPECT_FALSE(Has(result.err + result.out, "STRANGER")) << result.err;
        EXPECT_TRUE(sim::FileExists(path)) << "and is left alone";
        unlink(path.c_str());
    }
}

TEST(Page, ATextOfOneIsCleanForATerminal) {
    std::string folder = Private();
    pid_t pid = getpid();
    std::string path =
        folder + "/cusplice-" + std::to_string(geteuid()) + "-" + std::to_string(pid);
    Write(path, PageOf(pid, cus_process_start(0)), 0, 0600);
    Result list =
        Ran(Launcher({"top", "--once", "--interval", "0.1"}, {{"XDG_RUNTIME_DIR", folder}}));
    EXPECT_TRUE(Ended(list));
    for (const std::string &text : {list.out, list.err})
        EXPECT_EQ(text.find_first_of("\x1b\x07\x9b"), std::string::npos) << text;
}

} // namespace
} // namespace security
