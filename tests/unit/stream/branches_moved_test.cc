// Promise: a call that another thread came before is no op of a branch: each look at a stream is
// repeated once the home's lock is had.
#include "tests/unit/stream/branches.h"
#include "tests/unit/stream/homes.h"

#include <unistd.h>

#include <atomic>
#include <thread>

extern "C" {
#include "tests/unit/stream/held_locks.h"
}

using fake::driver;
using fake::Elsewhere;
using fake::Event;

namespace {

class Moved : public Branches {
  protected:
    home_call Call(CUstream on, CUstream of, uint64_t ops) const {
        return {stream_, on, of, side_, ops, false};
    }
    uint64_t Ops() const { return home_ops(stream_); }
    static uint64_t Waits() { return fake::Counters().ops[CUS_OP_WAIT]; }
    // A wait that may fork is made an op of the home, or is not.
    static bool IsOp(const std::function<void()> &fork) {
        const uint64_t before = Waits();
        fork();
        return Waits() != before;
    }
    void ExpectNoPlace(const std::function<bool(moved)> &is, const std::vector<moved> &by) {
        EXPECT_TRUE(is(MOVED_NOTHING));
        for (moved by_this : by)
            EXPECT_FALSE(is(by_this)) << by_this;
        EXPECT_TRUE(is(MOVED_NOTHING)) << "it was undone";
    }
    static constexpr moved kHome[] = {MOVED_CLOSED, MOVED_DEMOTED, MOVED_OWNER, MOVED_CAPTURES};
    static std::vector<moved> HomeAnd(std::vector<moved> side) {
        side.insert(side.end(), std::begin(kHome), std::end(kHome));
        return side;
    }
};

} // namespace

TEST_F(Moved, ALaunchIsLookedAtAgain) {
    Learn();
    First();
    fake::Of(stream_)->program_captures = true; // as the list of captures has it, if it has it
    home_call call = Call(side_, side_, 0);
    ExpectNoPlace([&](moved by) { return home_enters(&call, by); },
                  HomeAnd({MOVED_LEFT, MOVED_USER, MOVED_WORKED}));
    fake::Of(stream_)->program_captures = false;
    Rest();
    Sync();
    fake::ExpectBalance();
}

TEST_F(Moved, AWaitOfABranchIsLookedAtAgain) {
    Learn();
    First();
    fake::Of(stream_)->program_captures = true;
    home_call call = Call(side_, stream_, Ops());
    ExpectNoPlace([&](moved by) { return home_waits(&call, by).is; },
                  HomeAnd({MOVED_LEFT, MOVED_USER, MOVED_WORKED}));
    fake::Of(stream_)->program_captures = false;
    Rest();
    Sync();
}

TEST_F(Moved, AWaitThatJoinsIsLookedAtAgain) {
    Learn();
    First();
    fake::Of(stream_)->program_captures = true;
    home_call call = Call(stream_, side_, Ops());
    ExpectNoPlace([&](moved by) { return home_waits(&call, by).is; },
                  HomeAnd({MOVED_LEFT, MOVED_USER, MOVED_WORKED}));
    fake::Of(stream_)->program_captures = false;
    Rest();
    Sync();
}

TEST_F(Moved, WhatComesBehindARecordIsLookedAtAgain) {
    Learn();
    First();
    const home_call fork = Call(side_, stream_, 1), join = Call(stream_, side_, 1);
    EXPECT_TRUE(home_is_behind(&fork, MOVED_NOTHING));
    EXPECT_FALSE(home_is_behind(&fork, MOVED_LEFT));
    EXPECT_FALSE(home_is_behind(&join, MOVED_NOTHING)) << "it is not joined";
    Rest();
    EXPECT_TRUE(home_is_behind(&join, MOVED_NOTHING));
    EXPECT_FALSE(home_is_behind(&join, MOVED_LEFT));
    EXPECT_FALSE(home_is_behind(&fork, MOVED_NOTHING)) << "no fork is open";
    // A third stream is no branch, and a record of another branch is not its own.
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    On(other, 9);
    const home_call others = {stream_, other, side_, side_, 1, false};
    EXPECT_FALSE(home_is_behind(&others, MOVED_NOTHING));
    Sync();
}

