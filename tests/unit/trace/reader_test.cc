// Promise: the reader returns what was written, and reports what is broken.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <functional>
#include <memory>

#include "tests/unit/trace/golden.h"
#include "tools/trace/reader.h"

namespace {

using Trace = std::unique_ptr<cst_trace, void (*)(cst_trace *)>;

std::string error;

Trace Open(const std::string &path) {
    char text[4096] = "";
    cst_trace *trace = cst_open(path.c_str(), text, sizeof text);
    error = text;
    return Trace(trace, cst_free);
}

bool Has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

// Every byte that a reader gives back is looked at, so that a sanitizer sees a wrong one.
uint64_t Touch(const cst_trace *trace) {
    uint64_t sum = strlen(trace->facts);
    for (size_t i = 0; i < trace->n_events; i++) {
        const uint8_t *bytes = reinterpret_cast<const uint8_t *>(trace->events[i]);
        for (size_t b = 0; b < trace->events[i]->words * 8u; b++)
            sum += bytes[b];
    }
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (trace->kinds[i])
            sum += strlen(cst_string(trace, trace->kinds[i]->name));
    return sum;
}

std::string GoldenBytes(bool packed = false) {
    std::string path = Fresh(packed ? "packed.cst" : "whole.cst");
    Synth synth(path, packed);
    WriteGolden(&synth);
    EXPECT_EQ(synth.Close(), 0);
    return ReadAll(path);
}

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
        ASSERT_TRUE(t) << error;
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

// A file of one block with what `fill` puts there, behind thread 1, stream 1 and kernel 1.
std::string With(const std::function<void(Synth *)> &fill, bool end = true) {
    std::string path = Fresh("with.cst");
    Synth s(path);
    s.Thread(1, "");
    s.Stream(CST_STREAM_LEGACY, 0);
    s.Kernel("k");
    fill(&s);
    if (end)
        EXPECT_EQ(s.Close(), 0);
    else
        s.Tear();
    return path;
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
        ASSERT_TRUE(t) << error;
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

TEST(Reader, GpuStreamsOfNoStreamAreRefused) {
    for (uint32_t stream : {0u, 2u, uint32_t{CST_NONE}}) {
        EXPECT_FALSE(Open(With([&](Synth *s) { s->GpuStream(stream, 13); }))) << stream;
        EXPECT_TRUE(Has(error, "CUPTI's stream 13 is of a stream that is not defined")) << error;
        EXPECT_FALSE(Open(With([&](Synth *s) { s->GpuContext(stream, 3); }))) << stream;
        EXPECT_TRUE(Has(error, "CUPTI's context 3 is of a stream that is not defined")) << error;
    }
    EXPECT_TRUE(Open(With([](Synth *s) { s->GpuStream(1, 13); }))) << error;
    // Of what ran, nothing refers to a stream of the trace: a program has others.
    EXPECT_TRUE(Open(With([](Synth *s) { s->Gpu(99, CST_GPU_KERNEL, "k"); }))) << error;
}

TEST(Reader, PackedBlocksSaySoAndAreSmaller) {
    EXPECT_LT(GoldenBytes(true).size(), GoldenBytes(false).size() / 2);
}

TEST(Reader, FileCutAtAnyByteIsTornOrRefused) {
    std::string whole = GoldenBytes(), path = Fresh("cut.cst");
    size_t torn = 0, last_ops = 0;
    for (size_t bytes = 0; bytes < whole.size(); bytes++) {
        WriteAll(path, whole.substr(0, bytes));
        Trace t = Open(path);
        if (bytes < sizeof(cst_file)) {
            ASSERT_FALSE(t) << bytes;
            ASSERT_TRUE(Has(error, "not a trace of cusplice")) << error;
            continue;
        }
        ASSERT_TRUE(t) << bytes << ": " << error;
        EXPECT_FALSE(t->closed) << bytes;
        torn += t->torn != 0;
        EXPECT_GE(t->ops, last_ops) << bytes;
        last_ops = t->ops;
        Touch(t.get());
    }
    // Cuts between two blocks leave nothing over: the file has the head, facts and four blocks.
    EXPECT_EQ(last_ops, 21u);
    EXPECT_GE(torn, whole.size() - sizeof(cst_file) - 8 * 6);
}

// A byte that is wrong is told, or it changed nothing that anybody reads.
void FlipEach(const std::string &whole) {
    std::string path = Fresh("flip.cst");
    WriteAll(path, whole);
    uint64_t want;
    {
        Trace t = Open(path);
        ASSERT_TRUE(t) << error;
        want = Touch(t.get());
    }
    size_t told = 0;
    for (size_t at = 0; at < whole.size(); at++)
        for (int bit : {0, 7}) {
            std::string bytes = whole;
            bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
            WriteAll(path, bytes);
            Trace t = Open(path);
            if (!t || !t->closed || t->torn) {
                told++;
                EXPECT_TRUE(t || !error.empty());
                continue;
            }
            ASSERT_EQ(Touch(t.get()), want) << "byte " << at << " bit " << bit;
        }
    // What is not told is padding: reserved words, and zeros behind payloads.
    EXPECT_GE(told, 2 * (whole.size() - 16 - 8 * 8));
}

TEST(Reader, EachFlippedByteIsNoticedOrHarmless) {
    FlipEach(GoldenBytes());
}

TEST(Reader, EachFlippedByteOfAPackedFileToo) {
    FlipEach(GoldenBytes(true));
}

TEST(Reader, ForeignNewerOlderAndEmptyFilesAreRefusedWithWhatToDo) {
    std::string whole = GoldenBytes(), path = Fresh("bad.cst");
    auto with = [&](const std::string &bytes) {
        WriteAll(path, bytes);
        EXPECT_FALSE(Open(path));
        EXPECT_EQ(error.compare(0, path.size() + 2, path + ": "), 0) << error;
        return error;
    };
    EXPECT_TRUE(Has(with(""), "it is empty"));
    EXPECT_TRUE(Has(with("short"), "it is too short"));
    EXPECT_TRUE(Has(with(std::string(200, 'x')), "not a trace of cusplice"));
    EXPECT_TRUE(Has(with("SQLite format 3" + std::string(100, '\0')), "cusplice import"));
    std::string other = whole;
    other[8] = 2;
    EXPECT_TRUE(Has(with(other), "of version 2, and this cusplice reads versions up to 1"));
    other[8] = 0;
    EXPECT_TRUE(Has(with(other), "of version 0"));
    other = whole;
    std::swap(other[12], other[15]);
    EXPECT_TRUE(Has(with(other), "another byte order"));
    EXPECT_FALSE(Open("/nowhere/x.cst"));
    EXPECT_TRUE(Has(error, "/nowhere/x.cst: No such file")) << error;
    EXPECT_FALSE(Open("/"));
    EXPECT_TRUE(Has(error, "not a trace")) << error;
}

TEST(Reader, IdsThatReferToNothingAreRefused) {
    const std::function<void(Synth *)> bad[] = {
        [](Synth *s) { s->Op(1, 1)->kind = 2; },
        [](Synth *s) { s->Op(1, 1)->kind = CST_NONE; },
        [](Synth *s) { s->Op(2, 1); },
        [](Synth *s) { s->Op(1, 1)->stream = CST_NONE; },
        [](Synth *s) { s->Op(1, 1)->head.thread = 0; },
        [](Synth *s) { s->Op(1, 1)->head.thread = 2; },
        [](Synth *s) { s->Sync(9); },
        [](Synth *s) { s->Sync(1)->head.thread = 99; },
        [](Synth *s) { s->Flush(7, 1, "", ""); },
        [](Synth *s) { s->Flush(CST_NONE, 1, "", ""); },
        [](Synth *s) { s->Launch(0, 1, 1, CST_EXACT); },
        [](Synth *s) { s->Launch(CST_NONE, 1, 1, CST_EXACT); },
        [](Synth *s) { s->Segment(CST_NONE, 1, 1); },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_FALSE(Open(With(bad[i]))) << i;
        EXPECT_TRUE(Has(error, "refers to a thread, kind or stream that is not defined")) << error;
    }
    // Calls may name no stream; a string that is not there is empty; segments are numbers.
    Trace t = Open(With([](Synth *s) {
        s->Sync(CST_NONE)->name = 12345;
        s->Launch(1, 3, 99, CST_EXACT);
    }));
    ASSERT_TRUE(t) << error;
    EXPECT_STREQ(cst_string(t.get(), 12345), "");
    EXPECT_STREQ(cst_string(t.get(), 0), "");
}

TEST(Reader, RecordsThatDoNotHoldTogetherAreRefused) {
    const std::function<void(Synth *)> bad[] = {
        [](Synth *s) { s->Op(1, 1)->head.words = 0; },
        [](Synth *s) { s->Op(1, 1)->head.words = 1; },
        [](Synth *s) { s->Op(1, 1)->head.words = 8; }, // shorter than the struct
        [](Synth *s) { s->Op(1, 1)->head.words = 65535; },
        [](Synth *s) { s->Lost(1, 1)->head.words = 3; },
        // Whole records, shorter than their structs.
        [](Synth *s) { cst_sink_add(&s->sink, CST_GPU, sizeof(cst_gpu) - 8); },
        [](Synth *s) { cst_sink_add(&s->sink, CST_GPU_STREAM, sizeof(cst_gpu_stream) - 8); },
        [](Synth *s) { cst_sink_add(&s->sink, CST_GPU_CONTEXT, sizeof(cst_gpu_context) - 8); },
        [](Synth *s) { s->Gpu(1, CST_GPU_KERNEL, "k")->head.words = 65535; },
        [](Synth *s) { s->Kernel("x"), s->sink.buffer[s->sink.used - 8] = 9; }, // an argument
        [](Synth *s) {
            auto *kind =
                static_cast<cst_kind *>(cst_sink_add(&s->sink, CST_KIND, sizeof(cst_kind)));
            kind->n_arguments = 1;
        },
        [](Synth *s) {
            auto *kind =
                static_cast<cst_kind *>(cst_sink_add(&s->sink, CST_KIND, sizeof(cst_kind)));
            kind->n_attributes = 0xffffffff;
        },
        [](Synth *s) {
            auto *kind =
                static_cast<cst_kind *>(cst_sink_add(&s->sink, CST_KIND, sizeof(cst_kind)));
            kind->op = 3;
        },
        [](Synth *s) {
            auto *text = static_cast<struct cst_string *>(
                cst_sink_add(&s->sink, CST_STRING, sizeof(struct cst_string)));
            text->bytes = 1;
        },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        // The block is not the last, where it would count as torn.
        std::string path = With([&](Synth *s) {
            bad[i](s);
            s->Block();
            s->Lost(0, 0);
        });
        EXPECT_FALSE(Open(path)) << i;
        EXPECT_TRUE(Has(error, "makes no sense")) << i << error;
        EXPECT_TRUE(Has(error, "of the block at byte 32")) << error;
    }
    // An op whose params are shorter than its kind says.
    EXPECT_FALSE(Open(With([](Synth *s) {
        s->Op(1, 1);
        s->Kernel("more", 64);
        reinterpret_cast<cst_op *>(s->Op(1, 1))->kind = 2;
    })));
    // Ids far beyond the number of definitions would make huge tables.
    EXPECT_FALSE(Open(With([](Synth *s) {
        auto *kind = static_cast<cst_kind *>(cst_sink_add(&s->sink, CST_KIND, sizeof(cst_kind)));
        kind->id = 0xfffffff0;
    })));
    EXPECT_TRUE(Has(error, "has the number 4294967280, though there are 2")) << error;
}

TEST(Reader, UnknownRecordsAndBlocksAreLeftOut) {
    Trace t = Open(With([](Synth *s) {
        cst_sink_add(&s->sink, static_cast<cst_type>(200), 4096);
        s->Op(1, 1);
        s->Block();
        cst_out_block(&s->out, 99, 0, "abc", 3, 3);
        s->Op(1, 1);
    }));
    ASSERT_TRUE(t) << error;
    EXPECT_EQ(t->n_events, 2u);
    // But a way of packing that is not known cannot be left out.
    EXPECT_FALSE(Open(With([](Synth *s) {
        cst_out_block(&s->out, CST_BLOCK_RECORDS, 2, "abc", 3, 3);
        s->Op(1, 1);
    })));
    EXPECT_TRUE(Has(error, "packed in a way")) << error;
}

TEST(Reader, PackedBlocksThatLieAboutTheirLengthAreRefused) {
    std::string raw(64, 'x'), frame(ZSTD_compressBound(64), 0);
    frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 3));
    for (uint64_t said : {uint64_t{0}, uint64_t{63}, uint64_t{65}, uint64_t{CST_BLOCK_MAX} + 1}) {
        EXPECT_FALSE(Open(With([&](Synth *s) {
            s->Block();
            cst_out_block(&s->out, CST_BLOCK_FACTS, CST_BLOCK_ZSTD, frame.data(), frame.size(),
                          said);
            s->Op(1, 1);
        }))) << said;
        EXPECT_TRUE(Has(error, "corrupt: the block at byte")) << error;
    }
}

