/*
 * `cusplice config --check`: every mistake in a file and in those that it includes, in the order of
 * lines; and what is no mistake but hardly meant. verb_config.c calls it. It never changes the
 * file.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "tools/cli/config.h"
#include "tools/cli/config_by.h"
#include "tools/cli/config_name.h"
#include "tools/cli/verb.h"
#include "tools/trace/clean.h"
#include "tools/trace/json.h"

struct found {
    char *file;
    int line;
    char *text, *nearest; /* nearest may be NULL */
    bool notice;
};

enum { KEYS = sizeof((struct cus_options *)0)->owned / sizeof(char *) }; /* the table has no more */

struct check {
    const char *path;
    struct cus_options options;
    struct found *found;
    unsigned n, wrong; /* in all; of them those that are no notices */
    bool lost;         /* no memory for a problem */
    /* The file that is being read, and the line of each key that it had. */
    char *file;
    int lines[KEYS];
};

/* The file that was asked about comes first, then the others as problems of them turn up. */
static unsigned rank_of(const struct check *check, const char *file) {
    unsigned i = 0;
    if (strcmp(file, check->path) == 0)
        return 0;
    while (i < check->n && strcmp(check->found[i].file, file) != 0)
        i++;
    return i + 1;
}

/* Kept in the order of lines, since settings and rules are looked at one after the other. */
static void take_problem(void *context, const struct cus_problem *problem) {
    struct check *check = context;
    struct found *more = realloc(check->found, (check->n + 1) * sizeof *more);
    struct found it = {strdup(problem->file), problem->line, strdup(problem->text),
                       problem->nearest ? strdup(problem->nearest) : NULL, problem->notice};
    unsigned at = check->n, rank;
    check->found = more ? more : check->found;
    if (!more || !it.file || !it.text) {
        check->lost = true;
        return;
    }
    rank = rank_of(check, it.file);
    for (; at > 0; at--) {
        unsigned before = rank_of(check, more[at - 1].file);
        if (before < rank || (before == rank && more[at - 1].line <= it.line))
            break;
    }
    memmove(&more[at + 1], &more[at], (check->n - at) * sizeof *more);
    more[at] = it;
    check->wrong += !it.notice;
    check->n++;
}

static void notice(struct check *check, const char *file, int line, const char *text) {
    struct cus_problem it = {file, line, text, NULL, true};
    take_problem(check, &it);
}

/* ---- settings ---- */

static void judge_twice(struct check *check, const struct cus_setting *setting) {
    const struct cus_option_row *row;
    if (!check->file || strcmp(check->file, setting->file) != 0) {
        free(check->file);
        check->file = strdup(setting->file);
        memset(check->lines, 0, sizeof check->lines);
    }
    for (unsigned i = 0; i < KEYS && (row = cus_options_row(i)); i++) {
        char text[160];
        if (strcmp(row->key, cus_options_key(setting->key)) != 0)
            continue;
        if (check->lines[i]) {
            snprintf(text, sizeof text, "%s is in line %d, too: this line counts", row->key,
                     check->lines[i]);
            notice(check, setting->file, setting->line, text);
        }
        check->lines[i] = setting->line;
    }
}

/* A path may have any character, but this is hardly one. */
static void judge_comment(struct check *check, const struct cus_setting *setting) {
    char text[256];
    if (!strstr(setting->value, " #"))
        return;
    snprintf(text, sizeof text,
             "%s = %.100s: nothing behind a value is a comment, which stands on a line of its own",
             setting->key, setting->value);
    notice(check, setting->file, setting->line, text);
}

static void check_setting(void *context, const struct cus_setting *setting) {
    struct check *check = context;
    if (*setting->section || !cus_options_set(&check->options, setting, take_problem, check))
        return;
    judge_twice(check, setting);
    judge_comment(check, setting);
}

/* ---- rules that never decide ---- */

static const char *behind(const char *text, const char *prefix) {
    size_t bytes = strlen(prefix);
    return strncmp(text, prefix, bytes) == 0 ? text + bytes : NULL;
}

/* Does the pattern match each kernel? Each call? */
static bool is_all(const char *pattern, bool calls) {
    const char *body = behind(pattern, "mangled:"), *regex = behind(pattern, "re:");
    const char *call = behind(pattern, "api:");
    if (regex && !calls)
        return strcmp(regex, ".*") == 0 || strcmp(regex, ".") == 0 || strcmp(regex, "^") == 0 ||
               strcmp(regex, "$") == 0;
    body = calls ? call : body ? body : pattern;
    return body && *body && strspn(body, "*") == strlen(body);
}

