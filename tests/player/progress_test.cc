// Promise: verbs that take long say how far they are, on a terminal alone, in one line that is
// erased before anything else is there; bench says which files it wrote.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/launcher/launcher.h"
#include "tests/player/made.h"
#include "tests/terminal.h"
#include "tests/text.h"
#include "tests/unit/trace/synth.h"

namespace {

Environment Env(const std::string &term) {
    return {{"CUSIM_LIB", "harness/sim/lib"}, {"CUSIM_DELAY_US", "0"},
            {"CUSPLICE_LOG", "error"},        {"PATH", getenv("PATH")},
            {"XDG_CONFIG_HOME", "/nowhere"},  {"TERM", term},
            {"LD_PRELOAD", First()},          {"CUSPLICE_CACHE_DIR", ""}};
}

// For verbs that would not take long enough, at least on a fast machine.
Environment Hurried(const std::string &term) {
    Environment env = Env(term);
    env["LD_PRELOAD"] = First() + "./tests/player/libhurry.so";
    return env;
}

Strings Command(const Strings &arguments) {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
}

// A recording of many ops.
std::string Long() {
    static std::string path;
    if (!path.empty())
        return path;
    path = Folder() + "/long.cst";
    Synth s(path, true);
    s.Thread(100, "main");
    s.Stream(CST_STREAM_CREATED, 0x77);
    std::vector<uint32_t> kernels;
    for (int i = 0; i < 12; i++)
        kernels.push_back(s.Kernel("k" + std::to_string(i)));
    for (int step = 0; step < 400; step++) {
        for (int i = 0; i < 100; i++)
            s.Eager(1, kernels[i % 12], "observing", "warmup");
        s.Sync(1);
    }
    s.Close();
    return path;
}

void ExpectProgress(const std::string &verb, const Strings &arguments) {
    Terminal terminal(Command(arguments), Hurried("xterm"), 80, 24);
    EXPECT_EQ(terminal.Wait(), 0) << terminal.Raw();
    const std::string &raw = terminal.Raw();
    std::string line = "\r\033[Kcusplice " + verb + ": ";
    EXPECT_TRUE(Has(raw, line)) << raw.substr(0, 2000);
    EXPECT_FALSE(Has(terminal.Text(), "cusplice " + verb + ": ")) << "erased: " << terminal.Text();
    // It only grows, up to 100.
    int last = 0;
    for (size_t at = raw.find(line); at != std::string::npos; at = raw.find(line, at + 1)) {
        int now = atoi(raw.c_str() + at + line.size());
        EXPECT_GE(now, last);
        EXPECT_LE(now, 100);
        last = now;
    }
    Terminal dumb(Command(arguments), Hurried("dumb"), 80, 24);
    EXPECT_EQ(dumb.Wait(), 0) << dumb.Raw();
    EXPECT_FALSE(Has(dumb.Raw(), "\033")) << dumb.Raw();
    Result piped = RunProgram(Command(arguments), Hurried("xterm"));
    EXPECT_EQ(piped.Exit(), 0) << piped.err;
    EXPECT_FALSE(Has(piped.err, "\r") || Has(piped.err, "\033") || Has(piped.err, " %"))
        << piped.err;
}

TEST(Progress, Export) {
    ExpectProgress("export", {"export", "--force", "--sqlite", Folder() + "/long.sqlite", Long()});
}

TEST(Progress, WhatIf) {
    ExpectProgress("whatif", {"whatif", "--sweep", Long()});
}

TEST(Progress, ReplayAndBench) {
    std::string trace = MakeSteps("shown.cst", 6, false, false, true), out = Folder() + "/shown";
    ExpectProgress("replay", {"replay", "--repeat=12", "--pace=none", trace});
    ExpectProgress("bench",
                   {"bench", "--rounds=6", "--pace=none", "--segments=4,16", "--break=none",
                    "--force", "-o", out + ".md", "--svg", out + ".svg", trace});
}

// Sums that are wrong are said of each cell, those of the second batch while the line is there.
TEST(Progress, WhatIsSaidMeanwhileHasALineOfItsOwn) {
    std::string trace = MakeSteps("said.cst", 20, false, true, true);
    Terminal terminal(Command({"bench", "--rounds=8", "--pace=none", "--strategy=piecewise",
                               "--segments=2,4,8,16,32,64,128,256", "--break=none", trace}),
                      Hurried("xterm"), 200, 50);
    EXPECT_EQ(terminal.Wait(), 1) << terminal.Raw();
    EXPECT_TRUE(Has(terminal.Raw(), " %\r\033[Kcusplice: ")) << terminal.Raw();
    EXPECT_FALSE(Has(terminal.Raw(), " %cusplice: ")) << terminal.Raw();
}

TEST(Progress, BenchSaysWhatItWrote) {
    std::string trace = MakeSteps("wrote.cst", 6, false, false, true), out = Folder() + "/wrote";
    Strings arguments = {"bench",        "--rounds=1",           "--pace=none", "--segments=4",
                         "--break=none", "--strategy=piecewise", "-o",          out + ".md",
                         "-o",           out + ".json",          "--svg",       out + ".svg",
                         trace};
    Terminal terminal(Command(arguments), Env("dumb"), 1000, 24);
    EXPECT_EQ(terminal.Wait(), 0) << terminal.Raw();
    EXPECT_EQ(terminal.Raw(),
              "cusplice: wrote " + out + ".md, " + out + ".json, " + out + ".svg\r\n");
    arguments = {"bench",        "--rounds=1",           "--pace=none", "--segments=4",
                 "--break=none", "--strategy=piecewise", trace};
    Terminal table(Command(arguments), Env("dumb"), 200, 50);
    EXPECT_EQ(table.Wait(), 0) << table.Raw();
    EXPECT_FALSE(Has(table.Raw(), "wrote ")) << "it is all on stdout: " << table.Raw();
}

} // namespace
