/*
 * One pattern of a rule.
 *
 *   flash_fwd*       glob on the kernel's base name: * any run, ? any one character, [a-z] [!a-z]
 * sets, \x the character x itself re:^at::.*gemm   POSIX extended regular expression, found
 * anywhere in the base name or in the name with its namespaces mangled:_ZN2at*  glob on the name as
 * the driver gives it
 *
 * Matching runs once per function, on whatever thread launches it first; compiling once, when the
 * rules are loaded.
 */
#ifndef CUSPLICE_PLAN_PATTERN_H
#define CUSPLICE_PLAN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cus_pattern; /* opaque */

/* NULL, and the reason in `error`, where the text is no pattern. The pattern keeps a copy of the
 * text. */
struct cus_pattern *cus_pattern_new(const char *text, char *error, size_t error_bytes);
void cus_pattern_free(struct cus_pattern *pattern);
bool cus_pattern_matches(const struct cus_pattern *pattern, const char *mangled);
const char *cus_pattern_text(const struct cus_pattern *pattern);

/* The glob matcher by itself; a malformed set matches nothing. */
bool cus_glob_matches(const char *glob, const char *name);

#ifdef __cplusplus
}
#endif

#endif
