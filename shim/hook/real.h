/*
 * The real libcuda: which object it is, where its functions are, and which function an address is.
 */
#ifndef CUSPLICE_HOOK_REAL_H
#define CUSPLICE_HOOK_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/hook/entry.h"
#include "shim/hook/others.h"

/*
 * The real function of each row, followed by those of the spare stubs. The real function is what
 * the program would find without this library: the driver's, or an interposer's behind this
 * library. An entry is NULL until libcuda is found. After that, each row that the driver lacks
 * holds a function that answers CUDA_ERROR_NOT_FOUND. The first caller writes the table; another
 * thread would write the same values. The assembly reads it.
 */
extern void *cus_real_functions[CUS_API_ROWS + CUS_ENTRY_SPARE];

/* The real function with its type from cuda.h. Only after cus_real_find returned true. */
#define CUS_REAL(name)                                                                             \
    ((__typeof__(&name))__atomic_load_n(&cus_real_functions[CUS_ROW_##name], __ATOMIC_RELAXED))

/* True: libcuda is loaded. The first true answer fills the table. Never loads libcuda, and takes
 * none of the library's locks. May clear dlerror. */
bool cus_real_find(void);
/* True: an earlier call of cus_real_find found libcuda. Does not search. */
bool cus_real_found(void);
/* True: this driver has the row's function. Only after cus_real_find. */
bool cus_real_has(unsigned row);
/* The row whose real function this is; -1: none. If several rows share the function, the row
 * that `name` fits is chosen. */
int cus_real_row(const void *function, const char *name);
/* True: the address lies in the real libcuda. */
bool cus_real_holds(const void *address);
/* The loader's handle of libcuda; NULL before libcuda is found. */
void *cus_real_handle(void);
/* The driver's own function, even if an interposer stands before it; NULL: the driver has none. */
void *cus_real_own(unsigned row);

/* True: an interposer behind this library stands before the row. */
bool cus_real_is_chained(unsigned row);
/* True: the interposer only exports the name. A look-up of the row in libcuda does not find that
 * interposer. */
bool cus_real_is_chained_by_export(unsigned row);

/* The other interposers; NULL before libcuda is found. */
const struct cus_others *cus_real_others(void);
/* True: this thread is asking an interposer behind this library for the driver's functions. What
 * the interposer looks up meanwhile is for the interposer itself. */
bool cus_real_asking(void);
/* True: the row launches an op or a graph of the program. */
bool cus_real_is_launch(unsigned row);
/* The file of an interposer behind this library that stands before a row which launches work;
 * `row` receives that row. NULL: there is none. */
const char *cus_real_before_launches(int *row);

/* The answer to a call that has no real function: CUDA_ERROR_NOT_INITIALIZED without libcuda. */
unsigned cus_real_absent(void);

#endif
