// Promise: the decode host writes the text of the NumPy reference, on every kind of stream and in
// every row of a batch. It finds its weights, prints only the text, and names its failures.
//
// golden.txt: harness/decode/reference.py harness/decode/model/austen.bin --prompt "They walked"
// --tokens 128. Its closest choice is 0.045 apart, hundreds of times the error of single precision.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
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
    return ReadFile(sim::Runfile("tests/unit/decode/golden.txt"));
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
    std::string model = ReadFile(sim::Runfile("harness/decode/austen.bin"));
    ASSERT_EQ(model.substr(36, 4), std::string("\0\2\0\0", 4));
    model.replace(36, 4, std::string("\50\0\0\0", 4));
    std::string path = sim::TempDir() + "/short.bin";
    std::ofstream(path, std::ios::binary) << model;
    std::string text = ReadFile(sim::Runfile("tests/unit/decode/golden_context.txt"));
    Result result = decode({"--model", path, "--prompt", "Marianne", "--tokens", "90"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, text);

    // Two sequences out of step, both past it.
    result = decode({"--model", path, "--prompt", "Marianne", "--tokens", "45", "--batch", "2",
                     "--mixed", "--prefill", "4"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, text.substr(0, 8 + 45) + "\n\n" + text.substr(0, 8 + 45) + "\n");

    // A prompt that goes past it inside of a chunk: the text's first 80 characters.
    ASSERT_EQ(text.size(), 99u);
    result = decode(
        {"--model", path, "--prompt", text.substr(0, 80), "--tokens", "18", "--prefill", "70"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, text);
}

// The first length - 1 characters of the line end and the prompt are taken one by one, in chunks,
// or while other sequences write: what is written must not know.
struct Way {
    std::vector<std::string> options;
    int batch, prefill_steps, mixed_steps, decode_steps;
};

TEST(Text, IsTheSameHoweverThePromptIsTaken) {
    // 12 tokens and 10 characters, so 21 rows of each sequence.
    const std::vector<std::string> drawn = {"--prompt", "They walked", "--tokens",      "10",
                                            "--seed",   "5",           "--temperature", "0.8"};
    const std::vector<Way> ways = {
        {{"--prefill", "1"}, 1, 0, 0, 21},
        {{"--prefill", "7"}, 1, 2, 0, 9},
        {{"--prefill", "64"}, 1, 1, 0, 9},
        {{"--mixed", "--prefill", "7"}, 1, 2, 0, 9},
        {{"--prefill", "7"}, 4, 2, 0, 9},
        // The last of the prompt goes alone: a step like any other.
        {{"--prefill", "11"}, 4, 1, 0, 10},
        {{"--prefill", "64"}, 4, 1, 0, 9},
        {{"--mixed"}, 4, 0, 0, 57},
        {{"--mixed", "--prefill", "7"}, 4, 2, 6, 9},
        {{"--mixed", "--prefill", "11"}, 4, 1, 3, 13},
        {{"--mixed", "--prefill", "64"}, 4, 1, 3, 9},
    };
    std::map<int, std::string> texts;
    for (int batch : {1, 4}) {
        Result plain = decode(with(drawn, {"--batch", std::to_string(batch)}));
        ASSERT_EQ(plain.status, 0) << plain.err;
        texts[batch] = plain.out;
    }
    ASSERT_EQ(texts[1].size(), 11u + 10u + 1u);
    ASSERT_EQ(texts[4].size(), 4 * texts[1].size() + 3);
    ASSERT_NE(texts[4].substr(texts[1].size() + 1, texts[1].size()), texts[1]) << "rows differ";
    std::string report = sim::TempDir() + "/report.json";
    for (const Way &way : ways) {
        auto args = with(
            drawn, with(way.options, {"--batch", std::to_string(way.batch), "--report", report}));
        Result result = decode(args);
        std::string name = "batch " + std::to_string(way.batch);
        for (const auto &word : way.options) {
            name += " " + word;
        }
        EXPECT_EQ(result.status, 0) << name << result.err;
        EXPECT_EQ(result.out, texts[way.batch]) << name;
        std::string steps = "\"prefill_steps\": " + std::to_string(way.prefill_steps) +
                            ", \"mixed_steps\": " + std::to_string(way.mixed_steps) +
                            ", \"decode_steps\": " + std::to_string(way.decode_steps) + ",";
        EXPECT_NE(ReadFile(report).find(steps), std::string::npos)
            << name << ": " << ReadFile(report);
    }
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
    std::istringstream text(ReadFile(path));
    std::string line, more;
    std::getline(text, line);
    EXPECT_FALSE(std::getline(text, more));
    EXPECT_EQ(line.rfind("{\"tokens\": 12, \"tokens_per_s\": ", 0), 0u) << line;
    EXPECT_NE(line.find("\"batch\": 2, \"prompt_tokens\": 3, \"prefill_steps\": 0, "
                        "\"mixed_steps\": 0, \"decode_steps\": 8, "),
              std::string::npos)
        << line;
    auto said = sim::ParseJson(line);
    EXPECT_GT(said.Number("step_p10_us"), 0);
    EXPECT_LE(said.Number("step_p10_us"), said.Number("seconds") * 1e6 / 6 + 1)
        << "the fastest of 8 steps, 6 of which write";

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
