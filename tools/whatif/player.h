/*
 * Plays a recorded program on the library's engine (shim/stream, plan, graph), with a driver that
 * does nothing and a clock that follows the trace. run.c calls it, once in a process. It never
 * uses recorded outcomes (FLUSH, LAUNCH, SEGMENT).
 */
#ifndef CUSPLICE_TOOLS_WHATIF_PLAYER_H
#define CUSPLICE_TOOLS_WHATIF_PLAYER_H

#include "shim/stats/stats.h"
#include "tools/whatif/clock.h"
#include "tools/whatif/driver.h"

/* Plain data: it goes through a pipe. */
struct whatif_played {
    struct cus_counters counters;
    struct whatif_asked asked;
    struct whatif_times times;
    uint64_t opaque;      /* launches whose params the trace does not have */
    uint64_t guessed;     /* ops of streams of which the trace does not say what they are */
    uint64_t switches;    /* from thread to thread */
    uint32_t threads;     /* that played */
    uint32_t mode;        /* enum cus_mode */
    uint64_t rules_unmet; /* rules that no kernel of the trace meets */
    char error[160];      /* "": it was played */
};

/* Once in the life of a process, of which the options and the rules are those to play by. `timing`
 * NULL: nothing is said of times. */
void whatif_play(const struct cst_trace *trace, const struct whatif_timing *timing,
                 struct whatif_played *out);

#endif
