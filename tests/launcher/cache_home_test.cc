// Promise: cusplice run offers the user's own folder for the cache, and no other.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/launcher/launcher.h"

namespace {

const Environment kFine = {{"FAKE_SAYS", "loaded,on,exit 5 0"}};

// As a user has it who says nothing of a cache; "" unsets.
Environment Silent(const std::string &xdg, const std::string &home) {
    Environment env = kFine;
    env["CUSPLICE_CACHE_DIR"] = "";
    env["XDG_CACHE_HOME"] = xdg;
    env["HOME"] = home;
    return env;
}

std::string Fresh(const std::string &name) {
    std::string folder = Folder() + "/" + name;
    EXPECT_EQ(mkdir(folder.c_str(), 0755), 0) << folder;
    return folder;
}

bool Exists(const std::string &path) {
    struct stat info;
    return lstat(path.c_str(), &info) == 0;
}

const Strings kOffered = {"run", "--", Target(), "env=CUSPLICE_CACHE_OFFERED"};

std::string Offered(const std::string &folder) {
    return "CUSPLICE_CACHE_OFFERED=" + folder + "\n";
}

const std::string kNone = Offered("(unset)");

// As the XDG base directory specification says.
TEST(CacheHome, IsWhereTheUsersCachesAre) {
    std::string xdg = Fresh("xdg"), home = Fresh("home");
    for (const std::string &given : {xdg, xdg + "/", xdg + "//"})
        EXPECT_EQ(Cusplice(kOffered, Silent(given, home)).out, Offered(xdg + "/cusplice"));
    EXPECT_FALSE(Exists(home + "/.cache")) << "made for nothing";
    for (const char *given : {"", "xdg", "./xdg"}) // not absolute: ignored
        EXPECT_EQ(Cusplice(kOffered, Silent(given, home)).out, Offered(home + "/.cache/cusplice"));
    struct stat info;
    ASSERT_EQ(stat((home + "/.cache").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    EXPECT_FALSE(Exists(home + "/.cache/cusplice")) << "the library makes it, if it has to";
    EXPECT_FALSE(Exists(xdg + "/cusplice"));
    for (const char *none : {"", "."}) {
        Result r = Cusplice(kOffered, Silent("", none));
        EXPECT_EQ(r.out, kNone);
        EXPECT_EQ(r.err, "");
    }
}

TEST(CacheHome, MayBeALink) {
    std::string there = Fresh("scratch"), home = Fresh("linked");
    ASSERT_EQ(symlink(there.c_str(), (home + "/.cache").c_str()), 0);
    EXPECT_EQ(Cusplice(kOffered, Silent("", home)).out, Offered(home + "/.cache/cusplice"));
}

TEST(CacheHome, IsNotOfferedWhereASettingSaysSomething) {
    std::string home = Fresh("said");
    Environment silent = Silent("", home);
    for (const char *line : {"cache_dir = /c\n", "cache_dir =\n"}) {
        std::string config = Write("cache.conf", line);
        EXPECT_EQ(Cusplice({"run", "-c", config, "--", Target(), kOffered[3]}, silent).out, kNone);
    }
    for (const char *set : {"cache_dir=/c", "cache_dir="})
        EXPECT_EQ(Cusplice({"run", "--set", set, "--", Target(), kOffered[3]}, silent).out, kNone);
    Environment said = silent;
    said["CUSPLICE_CACHE_DIR"] = "/c";
    EXPECT_EQ(Cusplice(kOffered, said).out, kNone);
    said.erase("CUSPLICE_CACHE_DIR"); // that of these tests, which is empty
    EXPECT_EQ(Cusplice(kOffered, said).out, kNone);
    EXPECT_FALSE(Exists(home + "/.cache"));
}

// What is compared with other runs must not depend on them, not even within another run.
TEST(CacheHome, IsForRunsThatMakeGraphsAlone) {
    std::string home = Fresh("measured"), trace = Folder() + "/measured.cst";
    Environment inner = Silent("", home);
    inner["CUSPLICE_CACHE_OFFERED"] = home + "/.cache/cusplice";
    for (const char *set : {"mode=off", "mode=observe", "mode=eager", "mode=verify"})
        EXPECT_EQ(Cusplice({"run", "--set", set, "--", Target(), kOffered[3]}, inner).out, kNone)
            << set;
    const std::string record = "record=" + trace;
    EXPECT_EQ(Cusplice({"run", "--set", record, "--", Target(), kOffered[3]}, inner).out, kNone);
    EXPECT_EQ(Cusplice({"record", "-o", trace, "--", Target(), kOffered[3]}, inner).out, kNone);
    EXPECT_EQ(Cusplice({"verify", "--", Target(), kOffered[3]}, inner).out, kNone);
    EXPECT_FALSE(Exists(home + "/.cache"));
    for (const char *set : {"mode=full", "mode=full_decode_only", "mode=full_and_piecewise"})
        EXPECT_EQ(Cusplice({"run", "--set", set, "--", Target(), kOffered[3]}, inner).out,
                  Offered(home + "/.cache/cusplice"))
            << set;
}

// Nobody asked for it, so nothing is said unless asked.
TEST(CacheHome, ThatCannotBeUsedIsLeftInSilence) {
    std::string file = Write("file", ""), dangling = Folder() + "/dangling", home = Fresh("odd");
    ASSERT_EQ(symlink("/nowhere/at/all", dangling.c_str()), 0);
    const std::string long_one = "/" + std::string(5000, 'x');
    for (const std::string &xdg :
         {file, dangling, file + "/below", std::string("/nowhere/at/all"), long_one}) {
        Environment env = Silent(xdg, home);
        env["CUSPLICE_CACHE_OFFERED"] = "/of/an/outer/run";
        Result r = Cusplice(kOffered, env);
        EXPECT_EQ(r.out, kNone) << xdg;
        EXPECT_EQ(r.err, "");
        EXPECT_EQ(r.Exit(), 0);
    }
    EXPECT_FALSE(Exists(home + "/.cache")) << "the variable says where, and no other place";
    Result r = Cusplice({"run", "--why", "--", Target()}, Silent(file, home));
    EXPECT_EQ(r.err, "cusplice: nothing is kept for later runs: " + file + ": it is no folder\n");
}

TEST(CacheHome, IsNeverAnotherUsers) {
    if (geteuid() != 0)
        GTEST_SKIP() << "needs two users";
    std::string home = Fresh("theirs"), cache = home + "/.cache", link = Folder() + "/theirs.link";
    ASSERT_EQ(chown(home.c_str(), 12345, 12345), 0);
    const Strings why = {"run", "--why", "--", Target(), kOffered[3]};
    Result r = Cusplice(why, Silent("", home)); // sudo that keeps HOME
    EXPECT_EQ(r.out, kNone);
    EXPECT_TRUE(Has(r.err, cache + ": the folder above it is another user's")) << r.err;
    EXPECT_FALSE(Exists(cache));
    ASSERT_EQ(mkdir(cache.c_str(), 0700), 0);
    ASSERT_EQ(chown(cache.c_str(), 12345, 12345), 0);
    r = Cusplice(why, Silent("", home));
    EXPECT_EQ(r.out, kNone);
    EXPECT_TRUE(Has(r.err, cache + ": it is another user's")) << r.err;
    ASSERT_EQ(symlink(Fresh("mine").c_str(), link.c_str()), 0);
    ASSERT_EQ(lchown(link.c_str(), 12345, 12345), 0);
    EXPECT_EQ(Cusplice(kOffered, Silent(link, home)).out, kNone) << "their link";
    std::string mine = Folder() + "/mine.link";
    ASSERT_EQ(symlink(cache.c_str(), mine.c_str()), 0);
    EXPECT_EQ(Cusplice(kOffered, Silent(mine, home)).out, kNone) << "a link to their folder";
}

} // namespace
