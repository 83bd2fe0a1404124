/*
 * The trace of this process: begun where the key `record` names a file.
 */
#ifndef CUSPLICE_HOOK_RECORDING_H
#define CUSPLICE_HOOK_RECORDING_H

#include <stdbool.h>

/* The settings are read, the driver works, and nothing has been launched yet. True: a trace is
 * being made. */
bool cus_recording_start(void);

#endif
