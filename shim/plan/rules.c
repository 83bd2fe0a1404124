/*
 * The lists of rules and steps. Loaded once, on the thread that asks first. Afterwards rules come
 * only at the end of their list, so that the index of a rule stays. Deciding walks a list without a
 * lock, once per function.
 */
#include "shim/plan/rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/presets.h"
#include "shim/plan/calls.h"
#include "shim/plan/step_read.h"

struct entry {
    struct cus_rule shown;
    struct cus_pattern *pattern;
    char *file;
    bool matched;       /* atomic: a kernel that it matches came */
    struct entry *next; /* atomic */
};

struct step {
    struct cus_step_rule shown;
    struct cus_pattern *pattern;
    char *name, *file;
    bool matched; /* atomic: a kernel that is its marker came */
    struct step *next;
};

struct cus_rules {
    unsigned count;      /* atomic */
    unsigned sorts;      /* atomic: one bit for each enum cus_pattern_sort in the rules */
    struct entry *first; /* atomic */
    struct entry **end;  /* where the next entry is linked */
    unsigned steps;
    struct step *first_step;
    struct step **end_step;
};

static const char *const policies[] = {"graph", "uniform",     "uniform_single",
                                       "eager", "never_defer", NULL};

const char *cus_policy_name(enum cus_policy policy) {
    return policies[policy];
}

/* ---- loading ---- */

struct load {
    struct cus_rules *rules;
    enum cus_source source;
    const char *file;      /* of the rule before; only compared */
    bool preset;           /* it is a preset */
    const char *chosen_by; /* as in struct cus_rule */
    /* While a preset is added: the rules of this file were there before. */
    const char *of_file; /* only compared */
    bool known;
    cus_problem_fn *problem;
    void *context;
    int problems;
    /* The [step] section that is being read. */
    struct step *step; /* NULL: none */
    int head;          /* its line */
    unsigned given;    /* one bit for each key that it had */
    bool bad;          /* it has an error, so all of it is left out */
};

static void tell(struct load *load, const struct cus_setting *setting, const char *nearest,
                 const char *text) {
    struct cus_problem it = {setting->file, setting->line, text, nearest, false};
    load->problems++;
    if (load->problem)
        load->problem(load->context, &it);
}

/* The setting counts. */
static void notice(struct load *load, const struct cus_setting *setting, const char *nearest,
                   const char *text) {
    struct cus_problem it = {setting->file, setting->line, text, nearest, true};
    load->problems++;
    if (load->problem)
        load->problem(load->context, &it);
}

static int index_of(const char *word, const char *const *list) {
    for (int i = 0; list[i]; i++)
        if (strcmp(word, list[i]) == 0)
            return i;
    return -1;
}

static bool is_option(const char *key) {
    const struct cus_option_row *row;
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        if (strcmp(cus_options_key(key), row->key) == 0)
            return true;
    return false;
}

/* ---- rules ---- */

static void free_entry(struct entry *entry) {
    if (entry) {
        cus_pattern_free(entry->pattern);
        cus_mem_free(entry->file);
        cus_mem_free(entry);
    }
}

/* Does the pattern match any of the driver's calls? */
static bool names_a_call(const struct cus_pattern *pattern) {
    const struct cus_call_name *call;
    for (unsigned i = 0; (call = cus_calls_get(i)); i++)
        if (cus_pattern_matches_api(pattern, call->symbol))
            return true;
    return false;
}

bool cus_rules_any_name;

/* Tells of a pattern that matches nothing, or hardly anything. False: the rule is left out. */
static bool may_match(struct load *load, const struct cus_setting *setting) {
    char why[160], better[512], text[480];
    enum cus_doubt doubt =
        cus_pattern_doubt(setting->value, why, sizeof why, better, sizeof better);
    if (doubt == CUS_DOUBT_NONE || (cus_rules_any_name && load->source != CUS_SOURCE_NAMED))
        return true;
    snprintf(text, sizeof text, "%s = %.200s: matches %s: %s", setting->key, setting->value,
             doubt == CUS_DOUBT_NEVER ? "nothing" : "hardly what is meant", why);
    bool refused = doubt == CUS_DOUBT_NEVER && !cus_rules_any_name;
    (refused ? tell : notice)(load, setting, *better ? better : NULL, text);
    return !refused;
}

