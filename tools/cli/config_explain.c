/*
 * `cusplice config --explain`: which rule and which step decide on a kernel or a call. The
 * question names a kernel, its file, or both. verb_config.c calls it. It never runs a program.
 */
#include <stdio.h>
#include <string.h>

#include "shim/plan/calls.h"
#include "shim/plan/name.h"
#include "tools/cli/config.h"
#include "tools/cli/verb.h"
#include "tools/trace/clean.h"
#include "tools/trace/json.h"

struct answer {
    struct cus_subject subject;
    const char *asked;                 /* as on the command line */
    const struct cus_call_name *call;  /* that was asked about, or NULL */
    const struct cus_call_name *other; /* one of its family that is decided otherwise, or NULL */
    char base[1024], qualified[2048];
    struct cus_verdict verdict, otherwise;
    const struct cus_rule *rule, *behind; /* NULL: none matches */
    const struct cus_step_rule *step;     /* that it is the marker of, or NULL */
    bool unsure;   /* there are patterns of mangled names, and this is not one */
    bool open_lib; /* a rule by library comes first, and no library was given */
};

static bool is_of(const char *pattern, const char *sort) {
    return strncmp(pattern, sort, strlen(sort)) == 0;
}

static const char *behind_word(const char *text, const char *word) {
    return is_of(text, word) ? text + strlen(word) : NULL;
}

/* ---- calls ---- */

/* Does the pattern `api:NAME` match it, that is: is it NAME or of its family? */
static bool is_of_family(const struct cus_pattern *family, const struct cus_call_name *call) {
    return family && cus_pattern_matches_api(family, call->symbol);
}

/* A program that was compiled by a header calls one of a family; those that rules decide on come
 * first. NULL: there is no such call. */
static const struct cus_call_name *find_call(const struct cus_pattern *family) {
    const struct cus_call_name *call, *found = NULL;
    for (unsigned i = 0; (call = cus_calls_get(i)); i++)
        if (is_of_family(family, call) &&
            (!found || (cus_calls_ruled(call) && !cus_calls_ruled(found))))
            found = call;
    return found;
}

static void find_other(const struct cus_rules *rules, const struct cus_pattern *family,
                       struct answer *it) {
    const struct cus_call_name *call;
    for (unsigned i = 0; (call = cus_calls_get(i)); i++) {
        const struct cus_subject subject = {.call = call->symbol};
        if (is_of_family(family, call) && cus_calls_ruled(call) &&
            cus_rules_ask(rules, &subject, -1).rule != it->verdict.rule)
            it->other = call;
    }
}

/* ---- the answer ---- */

static void decide(const struct cus_rules *rules, struct answer *it) {
    it->verdict = cus_rules_ask(rules, &it->subject, -1);
    if (it->verdict.rule < 0)
        return;
    it->rule = cus_rules_get(rules, (unsigned)it->verdict.rule);
    it->otherwise = cus_rules_ask(rules, &it->subject, it->verdict.rule);
    if (it->otherwise.rule >= 0)
        it->behind = cus_rules_get(rules, (unsigned)it->otherwise.rule);
}

static void answer_kernel(const struct cus_rules *rules, struct answer *it) {
    const char *name = it->subject.name;
    decide(rules, it);
    for (int i = 0; cus_rules_get(rules, (unsigned)i); i++)
        it->open_lib |= !it->subject.lib &&
                        is_of(cus_rules_get(rules, (unsigned)i)->pattern, "lib:") &&
                        (it->verdict.rule < 0 || i < it->verdict.rule);
    if (!name)
        return;
    cus_name_base(name, it->base, sizeof it->base);
    cus_name_qualified(name, it->qualified, sizeof it->qualified);
    it->step = cus_rules_step(rules, name);
    for (unsigned i = 0; cus_rules_get(rules, i); i++)
        it->unsure |= is_of(cus_rules_get(rules, i)->pattern, "mangled:");
    for (unsigned i = 0; cus_rules_step_get(rules, i); i++)
        it->unsure |= is_of(cus_rules_step_get(rules, i)->marker, "mangled:");
    it->unsure &= !is_of(name, "_Z");
}

