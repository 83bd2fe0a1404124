// Promise: cusplice calibrate writes a whole file that whatif reads, or no file and the reason.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "tests/sim/cases.h"
#include "tests/text.h"

namespace sim {
namespace {

std::string Folder() {
    static int n;
    std::string path =
        testing::TempDir() + "calibrate_" + std::to_string(getpid()) + "_" + std::to_string(n++);
    mkdir(path.c_str(), 0755);
    return path;
}

void Write(const std::string &path, const std::string &text) {
    std::ofstream(path) << text;
}

Result Calibrate(std::vector<std::string> words, std::map<std::string, std::string> env = {}) {
    std::vector<std::string> command = {Runfile("tools/cusplice"), "calibrate"};
    command.insert(command.end(), words.begin(), words.end());
    std::string sim = Runfile("harness/sim/lib/libcuda.so.1");
    env.insert({"LD_LIBRARY_PATH", sim.substr(0, sim.rfind('/'))});
    env.insert({"CUSIM_DELAY_US", "0"});
    env.insert({"TMPDIR", testing::TempDir()});
    // It preloads the library as it is, in front of a sanitizer's runtime.
    env.insert({"ASAN_OPTIONS", "detect_leaks=0:exitcode=99:verify_asan_link_order=0"});
    return sim::Run({command, env, 120});
}

// What a folder holds, "." and ".." left out.
std::string Listing(const std::string &folder) {
    Result r = sim::Run({{"/bin/ls", "-A", folder}, {}, 10});
    return r.out;
}

TEST(Calibrate, WritesAWholeFileThatWhatIfReads) {
    std::string folder = Folder(), path = folder + "/here.cost";
    Result r = Calibrate({"-o", path}, {{"TMPDIR", folder}});
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(Listing(folder), "here.cost\n");
    std::string text = ReadFile(path);
    EXPECT_NE(text.find("# GPU: Simulated H200, CUDA 13.0\n"), std::string::npos) << text;
    for (const char *what : {"# Machine: ", "# Driver: ", "# When: 20", "CUPTI was not found"})
        EXPECT_NE(text.find(what), std::string::npos) << what;
    // Every key that whatif knows, each with its noise.
    std::smatch match;
    for (const char *key :
         {"eager_launch",      "eager_memset",  "eager_copy",   "eager_record", "pageable_copy",
          "matched_launch",    "graph_launch",  "graph_node",   "patched_node", "graph_other",
          "graph_record",      "record",        "let_through",  "built_node",   "idle_sync",
          "wake_up",           "start",         "graph_kernel", "graph_seam",   "eager_kernel",
          "small_kernel",      "measured_more", "memset_more",  "op",           "eager_launch_gpu",
          "matched_launch_gpu"}) {
        std::regex line(std::string("\n# [^\n]*(were [0-9.e+]+ apart|Not measured)\\.\n") + key +
                        " = [0-9.e+]+\n");
        EXPECT_TRUE(std::regex_search(text, match, line)) << key;
    }
    // Calls are measured, with or without CUPTI.
    for (const char *key : {"eager_launch", "matched_launch", "let_through", "graph_other",
                            "eager_record", "graph_record", "record"})
        EXPECT_TRUE(std::regex_search(
            text, std::regex(std::string("were [0-9.e+]+ apart\\.\n") + key + " = ")))
            << key;
    // What has to take time did.
    for (const char *key : {"eager_launch", "matched_launch", "built_node", "graph_kernel"}) {
        std::regex line(std::string("\n") + key + " = ([0-9.e+]+)\n");
        ASSERT_TRUE(std::regex_search(text, match, line)) << key;
        EXPECT_GT(std::stod(match[1]), 0) << key;
    }
    std::string trace = folder + "/t.cst";
    Setting setting;
    setting.preload = true;
    setting.env = {{"CUSPLICE_RECORD", trace}, {"CUSIM_DELAY_US", "0"}};
    RunCase(CaseOf("steady"), setting);
    r = sim::Run(
        {{Runfile("tools/cusplice"), "whatif", "--cost", path, "--format", "json", trace}, {}, 60});
    EXPECT_EQ(r.status, 0) << r.err;
    Json played = ParseJson(r.out);
    EXPECT_GT(played.Number("baseline.predicted.step_us"), 0);
    EXPECT_GT(played.Number("recorded.step_us"), 0);
    EXPECT_NE(r.out.find("here.cost"), std::string::npos) << "a note says whose figures these are";
}

TEST(Calibrate, ReplacesAFileOnlyWhenAskedTo) {
    std::string folder = Folder(), path = folder + "/here.cost";
    Write(path, "mine");
    Result r = Calibrate({"-o", path});
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.err.find("here.cost: it is there already (--force replaces it)"), std::string::npos)
        << r.err;
    EXPECT_EQ(ReadFile(path), "mine");
    EXPECT_EQ(Listing(folder), "here.cost\n");
    r = Calibrate({"--force", "--output=" + path});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(ReadFile(path).find("[recorder]"), std::string::npos);
}

TEST(Calibrate, WhereTheDriverFailsNothingIsWritten) {
    const struct {
        const char *fault, *says;
    } faults[] = {
        {"cuInit:1:100", "cuInit(0): error 100"},
        {"cuGraphInstantiateWithFlags:3:2", ", 0): error 2"},
        {"cuStreamSynchronize:500+:700", "error 700"},
    };
    for (const auto &it : faults) {
        std::string folder = Folder(), path = folder + "/here.cost";
        Result r = Calibrate({"-o", path}, {{"CUSIM_FAULT", it.fault}});
        EXPECT_EQ(r.status, 1) << it.fault;
        EXPECT_NE(r.err.find(it.says), std::string::npos) << r.err;
        EXPECT_EQ(Listing(folder), "") << it.fault;
    }
    std::string folder = Folder();
    Result r = Calibrate({"-o", folder + "/here.cost"}, {{"LD_LIBRARY_PATH", "/nonexistent"}});
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.err.find("no CUDA driver"), std::string::npos) << r.err;
    EXPECT_EQ(Listing(folder), "");
}

TEST(Calibrate, SettingsOfWhoeverAsksDoNotCount) {
    Result r = Calibrate({}, {{"CUSPLICE_MODE", "off"},
                              {"CUSPLICE_EAGER", "chain"},
                              {"CUSPLICE_RECORD", "/nonexistent/x.cst"}});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find("\nmatched_launch = "), std::string::npos) << "on stdout without -o";
}

TEST(Calibrate, SaysWhatIsWrong) {
    struct {
        std::vector<std::string> words;
        int status;
        std::string says;
    } wrong[] = {
        {{"--ouput", "x"}, 2, "the nearest is --output"},
        {{"-o"}, 2, "-o: a value is missing"},
        {{"x.cost"}, 2, "takes no 'x.cost'; a file is named by -o"},
        {{"-o", "/nonexistent/x.cost"}, 1, "--output /nonexistent/x.cost: No such file"},
        {{"-o", ""}, 1, "a file name is expected"},
        {{"-o", "/tmp", "--force"}, 1, "--output /tmp: Is a directory"},
    };
    for (auto &it : wrong) {
        Result r = Calibrate(it.words);
        EXPECT_EQ(r.status, it.status) << it.says;
        EXPECT_EQ(r.out, "");
        EXPECT_NE(r.err.find(it.says), std::string::npos) << r.err;
    }
}

} // namespace
} // namespace sim
