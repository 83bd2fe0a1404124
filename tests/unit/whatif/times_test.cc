// Promise: a trace tells what a program pays for launches, and how it goes on after them.
#include "tests/unit/whatif/program.h"

extern "C" {
#include "tools/cli/whatif.h"
}

namespace whatif {
namespace {

whatif_cost Costs() {
    whatif_cost c = {};
    c.host.graph_launch = 1000;
    c.host.graph_node = 10;
    c.host.graph_other = 500;
    c.host.graph_record = 300;
    c.host.patched_node = 200;
    c.recorder.eager_launch = 800;
    c.recorder.matched_launch = 50;
    return c;
}

class Recorded : public Program {
  public:
    // An op that took `ns`; what follows comes `behind` later.
    void Deferred(uint32_t kernel, uint32_t stream, uint64_t ns, uint64_t behind) {
        cst_op *op = Launch(kernel, stream);
        op->head.flags = CST_DEFERRED;
        op->host_ns = ns;
        Wait(ns + behind - 1000);
    }
    void Issued(uint32_t kernel, uint32_t stream, uint64_t ns, uint64_t behind) {
        Launch(kernel, stream)->host_ns = ns;
        Wait(ns + behind - 1000);
    }
    // The one by which `n` go out in a graph.
    void Last(uint32_t kernel, uint32_t stream, uint32_t n, uint32_t patched, uint32_t ns,
              uint64_t behind, cst_choice choice = CST_PATCHED) {
        cst_op *op = Launch(kernel, stream);
        op->head.flags = CST_DEFERRED;
        op->host_ns = ns + 10;
        auto *launch = (cst_launch *)Add(CST_LAUNCH, sizeof(cst_launch));
        launch->head.ns -= 995; // within the op
        launch->head.flags = choice;
        launch->stream = stream;
        launch->n = n;
        launch->patched = patched;
        launch->host_ns = ns;
        Wait(ns + 10 + behind - 1000);
    }
    whatif_timing Times(const whatif_cost &cost) {
        whatif_known known = {};
        EXPECT_TRUE(cli_whatif_times(Trace(), nullptr, &cost, &known));
        EXPECT_EQ(known.gpu_ns, nullptr);
        return known.timing;
    }
};

TEST(Times, LaunchesTakeAsManyTimesMore) {
    Recorded program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    for (int i = 0; i < 100; i++) {
        program.Issued(kernel, stream, 1200, 5000);
        program.Deferred(kernel, stream, 150, 5000);
        program.Last(kernel, stream, 2, 0, 2000, 5000);
    }
    whatif_timing timing = program.Times(Costs());
    EXPECT_DOUBLE_EQ(timing.eager, 1.5);
    EXPECT_DOUBLE_EQ(timing.matched, 3);
    // A calibration that did not record, and one on a slower day.
    whatif_cost cost = Costs();
    cost.recorder.eager_launch = 0;
    EXPECT_EQ(program.Times(cost).eager, 0);
    cost.recorder.eager_launch = 2400;
    EXPECT_DOUBLE_EQ(program.Times(cost).eager, 0.5);
}

// What a program pays where it begins, and what the few pay that stand alone, says nothing of the
// others.
TEST(Times, WarmAndManyAlone) {
    Recorded program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k");
    for (int i = 0; i < 200; i++) {
        program.Issued(kernel, stream, i < 100 ? 9000 : 1200, 5000);
        program.Deferred(kernel, stream, i < 100 ? 4000 : 150, 5000);
    }
    EXPECT_DOUBLE_EQ(program.Times(Costs()).eager, 1.5);
    EXPECT_DOUBLE_EQ(program.Times(Costs()).matched, 3);
    Recorded few;
    stream = few.Stream(), kernel = few.Kernel("k");
    for (int i = 0; i < 2000; i++) {
        few.Deferred(kernel, stream, 150, 5000);
        if (i % 20 == 0)
            few.Issued(kernel, stream, 9000, 90000);
    }
    EXPECT_EQ(few.Times(Costs()).eager, 0);
    EXPECT_EQ(few.Times(Costs()).behind_eager, 0);
    EXPECT_DOUBLE_EQ(few.Times(Costs()).matched, 3);
}

TEST(Times, GraphsAreComparedWithTheirCosts) {
    Recorded program;
    uint32_t stream = program.Stream(), kernel = program.Kernel("k"),
             set = program.Memset("cuMemsetD32Async", 4), record = program.RecordOf();
    for (int i = 0; i < 50; i++) {
        program.Deferred(kernel, stream, 150, 5000);
        program.Record(record, stream, 0x100)->head.flags = CST_DEFERRED;
        cst_op *fill = program.Op(set, stream, 24);
        fill->head.flags = CST_DEFERRED;
        // 1000, four nodes, one a memset and one a record, two patches.
        program.Last(kernel, stream, 4, 2, 3 * (1000 + 40 + 500 + 300 + 400), 5000);
        // Building is no launch.
        program.Last(kernel, stream, 1, 0, 900000, 5000, CST_BUILT);
    }
    EXPECT_DOUBLE_EQ(program.Times(Costs()).graph, 3);
    Recorded few;
    stream = few.Stream(), kernel = few.Kernel("k");
    for (int i = 0; i < 10; i++)
        few.Last(kernel, stream, 1, 0, 5000, 5000);
    EXPECT_EQ(few.Times(Costs()).graph, 0);
}

TEST(Times, TheProgramIsSlowerBehindTheDriver) {
    Recorded program;
    uint32_t stream = program.Stream(), a = program.Kernel("a"), b = program.Kernel("b");
    for (int i = 0; i < 100; i++) {
        program.Deferred(a, stream, 150, 5000);
        program.Deferred(b, stream, 150, 7000);
        program.Last(a, stream, 3, 0, 2000, 5900);
        program.Deferred(b, stream, 150, 7000);
        program.Issued(a, stream, 1200, 5300);
        program.Issued(b, stream, 1200, i < 60 ? 90000 : 7300); // slow where it begins
    }
    whatif_timing timing = program.Times(Costs());
    EXPECT_DOUBLE_EQ(timing.behind_graph, 900);
    EXPECT_NEAR(timing.behind_eager, 300, 1);
    // Nothing to compare with: another pair.
    Recorded other;
    stream = other.Stream(), a = other.Kernel("a"), b = other.Kernel("b");
    for (int i = 0; i < 100; i++) {
        other.Deferred(a, stream, 150, 5000);
        other.Issued(b, stream, 1200, 9000);
    }
    EXPECT_EQ(other.Times(Costs()).behind_eager, 0);
}

} // namespace
} // namespace whatif
