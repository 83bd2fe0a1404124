/* What noise asks /proc of a process, and where its threads run. */
#ifndef HARNESS_BENCH_NOISE_PROCESS_H
#define HARNESS_BENCH_NOISE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Has a signal stopped it? */
bool noise_is_stopped(pid_t pid);
/* The CPU of a thread of it that runs, or else of its first one. Negative: it has ended. */
int noise_cpu_of(pid_t pid);
/* Moves all its threads to one CPU, another one than the first thread's if they may use several,
 * and then lets them use those again. False: there is no other one, or it has ended. */
bool noise_move(pid_t pid, uint64_t pick);

#endif
