// Promise: the reader returns what was written, and reports what is broken.
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/text.h"
#include "tests/unit/trace/opened.h"
#include "tests/unit/trace/short.h"

namespace {

template <typename T> const T *Event(const Trace &trace, uint8_t type, size_t nth = 0) {
    for (size_t i = 0; i < trace->n_events; i++)
        if (trace->events[i]->type == type && nth-- == 0)
            return reinterpret_cast<const T *>(trace->events[i]);
    return nullptr;
}

TEST(Reader, EveryRecordComesBackAsItWasWritten) {
    for (bool packed : {false, true}) {
        std::string path = Fresh("all.cst");
        Synth s(path, packed);
        s.Facts("{\"a\": 1}");
        s.Facts("{\"a\": 2}");
        s.thread = s.Thread(77, "t77");
        uint32_t stream = s.Stream(CST_STREAM_CREATED, 0xabcdef, -5);
        uint32_t kernel = s.Kernel("k", 24), memset = s.Memset(2), copy = s.Copy(1);
        s.Range(0x1000, 0x2000);
        s.grid = 9;
        s.block = 64;
        s.param = 0x1122334455667788;
        s.host_ns = 321;
        s.Op(stream, kernel)->abi = 1;
        s.Eager(stream, memset, "rule", "why")->result = 719;
        s.Op(stream, copy);
        cst_call *call = s.Call(CST_NONE, CST_CALL_TAINT, "cuFuncSetAttribute", CST_SCOPE_CT);
        call->value = 0xfeed;
        call->abi = 1;
        s.Flush(stream, 3, "cause", "reason");
        cst_launch *launch = s.Launch(stream, 4, 5, CST_BUILT, 6);
        launch->variant = 7;
        s.Segment(stream, 8, 9);
        s.Lost(10, 11);
        ASSERT_EQ(s.Close(), 0);

        Trace t = Open(path);
        ASSERT_TRUE(t) << open_error;
        EXPECT_EQ(t->path, path);
        EXPECT_EQ(t->version, 1u);
        EXPECT_STREQ(t->facts, "{\"a\": 2}");
        EXPECT_TRUE(t->closed);
        EXPECT_EQ(t->torn, 0u);
        ASSERT_EQ(t->n_threads, 2u);
        EXPECT_EQ(t->threads[0], nullptr);
        EXPECT_EQ(t->threads[1]->tid, 77u);
        EXPECT_STREQ(cst_string(t.get(), t->threads[1]->name), "t77");
        ASSERT_EQ(t->n_streams, 2u);
        EXPECT_EQ(t->streams[1]->handle, 0xabcdefu);
        EXPECT_EQ(t->streams[1]->kind, uint32_t{CST_STREAM_CREATED});
        EXPECT_EQ(t->streams[1]->priority, -5);
        EXPECT_EQ(t->streams[1]->context, 1u);
        ASSERT_EQ(t->n_kinds, 4u);
        const cst_kind *k = t->kinds[kernel];
        EXPECT_EQ(k->op, uint32_t{CST_OP_LAUNCH});
        EXPECT_STREQ(cst_string(t.get(), k->name), "k");
        EXPECT_EQ(k->param_bytes, 24u);
        ASSERT_EQ(k->n_arguments, 3u);
        EXPECT_EQ(cst_kind_arguments(k)[2].offset, 16u);
        EXPECT_EQ(cst_kind_arguments(k)[2].bytes, 8u);
        EXPECT_EQ(t->kinds[memset]->elem, 2u);
        EXPECT_EQ(t->kinds[copy]->form, 1u);
        ASSERT_EQ(t->n_ranges, 1u);
        EXPECT_EQ(t->ranges[0]->size, 0x2000u);
        ASSERT_EQ(t->n_events, 8u);
        EXPECT_EQ(t->ops, 3u);
        const cst_op *op = Event<cst_op>(t, CST_OP);
        EXPECT_EQ(op->head.flags, uint8_t{CST_DEFERRED});
        EXPECT_EQ(op->kind, kernel);
        EXPECT_EQ(op->stream, stream);
        EXPECT_EQ(op->host_ns, 321u);
        EXPECT_EQ(op->abi, 1u);
        EXPECT_EQ(op->dims[0], 9u);
        EXPECT_EQ(op->dims[3], 64u);
        uint64_t word;
        memcpy(&word, cst_op_params(op), 8);
        EXPECT_EQ(word, 0x1122334455667788u);
        op = Event<cst_op>(t, CST_OP, 1);
        EXPECT_EQ(op->head.flags, uint8_t{CST_EAGER});
        EXPECT_EQ(op->result, 719);
        EXPECT_STREQ(cst_string(t.get(), op->eager), "rule");
        EXPECT_STREQ(cst_string(t.get(), op->why), "why");
        const cst_call *c = Event<cst_call>(t, CST_CALL);
        EXPECT_EQ(c->stream, uint32_t{CST_NONE});
        EXPECT_EQ(c->what, uint8_t{CST_CALL_TAINT});
        EXPECT_EQ(c->scope, uint8_t{CST_SCOPE_CT});
        EXPECT_EQ(c->value, 0xfeedu);
        EXPECT_STREQ(cst_string(t.get(), c->name), "cuFuncSetAttribute");
        const cst_flush *f = Event<cst_flush>(t, CST_FLUSH);
        EXPECT_EQ(f->n, 3u);
        EXPECT_STREQ(cst_string(t.get(), f->cause), "cause");
        EXPECT_STREQ(cst_string(t.get(), f->reason), "reason");
        const cst_launch *l = Event<cst_launch>(t, CST_LAUNCH);
        EXPECT_EQ(l->head.flags, uint8_t{CST_BUILT});
        EXPECT_EQ(l->n, 4u);
        EXPECT_EQ(l->segment, 5u);
        EXPECT_EQ(l->patched, 6u);
        EXPECT_EQ(l->variant, 7u);
        EXPECT_EQ(l->build_ns, 50000u);
        EXPECT_EQ(Event<cst_segment>(t, CST_SEGMENT)->id, 8u);
        EXPECT_EQ(Event<cst_segment>(t, CST_SEGMENT)->n, 9u);
        EXPECT_EQ(t->lost_records, 10u);
        EXPECT_EQ(t->lost_ops, 11u);
        EXPECT_EQ(t->begin_ns, Event<cst_op>(t, CST_OP)->head.ns);
        EXPECT_EQ(t->end_ns, Event<cst_lost>(t, CST_LOST)->head.ns);
    }
}

TEST(Reader, GpuTimesComeBackInTheOrderInWhichTheyBegan) {
    for (bool packed : {false, true}) {
        std::string path = Fresh("gpu.cst");
        Synth s(path, packed);
        s.Thread(1, "");
        // Behind what they are of: CUPTI tells of times late, and in no order.
        s.GpuStream(2, 13);
        s.now = 9000;
        s.Gpu(13, CST_GPU_MEMSET, "", 40)->bytes = 4096;
        s.now = 7000;
        s.grid = 11;
        cst_gpu *one = s.Gpu(13, CST_GPU_KERNEL, "_Z1kv", 5000000000);
        one->device = 3;
        one->context = 4;
        one->correlation = 5;
        one->grid[1] = 12;
        one->grid[2] = 13;
        one->node = 0x600000007;
        s.now = 8000;
        s.Gpu(7, CST_GPU_MEMCPY, "", 60);
        s.GpuStream(1, 7);
        s.Stream(CST_STREAM_LEGACY, 0);
        s.Stream(CST_STREAM_CREATED, 9);
        s.now = 6000;
        s.Sync(1);
        ASSERT_EQ(s.Close(), 0);

        Trace t = Open(path);
        ASSERT_TRUE(t) << open_error;
        ASSERT_EQ(t->n_gpu, 3u);
        const cst_gpu *gpu = t->gpu[0];
        EXPECT_EQ(gpu->head.flags, uint8_t{CST_GPU_KERNEL});
        EXPECT_EQ(gpu->head.ns, 7000u);
        EXPECT_EQ(gpu->gpu_ns, 5000000000u);
        EXPECT_EQ(gpu->device, 3u);
        EXPECT_EQ(gpu->context, 4u);
        EXPECT_EQ(gpu->gpu_stream, 13u);
        EXPECT_EQ(gpu->correlation, 5u);
        EXPECT_STREQ(cst_string(t.get(), gpu->name), "_Z1kv");
        EXPECT_EQ(gpu->grid[0], 11u);
        EXPECT_EQ(gpu->grid[1], 12u);
        EXPECT_EQ(gpu->grid[2], 13u);
        EXPECT_EQ(gpu->node, 0x600000007u);
        EXPECT_EQ(t->gpu[1]->head.flags, uint8_t{CST_GPU_MEMCPY});
        EXPECT_EQ(t->gpu[2]->head.flags, uint8_t{CST_GPU_MEMSET});
        EXPECT_EQ(t->gpu[2]->bytes, 4096u);
        ASSERT_EQ(t->n_gpu_streams, 2u);
        EXPECT_EQ(t->gpu_streams[0]->stream, 2u);
        EXPECT_EQ(t->gpu_streams[0]->gpu_stream, 13u);
        EXPECT_EQ(t->gpu_streams[1]->stream, 1u);
        // They are no events: the length of the trace is that of what the host did.
        EXPECT_EQ(t->n_events, 1u);
        EXPECT_EQ(t->begin_ns, 6000u);
        EXPECT_EQ(t->end_ns, 6000u);
    }
}

TEST(Reader, PackedBlocksSaySoAndAreSmaller) {
    EXPECT_LT(GoldenBytes(true).size(), GoldenBytes(false).size() / 2);
}

TEST(Reader, UnknownRecordsAndBlocksAreLeftOut) {
    Trace t = Open(With([](Synth *s) {
        cst_sink_add(&s->sink, static_cast<cst_type>(200), 4096);
        s->Op(1, 1);
        s->Block();
        cst_out_block(&s->out, 99, 0, "abc", 3, 3);
        s->Op(1, 1);
    }));
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->n_events, 2u);
    // But a way of packing that is not known cannot be left out.
    EXPECT_FALSE(Open(With([](Synth *s) {
        cst_out_block(&s->out, CST_BLOCK_RECORDS, 2, "abc", 3, 3);
        s->Op(1, 1);
    })));
    EXPECT_TRUE(Has(open_error, "packed in a way")) << open_error;
}

