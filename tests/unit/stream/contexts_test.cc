// Promise: what is noted of a context goes with it. In a process that makes and destroys contexts
// for ever, as many ops get into graphs as at its start, and no more objects are kept.
#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/room.h"

#include <atomic>
#include <functional>
#include <future>
#include <set>
#include <thread>

extern "C" {
#include "shim/api/api.h"
#include "shim/stats/gpus.h"
}

namespace {

using fake::driver;

// More than the table of untracked streams has places.
const int kMany = 2 * (int)untracked_places();

class Contexts : public Room {
  protected:
    // The driver's pools have no room: graphs are built only while nothing runs.
    void SetUp() override {
        Room::SetUp();
        Launch(0);
        Sync();
        no_room();
    }

    static CUcontext Nth(int i) { return (CUcontext)(uintptr_t)(0x100000 + 0x1000 * i); }

    void In(CUcontext context, const std::function<void()> &work) {
        std::thread([&] {
            contexts_ = {context};
            work();
        }).join();
    }
    // Work that nobody can ask whether it has ended.
    void LaunchOnAPerThreadStream() { fake::Launch(CU_STREAM_PER_THREAD, functions_[1], 1, 1); }
    // Work on a stream of which this thread defers nothing.
    void LaunchAlone(CUstream stream) {
        cus_engine_suspend(true);
        fake::Launch(stream, functions_[1], 1, 1);
        cus_engine_suspend(false);
    }

    static bool Destroy(CUcontext context) {
        cus_engine_context_gone();
        return cus_engine_context_goes(context);
    }

    // The driver answers `naming_`, and that the GPU is `gpu_`, which is also its domain; Place has
    // the rest.
    static void NameGpus() {
        gpu_ = 4;
        asked_gpu_ = 0;
        naming_ = CUDA_SUCCESS;
        driver().table.cuCtxGetDevice = [](CUdevice *device) {
            *device = gpu_;
            return naming_;
        };
        driver().table.cuDeviceGetAttribute = [](int *value, CUdevice_attribute attribute,
                                                 CUdevice device) {
            asked_gpu_++;
            *value = device + 10 * (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) +
                     20 * (attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
            return CUDA_SUCCESS;
        };
    }
    static uint32_t Place(int gpu) { return cus_gpu_of(gpu, gpu + 10, gpu + 20); }

    bool Builds() {
        int built = driver().calls["cuGraphInstantiateWithFlags"];
        Steps(6);
        return driver().calls["cuGraphInstantiateWithFlags"] > built;
    }

    static inline CUdevice gpu_;
    static inline int asked_gpu_; // times
    static inline CUresult naming_;
};

TEST_F(Contexts, WorkOfDestroyedOnesIsInNobodysWay) {
    for (int i = 0; i < kMany; i++) {
        In(Nth(i), [&] {
            LaunchAlone(CU_STREAM_LEGACY);
            LaunchOnAPerThreadStream();
        });
        Destroy(Nth(i));
    }
    EXPECT_TRUE(Builds());
}

TEST_F(Contexts, ObjectsServeTheNextOnes) {
    uint32_t kept = contexts_kept();
    for (int i = 0; i < kMany; i++) {
        In(Nth(i), [&] { EXPECT_EQ(context_object(Nth(i)), context_object(Nth(i))); });
        EXPECT_EQ(contexts_known(), 2u);
        ASSERT_TRUE(Destroy(Nth(i)));
        EXPECT_EQ(contexts_known(), 1u) << "the stream's is left";
    }
    EXPECT_LE(contexts_kept(), kept + 1);
}

// What was found out about the GPU of one context is not said of another one.
TEST_F(Contexts, ObjectsAreCleared) {
    const void *object = context_object(Nth(0));
    context_note_all(Nth(0));
    ASSERT_TRUE(context_notes(Nth(0)));
    ASSERT_TRUE(Destroy(Nth(0)));
    EXPECT_EQ(context_object(Nth(1)), object);
    EXPECT_FALSE(context_notes(Nth(1)));
    EXPECT_TRUE(Destroy(Nth(1)));
}

TEST_F(Contexts, RoomOfOneThatEndedIsNotTheNextOnes) {
    last_engine_set_room(100, 10000);
    fake::EndContext(contexts_.back());
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Of(stream_)->busy = true;
    EXPECT_FALSE(Builds());
    fake::Of(stream_)->busy = false;
    EXPECT_TRUE(Builds());
}

// The first stream of a context on which ops are deferred shows which GPU the process uses.
TEST_F(Contexts, GpuIsNotedWhereTheDriverNamesIt) {
    uint32_t gpus[CUS_GPUS];
    NameGpus();
    cus_gpus_drop();
    for (bool named : {false, true}) {
        naming_ = named ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
        In(Nth(named),
           [&] { fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions_[1], 1, 1); });
        EXPECT_EQ(cus_gpus(gpus), named ? 1u : 0u);
        EXPECT_TRUE(Destroy(Nth(named)));
    }
    EXPECT_EQ(gpus[0], Place(4));
    EXPECT_EQ(asked_gpu_, 3) << "the domain, the bus and the device";
}

// The next context at one address may be on another GPU.
TEST_F(Contexts, WhatIsNotedOfTheGpuEndsWithTheContext) {
    uint32_t gpus[CUS_GPUS];
    NameGpus();
    cus_gpus_drop();
    for (gpu_ = 4; gpu_ < 6; gpu_++) {
        In(Nth(0),
           [&] { fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions_[1], 1, 1); });
        fake::EndContext(Nth(0));
    }
    EXPECT_TRUE(cus_engine_context_goes(Nth(0)));
    ASSERT_EQ(cus_gpus(gpus), 2u);
    EXPECT_EQ(gpus[1], Place(5));
}

