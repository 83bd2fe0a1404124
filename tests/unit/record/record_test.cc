// Promise: while threads record at full speed, every record is whole and in order in the file, or
// counted as lost. Definitions are never lost, and no thread waits.
#include "tests/unit/trace/opened.h"

extern "C" {
#include "shim/base/clock.h"
#include "shim/trace/record.h"
}

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

namespace {

std::string Fresh(const char *name) {
    std::string path = testing::TempDir() + name + std::to_string(getpid()) + ".cst";
    unlink(path.c_str());
    unlink((path + ".partial").c_str());
    return path;
}

// Each test is a process of its own: a recording is begun once.
template <typename Work> void InChild(Work work) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        work();
        _exit(testing::Test::HasFailure());
    }
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

void Call(uint64_t value, uint64_t ns) {
    auto *call = (cst_call *)cus_record_begin(CST_CALL, sizeof(cst_call), ns);
    if (!call)
        return;
    call->stream = CST_NONE;
    call->what = CST_CALL_UNKNOWN;
    call->value = value;
    cus_record_commit();
}

// An op of a kind and stream that are defined by the way, with params of some size.
uint32_t DefineKind(uint32_t param_bytes) {
    cst_kind kind = {};
    kind.head.type = CST_KIND;
    kind.head.words = sizeof kind / 8;
    kind.id = cus_record_number(1);
    kind.op = CST_OP_LAUNCH;
    kind.param_bytes = param_bytes;
    kind.name = cus_record_string(("kernel" + std::to_string(param_bytes)).c_str());
    cus_record_define(&kind.head);
    return kind.id;
}
uint32_t DefineStream() {
    cst_stream stream = {};
    stream.head.type = CST_STREAM;
    stream.head.words = sizeof stream / 8;
    stream.id = cus_record_number(0);
    cus_record_define(&stream.head);
    return stream.id;
}

TEST(Record, EveryRecordIsThereOrCountedAsLost) {
    enum { THREADS = 4, RECORDS = 150000, KINDS = 7 };
    std::string path = Fresh("full");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        std::vector<std::thread> threads;
        for (int t = 0; t < THREADS; t++)
            threads.emplace_back([] {
                uint32_t stream = DefineStream(), kinds[KINDS];
                for (uint32_t k = 0; k < KINDS; k++)
                    kinds[k] = DefineKind(k * k * 24);
                for (uint32_t i = 0; i < RECORDS; i++) {
                    uint32_t k = i % KINDS, bytes = k * k * 24;
                    auto *op = (cst_op *)cus_record_begin(CST_OP, sizeof(cst_op) + bytes, i + 1);
                    if (!op)
                        continue;
                    op->kind = kinds[k];
                    op->stream = stream;
                    op->dims[0] = i;
                    memset(op + 1, (int)(i & 0xff), bytes);
                    cus_record_commit();
                }
            });
        for (std::thread &thread : threads)
            thread.join();
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    EXPECT_TRUE(trace->closed);
    EXPECT_EQ(trace->ops + trace->lost_ops, (uint64_t)THREADS * RECORDS);
    EXPECT_GT(trace->ops, (uint64_t)THREADS * RECORDS / 100);
    std::map<uint32_t, uint64_t> last;
    for (size_t i = 0; i < trace->n_events; i++) {
        if (trace->events[i]->type != CST_OP)
            continue;
        auto *op = (const cst_op *)trace->events[i];
        ASSERT_EQ(op->head.ns, op->dims[0] + 1u);
        ASSERT_GT(op->head.ns, last[op->head.thread]) << "once, and in order";
        last[op->head.thread] = op->head.ns;
        uint32_t bytes = trace->kinds[op->kind]->param_bytes;
        const uint8_t *params = cst_op_params(op);
        ASSERT_TRUE(std::all_of(params, params + bytes,
                                [&](uint8_t b) { return b == (op->dims[0] & 0xff); }));
    }
    EXPECT_EQ(last.size(), (size_t)THREADS);
}

// A record that takes the short way, as the hot path writes it. False: there is no room that is
// known.
bool ShortOp(uint32_t kind, uint32_t stream, uint32_t i, uint32_t bytes, uint64_t ns) {
    uint32_t all = (uint32_t)sizeof(cst_op) + ((bytes + 7) & ~7u);
    cus_ring *ring = cus_ring_mine;
    if (!cus_ring_fits(ring, all))
        return false;
    auto *op = (cst_op *)cus_ring_room(ring);
    memset((void *)op, 0, all);
    uint64_t head = ring->held | (uint64_t)(all / 8) << 16;
    memcpy((void *)op, &head, sizeof head);
    op->head.flags &= (uint8_t)~CUS_RECORD_TICKS;
    op->head.ns = ns;
    op->kind = kind;
    op->stream = stream;
    op->dims[0] = i;
    memset(op + 1, (int)(i & 0xff), bytes);
    cus_ring_put(ring, all);
    return true;
}
bool LongOp(uint32_t kind, uint32_t stream, uint32_t i, uint32_t bytes, uint64_t ns) {
    auto *op = (cst_op *)cus_record_begin(CST_OP, sizeof(cst_op) + bytes, ns);
    if (!op)
        return false;
    op->head.flags = CST_DEFERRED;
    op->kind = kind;
    op->stream = stream;
    op->dims[0] = i;
    memset(op + 1, (int)(i & 0xff), bytes);
    cus_record_commit();
    return true;
}

