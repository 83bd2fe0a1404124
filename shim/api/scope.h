/* Which of a function's two forms a program called, and what a flush covers. */
#ifndef CUSPLICE_API_SCOPE_H
#define CUSPLICE_API_SCOPE_H

/* What stream 0 means to the call: the legacy stream or the thread's own (HAZARDS B3). */
enum cus_abi { CUS_ABI_LEGACY, CUS_ABI_PTSZ };

/*
 * What a flush covers:
 *
 *   NONE  nothing
 *   S     one stream
 *   T     all that this thread has deferred
 *   C     all streams of the context
 *   CT    T and C
 *   P     all streams of the process
 */
enum cus_scope { CUS_SCOPE_NONE, CUS_SCOPE_S, CUS_SCOPE_T, CUS_SCOPE_C, CUS_SCOPE_CT, CUS_SCOPE_P };

#endif