// Another thread has given the side stream work while this one asked the driver about it.
TEST_F(Moved, AStreamThatMovedWhileItWasAskedIsNotForked) {
    static CUstream side;
    static int named;
    Learn();
    Name(side_);
    Prime(side_);
    Name(side_);
    Home(6);
    Join(side_, stream_, 15);
    side = side_;
    named = 0;
    driver().table.cuStreamGetPriority = [](CUstream stream, int *priority) {
        *priority = 0;
        if (stream == side && !named++)
            Elsewhere([] { Name(side); });
        return CUDA_SUCCESS;
    };
    Home(0);
    EXPECT_FALSE(IsOp([&] { Fork(stream_, side_, 0); }));
    EXPECT_EQ(named, 1);
    Expect({At(side_, 2)}, [&] { Side(2); });
    Sync();
    // Nor is a stream of two threads asked anything again, joined as it is.
    Join(side_, stream_, 15);
    Home(0);
    EXPECT_FALSE(IsOp([&] { Fork(stream_, side_, 0); }));
    EXPECT_EQ(named, 1);
    fake::ExpectBalance();
}

// The home's stream has gone meanwhile, and the home serves another one, to which nothing is
// joined.
TEST_F(Moved, AStreamIsNotForkedFromAHomeThatIsNewByThen) {
    static CUstream home, next;
    Prime(side_);
    home = stream_;
    next = nullptr;
    driver().table.cuStreamGetPriority = [](CUstream stream, int *priority) {
        *priority = 0;
        if (stream == home && !next) {
            next = fake::MakeStream(CU_STREAM_NON_BLOCKING);
            Elsewhere([] {
                Gone(home);
                fake::RecordOn(next, Event(7));
            });
        }
        return CUDA_SUCCESS;
    };
    Home(0);
    EXPECT_FALSE(IsOp([&] { Fork(stream_, side_, 0); }));
    ASSERT_TRUE(next);
    const uint64_t ops = home_ops(next);
    Side(2);
    EXPECT_EQ(home_ops(next), ops) << "nor has that one its ops";
    Sync();
}

TEST_F(Moved, ADemotedStreamIsNotForked) {
    Learn();
    home_demote(side_, 1000);
    Name(side_);
    Home(6);
    Join(side_, stream_, 15);
    EXPECT_FALSE(IsOp([&] { Fork(stream_, side_, 0); }));
    home_demote(side_, 0);
    Join(side_, stream_, 15);
    EXPECT_TRUE(IsOp([&] { Fork(stream_, side_, 0); }));
    Sync();
}

// Calls pass from there on, and are looked at by nobody (rest.c).
TEST_F(Moved, WhatPassedOnABranchMakesItNone) {
    Learn();
    First();
    home_call call = Call(side_, side_, 0);
    EXPECT_TRUE(home_enters(&call, MOVED_NOTHING));
    home_pass(side_, CUS_OP_LAUNCH, 1);
    EXPECT_FALSE(home_enters(&call, MOVED_NOTHING));
    EXPECT_FALSE(home_enters(&call, MOVED_WORKED)) << "both";
    home_pass(side_, CUS_OP_LAUNCH, -1);
    EXPECT_TRUE(home_enters(&call, MOVED_NOTHING));
    Rest();
    Sync();
}

// What the driver answers of a stream that captures, or of one that has gone, is not believed.
TEST_F(Moved, ABranchThatCannotBeAskedWaitsByItself) {
    Learn();
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[0], 100);
    fake::Sync(other);
    Step();
    Home(0);
    fake::RecordOn(stream_, Event(0));
    fake::Of(side_)->program_captures = true;
    Gone(other);
    EXPECT_FALSE(IsOp([&] { fake::WaitOn(side_, Event(0)); }));
    fake::Of(side_)->program_captures = false;
    Sync();
}

// HAZARDS A16.
TEST_F(Moved, NoEventIsMadeWhileAThreadSleepsInACopy) {
    Prime(side_);
    const uintptr_t made = fake::OwnEvents();
    home_copies(true);
    Home(0);
    EXPECT_FALSE(IsOp([&] { Fork(stream_, side_, 0); }));
    EXPECT_EQ(fake::OwnEvents(), made);
    home_copies(false);
    Join(side_, stream_, 1);
    EXPECT_TRUE(IsOp([&] { Fork(stream_, side_, 0); }));
    EXPECT_EQ(fake::OwnEvents(), made + 1);
    Sync();
}

