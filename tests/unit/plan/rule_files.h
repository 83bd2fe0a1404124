// The rules and steps of all files that a test has written, as a program would load them.
#ifndef CUSPLICE_TESTS_UNIT_PLAN_RULE_FILES_H
#define CUSPLICE_TESTS_UNIT_PLAN_RULE_FILES_H

#include "shim/plan/rules.h"
#include "tests/unit/base/config_files.h"

class RuleFiles : public ConfigFiles {
  protected:
    void TearDown() override { cus_rules_free(rules); }
    void LoadAll(bool secure = false) {
        int n = 0;
        problems.clear();
        cus_rules_free(rules);
        rules = cus_rules_load(secure, TakeProblem, &problems, &n);
        EXPECT_EQ((size_t)n, problems.size());
    }

    struct cus_rules *rules = nullptr;
};

#endif
