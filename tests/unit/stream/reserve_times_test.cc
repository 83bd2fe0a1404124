// Promise: after room for graphs was made, or that was tried in vain, the next try comes at its
// time. Time is what the test says it is, and nobody watches.
#include "shim/base/clock.h"
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/room.h"

extern "C" bool cus_room_asks(void); // shim/stream/room.h

namespace {

using fake::driver;

class ReserveTimes : public RoomOfANewContext {
  protected:
    static void SetUpTestSuite() {
        cus_virtual.on = true;
        cus_virtual.ns = 1000000000;
        Room::SetUpTestSuite();
    }
};

// Between two tries the driver is asked nothing. Each try in vain doubles the time to the next one.
TEST_F(ReserveTimes, WhatIsTriedInVainIsTriedMoreAndMoreSeldom) {
    enum { MS = 1000000, MOST = 30 };
    static int looks;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    WantRoom();
    driver().table.cuStreamQuery = [](CUstream) {
        looks++;
        return CUDA_ERROR_NOT_READY;
    };
    int tries = 0;
    for (int ms = 0; ms < 1000 && tries < MOST; ms++) {
        Steps(1); // wants it
        looks = 0;
        EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
        tries += looks > 0;
        cus_virtual.ns += MS;
    }
    EXPECT_GT(tries, 5);
    EXPECT_LT(tries, 20);
}

// The question is asked for as long as the driver likes; here it returns behind the capture.
TEST_F(ReserveTimes, ACaptureDoesNotWaitForAQuestionForEver) {
    static int begun;
    static decltype(driver().table.cuStreamIsCapturing) real;
    begun = 0;
    real = driver().table.cuStreamIsCapturing;
    driver().table.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        if (!begun && cus_room_asks()) {
            begun++;
            cus_engine_capture_begins();
            cus_engine_capture_tried();
        }
        return real(stream, status);
    };
    WantRoom();
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    for (int ms = 0; ms < 1000 && !begun; ms++) {
        EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
        cus_virtual.ns += 1000000;
    }
    EXPECT_EQ(begun, 1);
}

// The first try waits for half a millisecond, each one behind it twice as long, up to 16 ms. The
// pause is 16 times what was waited; at the longest wait it doubles, up to 8 s. After a success it
// is 8 times what was waited, and the wait is halved.
TEST_F(ReserveTimes, EachTryHasItsTime) {
    constexpr uint64_t US = 1000, MS = 1000 * US;
    static int looks, busy;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    WantRoom();
    driver().table.cuStreamQuery = [](CUstream) {
        looks++;
        cus_virtual.ns += 50 * US;
        return busy-- > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    auto next = [&](int work) { // what it waited, in ns
        busy = work;
        if (last_engine_room_at() > cus_virtual.ns)
            cus_virtual.ns = last_engine_room_at() - 1;
        for (int early : {1, 0}) {
            last_engine_wants(4);
            looks = 0;
            uint64_t before = cus_virtual.ns;
            EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
            if (looks)
                return (double)(cus_virtual.ns - before);
            cus_virtual.ns += early;
        }
        ADD_FAILURE() << "not tried";
        return 0.;
    };
    auto pause = [] { return (double)(last_engine_room_at() - cus_virtual.ns); };
    double before = 0;
    next(1 << 20); // in vain
    for (uint64_t wait : {1, 2, 4, 8, 16}) {
        EXPECT_EQ(last_engine_room_waits(), wait * MS);
        double waited = next(1 << 20);
        EXPECT_NEAR(waited, (double)(wait * MS), MS / 2);
        before = pause();
        EXPECT_NEAR(before, 16 * waited, before / 100) << wait;
    }
    for (int i = 0; i < 4; i++) {
        next(1 << 20);
        EXPECT_NEAR(pause(), 2 * before, before / 100);
        before = pause();
    }
    next(1 << 20);
    EXPECT_EQ(pause(), 8000. * MS);
    for (int i = 0; i < 5; i++) { // settled
        uint64_t wait = last_engine_room_waits();
        next(1); // for two looks
        EXPECT_EQ(pause(), 8 * 100. * US);
        EXPECT_EQ(last_engine_room_waits(), wait / 2);
    }
    EXPECT_EQ(last_engine_room_waits(), 500 * US);
}

// What took no time may be done again at once.
TEST_F(ReserveTimes, ASuccessIsFollowedByTheNextTryAtOnce) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    WantRoom();
    for (int round = 0; round < 2; round++) {
        int before = driver().calls["cuGraphInstantiateWithFlags"];
        EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
        EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], before) << round;
        no_room();
        WantRoom();
    }
}

} // namespace
