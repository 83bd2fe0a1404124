/*
 * `cusplice config --check`: every mistake in a file, in the order of its lines. verb_config.c
 * calls it. It never changes the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "tools/cli/config.h"
#include "tools/cli/verb.h"
#include "tools/trace/clean.h"
#include "tools/trace/json.h"

struct found {
    int line;
    char *text, *nearest; /* nearest may be NULL */
    bool notice;
};

struct check {
    struct cus_options options;
    struct found *found;
    unsigned n, wrong; /* in all; of them those that are no notices */
    bool lost;         /* no memory for a problem */
};

/* Kept in the order of lines, since settings and rules are looked at one after the other. */
static void take_problem(void *context, const struct cus_problem *problem) {
    struct check *check = context;
    struct found *more = realloc(check->found, (check->n + 1) * sizeof *more);
    unsigned at = check->n;
    check->lost |= !more;
    if (!more)
        return;
    check->found = more;
    for (; at > 0 && more[at - 1].line > problem->line; at--)
        more[at] = more[at - 1];
    more[at].line = problem->line;
    more[at].text = strdup(problem->text);
    more[at].nearest = problem->nearest ? strdup(problem->nearest) : NULL;
    more[at].notice = problem->notice;
    check->wrong += !problem->notice;
    check->n++;
}

static void check_setting(void *context, const struct cus_setting *setting) {
    struct check *check = context;
    if (!*setting->section)
        cus_options_set(&check->options, setting, take_problem, check);
}

static void print_check(const struct check *check, const char *path) {
    int told = 0;
    for (unsigned i = 0; i < check->n; i++) {
        const struct found *found = &check->found[i];
        struct cus_problem it = {path, found->line, found->text ? found->text : "no memory",
                                 found->nearest, found->notice};
        cli_problem(&told, &it);
    }
    if (!check->wrong)
        clean_print(stdout, "%s: ok\n", path);
}

static void json_check(const struct check *check, const char *path) {
    struct cus_json top = json_to(stdout, CUS_JSON_INDENTED), *json = &top;
    cus_json_open(json, NULL, '{');
    cus_json_text(json, "file", path);
    cus_json_bool(json, "ok", check->wrong == 0);
    cus_json_open(json, "problems", '[');
    for (unsigned i = 0; i < check->n; i++) {
        cus_json_open(json, NULL, '{');
        cus_json_integer(json, "line", check->found[i].line);
        cus_json_text(json, "text", check->found[i].text);
        cus_json_text(json, "nearest", check->found[i].nearest);
        cus_json_bool(json, "notice", check->found[i].notice);
        cus_json_close(json, '}');
    }
    cus_json_close(json, ']');
    cus_json_close(json, '}');
    cus_json_end(json);
}

int cli_config_check(const char *path, bool json) {
    struct check check;
    memset(&check, 0, sizeof check);
    cus_config_read_file(path, false, check_setting, take_problem, &check);
    struct cus_rules *rules = cus_rules_load_file(path, take_problem, &check, NULL);
    bool good = rules && !check.wrong && !check.lost;
    if (rules && !check.lost)
        (json ? json_check : print_check)(&check, path);
    else
        cli_say("no memory to check %s", path);
    cus_rules_free(rules);
    cus_options_free(&check.options);
    for (unsigned i = 0; i < check.n; i++) {
        free(check.found[i].text);
        free(check.found[i].nearest);
    }
    free(check.found);
    return good ? 0 : 1;
}