TEST(Reader, PackedBlocksUnpackToSoMuchInAll) {
    // Records that nobody knows: two blocks of 40 MiB in some thousand bytes.
    std::string raw(40 << 20, 0);
    cst_record head = {};
    head.type = 200;
    head.words = 1 << 13;
    for (size_t at = 0; at < raw.size(); at += 1 << 16)
        memcpy(&raw[at], &head, sizeof head);
    std::string frame(ZSTD_compressBound(raw.size()), 0);
    frame.resize(ZSTD_compress(&frame[0], frame.size(), raw.data(), raw.size(), 3));
    auto file = [&](int blocks) {
        return With([&](Synth *s) {
            s->Block();
            for (int i = 0; i < blocks; i++)
                cst_out_block(&s->out, CST_BLOCK_RECORDS, CST_BLOCK_ZSTD, frame.data(),
                              frame.size(), raw.size());
        });
    };
    EXPECT_TRUE(Open(file(1))) << error;
    std::string path = file(2);
    EXPECT_FALSE(Open(path));
    EXPECT_TRUE(Has(error, "its records unpack to more than 64 MiB, and the file has ")) << error;
    // Not a torn tail either, where it is the last block.
    std::string bytes = ReadAll(path);
    WriteAll(path, bytes.substr(0, bytes.size() - sizeof(cst_block)));
    EXPECT_FALSE(Open(path));
    // The caller's bound, and its word for what raises it.
    char text[512];
    cst_bounds bounds = {100 << 20, "turn it up"};
    Trace t(cst_open_within(path.c_str(), &bounds, text, sizeof text), cst_free);
    ASSERT_TRUE(t) << text;
    EXPECT_GE(t->raw_bytes, size_t{80} << 20);
    bounds.unpack_max = 1 << 20;
    EXPECT_FALSE(cst_open_within(path.c_str(), &bounds, text, sizeof text));
    EXPECT_TRUE(Has(text, "more than 1 MiB") && Has(text, ": turn it up")) << text;
}

