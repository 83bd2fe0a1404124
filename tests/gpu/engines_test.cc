/*
 * Promise: engines/try_all.py runs the variants of a program in turns and compares what they come
 * to; a variant that fails or differs is said, nothing begins after the deadline, and several files
 * make one table. Its program `busy` needs no GPU, and any object stands in for the library.
 */
#include "tests/gpu/stand_ins.h"

#include <filesystem>

namespace {

class Engines : public StandIns {
  protected:
    int Try(const std::string &arguments, const std::string &script = "try_all.py") {
        std::string command = "cd tests/gpu/engines && PATH=" + dir_ + "/bin:$PATH " + with_ +
                              " TMPDIR=" + dir_ + " python3 " + script + " --cpu --lib " + dir_ +
                              "/carry/libcusplice.so --out " + dir_ + "/out " + arguments + " > " +
                              dir_ + "/log 2>&1";
        return WEXITSTATUS(std::system(command.c_str()));
    }

    std::string with_;
};

TEST_F(Engines, VariantsTakeTurnsAndAreCompared) {
    ASSERT_EQ(Try("busy --steps 40 --name one --markdown " + dir_ + "/one.md"), 0) << Read("log");
    std::string table = Read("one.md");
    EXPECT_NE(table.find("| busy | no GPU"), std::string::npos) << table << Read("log");
    EXPECT_NE(table.find("| equal, one run |"), std::string::npos) << table;
    EXPECT_NE(Read("out/one.json").find("\"turns\": true"), std::string::npos);
    EXPECT_NE(Read("out/one.json").find("\"host_ms\": ["), std::string::npos);
    EXPECT_NE(Read("out/one.json").find("\"cpus\": 1"), std::string::npos) << "as programs.py has it";
}

TEST_F(Engines, OneByOne) {
    ASSERT_EQ(Try("busy --steps 20 --one-by-one --rounds 2"), 0) << Read("log");
    EXPECT_NE(Read("log").find(", equal |"), std::string::npos) << Read("log");
}

TEST_F(Engines, OtherResultsAndFailuresAreSaid) {
    with_ = "TRIAL_BUSY=differs";
    ASSERT_EQ(Try("busy --steps 20 --markdown -"), 0) << Read("log");
    EXPECT_NE(Read("log").find("**differ**"), std::string::npos) << Read("log");
    EXPECT_NE(Read("log").find("busy             observe: "), std::string::npos) << Read("log");
    with_ = "";
    ASSERT_EQ(Try("busy --steps 20 --no-diagnose --variants plain,pre,pre+busy=differs"), 0);
    std::string log = Read("log");
    EXPECT_NE(log.find("**differ**"), std::string::npos) << log;
    EXPECT_GT(log.find("**differ**"), log.find("busy pre+busy=differs")) << log;
    EXPECT_NE(log.find(", equal, one run |"), std::string::npos) << log;
    std::filesystem::copy(dir_ + "/carry/libcusplice.so", dir_ + "/carry/libcusplice-other.so");
    with_ = "TRIAL_BUSY=other";
    ASSERT_EQ(Try("busy --steps 20 --no-diagnose --variants plain,pre,pre+other"), 0);
    log = Read("log");
    EXPECT_NE(log.find("**differ**"), std::string::npos) << log;
    EXPECT_GT(log.find("**differ**"), log.find("busy pre+other")) << log;
    with_ = "TRIAL_BUSY=fails";
    ASSERT_EQ(Try("busy --steps 20 --no-diagnose --markdown -"), 0) << Read("log");
    EXPECT_NE(Read("log").find("- busy pre: rc 3"), std::string::npos) << Read("log");
}

/* The stand-in for the ablation library does nothing, so its time is the plain one. */
TEST_F(Engines, ARunThatHangsSaysWhere) {
    with_ = "TRIAL_BUSY=hangs";
    Try("busy --one-by-one --variants pre --rounds 1 --no-diagnose --patience 0.1 --name hung");
    EXPECT_NE(Read("out/hung.json").find("more than 9 s"), std::string::npos) << Read("log");
    EXPECT_NE(Read("out/hung.json").find("busy.py\\\", line"), std::string::npos) << Read("log");
}

TEST_F(Engines, WithoutLaunchesIsAColumn) {
    ASSERT_EQ(Try("busy --steps 20 --variants plain,pre,floor --markdown " + dir_ + "/one.md"), 0)
        << Read("log");
    double tenth = 0, floor = 0;
    std::string table = Read("one.md"), row = table.substr(table.find("| busy | no GPU"));
    ASSERT_EQ(sscanf(row.c_str(), "| busy | %*[^|] | %*[^|] | %*[^|] | %*[^|] | %lf | %lf |",
                     &tenth, &floor),
              2)
        << table;
    EXPECT_GT(floor, 0.1) << table;
    EXPECT_EQ(table.find("busy floor"), std::string::npos) << "it has no row";
}

/* Twice 20 steps, plain once and then preloaded until 12 s are over. */
TEST_F(Engines, ASoakSeesWhatAddsUp) {
    const std::string words = "busy --steps 20 --times 2 --minutes 0.2";
    with_ = "TRIAL_BUSY=says";
    EXPECT_EQ(Try(words, "soak.py"), 0) << Read("log");
    EXPECT_NE(Read("log").find(": as plain"), std::string::npos) << Read("log");
    EXPECT_NE(Read("log").find(" 0 in which something did not hold"), std::string::npos);
    EXPECT_NE(Read("log").find(" 0 for which there was no time"), std::string::npos);
    EXPECT_EQ(Try("busy --steps 20 --times 1 --minutes 0.2", "soak.py"), 2);
    EXPECT_NE(Read("log").find("--times: 2 or more"), std::string::npos) << Read("log");
    const char *const faults[][2] = {{"miscounts", "its counters do not add up"},
                                     {"grows", "host_mib grew by "},
                                     {"differs", "its results are others"},
                                     {"nothing", "it does not say why"},
                                     {"fails", "it ended with 3"}};
    for (const auto &fault : faults) {
        with_ = std::string("TRIAL_BUSY=") + fault[0];
        EXPECT_EQ(Try(words, "soak.py"), 1) << Read("log");
        EXPECT_NE(Read("log").find(fault[1]), std::string::npos) << Read("log");
    }
}

TEST_F(Engines, NothingBeginsThatWouldOutlastTheDeadline) {
    ASSERT_EQ(Try("busy --deadline 9"), 0) << Read("log");
    EXPECT_NE(Read("log").find("no time left"), std::string::npos) << Read("log");
}

TEST_F(Engines, FilesAreMerged) {
    ASSERT_EQ(Try("busy --steps 20 --name one"), 0) << Read("log");
    ASSERT_EQ(Try("busy --deadline 1 --name two"), 0) << Read("log");
    std::string files = dir_ + "/out/one.json " + dir_ + "/out/two.json";
    ASSERT_EQ(Try("--merge " + files), 0) << Read("log");
    EXPECT_NE(Read("log").find("| busy | no GPU"), std::string::npos) << Read("log");
    EXPECT_EQ(Read("log").find("no time left"), std::string::npos) << Read("log");
}

TEST_F(Engines, NamesAndVariantsAreChecked) {
    EXPECT_EQ(Try("no-such-thing"), 2);
    EXPECT_EQ(Try("busy --variants plain,cfg"), 2);
    EXPECT_NE(Read("log").find("busy has no cfg"), std::string::npos) << Read("log");
    EXPECT_EQ(Try("--list"), 0);
    EXPECT_NE(Read("log").find("vllm-compiled"), std::string::npos);
}

} // namespace
