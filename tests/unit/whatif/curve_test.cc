// Promise: the first steps of a played program are those of its usual length, in their order, from
// the first one on; the step that has the gain is later by what the engine waits longer.
#include "tests/unit/whatif/timed.h"

namespace whatif {
namespace {

// Steps of three launches, each with time of its own before it; a short one behind the second.
void Slower(Timed &program, int steps) {
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    program.WaitFor(stream);
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 3; i++)
            program.Go(kernel, stream, 700, 10000 + 1000 * step);
        program.WaitFor(stream);
        if (step == 1) {
            program.Go(kernel, stream, 700, 5000000);
            program.WaitFor(stream);
        }
    }
}

double Step(int step) {
    return 3 * (13000 + 1000 * step) + 500 + 700 + 2000;
}

double Recorded(int step) {
    return 3 * (11000 + 1000 * step) + 2000 + 5000 + 1000;
}

TEST(Curve, IsOfTheFirstStepsOfTheUsualLength) {
    Timed program;
    Slower(program, 16);
    whatif_times t = program.Times(Costs(), "off");
    EXPECT_EQ(t.steps, 17u);
    ASSERT_EQ(t.n_curve, 16u);
    double first = 0, recorded = 0;
    for (int i = 0; i < 16; i++) {
        EXPECT_EQ(t.curve[i], Step(i)) << i;
        first += i < 10 ? Step(i) : 0;
        recorded += i < 10 ? Recorded(i) : 0;
    }
    EXPECT_DOUBLE_EQ(t.first, first);
    EXPECT_DOUBLE_EQ(t.recorded_first, recorded);
}

TEST(Curve, FewerStepsAreThoseThatThereAre) {
    Timed program;
    Slower(program, 4);
    whatif_times t = program.Times(Costs(), "off");
    EXPECT_EQ(t.n_curve, 4u);
    EXPECT_DOUBLE_EQ(t.first, Step(0) + Step(1) + Step(2) + Step(3));
    Timed none;
    t = none.Times(Costs(), "off");
    EXPECT_EQ(t.n_curve, 0u);
    EXPECT_LT(t.first, 0);
    EXPECT_LT(t.recorded_first, 0);
}

TEST(Curve, KeepsNoMoreThanThereIsRoomFor) {
    Timed program;
    Slower(program, 300);
    whatif_times t = program.Times(Costs(), "off");
    ASSERT_EQ(t.n_curve, 256u);
    EXPECT_EQ(t.curve[255], Step(255));
}

// Launches go out by themselves while the engine looks on; then it builds a graph, which takes
// longer; then it has it.
TEST(Curve, TheGainComesBehindTheWarmup) {
    Timed program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    program.WaitFor(stream);
    for (int step = 0; step < 24; step++) {
        for (int i = 0; i < 20; i++)
            program.Go(kernel, stream, 700);
        program.WaitFor(stream);
    }
    double plain = program.Times(Costs(), "off").step;
    EXPECT_DOUBLE_EQ(plain, 20 * 3000 + 500 + 700 + 2000);
    double late = 20 * 100 + 1500 + 20 * 10 + 500 + 20 * 700 + 19 * 200 + 2000;
    for (uint32_t warmup : {2u, 3u, 6u}) {
        whatif_times t = program.Times(
            Costs(), "piecewise",
            {{"warmup", std::to_string(warmup)}, {"segment_first", "64"}, {"segment_max", "64"}});
        EXPECT_DOUBLE_EQ(t.step, late);
        ASSERT_EQ(t.n_curve, 24u);
        for (uint32_t i = 0; i < warmup; i++)
            EXPECT_EQ(t.curve[i], plain);
        double built = late + 20 * 5000;
        EXPECT_EQ(t.curve[warmup], built);
        EXPECT_EQ(t.curve[warmup + 1], late);
        EXPECT_DOUBLE_EQ(t.first, warmup * plain + built + (9 - warmup) * late);
        EXPECT_EQ(cus_curve_reached(t.curve, 24, (uint64_t)plain, (uint64_t)t.step), warmup + 2);
    }
}

} // namespace
} // namespace whatif
