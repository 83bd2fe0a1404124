/*
 * Promise: what run_all.py says about a run is true. A missed bound or an unequal result makes its
 * exit status 1, a program that hangs costs only its own check, and results are always on disk.
 * Shell scripts stand in for the programs; no GPU.
 */
#include "tests/gpu/stand_ins.h"

#include <utility>

namespace {

const char kStats[] = R"({"ops": {"launches": 1051, "memsets": 0, "copies": 0},
"issued": {"in_graphs": 1000, "eager": %EAGER%}, "eager_by": {"rule": 101}, "signatures": {}, "fallbacks": {}})";

class RunAll : public StandIns {
  protected:
    void SetUp() override {
        StandIns::SetUp();
        Hostloop("900", "ab", "51");
    }

    /* A hostloop that takes 3000 ns a kernel as it is and `ns` preloaded. */
    void Hostloop(const std::string &ns, const std::string &checksum, const std::string &eager) {
        std::string stats = kStats;
        stats.replace(stats.find("%EAGER%"), 7, eager);
        Script("carry/hostloop",
               "ns=3000 sum=ab\n"
               "if [ -n \"$CUSPLICE_STATS\" ] && [ -z \"$CUSPLICE\" ]; then\n"
               "  ns=" +
                   ns + " sum=" + checksum +
                   "\n"
                   "  cat > $CUSPLICE_STATS <<'E'\n" +
                   stats +
                   "\nE\nfi\n"
                   "echo '{\"wall_ns\": '$ns', \"issued\": 1051, \"checksum\": \"'$sum'\"}'");
    }

    /* A Python that has every module, finds one GPU, and writes as op_db.py would: one operator
     * with one sample, its output and its gradient one float each. `plain` (and in the second plain
     * run `again`) as it is, `mine` preloaded: octal escapes of the eight bytes. */
    void Operators(const std::string &plain, const std::string &again, const std::string &mine) {
        std::string body = R"([ "$1" = -c ] && echo '{"gpus": 1}' && exit
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
value='PLAIN'
case $out in */op-db-again/*) value='AGAIN';; esac
if [ -n "$CUSPLICE_STATS" ]; then
  value='MINE'
  echo '{"ops": {"launches": 4}, "issued": {"in_graphs": 4, "eager": 0}}' > $CUSPLICE_STATS
fi
printf "$value" > $out.bin
hash() { md5sum | cut -c1-32; }
each='"'$(head -c4 $out.bin | hash)'", "'$(tail -c4 $out.bin | hash)'"'
one='{"hash": "'$(hash < $out.bin)'", "each": ['$each'], "at": 0, "bytes": 8}'
parts='[["out", "float32", [1]], ["grad", "float32", [1]]]'
echo '{"begins": 0, "op": "sum", "dtype": "float32"}' > $out
echo '{"op": "sum", "dtype": "float32", "samples": [{"i": 0,
 "runs": ['$one,$one,$one,$one'], "parts": ['$parts,$parts']}]}' | tr -d '\n' >> $out
echo '{}')";
        for (auto [from, to] :
             {std::pair("PLAIN", plain), std::pair("AGAIN", again), std::pair("MINE", mine)})
            body.replace(body.find(from), std::string(from).size(), to);
        Script("python", body);
    }

    int RunOperators() { return Run("--only op-db --python " + dir_ + "/python"); }

    int Run(const std::string &options) { return Python("run_all.py", "--quick " + options); }
};

TEST_F(RunAll, AllBoundsHoldGivesZero) {
    EXPECT_EQ(Run("--only hostloop,eager,random"), 0) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("| 0.3 | <= 0.36 | pass |"), std::string::npos)
        << Read("out/RESULTS.md");
    EXPECT_EQ(Read("out/RESULTS.md").find("FAIL"), std::string::npos) << Read("out/RESULTS.md");
    EXPECT_NE(Read("out/results.json").find("\"median\": 900"), std::string::npos);
}

TEST_F(RunAll, SlowerThanTheBoundFails) {
    Hostloop("1200", "ab", "51");
    EXPECT_EQ(Run("--only hostloop"), 1) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("| 0.4 | <= 0.36 | **FAIL** |"), std::string::npos)
        << Read("out/RESULTS.md");
}

TEST_F(RunAll, EightThreadsThatAreSlowerThanPlainFail) {
    EXPECT_EQ(Run("--only threads"), 0) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("8 threads together launch 1.00 times as fast as one"),
              std::string::npos)
        << Read("out/RESULTS.md");
    Hostloop("3100", "ab", "51");
    EXPECT_EQ(Run("--only threads"), 1) << Read("log");
    Hostloop("900", "cd", "51");
    EXPECT_EQ(Run("--only threads"), 1) << Read("log");
}

TEST_F(RunAll, AnotherResultFails) {
    Hostloop("900", "cd", "51");
    EXPECT_EQ(Run("--only random"), 1) << Read("log");
}

TEST_F(RunAll, StatsThatDoNotAddUpFail) {
    Hostloop("900", "ab", "50");
    EXPECT_EQ(Run("--only random"), 1) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("ops = in graphs + eager"), std::string::npos);
}

TEST_F(RunAll, AHangCostsItsOwnCaseAlone) {
    Script("carry/scenario", "[ \"$1\" = --list ] && echo sleeper && exit\nsleep 60");
    EXPECT_EQ(Run("--limit 2 --only scenarios,random"), 1) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("hung"), std::string::npos) << Read("out/RESULTS.md");
    EXPECT_NE(Read("out/RESULTS.md").find("random order of 50 kernels, cusplice / plain | 0.3 |"),
              std::string::npos)
        << Read("out/RESULTS.md");
}

TEST_F(RunAll, AMissingProgramIsSkippedAndSaid) {
    ASSERT_EQ(std::remove((dir_ + "/carry/hostloop").c_str()), 0);
    EXPECT_EQ(Run("--only hostloop"), 2) << Read("log"); /* nothing was shown */
    EXPECT_NE(Read("out/RESULTS.md").find("hostloop is not built"), std::string::npos);
}

/* Floats, lowest byte first. */
const char kOne[] = R"(\0\0\200\077)", kOneAndABit[] = R"(\1\0\200\077)",
           kOneAndTwoBits[] = R"(\2\0\200\077)", kTwo[] = R"(\0\0\0\100)";

std::string Both(const char *out, const char *grad) {
    return std::string(out) + grad;
}

TEST_F(RunAll, AnOperatorWithTheSameBitsPasses) {
    Operators(Both(kOne, kTwo), Both(kOne, kTwo), Both(kOne, kTwo));
    EXPECT_EQ(RunOperators(), 0) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("| 0 of 1 | 0 | pass |"), std::string::npos)
        << Read("out/RESULTS.md");
}

