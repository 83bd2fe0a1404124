// Promise: every number of reports, of the page and of exports is the one that a plain count of the
// trace's records gives (raw.h). The traces are recorded on the simulator, by the real library:
// several shapes, patches, memsets, copies, events, branches, streams, threads and processes.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "tests/launcher/launcher.h"
#include "tests/launcher/told.h"

namespace {

const char kScenario[] = "harness/scenario/scenario";

Result Recorded(const std::string &to, const Strings &options, const Strings &program,
                const std::string &cupti = "") {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice", "record", "-o", to};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back("--");
    argv.insert(argv.end(), program.begin(), program.end());
    return RunProgram(argv, {{"CUSIM_LIB", "harness/sim/lib"}, {"LD_LIBRARY_PATH", cupti}});
}

std::string Cwd() {
    char path[4096];
    return getcwd(path, sizeof path) ? path : "";
}

// ---- the programs ----

class Numbers : public testing::TestWithParam<const char *> {};

TEST_P(Numbers, AreThoseOfTheRecords) {
    std::string path = Folder() + "/" + GetParam() + ".cst";
    unlink(path.c_str());
    Result r = Recorded(path, {}, {kScenario, GetParam()});
    ASSERT_EQ(r.Exit(), GetParam() == std::string("exit_pending") ? 5 : 0) << r.err;
    ExpectAll(path);
}

INSTANTIATE_TEST_SUITE_P(All, Numbers,
                         testing::Values("growing_grid", "batch_sizes", "swap_functions", "memsets",
                                         "memsets_2d", "copies", "tokens", "pool_loop",
                                         "many_streams", "threads", "two_contexts", "event_loop",
                                         "fork_layers", "fork_moves", "fork_diverge",
                                         "diverge_branch", "exit_pending", "idle"),
                         [](const auto &given) { return std::string(given.param); });

// With a rule, and graphs that are patched: the trace of which reports showed 60 times the memory.
TEST(Numbers, OfADecoder) {
    std::string path = Folder() + "/decode.cst";
    unlink(path.c_str());
    Result r = Recorded(path, {"--set", "eager=attention_decode"},
                        {"harness/decode/decode", "--prompt", "A", "--tokens", "40"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    ExpectAll(path);
    Trace trace = OpenGood(path);
    Raw raw(trace.get());
    EXPECT_GT(raw.Patched(), 0);
    bool told = true;
    for (const RawRow &row : raw.Kernels())
        told &= row.number.at("patched") >= 0;
    EXPECT_TRUE(told) << "here the records tell of each node whether it was patched";
}

// tests/cupti stands in for CUPTI: what runs as the n-th in a stream lasts 1000 + n ns.
TEST(Numbers, OfGpuTimes) {
    if (getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "qemu has no process_vm_readv, so nothing is deferred beside libcupti.so";
    std::string path = Folder() + "/gpu.cst", here = Cwd();
    unlink(path.c_str());
    Result r =
        Recorded(path, {"--gpu-times"}, {kScenario, "decode_loop"}, here + "/tests/cupti/whole");
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Trace trace = OpenGood(path);
    ASSERT_TRUE(trace);
    Raw raw(trace.get());
    std::map<uint32_t, double> next;
    std::vector<double> known;
    for (size_t i = 0; i < raw.ops.size(); i++)
        if (raw.Kind(i)->op != CST_OP_RECORD && raw.Kind(i)->op != CST_OP_WAIT)
            known.push_back(raw.gpu_ns[i] = 1000 + next[raw.ops[i].op->stream]++);
    ASSERT_GT(known.size(), 100u);
    sim::Json json =
        Parse(Says({"report", "kernels", "--names", "mangled", "--format", "json", path}));
    ExpectKernels(json, "", raw);
    EXPECT_EQ(Parse(Says({"info", "--json", path})).Number("gpu_known"),
              static_cast<double>(known.size()));
    std::string out = path + ".html", database = path + ".sqlite";
    unlink(out.c_str());
    unlink(database.c_str());
    Says({"report", "--html", out, "--names", "mangled", path});
    sim::Json table = Parse(Element(ReadFile(out), "table-kernels"));
    ExpectKernels(table, "report.", raw);
    EXPECT_EQ(table.text["columns.11.0"] + table.text["columns.12.0"], "gpu_nsgpu_avg_ns");
    EXPECT_EQ(Column(ReadFile(out), "gpu-time"), known);
    std::istringstream lines(Says({"dump", path}));
    std::vector<double> dumped;
    for (std::string line; std::getline(lines, line);) {
        sim::Json event = sim::ParseJson(line);
        if (event.text["type"] == "op" && event.Has("gpu_ns"))
            dumped.push_back(event.Number("gpu_ns"));
    }
    EXPECT_EQ(dumped, known);
}

// Steps out of the midst: graphs whose making is not in the trace.
TEST(Numbers, OfAPart) {
    std::string path = Folder() + "/part.cst";
    unlink(path.c_str());
    Result r = Recorded(path, {"--steps", "30-60"}, {kScenario, "growing_grid"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Trace trace = OpenGood(path);
    ASSERT_TRUE(trace);
    Raw raw(trace.get());
    ASSERT_GT(raw.launches.size(), 0u);
    for (const Reported &report : kReports) {
        SCOPED_TRACE(report.name);
        ExpectRows(Parse(Says({"report", report.name, "--format", "json", path})), "",
                   (raw.*report.rows)());
    }
    ExpectDatabase(path, raw);
    ExpectViewer(path, raw);
}

TEST(Numbers, OfAFolderOfProcesses) {
    std::string folder = Folder() + "/processes";
    Result r = Recorded(folder + "/", {},
                        {"/bin/sh", "-c",
                         "RANK=0 " + std::string(kScenario) + " batch_sizes >/dev/null; RANK=1 " +
                             kScenario + " copies >/dev/null"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    std::vector<std::string> paths;
    DIR *list = opendir(folder.c_str());
    ASSERT_NE(list, nullptr);
    while (dirent *entry = readdir(list))
        if (strstr(entry->d_name, ".cst"))
            paths.push_back(folder + "/" + entry->d_name);
    closedir(list);
    ASSERT_EQ(paths.size(), 2u);
    std::sort(paths.begin(), paths.end());
    sim::Json json = Parse(Says({"report", "--format", "json", folder}));
    EXPECT_EQ(json.Number("about.processes"), 2);
    std::vector<Trace> traces;
    uint64_t first = UINT64_MAX;
    for (const std::string &path : paths) {
        traces.push_back(OpenGood(path));
        first = std::min(first, traces.back()->begin_ns);
    }
    RawRows rows;
    for (size_t i = 0; i < paths.size(); i++) {
        Raw raw(traces[i].get());
        RawRow row;
        row.number = {
            {"rank", static_cast<double>(i)},
            {"begin_ns", static_cast<double>(traces[i]->begin_ns - first)},
            {"time_ns", static_cast<double>(traces[i]->end_ns - traces[i]->begin_ns)},
            {"ops", static_cast<double>(raw.ops.size())},
            {"graphs", static_cast<double>(raw.launches.size())},
            {"steps", static_cast<double>(raw.steps.size())},
            {"share",
             100.0 * static_cast<double>(raw.Count("graph")) / static_cast<double>(raw.ops.size())},
        };
        rows.push_back(row);
    }
    ExpectRows(json, "", rows);
}

} // namespace