TEST_F(Contexts, OneThatWasNotSeenIsNotKnown) {
    EXPECT_FALSE(cus_engine_context_goes(Nth(0)));
    EXPECT_FALSE(cus_engine_context_goes(nullptr));
    EXPECT_EQ(contexts_known(), 1u);
}

// Some other thread uses the context while it is destroyed.
TEST_F(Contexts, OneWithAnEngineStays) {
    EXPECT_FALSE(cus_engine_context_goes(contexts_.back()));
    EXPECT_EQ(contexts_known(), 1u);
    EXPECT_TRUE(Builds());
}

// Of a process with one engine alone.
class FirstContext : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({}));
    }
};

TEST_F(FirstContext, ItStaysWithItsOnlyEngine) {
    CUcontext context;
    driver().table.cuCtxGetCurrent(&context);
    Launch(0);
    EXPECT_FALSE(cus_engine_context_goes(context));
    EXPECT_EQ(contexts_known(), 1u);
}

TEST_F(Contexts, OneWithoutAnEngineGoesBesideOneThatHasOne) {
    context_object(kOther);
    EXPECT_EQ(contexts_known(), 2u);
    EXPECT_TRUE(cus_engine_context_goes(kOther));
    EXPECT_EQ(contexts_known(), 1u);
}

// A thread that has asked its own per-thread stream asks the streams with handles all the same.
TEST_F(Contexts, AThreadAsksItsOwnStreamAndThoseWithHandles) {
    In(contexts_.back(), [&] {
        LaunchOnAPerThreadStream();
        LaunchAlone(fake::MakeStream(CU_STREAM_NON_BLOCKING));
        EXPECT_TRUE(Builds());
    });
}

// A record or a wait is none, nor is a call that ends the stream.
TEST_F(Contexts, CallsThatBeginWorkOnAStreamThatIsLeftAloneAreNoted) {
    LeaveOthersAlone();
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {other, CUS_ABI_LEGACY};
    uint32_t used = untracked_used();
    for (unsigned row : {CUS_ROW_cuEventRecord, CUS_ROW_cuStreamWaitEvent, CUS_ROW_cuStreamDestroy})
        cus_engine_flush(CUS_SCOPE_S, &ref, row);
    EXPECT_EQ(untracked_used(), used);
    cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuMemcpyPeerAsync);
    EXPECT_EQ(untracked_used(), used + 1);
}

// Nothing is new about it, as there may be about a launch.
TEST_F(Contexts, AMemsetOnAStreamThatIsLeftAloneFlushesNothing) {
    driver().table.cuMemsetD8Async = fake::Fill;
    Steps(8);
    LeaveOthersAlone();
    Launch(0);
    driver().journal.clear();
    cus_memset memset = fake::FillCall(fake::MakeStream(CU_STREAM_NON_BLOCKING));
    In(contexts_.back(), [&] { EXPECT_EQ(cus_engine_memset(&memset), CUDA_SUCCESS); });
    EXPECT_EQ(driver().journal.size(), 1u) << "the memset alone";
    Sync();
    EXPECT_EQ(driver().journal.size(), 2u);
}

