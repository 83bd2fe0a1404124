/*
 * The slow side of the lock: runs only when two threads meet. Calls nothing but futex(2).
 */
#include "shim/base/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 64, WAIT_NS = 100000 };

void cus_futex_wait(uint32_t *word, uint32_t value, uint64_t ns) {
    int saved = errno;
    struct timespec limit = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ns ? &limit : NULL, NULL, 0);
    errno = saved;
}

void cus_futex_wake(uint32_t *word, int count) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = saved;
}

void cus_lock_wait(struct cus_lock *lock) {
    for (int i = 0; i < SPINS; i++) {
        __builtin_ia32_pause();
        if (cus_lock_try(lock))
            return;
    }
    __atomic_add_fetch(&lock->waiting, 1, __ATOMIC_SEQ_CST);
    while (!cus_lock_try(lock))
        cus_futex_wait(&lock->word, 1, WAIT_NS);
    __atomic_sub_fetch(&lock->waiting, 1, __ATOMIC_RELAXED);
}

void cus_lock_wake(struct cus_lock *lock) {
    cus_futex_wake(&lock->word, 1);
}
