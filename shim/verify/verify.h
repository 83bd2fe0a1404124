/*
 * Verifying one launch of a graph: its result must be that of its ops, one by one, as the program
 * asked for them.
 *
 * Memory is saved, the graph launched, memory summed and set back, the ops issued, memory summed
 * again: so what stands in the end is what the program would have without a graph. Where the sums
 * differ, the ops are issued once more, to know which ranges are not the same twice, and the graph
 * launched once more; what differs still is a fault, and the first op that it comes from is found
 * by launching the graph and issuing the ops up to the middle, again and again.
 *
 * What an op does to memory that was not saved, it does twice or more: __device__ variables, and
 * what it finds through pointers in memory where not all memory is saved.
 *
 * Called with the lock of the engine that owns the graph, its context current, the gate shut and
 * the GPU idle.
 */
#ifndef CUSPLICE_VERIFY_VERIFY_H
#define CUSPLICE_VERIFY_VERIFY_H

#include "shim/graph/exec.h"
#include "shim/verify/memory.h"

struct cus_verify {
    const struct cus_driver *driver;
    CUcontext context;
    CUstream stream;
    uint64_t stream_id;
    struct cus_exec *exec; /* ready to be launched */
    const struct cus_verify_op *ops;
    uint32_t n;
    const char *made; /* as in report.h */
};

enum cus_proof {
    CUS_PROOF_NONE,     /* nothing was launched */
    CUS_PROOF_LAUNCHED, /* the graph was, and what it did stands, unjudged */
    CUS_PROOF_GOOD,     /* equal, or what differs is not the same twice; the ops' results stand */
    CUS_PROOF_BAD       /* it differs; the ops' results stand */
};

/* *result: what the last op's call returned (GOOD, BAD). */
enum cus_proof cus_verify(const struct cus_verify *verify, CUresult *result);

#endif
