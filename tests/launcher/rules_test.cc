// Promise: rules proposes, for a trace, a file that config --check accepts and that means what it
// says: kernels that wait, kernels that cost less as breaks, and all others in comments.
#include <sys/stat.h>

#include <regex>
#include <sstream>

#include "tests/launcher/traces.h"

namespace {

// Writes what rules proposes, and asks config --check for its opinion.
std::string Propose(const std::string &path, const Strings &more = {}) {
    Strings all = {"rules", path};
    all.insert(all.end(), more.begin(), more.end());
    std::string text = Says(all), file = Write("proposed.conf", text);
    Result r = Cusplice({"config", "--check", file});
    EXPECT_EQ(r.Exit(), 0) << text << r.err;
    EXPECT_EQ(r.out, file + ": ok\n");
    EXPECT_EQ(r.err, "") << text;
    return text;
}

// The same with each proposal that stands in a comment made a rule.
void ExpectAllAreRules(const std::string &text, int n) {
    std::string rules = std::regex_replace(text, std::regex("# (eager = )"), "$1");
    std::string file = Write("all.conf", rules);
    Result r = Cusplice({"config", "--check", file});
    EXPECT_EQ(r.Exit(), 0) << rules << r.err;
    EXPECT_EQ(r.err, "") << rules;
    int found = 0;
    for (size_t at = 0; (at = rules.find("= mangled:", at)) != std::string::npos; at++)
        found++;
    EXPECT_EQ(found, n) << rules;
}

const char kDispatch[] = "_ZN7deep_ep8dispatchEv";

// 60 steps of eight kernels. The third one has another argument each time.
std::string Steps(const std::string &name, const std::function<void(Synth *, int)> &more = {}) {
    return Make(name, [&](Synth *s) {
        for (int k = 0; k < 8; k++)
            s->Kernel("kernel_" + std::to_string(k));
        for (int step = 0; step < 60; step++) {
            for (uint32_t k = 1; k <= 8; k++) {
                s->param = k == 3 ? 1000u + static_cast<uint64_t>(step) : 0;
                s->Op(1, k);
            }
            if (more)
                more(s, step);
            s->Sync(1);
        }
    });
}

TEST(Rules, AProgramThatGainsByNoneHasThemInComments) {
    std::string text = Propose(Steps("plain.cst"));
    EXPECT_TRUE(Has(text, "480 ops in 60 steps")) << text;
    EXPECT_TRUE(Has(text, "no GPU times")) << text;
    EXPECT_FALSE(Has(text, "\neager = ")) << text;
    EXPECT_FALSE(Has(text, "\nnever_defer = ")) << text;
    EXPECT_TRUE(Has(text, "\n# kernel_0: 60 launches; as a break +")) << text;
    EXPECT_TRUE(Has(text, "\n# eager = mangled:kernel_0\n")) << text;
    ExpectAllAreRules(text, 8);
    // What it says of a rule is what whatif says.
    Result r = Cusplice({"whatif", "-c", Folder() + "/proposed.conf", Folder() + "/plain.cst"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

TEST(Rules, AKernelThatCostsLessAsABreakIsProposed) {
    std::string cost = ReadFile("tools/whatif/h200.cost");
    cost =
        std::regex_replace(cost, std::regex("\npatched_node = [0-9]+"), "\npatched_node = 90000");
    std::string text = Propose(Steps("patched.cst"), {"--cost", Write("dear.cost", cost)});
    EXPECT_TRUE(Has(text, "\neager = mangled:kernel_2\n")) << text;
    EXPECT_TRUE(std::regex_search(
        text, std::regex("# kernel_2: 60 launches; as a break -[0-9.]+ us of the host a step")))
        << text;
    EXPECT_FALSE(Has(text, "\neager = mangled:kernel_1\n")) << text;
    ExpectAllAreRules(text, 8);
}

TEST(Rules, KernelsThatWaitAreNeverDeferred) {
    std::string presets = Folder() + "/install/share/cusplice/presets";
    EXPECT_TRUE(Has(Propose(Steps("no-presets.cst")), "no presets are installed"));
    ASSERT_EQ(system(("mkdir -p " + presets).c_str()), 0);
    for (const char *name : {"nccl.conf", "peer.conf"})
        Write(std::string("install/share/cusplice/presets/") + name,
              ReadFile(std::string("config/presets/") + name));
    std::string text = Propose(Steps("waits.cst", [](Synth *s, int step) {
        static uint32_t kinds[2];
        if (!step) {
            kinds[0] = s->Kernel("_Z24ncclDevKernel_AllReducev");
            kinds[1] = s->Kernel(kDispatch);
        }
        s->Op(1, kinds[0]);
        s->Op(1, kinds[1]);
    }));
    EXPECT_FALSE(Has(text, "no presets are installed")) << text;
    EXPECT_TRUE(Has(text, "\n# it waits: the preset nccl knows it\n"
                          "never_defer = mangled:_Z24ncclDevKernel_AllReducev\n"))
        << text;
    EXPECT_TRUE(Has(text, "\n# it waits: the preset peer knows it\nnever_defer = mangled:" +
                              std::string(kDispatch) + "\n"))
        << text;
    ExpectAllAreRules(text, 10);
    ASSERT_EQ(system(("rm -r " + presets).c_str()), 0);
}

TEST(Rules, GpuTimesRankKernelsAndShowThoseThatWait) {
    std::string text = Propose(Make("gpu.cst", [](Synth *s) {
        uint32_t often = s->Kernel("often"), slow = s->Kernel("slow"), waits = s->Kernel("waits");
        s->GpuStream(1, 7);
        for (int step = 0; step < 60; step++) {
            for (int i = 0; i < 4; i++) {
                s->Op(1, often);
                s->Gpu(7, CST_GPU_KERNEL, "often", 1000);
            }
            s->Op(1, slow);
            s->Gpu(7, CST_GPU_KERNEL, "slow", 50000);
            s->Op(1, waits);
            s->Gpu(7, CST_GPU_KERNEL, "waits", step % 3 ? 1000 : 20000);
            s->Sync(1);
        }
    }));
    EXPECT_FALSE(Has(text, "no GPU times")) << text;
    EXPECT_TRUE(Has(text, "a tenth of its launches ran more than 10 times as long")) << text;
    EXPECT_TRUE(Has(text, "\nnever_defer = mangled:waits\n")) << text;
    EXPECT_FALSE(Has(text, "never_defer = mangled:slow")) << text;
    EXPECT_LT(text.find("# slow: 8"), text.find("# often: 6")) << text;
    EXPECT_TRUE(Has(text, "# often: 6.")) << text;
}

TEST(Rules, NamesThatNoPatternStandsForAreNoRules) {
    const Strings names = {"with blank",
                           "with*star",
                           "a;b",
                           "new\nline = x",
                           "hash#",
                           "[x]",
                           "q?",
                           "\xff\xfe",
                           "back\\",
                           std::string(5000, 'l'),
                           std::string(899, 'm')};
    std::string text = Propose(Make("names.cst", [&](Synth *s) {
        for (int step = 0; step < 4; step++) {
            for (const std::string &name : names)
                s->Op(1, step ? 1 + static_cast<uint32_t>(&name - &names[0]) : s->Kernel(name));
            s->Sync(1);
        }
    }));
    ExpectAllAreRules(text, 1);
    EXPECT_TRUE(Has(text, "# eager = mangled:" + names.back() + "\n")) << text;
    EXPECT_TRUE(Has(text, "# eager: no pattern stands for this name alone: with*star\n")) << text;
}

TEST(Rules, AKernelThatARuleOfTheRecordingNamesIsNotSaidToBeInGraphs) {
    std::string text = Propose(Steps("ruled.cst", [](Synth *s, int step) {
        if (step == 0)
            s->Facts("{\"options\":{\"mode\":\"piecewise\"},\"rules\":[{\"policy\":\"eager\","
                     "\"pattern\":\"kernel_4\"}]}");
    }));
    size_t others = text.find("# These are best left in graphs"),
           alike = text.find("# A rule changes nothing for these: "),
           kernel = text.find("\n# kernel_4: ");
    ASSERT_NE(alike, std::string::npos) << text;
    EXPECT_LT(others, alike);
    EXPECT_LT(alike, kernel);
    EXPECT_GT(text.find("\n# kernel_3: "), others);
    EXPECT_LT(text.find("\n# kernel_3: "), alike) << text;
    EXPECT_FALSE(Has(text, "\neager = ")) << text;
}

TEST(Rules, CommentsAreOfOneWidth) {
    std::string text = Propose(Steps("wide.cst", [](Synth *s, int step) {
        s->param = static_cast<uint64_t>(step); // another shape than before
        s->Op(1, s->Kernel(std::string(50, 'k')));
    }));
    std::istringstream lines(text);
    bool folded = false;
    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(line.size() <= 80 || Has(line, "Proposed by") || Has(line, "mangled:")) << line;
        EXPECT_TRUE(line.empty() || line[0] == '#' || line == "[rules]") << line;
        folded |= line.compare(0, 4, "#   ") == 0;
    }
    EXPECT_TRUE(folded) << text;
}

TEST(Rules, OnlyTheMostFrequentAreLookedAt) {
    std::string text = Propose(Make("many.cst", [](Synth *s) {
        for (int k = 0; k < 40; k++)
            for (uint32_t kind = s->Kernel("k" + std::to_string(k)), i = 0; i < 2; i++)
                s->Op(1, kind);
        s->Sync(1);
    }));
    EXPECT_TRUE(Has(text, "# 32 kernels of 40 are looked at\n")) << text;
    ExpectAllAreRules(text, 32);
}

TEST(Rules, WhatCannotBeReadOrPlayedIsSaid) {
    EXPECT_TRUE(Has(Fails(2, {"rules"}), "a trace is missing"));
    EXPECT_TRUE(Has(Fails(1, {"rules", "/nowhere.cst"}), "No such file"));
    EXPECT_TRUE(Has(Fails(1, {"rules", "--cost", "/nowhere", golden}), "--cost /nowhere"));
    std::string empty = Make("empty.cst", [](Synth *s) { s->Sync(1); });
    EXPECT_TRUE(Has(Fails(1, {"rules", empty}), "it has no launches"));
    EXPECT_EQ(Cusplice({"rules", golden}).Exit(), 0);
}

TEST(Rules, GoIntoAFileThatIsWholeOrNotThere) {
    std::string out = Folder() + "/out.conf", text = Says({"rules", golden});
    unlink(out.c_str());
    EXPECT_EQ(Says({"rules", "-o", out, golden}), "");
    EXPECT_EQ(ReadFile(out), text);
    EXPECT_TRUE(Has(Fails(1, {"rules", "-o", out, golden}), "it is there already"));
    EXPECT_EQ(Says({"rules", "--force", "--output", out, golden}), "");
    EXPECT_EQ(Says({"rules", "-o", "-", golden}), text);
    std::string trace = Steps("own.cst"), bytes = ReadFile(trace);
    EXPECT_TRUE(Has(Fails(1, {"rules", "--force", "-o", trace, trace}), "it is what is read"));
    EXPECT_EQ(ReadFile(trace), bytes);
    std::string empty = Make("empty2.cst", [](Synth *s) { s->Sync(1); });
    unlink(out.c_str());
    Fails(1, {"rules", "-o", out, empty});
    EXPECT_NE(access(out.c_str(), F_OK), 0);
}

} // namespace
