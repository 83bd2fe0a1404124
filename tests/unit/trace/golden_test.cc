// Promise: tests/golden/trace-v1.cst stays readable for ever. Nobody may make it anew; a version 2
// of the format gets its own file.
//
//   CUS_WRITE_GOLDEN=PATH  the test's program writes the file there (it was made so)
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trace/golden.h"
#include "tools/trace/reader.h"

namespace {

const char golden[] = "tests/golden/trace-v1.cst";

TEST(Golden, VersionOneIsReadAsItWasMeant) {
    char error[512];
    cst_trace *t = cst_open(golden, error, sizeof error);
    ASSERT_TRUE(t) << error;
    EXPECT_EQ(t->version, 1u);
    EXPECT_TRUE(t->closed);
    EXPECT_EQ(t->torn, 0u);
    EXPECT_TRUE(strstr(t->facts, "\"--tokens\"")) << t->facts;
    EXPECT_EQ(t->ops, 21u);
    EXPECT_EQ(t->n_events, 33u);
    EXPECT_EQ(t->n_threads, 3u);
    EXPECT_STREQ(cst_string(t, t->threads[2]->name), "worker");
    EXPECT_EQ(t->threads[2]->tid, 4712u);
    ASSERT_EQ(t->n_streams, 3u);
    EXPECT_EQ(t->streams[2]->handle, 0x5555u);
    EXPECT_EQ(t->streams[2]->priority, -1);
    EXPECT_EQ(t->streams[1]->kind, uint32_t{CST_STREAM_LEGACY});
    ASSERT_EQ(t->n_kinds, 7u);
    EXPECT_STREQ(cst_string(t, t->kinds[2]->name), "_ZN5model4gemmIfEEvPT_i");
    EXPECT_EQ(t->kinds[2]->param_bytes, 16u);
    EXPECT_EQ(t->kinds[4]->flags, uint32_t{CST_KIND_OPAQUE | CST_KIND_KERNEL});
    EXPECT_EQ(t->kinds[5]->op, uint32_t{CST_OP_MEMSET});
    EXPECT_EQ(t->kinds[6]->form, 1u);
    ASSERT_EQ(t->n_ranges, 1u);
    EXPECT_EQ(t->ranges[0]->start, 0x7f0000000000u);
    EXPECT_EQ(t->lost_records, 7u);
    EXPECT_EQ(t->lost_ops, 5u);
    auto *first = reinterpret_cast<const cst_op *>(t->events[0]);
    EXPECT_EQ(first->head.ns, 1000000u);
    EXPECT_STREQ(cst_string(t, first->why), "observing");
    auto *second = reinterpret_cast<const cst_op *>(t->events[1]);
    EXPECT_EQ(second->kind, 2u);
    uint64_t word;
    memcpy(&word, cst_op_params(second), sizeof word);
    EXPECT_EQ(word, 0x7f0000000000u);
    cst_free(t);
}

TEST(Golden, TheWriterStillMakesTheSameBytes) {
    const char *to = getenv("CUS_WRITE_GOLDEN");
    std::string path = to ? to : Fresh("golden.cst");
    Synth s(path);
    WriteGolden(&s);
    ASSERT_EQ(s.Close(), 0);
    std::string made = ReadFile(path);
    EXPECT_LT(made.size(), 20000u);
    EXPECT_TRUE(made == ReadFile(golden));
}

} // namespace
