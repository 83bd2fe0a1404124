/*
 * One player (harness/player): a child that answers each line with a line of JSON. run.c calls it,
 * on one thread. It never measures anything.
 */
#ifndef CUSPLICE_TOOLS_REPLAY_PROCESS_H
#define CUSPLICE_TOOLS_REPLAY_PROCESS_H

#include <sys/types.h>

#include "tools/replay/run.h"

struct replay_process {
    pid_t pid; /* 0: none */
    int to;
    int from;
    char *answer; /* the last line, as facts_line gives it */
    char *text;   /* what was read and not yet answered */
    size_t used, room;
};

/* False with a sentence in `error`. What the child says first is asked for by replay_ask. */
bool replay_begin(struct replay_process *process, const struct replay_setup *setup,
                  const struct replay_strategy *strategy, char *error, size_t bytes);
/* Sends the line (NULL: nothing) and waits for the answer. False with a sentence where the child
 * failed or is no more. */
bool replay_ask(struct replay_process *process, const char *line, char *error, size_t bytes);
/* Ends it; may be called twice. */
void replay_end(struct replay_process *process);

/* Of the last answer. */
uint64_t replay_number(const struct replay_process *process, const char *key);
bool replay_true(const struct replay_process *process, const char *key);
/* A text, or element `i` of an array of texts; false: there is none. */
bool replay_text(const struct replay_process *process, const char *key, unsigned i, char *out,
                 size_t bytes);
/* An array of numbers: how many, those that fit into `out`. */
size_t replay_numbers(const struct replay_process *process, const char *key, uint64_t *out,
                      size_t room);

#endif
