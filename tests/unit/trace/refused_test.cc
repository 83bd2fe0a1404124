// What is no whole trace: the reader says what is wrong and where, believes nothing of it, and
// reads nothing past its end.
#include <gtest/gtest.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "tests/text.h"
#include "tests/unit/trace/opened.h"
#include "tests/unit/trace/short.h"

namespace {

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

TEST(Reader, FileCutAtAnyByteIsTornOrRefused) {
    std::string whole = GoldenBytes(), path = Fresh("cut.cst");
    size_t torn = 0, last_ops = 0;
    for (size_t bytes = 0; bytes < whole.size(); bytes++) {
        WriteAll(path, whole.substr(0, bytes));
        Trace t = Open(path);
        if (bytes < sizeof(cst_file)) {
            ASSERT_FALSE(t) << bytes;
            ASSERT_TRUE(Has(open_error, "not a trace of cusplice")) << open_error;
            continue;
        }
        ASSERT_TRUE(t) << bytes << ": " << open_error;
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
        ASSERT_TRUE(t) << open_error;
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
                EXPECT_TRUE(t || !open_error.empty());
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
        EXPECT_EQ(open_error.compare(0, path.size() + 2, path + ": "), 0) << open_error;
        return open_error;
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
    EXPECT_TRUE(Has(open_error, "/nowhere/x.cst: No such file")) << open_error;
    EXPECT_FALSE(Open("/"));
    EXPECT_TRUE(Has(open_error, "not a trace")) << open_error;
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
        EXPECT_TRUE(Has(open_error, "refers to a thread, kind or stream that is not defined"))
            << open_error;
    }
    // Calls may name no stream; a string that is not there is empty; segments are numbers.
    Trace t = Open(With([](Synth *s) {
        s->Sync(CST_NONE)->name = 12345;
        s->Launch(1, 3, 99, CST_EXACT);
    }));
    ASSERT_TRUE(t) << open_error;
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
            kind->op = CST_OP_TYPES;
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
        EXPECT_TRUE(Has(open_error, "makes no sense")) << i << open_error;
        EXPECT_TRUE(Has(open_error, "of the block at byte 32")) << open_error;
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
    EXPECT_TRUE(Has(open_error, "has the number 4294967280, though there are 2")) << open_error;
}

TEST(Reader, GpuStreamsOfNoStreamAreRefused) {
    for (uint32_t stream : {0u, 2u, uint32_t{CST_NONE}}) {
        EXPECT_FALSE(Open(With([&](Synth *s) { s->GpuStream(stream, 13); }))) << stream;
        EXPECT_TRUE(Has(open_error, "CUPTI's stream 13 is of a stream that is not defined"))
            << open_error;
        EXPECT_FALSE(Open(With([&](Synth *s) { s->GpuContext(stream, 3); }))) << stream;
        EXPECT_TRUE(Has(open_error, "CUPTI's context 3 is of a stream that is not defined"))
            << open_error;
    }
    EXPECT_TRUE(Open(With([](Synth *s) { s->GpuStream(1, 13); }))) << open_error;
    // Of what ran, nothing refers to a stream of the trace: a program has others.
    EXPECT_TRUE(Open(With([](Synth *s) { s->Gpu(99, CST_GPU_KERNEL, "k"); }))) << open_error;
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
        EXPECT_TRUE(Has(open_error, "corrupt: the block at byte")) << open_error;
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
    EXPECT_TRUE(Open(file(1))) << open_error;
    std::string path = file(2);
    EXPECT_FALSE(Open(path));
    EXPECT_TRUE(Has(open_error, "its records unpack to more than 64 MiB, and the file has "))
        << open_error;
    // Not a torn tail either, where it is the last block.
    std::string bytes = ReadFile(path);
    WriteAll(path, bytes.substr(0, bytes.size() - sizeof(cst_block)));
    EXPECT_FALSE(Open(path));
    // The caller's bound, and its word for what raises it.
    char text[512];
    cst_bounds bounds = {100 << 20, "turn it up", 0, false};
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
    EXPECT_TRUE(Has(open_error, "it is no regular file")) << open_error;
}

} // namespace
