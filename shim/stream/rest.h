/*
 * Rest: the whole process passes calls through where it is faster without the library (rest.c).
 * Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_REST_H
#define CUSPLICE_STREAM_REST_H

#include <stdbool.h>

/* May the engine rest? Called as it starts. */
void cus_rest_start(void);
/* Back to the state of a new process. For cus_engine_end. */
void cus_rest_drop(void);
/* Begins a rest: false if that would have to wait, and then there is none. Below: ends it. For
 * tests; elsewhere only cus_engine_tick. */
bool cus_rest_begin(void);
void cus_rest_end(void);

#endif
