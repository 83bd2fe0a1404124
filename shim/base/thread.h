/*
 * Threads of the library, and how threads of the process are scheduled. The library starts every
 * thread of its own here. Any thread may call; no lock, no allocation of the library's; errno is
 * kept.
 */
#ifndef CUSPLICE_BASE_THREAD_H
#define CUSPLICE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Static: the thread reads it when it begins. */
struct cus_own_thread {
    const char *name; /* 15 characters at most */
    void *(*run)(void *);
    void *argument;
};

/* Notes the processors and the niceness of the calling thread as those of the process. Before main,
 * on the main thread; what a thread does to itself later is not ours. */
void cus_thread_note(void);

/* Starts a thread, detached. Whatever the calling thread is, the new one blocks all signals, is
 * SCHED_OTHER, and has the processors and the niceness that were noted; what the kernel refuses of
 * that it goes without. 0, or the error of pthread_create. `id` may be NULL. */
int cus_thread_start(struct cus_own_thread *start, pthread_t *id);

/* How far the kernel puts a thread before ordinary ones (0: the calling thread). */
enum {
    CUS_URGENCY_NONE = 0,      /* not at all; 1 to 99: priorities of SCHED_FIFO and SCHED_RR */
    CUS_URGENCY_DEADLINE = 100 /* before all of these: SCHED_DEADLINE */
};
int cus_thread_urgency(pid_t tid);

/* How many other threads of the process have this urgency or more, and the highest of them (0: none
 * has). Reads /proc: where there is none, it finds none. */
unsigned cus_thread_urgent(int from, int *highest);

/* Makes a thread SCHED_FIFO of this priority; what it starts is ordinary. False: the process may
 * not, or the kernel would end a real-time thread that runs for long (RLIMIT_RTTIME). */
bool cus_thread_raise(pthread_t id, int priority);

/* On how many processors the calling thread may run at this moment; 0: not known. */
unsigned cus_thread_processors(void);

#ifdef __cplusplus
}
#endif

#endif
