/*
 * [step] sections: a marker kernel's grid says how many tokens a step has and whether it is a
 * uniform decode. From that, each mode decides what may be in graphs.
 * rules.c reads the sections once; the plan and the tools use them. Pure; rules never change after
 * loading.
 *
 *   [step]                          or [step NAME]; the first section whose marker matches decides
 *   marker = embedding*             pattern of the kernel (plan/pattern.h), early in the step
 *   tokens = x                      grid dimension that is the number of tokens: x, y or z;
 *                                   default x
 *   tokens_each = 1                 tokens per unit of that dimension; default 1
 *   uniform = y == 1                true if every request of the step has the same number of tokens
 *   single = y == 1                 true if that number is one; default: never true
 *   sizes = 1,2,4,8..64/8           token counts that may be captured, with first..last/stride;
 *                                   default all
 *
 * A condition compares x, y, z or tokens with a number by ==, !=, <=, >=, < or >. A section with
 * any error is reported and left out as a whole.
 */
#ifndef CUSPLICE_PLAN_STEP_H
#define CUSPLICE_PLAN_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/options.h"
#include "shim/plan/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CUS_STEP_SIZES = 64, CUS_STEP_KERNEL = 64 };

/* From a step of which nothing is known to the step that allows most. A step whose size may not be
 * captured (OUTSIDE) stays eager in any case. */
enum cus_step_class {
    CUS_STEP_UNKNOWN, /* no marker came so far, or there is none */
    CUS_STEP_MIXED,
    CUS_STEP_UNIFORM,
    CUS_STEP_SINGLE,
    CUS_STEP_OUTSIDE,
    CUS_STEP_CLASSES
};

enum cus_step_subject { CUS_STEP_X, CUS_STEP_Y, CUS_STEP_Z, CUS_STEP_TOKENS };
enum cus_step_compare {
    CUS_STEP_NEVER, /* no condition was given */
    CUS_STEP_EQ,
    CUS_STEP_NE,
    CUS_STEP_LE,
    CUS_STEP_GE,
    CUS_STEP_LT,
    CUS_STEP_GT
};

struct cus_step_condition {
    uint8_t subject; /* enum cus_step_subject */
    uint8_t compare; /* enum cus_step_compare */
    uint32_t number;
};

struct cus_step_sizes {
    uint32_t first, last, stride; /* stride at least 1 */
};

struct cus_step_rule {
    const char *name;   /* the NAME of the section, or "" */
    const char *marker; /* the pattern as written */
    const char *file;   /* path, or the environment variable */
    int line;           /* of the marker */
    uint8_t tokens;     /* enum cus_step_subject: x, y or z */
    uint32_t tokens_each;
    struct cus_step_condition uniform, single;
    uint32_t n_sizes; /* 0: all sizes */
    struct cus_step_sizes sizes[CUS_STEP_SIZES];
};

/* The class of the step that this marker begins with this grid (x, y, z). `*tokens` gets the number
 * of tokens. */
enum cus_step_class cus_step_classify(const struct cus_step_rule *rule, const uint32_t grid[3],
                                      uint64_t *tokens);

/* What decides whether a kernel may be in a graph. */
struct cus_dispatch {
    enum cus_mode mode;
    /* The weakest policy of all kernels that came in steps of the class. never_defer does not
     * count, since such kernels are issued eagerly anyway. */
    enum cus_policy weakest[CUS_STEP_CLASSES];
    int rule[CUS_STEP_CLASSES]; /* the rule of that policy, if weaker than graph */
    char kernel[CUS_STEP_CLASSES][CUS_STEP_KERNEL]; /* the kernel with that policy, cut to fit */
};

/* May a kernel of this policy be in a graph in a step of this class? `weakest` is the weakest
 * policy of all kernels that came in such steps. */
bool cus_step_allows(enum cus_mode mode, enum cus_step_class step, enum cus_policy weakest,
                     enum cus_policy policy);

/* How such steps run: "full", "piecewise" or "none". */
const char *cus_step_runs_as(enum cus_mode mode, enum cus_step_class step, enum cus_policy weakest);
const char *cus_step_name(enum cus_step_class step);

#ifdef __cplusplus
}
#endif

#endif
