// The reader of settings, the options and the rules that are made of them: any file at all.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "shim/base/config.h"
#include "shim/base/options.h"
#include "shim/plan/rules.h"
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
    CHECK(strcmp(setting->section, "") == 0 || strcmp(setting->section, "rules") == 0);
    if (!*setting->section) {
        cus_options_set(&seen->options, setting, TakeProblem, context);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = memfd_create("config", MFD_CLOEXEC);
    static const std::string path = "/proc/self/fd/" + std::to_string(fd);
    if (size > 4096) {
        return 0;
    }
    CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
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
    cus_verdict verdict = cus_rules_decide(rules, "_ZN2at6native6kernelIfEEvPT_");
    CHECK(verdict.rule < static_cast<int>(cus_rules_count(rules)));
    cus_rules_free(rules);
    return 0;
}
