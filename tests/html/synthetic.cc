#include "tests/html/synthetic.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "shim/trace/file.h"

namespace {

enum { STREAMS = 2, GPU_STREAM = 7 };

struct Writer {
    cst_out out = {};
    std::vector<uint8_t> buffer = std::vector<uint8_t>(CST_SINK);
    cst_sink sink = {};
    uint64_t ns = 5000000;
    uint32_t strings = 0;

    uint32_t String(const std::string &text) {
        cst_sink_string(&sink, ++strings, text.c_str());
        return strings;
    }
    template <class T> T *Add(cst_type type, uint32_t thread, uint64_t after) {
        T *record = static_cast<T *>(cst_sink_add(&sink, type, sizeof(T)));
        ns += after;
        record->head.thread = thread;
        record->head.ns = ns;
        return record;
    }
};

// What the library's own options are as built in, but for one; and a program's hostile argument.
const char kFacts[] =
    "{\"cusplice\": \"0.1.0\", \"argv\": [\"prog\", \"</script><b>\\\"&'\"], \"gpu\": \"H<200>\","
    " \"driver\": 13000, \"steps\": [], \"clock\": {\"monotonic_ns\": 4000000, \"realtime_ns\": "
    "1700000000000000000},"
    " \"options\": {\"mode\": \"piecewise\", \"warmup\": \"7\"}, \"__proto__\": \"text\"}";

} // namespace

SyntheticCounts WriteSynthetic(const std::string &path, unsigned steps,
                               const std::vector<std::string> &names) {
    Writer w;
    SyntheticCounts counts = {};
    unlink(path.c_str());
    EXPECT_EQ(cst_out_open(&w.out, path.c_str()), 0);
    w.sink = {&w.out, w.buffer.data(), 0, 0};
    cst_out_block(&w.out, CST_BLOCK_FACTS, 0, kFacts, strlen(kFacts), strlen(kFacts));
    uint32_t thread_name = w.String("main</script>");
    for (uint32_t id = 1; id <= STREAMS; id++) {
        cst_thread *thread = w.Add<cst_thread>(CST_THREAD, id, 0);
        thread->tid = 1000 + id;
        thread->name = thread_name;
        cst_stream *stream = w.Add<cst_stream>(CST_STREAM, id, 0);
        stream->id = id;
        stream->kind = CST_STREAM_CREATED;
    }
    cst_gpu_stream *gpu_stream = w.Add<cst_gpu_stream>(CST_GPU_STREAM, 1, 0);
    gpu_stream->stream = 1;
    gpu_stream->gpu_stream = GPU_STREAM;
    std::vector<uint32_t> kernel_names;
    for (uint32_t id = 1; id <= names.size(); id++) {
        uint32_t name = w.String(names[id - 1]);
        kernel_names.push_back(name);
        cst_kind *kind = w.Add<cst_kind>(CST_KIND, 1, 0);
        kind->id = id;
        kind->name = name;
        kind->cluster[0] = kind->cluster[1] = kind->cluster[2] = 1;
    }
    uint32_t rule = w.String("rule"), why = w.String("never_defer"), sync = w.String("sync");
    uint32_t wait = w.String("cuStreamSynchronize");
    auto op = [&](uint32_t stream, unsigned i, bool eager) {
        cst_op *op = w.Add<cst_op>(CST_OP, stream, 900);
        op->head.flags = eager ? CST_EAGER : CST_DEFERRED;
        op->kind = 1 + i % static_cast<uint32_t>(names.size());
        op->stream = stream;
        op->host_ns = eager ? 700 : 80;
        op->eager = eager ? rule : 0;
        op->why = eager ? why : 0;
        for (unsigned d = 0; d < 6; d++)
            op->dims[d] = 1 + d;
        op->dims[0] = 1 + i % 3;
        uint32_t op_kind = op->kind, grid[3] = {op->dims[0], op->dims[1], op->dims[2]};
        if (stream == 1) {
            cst_gpu *gpu = w.Add<cst_gpu>(CST_GPU, stream, 0);
            gpu->head.ns += 3000;
            gpu->gpu_ns = 600;
            gpu->gpu_stream = GPU_STREAM;
            gpu->name = kernel_names[op_kind - 1];
            if (i < 12) { // in a graph
                gpu->correlation = static_cast<uint32_t>(counts.graph_launches) + 1;
                gpu->node = i + 1;
            }
            memcpy(gpu->grid, grid, sizeof gpu->grid);
        }
        counts.ops++;
        counts.eager += eager;
    };
    for (unsigned step = 0; step < steps; step++)
        for (uint32_t stream = 1; stream <= STREAMS; stream++) {
            for (unsigned graph = 0; graph < 3; graph++) {
                for (unsigned i = 0; i < 4; i++)
                    op(stream, graph * 4 + i, false);
                cst_launch *launch = w.Add<cst_launch>(CST_LAUNCH, stream, 20);
                launch->head.flags = static_cast<uint8_t>(CST_EXACT + graph);
                launch->stream = stream;
                launch->n = 4;
                launch->segment = graph + 1;
                launch->patched = graph == 1 ? 2 : 0;
                launch->host_ns = 1500;
                launch->build_ns = graph == 2 ? 3456789012 : 0; /* five bytes of seven bits */
                counts.in_graphs += 4;
                counts.graph_launches++;
                w.ns += 1500;
                if (graph < 2)
                    op(stream, 12 + graph, true);
            }
            op(stream, 14, false);
            op(stream, 15, false);
            cst_flush *flush = w.Add<cst_flush>(CST_FLUSH, stream, 50);
            flush->stream = stream;
            flush->n = 2;
            flush->cause = wait;
            flush->reason = sync;
            counts.flushed += 2;
            cst_call *call = w.Add<cst_call>(CST_CALL, stream, 30);
            call->name = wait;
            call->stream = stream;
            call->what = CST_CALL_STEP_END;
            call->host_ns = 2500;
            w.ns += 4000;
            counts.steps++;
        }
    if (!names.empty()) {
        op(1, 0, false);
        counts.steps++;
    }
    cst_sink_flush(&w.sink);
    EXPECT_EQ(cst_out_close(&w.out), 0);
    return counts;
}
