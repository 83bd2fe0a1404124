/*
 * Writes the line of progress.h, in one write each time. It never uses a stdio stream, so that the
 * line and the text in a stream's buffer do not mix.
 */
#include "tools/trace/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, QUIET = SECOND / 2, PAUSE = SECOND / 10 };

static struct {
    enum { UNKNOWN, TERMINAL, NONE } stderr_is;
    bool shown;           /* in this process */
    uint64_t begun, last; /* ns; 0: not yet */
    double from, to;      /* the part of the whole; both 0: the whole */
} here;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static bool is_terminal(void) {
    if (here.stderr_is == UNKNOWN) {
        const char *term = getenv("TERM");
        bool can = term && *term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
        here.stderr_is = can ? TERMINAL : NONE;
        here.begun = now_ns();
    }
    return here.stderr_is == TERMINAL;
}

static void put(const char *text, int bytes) {
    ssize_t done = write(STDERR_FILENO, text, (size_t)bytes);
    (void)done; /* a terminal that is gone shows nothing */
}

void progress(const char *verb, uint64_t done, uint64_t of) {
    char line[64];
    if (!is_terminal() || !of)
        return;
    uint64_t now = now_ns();
    if (now - here.begun < QUIET || now - here.last < PAUSE)
        return;
    double part = done < of ? (double)done / (double)of : 1;
    if (here.to > 0)
        part = here.from + part * (here.to - here.from);
    if (!here.shown && !here.last)
        atexit(progress_clear); /* the verb may end anywhere */
    here.last = now;
    here.shown = true;
    put(line,
        snprintf(line, sizeof line, "\r\033[Kcusplice %.16s: %d %%", verb, (int)(part * 100)));
}

void progress_part(double from, double to) {
    is_terminal(); /* the time runs from here, in a child, too */
    here.from = from;
    here.to = to;
}

void progress_off(void) {
    progress_clear();
    here.stderr_is = NONE;
}

void progress_clear(void) {
    bool child = here.to > 0 && is_terminal() && now_ns() - here.begun >= QUIET;
    if (here.shown || child)
        put("\r\033[K", 4);
    here.shown = false;
}
