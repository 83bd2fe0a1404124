// Promise: a stranger's code runs only if the user allows it. A trace sets nothing but how its work
// is split into graphs.
#include "tests/security/hostile.h"
#include "tests/security/stage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/trace/synth.h"

namespace security {
namespace {

// Facts as the library writes them, with these options.
std::string Facts(const std::string &options) {
    return "{\"gpu\":\"Simulated H200\",\"compute_capability\":90,\"options\":{\"warmup\":\"2\"" +
           options + "},\"rules\":[]}";
}

Strings Replay(const std::string &trace, const Strings &more = {}) {
    Strings words = {"replay", "--strategy", "as-recorded", "--repeat", "1",
                     "--pace", "none",       "--format",    "json"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(trace);
    return words;
}

Strings Bench(const std::string &trace, const Strings &more = {}) {
    Strings words = {"bench",   "--strategy", "piecewise", "--segments", "8",
                     "--break", "none",       "--rounds",  "1",          "--pace",
                     "none",    "--format",   "json"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(trace);
    return words;
}

std::string TraceOf(unsigned user, mode_t mode = 0600) {
    std::string path = ReplayableWithFacts(Facts(""));
    EXPECT_EQ(chown(path.c_str(), user, user), 0);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
}

bool IsEmpty(const std::string &folder) {
    return std::filesystem::is_empty(folder);
}

double InGraphs(const Result &result) {
    sim::Json json = sim::ParseJson(result.out);
    EXPECT_TRUE(json.valid) << result.err;
    return json.Number("rows.0.in_graphs");
}

TEST(Replay, HelpSaysThatCodeRuns) {
    for (const char *verb : {"replay", "bench"}) {
        std::string help = Ran(Launcher({verb, "--help"})).out;
        EXPECT_TRUE(Has(help, "--trust")) << help;
        EXPECT_TRUE(Has(help, "runs the GPU code")) << help;
    }
}

TEST(Replay, TheUsersOwnTraceIsPlayed) {
    std::string trace = TraceOf(geteuid());
    for (const Strings &words : {Replay(trace), Bench(trace)}) {
        Result result = Ran(Launcher(words));
        EXPECT_EQ(result.status, 0) << words[0] << result.err;
    }
    if (!IsRoot())
        return;
    trace = TraceOf(kUser);
    EXPECT_EQ(Ran(Launcher(Replay(trace), {}, kUser)).status, 0);
}

void ExpectThatTrustIsWanted(const std::string &trace, unsigned user) {
    for (const Strings &words : {Replay(trace), Bench(trace)}) {
        Result refused = Ran(Launcher(words, {}, user));
        EXPECT_TRUE(Refused(refused, "--trust")) << words[0];
        EXPECT_TRUE(Has(refused.err, trace)) << refused.err;
        EXPECT_EQ(refused.out, "") << "nothing was run";
    }
    for (const Strings &words : {Replay(trace, {"--trust"}), Bench(trace, {"--trust"})}) {
        Result result = Ran(Launcher(words, {}, user));
        EXPECT_EQ(result.status, 0) << words[0] << result.err;
    }
}

TEST(Replay, ATraceOfAnotherUserIsPlayedWithTrustAlone) {
    NEEDS_ROOT();
    ExpectThatTrustIsWanted(TraceOf(kOther, 0644), 0);
    ExpectThatTrustIsWanted(TraceOf(kOther, 0644), kUser);
}

TEST(Replay, ATraceThatOthersMayWriteIsPlayedWithTrustAlone) {
    ExpectThatTrustIsWanted(TraceOf(geteuid(), 0666), 0);
}

// Whose the file is counts, not whose the link is.
TEST(Replay, ALinkMakesNoTraceTheUsersOwn) {
    NEEDS_ROOT();
    std::string link = Folder() + "/own.cst";
    Link(link, TraceOf(kOther, 0644));
    EXPECT_TRUE(Refused(Ran(Launcher(Replay(link))), "--trust"));
}

// The player is a program that anybody may start; and the file may be another one by then.
TEST(Replay, ThePlayerItselfLooks) {
    NEEDS_ROOT();
    std::string trace = TraceOf(kOther, 0644);
    Child player = Launcher({"replay"});
    player.command = {Staged("lib/cusplice/player"), "--pace", "none", trace};
    Result result = Ran(player);
    EXPECT_TRUE(Ended(result));
    EXPECT_NE(result.status, 0) << result.out;
    EXPECT_TRUE(Has(result.out + result.err, "--trust")) << result.out << result.err;
    player.command = {Staged("lib/cusplice/player"), "--trust", "--pace", "none", trace};
    EXPECT_EQ(Ran(player).status, 0);
}

TEST(Replay, OnATerminalItIsAskedAndNoMeansNo) {
    const struct {
        const char *answer;
        bool plays;
    } rows[] = {{"n\n", false}, {"\n", false}, {"nonsense\n", false}, {"y\n", true}};
    for (const auto &row : rows) {
        int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
        int end = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(write(terminal, row.answer, strlen(row.answer)), 1);
        Child child = Launcher(Replay(TraceOf(geteuid(), 0666)));
        child.descriptors = {{0, end}, {2, end}};
        Result result = Ran(child);
        EXPECT_TRUE(Ended(result));
        EXPECT_EQ(result.status, row.plays ? 0 : 1) << row.answer;
        EXPECT_EQ(result.out.empty(), !row.plays) << row.answer;
        close(end);
        close(terminal);
    }
}

// ---- recorded options ----

// A mode that was recorded is taken, or the tests below would prove nothing.
TEST(Replay, RecordedOptionsOfGraphsAreTaken) {
    Result eager = Ran(Launcher(Replay(ReplayableWithFacts(Facts(",\"mode\":\"eager\"")))));
    EXPECT_EQ(eager.status, 0) << eager.err;
    EXPECT_EQ(InGraphs(eager), 0);
    Result graphs = Ran(Launcher(Replay(ReplayableWithFacts(Facts(",\"mode\":\"piecewise\"")))));
    EXPECT_GT(InGraphs(graphs), 50) << graphs.out << graphs.err;
}

std::string FilesIn(const std::string &folder) {
    return Facts(",\"mode\":\"piecewise\",\"cache_dir\":\"" + folder +
                 "/cache\",\"cache_every\":"
                 "\"1\",\"stats\":\"" +
                 folder +
                 "/stats\",\"stats_every\":\"1\",\"log\":\"debug\","
                 "\"log_file\":\"" +
                 folder + "/log\",\"record\":\"" + folder +
                 "/t.cst\","
                 "\"record_replayable\":\"yes\",\"verify_report\":\"" +
                 folder +
                 "/report\","
                 "\"why\":\"yes\",\"live\":\"yes\"");
}

TEST(Replay, NoFileIsWrittenForARecordedOption) {
    std::string folder = Folder(), pages = Folder();
    ASSERT_EQ(chmod(pages.c_str(), 0700), 0);
    std::string trace = ReplayableWithFacts(FilesIn(folder));
    Result result = Ran(Launcher(Replay(trace), {{"XDG_RUNTIME_DIR", pages}}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_GT(InGraphs(result), 50) << result.out << result.err;
    EXPECT_FALSE(Has(result.err, "debug")) << result.err;
    EXPECT_TRUE(IsEmpty(folder) && IsEmpty(pages));
}

TEST(Replay, NoFileIsWrittenForARecordedOptionWhatIf) {
    std::string folder = Folder();
    std::string trace = TraceWith([&](Synth *s) { s->Facts(FilesIn(folder)); });
    for (const Strings &words : {Strings{"whatif", trace}, Strings{"whatif", "--sweep", trace},
                                 Strings{"whatif", "--set", "warmup=3", trace}}) {
        Result result = Ran(Launcher(words));
        EXPECT_EQ(result.status, 0) << result.err;
        EXPECT_FALSE(Has(result.err, "debug")) << result.err;
        EXPECT_TRUE(IsEmpty(folder)) << words[1];
    }
}

TEST(Replay, NoBoundOfMemoryIsTakenFromATrace) {
    for (const char *bound : {",\"graph_mb\":\"0\"", ",\"graph_mb\":\"1048576\",\"host_mb\":\"1\"",
                              ",\"host_mb\":\"1048576\",\"cache_mb\":\"256\""}) {
        Result result = Ran(Launcher(Replay(ReplayableWithFacts(Facts(bound)))));
        EXPECT_EQ(result.status, 0) << bound << result.err;
        EXPECT_GT(InGraphs(result), 50) << bound << result.err;
    }
}

// Facts are text of somebody's: an option's value makes no line, and no second option.
TEST(Replay, AValueOfAnOptionIsOneValue) {
    std::string folder = Folder();
    for (const std::string &value : {"piecewise\\nlog_file = " + folder + "/log\\nlog = debug",
                                     "piecewise;CUSPLICE_STATS=" + folder + "/stats",
                                     "piecewise\\u0000stats=" + folder + "/s"}) {
        std::string trace = ReplayableWithFacts(Facts(",\"mode\":\"" + value + "\""));
        EXPECT_TRUE(Ended(Ran(Launcher(Replay(trace)))));
        EXPECT_TRUE(Ended(Ran(Launcher({"whatif", trace}))));
        EXPECT_TRUE(IsEmpty(folder)) << value;
    }
}

} // namespace
} // namespace security
