// Shared code of the model tests: a trace of a few records, and its model.
#ifndef CUSPLICE_TESTS_UNIT_TRACE_MADE_H
#define CUSPLICE_TESTS_UNIT_TRACE_MADE_H

#include <gtest/gtest.h>

#include <functional>
#include <string>

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

#endif
