// Promise: room for graphs is made of graphs as large as those that were wanted, and what was made
// is what is counted.
#include "tests/unit/stream/calls.h"
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/nodes.h"
#include "tests/unit/stream/room.h"

#include <set>

namespace {

class Reserve : public RoomOfANewContext {
  protected:
    // The kernels that fill the graphs, where this one has the most params and its kind is changed.
    std::set<CUfunction> FilledBy(
        int large, void (*change)(cus_kind *) = [](cus_kind *) {}) {
        static std::set<CUfunction> captured;
        captured.clear();
        auto *function = reinterpret_cast<fake::Function *>(functions_[large]);
        function->params = {{0, 8}, {12, 4}}; // four bytes more, for a gap
        WantRoom();
        CUcontext context;
        driver().table.cuCtxGetCurrent(&context);
        fake::Call call(stream_, functions_[large], 1);
        change(const_cast<cus_kind *>(launch_kind(context, &call.launch)));
        static decltype(driver().table.cuLaunchKernel) real;
        real = driver().table.cuLaunchKernel;
        driver().table.cuLaunchKernel = [](CUfunction f, auto... more) {
            captured.insert(f);
            return real(f, more...);
        };
        WaitUntil([] { return Built() > 0; });
        EXPECT_GT(Built(), 0);
        return captured;
    }
    static int Built() { return driver().calls["cuGraphInstantiateWithFlags"]; }
    void Want() {
        fake::Of(stream_)->busy = true;
        Steps(4);
        fake::Of(stream_)->busy = false;
    }
};

// A graph of small kernels would not be as large as the graph that is built later.
TEST_F(Reserve, TheKernelWithTheMostParamsFillsTheGraphs) {
    EXPECT_EQ(FilledBy(1), std::set<CUfunction>{functions_[1]});
}
TEST_F(Reserve, SoItDoesWhereASegmentBeginsWithIt) {
    EXPECT_EQ(FilledBy(0), std::set<CUfunction>{functions_[0]});
}

TEST_F(Reserve, WithoutAKernelThatIsKnownNothingIsMade) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    WantRoom();
    cus_engine_code_gone();
    for (int i = 0; i < 50; i++) {
        EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
        usleep(1000);
    }
    EXPECT_EQ(Built(), 0);
}

// Nor do these, whose nodes are not as those of others.
TEST_F(Reserve, AKernelWithAttributesFillsNone) {
    EXPECT_EQ(FilledBy(1, [](cus_kind *kind) { kind->n_attrs = 1; }).count(functions_[1]), 0u);
}
TEST_F(Reserve, ACooperativeKernelFillsNone) {
    EXPECT_EQ(FilledBy(1, [](cus_kind *kind) { kind->cooperative = true; }).count(functions_[1]),
              0u);
}
TEST_F(Reserve, AKernelThatIsNotDeferredFillsNone) {
    EXPECT_EQ(FilledBy(1, [](cus_kind *kind) { kind->deferrable = false; }).count(functions_[1]),
              0u);
}

// Without a stream of its own nothing is captured, least of all on the legacy stream.
TEST_F(Reserve, NothingIsCapturedWhereNoStreamCanBeMade) {
    WantRoom();
    driver().fail = [](const std::string &name) {
        return name == "cuStreamCreateWithPriority" ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    WaitUntil([] { return driver().calls["cuStreamCreateWithPriority"] > 0; });
    EXPECT_EQ(driver().calls["cuStreamCreateWithPriority"], 1);
    EXPECT_EQ(driver().calls["cuStreamBeginCapture_v2"], 0);
}

// As many as there are places to note their sizes.
TEST_F(Reserve, SoManyGraphsAreWantedAtOnce) {
    WantRoom();
    fake::Of(stream_)->busy = true;
    uint32_t most = 0;
    for (unsigned grid = 100; grid < 400; grid++) {
        Steps(1, 0, grid);
        most = std::max(most, last_engine_wanted());
    }
    EXPECT_EQ(most, 32u);
    fake::Of(stream_)->busy = false;
}

TEST_F(Reserve, AllThatIsMadeIsCountedAndCharged) {
    static uint32_t built;
    uint32_t graphs, nodes;
    built = 0;
    WantRoom();
    uint64_t charged = last_engine_charged();
    const cus_counters in_front = fake::Counters();
    driver().building = [](unsigned n) { built += n; };
    WaitUntil([] { return Built() > 0; });
    ASSERT_GT(Built(), 1);
    const cus_counters behind = fake::Counters();
    for (int why = 0; why < CUS_FALLBACKS; why++)
        EXPECT_EQ(behind.fallbacks[why], in_front.fallbacks[why]) << why;
    last_engine_room(&graphs, &nodes);
    EXPECT_EQ(graphs, (uint32_t)Built());
    EXPECT_EQ(nodes, built);
    EXPECT_EQ(last_engine_charged() - charged, built) << "the stream pays for it";

    // Room for more graphs than are wanted stays: the stream for captures takes none again.
    last_engine_set_room(100, 0);
    int before = Built();
    Want();
    WaitUntil([&] { return Built() > before; });
    ASSERT_GT(Built(), before);
    last_engine_room(&graphs, &nodes);
    EXPECT_EQ(graphs, 100u);
    EXPECT_GT(nodes, 0u);
}

// A graph that is built in the midst of a capture spoils it (D3).
TEST_F(Reserve, NoneIsMadeWhileTheProgramCaptures) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref own = {stream_, CUS_ABI_LEGACY}, captures = {other, CUS_ABI_LEGACY};
    WantRoom();
    fake::Of(other)->program_captures = true;
    cus_engine_capture_began(&captures);
    for (int i = 0; i < 50; i++) {
        EXPECT_EQ(cus_engine_take_error(&own, 0), CUDA_SUCCESS);
        usleep(1000);
    }
    EXPECT_EQ(Built(), 0);
    fake::Of(other)->program_captures = false;
    cus_engine_capture_ended(&captures);
    WaitUntil([] { return Built() > 0; });
    EXPECT_GT(Built(), 0);
}

