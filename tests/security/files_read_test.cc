// Promise: cusplice uses a file only if the effective user or root wrote it and it can be read at
// once. It names a refused file and does not show its contents.
#include "tests/security/stage.h"

#include <sys/sysmacros.h>
#include <unistd.h>

namespace security {
namespace {

const char kSecret[] = "a-secret = not-for-logs\nSECRET-LINE\n";

// Lines that the readers would show where they believed them.
const std::string kBelieved = std::string("mode = eager\n") + kSecret;

// The mode by which a preloaded program ran: of the settings, those of a file alone set it here.
std::string ModeOfRun(const Environment &more, unsigned user, Result *result) {
    std::string stats = Folder(user) + "/stats";
    Environment env = more;
    env["CUSPLICE_STATS"] = stats;
    *result = Ran(Preloaded(Small(), env, user));
    EXPECT_TRUE(AsPlain(*result));
    sim::Json json = sim::ParseJson(ReadFile(stats));
    EXPECT_TRUE(json.valid) << result->err;
    return json.text["mode"];
}

// FOLDER/cusplice/cusplice.conf, each part of that user's.
std::string OwnSettings(const std::string &folder, const std::string &text, unsigned user,
                        unsigned of_file, unsigned of_folder) {
    EXPECT_EQ(mkdir((folder + "/cusplice").c_str(), 0755), 0);
    EXPECT_EQ(chown((folder + "/cusplice").c_str(), of_folder, of_folder), 0);
    EXPECT_EQ(chown(folder.c_str(), user, user), 0);
    return Write(folder + "/cusplice/cusplice.conf", text, of_file);
}

TEST(FilesRead, SettingsOfTheUserAreBelieved) {
    Result result;
    std::string folder = Folder();
    OwnSettings(folder, "mode = eager\n", geteuid(), geteuid(), geteuid());
    EXPECT_EQ(ModeOfRun({{"XDG_CONFIG_HOME", folder}}, 0, &result), "eager");
    EXPECT_FALSE(Has(result.err, folder)) << result.err;
    std::string config = Write(Folder() + "/c.conf", "mode = eager\n");
    EXPECT_EQ(ModeOfRun({{"CUSPLICE_CONFIG", config}}, 0, &result), "eager");
    std::string own_link = Folder() + "/link.conf";
    Link(own_link, config);
    EXPECT_EQ(ModeOfRun({{"CUSPLICE_CONFIG", own_link}}, 0, &result), "eager");
    EXPECT_EQ(Ran(Launcher({"config", "--check", config})).out, config + ": ok\n");
}

TEST(FilesRead, RootsSettingsAreBelievedByAUser) {
    NEEDS_ROOT();
    Result result;
    std::string config = Write(Folder() + "/c.conf", "mode = eager\n");
    EXPECT_EQ(ModeOfRun({{"CUSPLICE_CONFIG", config}}, kUser, &result), "eager");
    std::string home = Folder();
    mkdir((home + "/.config").c_str(), 0755);
    OwnSettings(home + "/.config", "mode = eager\n", kUser, kUser, kUser);
    ASSERT_EQ(chown(home.c_str(), kUser, kUser), 0);
    EXPECT_EQ(ModeOfRun({{"XDG_CONFIG_HOME", ""}, {"HOME", home}}, kUser, &result), "eager")
        << "the user's own";
}

// su and sudo keep HOME and XDG_CONFIG_HOME. A log file would be root's writing where a user says.
TEST(FilesRead, ARootProcessReadsNoSettingsInAUsersFolder) {
    NEEDS_ROOT();
    const struct {
        unsigned base, folder, file;
    } rows[] = {{kUser, kUser, kUser}, {kUser, kUser, 0}, {kUser, 0, 0},
                {0, kUser, 0},         {0, kUser, kUser}, {0, 0, kUser}};
    for (const auto &row : rows) {
        SCOPED_TRACE(std::to_string(row.base) + " " + std::to_string(row.folder) + " " +
                     std::to_string(row.file));
        std::string victim = Folder() + "/ld.so.preload", home = Folder(), stats;
        std::string config = home + "/.config";
        mkdir(config.c_str(), 0755);
        OwnSettings(config, "mode = eager\nlog = debug\nlog_file = " + victim + "\nbad line\n",
                    row.base, row.file, row.folder);
        ASSERT_EQ(chown(home.c_str(), row.base, row.base), 0);
        for (bool by_home : {true, false}) {
            Result result;
            Environment env = {{"XDG_CONFIG_HOME", by_home ? "" : config}, {"HOME", home}};
            EXPECT_EQ(ModeOfRun(env, 0, &result), "piecewise") << result.err;
            EXPECT_FALSE(sim::FileExists(victim)) << ReadFile(victim);
            EXPECT_FALSE(Has(result.err, "bad line")) << result.err;
            Result list = Ran(Launcher({"config", "--list"}, env));
            EXPECT_TRUE(Ended(list));
            EXPECT_TRUE(Has(list.out, "mode")) << list.err;
            EXPECT_FALSE(Has(list.out, victim)) << list.out;
        }
    }
}

// What must not be believed as a file of settings, made at `path`.
struct Bad {
    const char *name;
    bool two_users;
    void (*make)(const std::string &path);
};

void PrintTo(const Bad &bad, std::ostream *out) {
    *out << bad.name;
}

const Bad kBad[] = {
    {"OfAnotherUser", true, [](const std::string &path) { Write(path, kBelieved, kOther); }},
    {"LinkOfAnotherUser", true,
     [](const std::string &path) { Link(path, Write(Folder() + "/s", kSecret), kOther); }},
    {"LinkOfAnotherUserOnTheWay", true,
     [](const std::string &path) {
         std::string way = Folder() + "/way";
         Link(way, Write(Folder() + "/s", kSecret), kOther);
         Link(path, way);
     }},
    {"GroupMayWrite", false, [](const std::string &path) { Write(path, kBelieved, 0, 0664); }},
    {"OthersMayWrite", false, [](const std::string &path) { Write(path, kBelieved, 0, 0646); }},
    {"OfAMegabyte", false,
     [](const std::string &path) { Write(path, kBelieved + std::string(1 << 20, '\n')); }},
    {"Fifo", false, [](const std::string &path) { EXPECT_EQ(mkfifo(path.c_str(), 0644), 0); }},
    {"EndlessDevice", false, [](const std::string &path) { Link(path, "/dev/zero"); }},
    {"Folder", false, [](const std::string &path) { EXPECT_EQ(mkdir(path.c_str(), 0755), 0); }},
};

class FileOfSettings : public testing::TestWithParam<Bad> {
  protected:
    void SetUp() override {
        if (GetParam().two_users)
            NEEDS_ROOT();
        path_ = Folder() + "/bad.conf";
        GetParam().make(path_);
    }
    // It is named where it is refused, and nothing of it is shown.
    void Expect(const Result &result) {
        EXPECT_TRUE(Has(result.err, path_)) << result.err;
        EXPECT_FALSE(Has(result.err, "SECRET") || Has(result.err, "a-secret")) << result.err;
        EXPECT_FALSE(Has(result.out, "SECRET") || Has(result.out, "a-secret")) << result.out;
        EXPECT_LT(result.err.size(), 4000u);
        bool bare = sim::Sanitizer().empty() && !getenv("CUS_TEST_EMULATED");
        EXPECT_LT(result.peak_mb, bare ? 200 : 2000);
    }
    std::string path_;
};

TEST_P(FileOfSettings, IsNotBelievedByTheLibrary) {
    Result result;
    EXPECT_EQ(ModeOfRun({{"CUSPLICE_CONFIG", path_}}, 0, &result), "piecewise");
    Expect(result);
}

TEST_P(FileOfSettings, IsNotBelievedByTheLauncher) {
    for (const Strings &arguments :
         {Strings{"run", "-c", path_, "--", "/bin/true"}, Strings{"config", "--check", path_}}) {
        Result result = Ran(Launcher(arguments));
        EXPECT_TRUE(Ended(result)) << arguments[0];
        EXPECT_NE(result.status, 0) << arguments[0] << result.out << result.err;
        result.err += result.out; // --check says it there
        Expect(result);
    }
}

TEST_P(FileOfSettings, IsNoFileOfCosts) {
    std::string trace = sim::Runfile("tests/golden/trace-v1.cst");
    for (const char *option : {"--cost", "-c"}) {
        Result result = Ran(Launcher({"whatif", option, path_, trace}));
        EXPECT_TRUE(Refused(result, path_)) << option;
        Expect(result);
    }
}

INSTANTIATE_TEST_SUITE_P(All, FileOfSettings, testing::ValuesIn(kBad),
                         [](const auto &given) { return given.param.name; });

// A link to a folder leads elsewhere, too.
TEST(FilesRead, NoSettingsAreReachedByAnotherUsersLinkToAFolder) {
    NEEDS_ROOT();
    std::string secret = Folder(), link = Folder(kOther) + "/way";
    Write(secret + "/c.conf", kBelieved, 0, 0600);
    Link(link, secret, kOther);
    Result result;
    EXPECT_EQ(ModeOfRun({{"CUSPLICE_CONFIG", link + "/c.conf"}}, 0, &result), "piecewise");
    EXPECT_FALSE(Has(result.err, "a-secret") || Has(result.err, "SECRET")) << result.err;
}

// Between two users who are both not root, too.
TEST(FilesRead, AUserBelievesNoOtherUser) {
    NEEDS_ROOT();
    Result result;
    std::string others = Write(Folder(kOther) + "/c.conf", kBelieved, kOther);
    EXPECT_EQ(ModeOfRun({{"CUSPLICE_CONFIG", others}}, kUser, &result), "piecewise");
    EXPECT_TRUE(Has(result.err, others)) << result.err;
    std::string own = Write(Folder(kUser) + "/c.conf", "SECRET-LINE\n", kUser, 0600);
    std::string link = Folder(kOther) + "/link.conf";
    Link(link, own, kOther);
    EXPECT_EQ(ModeOfRun({{"CUSPLICE_CONFIG", link}}, kUser, &result), "piecewise");
    EXPECT_FALSE(Has(result.err, "SECRET")) << "into a log that others may read: " << result.err;
}

TEST(FilesRead, TextOfAFileIsNotLoggedRaw) {
    Result result;
    const std::string bad = "\x1b]0;title\x07\x1b[2J\x9b"
                            "31m\xc2\x9bx\xe2\x80\xae = \x7f\r\n";
    std::string config = Write(Folder() + "/c.conf",
                               bad + "mode = \x1b[31mred\n[rules]\n" + bad + "eager = re:\x1b[(\n");
    ModeOfRun({{"CUSPLICE_CONFIG", config}}, 0, &result);
    EXPECT_TRUE(Has(result.err, config)) << result.err;
    Result check = Ran(Launcher({"config", "--check", config}));
    EXPECT_EQ(check.status, 1);
    for (const std::string &text : {result.err, check.out, check.err}) {
        for (unsigned char byte : text)
            EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte < 0x7f)) << (int)byte << "\n" << text;
    }
}

} // namespace
} // namespace security
