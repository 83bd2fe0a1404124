// Promise: each form of a break list selects the right kernels of a known trace.
#include "tools/bench/breaks.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/player/made.h"

namespace {

class Breaks : public testing::Test {
  protected:
    // A trace that launches each of these kernels so often.
    void Launches(const std::vector<std::pair<std::string, int>> &kernels) {
        char error[512];
        std::string path = Fresh("breaks.cst");
        Made m(path);
        uint32_t module = m.Module(), lane = m.Lane(CST_STREAM_LEGACY);
        for (const auto &[name, calls] : kernels) {
            uint32_t code = m.Code(module, name, {});
            for (int i = 0; i < calls; i++)
                m.Launch(lane, code, 1, 1, {});
        }
        ASSERT_EQ(m.Close(), 0);
        trace_.reset(cst_open(path.c_str(), error, sizeof error));
        ASSERT_TRUE(trace_) << error;
        ASSERT_TRUE(bench_lists_init(&lists_, trace_.get()));
    }
    void TearDown() override { bench_lists_free(&lists_); }

    // What was wrong, or "".
    std::string Add(const std::string &text, unsigned top = 8) {
        char error[512] = "";
        bool good = bench_lists_add(&lists_, text.c_str(), top, error, sizeof error);
        EXPECT_EQ(good, !*error) << error;
        return error;
    }
    // "label: patterns (calls)" of a list.
    std::string List(unsigned i) {
        const bench_breaks &list = lists_.lists[i];
        return std::string(list.label) + ": " + (list.eager ? list.eager : "-") + " (" +
               std::to_string(list.calls) + ")";
    }
    std::string Every(const std::vector<std::pair<std::string, int>> &kernels, int n) {
        bench_lists_free(&lists_);
        Launches(kernels);
        std::string wrong = Add("every:" + std::to_string(n));
        return wrong.empty() ? List(0) : wrong;
    }

    std::unique_ptr<cst_trace, void (*)(cst_trace *)> trace_{nullptr, cst_free};
    bench_lists lists_ = {};
};

TEST_F(Breaks, EveryTakesTheKernelsNearestToItsShare) {
    // One alone; two together; the nearest from below, from above; the fewest where all are too
    // many.
    EXPECT_EQ(Every({{"a", 60}, {"b", 30}, {"c", 10}}, 10), "every:10: mangled:c (10)");
    EXPECT_EQ(Every({{"a", 90}, {"b", 7}, {"c", 3}}, 10), "every:10: mangled:c;mangled:b (10)");
    EXPECT_EQ(Every({{"a", 78}, {"b", 14}, {"c", 8}}, 10), "every:10: mangled:c (8)");
    EXPECT_EQ(Every({{"a", 84}, {"b", 12}, {"c", 4}}, 10), "every:10: mangled:b (12)");
    EXPECT_EQ(Every({{"a", 60}, {"b", 40}}, 10), "every:10: mangled:b (40)");
    EXPECT_EQ(Every({{"a", 60}, {"b", 40}}, 2), "every:2: mangled:b (40)");
    EXPECT_EQ(Every({{"a", 7}}, 1000), "every:1000: mangled:a (7)");
    // No kernel stands for itself twice.
    EXPECT_EQ(Every({{"a", 95}, {"b", 5}}, 10), "every:10: mangled:b (5)");
    EXPECT_EQ(Every({{"a[1]", 10}}, 10), "the trace has no kernel that a pattern can name");
}

TEST_F(Breaks, PatternsNameEachKernelOnce) {
    Launches({{"_ZN2at4gemmEv", 3}, {"_ZN2at4gemvEv", 4}, {"other", 5}});
    EXPECT_EQ(Add("gem*;gemv"), "");
    EXPECT_EQ(List(0), "gem*;gemv: gem*;gemv (7)");
    EXPECT_EQ(lists_.lists[0].n, 2u);
    EXPECT_STREQ(lists_.lists[0].kernels[0].base, "gemv"); // launched more often
    EXPECT_EQ(Add("none"), "");
    EXPECT_EQ(List(1), "none: - (0)");
    EXPECT_EQ(Add("gem*;gemv"), ""); // a second time
    EXPECT_EQ(lists_.n, 2u);
    EXPECT_NE(Add("gem*;othr").find("the nearest is other"), std::string::npos);
}

TEST_F(Breaks, SweepIsAListForEachFrequentKernel) {
    Launches({{"_ZN2at4gemmIfEvv", 3}, {"_ZN2at4gemmIdEvv", 4}, {"other", 5}, {"rare", 1}});
    EXPECT_EQ(Add("sweep", 3), "");
    ASSERT_EQ(lists_.n, 3u);
    EXPECT_EQ(List(0), "other: mangled:other (5)");
    EXPECT_EQ(List(1), "gemm: mangled:_ZN2at4gemmIdEvv (4)");
    EXPECT_EQ(List(2), "gemm#2: mangled:_ZN2at4gemmIfEvv (3)");
}

TEST_F(Breaks, ThereIsAnEnd) {
    Launches({{"a", 1}});
    for (int i = 0; i < BENCH_LISTS; i++)
        EXPECT_EQ(Add("every:" + std::to_string(i + 2)), "");
    EXPECT_EQ(Add("none"), "more than 64 break lists");
}

} // namespace
