/*
 * Counts ops that pass by all engines (passed.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_PASSED_H
#define CUSPLICE_STREAM_PASSED_H

#include "shim/stream/state.h"

/* An op passes: CUS_WHY_OFF, CUS_WHY_PER_THREAD or CUS_WHY_STREAM. */
void cus_passed_by(const struct cus_thread *thread, enum cus_op_type type, enum cus_why why);
/* Adds the ops that passed to the counters of the process. */
void cus_passed_count(void);

#endif
