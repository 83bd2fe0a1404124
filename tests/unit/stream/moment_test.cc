// Promise: a single failure or delay costs little, and does not count against later steps.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

using fake::Counters;
using fake::driver;

enum { OPS = 12, SHAPES = 100 };

std::vector<CUfunction> functions;

CUstream NewStream() {
    return fake::MakeStream(CU_STREAM_NON_BLOCKING);
}

void Turn(CUstream stream, unsigned shape) {
    for (int i = 0; i < OPS; i++)
        ASSERT_EQ(fake::Launch(stream, functions[i], i, 0, 1 + shape), CUDA_SUCCESS);
    fake::Sync(stream);
}

void Rounds(CUstream stream, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (unsigned shape = 0; shape < SHAPES; shape++)
            Turn(stream, shape);
}

void Gone(CUstream stream) {
    cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 5);
    cus_engine_stream_gone(&ref);
}

class Moment : public fake::EngineTest {
  protected:
    // One segment is a step.
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_SEGMENT_FIRST", "12"},
                                       {"CUSPLICE_SEGMENT_MAX", "12"},
                                       {"CUSPLICE_HOLD_US", "1000000"}}));
        functions = fake::MakeFunctions(OPS);
    }
    void SetUp() override {
        NothingFails();
        driver().calls.clear();
        stream_ = NewStream();
        fake::Launch(stream_, functions[0], 1);
    }
    void TearDown() override {
        NothingFails();
        Gone(stream_);
    }
    static void NothingFails() {
        driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    }

    CUstream stream_;
};

// The object of a stream that is gone, in the midst of a long step, serves another one.
TEST_F(Moment, AStreamHasNoStepsOfAnotherOne) {
    uint32_t share = last_engine_share();
    unsigned random = 1;
    for (int i = 0; i < 50000; i++) {
        random = random * 1664525 + 1013904223;
        fake::Launch(stream_, functions[(random >> 16) % OPS], i);
    }
    Gone(stream_);
    stream_ = NewStream();
    fake::Launch(stream_, functions[0], 1);
    EXPECT_EQ(last_engine_share(), share);
}

TEST_F(Moment, ABuildThatFailsIsOfTheTurnThatEndsWithIt) {
    for (bool fail : {false, true}) {
        driver().fail = [&](const std::string &name) {
            return fail && name == "cuGraphInstantiateWithFlags" ? CUDA_ERROR_UNKNOWN
                                                                 : CUDA_SUCCESS;
        };
        uint64_t steps = last_engine_steps(), turns = 0;
        for (int i = 1; i < 20000; i++) {
            fake::Launch(stream_, functions[i % OPS], i);
            if (last_engine_steps() == steps)
                continue;
            steps = last_engine_steps();
            turns++;
            EXPECT_EQ(last_engine_built(), 0u) << turns << (fail ? ", failing" : "");
        }
        EXPECT_GT(turns, 10u);
        Gone(stream_);
        stream_ = NewStream();
        fake::Launch(stream_, functions[0], 0);
    }
}

TEST_F(Moment, ABudgetThatIsFullForAWhileDoesNotEndBuilding) {
    int fails = 0;
    driver().fail = [&](const std::string &name) {
        return name == "cuGraphInstantiateWithFlags" && driver().calls[name] > 20 && fails < 6
                   ? (fails++, CUDA_ERROR_OUT_OF_MEMORY)
                   : CUDA_SUCCESS;
    };
    Rounds(stream_, 200);
    cus_counters before = Counters();
    Rounds(stream_, 1);
    EXPECT_EQ(fails, 6);
    EXPECT_EQ(Counters().sig_exact - before.sig_exact, (uint64_t)SHAPES);
}

// A driver that has no room for graphs any more is asked less and less often.
TEST_F(Moment, WhatCannotBeBuiltIsSeldomTried) {
    int fails = 0;
    driver().fail = [&](const std::string &name) {
        return name == "cuGraphInstantiateWithFlags" && driver().calls[name] > 20
                   ? (fails++, CUDA_ERROR_OUT_OF_MEMORY)
                   : CUDA_SUCCESS;
    };
    Rounds(stream_, 200);
    EXPECT_GE(fails, 6);
    EXPECT_LE(fails, 16) << "of 20000 launches";
}

TEST_F(Moment, GraphsThatAreMadeAnewAreAccountedFor) {
    uint64_t before = last_engine_anew();
    Rounds(stream_, 30);
    EXPECT_EQ(last_engine_anew(), before) << "each is the first one of its shapes";
    for (int turn = 1; turn < 4; turn++) {
        cus_engine_function_changed(functions[3]); // they all go
        Rounds(stream_, 30);
        EXPECT_EQ(last_engine_anew(), before + turn)
            << "but for the first one they are further ones";
    }
}

TEST_F(Moment, TwoLaunchesThatFailFarApartDoNotCostAllGraphs) {
    Rounds(stream_, 30);
    int most = 0;
    for (int round = 0; round < 30; round++)
        for (unsigned shape = 0; shape < SHAPES; shape++) {
            bool fail = (round == 1 && shape == 3) || (round == 28 && shape == 50);
            driver().fail = [&](const std::string &name) {
                return fail && name == "cuGraphLaunch" ? (fail = false, CUDA_ERROR_OUT_OF_MEMORY)
                                                       : CUDA_SUCCESS;
            };
            int before = driver().calls["cuGraphExecDestroy"];
            Turn(stream_, shape);
            most = std::max(most, driver().calls["cuGraphExecDestroy"] - before);
        }
    EXPECT_GT(most, 0) << "none failed";
    EXPECT_LE(most, 2) << "graphs destroyed in one step";
}

} // namespace
