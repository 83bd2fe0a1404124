/*
 * What threads wait in: mutexes, conditions, barriers, semaphores, futexes, sleeps and joins, as
 * libsched.so has them in front of the C library's. Real mutexes are taken too, so that what the C
 * library knows of them holds; they are always free then.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/sched/sched.h"

enum { ALL = 1 << 20 };
#define SECOND 1000000000u

/* The function of this name behind this library. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real_;                                                                \
    if (!real_)                                                                                    \
    real_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static uint64_t ns_of(const struct timespec *t) {
    return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

/* ---- mutexes ---- */

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    REAL(pthread_mutex_trylock);
    sched_point();
    return real_(mutex);
}

static int take(pthread_mutex_t *mutex) {
    REAL(pthread_mutex_trylock);
    int code;
    while ((code = real_(mutex)) == EBUSY)
        sched_block(mutex, "takes a mutex", 0);
    return code;
}

static int give(pthread_mutex_t *mutex) {
    REAL(pthread_mutex_unlock);
    int code = real_(mutex);
    sched_wake(mutex, ALL);
    return code;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (!sched_on()) {
        REAL(pthread_mutex_lock);
        return real_(mutex);
    }
    sched_point();
    int code = take(mutex);
    sched_taken();
    return code;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    if (!sched_on()) {
        REAL(pthread_mutex_unlock);
        return real_(mutex);
    }
    int code = give(mutex);
    sched_point();
    return code;
}

/* ---- conditions ---- */

static int wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until) {
    sched_point();
    give(mutex);
    bool woken = sched_block(cond, "waits for a condition", until);
    take(mutex);
    return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    return wait_for(cond, mutex, 0);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                           const struct timespec *until) {
    return wait_for(cond, mutex, ns_of(until));
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until) {
    (void)clock;
    return wait_for(cond, mutex, ns_of(until));
}

int pthread_cond_signal(pthread_cond_t *cond) {
    sched_point();
    sched_wake(cond, 1);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond) {
    sched_point();
    sched_wake(cond, ALL);
    return 0;
}

/* ---- barriers and semaphores: their memory is ours ---- */

struct barrier {
    unsigned count, arrived, round;
};

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr,
                         unsigned count) {
    (void)attr;
    memcpy(barrier, &(struct barrier){.count = count}, sizeof(struct barrier));
    return 0;
}

int pthread_barrier_destroy(pthread_barrier_t *barrier) {
    (void)barrier;
    return 0;
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
    struct barrier *b = (struct barrier *)barrier;
    unsigned round = b->round;
    sched_point();
    if (++b->arrived == b->count) {
        b->arrived = 0;
        b->round++;
        sched_wake(b, ALL);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (b->round == round)
        sched_block(b, "waits at a barrier", 0);
    return 0;
}

int sem_init(sem_t *sem, int shared, unsigned value) {
    (void)shared;
    memcpy(sem, &value, sizeof value);
    return 0;
}

int sem_post(sem_t *sem) {
    sched_point();
    ++*(unsigned *)sem;
    sched_wake(sem, 1);
    return 0;
}

int sem_wait(sem_t *sem) {
    sched_point();
    while (!*(unsigned *)sem)
        sched_block(sem, "waits for a semaphore", 0);
    --*(unsigned *)sem;
    return 0;
}

int sem_trywait(sem_t *sem) {
    sched_point();
    if (!*(unsigned *)sem) {
        errno = EAGAIN;
        return -1;
    }
    --*(unsigned *)sem;
    return 0;
}

/* As the C library keeps it: 1 while the function runs, 2 when it has run. */
int pthread_once(pthread_once_t *once, void (*run)(void)) {
    volatile int *state = once;
    while (*state == 1)
        sched_block(once, "waits for pthread_once", 0);
    if (*state == 2)
        return 0;
    *state = 1;
    run();
    *state = 2;
    sched_wake(once, ALL);
    return 0;
}

/* ---- time ---- */

int nanosleep(const struct timespec *time, struct timespec *left) {
    if (!sched_on()) {
        REAL(nanosleep);
        return real_(time, left);
    }
    sched_point();
    sched_block(NULL, "sleeps", sched_now() + ns_of(time) + 1);
    return 0;
}

int usleep(useconds_t us) {
    return nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                    struct timespec *left) {
    (void)clock;
    uint64_t ns = ns_of(time), now = sched_now();
    if (flags & TIMER_ABSTIME)
        ns = ns > now ? ns - now : 0;
    nanosleep(&(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)}, left);
    return 0;
}

