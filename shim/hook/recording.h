/*
 * The trace of this process, which the library makes if the key `record` names a file.
 */
#ifndef CUSPLICE_HOOK_RECORDING_H
#define CUSPLICE_HOOK_RECORDING_H

#include <stdbool.h>

/* Called when the settings are read, the driver works, and nothing was launched yet. True: a
 * trace is being made. */
bool cus_recording_start(void);
/* Called inside a hook when a step has ended on the calling thread. A replayable recording
 * begins or ends at the end of a step. */
void cus_recording_attend(void);
/* Called before the program destroys a context. */
void cus_recording_context_goes(void);
/* Called at exit, before the trace is closed. */
void cus_recording_end(void);

/* In gpu_times.c. Asks CUPTI to report what runs on the GPU and when. False: CUPTI will not
 * report; the log says why. */
bool cus_gpu_times_start(void);
/* Puts what CUPTI still has into the trace. */
void cus_gpu_times_end(void);

#endif