/* False: there is no such call. */
static bool answer_call(const struct cus_rules *rules, struct answer *it) {
    char error[160];
    struct cus_pattern *family = cus_pattern_new(it->asked, error, sizeof error);
    it->call = find_call(family);
    if (it->call && cus_calls_ruled(it->call)) {
        it->subject.call = it->call->symbol;
        decide(rules, it);
        find_other(rules, family, it);
    }
    cus_pattern_free(family);
    return it->call;
}

/* ---- showing it ---- */

static void print_rule_or_none(const struct answer *it, const char *what,
                               const struct cus_rule *rule) {
    printf("%s", what);
    if (rule)
        cli_config_print_rule(rule);
    else
        printf("none matches: the %s may go into any graph\n", it->call ? "call" : "kernel");
}

static void print_decision(const struct answer *it) {
    printf("policy     %s\n", cus_policy_name(it->verdict.policy));
    print_rule_or_none(it, "rule       ", it->rule);
    if (it->rule)
        print_rule_or_none(it, "otherwise  ", it->behind);
}

static void print_call(const struct answer *it) {
    printf("call       %s\n", it->call->symbol);
    if (it->subject.call)
        print_decision(it);
    else
        printf("note       it is no memset, copy or record that may be in a graph: no rule changes "
               "what it does\n");
    if (it->other)
        printf("note       %s is decided on otherwise: ask for it by its whole name\n",
               it->other->symbol);
}

static void print_kernel(const struct answer *it) {
    if (it->subject.name)
        clean_print(stdout, "base name  %s\n", it->base);
    if (it->subject.name)
        clean_print(stdout, "full name  %s\n", it->qualified);
    if (it->subject.lib)
        clean_print(stdout, "library    %s\n", it->subject.lib);
    print_decision(it);
    if (it->subject.name) {
        printf("marker of  ");
        if (it->step)
            cli_config_print_step(it->step);
        else
            printf("no step\n");
    } else {
        printf("note       rules that name kernels were not asked\n");
    }
    if (it->open_lib)
        printf("note       rules by library come first and were not asked: say --lib FILE\n");
    if (it->unsure)
        clean_print(stdout,
                    "note       %s is no mangled name: patterns of mangled names were compared "
                    "with it as it stands\n",
                    it->subject.name);
}

static void json_answer(const struct answer *it) {
    struct cus_json top = json_to(stdout, CUS_JSON_INDENTED), *json = &top;
    const char *name = it->subject.name;
    bool decided = !it->call || it->subject.call;
    cus_json_open(json, NULL, '{');
    cus_json_text(json, "name", name);
    cus_json_text(json, "base_name", name ? it->base : NULL);
    cus_json_text(json, "full_name", name ? it->qualified : NULL);
    cus_json_text(json, "policy", decided ? cus_policy_name(it->verdict.policy) : NULL);
    cli_config_json_rule(json, "rule", it->rule);
    cli_config_json_rule(json, "otherwise", it->behind);
    cli_config_json_step(json, "marker_of", it->step);
    cus_json_text(json, "library", it->subject.lib);
    cus_json_text(json, "call", it->call ? it->call->symbol : NULL);
    cus_json_close(json, '}');
    cus_json_end(json);
}

int cli_config_explain(const char *asked, const char *lib, bool json) {
    struct answer it = {.asked = asked, .verdict = {CUS_POLICY_GRAPH, -1}};
    int problems = 0;
    struct cus_rules *rules = cus_rules_load(false, cli_problem, &problems, NULL);
    bool known = true;
    if (!rules)
        return 1;
    it.subject.lib = lib ? lib : behind_word(asked, "lib:");
    if (behind_word(asked, "api:")) {
        known = answer_call(rules, &it);
    } else {
        it.subject.name = behind_word(asked, "lib:") ? NULL : asked;
        answer_kernel(rules, &it);
    }
    if (!known)
        cli_say("the driver has no call %s; the nearest is %s", asked + strlen("api:"),
                cus_calls_nearest(asked + strlen("api:")));
    else if (json)
        json_answer(&it);
    else
        (it.call ? print_call : print_kernel)(&it);
    cus_rules_free(rules);
    return problems || !known ? 1 : 0;
}
