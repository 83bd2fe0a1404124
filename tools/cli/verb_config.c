/*
 * cusplice config: what is set, whether a file is good, which rule a kernel meets.
 */
#include "tools/cli/verb.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/options.h"
#include "shim/plan/name.h"
#include "shim/plan/rules.h"

static const char help[] =
    "      --list          every key with its value here and now (files and environment read), and "
    "the rules\n"
    "      --check FILE    read a file strictly: each problem with its line; exit status 1 if "
    "there is one\n"
    "      --explain NAME  the base name of a kernel (mangled or not) and the rule that decides on "
    "it\n"
    "      --template      a config file with every key at its built-in value\n"
    "  -h, --help\n";

static void print_rule(const struct cus_rule *rule) {
    printf("%s = %s    # %s", cus_policy_name(rule->policy), rule->pattern, rule->file);
    if (rule->line)
        printf(":%d", rule->line);
    printf("\n");
}

static int list(void) {
    struct cus_options options;
    int problems = 0;
    cus_options_load(&options, false, cli_problem, &problems);
    const struct cus_option_row *row;
    for (unsigned i = 0; (row = cus_options_row(i)); i++) {
        char value[4096], allowed[128], line[4200];
        cus_options_show(&options, i, value, sizeof value);
        cus_options_allowed(i, allowed, sizeof allowed);
        snprintf(line, sizeof line, "%s = %s", row->key, value);
        printf("%-28s # %s", line, allowed);
        if (strcmp(value, row->value) != 0)
            printf("; built-in: %s", *row->value ? row->value : "none");
        printf("\n");
    }
    cus_options_free(&options);
    printf("\n[rules]\n");
    struct cus_rules *rules = cus_rules_load(false, cli_problem, &problems, NULL);
    for (unsigned i = 0; rules && cus_rules_get(rules, i); i++)
        print_rule(cus_rules_get(rules, i));
    cus_rules_free(rules);
    return problems ? 1 : 0;
}

struct check {
    struct cus_options options;
    int problems;
};

static void check_problem(void *context, const struct cus_problem *problem) {
    struct check *check = context;
    cli_problem(&check->problems, problem);
}

static void check_setting(void *context, const struct cus_setting *setting) {
    struct check *check = context;
    if (setting->key && !*setting->section)
        cus_options_set(&check->options, setting, check_problem, check);
}

static int check(const char *path) {
    struct check it;
    memset(&it, 0, sizeof it);
    cus_config_read_file(path, false, check_setting, check_problem, &it);
    cus_options_free(&it.options);
    cus_rules_free(cus_rules_load_file(path, cli_problem, &it.problems, NULL));
    return it.problems ? 1 : 0;
}

static int explain(const char *name) {
    char base[1024], qualified[2048];
    int problems = 0;
    struct cus_rules *rules = cus_rules_load(false, cli_problem, &problems, NULL);
    if (!rules)
        return 1;
    cus_name_base(name, base, sizeof base);
    cus_name_qualified(name, qualified, sizeof qualified);
    struct cus_verdict verdict = cus_rules_decide(rules, name);
    printf("base name  %s\nfull name  %s\npolicy     %s\nrule       ", base, qualified,
           cus_policy_name(verdict.policy));
    if (verdict.rule >= 0)
        print_rule(cus_rules_get(rules, (unsigned)verdict.rule));
    else
        printf("none matches\n");
    cus_rules_free(rules);
    return problems ? 1 : 0;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const names[] = {"--list",     "--check", "--explain",
                                        "--template", "--help",  NULL};
    const char *what = argc > 1 ? argv[1] : "--help";
    bool valued = strcmp(what, "--check") == 0 || strcmp(what, "--explain") == 0;
    if (argc > (valued ? 3 : 2) || (valued && argc < 3)) {
        cli_say("usage: cusplice %s", self->synopsis);
        return 2;
    }
    if (strcmp(what, "--list") == 0)
        return list();
    if (strcmp(what, "--check") == 0)
        return check(argv[2]);
    if (strcmp(what, "--explain") == 0)
        return explain(argv[2]);
    if (strcmp(what, "--template") == 0) {
        cli_print_template();
        return 0;
    }
    if (strcmp(what, "--help") == 0) {
        cli_print_help(self);
        return argc > 1 ? 0 : 2;
    }
    cli_say("unknown option %s; the nearest is %s", what, cus_nearest(what, names));
    return 2;
}

const struct cli_verb cli_verb_config = {
    "config",
    "config --list | --check FILE | --explain NAME | --template",
    "show and check settings and rules",
    help,
    run,
};
