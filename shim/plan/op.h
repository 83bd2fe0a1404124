/*
 * Ops, kinds and shapes as plain data: what the plan sees of the program's stream operations. No
 * CUDA header, no locks; any file of the shim may use it.
 *
 * An op is a kind (what a graph node must be to stand for it), seven words of shape, and its
 * params:
 *
 *   type     dims[0..6]                                 params
 *   launch   grid x y z, block x y z, dynamic shared    arguments at the offsets of kind->layout
 *   memset   width in elements (low, high), 0 ...       struct cus_memset_params
 *   copy     bytes (low, high), 0 ...                   struct cus_copy_params
 *   record   0 ...                                      struct cus_record_params
 *   wait     0 ...                                      struct cus_record_params
 *
 * shim/stream keeps one object for each kind of a context, so equal pointers mean equal kinds.
 */
#ifndef CUSPLICE_PLAN_OP_H
#define CUSPLICE_PLAN_OP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shim/base/hash.h"
#include "shim/plan/rules.h"
#include "shim/stats/stats.h"
#include "shim/stats/tally.h"

enum { CUS_DIMS = 7, CUS_KIND_SHAPES = 16, CUS_KIND_ATTRS = 12 };
/* Streams besides its own that a segment may have ops of (plan/branches.h). */
enum { CUS_BRANCHES = 4 };

/* By which of cuMemcpyAsync, cuMemcpyDtoDAsync, cuMemcpyHtoDAsync, cuMemcpyDtoHAsync the program
 * requested a copy. */
enum cus_copy_form { CUS_COPY_ANY, CUS_COPY_DTOD, CUS_COPY_HTOD, CUS_COPY_DTOH };
/* The form of a memset that was requested with a pitch and a height. */
enum { CUS_MEMSET_2D = CUS_COPY_DTOH + 1 };

/* Pitch and height are 0 and 1 unless the memset is two-dimensional. All ops of a two-dimensional
 * kind have the same pitch, width and height (HAZARDS A14). */
struct cus_memset_params {
    uint64_t dst;
    uint64_t pitch;
    uint32_t value;
    uint32_t height;
};

struct cus_copy_params {
    uint64_t dst, src;
};

/* An event, and which of the events that had this handle. */
struct cus_record_params {
    uint64_t event;
    uint64_t generation;
};

/* Where a kernel's arguments are in the parameter buffer. */
struct cus_argument {
    uint32_t offset, size;
};
struct cus_layout {
    uint32_t n;
    uint32_t bytes; /* end of the last argument, without padding */
    const struct cus_argument *arguments;
};

/* One launch attribute, cut to the bytes that its id defines; the other bytes of `value` are
 * zero. */
struct cus_attr {
    uint32_t id;
    uint32_t bytes;
    uint64_t value[8];
};

/* What an eager op reads comes first. */
struct cus_kind {
    const void *handle;  /* launch: the CUfunction as passed */
    uint8_t type;        /* enum cus_op_type */
    uint8_t policy;      /* enum cus_policy */
    uint8_t cooperative; /* replayed with the same shape only (HAZARDS A11) */
    /* False for ever once something about the kind was refused. No lock: set once, read
     * anywhere. */
    bool deferrable;
    uint16_t n_attrs;
    /* Programmatic stream serialization: may start before its predecessor ends. */
    uint8_t pdl;
    uint8_t branch; /* of the stream of the op; 0: the segment's own stream */
    /* Wait: the branch of the record, how many ops before the record came (0: more than a segment
     * has), and whether the waiting branch was forked before and is not joined yet. */
    uint8_t from;
    uint16_t back;
    uint8_t goes_on;
    struct cus_tally *tally;          /* counts ops of this name; NULL: none */
    const struct cus_step_rule *step; /* a marker: gives the step's class; NULL: no marker */
    const char *name;                 /* for reports */
    uint32_t id;                      /* unique in the process; signatures contain it */
    uint32_t param_bytes;
    const struct cus_layout *layout;
    uint64_t stable; /* a hash that is the same in each process; paths contain it */
    /* Fields that change stand behind those that never do, and share no word with them: the
     * compiler may read such a word whole. */
    /* Atomic: entries of `shapes` in use. Ops of a shape beyond them stay eager. */
    uint32_t n_shapes;
    /* Atomic: the function allows every dynamic shared-memory size below this one; 0: not known,
     * or nothing new is allowed (HAZARDS A12). Changes with the program's settings. */
    uint32_t shared_end;
    /* Block and shared memory (for cooperative kinds also the grid) that have run: HAZARDS A12.
     * Atomic: read by every engine of the context; one writer at a time, who fills an entry before
     * it counts the entry. */
    uint32_t shapes[CUS_KIND_SHAPES][CUS_DIMS];
    uint32_t cluster[3];  /* grid must be divisible by these; 1 without a cluster */
    uint32_t threads_max; /* of a block, by the function's attribute; 0: no new block is allowed */
    uint8_t elem;         /* memset: bytes of an element */
    uint8_t copy_form;    /* copy: enum cus_copy_form; memset: CUS_MEMSET_2D, or another one */
    /* Memset, copy: one bit for each form of the call (enum cus_abi) that the same rule decides
     * on. */
    uint8_t abis;
    int rule;        /* the rule that set the policy; -1: none */
    uint32_t traced; /* atomic: its number in the trace; 0: none yet */
    /* Atomic: a graph node has returned all of `attrs` unchanged (HAZARDS A8). */
    bool attrs_kept;
    struct cus_attr attrs[CUS_KIND_ATTRS];
};

