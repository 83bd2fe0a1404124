/*
 * Connects the JSON writer to stdio. A dump has millions of lines, so it calls stdio without
 * locks. Verbs and reports call it, one thread for a FILE. It never flushes.
 */
#include "tools/trace/json.h"

static void put(void *to, const char *bytes, size_t n) {
    fwrite_unlocked(bytes, 1, n, to);
}

struct cus_json json_to(FILE *to, enum cus_json_form form) {
    return (struct cus_json){.put = put, .to = to, .form = form};
}

void json_real(struct cus_json *json, const char *key, double number) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", number);
    cus_json_raw(json, key, text);
}

void json_fixed(struct cus_json *json, const char *key, double number) {
    char text[400]; /* as a number may be long */
    snprintf(text, sizeof text, "%.6f", number);
    cus_json_raw(json, key, text);
}
