/*
 * One pattern of a rule. rules.c compiles it when rules are loaded, and matches it once per
 * function, on the thread that launches the function first.
 *
 *   pattern          matches
 *   flash_fwd*       glob on the kernel's base name: * any text, ? one character,
 *                    [a-z] and [!a-z] sets, \x the character x itself
 *   re:^at::.*gemm   POSIX extended regular expression, anywhere in the base name
 *                    or in the name with its namespaces
 *   mangled:_ZN2at*  glob on the name as the driver gives it
 *   lib:libnccl*     glob on the file name of the shared object or program that
 *                    the kernel's code comes from
 *   api:cuMemset*    glob on the driver's symbol of a memset, copy or record,
 *                    or on the symbol without its suffixes _v2 and _ptsz
 */
#ifndef CUSPLICE_PLAN_PATTERN_H
#define CUSPLICE_PLAN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cus_pattern; /* opaque */

/* What a pattern is compared with: a kernel's name, its file, or a call's symbol. */
enum cus_pattern_sort { CUS_PATTERN_NAME, CUS_PATTERN_LIB, CUS_PATTERN_API };

/* NULL, with the reason in `error`, if the text is not a pattern. The pattern keeps a copy of the
 * text. */
struct cus_pattern *cus_pattern_new(const char *text, char *error, size_t error_bytes);
void cus_pattern_free(struct cus_pattern *pattern);
enum cus_pattern_sort cus_pattern_sort_of(const struct cus_pattern *pattern);
/* Each returns false for a pattern of another sort. */
bool cus_pattern_matches(const struct cus_pattern *pattern, const char *mangled);
/* The same where the mangled name is not known. */
bool cus_pattern_matches_names(const struct cus_pattern *pattern, const char *base,
                               const char *qualified);
bool cus_pattern_matches_lib(const struct cus_pattern *pattern, const char *file_name);
bool cus_pattern_matches_api(const struct cus_pattern *pattern, const char *symbol);
const char *cus_pattern_text(const struct cus_pattern *pattern);

/* The glob matcher alone; a malformed set matches nothing. */
bool cus_glob_matches(const char *glob, const char *name);
/* Compares one element of a glob (a character, ?, a set) with one character. *next is set behind
 * the element. It is NULL if the element is malformed: a set without an end, or a backslash at the
 * end. */
bool cus_glob_element(const char *glob, unsigned char c, const char **next);

/* ---- pattern_doubt.c ---- */

enum cus_doubt {
    CUS_DOUBT_NONE,
    CUS_DOUBT_ODD,  /* may match something, but hardly what is meant */
    CUS_DOUBT_NEVER /* no kernel, file or call can have such a name */
};
/* What is odd about the text of a good pattern: `why`, and in `better` what may be meant ("": not
 * known). Both are unchanged for CUS_DOUBT_NONE. */
enum cus_doubt cus_pattern_doubt(const char *text, char *why, size_t why_bytes, char *better,
                                 size_t better_bytes);

#ifdef __cplusplus
}
#endif

#endif
