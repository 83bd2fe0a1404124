// Promise: facts are read safely even if their JSON was written by somebody else.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

extern "C" {
#include "tools/trace/facts.h"
}

namespace {

std::string Line(const std::string &text) {
    char *line = facts_line(text.c_str());
    std::string result = line ? line : "refused";
    free(line);
    return result;
}

TEST(Facts, SpaceBetweenPartsGoesAndNothingElse) {
    EXPECT_EQ(Line("{}"), "{}");
    EXPECT_EQ(Line(" {\n} \n"), "{}");
    EXPECT_EQ(Line("{\"a b\" : [ 1 , -2.5e+3,\ttrue, false , null, \"x \\\" \\u00e9\" ] ,\r\n"
                   "\"o\":{ \"p\" : { } , \"q\":[ ] } }"),
              "{\"a b\":[1,-2.5e+3,true,false,null,\"x \\\" \\u00e9\"],\"o\":{\"p\":{},\"q\":[]}}");
}

TEST(Facts, WhatIsNoObjectIsRefused) {
    for (const char *text : {"",
                             "1",
                             "[]",
                             "\"x\"",
                             "{",
                             "}",
                             "{}x",
                             "{} {}",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{\"a\":1,}",
                             "{a:1}",
                             "{\"a\":01}",
                             "{\"a\":1.}",
                             "{\"a\":.5}",
                             "{\"a\":+1}",
                             "{\"a\":1e}",
                             "{\"a\":tru}",
                             "{\"a\":truex}",
                             "{\"a\":[1,]}",
                             "{\"a\":[1}",
                             "{\"a\":\"x}",
                             "{\"a\":\"\\x\"}",
                             "{\"a\":\"\\u12g4\"}",
                             "{\"a\":\"\\",
                             "{\"a\":\"\x01\"}",
                             "{\"a\":\"\n\"}",
                             "{\"a\":1 2}",
                             "{\"a\" 1}",
                             "{,}",
                             "{\"a\":-}",
                             "{\"a\":nul"})
        EXPECT_EQ(Line(text), "refused") << text;
}

TEST(Facts, DepthIsLimited) {
    auto nested = [](int n) {
        return "{\"a\":" + std::string(static_cast<size_t>(n), '[') +
               std::string(static_cast<size_t>(n), ']') + "}";
    };
    EXPECT_EQ(Line(nested(60)), nested(60));
    EXPECT_EQ(Line(nested(64)), "refused");
    EXPECT_EQ(Line("{\"a\":" + std::string(1000000, '[')), "refused");
}

TEST(Facts, MembersAreToldInOrder) {
    std::vector<std::string> told;
    std::string line = Line("{\"a\": [1, {\"b\": 2}], \"\\\"\": \"x,y\", \"b\": {}}");
    facts_each(
        line.c_str(),
        [](void *to, const char *key, size_t key_bytes, const char *value, size_t bytes) {
            static_cast<std::vector<std::string> *>(to)->push_back(std::string(key, key_bytes) +
                                                                   "=" + std::string(value, bytes));
        },
        &told);
    EXPECT_EQ(told,
              (std::vector<std::string>{"\"a\"=[1,{\"b\":2}]", "\"\\\"\"=\"x,y\"", "\"b\"={}"}));
}

TEST(Facts, StringsAreCleaned) {
    // Half a pair is no character; a pair and other escapes stay.
    EXPECT_EQ(Line("{\"\\ud83d\\ude00\":\"\\ud83dx\\ude00\\n\\u2028\\\\ud800\"}"),
              "{\"\\ud83d\\ude00\":\"\\ufffdx\\ufffd\\n\\u2028\\\\ud800\"}");
    EXPECT_EQ(Line("{\"a\":\"\\ud83d\\ud83d\\ude00\"}"), "{\"a\":\"\\ufffd\\ud83d\\ude00\"}");
    EXPECT_EQ(Line("{\"a\":\"\x7f \xc2\x9b \xff \xe2\x80\xa8 \xe2\x80\xae \xc3\xa9\"}"),
              "{\"a\":\"\\u007f \\u009b \xef\xbf\xbd \\u2028 \\u202e \xc3\xa9\"}");
    std::string many = "{\"" + std::string(1000, '\x7f') + "\":1}";
    EXPECT_EQ(Line(many).size(), 6000u + 6);
}

} // namespace
