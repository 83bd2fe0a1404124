/*
 * The answers of `cusplice config`, one function for each question. verb_config.c calls them. Each
 * returns the exit status, 1 for a configuration with a problem. None changes a file.
 */
#ifndef CUSPLICE_TOOLS_CLI_CONFIG_H
#define CUSPLICE_TOOLS_CLI_CONFIG_H

#include <stdbool.h>

#include "shim/base/json.h"
#include "shim/plan/rules.h"
#include "shim/plan/step.h"

/* Every key with its value and where that is from, the rules, the steps. */
int cli_config_list(bool json);
/* One file, read strictly. */
int cli_config_check(const char *path, bool json);
/* What is said of a kernel, mangled or not, that is from the file `lib` (NULL: not known); of all
 * kernels of a file (`lib:FILE`); of a call that is none (`api:NAME`). */
int cli_config_explain(const char *asked, const char *lib, bool json);

/* `    # FILE:LINE` and the end of the line. */
void cli_config_print_place(const char *file, int line);
void cli_config_print_rule(const struct cus_rule *rule);
/* The head of its section. */
void cli_config_print_step(const struct cus_step_rule *step);
/* As an object; null for NULL. */
void cli_config_json_rule(struct cus_json *json, const char *key, const struct cus_rule *rule);
void cli_config_json_step(struct cus_json *json, const char *key, const struct cus_step_rule *step);

#endif
