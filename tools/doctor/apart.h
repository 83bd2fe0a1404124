/*
 * Work that could hang or crash, in a child with a deadline. The probes and what gathers facts for
 * them call it, on one thread. It never waits longer than the deadline and a second.
 */
#ifndef CUSPLICE_TOOLS_DOCTOR_APART_H
#define CUSPLICE_TOOLS_DOCTOR_APART_H

#include <stddef.h>

enum doctor_end { DOCTOR_DONE, DOCTOR_LATE, DOCTOR_DIED, DOCTOR_NO_CHILD };

/* Memory that a child shares with its parent, zeroed: what it wrote there stays however it ended.
 * NULL: there is none. */
void *doctor_shared(size_t bytes);
void doctor_shared_free(void *shared, size_t bytes);

/* Calls work(context) in a child. DOCTOR_LATE: it was killed after so many seconds. DOCTOR_DIED: by
 * the signal *signal, or (0) it exited with a status that is not 0. */
enum doctor_end doctor_apart(void (*work)(void *context), void *context, unsigned seconds,
                             int *signal);

#endif
