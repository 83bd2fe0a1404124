// Shared code of the model tests: a trace of a few records, and its model.
#ifndef CUSPLICE_TESTS_UNIT_TRACE_MADE_H
#define CUSPLICE_TESTS_UNIT_TRACE_MADE_H

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/trace/synth.h"
#include "tools/trace/model.h"

struct Made {
    cst_trace *trace = nullptr;
    model *m = nullptr;
    explicit Made(const std::function<void(Synth *)> &fill) {
        std::string path = Fresh("model.cst");
        Synth s(path);
        fill(&s);
        EXPECT_EQ(s.Close(), 0);
        char error[512];
        trace = cst_open(path.c_str(), error, sizeof error);
        EXPECT_TRUE(trace) << error;
        m = trace ? model_make(trace) : nullptr;
        EXPECT_TRUE(m);
    }
    ~Made() {
        model_free(m);
        cst_free(trace);
    }
    Made(const Made &) = delete;
};

inline void Begin(Synth *s) {
    s->Thread(1, "");
    s->Stream(CST_STREAM_LEGACY, 0);
    s->Stream(CST_STREAM_CREATED, 7);
    s->Kernel("a");
    s->Kernel("b");
}

// Which record of the GPU the op has, counted from 0 in the order in which they began; -1: none.
inline int GpuOf(const Made &t, uint32_t op) {
    for (size_t i = 0; i < t.trace->n_gpu; i++)
        if (t.m->ops[op].gpu == t.trace->gpu[i])
            return static_cast<int>(i);
    return -1;
}

inline std::vector<int> GpuOfAll(const Made &t) {
    std::vector<int> all;
    for (uint32_t i = 0; i < t.m->n_ops; i++)
        all.push_back(GpuOf(t, i));
    return all;
}

using Ints = std::vector<int>;

// A record of a graph's node.
inline cst_gpu *Node(Synth *s, uint32_t stream, const char *name, uint32_t launch, uint64_t node) {
    cst_gpu *gpu = s->Gpu(stream, CST_GPU_KERNEL, name);
    gpu->correlation = launch;
    gpu->node = node;
    return gpu;
}

#endif
