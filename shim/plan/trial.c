/*
 * Compares two ways of running by the pace of the program. shim/stream/rest.c calls these pure
 * functions under its lock. Each pair of stretches counts once, so one that the host disturbed
 * decides nothing.
 */
#include "shim/plan/trial.h"

enum {
    ONE = 1000000,
    GAIN = ONE / 100, /* B must be faster by so much */
    /* From so many pairs on a trial may end early: for B if it was the faster way in all of them,
     * for A if B was in one at most. */
    EARLY = 6,
    /* Of all pairs, B must be the faster way in so many. */
    MOST_PAIRS = CUS_TRIAL_PAIRS - 2
};

static void keep(struct cus_trial *trial, uint64_t ratio) {
    uint32_t at = trial->n++;
    uint32_t value = ratio < UINT32_MAX ? (uint32_t)ratio : UINT32_MAX;
    for (; at && trial->ratios[at - 1] > value; at--)
        trial->ratios[at] = trial->ratios[at - 1];
    trial->ratios[at] = value;
}

uint32_t cus_trial_median(const struct cus_trial *trial) {
    return trial->n ? trial->ratios[(trial->n - 1) / 2] : 0;
}

static enum cus_trial_says verdict(const struct cus_trial *trial) {
    bool gains = cus_trial_median(trial) >= ONE + GAIN;
    uint32_t n = trial->n, slower = 0;
    while (slower < n && trial->ratios[slower] <= ONE)
        slower++;
    if (n >= EARLY && slower + 1 >= n)
        return CUS_TRIAL_A;
    if (n >= EARLY && !slower && gains)
        return CUS_TRIAL_B;
    if (n == CUS_TRIAL_PAIRS)
        return n - slower >= MOST_PAIRS && gains ? CUS_TRIAL_B : CUS_TRIAL_A;
    return trial->done >= CUS_TRIAL_MOST ? CUS_TRIAL_A : CUS_TRIAL_GOES_ON;
}

void cus_trial_skip(struct cus_trial *trial) {
    trial->is_b = false;
    trial->done++;
}

enum cus_trial_says cus_trial_add(struct cus_trial *trial, uint64_t marks, uint64_t ns,
                                  bool counts) {
    uint64_t pace = marks * (uint64_t)ONE * ONE / ns;
    bool was_b = trial->is_b;
    trial->is_b = !was_b;
    if (was_b) {
        trial->last_b = pace;
        trial->valid = trial->valid && counts;
        trial->done++;
        return CUS_TRIAL_GOES_ON;
    }
    bool pair = trial->valid && counts && trial->last_b;
    uint64_t around = (trial->last_a + pace) / 2;
    if (pair && around)
        keep(trial, trial->last_b * ONE / around);
    trial->last_a = pace;
    trial->last_b = 0;
    trial->valid = counts;
    return verdict(trial);
}
