/*
 * What a call of the driver or the runtime means for deferred ops, by its name in a profile.
 * import.c asks. The answers are the rows of shim/api/cuda_api.def and runtime_api.def.
 */
#ifndef CUSPLICE_TOOLS_TRACE_CALL_CLASS_H
#define CUSPLICE_TOOLS_TRACE_CALL_CLASS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum call_kind { /* as in cuda_api.def */
                 CALL_PASS,
                 CALL_OP,
                 CALL_STREAM,
                 CALL_SYNC,
                 CALL_LIFE,
                 CALL_CAPTURE,
                 CALL_RESOLVE,
                 CALL_TOUCH,
                 CALL_SAME,
                 CALL_GETTER,
                 CALL_SHOWS,
                 CALL_EVENT,
                 CALL_BARRIER,
};

struct call_class {
    enum call_kind kind;
    int scope;          /* enum cst_scope */
    const char *act;    /* as in cuda_api.def */
    const char *driver; /* the row's symbol; NULL: of no row */
    bool ptsz;          /* stream 0 is the thread's own */
    bool known;         /* false: in no table, so that it is taken as a barrier */
};

struct call_class call_class_of(const char *name);

#ifdef __cplusplus
}
#endif

#endif
