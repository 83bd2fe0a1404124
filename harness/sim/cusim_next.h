/*
 * A driver that nobody has seen: what the library of version 14000 has more. Newer forms of known
 * functions take all arguments in one struct, as nobody expects.
 */
#ifndef CUSIM_NEXT_H
#define CUSIM_NEXT_H

#include <cuda.h>

struct cusim_next_question {
    void **function;
    const char *symbol;
    int version;
    cuuint64_t flags;
};

struct cusim_next_launch {
    void **params;
    CUstream stream;
    CUfunction function;
    unsigned grid, block;
};

typedef CUresult (*cusim_next_look)(struct cusim_next_question *);
typedef CUresult (*cusim_next_launch_fn)(const struct cusim_next_launch *);

#endif
