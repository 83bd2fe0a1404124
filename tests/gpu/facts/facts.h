/*
 * The program that asks the driver for facts which rules of the library rest on. Each trial runs in
 * a child of its own and makes one line. It measures, and asserts nothing.
 *
 * main.c is the parent, lab.c and cost.c what a child works with; record.c, record_cost.c, fork.c,
 * pool.c, free.c, rows.c, witness.c, shape.c and host.c have the trials. The parent never calls the
 * driver.
 */
#ifndef CUSPLICE_TESTS_GPU_FACTS_H
#define CUSPLICE_TESTS_GPU_FACTS_H

#include "tests/gpu/gate/driver.h"

/* ---- shared memory of the parent and one child ---- */

enum { FACT_GATES = 64, FACT_WORD_STEP = 16 /* words, so that each has its cache line */ };

struct fact_shared {
    /* Registered with the driver: a gate is open once its word is not 0; then the words by which
     * the kernels of the gates say that they have begun. */
    _Alignas(4096) volatile unsigned words[2 * FACT_GATES * FACT_WORD_STEP];
    /* Not registered. */
    _Alignas(4096) volatile unsigned beat; /* changes with each call of the driver */
    volatile unsigned gates;               /* that the child has made */
    volatile unsigned openings;            /* how often the parent opened closed gates */
    volatile unsigned ready;               /* the trial has begun */
    char step[96];                         /* what the child does now */
    char value[700], detail[700];
};
extern struct fact_shared *fact_shared;

/* ---- trials ---- */

struct fact_trial {
    const char *name;
    void (*run)(int arg);
    int arg;
    int limit_ms; /* 0: FACT_LIMIT_MS */
};
/* Each ends with a row without a name. */
extern const struct fact_trial fact_record[], fact_record_cost[], fact_fork[], fact_pool[],
    fact_free[], fact_rows[], fact_witness[], fact_shape[], fact_host[];

/* Runs one trial in this process and never returns. The exit status FACT_NO_DRIVER means that the
 * driver is missing or has no GPU; stderr says which. */
enum { FACT_NO_DRIVER = 5 };
void fact_child(const struct fact_trial *trial) __attribute__((noreturn));

/* Sets what the line says; a second call replaces the first. */
void fact_say(const char *value, ...) __attribute__((format(printf, 1, 2)));
void fact_detail(const char *detail, ...) __attribute__((format(printf, 1, 2)));
void fact_step(const char *what);
/* The trial cannot go on: the line says so, unless it has a value. */
void fact_give_up(const char *what, CUresult code) __attribute__((noreturn));

/* A step of preparing: the trial ends if it fails. */
#define CALL(symbol, arguments)                                                                    \
    do {                                                                                           \
        fact_step(#symbol);                                                                        \
        CUresult call_ = cu.symbol arguments;                                                      \
        if (call_ != CUDA_SUCCESS)                                                                 \
            fact_give_up(#symbol, call_);                                                          \
    } while (0)

/* A call that is watched. */
struct fact_call {
    CUresult code;
    double us;
    bool waited; /* the parent had to open the gates before it came back */
};
void fact_call_begin(const char *symbol);
struct fact_call fact_call_end(CUresult code);
#define WATCH(result, symbol, arguments)                                                           \
    do {                                                                                           \
        fact_call_begin(#symbol);                                                                  \
        (result) = fact_call_end(cu.symbol arguments);                                             \
    } while (0)
/* "returns", "waits for a gate", "gives 1 CUDA_ERROR_INVALID_VALUE"; one of eight buffers. */
const char *fact_call_text(struct fact_call call);
/* The name of a code; one of eight buffers. */
const char *fact_code(CUresult code);

/* ---- what a child works with ---- */

struct fact_lab {
    CUdevice device;
    CUcontext context;
    CUfunction touch, set_flag, spin;
    CUstream a, b, c;   /* non-blocking */
    CUdeviceptr memory; /* FACT_BYTES of zeros; kernels add to the first word */
    CUdeviceptr zero;   /* a word that stays 0 */
    CUdeviceptr words;  /* fact_shared->words for the device, or their mirror */
};
enum { FACT_BYTES = 1 << 20 };
extern struct fact_lab lab;

double fact_now_us(void);
double fact_median(double *values, int n); /* sorts them */
void fact_nap(int ms);

/* A new gate, which no kernel waits for yet; its word for the device. */
int fact_gate(void);
CUdeviceptr fact_gate_word(int gate);
/* A kernel that spins on a new gate begins on the stream. */
int fact_gate_close(CUstream stream);
void fact_gate_open(int gate);

void fact_touch(CUstream stream, CUdeviceptr target);
/* A kernel that opens the gate, and one that spins on it: in a capture, or where it is sure that
 * something opens the gate. */
void fact_flag(CUstream stream, int gate);
void fact_spin(CUstream stream, int gate);
/* A kernel that takes some time: it looks at a word that stays 0. */
void fact_slow(CUstream stream, unsigned long long rounds);
/* Whether the stream is empty, or the event complete, within that time; another error ends the
 * trial. */
bool fact_done(CUstream stream, int ms);
CUresult fact_query(CUevent event);
CUevent fact_event(unsigned flags);
/* One that is complete: recorded on stream c. */
CUevent fact_event_done(unsigned flags);
CUdeviceptr fact_memory(size_t bytes);

/* A graph whose nodes follow each other. */
struct fact_chain {
    CUgraph graph;
    CUgraphNode last;
};
struct fact_chain fact_chain(void);
CUgraphNode fact_chain_kernel(struct fact_chain *chain, CUfunction function, void **parameters);
CUgraphNode fact_chain_touch(struct fact_chain *chain);
CUgraphNode fact_chain_spin(struct fact_chain *chain, int gate);
CUgraphNode fact_chain_slow(struct fact_chain *chain, unsigned long long rounds);
CUgraphNode fact_chain_record(struct fact_chain *chain, CUevent event);
/* A node that spins on a gate spins on another one in later launches. */
void fact_spin_patch(CUgraphExec exec, CUgraphNode node, int gate);
CUgraphExec fact_chain_exec(struct fact_chain *chain);
CUgraphExec fact_touches(int nodes);

/* ---- what forms of the same work cost (cost.c) ---- */

struct fact_form {
    const char *name;
    void (*run)(const void *work); /* on lab.a */
    const void *work;
    double host, gpu; /* set by fact_forms: median us of one run */
};
/* Measures up to eight forms, in turn, and says what each takes. */
void fact_forms(struct fact_form *forms, int count);

#endif
