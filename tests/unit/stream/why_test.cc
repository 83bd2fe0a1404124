// Promise: the engine counts each eager op, and each run that ends, under the kernel or call that
// caused it. The counts add up to what was issued.
#include "tests/unit/stream/calls.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

extern "C" {
#include "shim/api/api.h"
}

namespace {

using fake::driver;

class Why : public fake::EngineTest {
  protected:
    static void SetUpTestSuite() {
        std::string config = testing::TempDir() + "why.conf";
        std::ofstream(config) << "segment_first = 64\nhold_us = 1000000\nlive = no\n"
                              << "[rules]\neager = rule_*\nnever_defer = spin_*\nuniform = uni_*\n"
                              << "eager = nobody_has_this_*\neager = rule_hidden\n";
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_CONFIG", config}}));
    }

    void SetUp() override {
        fake::Reset();
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        // Tallies live as long as the engine, which has more of them than a report shows.
        unsigned at = 0;
        for (cus_tally *tally = nullptr; (tally = cus_tally_next(tally, &at));) {
            for (unsigned why = 0; why < CUS_WHYS; why++)
                tally->alone[why] = tally->cut_ops[why] = tally->cuts[why] = 0;
            tally->in_graphs = tally->reshaped = 0;
        }
        before_ = Breaks();
        sums_ = Sums();
        charged_ = Charged();
    }

    // Flushes because of an op, which are charged to that op.
    static std::vector<uint64_t> Charged() {
        cus_counters counters = fake::Counters();
        std::vector<uint64_t> charged;
        for (cus_cause cause : {CUS_CAUSE_RULE, CUS_CAUSE_DIVERGED, CUS_CAUSE_UNSUPPORTED}) {
            charged.push_back(counters.cuts[cause]);
            charged.push_back(counters.cut_ops[cause]);
        }
        return charged;
    }

    // Ops issued one by one, and those that the report has a reason for.
    std::pair<uint64_t, uint64_t> Sums() {
        cus_counters counters = fake::Counters();
        cus_engine_report(&report_, &counters, cus_api_name);
        std::pair<uint64_t, uint64_t> sums = {0, report_.more_launches};
        for (uint64_t n : counters.eager_by)
            sums.first += n;
        for (unsigned i = 0; i < report_.n_breaks; i++)
            sums.second += report_.breaks[i].launches;
        return sums;
    }

    void TearDown() override {
        // Every op that went out by itself is counted once, whatever came before.
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        auto now = Sums();
        EXPECT_EQ(now.first - sums_.first, now.second - sums_.second);
        EXPECT_GT(now.first, sums_.first);
        EXPECT_EQ(Charged(), charged_);
        cus_engine_code_gone();
    }

    using Counts = std::map<std::string, std::pair<uint64_t, uint64_t>>;

    // "name reason" -> launches, runs
    Counts Breaks() {
        cus_counters counters = fake::Counters();
        cus_engine_report(&report_, &counters, cus_api_name);
        Counts all;
        for (unsigned i = 0; i < report_.n_breaks; i++)
            all[std::string(report_.breaks[i].name) + " " + report_.breaks[i].reason] = {
                report_.breaks[i].launches, report_.breaks[i].runs};
        return all;
    }

    // What this test added.
    Counts Added() {
        Counts added;
        for (const auto &now : Breaks()) {
            auto old = before_.count(now.first) ? before_[now.first] : std::make_pair(0ul, 0ul);
            if (now.second != old)
                added[now.first] = {now.second.first - old.first, now.second.second - old.second};
        }
        return added;
    }

    CUfunction F(const std::string &name) {
        if (!functions_.count(name))
            functions_[name] = fake::MakeFunction(name);
        return functions_[name];
    }

    void Launch(const std::string &name, unsigned grid = 1, unsigned block = 32,
                CUstream on = nullptr, void **extra = nullptr) {
        fake::Call call(on ? on : stream_, F(name), 1, 2, grid, block);
        call.launch.extra = extra;
        ASSERT_EQ(fake::Issue(call.launch), CUDA_SUCCESS);
    }

    void Sync() {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_T, &ref, CUS_ROW_cuStreamSynchronize);
        cus_engine_step_end(&ref);
    }

