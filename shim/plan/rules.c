/*
 * The list of rules. Loaded once, on the thread that asks first, and frozen then; deciding is a
 * walk over the list that takes no lock and is done once per function.
 */
#include "shim/plan/rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/plan/pattern.h"

struct entry {
    struct cus_rule shown;
    struct cus_pattern *pattern;
    char *file;
    struct entry *next;
};

struct cus_rules {
    unsigned count;
    struct entry *first;
    struct entry **end; /* where the next one goes */
};

static const char *const policies[] = {"graph", "uniform",     "uniform_single",
                                       "eager", "never_defer", NULL};

const char *cus_policy_name(enum cus_policy policy) {
    return policies[policy];
}

/* ---- loading ---- */

struct load {
    struct cus_rules *rules;
    cus_problem_fn *problem;
    void *context;
    int problems;
};

static void tell(struct load *load, const struct cus_setting *setting, const char *nearest,
                 const char *text) {
    struct cus_problem it = {setting->file, setting->line, text, nearest};
    load->problems++;
    if (load->problem)
        load->problem(load->context, &it);
}

static void free_entry(struct entry *entry) {
    if (entry) {
        cus_pattern_free(entry->pattern);
        cus_mem_free(entry->file);
        cus_mem_free(entry);
    }
}

static void add_rule(struct load *load, const struct cus_setting *setting, enum cus_policy policy) {
    char error[160], text[320];
    struct entry *entry = cus_mem_alloc(sizeof *entry);
    snprintf(error, sizeof error, "no memory");
    if (!entry || !(entry->file = cus_mem_text(setting->file)) ||
        !(entry->pattern = cus_pattern_new(setting->value, error, sizeof error))) {
        snprintf(text, sizeof text, "%s = %.100s: bad pattern: %s", setting->key, setting->value,
                 error);
        tell(load, setting, NULL, text);
        free_entry(entry);
        return;
    }
    entry->shown.policy = policy;
    entry->shown.pattern = cus_pattern_text(entry->pattern);
    entry->shown.file = entry->file;
    entry->shown.line = setting->line;
    *load->rules->end = entry;
    load->rules->end = &entry->next;
    load->rules->count++;
}

static void load_setting(void *context, const struct cus_setting *setting) {
    struct load *load = context;
    if (strcmp(setting->section, "rules") != 0)
        return; /* an option; told of by those who load options */
    for (int i = 0; policies[i]; i++)
        if (strcmp(setting->key, policies[i]) == 0) {
            add_rule(load, setting, (enum cus_policy)i);
            return;
        }
    char text[128];
    for (unsigned i = 0; cus_options_row(i); i++)
        if (strcmp(setting->key, cus_options_row(i)->key) == 0) {
            snprintf(text, sizeof text, "'%s' is no rule: it belongs above [rules]", setting->key);
            tell(load, setting, NULL, text);
            return;
        }
    snprintf(text, sizeof text, "unknown kind of rule '%.60s'", setting->key);
    tell(load, setting, cus_nearest(setting->key, policies), text);
}

static struct cus_rules *new_rules(void) {
    struct cus_rules *rules = cus_mem_alloc(sizeof *rules);
    if (rules)
        rules->end = &rules->first;
    return rules;
}

struct cus_rules *cus_rules_load(bool secure, cus_problem_fn *problem, void *context,
                                 int *problems) {
    struct load load = {new_rules(), problem, context, 0};
    /* The strongest source first. Problems of the reading itself are told by those who load
     * options. */
    for (int source = CUS_SOURCES - 1; load.rules && !secure && source >= 0; source--)
        cus_config_read((enum cus_source)source, load_setting, NULL, &load);
    if (problems)
        *problems += load.problems;
    return load.rules;
}

struct cus_rules *cus_rules_load_file(const char *path, cus_problem_fn *problem, void *context,
                                      int *problems) {
    struct load load = {new_rules(), problem, context, 0};
    if (load.rules)
        cus_config_read_file(path, true, load_setting, NULL, &load);
    if (problems)
        *problems += load.problems;
    return load.rules;
}

void cus_rules_free(struct cus_rules *rules) {
    if (!rules)
        return;
    for (struct entry *entry = rules->first, *next; entry; entry = next) {
        next = entry->next;
        free_entry(entry);
    }
    cus_mem_free(rules);
}

/* ---- asking ---- */

struct cus_verdict cus_rules_decide(const struct cus_rules *rules, const char *mangled) {
    struct cus_verdict verdict = {CUS_POLICY_GRAPH, -1};
    int index = 0;
    if (!mangled)
        return verdict;
    for (const struct entry *entry = rules->first; entry; entry = entry->next, index++)
        if (cus_pattern_matches(entry->pattern, mangled)) {
            verdict.policy = entry->shown.policy;
            verdict.rule = index;
            break;
        }
    return verdict;
}

const struct cus_step_rule *cus_rules_step(const struct cus_rules *rules, const char *mangled) {
    (void)rules;
    (void)mangled;
    return NULL;
}

unsigned cus_rules_count(const struct cus_rules *rules) {
    return rules->count;
}

const struct cus_rule *cus_rules_get(const struct cus_rules *rules, unsigned index) {
    const struct entry *entry = rules->first;
    while (entry && index--)
        entry = entry->next;
    return entry ? &entry->shown : NULL;
}

/* ---- the rules of this process ---- */

const struct cus_rules *cus_rules(void) {
    static struct cus_rules none; /* where there is no memory */
    static struct cus_rules *loaded;
    struct cus_rules *rules = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (rules)
        return rules;
    int saved = errno;
    cus_options(); /* first, so that warnings go where the log options say */
    /* Silently at first: two threads may be here at once, and one of them is enough to warn. */
    int problems = 0;
    bool secure = cus_config_secure();
    struct cus_rules *mine = cus_rules_load(secure, NULL, NULL, &problems);
    if (!mine)
        mine = &none;
    if (__atomic_compare_exchange_n(&loaded, &rules, mine, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        if (problems)
            cus_rules_free(cus_rules_load(secure, cus_problem_warn, NULL, NULL));
        rules = mine;
    } else if (mine != &none) {
        cus_rules_free(mine);
    }
    errno = saved;
    return rules;
}

void cus_rules_announce(void) {
    enum cus_mode mode = cus_options()->mode;
    if (mode == CUS_MODE_OFF)
        return;
    for (const struct entry *entry = cus_rules()->first; entry; entry = entry->next)
        if (entry->shown.policy != CUS_POLICY_GRAPH)
            return;
    CUS_LOG_ONCE(CUS_WARN, "rules", "no eager rule: every kernel may be put into a graph (mode %s)",
                 cus_mode_name(mode));
}
