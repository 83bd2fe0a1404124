/*
 * Small programs for sched_test: turns CASE SEED DEPTH. Compiled with points. Prints what came out,
 * and how often a thread lost its turn.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sched/plan.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int sum, ready;

static void *take_ab(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *take_ba(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}

static void *add_wrongly(void *unused) {
    int old = __atomic_load_n(&sum, __ATOMIC_ACQUIRE);
    __atomic_store_n(&sum, old + 1, __ATOMIC_RELEASE);
    return unused;
}

static void *add(void *unused) {
    pthread_mutex_lock(&a);
    add_wrongly(NULL);
    pthread_mutex_unlock(&a);
    return unused;
}

/* Looks before it takes the mutex: the signal may come between. */
static void *wait_wrongly(void *unused) {
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&a);
        pthread_cond_wait(&moved, &a);
        pthread_mutex_unlock(&a);
    }
    return unused;
}

static void *wait_rightly(void *unused) {
    pthread_mutex_lock(&a);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        pthread_cond_wait(&moved, &a);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *tell(void *unused) {
    pthread_mutex_lock(&a);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&moved);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *sleep_long(void *unused) {
    for (int i = 0; i < 100; i++)
        nanosleep(&(struct timespec){1, 0}, NULL);
    return unused;
}

static void *look_in_vain(void *unused) {
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        sched_yield();
    return unused;
}

static const struct {
    const char *name;
    void *(*thread[2])(void *);
} cases[] = {
    {"opposite", {take_ab, take_ba}},
    {"alike", {take_ab, take_ab}},
    {"sum-wrong", {add_wrongly, add_wrongly}},
    {"sum", {add, add}},
    {"signal-wrong", {wait_wrongly, tell}},
    {"signal", {wait_rightly, tell}},
    {"sleep", {sleep_long, add}},
    {"vain", {look_in_vain, add}},
};

int main(int argc, char **argv) {
    sched_begin_fn *begin = (sched_begin_fn *)dlsym(RTLD_DEFAULT, "sched_begin");
    sched_end_fn *end = (sched_end_fn *)dlsym(RTLD_DEFAULT, "sched_end");
    for (unsigned i = 0; argc == 4 && begin && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            struct sched_plan plan = {.seed = strtoull(argv[2], NULL, 10),
                                      .depth = (uint32_t)atoi(argv[3]),
                                      .points = 30,
                                      .by_takes = 0};
            pthread_t thread[2];
            struct timespec from, to;
            clock_gettime(CLOCK_MONOTONIC, &from);
            if (strcmp(argv[1], "sleep") != 0) /* which takes longer than a plan may */
                begin(&plan);
            for (int t = 0; t < 2; t++)
                pthread_create(&thread[t], NULL, cases[i].thread[t], NULL);
            for (int t = 0; t < 2; t++)
                pthread_join(thread[t], NULL);
            struct sched_ran ran = end();
            clock_gettime(CLOCK_MONOTONIC, &to);
            printf("sum %d, %d s, switches %d\n", sum, (int)(to.tv_sec - from.tv_sec),
                   (int)ran.switches);
            return 0;
        }
    fprintf(stderr, "turns CASE SEED DEPTH, under libsched.so\n");
    return 2;
}
