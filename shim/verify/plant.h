/*
 * Puts faults into a graph on purpose (verify_plant), to show that verifying finds them. A fault is
 * there only while a launch is verified, so the program never sees its effect.
 */
#ifndef CUSPLICE_VERIFY_PLANT_H
#define CUSPLICE_VERIFY_PLANT_H

#include "shim/verify/verify.h"

struct cus_planted {
    enum { CUS_PLANTED_NOTHING, CUS_PLANTED_NODE, CUS_PLANTED_HOLE, CUS_PLANTED_GRAPH } what;
    uint32_t at;           /* the node, or the first of two */
    struct cus_exec *real; /* GRAPH: the graph in whose place another one is verified */
};

/* Puts the fault that the options name into verify->exec, or puts another graph in its place.
 * False: the fault does not fit into this graph. `idle`: a private stream with no work on it. */
bool cus_plant(struct cus_verify *verify, CUstream idle, struct cus_planted *planted);
/* Takes the fault out again. */
void cus_unplant(struct cus_verify *verify, const struct cus_planted *planted);

#endif
