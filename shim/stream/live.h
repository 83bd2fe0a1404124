/*
 * The page for `cusplice top` (live.c). All of it runs on the watchdog's thread but
 * cus_live_place, cus_live_end and cus_live_sample. Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_LIVE_H
#define CUSPLICE_STREAM_LIVE_H

#include "shim/stream/state.h"

/* Chooses where the page is to be. Called by the program's thread that starts the watchdog. */
void cus_live_place(void);
void cus_live_start(void);
/* Answers a reader, if there is one. */
void cus_live_look(void);
/* Waits until *word differs from `value` or a reader asks. May also return without a reason. */
void cus_live_wait(uint32_t *word, uint32_t value);
/* The process ends: removes the page. */
void cus_live_end(void);
/* After cus_live_end, once the watchdog's thread has ended: unmaps the page. For cus_engine_end. */
void cus_live_drop(void);
void cus_live_sample(struct cus_samples *samples, uint64_t ns);

#endif
