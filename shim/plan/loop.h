/*
 * Finds the period of a loop that never synchronises, from the hashes of its ops, in bounded
 * memory. cursor.c feeds it under the engine's lock, once a step has become suspiciously long. If a
 * program synchronises, it is never used.
 */
#ifndef CUSPLICE_PLAN_LOOP_H
#define CUSPLICE_PLAN_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum { CUS_LOOP_WINDOW = 8192, CUS_LOOP_GRAM = 32, CUS_LOOP_RUN = 256 };

/* Resetting this struct to an earlier copy takes back the last op. */
struct cus_loop_at {
    uint64_t gram; /* hash of the last CUS_LOOP_GRAM ops */
    uint32_t fed;
    uint32_t period; /* the candidate; 0: none */
    uint32_t run;    /* ops in a row that equal the op one period before */
};

struct cus_loop {
    uint64_t *ring; /* hashes of the last ops; allocated at the first feed */
    uint32_t *last; /* where the last CUS_LOOP_GRAM ops came before, by hash */
    struct cus_loop_at at;
};

/* Feeds one op. Returns the period once a whole period repeats the one before, and at least
 * CUS_LOOP_RUN ops do. Returns 0 until then, and always if memory is short. */
uint32_t cus_loop_feed(struct cus_loop *loop, uint64_t hash);
/* Forgets the ops fed so far. */
void cus_loop_reset(struct cus_loop *loop);
void cus_loop_free(struct cus_loop *loop);

#endif
