// Promise: each option has its built-in value and all documented ways to set it, with the right
// precedence. A bad value never makes a running program fail.
#include "shim/base/options.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>

#include "shim/base/log.h"
#include "tests/unit/base/config_files.h"

namespace {

class Options : public ConfigFiles {
  protected:
    void TearDown() override { cus_options_free(&options); }

    void Load(bool secure = false) {
        cus_options_free(&options);
        problems.clear();
        int n = cus_options_load(&options, secure, TakeProblem, &problems);
        EXPECT_EQ((size_t)n, problems.size());
    }
    std::string Show(const std::string &key) {
        char text[4096];
        for (unsigned i = 0; cus_options_row(i); i++)
            if (key == cus_options_row(i)->key) {
                cus_options_show(&options, i, text, sizeof text);
                return text;
            }
        return "(no such key)";
    }

    struct cus_options options = {};
};

TEST_F(Options, BuiltInValuesAreTheDocumentedOnes) {
    Load();
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(options.mode, CUS_MODE_PIECEWISE);
    EXPECT_EQ(options.hold_us, 1000u);
    EXPECT_EQ(options.warmup, 2u);
    EXPECT_EQ(options.segment_first, 4u);
    EXPECT_EQ(options.segment_max, 1024u);
    EXPECT_EQ(options.variants, 16384u);
    EXPECT_EQ(options.graph_mb, 1024u);
    EXPECT_EQ(options.host_mb, 1024u);
    EXPECT_EQ(options.nodes_max, 200000u);
    EXPECT_EQ(options.build_nodes, 256u);
    EXPECT_EQ(options.build_us, 500u);
    EXPECT_STREQ(options.cache_dir, ""); // no cache unless asked
    EXPECT_FALSE(options.cache_offered);
    EXPECT_EQ(options.cache_mb, 4u);
    EXPECT_EQ(options.cache_every, 60u);
    EXPECT_TRUE(options.demote);
    EXPECT_FALSE(options.trust_driver);
    EXPECT_FALSE(options.trust_interposers);
    EXPECT_EQ(options.profile, CUS_PROFILE_EAGER);
    EXPECT_STREQ(options.stats, "");
    EXPECT_EQ(options.stats_every, 0u);
    EXPECT_STREQ(options.log, "warn");
    EXPECT_STREQ(options.log_file, "");
    EXPECT_FALSE(options.why);
    EXPECT_FALSE(options.live); // no file unless asked
}

TEST_F(Options, WhatTheTableShowsIsWhatItAccepts) {
    Load();
    for (unsigned i = 0; cus_options_row(i); i++) {
        const cus_option_row *row = cus_options_row(i);
        EXPECT_EQ(Show(row->key), row->value) << "built-in value of " << row->key;
        cus_setting setting = {"", row->key, row->value, "x", 1};
        EXPECT_TRUE(cus_options_set(&options, &setting, TakeProblem, &problems)) << row->key;
        char allowed[200] = "";
        cus_options_allowed(i, allowed, sizeof allowed);
        EXPECT_NE(std::string(allowed), "") << row->key;
        EXPECT_NE(std::string(row->text), "") << row->key;
    }
    EXPECT_EQ(problems, Strings{});
}

TEST_F(Options, EveryKeyHasItsEnvironmentTwin) {
    const std::map<std::string, std::string> values = {{"mode", "eager"},
                                                       {"hold_us", "50"},
                                                       {"presets", "auto"},
                                                       {"warmup", "1000"},
                                                       {"segment_first", "2"},
                                                       {"segment_max", "8"},
                                                       {"variants", "65536"},
                                                       {"graph_mb", "0"},
                                                       {"host_mb", "1"},
                                                       {"nodes_max", "1000"},
                                                       {"build_nodes", "2"},
                                                       {"build_us", "0"},
                                                       {"cache_dir", "/tmp/c"},
                                                       {"cache_mb", "1"},
                                                       {"cache_every", "0"},
                                                       {"submit_ns", "2000"},
                                                       {"submit_look_us", "50"},
                                                       {"demote", "no"},
                                                       {"runtime_fast_path", "no"},
                                                       {"trust_driver", "yes"},
                                                       {"trust_interposers", "yes"},
                                                       {"profile", "ignore"},
                                                       {"stats", "/tmp/s.json"},
                                                       {"stats_every", "3"},
                                                       {"log", "info,graph:debug"},
                                                       {"log_file", "/tmp/log"},
                                                       {"why_file", "/tmp/why"},
                                                       {"verify_mode", "full"},
                                                       {"verify_every", "7"},
                                                       {"verify_mb", "64"},
                                                       {"verify_report", "/tmp/v.json"},
                                                       {"verify_plant", "dropped"},
                                                       {"why", "yes"},
                                                       {"live", "yes"},
                                                       {"record", "/tmp/t.cst"},
                                                       {"record_gpu", "yes"},
                                                       {"record_replayable", "yes"},
                                                       {"record_from", "3"},
                                                       {"record_until", "5"}};
    for (unsigned i = 0; cus_options_row(i); i++) {
        std::string key = cus_options_row(i)->key, name = "CUSPLICE_";
        for (char c : key)
            name += (char)toupper(c);
        ASSERT_TRUE(values.count(key)) << "a new key wants a value here: " << key;
        setenv(name.c_str(), values.at(key).c_str(), 1);
    }
    Load();
    EXPECT_EQ(problems, Strings{});
    for (const auto &[key, value] : values)
        EXPECT_EQ(Show(key), value);
}

TEST_F(Options, ADomainOfTheLogThatHasNoLinesIsToldAndTheValueCounts) {
    setenv("CUSPLICE_LOG", "info,garph:debug,stream:error", 1);
    Load();
    EXPECT_EQ(problems, (Strings{"CUSPLICE_LOG: log = info,garph:debug,stream:error: no line has "
                                 "the domain 'garph' (nearest: graph)"}));
    EXPECT_EQ(Show("log"), "info,garph:debug,stream:error");
    for (unsigned i = 0; cus_log_domains[i]; i++) {
        setenv("CUSPLICE_LOG", ("warn," + std::string(cus_log_domains[i]) + ":info").c_str(), 1);
        Load();
        EXPECT_EQ(problems, Strings{}) << cus_log_domains[i];
    }
}

// In a file and in the environment. The name now has the last word.
TEST_F(Options, AnOldNameWorksAndTheNewOneIsTold) {
    WriteFile(User(), "piece_first = 8\npiece_max = 4096\n");
    setenv("CUSPLICE_HAND_OVER_NS", "5", 1);
    setenv("CUSPLICE_HAND_OVER_LOOK_US", "6", 1);
    setenv("CUSPLICE_SUBMIT_LOOK_US", "7", 1);
    Load();
    EXPECT_EQ(options.segment_first, 8u);
    EXPECT_EQ(options.segment_max, 1024u) << "too large by either name";
    EXPECT_EQ(options.submit_ns, 5u);
    EXPECT_EQ(options.submit_look_us, 7u);
    EXPECT_EQ(
        problems,
        (Strings{User() + ":1: 'piece_first' is called segment_first now; the next version has "
                          "no 'piece_first'",
                 User() + ":2: segment_max = 4096: must be a whole number from 2 to 1024",
                 "CUSPLICE_HAND_OVER_NS: 'hand_over_ns' is called submit_ns now; the next "
                 "version has no 'hand_over_ns'",
                 "CUSPLICE_HAND_OVER_LOOK_US: 'hand_over_look_us' is called submit_look_us "
                 "now; the next version has no 'hand_over_look_us'"}));
}

TEST_F(Options, AnOldNameNeverBeatsTheNameNow) {
    WriteFile(system_file, "segment_max = 5\n");
    WriteFile(User(), "segment_first = 5\npiece_first = 8\npiece_max = 9\n");
    Load();
    EXPECT_EQ(options.segment_first, 5u) << "in one file the name now counts";
    EXPECT_EQ(options.segment_max, 9u) << "a later place wins, by whichever name";
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0], User() +
                               ":2: 'piece_first' is called segment_first now, which is set as "
                               "well and counts");
    WriteFile(User(), "piece_first = 8\nsegment_first = 5\n");
    Load();
    EXPECT_EQ(options.segment_first, 5u);
}

