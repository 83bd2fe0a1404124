/*
 * The keys of a [step] section (plan/step.h): reading their values and writing them back. Pure
 * functions. rules.c decides which keys a section has, and compiles its marker's pattern.
 */
#ifndef CUSPLICE_PLAN_STEP_READ_H
#define CUSPLICE_PLAN_STEP_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/plan/step.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cus_step_key {
    CUS_STEP_KEY_MARKER,
    CUS_STEP_KEY_TOKENS,
    CUS_STEP_KEY_TOKENS_EACH,
    CUS_STEP_KEY_UNIFORM,
    CUS_STEP_KEY_SINGLE,
    CUS_STEP_KEY_SIZES,
    CUS_STEP_KEYS
};

/* In the order of enum cus_step_key; NULL behind the last. */
extern const char *const cus_step_keys[CUS_STEP_KEYS + 1];

/* Sets what a section with nothing except a marker says. */
void cus_step_defaults(struct cus_step_rule *rule);
/* Sets the field of any key except the marker. False: *rule is unchanged, `error` says what would
 * be right, and *nearest has what may have been meant (or NULL). */
bool cus_step_set(struct cus_step_rule *rule, enum cus_step_key key, const char *text, char *error,
                  size_t bytes, const char **nearest);
/* Writes the field of a key as one would type it. False: `out` is "", since nothing was said: no
 * condition, or all sizes. CUS_STEP_SHOWN bytes are enough for all except long markers. */
enum { CUS_STEP_SHOWN = CUS_STEP_SIZES * 36 };
bool cus_step_show(const struct cus_step_rule *rule, enum cus_step_key key, char *out,
                   size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
