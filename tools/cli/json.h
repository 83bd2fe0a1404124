/*
 * JSON on stdout, for what `--json` asks for: one call per value, commas and quotes are seen to.
 */
#ifndef CUSPLICE_TOOLS_CLI_JSON_H
#define CUSPLICE_TOOLS_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>

/* `key` is NULL in arrays and at the top. The top's end also ends the line. */
void cli_json_open(const char *key, char bracket);
void cli_json_close(char bracket);
void cli_json_text(const char *key, const char *text); /* NULL: null */
void cli_json_number(const char *key, int number);
void cli_json_count(const char *key, uint64_t number);
void cli_json_real(const char *key, double number); /* finite */
void cli_json_bool(const char *key, bool value);

#endif
