// Shared code of submit_test and submit_fails_test: steps of launches that the submit thread
// patches and launches, and a gate in the driver at which a test stops that thread.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_SUBMITTED_H
#define CUSPLICE_TESTS_UNIT_STREAM_SUBMITTED_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/program.h"

using fake::Counters;
using fake::driver;

constexpr int kOps = 12;

class Submitted : public fake::EngineTest {
  protected:
    static void SetUpTestSuite() { Start({}); }
    static void Start(fake::Settings more) {
        fake::Reset();
        more.insert(more.end(), {
                                    {"CUSPLICE_HOLD_US", "1000000"},
                                    {"CUSPLICE_SUBMIT_NS", "1"},
                                    {"CUSPLICE_DEMOTE", "no"}, // submitted whether that pays or not
                                    {"CUSPLICE_LOG", "error"},
                                });
        ASSERT_TRUE(fake::StartEngine(more));
    }
    void SetUp() override {
        if (std::thread::hardware_concurrency() < 2)
            GTEST_SKIP() << "nothing is submitted where there is one processor";
        fake::Reset();
        driver().fail = [this](const std::string &name) { return Meet(name); };
        stream_ = fake::MakeStream(CU_STREAM_DEFAULT);
        functions_ = fake::MakeFunctions(kOps);
        other_ = fake::MakeFunction("other");
        LaunchOther(stream_); // no function's first time any more
        for (int step = 0; step < 8; step++) {
            Ops(0, kOps);
            Sync();
        }
        ASSERT_GT(driver().calls["cuGraphLaunch"], 0);
        driver().journal.clear();
        expected_.clear();
        before_ = Counters();
    }
    void TearDown() override {
        Open();
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
    }

    // What each call of the driver meets that is made by another thread than the test's: the one
    // named `stops_at_` waits until the gate is opened, and then fails if it is to.
    CUresult Meet(const std::string &name) {
        if (std::this_thread::get_id() == test_ || name != stops_at_ || met_.exchange(true))
            return fails_issued_ && name == "cuLaunchKernel" ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                             : CUDA_SUCCESS;
        while (!open_)
            usleep(100);
        return fails_ ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    void StopAt(const char *name, bool fails) {
        stops_at_ = name;
        fails_ = fails;
        open_ = met_ = false;
    }
    void Open() { open_ = true; }
    void OpenSoon() {
        opener_ = std::thread([this] {
            usleep(20 * 1000);
            Open();
        });
    }
    void Join() {
        if (opener_.joinable())
            opener_.join();
    }

    // Ops [from, to) of a step, each with other params than ever before.
    void Ops(int from, int to) {
        for (int i = from; i < to; i++)
            Op(i, ++value_);
    }
    void Op(int i, uint64_t value, unsigned grid = 1) {
        ASSERT_EQ(fake::Launch(stream_, functions_[i], value, 0, grid), CUDA_SUCCESS);
        expected_.push_back(fake::Line(stream_, "k" + std::to_string(i), value, 0, grid));
    }
    void LaunchOther(CUstream stream) {
        value_++;
        ASSERT_EQ(fake::Launch(stream, other_, value_), CUDA_SUCCESS);
        expected_.push_back(fake::Line(stream, "other", value_));
    }
    void StepEnd() {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        cus_engine_step_end(&ref);
    }
    void Sync() { fake::Sync(stream_); }
    // The ops of a step, one by one, until some have been submitted, and the thread that has them
    // is stopped. Nothing else of the step has been issued then. Returns how many there were.
    int UntilSubmitted(int from = 0) {
        uint64_t submit = Counters().submitted;
        for (int i = from; i < kOps; i++) {
            Ops(i, i + 1);
            if (Counters().submitted > submit) {
                while (!met_)
                    usleep(100);
                return i + 1;
            }
        }
        return 0;
    }
    // The context is dead meanwhile, and no other one is current.
    static void LoseContext(const std::function<void()> &meanwhile) {
        auto current = driver().table.cuCtxGetCurrent;
        auto push = driver().table.cuCtxPushCurrent_v2;
        driver().table.cuCtxGetCurrent = [](CUcontext *context) {
            *context = nullptr;
            return CUDA_SUCCESS;
        };
        driver().table.cuCtxPushCurrent_v2 = [](CUcontext) {
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        };
        meanwhile();
        driver().table.cuCtxGetCurrent = current;
        driver().table.cuCtxPushCurrent_v2 = push;
    }
    static uint64_t Reshaped(int i) {
        return cus_tally_of(("k" + std::to_string(i)).c_str(), true)->reshaped;
    }
    void ExpectAllOut() {
        Join();
        EXPECT_EQ(driver().journal, expected_);
    }
    // From here on all is asked for on a stream of its own, and nothing is stopped. Returns the one
    // before.
    CUstream Elsewhere() {
        CUstream before = stream_;
        driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
        Sync();
        expected_.clear();
        driver().journal.clear();
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        return before;
    }
    // Steps of 24 shapes in turn.
    void Shapes(int rounds) {
        for (int round = 0; round < rounds; round++)
            for (unsigned grid = 1; grid <= 24; grid++) {
                for (int i = 0; i < 4; i++)
                    Op(i, 1000 * grid + i, grid);
                Sync();
            }
    }
    // Of many: the first one that is not.
    void ExpectEachAsAsked() {
        ASSERT_EQ(driver().journal.size(), expected_.size());
        for (size_t i = 0; i < expected_.size(); i++)
            ASSERT_EQ(driver().journal[i], expected_[i]) << i;
    }
    // No stream is looked at for ever, for what it deferred once.
    static void ExpectNothingPends() {
        EXPECT_EQ(last_engine_group_pending(), 0u);
        EXPECT_EQ(last_engine_blocking_pending(), 0u);
    }
    // Steps go on in graphs, and as they were asked for.
    void ExpectRight() {
        stops_at_ = "";
        uint64_t submit = Counters().submitted;
        for (int step = 0; step < 6; step++) {
            Ops(0, kOps);
            Sync();
            ASSERT_EQ(driver().journal, expected_) << "step " << step;
        }
        EXPECT_GT(Counters().submitted, submit);
        fake::ExpectBalance();
    }

    CUstream stream_;
    std::vector<CUfunction> functions_;
    CUfunction other_;
    uint64_t value_ = 0;
    std::vector<std::string> expected_;
    cus_counters before_;
    std::thread::id test_ = std::this_thread::get_id();
    std::string stops_at_;
    std::atomic<bool> open_{true}, met_{false}, fails_{false}, fails_issued_{false};
    std::thread opener_;
};

#endif