/* NULL: there is none. */
static struct entry *follow(struct entry *const *link) {
    return __atomic_load_n(link, __ATOMIC_ACQUIRE);
}

static void append_rule(struct load *load, const struct cus_setting *setting, struct entry *entry) {
    struct cus_rules *rules = load->rules;
    __atomic_fetch_or(&rules->sorts, 1u << cus_pattern_sort_of(entry->pattern), __ATOMIC_RELAXED);
    entry->shown.pattern = cus_pattern_text(entry->pattern);
    entry->shown.file = entry->file;
    entry->shown.line = setting->line;
    entry->shown.source = load->source;
    entry->shown.chosen_by = load->chosen_by;
    if (setting->line && load->file != setting->file)
        load->preset = cus_preset_is(setting->file);
    load->file = setting->line ? setting->file : NULL;
    entry->shown.preset = setting->line && load->preset;
    __atomic_store_n(rules->end, entry, __ATOMIC_RELEASE);
    rules->end = &entry->next;
    __atomic_fetch_add(&rules->count, 1, __ATOMIC_RELEASE);
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
    if (!may_match(load, setting)) {
        free_entry(entry);
        return;
    }
    if (cus_pattern_sort_of(entry->pattern) == CUS_PATTERN_API && !names_a_call(entry->pattern)) {
        snprintf(text, sizeof text, "%s = %.100s: the driver has no such call", setting->key,
                 setting->value);
        tell(load, setting, cus_calls_nearest(setting->value + strlen("api:")), text);
        free_entry(entry);
        return;
    }
    entry->shown.policy = policy;
    append_rule(load, setting, entry);
}

static void load_rule(struct load *load, const struct cus_setting *setting) {
    int policy = index_of(setting->key, policies);
    if (policy >= 0) {
        add_rule(load, setting, (enum cus_policy)policy);
        return;
    }
    char text[128];
    const char *nearest = NULL;
    if (is_option(setting->key) || strcmp(setting->key, "include") == 0) {
        snprintf(text, sizeof text, "'%s' is no rule: it belongs above [rules]", setting->key);
    } else if (index_of(setting->key, cus_step_keys) >= 0) {
        snprintf(text, sizeof text, "'%s' is no rule: it belongs in a [step] section",
                 setting->key);
    } else {
        snprintf(text, sizeof text, "unknown kind of rule '%.60s'", setting->key);
        nearest = cus_near(setting->key, policies);
    }
    tell(load, setting, nearest, text);
}

/* ---- sections of steps ---- */

static void free_step(struct step *step) {
    if (step) {
        cus_pattern_free(step->pattern);
        cus_mem_free(step->name);
        cus_mem_free(step->file);
        cus_mem_free(step);
    }
}

/* Reports a problem of a line in the section, with the section's head in front. */
static void tell_step(struct load *load, const struct cus_setting *setting, const char *nearest,
                      const char *text) {
    char all[400];
    const char *name = load->step->name;
    snprintf(all, sizeof all, "[step%s%s] %s", *name ? " " : "", name, text);
    tell(load, setting, nearest, all);
    load->bad = true;
}

static void open_step(struct load *load, const struct cus_setting *head) {
    struct step *step = cus_mem_alloc(sizeof *step);
    if (!step || !(step->name = cus_mem_text(head->value)) ||
        !(step->file = cus_mem_text(head->file))) {
        tell(load, head, NULL, "no memory for this section");
        free_step(step);
        return;
    }
    cus_step_defaults(&step->shown);
    step->shown.name = step->name;
    step->shown.file = step->file;
    load->step = step;
    load->head = head->line;
    load->given = 0;
    load->bad = false;
}

