/*
 * What /proc tells of a process. Any thread; no allocation; errno is kept.
 */
#ifndef CUSPLICE_BASE_PROCESS_H
#define CUSPLICE_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When process `pid` (0: this one) began, in clock ticks since the machine did: with the number, it
 * names a process for good. 0 where there is none, where it has ended and waits for its parent
 * only, or where /proc does not tell. */
uint64_t cus_process_start(long pid);

#ifdef __cplusplus
}
#endif

#endif
