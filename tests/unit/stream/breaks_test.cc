// Promise: graphs end where breaks come, from the first steps on, and nowhere else.
#include "tests/unit/stream/pays.h"

#include <thread>

namespace {

class Breaks : public Pays {};

// Where a thread goes to another stream, what it has deferred is issued: graphs end there, and are
// not joined again for that nothing is deferred there any more. The other stream may be one on
// which nothing is ever deferred.
TEST_F(Breaks, GraphsEndWhereTheThreadGoesToAnotherStream) {
    static CUstream green;
    green = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    auto real = driver().table.cuStreamGetGreenCtx;
    driver().table.cuStreamGetGreenCtx = [](CUstream stream, CUgreenCtx *context) {
        *context = stream == green ? reinterpret_cast<CUgreenCtx>(1) : nullptr;
        return CUDA_SUCCESS;
    };
    for (bool passes : {false, true}) {
        SCOPED_TRACE(passes);
        CUstream here = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        CUstream there = passes ? green : fake::MakeStream(CU_STREAM_NON_BLOCKING);
        auto steps = [&](unsigned n) {
            for (; n; n--) {
                for (unsigned i = 0; i < OPS; i++) {
                    stream_ = i % 40 < 30 ? here : there;
                    Launch(Fixed(i), i);
                }
                for (CUstream stream : {here, there})
                    fake::Sync(stream);
                Wait();
            }
        };
        steps(20);
        Since();
        steps(400);
        cus_counters late = Since();
        EXPECT_EQ(late.in_graphs, 400 * OPS * (passes ? 3 : 4) / 4);
        EXPECT_EQ(late.eager_by[CUS_EAGER_FLUSHED], 0u);
        EXPECT_EQ(late.built, 0u);
    }
    driver().table.cuStreamGetGreenCtx = real;
}

// A call that issues all that is deferred, at the same places in each step: the same.
TEST_F(Breaks, GraphsEndWhereCallsCoverAllStreams) {
    for (cus_scope scope : {CUS_SCOPE_P, CUS_SCOPE_C, CUS_SCOPE_T}) {
        SCOPED_TRACE(scope);
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        auto steps = [&](unsigned n) {
            for (; n; n--, Wait())
                for (unsigned i = 0; i < OPS; i++) {
                    if (i % 40 == 30)
                        cus_engine_flush(scope, nullptr, 9);
                    Launch(Fixed(i), i);
                }
        };
        steps(20);
        Since();
        steps(400);
        cus_counters late = Since();
        EXPECT_EQ(late.in_graphs, 400u * OPS);
        EXPECT_EQ(late.built, 0u);
    }
}

// ... but many such come while a program warms up alone: none of them is where a graph ends.
TEST_F(Breaks, CallsOfTheFirstStepsEndNoGraphs) {
    auto launched = [this](bool calls) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Since();
        for (unsigned step = 0; step < 12; step++, Wait())
            for (unsigned i = 0; i < OPS; i++) {
                if (calls && step < 2 && i % 10 == 5)
                    cus_engine_flush(CUS_SCOPE_P, nullptr, 9);
                Launch(Fixed(i), i);
            }
        return Since().graph_launches;
    };
    uint64_t without = launched(false);
    EXPECT_GT(without, 0u);
    EXPECT_EQ(launched(true), without);
}

// A thread that comes to a stream where another one was has left nothing behind there.
TEST_F(Breaks, AnotherThreadThatComesEndsNoGraphs) {
    auto launched = [this](bool threads) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Since();
        for (unsigned step = 0; step < 40; step++, Wait()) {
            auto third = [this](unsigned which) {
                for (unsigned i = which * OPS / 3; i < (which + 1) * OPS / 3; i++)
                    Launch(Fixed(i), i);
            };
            third(0);
            if (threads)
                std::thread(third, 1).join();
            else
                third(1);
            third(2); // whoever waits was there last, or no step ends
        }
        return Since().graph_launches;
    };
    uint64_t without = launched(false);
    EXPECT_GT(without, 0u);
    EXPECT_EQ(launched(true), without);
}

// A step that ends behind its first op now and then: where a graph ends does not change for it
// again and again.
TEST_F(Breaks, WhatEndsEarlyNowAndThenIsNotBuiltAnewForEver) {
    auto steps = [this](unsigned n) {
        for (unsigned step = 0; step < n; step++, Wait()) {
            Launch(0, 0);
            if (step % 17)
                Launch(1 + step % 13, step % 13);
        }
    };
    steps(20000);
    Since();
    steps(100000);
    EXPECT_LE(Since().built, 1000u);
}

// A call that issues what is deferred, at another place each time.
TEST_F(Breaks, CallsAnywhereMakeNoGraphsAnewForEver) {
    eager_ns = 2400;
    auto steps = [this](unsigned n) {
        for (; n; n--, Wait())
            for (unsigned i = 0; i < OPS; i++) {
                if (random_() % 64 == 0) {
                    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
                    cus_engine_flush(CUS_SCOPE_S, &ref, 9);
                }
                Launch(Fixed(i), i);
            }
    };
    steps(2000);
    Since();
    steps(4000);
    EXPECT_LE(Since().built * 30000, 4000ull * OPS * 2400 / 50) << "a fiftieth of the time";
}

} // namespace