int pause(void) {
    sched_point();
    sched_block(NULL, "pauses", 0);
    errno = EINTR;
    return -1;
}

int sched_yield(void) {
    if (!sched_on())
        return 0;
    sched_yield_turn();
    return 0;
}

/* Processor clocks of threads are negative; the number of the thread is in them. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    uint64_t ns = clock == CLOCK_THREAD_CPUTIME_ID ? sched_thread_ran(0)
                  : clock < 0                      ? sched_thread_ran(~clock >> 3)
                                                   : sched_now();
    *time = (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
    return 0;
}

/* ---- threads ---- */

struct start {
    void *(*run)(void *);
    void *argument;
    struct sched_thread *thread;
};

static pthread_key_t ending;
static pthread_once_t ending_once = PTHREAD_ONCE_INIT;

/* The last of the thread's destructors: those of other keys run in the rounds before. */
static void end(void *round) {
    uintptr_t n = (uintptr_t)round;
    if (n < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(ending, (void *)(n + 1));
    else
        sched_thread_ends();
}

static void make_ending(void) {
    pthread_key_create(&ending, end);
}

static void *begin(void *given) {
    struct start start = *(struct start *)given;
    sched_thread_begins(start.thread);
    free(given); /* in its turn: so addresses of memory are the same in each run */
    pthread_setspecific(ending, (void *)1);
    return start.run(start.argument);
}

int pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                   void *argument) {
    REAL(pthread_create);
    if (!sched_on())
        return real_(id, attr, run, argument);
    pthread_once(&ending_once, make_ending);
    sched_point();
    struct start *start = malloc(sizeof *start);
    struct sched_thread *thread = start ? sched_thread_new() : NULL;
    int detached = PTHREAD_CREATE_JOINABLE, code;
    if (!thread) {
        free(start);
        return EAGAIN;
    }
    *start = (struct start){run, argument, thread};
    code = real_(id, attr, begin, start);
    if (code != 0) {
        sched_thread_undo(thread);
        free(start);
        return code;
    }
    sched_thread_is(thread, *id);
    if (attr)
        pthread_attr_getdetachstate(attr, &detached);
    if (detached == PTHREAD_CREATE_DETACHED)
        sched_thread_forget(*id);
    sched_point();
    return 0;
}

int pthread_join(pthread_t id, void **result) {
    REAL(pthread_join);
    sched_point();
    sched_thread_join(id);
    return real_(id, result);
}

int pthread_detach(pthread_t id) {
    REAL(pthread_detach);
    sched_thread_forget(id);
    return real_(id);
}

/* ---- system calls ---- */

/* FUTEX_WAIT has how long to wait, FUTEX_WAIT_BITSET until when. */
static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *time) {
    int command = operation & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    sched_point();
    if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET)
        return sched_wake(word, sched_planted(SCHED_LOST_WAKE) ? 0 : value);
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
    }
    uint64_t until = !time ? 0 : ns_of(time) + (command == FUTEX_WAIT ? sched_now() : 0) + 1;
    if (sched_block(word, "waits for a futex", until))
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

long syscall(long number, ...) {
    static long (*real_)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!real_)
        real_ = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (!sched_on())
        return real_(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    switch (number) {
    case SYS_futex:
        return futex((uint32_t *)a[0], (int)a[1], (uint32_t)a[2], (const struct timespec *)a[3]);
    case SYS_sched_getaffinity:
        memset((void *)a[2], 0, (size_t)a[1]);
        *(char *)a[2] = 3;
        return a[1];
    case SYS_futex_waitv:
        errno = ENOSYS;
        return -1;
    default:
        return real_(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}
