/*
 * Promise: on the simulated driver, where it is known which calls wait, the gate program tells
 * waiting calls from others, and calls that spoil a capture from others. Each row that is not
 * called has a reason.
 */
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace {

/* Runs the program; its standard output. The limit is the time after which a call counts as
 * waiting: one that returns ends the trial at once, so that a slow machine costs no more. */
std::string RunGate(const std::string &options) {
    std::string command = std::string("LD_LIBRARY_PATH=$(dirname ") + getenv("GATE_SIMULATOR") +
                          ") CUSIM_DELAY_US=0 " + getenv("GATE_PROGRAM") + " " + options;
    FILE *pipe = popen(command.c_str(), "r");
    std::string text;
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0)
        text.append(buffer, n);
    int status = pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << options;
    return text;
}

/* The four columns of one row. */
std::string Row(const std::string &name, int limit_ms) {
    std::string text =
        RunGate("--only " + name + " --short 50 --limit " + std::to_string(limit_ms));
    size_t at = text.find("\n" + name + ",");
    if (at == std::string::npos)
        return text;
    at = text.find(',', at + name.size() + 2) + 1;
    std::string line = text.substr(at, text.find('\n', at) - at);
    return line.substr(0, line.rfind(','));
}

TEST(GateProgram, TellsWaitingFromReturning) {
    EXPECT_EQ(Row("cuCtxGetDevice", 10000), "returned,returned,returned,returned");
    EXPECT_EQ(Row("cuMemFree_v2", 50), "waited,waited,returned+refused+invalidated,waited");
    EXPECT_EQ(Row("deep:launches-2000", 50), "waited,waited,waited,waited");
}

TEST(GateProgram, TellsASpoiltCapture) {
    EXPECT_EQ(Row("cuMemAlloc_v2", 10000),
              "returned,returned,returned+refused+invalidated,returned");
    EXPECT_EQ(Row("own:instantiate-100", 10000), "returned,returned,returned,returned");
}

/* What stream/room.c relies on, and what it is there for. */
TEST(GateProgram, TellsRoomForGraphsFromGrowth) {
    EXPECT_EQ(Row("own:first-room", 10000), "returned,returned,returned,returned");
    EXPECT_EQ(Row("own:room-again", 10000), "returned,returned,returned,returned");
    EXPECT_EQ(Row("own:growth", 50).substr(0, 14), "waited,waited,");
}

/* No call of an own row fails, or the row says nothing of those behind it. */
TEST(GateProgram, OwnRowsHaveNoErrors) {
    const char *const names[] = {
        "own:first-room",       "own:room-again",       "own:eager",
        "own:node-questions",   "own:stream-questions", "own:context-questions",
        "own:memory-questions", "own:event-create",     "own:stream-wait"};
    std::string only;
    for (const char *name : names)
        only += (only.empty() ? "" : ",") + std::string(name);
    std::string table = RunGate("--limit 10000 --only " + only);
    for (const char *name : names)
        EXPECT_NE(table.find("\n" + std::string(name) + ",OWN,returned,"), std::string::npos)
            << table;
    EXPECT_EQ(table.find("code "), std::string::npos) << table;
}

/* With the driver's locks the simulator answers as the table does. */
TEST(GateProgram, TellsTheMeasuredLocks) {
    setenv("CUSIM_LOCKS", "measured", 1);
    EXPECT_EQ(Row("cuMemAlloc_v2", 50), "returned,waited,returned+refused+invalidated,returned");
    EXPECT_EQ(Row("cuMemFree_v2", 50), "waited,waited,returned+refused+invalidated,waited+locked");
    EXPECT_EQ(Row("own:capture-100", 200), "returned,waited,returned,returned");
    EXPECT_EQ(Row("own:launch", 10000), "returned,returned,returned,returned");
    EXPECT_EQ(Row("own:growth", 50), "waited,waited,waited,waited+locked");
    unsetenv("CUSIM_LOCKS");
}

TEST(GateProgram, SurvivesARowThatRuinsItsProcess) {
    EXPECT_EQ(Row("cuDevicePrimaryCtxReset_v2", 50), "waited,waited,waited,waited");
}

TEST(GateProgram, EveryRowIsCalledOrHasItsReason) {
    std::istringstream list(RunGate("--list"));
    std::string line;
    while (std::getline(list, line))
        EXPECT_GT(line.size() - line.find(':'), 10u) << line;
    EXPECT_EQ(RunGate("--list").find("PASS cuEvent"), std::string::npos);
}

} // namespace
