/*
 * Tells facts in words: each kind of fact has a function in the table at the end, and any other one
 * is told as it is. verb_info.c calls it. It never trusts what stands in the facts.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/base/options.h"
#include "tools/cli/info.h"
#include "tools/trace/clean.h"
#include "tools/trace/facts.h"

enum { TEXT = 4096, KEY = 64, LINES = 40 };

struct part {
    unsigned width, lines; /* lines: that have been printed of this fact */
    const char *name;      /* of the fact; what follows on other lines has none */
    char text[TEXT];       /* what is gathered */
};

static void put_named(unsigned width, const char *name, const char *text) {
    size_t indent = CLI_INFO_NAME + 3, columns = clean_columns(name);
    fputs("  ", stdout);
    clean_cell(stdout, name, columns > CLI_INFO_NAME ? columns : CLI_INFO_NAME);
    putchar(' ');
    clean_fold(stdout, text, columns > CLI_INFO_NAME ? columns + 3 : indent, indent, width);
}

void cli_info_line(unsigned width, const char *name, const char *format, ...) {
    char text[TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_named(width, name, text);
}

/* What follows the first line of a fact has no name. */
static void put_line(struct part *part, const char *text) {
    put_named(part->width, part->lines++ ? "" : part->name, text);
}

static void append(struct part *part, const char *separator, const char *key, const char *sign,
                   const char *value) {
    size_t used = strlen(part->text);
    snprintf(part->text + used, sizeof part->text - used, "%s%s%s%s", used ? separator : "", key,
             sign, value);
}

static void take_key(const char *key, size_t bytes, char out[KEY]) {
    snprintf(out, KEY, "%.*s", (int)(bytes - 2), key + 1);
}

/* ---- objects ---- */

static void add_member(void *context, const char *key, size_t key_bytes, const char *value,
                       size_t value_bytes) {
    char name[KEY], text[600];
    take_key(key, key_bytes, name);
    look_unquote(value, value_bytes, text, sizeof text);
    append(context, ", ", name, " ", text);
}

static void put_object(struct part *part, const char *object) {
    facts_each(object, add_member, part);
    put_line(part, *part->text ? part->text : "none");
}

/* ---- settings ---- */

static const char *built_in(const char *key) {
    const struct cus_option_row *row;
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        if (strcmp(row->key, key) == 0)
            return row->value;
    return NULL;
}

/* What cusplice record sets itself is left out. */
static void add_setting(void *context, const char *key, size_t key_bytes, const char *value,
                        size_t value_bytes) {
    char name[KEY], text[600];
    take_key(key, key_bytes, name);
    look_unquote(value, value_bytes, text, sizeof text);
    const char *usual = built_in(cus_options_key(name));
    bool mode = strcmp(name, "mode") == 0;
    bool own = strcmp(name, "record") == 0 || strcmp(name, "live") == 0;
    if (mode || (!own && (!usual || strcmp(usual, text) != 0)))
        append(context, ", ", name, " = ", text);
}

static void put_settings(struct part *part, const char *object) {
    facts_each(object, add_setting, part);
    append(part, "; ", "all others as built in", "", "");
    put_line(part, part->text);
}

/* ---- the clock ---- */

static void take_realtime(void *context, const char *key, size_t key_bytes, const char *value,
                          size_t value_bytes) {
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)value_bytes, value);
    if (key_bytes == 13 && memcmp(key, "\"realtime_ns\"", 13) == 0)
        *(uint64_t *)context = strtoull(text, NULL, 10);
}

static void put_clock(struct part *part, const char *object) {
    uint64_t ns = 0;
    struct tm tm;
    facts_each(object, take_realtime, &ns);
    time_t seconds = (time_t)(ns / 1000000000);
    part->name = "recorded at";
    if (!ns || !gmtime_r(&seconds, &tm) ||
        !strftime(part->text, sizeof part->text, "%Y-%m-%d %H:%M:%S UTC", &tm))
        snprintf(part->text, sizeof part->text, "not known");
    put_line(part, part->text);
}

/* ---- lists of objects ---- */

