/*
 * Rest: the whole process passes calls through where it is faster without the library (rest.c).
 * Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_REST_H
#define CUSPLICE_STREAM_REST_H

#include <stdbool.h>

struct cus_engine;

/* May the engine rest? Called as it starts. */
void cus_rest_start(void);
/* Back to the state of a new process. For cus_engine_end. */
void cus_rest_drop(void);
/* Begins a rest. False: something is deferred, a stream is a branch, an error has not been told
 * yet, or a profiler records; then there is none. Below: ends it. For tests; elsewhere only
 * cus_engine_tick and cus_rest_op. */
bool cus_rest_begin(void);
void cus_rest_end(void);
/* An op takes the long way in a rest: its stream is new, or has let many ops pass. */
void cus_rest_op(struct cus_engine *engine);

#endif