/* The section ends: becomes one more step if it has no error. */
static void close_step(struct load *load) {
    struct step *step = load->step;
    if (!step)
        return;
    struct cus_setting head = {"step", NULL, step->name, step->file, load->head};
    if (!(load->given & 1u << CUS_STEP_KEY_MARKER))
        tell_step(load, &head, NULL, "has no marker");
    load->step = NULL;
    if (load->bad) {
        free_step(step);
        return;
    }
    *load->rules->end_step = step;
    load->rules->end_step = &step->next;
    load->rules->steps++;
}

/* A line in the section could not be read; others report that. */
static void spoil_step(void *context, const struct cus_problem *problem) {
    struct load *load = context;
    (void)problem;
    load->bad = true;
}

static void tell_step_key(struct load *load, const struct cus_setting *setting) {
    char text[128];
    const char *nearest = NULL;
    if (is_option(setting->key) || strcmp(setting->key, "include") == 0) {
        snprintf(text, sizeof text, "'%s' is a setting: it belongs above all sections",
                 setting->key);
    } else if (index_of(setting->key, policies) >= 0) {
        snprintf(text, sizeof text, "'%s' is a rule: it belongs below [rules]", setting->key);
    } else {
        snprintf(text, sizeof text, "unknown key '%.60s'", setting->key);
        nearest = cus_near(setting->key, cus_step_keys);
    }
    tell_step(load, setting, nearest, text);
}

static void set_marker(struct load *load, const struct cus_setting *setting) {
    struct step *step = load->step;
    char error[300], why[160];
    step->pattern = cus_pattern_new(setting->value, why, sizeof why);
    step->shown.marker = step->pattern ? cus_pattern_text(step->pattern) : "";
    step->shown.line = setting->line;
    bool good = step->pattern && cus_pattern_sort_of(step->pattern) == CUS_PATTERN_NAME;
    if (step->pattern && !good)
        snprintf(why, sizeof why, "a marker is named by its kernel");
    if (good) {
        load->bad |= !may_match(load, setting);
        return;
    }
    snprintf(error, sizeof error, "marker = %.100s: bad pattern: %s", setting->value, why);
    tell_step(load, setting, NULL, error);
}

static void load_step(struct load *load, const struct cus_setting *setting) {
    struct step *step = load->step;
    char error[300];
    const char *nearest = NULL;
    int key = index_of(setting->key, cus_step_keys);
    if (!step)
        return; /* there was no memory for the section */
    if (key < 0) {
        tell_step_key(load, setting);
        return;
    }
    if (load->given & 1u << key) {
        snprintf(error, sizeof error, "%s is there twice", setting->key);
        tell_step(load, setting, NULL, error);
        return;
    }
    load->given |= 1u << key;
    if (key == CUS_STEP_KEY_MARKER)
        set_marker(load, setting);
    else if (!cus_step_set(&step->shown, (enum cus_step_key)key, setting->value, error,
                           sizeof error, &nearest))
        tell_step(load, setting, nearest, error);
}

/* ---- a preset that a library chooses ---- */

static bool has_file(const struct cus_rules *rules, const char *file) {
    for (const struct entry *entry = follow(&rules->first); entry; entry = follow(&entry->next))
        if (strcmp(entry->shown.file, file) == 0)
            return true;
    return false;
}

static void load_from_preset(void *context, const struct cus_setting *setting) {
    struct load *load = context;
    if (!setting->key || strcmp(setting->section, "rules") != 0)
        return;
    if (load->of_file != setting->file)
        load->known = has_file(load->rules, setting->file);
    load->of_file = setting->file;
    if (!load->known)
        load_rule(load, setting);
}

/* ---- files ---- */

