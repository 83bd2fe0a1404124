/*
 * The driver API as data: one row per exported symbol, made from cuda_api.def.
 *
 * Pure tables, frozen at build time; any thread.
 */
#ifndef CUSPLICE_API_API_H
#define CUSPLICE_API_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row's number is its position in the table: CUS_ROW_cuLaunchKernel and so on. */
enum cus_row {
#define CUS_API(symbol, class, scope, arg, abi, act, reason) CUS_ROW_##symbol,
#include "shim/api/cuda_api.def"
    CUS_API_ROWS
};

/* What a call is to deferred work; the words are explained at the head of cuda_api.def. */
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
    CUS_CLASS_BARRIER
};

/*
 * How the hook treats a call. The first group only acts before the real function and then jumps to
 * it, whatever its prototype; the second calls it, because something follows, and therefore holds
 * only functions of at most six integer or pointer arguments; WRAP rows have a function of their
 * own.
 */
enum cus_act {
    CUS_ACT_PASS, /* neither exported nor substituted */

    CUS_ACT_FLUSH,   /* flush */
    CUS_ACT_MEMORY,  /* flush; ranges are forgotten */
    CUS_ACT_CODE,    /* flush; functions are forgotten */
    CUS_ACT_CONTEXT, /* flush; everything is forgotten */
    CUS_ACT_GONE,    /* flush; this stream is forgotten */
    CUS_ACT_TAINT,   /* flush; the function's launches are never deferred (NO_ARG: those of no
                        function) */
    CUS_ACT_TOUCH,   /* flush where this thread of control sees the function in this context for the
                        first time */
    CUS_ACT_COUNT,   /* flush; counts a graph launch of the program's own */
    CUS_ACT_DUMPS,   /* flush; where the flags of a context, or an attribute, switch core dumps on,
                        nothing is deferred any more */
    CUS_ACT_GRAPHICS, /* flush; nothing is deferred any more */

    CUS_ACT_FIRST_CALL,
    CUS_ACT_SYNC = CUS_ACT_FIRST_CALL, /* flush; afterwards the step ends, a late error is told */
    CUS_ACT_QUERY,                     /* the same, and a flush /T where the stream is not ready */
    CUS_ACT_POLL,                      /* nothing before; a flush where the event is not ready */
    CUS_ACT_ALLOC, /* flush; where memory ran out, graphs are dropped and it is tried once more */
    CUS_ACT_EPOCH, /* flush; afterwards graphs that were built under the old setting are dropped */
    CUS_ACT_SET_FUNCTION, /* the same for one function, and only if the value is new */
    CUS_ACT_SET_STREAM,   /* the same for one stream */
    CUS_ACT_COPY_STREAM,  /* the same, always */
    CUS_ACT_LOAD, /* flush; look whether a library with a private route to the GPU was mapped
                     meanwhile; afterwards *first argument is known to be from a file */
    CUS_ACT_NOTE_FUNCTION,   /* flush; afterwards *first argument is known to be a CUfunction */
    CUS_ACT_NOTE_KERNEL,     /* flush; afterwards *first argument is known to be a CUkernel */
    CUS_ACT_KERNEL_FUNCTION, /* as TOUCH; afterwards *first argument is known to be a CUfunction */
    CUS_ACT_NOTE_MODULE, /* flush; afterwards *first argument is known to be made from the second */
    CUS_ACT_LIST_FUNCTIONS, /* flush; afterwards the array's entries are known to be CUfunctions */
    CUS_ACT_LIST_KERNELS,   /* flush; afterwards the array's entries are known to be CUkernels */
    CUS_ACT_RETAIN,         /* flush where the primary context is not active yet */
    CUS_ACT_RELEASE,        /* as CONTEXT, unless somebody else holds the primary context */
    CUS_ACT_BEGIN,          /* flush; afterwards a capture may be open */
    CUS_ACT_END,            /* afterwards a capture may be over */

    CUS_ACT_WRAP
};

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

/* The symbol of a row; NULL for a number that is none. For the stats file. */
const char *cus_api_name(unsigned row);
/* The row of an exported symbol's exact name; -1: not in the table. */
int cus_api_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
