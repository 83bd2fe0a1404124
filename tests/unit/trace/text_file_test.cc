// Promise: a text in memory is whole, or it is said that there was no memory for it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <string>

extern "C" {
#include "tools/trace/text_file.h"
}

namespace {

constexpr size_t kMiB = 1 << 20;

// The text of so many lines; `*whole`: what closing it said.
std::string Write(size_t lines, bool *whole) {
    static const std::string line(1023, 'x');
    char *text = nullptr;
    size_t bytes = 0;
    FILE *file = text_file_open(&text, &bytes);
    EXPECT_NE(file, nullptr);
    for (size_t i = 0; file && i < lines; i++) {
        if (i < 100) {
            EXPECT_EQ(ftell(file), (long)(1024 * i));
        }
        fprintf(file, "%s\n", line.c_str());
    }
    *whole = file && text_file_close(file, &text);
    EXPECT_EQ(text != nullptr, *whole);
    std::string all = text ? text : "";
    EXPECT_TRUE(!text || all.size() == bytes);
    free(text);
    return all;
}

TEST(TextFile, IsWhatWasWritten) {
    bool whole = false;
    EXPECT_EQ(Write(0, &whole), "");
    EXPECT_TRUE(whole);
    std::string all = Write(10000, &whole);
    EXPECT_TRUE(whole);
    ASSERT_EQ(all.size(), 10000u * 1024);
    for (size_t i = 0; i < all.size(); i += 1024)
        ASSERT_EQ(all.compare(i, 1024, std::string(1023, 'x') + "\n"), 0) << i;
}

TEST(TextFile, SaysThatThereIsNoMemory) {
    const char *sanitizer = getenv("CUS_TEST_SANITIZER");
    if (sanitizer && strcmp(sanitizer, "ubsan") != 0)
        GTEST_SKIP() << "it ends the process where its memory is bound";
    rlimit before, small;
    ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
    small = before;
    small.rlim_cur = 64 * kMiB;
    ASSERT_EQ(setrlimit(RLIMIT_DATA, &small), 0);
    void *bound = malloc(128 * kMiB);
    free(bound);
    bool whole = true;
    std::string all = bound ? "" : Write(200 * 1024, &whole);
    ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
    if (bound)
        GTEST_SKIP() << "nothing bounds the memory here";
    EXPECT_FALSE(whole);
    EXPECT_EQ(all, "");
}

} // namespace