    void Event() {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuEventRecord);
    }

    // p0 .. p5, known and in one graph: with warmup = 2 the third step builds it.
    void Teach(const std::string &p, int steps = 4) {
        for (int step = 0; step < steps; step++) {
            for (int i = 0; i < 6; i++)
                Launch(p + std::to_string(i));
            Sync();
        }
    }

    CUstream stream_;
    std::map<std::string, CUfunction> functions_;
    cus_report report_;
    Counts before_;
    std::pair<uint64_t, uint64_t> sums_;
    std::vector<uint64_t> charged_;
};

using Counts = std::map<std::string, std::pair<uint64_t, uint64_t>>;

TEST_F(Why, FirstThenWarmupThenNothing) {
    Teach("a", 5);
    Counts expected = {{"cuStreamSynchronize api", {0, 3}}};
    for (int i = 0; i < 6; i++) {
        std::string name = "a" + std::to_string(i);
        expected[name + " first"] = {1, 0};
        expected[name + " warmup"] = {1, 0};
    }
    EXPECT_EQ(Added(), expected);
}

TEST_F(Why, AnEagerRuleEndsARunEachTime) {
    for (int step = 0; step < 6; step++) {
        for (const char *name : {"b0", "b1", "rule_x", "b2", "b3"})
            Launch(name);
        Sync();
    }
    Counts added = Added();
    EXPECT_EQ(added["rule_x rule"], std::make_pair(6ul, 4ul));
    EXPECT_EQ(added["cuStreamSynchronize api"], std::make_pair(0ul, 4ul));
}

TEST_F(Why, RulesHaveTheirOwnReasons) {
    for (int step = 0; step < 3; step++) {
        Launch("spin_y");
        Launch("uni_z");
        Sync();
    }
    EXPECT_EQ(Added()["spin_y never_defer"], std::make_pair(3ul, 0ul));
    EXPECT_EQ(Added()["uni_z uniform_rule"], std::make_pair(3ul, 0ul));
}

// Deferred launches that a call lets out are the call's, the rest of the segment is counted as
// such.
TEST_F(Why, ACallThatCutsASegmentIsCharged) {
    Teach("c");
    before_ = Breaks();
    Launch("c0");
    Launch("c1");
    Event();
    for (int i = 2; i < 6; i++)
        Launch("c" + std::to_string(i));
    Sync();
    EXPECT_EQ(Added(), (Counts{{"cuEventRecord api", {2, 1}},
                               {"c2 rest", {1, 0}},
                               {"c3 rest", {1, 0}},
                               {"c4 rest", {1, 0}},
                               {"c5 rest", {1, 0}}}));
}

// ... also where it comes when the segment has just gone out: the next one could have been part of
// it.
TEST_F(Why, ACallBehindASegmentEndsARun) {
    Teach("d");
    before_ = Breaks();
    for (int i = 0; i < 6; i++)
        Launch("d" + std::to_string(i));
    Event();
    Event();
    Sync();
    EXPECT_EQ(Added(), (Counts{{"cuEventRecord api", {0, 1}}}));
}

TEST_F(Why, ACallThatNamesNoStreamEndsTheRunOfItsThread) {
    Teach("d");
    before_ = Breaks();
    for (int i = 0; i < 6; i++)
        Launch("d" + std::to_string(i));
    cus_engine_flush(CUS_SCOPE_P, nullptr, CUS_ROW_cuMemAlloc_v2);
    Sync();
    EXPECT_EQ(Added(), (Counts{{"cuMemAlloc_v2 api", {0, 1}}}));
}

TEST_F(Why, TheKernelThatCameInsteadIsCharged) {
    Teach("e");
    Launch("other"); // known, so that it is no first launch
    Sync();
    before_ = Breaks();
    Launch("e0");
    Launch("e1");
    Launch("other");
    Sync();
    EXPECT_EQ(Added(), (Counts{{"other diverged", {2, 1}}, {"other warmup", {1, 0}}}));
}

TEST_F(Why, ANewBlockSizeIsSaid) {
    Teach("f");
    before_ = Breaks();
    Launch("f0");
    Launch("f1", 1, 64);
    Sync();
    EXPECT_EQ(Added(), (Counts{{"f1 shape", {2, 1}}}));
    before_ = Breaks();
    Launch("f0", 1, 128);
    Sync();
    EXPECT_EQ(Added(), (Counts{{"f0 shape", {1, 0}}}));
}

TEST_F(Why, ASingleOpIsTooShortForAGraph) {
    for (int step = 0; step < 5; step++) {
        Launch("lonely");
        Sync();
    }
    EXPECT_EQ(
        Added(),
        (Counts{{"lonely first", {1, 0}}, {"lonely warmup", {1, 0}}, {"lonely short", {3, 0}}}));
}

