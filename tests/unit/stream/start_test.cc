// Promise: an engine says at its start what its driver lacks. It learns what its settings ask for,
// and answers for the whole process.
#include "shim/base/clock.h"
#include "tests/text.h"
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "shim/api/api.h"
#include "shim/base/mem.h"
#include "shim/stream/news.h"
}

namespace {

using fake::driver;

class Started : public fake::EngineTest {
  protected:
    void SetUp() override { fake::Reset(); }
    void TearDown() override { fake::EndEngine(); }

    // What an engine with the driver as it is now logs, from its start to its end.
    static std::string Said(
        fake::Settings more = {}, const std::string &level = "warn",
        const std::function<void()> &program = [] {}) {
        std::string path = testing::TempDir() + "start.log";
        unlink(path.c_str());
        more.insert(more.end(), {{"CUSPLICE_LOG_FILE", path}, {"CUSPLICE_LOG", level}});
        fake::StartEngine(more);
        program();
        fake::EndEngine();
        return ReadFile(path);
    }
    // Steps of so many launches, which become a graph.
    static void Learn(unsigned launches) {
        fake::Learn(fake::MakeStream(CU_STREAM_NON_BLOCKING), fake::MakeFunctions(launches));
    }
    // The first launch of such steps is deferred.
    static CUstream LaunchDeferred() {
        CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        functions_ = fake::MakeFunctions(4);
        fake::Learn(stream, functions_);
        driver().journal.clear();
        fake::Launch(stream, functions_[0], 0);
        EXPECT_TRUE(driver().journal.empty());
        return stream;
    }
    static inline std::vector<CUfunction> functions_;

    // Steps of launches where no graph is built, and so none is withheld; `rules` is more of the
    // configuration.
    static void Eager(const std::string &rules) {
        std::string path = testing::TempDir() + "start.conf";
        std::ofstream(path) << "mode = eager\n" << rules;
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_CONFIG", path}}));
        CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        std::vector<CUfunction> functions = fake::MakeFunctions(4);
        for (int step = 0; step < 8; step++) {
            for (CUfunction f : functions) {
                size_t before = driver().journal.size();
                ASSERT_EQ(fake::Launch(stream, f, 1, 2), CUDA_SUCCESS);
                EXPECT_EQ(driver().journal.size(), before + 1);
            }
            fake::Sync(stream);
        }
        EXPECT_EQ(fake::Counters().in_graphs, 0u);
    }
    static uint64_t Nodes() {
        static cus_report report;
        cus_counters counters = fake::Counters();
        cus_engine_report(&report, &counters, cus_api_name);
        return report.nodes;
    }
};

const char *const kLacks = "lacks functions";

TEST_F(Started, ADriverThatHasEverythingIsNotBlamed) {
    EXPECT_EQ(Said().find(kLacks), std::string::npos);
}

TEST_F(Started, ADriverWithoutWhatIsNeededIsBlamed) {
    driver().table.cuStreamGetFlags = nullptr;
    EXPECT_NE(Said().find(kLacks), std::string::npos);
}

TEST_F(Started, ADriverWithoutWhatGraphsNeedIsBlamed) {
    for (int which = 0; which < 6; which++) {
        fake::Reset();
        cus_driver &t = driver().table;
        switch (which) {
        case 0:
            t.cuStreamGetCaptureInfo_v3 = nullptr;
            break;
        case 1:
            t.cuStreamUpdateCaptureDependencies_v2 = nullptr;
            break;
        case 2:
            t.cuGraphExecKernelNodeSetParams_v2 = nullptr;
            break;
        case 3:
            t.cuGraphKernelNodeGetParams_v2 = nullptr;
            break;
        case 4:
            t.cuFuncGetParamInfo = nullptr;
            break;
        default:
            t.cuKernelGetParamInfo = nullptr;
        }
        EXPECT_NE(Said().find(kLacks), std::string::npos) << which;
    }
}

// HAZARDS E1.
TEST_F(Started, ASwitchThatForbidsToDeferIsNamed) {
    const std::string line = "CUDA_LAUNCH_BLOCKING is set: nothing is deferred";
    EXPECT_NE(Said({{"CUDA_LAUNCH_BLOCKING", "1"}}).find(line), std::string::npos);
    EXPECT_EQ(Said({{"CUDA_LAUNCH_BLOCKING", "0"}}).find(line), std::string::npos);
}

TEST_F(Started, ADriverThatCannotNumberItsStreamsHasGraphsToo) {
    driver().table.cuStreamGetId = nullptr;
    ASSERT_TRUE(fake::StartEngine({}));
    fake::Learn(fake::MakeStream(CU_STREAM_NON_BLOCKING), fake::MakeFunctions(4));
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
}

TEST_F(Started, AFunctionWhoseNameIsNullIsUnnamed) {
    driver().table.cuFuncGetName = [](const char **name, CUfunction) {
        *name = nullptr;
        return CUDA_SUCCESS;
    };
    Eager("");
    static cus_report report;
    cus_counters counters = fake::Counters();
    cus_engine_report(&report, &counters, cus_api_name);
    ASSERT_GT(report.n_breaks, 0u);
    EXPECT_STREQ(report.breaks[0].name, "(unnamed)");
}

// Threads with work on per-thread streams stand in one entry, which the first stream makes.
TEST_F(Started, WhatThreadsBeganBeforeTheFirstStreamIsNotForgotten) {
    ASSERT_TRUE(fake::StartEngine({}));
    std::vector<CUfunction> functions = fake::MakeFunctions(4);
    fake::Launch(CU_STREAM_PER_THREAD, functions[0], 0);
    EXPECT_EQ(untracked_used(), 0u);
    fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions[0], 0);
    EXPECT_EQ(untracked_used(), 1u);
    cus_stream_ref own = {CU_STREAM_PER_THREAD, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&own, CUS_ROW_cuStreamSynchronize), CUDA_SUCCESS);
    EXPECT_EQ(untracked_used(), 0u);
    fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions[0], 0);
    EXPECT_EQ(untracked_used(), 0u);
}

