/*
 * How many processors the process may use at once. Any thread; no allocation; errno is kept.
 */
#ifndef CUSPLICE_BASE_PROCESSORS_H
#define CUSPLICE_BASE_PROCESSORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* What its control groups let it have of them at any moment, rounded up, of either version; 0: as
 * many as there are. `root` is what stands in front of /proc and /sys: "" but in tests. */
unsigned cus_processors_quota(const char *root);

#ifdef __cplusplus
}
#endif

#endif
