/*
 * The segment list of a step, for reports: how many ops were in graphs, between which eager ones.
 * Guarded by the lock of the engine that owns it.
 */
#ifndef CUSPLICE_PLAN_SEGMENT_LIST_H
#define CUSPLICE_PLAN_SEGMENT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUS_SEGMENT_LIST_MAX = 384 };

struct cus_segment_entry {
    const char *eager; /* name of the eager op; NULL: ops in graphs */
    uint32_t ops;
};

struct cus_segment_list {
    uint32_t n;
    uint32_t dropped; /* entries that did not fit */
    bool graphs;      /* holds at least one graph */
    struct cus_segment_entry list[CUS_SEGMENT_LIST_MAX];
};

/* Appends ops, or adds them to the last entry if it is of the same sort. `eager` must outlive the
 * list. */
void cus_segment_list_add(struct cus_segment_list *segments, const char *eager, uint32_t ops);
/* Copies only the entries in use, which are few in most steps. */
void cus_segment_list_copy(struct cus_segment_list *to, const struct cus_segment_list *from);
/* Writes the list as a JSON array of strings ("graph 7", "eager NAME", "eager NAME x 3"). False if
 * it did not fit. */
bool cus_segment_list_json(const struct cus_segment_list *segments, char *text, size_t bytes);

#endif
