// Promise: of a damaged file the reader gives back what matches its checksums, and says how much
// does not. It makes nothing up, and a hostile file costs it what it is long.
#include <gtest/gtest.h>
#include <string.h>
#include <time.h>

#include "tests/text.h"
#include "tests/unit/trace/opened.h"
#include "tests/unit/trace/short.h"
#include "tools/trace/model.h"

namespace {

Trace Salvage(const std::string &path) {
    char text[4096] = "";
    cst_bounds bounds = {};
    bounds.salvage = true;
    cst_trace *trace = cst_open_within(path.c_str(), &bounds, text, sizeof text);
    open_error = text;
    return Trace(trace, cst_free);
}

std::string last; // what SalvageBytes wrote

Trace SalvageBytes(const std::string &bytes) {
    last = Fresh("damaged.cst");
    WriteAll(last, bytes);
    return Salvage(last);
}

bool Damaged(const Trace &t) {
    return t->damage.places || t->damage.records || t->damage.head || !t->closed;
}

// What the events say, but for those that stand for what is missing.
std::vector<std::string> Events(const cst_trace *trace) {
    std::vector<std::string> all;
    for (size_t i = 0; i < trace->n_events; i++) {
        const cst_record *record = trace->events[i];
        if (record->type != CST_LOST || !record->flags)
            all.push_back(std::string(reinterpret_cast<const char *>(record), record->words * 8u));
    }
    return all;
}

const cst_lost *Lost(const Trace &t, size_t nth = 0) {
    for (size_t i = 0; i < t->n_events; i++)
        if (t->events[i]->type == CST_LOST && t->events[i]->flags && nth-- == 0)
            return reinterpret_cast<const cst_lost *>(t->events[i]);
    return nullptr;
}

// Three blocks of ten ops each, behind one with the definitions.
std::string Three(bool packed = false) {
    std::string path = Fresh("three.cst");
    Synth s(path, packed);
    s.Facts("{\"gpu\":\"G\"}");
    s.Thread(1, "main");
    s.Stream(CST_STREAM_LEGACY, 0);
    s.Kernel("k");
    s.Block();
    for (int block = 0; block < 3; block++) {
        for (int i = 0; i < 10; i++)
            s.Op(1, 1);
        s.Launch(1, 10, 1, CST_EXACT);
        s.Block();
    }
    EXPECT_EQ(s.Close(), 0);
    return ReadFile(path);
}

// Where the blocks of a sound file begin; the last is its end.
std::vector<size_t> Blocks(const std::string &bytes) {
    std::vector<size_t> all;
    for (size_t at = sizeof(cst_file); at < bytes.size();) {
        cst_block block;
        memcpy(&block, &bytes[at], sizeof block);
        all.push_back(at);
        at += sizeof block + (block.bytes + 7) / 8 * 8;
    }
    return all;
}

std::string Flip(std::string bytes, size_t at, int with = 1) {
    bytes[at] = static_cast<char>(bytes[at] ^ with);
    return bytes;
}

TEST(Salvage, ASoundFileIsReadAsEver) {
    for (bool packed : {false, true}) {
        std::string path = Fresh("sound.cst");
        WriteAll(path, GoldenBytes(packed));
        Trace t = Salvage(path), strict = Open(path);
        ASSERT_TRUE(t && strict) << open_error;
        EXPECT_FALSE(Damaged(t));
        EXPECT_EQ(Events(t.get()), Events(strict.get()));
        EXPECT_EQ(t->n_events, strict->n_events);
    }
}

TEST(Salvage, ADamagedBlockCostsThatBlockAndIsCounted) {
    for (bool packed : {false, true}) {
        std::string whole = Three(packed);
        size_t at = Blocks(whole)[3];
        Trace t = SalvageBytes(Flip(whole, at + sizeof(cst_block) + 3));
        ASSERT_TRUE(t) << open_error;
        EXPECT_STREQ(open_error.c_str(), "");
        EXPECT_EQ(t->ops, 20u);
        EXPECT_EQ(t->damage.places, 1u);
        EXPECT_EQ(t->damage.bytes, Blocks(whole)[4] - at);
        EXPECT_EQ(t->damage.unchecked, 0u);
        EXPECT_EQ(t->lost_records, t->damage.records);
        EXPECT_GE(t->damage.records, 1u);
        EXPECT_TRUE(t->closed);
        ASSERT_TRUE(Lost(t));
        EXPECT_EQ(Lost(t)->head.ns, t->events[10]->ns) << "behind the first launch";
        EXPECT_STREQ(t->facts, "{\"gpu\":\"G\"}");
    }
    // Unpacked records behind each other can be counted: ten ops and a launch.
    std::string whole = Three();
    size_t inside = Blocks(whole)[3] + sizeof(cst_block) + sizeof(cst_op) + 4;
    Trace t = SalvageBytes(Flip(whole, inside));
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->damage.records, 11u);
    EXPECT_EQ(t->damage.ops, 10u);
    EXPECT_EQ(t->lost_ops, 10u);
}

