/* Gathers sentences, each once, and prints them as JSON. */
#ifndef CUSPLICE_PLAYER_NOTES_H
#define CUSPLICE_PLAYER_NOTES_H

#include <stdint.h>

#include "shim/base/json.h"

enum { NOTES = 48 };

struct notes {
    char *text[NOTES];
    unsigned n;
    uint64_t more; /* sentences without room */
};

void notes_add(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
void notes_clear(struct notes *notes);
/* Prints the sentences as an array. If some had no room, the last element says so. */
void notes_put(const struct notes *notes, struct cus_json *json, const char *key);

#endif
