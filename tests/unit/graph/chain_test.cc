// Promise: the order of nodes is found from edges in any order, and only if no other order is
// possible.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

extern "C" {
#include "shim/graph/chain.h"
}

namespace {

using Edges = std::vector<std::pair<size_t, size_t>>;

// Node i of n, at an address that says nothing.
CUgraphNode Node(size_t i) {
    return reinterpret_cast<CUgraphNode>(0x7f0000001000u + (i * 40503u % 65536u) * 64u);
}

bool Order(const Edges &edges, size_t n, std::vector<CUgraphNode> *order) {
    std::vector<CUgraphNode> from, to;
    for (const auto &edge : edges) {
        from.push_back(Node(edge.first));
        to.push_back(Node(edge.second));
    }
    order->assign(n, nullptr);
    return cus_chain_order(from.data(), to.data(), (uint32_t)edges.size(), (uint32_t)n,
                           order->data());
}

Edges Chain(size_t n) {
    Edges edges;
    for (size_t i = 1; i < n; i++)
        edges.emplace_back(i - 1, i);
    return edges;
}

bool IsOrdered(Edges edges, size_t n) {
    std::vector<CUgraphNode> order;
    std::shuffle(edges.begin(), edges.end(), std::mt19937(n * 31 + edges.size()));
    if (!Order(edges, n, &order))
        return false;
    for (size_t i = 0; i < n; i++)
        EXPECT_EQ(order[i], Node(i)) << i;
    return true;
}

TEST(Chain, AnyOrderOfEdgesGivesTheOrderOfNodes) {
    for (size_t n : {2, 3, 4, 5, 17, 100, 1000, 4096})
        EXPECT_TRUE(IsOrdered(Chain(n), n)) << n;
}

TEST(Chain, EdgesBesideTheChainAreNoHarm) {
    Edges edges = Chain(50);
    for (size_t i = 3; i < 50; i += 7)
        for (size_t j = 0; j + 2 <= i; j += 2)
            edges.emplace_back(j, i);
    EXPECT_TRUE(IsOrdered(edges, 50));
}

TEST(Chain, NoOrderWhereTwoArePossible) {
    Edges gap = Chain(10);
    gap.erase(gap.begin() + 4);
    EXPECT_FALSE(IsOrdered(gap, 10)) << "two chains";
    EXPECT_FALSE(IsOrdered({{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 4)) << "a diamond";
    EXPECT_FALSE(IsOrdered({{0, 2}, {1, 2}}, 3)) << "two roots";
    EXPECT_FALSE(IsOrdered({{0, 1}, {0, 2}}, 3)) << "two ends";
}

TEST(Chain, NoOrderOfMoreNodesOrFewer) {
    EXPECT_FALSE(IsOrdered(Chain(10), 9));
    EXPECT_FALSE(IsOrdered(Chain(10), 11));
    EXPECT_FALSE(IsOrdered({}, 2));
}

// Only the last edge names the node that is too many.
TEST(Chain, NoOrderWhereTheLastEdgeNamesOneNodeMore) {
    std::vector<CUgraphNode> order;
    EXPECT_FALSE(Order({{0, 1}, {1, 2}, {0, 3}}, 3, &order));
    EXPECT_FALSE(Order({{0, 1}, {1, 2}, {3, 2}}, 3, &order));
}

// Nodes whose places in the table are the same, or all beside each other.
TEST(Chain, AddressesOfNodesDoNotMatter) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 2000; round++) {
        CUgraphNode nodes[4], order[3];
        for (CUgraphNode &node : nodes)
            node = reinterpret_cast<CUgraphNode>((random() & 0xffffffffffffu) | 1);
        ASSERT_TRUE(cus_chain_order(&nodes[0], &nodes[1], 2, 3, order));
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(order[i], nodes[i]);
        ASSERT_FALSE(cus_chain_order(&nodes[0], &nodes[1], 3, 3, order)) << "one node more";
        ASSERT_FALSE(cus_chain_order(&nodes[0], &nodes[1], 2, 2, order));
    }
}

TEST(Chain, NoOrderInACircle) {
    Edges edges = Chain(10);
    edges.emplace_back(9, 0);
    EXPECT_FALSE(IsOrdered(edges, 10));
    edges.back() = {9, 5};
    EXPECT_FALSE(IsOrdered(edges, 10));
    edges.back() = {5, 5};
    EXPECT_FALSE(IsOrdered(edges, 10));
}

} // namespace
