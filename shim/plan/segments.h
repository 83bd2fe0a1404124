/*
 * The segment list of a step, for people: how many ops went into graphs between which eager ones.
 *
 * Guarded by the lock of the engine that it belongs to.
 */
#ifndef CUSPLICE_PLAN_SEGMENTS_H
#define CUSPLICE_PLAN_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUS_SEGMENTS_MAX = 384 };

struct cus_segment {
    const char *eager; /* name of the eager op; NULL: ops in graphs */
    uint32_t ops;
};

struct cus_segments {
    uint32_t n;
    uint32_t dropped; /* entries that did not fit */
    bool graphs;      /* holds at least one graph */
    struct cus_segment list[CUS_SEGMENTS_MAX];
};

/* Appends ops, merging them with the last entry where that is alike. `eager` must outlive the list.
 */
void cus_segments_add(struct cus_segments *segments, const char *eager, uint32_t ops);
/* Copies what is in use, which is little of it at most steps. */
void cus_segments_copy(struct cus_segments *to, const struct cus_segments *from);
/* Writes the list as a JSON array of strings ("graph 7", "eager NAME", "eager NAME x 3"). False
 * when it did not fit. */
bool cus_segments_json(const struct cus_segments *segments, char *text, size_t bytes);

#endif
