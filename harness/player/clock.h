/*
 * When a thread's next call is due.
 *
 * Between a return and the next call, all that the player does takes time: it looks at the clock
 * behind the one, and before the other until the moment has come. Two halves of a look lie outside
 * of what the clock shows, so a gap is asked for that is shorter by one look; and what the last
 * look came too late is taken from the gaps behind it.
 */
#ifndef CUSPLICE_PLAYER_CLOCK_H
#define CUSPLICE_PLAYER_CLOCK_H

#include <stdint.h>

enum { PLAYER_LATE_MOST = 1000 }; /* ns; a thread that was not running has just been late */

struct player_clock {
    uint64_t ended; /* ns: when the thread's last call returned */
    uint64_t late;  /* ns that its calls are behind */
};

/* `look`: what one look at the clock takes, ns. */
static inline uint64_t player_clock_due(const struct player_clock *clock, uint64_t gap_ns,
                                        uint64_t look) {
    uint64_t sooner = look + clock->late;
    return clock->ended + (gap_ns > sooner ? gap_ns - sooner : 0);
}

/* The call is made, behind a look that showed `at`. */
static inline void player_clock_made(struct player_clock *clock, uint64_t gap_ns, uint64_t look,
                                     uint64_t at) {
    uint64_t took = at - clock->ended + look + clock->late;
    uint64_t late = took > gap_ns ? took - gap_ns : 0;
    clock->late = late < PLAYER_LATE_MOST ? late : (uint64_t)PLAYER_LATE_MOST;
}

#endif
