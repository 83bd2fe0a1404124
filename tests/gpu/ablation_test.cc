/*
 * Promise: ablation.py marks only gains of 2 % beyond the spread of equal runs, and does not count
 * a run that left nothing out. All measurements are on disk at any time. A shell script stands in
 * for the host loop; no GPU.
 */
#include "tests/gpu/stand_ins.h"

namespace {

class Ablation : public StandIns {
  protected:
    void SetUp() override { Furnish("Some GPU", kAnyLibrary, "libcusplice-ablation.so"); }

    /* A host loop of so many ns with everything, in its second run of a turn `again`, and without
     * guests, repeat and the second exec. It stops where it is to take turns. */
    void Loop(const std::string &sum = "ab", const std::string &more = "") {
        Script("carry/hostloop", "[ -n \"$TESTS_TURNS\" ] && kill -STOP $$\n"
                                 "ns=1000 sum=ab\n"
                                 "case $CUSPLICE_WITHOUT in\n"
                                 "variants_guest) ns=1035 sum=" +
                                     sum +
                                     " ;;\n"
                                     "repeat) ns=1200 ;;\n"
                                     "second_exec) ns=900 ;;\n"
                                     "'') echo >> " +
                                     dir_ +
                                     "/runs\n"
                                     "    [ $(($(wc -l < " +
                                     dir_ +
                                     "/runs) % 2)) = 0 ] && ns=1020 ;;\n"
                                     "esac\n" +
                                     more +
                                     "\n"
                                     "echo '{\"wall_ns\": '$ns', \"checksum\": \"'$sum'\"}'");
    }

    int Run(const std::string &arguments, const std::string &out = "out") {
        return Python("ablation.py", arguments, out);
    }

    int Measure(const std::string &out, const std::string &more = "") {
        return Run("--without variants_guest,repeat,second_exec --only 'hostloop endless' " + more,
                   out);
    }
};

/* Equal runs differ by 0.020, and the median with everything is 1010. */
TEST_F(Ablation, MarksWhatDiffersBeyondTheSpread) {
    Loop();
    EXPECT_EQ(Measure("out"), 0) << Read("log");
    std::string table = Read("out/ablation.md");
    EXPECT_NE(table.find("| program | turns | spread | variants_guest | repeat | second_exec |"),
              std::string::npos)
        << table;
    EXPECT_NE(
        table.find("| hostloop endless | 3 | 0.020 | 1.025 | **1.188** gains | **0.891** costs |"),
        std::string::npos)
        << table;
}

TEST_F(Ablation, ProgramsThatStopTakeTurns) {
    Loop();
    EXPECT_EQ(Run("--without repeat --only 'hostloop 240' --turns 1"), 0) << Read("log");
    EXPECT_NE(Read("out/ablation.md").find("| hostloop 240 launches | 1 | 0.0"), std::string::npos)
        << Read("out/ablation.md");
}

TEST_F(Ablation, OtherResultsAreSaid) {
    Loop("cd");
    EXPECT_EQ(Measure("out"), 1) << Read("log");
    EXPECT_NE(Read("out/ablation.md").find("hostloop endless: results differ"), std::string::npos);
}

/* The library says so where it knows no switches, or not this one. */
TEST_F(Ablation, ARunThatLeftNothingOutIsNotCounted) {
    Loop("ab", "[ -n \"$CUSPLICE_WITHOUT\" ] && "
               "echo 'cusplice[1:1] warn config: CUSPLICE_WITHOUT: no such variable' >&2");
    EXPECT_EQ(Measure("out"), 1) << Read("log");
    std::string table = Read("out/ablation.md");
    EXPECT_NE(table.find("| hostloop endless | 3 | 0.020 | - | - | - |"), std::string::npos)
        << table;
    EXPECT_NE(table.find("CUSPLICE_WITHOUT: no such variable"), std::string::npos) << table;
}

TEST_F(Ablation, NoTurnBeginsWithoutTimeForIt) {
    Loop();
    EXPECT_EQ(Measure("out", "--deadline 1"), 2) << Read("log");
    EXPECT_NE(Read("log").find("0 of 3 turns: no time for more"), std::string::npos) << Read("log");
}

/* The third run with everything is the second turn's. */
TEST_F(Ablation, WhatWasMeasuredIsThereIfItIsKilled) {
    Loop("ab", "[ $(wc -l < " + dir_ + "/runs) = 3 ] && kill -9 $PPID");
    EXPECT_NE(Measure("out"), 0);
    EXPECT_NE(Read("out/ablation.md").find("| hostloop endless | 1 | 0.020 |"), std::string::npos)
        << Read("log");
}

TEST_F(Ablation, TurnsOfSeveralRunsAreAddedUp) {
    Loop();
    EXPECT_EQ(Measure("a", "--turns 1"), 0) << Read("log");
    EXPECT_EQ(Measure("b", "--turns 2"), 0) << Read("log");
    EXPECT_EQ(Run("--merge " + dir_ + "/a " + dir_ + "/b", "all"), 0) << Read("log");
    EXPECT_NE(Read("all/ablation.md").find("| hostloop endless | 3 | 0.020 | 1.025 |"),
              std::string::npos)
        << Read("all/ablation.md");
}

/* The stand-in tells by what is preloaded into it. */
TEST_F(Ablation, ALibraryIsComparedWithAnotherOneAndWithNone) {
    for (const char *name : {"/carry/libcusplice.so", "/carry/libold.so"})
        ASSERT_EQ(std::system(("cp " + std::string(kAnyLibrary) + " " + dir_ + name).c_str()), 0);
    Script("carry/hostloop", "ns=1000\n"
                             "case $LD_PRELOAD in\n"
                             "*/libold.so) ns=1100 ;;\n"
                             "'') ns=3000 ;;\n"
                             "esac\n"
                             "echo '{\"wall_ns\": '$ns', \"checksum\": \"ab\"}'");
    std::string old = dir_ + "/carry/libold.so";
    EXPECT_EQ(Run("--only 'hostloop endless' --against plain," + old), 0) << Read("log");
    std::string row = "| hostloop endless | 3 | 0.000 | **3.000** gains | **1.100** gains |";
    EXPECT_NE(Read("out/ablation.md").find(row), std::string::npos) << Read("out/ablation.md");
    EXPECT_EQ(Run("--against " + old + ".gone"), 2);
    EXPECT_NE(Read("log").find("there is no such file"), std::string::npos) << Read("log");
}

TEST_F(Ablation, AMechanismThatThereIsNotIsNamed) {
    EXPECT_EQ(Run("--without repeat,twin"), 2);
    EXPECT_NE(Read("log").find("no mechanism twin"), std::string::npos) << Read("log");
}

} // namespace
