/*
 * The real libcuda: which object it is, where its functions are, which function an address is.
 */
#ifndef CUSPLICE_HOOK_REAL_H
#define CUSPLICE_HOOK_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/hook/entry.h"
#include "shim/hook/others.h"

/*
 * The real function of each row, behind them of each spare stub. The real function is what the
 * program would have found without this library: the driver's, or that of an interposer behind
 * this library. NULL until libcuda is found;
 * afterwards rows that this driver lacks hold a function that answers CUDA_ERROR_NOT_FOUND. Written
 * once with the same values by whoever comes first; the assembly reads it.
 */
extern void *cus_real_functions[CUS_API_ROWS + CUS_ENTRY_SPARE];

/* With the type that cuda.h gives the symbol. The caller has had a true answer of cus_real_find. */
#define CUS_REAL(name)                                                                             \
    ((__typeof__(&name))__atomic_load_n(&cus_real_functions[CUS_ROW_##name], __ATOMIC_RELAXED))

/* Is libcuda loaded? The first true answer fills the table. Never loads it, takes no lock of ours,
 * clears dlerror at most. */
bool cus_real_find(void);
/* The same without looking: has it been found? */
bool cus_real_found(void);
/* Does this driver have the row's function? Only after cus_real_find. */
bool cus_real_has(unsigned row);
/* The row whose real function this is; `name`, where it fits, decides between rows that share one
 * function. -1: none. */
int cus_real_row(const void *function, const char *name);
/* Does the address lie in the real libcuda? */
bool cus_real_holds(const void *address);
/* The loader's handle of libcuda; NULL before it is found. */
void *cus_real_handle(void);
/* The driver's own function, whoever stands before it; NULL: this driver has none. */
void *cus_real_own(unsigned row);

/* Does an interposer behind this library stand before the row? */
bool cus_real_is_chained(unsigned row);
/* Does it by exporting the name alone? Whoever looks the row up in libcuda goes past that one. */
bool cus_real_is_chained_by_export(unsigned row);

/* Other interposers; NULL before libcuda is found. */
const struct cus_others *cus_real_others(void);
/* Is this thread asking an interposer behind this library for the driver's functions? What that one
 * asks meanwhile is for itself. */
bool cus_real_asking(void);
/* Does the row launch work: an op, or a graph of the program? */
bool cus_real_is_launch(unsigned row);
/* The file of an interposer behind this library that stands before a row which launches work, and
 * that row; NULL: none does. */
const char *cus_real_before_launches(int *row);

/* What a call is answered where there is no real function: CUDA_ERROR_NOT_INITIALIZED without
 * libcuda. */
unsigned cus_real_absent(void);

#endif
