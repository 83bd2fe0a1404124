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

struct cus_lock {
    uint32_t word;    /* 0 free, 1 held */
    uint32_t waiting; /* threads that wait */
};

void cus_lock_wait(struct cus_lock *lock);
void cus_lock_wake(struct cus_lock *lock);

static inline bool cus_lock_try(struct cus_lock *lock) {
    uint32_t expected = 0;
    return __atomic_compare_exchange_n(&lock->word, &expected, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static inline void cus_lock_take(struct cus_lock *lock) {
    if (!cus_lock_try(lock))
        cus_lock_wait(lock);
}

static inline void cus_lock_give(struct cus_lock *lock) {
    __atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
    if (__builtin_expect(__atomic_load_n(&lock->waiting, __ATOMIC_RELAXED) != 0, 0))
        cus_lock_wake(lock);
}

/* Sleeps while *word == value, `ns` nanoseconds at most (0: no limit); wakes sleepers. errno is
 * kept. */
void cus_futex_wait(uint32_t *word, uint32_t value, uint64_t ns);
void cus_futex_wake(uint32_t *word, int count);

#endif
