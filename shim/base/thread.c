/*
 * Starts the threads of the library, and asks the kernel how threads are scheduled. cus_thread_note
 * runs on the main thread before main; all else on any thread, without a lock. No thread of the
 * library inherits its scheduling: on one processor, a real-time thread that polls would keep a
 * real-time watchdog of its own priority from running.
 */
#define _GNU_SOURCE
#include "shim/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/file.h"
#include "shim/base/hazard.h"
#include "shim/base/lock.h"

/* One bit per processor; Linux has 8192 at most. */
struct mask {
    size_t bytes; /* as many as the kernel knows; 0: it does not say */
    union {
        cpu_set_t set;
        unsigned char byte[1024];
    };
};

/* Of the process; written before main. */
static struct mask processors;
static bool noted;
static int niceness;

static void mask_now(struct mask *mask) {
    memset(mask, 0, sizeof *mask);
    long got = syscall(SYS_sched_getaffinity, 0, sizeof mask->byte, mask->byte);
    mask->bytes = got > 0 ? (size_t)got : 0;
}

void cus_thread_note(void) {
    int saved = errno;
    mask_now(&processors);
    noted = true;
    niceness = getpriority(PRIO_PROCESS, 0);
    errno = saved;
}

/* ---- start ---- */

static void *begin(void *argument) {
    struct cus_own_thread *start = argument;
    pthread_setname_np(pthread_self(), start->name);
    /* On Linux each thread has its own niceness. The kernel may refuse a lower niceness than the
     * starting thread's. The new thread then runs late where processors are scarce, but it runs. */
    if (noted && CUS_HAZARD(G4))
        setpriority(PRIO_PROCESS, 0, niceness);
    void *result = start->run(start->argument);
    __atomic_store_n(&start->runs, 0, __ATOMIC_RELEASE);
    cus_futex_wake(&start->runs, INT_MAX);
    return result;
}

/* What is asked of the kernel for a new thread; the preferred choice first. */
static const struct way {
    bool ordinary; /* the policy */
    enum { LIKE_ITS_MAKER, NOTED, ALL } where;
} ways[] = {
    {true, NOTED},          {true, ALL}, /* the process has none of the noted processors any more */
    {true, LIKE_ITS_MAKER}, {false, NOTED}, {false, ALL}, {false, LIKE_ITS_MAKER},
};

static int start_so(const struct way *way, struct cus_own_thread *start, pthread_t *id) {
    pthread_attr_t attr;
    struct mask mask = processors;
    struct sched_param none = {0};
    if (way->where == ALL)
        memset(mask.byte, 0xff, mask.bytes);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (way->ordinary) {
        pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
        pthread_attr_setschedparam(&attr, &none);
    }
    int error = 0;
    if (way->where != LIKE_ITS_MAKER)
        error = mask.bytes ? pthread_attr_setaffinity_np(&attr, mask.bytes, &mask.set) : EINVAL;
    if (!error)
        error = pthread_create(id, &attr, begin, start);
    pthread_attr_destroy(&attr);
    return error;
}

int cus_thread_start(struct cus_own_thread *start, pthread_t *id) {
    int saved = errno, error = EPERM;
    sigset_t all, before;
    pthread_t unused;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    unsigned n = sizeof ways / sizeof *ways;
    __atomic_store_n(&start->runs, 1, __ATOMIC_RELAXED);
    for (unsigned i = CUS_HAZARD(G4) ? 0 : n - 1; i < n && error && error != EAGAIN; i++)
        error = start_so(&ways[i], start, id ? id : &unused);
    if (error)
        __atomic_store_n(&start->runs, 0, __ATOMIC_RELAXED);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return error;
}

void cus_thread_await(struct cus_own_thread *started) {
    while (__atomic_load_n(&started->runs, __ATOMIC_ACQUIRE))
        cus_futex_wait(&started->runs, 1, 0);
}

/* ---- urgency ---- */

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif
#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

int cus_thread_urgency(pid_t tid) {
    int saved = errno, urgency = CUS_URGENCY_NONE;
    struct sched_param param = {0};
    int policy = sched_getscheduler(tid);
    if (policy >= 0)
        policy &= ~SCHED_RESET_ON_FORK;
    if (policy == SCHED_DEADLINE)
        urgency = CUS_URGENCY_DEADLINE;
    else if ((policy == SCHED_FIFO || policy == SCHED_RR) && sched_getparam(tid, &param) == 0)
        urgency = param.sched_priority;
    errno = saved;
    return urgency;
}

struct entry { /* as in getdents64; opendir would allocate by the program's malloc */
    uint64_t number, offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

unsigned cus_thread_urgent(int from, int *highest) {
    _Alignas(struct entry) char list[4096];
    int saved = errno;
    pid_t self = (pid_t)syscall(SYS_gettid);
    unsigned n = 0;
    *highest = 0;
    int folder = cus_file_open("/proc/self/task", O_RDONLY | O_DIRECTORY, 0);
    for (long got; folder >= 0 && (got = syscall(SYS_getdents64, folder, list, sizeof list)) > 0;)
        for (long at = 0; at < got; at += ((const struct entry *)&list[at])->length) {
            pid_t tid = (pid_t)atol(((const struct entry *)&list[at])->name);
            int urgency = tid > 0 && tid != self ? cus_thread_urgency(tid) : CUS_URGENCY_NONE;
            if (urgency == CUS_URGENCY_NONE || urgency < from)
                continue;
            n++;
            *highest = urgency > *highest ? urgency : *highest;
        }
    if (folder >= 0)
        close(folder);
    errno = saved;
    return n;
}

bool cus_thread_raise(pthread_t id, int priority) {
    struct rlimit limit;
    struct sched_param param = {.sched_priority = priority};
    int saved = errno;
    bool raised = getrlimit(RLIMIT_RTTIME, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY &&
                  pthread_setschedparam(id, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0;
    errno = saved;
    return raised;
}

uint64_t cus_thread_ran_ns(pid_t tid) {
    enum { OF_A_THREAD = 4, SCHEDULED = 2, BITS = 3 }; /* the kernel's numbers of such clocks */
    clockid_t clock = (clockid_t)(~(unsigned)tid << BITS | OF_A_THREAD | SCHEDULED);
    struct timespec ran;
    int saved = errno;
    bool known = clock_gettime(clock, &ran) == 0;
    errno = saved;
    return known ? (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec : 0;
}

#ifdef CUS_POINTS
/* In programs of tests/sched threads take turns: the kernel sees all but one sleep. */
bool sched_thread_ready(int tid);
bool cus_thread_runnable(pid_t tid) {
    return sched_thread_ready(tid);
}
#else
bool cus_thread_runnable(pid_t tid) {
    char path[64], text[256];
    int saved = errno;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    int file = cus_file_open(path, O_RDONLY, 0);
    ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    errno = saved;
    text[got > 0 ? got : 0] = 0;
    /* The state stands behind the name, which is in brackets and may have some itself. */
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'R';
}
#endif

unsigned cus_thread_processors(void) {
    struct mask mask;
    int saved = errno;
    mask_now(&mask);
    errno = saved;
    return (unsigned)CPU_COUNT_S(sizeof mask.byte, &mask.set);
}
