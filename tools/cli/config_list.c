/*
 * `cusplice config --list`: the configuration that a program started here and now would find.
 * verb_config.c calls it. It never changes a setting.
 *
 * What it prints is a file with the same meaning: places are comments on lines of their own, and
 * what nobody set is a comment, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "shim/plan/step_read.h"
#include "tools/cli/config.h"
#include "tools/cli/verb.h"
#include "tools/cli/width.h"
#include "tools/trace/clean.h"
#include "tools/trace/json.h"

/* ---- one rule, one step ---- */

void cli_config_print_place(const char *file, int line) {
    clean_print(stdout, "    # %s", file);
    if (line)
        printf(":%d", line);
    printf("\n");
}

void cli_config_print_rule(const struct cus_rule *rule) {
    clean_print(stdout, "%s = %s", cus_policy_name(rule->policy), rule->pattern);
    cli_config_print_place(rule->file, rule->line);
}

void cli_config_print_step(const struct cus_step_rule *step) {
    clean_print(stdout, "[step%s%s]", *step->name ? " " : "", step->name);
    cli_config_print_place(step->file, step->line);
}

void cli_config_json_rule(struct cus_json *json, const char *key, const struct cus_rule *rule) {
    if (!rule) {
        cus_json_text(json, key, NULL);
        return;
    }
    cus_json_open(json, key, '{');
    cus_json_text(json, "policy", cus_policy_name(rule->policy));
    cus_json_text(json, "pattern", rule->pattern);
    cus_json_text(json, "file", rule->file);
    cus_json_integer(json, "line", rule->line);
    cus_json_close(json, '}');
}

/* A step's value of a key as one would write it. NULL: none is given. */
static const char *step_value(const struct cus_step_rule *step, int key, char out[CUS_STEP_SHOWN]) {
    if (key == CUS_STEP_KEY_MARKER)
        return step->marker; /* may be longer than the room */
    return cus_step_show(step, (enum cus_step_key)key, out, CUS_STEP_SHOWN) ? out : NULL;
}

void cli_config_json_step(struct cus_json *json, const char *key,
                          const struct cus_step_rule *step) {
    char value[CUS_STEP_SHOWN];
    if (!step) {
        cus_json_text(json, key, NULL);
        return;
    }
    cus_json_open(json, key, '{');
    cus_json_text(json, "name", step->name);
    for (int i = 0; i < CUS_STEP_KEYS; i++)
        cus_json_text(json, cus_step_keys[i], step_value(step, i, value));
    cus_json_text(json, "file", step->file);
    cus_json_integer(json, "line", step->line);
    cus_json_close(json, '}');
}

/* ---- where the values in force come from ---- */

enum { ROWS = sizeof((struct cus_options *)0)->owned / sizeof(char *) }; /* the table has no more */

struct places {
    struct cus_options scratch; /* tells a value that is taken from one that is refused */
    char *file[ROWS];           /* NULL: built-in */
    int line[ROWS];
};

static void take_place(void *context, const struct cus_setting *setting) {
    struct places *places = context;
    const struct cus_option_row *row;
    if (*setting->section || !cus_options_set(&places->scratch, setting, NULL, NULL))
        return;
    for (unsigned i = 0; i < ROWS && (row = cus_options_row(i)); i++)
        if (strcmp(row->key, cus_options_key(setting->key)) == 0) {
            free(places->file[i]);
            places->file[i] = strdup(setting->file);
            places->line[i] = setting->line;
        }
}

/* As cus_options_load goes: the last place that gives a good value wins. */
static void find_places(struct places *places) {
    memset(places, 0, sizeof *places);
    for (int source = 0; source < CUS_SOURCES; source++)
        cus_config_read((enum cus_source)source, take_place, NULL, places);
}

static void free_places(struct places *places) {
    cus_options_free(&places->scratch);
    for (unsigned i = 0; i < ROWS; i++)
        free(places->file[i]);
}

/* ---- the list ---- */

static void print_setting(const struct cus_option_row *row, const char *value, const char *allowed,
                          const char *file, int line) {
    /* What the launcher offers would become the user's word in a file. */
    bool set =
        file && strcmp(file, CUS_CACHE_OFFERED) != 0 && strcmp(file, CUS_PRESETS_OFFERED) != 0;
    char place[16] = "";
    bool usual = strcmp(value, row->value) == 0;
    if (line)
        snprintf(place, sizeof place, ":%d", line);
    clean_comment(stdout, cli_terminal_width(STDOUT_FILENO), "%s%s; %s%s%s",
                  file ? file : "built-in", place, allowed, usual ? "" : "; built-in: ",
                  usual         ? ""
                  : *row->value ? row->value
                                : "none");
    clean_print(stdout, "%s%s = %s\n", set ? "" : "#", row->key, value);
}

