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

/* Of everything below, unless it says otherwise. */
extern struct cus_lock cus_keep_lock;

/* Records are wanted now: the recording's first step has begun and its last has not ended. */
extern uint32_t cus_keep_recording; /* atomic */

/* The context that the program works in: the first that it allocates or launches in. False: this is
 * another one, which a replay cannot have (said in the trace). Takes the lock. */
bool cus_keep_context(void);
CUcontext cus_keep_of(void); /* NULL: none yet */

/* The trace cannot be replayed: `call` did, or is, what `why` says. Each pair is told once. No lock
 * of ours needed. */
void cus_keep_cannot(const char *call, const char *why);

/* ---- memory.c ---- */

/* What a replay can know of an address. */
enum cus_keep_place_of { CUS_KEEP_HOST, CUS_KEEP_DEVICE, CUS_KEEP_ELSEWHERE };
enum cus_keep_place_of cus_keep_where(uint64_t address);
/* All device memory into the trace: its contents, or its checksums. */
void cus_keep_memory_save(void);
void cus_keep_memory_check(void);
/* A variable of a module is at this address. */
void cus_keep_span(enum cst_span_what what, uint64_t address, uint64_t bytes, uint32_t module,
                   const char *name);

/* ---- code.c ---- */

/* The id of a CST_CODE; 0: it could not be made. *arguments: of `n`, in the order of the kernel's
 * parameters, valid while the process lives. */
struct cus_keep_code {
    uint32_t id, n, param_bytes;
    const struct cst_argument *arguments;
};
bool cus_keep_code_of(const void *handle, struct cus_keep_code *code);

/* ---- work.c ---- */

/* Before the first call is kept: what a look at the clock takes. */
void cus_keep_clock(void);

/* The host has seen that work complete: all (0), or what is behind this event's record, or of a
 * stream. */
void cus_keep_waited_all(void);

#endif
