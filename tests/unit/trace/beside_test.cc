// Promise: a file made from a trace is as private as the trace, and never replaces it.
#include "tools/trace/beside.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/text.h"

namespace {

std::string Path(const std::string &name) {
    std::string path = testing::TempDir() + "/beside-" + name;
    unlink(path.c_str());
    return path;
}

std::string Input(const std::string &name, mode_t mode) {
    std::string path = Path(name);
    std::ofstream(path) << "input";
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
}

mode_t Mode(const std::string &path) {
    struct stat is = {};
    EXPECT_EQ(lstat(path.c_str(), &is), 0) << path;
    return is.st_mode & 07777;
}

bool Fill(FILE *to, const void *) {
    return fputs("whole", to) >= 0;
}

class Beside : public testing::Test {
  protected:
    void SetUp() override { mask_ = umask(0); }
    void TearDown() override { umask(mask_); }
    mode_t mask_;
};

TEST_F(Beside, TheModeIsWhatAllInputsHave) {
    std::string a = Input("a", 0664), b = Input("b", 0646), x = Input("x", 0755);
    const char *none[] = {nullptr}, *one[] = {a.c_str(), nullptr};
    const char *both[] = {a.c_str(), b.c_str(), nullptr}, *program[] = {x.c_str(), nullptr};
    const char *gone[] = {a.c_str(), "/nowhere/x", nullptr};
    EXPECT_EQ(beside_mode(nullptr), 0666u);
    EXPECT_EQ(beside_mode(none), 0666u);
    EXPECT_EQ(beside_mode(one), 0664u);
    EXPECT_EQ(beside_mode(both), 0644u);
    EXPECT_EQ(beside_mode(program), 0644u);
    EXPECT_EQ(beside_mode(gone), 0600u);
    umask(027);
    EXPECT_EQ(beside_mode(one), 0640u);
    EXPECT_EQ(umask(0), 027u);
}

TEST_F(Beside, TheFileHasTheModeFromItsBeginning) {
    for (mode_t mode : {0600, 0640, 0644, 0666}) {
        std::string in = Input("in", mode), out = Path("out");
        const char *from[] = {in.c_str(), nullptr};
        beside beside;
        int fd = beside_open(&beside, out.c_str(), false, from);
        ASSERT_GE(fd, 0);
        EXPECT_EQ(Mode(beside.partial), mode);
        close(fd);
        EXPECT_EQ(beside_name(&beside), 0);
        EXPECT_EQ(Mode(out), mode);
    }
    // What nobody may write can be written until it is whole, by its owner.
    std::string in = Input("in", 0440), out = Path("out");
    const char *from[] = {in.c_str(), nullptr};
    beside beside;
    int fd = beside_open(&beside, out.c_str(), false, from);
    EXPECT_EQ(Mode(beside.partial), 0640u);
    close(fd);
    EXPECT_EQ(beside_name(&beside), 0);
    EXPECT_EQ(Mode(out), 0440u);
}

TEST_F(Beside, AFileThatIsReplacedLendsNoMode) {
    std::string in = Input("in", 0600), out = Input("out", 0666);
    const char *from[] = {in.c_str(), nullptr};
    EXPECT_EQ(beside_write(out.c_str(), false, from, Fill, nullptr), EEXIST);
    EXPECT_EQ(beside_write(out.c_str(), true, from, Fill, nullptr), 0);
    EXPECT_EQ(ReadFile(out), "whole");
    EXPECT_EQ(Mode(out), 0600u);
}

TEST_F(Beside, TheInputIsNeverReplaced) {
    std::string in = Input("in", 0600), other = Input("other", 0600), hard = Path("hard"),
                soft = Path("soft");
    ASSERT_EQ(link(in.c_str(), hard.c_str()), 0);
    ASSERT_EQ(symlink(in.c_str(), soft.c_str()), 0);
    const char *from[] = {other.c_str(), in.c_str(), nullptr};
    for (const std::string &out : {in, hard, soft})
        for (bool force : {false, true})
            EXPECT_EQ(beside_write(out.c_str(), force, from, Fill, nullptr), BESIDE_INPUT) << out;
    EXPECT_EQ(ReadFile(in), "input");
    EXPECT_STREQ(beside_why(BESIDE_INPUT), "it is what is read: name another file");
}

TEST_F(Beside, TheInputIsNotThePartialFileEither) {
    std::string out = Path("out"), partial = out + "." + std::to_string(getpid()) + ".partial";
    std::ofstream(partial) << "input";
    const char *from[] = {partial.c_str(), nullptr};
    EXPECT_EQ(beside_write(out.c_str(), true, from, Fill, nullptr), BESIDE_INPUT);
    EXPECT_EQ(ReadFile(partial), "input");
    unlink(partial.c_str());
}

TEST_F(Beside, NamesOfOnePlace) {
    std::string folder = testing::TempDir() + "/";
    EXPECT_TRUE(beside_same((folder + "a").c_str(), (folder + "./a").c_str()));
    EXPECT_TRUE(beside_same("-", "-"));
    EXPECT_TRUE(beside_same("a", "./a"));
    EXPECT_FALSE(beside_same((folder + "a").c_str(), (folder + "b").c_str()));
    EXPECT_FALSE(beside_same("a", (folder + "a").c_str()));
    EXPECT_FALSE(beside_same("/nowhere/a", "/nowhere/../nowhere/a"));
}

TEST_F(Beside, ALinkIsReplacedAndNotFollowed) {
    std::string in = Input("in", 0600), target = Input("target", 0600), soft = Path("soft");
    ASSERT_EQ(symlink(target.c_str(), soft.c_str()), 0);
    const char *from[] = {in.c_str(), nullptr};
    EXPECT_EQ(beside_write(soft.c_str(), true, from, Fill, nullptr), 0);
    EXPECT_EQ(ReadFile(target), "input");
    EXPECT_EQ(ReadFile(soft), "whole");
    EXPECT_EQ(Mode(soft), 0600u);
}

TEST_F(Beside, WhatFailsLeavesNothing) {
    std::string out = Path("out");
    auto fail = [](FILE *to, const void *) {
        fputs("part", to);
        errno = EPROTO;
        return false;
    };
    EXPECT_EQ(beside_write(out.c_str(), false, nullptr, fail, nullptr), EPROTO);
    EXPECT_NE(access(out.c_str(), F_OK), 0);
    EXPECT_NE(access((out + "." + std::to_string(getpid()) + ".partial").c_str(), F_OK), 0);
}

} // namespace
