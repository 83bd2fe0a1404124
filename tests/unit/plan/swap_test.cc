// Promise: if most nodes of a segment differ, image and requested values change places without a
// copy.
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include "shim/base/mem.h"

namespace {

constexpr unsigned kOps = 12;

// Learned, and in graphs.
void Warm(Program *program) {
    for (int i = 0; i < 4; i++)
        program->Step(kOps);
    program->ResetCounts();
}

cus_segment *Largest(const Program &program) {
    cus_segment *largest = program.plan.view.segments;
    for (cus_segment *segment = largest; segment; segment = segment->next)
        if (segment->n > largest->n)
            largest = segment;
    return largest;
}

// Steps whose first `differ` addresses are new ones each time.
void Moving(Program *program, unsigned steps, unsigned differ) {
    static uint64_t fresh = 1000;
    for (unsigned step = 0; step < steps; step++) {
        for (unsigned i = 0; i < kOps; i++)
            program->Op("k" + std::to_string(i % 5), i < differ ? ++fresh : 100 + i, i);
        program->Sync();
    }
}

// How many of its ops but the last are met on the hot path, by this image.
unsigned Met(const cus_segment *segment, uint8_t *image) {
    unsigned met = 0;
    for (uint32_t i = 0; i + 1 < segment->n; i++)
        met += cus_image_expected(image, segment, i)->kind == segment->places[i].kind;
    return met;
}

// The leading arguments of 8 bytes are compared as words, all others one by one.
TEST(Swap, AnImageKnowsItsArguments) {
    Program program;
    Warm(&program);
    const cus_segment *segment = Largest(program);
    for (uint32_t i = 0; i + 1 < segment->n; i++) {
        const cus_expected *expected = cus_image_expected(segment->newest->image, segment, i);
        ASSERT_EQ(expected->words, 1u);
        ASSERT_EQ(expected->others, 1u);
        ASSERT_EQ(expected->tail, segment->places[i].kind->layout->arguments + 1);
    }
}

TEST(Swap, WhatWasAskedIsWhatTheNodesHoldFromThenOn) {
    Program program({2, 4, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false});
    Warm(&program);
    for (unsigned differ : {kOps, kOps - 2, 7u, 6u, 1u, 0u, kOps, 3u})
        Moving(&program, 3, differ);
    ExpectFaithful(program);
    EXPECT_EQ(program.eager, 0u);
    EXPECT_GT(program.patched, 0u);
}

TEST(Swap, TheImageAndWhatIsAskedChangePlaces) {
    Program program({2, 4, 4, 0, 1, 100000, CUS_MODE_PIECEWISE, false});
    Warm(&program);
    unsigned changed = 0;
    for (int i = 0; i < 8; i++) {
        cus_segment *segment = Largest(program);
        uint8_t *image = segment->newest->image, *requested = segment->requested;
        ASSERT_NE(image, requested);
        Moving(&program, 1, kOps);
        if (segment->newest->image == image)
            continue;
        changed++;
        EXPECT_EQ(segment->newest->image, requested);
        EXPECT_EQ(segment->requested, image);
    }
    EXPECT_GT(changed, 0u) << "patched all at once";
    EXPECT_LT(changed, 8u) << "or one by one, and copied";
    ExpectFaithful(program);
}

TEST(Swap, AFewAreCopied) {
    Program program({2, 16, 64, 0, 1, 100000, CUS_MODE_PIECEWISE, false});
    Warm(&program);
    ASSERT_EQ(Largest(program)->n, kOps);
    uint8_t *image = Largest(program)->newest->image;
    Moving(&program, 4, 2);
    EXPECT_EQ(Largest(program)->newest->image, image);
    ExpectFaithful(program);
}

// What stands beside a node whose content was not known sends its op the long way: no longer than
// until it was patched, whichever of the two buffers it stands in.
TEST(Swap, BehindADoubtAllAreMetAgain) {
    Program program({2, 4, 64, 0, 1, 100000, CUS_MODE_PIECEWISE, false});
    Warm(&program);
    cus_segment *segment = Largest(program);
    for (unsigned times = 0; times < 4; times++) {
        cus_variant_know(segment->newest, segment, 1, false);
        ASSERT_EQ(Met(segment, segment->newest->image), segment->n - 2);
        ASSERT_TRUE(segment->newest->doubted);
        for (int i = 0; i < 4; i++) {
            Moving(&program, 1, kOps);
            ASSERT_EQ(Largest(program), segment);
            EXPECT_EQ(Met(segment, segment->newest->image), segment->n - 1);
            EXPECT_EQ(Met(segment, segment->requested), segment->n - 1);
        }
        EXPECT_FALSE(segment->newest->doubted);
    }
    ExpectFaithful(program);
}

// Whichever of the two a segment and its graphs have in the end.
TEST(Swap, AllIsGivenBack) {
    const uint64_t before = cus_mem_held();
    {
        Program program({2, 4, 64, 0, 2, 100000, CUS_MODE_PIECEWISE, false});
        Warm(&program);
        Moving(&program, 5, kOps);
        EXPECT_GT(cus_mem_held(), before);
    }
    EXPECT_EQ(cus_mem_held(), before);
}

} // namespace
