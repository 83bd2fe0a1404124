/*
 * Reads the values of a [step] section. rules.c calls it when the rules are loaded, on the thread
 * that asks for them first. Allocates nothing, holds no lock.
 */
#include "shim/plan/step_read.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/config.h"

const char *const cus_step_keys[CUS_STEP_KEYS + 1] = {"marker", "tokens", "tokens_each", "uniform",
                                                      "single", "sizes",  NULL};

/* In the order of enum cus_step_subject and enum cus_step_compare. */
static const char *const subjects[] = {"x", "y", "z", "tokens", NULL};
static const char *const dimensions[] = {"x", "y", "z", NULL};
static const char *const compares[] = {"", "==", "!=", "<=", ">=", "<", ">", NULL};

void cus_step_defaults(struct cus_step_rule *rule) {
    memset(rule, 0, sizeof *rule);
    rule->name = rule->marker = rule->file = "";
    rule->tokens = CUS_STEP_X;
    rule->tokens_each = 1;
}

/* ---- parts of a text ---- */

static const char *behind_blanks(const char *at) {
    return at + strspn(at, " \t");
}

/* Reads decimal digits and the blanks around them. Returns what follows, or NULL if there are no
 * digits or too many. */
static const char *take_number(const char *at, uint32_t *out) {
    uint64_t value = 0;
    at = behind_blanks(at);
    const char *from = at;
    for (; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    *out = (uint32_t)value;
    return at == from || value > UINT32_MAX ? NULL : behind_blanks(at);
}

/* The index of the word that the first `bytes` of text are; -1: none. */
static int word_of(const char *text, size_t bytes, const char *const *words) {
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == bytes && strncmp(words[i], text, bytes) == 0)
            return i;
    return -1;
}

static const char *nearest_of(const char *text, size_t bytes, const char *const *words) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(bytes < sizeof word ? bytes : sizeof word), text);
    return cus_nearest(word, words);
}

/* ---- conditions ---- */

static bool take_condition(const char *text, struct cus_step_condition *out, const char **nearest) {
    size_t word = strcspn(text, " \t=!<>");
    int subject = word_of(text, word, subjects), compare = CUS_STEP_EQ;
    if (subject < 0) {
        *nearest = word ? nearest_of(text, word, subjects) : NULL;
        return false;
    }
    const char *at = behind_blanks(text + word);
    while (compares[compare] && strncmp(at, compares[compare], strlen(compares[compare])) != 0)
        compare++; /* <= and >= come before < and > */
    if (!compares[compare])
        return false;
    uint32_t number;
    at = take_number(at + strlen(compares[compare]), &number);
    if (!at || *at)
        return false;
    out->subject = (uint8_t)subject;
    out->compare = (uint8_t)compare;
    out->number = number;
    return true;
}

/* ---- sizes ---- */

/* Reads an entry: a number, first..last or first..last/stride. Returns NULL, or what is wrong with
 * it. */
static const char *take_entry(const char *text, struct cus_step_sizes *out) {
    static const char none[] = "must be a number, first..last or first..last/stride";
    const char *at = take_number(text, &out->first);
    out->last = out->first;
    out->stride = 1;
    if (at && strncmp(at, "..", 2) == 0) {
        at = take_number(at + 2, &out->last);
        if (at && *at == '/')
            at = take_number(at + 1, &out->stride);
    }
    if (!at || *at)
        return none;
    if (out->first == 0)
        return "there are no steps of 0 tokens";
    if (out->last < out->first)
        return "ends before it begins";
    return out->stride == 0 ? "the stride must be 1 at least" : NULL;
}

static bool take_sizes(const char *text, struct cus_step_rule *rule, char *error, size_t bytes) {
    struct cus_step_sizes sizes[CUS_STEP_SIZES];
    uint32_t n = 0;
    for (const char *at = text;; at++) {
        char entry[64];
        size_t length = strcspn(at, ",");
        snprintf(entry, sizeof entry, "%.*s", (int)(length < sizeof entry ? length : sizeof entry),
                 at);
        const char *wrong = n == CUS_STEP_SIZES                ? "too many entries"
                            : length >= sizeof entry           ? "too long"
                            : entry[strspn(entry, " \t")] == 0 ? "an entry is empty"
                                                               : take_entry(entry, &sizes[n]);
        if (wrong && n == CUS_STEP_SIZES)
            snprintf(error, bytes, "sizes: more than %d entries", CUS_STEP_SIZES);
        else if (wrong)
            snprintf(error, bytes, "sizes = %.60s: '%.30s': %s", text, entry, wrong);
        if (wrong)
            return false;
        n++;
        at += length;
        if (!*at)
            break;
    }
    memcpy(rule->sizes, sizes, n * sizeof sizes[0]);
    rule->n_sizes = n;
    return true;
}

