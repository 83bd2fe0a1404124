// A driver that writes down what it is asked, and kernels that become a graph. Node n is handle n
// + 1.
#ifndef CUSPLICE_TESTS_UNIT_GRAPH_EXEC_H
#define CUSPLICE_TESTS_UNIT_GRAPH_EXEC_H

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include "shim/graph/exec.h"
}

namespace {

using Strings = std::vector<std::string>;

Strings story;
size_t n_nodes;
size_t calls, failing;    // of the driver, all; the number of the one that fails, 0: none
int graphs, execs;        // that exist
CUstreamCaptureMode mode; // of the program's thread
size_t captures, reads;   // begun; of a node's params
size_t patched;           // handle of the node that was patched last
CUDA_KERNEL_NODE_PARAMS patched_with;
unsigned carveout;        // what a node says of that attribute
unsigned shape[6];        // what a node says of its grid and block
std::vector<size_t> open; // what the next node comes behind, as handles
std::vector<std::pair<size_t, size_t>> edges;

CUgraphNode Handle(size_t n) {
    return reinterpret_cast<CUgraphNode>(n + 1);
}

CUresult Called() {
    return ++calls == failing ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult Launch(CUfunction f) {
    if (CUresult failed = Called())
        return failed;
    story.push_back("launch " + std::to_string(reinterpret_cast<uintptr_t>(f)));
    n_nodes++;
    for (size_t from : open)
        edges.emplace_back(from, n_nodes);
    open = {n_nodes};
    return CUDA_SUCCESS;
}

cus_driver MakeDriver() {
    cus_driver t = {};
    t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *other) {
        CUresult result = Called();
        if (result == CUDA_SUCCESS)
            std::swap(mode, *other);
        return result;
    };
    t.cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) {
        if (CUresult failed = Called())
            return failed;
        EXPECT_TRUE(mode == CU_STREAM_CAPTURE_MODE_RELAXED || failing == 1);
        captures++;
        n_nodes = 0;
        open.clear();
        edges.clear();
        return CUDA_SUCCESS;
    };
    t.cuStreamEndCapture = [](CUstream, CUgraph *graph) {
        *graph = reinterpret_cast<CUgraph>(0x6000); // no graph where it fails
        CUresult result = Called();
        graphs += result == CUDA_SUCCESS;
        return result;
    };
    t.cuStreamGetCaptureInfo_v3 = [](CUstream, CUstreamCaptureStatus *status, cuuint64_t *,
                                     CUgraph *, const CUgraphNode **deps, const CUgraphEdgeData **,
                                     size_t *n) {
        static CUgraphNode last;
        if (CUresult failed = Called())
            return failed;
        last = Handle(n_nodes - 1);
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        *deps = &last;
        *n = 1;
        return CUDA_SUCCESS;
    };
    t.cuStreamUpdateCaptureDependencies_v2 = [](CUstream, CUgraphNode *nodes,
                                                const CUgraphEdgeData *, size_t n, unsigned flags) {
        if (CUresult failed = Called())
            return failed;
        EXPECT_EQ(flags, (unsigned)CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
        for (size_t i = 0; i < n; i++) {
            open.push_back(reinterpret_cast<uintptr_t>(nodes[i]));
            story.push_back("also behind " + std::to_string(open.back()));
        }
        return CUDA_SUCCESS;
    };
    // The last edge first: nobody promises an order.
    t.cuGraphGetEdges_v2 = [](CUgraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                              size_t *n) {
        if (CUresult failed = Called())
            return failed;
        size_t room = *n;
        EXPECT_NE(data, nullptr) << "a driver refuses to leave out what an edge says";
        memset(data, 0, room * sizeof *data);
        for (*n = 0; *n < edges.size() && *n < room; ++*n) {
            const auto &edge = edges[edges.size() - 1 - *n];
            from[*n] = reinterpret_cast<CUgraphNode>(edge.first);
            to[*n] = reinterpret_cast<CUgraphNode>(edge.second);
        }
        return CUDA_SUCCESS;
    };
    t.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec, CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS *params) {
        calls++;
        patched = reinterpret_cast<uintptr_t>(node);
        patched_with = *params;
        return CUDA_SUCCESS;
    };
    t.cuLaunchKernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **, void **) { return Launch(f); };
    t.cuLaunchKernelEx = [](const CUlaunchConfig *, CUfunction f, void **, void **) {
        return Launch(f);
    };
    t.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode, CUDA_KERNEL_NODE_PARAMS *params) {
        calls++;
        reads++;
        static void *extra[] = {CU_LAUNCH_PARAM_END};
        *params = {};
        params->extra = extra;
        params->gridDimX = shape[0];
        params->gridDimY = shape[1];
        params->gridDimZ = shape[2];
        params->blockDimX = shape[3];
        params->blockDimY = shape[4];
        params->blockDimZ = shape[5];
        return CUDA_SUCCESS;
    };
    t.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID,
                                         CUlaunchAttributeValue *value) {
        calls++;
        value->sharedMemCarveout = carveout;
        return CUDA_SUCCESS;
    };
    t.cuGraphInstantiateWithFlags = [](CUgraphExec *exec, CUgraph, unsigned long long flags) {
        story.push_back("instantiate " + std::to_string(flags));
        *exec = reinterpret_cast<CUgraphExec>(0x7000); // the same
        CUresult result = Called();
        execs += result == CUDA_SUCCESS;
        return result;
    };
    t.cuGraphExecDestroy = [](CUgraphExec) {
        calls++;
        execs--;
        story.push_back("destroy exec");
        return CUDA_SUCCESS;
    };
    t.cuGraphDestroy = [](CUgraph) {
        calls++;
        graphs--;
        story.push_back("destroy graph");
        return CUDA_SUCCESS;
    };
    return t;
}

