// Promise: libraries that a program opens, and interposers between program and driver, change no
// result, and each interposer counts every launch. If this costs graphs, the log names the file.
#include "tests/sim/cases.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace sim {
namespace {

const char *const kHost = "tests/gpu/programs/plugin_host";
const Case kAsItIs = {"plugin_host", 0, "", "", {}};
const Case kInAnyOrder = {"plugin_host", 0, "", "", {true, true}, false};

std::string PluginFile(const std::string &name) {
    return Runfile("tests/gpu/programs/libplugin_" + name + ".so");
}

std::string Interposer(const std::string &name) {
    return Runfile("tests/gpu/programs/libinterposer_" + name + ".so");
}

std::string First() {
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    return first && *first ? std::string(first) + ":" : "";
}

// What is deferred waits for as long as the test takes.
Setting With(const std::string &preload, bool library) {
    Setting setting;
    setting.preload = library;
    if (!preload.empty())
        setting.env["LD_PRELOAD"] = First() + preload;
    if (library) {
        setting.env["CUSPLICE_HOLD_US"] = "1000000";
        setting.env["CUSPLICE_BUILD_US"] = "0";
        setting.env["CUSPLICE_LOG"] = "info";
        setting.env["CUSPLICE_WHY"] = "yes";
        setting.env["CUSPLICE_SUBMIT_NS"] = "0";
    }
    if (const char *hazard = getenv("CUSPLICE_MUTATE")) // tools/mutate-hazards
        setting.env["CUSPLICE_MUTATE"] = hazard;
    return setting;
}

std::string Ours() {
    return Runfile("shim/libcusplice.so");
}

bool Says(const Outcome &run, const std::string &text) {
    return run.result.err.find(text) != std::string::npos;
}

// qemu has no process_vm_readv, so the data of an object that was led here is unknown.
std::string Copies(const std::string &file) {
    return file + (getenv("CUS_TEST_EMULATED")
                       ? " was bound past this library, and process_vm_readv is refused"
                       : " holds functions of the driver");
}

double InGraphs(const Outcome &run) {
    return run.stats.Number("issued.in_graphs");
}

// A sanitizer's runtime ends a program that opens with RTLD_DEEPBIND, and looks up its own
// functions by whatever dlsym there is.
#define NEEDS_NO_SANITIZER()                                                                       \
    if (!Sanitizer().empty())                                                                      \
    GTEST_SKIP() << "a sanitizer's runtime allows neither RTLD_DEEPBIND nor another dlsym"

// ---- plugins

struct Plugin {
    const char *name;
    std::vector<const char *> how;
    bool led;    // it was bound past the library
    bool graphs; // as many as if it were not there
    bool Deep() const {
        for (std::string word : how) {
            if (word == "deep" || word == "space")
                return true;
        }
        return false;
    }
};

void PrintTo(const Plugin &plugin, std::ostream *out) {
    *out << plugin.name;
}

std::vector<std::string> Command(const Plugin &plugin) {
    std::vector<std::string> command = {Runfile(kHost), PluginFile(plugin.name)};
    for (std::string how : plugin.how)
        command.push_back(how == "opener" ? "opener=" + PluginFile("opener") : how);
    return command;
}

class Plugins : public testing::TestWithParam<Plugin> {};

TEST_P(Plugins, AreAsPlain) {
    const Plugin &plugin = GetParam();
    if (plugin.Deep())
        NEEDS_NO_SANITIZER();
    Outcome plain = RunProgram(Command(plugin), With("", false));
    ASSERT_EQ(plain.result.status, 0) << plain.Describe();
    Outcome run = RunProgram(Command(plugin), With("", true));
    ASSERT_SAME(kAsItIs, plain, run);
    ASSERT_STATS(run);
    std::string file = "libplugin_" + std::string(plugin.name) + ".so";
    EXPECT_EQ(Says(run, file + " was bound past this library: led here"), plugin.led)
        << run.Describe();
    const bool graphs = plugin.graphs && !(plugin.led && getenv("CUS_TEST_EMULATED"));
    EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), graphs ? 0 : 1);
    EXPECT_EQ(Says(run, "nothing was deferred from some moment on: "), !graphs);
    if (graphs)
        EXPECT_GT(InGraphs(run), 0.8 * run.stats.Number("ops.launches")) << run.Describe();
    else
        EXPECT_TRUE(Says(run, Copies(file)) || Says(run, "another namespace")) << run.Describe();
}

