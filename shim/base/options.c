/*
 * The options of the process. cus_options() loads them once, on the thread whose CUDA call needs
 * them first. Later callers, on any thread, only load a pointer. No lock is held while files are
 * read: two threads that come at once both load, and one result stays.
 */
#include "shim/base/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/log.h"
#include "shim/base/mem.h"

/* The kinds below KIND_UINT take one word of a list. */
enum kind {
    KIND_MODE,
    KIND_PROFILE,
    KIND_GRAPHS,
    KIND_PLANT,
    KIND_PRESETS,
    KIND_UINT,
    KIND_BOOL,
    KIND_PATH,
    KIND_LOG
};

struct row {
    struct cus_option_row shown;
    enum kind kind;
    size_t offset;
    uint32_t min, max;
};

static const struct row rows[] = {
#define CUS_OPTION(key, kind, value, min, max, text)                                               \
    {{#key, value, text}, KIND_##kind, offsetof(struct cus_options, key), min, max},
#include "shim/base/options.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };
static const struct cus_option_old old_keys[] = {
#define CUS_OPTION_WAS(old, key) {#old, #key},
#include "shim/base/options.def"
};
enum { OLD_KEYS = sizeof old_keys / sizeof old_keys[0] };
_Static_assert(ROWS <= sizeof((struct cus_options *)0)->owned / sizeof(char *), "owned[] is short");

static const char *const modes[] = {
    "off",    "observe", "eager", "piecewise", "full", "full_decode_only", "full_and_piecewise",
    "verify", NULL};
static const char *const profiles[] = {"eager", "ignore", NULL};
static const char *const graphs[] = {"piecewise", "full", "full_decode_only", "full_and_piecewise",
                                     NULL};
static const char *const plants[] = {"none", "unpatched", "dropped", "swapped", NULL};
static const char *const presets[] = {"off", "auto", NULL};
static const char *const *const words_of[] = {modes, profiles, graphs, plants, presets};
static const char *const no_words[] = {"no", "off", "false", "0", NULL};
/* The keys of [rules] (plan/rules.c) and of [step] (plan/step_read.c), for users who forget the
 * section's head. */
static const char *const rule_words[] = {"eager",   "never_defer",    "graph",
                                         "uniform", "uniform_single", NULL};
static const char *const step_words[] = {"marker", "tokens", "tokens_each",
                                         "single", "sizes",  NULL};
static const char *const yes_words[] = {"yes", "on", "true", "1", NULL};

/* ---- values ---- */

static int index_of(const char *word, const char *const *list) {
    for (int i = 0; list[i]; i++)
        if (strcmp(word, list[i]) == 0)
            return i;
    return -1;
}

static void list_words(const char *const *list, char *out, size_t bytes) {
    size_t used = 0;
    for (int i = 0; list[i] && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", i ? ", " : "", list[i]);
}

static void *field_of(struct cus_options *options, const struct row *row) {
    return (char *)options + row->offset;
}

/* True: decimal digits and nothing else, within the row's bounds. */
static bool parse_uint(const char *text, const struct row *row, uint32_t *out) {
    uint64_t value = 0;
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 10)
        return false;
    for (; *text; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    *out = (uint32_t)value;
    return value >= row->min && value <= row->max;
}

static bool set_text(struct cus_options *out, const struct row *row, const char *text) {
    char **owned = &out->owned[row - rows];
    char *copy = cus_mem_text(text);
    if (!copy)
        return false;
    cus_mem_free(*owned);
    *owned = copy;
    *(const char **)field_of(out, row) = copy;
    return true;
}

/* Sets one field. False: *out is unchanged, `error` says what is allowed, and *nearest which
 * value may have been meant. */
static bool set_row(struct cus_options *out, const struct row *row, const char *text, char *error,
                    size_t bytes, const char **nearest) {
    const char *const *words = row->kind < KIND_UINT ? words_of[row->kind] : NULL;
    char allowed[128];
    int index;
    *nearest = NULL;
    switch (row->kind) {
    case KIND_MODE:
    case KIND_PROFILE:
    case KIND_GRAPHS:
    case KIND_PLANT:
    case KIND_PRESETS:
        index = index_of(text, words);
        if (index >= 0) {
            *(int *)field_of(out, row) = index;
            return true;
        }
        *nearest = cus_near(text, words);
        list_words(words, allowed, sizeof allowed);
        snprintf(error, bytes, "%s = %.60s: must be one of %s", row->shown.key, text, allowed);
        return false;
    case KIND_UINT: {
        uint32_t value;
        if (parse_uint(text, row, &value)) {
            *(uint32_t *)field_of(out, row) = value;
            return true;
        }
        snprintf(error, bytes, "%s = %.60s: must be a whole number from %u to %u", row->shown.key,
                 text, row->min, row->max);
        return false;
    }
    case KIND_BOOL:
        if (index_of(text, yes_words) >= 0 || index_of(text, no_words) >= 0) {
            *(bool *)field_of(out, row) = index_of(text, yes_words) >= 0;
            return true;
        }
        snprintf(error, bytes, "%s = %.60s: must be yes or no", row->shown.key, text);
        return false;
    case KIND_LOG:
        if (cus_log_spec_error(text)) {
            snprintf(error, bytes,
                     "%s = %.60s: must be a level (error, warn, info, debug), then domain:level",
                     row->shown.key, cus_log_spec_error(text));
            return false;
        }
        break;
    case KIND_PATH:
        break;
    }
    if (set_text(out, row, text))
        return true;
    snprintf(error, bytes, "%s: no memory", row->shown.key);
    return false;
}

static const struct row *row_of(const char *key) {
    for (unsigned i = 0; i < ROWS; i++)
        if (strcmp(rows[i].shown.key, key) == 0)
            return &rows[i];
    return NULL;
}

static const char *nearest_key(const char *key) {
    const char *keys[ROWS + 1];
    for (unsigned i = 0; i < ROWS; i++)
        keys[i] = rows[i].shown.key;
    keys[ROWS] = NULL;
    return cus_near(key, keys);
}

/* A good value that hardly does what is meant. */
static void judge_value(const struct row *row, const struct cus_setting *setting,
                        cus_problem_fn *problem, void *context) {
    char text[256], domain[64];
    const char *unknown = row->kind == KIND_LOG ? cus_log_spec_unknown(setting->value) : NULL;
    if (!unknown || !problem)
        return;
    snprintf(domain, sizeof domain, "%.*s", (int)strcspn(unknown, ":"), unknown);
    snprintf(text, sizeof text, "%s = %.60s: no line has the domain '%s'", row->shown.key,
             setting->value, domain);
    struct cus_problem it = {setting->file, setting->line, text, cus_near(domain, cus_log_domains),
                             true};
    problem(context, &it);
}

bool cus_options_set(struct cus_options *out, const struct cus_setting *setting,
                     cus_problem_fn *problem, void *context) {
    const char *key = cus_options_key(setting->key), *nearest = NULL;
    const struct row *row = row_of(key);
    char error[256];
    bool set = row && set_row(out, row, setting->value, error, sizeof error, &nearest);
    if (set)
        judge_value(row, setting, problem, context);
    if (set && key == setting->key)
        return true;
    if (set) {
        snprintf(error, sizeof error, "'%s' is called %s now; the next version has no '%s'",
                 setting->key, key, setting->key);
    } else if (!row && index_of(setting->key, rule_words) >= 0) {
        snprintf(error, sizeof error, "'%s' is a rule: it belongs below [rules]", setting->key);
    } else if (!row && index_of(setting->key, step_words) >= 0) {
        snprintf(error, sizeof error, "'%s' belongs in a [step] section", setting->key);
    } else if (!row) {
        nearest = nearest_key(setting->key);
        snprintf(error, sizeof error, "unknown key '%.60s'", setting->key);
    }
    struct cus_problem it = {setting->file, setting->line, error, nearest, set};
    if (problem)
        problem(context, &it);
    return set;
}

/* ---- loading ---- */

struct load {
    struct cus_options *out;
    cus_problem_fn *problem;
    void *context;
    int problems;
    enum cus_source source;
    uint64_t named; /* a bit per row that this file, or the environment, has set by its name now */
    const char *file; /* that it is; NULL: the environment. Only compared */
};
_Static_assert(ROWS <= 64, "a bit per row");

static void load_problem(void *context, const struct cus_problem *problem) {
    struct load *load = context;
    load->problems++;
    if (load->problem)
        load->problem(load->context, problem);
}

static void load_setting(void *context, const struct cus_setting *setting) {
    struct load *load = context;
    if (*setting->section)
        return; /* a head of a section has no key */
    if (setting->line && setting->file != load->file)
        load->named = 0; /* the next file of the source */
    load->file = setting->line ? setting->file : NULL;
    const char *key = cus_options_key(setting->key);
    const struct row *row = row_of(key);
    uint64_t bit = row ? (uint64_t)1 << (row - rows) : 0;
    if (key == setting->key) {
        load->named |= bit;
    } else if (load->named & bit) { /* an old name never beats the name now */
        char text[160];
        snprintf(text, sizeof text, "'%s' is called %s now, which is set as well and counts",
                 setting->key, key);
        load_problem(load, &(struct cus_problem){setting->file, setting->line, text, NULL, true});
        return;
    }
    if (cus_options_set(load->out, setting, load_problem, load) && strcmp(key, "cache_dir") == 0)
        load->out->cache_offered = load->source == CUS_SOURCE_LAUNCHER;
}

static void set_built_in(struct cus_options *out) {
    char error[256];
    const char *nearest;
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (row->kind == KIND_PATH || row->kind == KIND_LOG)
            *(const char **)field_of(out, row) = row->shown.value; /* needs no memory */
        else
            set_row(out, row, row->shown.value, error, sizeof error, &nearest);
    }
}

int cus_options_load(struct cus_options *out, bool secure, cus_problem_fn *problem, void *context) {
    struct load load = {.out = out, .problem = problem, .context = context};
    set_built_in(out);
    if (secure) {
        out->mode = CUS_MODE_OFF;
        return 0;
    }
    for (int source = 0; source < CUS_SOURCES; source++, load.named = 0) {
        load.source = (enum cus_source)source;
        cus_config_read(load.source, load_setting, load_problem, &load);
    }
    return load.problems;
}

void cus_options_free(struct cus_options *options) {
    for (unsigned i = 0; i < ROWS; i++)
        cus_mem_free(options->owned[i]);
    memset(options->owned, 0, sizeof options->owned);
}

/* Used if there is no memory for the real options. Its mode is off. */
static struct cus_options fallback;
static struct cus_options *loaded; /* atomic: set once, by the first call */

const struct cus_options *cus_options(void) {
    struct cus_options *options = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (options)
        return options;
    int saved = errno;
    struct cus_options *mine = cus_mem_alloc(sizeof *mine);
    /* Without messages: the options say where messages go. */
    int problems = mine ? cus_options_load(mine, cus_config_secure(), NULL, NULL) : 0;
    if (!mine)
        mine = &fallback;
    if (mine == &fallback)
        fallback.stats = fallback.log = fallback.log_file = fallback.cache_dir = "";
    if (!__atomic_compare_exchange_n(&loaded, &options, mine, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (mine != &fallback) { /* another thread was faster */
            cus_options_free(mine);
            cus_mem_free(mine);
        }
        errno = saved;
        return options;
    }
    cus_log_configure(mine->log, mine->log_file);
    if (problems) {
        struct cus_options again; /* once more, to report the problems */
        cus_options_load(&again, cus_config_secure(), cus_problem_warn, NULL);
        cus_options_free(&again);
    }
    errno = saved;
    return mine;
}

void cus_options_drop(void) {
    if (loaded && loaded != &fallback) {
        cus_options_free(loaded);
        cus_mem_free(loaded);
    }
    loaded = NULL;
}

/* ---- the table ---- */

const struct cus_option_row *cus_options_row(unsigned index) {
    return index < ROWS ? &rows[index].shown : NULL;
}

const struct cus_option_old *cus_options_old(unsigned index) {
    return index < OLD_KEYS ? &old_keys[index] : NULL;
}

const char *cus_options_key(const char *key) {
    for (unsigned i = 0; i < OLD_KEYS; i++)
        if (strcmp(old_keys[i].old, key) == 0)
            return old_keys[i].key;
    return key;
}

void cus_options_allowed(unsigned index, char *out, size_t bytes) {
    const struct row *row = &rows[index];
    switch (row->kind) {
    case KIND_MODE:
    case KIND_PROFILE:
    case KIND_GRAPHS:
    case KIND_PLANT:
    case KIND_PRESETS:
        list_words(words_of[row->kind], out, bytes);
        break;
    case KIND_UINT:
        snprintf(out, bytes, "%u .. %u", row->min, row->max);
        break;
    case KIND_BOOL:
        snprintf(out, bytes, "yes, no");
        break;
    case KIND_PATH:
        snprintf(out, bytes, "a path");
        break;
    case KIND_LOG:
        snprintf(out, bytes, "level[,domain:level]...");
        break;
    }
}

const char *const *cus_options_words(unsigned index) {
    static const char *const yes_no[] = {"yes", "no", NULL};
    enum kind kind = rows[index].kind;
    return kind < KIND_UINT ? words_of[kind] : kind == KIND_BOOL ? yes_no : NULL;
}

void cus_options_show(const struct cus_options *options, unsigned index, char *out, size_t bytes) {
    const struct row *row = &rows[index];
    const void *field = (const char *)options + row->offset;
    switch (row->kind) {
    case KIND_MODE:
    case KIND_PROFILE:
    case KIND_GRAPHS:
    case KIND_PLANT:
    case KIND_PRESETS:
        snprintf(out, bytes, "%s", words_of[row->kind][*(const int *)field]);
        break;
    case KIND_UINT:
        snprintf(out, bytes, "%u", *(const uint32_t *)field);
        break;
    case KIND_BOOL:
        snprintf(out, bytes, "%s", *(const bool *)field ? "yes" : "no");
        break;
    case KIND_PATH:
    case KIND_LOG:
        snprintf(out, bytes, "%s", *(const char *const *)field);
        break;
    }
}

const char *cus_mode_name(enum cus_mode mode) {
    return modes[mode];
}

enum cus_mode cus_options_graphs(const struct cus_options *options) {
    return options->mode == CUS_MODE_VERIFY
               ? (enum cus_mode)(CUS_MODE_PIECEWISE + (int)options->verify_mode)
               : options->mode;
}
