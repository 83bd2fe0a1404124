// Promise: no step ends on a stream that has gone, whoever waits: what is known of its steps stays.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/pays.h"

namespace {

class Gone : public Pays {
  protected:
    // A stream that was in graphs and is let pass goes in the midst of a long step.
    void SetUp() override {
        Pays::SetUp();
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        Good(50);
        covered_ = last_engine_covered();
        ASSERT_GT(covered_, 0u);
        Bad(200);
        ASSERT_EQ(Since().fallbacks[CUS_FALLBACK_DEMOTED], 1u);
        for (unsigned i = 0; i < 3 * OPS; i++)
            Launch(random_() % CHOICE, i);
        cus_engine_flush(CUS_SCOPE_S, &ref, 7);
        cus_engine_stream_gone(&ref);
        EXPECT_EQ(last_engine_covered(), covered_);
    }
    void TearDown() override {
        Pays::TearDown();
        fake::EndEngine();
    }
    uint32_t covered_;
};

class WaitedFor : public Gone {
  protected:
    // Another stream is there before.
    void SetUp() override {
        other_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        fake::Launch(other_, functions_[0], 0);
        driver().journal.clear();
        Gone::SetUp();
    }
    CUstream other_;
};

TEST_F(Gone, AsTheLastStreamOfTheThread) {
    cus_engine_step_end(nullptr);
    EXPECT_EQ(last_engine_covered(), covered_);
}

TEST_F(WaitedFor, ByAStreamThatTheHostWaitsFor) {
    cus_stream_ref ref = {other_, CUS_ABI_LEGACY};
    last_engine_is_waited_for();
    cus_engine_step_end(&ref);
    EXPECT_EQ(last_engine_covered(), covered_);
}

} // namespace
