// Promise: a stream is forked only where nobody can tell: if all that it did is joined, one thread
// uses it, and it is ordered and ranked as the home stream is.
#include "tests/unit/stream/branches.h"

#include <set>

using fake::driver;
using fake::Elsewhere;
using fake::Event;

// HAZARDS B20.
TEST_F(Branches, OnlyAStreamThatIsJoinedAndAloneIsForked) {
    Learn();
    // Work behind the join, in each step.
    for (int i = 0; i < 6; i++) {
        Clear();
        First();
        if (i) {
            EXPECT_TRUE(Has(At(side_, 2))) << i;
        }
        Rest();
        Side(8);
        EXPECT_TRUE(Has(At(side_, 8))) << i;
        Sync();
    }
    // No more: the first region is the program's own, and joins the stream.
    ASSERT_NO_FATAL_FAILURE(Again());
    // A second thread uses it.
    Elsewhere([&] { Side(8); });
    ExpectNoBranch();
}

// It is made by the driver, behind what it waits for.
TEST_F(Branches, AWaitOfAThreadThatSuspendedDeferralIsItsOwn) {
    Learn();
    Clear();
    Home(0);
    Home(1);
    EXPECT_EQ(fake::RecordOn(stream_, Event(0)), CUDA_SUCCESS);
    EXPECT_TRUE(driver().journal.empty()) << "all of it is deferred";
    cus_engine_suspend(true);
    EXPECT_EQ(fake::WaitOn(side_, Event(0)), CUDA_SUCCESS);
    const Lines expected = {At(stream_, 0), At(stream_, 1), Recorded(stream_, 0), EndWaited(side_),
                            Waited(side_, 0)};
    EXPECT_EQ(driver().journal, expected);
    cus_engine_suspend(false);
    Sync();
}

TEST_F(Branches, AWaitForAnEventThatWasNeverRecordedIsItsOwn) {
    Learn();
    Clear();
    EXPECT_EQ(fake::WaitOn(side_, Event(9)), CUDA_SUCCESS);
    ASSERT_FALSE(driver().journal.empty());
    EXPECT_EQ(driver().journal.back(), Waited(side_, 9));
}

TEST_F(Branches, TheFirstRegionIsMadeByTheProgramsOwnCalls) {
    Home(6);
    Sync();
    Expect(Whole(false), [&] {
        First();
        Rest();
    });
}

TEST_F(Branches, AJoinedStreamThatMovedIsJoinedAgainByItsNextRegion) {
    Learn();
    const std::vector<std::pair<const char *, std::function<void()>>> moves = {
        {"a launch", [&] { Side(8); }},
        {"a call", [&] { Name(side_); }},
        {"a wait for another stream",
         [&] {
             CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
             fake::Launch(other, functions_[9], 9);
             Fork(other, side_, 5);
         }},
        {"memory",
         [&] {
             cus_stream_ref ref = {side_, CUS_ABI_LEGACY};
             uint64_t address;
             cus_engine_alloc_begins(&ref, nullptr, 64, &address);
         }},
    };
    fake::Launch(stream_, functions_[8], 8);
    fake::Launch(stream_, functions_[9], 9);
    Sync();
    for (const auto &[what, move] : moves) {
        SCOPED_TRACE(what);
        ASSERT_NO_FATAL_FAILURE(Again());
        move();
        Clear();
        First();
        EXPECT_TRUE(Has(Waited(side_, 0)));
        EXPECT_TRUE(Has(At(side_, 2)));
        Rest();
        Sync();
        Clear();
        First();
        EXPECT_FALSE(Has(At(side_, 2))) << "the next one";
        Rest();
        Sync();
    }
    // A wait of the host for the side stream is no work.
    ASSERT_NO_FATAL_FAILURE(Again());
    Await(side_);
    Clear();
    Step();
    EXPECT_FALSE(Has(At(side_, 2)));
    fake::ExpectBalance();
}

TEST_F(Branches, AStreamThatIsNotJoinedIsNotForked) {
    Learn();
    for (int i = 0; i < 6; i++) {
        Clear();
        First();
        if (i) {
            EXPECT_TRUE(Has(At(side_, 2))) << i;
        }
        Side(3);
        Home(4);
        Join(side_, stream_, 1);
        Side(5); // behind the record
        Home(5);
        Sync();
    }
    fake::ExpectBalance();
}

