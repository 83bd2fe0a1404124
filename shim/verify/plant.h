/*
 * Faults put into a graph on purpose (verify_plant), to show that verifying finds them. They are
 * there while a launch is verified and at no other time: the program never sees what they do.
 */
#ifndef CUSPLICE_VERIFY_PLANT_H
#define CUSPLICE_VERIFY_PLANT_H

#include "shim/verify/verify.h"

struct cus_planted {
    enum { CUS_PLANTED_NOTHING, CUS_PLANTED_NODE, CUS_PLANTED_HOLE, CUS_PLANTED_GRAPH } what;
    uint32_t at;           /* node, or the first of two */
    struct cus_exec *real; /* GRAPH: the one in whose place another one is verified */
};

/* Puts the fault that the options name into verify->exec, or another graph in its place; false
 * where there is no place for it. `idle`: a private stream with nothing on it. */
bool cus_plant(struct cus_verify *verify, CUstream idle, struct cus_planted *planted);
/* Takes it out again. */
void cus_unplant(struct cus_verify *verify, const struct cus_planted *planted);

#endif