const Plugin kPlugins[] = {
    {"plain", {}, false, true},
    {"plain", {"deep"}, true, true},
    {"plain", {"deep", "lazy"}, false, true}, // where it leads is not known before it is called
    {"plain", {"deep", "thread"}, true, true},
    {"plain", {"deep", "opener"}, true, true},
    {"now", {"deep"}, true, true},
    {"copies", {"deep"}, true, false},
    {"copies", {"deep", "thread"}, true, false},
    {"copies", {}, false, true},
    {"at_load", {"deep"}, true, true},
    {"at_load", {"deep", "thread"}, true, true},
    {"at_load", {"deep", "busy"}, true, true},
    {"at_load", {"deep", "lazy", "opener"}, true, true},
    {"looks_up", {"deep"}, true, true},
    {"looks_up", {}, false, true},
    {"table", {"deep"}, true, false},
    {"table", {"lazy"}, false, true},
    {"looks_up", {"space"}, false, false},
};

INSTANTIATE_TEST_SUITE_P(All, Plugins, testing::ValuesIn(kPlugins), [](const auto &given) {
    std::string title = given.param.name;
    for (const char *how : given.param.how)
        title += std::string("_") + how;
    return title;
});

TEST(Slots, ThatCannotBeWrittenEndDeferring) {
    NEEDS_NO_SANITIZER();
    const std::vector<std::string> command = {Runfile(kHost), PluginFile("now"), "deep"};
    Outcome plain = RunProgram(command, With("", false));
    Outcome run = RunProgram(command, With(Ours() + ":" + Interposer("protects"), true));
    ASSERT_SAME(kAsItIs, plain, run);
    EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), 1);
    EXPECT_TRUE(Says(run, PluginFile("now") + " calls the driver past this library, and cannot be"))
        << run.Describe();
    // Where none is read-only nothing is lost.
    run = RunProgram({Runfile(kHost), PluginFile("plain"), "deep", "lazy"},
                     With(Ours() + ":" + Interposer("protects"), true));
    EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), 0);
}

TEST(Slots, ThatCannotBeLookedBehindEndDeferringAndSayWhy) {
    NEEDS_NO_SANITIZER();
    const std::vector<std::string> command = {Runfile(kHost), PluginFile("plain"), "deep"};
    Outcome run = RunProgram(command, With(Ours() + ":" + Interposer("refuses"), true));
    ASSERT_SAME(kAsItIs, RunProgram(command, With("", false)), run);
    EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), 1);
    EXPECT_TRUE(Says(run, PluginFile("plain") + " was bound past this library, and "
                                                "process_vm_readv is refused"))
        << run.Describe();
}

// Handles, errors, errno, and on whose behalf the loader looks.
TEST(Opening, IsTransparent) {
    NEEDS_NO_SANITIZER();
    for (bool cuda : {false, true}) {
        std::vector<std::string> command = {Runfile("tests/sim/loader_calls"),
                                            PluginFile("opener")};
        if (cuda)
            command.push_back("cuda");
        Outcome plain = RunProgram(command, With("", false));
        ASSERT_EQ(plain.result.status, 0) << plain.Describe();
        Outcome run = RunProgram(command, With("", true));
        EXPECT_SAME(kInAnyOrder, plain, run);
        Setting off = With("", true);
        off.env["CUSPLICE"] = "off";
        EXPECT_SAME(kInAnyOrder, plain, RunProgram(command, off));
    }
}

// ---- other interposers

Outcome Host(const std::string &plugin, const std::string &preload, bool library,
             const char *trust = "no") {
    Setting setting = With(preload, library);
    setting.env["CUSPLICE_TRUST_INTERPOSERS"] = trust;
    return RunProgram({Runfile(kHost), PluginFile(plugin)}, setting);
}

// "interposer: N launches, M allocations"
std::string Count(const Outcome &run) {
    size_t at = run.result.err.find("interposer: ");
    return at == std::string::npos ? "none"
                                   : run.result.err.substr(at, run.result.err.find('\n', at) - at);
}

TEST(Interposers, InFrontThatHandsOutTheDriversOwnIsFound) {
    NEEDS_NO_SANITIZER();
    for (const char *name : {"launches", "memory"}) {
        SCOPED_TRACE(name);
        Outcome plain = Host("looks_up", Interposer(name), false);
        Outcome run = Host("looks_up", Interposer(name) + ":" + Ours(), true);
        ASSERT_SAME(kAsItIs, plain, run);
        EXPECT_EQ(Count(run), Count(plain));
        EXPECT_EQ(InGraphs(run), 0);
        EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), 1);
        EXPECT_TRUE(Says(run, Interposer(name) + " stands in front of this library and answers"));
        // Trusted, it is believed to hand out what leads to the library.
        EXPECT_GT(InGraphs(Host("plain", Interposer(name) + ":" + Ours(), true, "yes")), 0);
    }
}

