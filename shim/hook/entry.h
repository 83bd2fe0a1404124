/*
 * Constants that C and the assembly of the entry points share; both include this file. Only
 * struct cus_frame here, entry_x86_64.S and entry_aarch64.S know registers.
 */
#ifndef CUSPLICE_HOOK_ENTRY_H
#define CUSPLICE_HOOK_ENTRY_H

/* In the states of guard.h below this one, a call goes straight to the real function. */
#define CUS_ENTRY_STATE_ON 3
/* The offset of the state in cus_process. */
#define CUS_ENTRY_HOOKS_AT 36
/* Likewise of what is not 0 while records, waits for events and questions pass. */
#define CUS_ENTRY_RESTING_AT 44
/* The offsets in cus_thread_self: of the depth, and of the cached stream for calls of an enum
 * cus_abi. */
#define CUS_ENTRY_DEPTH_AT 60
#define CUS_ENTRY_CACHED_STREAM_AT(abi) (8 * (abi))

#if defined(__aarch64__)
#define CUS_ENTRY_FRAME_BYTES 224
#endif

/* The number of stubs for functions that the table does not know, 16 bytes each. */
#define CUS_ENTRY_SPARE 512

/* The exported functions of CUPTI (the profiler's library), numbered in this order. */
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

#include <assert.h>
#include <stdint.h>

#include "shim/api/api.h"

/* An entry is a row of the table, a spare stub, or a function of CUPTI. */
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

/* The argument registers as the caller left them, followed by what the caller put on the stack.
 * Read only. */
#if defined(__x86_64__)
enum { CUS_ENTRY_INTEGERS = 6 };
struct cus_frame {
    uint64_t integer[CUS_ENTRY_INTEGERS];
    uint64_t rax, r10;
    double vector[16];
    uint64_t padding;
    uint64_t return_address;
    uint64_t stack[];
};
#elif defined(__aarch64__)
enum { CUS_ENTRY_INTEGERS = 8 };
struct cus_frame {
    uint64_t integer[CUS_ENTRY_INTEGERS];
    uint64_t x8, padding;
    double vector[16];
    uint64_t x29;
    uint64_t return_address;
    uint64_t stack[];
};
static_assert(sizeof(struct cus_frame) == CUS_ENTRY_FRAME_BYTES, "entry_aarch64.S lays it");
#else
#error "write entry_<machine>.S, and what it lays"
#endif

/* Argument `index` of a call. All arguments up to that index must be integers or pointers. */
static inline uint64_t cus_frame_argument(const struct cus_frame *frame, int index) {
    return index < CUS_ENTRY_INTEGERS ? frame->integer[index]
                                      : frame->stack[index - CUS_ENTRY_INTEGERS];
}

/* The hook of each row, which the resolver hands out. NULL for rows of the class PASS. */
extern void *const cus_entry_hooks[CUS_API_ROWS];
extern const char cus_entry_spares[];
enum { CUS_ENTRY_SPARE_BYTES = 16 };
extern void *const cus_entry_cuptis[CUS_CUPTIS];

/* Called by the assembly. Acts before a call and returns the function to jump to. */
void *cus_entry_before(uint32_t entry, const struct cus_frame *frame);
/* Called by the assembly. Makes the whole call. */
unsigned cus_entry_around(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                          uint64_t a5, uint64_t row);

/* Called by the assembly of dlsym for names that the library may have a hook for. If `decided`
 * is set, `value` is the answer of dlsym. If not, `value` is the dlsym function to jump to. */
struct cus_dlsym_answer {
    void *value;
    uint64_t decided;
};
struct cus_dlsym_answer cus_dlsym_decide(void *handle, const char *name, const void *caller);
/* The C library's dlsym, which the first call looks up. Never NULL. */
void *cus_dlsym_find(void);
/* The next dlsym behind this library, which the program would have called without it: the C
 * library's or an interposer's. Never NULL. */
void *cus_dlsym_next(void);

#endif
#endif
