/*
 * A generated program as plain data, which the controller makes, shrinks, saves and sends to a
 * server. `struct op` of machine.c explains the numbers.
 */
#ifndef TESTS_FUZZ_PROGRAM_H
#define TESTS_FUZZ_PROGRAM_H

#include <stdint.h>

#include "tests/sched/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fuzz_verb {
#define VERB(name, mostly, mixed, flags) FUZZ_##name,
#include "tests/fuzz/verbs.def"
    FUZZ_VERBS
};

enum { FUZZ_LANES = 6, FUZZ_THREADS = 4, FUZZ_OPS_MAX = 96, FUZZ_KINDS = 6 };

struct fuzz_op {
    uint8_t verb, lane, other, buffer, every, phase, repeat, vary;
    uint32_t value;
    int16_t size, grow;
};

struct fuzz_program {
    uint32_t n_ops, steps, lanes, threads;
    uint8_t kind[FUZZ_LANES];   /* enum lane_kind */
    uint8_t thread[FUZZ_LANES]; /* whose lane it is */
    struct fuzz_op op[FUZZ_OPS_MAX];
};

/* To a server: run this. */
struct fuzz_request {
    uint32_t delay_us;
    uint32_t number;        /* given back */
    uint64_t seed;          /* of the delays */
    struct sched_plan plan; /* of the threads' turns, where libsched.so is there */
    char fault[128];        /* for cuSimSetFault; "": none */
    struct fuzz_program program;
};

struct fuzz_code {
    uint16_t op, step; /* op 0xFFFF: before or behind the program's own */
    int32_t code;
};

/* From a server; behind it the codes of each thread, then the log, stream by stream. */
struct fuzz_reply {
    uint32_t number;
    uint32_t lanes;
    uint64_t digest[FUZZ_LANES];
    uint32_t n_codes[FUZZ_THREADS];
    uint64_t log_bytes;
    struct sched_ran ran; /* zeros without libsched.so */
};

#ifdef __cplusplus
}
#endif

#endif