TEST_F(Why, ArgumentsThatAreNotAsTheLayoutSays) {
    Launch("g");
    before_ = Breaks();
    void *extra[] = {CU_LAUNCH_PARAM_END}; // beside kernelParams, which the driver would judge
    Launch("g", 1, 32, nullptr, extra);
    EXPECT_EQ(Added(), (Counts{{"g arguments", {1, 0}}}));
}

TEST_F(Why, NeitherSuspendedNorProfiledNorCapturedNorUnbuiltOpsAreMixedUp) {
    Teach("h");
    before_ = Breaks();
    cus_engine_suspend(true);
    Launch("h0");
    cus_engine_suspend(false);
    EXPECT_EQ(Added(), (Counts{{" suspended", {1, 0}}}));
    before_ = Breaks();
    cus_engine_profiling(true);
    Launch("h0");
    cus_engine_profiling(false);
    Sync();
    EXPECT_EQ(Added(), (Counts{{"h0 profiler", {1, 0}}}));
    before_ = Breaks();
    fake::Of(stream_)->program_captures = true;
    Launch("h0");
    fake::Of(stream_)->program_captures = false;
    EXPECT_EQ(Added(), (Counts{{"h0 capture", {1, 0}}}));
    Sync();
    before_ = Breaks();
    Launch("h1", 1, 32, CU_STREAM_PER_THREAD);
    EXPECT_EQ(Added(), (Counts{{" per_thread_stream", {1, 0}}}));
}

TEST_F(Why, AGraphThatIsRefusedIsChargedToItsNode) {
    Teach("i");
    before_ = Breaks();
    driver().fail = [](const std::string &call) {
        return call == "cuGraphExecKernelNodeSetParams_v2" ? CUDA_ERROR_INVALID_VALUE
                                                           : CUDA_SUCCESS;
    };
    for (int i = 0; i < 6; i++)
        Launch("i" + std::to_string(i), i == 3 ? 7 : 1);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    Sync();
    EXPECT_EQ(Added(), (Counts{{"i3 refused", {6, 1}}}));
}

TEST_F(Why, AGraphThatCannotBeBuiltIsChargedToItsHead) {
    Teach("j", 2);
    before_ = Breaks();
    driver().fail = [](const std::string &call) {
        return call == "cuGraphInstantiateWithFlags" ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    Teach("j", 1);
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    EXPECT_EQ(Added(), (Counts{{"j0 not_built", {6, 1}}}));
    before_ = Breaks();
    Teach("j", 1);
    EXPECT_EQ(Added()["j0 back_off"], std::make_pair(1ul, 0ul));
}

TEST_F(Why, AShapeThatChangesEachStepIsNamed) {
    for (unsigned step = 0; step < 20; step++) {
        for (int i = 0; i < 6; i++)
            Launch("s" + std::to_string(i), i == 2 ? step + 1 : 1);
        Sync();
    }
    Breaks();
    Breaks(); // a look changes nothing
    ASSERT_EQ(report_.n_shapes, 1u);
    EXPECT_STREQ(report_.shapes[0].name, "s2");
    EXPECT_EQ(report_.shapes[0].launches, 20u);
    // Two steps are learned, the third builds the graph.
    EXPECT_EQ(report_.shapes[0].changed, 17u);
}

TEST_F(Why, RulesThatNoKernelMatchesAreNamed) {
    Launch("rule_hidden"); // another rule decides, but it is matched
    Launch("spin_once");
    Launch("uni_once");
    Breaks();
    ASSERT_EQ(report_.n_rules, 1u);
    EXPECT_STREQ(report_.rules[0].pattern, "nobody_has_this_*");
    EXPECT_STREQ(report_.rules[0].policy, "eager");
    EXPECT_EQ(report_.rules[0].line, 8);
}

// What graphs hold, also of those whose code has gone.
// An engine of its own: of those that are gone the most used ones are kept.
class WhyOfGraphs : public Why {};

TEST_F(WhyOfGraphs, AreListedWithWhatTheyHold) {
    Teach("t", 7);
    Breaks();
    const cus_report_segment *found = nullptr;
    for (unsigned i = 0; i < report_.n_segments; i++)
        if (std::string(report_.largest[i].first) == "t0")
            found = &report_.largest[i];
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ops, 6u);
    EXPECT_EQ(found->variants, 1u);
    EXPECT_EQ(found->launches, 5u);
    EXPECT_STREQ(found->last, "t5");
    EXPECT_FALSE(found->gone);
    EXPECT_EQ(report_.segments, 1u);
    EXPECT_EQ(report_.segment_ops, 6u);
    EXPECT_EQ(report_.segment_bytes, found->bytes);
    uint64_t bytes = found->bytes, gone = report_.gone, gone_ops = report_.gone_ops;
    EXPECT_GT(bytes, 0u);
    cus_engine_code_gone();
    Breaks();
    EXPECT_EQ(report_.segments, 0u);
    EXPECT_EQ(report_.gone, gone + 1);
    EXPECT_EQ(report_.gone_ops, gone_ops + 6);
    found = nullptr;
    for (unsigned i = 0; i < report_.n_segments; i++)
        if (std::string(report_.largest[i].first) == "t0")
            found = &report_.largest[i];
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->gone);
    EXPECT_EQ(found->bytes, bytes);
    EXPECT_EQ(found->launches, 5u);
}

