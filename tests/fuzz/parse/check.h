// Ends the process if a condition fails, so that a fuzzer keeps the input.
#ifndef TESTS_FUZZ_PARSE_CHECK_H
#define TESTS_FUZZ_PARSE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