TEST(Reader, APipeIsNotWaitedFor) {
    std::string path = Fresh("pipe.cst");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_FALSE(Open(path));
    EXPECT_TRUE(Has(error, "it is no regular file")) << error;
}

TEST(Reader, TextsHaveNumbers) {
    Trace t = Open(With([](Synth *s) {
        s->String("one");
        s->String("two");
    }));
    ASSERT_TRUE(t) << error;
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
    ASSERT_TRUE(t) << error;
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
    std::string bytes = ReadAll(path);
    bytes.replace(bytes.size() - 40, 40, 40, '\0'); // zeros where data should be
    WriteAll(path, bytes);
    Trace t = Open(path);
    ASSERT_TRUE(t) << error;
    EXPECT_EQ(t->ops, 1u);
    EXPECT_FALSE(t->closed);
    EXPECT_GT(t->torn, 40u);
    EXPECT_EQ(error, "");
}

TEST(Reader, NoTraceIsAnEmptyTrace) {
    std::string path = Fresh("none.cst");
    Synth s(path);
    ASSERT_EQ(s.Close(), 0);
    Trace t = Open(path);
    ASSERT_TRUE(t) << error;
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
    EXPECT_EQ(ReadAll(path), "mine");
    EXPECT_TRUE(Open(path + ".partial")) << error; // what was recorded is not lost
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
    EXPECT_EQ(ReadAll(path), "");
    Trace t = Open(path + ".partial");
    ASSERT_TRUE(t) << error;
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
    ASSERT_TRUE(t) << error;
    EXPECT_EQ(t->lost_records, 30000 + many.size() + 1);
    EXPECT_EQ(t->lost_ops, 60000u);
    EXPECT_EQ(strlen(cst_string(t.get(), 1)), 65000u);
}

} // namespace
