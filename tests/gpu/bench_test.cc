/*
 * Promise: the report of bench.py is true. A missed bound or unequal results make its exit status
 * 1, runs are merged by case, skipped cases are named, and each plot shows each point. Shell
 * scripts stand in for the programs; no GPU.
 */
#include "tests/gpu/stand_ins.h"

#include <regex>

namespace {

const char kStats[] = R"({"ops": {"launches": 1051, "memsets": 0, "copies": 0},
"issued": {"in_graphs": 1000, "eager": 51}, "eager_by": {}, "signatures": {}, "fallbacks": {}, "patched_nodes": 0,
"learning": {"first_ten_percent_of_plain": 93, "gain_at_step": 4}})";

/* What the stand-in of hostloop says in a variant. */
struct Said {
    std::string ns, checksum = "ab";
};

class Bench : public StandIns {
  protected:
    void SetUp() override {
        StandIns::SetUp();
        Hostloop({"3000"}, {"900"}, {"1000"}, {"1200"});
    }

    /* Writes one digit more at each run, so that there is a range: 900, 901, ... */
    void Hostloop(const Said &plain, const Said &preloaded, const Said &graph,
                  const Said &segments) {
        Script("carry/hostloop",
               "n=$(cat " + dir_ + "/count 2>/dev/null || echo 0); echo $((n + 1)) > " + dir_ +
                   "/count\n"
                   "ns=" +
                   plain.ns + " sum=" + plain.checksum +
                   "\n"
                   "case \" $* \" in\n"
                   "*' --segment '*) ns=" +
                   segments.ns + " sum=" + segments.checksum +
                   ";;\n"
                   "*' --graph '*) ns=" +
                   graph.ns + " sum=" + graph.checksum +
                   ";;\n"
                   "esac\n"
                   "if [ -n \"$CUSPLICE_STATS\" ]; then\n"
                   "  ns=" +
                   preloaded.ns + " sum=" + preloaded.checksum +
                   "\n"
                   "  cat > $CUSPLICE_STATS <<'E'\n" +
                   kStats +
                   "\nE\nfi\n"
                   "echo '{\"wall_ns\": '$ns', \"issued\": 1051, \"checksum\": \"'$sum'\"}'");
    }

    int Run(const std::string &options, const std::string &out = "out") {
        return Python("bench.py", "--quick " + options, out);
    }

    /* The first line of the report that begins so. */
    std::string Row(const std::string &begin, const std::string &out = "out") {
        std::istringstream lines(Read(out + "/BENCH.md"));
        for (std::string line; std::getline(lines, line);)
            if (line.compare(0, begin.size(), begin) == 0)
                return line;
        return "no row " + begin + "\n" + Read(out + "/BENCH.md") + Read("log");
    }
};

const char kWhole[] = "| host loop, preloaded / whole hand-written graph |";
const char kEager[] = "| the same with 1 in 10 eager, preloaded / hand-written segments";

TEST_F(Bench, BoundsThatHoldGiveZero) {
    EXPECT_EQ(Run("--only loop-whole,loop-eager"), 0) << Read("log");
    EXPECT_NE(Row(kWhole).find("| 0.900 | 0.900 to 0.900 | <= 0.92 | pass |"), std::string::npos)
        << Row(kWhole);
    EXPECT_NE(Row(kEager).find("| 0.750 | 0.750 to 0.750 | <= 1 | pass |"), std::string::npos)
        << Row(kEager);
    EXPECT_NE(Row("| decode host, batch 1").find("not measured"), std::string::npos);
    EXPECT_NE(Row("| 1000 launches a step |")
                  .find("| 0.300 | 0.900 | 0.750 | 95.1 % | 0 | 93 % | 4 | equal |"),
              std::string::npos)
        << Row("| 1000 launches a step |");
    EXPECT_EQ(Row("2 of 20 bounds hold, 18 not measured."),
              "2 of 20 bounds hold, 18 not measured.");
}

TEST_F(Bench, SlowerThanABoundFails) {
    Hostloop({"3000"}, {"930"}, {"1000"}, {"1200"});
    EXPECT_EQ(Run("--only loop-whole,loop-eager"), 1) << Read("log");
    EXPECT_NE(Row(kWhole).find("| <= 0.92 | **FAIL** |"), std::string::npos) << Row(kWhole);
    EXPECT_NE(Row(kEager).find("| pass |"), std::string::npos) << Row(kEager);
}

