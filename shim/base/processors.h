/*
 * How many processors the process may use at once. Any thread; allocates nothing; keeps errno.
 */
#ifndef CUSPLICE_BASE_PROCESSORS_H
#define CUSPLICE_BASE_PROCESSORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The quota of the process's control groups (version 1 or 2), in processors, rounded up. 0: no
 * quota. `root` stands in front of /proc and /sys; it is "" except in tests. */
unsigned cus_processors_quota(const char *root);

#ifdef __cplusplus
}
#endif

#endif