TEST(Interposers, InFrontThatGoesOnToTheLibraryMayBeTrusted) {
    Outcome plain = Host("plain", Interposer("exports"), false);
    ASSERT_EQ(Count(plain), "interposer: 2019 launches, 0 allocations") << plain.Describe();
    for (const char *trust : {"no", "yes"}) {
        SCOPED_TRACE(trust);
        Outcome run = Host("plain", Interposer("exports") + ":" + Ours(), true, trust);
        ASSERT_SAME(kAsItIs, plain, run);
        EXPECT_EQ(Count(run), Count(plain));
        EXPECT_EQ(InGraphs(run) > 0, *trust == 'y');
    }
}

// The loader needs one table of what an object exports, and of two forms the older one will do.
TEST(Interposers, WithTheOlderTableAloneAreFound) {
    NEEDS_NO_SANITIZER();
    const std::vector<std::string> lazy = {Runfile(kHost), PluginFile("looks_up_lazy"), "lazy"};
    const std::string launches = Interposer("launches_sysv"), exports = Interposer("exports_sysv");
    Outcome plain = RunProgram(lazy, With(launches, false));
    ASSERT_EQ(Count(plain).find("interposer: 0 "), std::string::npos) << plain.Describe();
    Outcome run = RunProgram(lazy, With(launches + ":" + Ours(), true));
    ASSERT_SAME(kAsItIs, plain, run);
    EXPECT_EQ(Count(run), Count(plain));
    EXPECT_EQ(InGraphs(run), 0);
    EXPECT_TRUE(Says(run, launches + " stands in front of this library and answers"));
    plain = Host("plain", exports, false);
    for (bool front : {true, false}) {
        run = Host("plain", front ? exports + ":" + Ours() : Ours() + ":" + exports, true);
        ASSERT_SAME(kAsItIs, plain, run);
        EXPECT_EQ(Count(run), Count(plain));
        EXPECT_EQ(InGraphs(run), 0);
    }
}

// By each route: what it counts is what it counts without the library.
TEST(Interposers, BehindSeesEveryLaunch) {
    NEEDS_NO_SANITIZER();
    for (const char *route : {"dlsym", "getproc", "getproc11", "export"}) {
        SCOPED_TRACE(route);
        Case c = CaseOf("steady");
        c.args = {"--route", route};
        Setting setting = With(Interposer("launches"), false);
        setting.binary = "harness/scenario/scenario_dl";
        Outcome plain = RunCase(c, setting);
        ASSERT_EQ(plain.result.status, 0) << plain.Describe();
        setting = With(Ours() + ":" + Interposer("launches"), true);
        setting.binary = "harness/scenario/scenario_dl";
        Outcome run = RunCase(c, setting);
        ASSERT_SAME(c, plain, run);
        ASSERT_STATS(run);
        bool counts = std::string(route) == "dlsym" || std::string(route) == "getproc";
        EXPECT_EQ(Count(run), counts ? Count(plain) : Count(run));
        EXPECT_EQ(InGraphs(run), 0);
        EXPECT_TRUE(Says(run, Interposer("launches") + " stands behind this library and before"));
    }
}

TEST(Interposers, BehindThatExportsSeesEveryLaunch) {
    Outcome plain = Host("plain", Interposer("exports"), false);
    Outcome run = Host("plain", Ours() + ":" + Interposer("exports"), true);
    ASSERT_SAME(kAsItIs, plain, run);
    EXPECT_EQ(Count(run), Count(plain));
    EXPECT_EQ(InGraphs(run), 0);
}

// One to which the program is linked, before libcuda; preloaded as well, or another beside it.
TEST(Interposers, ThatTheProgramNeedsSeesEveryLaunch) {
    NEEDS_NO_SANITIZER();
    const std::vector<std::string> command = {Runfile("tests/gpu/programs/plugin_host_linked"),
                                              PluginFile("plain")};
    Outcome plain = RunProgram(command, With("", false));
    ASSERT_EQ(Count(plain), "interposer: 2019 launches, 0 allocations") << plain.Describe();
    const std::string exports = Interposer("exports");
    for (std::string preload : {Ours(), Ours() + ":" + exports, exports + ":" + Ours()}) {
        SCOPED_TRACE(preload);
        Outcome run = RunProgram(command, With(preload, true));
        ASSERT_SAME(kAsItIs, plain, run);
        EXPECT_EQ(Count(run), Count(plain));
        EXPECT_EQ(InGraphs(run), 0);
        EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), 1);
        EXPECT_TRUE(Says(run, "libinterposer_exports.so stands ")) << run.Describe();
    }
    // What is preloaded behind one that is needed is found, too.
    plain = RunProgram(command, With(exports + ":" + Interposer("memory"), false));
    Outcome run =
        RunProgram(command, With(Ours() + ":" + exports + ":" + Interposer("memory"), true));
    ASSERT_SAME(kAsItIs, plain, run);
    EXPECT_TRUE(Says(run, "behind this library: " + Interposer("memory"))) << run.Describe();
}