static void json_setting(struct cus_json *json, const struct cus_option_row *row, const char *value,
                         const char *allowed, const char *file, int line) {
    cus_json_open(json, NULL, '{');
    cus_json_text(json, "key", row->key);
    cus_json_text(json, "value", value);
    cus_json_text(json, "built_in", row->value);
    cus_json_text(json, "allowed", allowed);
    cus_json_text(json, "file", file);
    cus_json_integer(json, "line", line);
    cus_json_close(json, '}');
}

static void list_settings(struct cus_json *json, int *problems) {
    struct cus_options options;
    struct places places;
    const struct cus_option_row *row;
    cus_options_load(&options, false, cli_problem, problems);
    find_places(&places);
    for (unsigned i = 0; i < ROWS && (row = cus_options_row(i)); i++) {
        char value[4096], allowed[160];
        cus_options_show(&options, i, value, sizeof value);
        cus_options_allowed(i, allowed, sizeof allowed);
        if (json)
            json_setting(json, row, value, allowed, places.file[i], places.line[i]);
        else
            print_setting(row, value, allowed, places.file[i], places.line[i]);
    }
    free_places(&places);
    cus_options_free(&options);
}

/* On a line of its own: behind a value it would belong to the value. */
static void print_place_above(const char *file, int line) {
    clean_print(stdout, "# %s", file);
    if (line)
        printf(":%d", line);
    printf("\n");
}

static void print_rules(const struct cus_rules *rules) {
    const struct cus_rule *rule;
    printf("\n[rules]\n");
    for (unsigned i = 0; (rule = cus_rules_get(rules, i)); i++) {
        print_place_above(rule->file, rule->line);
        clean_print(stdout, "%s = %s\n", cus_policy_name(rule->policy), rule->pattern);
    }
    for (unsigned i = 0; cus_rules_step_get(rules, i); i++) {
        const struct cus_step_rule *step = cus_rules_step_get(rules, i);
        printf("\n");
        print_place_above(step->file, step->line);
        clean_print(stdout, "[step%s%s]\n", *step->name ? " " : "", step->name);
        for (int key = 0; key < CUS_STEP_KEYS; key++) {
            char room[CUS_STEP_SHOWN];
            const char *value = step_value(step, key, room);
            if (value)
                clean_print(stdout, "%s = %s\n", cus_step_keys[key], value);
        }
    }
}

/* ---- files ---- */

static void print_file(void *context, const char *path, const char *by, int line) {
    unsigned *n = context;
    if (!(*n)++)
        printf("# files, the later one stronger:\n");
    const char *slash = by ? strrchr(by, '/') : NULL; /* a neighbour is named without its folder */
    size_t folder = slash ? (size_t)(slash + 1 - by) : 0;
    clean_print(stdout, "#   %s", path);
    if (by)
        clean_print(
            stdout, ", included by %s:%d",
            by + (strncmp(path, by, folder) == 0 && !strchr(path + folder, '/') ? folder : 0),
            line);
    printf("\n");
}

static void json_file(void *json, const char *path, const char *by, int line) {
    cus_json_open(json, NULL, '{');
    cus_json_text(json, "file", path);
    cus_json_text(json, "included_by", by);
    cus_json_integer(json, "line", line);
    cus_json_close(json, '}');
}

static void list_files(struct cus_json *json) {
    unsigned n = 0;
    if (json)
        cus_json_open(json, "files", '[');
    for (int source = CUS_SOURCE_SYSTEM; source <= CUS_SOURCE_NAMED; source++)
        cus_config_list_files((enum cus_source)source, json ? json_file : print_file,
                              json ? (void *)json : &n);
    if (json)
        cus_json_close(json, ']');
}

static void json_rules(struct cus_json *json, const struct cus_rules *rules) {
    cus_json_open(json, "rules", '[');
    for (unsigned i = 0; cus_rules_get(rules, i); i++)
        cli_config_json_rule(json, NULL, cus_rules_get(rules, i));
    cus_json_close(json, ']');
    cus_json_open(json, "steps", '[');
    for (unsigned i = 0; cus_rules_step_get(rules, i); i++)
        cli_config_json_step(json, NULL, cus_rules_step_get(rules, i));
    cus_json_close(json, ']');
}

int cli_config_list(bool as_json) {
    struct cus_json top = json_to(stdout, CUS_JSON_INDENTED), *json = as_json ? &top : NULL;
    int problems = 0;
    struct cus_rules *rules;
    if (json)
        cus_json_open(json, NULL, '{');
    list_files(json);
    if (json)
        cus_json_open(json, "settings", '[');
    list_settings(json, &problems);
    rules = cus_rules_load(false, cli_problem, &problems, NULL);
    if (json)
        cus_json_close(json, ']');
    if (rules && json)
        json_rules(json, rules);
    else if (rules)
        print_rules(rules);
    if (json) {
        cus_json_close(json, '}');
        cus_json_end(json);
    }
    cus_rules_free(rules);
    return problems || !rules ? 1 : 0;
}
