// Promise: files of other users, links, pipes and devices are not trusted, followed, waited for or
// written.
#include "shim/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <functional>

#include "tests/unit/base/captured.h"

namespace {

enum { OTHER = 12345, THIRD = 12346 };

class File : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = "/tmp/cusplice-file-XXXXXX"; // where other users may go, too
        ASSERT_TRUE(mkdtemp(folder_.data()));
        chmod(folder_.c_str(), 0777);
    }
    void TearDown() override { EXPECT_EQ(system(("rm -rf " + folder_).c_str()), 0); }
    std::string Path(const std::string &name) { return folder_ + "/" + name; }
    std::string Make(const std::string &name, mode_t mode = 0600, uid_t owner = geteuid()) {
        WriteFile(Path(name), "text\n");
        EXPECT_EQ(chmod(Path(name).c_str(), mode), 0);
        EXPECT_EQ(chown(Path(name).c_str(), owner, -1), 0);
        return Path(name);
    }
    std::string Link(const std::string &name, const std::string &to, uid_t owner = geteuid()) {
        EXPECT_EQ(symlink(to.c_str(), Path(name).c_str()), 0);
        EXPECT_EQ(lchown(Path(name).c_str(), owner, -1), 0);
        return Path(name);
    }
    std::string folder_;
};

// "" where it is opened.
std::string Settings(const std::string &path) {
    const char *why;
    int fd = cus_file_open_settings(path.c_str(), &why);
    std::string said = fd < 0 ? cus_file_why(why) : "";
    if (fd >= 0)
        close(fd);
    return said;
}

std::string Output(const std::string &path, cus_file_how how = CUS_FILE_APPEND) {
    const char *why;
    int fd = cus_file_open_output(path.c_str(), how, &why);
    if (fd < 0)
        return cus_file_why(why);
    bool written = cus_file_write(fd, "more\n", 5, 100);
    close(fd);
    return written ? "" : strerror(errno);
}

// What `of` returns in a process of another user.
std::string As(uid_t user, const std::function<std::string()> &of) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)
            _exit(9);
        std::string said = of() + ".";
        _exit(write(ends[1], said.data(), said.size()) == (ssize_t)said.size() ? 0 : 8);
    }
    close(ends[1]);
    char text[4096];
    ssize_t n = read(ends[0], text, sizeof text);
    close(ends[0]);
    int status;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    return n > 0 ? std::string(text, n - 1) : "(nothing)";
}

#define NEEDS_ROOT                                                                                 \
    if (geteuid() != 0)                                                                            \
    GTEST_SKIP() << "only root can make files of two users"

// ---- reading ----

TEST_F(File, SettingsOfTheUserAreBelieved) {
    EXPECT_EQ(Settings(Make("own", 0644)), "");
    EXPECT_EQ(Settings(Link("link", "own")), "");
    EXPECT_EQ(Settings(Link("link2", Path("link"))), "");
    EXPECT_EQ(Settings(Path("absent")), "No such file or directory");
    EXPECT_EQ(Settings("/dev/null"), "");
    EXPECT_EQ(Settings(Link("dangling", "absent")), "No such file or directory");
}

TEST_F(File, SettingsThatOthersMayWriteAreNot) {
    EXPECT_EQ(Settings(Make("group", 0660)), "others than its owner may write it (chmod go-w)");
    EXPECT_EQ(Settings(Make("all", 0606)), "others than its owner may write it (chmod go-w)");
}

TEST_F(File, SettingsOfAnotherUserAreNot) {
    NEEDS_ROOT;
    EXPECT_EQ(Settings(Make("theirs", 0600, OTHER)), "it belongs to another user");
    Make("of_third", 0644, THIRD);
    Make("of_root", 0644);
    EXPECT_EQ(As(OTHER, [&] { return Settings(Path("of_third")); }), "it belongs to another user");
    EXPECT_EQ(As(OTHER, [&] { return Settings(Path("of_root")); }), "");
}

