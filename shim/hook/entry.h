/*
 * What C and the assembly of the entry points agree on. Included by both; entry_x86_64.S is the
 * only place that knows registers.
 */
#ifndef CUSPLICE_HOOK_ENTRY_H
#define CUSPLICE_HOOK_ENTRY_H

/* The states of guard.h that let a call go straight to the real function are those below this one.
 */
#define CUS_ENTRY_STATE_ON 3
/* Where cus_process has the state, */
#define CUS_ENTRY_HOOKS_AT 36
/* and cus_thread_self the depth, and the stream that is aimed at by calls of an enum cus_abi. */
#define CUS_ENTRY_DEPTH_AT 60
#define CUS_ENTRY_CACHED_STREAM_AT(abi) (8 * (abi))

/* Stubs for functions that the table does not know, 16 bytes each. */
#define CUS_ENTRY_SPARE 512

/* The exported functions of the profiler's library, numbered in this order. */
#define CUS_CUPTI_FUNCTIONS(X)                                                                     \
    X(cuptiActivityEnable)                                                                         \
    X(cuptiActivityEnableContext)                                                                  \
    X(cuptiActivityDisable)                                                                        \
    X(cuptiActivityDisableContext)                                                                 \
    X(cuptiEnableCallback)                                                                         \
    X(cuptiEnableDomain)                                                                           \
    X(cuptiEnableAllDomains)                                                                       \
    X(cuptiFinalize)                                                                               \
    X(cuptiSubscribe)                                                                              \
    X(cuptiSubscribe_v2)                                                                           \
    X(cuptiUnsubscribe)

#ifndef __ASSEMBLER__

#include <stdint.h>

#include "shim/api/api.h"

/* An entry is a row of the table, or a spare stub, or a function of the profiler's library. */
enum {
    CUS_ENTRY_SPARE_FIRST = CUS_API_ROWS,
    CUS_ENTRY_CUPTI_FIRST = CUS_ENTRY_SPARE_FIRST + CUS_ENTRY_SPARE
};
enum cus_cupti {
#define CUS_CUPTI_ENUM(name) CUS_CUPTI_##name,
    CUS_CUPTI_FUNCTIONS(CUS_CUPTI_ENUM)
#undef CUS_CUPTI_ENUM
        CUS_CUPTIS
};

/* The argument registers as a caller left them, behind them what it put on the stack. Read only. */
struct cus_frame {
    uint64_t integer[6];
    uint64_t rax, r10;
    double vector[16];
    uint64_t padding;
    uint64_t return_address;
    uint64_t stack[];
};

/* Argument `index` of a call whose arguments up to that one are integers and pointers. */
static inline uint64_t cus_frame_argument(const struct cus_frame *frame, int index) {
    return index < 6 ? frame->integer[index] : frame->stack[index - 6];
}

/* Where a row is entered: what the resolver hands out. NULL for rows of the class PASS. */
extern void *const cus_entry_hooks[CUS_API_ROWS];
/* The first spare stub. */
extern const char cus_entry_spares[];
enum { CUS_ENTRY_SPARE_BYTES = 16 };
extern void *const cus_entry_cuptis[CUS_CUPTIS];

/* Called by the assembly: acts before a call and returns the function to jump to. */
void *cus_entry_before(uint32_t entry, const struct cus_frame *frame);
/* Called by the assembly: makes the whole call. */
unsigned cus_entry_around(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                          uint64_t a5, uint64_t row);

/* Called by the assembly of dlsym for names that may concern us. Decided: `value` is the answer;
 * else it is the dlsym that is jumped to. */
struct cus_dlsym_answer {
    void *value;
    uint64_t decided;
};
struct cus_dlsym_answer cus_dlsym_decide(void *handle, const char *name, const void *caller);
/* The C library's dlsym, looked for once. Never NULL. */
void *cus_dlsym_find(void);
/* The next one behind this library, which the program would have called: the C library's, or an
 * interposer's. Never NULL. */
void *cus_dlsym_next(void);

#endif
#endif
