/* Gathers sentences, each once, and prints them as JSON. */
#ifndef CUSPLICE_PLAYER_NOTES_H
#define CUSPLICE_PLAYER_NOTES_H

#include <stdint.h>

#include "shim/base/json.h"

enum { NOTES = 48 };

struct notes {
    char *text[NOTES];
    unsigned n;
    uint64_t more; /* that found no room */
};

void notes_add(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
void notes_clear(struct notes *notes);
/* As an array of sentences; with `more` as the last one where there are more. */
void notes_put(const struct notes *notes, struct cus_json *json, const char *key);

#endif
