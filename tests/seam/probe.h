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

struct probe {
    const char *name;
    void (*run)(void);
};

#endif