class Exec : public ::testing::Test {
  protected:
    void SetUp() override {
        story.clear();
        n_nodes = calls = captures = reads = patched = failing = 0;
        graphs = execs = 0;
        mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        carveout = 50;
        for (unsigned i = 0; i < 6; i++) {
            shape[i] = i + 1;
            for (auto &values : values_)
                values.dims[i] = i + 1;
        }
    }
    void TearDown() override {
        Destroy();
        EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL) << "it is as the program left it";
        EXPECT_EQ(graphs, 0);
        EXPECT_EQ(execs, 0);
    }
    void Destroy() {
        if (exec_)
            cus_exec_destroy(&driver_, exec_);
        exec_ = nullptr;
    }

    // The next kernel, with an attribute or without; functions are 1, 2, ... as nodes are.
    cus_kind &Add(CUlaunchAttributeID id = CU_LAUNCH_ATTRIBUTE_IGNORE, uint32_t value = 0) {
        static const cus_layout none = {};
        cus_kind &kind = kinds_[n_];
        kind = {};
        kind.handle = reinterpret_cast<void *>(n_ + 1);
        kind.layout = &none;
        kind.name = "kernel";
        kind.deferrable = true;
        if (id != CU_LAUNCH_ATTRIBUTE_IGNORE) {
            kind.n_attrs = 1;
            kind.attrs[0].id = id;
            kind.attrs[0].bytes = sizeof value;
            memcpy(kind.attrs[0].value, &value, sizeof value);
            kind.pdl = id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        }
        ops_[n_] = {&kind, &values_[n_], false};
        n_++;
        return kind;
    }
    // Does a patch of each op reach its own node?
    void ExpectPatchesReachTheirNodes() {
        for (uint32_t i = 0; i < n_; i++) {
            ASSERT_EQ(cus_exec_patch(&driver_, nullptr, exec_, i, ops_[i].kind, ops_[i].values),
                      CUDA_SUCCESS);
            EXPECT_EQ(patched, i + 1u);
        }
    }
    bool Build(cus_exec_clock *clock = nullptr) {
        return cus_exec_build(&driver_, cus_exec_target{nullptr, ends_}, ops_, (uint32_t)n_, clock,
                              &exec_, &why_);
    }

    cus_driver driver_ = MakeDriver();
    enum { MOST = 100 };
    cus_kind kinds_[MOST];
    cus_values values_[MOST] = {};
    cus_exec_op ops_[MOST];
    size_t n_ = 0;
    CUevent ends_[CUS_BRANCHES + 1] = {};
    cus_exec *exec_ = nullptr;
    cus_fallback why_ = CUS_FALLBACK_NO_MEMORY;
};

} // namespace

#endif
