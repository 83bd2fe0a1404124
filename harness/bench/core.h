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
    CORE_UNKNOWN, /* neither for sure */
    CORE_ALONE,
    CORE_BESIDE, /* another hyperthread was busy on it */
};

/* ns of eight additions, two in each of four chains, over ns of one multiplication behind another:
 * what is wide waits for a busy neighbour, a chain hardly. Both go with the clock, so that the pace
 * of the processor falls out: two cycles over three on a core alone (x86-64; elsewhere 0, which
 * tells nothing). Takes some 3 us. */
double core_ratio(void);

/* What the ratios from before and from behind a piece of work say of the core in between. */
enum core core_between(double before, double behind);

#endif
