/*
 * Reads just enough JSON for the facts of a trace. The verbs that play traces call it. It never
 * trusts the text.
 */
#include "tools/whatif/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "shim/plan/step_read.h"
#include "tools/trace/text_file.h"

enum { DEPTH = 32, NAME = 256, TEXT = 16384 };

/* ---- JSON ---- */

static const char *skip_space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Behind the string that begins here; NULL where it is none. Cut to `bytes` in `out` (may be NULL).
 */
static const char *read_string(const char *at, char *out, size_t bytes) {
    size_t used = 0;
    if (*at++ != '"')
        return NULL;
    for (; *at && *at != '"'; at++) {
        char byte = *at;
        if (byte == '\\') {
            byte = *++at;
            if (!byte)
                return NULL;
            if (byte == 'u') { /* bytes are written so, whatever they encode */
                char digits[5] = "";
                if (strspn(at + 1, "0123456789abcdefABCDEF") < 4)
                    return NULL;
                memcpy(digits, at + 1, 4);
                at += 4;
                byte = (char)strtoul(digits, NULL, 16);
                byte = byte ? byte : '?';
            } else {
                byte = byte == 'n' ? '\n' : byte == 't' ? '\t' : byte == 'r' ? '\r' : byte;
            }
        }
        if (out && used + 1 < bytes)
            out[used++] = byte;
    }
    if (out)
        out[used] = 0;
    return *at ? at + 1 : NULL;
}

static const char *skip_value(const char *at, unsigned depth) {
    at = skip_space(at);
    if (*at == '"')
        return read_string(at, NULL, 0);
    if (*at != '{' && *at != '[') {
        size_t bytes = strcspn(at, ",]} \t\r\n");
        return bytes ? at + bytes : NULL;
    }
    char open = *at, close = open == '{' ? '}' : ']';
    at = skip_space(at + 1);
    while (*at != close) {
        if (open == '{') {
            at = read_string(at, NULL, 0);
            at = at ? skip_space(at) : NULL;
            if (!at || *at++ != ':')
                return NULL;
        }
        at = depth < DEPTH ? skip_value(at, depth + 1) : NULL;
        if (!at)
            return NULL;
        at = skip_space(at);
        if (*at == ',')
            at = skip_space(at + 1);
        else if (*at != close)
            return NULL;
    }
    return at + 1;
}

/* Calls `each` for the plain values. */
static bool read_entries(const char *at, whatif_facts_fn *each, void *context) {
    char name[NAME], *value = malloc(TEXT);
    at = skip_space(at);
    if (!value || (*at != '{' && *at != '[') || !skip_value(at, 0)) {
        free(value);
        return false;
    }
    char open = *at, close = open == '{' ? '}' : ']';
    for (at = skip_space(at + 1); *at != close;) {
        name[0] = 0;
        if (open == '{')
            at = skip_space(skip_space(read_string(at, name, sizeof name)) + 1);
        const char *end = skip_value(at, 0);
        if (*at == '"')
            read_string(at, value, TEXT);
        else
            snprintf(value, TEXT, "%.*s", (int)(end - at), at);
        if (strcmp(value, "null") != 0)
            each(context, name, value);
        at = skip_space(end);
        at = *at == ',' ? skip_space(at + 1) : at;
    }
    free(value);
    return true;
}

bool whatif_facts_read(const char *json, const char *key, whatif_facts_fn *each, void *context) {
    char name[NAME];
    const char *at = skip_space(json);
    if (!key)
        return read_entries(at, each, context);
    if (*at != '{' || !skip_value(at, 0))
        return false;
    for (at = skip_space(at + 1); *at != '}';) {
        at = skip_space(skip_space(read_string(at, name, sizeof name)) + 1);
        if (strcmp(name, key) == 0)
            return read_entries(at, each, context);
        at = skip_space(skip_value(at, 0));
        at = *at == ',' ? skip_space(at + 1) : at;
    }
    return false;
}

/* ---- the configuration ---- */

struct writing {
    FILE *to;
    bool verify;
};

/* A setting of its own line, or none: a key that is more than a word, and a value of several lines,
 * would be other settings or heads of sections. */
static void put(FILE *to, const char *key, const char *sort, const char *value) {
    if (*key && !key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")] && *value &&
        !strchr(value, '\n'))
        fprintf(to, "%s = %s%s\n", key, sort, value);
}

