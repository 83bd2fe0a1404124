/*
 * How fast a program learns (shim/base/curve.h), from the times of a stream's steps as they come.
 * The library does not know how long a step takes without it. It estimates that: the time of a step
 * and the account of the step (what its graphs saved, less what they cost). Steps without graphs
 * are the best witnesses, since only the library's own small cost is subtracted.
 *
 * The lock of the engine that owns the object guards it. Nothing here reads a clock or allocates.
 */
#ifndef CUSPLICE_STATS_LEARNING_H
#define CUSPLICE_STATS_LEARNING_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUS_LEARNING_STEPS = 128, /* the first ones, each is kept */
    CUS_LEARNING_LATE = 32,   /* of later ones, one in CUS_LEARNING_EVERY; the last are kept */
    CUS_LEARNING_EVERY = 16,
    CUS_LEARNING_SHOWN = 32, /* steps that a report lists */
};

struct cus_learning_step {
    uint32_t ops, in_graphs;
    uint64_t ns;      /* how long it took; 0: not known */
    int64_t saved_ns; /* what it gained, by its account; negative if it lost */
};

/* All zero: no step yet. */
struct cus_learning {
    uint64_t steps;  /* that were added */
    uint64_t ops;    /* of the first ones */
    uint32_t length; /* ops of a typical step, once `first` was full; 0: not known yet */
    uint64_t n_late; /* that were kept in turn in `late` */
    struct cus_learning_step first[CUS_LEARNING_STEPS], late[CUS_LEARNING_LATE];
};

/* The figures of the steps whose length is the most frequent one. Times in ns; 0: not known. */
struct cus_learned {
    uint64_t steps; /* of that length, among those that were kept */
    /* Steps 2 to 11: the program loads its code in the first one, and the library cannot know how
     * long that took. */
    uint64_t first_ten_ns;
    uint64_t plain_ns; /* an estimate: one step without the library */
    bool plain_seen;   /* from steps without graphs; false: from the account of steps with them */
    uint64_t late_ns;  /* the median of late steps */
    uint32_t gain_at;  /* the first step with nine tenths of the final gain; 0: none */
    uint32_t percent;  /* the first ten steps, divided by ten plain ones, times 100 */
    uint32_t n_first;
    struct cus_learning_step first[CUS_LEARNING_SHOWN]; /* the first ones of that length */
};

/* Must the next step be timed? If not, its `ns` may be 0. */
bool cus_learning_wants(const struct cus_learning *learning);
/* Is a step of so many ops one of its own? If not, it belongs to the next longer one: it is not
 * added, and the next one began when this one did. */
bool cus_learning_counts(const struct cus_learning *learning, uint64_t ops);
/* A step ended that counts. */
void cus_learning_add(struct cus_learning *learning, const struct cus_learning_step *step);
struct cus_learned cus_learning_sum(const struct cus_learning *learning);

#ifdef __cplusplus
}
#endif

#endif
