/*
 * What the user asked for and the program never gave occasion to: rules that matched nothing, and
 * steps that no marker tells of. hook/lifecycle.c asks at exit. Takes no lock, never calls the
 * driver, never allocates.
 *
 * A preset names many kernels that a program lacks. So of a file's rules it is told only if none
 * matched, and of presets only if the user gave no rules of his own.
 */
#include <stdio.h>

#include "shim/base/path.h"
#include "shim/stats/tally.h"
#include "shim/stream/state.h"
#include "shim/stream/why.h"

enum { TEXT = 540, PATH = 160 }; /* a line of the hand-shake has room for them */

struct unmet {
    void (*say)(const char *text);
    char passed[80]; /* behind each text: launches that no rule was asked about */
    char text[TEXT];
    char path[PATH]; /* as it is shown */
};

static bool is_of(const char *pattern, const char *prefix) {
    return strncmp(pattern, prefix, strlen(prefix)) == 0;
}

/* A rule by itself. */
static void say_rule(struct unmet *it, const struct cus_rule *rule) {
    char place[16] = "", nearest[CUS_REPORT_NAME] = "";
    bool call = is_of(rule->pattern, "api:");
    bool name = !call && !is_of(rule->pattern, "lib:") && !is_of(rule->pattern, "mangled:");
    if (rule->line)
        snprintf(place, sizeof place, ":%d", rule->line);
    if (name)
        cus_report_nearest(rule->pattern, nearest);
    snprintf(it->text, sizeof it->text, "%s = %.100s (%s%s) matched no %s%s%s%s",
             cus_policy_name(rule->policy), rule->pattern,
             cus_path_shown(rule->file, it->path, PATH), place, call ? "call" : "kernel",
             *nearest ? CUS_UNMET_OWN "the nearest kernel is " : "", nearest, it->passed);
    it->say(it->text);
}

/* ---- the rules of the environment ---- */

/* True: there are some. */
static bool judge_each(struct unmet *it, const struct cus_rules *rules) {
    const struct cus_rule *rule;
    unsigned n = 0;
    for (unsigned i = 0; (rule = cus_rules_get(rules, i)); i++) {
        if (rule->source != CUS_SOURCE_ENVIRONMENT)
            continue;
        n++;
        if (!cus_rules_matched(rules, i))
            say_rule(it, rule);
    }
    return n > 0;
}

/* ---- the rules of files ---- */

struct group {
    const struct cus_rule *first;
    unsigned n;
    bool matched, more; /* more: of several files */
};

static void add(struct group *group, const struct cus_rule *rule, bool matched) {
    if (!group->n++)
        group->first = rule;
    group->more |= strcmp(rule->file, group->first->file) != 0;
    group->matched |= matched;
}

static void judge_files(struct unmet *it, const struct cus_rules *rules, bool others) {
    struct group own = {0}, presets = {0}, standing = {0}, *group;
    const struct cus_rule *rule;
    for (unsigned i = 0; (rule = cus_rules_get(rules, i)); i++) {
        if (rule->source == CUS_SOURCE_NAMED)
            add(rule->preset ? &presets : &own, rule, cus_rules_matched(rules, i));
        else if (rule->source != CUS_SOURCE_ENVIRONMENT && !rule->chosen_by)
            add(&standing, rule, cus_rules_matched(rules, i));
    }
    group = own.n ? &own : presets.n ? &presets : &standing;
    if (!group->n || group->matched || (group == &standing && others))
        return;
    if (group->n == 1) {
        say_rule(it, group->first);
        return;
    }
    if (group->more && group != &standing) /* the user may have named none of these files */
        snprintf(it->text, sizeof it->text,
                 "none of the %u rules of the files that -c or CUSPLICE_CONFIG names, with those "
                 "that they include, matched a kernel; the first is %s:%d%s",
                 group->n, cus_path_shown(group->first->file, it->path, PATH), group->first->line,
                 it->passed);
    else
        snprintf(it->text, sizeof it->text, "none of the %u rules of %s%s matched a kernel%s",
                 group->n, cus_path_shown(group->first->file, it->path, PATH),
                 group->more ? " and other files" : "", it->passed);
    it->say(it->text);
}

/* ---- steps ---- */

static void judge_steps(struct unmet *it, const struct cus_rules *rules) {
    enum cus_mode mode = cus_options_graphs(cus_options());
    const struct cus_step_rule *step;
    const char *so = mode == CUS_MODE_FULL_DECODE_ONLY ? "nothing went into graphs"
                                                       : "each step went as in mode piecewise";
    if (mode != CUS_MODE_FULL_DECODE_ONLY && mode != CUS_MODE_FULL_AND_PIECEWISE)
        return;
    for (unsigned i = 0; (step = cus_rules_step_get(rules, i)); i++)
        if (cus_rules_step_matched(rules, i))
            return;
    step = cus_rules_step_get(rules, 0);
    if (!step)
        snprintf(it->text, sizeof it->text,
                 "mode %s needs a [step] section, and there is none: no step was a uniform decode, "
                 "and %s",
                 cus_mode_name(mode), so);
    else
        snprintf(it->text, sizeof it->text,
                 "mode %s: no kernel was the marker of a [step] section (marker = %.60s, "
                 "%s:%d): no step was a uniform decode, and %s%s",
                 cus_mode_name(mode), step->marker, cus_path_shown(step->file, it->path, PATH),
                 step->line, so, it->passed);
    it->say(it->text);
}

/* Was any kernel looked at? */
static bool saw_kernels(void) {
    unsigned at = 0;
    for (struct cus_tally *tally = NULL; (tally = cus_tally_next(tally, &at));)
        if (tally->kernel)
            return true;
    return false;
}

void cus_engine_unmet(void (*say)(const char *text)) {
    const struct cus_options *options = cus_options();
    const struct cus_rules *rules = cus_rules();
    struct unmet it = {.say = say};
    uint64_t passed = cus_why_let_pass();
    if (options->mode < CUS_MODE_PIECEWISE || !saw_kernels())
        return;
    if (passed)
        snprintf(it.passed, sizeof it.passed,
                 CUS_UNMET_OWN "%llu launches passed and were not looked at",
                 (unsigned long long)passed);
    if (!options->why) /* that report names each rule */
        judge_files(&it, rules, judge_each(&it, rules));
    judge_steps(&it, rules);
}
