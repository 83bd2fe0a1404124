/*
 * Promise: on the simulated driver the cases of programs/hazards.cu hold plain and preloaded, and
 * notice if a graph loses a kernel. The simulator has no buffer for lines that kernels print.
 */
#include "tests/gpu/stand_ins.h"

#include <limits.h>

namespace {

const char *const kCases[] = {"large-params", "stream-attributes", "device-printf"};

std::string Path(const char *variable) {
    const char *file = std::getenv(variable);
    char path[PATH_MAX];
    return file && realpath(file, path) ? path : "";
}

class SimCases : public StandIns {
  protected:
    void SetUp() override {
        if (std::getenv("CUS_TEST_SANITIZER"))
            GTEST_SKIP() << "the programs are run as anybody would, without a sanitizer's runtime";
        Furnish("Simulated GPU", Path("LIBRARY"));
    }

    /* A program of the carried folder that runs on the simulated driver. */
    void Simulated(const std::string &name, const std::string &settings,
                   const std::string &program) {
        std::string sim = Path("SIMULATOR");
        Script("carry/" + name, "exec env LD_LIBRARY_PATH=" + sim.substr(0, sim.rfind('/')) +
                                    " CUSIM_DELAY_US=0 " + settings + " " + Path(program.c_str()) +
                                    " \"$@\"");
    }

    /* The exit status of run_all.py; `settings` of the simulator. */
    int Run(const std::string &only, const std::string &settings) {
        Simulated("hazards", "CUSIM_KERNELS=" + Path("KERNELS") + " " + settings, "PROGRAM");
        return Python("run_all.py", "--only " + only);
    }

    /* The exit status of run_all.py, whose host loop runs on the simulator. */
    int Fork(const std::string &settings) {
        Simulated("hostloop", "CUSIM_KERNELS=" + Path("LOOP_KERNELS") + " " + settings, "LOOP");
        return Python("run_all.py", "--quick --only fork");
    }

    /* The decode host in place of the one for a GPU. */
    void CarryDecode() { Simulated("decode", "CUSIM_GRAPH_RULES=measured", "DECODE"); }

