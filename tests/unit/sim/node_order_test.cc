// Promise: with CUSIM_NODE_ORDER=mixed all nodes and edges are listed, in an order other than that
// of their creation, and in the same order each time.
#include "tests/unit/sim/sim.h"

#include <algorithm>
#include <set>
#include <utility>

namespace sim {
namespace {

// Read when the simulator is first called.
const int kSet = setenv("CUSIM_NODE_ORDER", "mixed", 1);

class NodeOrder : public Sim {};

TEST_F(NodeOrder, IsNotTheOneInWhichNodesWereAdded) {
    constexpr size_t kNodes = 40;
    ASSERT_EQ(0, kSet);
    CUdeviceptr p = Alloc(4);
    CUstream s = Stream();
    CUgraph graph;
    CU_OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    std::vector<CUgraphNode> added;
    for (size_t i = 0; i < kNodes; i++) {
        CU_OK(Mix(p, 1, s));
        CUstreamCaptureStatus status;
        const CUgraphNode *last;
        size_t n;
        CU_OK(cuStreamGetCaptureInfo(s, &status, nullptr, nullptr, &last, nullptr, &n));
        ASSERT_EQ(1u, n);
        added.push_back(last[0]);
    }
    CU_OK(cuStreamEndCapture(s, &graph));
    std::vector<CUgraphNode> told(kNodes), again(kNodes);
    size_t n = kNodes;
    CU_OK(cuGraphGetNodes(graph, told.data(), &n));
    ASSERT_EQ(kNodes, n);
    EXPECT_NE(added, told);
    CU_OK(cuGraphGetNodes(graph, again.data(), &n));
    EXPECT_EQ(told, again);
    EXPECT_TRUE(std::is_permutation(told.begin(), told.end(), added.begin()));

    std::vector<CUgraphNode> from(kNodes), to(kNodes);
    std::vector<CUgraphEdgeData> data(kNodes);
    n = kNodes;
    CU_OK(cuGraphGetEdges(graph, from.data(), to.data(), data.data(), &n));
    ASSERT_EQ(kNodes - 1, n);
    std::set<std::pair<CUgraphNode, CUgraphNode>> edges;
    for (size_t i = 0; i < n; i++)
        edges.emplace(from[i], to[i]);
    for (size_t i = 1; i < kNodes; i++)
        EXPECT_TRUE(edges.count({added[i - 1], added[i]})) << i;
    EXPECT_FALSE(std::equal(from.begin(), from.begin() + (kNodes - 1), added.begin()));
    CU_OK(cuGraphDestroy(graph));
}

} // namespace
} // namespace sim
