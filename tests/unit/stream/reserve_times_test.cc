// Promise: after room for graphs was made, or that was tried in vain, the next try comes at its
// time. Time is what the test says it is, and nobody watches.
#include "shim/base/clock.h"
#include "tests/unit/stream/room.h"

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
