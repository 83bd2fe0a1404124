/*
 * Finds the period of a loop that never synchronises, from the hashes of its ops, in bounded
 * memory.
 *
 * Used only once a step has grown suspiciously long; a program that synchronises never gets here.
 */
#ifndef CUSPLICE_PLAN_LOOP_H
#define CUSPLICE_PLAN_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum { CUS_LOOP_WINDOW = 8192, CUS_LOOP_GRAM = 32, CUS_LOOP_RUN = 256 };

/* What takes the last op back where it is set to what it was before. */
struct cus_loop_at {
    uint64_t gram; /* the hash of the last CUS_LOOP_GRAM ops */
    uint32_t fed;
    uint32_t period; /* the candidate; 0: none */
    uint32_t run;    /* ops in a row that equal the op one period before */
};

struct cus_loop {
    uint64_t *ring; /* hashes of the last ops; allocated at the first feed */
    uint32_t *last; /* where the last CUS_LOOP_GRAM ops were met before, by their hash */
    struct cus_loop_at at;
};

/* One more op. Returns the period once the last period repeats the one before (and for short
 * periods once CUS_LOOP_RUN ops do); 0 until then, and always when memory is short. */
uint32_t cus_loop_feed(struct cus_loop *loop, uint64_t hash);
/* Forgets the ops fed so far. */
void cus_loop_reset(struct cus_loop *loop);
void cus_loop_free(struct cus_loop *loop);

#endif
