/*
 * The list of the reports, and the hash table that they share. verb_report.c and html.c read the
 * list. It never fills a table itself.
 */
#include "tools/trace/report.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

const struct report report_list[] = {
    {"kernels", "by kernel, memset, copy and record: calls, what became of them, host time",
     report_kernels},
    {"segments", "by list of ops: the graphs that were launched, and what ended them",
     report_segments},
    {"cache", "by signature: the steps that are alike", report_cache},
    {"breaks", "by reason: what went out one by one", report_breaks},
    {"coverage", "by step: how much of it went out in graphs", report_coverage},
    {NULL, NULL, NULL},
};

struct report_slot {
    uint64_t salt;
    const char *key; /* NULL: free */
    uint32_t row;
};

static struct report_slot *find(struct report_slot *slots, uint32_t room, uint64_t salt,
                                const char *key) {
    uint64_t at = XXH3_64bits_withSeed(key, strlen(key), salt);
    for (;; at++) {
        struct report_slot *slot = &slots[at & (room - 1)];
        if (!slot->key || (slot->salt == salt && (slot->key == key || strcmp(slot->key, key) == 0)))
            return slot;
    }
}

static bool grow(struct report_rows *rows) {
    uint32_t room = rows->room ? 2 * rows->room : 64;
    struct report_slot *slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < rows->room; i++)
        if (rows->slots[i].key)
            *find(slots, room, rows->slots[i].salt, rows->slots[i].key) = rows->slots[i];
    free(rows->slots);
    rows->slots = slots;
    rows->room = room;
    return true;
}

uint32_t report_row(struct report_rows *rows, uint64_t salt, const char *key) {
    if (2 * rows->n >= rows->room && !grow(rows))
        return CST_NONE;
    struct report_slot *slot = find(rows->slots, rows->room, salt, key);
    if (!slot->key)
        *slot = (struct report_slot){salt, key, rows->n++};
    return slot->row;
}

void report_rows_free(struct report_rows *rows) {
    free(rows->slots);
}