TEST_F(Moved, TheStreamsOwnLockGuardsItsPosition) {
    static std::atomic<bool> done;
    static CUstream side;
    CUcontext context;
    driver().table.cuCtxGetCurrent(&context);
    Learn();
    side = side_;
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[0], 100);
    fake::Sync(other);
    Gone(other); // so that the side stream is looked at
    for (void (*locks)(CUstream) : {home_same, home_position}) {
        static void (*call)(CUstream);
        static std::thread thread;
        call = locks;
        done = false;
        hold_engine(side_, context, [] {
            thread = std::thread([] {
                call(side);
                done = true;
            });
            usleep(50000);
            EXPECT_FALSE(done);
        });
        thread.join();
        EXPECT_TRUE(done);
    }
}

// ---- places of waits ----

TEST_F(Moved, AWaitHasItsPlace) {
    Learn();
    First();
    home_call fork = Call(side_, stream_, Ops());
    home_place place = home_waits(&fork, MOVED_NOTHING);
    EXPECT_EQ(place.branch, 1u);
    EXPECT_EQ(place.from, 0u);
    EXPECT_EQ(place.back, 1u);
    EXPECT_TRUE(place.goes_on);
    home_call join = Call(stream_, side_, Ops());
    place = home_waits(&join, MOVED_NOTHING);
    EXPECT_EQ(place.branch, 0u);
    EXPECT_EQ(place.from, 1u);
    EXPECT_EQ(place.back, 1u);
    EXPECT_FALSE(place.goes_on);
    // No segment is as long, and of a record that is not known nothing is said.
    const unsigned longest = home_longest();
    while (Ops() <= longest)
        Home(8);
    for (unsigned back : {longest - 1, longest, longest + 1}) {
        fork.ops = Ops() + 1 - back;
        EXPECT_EQ(home_waits(&fork, MOVED_NOTHING).back, back < longest ? back : 0u);
    }
    fork.ops = 0;
    EXPECT_EQ(home_waits(&fork, MOVED_NOTHING).back, 0u);
    Sync();
}

// An older record moves nothing back.
TEST_F(Moved, ABranchIsBehindTheLastRecordThatItWaitsFor) {
    Learn();
    First();
    const uint64_t ops = Ops();
    home_call wait = Call(side_, stream_, ops), asked = wait;
    ASSERT_TRUE(home_waits(&wait, MOVED_NOTHING).is);
    EXPECT_TRUE(home_is_behind(&asked, MOVED_NOTHING));
    wait.ops = 1;
    ASSERT_TRUE(home_waits(&wait, MOVED_NOTHING).is);
    EXPECT_TRUE(home_is_behind(&asked, MOVED_NOTHING)) << "still";
    asked.ops = ops + 1;
    EXPECT_FALSE(home_is_behind(&asked, MOVED_NOTHING));
    Rest();
    Sync();
    // It is forked again, from another branch: behind none of the home's own.
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    Prime(other);
    Home(0);
    Fork(stream_, side_, 0);
    Side(2);
    Join(side_, stream_, 1);
    Fork(stream_, other, 3);
    On(other, 2);
    wait.of = other;
    wait.ops = Ops();
    wait.may_fork = true;
    ASSERT_TRUE(home_waits(&wait, MOVED_NOTHING).is);
    asked.ops = 1;
    EXPECT_FALSE(home_is_behind(&asked, MOVED_NOTHING));
    Sync();
}

// The branch waits once more behind the record, so that the record joins a part of it.
TEST_F(Moved, ARecordInFrontOfAWaitJoinsAPart) {
    Learn();
    First();
    EXPECT_EQ(fake::RecordOn(stream_, Event(3)), CUDA_SUCCESS);
    EXPECT_EQ(fake::RecordOn(side_, Event(1)), CUDA_SUCCESS);
    Home(4);
    EXPECT_EQ(fake::WaitOn(side_, Event(3)), CUDA_SUCCESS);
    EXPECT_EQ(fake::WaitOn(stream_, Event(1)), CUDA_SUCCESS);
    EXPECT_TRUE(home_has_open(stream_, side_));
    Join(side_, stream_, 2);
    EXPECT_FALSE(home_has_open(stream_, side_));
    Sync();
}