static void load_setting(void *context, const struct cus_setting *setting) {
    struct load *load = context;
    bool step = strcmp(setting->section, "step") == 0;
    if (!setting->key) {
        close_step(load);
        if (step)
            open_step(load, setting);
    } else if (step) {
        load_step(load, setting);
    } else if (strcmp(setting->section, "rules") == 0) {
        load_rule(load, setting);
    } /* else an option: loading options reports it */
}

static struct cus_rules *new_rules(void) {
    struct cus_rules *rules = cus_mem_alloc(sizeof *rules);
    if (rules) {
        rules->end = &rules->first;
        rules->end_step = &rules->first_step;
    }
    return rules;
}

struct cus_rules *cus_rules_load(bool secure, cus_problem_fn *problem, void *context,
                                 int *problems) {
    struct load load = {.rules = new_rules(), .problem = problem, .context = context};
    /* The strongest source first. Loading options reports lines that could not be read. */
    for (int source = CUS_SOURCES - 1; load.rules && !secure && source >= 0; source--) {
        load.source = (enum cus_source)source;
        load.file = NULL; /* the next source's may lie where the last one's lay */
        cus_config_read_strongest(load.source, load_setting, spoil_step, &load);
        close_step(&load);
    }
    if (problems)
        *problems += load.problems;
    return load.rules;
}

struct cus_rules *cus_rules_load_file(const char *path, cus_problem_fn *problem, void *context,
                                      int *problems) {
    struct load load = {.rules = new_rules(), .problem = problem, .context = context};
    if (load.rules) {
        load.source = CUS_SOURCE_NAMED;
        cus_config_read_named(path, true, load_setting, spoil_step, &load);
        close_step(&load);
    }
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
    for (struct step *step = rules->first_step, *next; step; step = next) {
        next = step->next;
        free_step(step);
    }
    cus_mem_free(rules);
}

/* ---- asking ---- */

static bool matches(const struct cus_pattern *pattern, const struct cus_subject *subject) {
    return (subject->name && cus_pattern_matches(pattern, subject->name)) ||
           (subject->base &&
            cus_pattern_matches_names(pattern, subject->base, subject->qualified)) ||
           (subject->lib && cus_pattern_matches_lib(pattern, subject->lib)) ||
           (subject->call && cus_pattern_matches_api(pattern, subject->call));
}

struct cus_verdict cus_rules_ask(const struct cus_rules *rules, const struct cus_subject *subject,
                                 int behind) {
    struct cus_verdict verdict = {CUS_POLICY_GRAPH, -1};
    int at = 0;
    for (const struct entry *entry = follow(&rules->first); entry;
         entry = follow(&entry->next), at++)
        if (at > behind && matches(entry->pattern, subject)) {
            verdict.policy = entry->shown.policy;
            verdict.rule = at;
            break;
        }
    return verdict;
}

struct cus_verdict cus_rules_decide(const struct cus_rules *rules, const char *mangled) {
    const struct cus_subject kernel = {.name = mangled};
    return cus_rules_ask(rules, &kernel, -1);
}

bool cus_rules_have(const struct cus_rules *rules, enum cus_pattern_sort sort) {
    return __atomic_load_n(&rules->sorts, __ATOMIC_RELAXED) >> sort & 1;
}

const struct cus_step_rule *cus_rules_step_of(const struct cus_rules *rules,
                                              const struct cus_subject *subject) {
    for (struct step *step = rules->first_step; step; step = step->next)
        if (matches(step->pattern, subject)) {
            __atomic_store_n(&step->matched, true, __ATOMIC_RELAXED);
            return &step->shown;
        }
    return NULL;
}

const struct cus_step_rule *cus_rules_step(const struct cus_rules *rules, const char *mangled) {
    const struct cus_subject kernel = {.name = mangled};
    return cus_rules_step_of(rules, &kernel);
}