TEST_F(File, AnotherUsersLinkLeadsNowhere) {
    NEEDS_ROOT;
    Make("secret");
    const char *reason = "another user's link leads there";
    EXPECT_EQ(Settings(Link("link", Path("secret"), OTHER)), reason);
    EXPECT_EQ(Settings(Link("own", "link")), reason) << "the second link on the way";
    EXPECT_EQ(Settings(Link("shadow", "/etc/shadow", OTHER)), reason);
    mkdir(Path("folder").c_str(), 0755);
    Make("folder/x");
    EXPECT_EQ(Settings(Link("way", "folder", OTHER) + "/x"), reason) << "of a folder";
    EXPECT_EQ(Settings(Link("own_way", "folder") + "/../own_way/x"), "");
    EXPECT_EQ(Settings(Link("round", "round")), "Too many levels of symbolic links");
}

TEST_F(File, TheKernelsOwnLinksAreFollowed) {
    int fd = open(Make("own").c_str(), O_RDONLY);
    std::string number = std::to_string(fd);
    EXPECT_EQ(Settings("/proc/self/fd/" + number), "");
    EXPECT_EQ(Settings("/dev/fd/" + number), "");
    EXPECT_EQ(Settings("/proc/self/root" + Path("own")), "");
    close(fd);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(Settings("/dev/fd/" + std::to_string(ends[0])), "it is no regular file");
    close(ends[0]), close(ends[1]);
}

// As where root is not of the user's namespace.
TEST_F(File, NobodysFileIsNobodys) {
    NEEDS_ROOT;
    Make("nobodys", 0600, 65534);
    EXPECT_EQ(As(65534, [&] { return Settings(Path("nobodys")); }), "it belongs to another user");
}

TEST_F(File, OnlyRegularFilesAreRead) {
    ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
    for (const std::string &path : {Path("pipe"), std::string("/dev/zero"), folder_})
        EXPECT_EQ(Settings(path), "it is no regular file") << path;
}

TEST_F(File, SettingsHaveASize) {
    Make("large");
    ASSERT_EQ(truncate(Path("large").c_str(), CUS_FILE_SETTINGS_MAX - 1), 0);
    EXPECT_EQ(Settings(Path("large")), "");
    ASSERT_EQ(truncate(Path("large").c_str(), CUS_FILE_SETTINGS_MAX), 0);
    EXPECT_EQ(Settings(Path("large")), "it is larger than 1 MiB");
}

std::string OwnSettings(const std::string &folder) {
    const char *why;
    int fd = cus_file_open_own_settings(folder.c_str(), "below", "x.conf", &why);
    std::string said = fd < 0 ? cus_file_why(why) : "";
    if (fd >= 0)
        close(fd);
    return said;
}

TEST_F(File, TheUsersFolderIsTheUsers) {
    chmod(folder_.c_str(), 0700);
    EXPECT_EQ(OwnSettings(folder_), "No such file or directory");
    EXPECT_EQ(OwnSettings("/dev/null"), "No such file or directory");
    mkdir(Path("below").c_str(), 0700);
    EXPECT_EQ(OwnSettings(folder_), "No such file or directory");
    Make("below/x.conf");
    EXPECT_EQ(OwnSettings(folder_), "");
    chmod(Path("below/x.conf").c_str(), 0620);
    EXPECT_EQ(OwnSettings(folder_), "others than its owner may write it (chmod go-w)");
    unlink(Path("below/x.conf").c_str());
    Link("below/x.conf", "/etc/passwd");
    EXPECT_EQ(OwnSettings(folder_), "it is a link");
}

TEST_F(File, AnotherUsersFolderIsNotReadByRoot) {
    NEEDS_ROOT;
    const char *reason = "its folder belongs to another user";
    mkdir(Path("below").c_str(), 0700);
    Make("below/x.conf"); // root's own file
    ASSERT_EQ(chown(folder_.c_str(), OTHER, OTHER), 0);
    EXPECT_EQ(OwnSettings(folder_), reason);
    ASSERT_EQ(chown(folder_.c_str(), 0, 0), 0);
    ASSERT_EQ(chown(Path("below").c_str(), OTHER, OTHER), 0);
    EXPECT_EQ(OwnSettings(folder_), reason);
    unlink(Path("below/x.conf").c_str());
    EXPECT_EQ(OwnSettings(folder_), "No such file or directory") << "no word of what is not there";
}

// ---- writing ----

