// Target: the facts of a trace, as one line, by member, and as a configuration. Facts never become
// a setting that they do not hold as one.
//
// An input that begins like a trace is a trace: if its facts tell no rules, its ops do. An input
// that begins with "environ" is an environment with line feeds between entries. All other inputs
// are facts.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <set>
#include <string>
#include <vector>

#include "shim/base/config.h"
#include "shim/base/options.h"
#include "shim/plan/step_read.h"
#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
#include "tests/fuzz/parse/traces.h"
#include "tools/trace/reader.h"
extern "C" {
#include "tools/trace/facts.h"
#include "tools/trace/settings.h"
#include "tools/whatif/facts.h"
}

extern char **environ;

namespace {

// ---- one line, and its members ----

void TakeMember(void *context, const char *key, size_t key_bytes, const char *value, size_t bytes) {
    auto *again = static_cast<std::string *>(context);
    if (again->size() > 1)
        *again += ",";
    *again += std::string(key, key_bytes) + ":" + std::string(value, bytes);
}

void CheckLine(const char *facts) {
    char *line = facts_line(facts);
    if (!line)
        return;
    std::string again = "{";
    facts_each(line, TakeMember, &again);
    CHECK(again + "}" == line);
    CHECK(!strpbrk(line, "\n\r"));
    CheckPlain(line + std::string("\n"));
    char *twice = facts_line(line);
    CHECK(twice && strcmp(twice, line) == 0);
    free(twice);
    free(line);
}

// ---- the configuration ----

struct Asked {
    std::set<std::string> settings; // "SECTION key = value"
    std::string section, policy, pattern;
};

// As a configuration is read.
std::string Trimmed(const std::string &text) {
    size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t\r\n\v\f");
    return from == std::string::npos || to == std::string::npos || to < from
               ? ""
               : text.substr(from, to + 1 - from);
}

void TakeOption(void *context, const char *name, const char *value) {
    auto *asked = static_cast<Asked *>(context);
    asked->settings.insert(asked->section + " " + name + " = " + Trimmed(value));
    if (asked->section.empty() && strcmp(name, "verify_mode") == 0)
        asked->settings.insert(std::string(" mode = ") + Trimmed(value));
}

void TakePart(void *context, const char *name, const char *value) {
    auto *asked = static_cast<Asked *>(context);
    if (strcmp(name, "policy") == 0)
        asked->policy = std::string(value).substr(0, 31);
    if (strcmp(name, "pattern") == 0)
        asked->pattern = value;
}

void TakeRule(void *context, const char *, const char *value) {
    auto *asked = static_cast<Asked *>(context);
    asked->policy = asked->pattern = "";
    whatif_facts_read(value, nullptr, TakePart, asked);
    asked->settings.insert("rules " + asked->policy + " = " + Trimmed(asked->pattern));
}

void TakeStep(void *context, const char *, const char *value) {
    auto *asked = static_cast<Asked *>(context);
    asked->section = "step";
    whatif_facts_read(value, nullptr, TakeOption, asked);
}

// Rules that are read off the ops.
void TakeKinds(const cst_trace *trace, Asked *asked) {
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        for (const char *policy : {"eager", "uniform", "never_defer"})
            if (trace->kinds[i])
                for (const char *sort : {"mangled:", "api:"})
                    asked->settings.insert(
                        std::string("rules ") + policy + " = " +
                        Trimmed(sort + std::string(cst_string(trace, trace->kinds[i]->name))));
}

bool Ends(const char *text, const char *end) {
    size_t bytes = strlen(text), n = strlen(end);
    return bytes >= n && strcmp(text + bytes - n, end) == 0;
}

void TakeSetting(void *context, const cus_setting *setting) {
    auto *asked = static_cast<Asked *>(context);
    if (!setting->key)
        return; // a head: what stands below it is looked at
    std::string text = std::string(setting->section) + " " + setting->key + " = " + setting->value;
    if (!asked->settings.count(text))
        fprintf(stderr, "nobody asked for: %s\n", text.c_str());
    CHECK(asked->settings.count(text));
}

// A line may be too long for a configuration; nothing else may be wrong with one.
void TakeProblem(void *, const cus_problem *problem) {
    if (!Ends(problem->text, " is too long"))
        fprintf(stderr, "line %d: %s\n", problem->line, problem->text);
    CHECK(Ends(problem->text, " is too long"));
}

void CheckConfig(const cst_trace *trace, bool rules) {
    bool guessed = false;
    char *text = whatif_facts_config(trace, rules, &guessed);
    if (!text)
        return;
    Asked asked;
    whatif_facts_read(trace->facts, "options", TakeOption, &asked);
    whatif_facts_read(trace->facts, "steps", TakeStep, &asked);
    if (rules && guessed)
        TakeKinds(trace, &asked);
    else if (rules)
        whatif_facts_read(trace->facts, "rules", TakeRule, &asked);
    cus_config_read_file(InMemory(1, text).c_str(), false, TakeSetting, TakeProblem, &asked);
    free(text);
}

void TakeAny(void *context, const char *name, const char *value) {
    *static_cast<size_t *>(context) += strlen(name) + strlen(value);
}

void CheckFacts(const cst_trace *trace) {
    size_t bytes = 0;
    CheckLine(trace->facts);
    whatif_facts_read(trace->facts, nullptr, TakeAny, &bytes);
    CHECK(bytes <= strlen(trace->facts));
    CheckConfig(trace, true);
    CheckConfig(trace, false);
}

// ---- the environment ----

void CheckEnvironment(const std::string &input) {
    std::vector<std::string> lines = Lines(input + "\n");
    std::vector<char *> entries;
    for (std::string &line : lines)
        entries.push_back(&line[0]);
    entries.push_back(nullptr);
    char **before = environ;
    environ = entries.data();
    settings_forget();
    for (char **entry = environ; *entry; entry++)
        CHECK(strncmp(*entry, "CUSPLICE", 8) != 0);
    settings_set(lines[0].c_str(), "value");
    environ = before;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::string input(reinterpret_cast<const char *>(data), size);
    if (input.compare(0, 7, "environ") == 0) {
        CheckEnvironment(input.c_str() + 7);
        return 0;
    }
    if (input.compare(0, 4, CST_MAGIC, 4) != 0) {
        cst_trace trace = {};
        trace.facts = input.c_str();
        CheckFacts(&trace);
        return 0;
    }
    char error[300];
    cst_trace *trace = cst_open(InMemory(0, TraceOf(data, size)).c_str(), error, sizeof error);
    if (trace)
        CheckFacts(trace);
    cst_free(trace);
    return 0;
}
