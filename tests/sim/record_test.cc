// Promise: a program does the same while it is recorded. The trace tells the outcome of every op;
// its counts by outcome and reason equal those of the stats file.
#include "tests/sim/cases.h"
#include "tests/sim/recording.h"

#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <set>

namespace sim {
namespace {

Setting Recorded(const std::string &path) {
    Setting setting;
    setting.preload = true;
    setting.env = {{"CUSPLICE_RECORD", path}, {"CUSIM_DELAY_US", "5"}};
    return setting;
}

struct Counts {
    std::map<std::string, double> eager;
    double ops[CST_OP_TYPES] = {}, choices[4] = {}, patched = 0, launches = 0, in_launches = 0,
           flushed = 0, segments = 0, unknown = 0;
    std::set<std::pair<uint32_t, uint32_t>> begun; // by stream and id
};

Counts Count(const cst_trace *trace) {
    Counts counts;
    for (size_t i = 0; i < trace->n_events; i++) {
        const cst_record *record = trace->events[i];
        if (record->type == CST_OP) {
            auto *op = (const cst_op *)record;
            counts.ops[trace->kinds[op->kind]->op]++;
            if (record->flags == CST_EAGER) {
                counts.eager[cst_string(trace, op->eager)]++;
            }
        } else if (record->type == CST_LAUNCH) {
            auto *launch = (const cst_launch *)record;
            counts.launches++;
            counts.in_launches += launch->n;
            counts.choices[record->flags]++;
            counts.patched += launch->patched;
            counts.unknown += !counts.begun.count({launch->stream, launch->segment});
        } else if (record->type == CST_SEGMENT) {
            auto *segment = (const cst_segment *)record;
            counts.segments++;
            counts.begun.insert({segment->stream, segment->id});
        } else if (record->type == CST_FLUSH) {
            counts.flushed += ((const cst_flush *)record)->n;
        }
    }
    return counts;
}

class Record : public testing::TestWithParam<Case> {};

TEST_P(Record, TraceSaysWhatTheStatsSay) {
    const Case &c = GetParam();
    Setting plain;
    plain.env = {{"CUSIM_DELAY_US", "5"}};
    std::string path = NewPath();
    Outcome recorded = RunCase(c, Recorded(path));
    ASSERT_SAME(c, RunCase(c, plain), recorded);
    auto read = Read(path);
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_TRUE(read->trace->closed);
    if (c.name == "idle") {
        EXPECT_EQ(read->trace->ops, 0u);
        return;
    }
    ASSERT_STATS(recorded);
    ASSERT_EQ(read->trace->lost_records, 0u);
    Counts counts = Count(read->trace.get());
    const Json &s = recorded.stats;
    EXPECT_EQ(counts.ops[CST_OP_LAUNCH], s.Number("ops.launches"));
    // A small upload is in the trace as the memset that stands for it.
    const double uploads = (double)counts.ops[CST_OP_MEMSET] - s.Number("ops.memsets");
    EXPECT_EQ(uploads > 0, c.name == "tokens" || c.name == "fork_memory");
    EXPECT_EQ((double)counts.ops[CST_OP_COPY], s.Number("ops.copies") - uploads);
    EXPECT_EQ(counts.ops[CST_OP_RECORD], s.Number("ops.records"));
    EXPECT_EQ(counts.ops[CST_OP_WAIT], s.Number("ops.waits"));
    EXPECT_EQ(counts.in_launches, s.Number("issued.in_graphs"));
    EXPECT_EQ(counts.launches, s.Number("graph_launches"));
    EXPECT_LE(counts.segments, s.Number("segments_formed")) << "those that were begun";
    EXPECT_EQ(counts.unknown, 0) << "launches of segments that the trace did not speak of before";
    EXPECT_EQ(counts.choices[CST_EXACT], s.Number("signatures.exact"));
    EXPECT_EQ(counts.choices[CST_PATCHED], s.Number("signatures.patched"));
    if (s.Number("fallbacks.setparams_refused") == 0) {
        EXPECT_EQ(counts.patched, s.Number("patched_nodes"));
    } else {
        EXPECT_LE(counts.patched, s.Number("patched_nodes"))
            << "some for a graph that was not launched";
    }
    double eager = counts.flushed;
    for (const auto &[reason, n] : counts.eager) {
        eager += n;
        EXPECT_LE(n, s.Number("eager_by." + reason)) << reason;
    }
    EXPECT_EQ(eager, s.Number("issued.eager"));
    EXPECT_EQ(counts.eager["passthrough"], s.Number("eager_by.passthrough"));
    EXPECT_EQ(counts.eager["rule"], s.Number("eager_by.rule"));
    // The model tells of each op where it went.
    const ::model *model = read->model;
    ASSERT_TRUE(model);
    EXPECT_EQ(model->in_graphs, counts.in_launches);
    EXPECT_EQ(model->flushed, counts.flushed);
    EXPECT_EQ(model->open, 0u);
    EXPECT_EQ(model->n_ops, read->trace->ops);
}

std::vector<Case> OfOneProcess() {
    std::vector<Case> some;
    for (const Case &c : Cases()) {
        if (c.name != "resident_process") { // both of its processes record, into one file here
            some.push_back(c);
        }
    }
    return some;
}

INSTANTIATE_TEST_SUITE_P(All, Record, testing::ValuesIn(OfOneProcess()),
                         [](const auto &given) { return given.param.Title(); });

TEST(Recording, KeepsShapesAndParams) {
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.args = {"--steps", "6"};
    Outcome run = RunCase(CaseOf("growing_grid"), setting);
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    auto read = Read(path);
    ASSERT_TRUE(read->trace) << read->error;
    std::map<std::string, std::vector<uint32_t>> grids;
    for (uint32_t i = 0; i < read->model->n_ops; i++) {
        const cst_op *op = read->model->ops[i].op;
        const cst_kind *kind = read->trace->kinds[op->kind];
        EXPECT_EQ(kind->flags & CST_KIND_OPAQUE, 0u) << cst_string(read->trace.get(), kind->name);
        if (kind->op != CST_OP_LAUNCH) {
            continue;
        }
        grids[cst_string(read->trace.get(), kind->name)].push_back(op->dims[0]);
        ASSERT_GT(kind->n_arguments, 0u);
        uint64_t pointer = 0;
        memcpy(&pointer, cst_op_params(op) + cst_kind_arguments(kind)[0].offset, 8);
        EXPECT_NE(pointer, 0u) << "the first argument of these kernels is an address";
        EXPECT_GT(op->host_ns, 0u);
        EXPECT_EQ(op->result, 0);
    }
    bool grew = false;
    for (const auto &[name, seen] : grids) {
        grew |= seen.size() > 1 && seen.back() > seen.front();
    }
    EXPECT_TRUE(grew);
}

// With and without params, what its attributes ask for belongs to a launch: they say what may begin
// early.
TEST(Recording, KeepsAttributes) {
    enum { STEPS = 5 };
    for (const char *mode : {"piecewise", "observe"}) {
        std::string path = NewPath();
        Setting setting = Recorded(path);
        setting.env["CUSPLICE_MODE"] = mode;
        setting.args = {"--steps", std::to_string(STEPS)};
        Outcome run = RunCase(CaseOf("launch_ex"), setting);
        ASSERT_EQ(run.result.status, 0) << run.Describe();
        auto read = Read(path);
        ASSERT_TRUE(read->trace) << read->error;
        std::map<uint32_t, int> ops;
        int cooperative = 0, opaque = 0;
        for (uint32_t i = 0; i < read->model->n_ops; i++) {
            const cst_kind *kind = read->trace->kinds[read->model->ops[i].op->kind];
            bool with_values = !(kind->flags & CST_KIND_OPAQUE);
            cooperative += (kind->flags & CST_KIND_COOPERATIVE) != 0;
            opaque += !with_values;
            for (uint32_t a = 0; a < kind->n_attributes; a++) {
                const cst_attribute &attribute = cst_kind_attributes(kind)[a];
                bool off = attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
                           attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
                ops[attribute.id] += !(off && with_values && !attribute.value[0]);
            }
        }
        EXPECT_EQ(ops[CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION], STEPS) << mode;
        EXPECT_EQ(ops[CU_LAUNCH_ATTRIBUTE_COOPERATIVE], STEPS) << mode;
        EXPECT_EQ(cooperative, STEPS) << mode;
        EXPECT_EQ(ops[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION], 4 * STEPS) << mode;
        EXPECT_EQ(ops[CU_LAUNCH_ATTRIBUTE_PRIORITY], 2 * STEPS) << mode;
        EXPECT_EQ(ops[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN], 2 * STEPS) << mode;
        EXPECT_EQ(ops.count(CU_LAUNCH_ATTRIBUTE_IGNORE), 0u) << mode;
        if (strcmp(mode, "observe") == 0) {
            EXPECT_EQ(opaque, static_cast<int>(read->model->n_ops));
        }
    }
}

// Also of those that the driver refuses, and that have no kind.
TEST(Recording, TellsMemsetsOfTwoDimensions) {
    enum { STEPS = 36 };
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.args = {"--steps", std::to_string(STEPS)};
    RunCase(CaseOf("memsets_2d"), setting);
    auto read = Read(path);
    ASSERT_TRUE(read->trace) << read->error;
    std::map<std::string, int> calls, refused;
    for (uint32_t i = 0; i < read->model->n_ops; i++) {
        const cst_op *op = read->model->ops[i].op;
        const cst_kind *kind = read->trace->kinds[op->kind];
        std::string name = cst_string(read->trace.get(), kind->name);
        calls[name]++;
        refused[name] += op->result != 0;
        if (name == "cuMemsetD2D16Async") {
            EXPECT_EQ(model_elements(kind, op), 9u * 4);
        }
    }
    EXPECT_EQ(calls["cuMemsetD8Async"], STEPS);
    EXPECT_EQ(calls["cuMemsetD2D8Async"], 4 * STEPS + 2 * STEPS / 9);
    EXPECT_EQ(calls["cuMemsetD2D16Async"], STEPS);
    EXPECT_EQ(calls["cuMemsetD2D32Async"], 2 * STEPS + 2 * STEPS / 9);
    EXPECT_EQ(refused["cuMemsetD2D8Async"], STEPS / 9);
    EXPECT_EQ(refused["cuMemsetD2D32Async"], 2 * STEPS / 9);
}

// What is said of a program is JSON, whatever it is called and however long.
TEST(Recording, FactsHaveTheStepsOfTheConfiguration) {
    std::string path = NewPath(), config = path + ".conf";
    std::ofstream(config) << "[step decode]\nmarker = embedding\ntokens = y\nuniform = z == 1\n"
                             "sizes = 1..64\n[rules]\nuniform = attention*\n";
    Setting setting = Recorded(path);
    setting.env["CUSPLICE_CONFIG"] = config;
    RunCase(CaseOf("decode_loop"), setting);
    auto read = Read(path);
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_NE(std::string(read->trace->facts)
                  .find("\"steps\":[{\"name\":\"decode\",\"marker\":\"embedding\",\"tokens\":\"y\","
                        "\"tokens_each\":\"1\",\"uniform\":\"z == 1\",\"sizes\":\"1..64\"}]"),
              std::string::npos)
        << read->trace->facts;
}

TEST(Recording, FactsAreJsonWhateverTheProgramIsCalled) {
    std::string path = NewPath(), name;
    while (name.size() < 60000) {
        name += "\xc3\xa9\xc3\xa9\xc3\xa9\"\\"; // each byte takes up to six in JSON
    }
    Setting setting = Recorded(path);
    Outcome run = RunProgram({"/bin/bash", "-c", "exec -a \"$1\" \"$0\" launch_bound --steps 3",
                              Runfile(setting.binary), name},
                             setting);
    ASSERT_EQ(run.result.status, 0) << run.result.err;
    auto read = Read(path);
    ASSERT_TRUE(read->trace) << read->error;
    Json facts = ParseJson(read->trace->facts);
    EXPECT_TRUE(facts.valid);
    EXPECT_EQ(facts.text["options.mode"], "piecewise");
    EXPECT_GT(facts.Number("clock.monotonic_ns"), 0);
}

TEST(Recording, NoGpuTimesIsSaid) {
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.env["CUSPLICE_RECORD_GPU"] = "yes"; // CUPTI does not know the simulator, if it is there
    Outcome run = RunCase(CaseOf("launch_bound"), setting);
    EXPECT_EQ(run.result.status, 0) << run.Describe();
    EXPECT_NE(run.result.err.find("no GPU times: "), std::string::npos) << run.result.err;
    auto read = Read(path);
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_TRUE(read->trace->closed);
    EXPECT_EQ(read->trace->n_gpu, 0u);
}

TEST(Recording, ChosenStepsAlone) {
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.env["CUSPLICE_RECORD_FROM"] = "5";
    setting.env["CUSPLICE_RECORD_UNTIL"] = "8";
    setting.args = {"--steps", "20"};
    Outcome run = RunCase(CaseOf("launch_bound"), setting);
    ASSERT_EQ(run.result.status, 0) << run.Describe();
    auto read = Read(path);
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_EQ(read->model->n_steps, 3u);
    EXPECT_EQ(read->trace->ops, 3000u);
    EXPECT_EQ(run.result.err.find("holds nothing"), std::string::npos) << run.result.err;
}

// Without a launcher the log says it.
TEST(Recording, StepsThatNeverCameAreSaid) {
    for (const char *from : {"20", "5000"}) {
        Setting setting = Recorded(NewPath());
        setting.env["CUSPLICE_RECORD_FROM"] = from;
        setting.args = {"--steps", "20"};
        Outcome run = RunCase(CaseOf("launch_bound"), setting);
        EXPECT_EQ(run.result.status, 0) << run.Describe();
        EXPECT_NE(run.result.err.find("warn trace: the trace holds nothing: it was to begin with "
                                      "step " +
                                      std::string(from) +
                                      ", and the program had 20 steps, counted from 0\n"),
                  std::string::npos)
            << run.result.err;
    }
}

TEST(Recording, FileThatIsThereIsLeftAlone) {
    std::string path = NewPath();
    std::ofstream(path) << "precious";
    Outcome run = RunCase(CaseOf("launch_bound"), Recorded(path));
    EXPECT_EQ(run.result.status, 0) << run.Describe();
    EXPECT_NE(run.result.err.find("nothing is recorded: " + path), std::string::npos)
        << run.result.err;
    std::string text;
    std::ifstream(path) >> text;
    EXPECT_EQ(text, "precious");
    EXPECT_NE(access((path + ".partial").c_str(), F_OK), 0);
}

TEST(Recording, NobodyElseMayReadIt) {
    std::string path = NewPath();
    ASSERT_EQ(RunCase(CaseOf("launch_bound"), Recorded(path)).result.status, 0);
    struct stat is;
    ASSERT_EQ(stat(path.c_str(), &is), 0);
    EXPECT_EQ(is.st_mode & 0777, 0600u);
}

TEST(Recording, FolderThatIsNotThereIsSaid) {
    Outcome run = RunCase(CaseOf("launch_bound"), Recorded(testing::TempDir() + "no/such/t.cst"));
    EXPECT_EQ(run.result.status, 0) << run.Describe();
    EXPECT_NE(run.result.err.find("nothing is recorded"), std::string::npos) << run.result.err;
    EXPECT_NE(run.result.err.find("No such file"), std::string::npos) << run.result.err;
}

// A disk that is full ends the recording and nothing else.
TEST(Recording, FullDiskIsSaidAndTheProgramGoesOn) {
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.env["CUSIM_LOG"] = "/dev/null"; // which would be cut short as well
    std::string program = Runfile(setting.binary);
    Outcome plain = RunProgram({program, "launch_bound", "--steps", "50"}, Setting());
    Outcome run = RunProgram({"/bin/sh", "-c", "ulimit -f 3000; exec \"$0\" \"$@\"", program,
                              "launch_bound", "--steps", "50"},
                             setting);
    EXPECT_EQ(run.result.status, 0) << run.Describe();
    EXPECT_EQ(run.result.out, plain.result.out);
    EXPECT_NE(run.result.err.find("recording ends here: File too large"), std::string::npos)
        << run.result.err;
    EXPECT_NE(access(path.c_str(), F_OK), 0) << "not under its final name";
    auto read = Read(path + ".partial");
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_FALSE(read->trace->closed);
    EXPECT_GT(read->trace->ops, 0u);
}

// A trace is written in small blocks: a small disk, too, holds all but the last of them.
TEST(Recording, SmallFullDiskHoldsAllButABlock) {
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.env["CUSIM_LOG"] = "/dev/null";
    Outcome run = RunProgram({"/bin/bash", "-c", "ulimit -f 256; exec \"$0\" \"$@\"",
                              Runfile(setting.binary), "launch_bound", "--steps", "50"},
                             setting);
    EXPECT_EQ(run.result.status, 0) << run.Describe();
    auto read = Read(path + ".partial");
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_EQ(read->trace->file_bytes, 256u << 10);
    EXPECT_LT(read->trace->torn, 80u << 10);
    EXPECT_GT(read->trace->ops, 500u);
}

// A slow program, which fills no block: what it did is on disk after a second.
TEST(Recording, OfAProgramThatIsKilledThereIsAllButTheLastSecond) {
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.args = {"--steps", "100000"};
    setting.env["CUSIM_DELAY_US"] = "40000";
    // Then it is killed: under qemu after ten times as long, and under a sanitizer after four
    // times, in which it fills no block either.
    bool longer = getenv("CUS_TEST_EMULATED") || getenv("CUS_TEST_SANITIZER");
    setting.timeout_s = longer ? 1 : 5;
    Outcome run = RunCase(CaseOf("sleepy_host"), setting);
    auto read = Read(path + ".partial");
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_LT(read->trace->file_bytes, 64u << 10);
    ASSERT_GT(read->trace->ops, 0u);
    EXPECT_GT(read->trace->end_ns - read->trace->begin_ns, 1000000000u);
}

// What a program leaves that is killed: whole blocks, under the name of a file that was not closed.
TEST(Recording, OfAProgramThatIsKilledThereIsAPart) {
    std::string path = NewPath();
    Setting setting = Recorded(path);
    setting.args = {"--steps", "100000"};
    setting.timeout_s = 4; // then it is killed
    Outcome run = RunCase(CaseOf("launch_bound"), setting);
    EXPECT_NE(access(path.c_str(), F_OK), 0);
    auto read = Read(path + ".partial");
    ASSERT_TRUE(read->trace) << read->error;
    EXPECT_FALSE(read->trace->closed);
    EXPECT_GT(read->trace->ops, 10000u);
}

} // namespace
} // namespace sim
