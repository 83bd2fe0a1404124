// Promise: what-if plays a trace with the options and rules of its recording, and ignores facts
// that make no sense.
#include <gtest/gtest.h>

#include "shim/base/options.h"
#include "tests/unit/whatif/program.h"

extern "C" {
#include "tools/whatif/cost.h"
#include "tools/whatif/facts.h"
}

namespace whatif {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

bool Read(const std::string &json, Entries *entries) {
    return whatif_facts_read(
        json.c_str(), "options",
        [](void *to, const char *name, const char *value) {
            static_cast<Entries *>(to)->emplace_back(name, value);
        },
        entries);
}

TEST(Facts, EntriesOfAnObjectAreTold) {
    Entries e;
    EXPECT_TRUE(Read(R"( {"argv": ["a\"}", {"options": {"x": "1"}}], "n": -1.5e3,
        "options" : { "mode":"full", "why":true, "deep": {"a": [1, "]"]}, "e\"x": "a\\b\n" , "k":7},
        "behind": null } )",
                     &e));
    EXPECT_EQ(e, (Entries{{"mode", "full"},
                          {"why", "true"},
                          {"deep", "{\"a\": [1, \"]\"]}"},
                          {"e\"x", "a\\b\n"},
                          {"k", "7"}}));
    e.clear();
    EXPECT_TRUE(Read(R"({"options": ["a", 1, "b"]})", &e));
    EXPECT_EQ(e, (Entries{{"", "a"}, {"", "1"}, {"", "b"}}));
}

TEST(Facts, WhatIsNoJsonHasNoEntries) {
    for (const char *text :
         {"", "{", "[]", "{\"options\"", "{\"options\":", "{\"options\":{", "{\"options\":{\"a\"",
          "{\"options\":{\"a\":", "{\"options\":{\"a\":}}", "{\"options\":{\"a\" 1}}",
          "{\"options\":{\"a\":1", "{\"options\":{\"a\":\"x", "{\"options\":{\"a\":\"\\",
          "{\"options\":{\"a\":\"\\u12", "{\"options\":{a:1}}", "{\"options\":1}",
          "{\"options\":{\"a\":1} \"b\":2}", "{\"other\":{}}"}) {
        Entries e;
        EXPECT_FALSE(Read(text, &e)) << text;
        EXPECT_TRUE(e.empty()) << text;
    }
    Entries e;
    EXPECT_FALSE(Read("{\"options\":" + std::string(1000, '['), &e));
}

std::string Config(Program &program, bool *guessed) {
    char *text = whatif_facts_config(program.Trace(), true, guessed);
    std::string result = text ? text : "none";
    free(text);
    return result;
}

TEST(Facts, OptionsBecomeAConfiguration) {
    Program program;
    program.Facts(R"({"options": {"mode": "full", "hold_us": "500", "stats": "/tmp/x",
        "log": "debug", "record": "y", "unheard_of": "1"}, "rules": [{"policy": "eager", "pattern": "a[{]\u00e9*"}, {"policy": "graph", "pattern": "b"}]})");
    bool guessed;
    EXPECT_EQ(Config(program, &guessed),
              "mode = full\nhold_us = 500\n[rules]\neager = a[{]\xe9*\ngraph = b\n");
    EXPECT_FALSE(guessed);
}

// A trace of an earlier version has the names that options had then.
TEST(Facts, OldNamesOfOptionsAreTakenUnderTheirNamesNow) {
    Program program;
    program.Facts(R"({"options":{"piece_first":"8","hand_over_ns":"5"},"rules":[]})");
    bool guessed;
    EXPECT_EQ(Config(program, &guessed), "segment_first = 8\nsubmit_ns = 5\n[rules]\n");
}

// A trace may be a stranger's: where files are written, what is said and how much memory may be
// taken is not for it to say.
TEST(Facts, WhatIsOfTheMachineIsNotTaken) {
    std::string options;
    for (unsigned i = 0; cus_options_row(i); i++) {
        std::string key = cus_options_row(i)->key;
        char allowed[256];
        cus_options_allowed(i, allowed, sizeof allowed);
        options += (i ? "," : "") + ("\"" + key + "\":\"7\"");
        if (strcmp(allowed, "a path") == 0 || key.find("_mb") != std::string::npos) {
            Program program;
            program.Facts("{\"options\":{\"" + key + "\":\"7\"},\"rules\":[]}");
            bool guessed;
            EXPECT_EQ(Config(program, &guessed), "[rules]\n") << key;
        }
    }
    Program program;
    program.Facts("{\"options\":{" + options + "},\"rules\":[]}");
    bool guessed;
    std::string config = Config(program, &guessed);
    for (const char *key :
         {"cache_dir", "cache_mb", "cache_every", "graph_mb", "host_mb", "stats", "log", "log_file",
          "why_file", "record", "verify_report", "live", "trust_driver", "trust_interposers"})
        EXPECT_EQ(config.find(key), std::string::npos) << key;
    EXPECT_NE(config.find("warmup = 7\n"), std::string::npos);
}

