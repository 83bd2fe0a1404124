/*
 * Checks that a replayable trace is whole, by trace/reader_whole.c, and tells what is missing. The
 * verbs replay and bench call it. It never judges what the program did: the player does.
 */
#include "tools/replay/whole.h"

enum { SAID = 16 }; /* sentences, at most */

struct saying {
    const struct cst_trace *trace;
    replay_say_fn *say;
    unsigned n;
};

static void tell(void *context, const char *sentence) {
    struct saying *saying = context;
    if (!saying->n)
        saying->say("%s: cannot be replayed:", saying->trace->path);
    if (saying->n++ < SAID)
        saying->say("  %s", sentence);
}

bool replay_whole(const struct cst_trace *trace, replay_say_fn *say) {
    struct saying saying = {trace, say, 0};
    bool whole = cst_replay_whole(trace, true, tell, &saying);
    if (saying.n > SAID)
        say("  and %u more", saying.n - SAID);
    return whole;
}
