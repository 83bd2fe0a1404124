// Promise: with log = info or debug the log says what was built, dropped and cut, with the counts
// of the stats file; nothing else changes.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sim {
namespace {

const Case kDecode = {"decode_loop", 0, "", "", {}};

Outcome Decode(const std::string &level, const std::map<std::string, std::string> &more = {}) {
    Setting setting;
    setting.preload = !level.empty();
    setting.args = {"--steps", "12"};
    if (setting.preload) {
        setting.env = more;
        setting.env["CUSPLICE_LOG"] = level;
        setting.env["CUSPLICE_HOLD_US"] = "1000000";
        setting.env["CUSPLICE_EAGER"] = "attention_decode";
    }
    return RunCase(kDecode, setting);
}

// Takes the library's lines out of a text: those that are left, and these without their heads.
std::string TakeLines(const std::string &text, std::string *lines) {
    std::istringstream in(text);
    std::string line, rest;
    while (std::getline(in, line)) {
        size_t head = line.find("] ");
        if (line.compare(0, 9, "cusplice[") == 0 && head != std::string::npos)
            *lines += line.substr(head + 2) + "\n";
        else
            rest += line + "\n";
    }
    return rest;
}

double Runs(const Json &stats) {
    double runs = stats.Number("breaks_beyond.runs");
    for (int i = 0; stats.Has("breaks_by_kernel." + std::to_string(i) + ".runs"); i++)
        runs += stats.Number("breaks_by_kernel." + std::to_string(i) + ".runs");
    return runs;
}

TEST(News, InfoSaysWhatIsBuiltAndDroppedAndEachBreakOnce) {
    Outcome plain = Decode(""), run = Decode("info");
    EXPECT_SAME(kDecode, plain, run);
    std::string said, rest = TakeLines(run.result.err, &said);
    EXPECT_EQ(rest, plain.result.err);
    EXPECT_EQ(run.result.out, plain.result.out);
    double built = run.stats.Number("built");
    EXPECT_GT(built, 0);
    EXPECT_EQ((double)Count(said, "info graph: built: "), built) << said;
    EXPECT_TRUE(Has(said, " to kv_append, in ")) << said;
    EXPECT_EQ(Count(said,
                    "info stream: graphs end at attention_decode: an eager rule names it (the "
                    "first time; log = debug says each)\n"),
              1u)
        << said;
    EXPECT_EQ(Count(said, "info stream: graphs end at cuStreamSynchronize: the host waits for the "
                          "stream (the first time"),
              1u)
        << said;
    EXPECT_EQ(Count("\n" + said, "\ndebug "), 0u) << said;
}

TEST(News, DebugSaysEachBreak) {
    Outcome plain = Decode(""), run = Decode("debug");
    EXPECT_SAME(kDecode, plain, run);
    std::string said, rest = TakeLines(run.result.err, &said);
    EXPECT_EQ(rest, plain.result.err);
    EXPECT_GT(Runs(run.stats), 20);
    EXPECT_EQ((double)Count(said, " stream: graphs end at "), Runs(run.stats)) << said;
    EXPECT_GT(Count(said, "debug stream: graphs end at attention_decode: an eager rule names it\n"),
              10u)
        << said;
}

TEST(News, NothingIsSaidUnasked) {
    Outcome plain = Decode(""), run = Decode("warn");
    EXPECT_EQ(run.result.err, plain.result.err);
}

std::string Said(const std::string &name, std::map<std::string, std::string> env,
                 const std::vector<std::string> &args, double *built) {
    Setting setting;
    setting.preload = true;
    setting.args = args;
    setting.env = env;
    setting.env["CUSPLICE_LOG"] = "debug";
    Outcome run = RunCase(CaseOf(name), setting);
    std::string said;
    TakeLines(run.result.err, &said);
    *built = run.stats.Number("built");
    return said;
}

TEST(News, TheReasonIsTheRightOne) {
    const struct {
        std::string scenario;
        std::map<std::string, std::string> env;
        std::vector<std::string> args;
        const char *says;
    } rows[] = {
        {"launch_bound", {}, {}, ": its ops are in graphs of other sizes now\n"},
        {"module_reload", {}, {}, ": code of the context went\n"},
        {"func_attribute", {}, {}, ": the program changed a function of it\n"},
        {"memory_late", {}, {}, ": its stream or context went\n"},
        {"never_repeat", {}, {"--steps", "300"}, "info stream: graphs do not pay on stream 0x"},
        {"launch_bound",
         {{"CUSPLICE_GRAPH_MB", "1"}},
         {"--steps", "60"},
         "; deferred ops that go out one by one: "},
    };
    for (const auto &row : rows) {
        double built = 0;
        std::string said = Said(row.scenario, row.env, row.args, &built);
        EXPECT_TRUE(Has(said, row.says)) << row.scenario << "\n" << said.substr(0, 4000);
        EXPECT_EQ((double)Count(said, "info graph: built: "), built) << row.scenario;
    }
}

} // namespace
} // namespace sim
