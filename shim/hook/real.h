/*
 * The real libcuda: which object it is, where its functions are, which function an address is.
 */
#ifndef CUSPLICE_HOOK_REAL_H
#define CUSPLICE_HOOK_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/hook/entry.h"

/*
 * The real function of each row, behind them of each spare stub. NULL until libcuda is found;
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

/* What a call is answered where there is no real function: CUDA_ERROR_NOT_INITIALIZED without
 * libcuda. */
unsigned cus_real_absent(void);

#endif