// A graph is behind what the home did. It would not be behind what the side stream did by itself.
TEST_F(Branches, WhatWentOutBesideTheHomeIsJoinedBeforeAGraphHasTheBranch) {
    Learn();
    First();
    Sync(); // k2 is on the side stream, and nobody waits for it
    Clear();
    Step();
    EXPECT_TRUE(Has(At(side_, 2)));
    EXPECT_TRUE(Has(At(side_, 3)));
    ASSERT_NO_FATAL_FAILURE(Again()); // the join was for both
    // In one step, too.
    Streams(CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    Prime(side_);
    auto twice = [&](bool flushed) {
        First();
        if (flushed)
            Name(stream_);
        Fork(stream_, side_, 2);
        Rest();
        Sync();
    };
    for (int i = 0; i < 60; i++)
        twice(false);
    Clear();
    twice(false);
    EXPECT_FALSE(Has(At(side_, 3)));
    for (int i = 0; i < 6; i++) {
        Clear();
        twice(true);
        EXPECT_TRUE(Has(At(side_, 2)));
        EXPECT_TRUE(Has(At(side_, 3))) << i;
    }
    fake::ExpectBalance();
}

// Its last work is in front of the other stream's, not of the home's.
TEST_F(Branches, AStreamThatIsJoinedToAnotherOneIsNotForked) {
    Learn();
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[9], 9);
    fake::Launch(side_, functions_[8], 8);
    ASSERT_NO_FATAL_FAILURE(Again());
    Side(8);
    Join(side_, other, 5);
    Sync();
    Clear();
    First();
    EXPECT_TRUE(Has(At(side_, 2)));
    Rest();
    Sync();
}

// Its object served another stream before, to which the side stream was joined.
TEST_F(Branches, ASideStreamIsNotJoinedToAHomeThatIsNew) {
    Learn();
    ASSERT_NO_FATAL_FAILURE(Again());
    Gone(stream_);
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Home(8);
    Sync();
    const uint64_t waits = fake::Counters().ops[CUS_OP_WAIT];
    Clear();
    First();
    EXPECT_EQ(fake::Counters().ops[CUS_OP_WAIT], waits) << "a wait of the program's own";
    EXPECT_TRUE(Has(At(side_, 2)));
    Rest();
    Sync();
}

// The second wait is no first one: the branch's op is not joined when the step ends.
TEST_F(Branches, ABranchThatWaitedTwiceIsNotForkedUntilItIsJoined) {
    Learn();
    for (int i = 0; i < 3; i++) {
        ASSERT_NO_FATAL_FAILURE(Again());
        First();
        Fork(stream_, side_, 2);
        Sync();
        Clear();
        Step();
        EXPECT_TRUE(Has(At(side_, 2))) << i;
    }
    fake::ExpectBalance();
}

TEST_F(Branches, ABranchThatIsJoinedByAPartIsNotForkedUntilTheRestIs) {
    Learn();
    for (int i = 0; i < 3; i++) {
        ASSERT_NO_FATAL_FAILURE(Again());
        First();
        EXPECT_EQ(fake::RecordOn(side_, Event(1)), CUDA_SUCCESS);
        Side(3);
        EXPECT_EQ(fake::WaitOn(stream_, Event(1)), CUDA_SUCCESS);
        Home(5);
        Sync();
        Clear();
        Step();
        EXPECT_TRUE(Has(At(side_, 2))) << i;
    }
    fake::ExpectBalance();
}

// Left in the midst, by a call that gives it no work.
TEST_F(Branches, AStreamThatWasLeftOpenIsNotForked) {
    Learn();
    First();
    cus_stream_ref ref = {side_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_T, &ref, CUS_ROW_cuStreamQuery);
    EXPECT_TRUE(Has(At(side_, 2)));
    Sync();
    Clear();
    Home(0);
    Home(1);
    uint64_t waits = fake::Counters().ops[CUS_OP_WAIT];
    Fork(stream_, side_, 0);
    EXPECT_EQ(fake::Counters().ops[CUS_OP_WAIT], waits);
    EXPECT_TRUE(Has(Waited(side_, 0)));
}

