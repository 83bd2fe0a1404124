// Promise: tools/demo.py prints and writes what it should, and fails if the texts differ. First
// with stand-ins for the decode host and the launcher; then, if they are built, with the real ones
// on the simulator.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "tests/launcher/launcher.h"

namespace {

void Script(const std::string &name, const std::string &text) {
    ASSERT_EQ(chmod(Write(name, "#!/bin/sh\n" + text).c_str(), 0755), 0);
}

// A folder that looks like bazel-bin. The host writes FAKE_TEXT where it is preloaded, "plain text"
// otherwise.
std::string FakeBin() {
    std::string bin = Folder() + "/bin";
    EXPECT_EQ(system(("mkdir -p " + bin + "/harness/decode " + bin + "/harness/sim/lib " + bin +
                      "/tools && cd " + bin +
                      "/harness/sim/lib && touch libcuda.so.1 libcudart.so.13 libcublas.so.13 "
                      "libcusim_kernels.so")
                         .c_str()),
              0);
    Script("bin/harness/decode/decode",
           "while [ \"$1\" != --report ]; do [ \"$1\" = --tokens ] && n=$2; shift; done\n"
           "echo \"{\\\"tokens\\\": $n, \\\"tokens_per_s\\\": 12.5}\" > \"$2\"\n"
           "[ -n \"$FAKE_FAIL\" ] && echo it broke >&2 && exit 3\n"
           "printf '%s\\n' \"${FAKE_PRELOADED:+${FAKE_TEXT:-plain text}}${FAKE_PRELOADED:-plain "
           "text}\" | sed 's/preloaded$//'\n");
    Script(
        "bin/tools/cusplice",
        "[ -n \"$CUSPLICE_MODE\" ] && echo the shell leaks in && exit 9\n"
        "while [ \"$1\" != -- ]; do [ \"$1\" = --stats ] && stats=$2; shift; done\n"
        "shift\n"
        "[ -z \"$FAKE_SILENT\" ] && cat > \"$stats\" <<'END'\n"
        "{\"ops\": {\"launches\": 1000, \"memsets\": 20, \"copies\": 3},\n"
        " \"issued\": {\"in_graphs\": 900, \"eager\": 123},\n"
        " \"eager_by\": {\"rule\": 100, \"observing\": 23, \"diverged\": 0, \"flushed\": 0,\n"
        "  \"unsupported\": 0, \"passthrough\": 0},\n"
        " \"graph_launches\": 44, \"signatures\": {\"exact\": 5, \"patched\": 6, \"missed\": 7},\n"
        " \"patched_nodes\": 88, \"flushes\": {\"cuStreamSynchronize\": 9},\n"
        " \"segment_list\": [\"graph 7\", \"eager attention_decode\", \"graph 9\"]}\n"
        "END\n"
        "FAKE_PRELOADED=preloaded exec \"$@\"\n");
    return bin;
}

Result Demo(Strings arguments, const Environment &more = {}) {
    Strings argv = {"/usr/bin/env", "python3", "tools/demo.py"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return RunProgram(argv, more);
}

TEST(Demo, EqualTextsAreSaidAndTheFiguresAdd) {
    std::string json = Folder() + "/demo.json";
    Result r = Demo({"--bin", FakeBin(), "--tokens", "40", "--json", json},
                    {{"CUSPLICE_MODE", "observe"}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "device: simulator, 40 tokens")) << r.out;
    EXPECT_TRUE(Has(r.out, "  | plain text\n")) << r.out;
    EXPECT_EQ(r.out.find("plain text"), r.out.rfind("plain text")) << "the text is printed once";
    EXPECT_TRUE(Has(r.out, "byte for byte"));
    EXPECT_TRUE(Has(r.out, "[graph 7, eager attention_decode, graph 9]"));
    EXPECT_TRUE(Has(r.out, "driver launches              1,023         167\n")) << r.out;
    EXPECT_TRUE(Has(r.out, "patched nodes         88\n"));
    EXPECT_TRUE(Has(r.out, "flushes by cause      9 cuStreamSynchronize\n"));
    EXPECT_TRUE(Has(r.out, "tokens/s say nothing here"));
    std::string check = "import json,sys; d=json.load(open(sys.argv[1]));"
                        "assert d['device']=='simulator' and d['tokens']==40;"
                        "assert d['outputs_equal'] is True and d['text']=='plain text\\n', d;"
                        "assert d['plain']=={'tokens_per_s':12.5,'driver_launches':1023};"
                        "p=d['preloaded'];"
                        "assert p['driver_launches']==167 and p['tokens_per_s']==12.5;"
                        "assert p['stats']['patched_nodes']==88";
    r = RunProgram({"/usr/bin/env", "python3", "-c", check, json});
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

TEST(Demo, FitsTheTerminal) {
    Result r = Demo({"--bin", FakeBin(), "--tokens", "40"}, {{"COLUMNS", "60"}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    size_t widest = 0;
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);)
        widest = std::max(widest, line.size());
    EXPECT_LE(widest, 60u) << r.out;
    EXPECT_GT(widest, 50u) << r.out;
}

// Without --bin everything is where packages have it, and the device is the one that there is.
TEST(Demo, APackageFindsItsPartsAndSaysWhyItTakesTheSimulator) {
    std::string bin = FakeBin(), prefix = Folder() + "/prefix",
                inside = prefix + "/lib/cusplice/demo";
    ASSERT_EQ(system(("mkdir -p " + prefix + "/bin " + inside + "/sim && cp tools/demo.py " + bin +
                      "/harness/decode/decode " + inside + " && cp " + bin + "/tools/cusplice " +
                      prefix + "/bin && touch " + inside + "/sim/libcuda.so.1")
                         .c_str()),
              0);
    Script("nvidia-smi", "[ -n \"$FAKE_GPU\" ] && echo 'GPU 0: fake'; exit 0\n");
    auto demo = [&](const Environment &more) {
        Environment environment = more;
        environment["PATH"] = Folder() + ":" + getenv("PATH");
        return RunProgram({"/usr/bin/env", "python3", inside + "/demo.py"}, environment);
    };
    Result r = demo({});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "no run on a GPU: nvidia-smi shows no GPU")) << r.out;
    EXPECT_TRUE(Has(r.out, "device: simulator, 200 tokens")) << r.out;
    EXPECT_TRUE(Has(r.out, "byte for byte")) << r.out;
    // A library that no loader takes, as if CUDA 13 were not there.
    Write("libcudart.so.13", "no library");
    r = demo({{"FAKE_GPU", "1"}, {"LD_LIBRARY_PATH", Folder()}});
    EXPECT_TRUE(Has(r.out, "the demo needs libcudart.so.13 of CUDA 13")) << r.out << r.err;
    ASSERT_EQ(unlink((inside + "/sim/libcuda.so.1").c_str()), 0);
    r = demo({});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "the simulator is not in " + inside + "/sim")) << r.err;
}