/* The shape alone, to be passed in registers. */
struct cus_dims {
    uint32_t d[CUS_DIMS];
};

struct cus_op {
    const struct cus_kind *kind;
    uint32_t dims[CUS_DIMS];
    void **params;       /* launch by kernelParams: pointers to the arguments */
    const uint8_t *flat; /* otherwise: the parameter buffer, kind->param_bytes long */
};

/* An op as stored in an image (plan/segment.h): shape, then params. */
struct cus_values {
    uint32_t dims[CUS_DIMS];
    /* The graph node holds something else than these values: it must be patched before the next
     * launch (HAZARDS A28). */
    uint32_t unknown;
    uint8_t params[];
};

/* Does the driver resolve addresses when a node of this kind is made? */
static inline bool cus_kind_names_memory(const struct cus_kind *kind) {
    return kind->type == CUS_OP_MEMSET || kind->type == CUS_OP_COPY;
}

/* Bytes that a stored op of this kind takes, a multiple of 8. */
static inline uint32_t cus_values_bytes(const struct cus_kind *kind) {
    return (uint32_t)((sizeof(struct cus_values) + kind->param_bytes + 7u) & ~7u);
}

/* The hash of a path after one more op of this kind in a step of this class. It is the same in
 * other processes. */
static inline uint64_t cus_path_add(uint64_t path, const struct cus_kind *kind, unsigned step) {
    path = cus_hash(path ^ (kind->stable + step * 0x632be59bd9b4e019u));
    path = (path ^ path >> 32) * 0xd6e8feb86659fd93u;
    return path ^ path >> 29;
}

/* May a node of this kind have dims with which it has not run? See HAZARDS A11, A12. */
bool cus_kind_allows_else(const struct cus_kind *kind, const uint32_t dims[CUS_DIMS]);
static inline bool cus_kind_allows(const struct cus_kind *kind, const uint32_t dims[CUS_DIMS]) {
    if (kind->type != CUS_OP_LAUNCH)
        return true;
    /* Most kinds have one shape. A shape that has run is within all limits. */
    uint32_t differs = !__atomic_load_n(&kind->n_shapes, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < CUS_DIMS; i++)
        differs |= __atomic_load_n(&kind->shapes[0][i], __ATOMIC_RELAXED) ^ dims[i];
    return !differs || cus_kind_allows_else(kind, dims);
}
/* Notes that an op of this kind ran with these dims. One caller at a time, under the context's
 * lock. */
void cus_kind_ran(struct cus_kind *kind, const uint32_t dims[CUS_DIMS]);

/* The hot path compares a requested launch with a node by these functions. */
static inline uint64_t cus_word_at(const void *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}
static inline __attribute__((always_inline)) bool cus_dims_same(const uint32_t *dims,
                                                                const uint32_t *values) {
    /* Written out, so that the caller's values stay in registers. */
    return dims[0] == values[0] && dims[1] == values[1] && dims[2] == values[2] &&
           dims[3] == values[3] && dims[4] == values[4] && dims[5] == values[5] &&
           dims[6] == values[6];
}
/* Arguments are seldom large, so they are compared without a call, word by word. The last word may
 * overlap the one before it. */