// A per-thread stream is another one in each context.
TEST_F(Contexts, WorkOnAPerThreadStreamIsNotedInEachContext) {
    uint32_t used = untracked_used();
    std::thread([&] {
        for (int i : {0, 1, 0, 1}) {
            contexts_ = {Nth(i)};
            LaunchOnAPerThreadStream();
        }
    }).join();
    EXPECT_EQ(untracked_used(), used + 2);
    for (int i : {0, 1})
        In(Nth(i), [] { cus_engine_wait_ended(cus_engine_wait_begins()); });
    EXPECT_EQ(untracked_used(), used);
}

// Behind a wait for the context only what began since is in the way, and that can be asked.
TEST_F(Contexts, WorkBehindAWaitDoesNotKeepOlderWorkInTheWay) {
    In(contexts_.back(), [&] {
        cus_engine_flush(CUS_SCOPE_P, nullptr, CUS_ROW_cuLaunchGridAsync); // on any stream
        EXPECT_FALSE(Builds());
        uint32_t wait = cus_engine_wait_begins();
        LaunchOnAPerThreadStream();
        cus_engine_wait_ended(wait);
        EXPECT_TRUE(Builds());
    });
}

// The driver refuses to destroy it: what ran there may still run, and no room is known.
TEST_F(Contexts, WorkOfOneThatStaysIsInTheWayThere) {
    CUcontext own = contexts_.back();
    LaunchOnAPerThreadStream();
    ASSERT_TRUE(Destroy(own));
    cus_engine_context_stays(own);
    EXPECT_FALSE(Builds());
    cus_engine_wait_ended(cus_engine_wait_begins());
    EXPECT_TRUE(Builds());
}

// A context that is made where the old one was: the thread begins work there for the first time.
TEST_F(Contexts, WorkOfTheNextOneAtItsAddressCounts) {
    CUcontext own = contexts_.back();
    In(own, [&] {
        LaunchOnAPerThreadStream();
        ASSERT_TRUE(Destroy(own));
        LaunchOnAPerThreadStream();
    });
    Launch(0);
    no_room();
    EXPECT_FALSE(Builds());
}

// More streams than the table has places, all of one context: a wait for that one ends them all.
// Meanwhile no thread makes the others note their work anew.
TEST_F(Contexts, TooManyStreamsOfOneAreInTheWayThereAlone) {
    uint32_t epoch = 0;
    for (int i = 0; i < kMany; i++) {
        In(kOther, [&] { LaunchOnAPerThreadStream(); });
        epoch = i == kMany / 2 + 2 ? untracked_epoch() : epoch;
    }
    EXPECT_EQ(untracked_epoch(), epoch);
    In(kOther, [&] { LaunchAlone(CU_STREAM_LEGACY); });
    EXPECT_TRUE(Builds());
    In(kOther, [] { cus_engine_wait_ended(cus_engine_wait_begins()); });
    EXPECT_EQ(untracked_used(), 0u);
    EXPECT_TRUE(Destroy(kOther));
}

// More streams than the table has places: those that are idle go, and one that is busy counts.
TEST_F(Contexts, TooManyStreamsThatAreIdleAreInNobodysWay) {
    context_object(kOther); // so that a wait for one context is not one for all
    LeaveOthersAlone();
    CUstream busy = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(busy, functions_[1], 1, 1);
    fake::Of(busy)->busy = true;
    for (int i = 0; i < kMany; i++)
        fake::Launch(fake::MakeStream(CU_STREAM_NON_BLOCKING), functions_[1], 1, 1);
    EXPECT_FALSE(Builds());
    fake::Of(busy)->busy = false;
    EXPECT_TRUE(Builds());
    EXPECT_TRUE(Destroy(kOther));
}