static bool begins_with(const char *key, const char *const *beginnings) {
    for (unsigned i = 0; beginnings[i]; i++)
        if (strncmp(key, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* How much memory graphs and the library may take. */
static const char *const limits[] = {"graph_mb", "host_mb", "cache_mb", NULL};

/* A trace may be a stranger's. Where files are written, what is said, how much memory may be taken
 * and which drivers are trusted is for the user of this machine to say. */
static bool is_of_the_machine(const char *key) {
    static const char *const keys[] = {"stats",  "log",   "why",    "live", "verify",
                                       "record", "cache", "trust_", NULL};
    return begins_with(key, keys) || begins_with(key, limits);
}

static const struct cus_option_row *option(const char *key) {
    const struct cus_option_row *row;
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        if (strcmp(row->key, cus_options_key(key)) == 0)
            return row;
    return NULL;
}

/* A mode in which nothing is verified: that would take memory of the GPU, as a bound does. */
static void put_mode(struct writing *w, const char *value) {
    for (int mode = CUS_MODE_OFF; mode < CUS_MODE_VERIFY; mode++)
        if (strcmp(value, cus_mode_name((enum cus_mode)mode)) == 0)
            put(w->to, "mode", "", value);
}

static void put_option(void *context, const char *name, const char *value) {
    struct writing *w = context;
    if (strcmp(name, "mode") == 0 && strcmp(value, "verify") == 0)
        w->verify = true; /* its graphs are those of verify_mode */
    else if (strcmp(name, "mode") == 0)
        put_mode(w, value);
    else if (option(name) && !is_of_the_machine(name))
        put(w->to, cus_options_key(name), "", value); /* a trace may be of an earlier version */
}

static void put_verify_mode(void *context, const char *name, const char *value) {
    struct writing *w = context;
    if (strcmp(name, "verify_mode") == 0)
        put_mode(w, value);
}

struct rule {
    char policy[32], pattern[TEXT];
};

static void take_rule(void *context, const char *name, const char *value) {
    struct rule *rule = context;
    if (strcmp(name, "policy") == 0)
        snprintf(rule->policy, sizeof rule->policy, "%s", value);
    else if (strcmp(name, "pattern") == 0)
        snprintf(rule->pattern, sizeof rule->pattern, "%s", value);
}

static void put_rule(void *context, const char *name, const char *value) {
    struct writing *w = context;
    static struct rule rule;
    (void)name;
    rule.policy[0] = rule.pattern[0] = 0;
    if (whatif_facts_read(value, NULL, take_rule, &rule))
        put(w->to, rule.policy, "", rule.pattern);
}

static void put_step_key(void *context, const char *name, const char *value) {
    struct writing *w = context;
    for (unsigned i = 0; cus_step_keys[i]; i++)
        if (strcmp(name, cus_step_keys[i]) == 0)
            put(w->to, name, "", value);
}

static void take_name(void *context, const char *name, const char *value) {
    if (strcmp(name, "name") == 0 && !strpbrk(value, "]\n"))
        snprintf(context, NAME, " %s", value);
}

static void put_step(void *context, const char *name, const char *value) {
    struct writing *w = context;
    char title[NAME] = "";
    (void)name;
    if (!whatif_facts_read(value, NULL, take_name, title))
        return;
    fprintf(w->to, "[step%s]\n", title[1] ? title : "");
    whatif_facts_read(value, NULL, put_step_key, w);
}

/* A rule for each kernel, memset, copy or record that a rule made go out by itself. */
static void guess_rules(FILE *to, const struct cst_trace *trace) {
    static const struct {
        const char *why, *policy;
    } known[] = {{"rule", "eager"}, {"uniform_rule", "uniform"}, {"never_defer", "never_defer"}};
    bool *told = calloc(trace->n_kinds + 1, sizeof *told);
    for (size_t i = 0; told && i < trace->n_events; i++) {
        const struct cst_op *op = (const struct cst_op *)trace->events[i];
        if (op->head.type != CST_OP || op->head.flags != CST_EAGER || told[op->kind])
            continue;
        const struct cst_kind *kind = trace->kinds[op->kind];
        for (unsigned k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(cst_string(trace, op->why), known[k].why) == 0) {
                told[op->kind] = true;
                put(to, known[k].policy,
                    kind->op == CST_OP_LAUNCH ? "mangled:" : "api:", cst_string(trace, kind->name));
            }
    }
    free(told);
}

struct list {
    char *text;
    size_t bytes, used;
};

static void take_limit(void *context, const char *name, const char *value) {
    struct list *list = context;
    const struct cus_option_row *row = begins_with(name, limits) ? option(name) : NULL;
    if (!row || strcmp(row->value, value) == 0 || value[strspn(value, "0123456789")] ||
        list->used >= list->bytes)
        return;
    int n = snprintf(list->text + list->used, list->bytes - list->used, "%s%s = %s",
                     list->used ? ", " : "", name, value);
    list->used += n > 0 ? (size_t)n : 0;
}

bool whatif_facts_not_taken(const struct cst_trace *trace, char *out, size_t bytes) {
    struct list list = {.text = out, .bytes = bytes};
    if (bytes)
        *out = 0;
    whatif_facts_read(trace->facts, "options", take_limit, &list);
    return list.used > 0;
}

char *whatif_facts_config(const struct cst_trace *trace, bool rules, bool *guessed) {
    char *text = NULL;
    size_t bytes;
    struct writing w = {.to = text_file_open(&text, &bytes)};
    *guessed = false;
    if (!w.to)
        return NULL;
    bool found = whatif_facts_read(trace->facts, "options", put_option, &w);
    if (w.verify)
        whatif_facts_read(trace->facts, "options", put_verify_mode, &w);
    whatif_facts_read(trace->facts, "steps", put_step, &w);
    fputs("[rules]\n", w.to);
    if (rules && !whatif_facts_read(trace->facts, "rules", put_rule, &w)) {
        *guessed = true;
        guess_rules(w.to, trace);
    }
    if (!text_file_close(w.to, &text) || !found) {
        free(text);
        return NULL;
    }
    return text;
}
