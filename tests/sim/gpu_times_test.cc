// Promise: with `cusplice record --gpu-times` each op has its time on the GPU, in a graph or not.
// If CUPTI fails, cusplice says so once, the program goes on, and the recording is whole.
// tests/cupti stands in for CUPTI: record n of a stream lasts 1000 + n ns.
#include "tests/sim/cases.h"
#include "tests/sim/recording.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

namespace sim {
namespace {

enum { LONG = 1000 };

// Without it nothing is deferred once a library was led here, as libcupti.so is.
#define NEEDS_VM_READ()                                                                            \
    if (getenv("CUS_TEST_EMULATED"))                                                               \
    GTEST_SKIP() << "qemu has no process_vm_readv"

std::string Folder(const std::string &file) {
    std::string path = Runfile(file);
    return path.substr(0, path.rfind('/'));
}

// With one of the libraries of tests/cupti, or none.
Setting Recorded(const std::string &path, const std::string &cupti = "whole") {
    Setting setting;
    setting.preload = true;
    setting.env = {
        {"CUSPLICE_RECORD", path}, {"CUSPLICE_RECORD_GPU", "yes"}, {"CUSIM_DELAY_US", "5"}};
    if (!cupti.empty())
        setting.env["LD_LIBRARY_PATH"] = Folder("tests/cupti/" + cupti + "/libcupti.so.13") + ":" +
                                         Folder("harness/sim/lib/libcuda.so.1");
    return setting;
}

bool IsEventRecord(const Recording &t, uint32_t op) {
    return t.trace->kinds[t.model->ops[op].op->kind]->op == CST_OP_RECORD;
}

// The number of the CUPTI record that each op of the stream has; -1: none. Records of events have
// none.
std::vector<long> Numbers(const Recording &t, uint32_t stream) {
    std::vector<long> numbers;
    const model_stream &s = t.model->streams[stream];
    for (uint32_t i = 0; i < s.n_ops; i++) {
        const cst_gpu *gpu = t.model->ops[s.ops[i]].gpu;
        if (IsEventRecord(t, s.ops[i])) {
            EXPECT_EQ(gpu, nullptr) << "op " << i;
            continue;
        }
        numbers.push_back(gpu ? static_cast<long>(gpu->gpu_ns) - LONG : -1);
    }
    return numbers;
}

std::vector<long> Range(long first, size_t n) {
    std::vector<long> range;
    for (size_t i = 0; i < n; i++)
        range.push_back(first + static_cast<long>(i));
    return range;
}

size_t Lines(const std::string &text, const std::string &with) {
    size_t n = 0;
    for (size_t at = text.find(with); at != std::string::npos; at = text.find(with, at + 1))
        n++;
    return n;
}

class GpuTimes : public testing::TestWithParam<const char *> {};

// All that runs in these streams is an op.
TEST_P(GpuTimes, EachOpHasItsOwn) {
    NEEDS_VM_READ();
    std::string path = NewPath();
    Outcome run = RunCase(CaseOf(GetParam()), Recorded(path));
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    EXPECT_EQ(Lines(run.result.err, "GPU times"), 0u) << run.result.err;
    auto t = Read(path);
    ASSERT_TRUE(t->model) << t->error;
    ASSERT_GT(t->model->in_graphs, 0u);
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> before; // a stream may be defined again
    for (uint32_t i = 1; i < t->trace->n_streams; i++) {
        const cst_stream *stream = t->trace->streams[i];
        if (!stream || stream->kind != CST_STREAM_CREATED)
            continue; // copies without Async are no ops
        std::vector<long> numbers = Numbers(*t, i);
        uint32_t &first = before[{stream->context, stream->handle}], n = (uint32_t)numbers.size();
        EXPECT_EQ(numbers, Range(first, n)) << "stream " << i;
        first += n;
    }
    EXPECT_LE(t->model->gpu_known, t->model->n_ops);
    for (uint32_t i = 0; i < t->model->n_ops; i++) {
        const model_op &op = t->model->ops[i];
        if (!op.gpu)
            continue;
        EXPECT_EQ(op.gpu->node != 0, model_in_graph(&op)) << "op " << i;
        EXPECT_GE(op.gpu->head.ns, op.op->head.ns) << "op " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Of, GpuTimes,
                         testing::Values("steady", "decode_loop", "two_streams", "diverge_replace",
                                         "batch_sizes", "moving_sync", "two_contexts",
                                         "two_devices"),
                         [](const auto &given) { return std::string(given.param); });

// Whoever times the memset of a graph looks at the memory that it was built for (HAZARDS A32), here
// as on a GPU: without the rule these programs die.
class Memsets : public testing::TestWithParam<const char *> {};

TEST_P(Memsets, OfMemoryThatWentKillNobody) {
    NEEDS_VM_READ();
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.args = {"--steps", "100"};
    Setting first;
    first.args = setting.args;
    Outcome plain = RunCase(CaseOf(GetParam()), first), run = RunCase(CaseOf(GetParam()), setting);
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    ASSERT_FALSE(plain.result.out.empty());
    EXPECT_EQ(run.result.out, plain.result.out);
    EXPECT_GT(run.stats.Number("fallbacks.memset_timed"), 0);
    auto t = Read(path);
    ASSERT_TRUE(t->model) << t->error;
    uint32_t memsets = 0, known = 0;
    for (uint32_t i = 0; i < t->model->n_ops; i++) {
        const model_op &op = t->model->ops[i];
        if (t->trace->kinds[op.op->kind]->op != CST_OP_MEMSET)
            continue;
        memsets += model_in_graph(&op);
        known += model_in_graph(&op) && op.gpu;
    }
    EXPECT_GT(memsets, 0u) << "they are in graphs while all goes well";
    EXPECT_EQ(known, memsets);
}

INSTANTIATE_TEST_SUITE_P(Of, Memsets,
                         testing::Values("moving_buffers", "memsets_2d", "virtual_memory",
                                         "pool_own", "pool_changes", "pool_limits"),
                         [](const auto &given) { return std::string(given.param); });

TEST(GpuTimesOfTwoContexts, AreToldApart) {
    std::string path = NewPath();
    Outcome run = RunCase(CaseOf("two_devices"), Recorded(path));
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    auto t = Read(path);
    ASSERT_TRUE(t->model) << t->error;
    std::set<uint32_t> numbers, contexts;
    for (size_t i = 0; i < t->trace->n_gpu_streams; i++)
        numbers.insert(t->trace->gpu_streams[i]->gpu_stream);
    for (size_t i = 0; i < t->trace->n_gpu_contexts; i++)
        contexts.insert(t->trace->gpu_contexts[i]->context);
    EXPECT_LT(numbers.size(), t->trace->n_gpu_streams) << "no two streams have one number";
    EXPECT_GE(contexts.size(), 2u);
}

TEST(GpuTimesByTheVerb, AreThere) {
    NEEDS_VM_READ();
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.preload = false;
    std::map<std::string, std::string> env = {{"LD_LIBRARY_PATH", setting.env["LD_LIBRARY_PATH"]}};
    setting.env = env;
    Outcome run = RunProgram({Runfile("tools/cusplice"), "record", "-o", path, "--gpu-times", "--",
                              Runfile(setting.binary), "steady", "--steps", "12"},
                             setting);
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    auto t = Read(path);
    ASSERT_TRUE(t->model) << t->error;
    EXPECT_EQ(t->model->gpu_known, t->model->n_ops);
    EXPECT_GT(t->model->n_ops, 100u);
}

// The GPU is far behind when the recording begins: what ran before is nobody's.
TEST(GpuTimesOfChosenSteps, AreNotAStepOff) {
    NEEDS_VM_READ();
    std::string whole = NewPath(), part = NewPath();
    Setting setting = Recorded(whole);
    setting.args = {"--steps", "20"};
    setting.env["CUSIM_DELAY_US"] = "50";
    Outcome run = RunCase(CaseOf("steady"), setting);
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    auto all = Read(whole);
    ASSERT_TRUE(all->model) << all->error;
    setting.env["CUSPLICE_RECORD"] = part;
    setting.env["CUSPLICE_RECORD_FROM"] = "5";
    setting.env["CUSPLICE_RECORD_UNTIL"] = "8";
    run = RunCase(CaseOf("steady"), setting);
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    auto t = Read(part);
    ASSERT_TRUE(t->model) << t->error;
    ASSERT_GE(all->model->n_steps, 8u);
    uint32_t ops = all->model->steps[6].n_ops;
    ASSERT_EQ(t->model->n_steps, 3u);
    ASSERT_EQ(t->model->n_ops, 3 * ops);
    ASSERT_GT(t->trace->n_gpu, 0u);
    EXPECT_LT(t->trace->gpu[0]->gpu_ns - LONG, all->model->steps[5].first)
        << "nothing of before was still to run: this shows nothing";
    uint32_t stream = t->model->ops[0].op->stream;
    std::vector<long> numbers = Numbers(*t, stream);
    // The last of them may run when the recording has ended.
    while (!numbers.empty() && numbers.back() == -1)
        numbers.pop_back();
    EXPECT_GE(numbers.size(), 2u * ops);
    EXPECT_EQ(numbers, Range(all->model->steps[5].first, numbers.size()));
}

// ---- where CUPTI fails ----

struct Bad {
    const char *title;
    std::string cupti; // the library
    std::string fail;  // of the stand-in
    std::string says;
    bool some; // times are there
};

void PrintTo(const Bad &bad, std::ostream *out) {
    *out << bad.title;
}

class WithoutCupti : public testing::TestWithParam<Bad> {};

TEST_P(WithoutCupti, TheRestIsRecordedAndItIsSaidOnce) {
    const Bad &bad = GetParam();
    if (bad.some) {
        NEEDS_VM_READ();
    }
    Case c = CaseOf("steady");
    c.args = {"--steps", "12"};
    Setting plain;
    Outcome before = RunCase(c, plain);
    std::string path = NewPath();
    Setting setting = Recorded(path, bad.cupti);
    if (!bad.fail.empty())
        setting.env["CUPTI_STANDIN_FAIL"] = bad.fail;
    Outcome run = RunCase(c, setting);
    ASSERT_SAME(c, before, run);
    EXPECT_EQ(Lines(run.result.err, "GPU times"), 1u) << run.result.err;
    EXPECT_NE(run.result.err.find(bad.says), std::string::npos) << run.result.err;
    auto t = Read(path);
    ASSERT_TRUE(t->model) << t->error;
    EXPECT_TRUE(t->trace->closed);
    EXPECT_EQ(t->trace->lost_records, 0u);
    EXPECT_EQ(t->model->n_ops, run.stats.Sum("ops"));
    EXPECT_EQ(t->model->gpu_known > 0, bad.some) << t->model->gpu_known;
}

std::vector<Bad> Bads() {
    std::vector<Bad> bads = {
        {"NoLibrary", "", "", "no GPU times: ", false},
        {"Timestamp", "whole", "cuptiGetTimestamp:7", "CUPTI refuses", false},
        {"Register", "whole", "cuptiActivityRegisterCallbacks:39", "error 39", false},
        {"EnableFirst", "whole", "cuptiActivityEnable:35", "error 35", false},
        {"EnableLast", "whole", "cuptiActivityEnable:35:3", "does not record here", false},
        {"NextRecord", "whole", "cuptiActivityGetNextRecord:21",
         "missing: cuptiActivityGetNextRecord failed, error 21", false},
        {"NextRecordLater", "whole", "cuptiActivityGetNextRecord:21:40",
         "missing: cuptiActivityGetNextRecord failed, error 21", true},
        {"Flush", "whole", "cuptiActivityFlushAll:999",
         "missing: cuptiActivityFlushAll failed, error 999", true},
        {"Disable", "whole", "cuptiActivityDisable:999",
         "missing: cuptiActivityDisable failed, error 999", true},
        {"Stream", "whole", "cuptiGetStreamIdEx:3", "missing: cuptiGetStreamIdEx failed, error 3",
         false},
        {"Context", "whole", "cuptiGetContextId:3", "missing: cuptiGetContextId failed, error 3",
         false},
    };
    static const char *const functions[] = {
        "cuptiActivityDisable", "cuptiActivityEnable",        "cuptiActivityFlushAll",
        "cuptiGetContextId",    "cuptiActivityGetNextRecord", "cuptiActivityRegisterCallbacks",
        "cuptiGetStreamIdEx",   "cuptiGetTimestamp"};
    for (const char *function : functions)
        bads.push_back({function, std::string("without_") + function, "",
                        std::string("no GPU times: libcupti.so has no ") + function, false});
    return bads;
}

INSTANTIATE_TEST_SUITE_P(At, WithoutCupti, testing::ValuesIn(Bads()),
                         [](const auto &given) { return std::string(given.param.title); });

} // namespace
} // namespace sim
