/*
 * The verifier's own things in one context: a stream, the checksum kernel, memory to save ranges
 * in.
 *
 * Used by the thread for which the gate is shut, and by nobody at the same time; the context is
 * current. A call that fails leaves the driver's error to the caller, as false.
 */
#ifndef CUSPLICE_VERIFY_DEVICE_H
#define CUSPLICE_VERIFY_DEVICE_H

#include "shim/verify/memory.h"

struct cus_saver;

/* That of this context, made at the first call. NULL: it cannot be made here. */
struct cus_saver *cus_saver_get(const struct cus_driver *driver, CUcontext context);
/* A stream of its own, idle. */
CUstream cus_saver_stream(const struct cus_saver *saver);
/* Room for these ranges, and their contents put there. False: no memory, or the copies failed. */
bool cus_saver_save(struct cus_saver *saver, const struct cus_range_list *list);
/* A checksum for each range, as it is now, into `sums` (list->n words). Waits for the GPU. */
bool cus_saver_sums(struct cus_saver *saver, const struct cus_range_list *list, uint64_t *sums);
/* Sets those ranges back whose checksum `now` differs from `then`. Waits for the GPU. False: a call
 * failed; *moved says whether any of them was set back all the same. */
bool cus_saver_restore(struct cus_saver *saver, const struct cus_range_list *list,
                       const uint64_t *now, const uint64_t *then, bool *moved);
/* The contexts still live, and one of them, or more, is about to go: all memory is given back.
 * Nobody verifies. */
void cus_saver_forget(void);
/* Does it hold memory there? Nobody verifies. */
bool cus_saver_has_room(CUcontext context);
/* Gives back the memory, for the program needs it. Nobody verifies. */
void cus_saver_shrink(CUcontext context);

#endif