TEST_F(Started, ACallThatConcernsNoStreamFlushesNothing) {
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}}));
    CUstream stream = LaunchDeferred();
    cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_NONE, &ref, CUS_ROW_cuStreamSynchronize);
    EXPECT_TRUE(driver().journal.empty());
    fake::Sync(stream);
    EXPECT_EQ(driver().journal.size(), 1u);
}

TEST_F(Started, NodesThatAreTimedNoMoreFlushNothing) {
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}}));
    CUstream stream = LaunchDeferred();
    cus_engine_nodes_timed(true);
    EXPECT_EQ(driver().journal.size(), 1u);
    fake::Sync(stream);
    fake::Launch(stream, functions_[0], 0);
    ASSERT_EQ(driver().journal.size(), 1u) << "it is deferred";
    cus_engine_nodes_timed(false);
    EXPECT_EQ(driver().journal.size(), 1u);
    fake::Sync(stream);
    EXPECT_EQ(driver().journal.size(), 2u);
}

// Of graphs: what was built of which ops, and how long that took.
TEST_F(Started, ABuiltGraphIsNews) {
    cus_virtual.on = true;
    cus_virtual.ns = 1000000;
    driver().building = [](unsigned) { cus_virtual.ns += 345678; };
    std::string log = Said({}, "warn,graph:info", [] { Learn(4); });
    EXPECT_NE(log.find("built: 4 ops, k0 to k3, in 345 us, about "), std::string::npos) << log;
    EXPECT_NE(log.find("dropped: 4 nodes, about "), std::string::npos) << log;
}

// What fails is said, and nothing of other reasons.
TEST_F(Started, AnOpThatIsNotCapturedIsNews) {
    driver().fail = [](const std::string &name) {
        return name == "cuStreamBeginCapture_v2" ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    };
    std::string log = Said({}, "warn,stream:info", [] {
        CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        std::vector<CUfunction> functions = fake::MakeFunctions(4);
        for (int step = 0; step < 6; step++) {
            for (CUfunction f : functions)
                fake::Launch(stream, f, 0);
            fake::Sync(stream);
        }
    });
    EXPECT_NE(log.find("ops were not captured: they go out one by one"), std::string::npos) << log;
    EXPECT_EQ(log.find("a node refused new params"), std::string::npos) << log;
}

TEST_F(Started, AGraphThatIsNotLaunchedIsNewsOfNothingElse) {
    driver().fail = [](const std::string &name) {
        return name == "cuGraphLaunch" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    };
    std::string log = Said({}, "warn,stream:info", [] { Learn(4); });
    EXPECT_NE(log.find("a graph was not launched: its ops go out one by one"), std::string::npos)
        << log;
    EXPECT_EQ(log.find("a memset is timed"), std::string::npos) << log;
}