// Its record may be another one by now.
TEST_F(Branches, ANamedEventJoinsNothing) {
    Learn();
    First();
    Side(3);
    EXPECT_EQ(fake::RecordOn(side_, Event(1)), CUDA_SUCCESS);
    cus_engine_event_named(Event(1), CUS_ROW_cuGraphAddEventRecordNode);
    EXPECT_EQ(fake::WaitOn(stream_, Event(1)), CUDA_SUCCESS);
    Sync();
    Clear();
    First();
    Side(3);
    Join(side_, stream_, 2);
    Home(5);
    EXPECT_TRUE(Has(At(side_, 2)));
    Sync();
}

TEST_F(Branches, ASecondThreadThatUsesTheSideStreamComesBehind) {
    Learn();
    Home(8);
    Sync();
    Steps(4);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
    Lines expected = Begun();
    expected.push_back(At(side_, 8));
    Expect(expected, [&] {
        First();
        ASSERT_EQ(Issued(), 0u);
        Elsewhere([&] { Side(8); });
    });
    Expect({At(side_, 3), At(stream_, 4), Recorded(side_, 1), Waited(stream_, 1), At(stream_, 5)},
           [&] {
               Rest();
               Sync();
           });
    ExpectNoBranch();
}

TEST_F(Branches, ASecondThreadThatNamesTheSideStreamWaitsForItsBranch) {
    Learn();
    Expect(Begun(), [&] {
        First();
        Elsewhere([&] { Name(side_); });
    });
    Rest();
    Sync();
    // Its call may come later than it was told of, and give work to a stream that is joined by
    // then.
    ExpectNoBranch();
}

TEST_F(Branches, ASecondThreadThatNamesTheSideStreamLaterWaitsForItsBranch) {
    Learn();
    Steps(4);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph());
    Expect({EndWaited(side_)}, [&] { Elsewhere([&] { Name(side_); }); });
    ExpectNoBranch();
    fake::ExpectBalance();
}

// A thread that records an event on it or asks about it gives it no work.
TEST_F(Branches, ASecondThreadMayRecordAndAsk) {
    Learn();
    for (unsigned row : {CUS_ROW_cuEventRecord, CUS_ROW_cuEventRecordWithFlags,
                         CUS_ROW_cuEventRecord_ptsz, CUS_ROW_cuStreamQuery}) {
        Elsewhere([&] {
            cus_stream_ref ref = {side_, CUS_ABI_LEGACY};
            cus_engine_flush(CUS_SCOPE_S, &ref, row);
        });
        Sync();
        ASSERT_NO_FATAL_FAILURE(Again()) << cus_api_name(row);
    }
}

TEST_F(Branches, AStreamOfAnotherPriorityIsNotForked) {
    fake::Of(side_)->priority = -1;
    ExpectNoBranch();
    fake::Of(stream_)->priority = -1;
    end_ = fake::OwnEvent(fake::OwnEvents());
    ASSERT_NO_FATAL_FAILURE(Again()) << "they are the same";
}

// What a stream is ordered with by itself, its branch must be.
TEST_F(Branches, ABlockingStreamIsForkedFromABlockingStreamAlone) {
    Streams(CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT);
    ExpectNoBranch();
    Streams(CU_STREAM_DEFAULT, CU_STREAM_DEFAULT);
    Learn();
    Streams(CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING);
    Learn();
    stream_ = CU_STREAM_LEGACY;
    side_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Learn();
    side_ = fake::MakeStream(CU_STREAM_DEFAULT);
    ExpectNoBranch();
    /* The host waits for the stream that waits for the legacy stream, so the legacy stream's own
     * steps are known, and its two launches become a graph. They are on the legacy stream still. */
    side_ = CU_STREAM_LEGACY;
    stream_ = fake::MakeStream(CU_STREAM_DEFAULT);
    for (int i = 0; i < 8; i++) {
        Clear();
        Step();
        EXPECT_TRUE(Has(At(side_, 2)) && Has(At(side_, 3))) << i;
        EXPECT_FALSE(Has(At(stream_, 2)) || Has(At(stream_, 3))) << i;
        EXPECT_TRUE(Has(Waited(side_, 0)) && Has(Waited(stream_, 1))) << i;
    }
    fake::ExpectBalance();
}