// Weaker than all that a user may say, also that there is none.
TEST_F(Options, TheCacheThatTheLauncherOffersIsTakenWhereNobodySaysAnything) {
    setenv("CUSPLICE_CACHE_OFFERED", "/offered", 1);
    Load();
    EXPECT_STREQ(options.cache_dir, "/offered");
    EXPECT_TRUE(options.cache_offered);
    for (const char *said : {"/said", ""}) {
        std::string line = std::string("cache_dir = ") + said + "\n";
        WriteFile(system_file, line);
        Load();
        EXPECT_STREQ(options.cache_dir, said);
        EXPECT_FALSE(options.cache_offered);
        WriteFile(system_file, "");
        Named(line);
        Load();
        EXPECT_STREQ(options.cache_dir, said);
        EXPECT_FALSE(options.cache_offered);
        unsetenv("CUSPLICE_CONFIG");
        setenv("CUSPLICE_CACHE_DIR", said, 1);
        Load();
        EXPECT_STREQ(options.cache_dir, said);
        EXPECT_FALSE(options.cache_offered);
        unsetenv("CUSPLICE_CACHE_DIR");
    }
    EXPECT_EQ(problems, Strings{});
    for (const char *odd : {"", "relative"}) {
        setenv("CUSPLICE_CACHE_OFFERED", odd, 1);
        Load();
        EXPECT_STREQ(options.cache_dir, "");
        EXPECT_FALSE(options.cache_offered);
    }
    setenv("CUSPLICE_CACHE_OFFERED", "/offered", 1);
    Load(true);
    EXPECT_STREQ(options.cache_dir, "") << "a setuid program";
}

