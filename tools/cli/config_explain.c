/*
 * cusplice config --explain: what the rules and steps say of one kernel, and which of them says it.
 */
#include <stdio.h>
#include <string.h>

#include "shim/plan/name.h"
#include "tools/cli/config.h"
#include "tools/cli/json.h"
#include "tools/cli/verb.h"

struct answer {
    const char *name;
    char base[1024], qualified[2048];
    struct cus_verdict verdict, otherwise;
    const struct cus_rule *rule, *behind; /* NULL: none matches */
    const struct cus_step_rule *step;     /* that it is the marker of, or NULL */
    bool unsure; /* there are patterns of mangled names, and this is not one */
};

static bool is_of_mangled(const char *pattern) {
    return strncmp(pattern, "mangled:", 8) == 0;
}

static void answer(const struct cus_rules *rules, const char *name, struct answer *it) {
    it->name = name;
    cus_name_base(name, it->base, sizeof it->base);
    cus_name_qualified(name, it->qualified, sizeof it->qualified);
    it->verdict = cus_rules_decide(rules, name);
    it->rule = it->behind = NULL;
    if (it->verdict.rule >= 0) {
        it->rule = cus_rules_get(rules, (unsigned)it->verdict.rule);
        it->otherwise = cus_rules_decide_behind(rules, name, it->verdict.rule);
        if (it->otherwise.rule >= 0)
            it->behind = cus_rules_get(rules, (unsigned)it->otherwise.rule);
    }
    it->step = cus_rules_step(rules, name);
    it->unsure = false;
    for (unsigned i = 0; cus_rules_get(rules, i); i++)
        it->unsure |= is_of_mangled(cus_rules_get(rules, i)->pattern);
    for (unsigned i = 0; cus_rules_step_get(rules, i); i++)
        it->unsure |= is_of_mangled(cus_rules_step_get(rules, i)->marker);
    it->unsure &= strncmp(name, "_Z", 2) != 0;
}

static void print_rule_or_none(const char *what, const struct cus_rule *rule) {
    printf("%s", what);
    if (rule)
        cli_config_print_rule(rule);
    else
        printf("none matches: the kernel may go into any graph\n");
}

static void print_answer(const struct answer *it) {
    printf("base name  %s\nfull name  %s\npolicy     %s\n", it->base, it->qualified,
           cus_policy_name(it->verdict.policy));
    print_rule_or_none("rule       ", it->rule);
    if (it->rule)
        print_rule_or_none("otherwise  ", it->behind);
    printf("marker of  ");
    if (it->step)
        cli_config_print_step(it->step);
    else
        printf("no step\n");
    if (it->unsure)
        printf("note       %s is no mangled name: patterns of mangled names were compared with it "
               "as it stands\n",
               it->name);
}

static void json_answer(const struct answer *it) {
    cli_json_open(NULL, '{');
    cli_json_text("name", it->name);
    cli_json_text("base_name", it->base);
    cli_json_text("full_name", it->qualified);
    cli_json_text("policy", cus_policy_name(it->verdict.policy));
    cli_config_json_rule("rule", it->rule);
    cli_config_json_rule("otherwise", it->behind);
    cli_config_json_step("marker_of", it->step);
    cli_json_close('}');
}

int cli_config_explain(const char *name, bool json) {
    struct answer it;
    int problems = 0;
    struct cus_rules *rules = cus_rules_load(false, cli_problem, &problems, NULL);
    if (!rules)
        return 1;
    answer(rules, name, &it);
    (json ? json_answer : print_answer)(&it);
    cus_rules_free(rules);
    return problems ? 1 : 0;
}
