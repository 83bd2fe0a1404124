/*
 * Rules: which kernels may be in graphs. The first match decides; a kernel without a match may be
 * in graphs. shim/stream asks once per function; tools load rules, too.
 *
 *   key under [rules]    what it says of a kernel that matches
 *   eager                issued eagerly, which ends the run
 *   never_defer          the same; all deferred ops are issued before it (for kernels
 *                        that wait for the host or a peer)
 *   graph                may be in a graph, whatever a later rule says
 *
 * A pattern names kernels by name or by the file of their code, or (api:) memset and copy calls;
 * see plan/pattern.h.
 * Order: CUSPLICE_EAGER ("p1;p2"), the files of CUSPLICE_CONFIG from the last one on, the user's
 * file, the system's file; each in front of those that it includes; within a file, as written. The
 * [step] sections (plan/step.h) of the files are read in the same order. Behind them come the
 * presets that libraries choose (plan/preset_choice.h), in the order in which they are chosen.
 */
#ifndef CUSPLICE_PLAN_RULES_H
#define CUSPLICE_PLAN_RULES_H

#include <stdbool.h>

#include "shim/base/config.h"
#include "shim/plan/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From what every graph supports to what no graph may hold; each is weaker than those before it. */
enum cus_policy {
    CUS_POLICY_GRAPH,          /* may be in any graph */
    CUS_POLICY_UNIFORM,        /* only if the whole step is one graph, a uniform decode */
    CUS_POLICY_UNIFORM_SINGLE, /* the same, with one token for each request */
    CUS_POLICY_EAGER,          /* issued eagerly */
    CUS_POLICY_NEVER_DEFER     /* the same, after all deferred ops were issued */
};

struct cus_verdict {
    enum cus_policy policy;
    int rule; /* index of the rule that decided; -1: none */
};

struct cus_step_rule;
struct cus_rules; /* opaque; once loaded, rules are only added at the end */

/* The rules of this process, loaded by the first call. Never NULL, never fails: a bad rule is
 * skipped with one warning. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* in C a struct and a function may share a name */
#endif
const struct cus_rules *cus_rules(void);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
/* What rules decide on: a kernel or a call. A field that is not known is NULL, and no pattern of
 * that sort matches. */
struct cus_subject {
    const char *name; /* of a kernel, mangled */
    const char *lib;  /* of a kernel: name of the file with its code, no folders */
    const char *call; /* driver's symbol of a memset, copy or record; the others are NULL */
    /* Of a kernel whose mangled name is not known (`name` is NULL): both or none. */
    const char *base, *qualified;
};
/* The caller asks once per function or symbol. `behind`: what would decide without that rule and
 * those before it; -1: what decides. */
struct cus_verdict cus_rules_ask(const struct cus_rules *rules, const struct cus_subject *subject,
                                 int behind);
/* For a kernel by its mangled name alone. */
struct cus_verdict cus_rules_decide(const struct cus_rules *rules, const char *mangled);
/* Is there any rule of that sort? */
bool cus_rules_have(const struct cus_rules *rules, enum cus_pattern_sort sort);
/* The [step] rule for which a kernel of this name is the marker; NULL: none. Asked once per
 * function. */
const struct cus_step_rule *cus_rules_step(const struct cus_rules *rules, const char *mangled);
/* The same for a kernel that is known otherwise; for tools. */
const struct cus_step_rule *cus_rules_step_of(const struct cus_rules *rules,
                                              const struct cus_subject *subject);
/* A kernel or call came: notes all rules that match it, also those that did not decide. Below: has
 * rule `index` matched anything that came? */
void cus_rules_note(const struct cus_rules *rules, const struct cus_subject *subject);
bool cus_rules_matched(const struct cus_rules *rules, unsigned index);
/* Has a kernel that is the marker of this step come? */
bool cus_rules_step_matched(const struct cus_rules *rules, unsigned index);
unsigned cus_rules_count(const struct cus_rules *rules);
unsigned cus_rules_steps(const struct cus_rules *rules);

/* Called once when the engine starts: warns if no rule at all keeps a kernel out of graphs, in a
 * mode that makes them. */
void cus_rules_announce(void);
/* Adds the rules of a preset, and of those that it includes, behind all others, for a library.
 * Files whose rules are there already are left out. False: there was nothing to add. One thread at
 * a time, beside any number that ask. `library` must stay valid. */
bool cus_rules_add_preset(const char *path, const char *library);
/* Forgets the rules of this process: the next call of cus_rules loads them anew. For
 * cus_engine_end. */
void cus_rules_drop(void);

/* ---- loading and looking, for the launcher and the tests ---- */

struct cus_rule {
    enum cus_policy policy;
    const char *pattern;
    const char *file; /* path, or the environment variable */
    int line;         /* 0: the environment */
    enum cus_source source;
    bool preset; /* it is from a preset */
    const char
        *chosen_by; /* the library that chose the preset, "lib/libnccl.so.2"; NULL: none did */
};
/* NULL behind the last. */
const struct cus_rule *cus_rules_get(const struct cus_rules *rules, unsigned index);
const struct cus_step_rule *cus_rules_step_get(const struct cus_rules *rules, unsigned index);
const char *cus_policy_name(enum cus_policy policy);

/* Loads from the files and the environment. Each problem is reported to `problem` (may be NULL),
 * and their number is added to *problems (may be NULL). NULL: no memory. `secure`: loads no
 * rules. */
struct cus_rules *cus_rules_load(bool secure, cus_problem_fn *problem, void *context,
                                 int *problems);
/* Loads from one file alone. */
struct cus_rules *cus_rules_load_file(const char *path, cus_problem_fn *problem, void *context,
                                      int *problems);
void cus_rules_free(struct cus_rules *rules);

/* False. Tools that play traces set it: kernels may have names there that no compiler makes, such
 * as demangled ones. So a pattern that the driver's names could not match counts: it is told as a
 * notice for the files that the user names, and else not at all. */
extern bool cus_rules_any_name;

#ifdef __cplusplus
}
#endif

#endif
