/*
 * Replayable recordings: what a program did to the GPU, in full, so that it can be done again
 * without the program (shim/trace/format.h, the last section).
 *
 * Stands under the hooks: functions of kept.def take the place of the driver's in the table of real
 * functions, and the trace's tap tells each op. So it sees what the program asks for and never what
 * the library does itself. Device memory of the program is placed in one reserved range of
 * addresses, where a replay places it again.
 *
 * Any thread, inside a hook or in place of the real function. One lock, innermost but for the
 * trace's own; the driver is called with it held only for memory (memory.c). Where anything cannot
 * be kept, the program goes on as if nothing were recorded and the trace says why it cannot be
 * replayed.
 */
#ifndef CUSPLICE_KEEP_KEEP_H
#define CUSPLICE_KEEP_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stream/call.h"

/* A function of kept.def: `instead` is to stand where the real one stands, which goes to `*real`.
 * What a driver lacks it keeps lacking. */
struct cus_keep_place {
    unsigned row;
    void *instead;
    void **real;
};
extern const struct cus_keep_place cus_keep_places[];
extern const unsigned cus_keep_n_places;

/* A function that is called and not stood in for. */
struct cus_keep_need {
    unsigned row;
    void **real;
};
extern const struct cus_keep_need cus_keep_needs[];
extern const unsigned cus_keep_n_needs;

/* Behind the start of the trace and once the places and needs are filled, before the program's
 * first call goes through them. False, having said why: the trace cannot be replayed. Otherwise it
 * begins at once, or with cus_keep_begin. */
bool cus_keep_start(bool from_the_start);

extern uint32_t cus_keep_on; /* atomic */
static inline bool cus_keeping(void) {
    return __builtin_expect(__atomic_load_n(&cus_keep_on, __ATOMIC_RELAXED) != 0, 0);
}

/* The program is about to make a call of this row (a negative one: of no row). */
void cus_keep_saw(int row);
/* An op was asked for and answered; the library has spent so long on another call. */
void cus_keep_op(const struct cus_call *call, int result);
void cus_keep_spent(uint64_t ns);

/* The recording's first step is about to begin, or its last has ended; nothing is deferred. Saves
 * what is in device memory; or says what it is, once. */
void cus_keep_begin(void);
void cus_keep_finish(void);
/* A context is about to go, the one that is kept or another: nothing more is kept. */
void cus_keep_end(void);

#endif
