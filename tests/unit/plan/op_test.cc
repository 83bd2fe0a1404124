// Promise: stored ops keep arguments of all sizes, and can be compared and found again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
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

TEST(Op, WithoutParamsHasItsShape) {
    cus_kind kind = {};
    kind.type = CUS_OP_LAUNCH;
    cus_op op = {&kind, {3, 1, 1, 32, 1, 1, 0}, nullptr, nullptr};
    Held at;
    cus_op_store(&op, at.values());
    EXPECT_TRUE(cus_op_same_dims(&op, at.values()));
    EXPECT_EQ(at.values()->params[0], 0xdd) << "nothing behind it";
}

TEST(Op, ItsHashHasEachByteOfItsArguments) {
    Kernel kernel;
    const uint64_t hash = cus_op_hash(&kernel.op);
    for (size_t i = 0; i < kernel.arguments.size(); i++)
        for (uint32_t byte = 0; byte < kernel.arguments[i].size; byte++) {
            kernel.values[i][byte]++;
            EXPECT_NE(cus_op_hash(&kernel.op), hash) << i << ", " << byte;
            kernel.values[i][byte]--;
        }
    EXPECT_EQ(cus_op_hash(&kernel.op), hash);
}

TEST(Op, OfABranchDoesNotTakeTheHotPath) {
    cus_kind kind = {};
    cus_expected expected = {};
    expected.kind = &kind;
    cus_plan_view view = {};
    view.at = &expected;
    EXPECT_EQ(cus_plan_midst(&view), &kind);
    kind.branch = 1;
    EXPECT_EQ(cus_plan_midst(&view), nullptr);
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

// What a node may get (HAZARDS A11, A12): a kernel that ran with two blocks, and the shapes around
// each limit.
struct Shapes {
    cus_kind kind = {};
    using Dims = std::array<uint32_t, CUS_DIMS>;

    Shapes() {
        kind.type = CUS_OP_LAUNCH;
        kind.threads_max = 100000; // no limit, so that those of every GPU are seen
        kind.shared_end = 1000;
        std::fill_n(kind.cluster, 3, 1);
    }
    void Ran(Dims dims) { cus_kind_ran(&kind, dims.data()); }
    bool Allows(Dims dims) const { return cus_kind_allows(&kind, dims.data()); }
    bool Grid(uint32_t x, uint32_t y, uint32_t z) const { return Allows({x, y, z, 32, 2, 1, 100}); }
    bool Block(uint32_t x, uint32_t y, uint32_t z) const { return Allows({4, 4, 4, x, y, z, 100}); }
};

struct TwoBlocks : Shapes {
    TwoBlocks() {
        Ran({4, 4, 4, 32, 2, 1, 100});
        Ran({4, 4, 4, 64, 1, 1, 100});
    }
};

TEST(Shape, OfAKindThatNeverRanIsNotAllowed) {
    Shapes shapes;
    EXPECT_FALSE(shapes.Allows({0, 0, 0, 0, 0, 0, 0}));
    EXPECT_FALSE(shapes.Grid(4, 4, 4));
    shapes.kind.type = CUS_OP_MEMSET; // has no shape
    EXPECT_TRUE(shapes.Allows({0, 0, 0, 0, 0, 0, 0}));
    shapes.Ran({1, 1, 1, 1, 1, 1, 0});
    EXPECT_EQ(shapes.kind.n_shapes, 0u);
}

TEST(Shape, GridsEndWhereTheDriverEndsThem) {
    TwoBlocks shapes;
    EXPECT_TRUE(shapes.Grid(1, 1, 1));
    EXPECT_TRUE(shapes.Grid(2147483647, 65535, 65535));
    EXPECT_FALSE(shapes.Grid(2147483648, 1, 1));
    EXPECT_FALSE(shapes.Grid(1, 65536, 1));
    EXPECT_FALSE(shapes.Grid(1, 1, 65536));
    EXPECT_FALSE(shapes.Grid(0, 1, 1));
    EXPECT_FALSE(shapes.Grid(1, 0, 1));
    EXPECT_FALSE(shapes.Grid(1, 1, 0));
}

TEST(Shape, GridsAreWholeClusters) {
    for (int i = 0; i < 3; i++) {
        TwoBlocks shapes;
        shapes.kind.cluster[i] = 2;
        uint32_t grid[3] = {3, 3, 3};
        EXPECT_FALSE(shapes.Grid(3, 3, 3)) << i;
        grid[i] = 6;
        EXPECT_TRUE(shapes.Grid(grid[0], grid[1], grid[2])) << i;
    }
}

TEST(Shape, BlocksEndWhereTheDriverEndsThem) {
    TwoBlocks shapes;
    EXPECT_TRUE(shapes.Block(1, 1, 1));
    EXPECT_TRUE(shapes.Block(1024, 1, 1));
    EXPECT_TRUE(shapes.Block(1, 1024, 1));
    EXPECT_TRUE(shapes.Block(1, 1, 64));
    EXPECT_FALSE(shapes.Block(1025, 1, 1));
    EXPECT_FALSE(shapes.Block(1, 1025, 1));
    EXPECT_FALSE(shapes.Block(1, 1, 65));
    EXPECT_FALSE(shapes.Block(0, 1, 1));
    EXPECT_FALSE(shapes.Block(1, 0, 1));
    EXPECT_FALSE(shapes.Block(1, 1, 0));
    shapes.kind.threads_max = 60;
    EXPECT_TRUE(shapes.Block(3, 4, 5));
    shapes.kind.threads_max = 59;
    EXPECT_FALSE(shapes.Block(3, 4, 5));
    EXPECT_TRUE(shapes.Block(32, 2, 1)) << "it ran";
}

TEST(Shape, ANewBlockNeedsTwoThatRan) {
    Shapes shapes;
    shapes.Ran({4, 4, 4, 32, 2, 1, 100});
    EXPECT_FALSE(shapes.Block(32, 1, 1));
    shapes.Ran({4, 4, 4, 32, 2, 1, 200}); // the same block again
    EXPECT_FALSE(shapes.Block(32, 1, 1));
    shapes.kind.shared_end = 0;
    shapes.Ran({4, 4, 4, 32, 2, 2, 100});
    shapes.kind.shared_end = 1000;
    EXPECT_TRUE(shapes.Block(32, 1, 1));
}

TEST(Shape, SharedMemoryEndsWhereTheFunctionEndsIt) {
    TwoBlocks shapes;
    EXPECT_TRUE(shapes.Allows({4, 4, 4, 32, 2, 1, 0}));
    EXPECT_TRUE(shapes.Allows({4, 4, 4, 32, 2, 1, 999}));
    EXPECT_FALSE(shapes.Allows({4, 4, 4, 32, 2, 1, 1000}));
    shapes.kind.shared_end = 0; // nothing new
    EXPECT_FALSE(shapes.Allows({4, 4, 4, 32, 2, 1, 0}));
    EXPECT_TRUE(shapes.Grid(5, 5, 5)) << "it ran with 100 bytes";
    shapes.Ran({4, 4, 4, 32, 2, 1, 5000});
    EXPECT_TRUE(shapes.Allows({7, 4, 4, 32, 2, 1, 5000})) << "it ran";
}

TEST(Shape, OfACooperativeKernelMustHaveRunWhole) {
    TwoBlocks shapes;
    shapes.kind.cooperative = 1;
    shapes.kind.shared_end = 0;
    EXPECT_TRUE(shapes.Grid(4, 4, 4));
    EXPECT_FALSE(shapes.Grid(5, 4, 4));
    EXPECT_FALSE(shapes.Grid(4, 5, 4));
    EXPECT_FALSE(shapes.Grid(4, 4, 5));
    EXPECT_TRUE(shapes.Block(64, 1, 1));
}

TEST(Shape, IsNotedOnceAndWhileThereIsRoom) {
    Shapes shapes;
    shapes.kind.shared_end = 0;
    for (uint32_t i = 0; i < 2 * CUS_KIND_SHAPES; i++)
        for (int again = 0; again < 2; again++) {
            shapes.Ran({1, 1, 1, 32 + i, 1, 1, 0});
            EXPECT_EQ(shapes.kind.n_shapes, std::min<uint32_t>(i + 1, CUS_KIND_SHAPES));
            EXPECT_EQ(shapes.Allows({9, 1, 1, 32 + i, 1, 1, 0}), i < CUS_KIND_SHAPES) << i;
        }
    EXPECT_EQ(shapes.kind.cluster[0], 1u) << "what stands behind the shapes";
}

TEST(Shape, EachWordThatDiffersIsSeen) {
    Shapes::Dims dims = {1, 2, 3, 4, 5, 6, 7};
    for (unsigned i = 0; i < CUS_DIMS; i++) {
        Shapes::Dims other = dims;
        EXPECT_TRUE(cus_dims_same(dims.data(), other.data()));
        other[i]++;
        EXPECT_FALSE(cus_dims_same(dims.data(), other.data())) << i;
    }
}

cus_kind OfId(uint32_t id) {
    cus_kind kind = {};
    kind.id = id;
    return kind;
}

TEST(Signature, HoldsEachWordOfTheShapeAndTheKind) {
    const cus_kind kind = OfId(5);
    Shapes::Dims dims = {1, 2, 3, 4, 5, 6, 7};
    std::set<uint64_t> lo, hi;
    auto add = [&](const cus_kind &of) {
        cus_signature made = cus_signature_add({11, 12}, &of, dims.data());
        lo.insert(made.lo);
        hi.insert(made.hi);
    };
    add(kind);
    add(OfId(6));
    for (unsigned i = 0; i < CUS_DIMS; i++) {
        dims[i] += 16u << i;
        add(kind);
        dims[i] -= 16u << i;
    }
    EXPECT_EQ(lo.size(), 2u + CUS_DIMS);
    EXPECT_EQ(hi.size(), 2u + CUS_DIMS);
}

TEST(Signature, OfManyOpsAtOnceIsThatOfOneByOne) {
    const cus_kind kind = OfId(5);
    Shapes::Dims dims = {1, 2, 3, 4, 5, 6, 7};
    cus_signature one_by_one = {11, 12}, own = {0, 0};
    for (uint32_t n = 0; n < 5; n++) {
        cus_signature at_once = cus_signature_append({11, 12}, own, cus_signature_power(n));
        EXPECT_TRUE(cus_signature_same(at_once, one_by_one)) << n;
        EXPECT_FALSE(cus_signature_same({at_once.lo + 1, at_once.hi}, one_by_one)) << n;
        EXPECT_FALSE(cus_signature_same({at_once.lo, at_once.hi + 1}, one_by_one)) << n;
        dims[0]++;
        one_by_one = cus_signature_add(one_by_one, &kind, dims.data());
        own = cus_signature_add(own, &kind, dims.data());
    }
}

} // namespace
