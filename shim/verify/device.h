/*
 * What the verifier has in one context: a stream, the checksum kernel, and memory to save ranges
 * in.
 *
 * Only the thread that has shut the gate calls this; the context is current. A failed call returns
 * false; the driver's error stays with the caller.
 */
#ifndef CUSPLICE_VERIFY_DEVICE_H
#define CUSPLICE_VERIFY_DEVICE_H

#include "shim/verify/memory.h"

struct cus_saver;

/* The saver of this context, which the first call makes. NULL: it cannot be made. */
struct cus_saver *cus_saver_get(const struct cus_driver *driver, CUcontext context);
/* The saver's own stream, idle. */
CUstream cus_saver_stream(const struct cus_saver *saver);
/* Allocates room for these ranges and saves their contents. False: no memory, or a copy failed. */
bool cus_saver_save(struct cus_saver *saver, const struct cus_range_list *list);
/* Writes a checksum of each range into `sums` (list->n words). Waits for the GPU. */
bool cus_saver_sums(struct cus_saver *saver, const struct cus_range_list *list, uint64_t *sums);
/* Restores the ranges whose checksum `now` differs from `then`. Waits for the GPU. False: a call
 * failed; *moved says whether any range was restored all the same. */
bool cus_saver_restore(struct cus_saver *saver, const struct cus_range_list *list,
                       const uint64_t *now, const uint64_t *then, bool *moved);
/* Gives all memory back, in every context. Called while the contexts live and before one or more
 * of them go, while nobody verifies. */
void cus_saver_forget(void);
/* True: the saver holds memory in this context. Called while nobody verifies. */
bool cus_saver_has_room(CUcontext context);
/* Gives the memory of this context back, because the program needs it. Called while nobody
 * verifies. */
void cus_saver_shrink(CUcontext context);

#endif
