/*
 * Promise: on the simulated driver the facts program prints a line for each fact, also where a
 * trial cannot be made, hangs, or comes too late. What the simulator answers is not asked here,
 * except where the answer shows that the program tells a waiting call from one that returns.
 */
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

namespace {

struct Output {
    int status;
    std::string text; /* standard output */
};

Output RunFacts(const std::string &options, const std::string &settings = "CUSIM_DELAY_US=0") {
    std::string command = std::string("LD_LIBRARY_PATH=$(dirname ") + getenv("FACTS_SIMULATOR") +
                          ") CUSIM_MEM_MB=512 " + settings + " " + getenv("FACTS_PROGRAM") + " " +
                          options;
    FILE *pipe = popen(command.c_str(), "r");
    Output run;
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0)
        run.text.append(buffer, n);
    int status = pclose(pipe);
    run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return run;
}

/* By name: what stands behind it. A line that is no fact has the name "". */
std::map<std::string, std::string> Facts(const std::string &text) {
    std::map<std::string, std::string> facts;
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
        size_t colon = line.find(": ");
        bool fact = line.compare(0, 5, "fact ") == 0 && colon != std::string::npos &&
                    line.find(" (") != std::string::npos && line.back() == ')';
        std::string name = fact ? line.substr(5, colon - 5) : "";
        EXPECT_EQ(facts.count(name), 0u) << line;
        facts[name] = fact ? line.substr(colon + 2) : line;
    }
    return facts;
}

TEST(FactsProgram, EachFactHasItsLine) {
    Output list = RunFacts("--list");
    Output run = RunFacts("--seconds 600");
    EXPECT_EQ(list.status, 0);
    EXPECT_EQ(run.status, 0);
    auto facts = Facts(run.text);
    EXPECT_EQ(facts.count(""), 0u) << facts[""];
    std::istringstream names(list.text);
    std::string name;
    size_t count = 0;
    for (; std::getline(names, name); count++)
        EXPECT_EQ(facts.count(name), 1u) << name;
    EXPECT_EQ(count, facts.size());
    EXPECT_GT(count, 60u);
    for (const auto &fact : facts) {
        EXPECT_EQ(fact.second.find("hung"), std::string::npos) << fact.first << fact.second;
        if (fact.first.rfind("upload-bad/", 0) == 0)
            continue; // it asks whether the process dies
        EXPECT_EQ(fact.second.find("signal"), std::string::npos) << fact.first << fact.second;
    }
}

TEST(FactsProgram, TellsWaitingFromReturning) {
    auto facts = Facts(RunFacts("--only 'witness-gated-kept/*,free-twice/done'").text);
    EXPECT_EQ(facts.size(), 2u);
    EXPECT_NE(facts["witness-gated-kept/1000"].find("waits for a gate"), std::string::npos);
    EXPECT_EQ(facts["free-twice/done"],
              "free returns; again gives 1 CUDA_ERROR_INVALID_VALUE (the context is usable)");
}

TEST(FactsProgram, TellsEdgesOfACaptureAndWaitsForABranch) {
    auto facts = Facts(RunFacts("--only 'fork-*'").text);
    EXPECT_EQ(facts.size(), 8u);
    EXPECT_EQ(facts["fork-dependencies"].find("behind an earlier node: exactly these; two nodes: "
                                              "exactly these; none: exactly these; "),
              0u)
        << facts["fork-dependencies"];
    for (const char *name : {"fork-left/untimed", "fork-left/timed"})
        EXPECT_EQ(facts[name].find("the stream waits, "), 0u) << facts[name];
    EXPECT_EQ(facts["fork-left-twice"].find("the stream goes on behind the second"), 0u)
        << facts["fork-left-twice"];
    EXPECT_EQ(facts["fork-left-late"].find("the wait passes "), 0u) << facts["fork-left-late"];
}

TEST(FactsProgram, ATrialThatCannotBeMadeSaysWhy) {
    EXPECT_EQ(RunFacts("--only pool-cost/idle", "CUSIM_FAULT=cuMemPoolCreate:1:2").text,
              "fact pool-cost/idle: not known (cuMemPoolCreate gives 2 "
              "CUDA_ERROR_OUT_OF_MEMORY)\n");
}

/* The first trial takes longer than the program may. */
TEST(FactsProgram, ATrialThatHangsIsEndedAndLaterOnesSaySo) {
    Output run =
        RunFacts("--seconds 1 --only record-calls,pool-cost/idle", "CUSIM_DELAY_US=60000000");
    EXPECT_EQ(run.status, 0);
    auto facts = Facts(run.text);
    EXPECT_EQ(facts["record-calls"].find("not known (hung in cu"), 0u) << run.text;
    EXPECT_EQ(facts["pool-cost/idle"], "not known (the time of the program was over)");
}

TEST(FactsProgram, WrongOptionsAndNoDriverAreErrors) {
    EXPECT_EQ(RunFacts("--only no-such-fact").status, 2);
    EXPECT_EQ(RunFacts("--seconds 0").status, 2);
    EXPECT_EQ(RunFacts("--help").status, 0);
    EXPECT_EQ(RunFacts("", "CUSIM_DELAY_US=0 CUSIM_DEVICES=0").status, 2);
    EXPECT_EQ(RunFacts("", "LD_LIBRARY_PATH=/nowhere").status, 2);
}

} // namespace