/* The learning curve as the stats file has it. */
TEST_F(Bench, TheLearningCurveIsInTheTable) {
    EXPECT_EQ(Run("--only loop-whole"), 0) << Read("log");
    std::string report = Read("out/BENCH.md");
    EXPECT_NE(
        report.find("| in graphs | patched nodes | first ten steps | gain at step | results |"),
        std::string::npos)
        << report;
}

/* Two builds of the library are measured beside each other; the bounds are those of the first. */
TEST_F(Bench, AnotherLibraryIsMeasuredBeside) {
    ASSERT_EQ(std::system(("cp " + dir_ + "/carry/libcusplice.so " + dir_ + "/before.so").c_str()),
              0);
    Hostloop({"3000"}, {"$(case \"$LD_PRELOAD\" in */before.so) echo 1800;; *) echo 900;; esac)"},
             {"1000"}, {"1200"});
    EXPECT_EQ(Run("--only loop-whole --against " + dir_ + "/before.so"), 0) << Read("log");
    EXPECT_NE(Row(kWhole).find("| 0.900 | 0.900 to 0.900 |"), std::string::npos) << Row(kWhole);
    EXPECT_NE(Read("log").find("preloaded 900 "), std::string::npos) << Read("log");
    EXPECT_NE(Read("log").find("preloaded, the other library 1,800 "), std::string::npos)
        << Read("log");
    EXPECT_EQ(Run("--only loop-whole --against " + dir_ + "/nowhere.so"), 2);
    EXPECT_NE(Read("log").find("nowhere.so: there is no such file"), std::string::npos)
        << Read("log");
}

/* Variants that run at once and in turns: none ends before all have begun. Tokens per second are
 * those of the median token, which the time of the others is not in. */
TEST_F(Bench, LlamasAndTrainingTakeTurns) {
    const std::string order = dir_ + "/order";
    Script("python",
           "[ \"$1\" = -c ] && exit 0\n[ -n \"$TESTS_TURNS\" ] && kill -STOP 0\necho begin >> " +
               order + "\nfor i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done\necho end >> " + order +
               "\nms=10 n=7 p10=9\nif [ -n \"$CUSPLICE_STATS\" ]; then\n  ms=4 n=3 p10=3\n  cat > "
               "$CUSPLICE_STATS <<'E'\n" +
               kStats +
               "\nE\nfi\necho '{\"median_ms\": '$ms', \"p10_ms\": '$p10', \"tokens_per_s\": '$n', "
               "\"hash\": \"ab\"}'");
    const struct {
        const char *name, *begun_and_ended, *bound, *tenth;
    } cases[] = {
        {"llama-static", "begin\nbegin\nbegin\nend\nend\nend\n", "| Hugging Face Llama",
         "| static cache by the fastest tenth"},
        {"llama-dynamic", "begin\nbegin\nend\nend\n", "| the same with a dynamic cache |",
         "| dynamic cache by the fastest tenth"},
        {"training", "begin\nbegin\nbegin\nend\nend\nend\n", "| eager PyTorch training step", ""},
    };
    for (const auto &one : cases) {
        SCOPED_TRACE(one.name);
        std::remove(order.c_str());
        EXPECT_EQ(Run("--only " + std::string(one.name) + " --reps 1 --python " + dir_ + "/python"),
                  0)
            << Read("log");
        EXPECT_EQ(Read("order"), one.begun_and_ended);
        EXPECT_NE(Row(one.bound).find("| 2.500 |"), std::string::npos) << Row(one.bound);
        if (*one.tenth) {
            EXPECT_NE(Row(one.tenth).find("| 3.000 | 3.000 to 3.000 | >= 1.5 | pass |"),
                      std::string::npos)
                << Row(one.tenth);
        }
    }
}

TEST_F(Bench, ProgramsThatFailInTheirTurnAreSaid) {
    Script("python", "[ \"$1\" = -c ] && exit 0\n[ -n \"$TESTS_TURNS\" ] && kill -STOP 0\nexit 3");
    EXPECT_EQ(Run("--only llama-dynamic --reps 2 --python " + dir_ + "/python"), 1) << Read("log");
    EXPECT_NE(Read("log").find("FAIL: runs to its end: preload"), std::string::npos) << Read("log");
    EXPECT_EQ(Read("log").find("the case itself"), std::string::npos) << Read("log");
}

