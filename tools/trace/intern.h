/*
 * Numbers for byte strings: equal bytes have equal numbers, from 1 on. Exports and imports call
 * it, on one thread. It never forgets a string.
 */
#ifndef CUSPLICE_TOOLS_TRACE_INTERN_H
#define CUSPLICE_TOOLS_TRACE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern_entry {
    void *bytes;
    size_t n;
    uint32_t number; /* 0: free */
};

struct intern { /* zero at first */
    struct intern_entry *table;
    size_t room; /* a power of two; at most half of it is in use */
    uint32_t n;
};

/* 0 without memory. *made: it is new. */
uint32_t intern_add(struct intern *intern, const void *bytes, size_t n, bool *made);
void intern_free(struct intern *intern);

/* Ids of the caller's by byte strings. */
struct intern_ids { /* zero at first */
    struct intern keys;
    uint32_t *ids; /* by number */
    size_t room;
};

/* Where the id of a key is, 0 for a new key; until the next call. NULL without memory. */
uint32_t *intern_id(struct intern_ids *ids, const void *key, size_t n);
void intern_ids_free(struct intern_ids *ids);

#endif
