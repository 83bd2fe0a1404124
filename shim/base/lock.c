/*
 * The slow path of the lock. Runs only if two threads meet. Calls nothing but futex(2).
 */
#include "shim/base/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/check.h"
#include "shim/base/clock.h"

#ifdef CUS_CHECKS
void cus_check_failed(const char *condition, const char *file, int line) {
    char text[512];
    int length =
        snprintf(text, sizeof text, "cusplice: %s:%d: %s does not hold\n", file, line, condition);
    ssize_t ignored =
        write(STDERR_FILENO, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    (void)ignored;
    abort();
}

enum { HELD_MAX = 16 };

static __thread struct {
    const struct cus_lock *lock[HELD_MAX];
    uint32_t n;
} held;

static void end(const char *what) {
    ssize_t ignored = write(STDERR_FILENO, what, strlen(what));
    (void)ignored;
    abort();
}

void cus_lock_check(const struct cus_lock *lock) {
    for (uint32_t i = 0; i < held.n; i++) {
        if (held.lock[i] == lock)
            end("cusplice: a thread takes a lock that it holds\n");
        if (lock->rank && held.lock[i]->rank >= lock->rank)
            end("cusplice: a thread takes a lock against the order\n");
    }
}

void cus_lock_taken(const struct cus_lock *lock) {
    if (held.n == HELD_MAX)
        end("cusplice: a thread holds too many locks\n");
    held.lock[held.n++] = lock;
}

void cus_lock_given(const struct cus_lock *lock) {
    uint32_t i = held.n;
    while (i > 0 && held.lock[i - 1] != lock)
        i--;
    if (i == 0)
        end("cusplice: a thread gives a lock that it does not hold\n");
    held.lock[i - 1] = held.lock[--held.n];
}
#endif

enum { SPINS = CUS_TURNS(64), WAIT_NS = 100000 };

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
        cus_pause();
        if (cus_lock_try(lock))
            return;
    }
    __atomic_add_fetch(&lock->waiting, 1, __ATOMIC_SEQ_CST);
    while (!cus_lock_try(lock))
        cus_futex_wait(&lock->word, 1, WAIT_NS);
    __atomic_sub_fetch(&lock->waiting, 1, __ATOMIC_RELAXED);
}

bool cus_lock_take_for(struct cus_lock *lock, uint64_t ns) {
    uint64_t end = cus_clock_real_ns() + ns;
    bool taken;
    cus_lock_check(lock);
    __atomic_add_fetch(&lock->waiting, 1, __ATOMIC_SEQ_CST);
    while (!(taken = cus_lock_try(lock)) && cus_clock_real_ns() < end)
        cus_futex_wait(&lock->word, 1, WAIT_NS);
    __atomic_sub_fetch(&lock->waiting, 1, __ATOMIC_RELAXED);
    return taken;
}

void cus_lock_wake(struct cus_lock *lock) {
    cus_futex_wake(&lock->word, 1);
}