TEST(Salvage, ADamagedHeadOfABlockHidesNoOther) {
    std::string whole = Three();
    size_t at = Blocks(whole)[3];
    for (size_t byte = 0; byte < sizeof(cst_block); byte++) {
        Trace t = SalvageBytes(Flip(whole, at + byte, 255));
        ASSERT_TRUE(t) << byte << open_error;
        EXPECT_EQ(t->ops, 20u) << byte;
        EXPECT_EQ(t->damage.places, 1u) << byte;
    }
}

TEST(Salvage, AHoleAndAHeadThatIsGoneHideNothingElse) {
    std::string whole = Three();
    std::vector<size_t> at = Blocks(whole);
    // From the midst of one block to the midst of the one behind the next.
    std::string hole = whole;
    memset(&hole[at[2] + 40], 0, at[4] + 40 - (at[2] + 40));
    Trace t = SalvageBytes(hole);
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->ops, 0u);
    EXPECT_TRUE(t->closed);
    // Bytes that are gone: what is behind them stands elsewhere, still at a multiple of 8.
    t = SalvageBytes(whole.substr(0, at[3] + 80) + whole.substr(at[4]));
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->ops, 20u);
    std::string head = whole;
    memset(&head[0], 'x', 8);
    t = SalvageBytes(head);
    ASSERT_TRUE(t) << open_error;
    EXPECT_TRUE(t->damage.head);
    EXPECT_EQ(t->ops, 30u);
    EXPECT_FALSE(SalvageBytes(std::string(4000, 'x')));
    EXPECT_TRUE(Has(open_error, "not a trace of cusplice")) << open_error;
}

TEST(Salvage, ABlockWhoseEndIsMissingIsTakenAsFarAsItGoes) {
    std::string whole = GoldenBytes();
    uint64_t ops = 0;
    for (size_t bytes = sizeof(cst_file); bytes < whole.size(); bytes++) {
        Trace t = SalvageBytes(whole.substr(0, bytes));
        ASSERT_TRUE(t) << bytes << ": " << open_error;
        EXPECT_FALSE(t->closed);
        Trace strict = Open(last);
        ASSERT_TRUE(strict) << bytes << ": " << open_error;
        EXPECT_GE(t->ops, strict->ops) << bytes;
        EXPECT_GE(t->ops, ops) << bytes;
        ops = t->ops;
    }
    whole = Three();
    size_t op = sizeof(cst_op) + 8;
    Trace t = SalvageBytes(whole.substr(0, Blocks(whole)[4] + sizeof(cst_block) + 4 * op + 5));
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->ops, 24u);
    EXPECT_EQ(t->damage.unchecked, 4u);
    EXPECT_EQ(t->damage.bytes, sizeof(cst_block) + 5);
}

TEST(Salvage, DefinitionsOfADamagedBlockAreTaken) {
    std::string whole = Three();
    size_t name = whole.find("main"); // in the block of definitions
    Trace t = SalvageBytes(Flip(whole, name));
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->ops, 30u);
    EXPECT_EQ(t->damage.places, 1u);
    EXPECT_EQ(t->damage.unchecked, 5u); // two strings, a thread, a stream, a kind
    EXPECT_STREQ(cst_string(t.get(), t->kinds[1]->name), "k");
    // In front of all events: it has a thread, and the time of the first.
    ASSERT_TRUE(Lost(t));
    EXPECT_EQ(Lost(t)->head.thread, 1u);
    EXPECT_EQ(Lost(t)->head.ns, t->events[1]->ns);
}

