// Promise: while something runs, only graphs are built for which the driver's pools have room
// (HAZARDS G5, G6). Other hazards delay building and destroying too (A16).
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/room.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

extern "C" {
#include "shim/api/api.h"
bool cus_room_asks(void); // shim/stream/room.h
}

namespace {

using fake::Counters;
using fake::driver;

// Another thread begins a capture on the stream between the library's two questions. The second
// one would spoil the capture, so that the capture begins behind it.
TEST_F(Room, NoCaptureBeginsBetweenTwoQuestions) {
    static std::thread program;
    static std::atomic<bool> begun, between;
    begun = between = false;
    WantRoom();
    static decltype(driver().table.cuStreamIsCapturing) is_capturing;
    is_capturing = driver().table.cuStreamIsCapturing;
    driver().table.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus *status) {
        if (!program.joinable() && cus_room_asks()) {
            program = std::thread([] {
                cus_engine_capture_begins();
                begun = true;
            });
            usleep(20000);
            between = begun.load();
        }
        return is_capturing(stream, status);
    };
    WaitUntil([] { return program.joinable(); });
    ASSERT_TRUE(program.joinable());
    program.join();
    EXPECT_FALSE(between);
    // While the call that begins the capture is under way, nobody asks.
    int asked = driver().calls["cuStreamQuery"];
    Regrow(40);
    EXPECT_EQ(driver().calls["cuStreamQuery"], asked);
    cus_engine_capture_tried();
    driver().table.cuStreamIsCapturing = is_capturing;
    Regrow(60);
    EXPECT_GT(driver().calls["cuStreamQuery"], asked);
}

// No rule names the kernel.
TEST_F(Room, NothingIsBuiltBesideAKernelThatStays) {
    CUfunction spin = fake::MakeFunction("stays");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    no_room();
    fake::Launch(other, spin, 1, 1); // its first launch counts too
    fake::Of(other)->busy = true;
    Regrow(2);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
    EXPECT_GT(driver().calls["cuStreamQuery"], 0);
    fake::Of(other)->busy = false; // nobody ever waits for it
    Regrow(2);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

// ... also where the thread that launched it has suspended deferring (cusplice.h).
TEST_F(Room, AKernelOfASuspendedThreadMaySpinToo) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, spin, 1, 1); // it is known from here on, and over
    Steps(4);
    no_room();
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    ASSERT_GT(built, 0);
    cus_engine_suspend(true);
    fake::Launch(other, spin, 1, 1);
    cus_engine_suspend(false);
    fake::Of(other)->busy = true;
    Regrow(2);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
    fake::Of(other)->busy = false;
}

// What is deferred by another thread goes out before the first launch of a function, which may
// wait; from then on the function is known, and one that may spin keeps anything from being built.
class FirstLaunch : public Room {
  protected:
    // `quietly` launches on a stream of which nothing is deferred, as it does with `other`.
    template <typename Quietly> void Check(CUstream other, Quietly quietly) {
        Learned(quietly, [&] { fake::Of(other)->busy = true; });
        int built = driver().calls["cuGraphInstantiateWithFlags"];
        fake::Of(other)->busy = false;
        Regrow(2);
        EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
    }

    // The first launch of a function goes behind what is deferred, as does each of one that may
    // spin, which is known from the first one on: nothing is built then.
    template <typename Quietly>
    void Learned(
        Quietly quietly, const std::function<void()> &runs = [] {}) {
        Steps(4);
        int built = driver().calls["cuGraphInstantiateWithFlags"];
        ASSERT_GT(built, 0);
        no_room();
        CUfunction fresh = fake::MakeFunction("fresh");
        CUfunction spin = fake::MakeFunction("spin_" + std::to_string(functions_.size()));
        Defer();
        quietly(fresh);
        EXPECT_TRUE(Issued(1)) << "the first launch of a function may wait";
        Defer();
        quietly(fresh);
        EXPECT_TRUE(Issued(0)) << "it has been launched";
        Sync();
        quietly(spin);
        runs();
        Regrow(2);
        EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built) << "it may be running";
        Defer();
        quietly(spin);
        EXPECT_TRUE(Issued(1)) << "it goes behind everything";
        Sync();
    }

    void TearDown() override {
        cus_engine_suspend(false);
        Room::TearDown();
    }

  private:
    // Another thread begins a segment.
    void Defer() {
        driver().journal.clear();
        std::thread([&] { Launch(0); }).join();
        EXPECT_TRUE(driver().journal.empty());
    }
    testing::AssertionResult Issued(size_t deferred) {
        return driver().journal.size() == deferred + 1 &&
                       (!deferred || driver().journal[0] == Line(0, 0))
                   ? testing::AssertionSuccess()
                   : testing::AssertionFailure() << testing::PrintToString(driver().journal);
    }
};

