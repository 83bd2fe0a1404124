// Promise: nothing waits for a clock that stands still, as it does while cusplice whatif plays a
// program.
#include "shim/base/clock.h"
#include "tests/unit/stream/adverse.h"

namespace {

using fake::Counters;
using fake::driver;

class StillClock : public Adverse {
  protected:
    static void SetUpTestSuite() {
        cus_virtual.on = true;
        cus_virtual.ns = 1;
        Adverse::SetUpTestSuite();
    }
};

TEST_F(StillClock, RoomIsNotWaitedForWithoutEnd) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    Launch(0);
    Sync();
    for (int i = 0; i < 64; i++)
        cus_engine_room_taken(true);
    fake::Of(stream_)->busy = true;
    Steps(4);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_ROOM], 0u);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(stream_)->busy = false;
}

} // namespace
