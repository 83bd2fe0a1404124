// Promise: the reader returns the records and data of replayable traces, and refuses inconsistent
// ones with the place of the fault.
#include <gtest/gtest.h>
#include <string.h>
#include <zstd.h>

#include <functional>

#include "tests/player/made.h"
#include "tests/unit/trace/opened.h"

namespace {

// "" where the bytes are what the file says.
std::string Load(const Trace &trace, const cst_part *part, std::string *bytes) {
    char text[400] = "";
    bytes->assign(part->bytes, 0);
    bool loaded = cst_data_load(trace.get(), part, bytes->data(), text, sizeof text);
    EXPECT_EQ(loaded, *text == 0);
    return text;
}

// Every byte that a reader gives back is looked at, so that a sanitizer sees a wrong one.
uint64_t Touch(const Trace &trace) {
    const cst_replay &replay = trace->replay;
    uint64_t sum = 0;
    for (size_t i = 0; i < replay.n_works; i++) {
        const uint8_t *bytes = reinterpret_cast<const uint8_t *>(replay.works[i]);
        for (size_t b = 0; b < replay.works[i]->head.words * 8u; b++)
            sum += bytes[b];
    }
    for (uint32_t i = 0; i < replay.n_codes; i++)
        for (uint32_t k = 0; replay.codes[i] && k < replay.codes[i]->n_attributes; k++)
            sum += cst_code_settings(replay.codes[i])[k].attribute;
    std::string data;
    for (size_t i = 0; i < replay.n_parts; i++)
        sum += Load(trace, &replay.parts[i], &data).size() + data.size();
    return sum;
}

// One of everything.
std::string Small(const std::string &name, bool packed = false,
                  const std::function<void(Made *)> &more = nullptr) {
    std::string path = Fresh(name);
    Made m(path, packed);
    uint32_t module = m.Module();
    m.FileModule("/lib/libx.so", 4096, 512, 77, "0a0b");
    uint32_t lane = m.Lane(CST_STREAM_CREATED, 1, -5);
    uint64_t a = m.Alloc(4096, 4096);
    m.Span(CST_SPAN_GLOBAL, 0x7f0000000000, 64, "table", false, module);
    m.Contents(a, {1, 2, 3, 4});
    m.gap_ns = 1234;
    m.Chain(lane, a, 3, 1, 4);
    m.Memset(lane, a, 4, 7, 2, 3, 64);
    m.Upload(lane, a + 256, {9, 8, 7}, 0x5000);
    m.Download(lane, a, 16);
    m.Event(CST_WORK_RECORD, lane, 0xe1);
    m.Sync(lane);
    m.Check(a, 4096);
    m.Obstacle("cuGraphLaunch", "is not replayed");
    if (more)
        more(&m);
    EXPECT_EQ(m.Close(), 0);
    return path;
}

TEST(ReplayReader, EverythingComesBackAsItWasWritten) {
    for (bool packed : {false, true}) {
        Trace trace = Open(Small("back.cst", packed));
        ASSERT_TRUE(trace) << open_error;
        const cst_replay &r = trace->replay;
        ASSERT_EQ(r.n_modules, 3u);
        EXPECT_EQ(r.modules[0], nullptr);
        EXPECT_EQ(r.modules[1]->form, unsigned{CST_MODULE_IMAGE});
        EXPECT_EQ(r.modules[2]->offset, 4096u);
        EXPECT_STREQ(cst_string(trace.get(), r.modules[2]->file), "/lib/libx.so");
        EXPECT_STREQ(cst_string(trace.get(), r.modules[2]->build_id), "0a0b");
        ASSERT_EQ(r.n_codes, 2u);
        EXPECT_STREQ(cst_string(trace.get(), r.codes[1]->name), "chain");
        EXPECT_EQ(r.codes[1]->n_arguments, 4u);
        EXPECT_EQ(cst_code_arguments(r.codes[1])[3].offset, 16u);
        ASSERT_EQ(r.n_lanes, 2u);
        EXPECT_EQ(r.lanes[1]->priority, -5);
        ASSERT_EQ(r.n_spans, 3u);
        EXPECT_EQ(r.spans[0]->what, unsigned{CST_SPAN_RESERVED});
        EXPECT_EQ(r.spans[1]->address, Base() + 4096);
        EXPECT_EQ(r.spans[2]->module, 1u);
        ASSERT_EQ(r.n_works, 6u);
        EXPECT_EQ(r.works[0]->gap_ns, 1234u);
        EXPECT_EQ(r.works[0]->head.flags, CST_WORK_LAUNCH);
        uint32_t words[5];
        memcpy(words, cst_work_params(r.works[0]), sizeof words);
        EXPECT_EQ(words[2], 3u);
        EXPECT_EQ(words[4], 4u);
        EXPECT_EQ(r.works[1]->pitch, 64u);
        EXPECT_EQ(r.works[2]->input, 1u);
        EXPECT_EQ(r.works[5]->head.flags, CST_WORK_SYNC);
        ASSERT_EQ(r.n_checks, 1u);
        EXPECT_EQ(r.checks[0]->bytes, 4096u);
        ASSERT_EQ(r.n_obstacles, 1u);
        EXPECT_STREQ(cst_string(trace.get(), r.obstacles[0]->call), "cuGraphLaunch");
        EXPECT_EQ(trace->n_events, 0u); // they are none
        // Data: in the order of what it is of.
        ASSERT_EQ(r.n_parts, 4u);
        size_t n;
        std::string bytes, all;
        const cst_part *part = cst_data_of(trace.get(), CST_DATA_IMAGE, 1, &n);
        ASSERT_EQ(n, 2u);
        for (size_t i = 0; i < n; i++) {
            EXPECT_EQ(part[i].offset, all.size());
            EXPECT_EQ(Load(trace, &part[i], &bytes), "");
            all += bytes;
        }
        EXPECT_EQ(all, std::string("an image that holds every kernel, number 0") + '\0');
        part = cst_data_of(trace.get(), CST_DATA_MEMORY, 0, &n);
        ASSERT_EQ(n, 1u);
        EXPECT_EQ(part->offset, Base() + 4096);
        EXPECT_EQ(Load(trace, part, &bytes), "");
        EXPECT_EQ(bytes, std::string("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0", 16));
        cst_data_of(trace.get(), CST_DATA_INPUT, 1, &n);
        EXPECT_EQ(n, 1u);
        cst_data_of(trace.get(), CST_DATA_INPUT, 2, &n);
        EXPECT_EQ(n, 0u);
        cst_data_of(trace.get(), CST_DATA_IMAGE, 2, &n);
        EXPECT_EQ(n, 0u);
    }
}

TEST(ReplayReader, WorkIsInTheOrderOfTime) {
    Trace trace = Open(Small("order.cst", false, [](Made *m) {
        m->s.now = 500;
        m->Sync(0);
        m->s.now = 100;
        m->Event(CST_WORK_SYNC, 0, 5);
    }));
    ASSERT_TRUE(trace) << open_error;
    EXPECT_EQ(trace->replay.works[0]->event, 5u);
    EXPECT_EQ(trace->replay.works[1]->head.ns, 1500u);
}

TEST(ReplayReader, ChangedDataIsFoundWhenItIsWanted) {
    for (bool packed : {false, true}) {
        std::string path = Small("changed.cst", packed), bytes = ReadFile(path);
        unsigned blocks = 0, refused = 0, found = 0;
        for (size_t at = sizeof(cst_file); at + sizeof(cst_block) <= bytes.size();) {
            cst_block block;
            memcpy(&block, &bytes[at], sizeof block);
            for (size_t i = 0; block.type == CST_BLOCK_DATA && i < block.bytes; i++) {
                std::string broken = bytes, data;
                broken[at + sizeof block + i] ^= 0x55;
                WriteAll(path, broken);
                Trace trace = Open(path);
                blocks++;
                if (!trace) { // what it says of itself makes no sense
                    refused++;
                    EXPECT_NE(
                        open_error.find("corrupt: the data block at byte " + std::to_string(at)),
                        std::string::npos)
                        << open_error;
                    continue;
                }
                bool told = false;
                for (size_t k = 0; k < trace->replay.n_parts; k++) {
                    std::string why = Load(trace, &trace->replay.parts[k], &data);
                    told |= why.find("does not match its checksum") != std::string::npos;
                }
                // A sort of data that is not known is nobody's.
                found += told || trace->replay.n_parts == 3;
            }
            at += sizeof block + (block.bytes + 7) / 8 * 8;
        }
        EXPECT_GT(blocks, 100u);
        EXPECT_GT(refused, 0u);
        EXPECT_EQ(refused + found, blocks);
    }
}

TEST(ReplayReader, AFileCutOrChangedAnywhereIsToldOrHarmless) {
    for (bool packed : {false, true}) {
        std::string path = Small("any.cst", packed), bytes = ReadFile(path);
        uint64_t sum = 0;
        for (size_t i = 0; i < bytes.size(); i += 3) {
            WriteAll(path, bytes.substr(0, i));
            Trace cut = Open(path);
            sum += cut ? Touch(cut) : open_error.size();
            EXPECT_TRUE(!cut || !cut->closed);
            std::string broken = bytes;
            broken[i] = static_cast<char>(broken[i] + 1 + static_cast<char>(i % 250));
            WriteAll(path, broken);
            Trace flipped = Open(path);
            sum += flipped ? Touch(flipped) : open_error.size();
        }
        EXPECT_GT(sum, 0u);
    }
}

TEST(ReplayReader, WhatRefersToNothingIsRefused) {
    const std::function<void(Made *)> bad[] = {
        [](Made *m) { m->Code(7, "x", {8}); },
        [](Made *m) { m->Work(CST_WORK_SYNC, 9); },
        [](Made *m) { m->Work(CST_WORK_LAUNCH, 0); },
        [](Made *m) { m->Work(CST_WORK_MEMSET, 0)->code = 9; },
        [](Made *m) { m->Work(CST_WORK_LAUNCH, 0, 16)->code = 1; }, // 20 bytes of params
        [](Made *m) { m->Work(CST_WORK_SYNC, 0)->n_attributes = 1; },
        [](Made *m) { m->Work(CST_WORK_SYNC, 0)->n_attributes = 0xffffffff; },
        [](Made *m) { m->Work(CST_WORK_SYNC, 0)->head.thread = 5; },
        [](Made *m) { m->Span(CST_SPAN_GLOBAL, 0, 1, "", false, 9); },
        [](Made *m) { m->Span(CST_SPAN_DEVICE, ~uint64_t{7}, 16, ""); },
        [](Made *m) { m->FileModule("", ~uint64_t{0}, 2, 0, ""); },
    };
    for (const auto &more : bad) {
        EXPECT_FALSE(Open(Small("nothing.cst", false, more)));
        EXPECT_NE(open_error.find("refers to what is not defined, or is too short for it"),
                  std::string::npos)
            << open_error << " of " << &more - bad;
    }
}

TEST(ReplayReader, FunctionsThatDoNotHoldTogetherAreRefused) {
    for (int what = 0; what < 4; what++) {
        std::string path = Small("function.cst", false, [&](Made *m) {
            auto *code = static_cast<cst_code *>(
                cst_sink_add(&m->s.sink, CST_CODE, sizeof(cst_code) + sizeof(cst_argument)));
            auto *argument = reinterpret_cast<cst_argument *>(code + 1);
            code->id = 2;
            code->n_arguments = what == 0 ? 2 : 1;
            code->n_attributes = what == 1 ? 0xffffffff : 0;
            code->param_bytes = what == 2 ? 65537 : 8;
            *argument = {what == 3 ? 4u : 0u, 8};
        });
        EXPECT_FALSE(Open(path)) << what;
        EXPECT_NE(open_error.find("makes no sense (type 65"), std::string::npos) << open_error;
    }
}

// Each launch is looked at argument by argument: many of full length would take n times its length.
TEST(ReplayReader, ArgumentsThatOverlapAreRefused) {
    for (uint32_t second : {4u, 0u}) {
        Trace trace = Open(Small("overlap.cst", false, [&](Made *m) {
            auto *code = static_cast<cst_code *>(
                cst_sink_add(&m->s.sink, CST_CODE, sizeof(cst_code) + 2 * sizeof(cst_argument)));
            auto *arguments = reinterpret_cast<cst_argument *>(code + 1);
            code->id = 2;
            code->n_arguments = 2;
            code->param_bytes = 8;
            arguments[0] = {0, 4};
            arguments[1] = {second, second ? 4u : 8u};
        }));
        EXPECT_EQ(trace != nullptr, second == 4) << open_error;
        EXPECT_EQ(open_error.find("makes no sense (type 65") == std::string::npos, second == 4)
            << open_error;
    }
}

TEST(ReplayReader, DataOfAnotherLengthThanItSaysIsRefused) {
    for (int what = 0; what < 3; what++) {
        std::string path = Small("length.cst", false, [&](Made *m) {
            cst_data head = {CST_DATA_MEMORY, 0, what == 1 ? ~uint64_t{0} : 0, 8};
            std::string raw(reinterpret_cast<char *>(&head), sizeof head);
            raw += std::string(what == 0 ? 9 : 8, 'x');
            raw.resize(what == 2 ? 16 : raw.size());
            cst_out_block(&m->s.out, CST_BLOCK_DATA, 0, raw.data(), raw.size(), raw.size());
        });
        EXPECT_FALSE(Open(path)) << what;
        EXPECT_NE(open_error.find("corrupt: the data block at byte "), std::string::npos)
            << open_error;
    }
    // Of a newer version: left out.
    Trace trace = Open(Small("newer.cst", false, [](Made *m) { m->Data(9, 0, 0, "x"); }));
    ASSERT_TRUE(trace) << open_error;
    EXPECT_EQ(trace->replay.n_parts, 4u);
}

// What a trace lacks, a line each.
std::string Lacks(const cst_trace *trace, bool contents = true) {
    std::string all;
    bool whole = cst_replay_whole(
        trace, contents,
        [](void *to, const char *sentence) {
            *static_cast<std::string *>(to) += std::string(sentence) + "\n";
        },
        &all);
    EXPECT_EQ(whole, all.empty());
    return all;
}

TEST(ReplayWhole, PartsFollowEachOther) {
    const struct {
        uint32_t of;
        uint64_t second; // the first part has 100 bytes
        const char *says;
    } cases[] = {
        {CST_DATA_IMAGE, 100, ""},
        {CST_DATA_IMAGE, 101, "the blocks of module 90 overlap, or something is missing"},
        {CST_DATA_IMAGE, 99, "the blocks of module 90 overlap, or something is missing"},
        {CST_DATA_IMAGE, 0, "the blocks of module 90 overlap, or something is missing"},
        {CST_DATA_INPUT, 100, ""},
        {CST_DATA_INPUT, 4096, "the blocks of input 90 overlap, or something is missing"},
        {CST_DATA_MEMORY, 100, ""},
        {CST_DATA_MEMORY, 4096, ""}, // what is in no block was zero
        {CST_DATA_MEMORY, 99, "two blocks of memory hold what was at 0x63"},
    };
    for (const auto &it : cases) {
        uint32_t id = it.of == CST_DATA_MEMORY ? 0 : 90;
        Trace trace = Open(Small("parts.cst", false, [&](Made *m) {
            m->Data(it.of, id, 0, std::string(100, 'a'));
            m->Data(it.of, id, it.second, std::string(50, 'b'));
        }));
        ASSERT_TRUE(trace) << open_error;
        std::string lacks = Lacks(trace.get());
        EXPECT_EQ(lacks.empty(), !*it.says) << lacks;
        EXPECT_NE(lacks.find(it.says), std::string::npos) << lacks;
    }
}

TEST(ReplayWhole, ContentsAreLookedAtWhereThatIsAsked) {
    for (bool packed : {false, true}) {
        std::string path = Small("contents.cst", packed, [](Made *) {}), bytes = ReadFile(path);
        EXPECT_EQ(Lacks(Open(path).get()), "");
        cst_block block;
        for (size_t at = sizeof(cst_file); at + sizeof block <= bytes.size();
             at += sizeof block + (block.bytes + 7) / 8 * 8) {
            memcpy(&block, &bytes[at], sizeof block);
            if (block.type == CST_BLOCK_DATA)
                bytes[at + offsetof(cst_block, check)] ^= 1;
        }
        WriteAll(path, bytes);
        Trace trace = Open(path);
        ASSERT_TRUE(trace) << open_error;
        EXPECT_EQ(Lacks(trace.get(), false), "");
        EXPECT_NE(Lacks(trace.get()).find("does not match its checksum"), std::string::npos);
    }
}

TEST(ReplayWhole, AFrameThatSaysMoreThanItHoldsIsFound) {
    Trace trace = Open(Small("less.cst", false, [](Made *m) {
        std::string raw(sizeof(cst_data) + 1000, 0);
        cst_data head = {CST_DATA_INPUT, 90, 0, 2000};
        memcpy(&raw[0], &head, sizeof head);
        std::string frame(ZSTD_compressBound(raw.size()), 0);
        frame.resize(ZSTD_compress(&frame[0], frame.size(), raw.data(), raw.size(), 3));
        cst_out_block(&m->s.out, CST_BLOCK_DATA, CST_BLOCK_ZSTD, frame.data(), frame.size(),
                      sizeof head + 2000);
    }));
    ASSERT_TRUE(trace) << open_error;
    EXPECT_EQ(Lacks(trace.get(), false), "");
    EXPECT_NE(Lacks(trace.get()).find("does not unpack"), std::string::npos);
}

TEST(ReplayWhole, DataUnpackToSoMuchInAll) {
    Trace trace = Open(Small("much.cst", true, [](Made *m) {
        for (int i = 0; i < 3; i++)
            m->Data(CST_DATA_INPUT, 90, static_cast<uint64_t>(i) * (30 << 20),
                    std::string(30 << 20, 0));
    }));
    ASSERT_TRUE(trace) << open_error;
    EXPECT_NE(Lacks(trace.get(), false).find("code, memory and input unpack to more than 64 MiB"),
              std::string::npos);
}

TEST(ReplayReader, ATraceThatIsNotReplayableHasNone) {
    std::string path = Fresh("none.cst");
    Synth s(path);
    s.Thread(1, "");
    ASSERT_EQ(s.Close(), 0);
    Trace trace = Open(path);
    ASSERT_TRUE(trace) << open_error;
    EXPECT_EQ(trace->replay.n_works + trace->replay.n_parts + trace->replay.n_spans, 0u);
    size_t n;
    cst_data_of(trace.get(), CST_DATA_MEMORY, 0, &n);
    EXPECT_EQ(n, 0u);
}

} // namespace
