/*
 * Steps that describe themselves: a marker kernel whose grid says how many tokens a step works on
 * and whether it is a uniform decode, and what each mode makes of that.
 *
 *   [step]                          or [step NAME]; the first section whose marker matches decides
 *   marker = embedding*             pattern of the kernel (plan/pattern.h), early in the step
 *   tokens = x                      the grid dimension that is the number of tokens: x, y or z; x
 *                                   without it
 *   tokens_each = 1                 tokens per unit of that dimension; 1 without it
 *   uniform = y == 1                when every request of the step has the same number of tokens
 *   single = y == 1                 ... which is one; without it no step is
 *   sizes = 1,2,4,8..64/8           token counts that may be captured, with first..last/stride; all
 *                                   without it
 *
 * A condition compares x, y, z or tokens with a number by ==, !=, <=, >=, < or >. A section with
 * anything wrong in it is told of and left out as a whole.
 *
 * Pure; rules are read once and never change.
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

/* From a step that nothing is known of to the one that allows most; a step of a size that may not
 * be captured stays eager whatever else it is. */
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
    const char *name;   /* behind the word step, or "" */
    const char *marker; /* the pattern as written */
    const char *file;   /* path, or the environment variable */
    int line;           /* of the marker */
    uint8_t tokens;     /* enum cus_step_subject: x, y or z */
    uint32_t tokens_each;
    struct cus_step_condition uniform, single;
    uint32_t n_sizes; /* 0: all */
    struct cus_step_sizes sizes[CUS_STEP_SIZES];
};

/* What a step is that this marker began, with that grid (x, y, z). `*tokens` is their number. */
enum cus_step_class cus_step_classify(const struct cus_step_rule *rule, const uint32_t grid[3],
                                      uint64_t *tokens);

/* What decides whether a kernel may be put into a graph. */
struct cus_dispatch {
    enum cus_mode mode;
    enum cus_policy weakest[CUS_STEP_CLASSES]; /* of all that were met in steps of the class but
                                                  never_defer, which is issued by itself anyway */
    int rule[CUS_STEP_CLASSES];                /* the rule that says so, where weaker than graph */
    char kernel[CUS_STEP_CLASSES][CUS_STEP_KERNEL]; /* of this kernel, cut to fit */
};

/* May a kernel of this policy be put into a graph in a step of this class, where `weakest` is the
 * weakest policy of all that were met in such steps? */
bool cus_step_allows(enum cus_mode mode, enum cus_step_class step, enum cus_policy weakest,
                     enum cus_policy policy);

/* What such steps are run as: "full", "piecewise" or "none". */
const char *cus_step_runs_as(enum cus_mode mode, enum cus_step_class step, enum cus_policy weakest);
const char *cus_step_name(enum cus_step_class step);

#ifdef __cplusplus
}
#endif

#endif