    /* The exit status of bench.py, whose host loop runs on the simulator. */
    int Bench(const std::string &only, const std::string &settings) {
        Simulated("hostloop", "CUSIM_KERNELS=" + Path("LOOP_KERNELS") + " " + settings, "LOOP");
        return Python("bench.py", "--quick --only " + only);
    }
};

TEST_F(SimCases, AllHold) {
    std::string all;
    for (const char *name : kCases)
        all += (all.empty() ? "" : ",") + std::string(name);
    EXPECT_EQ(Run(all, ""), 0) << Read("log");
    std::string results = Read("out/RESULTS.md");
    EXPECT_NE(results.find(" 0 failed, 0 skipped."), std::string::npos) << results;
    EXPECT_NE(results.find("large parameters: results"), std::string::npos) << results;
    EXPECT_NE(results.find("stream attributes: graphs launched"), std::string::npos) << results;
    EXPECT_NE(results.find("| 40000 | 40000 | pass |"), std::string::npos) << results;
}

TEST_F(SimCases, AKernelThatAGraphLosesIsSeenByEach) {
    for (const char *name : kCases) {
        EXPECT_EQ(Run(name, "CUSIM_GRAPH_ERROR=drop:9"), 1) << Read("log");
        EXPECT_NE(Read("out/RESULTS.md").find("**FAIL**"), std::string::npos) << name;
    }
}

/* All three forms of a program that forks and joins two streams leave the same, and a graph that
 * loses a node is seen. How long they take says nothing here. */
TEST_F(SimCases, AForkAndItsGraphByHandLeaveTheSame) {
    Fork("");
    std::string results = Read("out/RESULTS.md");
    for (const char *over : {"cusplice / plain", "cusplice / one graph by hand"})
        EXPECT_NE(results.find(std::string(", ") + over), std::string::npos) << results;
    EXPECT_NE(results.find("| fork | result |"), std::string::npos) << results;
    for (const char *wrong :
         {"not measured", "runs to its end", "launches seen", "ops = in graphs"})
        EXPECT_EQ(results.find(wrong), std::string::npos) << results << Read("log");
    size_t at = results.find("| fork | result |");
    EXPECT_NE(results.substr(at, results.find('\n', at) - at).find("| pass |"), std::string::npos)
        << results;
    EXPECT_EQ(Fork("CUSIM_GRAPH_ERROR=drop:9"), 1) << Read("log");
    results = Read("out/RESULTS.md");
    at = results.find("| fork | result |");
    ASSERT_NE(at, std::string::npos) << results;
    EXPECT_NE(results.substr(at, results.find('\n', at) - at).find("| **FAIL** |"),
              std::string::npos)
        << results;
}

/* How long it takes says nothing here: the simulator's kernels run on the processor. */
TEST_F(SimCases, VariantsSayTheSameText) {
    CarryDecode();
    Run("variants --quick", "");
    std::string results = Read("out/RESULTS.md");
    for (const char *name : {"variants 8", "variants 2"}) {
        std::string row = std::string("| ") + name + ": ";
        EXPECT_NE(results.find(row + "time over plain |"), std::string::npos) << results;
    }
    EXPECT_NE(results.find("| variants | text |"), std::string::npos) << results;
    EXPECT_EQ(results.find("not measured"), std::string::npos) << results;
    for (const char *what : {"text", "share of segments missed", "memory of graphs"}) {
        size_t at = 0, seen = 0;
        while ((at = results.find(what, at)) != std::string::npos) {
            std::string line = results.substr(at, results.find('\n', at) - at);
            EXPECT_NE(line.find("| pass |"), std::string::npos) << line;
            at += line.size();
            seen++;
        }
        EXPECT_GE(seen, 1u) << what << Read("log") << results;
    }
}

TEST_F(SimCases, RulesByLibrary) {
    CarryDecode();
    EXPECT_EQ(Run("rules-by-library", ""), 0) << Read("log");
    std::string results = Read("out/RESULTS.md");
    for (const char *rule : {"decode, lib:libcublas*", "decode, lib:decode"})
        EXPECT_NE(results.find(std::string(rule) + ": launches by themselves"), std::string::npos)
            << results;
    EXPECT_NE(results.find("hostloop is not built"), std::string::npos) << "needs a GPU";
}

/* Recording the decode host: same text, whole trace, what-if and exports of it. No GPU times there.
 */
TEST_F(SimCases, RecordedProgramsLeaveWholeTraces) {
    CarryDecode();
    Script("carry/cusplice", "exec " + Path("TOOL") + " \"$@\"");
    ASSERT_EQ(Run("record --quick", ""), 0) << Read("log");
    std::string results = Read("out/RESULTS.md");
    EXPECT_NE(results.find("| decode host: the trace is whole |"), std::string::npos) << results;
    EXPECT_NE(results.find("| decode host: export --sqlite |"), std::string::npos) << results;
}

/* Replaying it: memory ends as recorded by each strategy. How long that takes says nothing here. */
TEST_F(SimCases, ReplaysEndAsRecorded) {
    if (std::getenv("CUS_TEST_EMULATED"))
        GTEST_SKIP() << "qemu catches each signal, so Turns takes any program for one that does";
    CarryDecode();
    std::string sim = Path("SIMULATOR");
    Script("carry/cusplice", "export LD_LIBRARY_PATH=" + sim.substr(0, sim.rfind('/')) +
                                 " CUSIM_DELAY_US=0\nexec " + Path("TOOL") + " \"$@\"");
    Run("replay --quick", "");
    std::string results = Read("out/RESULTS.md");
    for (const char *strategy : {"eager", "piecewise", "full", "as-recorded"}) {
        std::string row =
            std::string("| decode host, ") + strategy + ": sums of memory that differ";
        size_t at = results.find(row);
        ASSERT_NE(at, std::string::npos) << results << Read("log");
        EXPECT_NE(results.substr(at, results.find('\n', at) - at).find("| 0 | pass |"),
                  std::string::npos)
            << results;
    }
    EXPECT_NE(results.find("preloaded / plain, replayed over live"), std::string::npos) << results;
}

/* The bench suite: all variants of the host loop leave the same, and a graph that loses a node is
 * seen. How long they take says nothing here. */
TEST_F(SimCases, TheBenchSuiteComparesResults) {
    Bench("loop-eager,step-240", "");
    std::string report = Read("out/BENCH.md");
    for (const char *label : {"1 in 10 eager", "240 launches a step"}) {
        size_t at = report.find(std::string("| ") + label + " |");
        ASSERT_NE(at, std::string::npos) << label << report << Read("log");
        std::string row = report.substr(at, report.find('\n', at) - at);
        EXPECT_NE(row.find("| equal |"), std::string::npos) << row;
        EXPECT_EQ(row.find("|  |"), std::string::npos) << "a variant is missing: " << row;
    }
    EXPECT_EQ(report.find("**FAIL**: runs to its end"), std::string::npos) << report;
    EXPECT_EQ(Bench("step-240", "CUSIM_GRAPH_ERROR=drop:9"), 1) << Read("log");
    EXPECT_NE(Read("out/BENCH.md").find("| **differ** |"), std::string::npos)
        << Read("out/BENCH.md");
}

/* What is met before the runtime beside what is met in the driver, in turns: all leave the same,
 * and each is met where it says. */
TEST_F(SimCases, LaunchesAreMetBeforeTheRuntimeInTurnsWithOthers) {
    std::string sim = Path("SIMULATOR");
    Script("carry/hostloop_shared",
           "exec env LD_LIBRARY_PATH=" + sim.substr(0, sim.rfind('/')) + " CUSIM_KERNELS=" +
               Path("LOOP_KERNELS") + " CUSIM_DELAY_US=0 " + Path("LOOP") + " \"$@\" --steps 100");
    Run("runtime --quick", "");
    std::string results = Read("out/RESULTS.md");
    for (const char *pattern :
         {"1000 small launches a step", "every 4th kernel a new scalar", "the legacy stream"}) {
        size_t at = results.find(std::string("| ") + pattern + ": result |");
        ASSERT_NE(at, std::string::npos) << pattern << results << Read("log");
        EXPECT_NE(results.substr(at, results.find('\n', at) - at).find("| pass |"),
                  std::string::npos)
            << results;
        EXPECT_NE(results.find(std::string("shared runtime, ") + pattern + ": ns of the host"),
                  std::string::npos)
            << results;
    }
    EXPECT_EQ(results.find("not measured"), std::string::npos) << results << Read("log");
    EXPECT_EQ(results.find("share of launches met"), std::string::npos) << results;
    EXPECT_EQ(results.find("runs to its end"), std::string::npos) << results << Read("log");
}

/* The second run of each program that there is here: in graphs from its second step on. */
TEST_F(SimCases, ColdStartsAreShorterTheSecondTime) {
    CarryDecode();
    std::string sim = Path("SIMULATOR");
    Script("carry/growth", "exec env LD_LIBRARY_PATH=" + sim.substr(0, sim.rfind('/')) +
                               " CUSIM_DELAY_US=0 CUSPLICE_HOLD_US=1000000 CUSPLICE_BUILD_US=0 " +
                               Path("GROWTH") + " \"$@\"");
    Run("cold --quick", "");
    std::string results = Read("out/RESULTS.md");
    for (const char *name :
         {"decode host", "driver API, 1000 launches a step", "driver API, 10000 launches a step"})
        for (const char *what : {": result |", ": the broken file was noticed |"}) {
            size_t at = results.find(std::string("| ") + name + what);
            ASSERT_NE(at, std::string::npos) << name << what << results << Read("log");
            EXPECT_NE(results.substr(at, results.find('\n', at) - at).find("| pass |"),
                      std::string::npos)
                << results;
        }
    size_t at = results.find("driver API, 1000 launches a step: steps until 95 %");
    ASSERT_NE(at, std::string::npos) << results;
    EXPECT_NE(results.substr(at, results.find('\n', at) - at).find("| 2 | <= 2 | pass |"),
              std::string::npos)
        << results;
}

/* The grid of bench: each cell ends as recorded, and tables and plot are kept. Graphs gain little
 * on the simulator, so on a loaded machine a program may be let pass. */
TEST_F(SimCases, BenchMeasuresEachCell) {
    CarryDecode();
    std::string sim = Path("SIMULATOR");
    Script("carry/cusplice", "export LD_LIBRARY_PATH=" + sim.substr(0, sim.rfind('/')) +
                                 " CUSIM_DELAY_US=0 CUSPLICE_DEMOTE=no\nexec " + Path("TOOL") +
                                 " \"$@\"");
    EXPECT_EQ(Run("bench --quick", ""), 0) << Read("log");
    std::string results = Read("out/RESULTS.md");
    EXPECT_NE(results.find("| decode host: cells | 5 | 5 | pass |"), std::string::npos) << results;
    for (const char *file : {"md", "csv", "json", "svg"})
        EXPECT_NE(Read(std::string("out/bench.") + file), "") << file;
}

} // namespace