TEST(Demo, TextsThatDifferFail) {
    Result r = Demo({"--bin", FakeBin()}, {{"FAKE_TEXT", "plain tEXT"}});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.out, "OUTPUTS DIFFER from byte 7 on")) << r.out;
    EXPECT_FALSE(Has(r.out, "byte for byte"));
}

TEST(Demo, AHostThatFailsIsShown) {
    Result r = Demo({"--bin", FakeBin()}, {{"FAKE_FAIL", "1"}});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "ended with status 3") && Has(r.err, "it broke")) << r.err;
    EXPECT_FALSE(Has(r.err, "Traceback"));
}

TEST(Demo, ALibraryThatNeverCameUpIsAFailure) {
    Result r = Demo({"--bin", FakeBin()}, {{"FAKE_SILENT", "1"}});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "it never came up")) << r.err;
}

TEST(Demo, TheScriptRefusesWhatItDoesNotKnow) {
    for (const Strings &arguments :
         {Strings{"--simm"}, Strings{"--tokens"}, Strings{"--tokens", "0"},
          Strings{"--tokens=many"}, Strings{"--json"}}) {
        Strings argv = {"/bin/bash", "tools/demo"};
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        Result r = RunProgram(argv);
        EXPECT_EQ(r.Exit(), 2) << arguments[0];
        EXPECT_TRUE(Has(r.err, "demo: ")) << r.err;
    }
    EXPECT_TRUE(Has(RunProgram({"/bin/bash", "tools/demo", "--help"}).out, "--json FILE"));
}

} // namespace