TEST_F(Options, AnEmptyVariableCountsForPathsAlone) {
    WriteFile(User(), "cache_dir = /c\nstats = /s\nhold_us = 101\nlog = debug\nwhy = yes\n");
    for (const char *name : {"CACHE_DIR", "STATS", "HOLD_US", "LOG", "WHY", "MODE"})
        setenv((std::string("CUSPLICE_") + name).c_str(), "", 1);
    Load();
    EXPECT_EQ(problems, Strings{});
    EXPECT_STREQ(options.cache_dir, "");
    EXPECT_STREQ(options.stats, "");
    EXPECT_EQ(options.hold_us, 101u);
    EXPECT_STREQ(options.log, "debug");
    EXPECT_TRUE(options.why);
}

TEST_F(Options, ALaterPlaceWins) {
    WriteFile(system_file, "hold_us = 101\nwarmup = 11\nvariants = 1\nsegment_max = 9\n");
    WriteFile(User(), "hold_us = 102\nwarmup = 12\nvariants = 2\n");
    std::string named = Named("hold_us = 103\nwarmup = 13\n");
    setenv("CUSPLICE_HOLD_US", "104", 1);
    Load();
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(options.hold_us, 104u);
    EXPECT_EQ(options.warmup, 13u);
    EXPECT_EQ(options.variants, 2u);
    EXPECT_EQ(options.segment_max, 9u);
    EXPECT_EQ(options.segment_first, 4u);
}

