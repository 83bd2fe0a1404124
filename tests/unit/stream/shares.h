/* What a step may build, of an engine that nobody else has. */
#ifndef CUSPLICE_TESTS_UNIT_STREAM_SHARES_H
#define CUSPLICE_TESTS_UNIT_STREAM_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A step with so many ops has ended. */
void shares_step(uint32_t ops);
/* A graph of so many nodes is built, which takes so long, if it fits. */
bool shares_build(uint32_t nodes, uint64_t ns, bool advised);

#ifdef __cplusplus
}
#endif

#endif
