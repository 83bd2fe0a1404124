// A clock of host and GPU by which tests judge how a step is cut into segments. Its numbers are
// those that were seen on an H200, not those that the library goes by.
#ifndef CUSPLICE_TESTS_UNIT_PLAN_CLOCK_H
#define CUSPLICE_TESTS_UNIT_PLAN_CLOCK_H

#include <algorithm>
#include <cstdint>
#include <vector>

using Sizes = std::vector<uint32_t>;

// ns: a small kernel in a graph; from one graph to the next; of the host for a graph, and for each
// op in it; until the first kernel of a graph begins on an idle GPU.
constexpr double kNode = 685, kGap = 1300, kGraph = 2000, kOp = 5, kStart = 3000;

struct Times {
    double done, idle; // the GPU: when it is done, and its longest wait between two segments
};

// Of a step of these segments at a pace of so many ns from op to op.
inline Times Clock(const Sizes &sizes, double pace, double node = kNode) {
    double host = 0, gpu = 0, idle = 0;
    for (size_t i = 0; i < sizes.size(); i++) {
        host += sizes[i] * (pace + kOp) + kGraph;
        double ready = host + kStart;
        if (i)
            idle = std::max(idle, ready - gpu - kGap);
        gpu = (i ? std::max(ready, gpu + kGap) : ready) + sizes[i] * node;
    }
    return {gpu, idle};
}

#endif