TEST_F(Options, WithoutXdgTheHomeFolderCounts) {
    std::string folder = TempPath("home2");
    mkdir(folder.c_str(), 0700);
    mkdir((folder + "/.config").c_str(), 0700);
    mkdir((folder + "/.config/cusplice").c_str(), 0700);
    WriteFile(folder + "/.config/cusplice/cusplice.conf", "hold_us = 77\n");
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", folder.c_str(), 1);
    Load();
    EXPECT_EQ(options.hold_us, 77u);
}

TEST_F(Options, KillSwitchBeatsEverything) {
    setenv("CUSPLICE_MODE", "piecewise", 1);
    for (const char *word : {"off", "0", "no", "false"}) {
        setenv("CUSPLICE", word, 1);
        Load();
        EXPECT_EQ(options.mode, CUS_MODE_OFF) << word;
        EXPECT_EQ(problems, Strings{});
    }
    for (const char *word : {"on", "1", ""}) {
        setenv("CUSPLICE", word, 1);
        Load();
        EXPECT_EQ(options.mode, CUS_MODE_PIECEWISE) << word;
        EXPECT_EQ(problems, Strings{});
    }
    setenv("CUSPLICE", "of", 1);
    Load();
    EXPECT_EQ(problems, (Strings{"CUSPLICE: must be off or on (nearest: off)"}));
}

TEST_F(Options, BadValuesKeepTheWeakerOneAndAreToldWithFileAndLine) {
    WriteFile(User(), "hold_us = 200\n");
    std::string named = Named("hold_us = 49\n"
                              "warmup = two\n"
                              "mode = peicewise\n"
                              "demote = maybe\n"
                              "log = loud\n"
                              "segment_max = 64x\n"
                              "variants = 99999999999\n"
                              "graph_mb = -1\n"
                              "hold = 3\n"
                              "eager = x\n"
                              "uniform = x\n"
                              "marker = x\n"
                              "build_nodes = 64\n");
    Load();
    EXPECT_EQ(options.hold_us, 200u);
    EXPECT_EQ(options.warmup, 2u);
    EXPECT_EQ(options.mode, CUS_MODE_PIECEWISE);
    EXPECT_EQ(options.build_nodes, 64u);
    Strings expected = {
        ":1: hold_us = 49: must be a whole number from 50 to 1000000",
        ":2: warmup = two: must be a whole number from 1 to 1000",
        ":3: mode = peicewise: must be one of off, observe, eager, piecewise, full, "
        "full_decode_only, "
        "full_and_piecewise, verify (nearest: piecewise)",
        ":4: demote = maybe: must be yes or no",
        ":5: log = loud: must be a level (error, warn, info, debug), then domain:level",
        ":6: segment_max = 64x: must be a whole number from 2 to 1024",
        ":7: variants = 99999999999: must be a whole number from 1 to 65536",
        ":8: graph_mb = -1: must be a whole number from 0 to 1048576",
        ":9: unknown key 'hold' (nearest: mode)",
        ":10: 'eager' is a rule: it belongs below [rules]",
        ":11: 'uniform' is a rule: it belongs below [rules]",
        ":12: 'marker' belongs in a [step] section"};
    ASSERT_EQ(problems.size(), expected.size());
    for (size_t i = 0; i < expected.size(); i++)
        if (i != 8) { // what is nearest to a short word is a matter of taste
            EXPECT_EQ(problems[i], named + expected[i]);
        }
    EXPECT_EQ(problems[8].find(named + ":9: unknown key 'hold' (nearest: "), 0u);
}

TEST_F(Options, OtherSectionsAreNoneOfTheirBusiness) {
    std::string named = Named("warmup = 7\n[step a]\nmarker = x\nnonsense = 1\nwarmup = 8\n"
                              "[rules]\neager = [\n[stepp]\nwarmup = 9\n");
    Load();
    EXPECT_EQ(problems, (Strings{named + ":8: unknown section [stepp] (nearest: step)"}));
    EXPECT_EQ(options.warmup, 7u);
}

