// Promise: the library's memory, and uthash on top of it, work even when no memory is left.
#include "shim/base/mem.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <stdint.h>

#include <vector>

namespace {

bool out_of_memory;

void *Limited(size_t bytes) {
    return out_of_memory ? nullptr : cus_mem_alloc(bytes);
}

} // namespace

#include "shim/base/uthash.h"
// The table's own memory comes from here, so that it can run out.
#undef uthash_malloc
#define uthash_malloc(bytes) Limited(bytes)

namespace {

struct Item {
    int key;
    UT_hash_handle hh;
};

TEST(Memory, CountsWhatItDidNotGet) {
    uint64_t before = cus_mem_failures();
    EXPECT_EQ(cus_mem_alloc(SIZE_MAX / 2), nullptr);
    EXPECT_EQ(cus_mem_failures(), before + 1);
    EXPECT_EQ(cus_mem_alloc(0), nullptr); // nothing was asked for
    EXPECT_EQ(cus_mem_failures(), before + 1);
}

TEST(Memory, IsZeroedAlignedAndKeepsErrno) {
    errno = ENOENT;
    for (size_t bytes : {1, 17, 4096, 1 << 20}) {
        auto *memory = static_cast<unsigned char *>(cus_mem_alloc(bytes));
        ASSERT_NE(memory, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignof(max_align_t), 0u);
        for (size_t i = 0; i < bytes; i++)
            ASSERT_EQ(memory[i], 0);
        memset(memory, 0xff, bytes);
        cus_mem_free(memory);
    }
    EXPECT_EQ(cus_mem_alloc(0), nullptr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they end the process instead
    EXPECT_EQ(cus_mem_alloc(PTRDIFF_MAX), nullptr);
#endif
    EXPECT_EQ(errno, ENOENT);
    cus_mem_free(nullptr);
}

TEST(Memory, WhatGrowsStaysWithinItsBudget) {
    const uint64_t before = cus_mem_held(), refused = cus_mem_refused(),
                   failed = cus_mem_failures();
    cus_mem_budget(before + (1 << 20));
    void *first = cus_mem_grow(600 << 10);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % alignof(max_align_t), 0u);
    EXPECT_GE(cus_mem_held(), before + (600 << 10));
    EXPECT_EQ(cus_mem_grow(600 << 10), nullptr);
    EXPECT_EQ(cus_mem_refused(), refused + 1);
    EXPECT_EQ(cus_mem_grow_first(1 << 10), nullptr) << "what comes first has half of it";
    void *rest = cus_mem_grow(300 << 10);
    EXPECT_NE(rest, nullptr);
    const uint64_t most = cus_mem_most();
    EXPECT_EQ(most, cus_mem_held());
    cus_mem_shrink(first);
    void *again = cus_mem_grow_first(100 << 10);
    EXPECT_NE(again, nullptr);
    cus_mem_shrink(again);
    cus_mem_shrink(rest);
    cus_mem_shrink(nullptr);
    EXPECT_EQ(cus_mem_held(), before);
    EXPECT_EQ(cus_mem_most(), most);
    EXPECT_EQ(cus_mem_failures(), failed) << "memory was there";
    EXPECT_EQ(cus_mem_grow(0), nullptr);
    EXPECT_EQ(cus_mem_grow(SIZE_MAX - 8), nullptr);
    cus_mem_budget(UINT64_MAX);
}

TEST(Memory, LinesAreNobodyElses) {
    constexpr uintptr_t kLine = CUS_LINE;
    uint64_t before = cus_mem_failures();
    std::vector<uintptr_t> begins, ends;
    std::vector<void *> all;
    for (size_t bytes : {1, 8, 63, 64, 65, 200, 5000, 1, 8, 63}) {
        auto *memory = static_cast<unsigned char *>(cus_mem_lines(bytes));
        ASSERT_NE(memory, nullptr);
        for (size_t i = 0; i < bytes; i++)
            ASSERT_EQ(memory[i], 0);
        memset(memory, 0xff, bytes);
        all.push_back(memory);
        begins.push_back(reinterpret_cast<uintptr_t>(memory));
        ends.push_back(begins.back() + (bytes + kLine - 1) / kLine * kLine);
        EXPECT_EQ(begins.back() % kLine, 0u);
        /* What others are given, next to it. */
        void *other = cus_mem_alloc(24);
        memset(other, 0xee, 24);
        all.push_back(other);
        begins.push_back(reinterpret_cast<uintptr_t>(other));
        ends.push_back(begins.back() + 24);
    }
    for (size_t i = 0; i < all.size(); i++)
        for (size_t j = 0; j < i; j++)
            EXPECT_TRUE(begins[i] >= ends[j] || begins[j] >= ends[i]) << i << " " << j;
    for (size_t i = 0; i < all.size(); i++)
        i % 2 ? cus_mem_free(all[i]) : cus_mem_free_lines(all[i]);
    EXPECT_EQ(cus_mem_lines(0), nullptr);
    EXPECT_EQ(cus_mem_failures(), before);
    EXPECT_EQ(cus_mem_lines(SIZE_MAX / 2), nullptr);
    EXPECT_EQ(cus_mem_failures(), before + 1);
    cus_mem_free_lines(nullptr);
}

// Images of graphs: lines of their own that count, and are given back.
TEST(Memory, LinesThatGrowStayWithinTheBudget) {
    const uint64_t before = cus_mem_held(), refused = cus_mem_refused();
    cus_mem_budget(before + (1 << 20));
    auto *first = static_cast<unsigned char *>(cus_mem_grow_lines(600 << 10));
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % CUS_LINE, 0u);
    EXPECT_EQ(first[0] | first[(600 << 10) - 1], 0);
    EXPECT_GE(cus_mem_held(), before + (600 << 10));
    EXPECT_EQ(cus_mem_grow_lines(600 << 10), nullptr);
    EXPECT_EQ(cus_mem_refused(), refused + 1);
    cus_mem_shrink_lines(first);
    cus_mem_shrink_lines(nullptr);
    EXPECT_EQ(cus_mem_held(), before);
    EXPECT_EQ(cus_mem_grow_lines(0), nullptr);
    cus_mem_budget(UINT64_MAX);
}

TEST(Memory, TextIsCopied) {
    char text[] = "abc";
    char *copy = cus_mem_text(text);
    text[0] = 'x';
    EXPECT_STREQ(copy, "abc");
    cus_mem_free(copy);
}

TEST(Uthash, WithoutMemoryTheElementStaysOutAndNothingEnds) {
    Item *table = nullptr, first = {1, {}}, second = {2, {}};
    out_of_memory = true;
    HASH_ADD_INT(table, key, &first);
    EXPECT_EQ(table, nullptr);
    EXPECT_EQ(first.hh.tbl, nullptr);
    out_of_memory = false;
    HASH_ADD_INT(table, key, &second);
    Item *found = nullptr;
    int key = 2;
    HASH_FIND_INT(table, &key, found);
    EXPECT_EQ(found, &second);
    HASH_CLEAR(hh, table);
}

} // namespace
