/*
 * Compares the pace of a program in two ways of running that take turns: A, B, A, B, A and so on.
 * The stretches are short, so a slow change of the program or the host is in both. Each B is
 * compared with the two A around it. Pure functions of plain data: no lock, clock or allocation.
 */
#ifndef CUSPLICE_PLAN_TRIAL_H
#define CUSPLICE_PLAN_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CUS_TRIAL_PAIRS = 12, /* stretches of B that are compared at most */
    /* Stretches of B, compared or not, after which the trial ends in any case. */
    CUS_TRIAL_MOST = 2 * CUS_TRIAL_PAIRS
};

enum cus_trial_says {
    CUS_TRIAL_GOES_ON,
    CUS_TRIAL_A, /* B is not faster, or that is not certain */
    CUS_TRIAL_B  /* B is faster by a hundredth or more, nearly each time */
};

/* All zero before the first stretch, which is one of A. */
struct cus_trial {
    bool is_b;                        /* the next stretch is one of B */
    bool valid;                       /* the stretches since the last A count, and that A too */
    uint64_t last_a;                  /* pace of the last A */
    uint64_t last_b;                  /* pace of the B behind it */
    uint32_t done;                    /* stretches of B, compared or not */
    uint32_t n;                       /* of these, compared */
    uint32_t ratios[CUS_TRIAL_PAIRS]; /* pace of B by that of A, in millionths, in rising order */
};

/* A stretch ended: the program came by `marks` times (at least once) in `ns` (at least 1).
 * `counts`: nothing happened in it that says nothing about the way of running. */
enum cus_trial_says cus_trial_add(struct cus_trial *trial, uint64_t marks, uint64_t ns,
                                  bool counts);
/* The next stretch was to be one of B, and is one of A. */
void cus_trial_skip(struct cus_trial *trial);
/* The median of the ratios so far, in millionths; 0: none. */
uint32_t cus_trial_median(const struct cus_trial *trial);

#endif
