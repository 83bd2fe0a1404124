// Promise: the micro kernels do what kernels/README.md says, for block sizes that do not divide n,
// with barriers, and on two threads at once.
#include <cstdint>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/kernels.h"
#include "tests/unit/kernels/run.h"

namespace {

using Words = std::vector<unsigned>;

Words numbers(size_t count) {
    Words w(count);
    for (size_t i = 0; i < count; i++) {
        w[i] = (unsigned)(i * 2654435761u + 12345u);
    }
    return w;
}

TEST(Micro, ElementwiseKernelsStopAtN) {
    const int n = 100;
    Words w(n + 28, 7);
    run("fill", {2}, {64}, 0, w.data(), 9u, n);
    EXPECT_EQ(w[0], 9u);
    EXPECT_EQ(w[99], 9u);
    EXPECT_EQ(w[100], 7u);

    std::vector<int> s(n + 28, -1);
    run("iota", {4}, {32}, 0, s.data(), 5, n);
    run("add_scalar", {4}, {32}, 0, s.data(), INT32_MAX, n);
    EXPECT_EQ(s[0], (int)(5u + INT32_MAX));
    EXPECT_EQ(s[99], (int)(104u + INT32_MAX));
    EXPECT_EQ(s[100], -1);

    Words from = numbers(n), to(n + 1, 0);
    run("copy_words", {1}, {128}, 0, to.data(), (const unsigned *)from.data(), n);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
    EXPECT_EQ(to[n], 0u);
}

TEST(Micro, ThreeDimensionalLaunchRunsEveryThreadOnce) {
    unsigned count = 0;
    run("touch", {3, 4, 5}, {2, 3, 7}, 0, &count);
    EXPECT_EQ(count, 3u * 4 * 5 * 2 * 3 * 7);
}

TEST(Micro, ChainDoesNotCommute) {
    Words a(4, 1), b(4, 1);
    run("chain", {1}, {4}, 0, a.data(), 3u, 1u, 4);
    run("chain", {1}, {4}, 0, a.data(), 7u, 5u, 4);
    run("chain", {1}, {4}, 0, b.data(), 7u, 5u, 4);
    run("chain", {1}, {4}, 0, b.data(), 3u, 1u, 4);
    EXPECT_EQ(a, Words(4, 33));
    EXPECT_EQ(b, Words(4, 37));
}

TEST(Micro, AxpyAndRounds) {
    std::vector<float> x = {1, 2, 3}, y = {10, 20, 30};
    run("axpy", {1}, {32}, 0, y.data(), (const float *)x.data(), 2.0f, 3);
    EXPECT_EQ(y, (std::vector<float>{12, 24, 36}));
    run("saxpy_n", {3}, {1}, 0, y.data(), (const float *)x.data(), 0.5f, 3, 4);
    EXPECT_EQ(y, (std::vector<float>{14, 28, 42}));
}

// Of the whole process, in MiB: the stacks of a block are reserved, and mostly never touched.
size_t AddressSpace() {
    std::ifstream pages("/proc/self/statm");
    size_t n = 0;
    pages >> n;
    return n * 4096 >> 20;
}

TEST(Micro, StacksOfFibersGoWithTheirThread) {
    Words w = numbers(1024);
    size_t before = 0;
    for (int i = 0; i < 24; i++) {
        unsigned long long sum = 0;
        std::thread([&] {
            run("reduce_dynamic", {1}, {1024}, 8192, &sum, (const unsigned *)w.data(), 1024);
        }).join();
        if (i == 3) { // whatever a first thread leaves, such as an arena, is there
            before = AddressSpace();
        }
    }
    // 20 times 64 MiB if they stayed.
    EXPECT_LT(AddressSpace(), before + 500);
}

TEST(Micro, ReductionsMeetAtBarriers) {
    Words w = numbers(10007);
    unsigned long long right = std::accumulate(w.begin(), w.end(), 0ull);
    for (unsigned blocks : {1u, 3u, 200u}) {
        unsigned long long sum = 1000;
        run("reduce_sum", {blocks}, {128}, 0, &sum, (const unsigned *)w.data(), 10007);
        EXPECT_EQ(sum, right + 1000) << blocks;
        for (unsigned threads : {1u, 2u, 64u, 1024u}) {
            sum = 0;
            run("reduce_dynamic", {blocks}, {threads}, 8 * threads, &sum,
                (const unsigned *)w.data(), 10007);
            EXPECT_EQ(sum, right) << blocks << " " << threads;
        }
    }
}

TEST(Micro, GridsOnTwoThreadsDoNotDisturbEachOther) {
    Words w = numbers(4000);
    unsigned long long right = std::accumulate(w.begin(), w.end(), 0ull);
    unsigned long long shared_sum = 0;
    auto work = [&] {
        for (int i = 0; i < 50; i++) {
            unsigned long long own = 0;
            run("reduce_sum", {2}, {128}, 0, &own, (const unsigned *)w.data(), 4000);
            EXPECT_EQ(own, right);
            run("reduce_sum", {2}, {128}, 0, &shared_sum, (const unsigned *)w.data(), 4000);
        }
    };
    std::thread a(work), b(work);
    a.join();
    b.join();
    EXPECT_EQ(shared_sum, 100 * right);
}

TEST(Micro, ChecksumSeesContentPlaceAndLengthButNotTheGrid) {
    Words w = numbers(100);
    auto sum = [&](const void *data, unsigned long long bytes, unsigned blocks, unsigned threads) {
        unsigned long long out = 0;
        run("checksum", {blocks}, {threads}, 0, &out, data, bytes);
        return out;
    };
    unsigned long long first = sum(w.data(), 400, 1, 1);
    EXPECT_EQ(first, sum(w.data(), 400, 7, 33));
    EXPECT_NE(first, sum(w.data(), 399, 1, 1));
    EXPECT_NE(first, sum((const char *)w.data() + 1, 399, 1, 1));
    Words other = w;
    other[99] ^= 0x80000000u;
    EXPECT_NE(first, sum(other.data(), 400, 1, 1));
    other = w;
    std::swap(other[0], other[2]);
    std::swap(other[1], other[3]);
    EXPECT_NE(first, sum(other.data(), 400, 1, 1));
    EXPECT_EQ(0ull, sum(w.data(), 0, 1, 1));
    Words zero(100, 0);
    EXPECT_NE(sum(zero.data(), 400, 1, 1), sum(zero.data(), 392, 1, 1));
}

TEST(Micro, SpinSeesAFlagThatAnotherThreadSetsAndGivesUpOtherwise) {
    unsigned flag = 0, out = 0;
    run("spin_until", {1}, {1}, 0, (const volatile unsigned *)&flag, 1u, 100ull, &out);
    EXPECT_EQ(out, 2u);
    std::thread waiter([&] {
        run("spin_until", {1}, {1}, 0, (const volatile unsigned *)&flag, 5u, 1ull << 40, &out);
    });
    run("set_flag", {1}, {1}, 0, (volatile unsigned *)&flag, 5u);
    waiter.join();
    EXPECT_EQ(out, 1u);
}

TEST(Micro, JoinWordsTakesInFourParameters) {
    unsigned long long word = 5;
    run("join_words", {1}, {1}, 0, &word, 3ull, 1000000007ull, 9ull);
    EXPECT_EQ(word, (5ull ^ 3) * 1000000007 + 9);
}

TEST(Micro, EveryByteOfManyParamsCounts) {
    struct cus_mixed mixed = {-3, 2.5, {1, -2, 3}};
    unsigned j = 77;
    auto join = [&](signed char a, short b, int c, long long d, float e, double f, unsigned char g,
                    struct cus_mixed h, unsigned short i, unsigned long long k) {
        unsigned long long out = 0;
        run("many_params", {1}, {1}, 0, &out, a, b, c, d, e, f, g, h, i, (const unsigned *)&j, k);
        return out;
    };
    unsigned long long right = join(1, 2, 3, 4, 5.5f, 6.5, 7, mixed, 8, 9);
    EXPECT_EQ(right, join(1, 2, 3, 4, 5.5f, 6.5, 7, mixed, 8, 9));
    EXPECT_NE(right, join(2, 2, 3, 4, 5.5f, 6.5, 7, mixed, 8, 9));
    EXPECT_NE(right, join(1, 2, 3, 4, 5.5f, 6.25, 7, mixed, 8, 9));
    EXPECT_NE(right, join(1, 2, 3, 4, 5.5f, 6.5, 7, mixed, 8, 10));
    mixed.parts[2] = 4;
    EXPECT_NE(right, join(1, 2, 3, 4, 5.5f, 6.5, 7, mixed, 8, 9));
    mixed.parts[2] = 3;
    j = 78;
    EXPECT_NE(right, join(1, 2, 3, 4, 5.5f, 6.5, 7, mixed, 8, 9));
}

TEST(Micro, BigParamsComeByValue) {
    struct cus_big big;
    Words out(CUS_BIG_WORDS, 0);
    for (unsigned i = 0; i < CUS_BIG_WORDS; i++) {
        big.word[i] = i * i + 1;
    }
    run("big_params", {1}, {CUS_BIG_WORDS}, 0, out.data(), big);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), big.word));
}

TEST(Micro, OverlapReadsOneBufferAndWritesAnother) {
    Words from(100), to(100, 0);
    for (unsigned i = 0; i < 100; i++) {
        from[i] = i;
    }
    for (int waits : {0, 1}) {
        run("overlap", {2}, {64}, 0, to.data(), (const unsigned *)from.data(), 3u, 7u, 99, waits);
        for (unsigned i = 0; i < 99; i++) {
            EXPECT_EQ(to[i], 3 * i + 7);
        }
        EXPECT_EQ(to[99], 0u);
    }
}

TEST(Micro, ClusterTouchCountsBlocks) {
    Words w(4, 0);
    run("cluster_touch", {4}, {1}, 0, w.data());
    EXPECT_EQ(w, Words(4, 1));
}

TEST(Micro, TrapIsReportedOnceAndOnlyIfItHappened) {
    unsigned word = 0;
    run("trap", {1}, {1}, 0, &word);
    EXPECT_EQ(cusim_kernel_take_trap(), 0);
    word = 1;
    run("trap", {1}, {1}, 0, &word);
    EXPECT_NE(cusim_kernel_take_trap(), 0);
    EXPECT_EQ(cusim_kernel_take_trap(), 0);
}

} // namespace