TEST_F(Started, WhereGraphsEndIsNewsTheFirstTime) {
    driver().fail = [](const std::string &name) {
        return name == "cuGraphLaunch" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    };
    std::string log = Said({}, "warn,stream:info", [] { Learn(4); }), line = "graphs end at k0: ";
    size_t at = log.find(line);
    ASSERT_NE(at, std::string::npos) << log;
    EXPECT_EQ(log.find(line, at + 1), std::string::npos) << log;
    EXPECT_NE(log.find("deferred ops that go out one by one: 4", at), std::string::npos) << log;
}

TEST_F(Started, AnOpThatIsNoKernelEndsGraphsToo) {
    std::string log = Said({}, "warn,stream:info", [] {
        cus_tally_cut(nullptr, CUS_WHY_MEMORY, 3);
        cus_news_cut(nullptr, CUS_WHY_MEMORY, 3);
    });
    EXPECT_NE(log.find("graphs end at an op: "), std::string::npos) << log;
}

// It is told under the op, and not once more under what the op is an example of.
TEST_F(Started, WhatEndsAGraphIsNewsOnce) {
    struct {
        const char *op;
        size_t function;
        unsigned threads;
    } const ends[] = {
        {"k5", 5, 32}, {"k3", 3, 32}, {"k1", 1, 64}}; // by a rule, by another, as such
    for (const auto &end : ends) {
        std::string log = Said({{"CUSPLICE_EAGER", "k5"}}, "warn,stream:info", [&] {
            CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
            std::vector<CUfunction> all = fake::MakeFunctions(6), graph(&all[0], &all[4]);
            fake::Launch(stream, all[5], 0); // no first time any more
            fake::Sync(stream);
            fake::Learn(stream, graph);
            fake::Launch(stream, all[0], 0);
            fake::Call call(stream, all[end.function], 0, 0, 1, end.threads);
            fake::Issue(call.launch);
        });
        std::vector<std::string> told;
        const std::string line = "graphs end at ";
        for (size_t at = 0; (at = log.find(line, at)) != std::string::npos; at += line.size())
            told.push_back(log.substr(at + line.size(), log.find(':', at) - at - line.size()));
        ASSERT_EQ(told.size(), 2u) << log; // the first one is of Learn's waits
        EXPECT_EQ(told[1], end.op) << log;
    }
}

TEST_F(Started, NoThreadIsMissedWhereOneSubmits) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "nothing is submitted where there is one processor";
    EXPECT_EQ(Said({{"CUSPLICE_SUBMIT_NS", "1"}, {"CUSPLICE_DEMOTE", "no"}}, "warn,stream:info",
                   [] {
                       Learn(12);
                       EXPECT_GT(fake::Counters().submitted, 0u);
                   })
                  .find("no second thread"),
              std::string::npos);
}

TEST_F(Started, AGraphThatGoesForAnotherIsNewsToo) {
    std::string log = Said({{"CUSPLICE_GRAPH_MB", "1"}}, "warn,graph:info", [] {
        CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        for (int i = 0; i < 20; i++)
            fake::Learn(stream, fake::MakeFunctions(60));
    });
    EXPECT_NE(log.find("graph_mb is used up"), std::string::npos) << log.substr(0, 1000);
}

TEST_F(Started, WithoutGraphsNothingIsLearned) {
    Eager("");
    EXPECT_EQ(Nodes(), 0u);
}

TEST_F(Started, WithoutGraphsTheStepsOfRulesAreCounted) {
    Eager("[step one]\nmarker = k1\n");
    cus_stats_step steps[CUS_STATS_STEPS];
    char list[512];
    cus_engine_segment_list(list, sizeof list);
    ASSERT_EQ(cus_engine_steps(steps), 1u);
    EXPECT_GE(steps[0].steps, 6u);
}

TEST_F(Started, MemoryThatRanOutIsCounted) {
    ASSERT_TRUE(fake::StartEngine({}));
    uint64_t before = fake::Counters().fallbacks[CUS_FALLBACK_NO_MEMORY];
    EXPECT_EQ(cus_mem_alloc(SIZE_MAX / 2), nullptr);
    EXPECT_EQ(fake::Counters().fallbacks[CUS_FALLBACK_NO_MEMORY], before + 1);
}

TEST_F(Started, WhereNothingWasLaunchedTheListIsEmpty) {
    ASSERT_TRUE(fake::StartEngine({}));
    char text[8] = "";
    EXPECT_FALSE(cus_engine_segment_list(text, sizeof text));
    EXPECT_STREQ(text, "[]");
}

} // namespace
