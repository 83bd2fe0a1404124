/* Writes JSON to stdout. */
#include "tools/cli/json.h"

#include <stdio.h>

#include "tools/trace/jsonl.h"

static bool follows; /* something stands before on this level */
static unsigned depth;

static void begin(const char *key) {
    if (depth)
        printf("%s\n%*s", follows ? "," : "", (int)depth * 2, "");
    if (key) {
        jsonl_string(stdout, key);
        printf(": ");
    }
    follows = true;
}

void cli_json_open(const char *key, char bracket) {
    begin(key);
    putchar(bracket);
    depth++;
    follows = false;
}

void cli_json_close(char bracket) {
    depth--;
    if (follows)
        printf("\n%*s", (int)depth * 2, "");
    putchar(bracket);
    if (!depth)
        putchar('\n');
    follows = depth;
}

void cli_json_text(const char *key, const char *text) {
    begin(key);
    if (text)
        jsonl_string(stdout, text);
    else
        printf("null");
}

void cli_json_number(const char *key, int number) {
    begin(key);
    printf("%d", number);
}

void cli_json_count(const char *key, uint64_t number) {
    begin(key);
    printf("%llu", (unsigned long long)number);
}

void cli_json_real(const char *key, double number) {
    begin(key);
    printf("%.6f", number);
}

void cli_json_bool(const char *key, bool value) {
    begin(key);
    printf(value ? "true" : "false");
}
