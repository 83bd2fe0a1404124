/*
 * The trace of this process: begun where the key `record` names a file.
 */
#ifndef CUSPLICE_HOOK_RECORDING_H
#define CUSPLICE_HOOK_RECORDING_H

#include <stdbool.h>

/* The settings are read, the driver works, and nothing has been launched yet. True: a trace is
 * being made. */
bool cus_recording_start(void);
/* A step has ended on the calling thread, which is inside a hook: a replayable recording begins or
 * ends with one. */
void cus_recording_attend(void);
/* The program is about to destroy a context. */
void cus_recording_context_goes(void);
/* At exit, before the trace is closed. */
void cus_recording_end(void);

/* gpu_times.c: asks CUPTI for what runs on the GPU and when. False, having said why: nobody will
 * tell. */
bool cus_gpu_times_start(void);
/* What CUPTI still has goes into the trace. */
void cus_gpu_times_end(void);

#endif