TEST_F(FirstLaunch, BySuspendedThreadIsNoticed) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[1], 1, 1);
    Check(other, [&](CUfunction f) {
        cus_engine_suspend(true);
        EXPECT_EQ(fake::Launch(other, f, 1, 1), CUDA_SUCCESS);
        cus_engine_suspend(false);
    });
}

TEST_F(FirstLaunch, OnAStreamThatIsLeftAloneIsNoticed) {
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    unsigned random = 1;
    for (int i = 0; i < 16000; i++) {
        random = random * 1664525 + 1013904223;
        fake::Launch(other, functions_[random >> 24 & 7], random, i);
        if (i % 400 == 399) {
            cus_engine_flush(CUS_SCOPE_T, &ref, 7);
            cus_engine_step_end(&ref);
        }
    }
    uint64_t passed = Counters().eager_by[CUS_EAGER_PASSTHROUGH];
    fake::Launch(other, functions_[1], 1, 1);
    ASSERT_EQ(Counters().eager_by[CUS_EAGER_PASSTHROUGH], passed + 1) << "not left alone";
    Check(other, [&](CUfunction f) { EXPECT_EQ(fake::Launch(other, f, 1, 1), CUDA_SUCCESS); });
}

// Nobody can be asked when a kernel on a per-thread stream ends: nothing is built behind one that
// may spin. Until then first launches there are noticed as elsewhere.
TEST_F(FirstLaunch, OnAPerThreadStreamIsNoticed) {
    auto quietly = [](CUfunction f) {
        fake::Call call(CU_STREAM_PER_THREAD, f, 1, 2);
        call.launch.stream.abi = CUS_ABI_PTSZ;
        // By another thread: its own might ask it.
        std::thread([&] { EXPECT_EQ(fake::Issue(call.launch), CUDA_SUCCESS); }).join();
    };
    uint64_t passed = Counters().eager_by[CUS_EAGER_PASSTHROUGH];
    uint64_t fallen = Counters().fallbacks[CUS_FALLBACK_ROOM];
    Learned(quietly);
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_PASSTHROUGH], passed + 4);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_ROOM], fallen);
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    Regrow(5);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built) << "nobody knows that it ended";
    cus_engine_wait_ended(cus_engine_wait_begins());
    Regrow(5);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

// Graphs may hold four times what is estimated.
TEST_F(Room, MemoryIsGivenBackForWhatGraphsMayHold) {
    OneMibLeft();
    Steps(4);
    graphs_hold(32 << 20); // as they did once
    functions_ = fake::MakeFunctions(kOps);
    Steps(4);
    graphs_hold(-(32 << 20));
    EXPECT_FALSE(cus_engine_give_memory_back(400ull << 20));
    EXPECT_TRUE(cus_engine_give_memory_back(200ull << 20));
}

// Neither dropping graphs nor asking once more helps where something stays.
TEST_F(Room, OutOfMemoryWaitsForNoKernelThatStays) {
    static int waits;
    waits = 0;
    driver().table.cuCtxSynchronize = [] {
        waits++;
        return CUDA_SUCCESS;
    };
    OneMibLeft();
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(4);
    fake::Launch(other, functions_[1], 1, 1);
    int alive = driver().calls["cuGraphInstantiateWithFlags"];
    ASSERT_GT(alive, 0);
    EXPECT_FALSE(cus_engine_give_memory_back(4ull << 30)) << "more than graphs could hold";
    EXPECT_FALSE(cus_engine_cannot_fit(4ull << 30)) << "the driver may look: nothing runs";
    fake::Of(other)->busy = true;
    EXPECT_FALSE(cus_engine_cannot_fit(2 << 20));
    EXPECT_FALSE(cus_engine_give_memory_back(2 << 20));
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    fake::Of(other)->busy = false;
    uint64_t given = Counters().fallbacks[CUS_FALLBACK_BUDGET];
    EXPECT_TRUE(cus_engine_give_memory_back(2 << 20));
    EXPECT_GE(Counters().fallbacks[CUS_FALLBACK_BUDGET], given + 2) << "each stream's";
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], alive);
    EXPECT_EQ(waits, 0);
    fake::Of(other)->busy = true; // what the graphs held is in the driver's pools now
    EXPECT_TRUE(cus_engine_cannot_fit(4ull << 30));
    fake::Of(other)->busy = false;
    EXPECT_FALSE(cus_engine_cannot_fit(4ull << 30));
}

