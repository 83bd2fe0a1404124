/*
 * Verifies one launch of a graph: its result must equal that of its ops, issued one by one as the
 * program asked for them. Called with the lock of the graph's engine, its context current, the gate
 * shut and the GPU idle. Memory that was not saved (__device__ variables, and what ops find through
 * pointers in memory, if not all memory is saved) is written three times or more.
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
    CUS_PROOF_LAUNCHED, /* the graph was launched, and its result stands, not judged */
    CUS_PROOF_GOOD,     /* equal, or the difference is not stable; the ops' results stand */
    CUS_PROOF_BAD       /* the graph differs; the ops' results stand */
};

/*
 * How a launch is verified:
 *
 *   1. Memory is saved and summed up. The ops are issued one by one, and each is waited for. One
 *      that loses the context is reported by name.
 *   2. Memory is restored. The graph is launched, and memory summed up.
 *   3. Memory is restored. The ops are issued one by one, and memory summed up. If the sums are
 *      equal, the launch is good.
 *   4. If not, graph and ops run once more. A range counts only if the ops leave it the same
 *      twice.
 *   5. If a range still differs, the graph is at fault. The first op that differs is found by
 *      halves: the graph and the ops run up to the middle, again and again.
 *
 * After GOOD and BAD, memory holds what the ops did, and *result is what the last op's call
 * returned.
 */
enum cus_proof cus_verify(const struct cus_verify *verify, CUresult *result);

#endif
