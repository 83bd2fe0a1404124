/*
 * Faults put into a graph on purpose (verify_plant), to show that verifying finds them. They are
 * there while a launch is verified and at no other time: the program never sees what they do.
 */
#ifndef CUSPLICE_VERIFY_PLANT_H
#define CUSPLICE_VERIFY_PLANT_H

#include "shim/verify/verify.h"

struct cus_planted {
    enum { CUS_PLANTED_NOTHING, CUS_PLANTED_NODE, CUS_PLANTED_PAIR, CUS_PLANTED_HOLE } what;
    uint32_t at; /* node, or the first of two */
};

/* Puts in the fault that the options name; false where this graph has no place for it. */
bool cus_plant(const struct cus_verify *verify, struct cus_planted *planted);
/* Takes it out again. */
void cus_unplant(const struct cus_verify *verify, const struct cus_planted *planted);

#endif
