// Promise: the tools read or refuse any file in bounded time and memory, do nothing else for it,
// and say what is wrong with it.
#include "tests/security/hostile.h"
#include "tests/security/stage.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/export/query.h"
#include "tests/player/made.h"

namespace security {
namespace {

constexpr double kMegabytes = 200;

// What a verb makes of it, within the bounds.
Result Verb(const Strings &arguments) {
    Result result = Ran(Launcher(arguments));
    std::string what = arguments[0] + " " + arguments[1];
    EXPECT_TRUE(Ended(result)) << what;
    bool bare = sim::Sanitizer().empty() && !getenv("CUS_TEST_EMULATED");
    EXPECT_LT(result.peak_mb, bare ? kMegabytes : 10 * kMegabytes) << what;
    EXPECT_LE(result.status, 1) << what << result.err;
    EXPECT_TRUE(result.status == 0 || Refused(result, "cusplice: ")) << what << result.err;
    return result;
}

// Each verb that reads a trace, with files of its own to write.
std::vector<Strings> VerbsOn(const std::string &trace) {
    std::string folder = Folder(), good = sim::Runfile("tests/golden/trace-v1.cst");
    std::vector<Strings> verbs = {
        {"info", trace},
        {"dump", trace},
        {"dump", "--dot", trace},
        {"report", "kernels", "--names", "demangled", trace},
        {"report", "segments", trace},
        {"report", "cache", trace},
        {"report", "breaks", trace},
        {"report", "coverage", trace},
        {"report", "--html", folder + "/t.html", trace},
        {"diff", trace, good},
        {"trim", "--pack", "-o", folder + "/t.cst", trace},
        {"whatif", trace},
        {"report", trace},
        {"rules", trace},
        {"repair", "--force", "-o", folder + "/t.repaired.cst", trace},
        {"export", "--jsonl", folder + "/t.jsonl", trace},
        {"export", "--perfetto", folder + "/t.json", trace},
        {"export", "--sqlite", folder + "/t.sqlite", trace},
        {"replay", "--strategy", "eager", trace},
        {"bench", "--strategy", "eager", trace},
    };
    return verbs;
}

void ExpectBounds(const std::string &trace) {
    for (const Strings &verb : VerbsOn(trace))
        Verb(verb);
}

// Otherwise all of these would be refused for the same, wrong reason.
TEST(Tools, TheOrdinaryTraceIsReadByAll) {
    std::string trace = TraceWith([](Synth *) {});
    for (const Strings &verb : VerbsOn(trace)) {
        bool plays = verb[0] == "replay" || verb[0] == "bench";
        EXPECT_EQ(Verb(verb).status, plays ? 1 : 0) << verb[0];
    }
    trace = ReplayableWith([](Made *m) { return m->Module(); });
    Result result = Ran(Launcher({"replay", "--strategy", "eager", "--repeat", "1", trace}));
    EXPECT_EQ(result.status, 0) << result.err;
}

// ---- replayable traces ----

// The player copies code out of a file; where it goes is for the file to say only within its
// bounds.
TEST(Tools, PartsOfAnImageThatHaveGapsOrLieOutsideAreRefused) {
    const std::vector<Part> rows[] = {
        {{0, 8}, {1 << 20, 4096}},
        {{0, 8}, {0x4141414141410000, 64}},
        {{0, 8}, {4, 2000}},
        {{0, 8}, {8, 8}},
        {{UINT64_MAX - 7, 64}},
        {{4, 4}},
        {},
        {{0, 4}},
    };
    for (const auto &parts : rows) {
        std::string trace = ImageOf(8, parts);
        for (const char *verb : {"replay", "bench"})
            EXPECT_TRUE(Refused(Verb({verb, "--strategy", "eager", trace}), trace)) << verb;
    }
}

TEST(Tools, AnImageThatIsSaidToBeEndlessIsRefused) {
    for (uint64_t bytes : {uint64_t{1} << 33, uint64_t{1} << 50, UINT64_MAX, UINT64_MAX - 7}) {
        std::string trace = ImageOf(bytes, {{0, 8}});
        EXPECT_TRUE(Refused(Verb({"replay", "--strategy", "eager", trace}), "code"));
    }
}

TEST(Tools, AModuleThatIsNoFileIsNamedAndNotWaitedFor) {
    std::string folder = Folder(), fifo = folder + "/fifo", link = folder + "/zero";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
    Link(link, "/dev/zero");
    for (const std::string &path :
         {fifo, link, folder, std::string("/dev/zero"), std::string("/dev/stdin"),
          std::string("/proc/self/mem"), std::string("/nonexistent"), std::string("relative")}) {
        for (uint64_t bytes : {uint64_t{64}, uint64_t{1} << 40}) {
            std::string trace = ImageInFile(path, 0, bytes);
            EXPECT_TRUE(Refused(Verb({"replay", "--strategy", "eager", trace}), path));
        }
    }
}

TEST(Tools, AModuleBeyondItsFileIsNamed) {
    std::string file = Write(Folder() + "/lib.so", std::string(1000, 'x'));
    const struct {
        uint64_t offset, bytes;
        bool wraps; // no number holds where it ends: the trace itself is wrong
    } rows[] = {{0, 1001, false}, {1000, 1, false},      {0, UINT64_MAX, false},
                {0, 0, false},    {UINT64_MAX, 2, true}, {8, UINT64_MAX - 4, true}};
    for (const auto &row : rows) {
        std::string trace = ImageInFile(file, row.offset, row.bytes);
        EXPECT_TRUE(Refused(Verb({"replay", "--strategy", "eager", trace}),
                            row.wraps ? trace + ": corrupt" : file))
            << row.offset << " " << row.bytes;
    }
}

// ---- traces ----

TEST(Tools, NamesThatDoubleAreBounded) {
    for (unsigned depth : {20, 24, 30}) {
        ExpectBounds(TraceWith([&](Synth *s) { s->Op(1, s->Kernel(NameThatDoubles(depth))); }));
    }
}

TEST(Tools, TimeIsNoSquareOfStreamsOfTheGpu) {
    std::string trace = GpuStreams(60000);
    EXPECT_EQ(Verb({"info", trace}).status, 0);
    EXPECT_EQ(Verb({"report", "kernels", trace}).status, 0);
}

TEST(Tools, PackedBlocksAreNoBombs) {
    std::string trace = Bomb();
    ExpectBounds(trace);
    EXPECT_TRUE(Refused(Verb({"info", trace}), trace))
        << "2.5 GB of records are not read in 200 MB";
}

TEST(Tools, PackedBlocksThatLieAboutTheirLengthAreRefused) {
    size_t real = 100 * sizeof(cst_gpu);
    EXPECT_EQ(Verb({"info", BlockOf(real, real)}).status, 0);
    for (uint64_t raw : {uint64_t{8}, uint64_t{real - 8}, uint64_t{real + 8}, uint64_t{1} << 40,
                         UINT64_MAX, UINT64_MAX - 63})
        EXPECT_TRUE(Refused(Verb({"info", BlockOf(raw, real)}), "block")) << raw;
}

// Facts are JSON: nested deeply, or of many members.
TEST(Tools, FactsTakeNoStackAndNoSquareOfTime) {
    std::string deep(1000000, '['), members = "\"mode\":\"piecewise\"";
    for (int i = 0; i < 50000; i++)
        members += ",\"key" + std::to_string(i) + "\":\"" + std::to_string(i) + "\"";
    for (const std::string &facts :
         {"{\"argv\":" + deep + std::string(deep.size(), ']') + "}", "{\"argv\":" + deep,
          "{" + members + ",\"options\":{" + members + "},\"rules\":[]}",
          std::string("{\"options\":\"\\ud800\\"), std::string("\0{", 2)}) {
        ExpectBounds(TraceWith([&](Synth *s) { s->Facts(facts); }));
        Verb({"replay", "--strategy", "as-recorded", "--repeat", "1", ReplayableWithFacts(facts)});
    }
}

TEST(Tools, ATraceThatIsNoFileIsRefused) {
    std::string folder = Folder(), fifo = folder + "/fifo", zero = folder + "/zero.cst";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
    Link(zero, "/dev/zero");
    for (const std::string &path : {fifo, zero, folder, std::string("/dev/zero"),
                                    std::string("/dev/null"), std::string("/proc/self/mem")}) {
        for (const char *verb : {"info", "replay", "whatif", "import"})
            EXPECT_TRUE(Refused(Verb({verb, path}), path)) << verb;
    }
}

// ---- databases ----

TEST(Tools, ViewsAreNoTablesOfAProfile) {
    for (const std::string &path :
         {EndlessView("CUPTI_ACTIVITY_KIND_KERNEL"), EndlessView("cupti_activity_kind_kernel"),
          HugeText(), HugeColumn()}) {
        std::string out = Folder() + "/out.cst";
        EXPECT_TRUE(Refused(Verb({"import", "-o", out, path}), path));
        EXPECT_FALSE(sim::FileExists(out) || sim::FileExists(out + ".partial"));
    }
}

TEST(Tools, ADatabaseReachesNoOtherFile) {
    std::string victim = Folder() + "/victim", path = ReachingOut(victim);
    EXPECT_TRUE(Refused(Verb({"import", "-o", Folder() + "/out.cst", path}), path));
    EXPECT_FALSE(sim::FileExists(victim));
}

// ---- what is made of a trace ----

TEST(Tools, WhatIsMadeOfATraceHasItsMode) {
    for (mode_t mode : {0600, 0640, 0644}) {
        std::string folder = Folder(), trace = TraceWith([](Synth *) {});
        ASSERT_EQ(chmod(trace.c_str(), mode), 0);
        for (const Strings &verb : VerbsOn(trace)) {
            const std::string &out = verb.size() > 3 ? verb[verb.size() - 2] : "";
            // Nothing is damaged, and so repair makes nothing.
            if (out.compare(0, 5, "/tmp/") != 0 || verb[0] == "diff" || verb[0] == "repair")
                continue;
            EXPECT_EQ(Verb(verb).status, 0) << verb[0];
            EXPECT_EQ(ModeOf(out), mode) << out;
        }
        std::string packed = folder + "/u.sqlite", back = folder + "/u.cst";
        Verb({"export", "--sqlite", packed, trace});
        Verb({"import", "-o", back, packed});
        EXPECT_EQ(ModeOf(back), mode);
    }
}

TEST(Tools, WhatIsMadeOfATraceGoesThroughNoLink) {
    std::string trace = TraceWith([](Synth *) {}), victim = Write(Folder() + "/victim", "keep");
    for (const char *option : {"--jsonl", "--perfetto", "--sqlite"}) {
        std::string link = Folder() + "/out";
        Link(link, victim);
        Result result = Verb({"export", option, link, trace});
        EXPECT_EQ(result.status, 1) << option;
        Verb({"export", "--force", option, link, trace});
        EXPECT_EQ(ReadFile(victim), "keep") << option;
    }
}

} // namespace
} // namespace security
