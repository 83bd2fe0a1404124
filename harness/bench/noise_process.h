/* What noise asks /proc of a process, and where its threads run. */
#ifndef HARNESS_BENCH_NOISE_PROCESS_H
#define HARNESS_BENCH_NOISE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What became of a SIGSTOP that was sent to it. */
enum noise_sigstop {
    NOISE_TAKEN,   /* it stopped the process; that may have been continued since, or ended */
    NOISE_PENDING, /* it will, at the latest when the process gets a processor */
    NOISE_TOO_LATE /* another one had stopped the process already; pending until a SIGCONT */
};
enum noise_sigstop noise_sigstop_of(pid_t pid);
/* The CPU of a thread of it that runs, or else of its first one. Negative: it has ended. */
int noise_cpu_of(pid_t pid);
/* Moves all its threads to one CPU, another one than the first thread's if they may use several,
 * and then lets them use those again. False: there is no other one, or it has ended. */
bool noise_move(pid_t pid, uint64_t pick);

#endif