// Limits, caches and pools of a context are set by many programs, and are none of a stream.
TEST_F(Branches, LimitsOfAContextDoNotForbidBranches) {
    Learn();
    First();
    Rest();
    Expect({EndWaited(side_)}, [&] { cus_engine_limits_changed(); });
    Sync();
    ASSERT_NO_FATAL_FAILURE(Again());
    EXPECT_EQ(fake::driver().calls["cuGraphLaunch"], 1);
}

TEST_F(Branches, NothingIsForkedOnceStreamsHaveAttributes) {
    Learn();
    cus_stream_ref ref = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
    First();
    Rest();
    Expect({EndWaited(side_)}, [&] { cus_engine_stream_changed(&ref); });
    Sync();
    ExpectNoBranch();
}

TEST_F(Branches, NothingIsForkedWhileTheProgramCaptures) {
    Learn();
    CUstream capturing = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {capturing, CUS_ABI_LEGACY};
    fake::Of(capturing)->program_captures = true;
    cus_engine_capture_began(&ref);
    for (int i = 0; i < 3; i++) {
        Clear();
        First();
        EXPECT_TRUE(Has(At(side_, 2)));
        Rest();
        Sync();
    }
    fake::Of(capturing)->program_captures = false;
    cus_engine_capture_ended(&ref);
    ASSERT_NO_FATAL_FAILURE(Again());
}

// It orders nothing on a stream that captures. Of an event that has a name elsewhere, the last
// record may be another one.
TEST_F(Branches, OnlyAWaitForAKnownRecordJoins) {
    Learn();
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    int event = 3;
    for (const std::string how : {"made", "captured", "named"}) {
        SCOPED_TRACE(how);
        ASSERT_NO_FATAL_FAILURE(Again());
        Name(side_); // the side stream has work that nobody waits for
        Side(2);
        if (how == "named")
            cus_engine_event_named(fake::Event(event), CUS_ROW_cuIpcGetEventHandle);
        EXPECT_EQ(fake::RecordOn(side_, fake::Event(event)), CUDA_SUCCESS);
        if (how == "captured") {
            fake::Of(stream_)->program_captures = true;
            cus_engine_capture_began(&ref);
        }
        EXPECT_EQ(fake::WaitOn(stream_, fake::Event(event)), CUDA_SUCCESS);
        if (how == "captured") {
            fake::Of(stream_)->program_captures = false;
            cus_engine_capture_ended(&ref);
        }
        Clear();
        Step();
        EXPECT_EQ(Has(At(side_, 2)), how != "made");
        event++;
    }
}

// HAZARDS D7, of captures that were seen to begin and of others.
TEST_F(Branches, AStreamThatCapturesIsAskedNothingElse) {
    static std::set<CUstream> asked;
    Prime(side_);
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[0], 100);
    fake::Sync(other);
    driver().table.cuStreamGetPriority = [](CUstream stream, int *priority) {
        asked.insert(stream);
        *priority = 0;
        return CUDA_SUCCESS;
    };
    driver().table.cuStreamGetId = [](CUstream stream, unsigned long long *id) {
        asked.insert(stream);
        *id = fake::Of(stream)->id;
        return CUDA_SUCCESS;
    };
    for (CUstream capturing : {stream_, side_})
        for (bool seen : {true, false}) {
            cus_stream_ref ref = {capturing, CUS_ABI_LEGACY};
            fake::Of(capturing)->program_captures = true;
            if (seen)
                cus_engine_capture_began(&ref);
            Home(0);
            asked.clear();
            Fork(stream_, side_, 0);
            EXPECT_EQ(asked.count(capturing), 0u);
            if (!seen) // and a stream has gone, so that any may be another one
                Gone(other);
            asked.clear();
            Fork(stream_, side_, 0);
            EXPECT_EQ(asked.count(capturing), 0u);
            fake::Of(capturing)->program_captures = false;
            cus_engine_capture_ended(&ref);
            Join(side_, stream_, 1);
            Sync();
        }
    // Nor are others asked while one captures.
    CUstream third = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {third, CUS_ABI_LEGACY};
    fake::Of(third)->program_captures = true;
    cus_engine_capture_began(&ref);
    asked.clear();
    Fork(stream_, side_, 0);
    EXPECT_TRUE(asked.empty());
    fake::Of(third)->program_captures = false;
    cus_engine_capture_ended(&ref);
    Join(side_, stream_, 1);
    Sync();
    asked.clear();
    Fork(stream_, side_, 0);
    EXPECT_EQ(asked.count(side_), 1u);
}

