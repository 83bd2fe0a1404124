// Promise: every option of the decode host takes what its help says; mistakes are named and end
// with status 2.
#include "harness/decode/options.h"

#include <getopt.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

struct Parsed {
    decode_options options;
    int status;
    std::string out, err;
};

Parsed parse(std::vector<std::string> words) {
    words.insert(words.begin(), "decode");
    std::vector<char *> argv;
    for (std::string &word : words) {
        argv.push_back(&word[0]);
    }
    argv.push_back(nullptr);
    Parsed parsed;
    // 0 makes getopt start anew.
    optind = 0;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    parsed.status =
        decode_options_parse(&parsed.options, static_cast<int>(words.size()), argv.data());
    parsed.out = testing::internal::GetCapturedStdout();
    parsed.err = testing::internal::GetCapturedStderr();
    return parsed;
}

TEST(Options, HaveDefaults) {
    Parsed parsed = parse({});
    EXPECT_EQ(parsed.status, -1);
    EXPECT_STREQ(parsed.options.prompt, "It is a truth universally acknowledged, that");
    EXPECT_EQ(parsed.options.tokens, 200);
    EXPECT_EQ(parsed.options.batch, 1);
    EXPECT_EQ(parsed.options.prefill, 1);
    EXPECT_EQ(parsed.options.mixed, 0);
    EXPECT_EQ(parsed.options.temperature, 0.0f);
    EXPECT_EQ(parsed.options.seed, 1u);
    EXPECT_EQ(parsed.options.stream, DECODE_STREAM_NONBLOCKING);
    EXPECT_EQ(parsed.options.model, nullptr);
    EXPECT_EQ(parsed.options.report, nullptr);
}

TEST(Options, AreTaken) {
    Parsed parsed = parse({"--tokens", "7", "--batch=3", "--temperature", "0.5", "--seed",
                           "18446744073709551615", "--stream", "legacy", "--report", "r.json"});
    EXPECT_EQ(parsed.status, -1);
    EXPECT_EQ(parsed.options.tokens, 7);
    EXPECT_EQ(parsed.options.batch, 3);
    EXPECT_EQ(parsed.options.temperature, 0.5f);
    EXPECT_EQ(parsed.options.seed, 18446744073709551615ull);
    EXPECT_EQ(parsed.options.stream, DECODE_STREAM_LEGACY);
    EXPECT_EQ(parse({"--prefill", "64"}).options.prefill, 64);
    EXPECT_EQ(parse({"--mixed"}).options.mixed, 1);
    EXPECT_EQ(parse({"--stream", "blocking"}).options.stream, DECODE_STREAM_BLOCKING);
    EXPECT_EQ(parsed.err, "");
}

TEST(Options, NameMistakes) {
    const std::vector<std::vector<std::string>> mistakes = {
        {"--tokens", "0"},
        {"--tokens", "1000001"},
        {"--tokens", "ten"},
        {"--tokens", ""},
        {"--tokens", "5x"},
        {"--batch", "-1"},
        {"--batch", "99999999999999999999"},
        {"--prefill", "0"},
        {"--prefill", "4097"},
        {"--prefill", "all"},
        {"--prefill"},
        {"--mixed=2"},
        {"--prefill", "64", "--batch", "1024"},
        {"--batch", "1024", "--prefill", "64"},
        {"--batches", "0"},
        {"--batches", "1,,2"},
        {"--batches", "1,2,"},
        {"--batches", "1 2"},
        {"--batches", "1,+2"},
        {"--batches", "1000,25"},
        {"--batches", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"},
        {"--batches", "1,2", "--mixed"},
        {"--temperature", "-1"},
        {"--temperature", "nan"},
        {"--temperature", "1e-9"},
        {"--temperature", "hot"},
        {"--seed", "-1"},
        {"--seed", "1e3"},
        {"--stream", "default"},
        {"--tokens"},
        {"--nonsense"},
        {"text"},
    };
    for (const auto &words : mistakes) {
        Parsed parsed = parse(words);
        EXPECT_EQ(parsed.status, DECODE_EXIT_USAGE) << words[0];
        std::string name = words[0].substr(0, words[0].find('='));
        EXPECT_NE(parsed.err.find(name), std::string::npos) << parsed.err;
        EXPECT_EQ(parsed.out, "");
    }
}

TEST(Options, BatchesAreTaken) {
    Parsed parsed = parse({"--batches", "1,2,16"});
    EXPECT_EQ(parsed.status, -1);
    EXPECT_EQ(parsed.options.n_batches, 3);
    EXPECT_EQ(parsed.options.batches[2], 16);
    EXPECT_EQ(parsed.options.batch, 19);
    EXPECT_EQ(parse({"--batches", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1009"}).options.batch, 1024);
    parsed = parse({"--batches", "1,2", "--batch", "5"}); // the later one
    EXPECT_EQ(parsed.options.n_batches, 0);
    EXPECT_EQ(parsed.options.batch, 5);
}

TEST(Options, BoundTheRowsOfAStep) {
    EXPECT_EQ(parse({"--prefill", "63", "--batch", "1024"}).status, -1);
    EXPECT_EQ(parse({"--prefill", "4096", "--batch", "15"}).status, -1);
    EXPECT_EQ(parse({"--prefill", "4096", "--batch", "16"}).status, DECODE_EXIT_USAGE);
    // One prompt at a time: the others have a row each.
    EXPECT_EQ(parse({"--prefill", "4096", "--batch", "1024", "--mixed"}).status, -1);
}

TEST(Options, HelpNamesEveryOption) {
    Parsed parsed = parse({"--help"});
    EXPECT_EQ(parsed.status, DECODE_EXIT_OK);
    for (const char *name : {"prompt", "tokens", "batch", "batches", "prefill", "mixed",
                             "temperature", "seed", "stream", "model", "report", "help"}) {
        EXPECT_NE(parsed.out.find(std::string("--") + name), std::string::npos) << name;
    }
}

} // namespace
