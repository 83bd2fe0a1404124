/*
 * A small lock: one atomic exchange to take it, a plain store to give it, a futex if two threads
 * meet. Every op takes an engine's lock, almost always without contention. A pthread mutex costs
 * three times as much there. A thread that gives the lock may miss one that has just begun to wait,
 * since an ordered load would cost a second atomic exchange per op. So no wait exceeds WAIT_NS
 * (lock.c) at a time. Neither recursive nor robust; never taken in a forked child.
 */
#ifndef CUSPLICE_BASE_LOCK_H
#define CUSPLICE_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* How often a loop looks before it does something else. tests/order makes it once, as it tries all
 * orders of the looks. */
#ifndef CUS_TURNS
#define CUS_TURNS(n) (n)
#endif

/* The order in which a thread takes locks, outermost first. A thread never holds two locks of
 * one rank (HAZARDS B5). A build with CUS_CHECKS ends the process if a thread breaks the order;
 * other builds have no code for ranks. */
enum cus_rank {
    CUS_RANK_NONE, /* not checked */
    CUS_RANK_STATS,
    CUS_RANK_REST,
    CUS_RANK_GATE,
    CUS_RANK_ENGINE,
    CUS_RANK_CONTEXT,
    CUS_RANK_REGISTRY,
    CUS_RANK_KEEP,
    CUS_RANK_INNERMOST,
    CUS_RANK_HELD /* of events that nodes hold: taken beneath the lock of builds */
};

struct cus_lock {
    uint32_t word;    /* 0 free, 1 held */
    uint32_t waiting; /* number of waiting threads */
#ifdef CUS_CHECKS
    uint32_t rank; /* enum cus_rank */
#endif
};

#ifdef CUS_CHECKS
#define CUS_LOCK_OF(rank)                                                                          \
    { 0, 0, rank }
#define CUS_LOCK_RANK(lock, rank_) ((lock)->rank = (rank_))
/* Ends the process if the thread may not take this lock now; records that the thread took or
 * gave it. */
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

/* Takes the lock whatever locks the thread holds. Only where no holder of this lock can want one
 * of them. */
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

/* Takes the lock, or returns false after `ns` nanoseconds. */
bool cus_lock_take_for(struct cus_lock *lock, uint64_t ns);

/* For loops that wait for another thread: leaves the core to its other hyperthread for a moment. */
static inline void cus_pause(void) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#else
    __asm__ volatile("isb"); /* as long as a pause there; yield does nothing on most cores */
#endif
}

/* Sleeps while *word == value, for at most `ns` nanoseconds (0: no limit); wakes sleepers. Both
 * keep errno. */
void cus_futex_wait(uint32_t *word, uint32_t value, uint64_t ns);
void cus_futex_wake(uint32_t *word, int count);

#endif
