// Promise: packing a trace in place makes it shorter and keeps its content. If packing fails, the
// trace is unchanged and no other file is left.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/unit/trace/synth.h"
#include "tools/trace/pack.h"
#include "tools/trace/reader.h"

namespace {

bool There(const std::string &path) {
    return access(path.c_str(), F_OK) == 0;
}

std::string Made(const std::string &name, bool torn = false) {
    std::string path = testing::TempDir() + "pack_" + std::to_string(getpid()) + "_" + name;
    unlink(path.c_str());
    Synth s(path);
    s.Facts("{\"gpu\":\"none\"}");
    s.Thread(1, "main");
    uint32_t stream = s.Stream(CST_STREAM_CREATED, 0x10), kernel = s.Kernel("saxpy");
    for (int i = 0; i < 5000; i++)
        s.Op(stream, kernel);
    s.Block();
    std::string data(sizeof(cst_data) + 300000, 'x');
    auto *head = reinterpret_cast<cst_data *>(&data[0]);
    *head = cst_data{};
    head->of = CST_DATA_INPUT;
    head->id = 7;
    head->bytes = 300000;
    cst_out_block(&s.out, CST_BLOCK_DATA, 0, data.data(), data.size(), data.size());
    if (torn)
        s.Tear();
    else
        EXPECT_EQ(s.Close(), 0);
    return path;
}

std::string Pack(const std::string &path) {
    char error[512] = "";
    return pack_file(path.c_str(), error, sizeof error) ? "" : error;
}

TEST(Pack, SaysTheSameInLessRoom) {
    std::string path = Made("whole.cst");
    size_t before = ReadFile(path).size();
    EXPECT_EQ(Pack(path), "");
    EXPECT_LT(ReadFile(path).size(), before / 10);
    EXPECT_FALSE(There(path + ".packed"));
    char error[512];
    cst_trace *trace = cst_open(path.c_str(), error, sizeof error);
    ASSERT_TRUE(trace) << error;
    EXPECT_TRUE(trace->closed);
    EXPECT_EQ(trace->ops, 5000u);
    EXPECT_STREQ(trace->facts, "{\"gpu\":\"none\"}");
    size_t n;
    const cst_part *part = cst_data_of(trace, CST_DATA_INPUT, 7, &n);
    ASSERT_EQ(n, 1u);
    std::string got(part->bytes, 0);
    EXPECT_TRUE(cst_data_load(trace, part, &got[0], error, sizeof error)) << error;
    EXPECT_EQ(got, std::string(300000, 'x'));
    cst_free(trace);
    // Again: what is packed stays packed.
    std::string packed = ReadFile(path);
    EXPECT_EQ(Pack(path), "");
    EXPECT_EQ(ReadFile(path), packed);
}

TEST(Pack, WhatCannotBePackedIsAsItWas) {
    std::string torn = Made("torn.cst", true);
    std::string whole = ReadFile(torn);
    ASSERT_EQ(truncate(torn.c_str(), static_cast<off_t>(whole.size() - 100)), 0);
    std::string before = ReadFile(torn);
    EXPECT_NE(Pack(torn).find("is not a whole trace"), std::string::npos);
    EXPECT_EQ(ReadFile(torn), before);
    EXPECT_FALSE(There(torn + ".packed") || There(torn + ".packed.partial"));

    std::string other = testing::TempDir() + "pack_other_" + std::to_string(getpid());
    std::ofstream(other) << "not a trace, and not a short text either ............................";
    EXPECT_NE(Pack(other).find("is not a whole trace"), std::string::npos);

    std::string taken = Made("taken.cst");
    std::ofstream(taken + ".packed") << "somebody's";
    before = ReadFile(taken);
    EXPECT_NE(Pack(taken).find(".packed: "), std::string::npos);
    EXPECT_EQ(ReadFile(taken), before);
    EXPECT_EQ(ReadFile(taken + ".packed"), "somebody's");
    EXPECT_NE(Pack("/nowhere/x.cst").find("/nowhere/x.cst: No such file"), std::string::npos);
}

TEST(Pack, NoRoomOnTheDisk) {
    std::string path = Made("full.cst"), before = ReadFile(path);
    rlimit limit, was;
    getrlimit(RLIMIT_FSIZE, &was);
    limit = was;
    limit.rlim_cur = 600;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string error = Pack(path);
    setrlimit(RLIMIT_FSIZE, &was);
    EXPECT_NE(error.find("File too large"), std::string::npos) << error;
    EXPECT_EQ(ReadFile(path), before);
    EXPECT_FALSE(There(path + ".packed") || There(path + ".packed.partial"));
}

} // namespace
