/*
 * Threads of the library, and how the kernel schedules threads of the process. The library starts
 * each of its own threads here. Any thread may call. Takes no lock, allocates nothing of the
 * library's, keeps errno.
 */
#ifndef CUSPLICE_BASE_THREAD_H
#define CUSPLICE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Must be static: the new thread uses it. */
struct cus_own_thread {
    const char *name; /* at most 15 characters */
    void *(*run)(void *);
    void *argument;
    uint32_t runs; /* atomic, futex: 1 until `run` has returned; cus_thread_start sets it */
};

/* Notes the processors and the niceness of the calling thread as those of the process. Called
 * before main, on the main thread. What a thread later does to itself does not count. */
void cus_thread_note(void);

/* Starts a detached thread. The new thread blocks all signals, is SCHED_OTHER, and has the noted
 * processors and niceness, whatever the calling thread has. What the kernel refuses is left out.
 * Returns 0, or the error of pthread_create. `id` may be NULL. */
int cus_thread_start(struct cus_own_thread *start, pthread_t *id);
/* Waits until the thread has left `run`. Returns at once if it was never started. */
void cus_thread_await(struct cus_own_thread *started);

/* How far the kernel prefers a thread to ordinary ones (tid 0: the calling thread). */
enum {
    CUS_URGENCY_NONE = 0,      /* not at all; 1 to 99: priorities of SCHED_FIFO and SCHED_RR */
    CUS_URGENCY_DEADLINE = 100 /* above all of these: SCHED_DEADLINE */
};
int cus_thread_urgency(pid_t tid);

/* Counts the other threads of the process with at least this urgency. *highest is the highest
 * urgency of these (0: there is none). Reads /proc; without /proc it finds none. */
unsigned cus_thread_urgent(int from, int *highest);

/* Makes a thread SCHED_FIFO with this priority; threads that it starts are ordinary. False: the
 * process may not, or the kernel would end a real-time thread that runs for long
 * (RLIMIT_RTTIME). */
bool cus_thread_raise(pthread_t id, int priority);

/* Processor time of a thread of this process, in ns; 0: the thread is gone. */
uint64_t cus_thread_ran_ns(pid_t tid);
/* Is the thread ready to run, or running? False also where /proc does not say. */
bool cus_thread_runnable(pid_t tid);

/* On how many processors the calling thread may run now; 0: unknown. */
unsigned cus_thread_processors(void);

#ifdef __cplusplus
}
#endif

#endif
