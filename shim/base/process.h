/*
 * What /proc tells of a process. Any thread; allocates nothing; keeps errno.
 */
#ifndef CUSPLICE_BASE_PROCESS_H
#define CUSPLICE_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The start of process `pid` (0: this one), in clock ticks since the machine started. Number and
 * start together name one process for ever. 0: there is no such process, it has ended, or /proc
 * does not tell. */
uint64_t cus_process_start(long pid);
/* How long this process has run, in milliseconds. 0: /proc does not tell. */
uint64_t cus_process_age_ms(void);

#ifdef __cplusplus
}
#endif

#endif