TEST_F(File, OutputIsMadeForTheUserAlone) {
    mode_t before = umask(0);
    EXPECT_EQ(Output(Path("new")), "");
    umask(before);
    struct stat info;
    ASSERT_EQ(stat(Path("new").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode, (mode_t)(S_IFREG | 0600));
    EXPECT_EQ(Output(Path("new")), "");
    EXPECT_EQ(ReadFile(Path("new")), "more\nmore\n");
    EXPECT_EQ(Output(Path("new"), CUS_FILE_NEW), "File exists");
    EXPECT_EQ(Output(Path("absent"), CUS_FILE_THERE), "No such file or directory");
    EXPECT_NE(access(Path("absent").c_str(), F_OK), 0);
}

TEST_F(File, OutputGoesThroughNoLink) {
    Make("precious");
    EXPECT_EQ(Output(Link("link", "precious")), "it is a link");
    EXPECT_EQ(Output(Link("dangling", "made")), "it is a link");
    EXPECT_NE(access(Path("made").c_str(), F_OK), 0);
    ASSERT_EQ(link(Path("precious").c_str(), Path("second").c_str()), 0);
    EXPECT_EQ(Output(Path("second")), "it has more than one name");
    EXPECT_EQ(ReadFile(Path("precious")), "text\n");
}

TEST_F(File, OutputBelowDevGoesThroughNoLinkEither) {
    std::string target = Make("precious"), name = "/dev/shm/" + folder_.substr(5);
    ASSERT_EQ(symlink(target.c_str(), name.c_str()), 0);
    EXPECT_EQ(Output(name), "it is a link");
    EXPECT_EQ(Output("/dev/../" + name), "it is a link");
    unlink(name.c_str());
    EXPECT_EQ(Output("/dev/../" + target), "") << "it is a file of the user's by any name";
    EXPECT_EQ(ReadFile(target), "text\nmore\n");
}

TEST_F(File, OutputGoesIntoNobodyElsesFile) {
    NEEDS_ROOT;
    EXPECT_EQ(Output(Make("theirs", 0666, OTHER)), "it belongs to another user");
    Make("of_root", 0666);
    EXPECT_EQ(As(OTHER, [&] { return Output(Path("of_root")); }), "it belongs to another user");
    EXPECT_EQ(ReadFile(Path("theirs")) + ReadFile(Path("of_root")), "text\ntext\n");
}

TEST_F(File, APipeIsNoFileToWrite) {
    ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0666), 0);
    EXPECT_EQ(Output(Path("pipe")), "it is no regular file");
    int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
    EXPECT_EQ(Output(Path("pipe")), "it is no regular file") << "also where somebody reads it";
    char byte;
    EXPECT_EQ(read(reader, &byte, 1), 0);
    close(reader);
}

TEST_F(File, FewDevicesAreWritten) {
    EXPECT_EQ(Output("/dev/null"), "");
    for (const char *path : {"/dev/zero", "/dev/full", "/dev/ptmx"})
        EXPECT_EQ(Output(path), "it is a device, and neither /dev/null nor a terminal") << path;
    EXPECT_NE(Output("/dev/absent/x"), "");
    EXPECT_EQ(Output("/dev/nul"), "No such file or directory");
    EXPECT_NE(access("/dev/nul", F_OK), 0);
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0) {
        EXPECT_EQ(Output(ptsname(terminal)), "");
    }
    close(terminal);
}

