/*
 * The keys of a [step] section (plan/step.h): from text and back to text. Pure functions; which
 * keys a section has, and its marker's pattern, are the business of plan/rules.c.
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

/* By enum cus_step_key; NULL behind the last. */
extern const char *const cus_step_keys[CUS_STEP_KEYS + 1];

/* What a section says that has nothing but a marker. */
void cus_step_defaults(struct cus_step_rule *rule);
/* Sets the field of any key but the marker. False: *rule is as it was, `error` says what would be
 * right, *nearest what may have been meant (or NULL). */
bool cus_step_set(struct cus_step_rule *rule, enum cus_step_key key, const char *text, char *error,
                  size_t bytes, const char **nearest);
/* The field of a key as one would write it. False: `out` is "", for nothing has been said: no
 * condition, all sizes. CUS_STEP_SHOWN bytes are enough for all but long markers. */
enum { CUS_STEP_SHOWN = CUS_STEP_SIZES * 36 };
bool cus_step_show(const struct cus_step_rule *rule, enum cus_step_key key, char *out,
                   size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