// More streams than places, all busy: what another context has takes one place.
TEST_F(Contexts, TooManyStreamsThatAreBusyLeaveOnePlaceToAnotherContext) {
    std::vector<CUstream> busy;
    auto another = [&] {
        busy.push_back(fake::MakeStream(CU_STREAM_NON_BLOCKING));
        fake::Of(busy.back())->busy = true;
        fake::Launch(busy.back(), functions_[1], 1, 1);
    };
    LeaveOthersAlone();
    In(kOther, [&] { LaunchOnAPerThreadStream(); });
    while (untracked_used() < untracked_places() - 1)
        another();
    In(kOther, [&] { LaunchOnAPerThreadStream(); });
    ASSERT_EQ(untracked_used(), untracked_places());
    another();
    EXPECT_EQ(untracked_used(), untracked_places());
    EXPECT_FALSE(Builds());
    for (CUstream stream : busy)
        fake::Of(stream)->busy = false;
    EXPECT_TRUE(Builds()) << "work in another context is in nobody's way";
    EXPECT_EQ(untracked_used(), 1u);
    EXPECT_TRUE(Destroy(kOther));
}

// More contexts with work than the table has places.
TEST_F(Contexts, TooManyContextsAreInTheWay) {
    for (int i = 0; i < kMany; i++)
        In(Nth(i), [&] { LaunchOnAPerThreadStream(); });
    EXPECT_FALSE(Builds());
    for (int i = 0; i < kMany; i++)
        Destroy(Nth(i));
    cus_engine_wait_ended(cus_engine_wait_begins());
    EXPECT_TRUE(Builds()) << "one context is left, and the program has waited for it";
}

// The driver must not be asked about it any more. The others stay known.
TEST_F(Contexts, AStreamThatIsDestroyedIsAskedForTheLastTime) {
    static std::set<CUstream> asked;
    CUstream goes = fake::MakeStream(CU_STREAM_NON_BLOCKING),
             stays = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    LeaveOthersAlone();
    fake::Launch(goes, functions_[1], 1, 1);
    fake::Launch(stays, functions_[1], 1, 1);
    cus_stream_ref ref = {goes, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&ref);
    driver().table.cuStreamQuery = [](CUstream stream) {
        asked.insert(stream);
        return CUDA_SUCCESS;
    };
    asked.clear();
    EXPECT_TRUE(Builds());
    EXPECT_EQ(asked.count(goes), 0u);
    EXPECT_EQ(asked.count(stays), 1u);
}

// A thread without a context.
TEST_F(Contexts, NoMemoryIsGivenBackWhereThereIsNone) {
    std::thread([] {
        contexts_.clear();
        EXPECT_FALSE(cus_engine_give_memory_back(2 << 20));
        EXPECT_FALSE(cus_engine_cannot_fit(2 << 20));
    }).join();
}

// The streams of a context go with it: nothing says that the next one at a handle is as they were.
TEST_F(Contexts, StreamsThatWereLeftAloneAreLookedAtAnew) {
    static bool green;
    green = true;
    driver().table.cuStreamGetGreenCtx = [](CUstream, CUgreenCtx *context) {
        *context = green ? (CUgreenCtx)0x3000 : nullptr;
        return CUDA_SUCCESS;
    };
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    EXPECT_FALSE(Builds());
    green = false;
    EXPECT_FALSE(Builds());
    cus_engine_context_gone();
    EXPECT_TRUE(Builds());
}

class BeforeThereIsAnEngine : public Contexts { // an engine of its own: no stream was used before
  protected:
    void SetUp() override { Room::SetUp(); }
};

// Until then it is only counted how many threads have such work.
TEST_F(BeforeThereIsAnEngine, WorkOnPerThreadStreamsIsInTheWayUntilEachThreadHasWaited) {
    std::promise<void> may_wait[2];
    std::atomic<int> launched{0};
    std::thread threads[2];
    for (int i : {0, 1}) { // one behind the other: the fake driver has no locks
        threads[i] = std::thread([&, i] {
            LaunchOnAPerThreadStream();
            launched++;
            may_wait[i].get_future().wait();
            cus_stream_ref own = {CU_STREAM_PER_THREAD, CUS_ABI_LEGACY};
            EXPECT_EQ(cus_engine_take_error(&own, 0), CUDA_SUCCESS);
        });
        EXPECT_TRUE(Within(20, [&] { return launched == i + 1; }));
    }
    Launch(0);
    Sync();
    no_room();
    EXPECT_FALSE(Builds());
    for (int i : {0, 1}) {
        may_wait[i].set_value();
        threads[i].join();
        EXPECT_EQ(Builds(), i == 1);
    }
}

} // namespace