TEST(Reader, TextsHaveNumbers) {
    Trace t = Open(With([](Synth *s) {
        s->String("one");
        s->String("two");
    }));
    ASSERT_TRUE(t) << open_error;
    std::set<uint32_t> numbers;
    for (uint32_t id = 1; id <= t->n_texts; id++)
        numbers.insert(cst_text_number(t.get(), id));
    EXPECT_EQ(numbers.size(), t->n_texts);
    EXPECT_LT(*numbers.rbegin(), t->n_texts);
    EXPECT_EQ(cst_text_number(t.get(), 0), t->n_texts);
    EXPECT_EQ(cst_text_number(t.get(), 99999), t->n_texts);
}

TEST(Reader, EventsAreInTheOrderOfTimeAndStableWithinOne) {
    Trace t = Open(With([](Synth *s) {
        for (uint32_t i = 0; i < 3001; i++) {
            s->now = 5000 + i * 7919 % 1000; // each time three or four times
            s->Op(1, 1)->host_ns = i;
        }
    }));
    ASSERT_TRUE(t) << open_error;
    ASSERT_EQ(t->n_events, 3001u);
    for (size_t i = 1; i < t->n_events; i++) {
        auto *a = reinterpret_cast<const cst_op *>(t->events[i - 1]);
        auto *b = reinterpret_cast<const cst_op *>(t->events[i]);
        ASSERT_LE(a->head.ns, b->head.ns);
        if (a->head.ns == b->head.ns) {
            ASSERT_LT(a->host_ns, b->host_ns) << i;
        }
    }
    EXPECT_EQ(t->begin_ns, 5000u);
    EXPECT_EQ(t->end_ns, 5999u);
}

