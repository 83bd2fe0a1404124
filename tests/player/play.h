// Shared code of player_test and refuses_test: plays a made trace on the simulator, and reads the
// player's answers.
#ifndef CUSPLICE_TESTS_PLAYER_PLAY_H
#define CUSPLICE_TESTS_PLAYER_PLAY_H

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/launcher/launcher.h"
#include "tests/player/made.h"
#include "tests/sim/json.h"

namespace {

std::vector<std::string> Lines(const std::string &text) {
    std::vector<std::string> lines;
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        lines.push_back(text.substr(at, end - at));
    return lines;
}

Environment Simulator(Environment more = {}) {
    more.emplace("LD_LIBRARY_PATH", "harness/sim/lib");
    more.emplace("CUSIM_DELAY_US", "0");
    return more;
}

Result Play(const std::string &trace, const std::string &input, const Environment &more = {},
            const std::string &pace = "none") {
    return RunProgram({"harness/player/player", "--pace", pace, trace}, Simulator(more), input);
}

sim::Json Answer(const Result &r, size_t line) {
    std::vector<std::string> lines = Lines(r.out);
    EXPECT_GT(lines.size(), line) << r.out << r.err;
    sim::Json json = sim::ParseJson(lines.size() > line ? lines[line] : "{}");
    EXPECT_TRUE(json.valid) << r.out;
    return json;
}

// A trace of one launch, and what `change` adds before it.
struct Small {
    explicit Small(const std::string &name) : path(Fresh(name)), m(path) {
        module = m.Module();
        lane = m.Lane(CST_STREAM_LEGACY);
        a = m.Alloc(0, 4096);
    }
    std::string End() {
        m.Chain(lane, a, 3, 1, 16);
        m.Sync(0);
        m.Check(a, 64);
        EXPECT_EQ(m.Close(), 0);
        return path;
    }
    std::string path;
    Made m;
    uint32_t module, lane;
    uint64_t a;
};

} // namespace

#endif