TEST(Salvage, ADefinitionWithoutAChecksumReplacesNone) {
    std::string path = Fresh("two.cst");
    Synth s(path);
    s.Thread(1, "");
    s.Stream(CST_STREAM_LEGACY, 0);
    s.Kernel("aaaa");
    s.Block();
    s.Kernel("bbbb");
    s.Op(1, 1);
    s.Op(1, 2);
    ASSERT_EQ(s.Close(), 0);
    std::string whole = ReadFile(path);
    // In the first block: the kind says that it is number 2, and so does its name.
    for (uint8_t type : {uint8_t{CST_KIND}, uint8_t{CST_STRING}}) {
        std::string bytes = whole;
        size_t at = Blocks(whole)[0] + sizeof(cst_block);
        for (const cst_record *record;; at += record->words * 8u) {
            record = reinterpret_cast<const cst_record *>(&bytes[at]);
            if (record->type == type)
                break;
        }
        bytes[at + sizeof(cst_record)] = 2;
        Trace t = SalvageBytes(bytes);
        ASSERT_TRUE(t) << open_error;
        ASSERT_TRUE(t->n_kinds > 2 && t->kinds[2]);
        EXPECT_STREQ(cst_string(t.get(), t->kinds[2]->name), "bbbb") << int{type};
    }
}

TEST(Salvage, WhatRefersToSomethingLostIsLeftOutAndCounted) {
    std::string whole = Three(true); // packed: no definition of a damaged block can be read
    Trace t = SalvageBytes(Flip(whole, Blocks(whole)[1] + sizeof(cst_block) + 3));
    ASSERT_TRUE(t) << open_error;
    EXPECT_EQ(t->ops, 0u);
    EXPECT_EQ(t->n_events, 0u);
    EXPECT_EQ(t->damage.ops, 30u);
    EXPECT_GE(t->damage.records, 33u);
}

TEST(Salvage, GraphsBehindTheDamageAreOfOpsBehindIt) {
    // The launch of the first ten ops stands in the block that is damaged.
    std::string path = Fresh("shifted.cst");
    Synth s(path);
    s.Thread(1, "");
    s.Stream(CST_STREAM_LEGACY, 0);
    s.Kernel("k");
    for (int i = 0; i < 10; i++)
        s.Op(1, 1);
    s.Block();
    s.Launch(1, 10, 1, CST_EXACT);
    s.Block();
    for (int i = 0; i < 10; i++)
        s.Op(1, 1);
    s.Launch(1, 10, 2, CST_EXACT);
    ASSERT_EQ(s.Close(), 0);
    std::string whole = ReadFile(path);
    Trace t = SalvageBytes(Flip(whole, Blocks(whole)[1] + sizeof(cst_block) + 20));
    ASSERT_TRUE(t) << open_error;
    model *m = model_make(t.get());
    ASSERT_TRUE(m);
    EXPECT_EQ(m->open, 10u);
    EXPECT_EQ(m->in_graphs, 10u);
    for (uint32_t i = 0; i < m->n_ops; i++)
        EXPECT_EQ(m->ops[i].out != nullptr, i >= 10) << i;
    model_free(m);
}

TEST(Salvage, EachFlippedByteCostsNoMoreThanItsBlock) {
    for (bool packed : {false, true}) {
        std::string whole = GoldenBytes(packed);
        for (size_t at = 0; at < whole.size(); at++)
            for (int with : {1, 128}) {
                Trace t = SalvageBytes(Flip(whole, at, with));
                if (at < sizeof(cst_file)) {
                    EXPECT_TRUE(t || (at >= 8 && at < 16)) << at << open_error;
                    continue;
                }
                ASSERT_TRUE(t) << at << open_error;
                EXPECT_LE(t->damage.places, 1u) << at;
                EXPECT_LE(t->ops, 21u) << at;
                model *m = model_make(t.get());
                ASSERT_TRUE(m) << at;
                model_free(m);
            }
    }
}

TEST(Salvage, BlocksThatLieAboutTheirLengthCostWhatTheFileIsLong) {
    // 100,000 heads, each of which claims all of the rest of the file, and sound blocks between.
    std::string path = Fresh("liars.cst");
    Synth s(path);
    s.Thread(1, "");
    s.Block();
    s.Lost(0, 0);
    ASSERT_EQ(s.Close(), 0);
    std::string whole = ReadFile(path);
    std::vector<size_t> at = Blocks(whole);
    std::string sound = whole.substr(at[1], at[2] - at[1]), end = whole.substr(at[2]);
    const size_t pair = 2 * sound.size(), pairs = 100000;
    whole.resize(at[1]);
    for (size_t i = pairs; i > 0; i--) {
        cst_block liar = {};
        liar.type = CST_BLOCK_RECORDS;
        liar.bytes = liar.raw = i * pair - sizeof liar - 8;
        std::string head(reinterpret_cast<const char *>(&liar), sizeof liar);
        whole += head + std::string(sound.size() - sizeof liar, 0) + sound;
    }
    whole += end;
    timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    SalvageBytes(whole);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    EXPECT_LT(after.tv_sec - before.tv_sec, 3) << whole.size();
}

} // namespace
