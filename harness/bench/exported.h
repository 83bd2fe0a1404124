/*
 * Reads a library's exported functions from its own tables. The dynamic loader is not asked, so a
 * library that stands before it (LD_PRELOAD, its own dlsym) cannot change the answer.
 */
#ifndef HARNESS_BENCH_EXPORTED_H
#define HARNESS_BENCH_EXPORTED_H

/* The function `symbol` of a library that is loaded, NULL where it exports none (or one that is
 * chosen when it is bound, STT_GNU_IFUNC). `library`: what dlopen gave. */
void *exported(void *library, const char *symbol);

#endif
