// Promise: the player's clock keeps the time between two calls. The test makes the host's clock:
// reading it takes LOOK ns, half of that before the moment that it shows.
#include "harness/player/clock.h"

#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace {

constexpr uint64_t LOOK = 24;

struct Host {
    uint64_t time = 1000000;
    player_clock clock = {};

    uint64_t Look() {
        time += LOOK;
        return time - LOOK / 2;
    }

    // As the player does: returned, waits, and is about to call. What that took.
    uint64_t Gap(uint64_t ns) {
        uint64_t began = time;
        clock.ended = Look();
        uint64_t due = player_clock_due(&clock, ns, LOOK), at = Look();
        while (at < due)
            at = Look();
        player_clock_made(&clock, ns, LOOK, at);
        uint64_t took = time - began;
        time += 500; // the call
        return took;
    }
};

TEST(Clock, GapsTakeWhatTheyTookTogether) {
    for (uint64_t most : {200, 1000, 5000}) {
        Host host;
        std::mt19937 random(static_cast<uint32_t>(most));
        int64_t behind = 0;
        for (int i = 0; i < 2000; i++) {
            uint64_t ns = random() % most;
            behind += static_cast<int64_t>(host.Gap(ns)) - static_cast<int64_t>(ns);
            EXPECT_GE(behind, 0);
            // Never more than a look late, and what gaps shorter than two looks could not give
            // back.
            EXPECT_LE(behind, static_cast<int64_t>(LOOK * 8)) << most << ": call " << i;
        }
    }
}

TEST(Clock, GapsWithoutAnythingInThemAreAsShortAsCanBe) {
    Host host;
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(host.Gap(0), 2 * LOOK);
}

// A host that did not run for a while goes on as it would have: gaps are not run through to catch
// up.
TEST(Clock, ALateCallIsNotCaughtUpWith) {
    Host host;
    host.Gap(100);
    host.time += 50000000;
    uint64_t since = host.time;
    player_clock_made(&host.clock, 100, LOOK, host.time);
    uint64_t took = 0;
    for (int i = 0; i < 100; i++)
        took += host.Gap(1000);
    EXPECT_GE(took, 100 * 1000u - PLAYER_LATE_MOST);
    EXPECT_LE(took, 100 * 1000u + LOOK);
    EXPECT_EQ(host.time - since, took + 100 * 500);
}

} // namespace