// Longer than for 200 looks, where the work before it ended.
TEST_F(Room, WorkIsWaitedForAgainWhereItEnded) {
    static int looks;
    fake::EndEngine(); // which may expect nothing of work any more
    SetUpTestSuite();
    SetUp();
    OneMibLeft();
    driver().table.cuStreamQuery = [](CUstream) {
        return looks-- > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    for (int round = 0; round < 3; round++) {
        Steps(4);
        looks = 300;
        EXPECT_TRUE(cus_engine_give_memory_back(2 << 20)) << round;
    }
}

// A thread in a copy holds the driver's locks, and a graph that is destroyed may wait for them.
TEST_F(Room, NothingIsGivenBackBesideACopy) {
    OneMibLeft();
    Steps(4);
    cus_engine_copying(true);
    EXPECT_FALSE(cus_engine_give_memory_back(2 << 20));
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    cus_engine_copying(false);
    EXPECT_TRUE(cus_engine_give_memory_back(2 << 20));
    EXPECT_GT(driver().calls["cuGraphExecDestroy"], 0);
}

TEST_F(Room, WorkThatStayedMayEndUnderTheNextEngine) {
    static int looks;
    auto prepare = [this] {
        OneMibLeft();
        Steps(4);
        ASSERT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
    };
    prepare();
    fake::Of(stream_)->busy = true;
    EXPECT_FALSE(cus_engine_give_memory_back(2 << 20));
    fake::EndEngine();

    SetUpTestSuite();
    SetUp();
    prepare();
    looks = 0;
    driver().table.cuStreamQuery = [](CUstream) {
        return looks++ < 500 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    EXPECT_TRUE(cus_engine_give_memory_back(2 << 20)) << "where nobody hopes, there are 200 looks";
}

// Graphs of the sizes that were wanted are built while nothing runs, and go again: then there is
// room for them, whatever runs.
TEST_F(RoomOfANewContext, IsMadeOnceTheHostHasWaited) {
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    auto busy = [&](bool on) { fake::Of(stream_)->busy = on; };
    auto built = [] { return driver().calls["cuGraphInstantiateWithFlags"]; };
    Launch(0);
    Sync();
    no_room();
    busy(true);
    Steps(4);
    EXPECT_GT(Counters().fallbacks[CUS_FALLBACK_ROOM], 0u);
    EXPECT_EQ(cus_engine_take_error(&ref, 0), CUDA_SUCCESS);
    EXPECT_EQ(built(), 0) << "it runs";
    Steps(1);
    busy(false);
    driver().journal.clear();
    WaitUntil([&] { return built() > 0; }); // it is not tried again at once
    int made = built();
    EXPECT_GT(made, 0);
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], made);
    EXPECT_TRUE(driver().journal.empty()) << "none of them is launched";
    busy(true); // as it is for a GPU that is behind
    Steps(2);
    busy(false);
    EXPECT_EQ(built(), 2 * made);
}

// Others may have launched something that stays meanwhile.
TEST_F(Room, IsMadeNoFurtherOnceSomethingRuns) {
    static CUstream other;
    other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    static int made;
    made = 0;
    Launch(0);
    fake::Launch(other, functions_[1], 1, 1);
    Sync();
    no_room();
    fake::Of(stream_)->busy = true;
    Steps(4);
    fake::Of(stream_)->busy = false;
    AtEachInstantiation([] {
        made++;
        fake::Of(other)->busy = true;
    });
    WaitUntil([] { return made > 0; });
    fake::Of(other)->busy = false;
    EXPECT_EQ(made, 1);
}

