// Promise: the JSON writer handles its three forms, extreme numbers, text from outside, and files.
#include "shim/base/json.h"

#include <gtest/gtest.h>
#include <stdint.h>
#include <unistd.h>

#include <string>

#include "shim/base/json_file.h"

namespace {

void Take(void *to, const char *bytes, size_t n) {
    static_cast<std::string *>(to)->append(bytes, n);
}

cus_json To(std::string *out, cus_json_form form) {
    cus_json w = {};
    w.put = Take;
    w.to = out;
    w.form = form;
    return w;
}

std::string Small(cus_json_form form) {
    std::string out;
    cus_json w = To(&out, form);
    cus_json_open(&w, nullptr, '{');
    cus_json_text(&w, "a", "b");
    cus_json_open(&w, "c", '[');
    cus_json_number(&w, nullptr, 1);
    cus_json_bool(&w, nullptr, true);
    cus_json_text(&w, nullptr, nullptr);
    cus_json_open(&w, nullptr, '{');
    cus_json_close(&w, '}');
    cus_json_close(&w, ']');
    cus_json_raw(&w, "d", "[2]");
    cus_json_close(&w, '}');
    cus_json_end(&w);
    cus_json_number(&w, nullptr, 3); // the next line begins anew
    return out;
}

TEST(Json, HasThreeForms) {
    EXPECT_EQ(Small(CUS_JSON_TIGHT), "{\"a\":\"b\",\"c\":[1,true,null,{}],\"d\":[2]}\n3");
    EXPECT_EQ(Small(CUS_JSON_SPACED), "{\"a\": \"b\", \"c\": [1, true, null, {}], \"d\": [2]}\n3");
    EXPECT_EQ(Small(CUS_JSON_INDENTED), "{\n  \"a\": \"b\",\n  \"c\": [\n    1,\n    true,\n"
                                        "    null,\n    {}\n  ],\n  \"d\": [2]\n}\n3");
}

TEST(Json, NumbersAreWhole) {
    std::string out;
    cus_json w = To(&out, CUS_JSON_TIGHT);
    cus_json_open(&w, nullptr, '[');
    for (uint64_t n : {uint64_t{0}, uint64_t{9}, uint64_t{10}, UINT64_MAX})
        cus_json_number(&w, nullptr, n);
    for (int64_t n : {INT64_MIN, int64_t{-10}, int64_t{-9}, INT64_MAX})
        cus_json_integer(&w, nullptr, n);
    EXPECT_EQ(out, "[0,9,10,18446744073709551615,-9223372036854775808,-10,-9,9223372036854775807");
}

TEST(Json, TextsAreUtf8OrBytes) {
    const char *text = "a\"\\\n\x7f\xc3\xa9\xff\xe2\x80\xae\xf0\x9f\x98\x80\xf3\xa0\x80\x81";
    std::string out, tight;
    cus_json_string(Take, &out, text);
    EXPECT_EQ(out, "\"a\\\"\\\\\\u000a\\u007f\xc3\xa9\xef\xbf\xbd\\u202e\xf0\x9f\x98\x80"
                   "\\udb40\\udc01\"");
    cus_json w = To(&tight, CUS_JSON_TIGHT);
    cus_json_text(&w, nullptr, text);
    EXPECT_EQ(tight, "\"a\\\"\\\\\\u000a\\u007f\\u00c3\\u00a9\\u00ff\\u00e2\\u0080\\u00ae"
                     "\\u00f0\\u009f\\u0098\\u0080\\u00f3\\u00a0\\u0080\\u0081\"");
}

// What is longer than the writer's own room, which any part of it may cross.
TEST(Json, TextsHaveAnyLength) {
    for (size_t bytes = 0; bytes < 300; bytes++) {
        std::string out, text(bytes, 'x');
        cus_json w = To(&out, CUS_JSON_SPACED);
        cus_json_open(&w, nullptr, '{');
        cus_json_number(&w, text.c_str(), 12345);
        cus_json_text(&w, text.c_str(), (text + "\xc3\xa9").c_str());
        cus_json_close(&w, '}');
        EXPECT_EQ(out, "{\"" + text + "\": 12345, \"" + text + "\": \"" + text + "\xc3\xa9\"}");
    }
}

TEST(JsonFile, IsWholeOrNotThere) {
    std::string path = std::string(getenv("TEST_TMPDIR")) + "/f.json";
    cus_json_file w;
    ASSERT_TRUE(cus_json_file_begin(&w, path.c_str()));
    cus_json_open(&w.json, nullptr, '{');
    cus_json_text(&w.json, "long", std::string(5000, 'x').c_str());
    EXPECT_NE(access(path.c_str(), F_OK), 0) << "it is there before its end";
    cus_json_close(&w.json, '}');
    ASSERT_TRUE(cus_json_file_end(&w));
    FILE *file = fopen(path.c_str(), "r");
    ASSERT_NE(file, nullptr);
    std::string text(6000, 0);
    text.resize(fread(&text[0], 1, text.size(), file));
    fclose(file);
    EXPECT_EQ(text, "{\n  \"long\": \"" + std::string(5000, 'x') + "\"\n}\n");
    EXPECT_FALSE(cus_json_file_begin(&w, "/nowhere/f.json"));
}

} // namespace