// A thread began a copy meanwhile (A16): what was made is destroyed later, and is room then.
TEST_F(Reserve, WhatIsNotYetDestroyedIsNoRoom) {
    uint32_t graphs, nodes;
    WantRoom();
    uint64_t charged = last_engine_charged();
    AtEachInstantiation([] {
        if (Built() == 0)
            cus_engine_copying(true);
    });
    WaitUntil([] { return Built() > 0; });
    ASSERT_GT(Built(), 0);
    last_engine_room(&graphs, &nodes);
    EXPECT_EQ(graphs, 0u);
    EXPECT_EQ(nodes, 0u);
    EXPECT_EQ(last_engine_charged(), charged);
    cus_engine_copying(false);
}

// A copy to pageable memory waits for its stream, as a wait of the host does.
TEST_F(Reserve, RoomIsMadeBehindACopyThatWaits) {
    driver().table.cuPointerGetAttributes = [](unsigned n, CUpointer_attribute *ids, void **values,
                                               CUdeviceptr address) {
        return address < kPageable ? PointerGetAttributes(n, ids, values, address) : CUDA_SUCCESS;
    };
    driver().table.cuCtxGetDevice = [](CUdevice *device) {
        *device = 0;
        return CUDA_SUCCESS;
    };
    cus_copy copy = {};
    copy.form = CUS_COPY_DTOH;
    copy.stream = {stream_, CUS_ABI_LEGACY};
    copy.dst = kPageable;
    copy.src = kDevice;
    copy.bytes = 64;
    copy.real = (void *)+[](void *, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; };
    WantRoom();
    WaitUntil([] { return Built() > 0; }, [&] { return cus_engine_copy(&copy); });
    EXPECT_GT(Built(), 0);
}

// Whoever waits for that is not told to go on after a few waits, as for a build.
TEST_F(Reserve, OthersKnowThatRoomIsMade) {
    static bool told;
    told = false;
    WantRoom();
    AtEachInstantiation([] { told = room_has_priority(); });
    WaitUntil([] { return Built() > 0; });
    EXPECT_TRUE(told);
    EXPECT_FALSE(room_has_priority()) << "it is over";
}

// What is dropped may still run; its room is free once that has ended, and not before.
TEST_F(Reserve, RoomOfDroppedGraphsIsFreeOnceTheyHaveEnded) {
    uint32_t graphs, nodes;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    Launch(0);
    Sync();
    static uint32_t made;
    made = 0;
    driver().building = [](unsigned n) { made += n; };
    Steps(6);
    int built = Built();
    ASSERT_GT(built, 0);
    last_engine_set_room(100, 10000);
    EXPECT_GT(last_engine_graph_bytes(), 0u);
    cus_engine_function_changed(nullptr);
    EXPECT_EQ(last_engine_graph_bytes(), 0u);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS); // the host has waited
    last_engine_room(&graphs, &nodes);
    EXPECT_EQ(nodes, 10000u + made);
    EXPECT_EQ(graphs, 100u + (unsigned)built);

    Steps(6);
    built = Built();
    fake::Of(stream_)->busy = true;
    cus_engine_function_changed(nullptr);
    last_engine_set_room(0, 0);
    Steps(6);
    EXPECT_EQ(Built(), built);
    fake::Of(stream_)->busy = false;
    Steps(6);
    EXPECT_GT(Built(), built);
}

// An engine of its own: it defers nothing any more.
class ReserveOff : public Reserve {};

TEST_F(ReserveOff, NoneIsMadeOnceNothingIsDeferred) {
    WantRoom();
    cus_engine_defer_off("a test says so");
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    for (int i = 0; i < 100; i++) {
        EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
        usleep(1000);
    }
    EXPECT_EQ(Built(), 0);
}

TEST_F(Reserve, NoneIsLeftWhereContextsMayHaveGone) {
    uint32_t graphs, nodes;
    Launch(0);
    Sync();
    last_engine_set_room(7, 70);
    cus_engine_context_gone();
    last_engine_room(&graphs, &nodes);
    EXPECT_EQ(graphs, 0u);
    EXPECT_EQ(nodes, 0u);
}

} // namespace
