/*
 * The programs of seam_test.cc: small, plain C, each started as a child with the library preloaded.
 * A probe that finds a mistake prints it on stderr and exits 1. The test reads what the hooks did
 * from the log.
 */
#ifndef CUSPLICE_TESTS_SEAM_PROBE_H
#define CUSPLICE_TESTS_SEAM_PROBE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t word;
typedef unsigned call_fn(); /* called with what each function takes */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Calls a function of the driver by its name, which no macro of cuda.h replaces. ANSWERS: the
 * program gets the driver's answer. */
#define CALL(name, ...) ((call_fn *)find(#name))(__VA_ARGS__)
#define ANSWERS(code, name, ...) CHECK(((call_fn *)find(#name))(__VA_ARGS__) == (code))

struct probe {
    const char *name;
    void (*run)(void);
};
extern const struct probe probes_of_calls[]; /* the last one has no name */

/* Opens libcuda; and starts it. */
void open_cuda(void);
void start(void);
/* The address of a function of libcuda, which must be there. */
void *find(const char *name);
/* From now on the function of the driver answers this. */
void fake_result(const char *name, unsigned code);

#endif