/* Of the repetitions the range is said too. */
TEST_F(Bench, RepetitionsThatVaryAreSaid) {
    Hostloop({"3000"}, {"$((880 + n % 8 * 10))"}, {"1000"}, {"1200"});
    Run("--only loop-whole");
    /* Two repetitions of four variants, there and back: the preloaded runs are the second and the
     * seventh. */
    EXPECT_NE(Row(kWhole).find("| 0.915 | 0.890 to 0.940 |"), std::string::npos) << Row(kWhole);
    EXPECT_NE(Row("| 1000 launches a step |").find("| 915 ± 2.7 % |"), std::string::npos)
        << Row("| 1000 launches a step |");
}

TEST_F(Bench, AnotherResultFailsHoweverFast) {
    Hostloop({"3000"}, {"500", "cd"}, {"1000"}, {"1200"});
    EXPECT_EQ(Run("--only loop-whole"), 1) << Read("log");
    EXPECT_NE(Row(kWhole).find("**FAIL**: results differ"), std::string::npos) << Row(kWhole);
    EXPECT_NE(Row("| 1000 launches a step |").find("| **differ** |"), std::string::npos);
    EXPECT_EQ(Row("0 of 20 bounds hold,"), "0 of 20 bounds hold, 19 not measured.");
}

TEST_F(Bench, ABoundCountsTheResultsOfItsOwnVariants) {
    Hostloop({"3000"}, {"900"}, {"1000"}, {"1200", "cd"});
    EXPECT_EQ(Run("--only loop-whole"), 1) << Read("log");
    EXPECT_NE(Row(kWhole).find("| pass |"), std::string::npos) << Row(kWhole);
    EXPECT_NE(Read("log").find("RESULTS DIFFER"), std::string::npos) << Read("log");
}

TEST_F(Bench, AVariantThatFailsIsNotMeasured) {
    Script("carry/hostloop", "echo lost >&2; exit 3");
    EXPECT_EQ(Run("--only loop-whole"), 1) << Read("log");
    EXPECT_NE(Row(kWhole).find("not measured"), std::string::npos) << Row(kWhole);
    EXPECT_NE(Read("out/BENCH.md").find("exit status 3: lost"), std::string::npos);
}

/* Of the decode host the text counts, and its speed is on stderr; more is better. */
TEST_F(Bench, TheDecodeHostIsFasterWhereItSaysMore) {
    const std::string body =
        "s=2000\n"
        "[ -n \"$CUSPLICE_STATS\" ] && s=3200 && cat > $CUSPLICE_STATS <<'E'\n" +
        std::string(kStats) + "\nE\n";
    Script("carry/decode", body + "echo Elizabeth; echo \"in 1 s, $s tokens/s\" >&2");
    EXPECT_EQ(Run("--only decode"), 0) << Read("log");
    EXPECT_NE(Row("| decode host, batch 1").find("| 1.600 | 1.600 to 1.600 | >= 1.5 | pass |"),
              std::string::npos)
        << Row("| decode host, batch 1");
    EXPECT_NE(Row("| batch 1 |").find("| 0.625 |"), std::string::npos)
        << "its time: " << Row("| batch 1 |");
    Script("carry/decode", body + "echo Elizabeth $s; echo \"in 1 s, $s tokens/s\" >&2");
    EXPECT_EQ(Run("--only decode"), 1) << Read("log");
    EXPECT_NE(Row("| decode host, batch 1").find("results differ"), std::string::npos);
}

/* A neighbour on the core costs what a launch takes; where there was none has a bound of its own.
 */
