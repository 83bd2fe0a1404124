/*
 * Writes JSON (shim/base/json.h) to a FILE, with numbers that are not whole. Verbs and reports
 * call it. It never reads JSON.
 */
#ifndef CUSPLICE_TOOLS_TRACE_JSON_H
#define CUSPLICE_TOOLS_TRACE_JSON_H

#include <stdio.h>

#include "shim/base/json.h"

struct cus_json json_to(FILE *to, enum cus_json_form form);
/* Finite. Six digits in all, or six behind the point. */
void json_real(struct cus_json *json, const char *key, double number);
void json_fixed(struct cus_json *json, const char *key, double number);

#endif
