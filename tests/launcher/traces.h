// Shared code of the tests of verbs that read traces.
#ifndef CUSPLICE_TESTS_LAUNCHER_TRACES_H
#define CUSPLICE_TESTS_LAUNCHER_TRACES_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "tests/launcher/launcher.h"
#include "tests/sim/json.h"
#include "tests/unit/trace/golden.h"

namespace {

const char golden[] = "tests/golden/trace-v1.cst";

// stdout of a call that has to succeed and to be silent on stderr.
inline std::string Says(const Strings &arguments) {
    Result r = Cusplice(arguments);
    EXPECT_EQ(r.Exit(), 0) << arguments[0] << r.err;
    EXPECT_EQ(r.err, "");
    return r.out;
}

// stderr, one line, of a call that has to fail with that status.
inline std::string Fails(int status, const Strings &arguments) {
    Result r = Cusplice(arguments);
    EXPECT_EQ(r.Exit(), status) << arguments[0] << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err.compare(0, 10, "cusplice: "), 0) << r.err;
    EXPECT_EQ(r.err.find('\n'), r.err.size() - 1) << r.err;
    return r.err;
}

// What Python's reader of JSON, which is a strict one, says of each line.
inline void ExpectJsonLines(const std::string &text) {
    Result r =
        RunProgram({"/usr/bin/env", "-u", "LD_PRELOAD", "python3", "-c",
                    "import json,sys\nfor l in sys.stdin.buffer: json.loads(l.decode('utf-8'))"},
                   {}, text);
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

inline sim::Json Parse(const std::string &text) {
    sim::Json json = sim::ParseJson(text);
    EXPECT_TRUE(json.valid) << text;
    return json;
}

inline sim::Json Report(const std::string &name, const std::string &path, Strings more = {}) {
    more.insert(more.begin(), {"report", name, "--format", "json", path});
    return Parse(Says(more));
}

// The number of the row in which `key` is `value`; fails where there is none or several.
inline std::string Row(const sim::Json &json, const std::string &key, const std::string &value) {
    std::string found;
    for (const auto &[path, text] : json.text)
        if (text == value && path.compare(0, 5, "rows.") == 0 &&
            path.substr(path.rfind('.') + 1) == key) {
            EXPECT_EQ(found, "") << value << " twice";
            found = path.substr(0, path.rfind('.') + 1);
        }
    EXPECT_NE(found, "") << key << " " << value;
    return found;
}

// A trace in the test's folder: thread 1, streams 1 and 2, then what `fill` writes.
inline std::string Make(const std::string &name, const std::function<void(Synth *)> &fill,
                        bool packed = false) {
    std::string path = Folder() + "/" + name;
    unlink(path.c_str());
    Synth s(path, packed);
    s.Thread(100, "main");
    s.Stream(CST_STREAM_LEGACY, 0);
    s.Stream(CST_STREAM_CREATED, 0x77);
    fill(&s);
    EXPECT_EQ(s.Close(), 0);
    return path;
}

} // namespace

#endif
