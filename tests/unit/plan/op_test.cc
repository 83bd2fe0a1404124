// Promise: stored ops keep arguments of all sizes, and can be compared and found again.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

extern "C" {
#include "shim/plan/state.h"
}

namespace {

// Sizes on either side of each way in which bytes are compared, in memory that ends where they do.
constexpr uint32_t kSizes = 300;

std::unique_ptr<uint8_t[]> Counting(uint32_t bytes) {
    std::unique_ptr<uint8_t[]> made(new uint8_t[bytes]);
    std::iota(made.get(), made.get() + bytes, 1);
    return made;
}

TEST(Bytes, EachThatDiffersIsSeen) {
    for (uint32_t bytes = 0; bytes < kSizes; bytes++) {
        auto a = Counting(bytes), b = Counting(bytes);
        EXPECT_TRUE(cus_bytes_same(a.get(), b.get(), bytes)) << bytes;
        for (uint32_t at = 0; at < bytes; at++) {
            b[at] ^= 0x10;
            EXPECT_FALSE(cus_bytes_same(a.get(), b.get(), bytes)) << at << " of " << bytes;
            b[at] ^= 0x10;
        }
    }
}

TEST(Bytes, AllAreCopiedAndNothingElse) {
    for (uint32_t bytes = 0; bytes < kSizes; bytes++) {
        auto from = Counting(bytes);
        std::vector<uint8_t> to(bytes + 2, 0xee);
        cus_bytes_copy(to.data() + 1, from.get(), bytes);
        EXPECT_EQ(memcmp(to.data() + 1, from.get(), bytes), 0) << bytes;
        EXPECT_EQ(to.front(), 0xee) << bytes;
        EXPECT_EQ(to.back(), 0xee) << bytes;
    }
}

// A kernel with arguments of all kinds of sizes, and holes between them.
struct Kernel {
    std::vector<cus_argument> arguments{{0, 8},   {8, 8},   {16, 1},   {20, 4},  {24, 3},
                                        {32, 12}, {48, 16}, {64, 200}, {272, 2}, {288, 24}};
    cus_layout layout = {static_cast<uint32_t>(arguments.size()), 312, arguments.data()};
    cus_kind kind = {};
    std::vector<std::unique_ptr<uint8_t[]>> values;
    std::vector<void *> params;
    cus_op op = {};

    Kernel() {
        kind.type = CUS_OP_LAUNCH;
        kind.layout = &layout;
        kind.param_bytes = layout.bytes;
        for (const cus_argument &argument : arguments) {
            values.push_back(Counting(argument.size));
            params.push_back(values.back().get());
        }
        op = {&kind, {3, 1, 1, 32, 1, 1, 0}, params.data(), nullptr};
    }
};

struct Held {
    std::vector<uint64_t> words = std::vector<uint64_t>(64, 0xdddddddddddddddd);
    cus_values *values() { return reinterpret_cast<cus_values *>(words.data()); }
};

TEST(Op, WhatIsStoredIsTheSameAndItsHolesAreZero) {
    Kernel kernel;
    Held at;
    cus_op_store(&kernel.op, at.values());
    EXPECT_TRUE(cus_op_same_dims(&kernel.op, at.values()));
    EXPECT_TRUE(cus_op_same_params(&kernel.op, at.values()));
    EXPECT_EQ(at.values()->unknown, 0u);
    std::vector<uint8_t> expected(kernel.layout.bytes, 0);
    for (size_t i = 0; i < kernel.arguments.size(); i++)
        memcpy(expected.data() + kernel.arguments[i].offset, kernel.params[i],
               kernel.arguments[i].size);
    EXPECT_EQ(memcmp(at.values()->params, expected.data(), expected.size()), 0);
    EXPECT_EQ(at.values()->params[kernel.layout.bytes], 0xdd) << "nothing behind it";
}

TEST(Op, EachArgumentThatDiffersIsSeen) {
    Kernel kernel;
    Held at;
    cus_op_store(&kernel.op, at.values());
    // As the hot path has it: words first, and the rest.
    struct {
        cus_expected expected;
        uint8_t values[512];
    } image = {};
    memcpy(image.values, at.values(), sizeof(cus_values) + kernel.layout.bytes);
    image.expected.kind = &kernel.kind;
    image.expected.words = 2;
    image.expected.others = static_cast<uint16_t>(kernel.arguments.size() - 2);
    image.expected.tail = kernel.arguments.data() + 2;
    cus_plan plan = {};
    plan.view.at = &image.expected;
    EXPECT_FALSE(cus_plan_differs(&plan.view, kernel.params.data()));
    for (size_t i = 0; i < kernel.arguments.size(); i++)
        for (uint32_t byte = 0; byte < kernel.arguments[i].size; byte++) {
            kernel.values[i][byte]++;
            EXPECT_FALSE(cus_op_same_params(&kernel.op, at.values())) << i << ", " << byte;
            EXPECT_TRUE(cus_plan_differs(&plan.view, kernel.params.data())) << i << ", " << byte;
            kernel.values[i][byte]--;
        }
}

TEST(Op, GarbageBetweenThePackedArgumentsDoesNotCount) {
    Kernel kernel;
    Held at;
    cus_op_store(&kernel.op, at.values());
    std::vector<uint8_t> flat(at.values()->params, at.values()->params + kernel.layout.bytes);
    std::vector<bool> counts(flat.size(), false);
    for (const cus_argument &argument : kernel.arguments)
        std::fill_n(counts.begin() + argument.offset, argument.size, true);
    EXPECT_TRUE(cus_flat_same(&kernel.kind, flat.data(), at.values()));
    for (size_t i = 0; i < flat.size(); i++) {
        flat[i] ^= 0xff;
        EXPECT_EQ(cus_flat_same(&kernel.kind, flat.data(), at.values()), !counts[i])
            << "byte " << i;
        flat[i] ^= 0xff;
    }
    kernel.kind.layout = nullptr; // of a memset or copy all bytes do
    flat[17] ^= 0xff;
    EXPECT_FALSE(cus_flat_same(&kernel.kind, flat.data(), at.values()));
}

} // namespace
