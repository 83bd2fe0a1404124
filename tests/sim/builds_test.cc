// Promise: a build takes one driver call for each node and a few more. The library identifies nodes
// in any order of the driver's list, and asks for a node's contents only when it patches the node.
#include "tests/sim/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sim {
namespace {

struct Program {
    const char *name;
    std::vector<std::string> args;
    int more; // calls beside: each attribute is asked for once, and nodes that a programmatic
              // launch follows when they are captured
};

void PrintTo(const Program &program, std::ostream *out) {
    *out << program.name;
}

const std::vector<Program> kPrograms = {
    {"decode_loop", {"--steps", "24"}, 0}, {"copies", {"--steps", "24"}, 0},
    {"memsets", {"--steps", "24"}, 0},     {"moving_buffers", {}, 0},
    {"launch_ex", {"--steps", "24"}, 10},  {"capture_once", {"--steps", "24"}, 0},
};

class Builds : public testing::TestWithParam<Program> {};

Case CaseFor(const Program &program) {
    Case c = CaseOf(program.name);
    if (!program.args.empty()) {
        c.args = program.args;
    }
    return c;
}

Setting With(const char *order) {
    return WithFaults(
        {{"CUSIM_DELAY_US", "0"}, {"CUSPLICE_HOLD_US", "1000000"}, {"CUSIM_NODE_ORDER", order}});
}

// While a graph is captured these make its nodes; the library's other ops are the program's.
double Nodes(const std::map<std::string, long> &own) {
    double n = 0;
    for (const auto &call : own) {
        for (const char *op : {"cuLaunch", "cuMemset", "cuMemcpy"}) {
            n += call.first.compare(0, std::string(op).size(), op) == 0 ? call.second : 0;
        }
    }
    return n;
}

TEST_P(Builds, TakeOneDriverCallANodeAndAFewMore) {
    Case c = CaseFor(GetParam());
    Outcome run = RunCase(c, With("mixed"));
    std::map<std::string, long> own = OwnCalls(run);
    double built = run.stats.Number("built");
    ASSERT_GT(built, 0) << run.Describe();
    ASSERT_GT(Nodes(own), 2 * built) << "nothing to be seen by";
    long calls = 0;
    for (const char *name :
         {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphGetEdges_v2",
          "cuGraphInstantiateWithFlags", "cuStreamGetCaptureInfo_v3", "cuGraphGetNodes",
          "cuGraphNodeGetType", "cuGraphKernelNodeGetAttribute"}) {
        calls += own[name];
    }
    // Beside those that are launched some are made for the room that they leave.
    double made = std::max<double>(built, own["cuGraphInstantiateWithFlags"]);
    EXPECT_LE(calls, 5 * made + GetParam().more) << run.Describe();
    double patched = run.stats.Number("patched_nodes");
    EXPECT_LE(own["cuGraphKernelNodeGetParams_v2"] + own["cuGraphMemsetNodeGetParams"] +
                  own["cuGraphMemcpyNodeGetParams"],
              patched);
    EXPECT_GT(patched, 0);
}

TEST_P(Builds, KnowTheirNodesInAnyOrder) {
    Case c = CaseFor(GetParam());
    Outcome plain = RunCase(c, {});
    for (const char *seed : {"1", "2", "3"}) {
        Setting setting = With("mixed");
        setting.env["CUSIM_SEED"] = seed;
        Outcome run = RunCase(c, setting);
        ASSERT_SAME(c, plain, run);
        ASSERT_STATS(run);
        EXPECT_GT(run.stats.Number("issued.in_graphs"), 0) << run.Describe();
    }
}

// Where the edges do not tell, a capture is made once more.
TEST_P(Builds, GoNodeByNodeWhereEdgesAreRefused) {
    Case c = CaseFor(GetParam());
    Outcome plain = RunCase(c, {});
    Setting setting = With("mixed");
    setting.env["CUSIM_FAULT"] = "cuGraphGetEdges_v2@own:1+:999";
    Outcome run = RunCase(c, setting);
    ASSERT_SAME(c, plain, run);
    ASSERT_STATS(run);
    std::map<std::string, long> own = OwnCalls(run);
    EXPECT_GT(run.stats.Number("built"), 0) << run.Describe();
    EXPECT_EQ(own["cuStreamBeginCapture_v2"], 2 * own["cuGraphGetEdges_v2"]);
    EXPECT_NOTHING(SaidOnce(run));
}

INSTANTIATE_TEST_SUITE_P(Of, Builds, testing::ValuesIn(kPrograms),
                         [](const auto &given) { return std::string(given.param.name); });

} // namespace
} // namespace sim
