/*
 * Rules: which kernels may be put into graphs. First match wins; a kernel that no rule names may
 * be.
 *
 * Under [rules], `eager = PATTERN`: issued by itself, exactly where the program asked for it, which
 * cuts the run. `never_defer = PATTERN`: the same, and all that is deferred goes out before it
 * (kernels that wait for the host or a peer). `graph = PATTERN`: may be put into a graph, whatever
 * a later rule says.
 *
 * A pattern names kernels, by their names or by the file that their code is from, or with api:
 * calls that are memsets or copies (plan/pattern.h).
 *
 * Order: CUSPLICE_EAGER ("p1;p2") first, then the file that CUSPLICE_CONFIG names, the user's file,
 * the system's file; within a file, as written. The [step] sections (plan/step.h) of those files
 * are read with them, in the same order.
 */
#ifndef CUSPLICE_PLAN_RULES_H
#define CUSPLICE_PLAN_RULES_H

#include <stdbool.h>

#include "shim/base/config.h"
#include "shim/plan/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From what a graph supports always to what it must not touch: each is weaker than those before it.
 */
enum cus_policy {
    CUS_POLICY_GRAPH,   /* may be in any graph */
    CUS_POLICY_UNIFORM, /* in graphs of whole steps that are a uniform decode (plan/step.h) */
    CUS_POLICY_UNIFORM_SINGLE, /* ... of one token for each request */
    CUS_POLICY_EAGER,          /* issued by itself */
    CUS_POLICY_NEVER_DEFER     /* and all that is deferred goes out before it */
};

struct cus_verdict {
    enum cus_policy policy;
    int rule; /* index of the rule that decided, -1: none */
};

struct cus_step_rule;
struct cus_rules; /* opaque, frozen once loaded */

/* The rules of this process, loaded by the first call. Never NULL, never fails: a bad rule is
 * warned about once and skipped. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* in C a struct and a function may share a name */
#endif
const struct cus_rules *cus_rules(void);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
/* What rules decide on: a kernel, or a call that is none. NULL for what is not known: no pattern of
 * that sort matches. */
struct cus_subject {
    const char *name; /* of a kernel, mangled */
    const char *lib;  /* the name of the file that the kernel's code is from, without folders */
    const char *call; /* the driver's symbol of a memset or copy; the other two are NULL */
};
/* Decided once per function, and once per symbol, by the caller. `behind`: what would decide if
 * that rule and those before it were not there; -1: what decides. */
struct cus_verdict cus_rules_ask(const struct cus_rules *rules, const struct cus_subject *subject,
                                 int behind);
/* Of a kernel by its name alone. */
struct cus_verdict cus_rules_decide(const struct cus_rules *rules, const char *mangled);
/* Is there any rule of that sort? */
bool cus_rules_have(const struct cus_rules *rules, enum cus_pattern_sort sort);
/* What a kernel of this name, as a marker, says of its step (plan/step.h); NULL: it is none.
 * Decided once per function. */
const struct cus_step_rule *cus_rules_step(const struct cus_rules *rules, const char *mangled);
/* This kernel or call was met: notes the rules that match it, whether they decided or not. Was any
 * met that rule `index` matches? */
void cus_rules_note(const struct cus_rules *rules, const struct cus_subject *subject);
bool cus_rules_matched(const struct cus_rules *rules, unsigned index);
unsigned cus_rules_count(const struct cus_rules *rules);
unsigned cus_rules_steps(const struct cus_rules *rules);

/* To be called once when the engine starts: says loudly where no rule at all keeps a kernel out of
 * graphs. */
void cus_rules_announce(void);

/* ---- loading and looking, for the launcher and the tests ---- */

struct cus_rule {
    enum cus_policy policy;
    const char *pattern;
    const char *file; /* path, or the environment variable */
    int line;         /* 0: the environment */
};
/* NULL behind the last. */
const struct cus_rule *cus_rules_get(const struct cus_rules *rules, unsigned index);
const struct cus_step_rule *cus_rules_step_get(const struct cus_rules *rules, unsigned index);
const char *cus_policy_name(enum cus_policy policy);

/* From the files and the environment; each problem is told to `problem` (NULL: to nobody), the
 * number is added to *problems (may be NULL). NULL: no memory. `secure`: no rules. */
struct cus_rules *cus_rules_load(bool secure, cus_problem_fn *problem, void *context,
                                 int *problems);
/* From one file alone. */
struct cus_rules *cus_rules_load_file(const char *path, cus_problem_fn *problem, void *context,
                                      int *problems);
void cus_rules_free(struct cus_rules *rules);

#ifdef __cplusplus
}
#endif

#endif
