/* Gives a test the build quota of an engine that no other thread uses. */
#ifndef CUSPLICE_TESTS_UNIT_STREAM_QUOTA_H
#define CUSPLICE_TESTS_UNIT_STREAM_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A step ends, and another one begins. */
void quota_step(void);
/* So many ops of the running step were issued. */
void quota_ops(uint32_t ops, bool in_graphs);
/* Ops that a segment may have, of those that are formed now. */
uint32_t quota_segment(void);
/* A graph of so many nodes is built, which takes so long, if it fits. */
bool quota_build(uint32_t nodes, uint64_t ns, bool advised);
/* The same where so much of that was waited for other threads. */
bool quota_build_behind(uint32_t nodes, uint64_t ns, uint64_t waited_ns);
/* One is to be built, of which nothing comes after so long. */
void quota_fail(uint32_t nodes, uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
