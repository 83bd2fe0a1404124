// Target: the reader of settings, and the options, rules and steps made from them, with any file.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "shim/base/config.h"
#include "shim/base/options.h"
#include "shim/plan/rules.h"
#include "shim/plan/step_read.h"
#include "tests/fuzz/parse/check.h"

namespace {

struct Seen {
    struct cus_options options;
    int last_line;
    unsigned settings, problems;
};

void TakeProblem(void *context, const cus_problem *problem) {
    char shown[64]; // small, so that it is cut
    auto *seen = static_cast<Seen *>(context);
    seen->problems++;
    CHECK(problem->file && problem->text && problem->line >= 0);
    cus_problem_show(problem, shown, sizeof shown);
    CHECK(memchr(shown, 0, sizeof shown));
}

void TakeSetting(void *context, const cus_setting *setting) {
    auto *seen = static_cast<Seen *>(context);
    seen->settings++;
    CHECK(setting->line > 0 && setting->line >= seen->last_line);
    seen->last_line = setting->line;
    CHECK(setting->value);
    if (!setting->key) { // a head
        CHECK(strcmp(setting->section, "rules") == 0 || strcmp(setting->section, "step") == 0 ||
              strcmp(setting->section, "?") == 0);
        return;
    }
    CHECK(strcmp(setting->section, "") == 0 || strcmp(setting->section, "rules") == 0 ||
          strcmp(setting->section, "step") == 0);
    if (!*setting->section) {
        cus_options_set(&seen->options, setting, TakeProblem, context);
    }
}

// A step that was read has all that it must have, and is read again as what it is shown as.
void CheckStep(const struct cus_rules *rules, const cus_step_rule *step) {
    CHECK(step->name && *step->marker && *step->file && step->line > 0);
    CHECK(step->tokens <= CUS_STEP_Z && step->tokens_each > 0 && step->n_sizes <= CUS_STEP_SIZES);
    cus_step_rule again;
    cus_step_defaults(&again);
    for (int key = CUS_STEP_KEY_TOKENS; key < CUS_STEP_KEYS; key++) {
        char text[CUS_STEP_SHOWN], twice[CUS_STEP_SHOWN], error[300];
        const char *nearest;
        auto which = static_cast<enum cus_step_key>(key);
        if (cus_step_show(step, which, text, sizeof text)) {
            CHECK(cus_step_set(&again, which, text, error, sizeof error, &nearest));
            CHECK(cus_step_show(&again, which, twice, sizeof twice) && strcmp(text, twice) == 0);
        }
    }
    for (uint32_t i = 0; i < step->n_sizes; i++) {
        const cus_step_sizes &sizes = step->sizes[i];
        CHECK(sizes.first > 0 && sizes.first <= sizes.last && sizes.stride > 0);
    }
    cus_step_rule one = *step;
    one.tokens_each = again.tokens_each = 1; // so that its sizes can be met
    for (uint32_t i = 0; i < 4 * (step->n_sizes + 1); i++) {
        const cus_step_sizes &sizes = step->sizes[i / 4 % CUS_STEP_SIZES];
        uint32_t near[] = {sizes.first, sizes.first + sizes.stride, sizes.first + 1, sizes.last};
        const uint32_t grid[3] = {near[i % 4], near[i % 4], near[i % 4]};
        uint64_t tokens, same;
        CHECK(cus_step_classify(&one, grid, &tokens) == cus_step_classify(&again, grid, &same));
        CHECK(tokens == same && tokens == near[i % 4]);
    }
    const cus_step_rule *found = cus_rules_step(rules, step->marker);
    CHECK(!found || found->line <= step->line);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = memfd_create("config", MFD_CLOEXEC);
    static const std::string path = "/proc/self/fd/" + std::to_string(fd);
    if (size > 4096) {
        return 0;
    }
    CHECK(fchmod(fd, 0600) == 0 && ftruncate(fd, 0) == 0 &&
          pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
    Seen seen = {};
    cus_options_load(&seen.options, true, nullptr, nullptr);
    cus_config_read_file(path.c_str(), false, TakeSetting, TakeProblem, &seen);
    for (unsigned i = 0; cus_options_row(i); i++) {
        char value[32];
        cus_options_show(&seen.options, i, value, sizeof value);
        CHECK(memchr(value, 0, sizeof value));
    }
    cus_options_free(&seen.options);
    int problems = 0;
    struct cus_rules *rules = cus_rules_load_file(path.c_str(), TakeProblem, &seen, &problems);
    CHECK(rules);
    for (unsigned i = 0; i < cus_rules_count(rules); i++) {
        CHECK(cus_rules_get(rules, i)->pattern);
    }
    for (unsigned i = 0; i < cus_rules_steps(rules); i++) {
        CheckStep(rules, cus_rules_step_get(rules, i));
    }
    CHECK(!cus_rules_step_get(rules, cus_rules_steps(rules)));
    cus_verdict verdict = cus_rules_decide(rules, "_ZN2at6native6kernelIfEEvPT_");
    CHECK(verdict.rule < static_cast<int>(cus_rules_count(rules)));
    cus_rules_free(rules);
    return 0;
}