TEST(Reader, TornTailOfWhatNeverReachedTheDiskIsLeftOut) {
    std::string path = With([](Synth *s) { s->Op(1, 1), s->Block(), s->Op(1, 1); }, false);
    std::string bytes = ReadFile(path);
    bytes.replace(bytes.size() - 40, 40, 40, '\0'); // zeros where data should be
    WriteAll(path, bytes);
    Trace t = Open(path);
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->ops, 1u);
    EXPECT_FALSE(t->closed);
    EXPECT_GT(t->torn, 40u);
    EXPECT_EQ(open_error, "");
}

TEST(Reader, NoTraceIsAnEmptyTrace) {
    std::string path = Fresh("none.cst");
    Synth s(path);
    ASSERT_EQ(s.Close(), 0);
    Trace t = Open(path);
    ASSERT_TRUE(t) << open_error;
    EXPECT_TRUE(t->closed);
    EXPECT_EQ(t->n_events, 0u);
    EXPECT_STREQ(t->facts, "{}");
}

// ---- the writer ----

TEST(Writer, NothingStandsUnderTheFinalNameBeforeItIsWhole) {
    std::string path = Fresh("final.cst");
    struct stat is;
    {
        Synth s(path);
        s.Thread(1, "x");
        s.Block();
        EXPECT_NE(lstat(path.c_str(), &is), 0);
        ASSERT_EQ(lstat((path + ".partial").c_str(), &is), 0);
        EXPECT_EQ(is.st_mode & 0777, 0600u);
        EXPECT_EQ(s.Close(), 0);
    }
    EXPECT_EQ(lstat(path.c_str(), &is), 0);
    EXPECT_NE(lstat((path + ".partial").c_str(), &is), 0);
}

