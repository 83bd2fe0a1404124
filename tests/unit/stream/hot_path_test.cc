// Promise: the hot path takes the op that is expected, and no other. What it leaves to the long way
// finds no trace of the attempt.
#include "tests/unit/stream/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST_F(Hold, TakesTheLaunchThatIsExpected) {
    Begin();
    EXPECT_TRUE(Try(1, 101, 0, stream_));
    EXPECT_TRUE(Try(2, 777, 0, stream_)) << "another argument is patched";
    EXPECT_TRUE(driver().journal.empty());
    EXPECT_FALSE(Try(3, 103, 0, stream_)) << "the last launch of a segment launches it";
    EXPECT_TRUE(driver().journal.empty());
    Launch(functions_[3], 103, 0);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0),
                                                          Line("k2", 777, 0), Line("k3", 103, 0)}));
    ExpectBalance();
}

TEST_F(Hold, LeavesEveryOtherLaunchAlone) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_FALSE(Try(0, 100, 0, stream_)) << "nothing is known of the stream";
    Begin();
    EXPECT_FALSE(Try(2, 102, 0, stream_)) << "another function";
    EXPECT_FALSE(TryShape(1, 101, 0, {1, 1, 1, 64, 1, 1, 0}, stream_)) << "a block that never ran";
    EXPECT_FALSE(TryShape(1, 101, 0, {1, 1, 1, 32, 1, 1, 8}, stream_)) << "nor did so much shared";
    EXPECT_FALSE(TryShape(1, 101, 0, {0, 1, 1, 32, 1, 1, 0}, stream_)) << "a grid that none is";
    EXPECT_FALSE(TryShape(1, 101, 0, {1, 65536, 1, 32, 1, 1, 0}, stream_)) << "one too large";
    EXPECT_FALSE(Try(1, 101, 0, other)) << "another stream";
    EXPECT_FALSE(Try(1, 101, 0, stream_, 1, CUS_ABI_PTSZ)) << "another meaning of the handle";
    std::thread([&] { EXPECT_FALSE(Try(1, 101, 0, stream_)) << "another thread"; }).join();
    EXPECT_TRUE(driver().journal.empty());
    EXPECT_TRUE(Try(1, 101, 0, stream_)) << "none of them left a trace";
    Launch(functions_[5], 5, 5);
    EXPECT_EQ(driver().journal,
              (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0), Line("k5", 5, 5)}));
    EXPECT_FALSE(Try(2, 102, 0, stream_)) << "nothing is deferred";
    ExpectBalance();
}

// A grid that the kernel did not have before is one that its node may be given (HAZARDS A12).
TEST_F(Hold, TakesAnotherGrid) {
    Begin();
    EXPECT_TRUE(Try(1, 777, 5, stream_, 3));
    EXPECT_TRUE(Try(2, 102, 0, stream_, 65536));
    EXPECT_TRUE(driver().journal.empty());
    cus_counters before = Counters();
    Launch(functions_[3], 103, 0);
    std::vector<std::string> line = {Line("k0", 100, 0), Line("k1", 777, 5, 3),
                                     Line("k2", 102, 0, 65536), Line("k3", 103, 0)};
    EXPECT_EQ(driver().journal, line);
    EXPECT_EQ(Counters().in_graphs - before.in_graphs, 4u);
    EXPECT_EQ(Counters().sig_patched - before.sig_patched, 1u) << "it counts as another shape";
    ExpectBalance();
}

