/*
 * A small lock: one atomic exchange to take it, a plain store to give it, a futex where two meet.
 *
 * Engine locks are taken at every op and are almost never contended; a pthread mutex costs three
 * times as much there. Whoever gives the lock may miss one who has just begun to wait (an ordered
 * look would cost a second atomic exchange at every op): waiting is therefore never longer than
 * WAIT_NS (lock.c) at a time. Not recursive, not robust. Never taken in a forked child (the hooks
 * pass through there).
 */
#ifndef CUSPLICE_BASE_LOCK_H
#define CUSPLICE_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The order in which a thread takes locks, outermost first; two of one rank are never held together
 * (HAZARDS B5). A build with CUS_CHECKS ends the process where that is broken; elsewhere ranks
 * leave no trace. */
enum cus_rank {
    CUS_RANK_NONE, /* not looked at */
    CUS_RANK_STATS,
    CUS_RANK_GATE,
    CUS_RANK_ENGINE,
    CUS_RANK_CONTEXT,
    CUS_RANK_REGISTRY,
    CUS_RANK_KEEP,
    CUS_RANK_INNERMOST
};

struct cus_lock {
    uint32_t word;    /* 0 free, 1 held */
    uint32_t waiting; /* threads that wait */
#ifdef CUS_CHECKS
    uint32_t rank; /* enum cus_rank */
#endif
};

#ifdef CUS_CHECKS
#define CUS_LOCK_OF(rank)                                                                          \
    { 0, 0, rank }
#define CUS_LOCK_RANK(lock, rank_) ((lock)->rank = (rank_))
/* Ends the process where the thread may not take this lock now; notes that it has it, or has it no
 * more. */
void cus_lock_check(const struct cus_lock *lock);
void cus_lock_taken(const struct cus_lock *lock);
void cus_lock_given(const struct cus_lock *lock);
#else
#define CUS_LOCK_OF(rank)                                                                          \
    { 0, 0 }
#define CUS_LOCK_RANK(lock, rank_) ((void)0)
#define cus_lock_check(lock) ((void)0)
#define cus_lock_taken(lock) ((void)0)
#define cus_lock_given(lock) ((void)0)
#endif

void cus_lock_wait(struct cus_lock *lock);
void cus_lock_wake(struct cus_lock *lock);

static inline bool cus_lock_try(struct cus_lock *lock) {
    uint32_t expected = 0;
    if (!__atomic_compare_exchange_n(&lock->word, &expected, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    cus_lock_taken(lock);
    return true;
}

/* Whatever else is held: where nobody who holds this lock can want what the thread holds. */
static inline void cus_lock_take_unordered(struct cus_lock *lock) {
    if (!cus_lock_try(lock))
        cus_lock_wait(lock);
}

static inline void cus_lock_take(struct cus_lock *lock) {
    cus_lock_check(lock);
    cus_lock_take_unordered(lock);
}

static inline __attribute__((always_inline)) void cus_lock_give(struct cus_lock *lock) {
    cus_lock_given(lock);
    __atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
    if (__builtin_expect(__atomic_load_n(&lock->waiting, __ATOMIC_RELAXED) != 0, 0))
        cus_lock_wake(lock);
}

/* Takes the lock unless that would take longer than `ns` nanoseconds. */
bool cus_lock_take_for(struct cus_lock *lock, uint64_t ns);

/* Sleeps while *word == value, `ns` nanoseconds at most (0: no limit); wakes sleepers. errno is
 * kept. */
void cus_futex_wait(uint32_t *word, uint32_t value, uint64_t ns);
void cus_futex_wake(uint32_t *word, int count);

#endif
