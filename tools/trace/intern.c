/*
 * A hash table with open addressing that doubles when half full. Exports and imports call it, on
 * one thread. It never exits without memory: it returns 0.
 */
#include "tools/trace/intern.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

static struct intern_entry *find(const struct intern *intern, const void *bytes, size_t n) {
    size_t at = XXH3_64bits(bytes, n) & (intern->room - 1);
    for (;; at = (at + 1) & (intern->room - 1)) {
        struct intern_entry *entry = &intern->table[at];
        if (!entry->number || (entry->n == n && memcmp(entry->bytes, bytes, n) == 0))
            return entry;
    }
}

static bool grow(struct intern *intern) {
    struct intern larger = {.room = intern->room ? intern->room * 2 : 64, .n = intern->n};
    larger.table = calloc(larger.room, sizeof *larger.table);
    if (!larger.table)
        return false;
    for (size_t i = 0; i < intern->room; i++)
        if (intern->table[i].number)
            *find(&larger, intern->table[i].bytes, intern->table[i].n) = intern->table[i];
    free(intern->table);
    *intern = larger;
    return true;
}

uint32_t intern_add(struct intern *intern, const void *bytes, size_t n, bool *made) {
    *made = false;
    if (2 * (size_t)intern->n >= intern->room && !grow(intern))
        return 0;
    struct intern_entry *entry = find(intern, bytes, n);
    if (entry->number)
        return entry->number;
    entry->bytes = malloc(n + 1);
    if (!entry->bytes)
        return 0;
    memcpy(entry->bytes, bytes, n);
    ((char *)entry->bytes)[n] = 0;
    entry->n = n;
    *made = true;
    return entry->number = ++intern->n;
}

void intern_free(struct intern *intern) {
    for (size_t i = 0; i < intern->room; i++)
        free(intern->table[i].bytes);
    free(intern->table);
}

uint32_t *intern_id(struct intern_ids *ids, const void *key, size_t n) {
    bool made;
    uint32_t number = intern_add(&ids->keys, key, n, &made);
    if (number >= ids->room) {
        size_t room = ids->room ? 2 * ids->room : 64;
        uint32_t *larger = realloc(ids->ids, room * sizeof *larger);
        if (!larger)
            return NULL;
        memset(larger + ids->room, 0, (room - ids->room) * sizeof *larger);
        ids->ids = larger;
        ids->room = room;
    }
    return number ? &ids->ids[number] : NULL;
}

void intern_ids_free(struct intern_ids *ids) {
    intern_free(&ids->keys);
    free(ids->ids);
}