// The host waits for its stream meanwhile, and others are held up.
TEST_F(Room, IsMadeForAShortWhileAtATime) {
    static int made;
    made = 0;
    WantRoom();
    AtEachInstantiation([] {
        made++;
        usleep(9000); // longer than all of them together may take
    });
    WaitUntil([] { return made > 0; });
    EXPECT_EQ(made, 1);
}

// Whoever destroys a graph while a thread sleeps in a pageable copy sleeps as well.
TEST_F(Room, IsLeftWhereAThreadBeginsToCopyPageableMemory) {
    static int made;
    made = 0;
    WantRoom();
    AtEachInstantiation([] {
        if (!made++)
            cus_engine_copying(true);
    });
    WaitUntil([] { return made > 0; });
    EXPECT_EQ(made, 1);
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    cus_engine_copying(false);
    Steps(2);
    EXPECT_GT(driver().calls["cuGraphExecDestroy"], 0) << "but later on";
}

// A GPU that takes longer to come to rest is waited for longer the next time.
TEST_F(Room, IsWaitedForLongerWhereThatWasInVain) {
    static int looks, tries;
    looks = tries = 0;
    Launch(0);
    Sync();
    no_room();
    fake::Of(stream_)->busy = true;
    Steps(4);
    fake::Of(stream_)->busy = false;
    driver().table.cuStreamQuery = [](CUstream) {
        return ++looks < 40 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    WaitUntil([&] {
        tries += looks > 0;
        Steps(1);
        looks = 0;
        return driver().calls["cuGraphInstantiateWithFlags"] > 0;
    });
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
    EXPECT_GT(tries, 1) << "not for long the first time";
}

// Asking how far a stream is may spoil a capture: also before a stream is destroyed.
TEST_F(Room, AsksInTheRelaxedModeOnly) {
    static int asked, strict;
    asked = strict = 0;
    driver().table.cuStreamQuery = [](CUstream) {
        asked++;
        strict += fake::capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        return CUDA_SUCCESS;
    };
    Launch(0);
    Sync();
    no_room();
    Steps(4);
    int before = asked;
    EXPECT_GT(before, 0);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 5);
    cus_engine_stream_gone(&ref);
    EXPECT_GT(asked, before);
    EXPECT_EQ(strict, 0);
    EXPECT_NE(fake::capture_mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

// The memory of a thread that ended is that of the next one; its per-thread stream is not.
TEST_F(Room, PerThreadStreamOfAThreadThatEndedIsNotTheNextOnes) {
    Launch(0);
    Sync();
    no_room();
    std::thread([&] { fake::Launch(CU_STREAM_PER_THREAD, functions_[1], 1, 1); }).join();
    std::thread([&] {
        fake::Launch(CU_STREAM_PER_THREAD, functions_[1], 1, 1);
        Steps(6);
    }).join();
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    cus_engine_wait_ended(cus_engine_wait_begins());
    Steps(2);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

// Calls that name no stream, or many, may have begun something anywhere in the context.
TEST_F(Room, LaunchesOnStreamsThatAreNotNamedMayStay) {
    for (unsigned row : {CUS_ROW_cuLaunchGridAsync, CUS_ROW_cuLaunchCooperativeKernelMultiDevice}) {
        SetUp(); // another stream and other kernels
        Launch(0);
        Sync();
        no_room();
        bool devices = row == CUS_ROW_cuLaunchCooperativeKernelMultiDevice;
        contexts_ = {devices ? kOther : (CUcontext)0x1000}; // it launches in any
        cus_engine_flush(CUS_SCOPE_P, nullptr, row);
        contexts_ = {(CUcontext)0x1000};
        Steps(6);
        EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0) << row;
        cus_engine_wait_ended(cus_engine_wait_begins());
        Steps(2);
        EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0) << row;
        TearDown();
    }
}

// What the program makes may be what there was room for.
TEST_F(Room, GoesToWhatTheProgramMakes) {
    Launch(0);
    Sync();
    for (int i = 0; i < 64; i++)
        cus_engine_room_taken(false);
    fake::Of(stream_)->busy = true;
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(stream_)->busy = false;
    Steps(2);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

TEST_F(Room, NothingIsBuiltWhileAThreadCopiesPageableMemory) {
    Steps(2);
    cus_engine_copying(true);
    Steps(4);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    cus_engine_copying(false);
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

// Destroying sleeps behind such a copy as building does.
TEST_F(Room, NoGraphIsDestroyedWhileAThreadCopiesPageableMemory) {
    auto steps_cut_in_the_midst = [&] {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        for (int step = 0; step < 4; step++) {
            for (int i = 0; i < 12; i++) {
                Launch(i);
                if (i == 5)
                    cus_engine_flush(CUS_SCOPE_T, &ref, 7);
            }
            Sync();
        }
    };
    auto alive = [] {
        return driver().calls["cuGraphInstantiateWithFlags"] - driver().calls["cuGraphExecDestroy"];
    };
    Steps(6);
    ASSERT_GT(alive(), 0);
    cus_engine_copying(true);
    steps_cut_in_the_midst(); // which makes a boundary: the segment is dropped
    EXPECT_EQ(driver().calls["cuGraphExecDestroy"], 0);
    cus_engine_copying(false);
    AtEachInstantiation(
        [] { EXPECT_GT(driver().calls["cuGraphExecDestroy"], 0) << "but in front of the next"; });
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    Steps(4);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
    cus_engine_copying(true);
    cus_engine_code_gone();
    EXPECT_EQ(alive(), 0) << "before code goes they must";
    cus_engine_copying(false);
}

TEST_F(Room, TwoSpinnersAreOverWhenBothAre) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream one = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUstream two = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(one, spin, 1, 1);
    fake::Launch(two, spin, 1, 1);
    no_room();
    fake::Of(one)->busy = true;
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(one)->busy = false;
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

TEST_F(Room, SpinnersStreamIsNotQueriedWhileItCaptures) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, spin, 1, 1);
    no_room();
    fake::Of(other)->program_captures = true; // a query would spoil the capture
    static CUstream captures;
    captures = other;
    static bool queried;
    queried = false;
    driver().table.cuStreamQuery = [](CUstream stream) {
        queried |= stream == captures;
        return CUDA_SUCCESS;
    };
    Steps(6);
    EXPECT_FALSE(queried);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    fake::Of(other)->program_captures = false;
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0);
}

