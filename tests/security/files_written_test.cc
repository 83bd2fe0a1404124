// Promise: the library writes only into files that it made or that the user owns. No link leads it
// elsewhere, nobody can make the program wait, and it writes to no descriptor of the program.
#include "tests/security/stage.h"

#include <fcntl.h>
#include <unistd.h>

namespace security {
namespace {

// Each thing that the library writes, with what makes it.
struct Output {
    const char *name;
    Environment env;
    const char *key;
};

void PrintTo(const Output &output, std::ostream *out) {
    *out << output.key;
}

const Output kOutputs[] = {
    {"Stats", {}, "CUSPLICE_STATS"},
    {"Log", {{"CUSPLICE_LOG", "debug"}}, "CUSPLICE_LOG_FILE"},
    {"Trace", {}, "CUSPLICE_RECORD"},
    {"Report", {{"CUSPLICE_MODE", "verify"}}, "CUSPLICE_VERIFY_REPORT"},
    {"Handshake", {}, "CUSPLICE_HANDSHAKE"},
};

class OutputOf : public testing::TestWithParam<Output> {
  protected:
    Result To(const std::string &path, unsigned user = 0) {
        Environment env = GetParam().env;
        env[GetParam().key] = path;
        return Ran(Preloaded(Small(), env, user));
    }
    bool IsHandshake() { return std::string(GetParam().key) == "CUSPLICE_HANDSHAKE"; }
};

// Otherwise the tests below would pass where nothing was ever written.
TEST_P(OutputOf, IsWrittenForTheUserAlone) {
    std::string path = Folder() + "/out";
    if (IsHandshake())
        Write(path, "", 0, 0600); // the launcher makes it
    EXPECT_TRUE(AsPlain(To(path)));
    EXPECT_EQ(ModeOf(path), 0600u);
    EXPECT_NE(ReadFile(path), "");
}

TEST_P(OutputOf, FollowsNoLink) {
    std::string folder = Folder(), victim = Write(Folder() + "/victim", "keep"),
                there = folder + "/there", nowhere = folder + "/nowhere", fresh = Folder() + "/new";
    Link(there, victim);
    Link(nowhere, fresh);
    EXPECT_TRUE(AsPlain(To(there)));
    EXPECT_TRUE(AsPlain(To(nowhere)));
    EXPECT_EQ(ReadFile(victim), "keep");
    EXPECT_FALSE(sim::FileExists(fresh));
}

// What stands below /dev is no device for that.
TEST_P(OutputOf, FollowsNoLinkBelowDev) {
    std::string victim = Write(Folder() + "/victim", "keep"),
                name = "cusplice-security-" + std::to_string(getpid()), link = "/dev/shm/" + name;
    Link(link, victim);
    for (const std::string &path : {link, "/dev/../dev/shm/" + name, "/dev/shm/../shm/" + name}) {
        EXPECT_TRUE(AsPlain(To(path))) << path;
        EXPECT_EQ(ReadFile(victim), "keep") << path;
    }
    unlink(link.c_str());
    std::string around = Folder() + "/around";
    Link(around, victim);
    EXPECT_TRUE(AsPlain(To("/dev/.." + around)));
    EXPECT_EQ(ReadFile(victim), "keep");
}

TEST_P(OutputOf, GoesIntoNoFileWithASecondName) {
    std::string victim = Write(Folder() + "/victim", "keep", 0, 0600), path = Folder() + "/out";
    ASSERT_EQ(link(victim.c_str(), path.c_str()), 0);
    EXPECT_TRUE(AsPlain(To(path)));
    EXPECT_EQ(ReadFile(victim), "keep");
}

TEST_P(OutputOf, IsNotWaitedForAtAFifo) {
    std::string path = Folder() + "/fifo";
    ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
    EXPECT_TRUE(AsPlain(To(path)));
    int reader = open(path.c_str(), O_RDWR | O_NONBLOCK); // one who reads nothing
    ASSERT_GE(fcntl(reader, F_SETPIPE_SZ, 4096), 0);
    EXPECT_TRUE(AsPlain(To(path)));
    close(reader);
}

// What is written whole (stats, report) may take the place of it as a new file; the other user's
// own never changes.
TEST_P(OutputOf, GoesIntoNoFileOfAnotherUser) {
    NEEDS_ROOT();
    std::string folder = Folder(kOther), path = Write(folder + "/out", "keep", kOther, 0666);
    int fd = open(path.c_str(), O_RDONLY);
    std::string theirs = "/proc/self/fd/" + std::to_string(fd);
    EXPECT_TRUE(AsPlain(To(path, kUser)));
    EXPECT_EQ(ReadFile(theirs), "keep");
    EXPECT_TRUE(AsPlain(To(path)));
    EXPECT_EQ(ReadFile(theirs), "keep") << "root's writing";
    close(fd);
    std::string fifo = folder + "/fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
    ASSERT_EQ(chown(fifo.c_str(), kOther, kOther), 0);
    EXPECT_TRUE(AsPlain(To(fifo))) << "at exit, for ever";
    EXPECT_TRUE(AsPlain(To(fifo, kUser)));
}

// A link that another user put into a folder where everybody may: what sticky folders do not stop.
TEST_P(OutputOf, FollowsNoLinkOfAnotherUser) {
    NEEDS_ROOT();
    std::string folder = Folder(), victim = Write(Folder(kUser) + "/victim", "keep", kUser, 0600),
                path = folder + "/out";
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    Link(path, victim, kOther);
    EXPECT_TRUE(AsPlain(To(path, kUser)));
    EXPECT_TRUE(AsPlain(To(path)));
    EXPECT_EQ(ReadFile(victim), "keep");
}

TEST_P(OutputOf, OfDevicesIsNoneButKnownOnes) {
    for (const char *path : {"/dev/null", "/dev/full", "/dev/zero"})
        EXPECT_TRUE(AsPlain(To(path))) << path;
    if (std::string(GetParam().key) != "CUSPLICE_LOG_FILE")
        return;
    std::string log = Folder() + "/log";
    int fd = open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    for (const char *path : {"/dev/fd/9", "/proc/self/fd/9"}) {
        Child child = Preloaded(Small(), {{"CUSPLICE_LOG", "debug"}, {"CUSPLICE_LOG_FILE", path}});
        child.descriptors[9] = fd;
        std::string before = ReadFile(log);
        EXPECT_TRUE(AsPlain(Ran(child)));
        EXPECT_GT(ReadFile(log).size(), before.size()) << path;
    }
    close(fd);
    EXPECT_TRUE(Has(To("/dev/stderr").err, "cusplice["));
}

INSTANTIATE_TEST_SUITE_P(All, OutputOf, testing::ValuesIn(kOutputs),
                         [](const auto &given) { return std::string(given.param.name); });

TEST(FilesWritten, AnOwnFileIsWrittenBehindWhatIsThere) {
    std::string path = Write(Folder() + "/log", "before\n", 0, 0600);
    EXPECT_TRUE(
        AsPlain(Ran(Preloaded(Small(), {{"CUSPLICE_LOG", "debug"}, {"CUSPLICE_LOG_FILE", path}}))));
    std::string text = ReadFile(path);
    EXPECT_EQ(text.compare(0, 7, "before\n"), 0);
    EXPECT_GT(text.size(), 7u);
}

TEST(FilesWritten, ATraceReplacesNothing) {
    std::string path = Write(Folder() + "/t.cst", "keep", 0, 0600);
    EXPECT_TRUE(AsPlain(Ran(Preloaded(Small(), {{"CUSPLICE_RECORD", path}}))));
    EXPECT_EQ(ReadFile(path), "keep");
    std::string fresh = Folder() + "/t.cst", victim = Write(Folder() + "/victim", "keep");
    Link(fresh + ".partial", victim);
    EXPECT_TRUE(AsPlain(Ran(Preloaded(Small(), {{"CUSPLICE_RECORD", fresh}}))));
    EXPECT_EQ(ReadFile(victim), "keep");
}

// The launcher removes the file when the program has ended; children that live on would make it
// again, by then for whoever has put a link there.
TEST(FilesWritten, AHandshakeFileThatIsGoneIsNotMadeAgain) {
    std::string path = Write(Folder() + "/handshake", "", 0, 0600);
    Result result = Ran(Preloaded({"guest", "handshake", path}, {{"CUSPLICE_HANDSHAKE", path}}));
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    EXPECT_FALSE(sim::FileExists(path)) << ReadFile(path);
}

// ---- descriptors of the program's ----

std::string Database() {
    return std::string(200000, 'k'); // far more than the library says
}

testing::AssertionResult IsAsItWas(const std::string &path) {
    std::string now = ReadFile(path);
    return now == Database() ? testing::AssertionSuccess()
                             : testing::AssertionFailure() << now.substr(0, 200);
}

// All that could be written where 2 is a file of the program's.
const Environment kTalks[] = {
    {{"CUSPLICE_LOG", "debug"}, {"CUSPLICE_HOLD_US", "no number"}},
    {{"CUSPLICE_WHY", "yes"}, {"CUSPLICE_MODE", "none of them"}},
    {{"CUSPLICE_CONFIG", "/nonexistent"}, {"CUSPLICE_LOG_FILE", "/dev/stderr"}},
    {{"CUSPLICE_STATS", "/dev/stderr"}, {"CUSPLICE_LOG_FILE", "/dev/fd/2"}},
    {{"CUSPLICE_STATS", "/proc/self/fd/2"}, {"CUSPLICE_LOG", "debug"}},
    {{"CUSPLICE_MODE", "verify"}, {"CUSPLICE_VERIFY_REPORT", "/dev/fd/2"}},
};

TEST(FilesWritten, WhereStandardErrorIsClosedNoFileOfTheProgramIsTakenForIt) {
    std::string path = Write(Folder() + "/database", Database()), plain;
    for (const Environment &env : kTalks) {
        Child child = Preloaded({"guest", "database", path}, env);
        child.closed = {2};
        Result result = Ran(child);
        EXPECT_EQ(result.status, 0) << result.out;
        EXPECT_TRUE(Has(result.out, "descriptor 2\n")) << result.out;
        EXPECT_EQ(result.err, "");
        EXPECT_TRUE(IsAsItWas(path)) << env.begin()->first;
    }
}

// The same where the library's own files could have got that number.
TEST(FilesWritten, NoFileOfTheLibraryIsADescriptorThatTheProgramWritesTo) {
    if (getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "qemu keeps the lowest descriptor for itself";
    std::string path = Write(Folder() + "/database", Database());
    std::string folder = Folder(), trace = folder + "/t.cst", log = folder + "/log";
    Child child = Preloaded(
        {"guest", "late", path},
        {{"CUSPLICE_RECORD", trace}, {"CUSPLICE_LOG", "debug"}, {"CUSPLICE_LOG_FILE", log}});
    child.closed = {0, 2};
    Result result = Ran(child);
    EXPECT_EQ(result.status, 0) << result.out;
    EXPECT_TRUE(Has(result.out, "descriptor 0\n")) << "the lowest, as without the library";
    EXPECT_TRUE(IsAsItWas(path));
    for (const std::string &file : {trace, log}) {
        EXPECT_NE(ReadFile(file), "") << file;
        EXPECT_FALSE(Has(ReadFile(file), "guest: a word for standard error")) << file;
    }
    EXPECT_EQ(Ran(Launcher({"info", trace})).status, 0);
}

TEST(FilesWritten, AProgramThatClosesAllDescriptorsHasItsOwnAfterwards) {
    for (const Output &output : kOutputs) {
        SCOPED_TRACE(output.name);
        std::string path = Write(Folder() + "/database", Database()), out = Folder() + "/out";
        Environment env = output.env;
        env[output.key] = out;
        env["CUSPLICE_STATS_EVERY"] = "1";
        if (std::string(output.name) == "Handshake")
            Write(out, "", 0, 0600);
        Result result = Ran(Preloaded({"guest", "closes", path}, env));
        EXPECT_EQ(result.status, 0) << result.out << result.err;
        EXPECT_TRUE(IsAsItWas(path));
    }
}

TEST(FilesWritten, AStandardErrorThatIsOpenIsUsed) {
    Result result = Ran(Preloaded(Small(), {{"CUSPLICE_HOLD_US", "no number"}}));
    EXPECT_TRUE(AsPlain(result));
    EXPECT_TRUE(Has(result.err, "CUSPLICE_HOLD_US")) << result.err;
}

} // namespace
} // namespace security
