/*
 * `cusplice config --explain`: which rule and which step decide on a kernel or a call. The
 * question names a kernel, in any form in which people have a name, its file, or both.
 * verb_config.c calls it. It never runs a program.
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
    const char *taken_as;              /* its form */
    const struct cus_call_name *call;  /* that was asked about, or NULL */
    const struct cus_call_name *other; /* one of its family that is decided otherwise, or NULL */
    char base[1024], qualified[2048];
    struct cus_verdict verdict, otherwise;
    const struct cus_rule *rule, *behind; /* NULL: none matches */
    const struct cus_step_rule *step;     /* that it is the marker of, or NULL */
    bool unsure;    /* there are patterns of mangled names, and this is not one */
    bool open_lib;  /* a rule by library comes first, and no library was given */
    bool open_full; /* a rule by namespaces comes first, and none were given */
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

/* Does a rule whose pattern begins with `sort` and holds `part` come before the one that decides?
 */
static bool comes_first(const struct cus_rules *rules, const struct answer *it, const char *sort,
                        const char *part) {
    const struct cus_rule *rule;
    for (int i = 0; (rule = cus_rules_get(rules, (unsigned)i)); i++)
        if (is_of(rule->pattern, sort) && strstr(rule->pattern, part))
            return it->verdict.rule < 0 || i < it->verdict.rule;
    return false;
}

static bool have_mangled(const struct cus_rules *rules) {
    for (unsigned i = 0; cus_rules_get(rules, i); i++)
        if (is_of(cus_rules_get(rules, i)->pattern, "mangled:"))
            return true;
    for (unsigned i = 0; cus_rules_step_get(rules, i); i++)
        if (is_of(cus_rules_step_get(rules, i)->marker, "mangled:"))
            return true;
    return false;
}

static bool is_named(const struct answer *it) {
    return it->subject.name || it->subject.base;
}

static void answer_kernel(const struct cus_rules *rules, struct answer *it, enum cus_name_form form,
                          bool mangled) {
    decide(rules, it);
    it->open_lib = !it->subject.lib && comes_first(rules, it, "lib:", "");
    if (!is_named(it))
        return;
    it->open_full = !mangled && form == CUS_NAME_BASE && comes_first(rules, it, "re:", "::");
    it->step = cus_rules_step_of(rules, &it->subject);
    it->unsure = !mangled && have_mangled(rules);
}

/* ---- the forms of a name ---- */

/* A mangled name has another base name than itself. */
static bool take_mangled(struct answer *it) {
    if (!is_of(it->asked, "_Z") && !is_of(it->asked, "__nv_static_"))
        return false;
    cus_name_base(it->asked, it->base, sizeof it->base);
    cus_name_qualified(it->asked, it->qualified, sizeof it->qualified);
    it->subject.name = it->asked;
    it->taken_as = "mangled name";
    return strcmp(it->base, it->asked) != 0;
}

static enum cus_name_form take_name(struct answer *it) {
    static const char *const words[] = {
        [CUS_NAME_NONE] = NULL,
        [CUS_NAME_BASE] = "base name",
        [CUS_NAME_QUALIFIED] = "name with namespaces",
        [CUS_NAME_DEMANGLED] = "demangled name with arguments",
    };
    enum cus_name_form form = cus_name_shown(it->asked, "-@", it->base, sizeof it->base,
                                             it->qualified, sizeof it->qualified);
    it->taken_as = words[form];
    /* A base name may be a whole name: that of an extern "C" kernel. */
    it->subject.name = form == CUS_NAME_BASE ? it->asked : NULL;
    it->subject.base = form > CUS_NAME_BASE ? it->base : NULL;
    it->subject.qualified = form > CUS_NAME_BASE ? it->qualified : NULL;
    return form;
}

/* The name of a file without its folders. */
static const char *file_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool take_file(struct answer *it, const char *path) {
    it->subject.lib = file_of(path);
    return *it->subject.lib != 0;
}

/* False: it has none of the forms, which was said. */
static bool ask_kernel(const struct cus_rules *rules, struct answer *it, const char *lib) {
    const char *file = behind_word(it->asked, "lib:"), *prefixed = NULL;
    enum cus_name_form form = CUS_NAME_NONE;
    bool good = !(file || lib) || take_file(it, file ? file : lib);
    if (file)
        it->taken_as = strchr(file, '/') ? "path of a library or program: its file name counts"
                                         : "file name of a library or program";
    bool mangled = good && !file && take_mangled(it);
    if (good && !file && !mangled)
        good = (form = take_name(it)) != CUS_NAME_NONE;
    good &= !(file && strpbrk(it->subject.lib, "*?["));
    if (good) {
        answer_kernel(rules, it, form, mangled);
        return true;
    }
    prefixed = behind_word(it->asked, "mangled:");
    if (prefixed || is_of(it->asked, "re:") || strpbrk(it->asked, "*?["))
        cli_say("%s is a pattern; ask for a name%s%s", it->asked, prefixed ? ": " : "",
                prefixed && !strpbrk(prefixed, "*?[") ? prefixed : "");
    else
        cli_say("%s is no name of a kernel: a mangled name, a demangled one, a base name, lib:FILE "
                "or api:CALL is expected",
                it->asked);
    return false;
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
    printf("taken as   %s\n", it->taken_as);
    if (is_named(it))
        clean_print(stdout, "base name  %s\n", it->base);
    if (is_named(it))
        clean_print(stdout, "full name  %s\n", it->qualified);
    if (it->subject.lib)
        clean_print(stdout, "library    %s\n", it->subject.lib);
    print_decision(it);
    if (is_named(it)) {
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
    if (it->open_full)
        printf("note       rules by namespaces come first and were compared with the base name "
               "alone: ask by the name with namespaces\n");
    if (it->unsure && it->subject.name)
        clean_print(stdout,
                    "note       %s is no mangled name: patterns of mangled names were compared "
                    "with it as it stands\n",
                    it->subject.name);
    else if (it->unsure)
        printf("note       patterns of mangled names were not asked: ask by the mangled name\n");
}

static void json_answer(const struct answer *it) {
    struct cus_json top = json_to(stdout, CUS_JSON_INDENTED), *json = &top;
    const char *name = is_named(it) ? it->asked : NULL;
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
    cus_json_text(json, "taken_as", it->taken_as);
    cus_json_close(json, '}');
    cus_json_end(json);
}

int cli_config_explain(const char *asked, const char *lib, bool json) {
    struct answer it = {.asked = asked, .verdict = {CUS_POLICY_GRAPH, -1}};
    int problems = 0;
    struct cus_rules *rules = cus_rules_load(false, cli_problem, &problems, NULL);
    const char *call = behind_word(asked, "api:"), *near = call ? cus_calls_nearest(call) : NULL;
    if (!rules)
        return 1;
    it.taken_as = call ? "call" : NULL;
    bool known = call ? answer_call(rules, &it) : ask_kernel(rules, &it, lib);
    if (call && !known)
        cli_say("the driver has no call %s%s%s", call, near ? "; the nearest is " : "",
                near ? near : "");
    else if (known && json)
        json_answer(&it);
    else if (known)
        (it.call ? print_call : print_kernel)(&it);
    cus_rules_free(rules);
    return problems || !known ? 1 : 0;
}