// One behind libcuda is found by nobody, and costs nothing.
TEST(Interposers, BehindLibcudaIsPassedBy) {
    const std::string after = "libcuda.so.1:" + Interposer("exports");
    Outcome plain = Host("plain", after, false);
    ASSERT_EQ(Count(plain), "interposer: 0 launches, 0 allocations") << plain.Describe();
    Outcome run = Host("plain", Ours() + ":" + after, true);
    ASSERT_SAME(kAsItIs, plain, run);
    EXPECT_EQ(Count(run), Count(plain));
    EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), 0);
    EXPECT_GT(InGraphs(run), 0);
}

// What a program looks up in libcuda goes past one that only exports the name, as ever.
TEST(Interposers, BehindThatExportsIsNotCalledForWhatIsLookedUp) {
    for (const char *route : {"dlsym", "getproc"}) {
        SCOPED_TRACE(route);
        Case c = CaseOf("steady");
        c.args = {"--route", route};
        Setting setting = With(Interposer("exports"), false);
        setting.binary = "harness/scenario/scenario_dl";
        Outcome plain = RunCase(c, setting);
        ASSERT_EQ(Count(plain), "interposer: 0 launches, 0 allocations") << plain.Describe();
        setting = With(Ours() + ":" + Interposer("exports"), true);
        setting.binary = "harness/scenario/scenario_dl";
        Outcome run = RunCase(c, setting);
        ASSERT_SAME(c, plain, run);
        EXPECT_EQ(Count(run), Count(plain));
    }
}

// A library that exports an allocation launches by what it looks up: in order with all others.
TEST(Interposers, BehindThatLaunchesIsInOrder) {
    NEEDS_NO_SANITIZER();
    const std::string plugin = PluginFile("looks_up_exports");
    Outcome plain = Host("looks_up_exports", plugin, false);
    Outcome run = Host("looks_up_exports", Ours() + ":" + plugin, true);
    ASSERT_SAME(kAsItIs, plain, run);
    EXPECT_TRUE(Says(run, "behind this library: " + plugin)) << run.Describe();
    EXPECT_GT(InGraphs(run), 0);
}

// One that stands before allocations alone is asked, and graphs are made.
TEST(Interposers, BehindThatDoesNotStandBeforeLaunchesCostsNoGraph) {
    NEEDS_NO_SANITIZER();
    for (const char *name : {"dlsym", "getproc"}) {
        SCOPED_TRACE(name);
        Case c = CaseOf("steady");
        c.args = {"--route", name};
        Setting setting = With(Interposer("memory"), false);
        setting.binary = "harness/scenario/scenario_dl";
        Outcome plain = RunCase(c, setting);
        setting = With(Ours() + ":" + Interposer("memory"), true);
        setting.binary = "harness/scenario/scenario_dl";
        Outcome run = RunCase(c, setting);
        ASSERT_SAME(c, plain, run);
        EXPECT_EQ(Count(run), Count(plain));
        EXPECT_GT(InGraphs(run), 0);
        EXPECT_EQ(run.stats.Number("fallbacks.deferring_off"), 0);
    }
}

TEST(Interposers, BehindThatIsTrustedSeesWhatTheDriverSees) {
    Outcome plain = Host("plain", Interposer("exports"), false);
    Outcome run = Host("plain", Ours() + ":" + Interposer("exports"), true, "yes");
    ASSERT_SAME(kAsItIs, plain, run);
    EXPECT_GT(InGraphs(run), 0);
    EXPECT_NE(Count(run), "none");
}

// ---- what the launcher says

Outcome Launched(const std::string &plugin, const char *how, const std::string &preload) {
    Setting setting = With(preload, false);
    std::vector<std::string> command = {Runfile("tools/cusplice"), "run", "--", Runfile(kHost),
                                        PluginFile(plugin)};
    if (*how)
        command.push_back(how);
    return RunProgram(command, setting);
}

TEST(Launcher, SaysWhatWasFound) {
    NEEDS_NO_SANITIZER();
    Outcome run = Launched("plain", "deep", "");
    EXPECT_TRUE(Says(run, "cusplice: this was bound past the library, and led to it: "
                          "libplugin_plain.so\n"))
        << run.Describe();
    run = Launched("copies", "deep", "");
    EXPECT_TRUE(Says(run, "cusplice: nothing was deferred from some moment on: " +
                              Copies(PluginFile("copies"))))
        << run.Describe();
    run = Launched("plain", "", Interposer("memory"));
    EXPECT_TRUE(Says(run, "cusplice: another interposer stands behind the library, and is called "
                          "by it: " +
                              Interposer("memory") + "\n"))
        << run.Describe();
    run = Launched("plain", "", "");
    EXPECT_FALSE(Says(run, "cusplice: this") || Says(run, "interposer")) << run.Describe();
}

} // namespace
} // namespace sim