// What keeps a segment from beginning where the plan would begin one.
TEST_F(Why, WhatASegmentWaitsForIsSaid) {
    Teach("m");
    auto first = [&](const char *name = "m0") {
        before_ = Breaks();
        Launch(name);
        Counts added = Added();
        Sync();
        return added;
    };
    EXPECT_EQ(first(), (Counts{})) << "nothing does";
    opening_begins();
    EXPECT_EQ(first(), (Counts{{"m0 opening", {1, 0}}}));
    opening_ends();
    driver().table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus *) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    };
    EXPECT_EQ(first(), (Counts{{"m0 capture", {1, 0}}}));
    driver().table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus *) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    };
    EXPECT_EQ(first(), (Counts{{"m0 capture", {1, 0}}}));
    fake::Reset();
    Teach("n", 2);
    WhileAnotherThreadBuilds([&] { EXPECT_EQ(first("n0"), (Counts{{"n0 not_yet", {1, 0}}})); });
}

// Just when a segment is to begin, another thread has destroyed the stream, and its handle is a new
// one's.
TEST_F(Why, AStreamThatWentMeanwhileIsSaid) {
    Teach("o");
    before_ = Breaks();
    driver().table.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        fake::Of(stream)->id += 1000;
        streams_may_be_others();
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    };
    Launch("o0");
    EXPECT_EQ(Added(), (Counts{{"o0 stream_gone", {1, 0}}}));
    fake::Reset();
    before_ = Breaks();
    Launch("o0");
    Launch("o1");
    Sync();
    EXPECT_EQ(Added(), (Counts{{"o0 warmup", {1, 0}}, {"o1 warmup", {1, 0}}}))
        << "the new one is learned";
}

TEST_F(Why, WhatNoNodeMayStandForIsSaid) {
    Teach("v");
    cus_engine_taint(F("w"));
    Launch("w");
    Sync();
    before_ = Breaks();
    Launch("v0");
    Launch("v1");
    Launch("w");
    EXPECT_EQ(Added(), (Counts{{"w diverged", {2, 1}}, {"w no_node", {1, 0}}}));
    Sync();
    // A memset of memory of which the driver says nothing.
    before_ = Breaks();
    cus_memset memset = {};
    memset.stream = {stream_, CUS_ABI_LEGACY};
    memset.dst = 0x90000;
    memset.elem = 1;
    memset.width = memset.height = 8;
    memset.real = (void *)fake::Fill;
    Launch("v0");
    Launch("v1");
    EXPECT_EQ(cus_engine_memset(&memset), CUDA_SUCCESS);
    EXPECT_EQ(Added(), (Counts{{"memset memory", {3, 1}}}));
    Sync();
    // A function of whose params the driver says nothing.
    driver().table.cuFuncGetParamInfo = [](CUfunction, size_t, size_t *, size_t *) {
        return CUDA_ERROR_NOT_FOUND;
    };
    Launch("x");
    before_ = Breaks();
    Launch("v0");
    Launch("x");
    EXPECT_EQ(Added(), (Counts{{"x no_layout", {2, 1}}}));
    Sync();
    // A driver that can only be asked about functions of modules: a handle may be a kernel's.
    fake::Reset();
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    driver().table.cuKernelGetParamInfo = nullptr;
    Launch("y");
    before_ = Breaks();
    Launch("y");
    EXPECT_EQ(Added(), (Counts{{"y no_layout", {1, 0}}}));
}

} // namespace