/* `policy = pattern`; of a step, its keys with their values. */
static void add_rule(void *context, const char *key, size_t key_bytes, const char *value,
                     size_t value_bytes) {
    struct part *part = context;
    char name[KEY], text[600];
    take_key(key, key_bytes, name);
    look_unquote(value, value_bytes, text, sizeof text);
    if (strcmp(name, "policy") == 0)
        append(part, ", ", text, "", "");
    else if (strcmp(name, "pattern") == 0)
        append(part, " = ", text, "", "");
    else if (*text && strcmp(text, "null") != 0)
        append(part, ", ", name, " ", text);
}

/* Where the object that begins at `at` ends; it is sound, since facts_line was content. */
static const char *end_of(const char *at) {
    unsigned depth = 0;
    bool text = false;
    for (; *at; at++) {
        if (text && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            text = !text;
        else if (!text && (*at == '{' || *at == '['))
            depth++;
        else if (!text && (*at == '}' || *at == ']') && --depth == 0)
            return at + 1;
    }
    return at;
}

static void put_list(struct part *part, const char *array) {
    unsigned left = 0;
    for (const char *at = strchr(array, '{'), *end; at; at = strchr(end, '{')) {
        end = end_of(at);
        char *one = part->lines < LINES ? strndup(at, (size_t)(end - at)) : NULL;
        *part->text = 0;
        if (one)
            facts_each(one, add_rule, part);
        if (one)
            put_line(part, part->text);
        else
            left++;
        free(one);
    }
    if (left)
        printf("%*s %u more\n", CLI_INFO_NAME + 2, "", left);
    if (!part->lines)
        put_line(part, "none");
}

/* ---- numbers ---- */

static void put_driver(struct part *part, const char *number) {
    unsigned version = (unsigned)strtoul(number, NULL, 10);
    snprintf(part->text, sizeof part->text, "CUDA %u.%u", version / 1000, version % 1000 / 10);
    put_line(part, part->text);
}

static void put_capability(struct part *part, const char *number) {
    unsigned version = (unsigned)strtoul(number, NULL, 10);
    part->name = "GPU capability";
    snprintf(part->text, sizeof part->text, "%u.%u", version / 10, version % 10);
    put_line(part, part->text);
}

/* ---- all ---- */

static const struct {
    const char *key;
    char first; /* of the value; what begins otherwise is told as it is. '0': a number */
    void (*put)(struct part *part, const char *value);
} kinds[] = {
    {"options", '{', put_settings}, {"clock", '{', put_clock},
    {"rules", '[', put_list},       {"steps", '[', put_list},
    {"driver", '0', put_driver},    {"compute_capability", '0', put_capability},
};

static void put_fact(void *context, const char *key, size_t key_bytes, const char *value,
                     size_t value_bytes) {
    static const char *const names[][2] = {{"options", "settings"},
                                           {"steps", "[step] rules"},
                                           {"argv", "program"},
                                           {"exe", "file"},
                                           {"imported_from", "profile"}};
    static struct part part;
    char name[KEY], label[KEY], first = *value >= '0' && *value <= '9' ? '0' : *value;
    char *text = strndup(value, value_bytes);
    take_key(key, key_bytes, name);
    snprintf(label, sizeof label, "%s", name);
    for (char *at = label; (at = strchr(at, '_'));)
        *at = ' ';
    part = (struct part){.width = *(unsigned *)context, .name = label};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0)
            part.name = names[i][1];
    for (unsigned i = 0; text && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].key, name) == 0 && kinds[i].first == first) {
            kinds[i].put(&part, text);
            free(text);
            return;
        }
    /* It is empty; nothing was left out; the verb says it in words. */
    bool silent = !text || strcmp(text, "\"\"") == 0 ||
                  (strstr(name, "_left_out") && strcmp(text, "0") == 0) ||
                  strcmp(name, "imported") == 0;
    if (text && first == '{') {
        put_object(&part, text);
    } else if (!silent) {
        look_unquote(value, value_bytes, part.text, sizeof part.text - 4);
        if (strlen(part.text) < value_bytes / 2)
            strcat(part.text, " ...");
        put_line(&part, part.text);
    }
    free(text);
}

void cli_info_facts(const struct look *look, unsigned width) {
    facts_each(look->facts, put_fact, &width);
}
