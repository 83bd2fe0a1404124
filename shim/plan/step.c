/*
 * Finds a step's class from its marker's grid, and which kernels a mode allows in graphs of that
 * class. Pure functions.
 */
#include "shim/plan/step.h"

static bool holds(const struct cus_step_condition *condition, const uint32_t grid[3],
                  uint64_t tokens) {
    uint64_t is = condition->subject == CUS_STEP_TOKENS ? tokens : grid[condition->subject];
    uint64_t number = condition->number;
    switch ((enum cus_step_compare)condition->compare) {
    case CUS_STEP_EQ:
        return is == number;
    case CUS_STEP_NE:
        return is != number;
    case CUS_STEP_LE:
        return is <= number;
    case CUS_STEP_GE:
        return is >= number;
    case CUS_STEP_LT:
        return is < number;
    case CUS_STEP_GT:
        return is > number;
    case CUS_STEP_NEVER:
        break;
    }
    return false;
}

static bool is_size(const struct cus_step_rule *rule, uint64_t tokens) {
    for (uint32_t i = 0; i < rule->n_sizes; i++) {
        const struct cus_step_sizes *sizes = &rule->sizes[i];
        if (tokens >= sizes->first && tokens <= sizes->last &&
            (tokens - sizes->first) % sizes->stride == 0)
            return true;
    }
    return rule->n_sizes == 0;
}

enum cus_step_class cus_step_classify(const struct cus_step_rule *rule, const uint32_t grid[3],
                                      uint64_t *tokens) {
    *tokens = (uint64_t)grid[rule->tokens] * rule->tokens_each;
    if (!is_size(rule, *tokens))
        return CUS_STEP_OUTSIDE;
    if (holds(&rule->single, grid, *tokens))
        return CUS_STEP_SINGLE;
    return holds(&rule->uniform, grid, *tokens) ? CUS_STEP_UNIFORM : CUS_STEP_MIXED;
}

/* May such a step be one graph as a whole? A kernel that allows graphs of uniform decodes also
 * allows graphs of single tokens. */
static bool whole(enum cus_step_class step, enum cus_policy weakest) {
    switch (weakest) {
    case CUS_POLICY_GRAPH:
    case CUS_POLICY_UNIFORM:
        return step == CUS_STEP_UNIFORM || step == CUS_STEP_SINGLE;
    case CUS_POLICY_UNIFORM_SINGLE:
        return step == CUS_STEP_SINGLE;
    case CUS_POLICY_EAGER:
    case CUS_POLICY_NEVER_DEFER:
        break;
    }
    return false;
}

const char *cus_step_runs_as(enum cus_mode mode, enum cus_step_class step,
                             enum cus_policy weakest) {
    /* If even an eager kernel may be in a graph, the step is one graph. */
    if (cus_step_allows(mode, step, weakest, CUS_POLICY_EAGER))
        return "full";
    return cus_step_allows(mode, step, weakest, CUS_POLICY_GRAPH) ? "piecewise" : "none";
}

const char *cus_step_name(enum cus_step_class step) {
    static const char *const names[] = {"unknown", "mixed", "uniform", "single", "outside"};
    return names[step];
}

bool cus_step_allows(enum cus_mode mode, enum cus_step_class step, enum cus_policy weakest,
                     enum cus_policy policy) {
    if (step == CUS_STEP_OUTSIDE || policy == CUS_POLICY_NEVER_DEFER)
        return false;
    switch (mode) {
    case CUS_MODE_FULL:
        return true;
    case CUS_MODE_FULL_DECODE_ONLY:
        return whole(step, weakest);
    case CUS_MODE_FULL_AND_PIECEWISE:
        return policy == CUS_POLICY_GRAPH || whole(step, weakest);
    case CUS_MODE_OFF:
    case CUS_MODE_OBSERVE:
    case CUS_MODE_EAGER:
    case CUS_MODE_PIECEWISE:
    case CUS_MODE_VERIFY: /* never used here: verify uses another mode's answer */
        break;
    }
    return policy == CUS_POLICY_GRAPH;
}