TEST(Facts, BoundsThatAreNotTakenAreNamed) {
    auto not_taken = [](const std::string &options) {
        Program program;
        program.Facts("{\"options\":{" + options + "},\"rules\":[]}");
        char text[200];
        bool any = whatif_facts_not_taken(program.Trace(), text, sizeof text);
        return any ? std::string(text) : "(none)";
    };
    EXPECT_EQ(not_taken(R"("graph_mb":"64","warmup":"3","host_mb":"1024","cache_mb":"8")"),
              "graph_mb = 64, cache_mb = 8");
    EXPECT_EQ(not_taken(R"("graph_mb":"1024","cache_dir":"/x")"), "(none)");
    EXPECT_EQ(not_taken(R"("graph_mb":"1 ; x")"), "(none)");
}

TEST(Facts, StepsBecomeSections) {
    Program program;
    program.Facts(R"({"options": {"mode": "full"}, "rules": [{"policy": "uniform", "pattern": "a"}],
        "steps": [{"name": "decode", "marker": "emb*", "tokens": "y", "uniform": "z == 1", "odd": "x"},
                  {"name": "", "marker": "other", "sizes": "1..64"}, {"name": "a]b", "marker": "m"}]})");
    bool guessed;
    EXPECT_EQ(Config(program, &guessed),
              "mode = full\n[step decode]\nmarker = emb*\ntokens = y\nuniform = z == 1\n"
              "[step]\nmarker = other\nsizes = 1..64\n[step]\nmarker = m\n[rules]\nuniform = a\n");
}

TEST(Facts, ModeVerifyIsTheModeThatItVerifies) {
    Program program;
    program.Facts(R"({"options": {"verify_mode": "full", "mode": "verify"}, "rules": []})");
    bool guessed;
    EXPECT_EQ(Config(program, &guessed), "mode = full\n[rules]\n");
}

TEST(Facts, NoModeOfARecordingVerifies) {
    for (const char *options : {R"("mode":"verify ")", R"("mode":"verify","verify_mode":"verify")",
                                R"("mode":"other")"}) {
        Program program;
        program.Facts(std::string("{\"options\":{") + options + "},\"rules\":[]}");
        bool guessed;
        EXPECT_EQ(Config(program, &guessed), "[rules]\n") << options;
    }
}

TEST(Facts, RulesThatAreNotToldAreReadOffTheOps) {
    Program program;
    program.Facts(R"({"options": {"warmup": "3"}})");
    uint32_t stream = program.Stream(), eager = program.Kernel("_Z5eagerv"),
             other = program.Kernel("other"), set = program.Memset("cuMemsetD8Async", 1);
    uint32_t rule = program.String("rule"), never = program.String("never_defer");
    program.Launch(other, stream);
    for (int i = 0; i < 3; i++)
        program.Launch(eager, stream)->why = rule;
    program.Op(set, stream, 24)->why = never;
    bool guessed;
    EXPECT_EQ(Config(program, &guessed), "warmup = 3\n[rules]\neager = mangled:_Z5eagerv\n"
                                         "never_defer = api:cuMemsetD8Async\n");
    EXPECT_TRUE(guessed);
}

TEST(Facts, WithoutOptionsThereIsNone) {
    Program program;
    bool guessed;
    EXPECT_EQ(Config(program, &guessed), "none");
}

/* ---- costs ---- */

std::string Write(const std::string &text) {
    std::string path = std::string(getenv("TEST_TMPDIR")) + "/cost";
    FILE *file = fopen(path.c_str(), "w");
    fputs(text.c_str(), file);
    fclose(file);
    return path;
}

