/*
 * Computes when a thread's next call is due.
 *
 * The player needs time between two calls: it reads the clock after the first call, and again until
 * the next one is due. Half of each reading lies outside of the time that it shows, so the player
 * asks for a gap that is shorter by one reading. If the last reading came too late, later gaps are
 * shorter by that.
 */
#ifndef CUSPLICE_PLAYER_CLOCK_H
#define CUSPLICE_PLAYER_CLOCK_H

#include <stdint.h>

/* ns. If a thread did not run for a while, it counts as late by this much. */
enum { PLAYER_LATE_MOST = 1000 };

struct player_clock {
    uint64_t ended; /* ns: when the thread's last call returned */
    uint64_t late;  /* ns that the thread's calls are late */
};

/* `look`: the time of one reading of the clock, ns. */
static inline uint64_t player_clock_due(const struct player_clock *clock, uint64_t gap_ns,
                                        uint64_t look) {
    uint64_t sooner = look + clock->late;
    return clock->ended + (gap_ns > sooner ? gap_ns - sooner : 0);
}

/* Notes a call, made after a reading that showed `at`. */
static inline void player_clock_made(struct player_clock *clock, uint64_t gap_ns, uint64_t look,
                                     uint64_t at) {
    uint64_t took = at - clock->ended + look + clock->late;
    uint64_t late = took > gap_ns ? took - gap_ns : 0;
    clock->late = late < PLAYER_LATE_MOST ? late : (uint64_t)PLAYER_LATE_MOST;
}

#endif