// Many times around the ring, by both ways in turn; who finds no room comes again.
TEST(Record, NothingIsLostWhereTheRingBeginsAgain) {
    enum { RECORDS = 300000, KINDS = 5 };
    std::string path = Fresh("short");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        uint32_t stream = DefineStream(), kinds[KINDS], by_short = 0;
        EXPECT_FALSE(ShortOp(1, 1, 0, 0, 1)) << "a thread that has no ring yet";
        for (uint32_t k = 0; k < KINDS; k++)
            kinds[k] = DefineKind(k * 36);
        for (uint32_t i = 0; i < RECORDS; i++) {
            uint32_t k = i * 7 / 3 % KINDS, bytes = k * 36;
            bool is_short = i % 10 && ShortOp(kinds[k], stream, i, bytes, i + 1);
            by_short += is_short;
            while (!is_short && !LongOp(kinds[k], stream, i, bytes, i + 1))
                usleep(1000);
        }
        EXPECT_GT(by_short, RECORDS / 10 * 8u) << "the writer is woken four times a round";
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    ASSERT_TRUE(trace->closed);
    ASSERT_EQ(trace->ops, (uint64_t)RECORDS);
    for (uint32_t i = 0; i < RECORDS; i++) {
        auto *op = (const cst_op *)trace->events[i];
        ASSERT_EQ(op->dims[0], i);
        ASSERT_EQ(op->head.ns, i + 1u);
        ASSERT_EQ(op->head.flags, CST_DEFERRED);
        uint32_t bytes = trace->kinds[op->kind]->param_bytes;
        const uint8_t *params = cst_op_params(op);
        ASSERT_TRUE(
            std::all_of(params, params + bytes, [&](uint8_t b) { return b == (i & 0xff); }));
    }
}

// A record that waits for another to end must not be passed.
TEST(Record, NobodyTakesTheShortWayInsideARecord) {
    std::string path = Fresh("inside");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        Call(1, 1);
        ASSERT_TRUE(cus_ring_fits(cus_ring_mine, 80));
        ASSERT_TRUE(cus_record_begin(CST_CALL, sizeof(cst_call), 2));
        EXPECT_FALSE(cus_ring_fits(cus_ring_mine, 80));
        Call(3, 3);
        EXPECT_FALSE(cus_ring_fits(cus_ring_mine, 80));
        cus_record_commit();
        EXPECT_TRUE(cus_ring_fits(cus_ring_mine, 80));
        cus_record_end();
    });
}

// Whatever a moment is, the file has the clock.
TEST(Record, MomentsComeOutAsTheClock) {
    enum { NEAR_NS = 5000, EVENTS = 200 };
    std::string path = Fresh("moments");
    struct Times {
        uint64_t before, after, end;
    };
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        for (uint32_t i = 0; i < EVENTS; i++) {
            Times t;
            t.before = cus_clock_ns();
            uint64_t moment = cus_ticks_now();
            t.after = cus_clock_ns();
            auto *call = (cst_call *)cus_record_event(CST_CALL, sizeof(cst_call), moment);
            ASSERT_TRUE(call);
            call->stream = CST_NONE;
            call->what = CST_CALL_UNKNOWN;
            usleep(i % 50 ? 0 : 25000); // the writer looks meanwhile
            call->host_ns = cus_ticks_since(moment);
            t.end = cus_clock_ns();
            cus_record_commit();
            ASSERT_EQ(write(pipe_ends[1], &t, sizeof t), (ssize_t)sizeof t);
        }
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    ASSERT_EQ(trace->n_events, (size_t)EVENTS);
    for (uint32_t i = 0; i < EVENTS; i++) {
        Times t;
        ASSERT_EQ(::read(pipe_ends[0], &t, sizeof t), (ssize_t)sizeof t);
        auto *call = (const cst_call *)trace->events[i];
        EXPECT_EQ(call->head.flags, 0u);
        EXPECT_GE(call->head.ns + NEAR_NS, t.before);
        EXPECT_LE(call->head.ns, t.after + NEAR_NS);
        EXPECT_LE(call->host_ns, t.end - t.before + NEAR_NS);
        if (i % 50 == 0) {
            EXPECT_GE(call->host_ns, 25000000u - NEAR_NS);
        }
    }
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

TEST(Record, ATextThatStaysIsTheSameString) {
    std::string path = Fresh("literals");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        EXPECT_EQ(cus_record_literal(""), 0u);
        EXPECT_EQ(cus_record_literal(nullptr), 0u);
        static char texts[2000][8]; // more than are kept by their addresses
        for (int round = 0; round < 2; round++)
            for (uint32_t i = 0; i < 2000; i++) {
                snprintf(texts[i], sizeof texts[i], "t%u", i);
                EXPECT_EQ(cus_record_literal(texts[i]), i + 1);
                EXPECT_EQ(cus_record_string(("t" + std::to_string(i)).c_str()), i + 1);
            }
        cus_record_end();
    });
}