TEST_F(RunAll, AnOperatorThatDiffersInOneBitFails) {
    Operators(Both(kOne, kTwo), Both(kOne, kTwo), Both(kOneAndABit, kTwo));
    EXPECT_EQ(RunOperators(), 1) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("sum float32: DIFFERENT"), std::string::npos)
        << Read("out/RESULTS.md");
}

TEST_F(RunAll, AGradientThatVariesAsItIsIsComparedWithTolerance) {
    Operators(Both(kTwo, kOne), Both(kTwo, kOneAndTwoBits), Both(kTwo, kOneAndABit));
    EXPECT_EQ(RunOperators(), 0) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("(1): sum float32: grad 0"), std::string::npos)
        << Read("out/RESULTS.md");
    Operators(Both(kTwo, kOne), Both(kTwo, kOneAndTwoBits), Both(kTwo, kTwo));
    EXPECT_EQ(RunOperators(), 1) << Read("log");
}

TEST_F(RunAll, WhatDoesNotVaryHasToBeEqualBesideWhatDoes) {
    Operators(Both(kOne, kOne), Both(kOne, kOneAndTwoBits), Both(kOneAndABit, kOne));
    EXPECT_EQ(RunOperators(), 1) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("out 0 (float32) differs, and never does as it is"),
              std::string::npos)
        << Read("out/RESULTS.md");
}

TEST_F(RunAll, TwoGpusAreSkippedWhereThereIsOne) {
    Operators("", "", "");
    EXPECT_EQ(Run("--only two-gpus --python " + dir_ + "/python"), 2) << Read("log");
    EXPECT_NE(Read("out/RESULTS.md").find("0 passed, 0 failed, 1 skipped."), std::string::npos)
        << Read("out/RESULTS.md");
}

// The papers in tests/gpu are written by people: a run, a full one too, puts its own elsewhere.
TEST_F(RunAll, NoRunWritesIntoTheFoldersOfTheTree) {
    std::string tree = dir_ + "/tree";
    std::string copy = "mkdir -p " + tree + "/tests/gpu " + tree + "/harness/bench && cp -L " +
                       "tests/gpu/*.py " + tree + "/tests/gpu && cp -L " +
                       "harness/bench/plot.py " + tree + "/harness/bench";
    ASSERT_EQ(std::system(copy.c_str()), 0);
    EXPECT_EQ(PythonIn(tree, "run_all.py", "--deadline -1"), 1) << "a full run, all of whose cases come too late";
    EXPECT_NE(Read("tree/.carry/results/RESULTS.md").find("not begun after"), std::string::npos)
        << Read("log");
    EXPECT_NE(Read("tree/.carry/results/results.json"), "");
    EXPECT_EQ(Read("tree/tests/gpu/RESULTS.md"), "");
    EXPECT_EQ(Read("tree/tests/gpu/results.json"), "");
}

// A case that uses a name which nobody defines fails where it comes by it, which is on a GPU.
TEST_F(RunAll, NoScriptUsesANameThatNobodyDefines) {
    auto check = [&](const std::string &files) {
        std::string command =
            "python3 tests/gpu/names_check.py " + files + " > " + dir_ + "/log 2>&1";
        return std::system(command.c_str());
    };
    EXPECT_EQ(check("tests/gpu/*.py"), 0) << Read("log");
    std::ofstream(dir_ + "/lost.py")
        << "import os\n\n\ndef case(values):\n    return median(values), os.sep\n";
    EXPECT_NE(check(dir_ + "/lost.py"), 0);
    EXPECT_NE(Read("log").find("lost.py: median\n"), std::string::npos) << Read("log");
}

TEST_F(RunAll, ProgramsTakeTurns) {
    std::string command = "python3 tests/gpu/turns_check.py " + dir_ + " > " + dir_ + "/log 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << Read("log");
}

} // namespace
