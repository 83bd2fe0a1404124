/*
 * The driver API as data: one row per exported symbol, made from cuda_api.def.
 *
 * Tables only, fixed at build time; any thread.
 */
#ifndef CUSPLICE_API_API_H
#define CUSPLICE_API_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row's number is its position in the table, for example CUS_ROW_cuLaunchKernel. */
enum cus_row {
#define CUS_API(symbol, class, scope, arg, abi, act, reason) CUS_ROW_##symbol,
#include "shim/api/cuda_api.def"
    CUS_API_ROWS
};

/* What a call means to deferred ops. The head of cuda_api.def explains the words. */
enum cus_class {
    CUS_CLASS_PASS,
    CUS_CLASS_OP,
    CUS_CLASS_STREAM,
    CUS_CLASS_SYNC,
    CUS_CLASS_LIFE,
    CUS_CLASS_CAPTURE,
    CUS_CLASS_RESOLVE,
    CUS_CLASS_TOUCH,
    CUS_CLASS_SAME,
    CUS_CLASS_GETTER,
    CUS_CLASS_SHOWS,
    CUS_CLASS_EVENT,
    CUS_CLASS_BARRIER
};

/*
 * How the hook treats a call.
 *
 * The first group acts before the real function and then jumps to it, whatever its prototype. The
 * second group calls the real function, because something follows; it holds only functions of at
 * most six integer or pointer arguments. A WRAP row has a hook of its own, written in C.
 */
enum cus_act {
    CUS_ACT_PASS, /* neither exported nor substituted */

    CUS_ACT_FLUSH,     /* flush */
    CUS_ACT_MEMORY,    /* flush; memory ranges are forgotten */
    CUS_ACT_CODE,      /* flush; functions are forgotten */
    CUS_ACT_GONE,      /* flush; this stream is forgotten */
    CUS_ACT_TAINT,     /* flush; the function's launches are never deferred again (NO_ARG:
                        * those of all functions) */
    CUS_ACT_TOUCH,     /* flush at the first call for this function in this context */
    CUS_ACT_GETTER,    /* flush if a thread is in a copy that may sleep, or if nobody has measured
                        * the driver */
    CUS_ACT_SHOWS,     /* flush if a free is deferred */
    CUS_ACT_EVENT_OWN, /* flush; the event's deferred record is issued; no record of the event is
                        * deferred any more */
    CUS_ACT_COUNT,     /* flush; counts a graph launch that the program makes */
    CUS_ACT_DUMPS,     /* flush; if the flags of a context or an attribute switch core dumps on,
                        * nothing is deferred any more */
    CUS_ACT_GRAPHICS,  /* flush; nothing is deferred any more */

    CUS_ACT_FIRST_CALL,
    CUS_ACT_SYNC = CUS_ACT_FIRST_CALL, /* flush; afterwards the step ends, and a late error is
                                        * returned */
    CUS_ACT_QUERY,                     /* the same; also a flush of scope T if the stream is not
                                        * ready */
    CUS_ACT_POLL, /* the event's deferred record is issued; a flush if the event is not ready */
    CUS_ACT_EVENT_MADE, /* afterwards *first argument is a known event */
    CUS_ACT_POOL_MADE,  /* flush; afterwards *first argument is a known pool */
    CUS_ACT_EVENT_GOES, /* flush; the event's deferred record is issued; the call is put off while a
                         * node of a graph holds the event */
    CUS_ACT_WAIT,       /* may be deferred; else the event's deferred record is issued; flush */
    CUS_ACT_RECORD,     /* may be deferred; else the event's deferred record is issued; flush */
    CUS_ACT_RECORD_FLAGS, /* the same, with flags as third argument */
    CUS_ACT_ALLOC,       /* flush; if memory ran out, graphs are destroyed and the call is made once
                          * more */
    CUS_ACT_ALLOC_ASYNC, /* as ALLOC, but flushes only if the allocation may not come before what is
                          * deferred */
    CUS_ACT_FREE_ASYNC,  /* may be deferred; else flush, unless nothing is deferred on its stream */
    CUS_ACT_EPOCH,       /* flush; afterwards graphs that were built under the old setting are
                          * destroyed */
    CUS_ACT_SET_FUNCTION, /* the same for one function, and only if the value is new */
    CUS_ACT_SET_STREAM,   /* the same for one stream */
    CUS_ACT_COPY_STREAM,  /* the same for one stream, even if the value is not new */
    CUS_ACT_LOAD, /* flush; checks whether a library with a private route to the GPU was mapped;
                   * afterwards the origin of *first argument is known */
    CUS_ACT_NOTE_FUNCTION,   /* flush; afterwards *first argument is known as a CUfunction */
    CUS_ACT_NOTE_KERNEL,     /* flush; afterwards *first argument is known as a CUkernel */
    CUS_ACT_KERNEL_FUNCTION, /* as TOUCH; afterwards *first argument is known as a CUfunction */
    CUS_ACT_NOTE_MODULE,     /* flush; *first argument is then known to come from the second */
    CUS_ACT_LIST_FUNCTIONS,  /* flush; afterwards the array's entries are known as CUfunctions */
    CUS_ACT_LIST_KERNELS,    /* flush; afterwards the array's entries are known as CUkernels */
    CUS_ACT_RETAIN,          /* flush if the primary context is not active yet */
    CUS_ACT_CONTEXT,         /* flush; everything is forgotten */
    CUS_ACT_RELEASE,         /* as CONTEXT, unless somebody else holds the primary context */
    CUS_ACT_BEGIN,           /* flush; afterwards a capture may be open */
    CUS_ACT_END,             /* afterwards a capture may be over */

    CUS_ACT_WRAP
};

/* What cuDriverGetVersion says of the drivers of tests/gpu/gate-*.csv: release 580. */
enum { CUS_GATE_VERSION = 13000 };
/* The newest toolkit whose driver functions are all rows of the table. */
enum { CUS_TABLE_VERSION = 13050 };
/* The first driver that tells the layout of a kernel's parameters (cuFuncGetParamInfo), without
 * which no launch is deferred. */
enum { CUS_GRAPHS_VERSION = 12040 };

enum { CUS_ARG_NONE = -1, CUS_ARG_NULL_STREAM = -2 };

struct cus_api_row {
    const char *name;
    const char *reason;
    const char *scope_name; /* the letters of the table: "S", "CT" */
    const char *abi_name;   /* "LEGACY" or "PTSZ" */
    uint8_t kind;           /* enum cus_class */
    uint8_t scope;          /* enum cus_scope (scope.h) */
    uint8_t abi;            /* enum cus_abi (scope.h) */
    uint8_t act;            /* enum cus_act */
    int8_t arg;             /* index of an argument, or one of CUS_ARG_* */
};

extern const struct cus_api_row cus_api_rows[CUS_API_ROWS];

/* The symbol of a row; NULL if no row has this number. For the stats file. */
const char *cus_api_name(unsigned row);
/* The row of an exported symbol, by its exact name; -1: none. */
int cus_api_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