// What a call sets off is written while the call's own record is open.
TEST(Record, NestedRecordsAreHeldBackUntilTheOuterOneEnds) {
    std::string path = Fresh("nested");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        auto *outer = (cst_call *)cus_record_begin(CST_CALL, sizeof(cst_call), 10);
        ASSERT_TRUE(outer);
        Call(2, 20);
        usleep(100000); // the writer looks meanwhile
        outer->stream = CST_NONE;
        outer->value = 1;
        cus_record_commit();
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    ASSERT_EQ(trace->n_events, 2u);
    EXPECT_EQ(((const cst_call *)trace->events[0])->value, 1u);
    EXPECT_EQ(((const cst_call *)trace->events[1])->value, 2u);
}

// 100 MiB: less than a program may be ahead of the writer, and much more than it has written by
// then.
TEST(Record, DataIsOnDiskWhenThatWasWaitedFor) {
    std::string path = Fresh("data");
    InChild([&] {
        constexpr size_t BYTES = 100 << 20;
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        std::vector<uint8_t> bytes(BYTES, 1);
        cus_record_data(CST_DATA_MEMORY, 1, 0, bytes.data(), BYTES);
        cus_record_data_written();
        struct stat status;
        ASSERT_EQ(stat((path + ".partial").c_str(), &status), 0);
        EXPECT_GE((size_t)status.st_size, BYTES);
        cus_record_end();
    });
}

TEST(Record, StepsAreChosen) {
    std::string path = Fresh("steps");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 2, 4));
        EXPECT_FALSE(cus_recording());
        for (uint64_t step = 0; step < 6; step++) {
            EXPECT_EQ(cus_recording(), step == 2 || step == 3) << step;
            cus_record_step();
        }
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    EXPECT_EQ(trace->n_events, 0u);
}

TEST(Record, StringsAreDefinedOnce) {
    std::string path = Fresh("strings");
    uint32_t many = 5000;
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{\"a\":1}", 0, 0));
        EXPECT_EQ(cus_record_string(""), 0u);
        EXPECT_EQ(cus_record_string(nullptr), 0u);
        for (int round = 0; round < 2; round++)
            for (uint32_t i = 0; i < many; i++)
                EXPECT_EQ(cus_record_string(("text " + std::to_string(i)).c_str()), i + 1);
        Call(7, 1);
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    EXPECT_STREQ(trace->facts, "{\"a\":1}");
    EXPECT_STREQ(cst_string(trace.get(), 1), "text 0");
    EXPECT_STREQ(cst_string(trace.get(), many), "text 4999");
}

TEST(Record, RingsOfThreadsThatEndedAreGivenBack) {
    std::string path = Fresh("threads");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        auto mapped = [] {
            unsigned long pages = 0;
            FILE *statm = fopen("/proc/self/statm", "r");
            EXPECT_EQ(fscanf(statm, "%lu", &pages), 1);
            fclose(statm);
            return pages * (unsigned long)sysconf(_SC_PAGESIZE);
        };
        // qemu keeps some memory of its own for threads, which counts here.
        unsigned long most = mapped() + ((getenv("CUS_TEST_EMULATED") ? 250ul : 100ul) << 20);
        for (uint64_t i = 1; i <= 100; i++)
            std::thread([=] { Call(i, i); }).join();
        for (int i = 0; i < 100 && mapped() > most; i++)
            usleep(100000);
        EXPECT_LT(mapped(), most) << "a hundred rings are 400 MiB";
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    EXPECT_EQ(trace->n_events, 100u);
    EXPECT_EQ(trace->lost_records, 0u);
}

TEST(Record, ChildOfAForkRecordsNothing) {
    std::string path = Fresh("fork");
    InChild([&] {
        ASSERT_TRUE(cus_record_start(path.c_str(), "{}", 0, 0));
        Call(1, 1);
        InChild([] {
            cus_record_child();
            EXPECT_FALSE(cus_recording());
            cus_record_end();
        });
        Call(2, 2);
        cus_record_end();
    });
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    EXPECT_EQ(trace->n_events, 2u);
}

} // namespace