TEST_F(Bench, HostTimeIsSaidOfStepsThatHadTheirCoreForThemselves) {
    const std::string before =
        "case \" $* \" in *' --core '*) ;; *) exit 2;; esac\n"
        "if [ -n \"$CUSPLICE_STATS\" ]; then\n  cat > $CUSPLICE_STATS <<'E'\n" +
        std::string(kStats) + "\nE\nfi\necho '{\"issued\": 1051, \"checksum\": \"ab\", ";
    for (const char *name : {"carry/hostloop_driver", "carry/hostloop"})
        Script(name, before + "\"host_ns\": 60, \"steps_alone\": 70, \"host_alone_ns\": 45, "
                              "\"steps_beside\": 30, \"host_beside_ns\": 85}'");
    Script("carry/hostloop_shared", before + "\"host_ns\": 120, \"steps_alone\": 3, "
                                             "\"steps_beside\": 97, \"host_beside_ns\": 121}'");
    EXPECT_EQ(Run("--only host-time"), 1) << Read("log");
    const struct {
        const char *row, *said;
    } rows[] = {
        {"| host time of a matched launch, driver API (ns) |",
         "| 60.000 | 60.000 to 60.000 | <= 50 | **FAIL** |"},
        {"| host time of a matched launch, shared cudart (ns) |", "| <= 100 | **FAIL** |"},
        {"| the same on a core alone, driver API (ns) |",
         "| 45.000 | 45.000 to 45.000 | <= 50 | pass |"},
        {"| the same on a core alone, shared cudart (ns) |", "| not measured |"},
        {"- driver API, preloaded:",
         "45.0 ns on a core alone (140 steps), 85.0 ns beside a busy hyperthread (60 steps)"},
        {"- shared cudart, preloaded:",
         "not known on a core alone (6 steps), 121.0 ns beside a busy hyperthread (194 steps)"},
    };
    for (const auto &one : rows)
        EXPECT_NE(Row(one.row).find(one.said), std::string::npos) << Row(one.row);
}

TEST_F(Bench, RunsAreMergedCaseByCase) {
    EXPECT_EQ(Run("--only loop-whole,loop-eager", "first"), 0) << Read("log");
    Hostloop({"3000"}, {"950"}, {"1000"}, {"1200"});
    EXPECT_EQ(Run("--only loop-whole", "second"), 1) << Read("log");
    EXPECT_EQ(Run("--merge " + dir_ + "/first " + dir_ + "/second", "both"), 1) << Read("log");
    EXPECT_NE(Row(kWhole, "both").find("| 0.950 |"), std::string::npos) << "the later one's";
    EXPECT_NE(Row(kEager, "both").find("| 0.750 |"), std::string::npos) << "the earlier one's";
    EXPECT_NE(Row("| 2 | ", "both").find("--only loop-whole "), std::string::npos)
        << Row("| 2 | ", "both");
    EXPECT_NE(Row("Host loop: 1000 small", "both").find("(Run 2,"), std::string::npos);
    EXPECT_NE(Row("Host loop with every 10th", "both").find("(Run 1,"), std::string::npos);
    /* A run of which nothing is left is not named. */
    EXPECT_EQ(Run("--merge " + dir_ + "/second " + dir_ + "/first", "other"), 0) << Read("log");
    EXPECT_NE(Row(kWhole, "other").find("| 0.900 |"), std::string::npos) << Row(kWhole, "other");
    EXPECT_EQ(Read("other/BENCH.md").find("\n| 2 | "), std::string::npos);
    /* A later run that had no time for a case takes nothing away. */
    EXPECT_EQ(Run("--only loop-whole --deadline 0", "late"), 2) << Read("log");
    EXPECT_EQ(Run("--merge " + dir_ + "/first " + dir_ + "/late", "kept"), 0) << Read("log");
    EXPECT_NE(Row(kWhole, "kept").find("| 0.900 |"), std::string::npos) << Row(kWhole, "kept");
    /* What is merged can be merged again. */
    EXPECT_EQ(Run("--merge " + dir_ + "/both", "again"), 1) << Read("log");
    EXPECT_EQ(Read("again/BENCH.md"), Read("both/BENCH.md"));
}

TEST_F(Bench, WhatHadNoTimeIsSaid) {
    EXPECT_EQ(Run("--only loop-whole --deadline 0"), 2) << Read("log");
    EXPECT_NE(Read("out/BENCH.md").find("no time left for 1000 launches a step"), std::string::npos)
        << Read("out/BENCH.md");
}

