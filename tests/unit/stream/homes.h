/* Asks what a home makes of a call, at the moment when its lock is had: another thread may have
 * done this or that since the stream was looked at without the lock. What it did is undone. */
#ifndef CUSPLICE_TESTS_UNIT_STREAM_HOMES_H
#define CUSPLICE_TESTS_UNIT_STREAM_HOMES_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum moved {
    MOVED_NOTHING,
    /* the home */
    MOVED_CLOSED,
    MOVED_DEMOTED,
    MOVED_OWNER,
    MOVED_CAPTURES, /* if the driver says so of the home's stream */
    /* the side stream */
    MOVED_LEFT,   /* is no branch any more */
    MOVED_USER,   /* has a second user */
    MOVED_WORKED, /* has had work of its own */
};

/* A call on a side stream, or a wait on `on` for the record behind so many ops of the home, which
 * `of` made. `side` is the stream that moved. */
struct home_call {
    CUstream home, on, of, side;
    uint64_t ops;
    bool may_fork;
};
/* What became of it: its place, if it is an op of the home. */
struct home_place {
    bool is;
    unsigned branch, from, back;
    bool goes_on;
};
bool home_enters(const struct home_call *call, enum moved moved);
struct home_place home_waits(const struct home_call *call, enum moved moved);
/* Is the stream's next op behind the record? */
bool home_is_behind(const struct home_call *call, enum moved moved);

/* Ops of the stream's engine so far. */
uint64_t home_ops(CUstream home);
/* Ops of the longest segment. */
unsigned home_longest(void);
/* Is the stream a branch of the home, with work that is not joined? */
bool home_has_open(CUstream home, CUstream side);
/* Demotes the stream for so many ops; 0: no more. */
void home_demote(CUstream stream, uint64_t ops);
/* So many ops more have passed on the stream. */
void home_pass(CUstream stream, unsigned type, int n);
/* A thread sleeps in a copy, or does no more. */
void home_copies(bool on);
/* Takes the stream's lock for cus_branch_position and cus_branch_same (shim/stream/branches.h). */
void home_position(CUstream stream);
void home_same(CUstream stream);

#ifdef __cplusplus
}
#endif

#endif