TEST(Writer, AnExistingFileIsNeverOverwritten) {
    std::string path = Fresh("there.cst");
    WriteAll(path, "mine");
    cst_out out;
    EXPECT_EQ(cst_out_open(&out, path.c_str()), EEXIST);
    // One that comes while the trace is written.
    unlink(path.c_str());
    ASSERT_EQ(cst_out_open(&out, path.c_str()), 0);
    WriteAll(path, "mine");
    EXPECT_EQ(cst_out_close(&out), EEXIST);
    EXPECT_EQ(ReadFile(path), "mine");
    EXPECT_TRUE(Open(path + ".partial")) << open_error; // what was recorded is not lost
    // Nor a link, wherever it points to, nor another recording that runs.
    unlink(path.c_str());
    EXPECT_EQ(cst_out_open(&out, path.c_str()), EEXIST);
    unlink((path + ".partial").c_str());
    ASSERT_EQ(symlink("/nowhere/at/all", path.c_str()), 0);
    EXPECT_EQ(cst_out_open(&out, path.c_str()), EEXIST);
    unlink(path.c_str());
    ASSERT_EQ(symlink("/dev/null", (path + ".partial").c_str()), 0);
    EXPECT_EQ(cst_out_open(&out, path.c_str()), EEXIST);
    EXPECT_EQ(cst_out_open(&out, std::string(CST_PATH, 'x').c_str()), ENAMETOOLONG);
    EXPECT_EQ(cst_out_open(&out, "/nowhere/x.cst"), ENOENT);
    cst_out_abandon(&out); // nothing to do, nothing happens
}

TEST(Writer, FullDiskIsAnErrorAndLeavesWhatFits) {
    std::string path = Fresh("full.cst");
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        rlimit limit = {300 * 1024, 300 * 1024};
        setrlimit(RLIMIT_FSIZE, &limit);
        Synth s(path);
        s.Thread(1, "");
        s.Stream(CST_STREAM_LEGACY, 0);
        s.Kernel("k");
        s.Block();
        for (int i = 0; i < 4000; i++) {
            s.Op(1, 1);
            if (i % 500 == 499)
                s.Block();
        }
        uint64_t bytes = s.out.bytes;
        int result = s.Close();
        _exit(result == EFBIG && bytes == 300 * 1024 && s.out.bytes == bytes ? 0 : 1);
    }
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(ReadFile(path), "");
    Trace t = Open(path + ".partial");
    ASSERT_TRUE(t) << open_error;
    EXPECT_FALSE(t->closed);
    EXPECT_GT(t->torn, 0u);
    EXPECT_GT(t->ops, 2000u);
    EXPECT_EQ(t->ops % 500, 0u);
}

TEST(Writer, RecordsLargerThanABlockAndManyOfThemComeBack) {
    std::string path = Fresh("large.cst");
    Synth s(path);
    s.Thread(1, "");
    s.String(std::string(70000, 'n')); // cut to 65,000
    for (int i = 0; i < 30000; i++)
        s.Lost(1, 2); // more than one block
    std::vector<cst_lost> many(CST_SINK / sizeof(cst_lost) + 10);
    for (cst_lost &one : many) {
        one.head.type = CST_LOST;
        one.head.words = sizeof one / 8;
        one.head.thread = 1;
        one.records = 1;
    }
    cst_sink_put(&s.sink, many.data(), many.size() * sizeof many[0]);
    cst_sink_put(&s.sink, many.data(), sizeof many[0]);
    ASSERT_EQ(s.Close(), 0);
    Trace t = Open(path);
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->lost_records, 30000 + many.size() + 1);
    EXPECT_EQ(t->lost_ops, 60000u);
    EXPECT_EQ(strlen(cst_string(t.get(), 1)), 65000u);
}

} // namespace