enum { CUS_BYTES_HERE = 128 };
static inline uint32_t cus_half_at(const void *at) {
    uint32_t half;
    memcpy(&half, at, sizeof half);
    return half;
}
static inline bool cus_bytes_same(const void *a, const void *b, uint32_t bytes) {
    const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
    if (bytes > CUS_BYTES_HERE)
        return memcmp(x, y, bytes) == 0;
    if (bytes >= 8) {
        for (uint32_t at = 0; at + 8 < bytes; at += 8)
            if (cus_word_at(x + at) != cus_word_at(y + at))
                return false;
        return cus_word_at(x + bytes - 8) == cus_word_at(y + bytes - 8);
    }
    if (bytes >= 4)
        return cus_half_at(x) == cus_half_at(y) &&
               cus_half_at(x + bytes - 4) == cus_half_at(y + bytes - 4);
    return !bytes || (x[0] == y[0] && x[bytes / 2] == y[bytes / 2] && x[bytes - 1] == y[bytes - 1]);
}
static inline void cus_bytes_copy(void *to, const void *from, uint32_t bytes) {
    uint8_t *x = (uint8_t *)to;
    const uint8_t *y = (const uint8_t *)from;
    if (bytes > CUS_BYTES_HERE) {
        memcpy(x, y, bytes);
    } else if (bytes >= 8) {
        uint64_t last = cus_word_at(y + bytes - 8);
        for (uint32_t at = 0; at + 8 < bytes; at += 8) {
            memcpy(x + at, y + at, 8);
            __asm__(""); /* keeps the compiler from making a call of it */
        }
        memcpy(x + bytes - 8, &last, 8);
    } else if (bytes >= 4) {
        uint32_t last = cus_half_at(y + bytes - 4);
        memcpy(x, y, 4);
        memcpy(x + bytes - 4, &last, 4);
    } else if (bytes) {
        uint8_t middle = y[bytes / 2], last = y[bytes - 1];
        x[0] = y[0];
        x[bytes / 2] = middle;
        x[bytes - 1] = last;
    }
}
static inline __attribute__((always_inline)) bool
cus_arguments_same(const struct cus_layout *layout, void *const *params, const uint8_t *values) {
    const struct cus_argument *argument = layout->arguments, *end = argument + layout->n;
    for (; argument < end; argument++, params++) {
        const void *have = values + argument->offset;
        if (argument->size == 8) {
            if (cus_word_at(*params) != cus_word_at(have))
                return false;
        } else if (!cus_bytes_same(*params, have, argument->size)) {
            return false;
        }
    }
    return true;
}

/* Has the op the shape and params of `values`? */
bool cus_op_same_params(const struct cus_op *op, const struct cus_values *values);
/* The same for params as one block. A buffer packed by the program may hold anything between its
 * arguments; only the arguments are compared. */
bool cus_flat_same(const struct cus_kind *kind, const uint8_t *flat,
                   const struct cus_values *values);
static inline bool cus_op_same_dims(const struct cus_op *op, const struct cus_values *values) {
    return cus_dims_same(op->dims, values->dims);
}
/* Copies shape and params to `values`; bytes between arguments become zero. */
void cus_op_store(const struct cus_op *op, struct cus_values *values);
/* The same for a launch with pointers to its arguments. */
void cus_launch_store(const struct cus_kind *kind, const uint32_t *dims, void *const *params,
                      struct cus_values *values);
/* A 64-bit hash of kind, shape and params, for merges and the head index. */
uint64_t cus_op_hash(const struct cus_op *op);

/* Hashes the same things of a stored op; the result differs from that of cus_op_hash. */
uint64_t cus_values_hash(const struct cus_kind *kind, const struct cus_values *values);

struct cus_signature {
    uint64_t lo, hi;
};
static inline bool cus_signature_same(struct cus_signature a, struct cus_signature b) {
    return a.lo == b.lo && a.hi == b.hi;
}
/* The signature of a step after one more op of this kind and shape. */
struct cus_signature cus_signature_add(struct cus_signature sig, const struct cus_kind *kind,
                                       const uint32_t dims[CUS_DIMS]);
/* Appends `n` ops at once: `own` is their signature, as of a step that begins with them, and
 * `power` is cus_signature_power(n). */
struct cus_signature cus_signature_power(uint32_t n);
static inline struct cus_signature cus_signature_append(struct cus_signature sig,
                                                        struct cus_signature own,
                                                        struct cus_signature power) {
    return (struct cus_signature){sig.lo * power.lo + own.lo, sig.hi * power.hi + own.hi};
}

#endif
