// Promise: tools/demo.py and cusplice run work with the real decode host, launcher and library on
// the simulator.
#include <filesystem>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "shim/base/path.h"
#include "tests/launcher/launcher.h"

namespace {

TEST(Demo, RunsWholeOnTheSimulator) {
    const char *sanitizer = getenv("CUS_TEST_SANITIZER");
    if (sanitizer && std::string(sanitizer) == "tsan")
        GTEST_SKIP() << "Python does not run under TSan's runtime";
    Result r =
        RunProgram({"/usr/bin/env", "python3", "tools/demo.py", "--bin", ".", "--tokens", "60"});
    EXPECT_EQ(r.Exit(), 0) << r.out << r.err;
    EXPECT_TRUE(Has(r.out, "byte for byte")) << r.out;
    EXPECT_TRUE(Has(r.out, "[graph ")) << r.out;
    EXPECT_TRUE(Has(r.out, "eager attention_decode, graph ")) << r.out;
}

// The launcher where Bazel put it, with the library beside it.
Result Simulated(Strings arguments, const Environment &more = {}) {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice", "run"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Environment all = {{"CUSIM_LIB", "harness/sim/lib"}};
    all.insert(more.begin(), more.end());
    return RunProgram(argv, all);
}

// The lines that have the word.
std::string Lines(const std::string &text, const std::string &word) {
    std::istringstream in(text);
    std::string line, out;
    while (std::getline(in, line))
        if (Has(line, word))
            out += line + "\n";
    return out;
}

// A file as these lines show it.
std::string Shown(const std::string &path) {
    char shown[160];
    return cus_path_shown(path.c_str(), shown, sizeof shown);
}

TEST(RealLibrary, RulesThatMatchedNothingAreSaidOnceAndChangeNoStatus) {
    const std::string folders = "far/" + std::string(90, 'd') + "/" + std::string(90, 'e');
    std::filesystem::create_directories(Folder() + "/" + folders);
    const std::string far = Write(folders + "/far.conf", "[rules]\neager = attention_decoder\n");

    const std::string mine = Write("mine.conf", "[rules]\neager = x_*\nnever_defer = lib:liby*\n");
    const std::string one = Write("one.conf", "[rules]\neager = attention_decoder\n");
    const std::string decode = "config/presets/decode.conf", program = "harness/decode/decode";
    const std::string vllm = Write("vllm.conf", "[rules]\neager = flash*\neager = fmha*\n");
    const std::string plain = program + " --prompt A --tokens 8";
    const struct {
        Strings options;
        std::string heard;
    } cases[] = {
        {{"-c", decode}, ""},
        {{"-c", decode, "-c", mine}, ""}, // one of all matched
        {{"-c", mine}, "none of the 2 rules of " + Shown(mine) + " matched a kernel"},
        {{"-c", mine, "-c", vllm},
         "none of the 4 rules of the files that -c or CUSPLICE_CONFIG names, with those that they "
         "include, matched a kernel; the first is " +
             Shown(vllm) + ":2"},
        {{"-c", far},
         "eager = attention_decoder (" + Shown(far) +
             ":2) matched no kernel; the nearest kernel is attention_decode"},
        {{"-c", one},
         "eager = attention_decoder (" + Shown(one) +
             ":2) matched no kernel; the nearest kernel is attention_decode"},
        {{"-c", mine, "-c", "decode"},
         "none of the 2 rules of " + Shown(mine) + " matched a kernel"}, // a preset
        {{"-c", "vllm", "-c", "decode"}, ""},
        {{"-c", decode, "--set", "eager=atention*"},
         "eager = atention* (CUSPLICE_EAGER) matched no kernel; the nearest kernel is "
         "attention_combine"},
        {{"-c", decode, "--set", "eager=api:cuMemsetD16Async"},
         "eager = api:cuMemsetD16Async (CUSPLICE_EAGER) matched no call"},
        {{"-c", mine, "--set", "mode=eager"}, ""},
        {{"-c", mine, "--set", "mode=observe"}, ""},
    };
    EXPECT_TRUE(Has(Shown(far), "/far.conf")) << Shown(far);
    for (const auto &c : cases) {
        Strings arguments = c.options;
        // Two processes, of which each would say it.
        arguments.insert(arguments.end(),
                         {"--", "/bin/sh", "-c", plain + "; " + plain + "; exit 7"});
        Result r = Simulated(arguments);
        EXPECT_EQ(r.Exit(), 7) << r.err;
        EXPECT_FALSE(Has(r.out, "cusplice")) << r.out;
        EXPECT_EQ(Lines(r.err, "cusplice"), c.heard.empty() ? "" : "cusplice: " + c.heard + "\n");
    }
}

// The user's own file is for all programs: it is judged where nothing was said for this one.
TEST(RealLibrary, RulesOfTheUsersFileAreJudgedByThemselvesAlone) {
    const std::string home = Folder() + "/standing";
    ASSERT_TRUE(mkdir(home.c_str(), 0700) == 0 && mkdir((home + "/cusplice").c_str(), 0700) == 0);
    const std::string user =
        Write("standing/cusplice/cusplice.conf", "[rules]\neager = x_*\neager = y_*\n");
    const Strings program = {"--", "harness/decode/decode", "--prompt", "A", "--tokens", "8"};
    const struct {
        Strings options;
        std::string heard;
    } cases[] = {
        {{}, "cusplice: none of the 2 rules of " + Shown(user) + " matched a kernel\n"},
        {{"--set", "eager=attention_decode"}, ""},
        {{"-c", "config/presets/decode.conf"}, ""},
    };
    for (const auto &c : cases) {
        Strings arguments = c.options;
        arguments.insert(arguments.end(), program.begin(), program.end());
        Result r = Simulated(arguments, {{"XDG_CONFIG_HOME", home}});
        EXPECT_EQ(Lines(r.err, "cusplice"), c.heard);
    }
}

TEST(RealLibrary, AModeWithoutItsStepsIsSaid) {
    const Strings program = {"--", "harness/decode/decode", "--prompt", "A", "--tokens", "8"};
    const std::string wrong =
        Write("step.conf", "mode = full_and_piecewise\n[rules]\neager = attention_decode\n"
                           "[step]\nmarker = embeding\n");
    const struct {
        Strings options;
        std::string heard;
    } cases[] = {
        {{"--set", "mode=full_decode_only"},
         "mode full_decode_only needs a [step] section, and there is none: no step was a uniform "
         "decode, and nothing went into graphs"},
        {{"-c", "config/presets/decode.conf", "--set", "mode=full_and_piecewise"},
         "mode full_and_piecewise needs a [step] section, and there is none: no step was a uniform "
         "decode, and each step went as in mode piecewise"},
        {{"-c", wrong},
         "mode full_and_piecewise: no kernel was the marker of a [step] section (marker = "
         "embeding, " +
             wrong + ":5): no step was a uniform decode, and each step went as in mode piecewise"},
        {{"-c", "decode-modes"}, ""},
    };
    for (const auto &c : cases) {
        Strings arguments = c.options;
        arguments.insert(arguments.end(), program.begin(), program.end());
        Result r = Simulated(arguments);
        EXPECT_EQ(r.Exit(), 0) << r.err;
        EXPECT_EQ(Lines(r.err, "cusplice"), c.heard.empty() ? "" : "cusplice: " + c.heard + "\n");
    }
}

TEST(RealLibrary, ARecordingWhoseStepsNeverCameIsSaid) {
    auto record = [](const std::string &steps, const std::string &then) {
        std::string trace = Folder() + "/steps." + steps + ".cst";
        unlink(trace.c_str());
        Strings argv = {"/bin/sh",
                        "tools/sim-run",
                        "--",
                        "tools/cusplice",
                        "record",
                        "-o",
                        trace,
                        "--steps",
                        steps,
                        "-c",
                        "config/presets/decode.conf",
                        "--",
                        "/bin/sh",
                        "-c",
                        "harness/decode/decode --prompt A --tokens 8; exit " + then};
        return RunProgram(argv, {{"CUSIM_LIB", "harness/sim/lib"}});
    };
    Result r = record("3-4", "0");
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(Lines(r.err, "cusplice"), "");
    r = record("5000-6000", "0");
    EXPECT_EQ(r.Exit(), 3) << r.err;
    EXPECT_EQ(Lines(r.err, "cusplice"), "cusplice: the trace holds nothing: it was to begin with "
                                        "step 5000, and the program had 9 steps, counted from 0\n");
    EXPECT_EQ(record("9-9", "0").Exit(), 3);
    EXPECT_EQ(record("8-9", "0").Exit(), 0);
    EXPECT_EQ(record("5000-6000", "7").Exit(), 7) << "the program's own status counts";
}

// bin/, lib/ and share/ as after an installation, with one rule in the preset of llama.cpp.
std::string Installation() {
    const std::string root = Folder() + "/installed";
    for (const char *below :
         {"", "/bin", "/lib", "/share", "/share/cusplice", "/share/cusplice/presets", "/vllm"})
        mkdir((root + below).c_str(), 0700);
    auto copy = [&](const std::string &from, const std::string &to) {
        EXPECT_EQ(RunProgram({"/bin/cp", "-f", from, root + to}).Exit(), 0) << from;
    };
    copy("tools/cusplice", "/bin/cusplice");
    copy("shim/libcusplice.so", "/lib/libcusplice.so");
    copy("tests/gpu/programs/libplugin_plain.so", "/libggml-cuda.so");
    copy("tests/gpu/programs/libplugin_plain.so", "/vllm/_C.abi3.so");
    Write("installed/share/cusplice/presets/llama_cpp.conf",
          "[rules]\neager = attention_decode\neager = rmsnorm*\n");
    Write("installed/share/cusplice/presets/vllm.conf", "[rules]\nnever_defer = chain\n");
    return root;
}

TEST(RealLibrary, ALoadedLibraryChoosesItsPreset) {
    const std::string root = Installation(), stats = Folder() + "/chosen.json";
    auto run = [&](Strings options, const std::string &preload) {
        Strings argv = {root + "/bin/cusplice", "run"};
        argv.insert(argv.end(), options.begin(), options.end());
        argv.insert(argv.end(), {"--stats", stats, "--", "harness/decode/decode", "--prompt", "A",
                                 "--tokens", "8"});
        Result r =
            RunProgram(argv, {{"LD_LIBRARY_PATH", "harness/sim/lib"}, {"LD_PRELOAD", preload}});
        EXPECT_EQ(r.Exit(), 0) << r.err;
        return Lines(r.err, "cusplice");
    };
    auto eager = [&] {
        double n = -1;
        std::istringstream in(Lines(ReadFile(stats), "\"rule\": "));
        std::string key;
        in >> key >> n;
        return n;
    };
    const std::string library = First() + root + "/libggml-cuda.so";
    EXPECT_EQ(run({}, library), "cusplice: rules of presets held, since a library is loaded (--set "
                                "presets=off switches that off): llama_cpp.conf (installed/"
                                "libggml-cuda.so)\n");
    EXPECT_GT(eager(), 0);
    EXPECT_FALSE(Has(run({"--set", "presets=off"}, library), "presets"));
    EXPECT_EQ(eager(), 0);
    EXPECT_FALSE(Has(run({}, First()), "presets"));
    EXPECT_EQ(eager(), 0);
    // Its only rule names no kernel of this program, and nobody asked for it.
    std::string said = run({}, First() + root + "/vllm/_C.abi3.so");
    EXPECT_FALSE(Has(said, "presets") || Has(said, "matched")) << said;
    // The rules that the user gave go first, and are judged by themselves.
    EXPECT_EQ(run({"--set", "eager=nothing_such"}, library),
              "cusplice: rules of presets held, since a library is loaded (--set presets=off "
              "switches that off): llama_cpp.conf (installed/libggml-cuda.so)\ncusplice: eager = "
              "nothing_such (CUSPLICE_EAGER) matched no kernel; the nearest kernel is silu_mul\n");
}

TEST(RealLibrary, ALibraryThatIsOpenedLaterChoosesItsPresetThen) {
    const std::string root = Installation();
    Result r =
        RunProgram({"/bin/sh", "tools/sim-run", "--", root + "/bin/cusplice", "run", "--set",
                    "log=info", "--", "tests/gpu/programs/plugin_host", root + "/vllm/_C.abi3.so"},
                   {{"CUSIM_LIB", "harness/sim/lib"}});
    EXPECT_EQ(r.Exit(), 0) << r.out << r.err;
    EXPECT_EQ(Count(r.err, "info rules: vllm/_C.abi3.so is loaded: the rules of preset vllm hold"),
              1u)
        << r.err;
    EXPECT_FALSE(Has(r.err, "rules of presets held")) << "its only kernel was decided before";
}

TEST(RealLibrary, AProgramWithLaunchesIsLeftInPeaceAndCounted) {
    std::string stats = Folder() + "/real.json";
    Result r = Simulated({"-c", "config/presets/decode.conf", "--stats", stats, "--",
                          "harness/decode/decode", "--tokens", "8"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_FALSE(Has(r.err, "cusplice")) << r.err;
    EXPECT_TRUE(Has(ReadFile(stats), "\"mode\": \"piecewise\"")) << ReadFile(stats);
}

// With the cache of a user who says nothing of one, and graphs whose sizes follow no clock.
struct Kept {
    explicit Kept(const std::string &name)
        : home(Folder() + "/" + name), folder(home + "/.cache/cusplice") {
        EXPECT_EQ(mkdir(home.c_str(), 0700), 0) << home;
    }
    // first_step_in_graphs; -1: no such number.
    double Run(const Environment &more = {}) {
        std::string stats = Folder() + "/kept.json";
        Environment all = {{"CUSPLICE_CACHE_DIR", ""}, // unset
                           {"XDG_CACHE_HOME", ""},          {"HOME", home},
                           {"CUSIM_DELAY_US", "0"},         {"CUSPLICE_TRUST_DRIVER", "yes"},
                           {"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_BUILD_US", "0"},
                           {"CUSPLICE_SUBMIT_NS", "0"},     {"CUSPLICE_SEGMENT_FIRST", "32"},
                           {"CUSPLICE_SEGMENT_MAX", "32"}};
        for (const auto &[key, value] : more)
            all[key] = value;
        last = Simulated({"--set", "eager=x", "--stats", stats, "--", "harness/decode/decode",
                          "--prompt", "A", "--tokens", "24"},
                         all);
        EXPECT_EQ(last.Exit(), 0) << last.err;
        std::string text = ReadFile(stats), key = "\"first_step_in_graphs\": ";
        size_t at = text.find(key);
        return at == std::string::npos ? -1 : atof(text.c_str() + at + key.size());
    }
    std::string home, folder;
    Result last;
};

TEST(RealCache, TheSecondRunOfAnythingIsInGraphsFromItsSecondStep) {
    Kept kept("kept");
    EXPECT_GE(kept.Run(), 3);
    std::string text = kept.last.out.substr(0, kept.last.out.find("\ndecode:"));
    EXPECT_EQ(kept.Run(), 2);
    EXPECT_EQ(kept.last.out.substr(0, text.size()), text);
    const std::string of_x = "cusplice: eager = x (CUSPLICE_EAGER) matched no kernel; the nearest "
                             "kernel is rope\n";
    EXPECT_EQ(Lines(kept.last.err, "cusplice"), of_x) << kept.last.err;
    struct stat info;
    ASSERT_EQ(stat(kept.folder.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    EXPECT_GE(kept.Run({{"CUSPLICE_CACHE_DIR", Folder() + "/other"}}), 3) << "said by the user";
}

// Nobody asked for it, so what is wrong with it is told to those who ask.
TEST(RealCache, WhatIsWrongWithItIsNoWarning) {
    Kept kept("broken");
    kept.Run();
    for (const char *log : {"warn", "info"}) {
        Write("broken/.cache/cusplice/cusplice.cache", "what is this?");
        EXPECT_GE(kept.Run({{"CUSPLICE_LOG", log}}), 3);
        EXPECT_EQ(Has(kept.last.err, "is not used"), std::string(log) == "info") << kept.last.err;
        EXPECT_EQ(kept.Run(), 2) << "it was replaced";
    }
    ASSERT_EQ(chmod(kept.folder.c_str(), 0777), 0);
    for (const char *log : {"warn", "info"}) {
        EXPECT_GE(kept.Run({{"CUSPLICE_LOG", log}}), 3) << "others may write there";
        for (const char *what : {"is not used", "is not written"})
            EXPECT_EQ(Has(kept.last.err, what), std::string(log) == "info") << kept.last.err;
    }
    kept.Run({{"CUSPLICE_CACHE_DIR", kept.folder}});
    EXPECT_TRUE(Has(kept.last.err, "is not used")) << "this one was asked for";
}

TEST(RealLibrary, WhySaysWhatBrokeAndNothingElse) {
    Result r = Simulated({"--why", "-c", "config/presets/decode.conf", "--",
                          "harness/decode/decode", "--tokens", "8"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    size_t at = r.err.find("\ncusplice: why (mode piecewise)\n  coverage: ");
    ASSERT_NE(at, std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("cusplice"), at + 1) << r.err;
    EXPECT_EQ(r.err.find("cusplice", at + 2), std::string::npos) << r.err;
    EXPECT_TRUE(Has(r.err, "attention_decode: an eager rule names it\n       to do: ")) << r.err;
}

TEST(RealLibrary, NoEagerRuleIsSaidLoudlyOnce) {
    Result r = Simulated({"--", "harness/decode/decode", "--tokens", "2"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    size_t at = r.err.find("no eager rule: every kernel may be put into a graph");
    EXPECT_NE(at, std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("no eager rule", at + 1), std::string::npos) << r.err;
}

TEST(RealLibrary, ModeOffIsToldAndNothingElseIs) {
    Result r = Simulated({"--", "harness/decode/decode", "--tokens", "2"}, {{"CUSPLICE", "off"}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, "cusplice: mode is off")) << r.err;
    EXPECT_FALSE(Has(r.err, "no eager rule")) << r.err;
}

TEST(RealLibrary, AProgramWithoutCudaIsTold) {
    Result r = Simulated({"--set", "eager=x", "--", Target(), "out=hello"});
    EXPECT_EQ(r.out, "hello\n");
    EXPECT_TRUE(Has(r.err, "never came up: " + Target() + " used no CUDA")) << r.err;
}

TEST(RealLibrary, AMachineWithoutADriverIsTold) {
    const std::string program = "harness/decode/decode";
    Result there = RunProgram({"/bin/sh", "-c", "ldconfig -p | grep libcuda.so.1"});
    if (there.Exit() == 0)
        GTEST_SKIP() << "there is a driver";
    std::string lib = Folder() + "/no-driver"; // cudart alone
    ASSERT_EQ(RunProgram({"/bin/sh", "-c",
                          "mkdir " + lib +
                              " && cp harness/sim/lib/libcudart* harness/sim/lib/libcublas* "
                              "harness/sim/lib/libcusim_kernels* " +
                              lib})
                  .Exit(),
              0);
    Result r = RunProgram({"tools/cusplice", "run", "--", program, "--tokens", "1"},
                          {{"LD_LIBRARY_PATH", lib}});
    EXPECT_NE(r.Exit(), 0);
    EXPECT_TRUE(Has(
        r.err, "cusplice: the library never came up: libcuda.so.1 was not found, which " + program))
        << r.err;
}

// The machine's gcc makes it, and the leak sanitizer does not work under qemu.
#define NEEDS_TARGET_SANITIZED()                                                                   \
    if (Sanitized())                                                                               \
        GTEST_SKIP() << "the library brings a sanitizer of its own";                               \
    if (getenv("CUS_TEST_EMULATED"))                                                               \
    GTEST_SKIP() << "target_sanitized is a program for another kind of processor"

// The program's own run-time library is not the first of the process then.
TEST(RealLibrary, AProgramWithTheAddressSanitizerRunsAsEver) {
    NEEDS_TARGET_SANITIZED();
    const std::string program = "tests/launcher/target_sanitized";
    Result plain =
        RunProgram({"/bin/sh", "tools/sim-run", "--", program}, {{"CUSIM_LIB", "harness/sim/lib"}});
    ASSERT_EQ(plain.Exit(), 0) << plain.err;
    std::string stats = Folder() + "/sanitized.json";
    for (const Strings &argv : {Strings{program}, Strings{"/bin/sh", "-c", program + " && :"}}) {
        Strings arguments = {"--set", "eager=x", "--stats", stats, "--"};
        arguments.insert(arguments.end(), argv.begin(), argv.end());
        Result r = Simulated(arguments);
        EXPECT_EQ(r.Exit(), 0);
        EXPECT_EQ(r.out, plain.out);
        EXPECT_EQ(r.err, "cusplice: eager = x (CUSPLICE_EAGER) matched no kernel\n");
        EXPECT_FALSE(Has(ReadFile(stats), "\"graph_launches\": 0,")) << ReadFile(stats);
    }
    Result r = Simulated({"--set", "eager=x", "--", program, "leak"});
    EXPECT_TRUE(Has(r.err, "Direct leak of 77 byte(s) in 1 object(s)")) << r.err;
    EXPECT_TRUE(Has(r.err, "SUMMARY: AddressSanitizer: 77 byte(s) leaked in 1 alloc")) << r.err;
    EXPECT_FALSE(Has(r.err, "libcusplice")) << r.err;
}

TEST(RealLibrary, AProgramIntoWhichItWasNotLoadedIsNotSaidToUseNoCuda) {
    NEEDS_TARGET_SANITIZED();
    Result r = Simulated({"--", "tests/launcher/target_sanitized"},
                         {{"ASAN_OPTIONS", "verify_asan_link_order=1"}});
    EXPECT_TRUE(Has(r.err, "it was not loaded into tests/launcher/target_sanitized")) << r.err;
    EXPECT_FALSE(Has(r.err, "used no CUDA")) << r.err;
}

// As cusplice run, for another verb.
Result Verified(Strings arguments, const Environment &more = {}) {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice", "verify"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Environment all = {{"CUSIM_LIB", "harness/sim/lib"}};
    all.insert(more.begin(), more.end());
    return RunProgram(argv, all);
}

TEST(VerifyVerb, SaysThatAllIsEqual) {
    std::string report = Folder() + "/equal.json";
    Result r = Verified({"-c", "config/presets/decode.conf", "--report", report, "--",
                         "harness/decode/decode", "--prompt", "A", "--tokens", "8"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(Count(r.err, "verified"), 1u) << "said once: " << r.err;
    EXPECT_TRUE(Has(r.err, "graph launches verified, all equal")) << r.err;
    EXPECT_FALSE(Has(r.err, " warn ")) << "nothing is wrong: " << r.err;
    // Without a launcher the library answers by itself.
    Strings program = {"/bin/sh", "tools/sim-run", "--", "harness/decode/decode", "--prompt",
                       "A",       "--tokens",      "8"};
    r = RunProgram(program, {{"CUSIM_LIB", "harness/sim/lib"},
                             {"LD_PRELOAD", std::filesystem::canonical("shim/libcusplice.so")},
                             {"CUSPLICE_EAGER", "attention_decode"},
                             {"CUSPLICE_MODE", "verify"}});
    EXPECT_EQ(Count(r.err, "verified"), 1u) << r.err;
    EXPECT_TRUE(Has(r.err, " info verify: ") &&
                Has(r.err, "graph launches verified, all equal to their launches one by one\n"))
        << r.err;
    EXPECT_TRUE(Has(ReadFile(report), "\"different\": 0")) << ReadFile(report);
    EXPECT_FALSE(Has(ReadFile(report), "\"verified\": 0,")) << ReadFile(report);
}

TEST(VerifyVerb, AWrongValueIsThatOfTheOption) {
    const struct {
        const char *option, *value, *says;
    } rows[] = {
        {"--mode", "bogus", "--mode: verify_mode = bogus: must be one of piecewise, "},
        {"--every", "0", "--every: verify_every = 0: must be a whole number from 1 to "},
        {"--budget", "much", "--budget: verify_mb = much: must be a whole number from 1 to "},
        {"--plant", "weeds", "--plant: verify_plant = weeds: must be one of none, "},
    };
    for (const auto &row : rows) {
        Result r = Verified({row.option, row.value, "--", "harness/decode/decode"});
        EXPECT_EQ(r.Exit(), 125) << row.says;
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, std::string("cusplice: ") + row.says)) << r.err;
        EXPECT_FALSE(Has(r.err, "CUSPLICE_")) << r.err;
        EXPECT_EQ(Count(r.err, "\n"), 1u) << r.err;
    }
}

TEST(VerifyVerb, EndsWithOneWhereAGraphDiffers) {
    Result plain = Simulated({"--", "harness/decode/decode", "--prompt", "A", "--tokens", "8"});
    Result r = Verified({"--plant", "dropped", "--mode=full", "--", "harness/decode/decode",
                         "--prompt", "A", "--tokens", "8"});
    EXPECT_EQ(r.Exit(), 1) << r.err;
    EXPECT_TRUE(Has(r.err, "graph launches differ from their launches one by one")) << r.err;
    std::string text = plain.out.substr(0, plain.out.find("\ndecode:"));
    EXPECT_EQ(r.out.substr(0, text.size()), text) << "the program's results are right all the same";
}

TEST(VerifyVerb, EndsWithThreeWhereThereWasNothingToVerify) {
    Result r = Verified(
        {"--set", "warmup=1000", "--", "harness/decode/decode", "--prompt", "A", "--tokens", "1"});
    EXPECT_EQ(r.Exit(), 3) << r.err;
    EXPECT_TRUE(Has(r.err, "nothing was verified")) << r.err;
    r = Verified({"--", Target(), "out=x"});
    EXPECT_EQ(r.Exit(), 3) << r.err;
    EXPECT_TRUE(Has(r.err, "never came up")) << r.err;
}

TEST(VerifyVerb, TheProgramsOwnStatusComesFirst) {
    Result r = Verified({"--", "harness/decode/decode", "--no-such-option"});
    EXPECT_EQ(r.Exit(), Simulated({"--", "harness/decode/decode", "--no-such-option"}).Exit());
    EXPECT_NE(r.Exit(), 0);
}

TEST(VerifyVerb, BadOptionsAreRefused) {
    const struct {
        Strings arguments;
        std::string says;
    } refusals[] = {
        {{"--evry", "3", "--", "x"}, "unknown option --evry; the nearest is --every"},
        {{"--every", "0", "--", "x"}, "verify_every = 0: must be a whole number from 1"},
        {{"--mode", "eager", "--", "x"}, "verify_mode = eager: must be one of piecewise, full"},
        {{"--plant", "drop", "--", "x"}, "must be one of none, unpatched, dropped, swapped"},
        {{"--report"}, "--report: a value is missing"},
        {{"--every", "2"}, "a program is missing: cusplice verify"},
    };
    for (const auto &refusal : refusals) {
        Result r = Verified(refusal.arguments);
        EXPECT_EQ(r.Exit(), 125) << refusal.says;
        EXPECT_TRUE(Has(r.err, refusal.says)) << "wanted: " << refusal.says << "\n" << r.err;
    }
}

} // namespace