TEST_F(File, DescriptorsAreThoseThatTheProgramWasGiven) {
    EXPECT_EQ(Captured([&] {
                  if (Output("/dev/stderr") != "" || Output("/dev/fd/2") != "" ||
                      Output("/proc/self/fd/2") != "")
                      _exit(1);
              }),
              "more\nmore\nmore\n");
    int later = open(Path("data").c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_GT(later, 2);
    EXPECT_EQ(Output("/dev/fd/" + std::to_string(later)),
              "that descriptor is not what the program was given");
    EXPECT_EQ(ReadFile(Path("data")), "");
    close(later);
}

// Runs in a process that has closed its standard error; `open_second` opens descriptor 2 anew.
bool IsStandardError(const std::function<int()> &open_second) {
    pid_t pid = fork();
    if (pid == 0) {
        close(2);
        if (open_second() != 2)
            _exit(9);
        _exit(cus_file_stderr() == 2 ? 1 : 0);
    }
    int status;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 1;
}

TEST_F(File, ADatabaseInItsPlaceIsNotStandardError) {
    std::string data = Make("data");
    EXPECT_FALSE(IsStandardError([&] { return open(data.c_str(), O_RDWR | O_CLOEXEC); }));
    EXPECT_FALSE(IsStandardError([&] { return open(data.c_str(), O_WRONLY | O_CLOEXEC); }));
    EXPECT_FALSE(IsStandardError([&] { return socket(AF_UNIX, SOCK_STREAM, 0); }));
    EXPECT_TRUE(IsStandardError([&] { return open(data.c_str(), O_WRONLY | O_APPEND); }))
        << "a log of the program's";
    EXPECT_TRUE(IsStandardError([&] {
        int captured = open(data.c_str(), O_RDWR | O_CLOEXEC);
        return captured == 2 ? dup2(dup(captured), 2) : dup2(captured, 2);
    })) << "what a test framework captures it with";
    EXPECT_TRUE(IsStandardError([] { return open("/dev/null", O_RDWR); }));
}

TEST_F(File, NothingTakesThePlaceOfAStandardDescriptor) {
    std::string own = Make("own");
    pid_t pid = fork();
    if (pid == 0) {
        const char *why;
        close(0), close(1), close(2);
        bool above = cus_file_open_settings(own.c_str(), &why) > 2 &&
                     cus_file_open_output(own.c_str(), CUS_FILE_APPEND, &why) > 2 &&
                     cus_file_open("/dev/null", O_RDONLY, 0) > 2 && open("/dev/null", O_RDWR) == 0;
        _exit(above ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
}

// Room for some bytes is not room for all.
TEST_F(File, AWriteWaitsForNoTerminal) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    ASSERT_GE(fd, 0);
    std::string much(8192, 'x');
    for (int i = 0; i < 20 && cus_file_write(fd, much.data(), much.size(), 20); i++)
        ;
    char some[300];
    EXPECT_GT(read(terminal, some, sizeof some), 0);
    EXPECT_FALSE(cus_file_write(fd, much.data(), much.size(), 50));
    EXPECT_EQ(errno, EAGAIN);
    close(fd), close(terminal);
}

TEST_F(File, AWriteWaitsForNoReader) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::string much(1 << 20, 'x');
    EXPECT_FALSE(cus_file_write(ends[1], much.data(), much.size(), 50));
    EXPECT_EQ(errno, EAGAIN);
    close(ends[0]);
    EXPECT_FALSE(cus_file_write(ends[1], "x", 1, 50)); // and no SIGPIPE
    EXPECT_EQ(errno, EPIPE);
    close(ends[1]);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    EXPECT_FALSE(cus_file_write(ends[1], much.data(), much.size(), 50));
    EXPECT_EQ(errno, EAGAIN);
    close(ends[0]), close(ends[1]);
}

TEST_F(File, AFileThatMayNotGrowIsNoSignal) {
    std::string own = Make("own");
    pid_t pid = fork();
    if (pid == 0) {
        const char *why;
        struct rlimit limit = {6, 6};
        setrlimit(RLIMIT_FSIZE, &limit);
        int fd = cus_file_open_output(own.c_str(), CUS_FILE_APPEND, &why);
        bool refused = !cus_file_write(fd, "0123456789", 10, 50) && errno == EFBIG;
        sigset_t pending;
        sigpending(&pending);
        _exit(refused && !sigismember(&pending, SIGXFSZ) ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(File, ANumberThatCameBackIsAnotherFile) {
    std::string own = Make("own"), other = Make("other");
    int fd = open(own.c_str(), O_RDONLY);
    struct cus_file_id id;
    ASSERT_TRUE(cus_file_identify(fd, &id));
    EXPECT_TRUE(cus_file_is(fd, &id));
    int second = open(other.c_str(), O_RDONLY);
    ASSERT_EQ(dup2(second, fd), fd);
    EXPECT_FALSE(cus_file_is(fd, &id));
    close(fd), close(second);
    EXPECT_FALSE(cus_file_is(fd, &id));
}

} // namespace