// A launch with attributes: whether it may be given the grid depends on these as well.
TEST_F(Hold, TakesAnotherGridThatItsAttributesAllow) {
    driver().table.cuLaunchKernelEx = fake::LaunchEx;
    static CUlaunchAttribute of[3];
    of[0].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    of[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    of[1].value.clusterDim.x = 2;
    of[1].value.clusterDim.y = of[1].value.clusterDim.z = 1;
    of[2].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    of[2].value.cooperative = 1;
    driver().table.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID id,
                                                      CUlaunchAttributeValue *value) {
        for (const CUlaunchAttribute &attr : of)
            if (attr.id == id)
                *value = attr.value;
        return CUDA_SUCCESS;
    };
    auto with = [&](int i, uint64_t a, unsigned grid, bool hot) {
        CUlaunchConfig config = {};
        config.gridDimX = grid;
        config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.blockDimX = 32;
        config.hStream = stream_;
        config.attrs = &of[i % 3];
        config.numAttrs = 1;
        uint32_t b = 0;
        void *params[2] = {&a, &b};
        if (hot)
            return hot_launch_ex(&config, functions_[i], CUS_ABI_LEGACY, params);
        cus_launch launch = {};
        launch.form = CUS_LAUNCH_EX;
        launch.stream = {stream_, CUS_ABI_LEGACY};
        launch.f = functions_[i];
        launch.dims[0] = grid;
        launch.dims[1] = launch.dims[2] = launch.dims[4] = launch.dims[5] = 1;
        launch.dims[3] = 32;
        launch.n_attrs = 1;
        launch.attrs = config.attrs;
        launch.params = params;
        launch.config = &config;
        launch.real = (void *)driver().table.cuLaunchKernelEx;
        return fake::Issue(launch) == CUDA_SUCCESS;
    };
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < 4; i++)
            EXPECT_TRUE(with(i, 100 + i, 4, false));
        Sync();
    }
    driver().journal.clear();
    cus_counters before = Counters();
    EXPECT_TRUE(with(0, 100, 4, false));
    EXPECT_FALSE(with(1, 777, 7, true)) << "no number of clusters";
    EXPECT_TRUE(with(1, 777, 6, true));
    EXPECT_FALSE(with(2, 102, 6, true)) << "whether so many blocks fit is for its own call to say";
    EXPECT_TRUE(with(2, 778, 4, true));
    EXPECT_TRUE(driver().journal.empty());
    EXPECT_TRUE(with(3, 103, 5, false));
    EXPECT_EQ(driver().journal,
              (std::vector<std::string>{Line("k0", 100, 0, 4), Line("k1", 777, 0, 6),
                                        Line("k2", 778, 0, 4), Line("k3", 103, 0, 5)}));
    EXPECT_EQ(Counters().in_graphs - before.in_graphs, 4u);
    ExpectBalance();
}

TEST_F(Hold, TakesAPackedBuffer) {
    Begin();
    uint8_t buffer[12];
    uint64_t a = 101;
    memcpy(buffer, &a, 8);
    memset(buffer + 8, 0, 4);
    size_t bytes = sizeof buffer, more = 16;
    const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
    auto form = [&](void *one, void *two, void *three, void *four) {
        void *extra[] = {one, two, three, four, CU_LAUNCH_PARAM_END};
        return hot_launch(functions_[1], dims, stream_, CUS_ABI_LEGACY, nullptr, extra);
    };
    void *const at = CU_LAUNCH_PARAM_BUFFER_POINTER, *const size = CU_LAUNCH_PARAM_BUFFER_SIZE;
    void *nothing[] = {CU_LAUNCH_PARAM_END};
    EXPECT_FALSE(hot_launch(functions_[1], dims, stream_, CUS_ABI_LEGACY, nullptr, nothing));
    EXPECT_FALSE(form(at, buffer, size, &more)) << "of another size";
    EXPECT_FALSE(form(size, &bytes, at, buffer)) << "in another order";
    EXPECT_TRUE(form(at, buffer, size, &bytes));
    Sync();
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0)}));
    Begin();
    buffer[0]++;
    EXPECT_TRUE(form(at, buffer, size, &bytes)) << "of other content than the node's";
    buffer[0]++; // it was copied
    Sync();
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 102, 0)}));
    Begin();
    const uint32_t wider[7] = {9, 1, 1, 32, 1, 1, 0}, never[7] = {9, 1, 1, 96, 1, 1, 0};
    void *extra[] = {at, buffer, size, &bytes, CU_LAUNCH_PARAM_END};
    auto in = [&](const uint32_t *shape, void **as) {
        return hot_launch(functions_[1], shape, stream_, CUS_ABI_LEGACY, nullptr, as);
    };
    EXPECT_FALSE(in(wider, nothing));
    EXPECT_FALSE(in(wider, nullptr)) << "no arguments at all";
    EXPECT_FALSE(in(never, extra));
    EXPECT_TRUE(in(wider, extra)) << "of another grid";
    Sync();
    EXPECT_EQ(driver().journal,
              (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 103, 0, 9)}));
    ExpectBalance();
}