// HAZARDS B13: its handle came back, and nobody saw that.
TEST_F(Branches, AStreamThatMayBeAnotherOneIsLookedAtAgain) {
    Learn();
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[0], 100);
    fake::Sync(other);
    Gone(other); // a stream has gone, and so may others
    Steps(4);
    ASSERT_NO_FATAL_FAILURE(ExpectGraph()) << "it is the same";
    other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[0], 100);
    fake::Sync(other);
    Gone(other);
    fake::Of(side_)->id += 1000;
    ExpectNoBranch();
}

TEST_F(Branches, AnEventThatIsNamedElsewhereForksNothing) {
    Learn();
    cus_engine_event_named(Event(0), CUS_ROW_cuGraphAddEventRecordNode);
    ExpectNoBranch(4);
    // Nor a wait that becomes a node of the program's graph.
    Clear();
    Home(0);
    fake::RecordOn(stream_, Event(5));
    EXPECT_EQ(fake::WaitOn(side_, Event(5), CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
    EXPECT_EQ(driver().journal.back(), Waited(side_, 5));
}

TEST_F(Branches, AStreamOfAnotherContextIsNotForked) {
    cus_driver &t = driver().table;
    CUcontext mine, theirs = reinterpret_cast<CUcontext>(0x4000);
    t.cuCtxGetCurrent(&mine);
    for (int i = 0; i < 8; i++) {
        Clear();
        Home(0);
        Home(1);
        fake::RecordOn(stream_, Event(0));
        t.cuCtxPushCurrent_v2(theirs);
        fake::WaitOn(side_, Event(0));
        Side(2);
        EXPECT_TRUE(Has(At(side_, 2))) << i;
        fake::RecordOn(side_, Event(1));
        t.cuCtxPushCurrent_v2(mine);
        fake::WaitOn(stream_, Event(1));
        Home(5);
        Sync();
    }
}

TEST_F(Branches, ADriverWithoutTheCallsForksNothing) {
    // One slot at a time: the watchdog reads others meanwhile.
    cus_driver &t = driver().table;
    void **const slots[] = {
        reinterpret_cast<void **>(&t.cuEventCreate),
        reinterpret_cast<void **>(&t.cuEventDestroy_v2),
        reinterpret_cast<void **>(&t.cuEventRecordWithFlags),
        reinterpret_cast<void **>(&t.cuStreamUpdateCaptureDependencies_v2),
        reinterpret_cast<void **>(&t.cuGraphExecEventRecordNodeSetEvent),
    };
    for (void **slot : slots) {
        SCOPED_TRACE(slot - reinterpret_cast<void **>(&t));
        Streams(CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
        Prime(side_);
        void *was = *slot;
        *slot = nullptr;
        const uint64_t waits = fake::Counters().ops[CUS_OP_WAIT];
        Steps(8);
        EXPECT_EQ(fake::Counters().ops[CUS_OP_WAIT], waits) << "the program's own calls";
        *slot = was;
    }
}

TEST_F(Branches, AnEventThatCannotBeMadeForksNothing) {
    driver().fail = [](const std::string &what) {
        return what == "cuEventCreate" ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    ExpectNoBranch();
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    ASSERT_NO_FATAL_FAILURE(Again());
}

class OneQueue : public Branches {
  protected:
    fake::Settings EngineSettings() override {
        fake::Settings settings = Branches::EngineSettings();
        settings.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "1");
        return settings;
    }
};

// Programs rely on the order in which such a queue takes their calls.
TEST_F(OneQueue, NothingIsForked) {
    ExpectNoBranch();
}