TEST(Cost, SumsWhatWasAskedOfTheDriver) {
    whatif_cost cost;
    char error[512] = "";
    ASSERT_TRUE(whatif_cost_read(nullptr, &cost, error, sizeof error)) << error;
    EXPECT_GT(cost.host.eager_launch, cost.host.matched_launch);
    std::string path = Write("[host]\neager_launch=1000\nmatched_launch = 100\n# a comment\n"
                             "graph_launch=10000\npatched_node=7\nbuilt_node=0.5\n[gpu]\n"
                             "graph_kernel=10\ngraph_seam=100\neager_kernel=1000\n"
                             "small_kernel=9\n");
    ASSERT_TRUE(whatif_cost_read(path.c_str(), &cost, error, sizeof error)) << error;
    whatif_played played = {};
    played.asked.own = 1;
    played.asked.issued = 2;
    played.counters.in_graphs = 4;
    played.asked.graph_launches = 3;
    played.asked.patched = 5;
    played.asked.captured = 6;
    EXPECT_DOUBLE_EQ(whatif_cost_host(&cost, &played), 3000 + 600 + 30000 + 35 + 3);
    // A file without the newer keys: what belongs to its own values is not another machine's.
    EXPECT_EQ(cost.gpu.measured_more, 0);
    EXPECT_EQ(cost.recorder.eager_launch, 0);
    EXPECT_GT(cost.recorder.op, 0);
    played.asked.graph_others = 2;
    cost.host.graph_other = 11;
    EXPECT_DOUBLE_EQ(whatif_cost_host(&cost, &played), 3000 + 600 + 30000 + 22 + 35 + 3);
    whatif_measured measured = {};
    EXPECT_DOUBLE_EQ(whatif_cost_gpu(&cost, &played, &measured), 3000 + 40 + 300);
    // One of the three by themselves, and one of the four in graphs, records an event.
    whatif_cost records = cost;
    whatif_played recorded = played;
    recorded.asked.records = recorded.asked.graph_records = 1;
    records.host.eager_record = 700;
    records.host.graph_record = 80;
    records.gpu.record = 9;
    EXPECT_DOUBLE_EQ(whatif_cost_host(&records, &recorded),
                     2000 + 700 + 600 + 30000 + 22 + 80 + 35 + 3);
    EXPECT_DOUBLE_EQ(whatif_cost_gpu(&records, &recorded, &measured), 2000 + 30 + 18 + 300);
    // Six of the seven were measured: what they ran takes the place of a small kernel, gaps and
    // seams stay.
    measured = {6, 50000};
    EXPECT_DOUBLE_EQ(whatif_cost_gpu(&cost, &played, &measured), 3 * 991 + 4 * 1 + 300 + 50000 + 9);
}

TEST(Cost, AFileThatIsNoneIsRefusedWithItsPlace) {
    const std::pair<const char *, const char *> wrong[] = {
        {"[host]\n\neager_lunch = 1\n",
         ":3: no key 'eager_lunch' in [host] (nearest: eager_launch)"},
        {"[host]\neager_launch = fast\n", ":2: eager_launch: nanoseconds"},
        {"[host]\neager_launch = -1\n", ":2: eager_launch: nanoseconds"},
        {"[host]\neager_launch = 1\n", "[host] matched_launch is missing"},
        {"nonsense\n", ":1: "},
        {"[host]\neager_launch=1\nmatched_launch=1\ngraph_launch=1\npatched_node=1\n"
         "built_node=1\n[gpu]\ngraph_kernel=780\ngraph_seam=1\neager_kernel=1600\n",
         "[gpu] small_kernel is missing"},
        {"[host]\neager_launch=1\nmatched_launch=1\ngraph_launch=1\npatched_node=1\n"
         "built_node=1\n[gpu]\ngraph_kernel=780\ngraph_seam=1\neager_kernel=1600\n"
         "small_kernel=781\n",
         "[gpu] small_kernel is a part of graph_kernel"},
    };
    whatif_cost cost;
    char error[512];
    for (const auto &it : wrong) {
        EXPECT_FALSE(whatif_cost_read(Write(it.first).c_str(), &cost, error, sizeof error));
        EXPECT_NE(std::string(error).find(it.second), std::string::npos) << error;
    }
    EXPECT_FALSE(whatif_cost_read("/nonexistent/cost", &cost, error, sizeof error));
    EXPECT_NE(std::string(error).find("/nonexistent/cost: No such file"), std::string::npos);
}

} // namespace
} // namespace whatif
