/*
 * Tells whether a thread has its processor core to itself.
 *
 * The two hyperthreads of a core share its units. If a neighbour's work keeps the other hyperthread
 * busy, a thread takes up to twice as long to issue a launch, and the system does not report this.
 * These functions measure the core itself.
 */
#ifndef HARNESS_BENCH_CORE_H
#define HARNESS_BENCH_CORE_H

enum core {
    CORE_UNKNOWN, /* not certain */
    CORE_ALONE,
    CORE_BESIDE, /* another hyperthread of the core was busy */
};

/* Returns the time of eight additions, two in each of four chains, over the time of one
 * multiplication in a chain. A busy neighbour slows the additions, which use many units, but
 * hardly a chain. Both times follow the clock, so the processor's speed cancels out: 2/3 on a
 * core alone (x86-64; elsewhere 0, which tells nothing). Takes some 3 us. */
double core_ratio(void);

/* Tells from the ratios before and after a piece of work whether its core was alone. */
enum core core_between(double before, double behind);

#endif
