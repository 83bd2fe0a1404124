/*
 * One call of the program that may be withheld, whichever of the three kinds of ops it is, and the
 * way to make it as it was asked for.
 */
#ifndef CUSPLICE_STREAM_CALL_H
#define CUSPLICE_STREAM_CALL_H

#include "shim/stream/state.h"
#include "shim/trace/format.h"

struct cus_call {
    enum cus_op_type type;
    struct cus_stream_ref stream;
    const struct cus_launch *launch;
    const struct cus_memset *memset;
    const struct cus_copy *copy;
    union {
        struct cus_memset_params memset;
        struct cus_copy_params copy;
    } flat;
    /* For the trace (tap.h). */
    uint64_t began; /* a moment; 0: it is not told */
    struct cst_op *record;
    bool told; /* what it is has been said, if there was room */
    bool withheld;
    enum cus_eager eager; /* otherwise: why not */
    enum cus_why why;
};

/* The program's own call, by the real function of the very symbol that was called. No lock held. */
CUresult cus_call_real(const struct cus_call *call);
/* The same; some launches are timed, for an estimate of what others save. */
CUresult cus_call_timed(const struct cus_call *call);

#endif