// Threads that match ops on streams of their own write no line of memory that another one writes.
TEST_F(Hold, NoTwoStreamsWriteOneLine) {
    std::vector<hot_memory> all;
    for (int i = 0; i < 6; i++) {
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        Teach(stream_);
        bool taken = false; // not by a segment that is timed: the machine paused before
        for (int more = 0; more < 5 && !taken; more++) {
            if (more)
                Sync();
            Launch(functions_[0], 100, 0);
            taken = Try(1, 777, 0, stream_);
        }
        EXPECT_TRUE(taken) << "in the midst of a segment";
        hot_memory written[2];
        hot_writes(written);
        for (const auto &memory : written) {
            EXPECT_EQ(memory.begin % HOT_LINE, 0u);
            for (const auto &other : all)
                EXPECT_TRUE(memory.begin / HOT_LINE > (other.end - 1) / HOT_LINE ||
                            other.begin / HOT_LINE > (memory.end - 1) / HOT_LINE);
            all.push_back(memory);
        }
        Sync();
    }
    ExpectBalance();
}

// A stream that does not pay is demoted: its ops go straight to the driver.
TEST_F(Hold, AStreamThatDoesNotPayIsPassed) {
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0]));
    LeaveAlone(stream_);
    uint64_t launches = Counters().ops[CUS_OP_LAUNCH];
    EXPECT_TRUE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0]));
    EXPECT_EQ(Counters().ops[CUS_OP_LAUNCH], launches + 1) << "it is counted";
    CUfunction fresh = fake::MakeFunction("fresh");
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, fresh)) << "nobody knows it";
    Launch(fresh, 1, 1);
    EXPECT_TRUE(hot_passes(stream_, CUS_ABI_LEGACY, fresh));
    cus_engine_code_gone();
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, fresh)) << "it may be another now";
    Launch(functions_[0], 1, 1);
    Launch(fresh, 1, 1); // last: one of the same hash would take its place
    EXPECT_TRUE(hot_passes(stream_, CUS_ABI_LEGACY, fresh));
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_PTSZ, functions_[0]));
    EXPECT_FALSE(hot_passes(fake::MakeStream(0), CUS_ABI_LEGACY, functions_[0]));
    std::thread([&] { EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0])); }).join();
    cus_stream_ref never = {fake::MakeStream(0), CUS_ABI_LEGACY};
    cus_engine_stream_gone(&never);
    EXPECT_FALSE(hot_passes(stream_, CUS_ABI_LEGACY, functions_[0])) << "a stream may have gone";
    ExpectBalance();
}