/* BENCH.md in tests/gpu/bench is what somebody chose to keep: a run puts its own elsewhere. */
TEST_F(Bench, NoRunWritesIntoTheFoldersOfTheTree) {
    std::string tree = dir_ + "/tree";
    std::string copy = "mkdir -p " + tree + "/tests/gpu " + tree + "/harness/bench && cp -L " +
                       "tests/gpu/*.py " + tree + "/tests/gpu && cp -L " +
                       "harness/bench/plot.py " + tree + "/harness/bench";
    ASSERT_EQ(std::system(copy.c_str()), 0);
    EXPECT_EQ(PythonIn(tree, "bench.py", "--quick --only loop-whole"), 0) << Read("log");
    EXPECT_NE(Read("tree/.carry/bench/BENCH.md").find("| 0.900 |"), std::string::npos);
    EXPECT_NE(Read("tree/.carry/bench/bench.json"), "");
    EXPECT_EQ(Read("tree/tests/gpu/bench/BENCH.md"), "");
}

/* Several runs: what all have in common is said once, and what differs once for each. */
TEST_F(Bench, RunsHaveOneRowEach) {
    EXPECT_EQ(Run("--only loop-whole", "first"), 0) << Read("log");
    EXPECT_EQ(Run("--only loop-eager", "second"), 0) << Read("log");
    EXPECT_EQ(Run("--merge " + dir_ + "/first " + dir_ + "/second", "both"), 0) << Read("log");
    EXPECT_NE(Row("In all of them: ", "both").find("GPU Some GPU; driver 1.2"), std::string::npos)
        << Row("In all of them: ", "both");
    EXPECT_NE(Row("| 1 | ", "both").find("--only loop-whole "), std::string::npos);
    EXPECT_NE(Row("| 2 | ", "both").find("--only loop-eager "), std::string::npos);
    EXPECT_NE(Row("| 1 | ", "first").find("| Some GPU | 1.2 |"), std::string::npos)
        << Row("| 1 | ", "first");
}

TEST_F(Bench, RepetitionsAreAsManyAsAskedFor) {
    Run("--only loop-whole --reps 3");
    EXPECT_EQ(Read("count"), "12\n") << "of four variants";
}

TEST_F(Bench, AnUnknownCaseIsRefused) {
    EXPECT_EQ(Run("--only nonesuch"), 2);
    EXPECT_NE(Read("log").find("no case nonesuch; there are loop-whole,"), std::string::npos);
}

/* Points of a plot: number of circles; a smaller figure stands lower. */
TEST_F(Bench, APlotShowsEachPointAtItsPlace) {
    Hostloop({"3000"}, {"900"}, {"1000"}, {"1200"});
    EXPECT_EQ(Run("--only eager-share"), 0) << Read("log");
    std::string svg = Read("out/eager.svg");
    std::ofstream(dir_ + "/read.py") << R"(
import sys, xml.dom.minidom
xml.dom.minidom.parse(sys.argv[1])
)";
    EXPECT_EQ(std::system(("python3 " + dir_ + "/read.py " + dir_ + "/out/eager.svg").c_str()), 0);
    std::regex circle("<circle class=\"s([0-3])\" cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
    double y[4] = {}, x[2] = {};
    int n = 0;
    for (std::sregex_iterator it(svg.begin(), svg.end(), circle), end; it != end; ++it, n++) {
        y[std::stoi((*it)[1])] = std::stod((*it)[3]);
        x[n % 2] = std::stod((*it)[2]);
    }
    EXPECT_EQ(n, 8) << "four variants at two shares";
    EXPECT_LT(x[0], x[1]);
    /* Zero is at 344 and the greatest, 3000, at 40: plain, preloaded, graph, segments. */
    EXPECT_NEAR(y[0], 40, 0.1);
    EXPECT_NEAR(y[1], 344 - 304 * 0.3, 0.1);
    EXPECT_NEAR(y[2], 344 - 304 / 3.0, 0.1);
    EXPECT_NEAR(y[3], 344 - 304 * 0.4, 0.1);
    for (const char *words : {"ns a kernel", "launches on the eager list, %",
                              "prefers-color-scheme:dark", "one hand-written graph"})
        EXPECT_NE(svg.find(words), std::string::npos) << words;
    EXPECT_NE(Read("out/BENCH.md").find("![eager.svg](eager.svg)"), std::string::npos);
    EXPECT_EQ(Read("out/segments.svg"), "") << "not measured";
}

} // namespace
