/*
 * What the files of shim/keep share.
 */
#ifndef CUSPLICE_KEEP_INNER_H
#define CUSPLICE_KEEP_INNER_H

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL first"
#endif

#include <cuda.h>
#include <stddef.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/keep/keep.h"
#include "shim/trace/record.h"

/* The real functions. */
struct cus_keep_real {
#define CUS_CAPTURED(symbol, parameters, arguments) CUresult(*symbol) parameters;
#include "shim/keep/kept.def"
#define CUS_KEEP_NEEDED(X)                                                                         \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxGetDevice)                                                                              \
    X(cuCtxPushCurrent_v2)                                                                         \
    X(cuCtxPopCurrent_v2)                                                                          \
    X(cuPointerGetAttribute)                                                                       \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemSetAccess)                                                                              \
    X(cuMemGetAllocationGranularity)                                                               \
    X(cuMemsetD8Async)                                                                             \
    X(cuStreamCreate)                                                                              \
    X(cuStreamGetFlags)                                                                            \
    X(cuStreamGetPriority)                                                                         \
    X(cuKernelGetLibrary)                                                                          \
    X(cuKernelGetName)                                                                             \
    X(cuKernelGetParamInfo)                                                                        \
    X(cuKernelGetAttribute)                                                                        \
    X(cuFuncGetModule)                                                                             \
    X(cuFuncGetName)                                                                               \
    X(cuFuncGetParamInfo)                                                                          \
    X(cuFuncGetAttribute)
#define CUS_KEEP_DECLARE(name) __typeof__(&name) name;
    CUS_KEEP_NEEDED(CUS_KEEP_DECLARE)
#undef CUS_KEEP_DECLARE
};
extern struct cus_keep_real cus_keep_real;

/* Guards everything below, unless a comment says otherwise. */
extern struct cus_lock cus_keep_lock;

/* True from the recording's first step to the end of its last: records are wanted. */
extern uint32_t cus_keep_recording; /* atomic */

/* The program works in one context: the first in which it allocates or launches. False: another
 * context is current, which a replay cannot have (the trace says so). Takes the lock. */
bool cus_keep_context(void);
CUcontext cus_keep_of(void); /* NULL: none yet */

/* The trace cannot be replayed: `call` did, or is, what `why` says. Each pair is recorded once.
 * The caller need hold no lock. */
void cus_keep_cannot(const char *call, const char *why);

/* ---- memory.c ---- */

/* What a replay can know of an address. */
enum cus_keep_place_of { CUS_KEEP_HOST, CUS_KEEP_DEVICE, CUS_KEEP_ELSEWHERE };
enum cus_keep_place_of cus_keep_where(uint64_t address);
/* Writes all device memory into the trace: its contents, or its checksums. */
void cus_keep_memory_save(void);
void cus_keep_memory_check(void);
/* Called when a variable of a module is at this address. */
void cus_keep_span(enum cst_span_what what, uint64_t address, uint64_t bytes, uint32_t module,
                   const char *name);

/* ---- code.c ---- */

/* `id` is of a CST_CODE; 0: it could not be made. `arguments` has `n` entries in the order of
 * the kernel's parameters, valid until the process ends. */
struct cus_keep_code {
    uint32_t id, n, param_bytes;
    const struct cst_argument *arguments;
};
bool cus_keep_code_of(const void *handle, struct cus_keep_code *code);

/* ---- work.c ---- */

/* Measures what one look at the clock takes. Called before the first call is kept. */
void cus_keep_clock(void);

/* Called when the host has seen all work complete. */
void cus_keep_waited_all(void);

#endif
