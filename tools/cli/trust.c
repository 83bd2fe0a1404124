/*
 * Asks on stderr and reads stdin, only where both are a terminal. The verbs bench, replay and
 * whatif call it. Elsewhere it refuses, unless --trust was given.
 */
#include "tools/cli/trust.h"

#include <stdio.h>
#include <unistd.h>

#include "tools/cli/verb.h"
#include "tools/whatif/facts.h"

static bool ask(const char *path, const char *why) {
    char answer[16] = "";
    cli_say("%s: %s. A replay runs the GPU code in it, as you.", path, why);
    fputs("Play it? [y/N] ", stderr);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

bool cli_trust(const struct cst_trace *trace, bool *trusted) {
    const char *why = *trusted ? NULL : cst_distrust(trace);
    if (!why)
        return true;
    if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        return *trusted = ask(trace->path, why);
    cli_say("%s: %s, and a replay runs the GPU code in it, as you: --trust plays it all the same",
            trace->path, why);
    return false;
}

void cli_say_not_taken(const struct cst_trace *trace) {
    char list[512];
    if (whatif_facts_not_taken(trace, list, sizeof list))
        cli_say("%s: the recording had %s, which is not taken from a trace (--set takes it)",
                trace->path, list);
}