/* ---- keys ---- */

bool cus_step_set(struct cus_step_rule *rule, enum cus_step_key key, const char *text, char *error,
                  size_t bytes, const char **nearest) {
    const char *must = "", *end;
    uint32_t number;
    int dimension;
    *nearest = NULL;
    switch (key) {
    case CUS_STEP_KEY_TOKENS:
        dimension = word_of(text, strlen(text), dimensions);
        if (dimension >= 0) {
            rule->tokens = (uint8_t)dimension;
            return true;
        }
        *nearest = nearest_of(text, strlen(text), dimensions);
        must = "x, y or z";
        break;
    case CUS_STEP_KEY_TOKENS_EACH:
        end = take_number(text, &number);
        if (end && !*end && number) {
            rule->tokens_each = number;
            return true;
        }
        must = "a whole number from 1 to 4294967295";
        break;
    case CUS_STEP_KEY_UNIFORM:
    case CUS_STEP_KEY_SINGLE:
        if (take_condition(text, key == CUS_STEP_KEY_UNIFORM ? &rule->uniform : &rule->single,
                           nearest))
            return true;
        must = "x, y, z or tokens, then ==, !=, <=, >=, < or >, then a number";
        break;
    case CUS_STEP_KEY_SIZES:
        return take_sizes(text, rule, error, bytes);
    case CUS_STEP_KEY_MARKER:
    case CUS_STEP_KEYS:
        must = "left to those who make patterns";
        break;
    }
    snprintf(error, bytes, "%s = %.60s: must be %s", cus_step_keys[key], text, must);
    return false;
}

/* ---- back to text ---- */

static bool show_condition(const struct cus_step_condition *condition, char *out, size_t bytes) {
    snprintf(out, bytes, "%s %s %u", subjects[condition->subject], compares[condition->compare],
             condition->number);
    if (condition->compare == CUS_STEP_NEVER)
        *out = 0;
    return *out;
}

static bool show_sizes(const struct cus_step_rule *rule, char *out, size_t bytes) {
    size_t used = 0;
    *out = 0;
    for (uint32_t i = 0; i < rule->n_sizes && used < bytes; i++) {
        const struct cus_step_sizes *sizes = &rule->sizes[i];
        char range[16] = "", stride[16] = "";
        if (sizes->last != sizes->first)
            snprintf(range, sizeof range, "..%u", sizes->last);
        if (sizes->last != sizes->first && sizes->stride != 1)
            snprintf(stride, sizeof stride, "/%u", sizes->stride);
        used += (size_t)snprintf(out + used, bytes - used, "%s%u%s%s", i ? "," : "", sizes->first,
                                 range, stride);
    }
    return *out;
}

bool cus_step_show(const struct cus_step_rule *rule, enum cus_step_key key, char *out,
                   size_t bytes) {
    *out = 0;
    switch (key) {
    case CUS_STEP_KEY_MARKER:
        snprintf(out, bytes, "%s", rule->marker);
        break;
    case CUS_STEP_KEY_TOKENS:
        snprintf(out, bytes, "%s", dimensions[rule->tokens]);
        break;
    case CUS_STEP_KEY_TOKENS_EACH:
        snprintf(out, bytes, "%u", rule->tokens_each);
        break;
    case CUS_STEP_KEY_UNIFORM:
        return show_condition(&rule->uniform, out, bytes);
    case CUS_STEP_KEY_SINGLE:
        return show_condition(&rule->single, out, bytes);
    case CUS_STEP_KEY_SIZES:
        return show_sizes(rule, out, bytes);
    case CUS_STEP_KEYS:
        break;
    }
    return *out;
}
