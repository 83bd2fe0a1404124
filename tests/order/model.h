/*
 * The state of one execution: messages of each location, what each thread has seen, events. Private
 * to tests/order.
 */
#ifndef CUSPLICE_TESTS_ORDER_MODEL_H
#define CUSPLICE_TESTS_ORDER_MODEL_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

struct order_site;
struct order_test;

enum {
    THREADS = 6,
    LOCATIONS = 40,
    MESSAGES = 48,
    EVENTS = 256,
    STACK = 128 << 10,
    DEPTH = 4096,
    GROUPS = 512
};

/* What a thread has seen: of each location the message, and of each thread the number of its
 * events. */
struct view {
    uint8_t at[LOCATIONS];
    uint16_t clock[THREADS];
};

struct message {
    uint64_t value, id;
    struct view view; /* what a thread that acquires it sees */
    uint8_t place;    /* in the modification order */
    bool bound;       /* an RMW read it: nothing comes between */
    int event;        /* that wrote it; -1: none */
};

struct location {
    const volatile void *address;
    size_t bytes;
    uint8_t n, woken; /* woken: the latest message that a thread that woke sleepers had seen */
    uint8_t order[MESSAGES]; /* messages by place */
    struct message message[MESSAGES];
};

enum { FENCE = 1, READ = 2, WRITE = 4 };
struct event {
    uint8_t thread, what, location, read, written;
    bool sc, old;    /* old: it read another message than the latest */
    uint16_t number; /* in the thread */
    uint16_t clock[THREADS];
    const struct order_site *site;
    uint64_t value;
};

enum status { UNUSED, READY, ASLEEP, PAUSED, DONE };
struct thread {
    enum status status;
    bool begun, helper; /* helper: begun by pthread_create */
    bool timed;
    const volatile void *word; /* it sleeps on this */
    struct view view;
    uint64_t history; /* hash of all that it has read */
    uint64_t looks;   /* at the clock */
    uint64_t read;    /* locations read since it last paused, a bit each */
    uint64_t newer;   /* of these, those of which it must read a later message */
    uint8_t last[LOCATIONS];
    const void *left_out; /* a lock that it did not take */
    void (*run)(void);
    void *(*start)(void *);
    void *argument;
    jmp_buf jump;
    ucontext_t context;
    uint8_t *stack;
    uint8_t *tls;
};

struct choice {
    uint16_t n, taken;
};

struct shadow; /* race.c */

/* For the cycle condition: relations of the events, a row of bits for each event. */
struct work {
    const struct event *later[EVENTS], *earlier[EVENTS];
    uint64_t scb[EVENTS][EVENTS / 64], eco[EVENTS][EVENTS / 64], psc[EVENTS][EVENTS / 64];
    uint64_t before[EVENTS][EVENTS / 64]; /* of a fence: what happens before it */
};

struct order {
    const struct order_test *test;
    /* of the execution */
    bool alone; /* set-up and check: no choices */
    unsigned current, n_threads, n_locations, n_events, preemptions, depth;
    struct location location[LOCATIONS];
    struct event event[EVENTS];
    struct thread thread[THREADS];
    bool fenced;
    jmp_buf home;
    /* of the exploration */
    struct choice choice[DEPTH];
    unsigned bound;  /* of switches away from a thread that could go on; 0: none */
    unsigned replay; /* choices that are given */
    uint64_t executions, pruned, states, most;
    bool capped;
    uint64_t *seen; /* hashes of states */
    uint64_t seen_mask, n_seen, exploration;
    char fault[512];
    /* of the run */
    int group, to, failure_to; /* the weakened group and its order; -1: none */
    unsigned n_groups;
    const struct order_site *of[GROUPS];
    bool executed[GROUPS];
    bool deep;                        /* without the bounds of the cases */
    uint8_t *image, *tls, *tls_image; /* variables before the first execution */
    size_t image_bytes, tls_bytes;
    uint8_t *out_from;
    size_t out_bytes;
    struct work work;
    struct shadow *shadow;
    uint32_t shadow_epoch;
};

extern struct order *order_now;

/* model.c */
void model_begin(void);
void model_fence(void);
unsigned model_choices(const struct location *l, uint8_t from, uint8_t *out);
struct location *model_location(const volatile void *at, size_t bytes);
bool model_consistent(void);
uint64_t model_state(void);
uint64_t model_mix(uint64_t hash, uint64_t value);
uint64_t model_wait(const volatile void *at); /* what a thread that is about to sleep reads */
void model_woken(const volatile void *at);
void model_see(struct view *view, unsigned location); /* the latest message */
void model_acquire(struct view *view, const struct view *other);
/* explore.c */
unsigned explore_choose(unsigned n);
void explore_point(void); /* another thread may go on here */
void explore_fault(const char *text);
void explore_prune(void); /* what happened cannot happen: not a fault */
/* race.c */
void race_begin(void);
void race_atomic(const volatile void *at, bool writes);

#endif