// HAZARDS C5. A launch that failed was no first one.
TEST_F(Hold, AFunctionIsFreshUntilItRan) {
    CUstream passes = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    LeaveAlone(passes);
    CUfunction fresh = fake::MakeFunction("fresh");
    for (bool fails : {true, true, false}) {
        std::thread([&] { Steps(6); }).join(); // whose k0 is deferred then
        driver().journal.clear();
        std::thread([&] { Launch(functions_[0], 100, 0); }).join();
        ASSERT_TRUE(driver().journal.empty());
        driver().fail = [fails](const std::string &name) {
            return fails && name == "cuLaunchKernel" && !driver().journal.empty()
                       ? CUDA_ERROR_INVALID_VALUE
                       : CUDA_SUCCESS;
        };
        EXPECT_EQ(fake::Launch(passes, fresh, 1, 1),
                  fails ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
        ASSERT_FALSE(driver().journal.empty());
        EXPECT_EQ(driver().journal[0], Line(0, 0));
        driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    }
    EXPECT_TRUE(hot_passes(passes, CUS_ABI_LEGACY, fresh));
    Sync();
    ExpectBalance();
}

// A thread that goes from stream to stream knows those again that it was on lately, as long as none
// may have gone.
TEST_F(Hold, StreamsInTurnThatDoNotPayArePassed) {
    std::vector<CUstream> streams(40);
    for (CUstream &stream : streams)
        stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    LeaveAlone(streams[0]);
    LeaveAlone(streams[1]);
    auto passed = [&] {
        unsigned n = 0;
        for (CUstream stream : {streams[0], streams[1]})
            n += hot_passes(stream, CUS_ABI_LEGACY, functions_[0]);
        return n;
    };
    uint64_t launches = Counters().ops[CUS_OP_LAUNCH];
    EXPECT_EQ(passed(), 2u);
    EXPECT_EQ(passed(), 2u);
    EXPECT_EQ(Counters().ops[CUS_OP_LAUNCH], launches + 4) << "they are counted";
    EXPECT_FALSE(hot_passes(streams[0], CUS_ABI_PTSZ, functions_[0]));
    cus_stream_ref gone = {streams[0], CUS_ABI_LEGACY};
    cus_engine_stream_gone(&gone);
    EXPECT_EQ(passed(), 0u) << "it may be another one now, and so may each";
    fake::Launch(streams[0], functions_[0], 1);
    fake::Launch(streams[1], functions_[0], 1);
    EXPECT_EQ(passed(), 1u) << "the first one is new";
    for (unsigned i = 2; i < streams.size(); i++)
        LeaveAlone(streams[i]);
    unsigned known = 0;
    for (CUstream stream : streams)
        known += hot_passes(stream, CUS_ABI_LEGACY, functions_[0]);
    EXPECT_GT(known, 8u);
    EXPECT_LT(known, streams.size()) << "there are not so many places";
    driver().journal.clear();
    std::vector<std::string> expected;
    for (unsigned i = 0; i < streams.size(); i++) {
        fake::Launch(streams[i], functions_[0], i);
        expected.push_back(fake::Line(streams[i], "k0", i));
    }
    EXPECT_EQ(driver().journal, expected);
    ExpectBalance();
}

// Whatever route the program switched by.
TEST_F(Hold, ALaunchInAnotherContextIsAnother) {
    Begin();
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        *context = (CUcontext)0x2000;
        return CUDA_SUCCESS;
    };
    EXPECT_FALSE(Try(1, 101, 0, stream_));
    EXPECT_FALSE(Try(1, 777, 0, stream_, 4)) << "nor in another shape";
    uint8_t buffer[12] = {7};
    size_t bytes = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    for (uint32_t grid : {1u, 4u}) {
        const uint32_t dims[7] = {grid, 1, 1, 32, 1, 1, 0};
        EXPECT_FALSE(hot_launch(functions_[1], dims, stream_, CUS_ABI_LEGACY, nullptr, extra));
    }
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        *context = (CUcontext)0x1000;
        return CUDA_SUCCESS;
    };
    EXPECT_TRUE(Try(1, 101, 0, stream_));
    Sync();
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0)}));
}

TEST_F(Hold, AStreamThatMayHaveGoneIsLookedUpAgain) {
    Begin();
    cus_stream_ref never = {fake::MakeStream(0), CUS_ABI_LEGACY};
    cus_engine_stream_gone(&never);
    EXPECT_FALSE(Try(1, 101, 0, stream_));
}

TEST_F(Hold, AnErrorThatWaitsIsAnsweredFirst) {
    Begin();
    driver().fail = [](const std::string &name) {
        return name == "cuLaunchKernel" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
    };
    std::thread([&] { cus_engine_flush(CUS_SCOPE_P, nullptr, 0); }).join();
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    EXPECT_FALSE(Try(1, 101, 0, stream_));
    EXPECT_EQ(Launch(functions_[1], 101, 0), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(Launch(functions_[2], 102, 0), CUDA_SUCCESS);
    ExpectBalance();
}

} // namespace