TEST_F(Room, ASynchronisedEventIsNoProofThatASpinnerEnded) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Steps(2);
    no_room();
    fake::Launch(other, spin, 1, 1);
    fake::Of(other)->busy = true;
    cus_engine_step_end(nullptr);
    EXPECT_EQ(cus_engine_take_error(nullptr, 0), CUDA_SUCCESS);
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 5);
    cus_engine_stream_gone(&ref);
    Steps(6);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], 0) << "its stream is gone, it is not";
    cus_engine_wait_ended(cus_engine_wait_begins());
    Steps(6);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], 0) << "all was waited for";
    fake::Of(other)->busy = false;
}

TEST_F(Room, AKernelThatMaySpinIsOneAlsoWhereItsArgumentsCannotBeRead) {
    CUfunction spin = fake::MakeFunction("spin_allreduce");
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, spin, 1, 1);
    Steps(4);
    no_room();
    int built = driver().calls["cuGraphInstantiateWithFlags"];
    driver().journal.clear();
    std::thread([&] { Launch(0); }).join();
    EXPECT_TRUE(driver().journal.empty());
    void *extra[] = {CU_LAUNCH_PARAM_END};
    fake::Of(other)->busy = true;
    fake::Call call(other, spin, 1, 1);
    call.launch.extra = extra; // as NCCL does: a buffer that is not as the layout says
    EXPECT_EQ(fake::Issue(call.launch), CUDA_SUCCESS);
    ASSERT_EQ(driver().journal.size(), 2u);
    EXPECT_EQ(driver().journal[0], Line(0, 0));
    Sync();
    Regrow(2);
    EXPECT_EQ(driver().calls["cuGraphInstantiateWithFlags"], built);
    fake::Of(other)->busy = false;
    Regrow(2);
    EXPECT_GT(driver().calls["cuGraphInstantiateWithFlags"], built);
}

} // namespace
