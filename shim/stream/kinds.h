/*
 * Functions and kinds of one context: what is known of a kernel, and the interned kinds that the
 * plan compares. Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_KINDS_H
#define CUSPLICE_STREAM_KINDS_H

#include "shim/base/uthash.h"
#include "shim/plan/op.h"
#include "shim/stream/engine.h"

struct cus_context;

/* A kernel as launched in one context: what is asked once, after it ran eagerly. */
struct cus_func {
    const void *handle; /* key */
    char *name;         /* mangled; owned */
    const char *shown;  /* for reports */
    enum cus_policy policy;
    int rule; /* that decided it; -1: none */
    struct cus_tally *tally;
    const struct cus_step_rule *step; /* what it says of its step as a marker, or NULL */
    uint64_t
        code;     /* a hash of its name and of the code that it is from, the same in each process */
    bool known;   /* layout is known */
    bool tainted; /* never deferred: old launch API, texture references */
    uint32_t cluster[3];
    struct cus_layout layout;     /* offset and size are owned */
    struct cus_kind_entry *kinds; /* hash of all kinds with this function, by attributes */
    UT_hash_handle hh;
};

/* What makes kinds of one function differ. */
struct cus_kind_key {
    uint8_t type, elem, copy_form, cooperative;
    uint8_t family[2]; /* of destination and source memory */
    uint16_t n_attrs;
    uint32_t rule; /* of a memset or copy, by the call that asked for it: its number from 1 on */
    uint32_t pad;  /* keys are compared byte by byte: no hole in front of the attributes */
    struct cus_attr attrs[CUS_KIND_ATTRS];
};

/* An interned kind. The plan sees `kind`. */
struct cus_kind_entry {
    struct cus_kind kind; /* first */
    struct cus_kind_key key;
    uint32_t key_bytes;
    UT_hash_handle hh;
};

/* ---- kinds.c ---- */

/* The kind of a launch, or NULL: the function never ran here (`*fresh`), its layout is unknown, or
 * no node can stand for the launch. */
struct cus_kind *cus_kinds_launch(struct cus_context *context, const struct cus_launch *launch,
                                  bool *fresh);
/* Is this the kind of this launch? The hot path's question. */
bool cus_kinds_is_launch(const struct cus_kind *kind, const struct cus_launch *launch);
/* Does a launch of this kind have these attributes (those to be ignored not counted)? */
bool cus_kinds_has_attrs(const struct cus_kind *kind, const CUlaunchAttribute *attrs,
                         uint32_t n_attrs);
/* After an eager launch succeeded: learns the function if it is new. The context is current, no
 * lock held. */
void cus_kinds_learn(struct cus_context *context, const struct cus_launch *launch);
/* Is the function in the table? */
bool cus_kinds_know(struct cus_context *context, const void *handle);
/* The rule for a function that ran before; GRAPH for one that did not. */
enum cus_policy cus_kinds_policy(struct cus_context *context, const void *handle);
/* Where launches of this function are counted, and why none of them that has no kind has one; NULL
 * where it did not run here. */
struct cus_tally *cus_kinds_tally(struct cus_context *context, const void *handle,
                                  enum cus_why *why);
/* Its mangled name, cut to what fits; "" for one that did not run here. */
enum { CUS_TRACE_NAME = 16384 };
const char *cus_kinds_name(struct cus_context *context, const void *handle,
                           char name[CUS_TRACE_NAME]);
/* The name of the call that asks for such a memset or copy. */
const char *cus_kinds_call(enum cus_op_type type, uint8_t elem, uint8_t copy_form);
struct cus_kind *cus_kinds_memory(struct cus_context *context, enum cus_op_type type, uint8_t elem,
                                  uint8_t copy_form, uint8_t dst_family, uint8_t src_family,
                                  enum cus_abi abi);
/* Asks the rules about every call that is a memset or a copy. Once, when the engine starts. */
void cus_kinds_ask_rules(void);
/* What they say of one: a memset by its element bytes, or a copy by its form. */
struct cus_verdict cus_kinds_rule(enum cus_op_type type, uint8_t elem, uint8_t copy_form,
                                  enum cus_abi abi);
/* Notes the taint for functions that are met from now on; cus_kinds_taint then finds those of a
 * context that were met before. NULL: every function. False where it was noted already. */
bool cus_kinds_note_taint(const void *handle);
void cus_kinds_taint(struct cus_context *context, const void *handle);
/* An op of this kind ran with these dims. */
void cus_kinds_ran(struct cus_context *context, struct cus_kind *kind,
                   const uint32_t dims[CUS_DIMS]);
/* Forgets which shapes ran (NULL: of every function). */
void cus_kinds_forget_shapes(struct cus_context *context, const void *handle);
/* Takes all functions and kinds out of the context; cus_kinds_free frees them once no engine refers
 * to them. */
struct cus_garbage {
    struct cus_func *funcs;
    struct cus_kind_entry *memory_kinds;
};
struct cus_garbage cus_kinds_detach(struct cus_context *context);
void cus_kinds_free(struct cus_garbage garbage);

/* ---- func.c ---- */

/* Asks the driver what it is; NULL: no memory. No lock held, the context is current. */
struct cus_func *cus_func_make(const void *handle);
void cus_func_free(struct cus_func *func);
/* The handle's kind is known from the call that made it. All of that is forgotten when code goes.
 */
void cus_func_note(const void *handle, enum cus_handle kind);
void cus_func_forget_noted(void);

#endif
