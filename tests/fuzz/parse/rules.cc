// Target: what `cusplice rules` reads off a trace, and the file that it prints. The file is a
// configuration without problems, and each rule in it names one kernel of the trace.
//
// An input that begins with "[" is a file of costs, as for --cost.
#include <stdint.h>
#include <string.h>

#include <set>
#include <string>

#include "shim/base/config.h"
#include "shim/plan/pattern.h"
#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
#include "tests/fuzz/parse/traces.h"
extern "C" {
#include "tools/cli/rules_found.h"
#include "tools/trace/budget.h"
#include "tools/whatif/cost.h"
}

namespace {

struct Asked {
    std::set<std::string> names;
    unsigned rules = 0, lines = 0;
};

void TakeSetting(void *context, const cus_setting *setting) {
    auto *asked = static_cast<Asked *>(context);
    if (!setting->key)
        return; // a head
    CHECK(strcmp(setting->section, "rules") == 0);
    CHECK(strcmp(setting->key, "eager") == 0 || strcmp(setting->key, "never_defer") == 0);
    CHECK(strncmp(setting->value, "mangled:", 8) == 0);
    std::string name = setting->value + 8;
    char error[300];
    CHECK(asked->names.count(name) == 1);
    cus_pattern *pattern = cus_pattern_new(setting->value, error, sizeof error);
    CHECK(pattern && cus_pattern_matches(pattern, name.c_str()));
    CHECK(!cus_pattern_matches(pattern, (name + "x").c_str()));
    cus_pattern_free(pattern);
    asked->rules++;
}

void TakeProblem(void *, const cus_problem *problem) {
    fprintf(stderr, "line %d: %s\n", problem->line, problem->text);
    CHECK(false);
}

// Any kernel may turn out to pay as a break, by any sum.
void Play(rules_found *found, uint64_t seed, rules_played *played) {
    static const double sums[] = {0, 3.5, -7, 1e300, -1e300, -0.04};
    for (unsigned i = 0; i < found->n; i++, seed = seed * 6364136223846793005u + 1) {
        found->kernels[i].played = rules_may_name(found->kernels[i].name) && seed >> 60;
        found->kernels[i].more_us = sums[(seed >> 33) % 6];
    }
    played->baseline = sums[seed % 4];
    played->share = 50;
    played->guessed = seed % 2;
}

void Propose(const look *of, uint64_t seed) {
    rules_found found;
    rules_played played;
    Asked asked;
    CHECK(rules_find(of, &found));
    CHECK(found.n <= found.all && found.n <= RULES_KERNELS);
    uint64_t calls = 0;
    for (unsigned i = 0; i < found.n; i++) {
        const rules_kernel &kernel = found.kernels[i];
        CHECK(kernel.calls && kernel.reshaped < kernel.calls && kernel.gpu_ns <= found.gpu_ns);
        CHECK(kernel.fast <= kernel.slowest);
        calls += kernel.calls;
        asked.names.insert(kernel.name);
    }
    CHECK(calls <= of->model->n_ops);
    Play(&found, seed, &played);
    std::string text = Printed([&](FILE *to) { rules_show(of, &found, &played, to); });
    CheckPlain(text);
    cus_config_read_file(InMemory(1, text).c_str(), false, TakeSetting, TakeProblem, &asked);
    CHECK(asked.rules <= found.n);
    rules_free(&found);
}

void ReadCosts(const std::string &text) {
    char error[1024] = "";
    whatif_cost cost;
    std::string path = InMemory(0, text);
    CHECK(whatif_cost_read(path.c_str(), &cost, error, sizeof error) == (*error == 0));
    if (*error)
        CHECK(strchr(error, '\n') == nullptr);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget_memory(0); // the fuzzer has bounds of its own, for each input
    budget_seconds(0);
    if (size && *data == '[') {
        ReadCosts(std::string(reinterpret_cast<const char *>(data), size));
        return 0;
    }
    char error[1024];
    std::string path = InMemory(0, TraceOf(data, size));
    look of;
    if (!look_open(&of, path.c_str(), NAMES_BASE, error, sizeof error))
        return 0;
    Propose(&of, size * 0x9e3779b97f4a7c15u);
    look_close(&of);
    return 0;
}