TEST_F(Options, UnknownVariablesAreTold) {
    setenv("CUSPLICE_HOLD", "5", 1);
    setenv("CUSPLICE_STATS_FILE", "x", 1);
    for (const char *name : {"CUSPLICE_HANDSHAKE", "CUSPLICE_CUDA", "CUSPLICE_CACHE"})
        setenv(name, "x", 1); // they mean something, to the launcher and to tools/setup
    setenv("CUSPLICE_EAGER", "x", 1);
    Load();
    std::sort(problems.begin(), problems.end());
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0].compare(0, 32, "CUSPLICE_HOLD: no such variable "), 0) << problems[0];
    EXPECT_EQ(problems[1].compare(0, 38, "CUSPLICE_STATS_FILE: no such variable "), 0);
}

TEST_F(Options, MechanismsHaveNamesInABuildForAblationAlone) {
#ifdef CUS_ABLATE
    const std::string told = "CUSPLICE_WITHOUT: no mechanism is named \"repeats\"";
#else
    const std::string told = "CUSPLICE_WITHOUT: no such variable";
#endif
    setenv("CUSPLICE_WITHOUT", "repeat,repeats,second_exec", 1);
    Load();
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].compare(0, told.size(), told), 0) << problems[0];
}

TEST_F(Options, AMissingNamedFileIsTold) {
    setenv("CUSPLICE_CONFIG", "/nowhere/c.conf", 1);
    Load();
    EXPECT_EQ(problems, (Strings{"/nowhere/c.conf: cannot be opened: No such file or directory"}));
}

TEST_F(Options, RaisedPrivilegesReadNothingAndTurnOff) {
    WriteFile(system_file, "mode = eager\nhold_us = 60\n");
    setenv("CUSPLICE_HOLD_US", "70", 1);
    Load(true);
    EXPECT_EQ(options.mode, CUS_MODE_OFF);
    EXPECT_EQ(options.hold_us, 1000u);
}

TEST_F(Options, ARunningProgramIsWarnedOnceAndGoesOn) {
    std::string named = Named("hold_uss = 100\nwarmup = 3\n");
    std::string text = Captured([] {
        errno = ENOENT;
        const struct cus_options *loaded = cus_options();
        bool good = errno == ENOENT && loaded->warmup == 3 && loaded->hold_us == 1000 &&
                    cus_options() == loaded;
        if (!good)
            abort();
    });
    EXPECT_EQ(Count(text, "\n"), 1u) << text;
    EXPECT_NE(text.find("warn config: " + named + ":1: unknown key 'hold_uss' (nearest: hold_us)"),
              std::string::npos)
        << text;
}

TEST_F(Options, LogOptionsAreInForceBeforeTheFirstWarning) {
    std::string log = TempPath("target.log");
    setenv("CUSPLICE_LOG_FILE", log.c_str(), 1);
    setenv("CUSPLICE_LOG", "warn,mine:debug", 1);
    setenv("CUSPLICE_WARMUP", "many", 1);
    std::string text = Captured([] {
        cus_options();
        cus_log(CUS_DEBUG, "mine", "heard");
    });
    EXPECT_EQ(text, "");
    EXPECT_EQ(Count(ReadFile(log), "CUSPLICE_WARMUP: warmup = many"), 1u) << ReadFile(log);
    EXPECT_EQ(Count(ReadFile(log), "debug mine: heard"), 1u);
}

TEST_F(Options, AllThreadsSeeTheSame) {
    setenv("CUSPLICE_WARMUP", "many", 1);
    std::string text = Captured([] {
        pthread_t threads[8];
        void *seen[8];
        for (auto &thread : threads)
            pthread_create(
                &thread, nullptr,
                [](void *) -> void * { return const_cast<struct cus_options *>(cus_options()); },
                nullptr);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], &seen[i]);
        for (void *one : seen)
            if (one != seen[0])
                abort();
    });
    EXPECT_EQ(Count(text, "\n"), 1u) << text;
}

} // namespace
