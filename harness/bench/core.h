/*
 * Whether a processor's core is a thread's own. A core's two hyperthreads share its units: where
 * the other one is busy (with a neighbour's work, on a machine that is shared), what a thread
 * issues takes up to twice as long, and nothing in the machine says so. This asks the core itself.
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
