/*
 * What a library exports, read from its own tables: the loader is not asked, so that nothing that
 * was put before the library (LD_PRELOAD, a dlsym of its own) has a say in it.
 */
#ifndef HARNESS_BENCH_EXPORTED_H
#define HARNESS_BENCH_EXPORTED_H

/* The function `symbol` of a library that is loaded, NULL where it exports none (or one that is
 * chosen when it is bound, STT_GNU_IFUNC). `library`: what dlopen gave. */
void *exported(void *library, const char *symbol);

#endif
