// A stream whose graphs need room in the driver's pools.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_ROOM_H
#define CUSPLICE_TESTS_UNIT_STREAM_ROOM_H

#include <unistd.h>

#include "tests/unit/stream/adverse.h"

class Room : public Adverse {
  protected:
    // Steps of grids that no graph has been made for.
    void Regrow(unsigned first) {
        for (int round = 0; round < 4; round++)
            for (unsigned grid : {first, first + 1, first + 2})
                Steps(1, 0, grid);
    }

    // The GPU has hardly any memory left.
    static void OneMibLeft() {
        fake::driver().table.cuMemGetInfo_v2 = [](size_t *available, size_t *total) {
            *available = 1 << 20;
            *total = 1 << 30;
            return CUDA_SUCCESS;
        };
    }

    // Steps beside a stream that is busy, of which no graph can be built; it rests behind them.
    void WantRoom() {
        Launch(0);
        Sync();
        no_room();
        fake::Of(stream_)->busy = true;
        Steps(8);
        fake::Of(stream_)->busy = false;
    }

    static void AtEachInstantiation(void (*call)()) {
        static decltype(fake::driver().table.cuGraphInstantiateWithFlags) real;
        static void (*first)();
        real = fake::driver().table.cuGraphInstantiateWithFlags;
        first = call;
        fake::driver().table.cuGraphInstantiateWithFlags = [](CUgraphExec *exec, CUgraph graph,
                                                              unsigned long long flags) {
            first();
            return real(exec, graph, flags);
        };
    }

    // The host has waited for the stream, now and again.
    template <typename Done> void WaitUntil(Done done) {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        WaitUntil(done, [&] { return cus_engine_take_error(&ref, 0); });
    }
    // The same by a call that waits.
    template <typename Done, typename Wait> static void WaitUntil(Done done, Wait wait) {
        for (int i = 0; i < 2000 && !done(); i++) {
            EXPECT_EQ(wait(), CUDA_SUCCESS);
            usleep(1000);
        }
    }
};

// The same in a context in which nothing was wanted or tried before.
class RoomOfANewContext : public Room {
  protected:
    void SetUp() override {
        Room::SetUp();
        cus_engine_context_gone();
        cus_engine_context_goes(contexts_.back());
    }
};

#endif
