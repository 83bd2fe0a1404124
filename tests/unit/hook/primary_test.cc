// Promise: a release counts as harmless only where somebody else holds the context for certain.
#include <gtest/gtest.h>

extern "C" {
#include "shim/hook/primary.h"
#include "tests/unit/hook/primary_world.h"
}

namespace {

const CUcontext kContext = reinterpret_cast<CUcontext>(0xc1);

void Retain(CUdevice device = 0, CUcontext context = kContext) {
    cus_primary before = cus_primary_retains(device);
    cus_primary_retained(&before, context);
}

// True: it was harmless.
bool Release(CUdevice device = 0, bool succeeds = true) {
    bool harmless = cus_primary_releases(device);
    EXPECT_EQ(cus_primary_released(device, succeeds), nullptr);
    return harmless;
}

// One more is taken, of which nothing can be inferred. Then each release is harmless but the last.
void ExpectHolds(int holds, CUdevice device = 0) {
    primary_world.answer = CUDA_ERROR_NOT_INITIALIZED;
    Retain(device);
    for (int i = 0; i < holds; i++)
        EXPECT_TRUE(cus_primary_releases(device)) << i << " of " << holds;
    EXPECT_FALSE(cus_primary_releases(device)) << holds;
}

class Primary : public ::testing::Test {
  protected:
    void SetUp() override { primary_world_reset(true); }
};

TEST_F(Primary, AnActiveContextThatNobodyIsKnownToHoldHasOneHold) {
    EXPECT_EQ(cus_primary_retains(0).state, cus_primary::CUS_PRIMARY_ACTIVE);
    Retain();
    ExpectHolds(2);
}

TEST_F(Primary, AContextThatARetainMakesHasNone) {
    primary_world.active = false;
    EXPECT_EQ(cus_primary_retains(0).state, cus_primary::CUS_PRIMARY_ENDED);
    Retain();
    ExpectHolds(1);
}

TEST_F(Primary, OthersReleasedTheirsUnseenWhereTheContextHadEnded) {
    Retain();
    Retain();
    primary_world.active = false;
    Retain();
    ExpectHolds(1);
}

TEST_F(Primary, HoldsThatAreKnownAreNoReasonToInferOne) {
    primary_world.active = false;
    Retain();
    primary_world.active = true;
    Retain();
    Retain();
    ExpectHolds(3);
}

TEST_F(Primary, WithoutAnAnswerNothingIsInferred) {
    primary_world.answer = CUDA_ERROR_NOT_INITIALIZED;
    EXPECT_EQ(cus_primary_retains(0).state, cus_primary::CUS_PRIMARY_UNKNOWN);
    Retain();
    EXPECT_FALSE(Release());
    EXPECT_FALSE(Release()) << "of a hold that nobody saw";
    Retain();
    ExpectHolds(1);
    primary_world_reset(false); // such a driver
    EXPECT_EQ(cus_primary_retains(0).state, cus_primary::CUS_PRIMARY_UNKNOWN);
    Retain();
    ExpectHolds(1);
}

TEST_F(Primary, DevicesHaveCountsOfTheirOwn) {
    primary_world.active = false;
    Retain(0);
    Retain(63);
    primary_world.active = true;
    Retain(63);
    ExpectHolds(1, 0);
    ExpectHolds(2, 63);
}

TEST_F(Primary, ADeviceWithoutACountIsNeverKnownToBeHeld) {
    for (CUdevice device : {-1, 64}) {
        EXPECT_EQ(cus_primary_retains(device).state, cus_primary::CUS_PRIMARY_UNKNOWN);
        EXPECT_EQ(cus_primary_retains(device).device, device);
        Retain(device);
        Retain(device);
        Retain(device);
        cus_primary_forget(device);
        EXPECT_FALSE(cus_primary_releases(device));
        EXPECT_EQ(cus_primary_released(device, true), nullptr);
    }
}

TEST_F(Primary, AReleaseUnderWayTakesItsHoldAlong) {
    Retain(); // two holds: one is inferred
    EXPECT_TRUE(cus_primary_releases(0));
    EXPECT_FALSE(cus_primary_releases(0)) << "the first may end only now";
    cus_primary_released(0, true);
    cus_primary_released(0, true);
    ExpectHolds(1); // the context is still active
}

TEST_F(Primary, WhileAReleaseIsUnderWayNothingIsInferred) {
    EXPECT_FALSE(cus_primary_releases(0));
    EXPECT_EQ(cus_primary_retains(0).state, cus_primary::CUS_PRIMARY_UNKNOWN);
    Retain();
    EXPECT_EQ(cus_primary_released(0, false), nullptr); // it failed, and takes nothing
    ExpectHolds(1);
}

TEST_F(Primary, AReleaseBetweenQuestionAndRetainMakesTheAnswerOld) {
    cus_primary before = cus_primary_retains(0);
    EXPECT_EQ(before.state, cus_primary::CUS_PRIMARY_ACTIVE);
    cus_primary_releases(0);
    cus_primary_retained(&before, kContext);
    cus_primary_released(0, false);
    ExpectHolds(1);
}

TEST_F(Primary, SoDoesAReset) {
    cus_primary before = cus_primary_retains(0);
    cus_primary_forget(0);
    cus_primary_retained(&before, kContext);
    ExpectHolds(1);
}

TEST_F(Primary, AnOldAnswerThatTheContextHadEndedForgetsNobody) {
    primary_world.active = false;
    cus_primary before = cus_primary_retains(0);
    primary_world.active = true;
    cus_primary_releases(0);
    cus_primary_released(0, false); // one hold is inferred
    cus_primary_retained(&before, kContext);
    ExpectHolds(2);
}

TEST_F(Primary, AContextThatOutlivesTheLastKnownHoldHasAnotherOne) {
    primary_world.active = false;
    Retain();
    primary_world.active = true;
    EXPECT_FALSE(Release());
    ExpectHolds(1);
    primary_world_reset(true);
    Retain(); // two
    EXPECT_TRUE(Release());
    ExpectHolds(1);
}

TEST_F(Primary, AReleaseThatEndsTheContextSaysWhich) {
    Retain(0, reinterpret_cast<CUcontext>(0xc2));
    Retain();
    primary_world.active = false;
    EXPECT_TRUE(cus_primary_releases(0)) << "others released theirs unseen";
    EXPECT_EQ(cus_primary_released(0, true), kContext);
    ExpectHolds(0);
}

TEST_F(Primary, AReleaseThatFailsEndsNothing) {
    Retain();
    primary_world.active = false;
    cus_primary_releases(0);
    EXPECT_EQ(cus_primary_released(0, false), nullptr);
    ExpectHolds(2);
}

void ReleaseMeanwhile() {
    cus_primary_releases(0);
}

// Ends the release that is still under way; nothing can be inferred.
void EndOfRelease() {
    primary_world.answer = CUDA_ERROR_NOT_INITIALIZED;
    cus_primary_released(0, false);
}

TEST_F(Primary, WhileAnotherReleaseIsUnderWayAnActiveContextProvesNothing) {
    primary_world.active = false;
    Retain();
    primary_world.active = true;
    cus_primary_releases(0);
    cus_primary_releases(0);
    EXPECT_EQ(cus_primary_released(0, true), nullptr);
    EndOfRelease();
    ExpectHolds(0);
}

TEST_F(Primary, NorWhereAnotherReleaseBeganMeanwhile) {
    primary_world.active = false;
    Retain();
    primary_world.active = true;
    cus_primary_releases(0);
    primary_world.meanwhile = ReleaseMeanwhile; // between the count and the answer
    EXPECT_EQ(cus_primary_released(0, true), nullptr);
    EndOfRelease();
    ExpectHolds(0);
}

} // namespace
