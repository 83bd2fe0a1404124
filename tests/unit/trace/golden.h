// Makes the file of tests/golden: every record type, and all that a version-1 reader must know.
#ifndef CUSPLICE_TESTS_UNIT_TRACE_GOLDEN_H
#define CUSPLICE_TESTS_UNIT_TRACE_GOLDEN_H

#include "tests/unit/trace/synth.h"

// What the golden file holds, and what the tests of the verbs say of it:
//
// Two streams; four kernels, a memset and a copy. Stream 1, three steps of six ops: `norm`,
// `gemm<float>`, `attention` (eager by a rule), `norm`, memset, copy. In step 0 all go out one by
// one (observing); in step 1 the two ops before `attention` are built as segment 1, and the three
// behind it as segment 2; in step 2 both are replayed, segment 1 exact, segment 2 with one node
// patched. Stream 2: one step of three ops `gemm<float>`, deferred and flushed by cuEventRecord but
// the last, which is open when the trace ends.
inline void WriteGolden(Synth *s) {
    s->Facts("{\"argv\": [\"decode\", \"--tokens\", \"3\"], \"gpu\": \"simulator\", "
             "\"driver\": 13000, \"note\": \"caf\\u00e9 \\\"x\\\"\"}");
    s->thread = s->Thread(4711, "main");
    uint32_t other = s->Thread(4712, "worker");
    uint32_t first = s->Stream(CST_STREAM_LEGACY, 0);
    uint32_t second = s->Stream(CST_STREAM_CREATED, 0x5555, -1);
    uint32_t norm = s->Kernel("_ZN5model4normEPfi", 16);
    uint32_t gemm = s->Kernel("_ZN5model4gemmIfEEvPT_i", 16);
    uint32_t attention = s->Kernel("_ZN5model9attentionEPf", 8);
    s->Kernel("never_launched", 0, CST_KIND_OPAQUE | CST_KIND_KERNEL);
    uint32_t zero = s->Memset(4), copy = s->Copy(1);
    s->Range(0x7f0000000000, 1 << 20);
    s->now = 1000000;
    for (int step = 0; step < 3; step++) {
        auto op = [&](uint32_t kind) {
            if (step == 0)
                s->Eager(first, kind, "observing", "observing");
            else
                s->Op(first, kind);
        };
        s->param = 0x7f0000000000;
        op(norm);
        op(gemm);
        if (step == 1)
            s->Segment(first, 1, 2);
        if (step > 0)
            s->Launch(first, 2, 1, step == 1 ? CST_BUILT : CST_EXACT);
        s->host_ns = 900;
        s->Eager(first, attention, "rule", "rule");
        s->host_ns = 100;
        op(norm);
        s->grid = 256;
        op(zero);
        s->param += static_cast<uint64_t>(step) * 64;
        op(copy);
        s->grid = 1;
        if (step == 1)
            s->Segment(first, 2, 3);
        if (step > 0)
            s->Launch(first, 3, 2, step == 1 ? CST_BUILT : CST_PATCHED, step == 1 ? 0 : 1);
        s->Sync(first);
        s->Block();
    }
    s->thread = other;
    s->Op(second, gemm);
    s->Op(second, gemm);
    s->Call(second, CST_CALL_FLUSH, "cuEventRecord", CST_SCOPE_S);
    s->Flush(second, 2, "cuEventRecord", "api");
    s->Op(second, gemm);
    s->Lost(7, 5);
}

#endif
