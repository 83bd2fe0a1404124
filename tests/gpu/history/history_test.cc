// Promise: what ran against the order of its program is found, by each way in which there is one,
// and what ran in order is not.
#include "tests/gpu/history/history.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include "tests/export/make.h"
#include "tests/sim/cases.h"
#include "tests/sim/recording.h"

namespace {

enum { FIRST = 5 }; // CUPTI's number of stream 1

// Two streams and a thread; each kernel of Run runs from and to the given times.
class History : public testing::Test {
  protected:
    History() : path_(sim::NewPath()), maker_(path_) {
        thread_ = maker_.Thread(1);
        kernel_ = maker_.Kernel("k");
        record_ = maker_.Record();
        wait_ = maker_.Wait();
    }
    uint32_t Stream(uint32_t kind = CST_STREAM_CREATED) {
        uint32_t id = maker_.Stream(kind);
        maker_.GpuStream(id, FIRST + id);
        return id;
    }
    void Run(uint32_t stream, uint64_t from, uint64_t to) {
        maker_.Op(++now_, thread_, stream, kernel_, {1, 1, 1, 32, 1, 1, 0}, CST_EAGER);
        maker_.Gpu(from, to - from, FIRST + stream, CST_GPU_KERNEL, "k", 1);
    }
    void Record(uint32_t stream, uint32_t event) {
        maker_.Op(++now_, thread_, stream, record_, {}, CST_EAGER, 100, event);
    }
    void Wait(uint32_t stream, uint32_t event) {
        maker_.Op(++now_, thread_, stream, wait_, {}, CST_EAGER, 100, event);
    }
    void Synchronise(uint32_t stream) {
        maker_.Call(++now_, thread_, "cuStreamSynchronize", CST_CALL_STEP_END, stream);
    }
    history Check(uint64_t slack_ns = 0) {
        history found = {};
        maker_.Close();
        auto t = sim::Read(path_);
        EXPECT_TRUE(t->model) << t->error;
        if (t->model) {
            const cst_kind *before = t->trace->kinds[kernel_];
            if (attribute_.id) { // of the kernel
                launch_.kind = *before;
                launch_.kind.n_arguments = 0;
                launch_.kind.n_attributes = 1;
                launch_.attribute = attribute_;
                t->trace->kinds[kernel_] = &launch_.kind;
            }
            EXPECT_TRUE(history_check(t->model, slack_ns, &found));
        }
        return found;
    }

    std::string path_;
    Maker maker_;
    uint32_t thread_, kernel_, record_, wait_;
    uint64_t now_ = 100;
    cst_attribute attribute_ = {};
    struct {
        cst_kind kind;
        cst_attribute attribute;
    } launch_;
};

struct Launch {
    const char *name;
    cst_attribute attribute;
    bool may_be_early;
};

class Programmatic : public History, public testing::WithParamInterface<Launch> {};

TEST_P(Programmatic, MayBeginBeforeTheOneAheadHasEnded) {
    uint32_t a = Stream();
    Run(a, 1000, 2000);
    Run(a, 1500, 3000);
    attribute_ = GetParam().attribute;
    history found = Check();
    EXPECT_EQ(found.n_faults, GetParam().may_be_early ? 0u : 1u);
}

// Without a value: of an opaque kind, which names only those that ask for something.
INSTANTIATE_TEST_SUITE_P(
    Of, Programmatic,
    testing::Values(
        Launch{"On", {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 4, {1}}, true},
        Launch{"Off", {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 4, {}}, false},
        Launch{"Opaque", {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 0, {}}, true},
        Launch{"Event", {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 0, {}}, true},
        Launch{"Cluster", {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 12, {1}}, false},
        Launch{"None", {}, false}),
    [](const auto &given) { return std::string(given.param.name); });

TEST_F(History, AStreamIsInOrder) {
    uint32_t s = Stream();
    Run(s, 1000, 2000);
    Run(s, 2000, 3000);
    Run(s, 2900, 3500);
    history found = Check();
    EXPECT_EQ(found.checked[HISTORY_STREAM], 2u);
    ASSERT_EQ(found.n_faults, 1u);
    EXPECT_EQ(found.faults[0].before, 1u);
    EXPECT_EQ(found.faults[0].after, 2u);
    EXPECT_EQ(found.faults[0].ns, 100u);
}

TEST_F(History, TimesMayBeWrongByTheSlack) {
    uint32_t s = Stream();
    Run(s, 1000, 2000);
    Run(s, 1900, 3000);
    EXPECT_EQ(Check(100).n_faults, 0u);
}

TEST_F(History, StreamsMayOverlap) {
    uint32_t a = Stream(), b = Stream();
    Run(a, 1000, 5000);
    Run(b, 1500, 2000);
    Record(b, 1);
    Run(b, 3000, 3500);
    history found = Check();
    EXPECT_EQ(found.n_faults, 0u);
    EXPECT_EQ(found.checked[HISTORY_STREAM], 1u);
}

TEST_F(History, AWaitForAnEventOrdersAlsoBySeveralSteps) {
    uint32_t a = Stream(), b = Stream(), c = Stream();
    Run(a, 1000, 5000);
    Record(a, 1);
    Wait(b, 1);
    Record(b, 2); // nothing ran on b
    Wait(c, 2);
    Run(c, 4000, 6000);
    history found = Check();
    ASSERT_EQ(found.n_faults, 1u);
    EXPECT_EQ(found.faults[0].edge, HISTORY_EVENT);
    EXPECT_EQ(found.faults[0].before, 0u);
}

TEST_F(History, AnEventIsAsItWasRecordedLast) {
    uint32_t a = Stream(), b = Stream();
    Record(a, 1);
    Run(a, 1000, 5000);
    Wait(b, 1); // in front of what a did
    Run(b, 2000, 2500);
    Record(a, 1);
    Wait(b, 1);
    Run(b, 5000, 5500);
    history found = Check();
    EXPECT_EQ(found.n_faults, 0u);
    EXPECT_EQ(found.checked[HISTORY_EVENT], 1u);
}

TEST_F(History, TheLegacyStreamAndBlockingOnesWaitForEachOther) {
    uint32_t legacy = Stream(CST_STREAM_LEGACY), a = Stream(CST_STREAM_PER_THREAD);
    uint32_t other = Stream(); // made as a non-blocking one
    Run(other, 1000, 9000);
    Run(a, 1000, 3000);
    Run(legacy, 2000, 4000); // too early
    Run(a, 3500, 5000);      // too early
    history found = Check();
    ASSERT_EQ(found.n_faults, 2u);
    EXPECT_EQ(found.faults[0].edge, HISTORY_LEGACY);
    EXPECT_EQ(found.faults[1].edge, HISTORY_LEGACY);
}

TEST_F(History, WhatTheHostWaitedForIsOver) {
    uint32_t a = Stream(), b = Stream();
    Run(a, 1000, 3000);
    Run(b, 1000, 2000); // not waited for yet
    Synchronise(a);
    Run(b, 2500, 4000);
    history found = Check();
    ASSERT_EQ(found.n_faults, 1u);
    EXPECT_EQ(found.faults[0].edge, HISTORY_HOST);
}

TEST_F(History, OpsWithoutTimesAreCounted) {
    uint32_t s = Stream();
    maker_.Op(++now_, thread_, s, kernel_, {1, 1, 1, 32, 1, 1, 0}, CST_EAGER);
    history found = Check();
    EXPECT_EQ(found.unknown, 1u);
    EXPECT_EQ(found.checked[HISTORY_STREAM], 0u);
}

} // namespace
