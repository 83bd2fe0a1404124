/*
 * Reads a library's exported functions from its own tables. The dynamic loader is not asked, so a
 * library that stands before it (LD_PRELOAD, its own dlsym) cannot change the answer.
 */
#ifndef HARNESS_BENCH_EXPORTED_H
#define HARNESS_BENCH_EXPORTED_H

/* Returns the function `symbol` of a loaded library (`library`: the result of dlopen). NULL if
 * the library does not export it, or chooses it when it is bound (STT_GNU_IFUNC). */
void *exported(void *library, const char *symbol);

#endif
