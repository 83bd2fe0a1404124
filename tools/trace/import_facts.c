/*
 * Writes the facts that a trace has of its profile. import.c calls it once, behind all ops. It
 * never copies a text without cleaning it.
 */
#include "tools/trace/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/json.h"
#include "shim/base/version.h"
#include "tools/trace/clean.h"

/* Cut to its room. */
static void fact(char *json, size_t bytes, const char *key, const char *text) {
    size_t n = strlen(json);
    n += (size_t)snprintf(json + n, bytes - n, "%s\"%s\":\"", n > 1 ? "," : "", key);
    while (*text && n + CUS_JSON_ESCAPE + 4 < bytes) {
        char escape[CUS_JSON_ESCAPE];
        if (cus_json_plain(text)) {
            size_t character = clean_next(text).bytes;
            memcpy(json + n, text, character);
            n += character;
            text += character;
        } else {
            text += cus_json_escape(text, escape);
            n += (size_t)snprintf(json + n, CUS_JSON_ESCAPE, "%s", escape);
        }
    }
    json[n++] = '"';
    json[n] = 0;
}

size_t import_facts(const struct import_options *options, const struct import_data *data,
                    const struct import_counts *counts, char json[IMPORT_FACTS]) {
    memcpy(json, "{", 2);
    fact(json, IMPORT_FACTS, "made_by", "cusplice " CUSPLICE_VERSION " import");
    fact(json, IMPORT_FACTS, "imported_from", options->from);
    fact(json, IMPORT_FACTS, "exporter", data->exporter);
    fact(json, IMPORT_FACTS, "schema", data->schema);
    fact(json, IMPORT_FACTS, "gpu", data->gpu);
    fact(json, IMPORT_FACTS, "names", data->mangled ? "mangled" : "short");
    fact(json, IMPORT_FACTS, "stream_kinds", data->stream_kinds ? "known" : "assumed");
    fact(json, IMPORT_FACTS, "params", "not known");
    size_t n = strlen(json);
    n += (size_t)snprintf(json + n, IMPORT_FACTS - n,
                          ",\"pid\":%" PRIu64 ",\"imported\":true,\"ops_in_calls\":%" PRIu64
                          ",\"ops_in_graphs_left_out\":%" PRIu64 ",\"migrations_left_out\":%" PRIu64
                          ",\"ops_uncalled_left_out\":%" PRIu64 ",\"unknown_calls\":%" PRIu64 "}",
                          data->pid, counts->in_calls, counts->in_graphs, counts->migrations,
                          counts->uncalled, counts->unknown);
    return n;
}
