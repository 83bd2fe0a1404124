// The decode host writes the text that the NumPy reference writes, on every kind of stream and in
// every row of a batch; it finds its weights by itself, its output is the text alone, and its
// failures have a name and an exit status.
//
// golden.txt: harness/decode/reference.py harness/decode/model/austen.bin --prompt "They walked"
// --tokens 128. The closest choice in it is 0.045 apart, hundreds of times what single precision
// may differ by.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/cases.h"

namespace {

using sim::Result;

Result decode(std::vector<std::string> args, std::map<std::string, std::string> env = {}) {
    sim::Setting setting;
    setting.env = std::move(env);
    args.insert(args.begin(), sim::Runfile("harness/decode/decode"));
    return sim::RunProgram(args, setting).result;
}

const std::vector<std::string> kGolden = {"--prompt", "They walked", "--tokens", "128"};

std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string> &more) {
    args.insert(args.end(), more.begin(), more.end());
    return args;
}

std::string golden() {
    return sim::ReadFile(sim::Runfile("tests/unit/decode/golden.txt"));
}

TEST(Text, IsTheReferences) {
    ASSERT_EQ(golden().size(), 11u + 128u + 1u);
    for (const char *stream : {"nonblocking", "blocking", "legacy"}) {
        Result result = decode(with(kGolden, {"--stream", stream}));
        EXPECT_EQ(result.status, 0) << result.err;
        EXPECT_EQ(result.out, golden());
        EXPECT_NE(result.err.find(" tokens/s\n"), std::string::npos) << result.err;
    }
}

TEST(Text, IsTheReferencesInEveryRow) {
    Result result = decode(with(kGolden, {"--batch", "3"}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, golden() + "\n" + golden() + "\n" + golden());
}

TEST(Text, IsTheSameForASeedAndAnotherForAnother) {
    const std::vector<std::string> drawn = {"--tokens", "40", "--temperature", "0.8", "--seed"};
    std::string once = decode(with(drawn, {"5"})).out;
    EXPECT_EQ(once.size(), 44u + 40u + 1u);
    EXPECT_EQ(decode(with(drawn, {"5"})).out, once);
    EXPECT_NE(decode(with(drawn, {"6"})).out, once);
    // Rows draw on their own, and the first one as if it were alone.
    std::string rows = decode(with(drawn, {"5", "--batch", "2"})).out;
    ASSERT_EQ(rows.size(), 2 * once.size() + 1);
    EXPECT_EQ(rows.substr(0, once.size()), once);
    EXPECT_NE(rows.substr(once.size() + 1), once);
}

// Attention looks back over as many positions as the weights file says, and a text may be longer.
// golden_context.txt: reference.py --context 40 --prompt Marianne --tokens 90, closest choice
// 0.051.
TEST(Text, GoesOnBehindTheContext) {
    std::string model = sim::ReadFile(sim::Runfile("harness/decode/austen.bin"));
    ASSERT_EQ(model.substr(36, 4), std::string("\0\2\0\0", 4));
    model.replace(36, 4, std::string("\50\0\0\0", 4));
    std::string path = sim::TempDir() + "/short.bin";
    std::ofstream(path, std::ios::binary) << model;
    Result result = decode({"--model", path, "--prompt", "Marianne", "--tokens", "90"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, sim::ReadFile(sim::Runfile("tests/unit/decode/golden_context.txt")));
}

TEST(Text, MayStartFromNothing) {
    Result result = decode({"--prompt", "", "--tokens", "16"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, "\"I have not the \n");
}

TEST(Report, HasTheFigures) {
    std::string path = sim::TempDir() + "/report.json";
    Result result = decode({"--prompt", "He", "--tokens", "6", "--batch", "2", "--report", path});
    ASSERT_EQ(result.status, 0) << result.err;
    std::istringstream text(sim::ReadFile(path));
    std::string line, more;
    std::getline(text, line);
    EXPECT_FALSE(std::getline(text, more));
    EXPECT_EQ(line.rfind("{\"tokens\": 12, \"tokens_per_s\": ", 0), 0u) << line;
    EXPECT_NE(line.find("\"batch\": 2, \"prompt_tokens\": 3}"), std::string::npos) << line;

    Result nowhere = decode({"--tokens", "1", "--report", "/no/such/folder/report.json"});
    EXPECT_EQ(nowhere.status, 1);
    EXPECT_NE(nowhere.err.find("/no/such/folder/report.json"), std::string::npos) << nowhere.err;
}

TEST(Failure, HasANameAndAStatus) {
    Result model = decode({"--model", "/dev/null", "--tokens", "1"});
    EXPECT_EQ(model.status, 1);
    EXPECT_EQ(model.err, "decode: /dev/null: this is no weights file of a character model\n");

    Result prompt = decode({"--prompt", "na\xc3\xafve"});
    EXPECT_EQ(prompt.status, 2);
    EXPECT_EQ(prompt.err, "decode: the model does not know byte 0xc3 (place 3 of the prompt)\n");

    Result memory = decode({"--tokens", "1"}, {{"CUSIM_FAULT", "cuMemAlloc_v2:2:2"}});
    EXPECT_EQ(memory.status, 1);
    EXPECT_EQ(memory.out, "");
    EXPECT_NE(memory.err.find("cudaErrorMemoryAllocation"), std::string::npos) << memory.err;

    Result launch = decode({"--tokens", "1"}, {{"CUSIM_FAULT", "cuLaunchKernel:20:719"}});
    EXPECT_EQ(launch.status, 1);
    EXPECT_NE(launch.err.find("decode_launch_"), std::string::npos) << launch.err;
}

} // namespace