static void judge_all(struct check *check, const struct cus_rules *rules, unsigned at, bool calls) {
    const struct cus_rule *rule = cus_rules_get(rules, at), *hidden = NULL, *other;
    unsigned n = 0;
    char text[PATH_MAX + 400];
    if (!is_all(rule->pattern, calls))
        return;
    for (unsigned i = at + 1; (other = cus_rules_get(rules, i)); i++)
        if (!!behind(other->pattern, "api:") == calls && !n++)
            hidden = other;
    if (!n)
        return;
    snprintf(text, sizeof text,
             "%s = %.100s: matches every %s, so that %u rule%s behind it never decide%s, from "
             "%s:%d on",
             cus_policy_name(rule->policy), rule->pattern, calls ? "call" : "kernel", n,
             n == 1 ? "" : "s", n == 1 ? "s" : "", hidden->file, hidden->line);
    notice(check, rule->file, rule->line, text);
}

static void judge_same(struct check *check, const struct cus_rules *rules, unsigned at) {
    const struct cus_rule *rule = cus_rules_get(rules, at), *first;
    char text[PATH_MAX + 400];
    for (unsigned i = 0; i < at && (first = cus_rules_get(rules, i)); i++) {
        if (strcmp(first->pattern, rule->pattern) != 0)
            continue;
        snprintf(text, sizeof text, "%s = %.100s: never decides: %s:%d has the same pattern",
                 cus_policy_name(rule->policy), rule->pattern, first->file, first->line);
        notice(check, rule->file, rule->line, text);
        return;
    }
}

/* ---- the answer ---- */

static void print_check(const struct check *check) {
    int told = 0;
    for (unsigned i = 0; i < check->n; i++) {
        const struct found *found = &check->found[i];
        struct cus_problem it = {found->file, found->line, found->text, found->nearest,
                                 found->notice};
        cli_problem(&told, &it);
    }
    if (!check->wrong)
        clean_print(stdout, "%s: ok\n", check->path);
}

static void json_check(const struct check *check) {
    struct cus_json top = json_to(stdout, CUS_JSON_INDENTED), *json = &top;
    cus_json_open(json, NULL, '{');
    cus_json_text(json, "file", check->path);
    cus_json_bool(json, "ok", check->wrong == 0);
    cus_json_open(json, "problems", '[');
    char by[1200];
    for (unsigned i = 0; i < check->n; i++) {
        cus_json_open(json, NULL, '{');
        cus_json_text(json, "file", check->found[i].file);
        cus_json_integer(json, "line", check->found[i].line);
        cus_json_text(json, "text", check->found[i].text);
        cus_json_text(json, "nearest", check->found[i].nearest);
        cli_config_by(check->found[i].file, by, sizeof by);
        cus_json_text(json, "included_by", *by ? by : NULL);
        cus_json_bool(json, "notice", check->found[i].notice);
        cus_json_close(json, '}');
    }
    cus_json_close(json, ']');
    cus_json_close(json, '}');
    cus_json_end(json);
}

static void free_check(struct check *check) {
    cus_options_free(&check->options);
    for (unsigned i = 0; i < check->n; i++) {
        free(check->found[i].file);
        free(check->found[i].text);
        free(check->found[i].nearest);
    }
    free(check->found);
    free(check->file);
}

int cli_config_check(const char *name, bool json) {
    struct check check;
    char path[PATH_MAX];
    if (!cli_config_path("--check", name, path, sizeof path))
        return 1;
    memset(&check, 0, sizeof check);
    check.path = path;
    cli_config_by_read(path);
    cus_config_read_named(path, false, check_setting, take_problem, &check);
    struct cus_rules *rules = cus_rules_load_file(path, take_problem, &check, NULL);
    for (unsigned i = 0; rules && cus_rules_get(rules, i); i++) {
        judge_all(&check, rules, i, false);
        judge_all(&check, rules, i, true);
        judge_same(&check, rules, i);
    }
    bool good = rules && !check.wrong && !check.lost;
    if (rules && !check.lost)
        (json ? json_check : print_check)(&check);
    else
        cli_say("no memory to check %s", path);
    cus_rules_free(rules);
    free_check(&check);
    return good ? 0 : 1;
}
