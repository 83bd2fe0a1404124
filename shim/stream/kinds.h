/*
 * Functions and kinds of one context: what is known of a kernel, and the kinds that the plan
 * compares by pointer. Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_KINDS_H
#define CUSPLICE_STREAM_KINDS_H

#include "shim/base/uthash.h"
#include "shim/plan/op.h"
#include "shim/stream/engine.h"

struct cus_context;

/* A kernel as launched in one context: what the driver said once, after an eager launch. */
struct cus_func {
    const void *handle; /* key */
    char *name;         /* mangled; owned */
    const char *shown;  /* the name for reports */
    enum cus_policy policy;
    int rule; /* number of the rule that set `policy`; -1: none */
    struct cus_tally *tally;
    /* What the function says about its step if it is a marker kernel, or NULL. */
    const struct cus_step_rule *step;
    /* A hash of the function's name and code, equal in every process. */
    uint64_t code;
    bool known;   /* the driver told the layout */
    bool tainted; /* never deferred: old launch API or texture references */
    uint32_t cluster[3];
    /* The context's CUfunction, whose limits count: that of a CUkernel does not know what was set
     * by cuFuncSetAttribute. */
    const void *function;
    uint32_t threads_max;         /* of a block; 0: unknown, or launched in clusters */
    uint32_t shared_end;          /* context lock: as in struct cus_kind; 0: to be read */
    struct cus_layout layout;     /* its arrays are owned */
    struct cus_kind_entry *kinds; /* all kinds of this function, by attributes */
    UT_hash_handle hh;
};

/* What makes kinds of one function differ. */
struct cus_kind_key {
    uint8_t type, elem, copy_form, cooperative;
    uint8_t family[2]; /* memory families of destination and source */
    uint16_t n_attrs;
    uint32_t rule; /* of another op than a launch: number of its call's rule, from 1 on; 0: none */
    struct cus_place_of_op {
        /* As in struct cus_kind. */
        uint8_t branch, from;
        uint16_t back : 15, goes_on : 1;
    } place; /* keys are compared bytewise, so no hole may precede the attributes */
    union {
        struct cus_attr attrs[CUS_KIND_ATTRS];
        /* Of a 2-D memset, which has no attributes. */
        struct cus_extent {
            uint64_t pitch, width, height;
        } extent;
    };
};
/* A context has so many kinds of 2-D memsets at most; further ones stay eager. */
enum { CUS_EXTENTS_MAX = 256 };

/* The plan sees `kind` only. */
struct cus_kind_entry {
    struct cus_kind kind; /* must be first */
    struct cus_kind_key key;
    UT_hash_handle hh;
};

/* ---- kinds.c ---- */

/* The kind of a launch on this branch. NULL: the function never ran here (`*fresh`), its layout is
 * unknown, or no node can stand for the launch. */
struct cus_kind *cus_kinds_launch(struct cus_context *context, const struct cus_launch *launch,
                                  uint8_t branch, bool *fresh);
/* Is this the kind of this launch, whatever its branch? Asked on the hot path. */
bool cus_kinds_is_launch(const struct cus_kind *kind, const struct cus_launch *launch);
/* Does a launch of this kind have these attributes? Entries to be ignored do not count. */
bool cus_kinds_has_attrs(const struct cus_kind *kind, const CUlaunchAttribute *attrs,
                         uint32_t n_attrs);
/* Learns a new function after an eager launch of it succeeded. The context is current, no lock
 * held. */
void cus_kinds_learn(struct cus_context *context, const struct cus_launch *launch);
/* Is the function in the context's table? */
bool cus_kinds_know(struct cus_context *context, const void *handle);
/* The rule for a function that ran before; GRAPH for one that did not. */
enum cus_policy cus_kinds_policy(struct cus_context *context, const void *handle);
/* Where launches of this function are counted, and why those without a kind have none. NULL: the
 * function did not run here. */
struct cus_tally *cus_kinds_tally(struct cus_context *context, const void *handle,
                                  enum cus_why *why);
/* The function's mangled name, cut to what fits; "" if the function did not run here. */
enum { CUS_TRACE_NAME = 16384 };
const char *cus_kinds_name(struct cus_context *context, const void *handle,
                           char name[CUS_TRACE_NAME]);
/* The name of the call that asks for this memset, copy, record or wait. A memset has the form
 * CUS_MEMSET_2D, or any other one. */
const char *cus_kinds_call(enum cus_op_type type, uint8_t elem, uint8_t copy_form);
/* What makes memsets, copies, records and waits differ. */
struct cus_kind_of_call {
    enum cus_op_type type;
    uint8_t elem, copy_form, dst_family, src_family;
    enum cus_abi abi;
    struct cus_place_of_op place;
    struct cus_extent extent; /* of a 2-D memset: `copy_form` is CUS_MEMSET_2D */
};
/* NULL: no memory, or too many 2-D memsets differ. */
struct cus_kind *cus_kinds_call_kind(struct cus_context *context,
                                     const struct cus_kind_of_call *of);
/* The kind of a copy of `elem` (1, 2 or 4) bytes of pageable memory, whose node is a memset. */
struct cus_kind *cus_kinds_value(struct cus_context *context, const struct cus_kind_of_call *of);
/* Asks the rules about every call that is a memset, a copy, a record or a wait. Called once, when
 * the engine starts. */
void cus_kinds_ask_rules(void);
/* The rule for a memset by its element size and form, for a copy by its form, for records, or for
 * waits. */
struct cus_verdict cus_kinds_rule(enum cus_op_type type, uint8_t elem, uint8_t copy_form,
                                  enum cus_abi abi);
/* Notes a taint for functions that are seen later; cus_kinds_taint handles those of a context that
 * were seen before. NULL: every function. False: it was noted already. */
bool cus_kinds_note_taint(const void *handle);
void cus_kinds_taint(struct cus_context *context, const void *handle);
/* An op of this kind ran with these dims. */
void cus_kinds_ran(struct cus_context *context, struct cus_kind *kind,
                   const uint32_t dims[CUS_DIMS]);
/* Reads the limit of dynamic shared memory if it is not known: the function is new, or a setting
 * has changed. The context is current; the engine's lock is held, for the kind must stay. False:
 * known before, or no new shape is allowed. */
bool cus_kinds_read_limit(struct cus_context *context, const struct cus_kind *kind);
/* Forgets which shapes of this function ran (NULL: of every function). Forgets the limits of all
 * functions, for the handle may be another one of the same function. */
void cus_kinds_forget_shapes(struct cus_context *context, const void *handle);
/* Takes all functions and kinds out of the context. cus_kinds_free frees them, once no engine
 * refers to them. */
struct cus_garbage {
    struct cus_func *funcs;
    struct cus_kind_entry *memory_kinds;
};
struct cus_garbage cus_kinds_detach(struct cus_context *context);
void cus_kinds_free(struct cus_garbage garbage);
/* Forgets all taints, and counts kinds anew. No kind is left. For cus_engine_end. */
void cus_kinds_drop(void);

/* ---- func.c ---- */

/* Asks the driver about a function. NULL: no memory. No lock held, the context is current. */
struct cus_func *cus_func_make(const void *handle);
void cus_func_free(struct cus_func *func);
/* One more than the dynamic shared memory that launches of this CUfunction may have now; 0:
 * unknown. */
uint32_t cus_func_shared_end(const void *function);
/* Notes what a handle is, as the call that made it said. All notes are forgotten when code goes. */
void cus_func_note(const void *handle, enum cus_handle kind);
void cus_func_forget_noted(void);

#endif
