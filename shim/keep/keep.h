/*
 * Replayable recordings: what a program did to the GPU, in full, so that it can be replayed without
 * the program (shim/trace/format.h, last section). Runs under the hooks: the functions of kept.def
 * replace the driver's in the table of real functions, and the trace calls cus_keep_op for each op.
 * Any thread. One lock, innermost except for the trace's; held over a call of the driver only for
 * memory (memory.c). If something cannot be kept, the program goes on unchanged and the trace says
 * why it cannot be replayed.
 */
#ifndef CUSPLICE_KEEP_KEEP_H
#define CUSPLICE_KEEP_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stream/call.h"

/*
 * A function of kept.def. `instead` replaces the real function, which is stored in `*real`. A
 * function that the driver lacks stays absent.
 *
 * The library's own calls do not go through `instead`, so the recording sees only what the program
 * asks for. The program's device memory is placed in one reserved range of addresses, where a
 * replay places it again.
 */
struct cus_keep_place {
    unsigned row;
    void *instead;
    void **real;
};
extern const struct cus_keep_place cus_keep_places[];
extern const unsigned cus_keep_n_places;

/* A function that this folder calls and does not replace. */
struct cus_keep_need {
    unsigned row;
    void **real;
};
extern const struct cus_keep_need cus_keep_needs[];
extern const unsigned cus_keep_n_needs;

/* Called after the start of the trace, when places and needs are filled, before the program's
 * first call goes through them. False: the trace cannot be replayed; the log says why. Otherwise
 * the recording begins at once, or with cus_keep_begin. */
bool cus_keep_start(bool from_the_start);

extern uint32_t cus_keep_on; /* atomic */
static inline bool cus_keeping(void) {
    return __builtin_expect(__atomic_load_n(&cus_keep_on, __ATOMIC_RELAXED) != 0, 0);
}

/* Called before the program makes a call of this row (negative: of no row). */
void cus_keep_saw(int row);
/* Called when an op was answered, and when the library has spent `ns` on another call. */
void cus_keep_op(const struct cus_call *call, int result);
void cus_keep_spent(uint64_t ns);

/* Called when the recording's first step is about to begin, and when its last has ended; nothing
 * is deferred. Saves the contents of device memory, or its checksums; the latter once. */
void cus_keep_begin(void);
void cus_keep_finish(void);
/* Called before a context goes, whichever it is: nothing more is kept. */
void cus_keep_end(void);

#endif