bool cus_rules_step_matched(const struct cus_rules *rules, unsigned index) {
    const struct step *step = rules->first_step;
    while (step && index--)
        step = step->next;
    return step && __atomic_load_n(&step->matched, __ATOMIC_RELAXED);
}

void cus_rules_note(const struct cus_rules *rules, const struct cus_subject *subject) {
    for (struct entry *entry = follow(&rules->first); entry; entry = follow(&entry->next))
        if (!__atomic_load_n(&entry->matched, __ATOMIC_RELAXED) && matches(entry->pattern, subject))
            __atomic_store_n(&entry->matched, true, __ATOMIC_RELAXED);
}

static const struct entry *entry_at(const struct cus_rules *rules, unsigned index) {
    const struct entry *entry = follow(&rules->first);
    while (entry && index--)
        entry = follow(&entry->next);
    return entry;
}

bool cus_rules_matched(const struct cus_rules *rules, unsigned index) {
    const struct entry *entry = entry_at(rules, index);
    return entry && __atomic_load_n(&entry->matched, __ATOMIC_RELAXED);
}

unsigned cus_rules_count(const struct cus_rules *rules) {
    return __atomic_load_n(&rules->count, __ATOMIC_ACQUIRE);
}

unsigned cus_rules_steps(const struct cus_rules *rules) {
    return rules->steps;
}

const struct cus_step_rule *cus_rules_step_get(const struct cus_rules *rules, unsigned index) {
    const struct step *step = rules->first_step;
    while (step && index--)
        step = step->next;
    return step ? &step->shown : NULL;
}

const struct cus_rule *cus_rules_get(const struct cus_rules *rules, unsigned index) {
    const struct entry *entry = entry_at(rules, index);
    return entry ? &entry->shown : NULL;
}

/* ---- the rules of this process ---- */

static struct cus_rules none;    /* used if memory ran out */
static struct cus_rules *loaded; /* atomic: set once, by the first call */

const struct cus_rules *cus_rules(void) {
    struct cus_rules *rules = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (rules)
        return rules;
    int saved = errno;
    cus_options(); /* first, so that warnings go where the log options say */
    /* First without warnings: two threads may be here at once, and one of them is enough to
     * warn. */
    int problems = 0;
    bool secure = cus_config_secure();
    struct cus_rules *mine = cus_rules_load(secure, NULL, NULL, &problems);
    if (!mine)
        mine = &none;
    else if (cus_options()->presets == CUS_PRESETS_AUTO)
        mine->sorts |= 1u << CUS_PATTERN_LIB; /* rules may come for code that is loaded before */
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

bool cus_rules_add_preset(const char *path, const char *library) {
    struct cus_rules *rules = (struct cus_rules *)cus_rules();
    struct load load = {.rules = rules,
                        .source = CUS_SOURCE_LAUNCHER,
                        .chosen_by = library,
                        .problem = cus_problem_warn};
    unsigned before = cus_rules_count(rules);
    if (rules == &none)
        return false;
    cus_config_read_named(path, true, load_from_preset, cus_problem_warn, &load);
    return cus_rules_count(rules) > before;
}

void cus_rules_drop(void) {
    if (loaded != &none)
        cus_rules_free(loaded);
    loaded = NULL;
}

void cus_rules_announce(void) {
    enum cus_mode mode = cus_options()->mode, graphs = cus_options_graphs(cus_options());
    if (mode < CUS_MODE_PIECEWISE || (graphs == CUS_MODE_FULL_DECODE_ONLY && !cus_rules()->steps))
        return;
    for (const struct entry *entry = follow(&cus_rules()->first); entry;
         entry = follow(&entry->next))
        if (entry->shown.policy != CUS_POLICY_GRAPH)
            return;
    CUS_LOG_ONCE(CUS_WARN, "rules", "no eager rule: every kernel may be put into a graph (mode %s)",
                 cus_mode_name(mode));
}
